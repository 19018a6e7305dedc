//! How alike two names are, for a name that nobody has. It never decides silently: whoever uses a match says so.

use crate::agent::roster::fold;
use crate::limits;

/// The letters that a part must have to count as a likeness: shorter ones are in everything.
const PART_CHARS_MIN: usize = 3;
/// The letters that a part in the middle must have.
const INNER_CHARS_MIN: usize = 4;
/// From this many letters on, one typo leaves a name recognisable; from the next on, two.
const ONE_TYPO_CHARS_MIN: usize = 4;
const TWO_TYPOS_CHARS_MIN: usize = 7;

/// The one name that is clearly nearest to what was asked for. Two that are equally near are none.
pub fn best_match<'a, T>(asked: &str, known: impl Iterator<Item = &'a T>, text: impl Fn(&T) -> &str) -> Option<&'a T> {
    // What is longer than any name is not a name with a typo in it, and likeness is quadratic in lengths.
    if asked.chars().nth(limits::NAME_CHARS_MAX * 2).is_some() {
        return None;
    }
    let asked = fold(asked);
    let mut best: Option<(u32, &T)> = None;
    let mut is_tied = false;
    for item in known {
        let score = likeness(&asked, &fold(text(item)));
        match best {
            _ if score == 0 => {}
            Some((highest, _)) if score < highest => {}
            Some((highest, _)) if score == highest => is_tied = true,
            _ => {
                best = Some((score, item));
                is_tied = false;
            }
        }
    }
    best.filter(|_| !is_tied).map(|(_, item)| item)
}

/// How alike two folded names are, from 0 (not at all) to 1000. A beginning says more than an end, an end more than a
/// part in the middle; among equals the one that leaves less out is nearer.
fn likeness(asked: &str, name: &str) -> u32 {
    let (asked_chars, name_chars) = (asked.chars().count(), name.chars().count());
    let (short, long) = if asked_chars <= name_chars { (asked, name) } else { (name, asked) };
    let (short_chars, long_chars) = (asked_chars.min(name_chars), asked_chars.max(name_chars));
    if short_chars == 0 {
        return 0;
    }
    let covered = u32::try_from(short_chars * 100 / long_chars).unwrap_or(0);
    let typos = match strsim::damerau_levenshtein(asked, name) {
        1 if short_chars >= ONE_TYPO_CHARS_MIN => 950,
        2 if short_chars >= TWO_TYPOS_CHARS_MIN => 850,
        _ => 0,
    };
    let part = if short_chars >= PART_CHARS_MIN && long.starts_with(short) {
        800 + covered
    } else if short_chars >= PART_CHARS_MIN && long.ends_with(short) {
        700 + covered
    } else if short_chars >= INNER_CHARS_MIN && long.contains(short) {
        600 + covered
    } else {
        0
    };
    part.max(typos)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 8] =
        ["explore", "explorer", "reviewer", "code-reviewer", "researcher", "test-writer", "writer", "db"];

    fn check(asked: &str, expected: Option<&str>) {
        let found = best_match(asked, NAMES.iter(), |name| name);
        assert_eq!(found.copied(), expected, "{asked}");
    }

    #[test]
    fn a_match_needs_a_real_likeness() {
        for (asked, expected) in [
            // Beginnings, ends and middles.
            ("research", Some("researcher")),
            ("Code_Review", Some("code-reviewer")),
            ("security-reviewer", Some("reviewer")),
            ("the-explorer-agent", Some("explorer")),
            ("test", Some("test-writer")),
            // Typos.
            ("reviwer", Some("reviewer")),
            ("reserchar", Some("researcher")),
            ("writre", Some("writer")),
            // Nothing alike, or too short to say.
            ("deploy", None),
            ("d", None),
            ("x", None),
            ("", None),
            ("--", None),
            ("dba", None),
            ("wr", None),
        ] {
            check(asked, expected);
        }
        check(&"reviewer".repeat(1000), None);
    }

    #[test]
    fn two_equally_near_names_are_none() {
        let names = ["worker-a", "worker-b"];
        assert_eq!(best_match("worker", names.iter(), |name| name), None);
        assert_eq!(best_match("worker-c", names.iter(), |name| name), None);
        assert_eq!(best_match("worker-ab", ["worker-a"].iter(), |name| name), Some(&"worker-a"));
    }
}
