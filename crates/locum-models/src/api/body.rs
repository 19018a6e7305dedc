//! The body of an answer: an event stream, or one whole answer from a server that does not stream. The first
//! character tells which; headers are often wrong.

use locum_core::task::event::FailureKind;
use locum_core::transcript::Reply;
use serde_json::Value;

use super::{Draft, Progress};
use crate::http::Answer;
use crate::model::{Delta, Deltas, ModelError};
use crate::sse::{EVENT_BYTES_MAX, Event, Parser};

/// Reads a reply to its end.
pub(super) async fn read(
    mut answer: Answer,
    mut draft: Box<dyn Draft>,
    sent_bytes: u64,
    deltas: &mut Deltas<'_>,
) -> Result<Reply, ModelError> {
    let mut body = Body::Unknown;
    let mut failure = None;
    while draft.progress() != Progress::Done && failure.is_none() {
        match answer.chunk().await {
            Ok(None) => break,
            Ok(Some(chunk)) => {
                if let Err(error) = body.take(&chunk, &mut *draft, &mut answer, deltas) {
                    return Err(attach(&mut *draft, error));
                }
                if draft.progress() != Progress::Speaking {
                    answer.note_last_event();
                }
            }
            Err(error) => failure = Some(error),
        }
    }
    let rest = body.finish(&mut *draft, &answer, deltas);
    // What breaks after the model has ended its reply does not matter; before, it is the failure that counts.
    if let Some(error) = failure.or(rest.err()).filter(|_| draft.progress() == Progress::Speaking) {
        return Err(attach(&mut *draft, error));
    }
    match draft.progress() {
        Progress::Speaking => {
            let error = ModelError::new(FailureKind::CutStream, "the stream ended before the answer did");
            return Err(attach(&mut *draft, error));
        }
        Progress::Whole => {}
        Progress::Done => answer.end().await,
    }
    answer.give_back().await;
    draft.finish(sent_bytes, deltas)
}

/// Adds what the model had said to a failure.
fn attach(draft: &mut dyn Draft, mut error: ModelError) -> ModelError {
    error.partial = Some(draft.said()).filter(|text| !text.is_empty());
    error
}

/// What an answer's body turns out to be.
enum Body {
    /// Nothing but white space has come.
    Unknown,
    Events(Parser),
    Whole(Vec<u8>),
}

impl Body {
    fn take(
        &mut self,
        chunk: &[u8],
        draft: &mut dyn Draft,
        answer: &mut Answer,
        deltas: &mut Deltas<'_>,
    ) -> Result<(), ModelError> {
        if matches!(self, Self::Unknown) {
            *self = match chunk.trim_ascii_start().first() {
                None => return Ok(()),
                Some(b'{' | b'[') => Self::Whole(Vec::new()),
                Some(b'<') => return Err(html()),
                Some(_) => Self::Events(Parser::new()),
            };
        }
        match self {
            Self::Unknown => Ok(()),
            Self::Whole(json) => {
                json.extend_from_slice(chunk);
                answer.note_event();
                if json.len() <= EVENT_BYTES_MAX {
                    return Ok(());
                }
                let message = format!("the answer is longer than {EVENT_BYTES_MAX} bytes");
                Err(ModelError::new(FailureKind::TooLarge, message))
            }
            Self::Events(parser) => parser.feed(chunk, &mut |event| match event {
                Event::Data(data) => {
                    if !is_ping(data) {
                        answer.note_event();
                    }
                    draft.take(data, deltas)
                }
                Event::Comment => {
                    deltas(Delta::Alive);
                    Ok(())
                }
            }),
        }
    }

    /// Takes what is left at the end of the body.
    fn finish(self, draft: &mut dyn Draft, answer: &Answer, deltas: &mut Deltas<'_>) -> Result<(), ModelError> {
        match self {
            Self::Unknown => {
                let what = if answer.has_begun() { "blank" } else { "empty" };
                Err(ModelError::new(FailureKind::Malformed, format!("the answer is {what}")))
            }
            Self::Whole(json) => draft.take_whole(&json, deltas),
            Self::Events(parser) => {
                let mut take_last = |event: Event<'_>| {
                    let Event::Data(data) = event else { return Ok(()) };
                    match draft.take(data, deltas) {
                        // Half an event: the stream was cut, which is found out next.
                        Err(error) if error.kind == FailureKind::Malformed => Ok(()),
                        taken => taken,
                    }
                };
                parser.finish(&mut take_last)
            }
        }
    }
}

/// Whether an event only keeps the connection open: it must not keep a silent model alive for ever.
fn is_ping(data: &[u8]) -> bool {
    #[derive(serde::Deserialize)]
    struct Typed<'a> {
        r#type: &'a str,
    }
    data.len() <= PING_BYTES_MAX
        && data.windows(PING.len()).any(|word| word == PING.as_bytes())
        && serde_json::from_slice(data).is_ok_and(|event: Typed<'_>| event.r#type == PING)
}

/// The type of an event that says nothing.
const PING: &str = "ping";

/// A ping says nothing, so it is short; longer events need not be looked at twice.
const PING_BYTES_MAX: usize = 64;

fn html() -> ModelError {
    let message = "the answer is an HTML page: the base URL is probably not that of an API";
    ModelError::new(FailureKind::Malformed, message)
}

/// The first model in a server's list of its models.
pub(super) fn first_model(list: &[u8], host: &str) -> Result<String, ModelError> {
    let list: Value = serde_json::from_slice(list).unwrap_or_default();
    let first = list["data"][0]["id"].as_str().or_else(|| list["models"][0]["name"].as_str());
    first.map(str::to_owned).ok_or_else(|| {
        let message = format!("{host} lists no model: name one, as in provider:model");
        ModelError::new(FailureKind::NotFound, message)
    })
}
