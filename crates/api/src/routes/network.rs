//! Routes that read the network: its state, ways between hosts, and what-if questions.
use super::{ApiState, body};
use crate::Problem;
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use weir_routing::intents::{WhatIf, WhatIfAnswer};
use weir_routing::request::{NetworkReply, NetworkRequest, PathState};
use weir_routing::state::{HostState, NetworkLink, NetworkState, SwitchState};

/// Ways that are returned if the client does not say how many.
const DEFAULT_PATHS: usize = 3;
/// Most ways that are returned.
const MAX_PATHS: usize = 64;

type Shared = State<Arc<ApiState>>;

impl ApiState {
    /// Returns the state of the whole network.
    pub(super) async fn network(&self) -> Result<NetworkState, Problem> {
        match self.backend.ask(NetworkRequest::Show).await? {
            NetworkReply::State(state) => Ok(state),
            _ => Err(Problem::unexpected_reply()),
        }
    }
}

pub(super) async fn network(State(state): Shared) -> Result<Json<NetworkState>, Problem> {
    state.network().await.map(Json)
}

pub(super) async fn switches(State(state): Shared) -> Result<Json<Vec<SwitchState>>, Problem> {
    Ok(Json(state.network().await?.switches))
}

pub(super) async fn links(State(state): Shared) -> Result<Json<Vec<NetworkLink>>, Problem> {
    Ok(Json(state.network().await?.links))
}

pub(super) async fn hosts(State(state): Shared) -> Result<Json<Vec<HostState>>, Problem> {
    Ok(Json(state.network().await?.hosts))
}

pub(super) async fn counters(State(state): Shared) -> Result<Json<BTreeMap<String, u64>>, Problem> {
    Ok(Json(state.network().await?.counters))
}

/// Parameters of `/paths`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PathsQuery {
    from: String,
    to: String,
    most: Option<usize>,
}

pub(super) async fn paths(
    State(state): Shared,
    query: Result<Query<PathsQuery>, QueryRejection>,
) -> Result<Json<Vec<PathState>>, Problem> {
    let PathsQuery { from, to, most } = body::query(query)?;
    let most = most.unwrap_or(DEFAULT_PATHS);
    if !(1..=MAX_PATHS).contains(&most) {
        return Err(Problem::bad_request(format!("most: found {most}, expected 1 to {MAX_PATHS}")));
    }
    match state.backend.ask(NetworkRequest::Paths { from, to, most }).await? {
        NetworkReply::Paths { paths } => Ok(Json(paths)),
        _ => Err(Problem::unexpected_reply()),
    }
}

pub(super) async fn what_if(State(state): Shared, request: Request) -> Result<Json<WhatIfAnswer>, Problem> {
    let case: WhatIf = body::json::<Value>(request).await.and_then(|case| {
        serde_json::from_value(case)
            .map_err(|error| Problem::bad_request(format!("the case is not as expected: {error}")))
    })?;
    match state.backend.ask(NetworkRequest::WhatIf { case }).await? {
        NetworkReply::WhatIf(answer) => Ok(Json(answer)),
        _ => Err(Problem::unexpected_reply()),
    }
}
