//! The few words that the offline model knows: what says nothing in a question, and what programmers call the same.

/// Words that say how a question is put, not what it is about.
const STOP_WORDS: &str = "
a about above across actual actually after again against all along already also although always am among an
analyse analyze and answer answers any anybody anyone anything anywhere are aren around as ask at away back be became
because become been before being below between both briefly bullet bullets but by came can cannot cant codebase come
comes complete concise could couldn crate current currently describe detail details did didn do does doesn doing don
done dont down during each either else etc even ever every everything exact exactly exist exists explain explore far
few files find for from full further gave get gets getting give given gives go goes going gone got had happen
happening happens has hasn have haven having he hello help helps hence her here him his how however i if in in-depth
include including inside instead into involved is isn it its itself just keep know known let lets library like
line lines list located look looking lot made mainly make makes making many may maybe me mean means mention mentioned
might mine more most mostly much must my near need needs neither never no nor not nothing now of off often ok on once
one ones only onto or other others otherwise our out over own package paragraph part parts per perhaps place places
please possible program project purpose put quick quickly quite quote rather really repo repository same say
says see seem seems sentence sentences shall she short shortly should show shows since so software some somebody
someone something somewhere soon step-by-step still such sum summarise summarize summary sure take takes tell than
thank thanks that the their them then there therefore these they thing things this thorough those though through thus
to together told too toward towards try under unless until up upon us use used uses using usually various very via
want wants was way ways we well were what whatever when whenever where whereabouts wherever whether which while who
whole whom whose why will with within without won would yes yet you your yours";

/// Words that a question about code often has, and that rarely help to find it. They count if nothing else is left.
const WEAK_VERBS: &str = "
affect affects apply applied applies behave behaves behavior behaviour build builds calculate calculated calculates
call called caller callers calls cause caused causes change changed changes check checked checks choose chooses chosen
compute computed computes contain contains control controlled controls create created creates decide decided decides
declare declared define defined defines determine determined determines do enable enabled exposed functionality handle
handled handles handling implement implemented implements important manage managed manages named new occur occurs
perform performed performs processed produce produced produces refer report represent responsible run runs set sets specify
specified start started starts stuff support supported supports thrown trigger triggered work works written happen";

/// Nouns of that kind: they help to choose, and beside another word they may be part of a name.
const WEAK_NOUNS: &str = "
class code definition feature features file folder function functions implementation kind kinds logic main method methods
module modules name names point process reference references result results source sources struct system type types
value values variable";

/// What programmers call the same, by how a word of a question begins.
const SYNONYMS: &[(&str, &[&str])] = &[
    ("abort", &["cancel"]),
    ("auth", &["login", "credential"]),
    ("backoff", &["retr"]),
    ("cancel", &["abort"]),
    ("concurren", &["parallel", "semaphore"]),
    ("config", &["setting"]),
    ("deadline", &["timeout"]),
    ("delay", &["sleep", "wait"]),
    ("delet", &["remov"]),
    ("director", &["folder", "dir"]),
    ("environment", &["env_var", "env::var", "getenv", "environ"]),
    ("folder", &["director", "dir"]),
    ("license", &["licence"]),
    ("limit", &["max"]),
    ("maximum", &["max", "limit"]),
    ("minimum", &["min"]),
    ("mutex", &["lock"]),
    ("parallel", &["concurren"]),
    ("remov", &["delet", "evict", "expir"]),
    ("retries", &["backoff", "attempt"]),
    ("retry", &["backoff", "attempt"]),
    ("setting", &["config"]),
    ("shut", &["stop", "terminat"]),
    ("symbolic", &["symlink"]),
    ("symlink", &["symbolic link", "follow_link"]),
    ("timeout", &["deadline"]),
];

/// What programmers write for two words that stand together.
const PAIR_SYNONYMS: &[((&str, &str), &[&str])] = &[
    (("entry", "point"), &["fn main", "def main", "int main", "func main"]),
    (("environment", "variable"), &["env var", "env::var", "getenv", "environ"]),
    (("environment", "variables"), &["env var", "env::var", "getenv", "environ"]),
];

/// What several words of a question are called in code.
const PHRASES: &[(&str, &str)] = &[
    ("not exist", "not_found"),
    ("n't exist", "not_found"),
    ("log in", "login"),
    ("logged in", "login"),
    ("look up", "lookup"),
    ("looked up", "lookup"),
    ("roll back", "rollback"),
    ("rolled back", "rollback"),
    ("set up", "setup"),
    ("shut down", "shutdown"),
    ("time out", "timeout"),
    ("times out", "timeout"),
];

/// How much a word of a question says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worth {
    /// Nothing.
    Nothing,
    /// Little: only if there is nothing else.
    Little,
    /// Something, beside other words.
    Some,
    /// It is what the question is about.
    Much,
}

/// How much a word says, in lower case.
pub(super) fn worth(word: &str) -> Worth {
    let among = |words: &str| words.split_ascii_whitespace().any(|other| other == word);
    if among(STOP_WORDS) {
        Worth::Nothing
    } else if among(WEAK_VERBS) {
        Worth::Little
    } else if among(WEAK_NOUNS) {
        Worth::Some
    } else {
        Worth::Much
    }
}

/// What programmers call the same as a word.
pub(super) fn synonyms(word: &str) -> &'static [&'static str] {
    let row = SYNONYMS.iter().find(|(beginning, _)| word.starts_with(beginning));
    row.map_or(&[], |(_, others)| others)
}

/// The names that code has for what a text says in several words.
pub(super) fn phrases(text: &str) -> impl Iterator<Item = &'static str> {
    let lower = text.to_lowercase();
    PHRASES.iter().filter(move |(phrase, _)| lower.contains(phrase)).map(|(_, name)| *name)
}

/// What programmers write for two words that stand together.
pub(super) fn pair_synonyms(first: &str, second: &str) -> &'static [&'static str] {
    let row = PAIR_SYNONYMS.iter().find(|(pair, _)| *pair == (first, second));
    row.map_or(&[], |(_, others)| others)
}

/// The beginning that a word shares with its other forms, best effort: `retries` is found as `retr`, `computed` as
/// `comput`. What is searched is the beginning of a word, so a stem that is too short finds too much and one that is
/// too long too little.
pub(super) fn stem(word: &str) -> String {
    // They end like something derived, and what they would be derived from is everywhere.
    const WHOLE: &[&str] = &["setting", "settings", "string", "strings", "nothing", "status", "version", "during"];
    if !word.is_ascii() {
        return word.to_owned();
    }
    if WHOLE.contains(&word) {
        return word.strip_suffix('s').filter(|rest| rest.ends_with('g')).unwrap_or(word).to_owned();
    }
    let singular = singular(word);
    let cut = SUFFIXES.iter().find_map(|(suffix, rest_min)| {
        let rest = singular.strip_suffix(suffix)?;
        (rest.len() >= *rest_min).then_some(rest)
    });
    undouble(cut.unwrap_or(singular)).to_owned()
}

/// Endings, and how much must be left before each.
const SUFFIXES: &[(&str, usize)] = &[
    ("ization", 4),
    ("isation", 4),
    ("ation", 4),
    ("ment", 6),
    ("ing", 4),
    ("ion", 4),
    ("ed", 4),
    ("ly", 5),
    ("y", 4),
    ("e", 4),
];

fn singular(word: &str) -> &str {
    if let Some(rest) = word.strip_suffix("ies").filter(|rest| rest.len() >= 3) {
        return rest;
    }
    let sibilants = ["ches", "shes", "sses", "xes", "zes"];
    if sibilants.iter().any(|ending| word.ends_with(ending)) && word.len() >= 5 {
        return &word[..word.len() - 2];
    }
    let plural = word.ends_with('s') && !["ss", "us", "is", "as", "os"].iter().any(|ending| word.ends_with(ending));
    if plural && word.len() >= 4 { &word[..word.len() - 1] } else { word }
}

fn undouble(stem: &str) -> &str {
    let bytes = stem.as_bytes();
    match bytes {
        // `process`, `call` and `off` are spelt so; `cancell` and `embedd` are not, and what is shorter finds both.
        [.., a, b] if a == b && stem.len() > 5 && *b != b's' => &stem[..stem.len() - 1],
        _ => stem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_their_other_forms() {
        for (asked, written) in [
            ("retries", "retry"),
            ("computed", "compute"),
            ("cancellation", "cancel"),
            ("embedded", "embed"),
            ("configuration", "configure"),
            ("connections", "connect"),
            ("matches", "match"),
            ("classes", "class"),
            ("parsing", "parse"),
            ("caching", "cache"),
            ("queries", "query"),
            ("directory", "directories"),
            ("settings", "setting"),
            ("recursively", "recursive"),
            ("symlinks", "symlink"),
            ("processes", "process"),
            ("deployment", "deploy"),
            ("policy", "policies"),
        ] {
            assert!(written.starts_with(&stem(asked)), "{asked} → {}", stem(asked));
        }
    }

    #[test]
    fn stems_do_not_become_everything() {
        for word in ["string", "setting", "file", "name", "action", "option", "status", "need", "bus", "id", "über"] {
            assert_eq!(stem(word), word);
        }
    }

    #[test]
    fn question_words_are_worth_nothing() {
        assert_eq!(worth("where"), Worth::Nothing);
        assert_eq!(worth("implemented"), Worth::Little);
        assert_eq!(worth("retry"), Worth::Much);
    }
}
