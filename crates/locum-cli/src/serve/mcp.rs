//! MCP at `/mcp`. Its messages go to the MCP door; here it is said which session and which face they are for.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{FromRequestParts as _, State};
use axum::http::{HeaderValue, Request};
use axum::response::Response;
use locum::faces::Face;
use locum::protocol::Refusal;

use super::answer::Refused;
use super::hall::Hall;
use super::parameters::{Parameters, SESSION_HEADER};
use super::requests::read;
use crate::mcp::http::Seat;

/// The header by which a client of the older era goes on with its session of the protocol.
const VISIT_HEADER: &str = "mcp-session-id";

/// `POST`, `GET` and `DELETE /mcp`
pub(super) async fn answer(State(hall): State<Arc<Hall>>, request: Request<Body>) -> Result<Response, Refused> {
    let (mut parts, body) = request.into_parts();
    let mut parameters = Parameters::from_request_parts(&mut parts, &()).await?;
    let session = parameters.session()?;
    let face = match parameters.take("face") {
        None => Face::Native,
        Some(name) => Face::parse(&name).ok_or_else(|| {
            let names: Vec<&str> = Face::ALL.into_iter().map(Face::as_str).collect();
            Refusal::invalid("there is no such face").hint(format!("the faces are {}", names.join(", ")))
        })?,
    };
    parameters.finish()?;
    let body = read(&parts.headers, body).await?;
    let own = hall.desk(session.clone()).await?;
    let standing = if session.is_some() { own.clone() } else { hall.any().clone() };
    let name = own.session().id.clone();
    let has_visit = parts.headers.contains_key(VISIT_HEADER);
    let request = Request::from_parts(parts, body);
    let mut response = hall.mcp.answer(request, Seat { face, own, standing }).await.map(Body::new);
    // A client that has just opened a session is told which of locum's it is, so that it can come back to it.
    if !has_visit
        && response.headers().contains_key(VISIT_HEADER)
        && let Ok(name) = HeaderValue::from_str(name.as_str())
    {
        response.headers_mut().insert(SESSION_HEADER, name);
    }
    Ok(response)
}
