//! One entry of a script, as a test in Rust writes it.

use std::time::Duration;

use locum_core::task::event::FailureKind;
use locum_core::transcript::Stop;
use locum_core::usage::TokenCount;
use serde_json::Value;

/// What a scripted model does in one call.
#[derive(Debug, Clone, PartialEq)]
pub struct Say {
    pub(super) turn: Turn,
    pub(super) delay: Duration,
    pub(super) usage: Option<TokenCount>,
}

/// The part of a [`Say`] that decides what comes back.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Turn {
    Reply {
        text: String,
        calls: Vec<(String, Value)>,
        /// None: what follows from whether there are tool calls.
        stop: Option<Stop>,
    },
    Failure {
        kind: FailureKind,
        message: String,
        retry_after: Option<Duration>,
    },
    CutStream {
        text: String,
        message: String,
        retry_after: Option<Duration>,
    },
    Hang {
        text: String,
    },
}

impl Say {
    pub(super) fn new(turn: Turn) -> Self {
        Self { turn, delay: Duration::ZERO, usage: None }
    }

    /// Answers with a text. `{{task}}` in it becomes the task.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Turn::Reply { text: text.into(), calls: Vec::new(), stop: None })
    }

    /// Calls tools, each by its name with its input.
    pub fn calls<N: Into<String>>(calls: impl IntoIterator<Item = (N, Value)>) -> Self {
        let calls = calls.into_iter().map(|(name, input)| (name.into(), input)).collect();
        Self::new(Turn::Reply { text: String::new(), calls, stop: None })
    }

    /// Fails. A [`FailureKind::CutStream`] says half of the message first.
    pub fn error(kind: FailureKind, message: impl Into<String>) -> Self {
        let message = message.into();
        Self::new(match kind {
            FailureKind::CutStream => Turn::CutStream { text: message.clone(), message, retry_after: None },
            kind => Turn::Failure { kind, message, retry_after: None },
        })
    }

    /// Never ends; with a text, it says that first.
    pub fn hang() -> Self {
        Self::new(Turn::Hang { text: String::new() })
    }

    /// The same, with this text beside the tool calls, or as the text whose stream breaks or hangs. Other failures have
    /// none.
    #[must_use]
    pub fn with_text(mut self, said: impl Into<String>) -> Self {
        match &mut self.turn {
            Turn::Reply { text, .. } | Turn::CutStream { text, .. } | Turn::Hang { text } => *text = said.into(),
            Turn::Failure { .. } => {}
        }
        self
    }

    /// The same, after a while.
    #[must_use]
    pub fn after(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// The same failure, with the wait that the API asks for.
    #[must_use]
    pub fn retry_after(mut self, wait: Duration) -> Self {
        match &mut self.turn {
            Turn::Failure { retry_after, .. } | Turn::CutStream { retry_after, .. } => *retry_after = Some(wait),
            Turn::Reply { .. } | Turn::Hang { .. } => {}
        }
        self
    }

    /// The same, reporting these tokens.
    #[must_use]
    pub fn using(mut self, tokens: TokenCount) -> Self {
        self.usage = Some(tokens);
        self
    }

    /// The same reply, stopped for this reason. Of a refusal, the text says why.
    #[must_use]
    pub fn stopped(mut self, reason: Stop) -> Self {
        if let Turn::Reply { stop, .. } = &mut self.turn {
            *stop = Some(reason);
        }
        self
    }
}
