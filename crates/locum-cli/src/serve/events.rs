//! What happens, as it happens: server-sent events of a session or of one task, from any position on. A reader pulls
//! them from the log at its own pace, so a slow one keeps nothing and nobody waiting; of the text of replies under way,
//! which is in no log, it misses what it is too slow for.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures_util::StreamExt as _;
use futures_util::stream;
use locum::desk::{Heard, TailedRecord};
use locum::protocol::Refusal;
use locum::store::Position;
use locum::task::TaskEvent;
use serde::Serialize;
use serde_json::json;

use super::answer::Refused;
use super::guard::single;
use super::hall::Hall;
use super::parameters::{Named, Parameters};
use super::tasks::find;

/// What an event is called that is a piece of a reply under way.
const TEXT: &str = "text";

/// How often a reader to whom nothing happens is told that the connection stands.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// `GET /v1/events`
pub(super) async fn of_session(
    State(hall): State<Arc<Hall>>,
    mut parameters: Parameters,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let session = parameters.session()?;
    let after = after(&mut parameters, &headers);
    parameters.finish()?;
    let desk = hall.named(session).await?;
    let after = match after.as_deref() {
        None => Position::default(),
        Some("now") => desk.last_position().await?,
        Some(text) => text.parse().map_err(|_| Refusal::invalid("an event's id looks like 12.0"))?,
    };
    let events = stream::unfold(desk.tail(after), |mut tail| async move {
        // A store that fails ends the stream; the client asks again from where it was.
        let written = tail.next().await.ok()?;
        let event =
            |written: &Arc<TailedRecord>| Some(Event::default().id(written.position.to_string()).data(written.json()?));
        let events: Vec<Event> = written.iter().filter_map(event).collect();
        Some((stream::iter(events), tail))
    });
    Ok(respond(&hall, events.flatten()))
}

/// `GET /v1/tasks/{task}/events`
pub(super) async fn of_task(
    State(hall): State<Arc<Hall>>,
    Named(name): Named,
    mut parameters: Parameters,
    headers: HeaderMap,
) -> Result<Response, Refused> {
    let (desk, task) = find(&hall, &name, &mut parameters).await?;
    let after = after(&mut parameters, &headers);
    let wants_text = parameters.parsed("text", "true or false")?.unwrap_or(false);
    parameters.finish()?;
    let after = match after.as_deref() {
        None => 0,
        Some("now") => task.seq,
        Some(text) => text.parse().map_err(|_| Refusal::invalid("an event's id is a number"))?,
    };
    if task.status.status.is_final() && after >= task.seq {
        // It tells a browser not to come back.
        return Ok(StatusCode::NO_CONTENT.into_response());
    }
    let tail = desk.tail_task(task.uid, after);
    let events = stream::unfold(Some((tail, wants_text)), |state| async move {
        let (mut tail, wants_text) = state?;
        let heard = if wants_text { tail.hear().await } else { tail.next().await.map(Heard::Records) };
        Some(match heard.ok()? {
            Heard::Text { after, offset, text } => {
                let events: Vec<Event> = piece(after, offset, &text).into_iter().collect();
                (stream::iter(events), Some((tail, wants_text)))
            }
            Heard::Records(records) => {
                let has_ended = records.iter().any(|record| matches!(record.event, TaskEvent::Ended { .. }));
                let events = records.iter().filter_map(|record| event(&record.seq.to_string(), record));
                (stream::iter(events.collect::<Vec<_>>()), (!has_ended).then_some((tail, wants_text)))
            }
        })
    });
    Ok(respond(&hall, events.flatten()))
}

/// A piece of a reply under way. It has no id: who comes back is told what was written, not what was said.
fn piece(after: u64, offset: usize, text: &str) -> Option<Event> {
    Event::default().event(TEXT).json_data(json!({"after": after, "offset": offset, "text": text})).ok()
}

/// Where a reader was: browsers say it in a header when they come back, others where they like.
fn after(parameters: &mut Parameters, headers: &HeaderMap) -> Option<String> {
    let header = single(headers, HeaderName::from_static("last-event-id")).filter(|id| !id.is_empty());
    let parameter = parameters.take("after");
    header.map(str::to_owned).or(parameter)
}

fn event(id: &str, data: &impl Serialize) -> Option<Event> {
    Event::default().id(id).json_data(data).ok()
}

fn respond(hall: &Hall, events: impl futures_util::Stream<Item = Event> + Send + 'static) -> Response {
    let reader = hall.figures.reader();
    let events = events.map(move |event| {
        // Counted as long as the stream lives.
        let _reader = &reader;
        Ok::<_, std::convert::Infallible>(event)
    });
    let until_closing = events.take_until(hall.closing.clone().cancelled_owned());
    Sse::new(until_closing).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}
