//! The network as a graph: node-link JSON, which `weir topology`, scenario files and networkx read.
use super::ApiState;
use crate::Problem;
use axum::Json;
use axum::extract::State;
use serde_json::Value;
use std::sync::Arc;
use weir_routing::request::{NetworkReply, NetworkRequest};

pub(super) async fn topology(State(state): State<Arc<ApiState>>) -> Result<Json<Value>, Problem> {
    match state.backend.ask(NetworkRequest::Topology).await? {
        NetworkReply::Topology { network } => Ok(Json(network)),
        _ => Err(Problem::unexpected_reply()),
    }
}
