//! What models answered, as it is written to a file: one line of JSON for each call, so that several processes can
//! add to it at once. The other side is [`replay`](crate::replay).
//!
//! ```json
//! {"recording":1,"task":"01J…","agent":"explore","call":0,"asked":"5d41402abc4b2a76","model":"openai:gpt-5.4","reply":{"text":"…","stop":"end","tokens":{}}}
//! {"recording":1,"task":"01J…","agent":"explore","call":0,"asked":"9e107d9d372bb682","model":"openai:gpt-5.4","error":{"kind":"overloaded","message":"…"}}
//! ```

use std::time::Duration;

use locum_core::ids::{AgentName, Uid};
use locum_core::outside::without_seals;
use locum_core::task::event::FailureKind;
use locum_core::transcript::{Message, Prompt, Reply};
use serde::{Deserialize, Serialize};

use crate::model::ModelError;

/// The version of the format that this binary writes. Older ones are read.
pub const VERSION: u32 = 1;

/// One call of a model and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Entry {
    /// The version of the format.
    pub recording: u32,
    /// The task, to tell the calls of one from those of another.
    pub task: Uid,
    /// The agent that asked.
    pub agent: AgentName,
    /// Which call of the task it was, from 0, failed ones counted.
    pub call: u32,
    /// What was asked, as [`fingerprint`] tells it.
    pub asked: String,
    /// The model that was asked.
    pub model: String,
    /// What came of it.
    #[serde(flatten)]
    pub said: Said,
}

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// The model answered.
    Reply(Reply),
    /// The call failed.
    Error(Failure),
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// What the API or the network said.
    pub message: String,
    /// How long the API asked to wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_ms: Option<u64>,
    /// What the model had said before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partial: Option<String>,
}

impl Said {
    /// What came of a call, as it is recorded.
    pub fn of(answer: &Result<Reply, ModelError>) -> Self {
        match answer {
            Ok(reply) => Self::Reply(reply.clone()),
            Err(ModelError { kind, message, retry_after, partial, .. }) => {
                let milliseconds = |wait: Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
                let retry_after_ms = retry_after.map(milliseconds);
                let (message, partial) = (message.clone(), partial.clone());
                Self::Error(Failure { kind: *kind, message, retry_after_ms, partial })
            }
        }
    }
}

/// What tells one conversation from another: the task and all messages so far. The system prompt is left out, so that
/// an agent's file may be worked on while its recording stays useful.
pub fn fingerprint(prompt: &Prompt<'_>) -> String {
    let mut hash = Fnv::default();
    hash.add(prompt.task);
    for message in prompt.messages {
        match message {
            Message::User(text) => {
                hash.add("user");
                hash.add(text);
            }
            Message::Assistant(reply) => {
                hash.add("assistant");
                hash.add(&reply.text);
                for call in &reply.tool_calls {
                    hash.add(&call.name);
                    hash.add(&call.input.to_string());
                }
            }
            Message::Tool { name, output, .. } => {
                hash.add("tool");
                hash.add(name);
                // What stands around a text from outside is made anew for every call.
                hash.add(&without_seals(&output.text));
            }
        }
    }
    format!("{:016x}", hash.0)
}

/// FNV-1a: the same in every process and version, which the standard library's hashes are not. Nobody gains anything
/// from a collision here.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// Adds a text and its end.
    fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
