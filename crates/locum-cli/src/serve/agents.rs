//! Who can be asked, as `locum agents` shows it.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use locum::protocol::FaceDefaults;

use super::answer::{Refused, json};
use super::hall::Hall;
use super::parameters::{Named, Parameters};
use crate::roll::Roll;

/// `GET /v1/agents`
pub(super) async fn list(State(hall): State<Arc<Hall>>, mut parameters: Parameters) -> Result<Response, Refused> {
    let session = parameters.session()?;
    parameters.finish()?;
    let desk = hall.desk(session).await?;
    Ok(json(StatusCode::OK, &Roll::call(&desk, &FaceDefaults::native()).await?))
}

/// `GET /v1/agents/{name}`
pub(super) async fn one(
    State(hall): State<Arc<Hall>>,
    Named(name): Named,
    mut parameters: Parameters,
) -> Result<Response, Refused> {
    let session = parameters.session()?;
    parameters.finish()?;
    let shown = hall.desk(session).await?.show_agent(&name, &FaceDefaults::native()).await?;
    Ok(json(StatusCode::OK, &shown))
}
