//! The task board of a session, as it stands.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use locum::protocol::BoardAction;
use locum::protocol::request::{BoardId, BoardList};

use super::answer::{Refused, json};
use super::hall::Hall;
use super::parameters::{Named, Parameters};

/// `GET /v1/board`
pub(super) async fn list(State(hall): State<Arc<Hall>>, mut parameters: Parameters) -> Result<Response, Refused> {
    let archived = parameters.parsed("archived", "true or false")?;
    look(&hall, parameters, BoardAction::List(BoardList { archived })).await
}

/// `GET /v1/board/{id}`
pub(super) async fn one(
    State(hall): State<Arc<Hall>>,
    Named(id): Named,
    parameters: Parameters,
) -> Result<Response, Refused> {
    look(&hall, parameters, BoardAction::Get(BoardId { id })).await
}

async fn look(hall: &Hall, mut parameters: Parameters, action: BoardAction) -> Result<Response, Refused> {
    let session = parameters.session()?;
    parameters.finish()?;
    let answer = hall.named(session).await?.handle(action).await?;
    Ok(json(StatusCode::OK, &answer))
}
