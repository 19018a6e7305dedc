//! Answers and refusals as HTTP answers. The body is what every other door answers; the status says it again.

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use locum::protocol::{Code, Refusal};
use serde::Serialize;

/// A refusal, on its way to a client.
#[derive(Debug)]
pub(super) struct Refused {
    status: StatusCode,
    refusal: Refusal,
}

impl Refused {
    /// What the server itself refuses, with a status that no code has.
    pub(super) fn with(status: StatusCode, refusal: Refusal) -> Self {
        Self { status, refusal }
    }
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { status: status_of(refusal.code), refusal }
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        json(self.status, &self.refusal)
    }
}

const HEADERS: [(HeaderName, HeaderValue); 2] = [
    (CONTENT_TYPE, HeaderValue::from_static("application/json")),
    (CACHE_CONTROL, HeaderValue::from_static("no-store")),
];

/// An answer as JSON. What it says may be private, and is true only now.
pub(super) fn json(status: StatusCode, answer: &impl Serialize) -> Response {
    let (status, body) = match serde_json::to_vec(answer) {
        Ok(body) => (status, body),
        Err(error) => {
            let refusal = Refusal::internal(format!("the answer cannot be written: {error}"));
            (StatusCode::INTERNAL_SERVER_ERROR, serde_json::to_vec(&refusal).unwrap_or_default())
        }
    };
    (status, HEADERS, body).into_response()
}

/// An answer that is JSON already.
pub(super) fn json_text(answer: String) -> Response {
    (StatusCode::OK, HEADERS, answer).into_response()
}

/// The status that says what a code says.
pub(super) fn status_of(code: Code) -> StatusCode {
    match code {
        Code::TaskNotReady => return StatusCode::CONFLICT,
        Code::NotTrusted | Code::SubagentsDisabled => return StatusCode::FORBIDDEN,
        Code::Internal => return StatusCode::INTERNAL_SERVER_ERROR,
        _ => {}
    }
    const ENDINGS: &[(&str, StatusCode)] = &[
        ("_NOT_FOUND", StatusCode::NOT_FOUND),
        ("_ALREADY_EXISTS", StatusCode::CONFLICT),
        ("_CONFLICT", StatusCode::CONFLICT),
        ("_EXCEEDED", StatusCode::TOO_MANY_REQUESTS),
        ("_TOO_LARGE", StatusCode::PAYLOAD_TOO_LARGE),
    ];
    let ending = ENDINGS.iter().find(|(ending, _)| code.as_str().ends_with(ending));
    ending.map_or(StatusCode::BAD_REQUEST, |(_, status)| *status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_has_the_status_of_its_kind() {
        for (code, status) in [
            (Code::AgentNotFound, 404),
            (Code::KeyNotFound, 404),
            (Code::AgentAlreadyExists, 409),
            (Code::IdempotencyConflict, 409),
            (Code::VersionConflict, 409),
            (Code::TaskNotReady, 409),
            (Code::MaxTasksExceeded, 429),
            (Code::BudgetExceeded, 429),
            (Code::TaskTooLarge, 413),
            (Code::NotTrusted, 403),
            (Code::SubagentsDisabled, 403),
            (Code::InvalidRequest, 400),
            (Code::IsolationFailed, 400),
            (Code::StoreFull, 400),
            (Code::Internal, 500),
        ] {
            assert_eq!(status_of(code).as_u16(), status, "{code}");
        }
    }
}
