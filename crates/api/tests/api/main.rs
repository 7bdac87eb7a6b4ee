//! The interface in front of a network in memory: each route, access, limits, events and the page.
mod access;
mod batches;
mod events;
mod limits;
mod network;
mod page;
mod routes;
mod schemas;
