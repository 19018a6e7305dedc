//! What a worker and its parent say to each other: JSON with its length before it, and nothing longer than a bound.
//! Both are the same program, so there is no version.

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use locum_core::budget::{Scarce, Shortage};
use locum_core::ids::{AgentName, SessionId, SessionKey, TaskId};
use locum_core::limits::FRAME_BYTES_MAX;
use locum_core::permission::Subject;
use locum_core::task::Record;
use locum_core::task::event::FailureKind;
use locum_core::task::plan::GrantedTool;
use locum_core::transcript::{Intent, Reply, ToolOutput};
use locum_models::{Delta, Hold, ModelError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::asking::Question;
use crate::sandbox::Sandbox;

/// Bytes before a frame that say how long it is.
const LENGTH_BYTES: usize = 4;

/// What a worker is told first.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Order {
    pub(super) session: SessionKey,
    pub(super) root: String,
    pub(super) worktrees: Option<PathBuf>,
    pub(super) sandbox: Option<Sandbox>,
    /// How long the model and a tool may be silent.
    pub(super) inactivity_ms: u64,
    pub(super) tool_ms: u64,
    /// The tools that the parent runs.
    pub(super) forwarded: Vec<GrantedTool>,
    pub(super) log: LogWish,
    /// Whether the parent knows somebody who can be asked.
    pub(super) can_ask: bool,
}

/// What a worker should say about its tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum LogWish {
    Nothing,
    Calls,
    CallsWithPayloads,
}

/// What a parent says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToWorker {
    /// Comes first.
    Order(Box<Order>),
    /// An entry of the task's log; all of them follow the order.
    Record(Box<Record>),
    /// That was all of the log: begin.
    Begin,
    /// A piece of the reply that was asked for.
    Heard { id: u64, piece: Piece },
    /// What was asked for.
    Given { id: u64, given: Given },
    /// The task is no longer wanted.
    Cancel,
    /// Somebody else goes on with the task.
    HandOver,
}

/// What a worker says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ToParent {
    /// It is there.
    Alive,
    /// It asks for something.
    Wanted { id: u64, wanted: Wanted },
    /// It no longer waits for what it asked for.
    Unwanted { id: u64 },
    /// A line for the operation log.
    Log { line: String },
    /// It does no more; the task has ended or is given up as it is.
    Finished,
}

/// What a worker asks for.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Wanted {
    /// That these become durable.
    Append { records: Vec<Record> },
    /// The model's answer to what the task says next.
    Reply,
    /// What a call of one of the parent's tools would be about.
    Prepared { name: String, input: Value },
    /// What a call of one of the parent's tools answers.
    Output { name: String, input: Value, intent: Option<Intent> },
    /// That a file is this task's until it ends.
    Claim { path: String },
    /// Whether somebody agrees to a call.
    Consent(Asked),
}

/// What a parent gives.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Given {
    Appended { nearing: Option<Scarce> },
    Overdrawn { shortage: Shortage },
    Reply(Box<Reply>),
    Failure(Failure),
    Prepared { subject: Subject, intent: Option<Intent> },
    Output(ToolOutput),
    ToolLayer { why: String },
    Claimed { refused: Option<String> },
    Consent(Said),
}

/// A [`Question`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Asked {
    session: SessionId,
    task: TaskId,
    agent: AgentName,
    tool: String,
    about: String,
    rule: String,
}

impl From<&Question> for Asked {
    fn from(question: &Question) -> Self {
        let Question { session, task, agent, tool, about, rule } = question.clone();
        Self { session, task, agent, tool, about, rule }
    }
}

impl From<Asked> for Question {
    fn from(asked: Asked) -> Self {
        let Asked { session, task, agent, tool, about, rule } = asked;
        Self { session, task, agent, tool, about, rule }
    }
}

/// An [`asking::Answer`](crate::asking::Answer).
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    Yes,
    No,
    Nobody,
}

/// A [`ModelError`].
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    kind: FailureKind,
    message: String,
    retry_after: Option<Duration>,
    held_for: Option<Duration>,
    partial: Option<String>,
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        let ModelError { kind, message, retry_after, held_for, partial } = error;
        Self { kind, message, retry_after, held_for, partial }
    }
}

impl From<Failure> for ModelError {
    fn from(failure: Failure) -> Self {
        let Failure { kind, message, retry_after, held_for, partial } = failure;
        Self { kind, message, retry_after, held_for, partial }
    }
}

/// A [`Delta`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Piece {
    Text(String),
    ToolCall(String),
    Alive,
    Held { provider: String, hold: HoldKind, left: Option<Duration> },
}

/// Which [`Hold`] it is.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HoldKind {
    RateLimit,
    Overload,
    Queue,
}

impl From<Delta<'_>> for Piece {
    fn from(delta: Delta<'_>) -> Self {
        match delta {
            Delta::Text(text) => Self::Text(text.to_owned()),
            Delta::ToolCall { name } => Self::ToolCall(name.to_owned()),
            Delta::Alive => Self::Alive,
            Delta::Held { provider, hold } => {
                let (hold, until) = match hold {
                    Hold::RateLimit(until) => (HoldKind::RateLimit, until),
                    Hold::Overload(until) => (HoldKind::Overload, until),
                    Hold::Queue => (HoldKind::Queue, None),
                };
                let left = until.map(|until| until.saturating_duration_since(Instant::now()));
                Self::Held { provider: provider.to_owned(), hold, left }
            }
        }
    }
}

impl Piece {
    /// The piece as a model tells it.
    pub(super) fn as_delta(&self) -> Delta<'_> {
        match self {
            Self::Text(text) => Delta::Text(text),
            Self::ToolCall(name) => Delta::ToolCall { name },
            Self::Alive => Delta::Alive,
            Self::Held { provider, hold, left } => {
                let until = left.and_then(|left| Instant::now().checked_add(left));
                let hold = match hold {
                    HoldKind::RateLimit => Hold::RateLimit(until),
                    HoldKind::Overload => Hold::Overload(until),
                    HoldKind::Queue => Hold::Queue,
                };
                Delta::Held { provider, hold }
            }
        }
    }
}

/// Frames on their way out. They are kept until the other side reads them; whoever adds more than it must looks at
/// [`Outbox::len`] first.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    // Nothing awaits under this lock.
    bytes: Mutex<Vec<u8>>,
    grown: Notify,
}

impl Outbox {
    /// Adds a frame.
    pub(super) fn push(&self, frame: &impl Serialize) -> io::Result<()> {
        let json = serde_json::to_vec(frame)?;
        let length = u32::try_from(json.len()).ok().filter(|_| json.len() <= FRAME_BYTES_MAX);
        let length = length.ok_or_else(|| io::Error::other("a message between processes is too long"))?;
        let mut bytes = self.locked();
        bytes.extend_from_slice(&length.to_be_bytes());
        bytes.extend_from_slice(&json);
        drop(bytes);
        self.grown.notify_one();
        Ok(())
    }

    /// Bytes that nobody has read yet.
    pub(super) fn len(&self) -> usize {
        self.locked().len()
    }

    /// Writes what is added, until the other side is gone.
    pub(super) async fn run(&self, mut to: impl AsyncWrite + Unpin) -> io::Error {
        loop {
            let bytes = std::mem::take(&mut *self.locked());
            let written = async {
                to.write_all(&bytes).await?;
                to.flush().await
            };
            if let Err(error) = written.await {
                return error;
            }
            if self.len() == 0 {
                self.grown.notified().await;
            }
        }
    }

    fn locked(&self) -> MutexGuard<'_, Vec<u8>> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Frames that come in.
#[derive(Debug)]
pub(super) struct Frames<R> {
    from: R,
    bytes: Vec<u8>,
}

impl<R: AsyncRead + Unpin> Frames<R> {
    pub(super) fn new(from: R) -> Self {
        Self { from, bytes: Vec::new() }
    }

    /// The next frame; none at the end. Dropping the future loses nothing.
    pub(super) async fn next<T: DeserializeOwned>(&mut self) -> io::Result<Option<T>> {
        loop {
            if let Some(end) = self.end_of_first()? {
                let frame = serde_json::from_slice(&self.bytes[LENGTH_BYTES..end]);
                self.bytes.drain(..end);
                return Ok(Some(frame?));
            }
            if self.from.read_buf(&mut self.bytes).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Where the first frame ends, if all of it is there.
    fn end_of_first(&self) -> io::Result<Option<usize>> {
        let Some(length) = self.bytes.first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        if length > FRAME_BYTES_MAX {
            return Err(io::Error::other("a message between processes is too long"));
        }
        let end = LENGTH_BYTES + length;
        Ok((self.bytes.len() >= end).then_some(end))
    }
}
