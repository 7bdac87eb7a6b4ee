//! The hub and the server around it, with switches that behave and switches that do not.
mod auxiliary;
mod hub;
mod peer;
mod roles;
mod sockets;
mod tls;
