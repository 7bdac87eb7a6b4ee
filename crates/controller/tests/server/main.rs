//! Tests the hub and its server with well-behaved and misbehaving switches.
mod auxiliary;
mod hub;
mod peer;
mod roles;
mod sockets;
mod tls;
