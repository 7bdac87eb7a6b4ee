//! Routes of intents.
use super::{ApiState, body};
use crate::Problem;
use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::Value;
use std::sync::Arc;
use weir_routing::intents::{IntentSpec, IntentStatus};
use weir_routing::request::{NetworkReply, NetworkRequest};

type Shared = State<Arc<ApiState>>;

pub(super) async fn list(State(state): Shared) -> Result<Json<Vec<IntentStatus>>, Problem> {
    Ok(Json(state.network().await?.intents))
}

/// Returns the intent with a key.
async fn find(state: &ApiState, key: String) -> Result<IntentStatus, Problem> {
    match state.backend.ask(NetworkRequest::Intent { key }).await? {
        NetworkReply::Intent(status) => Ok(status),
        _ => Err(Problem::unexpected_reply()),
    }
}

pub(super) async fn one(
    State(state): Shared,
    key: Result<Path<String>, PathRejection>,
) -> Result<Json<IntentStatus>, Problem> {
    find(&state, body::path(key)?).await.map(Json)
}

/// Adds the intent with a key, or changes it. The body may leave out the key; another one is refused.
pub(super) async fn put(
    State(state): Shared,
    key: Result<Path<String>, PathRejection>,
    request: Request,
) -> Result<Response, Problem> {
    let key = body::path(key)?;
    let intent = read_intent(&key, body::json(request).await?)?;
    let is_new = match find(&state, key.clone()).await {
        Ok(_) => false,
        Err(problem) if problem.status == StatusCode::NOT_FOUND.as_u16() => true,
        Err(problem) => return Err(problem),
    };
    let NetworkReply::Intent(status) = state.backend.ask(NetworkRequest::SetIntent { intent }).await? else {
        return Err(Problem::unexpected_reply());
    };
    let mut response = Json(status).into_response();
    if is_new {
        *response.status_mut() = StatusCode::CREATED;
        if let Ok(place) = HeaderValue::from_str(&format!("/api/v1/intents/{}", crate::client::encoded(&key))) {
            response.headers_mut().insert(header::LOCATION, place);
        }
    }
    Ok(response)
}

fn read_intent(key: &str, mut body: Value) -> Result<IntentSpec, Problem> {
    let Some(fields) = body.as_object_mut() else {
        return Err(Problem::bad_request("the intent is not as expected: found no JSON object"));
    };
    let own = fields.entry("key").or_insert_with(|| key.into());
    if own.as_str() != Some(key) {
        return Err(Problem::bad_request(format!("key: found {own} in the body, expected `{key}` as in the path")));
    }
    serde_json::from_value(body)
        .map_err(|error| Problem::bad_request(format!("the intent is not as expected: {error}")))
}

pub(super) async fn delete(
    State(state): Shared,
    key: Result<Path<String>, PathRejection>,
) -> Result<StatusCode, Problem> {
    let key = body::path(key)?;
    match state.backend.ask(NetworkRequest::RemoveIntent { key }).await? {
        NetworkReply::Removed => Ok(StatusCode::NO_CONTENT),
        _ => Err(Problem::unexpected_reply()),
    }
}
