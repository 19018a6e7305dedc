//! Texts inside JSON that has not been decoded, without a copy where there is nothing to decode: most pieces of a
//! stream are a few plain letters.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

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
