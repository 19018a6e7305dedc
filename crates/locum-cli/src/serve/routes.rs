//! All routes, joined. What further doors are mounted on the server is said here.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use locum::protocol::Refusal;

use super::answer::Refused;
use super::guard::{self, Guard};
use super::hall::Hall;
use super::requests;

/// Everything that the server answers, behind its guard.
pub(super) fn router(hall: &Arc<Hall>, guard: Guard) -> Router {
    let routes = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/v1/requests", post(requests::call))
        .fallback(missing)
        .method_not_allowed_fallback(wrong_method)
        .with_state(Arc::clone(hall));
    routes.layer(from_fn_with_state(Arc::new(guard), guard::check))
}

async fn missing() -> Refused {
    Refused::with(StatusCode::NOT_FOUND, Refusal::invalid("there is nothing here").hint("/openapi.json says what is"))
}

async fn wrong_method() -> Refused {
    let refusal = Refusal::invalid("this is not done here with this method");
    Refused::with(StatusCode::METHOD_NOT_ALLOWED, refusal.hint("/openapi.json says what is"))
}
