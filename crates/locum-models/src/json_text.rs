//! What servers send, read without a copy where there is nothing to decode: most pieces of a stream are a few plain
//! letters.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Reads JSON. That it is UTF-8 is looked at once for the whole, and not again for each of its strings; where it is
/// not, the parser says so, or does not mind where the string is of no interest.
pub(crate) fn read<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, serde_json::Error> {
    match std::str::from_utf8(json) {
        Ok(text) => serde_json::from_str(text),
        Err(_) => serde_json::from_slice(json),
    }
}

/// The text of a value that must be a string; anything else gives none.
pub(crate) fn string_of(value: Option<&RawValue>) -> Cow<'_, str> {
    value.filter(|value| value.get().starts_with('"')).map(text_of).unwrap_or_default()
}

/// Whether a value is a string.
pub(crate) fn is_string(value: Option<&RawValue>) -> bool {
    value.is_some_and(|value| value.get().starts_with('"'))
}

/// The text of a value that should be a string. A list of parts gives their texts, anything else none.
pub(crate) fn text_of(value: &RawValue) -> Cow<'_, str> {
    let json = value.get();
    if let Some(text) = json.strip_prefix('"').and_then(|json| json.strip_suffix('"')) {
        if !text.contains('\\') {
            return Cow::Borrowed(text);
        }
        // Half of a surrogate pair is the one thing that can be wrong here.
        return Cow::Owned(serde_json::from_str(json).unwrap_or_else(|_| "\u{fffd}".to_owned()));
    }
    #[derive(Deserialize)]
    struct Part {
        text: Option<String>,
    }
    let parts: Vec<Part> = serde_json::from_str(json).unwrap_or_default();
    Cow::Owned(parts.into_iter().filter_map(|part| part.text).collect())
}

/// The text of a value that may be missing.
pub(crate) fn optional_text(value: Option<&RawValue>) -> Cow<'_, str> {
    value.map(text_of).unwrap_or_default()
}

/// The text of a tool call's arguments: what the string holds, or the object as it is written.
pub(crate) fn arguments_of(value: &RawValue) -> Cow<'_, str> {
    if value.get().starts_with('"') { text_of(value) } else { Cow::Borrowed(value.get()) }
}
