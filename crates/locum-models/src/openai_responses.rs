//! OpenAI's Responses, streamed and without state at the provider: every request carries the whole conversation, and
//! the model's hidden reasoning comes back encrypted and is sent along again.

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
const FORMAT: &str = "openai_responses";

/// Responses as one provider speaks them.
pub(crate) struct Responses {
    dialect: Dialect,
}

impl Responses {
    /// Responses in a dialect.
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect }
    }
}

impl Wire for Responses {
    fn path(&self, _model: &str) -> Cow<'static, str> {
        Cow::Borrowed("/responses")
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn body(&self, prompt: &Prompt<'_>, prefix: &mut Prefix) -> Segments {
        request::body(prompt, prefix, &self.dialect)
    }

    fn reply(&self, prompt: &Prompt<'_>) -> Box<dyn Draft> {
        Box::new(Partial::new(prompt.model))
    }
}
