//! An OpenFlow channel to a switch, for measuring and for requests. Without threads and runtime, so that measured
//! times are the switch's.
//!
//! A [`OpenFlowClient`] connects to a [`SwitchAddress`], or waits for the switch to connect, and performs the
//! handshake. It is then used in one of two ways. [`OpenFlowClient::send`] and [`OpenFlowClient::poll`] never wait for
//! replies, for callers that watch other things at the same time. [`OpenFlowClient::ask`] and similar methods wait for
//! a reply, as long as the client's patience lasts.
mod blocking;
mod client;
mod error;
mod target;

pub use client::OpenFlowClient;
pub use error::ClientError;
pub use target::SwitchAddress;
