//! An OpenFlow channel to a switch, for measuring and for requests. Without threads and runtime, so that measured
//! times are the switch's.
//!
//! A [`Client`] connects to a [`Target`], or waits for the switch to connect, and performs the handshake. It is then
//! used in one of two ways. [`Client::send`] and [`Client::poll`] never wait for replies, for callers that watch
//! other things at the same time. [`Client::ask`] and similar methods wait for a reply, as long as the client's
//! patience lasts.
mod blocking;
mod client;
mod error;
mod target;

pub use client::Client;
pub use error::ClientError;
pub use target::Target;
