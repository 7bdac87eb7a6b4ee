//! Serves the counters of a switch or a controller over HTTP, in the text format that Prometheus reads.
//!
//! For operators, who watch many switches at one place. Counters are read at each request, so a server without requests
//! costs nothing.
//!
//! Start with [`MetricsServer::start`], which takes an address and a function that reads the counters. [`switch`],
//! [`controller`] and [`network`] turn their snapshots into [`MetricFamily`]s.
//!
//! Not in this crate: the counters themselves (`weir-switch`, `weir-controller`, `weir-routing`), and other interfaces
//! over HTTP.
mod address;
pub mod controller;
mod encode;
mod family;
pub mod network;
mod server;
pub mod switch;

pub use address::MetricsAddress;
pub use encode::{CONTENT_TYPE, encode};
pub use family::{MetricFamily, MetricKind, MetricSample, SampleValue};
pub use server::{MetricsReader, MetricsServer};
