//! `POST /v1/requests`: the native protocol. One call of a tool in, its answer or refusal out, as through every door.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse as _, Response};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use locum::faces::Face;
use locum::protocol::{FaceDefaults, Refusal};
use locum::{Desk, limits};
use serde_json::Value;

use super::abandoned::Attended;
use super::answer::{Refused, json, json_text};
use super::guard::single;
use super::hall::Hall;
use super::parameters::{Parameters, SESSION_HEADER};
use crate::tool_call::ToolCall;

/// How long the body of a request may take to arrive.
const BODY_WAIT: Duration = Duration::from_secs(30);

/// Carries out one call of a tool.
pub(super) async fn call(
    State(hall): State<Arc<Hall>>,
    mut parameters: Parameters,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Refused> {
    let session = parameters.session()?;
    let terms = terms(&mut parameters)?;
    let ends_when_abandoned = match parameters.take("abandoned").as_deref() {
        None => false,
        Some("cancel") => true,
        Some(_) => return Err(Refusal::invalid("the parameter `abandoned` must be cancel").into()),
    };
    parameters.finish()?;
    check_type(&headers)?;
    let body = read(&headers, body).await?;
    let ToolCall { tool, input } = ToolCall::read(&body, "body")?;
    let desk = hall.desk(session).await?;
    let (desk, attended) = match ends_when_abandoned {
        false => (desk, None),
        true => {
            let (desk, following) = desk.followed();
            (desk.clone(), Some(Attended::new(&hall, desk, following)))
        }
    };
    let answer = hall.closed.run_until_cancelled(carry_out(&desk, &tool, input, terms)).await;
    if let Some(attended) = attended {
        attended.done();
    }
    let mut response = match answer {
        Some(Ok(answered)) => answered,
        Some(Err(refusal)) => Refused::from(refusal).into_response(),
        None => return Err(ending()),
    };
    if let Ok(name) = HeaderValue::from_str(desk.session().id.as_str()) {
        response.headers_mut().insert(HeaderName::from_static(SESSION_HEADER), name);
    }
    Ok(response)
}

/// How a request is made and answered.
enum Terms {
    /// As locum's own tools.
    Own(Box<FaceDefaults>),
    /// As those of another program.
    Foreign(Face),
}

async fn carry_out(desk: &Desk, tool: &str, input: Value, terms: Terms) -> Result<Response, Refusal> {
    match terms {
        Terms::Own(face) => Ok(json(StatusCode::OK, &desk.call_under(tool, input, *face).await?)),
        // What went wrong is part of the answer there.
        Terms::Foreign(face) => Ok(json_text(face.handle(desk, tool, input).await.json)),
    }
}

/// The terms that the request is made under: those of the native tools, of a person at a shell, or of another face.
fn terms(parameters: &mut Parameters) -> Result<Terms, Refusal> {
    let face = match parameters.take("face").as_deref() {
        None | Some("native") => FaceDefaults::native(),
        Some("person") => FaceDefaults::person(),
        Some("tallow") => return Ok(Terms::Foreign(Face::Tallow)),
        Some("pi") => return Ok(Terms::Foreign(Face::Pi)),
        Some("acai") => return Ok(Terms::Foreign(Face::Acai)),
        Some("picoclaw") => return Ok(Terms::Foreign(Face::Picoclaw)),
        Some(_) => {
            let refusal = Refusal::invalid("there is no such face");
            return Err(refusal.hint("the faces are native, person, tallow, pi, acai and picoclaw"));
        }
    };
    let concurrency = parameters.parsed("concurrency", "a number from 1")?;
    if concurrency == Some(0) {
        return Err(Refusal::invalid("the parameter `concurrency` must be a number from 1"));
    }
    let strict = parameters.parsed("strict", "true or false")?.unwrap_or(false);
    Ok(Terms::Own(Box::new(FaceDefaults { concurrency, strict, ..face })))
}

/// Only what a page of another site cannot send unasked.
fn check_type(headers: &HeaderMap) -> Result<(), Refused> {
    let named = single(headers, CONTENT_TYPE).unwrap_or_default();
    let kind = named.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let refusal = Refusal::invalid("the body must be JSON").hint("say Content-Type: application/json");
    Err(Refused::with(StatusCode::UNSUPPORTED_MEDIA_TYPE, refusal))
}

/// The body, if it is neither too long nor too slow. One that says itself that it is too long is not read at all.
pub(super) async fn read(headers: &HeaderMap, body: Body) -> Result<axum::body::Bytes, Refused> {
    let most = limits::REQUEST_BYTES_MAX;
    let too_long = || {
        let refusal = Refusal::invalid(format!("the body is longer than {most} bytes"));
        Refused::with(StatusCode::PAYLOAD_TOO_LARGE, refusal)
    };
    let said = single(headers, CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
    if said.is_some_and(|length| length > most) {
        return Err(too_long());
    }
    match tokio::time::timeout(BODY_WAIT, Limited::new(body, most).collect()).await {
        Ok(Ok(whole)) => Ok(whole.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(too_long()),
        Ok(Err(error)) => Err(Refusal::invalid(format!("the body cannot be read: {error}")).into()),
        Err(_) => {
            let refusal = Refusal::invalid(format!("the body did not arrive within {} s", BODY_WAIT.as_secs()));
            Err(Refused::with(StatusCode::REQUEST_TIMEOUT, refusal))
        }
    }
}

fn ending() -> Refused {
    let refusal = Refusal::internal("the server ends; a task that was started goes on");
    Refused::with(
        StatusCode::SERVICE_UNAVAILABLE,
        refusal.hint("ask again with the same session, by `status` or `wait`"),
    )
}
