//! One OpenFlow channel to a switch, for who measures it or asks it something: no threads and no runtime, so that the switch is what takes time.
//!
//! A [`Client`] connects to a [`Target`], or is connected to, and shakes hands. From then on it is used in one of two ways: [`Client::send`] and
//! [`Client::poll`] never wait, for who watches other things at the same time; [`Client::ask`] and its like wait for an answer, as long as its patience lasts.
mod blocking;
mod client;
mod error;
mod target;

pub use client::Client;
pub use error::ClientError;
pub use target::Target;
