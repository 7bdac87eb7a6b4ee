//! Tests the controller of a network with real datapaths, in virtual time.
mod applications;
mod batches;
mod bed;
mod disturbances;
mod failures;
mod faults;
mod forwarding;
mod intents;
mod islands;
mod moves;
mod resolution;
mod restarts;
mod speed;
