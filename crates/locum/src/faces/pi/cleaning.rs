//! What pi's callers do not see: the home directory, and what looks like a key. Known secrets never come this far.

use std::path::Path;

use locum_core::neutral::neutralise;
use serde_json::Value;

/// How keys of well-known services begin.
const KEY_BEGINNINGS: [&str; 10] =
    ["sk-", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "AIza"];

/// No key is shorter.
const KEY_BYTES_MIN: usize = 20;

/// Takes out what a caller should not see.
pub(super) struct Cleaner {
    home: Option<String>,
}

impl Cleaner {
    pub(super) fn new(home: Option<&Path>) -> Self {
        let home = home.map(|home| home.to_string_lossy().trim_end_matches('/').to_owned());
        Self { home: home.filter(|home| !home.is_empty()) }
    }

    /// The text as a caller may see it.
    pub(super) fn text(&self, text: &str) -> String {
        let text = neutralise(text);
        let text = match &self.home {
            Some(home) => without_home(&text, home),
            None => text.into_owned(),
        };
        without_keys(text)
    }

    /// The same for every text in a value.
    pub(super) fn tree(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.tree(item)).collect(),
            Value::Object(fields) => fields.iter().map(|(name, field)| (self.text(name), self.tree(field))).collect(),
            Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
        }
    }
}

/// `~` in the place of the home directory, where its name does not go on.
fn without_home(text: &str, home: &str) -> String {
    let mut cleaned = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(found) = rest.find(home) {
        let (before, after) = (&rest[..found], &rest[found + home.len()..]);
        cleaned.push_str(before);
        let goes_on = after.starts_with(is_word);
        cleaned.push_str(if goes_on { home } else { "~" });
        rest = after;
    }
    cleaned.push_str(rest);
    cleaned
}

fn without_keys(text: String) -> String {
    let is_key =
        |word: &str| word.len() >= KEY_BYTES_MIN && KEY_BEGINNINGS.iter().any(|beginning| word.starts_with(beginning));
    if !text.split(|c| !is_word(c)).any(is_key) {
        return text;
    }
    let mut cleaned = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c| !is_word(c)) {
        let word = piece.trim_end_matches(|c| !is_word(c));
        if is_key(word) {
            cleaned.push_str("[redacted]");
            cleaned.push_str(&piece[word.len()..]);
        } else {
            cleaned.push_str(piece);
        }
    }
    cleaned
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_' || c == '-'
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_home_directory_and_keys_are_taken_out_and_nothing_else() {
        let cleaner = Cleaner::new(Some(Path::new("/home/al/")));
        let key = format!("ghp_{}", "a1".repeat(18));
        for (text, expected) in [
            ("/home/al/src/a.rs and /home/al", "~/src/a.rs and ~"),
            ("/home/alice/src", "/home/alice/src"),
            ("sk-short task-force-of-a-long-name", "sk-short task-force-of-a-long-name"),
            (&format!("token={key}, é"), "token=[redacted], é"),
            ("file:/home/al/x", "file:~/x"),
            ("", ""),
        ] {
            assert_eq!(cleaner.text(text), expected, "{text}");
        }
        assert_eq!(Cleaner::new(Some(Path::new("/"))).text("/a/b"), "/a/b");
        assert_eq!(Cleaner::new(None).text("/home/al"), "/home/al");
        let tree = serde_json::json!({"path": ["/home/al/x", 1]});
        assert_eq!(cleaner.tree(&tree), serde_json::json!({"path": ["~/x", 1]}));
    }
}
