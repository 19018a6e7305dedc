//! OpenAI's Chat Completions, streamed: the protocol that every local server speaks as well. What such a server says
//! is read with tolerance, what it is told is what all of them understand.

mod chunk;
mod reply;
mod request;
mod schema_tools;

use std::borrow::Cow;
use std::sync::Arc;

use locum_core::transcript::{Prompt, ToolUse};

use self::reply::Partial;
use self::schema_tools::Decoding;
use crate::api::{Draft, Wire};
use crate::http::Segments;
use crate::model::Prefix;
use crate::providers::Dialect;
use crate::recovery::Recovering;

/// The name of this encoding, in a [`Prefix`] and of what a model wants back.
const FORMAT: &str = "openai_chat";

/// Chat Completions as one provider speaks them.
pub(crate) struct Chat {
    dialect: Dialect,
}

impl Chat {
    /// Chat Completions in a dialect.
    pub(crate) fn new(dialect: Dialect) -> Self {
        Self { dialect }
    }
}

impl Wire for Chat {
    fn path(&self, _model: &str) -> Cow<'static, str> {
        Cow::Borrowed("/chat/completions")
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn body(&self, prompt: &Prompt<'_>, prefix: &mut Prefix) -> Segments {
        request::body(prompt, prefix, &self.dialect)
    }

    fn reply(&self, prompt: &Prompt<'_>) -> Box<dyn Draft> {
        let inner = match self.dialect.returns_reasoning {
            true => Partial::keeping_reasoning(prompt.model),
            false => Partial::default(),
        };
        let (inner, tools) = (Box::new(inner), Arc::clone(prompt.tools));
        if request::has_schema(prompt, &self.dialect) {
            return Box::new(Decoding { inner, tools });
        }
        match prompt.tool_use {
            ToolUse::Allowed if !tools.is_empty() => Box::new(Recovering { inner, tools }),
            ToolUse::Allowed | ToolUse::Forbidden => inner,
        }
    }
}
