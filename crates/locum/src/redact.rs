//! Known secrets never reach the disk: everything is cleaned at the point of writing, in every form in which a secret
//! is likely to appear.
//!
//! ```
//! use locum::redact::Redactor;
//!
//! let redactor = Redactor::new(["sk-an-example-key"]);
//! assert_eq!(redactor.text("key=sk-an-example-key".to_owned()), "key=[redacted]");
//! ```

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use locum_core::protocol::Refusal;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// What stands in a secret's place.
const MARK: &str = "[redacted]";

/// Anything shorter would blot out ordinary words.
const SECRET_CHARS_MIN: usize = 8;

/// Replaces known secrets with `[redacted]`. The default one knows none.
#[derive(Debug, Clone, Default)]
pub struct Redactor {
    forms: Option<AhoCorasick>,
}

/// Cleans a text that arrives in pieces: what may be the beginning of a secret is held back until it is known.
#[derive(Debug)]
pub(crate) struct PieceRedactor<'a> {
    redactor: &'a Redactor,
    held_back: String,
}

impl PieceRedactor<'_> {
    /// What can be shown now that this piece has arrived.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let Some(forms) = &self.redactor.forms else { return piece.to_owned() };
        self.held_back.push_str(piece);
        // A secret that begins before this place is there as a whole.
        let sure = (self.held_back.len() + 1).saturating_sub(forms.max_pattern_len());
        let mut shown = String::new();
        let mut done = 0;
        for found in forms.find_iter(&self.held_back).take_while(|found| found.start() < sure) {
            shown.push_str(&self.held_back[done..found.start()]);
            shown.push_str(MARK);
            done = found.end();
        }
        let end = (done..=sure.max(done)).rev().find(|end| self.held_back.is_char_boundary(*end)).unwrap_or(done);
        shown.push_str(&self.held_back[done..end]);
        self.held_back.drain(..end);
        shown
    }

    /// What was held back, at the end of the text.
    pub(crate) fn finish(self) -> String {
        self.redactor.text(self.held_back)
    }
}

impl Redactor {
    /// A redactor for these secrets, in plain, JSON, URL and base64 forms. One of fewer than eight characters is left
    /// alone: it would blot out ordinary words.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut forms: Vec<String> = secrets
            .into_iter()
            .filter(|secret| secret.chars().count() >= SECRET_CHARS_MIN)
            .flat_map(forms_of)
            .collect();
        // The longest form first: a plain secret must not leave half of its encoded form behind.
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms.dedup();
        if forms.is_empty() {
            return Self::default();
        }
        let built = AhoCorasick::builder().match_kind(aho_corasick::MatchKind::LeftmostLongest).build(forms);
        Self { forms: built.ok() }
    }

    /// A redactor for one text that arrives in pieces.
    pub(crate) fn pieces(&self) -> PieceRedactor<'_> {
        PieceRedactor { redactor: self, held_back: String::new() }
    }

    /// The text without secrets.
    pub fn text(&self, text: String) -> String {
        match &self.forms {
            Some(forms) if forms.is_match(&text) => {
                let marks = vec![MARK; forms.patterns_len()];
                forms.replace_all(&text, &marks)
            }
            Some(_) | None => text,
        }
    }

    /// A refusal without secrets: it may repeat what it refuses.
    pub(crate) fn refusal(&self, refusal: Refusal) -> Refusal {
        let Refusal { code, message, hint } = refusal;
        Refusal { code, message: self.text(message), hint: hint.map(|hint| self.text(hint)) }
    }

    /// A value without secrets anywhere in its JSON. What cannot be cleaned in place is not written at all.
    ///
    /// # Errors
    ///
    /// The value is no longer of its type without the secret: an id or a name that held one.
    pub fn value<T: Serialize + DeserializeOwned>(&self, value: T) -> Result<T, serde_json::Error> {
        let Some(forms) = &self.forms else { return Ok(value) };
        let json = serde_json::to_string(&value)?;
        if !forms.is_match(&json) {
            return Ok(value);
        }
        let mut tree: serde_json::Value = serde_json::from_str(&json)?;
        self.tree(&mut tree);
        serde_json::from_value(tree)
    }

    fn tree(&self, value: &mut serde_json::Value) {
        match value {
            serde_json::Value::String(text) => *text = self.text(std::mem::take(text)),
            serde_json::Value::Array(items) => items.iter_mut().for_each(|item| self.tree(item)),
            serde_json::Value::Object(fields) => {
                let entries = std::mem::take(fields);
                fields.extend(entries.into_iter().map(|(name, mut item)| {
                    self.tree(&mut item);
                    (self.text(name), item)
                }));
            }
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {}
        }
    }
}

/// What programs leave as it is when they put a text into an address: nothing but letters and digits, what the
/// standard allows, or that and the slashes.
const LEFT_IN_ADDRESSES: [&AsciiSet; 3] = [NON_ALPHANUMERIC, UNRESERVED, &UNRESERVED.remove(b'/')];
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

fn forms_of(secret: &str) -> Vec<String> {
    let json = serde_json::to_string(secret).unwrap_or_default();
    let mut forms = vec![secret.to_owned(), json.trim_matches('"').to_owned(), STANDARD.encode(secret)];
    for set in LEFT_IN_ADDRESSES {
        let escapes = || utf8_percent_encode(secret, set);
        forms.push(escapes().to_string());
        // Each piece is one escape, or a stretch of what is left as it is.
        let lower = |piece: &str| if piece.starts_with('%') { piece.to_ascii_lowercase() } else { piece.to_owned() };
        forms.push(escapes().map(lower).collect());
    }
    for alphabet in [STANDARD_NO_PAD, URL_SAFE_NO_PAD] {
        forms.push(alphabet.encode(secret));
        // In a longer base64 text the secret may begin at any of three offsets; its middle is the same in each.
        for lead in 1..3 {
            let shifted = alphabet.encode([&vec![0; lead], secret.as_bytes()].concat());
            let inner = shifted.get(4..shifted.len().saturating_sub(2)).unwrap_or_default();
            if inner.len() >= SECRET_CHARS_MIN {
                forms.push(inner.to_owned());
            }
        }
    }
    forms.sort();
    forms.dedup();
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "sk-test/\"quoted\"+1234567890";

    #[test]
    fn every_likely_form_of_a_secret_is_replaced() {
        let redactor = Redactor::new([SECRET]);
        let long = format!("prefix {SECRET}");
        for lead in 0..3 {
            let encoded = STANDARD.encode(&long[lead..]);
            let cleaned = redactor.text(encoded.clone());
            assert!(cleaned.contains(MARK), "{encoded}");
        }
        for text in [SECRET.to_owned(), serde_json::to_string(SECRET).unwrap(), forms_of(SECRET)[0].clone()] {
            assert!(redactor.text(text.clone()).contains(MARK), "{text}");
        }
        let url = utf8_percent_encode(SECRET, NON_ALPHANUMERIC).to_string();
        assert_eq!(redactor.text(format!("https://x/?key={url}")), "https://x/?key=[redacted]");
    }

    #[test]
    fn a_secret_in_an_address_is_replaced_however_much_of_it_was_escaped() {
        let redactor = Redactor::new(["sk-a/b+c=0123"]);
        for form in ["sk%2Da%2Fb%2Bc%3D0123", "sk-a%2Fb%2Bc%3D0123", "sk-a%2fb%2bc%3d0123", "sk-a/b%2Bc%3D0123"] {
            assert_eq!(redactor.text(format!("https://x/?key={form}&y=1")), "https://x/?key=[redacted]&y=1");
        }
    }

    #[test]
    fn values_are_cleaned_in_keys_and_leaves_and_keep_their_type() {
        let redactor = Redactor::new([SECRET]);
        let value = serde_json::json!({"a": [SECRET, 1], SECRET: {"b": format!("x{SECRET}y")}});
        let cleaned = redactor.value(value).unwrap();
        assert_eq!(cleaned, serde_json::json!({"a": [MARK, 1], MARK: {"b": "x[redacted]y"}}));
    }

    #[test]
    fn a_text_in_pieces_is_cleaned_like_the_whole_and_only_what_may_be_a_secret_is_held_back() {
        let redactor = Redactor::new([SECRET]);
        let encoded = STANDARD.encode(SECRET);
        for whole in
            [format!("é{SECRET}{SECRET}ö {encoded} sk-test/"), "nothing here, wörter".to_owned(), SECRET.to_owned()]
        {
            for size in 1..=whole.chars().count() {
                let chars: Vec<char> = whole.chars().collect();
                let mut pieces = redactor.pieces();
                let mut shown: String =
                    chars.chunks(size).map(|piece| pieces.push(&piece.iter().collect::<String>())).collect();
                assert!(!shown.contains("sk-test/\"quoted"), "{shown}");
                shown.push_str(&pieces.finish());
                assert_eq!(shown, redactor.text(whole.clone()), "{size}");
            }
        }
        assert_eq!(Redactor::default().pieces().push("at once"), "at once");
        let shown = redactor.pieces().push(&"x".repeat(1000));
        assert!(shown.len() > 900, "{}", shown.len());
    }

    #[test]
    fn short_secrets_and_clean_values_change_nothing() {
        let redactor = Redactor::new(["short", ""]);
        assert_eq!(redactor.text("a short text".to_owned()), "a short text");
        assert_eq!(
            redactor.value(vec!["short"; 1].into_iter().map(str::to_owned).collect::<Vec<_>>()).unwrap(),
            ["short"]
        );
    }
}
