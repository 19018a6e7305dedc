//! Google's Gemini, streamed. Tools are described in the small part of JSON Schema that it takes, and the signatures of
//! its thoughts are sent back where they came.

mod event;
mod reply;
mod request;
mod schema;

use std::borrow::Cow;

use locum_core::transcript::Prompt;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use self::reply::Partial;
use crate::api::{Draft, Wire};
use crate::http::Segments;
use crate::model::Prefix;
use crate::providers::Dialect;

/// The name of this encoding, in a prefix and in what is kept of a reply.
const FORMAT: &str = "google_gemini";

/// What a model's name may not have in an address.
const NOT_IN_PATHS: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'/');

/// Gemini as one provider speaks it.
pub(crate) struct Gemini {
    dialect: Dialect,
}

impl Gemini {
    /// Gemini in a dialect.
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect }
    }
}

impl Wire for Gemini {
    fn path(&self, model: &str) -> Cow<'static, str> {
        // The API lists its models with their collection; so may a user.
        let collection = if model.contains('/') { "" } else { "models/" };
        let model = utf8_percent_encode(model, NOT_IN_PATHS);
        Cow::Owned(format!("/v1beta/{collection}{model}:streamGenerateContent?alt=sse"))
    }

    fn models_path(&self) -> &'static str {
        "/v1beta/models"
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-goog-api-key", "")
    }

    fn body(&self, prompt: &Prompt<'_>, prefix: &mut Prefix) -> Segments {
        request::body(prompt, prefix, &self.dialect)
    }

    fn reply(&self, prompt: &Prompt<'_>) -> Box<dyn Draft> {
        Box::new(Partial::new(prompt.model))
    }
}
