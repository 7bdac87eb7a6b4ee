//! Tests the hub and its server with well-behaved and misbehaving switches.
mod auxiliary;
mod hub;
mod overload;
mod peer;
mod roles;
mod sockets;
mod status;
mod threads;
mod tls;
