//! OpenAI's Chat Completions, streamed: the protocol that every local server speaks as well. What such a server says
//! is read with tolerance, what it is told is what all of them understand.

mod chunk;
mod reply;
mod request;

use locum_core::transcript::Prompt;

use self::reply::Partial;
use crate::api::{Draft, Wire};
use crate::http::Segments;
use crate::model::Prefix;

/// Chat Completions as one server speaks them.
pub(crate) struct Chat {
    output_limit_field: &'static str,
}

impl Chat {
    /// Chat Completions as they are spoken at a host.
    pub(crate) fn new(host: &str) -> Self {
        Self { output_limit_field: request::output_limit_field(host) }
    }
}

impl Wire for Chat {
    fn path(&self, _model: &str) -> String {
        "/chat/completions".to_owned()
    }

    fn key_header(&self) -> (&'static str, &'static str) {
        ("authorization", "Bearer ")
    }

    fn body(&self, prompt: &Prompt<'_>, prefix: &mut Prefix) -> Segments {
        request::body(prompt, prefix, self.output_limit_field)
    }

    fn reply(&self, _prompt: &Prompt<'_>) -> Box<dyn Draft> {
        Box::new(Partial::default())
    }
}
