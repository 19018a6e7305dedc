//! The sessions of the project.

use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::json;

use super::answer::{Refused, json};
use super::hall::Hall;
use super::parameters::Parameters;
use crate::commands::session_line;

/// `GET /v1/sessions`
pub(super) async fn list(State(hall): State<Arc<Hall>>, parameters: Parameters) -> Result<Response, Refused> {
    parameters.finish()?;
    let rows = hall.any().sessions().await?;
    let sessions: Vec<_> = rows.iter().map(session_line).collect();
    Ok(json(StatusCode::OK, &json!({"project": hall.any().session().project, "sessions": sessions})))
}
