//! The hub and the server around it, with switches that behave and switches that do not.
mod hub;
mod peer;
mod sockets;
