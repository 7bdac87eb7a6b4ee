//! The interface of a network's controller: REST with OpenAPI, events, and a page with the live map.
//!
//! For operators and their programs. The server passes requests on to a [`NetworkBackend`], which the controller
//! implements; it keeps no state of the network. Everything is under `/api/v1`, described by `/api/v1/openapi.json`.
//!
//! Start with [`ApiServer::start`], which takes an [`ApiConfig`]. [`client::ApiClient`] is the other end, for
//! `weir net`.
//!
//! Access: a Unix socket is open to its owner and to root. Over TCP a request needs a token ([`access`]), and TLS
//! unless the address is of this machine alone.
//!
//! Not in this crate: what the requests do (`weir-routing`), and counters for Prometheus (`weir-metrics`).
pub mod access;
mod address;
mod backend;
pub mod client;
mod openapi;
mod problem;
mod requests;
mod routes;
mod server;

pub use address::ApiAddress;
pub use backend::{EventWaker, NetworkBackend};
pub use problem::Problem;
pub use requests::RequestCounts;
pub use routes::MAX_INTENTS_BODY;
pub use server::{ApiConfig, ApiError, ApiServer};
