//! The shared context of a session: its keys, a value, and what it was before.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use locum::protocol::request::{ContextAction, ContextHistory, ContextKey, ListKeys};

use super::answer::{Refused, json};
use super::hall::Hall;
use super::parameters::{Named, Parameters};

/// `GET /v1/context`
pub(super) async fn keys(State(hall): State<Arc<Hall>>, parameters: Parameters) -> Result<Response, Refused> {
    look(&hall, parameters, ContextAction::ListKeys(ListKeys {})).await
}

/// `GET /v1/context/{key}`
pub(super) async fn one(
    State(hall): State<Arc<Hall>>,
    Named(key): Named,
    parameters: Parameters,
) -> Result<Response, Refused> {
    look(&hall, parameters, ContextAction::Read(ContextKey { key })).await
}

/// `GET /v1/context/{key}/history`
pub(super) async fn history(
    State(hall): State<Arc<Hall>>,
    Named(key): Named,
    mut parameters: Parameters,
) -> Result<Response, Refused> {
    let versions = parameters.parsed("versions", "a number")?;
    look(&hall, parameters, ContextAction::ReadHistory(ContextHistory { key, versions })).await
}

async fn look(hall: &Hall, mut parameters: Parameters, action: ContextAction) -> Result<Response, Refused> {
    let session = parameters.session()?;
    parameters.finish()?;
    let answer = hall.named(session).await?.handle(action).await?;
    Ok(json(StatusCode::OK, &answer))
}
