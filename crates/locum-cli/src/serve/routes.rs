//! All routes, joined. What further doors are mounted on the server is said here.

use std::sync::Arc;

use axum::Router;
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get, post};
use locum::protocol::Refusal;

use super::answer::Refused;
use super::guard::{self, Guard};
use super::hall::Hall;
use super::{agents, board, context, dashboard, events, mcp, metrics, openapi, requests, sessions, tasks};

/// Everything that the server answers, behind its guard.
pub(super) fn router(hall: &Arc<Hall>, guard: Guard) -> Router {
    let routes = Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/metrics", get(metrics::show))
        .route("/openapi.json", get(openapi::show))
        .route("/v1/requests", post(requests::call))
        .route("/v1/tasks", get(tasks::list))
        .route("/v1/tasks/{task}", get(tasks::one))
        .route("/v1/tasks/{task}/log", get(tasks::log))
        .route("/v1/tasks/{task}/result", get(tasks::result))
        .route("/v1/tasks/{task}/diff", get(tasks::diff))
        .route("/v1/tasks/{task}/events", get(events::of_task))
        .route("/v1/events", get(events::of_session))
        .route("/v1/agents", get(agents::list))
        .route("/v1/agents/{name}", get(agents::one))
        .route("/v1/context", get(context::keys))
        .route("/v1/context/{key}", get(context::one))
        .route("/v1/context/{key}/history", get(context::history))
        .route("/v1/board", get(board::list))
        .route("/v1/board/{id}", get(board::one))
        .route("/v1/sessions", get(sessions::list))
        .route("/mcp", any(mcp::answer))
        .merge(dashboard::routes())
        .fallback(missing)
        .method_not_allowed_fallback(wrong_method)
        .with_state(Arc::clone(hall));
    let guarded = routes.layer(from_fn_with_state(Arc::new(guard), guard::check));
    // Also what the guard refuses is counted.
    guarded.layer(from_fn_with_state(Arc::clone(hall), metrics::count))
}

async fn missing() -> Refused {
    Refused::with(StatusCode::NOT_FOUND, Refusal::invalid("there is nothing here").hint("/openapi.json says what is"))
}

async fn wrong_method() -> Refused {
    let refusal = Refusal::invalid("this is not done here with this method");
    Refused::with(StatusCode::METHOD_NOT_ALLOWED, refusal.hint("/openapi.json says what is"))
}
