//! What kind of task a text describes and how hard it is, from its words alone. No model is asked: the same text is
//! always judged the same, at once and for nothing.

use crate::limits;
use crate::protocol::request::TaskType;

/// What a text says about its task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The type, where the words speak for one.
    pub task_type: Option<TaskType>,
    /// How hard it is, from 1 to 5.
    pub complexity: u8,
    /// The words that decided.
    pub evidence: Vec<String>,
}

/// Words that speak for a type. A word that ends in `*` stands for all that begin with it.
const TYPES: [(TaskType, &[&str]); 3] = [
    (
        TaskType::Code,
        &[
            "api",
            "bug*",
            "build",
            "class",
            "code*",
            "commit*",
            "compil*",
            "crate*",
            "cargo",
            "debug*",
            "dependenc*",
            "diff",
            "endpoint*",
            "fix",
            "function*",
            "handler*",
            "implement*",
            "lint*",
            "merge",
            "method*",
            "module*",
            "npm",
            "parser*",
            "patch*",
            "program*",
            "refactor*",
            "regex*",
            "repo*",
            "schema*",
            "script*",
            "sql",
            "stack",
            "struct*",
            "test",
            "tests",
            "testing",
            "trait*",
            "variable*",
        ],
    ),
    (
        TaskType::Vision,
        &[
            "diagram*",
            "gif",
            "icon*",
            "image*",
            "jpeg",
            "jpg",
            "mockup*",
            "ocr",
            "photo*",
            "picture*",
            "png",
            "screenshot*",
            "svg",
            "webp",
        ],
    ),
    (
        TaskType::Text,
        &[
            "announce*",
            "article*",
            "blog*",
            "email*",
            "essay*",
            "letter*",
            "paragraph*",
            "poem*",
            "proofread*",
            "prose",
            "report",
            "rewrite",
            "slogan*",
            "story",
            "stories",
            "summar*",
            "tone",
            "translat*",
        ],
    ),
];

/// Words of hard tasks.
const HARD: &[&str] = &[
    "algorithm*",
    "architect*",
    "atomic*",
    "concurren*",
    "consisten*",
    "crash*",
    "cryptograph*",
    "deadlock*",
    "design*",
    "distributed",
    "entire",
    "every",
    "exploit*",
    "invariant*",
    "leak*",
    "migrat*",
    "optimi*",
    "performance",
    "proof*",
    "prove",
    "race",
    "races",
    "redesign*",
    "refactor*",
    "rewrite",
    "root",
    "scal*",
    "secur*",
    "throughout",
    "trade*",
    "unsafe",
    "vulnerab*",
    "whole",
];

/// Words of easy tasks.
const EASY: &[&str] = &[
    "count", "find", "format*", "grep", "list", "locate", "lookup", "name", "print", "rename", "show", "spell*",
    "typo*", "what", "where", "which",
];

/// Neither hard nor easy.
const COMPLEXITY_USUAL: i64 = 3;
/// Words of one kind that count; more say the same again.
const WORDS_COUNTED: usize = 2;
/// A text up to here is one small request.
const SHORT_CHARS: usize = 80;
/// A text from here on describes more than one thing.
const LONG_CHARS: usize = 600;
/// So many points of a list are a task of several parts.
const POINTS_MANY: usize = 3;

/// Judges a task by its text.
pub fn judge(task: &str) -> Judgement {
    // What a task is about is said in its beginning; what follows is often material.
    let text: String = task.chars().take(limits::CLASSIFIED_CHARS_MAX).flat_map(char::to_lowercase).collect();
    let words: Vec<&str> = text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|w| !w.is_empty()).collect();
    let mut evidence = Vec::new();
    let task_type = type_of(&text, &words, &mut evidence);
    let complexity = complexity_of(&text, &words, &mut evidence);
    evidence.sort_unstable();
    evidence.dedup();
    Judgement { task_type, complexity, evidence }
}

/// The type with most words; none where two have as many.
fn type_of(text: &str, words: &[&str], evidence: &mut Vec<String>) -> Option<TaskType> {
    let found = TYPES.map(|(task_type, stems)| {
        let mut found = matching(words, stems);
        if task_type == TaskType::Code && looks_like_code(text, words) {
            found.push("code in it");
        }
        (task_type, found)
    });
    let most = found.iter().map(|(_, found)| found.len()).max().filter(|most| *most > 0)?;
    let mut best = found.into_iter().filter(|(_, found)| found.len() == most);
    let (task_type, found) = best.next()?;
    if best.next().is_some() {
        return None;
    }
    evidence.extend(found.into_iter().map(str::to_owned));
    Some(task_type)
}

/// Whether there is a path, a call or a name of a program in the text.
fn looks_like_code(text: &str, words: &[&str]) -> bool {
    const ENDINGS: [&str; 14] =
        [".rs", ".py", ".ts", ".tsx", ".js", ".go", ".java", ".c", ".cpp", ".h", ".rb", ".sh", ".toml", ".json"];
    let path =
        |word: &str| ENDINGS.iter().any(|ending| word.trim_end_matches(['.', ',', ':', '?', ')']).ends_with(ending));
    text.contains("::")
        || text.contains("()")
        || text.contains("```")
        || text.split_whitespace().any(path)
        || words.iter().any(|word| word.trim_matches('_').contains('_'))
}

fn complexity_of(text: &str, words: &[&str], evidence: &mut Vec<String>) -> u8 {
    let (hard, easy) = (matching(words, HARD), matching(words, EASY));
    let chars = text.chars().count();
    let has_parts = points(text) >= POINTS_MANY;
    let mut complexity = COMPLEXITY_USUAL;
    complexity += i64::try_from(hard.len().min(WORDS_COUNTED)).unwrap_or(0);
    complexity -= i64::try_from(easy.len().min(WORDS_COUNTED)).unwrap_or(0);
    complexity += i64::from(chars >= LONG_CHARS) + i64::from(has_parts);
    complexity -= i64::from(chars <= SHORT_CHARS && hard.is_empty() && !has_parts);
    evidence.extend(hard.into_iter().chain(easy).map(str::to_owned));
    u8::try_from(complexity.clamp(1, i64::from(limits::COMPLEXITY_MAX))).unwrap_or(1)
}

/// The points of a list in the text.
fn points(text: &str) -> usize {
    let point = |line: &&str| {
        let line = line.trim_start();
        let digits = line.trim_start_matches(|c: char| c.is_ascii_digit());
        line.starts_with("- ")
            || line.starts_with("* ")
            || (digits.len() < line.len() && digits.starts_with(['.', ')']))
    };
    text.lines().filter(point).count()
}

/// The different words that match, each once.
fn matching<'a>(words: &[&'a str], stems: &[&str]) -> Vec<&'a str> {
    let matches = |word: &str| {
        stems.iter().any(|stem| match stem.strip_suffix('*') {
            Some(stem) => word.starts_with(stem),
            None => word == *stem,
        })
    };
    let mut found: Vec<&str> = words.iter().copied().filter(|word| matches(word)).collect();
    found.sort_unstable();
    found.dedup();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_judged_by_its_words() {
        use TaskType::{Code, Text, Vision};
        let cases = [
            ("find all API route handlers in src/", Some(Code), 1),
            ("Fix the off-by-one error in the parser", Some(Code), 2),
            ("What is in screenshot.png?", Some(Vision), 1),
            ("Compare the two images and say which one is the mockup of the settings page", Some(Vision), 1),
            (
                "Summarise the meeting notes for people who were not there and keep the tone of the original text",
                Some(Text),
                3,
            ),
            ("Translate the letter into French", Some(Text), 2),
            ("Do something", None, 2),
            ("", None, 2),
            ("Implement an image upload", None, 2),
            ("Where is Journal::flush called?", Some(Code), 1),
            ("Redesign the architecture of the store so that two processes cannot deadlock", None, 5),
            (
                "Find the race in crates/locum/src/worker.rs that makes the whole test suite hang, prove it, and fix it",
                Some(Code),
                4,
            ),
            ("Do these:\n- write the code\n- write the tests\n- write the module's comment", Some(Code), 4),
        ];
        for (task, task_type, complexity) in cases {
            let judged = judge(task);
            assert_eq!((judged.task_type, judged.complexity), (task_type, complexity), "{task}: {judged:?}");
        }
        assert_eq!(judge(&"word ".repeat(200)).complexity, 4, "a long text is a large task");
        assert_eq!(judge(&"x".repeat(1_000_000)), judge(&"x".repeat(100_000)), "only its beginning is read");
    }

    #[test]
    fn the_words_that_decided_are_told() {
        assert_eq!(judge("Find the bug").evidence, ["bug", "find"]);
    }
}
