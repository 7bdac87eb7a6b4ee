//! Routes of the interface, and what is checked in front of all of them.
mod batches;
mod body;
mod event_feed;
mod events;
mod intents;
mod network;
mod page;
mod topology;

pub use batches::MAX_INTENTS_BODY;
pub(crate) use event_feed::{EventFeed, feed_events};

use crate::access::{AccessControl, ApiPeer, needed_role};
use crate::backend::BackendCaller;
use crate::{Problem, RequestCounts, openapi};
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use weir_routing::request::NetworkRequest;
use weir_units::{Clock as _, SystemClock};

/// Longest time from the head of a request to the head of its answer.
const REQUEST_TIME: Duration = Duration::from_secs(20);

/// State that the routes share.
pub(crate) struct ApiState {
    pub(crate) backend: BackendCaller,
    pub(crate) access: AccessControl,
    pub(crate) events: EventFeed,
    pub(crate) requests: Arc<RequestCounts>,
    pub(crate) clock: SystemClock,
}

/// Returns all routes.
pub(crate) fn routes(state: &Arc<ApiState>) -> Router {
    let api = Router::new()
        .route("/health", get(health))
        .route("/openapi.json", get(async || Json(openapi::document())))
        .route("/network", get(network::network))
        .route("/switches", get(network::switches))
        .route("/links", get(network::links))
        .route("/hosts", get(network::hosts))
        .route("/counters", get(network::counters))
        .route("/topology", get(topology::topology))
        .route("/paths", get(network::paths))
        .route("/what-if", post(network::what_if))
        .route("/intents", get(intents::list).post(batches::set).delete(batches::delete))
        .route("/intents/{key}", get(intents::one).put(intents::put).delete(intents::delete))
        .route("/events", get(events::list))
        .route("/events/stream", get(events::stream))
        .route("/tokens/reload", post(reload));
    Router::new()
        .nest("/api/v1", api)
        .merge(page::files())
        .fallback(unknown)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(Arc::clone(state), check))
        .with_state(Arc::clone(state))
}

/// Admits a request or refuses it, and ends one that takes too long.
async fn check(
    State(state): State<Arc<ApiState>>,
    Extension(peer): Extension<ApiPeer>,
    request: Request,
    next: Next,
) -> Response {
    let needed = needed_role(request.method(), request.uri().path());
    if let Err(problem) = state.access.admit(state.clock.now(), peer, request.headers(), needed) {
        let response = problem.into_response();
        state.requests.count(response.status().as_u16());
        return response;
    }
    let late = || Problem::unavailable(format!("no answer within {} s", REQUEST_TIME.as_secs()));
    let answered = tokio::time::timeout(REQUEST_TIME, next.run(request)).await;
    let mut response = answered.unwrap_or_else(|_| late().into_response());
    state.requests.count(response.status().as_u16());
    let headers = response.headers_mut();
    headers.entry(header::CACHE_CONTROL).or_insert(header::HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, header::HeaderValue::from_static("nosniff"));
    response
}

async fn unknown(request: Request) -> Problem {
    let path = request.uri().path();
    let shown: String = path.chars().take(100).collect();
    Problem::not_found(format!("found the path `{shown}`, expected one of /api/v1/openapi.json"))
}

async fn wrong_method(request: Request) -> Problem {
    let detail = format!("found the method {}, expected one of /api/v1/openapi.json", request.method());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, detail)
}

/// Says whether the network answers.
async fn health(State(state): State<Arc<ApiState>>) -> Result<Response, Problem> {
    state.backend.ask(NetworkRequest::Events { after: u64::MAX, most: 1 }).await?;
    Ok(Json(json!({"status": "ok"})).into_response())
}

/// Reads the file with tokens again.
async fn reload(State(state): State<Arc<ApiState>>) -> Result<Response, Problem> {
    let tokens = state
        .access
        .reload()
        .map_err(|error| Problem::new(StatusCode::CONFLICT, format!("{error}; the tokens read before stay valid")))?;
    Ok(Json(json!({"tokens": tokens})).into_response())
}
