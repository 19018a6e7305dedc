//! Anthropic's Messages, streamed. The stable beginning of a conversation and its last block are marked for the
//! provider's cache, and thinking is sent back as it came, with its signature.

mod event;
mod reply;
mod request;

use std::borrow::Cow;

use locum_core::transcript::Prompt;

use self::reply::Partial;
use crate::api::{Draft, Wire};
use crate::http::Segments;
use crate::model::Prefix;
use crate::providers::Dialect;

/// The name of this encoding, in a prefix and in what is kept of a reply.
const FORMAT: &str = "anthropic_messages";

/// Messages as one provider speaks them.
pub(crate) struct Messages {
    dialect: Dialect,
}

impl Messages {
    /// Messages in a dialect.
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect }
    }
}

impl Wire for Messages {
    fn path(&self, _model: &str) -> Cow<'static, str> {
        Cow::Borrowed("/v1/messages")
    }

    fn models_path(&self) -> &'static str {
        "/v1/models"
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("x-api-key", "")
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("anthropic-version", "2023-06-01")]
    }

    fn body(&self, prompt: &Prompt<'_>, prefix: &mut Prefix) -> Segments {
        request::body(prompt, prefix, &self.dialect)
    }

    fn reply(&self, prompt: &Prompt<'_>) -> Box<dyn Draft> {
        Box::new(Partial::new(prompt.model))
    }
}
