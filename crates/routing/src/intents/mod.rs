//! Intents: what the network is asked to do, and how far it does it.
//!
//! [`IntentStore`] keeps intents carried out. Its part of the controller calls it with changes of the network, with
//! news of routes and with confirmation packets, and does what [`IntentStore::take_actions`] returns.
mod batches;
mod bounded;
mod carry_out;
mod change;
mod check;
mod claims;
mod classes;
mod config;
mod confirm;
mod counters;
mod delay;
mod delay_ways;
mod ends;
mod error;
mod find;
mod graph;
mod hops;
mod intent;
mod labels;
mod lanes;
mod laying;
mod layout;
mod plan;
mod probe;
mod search;
mod spec;
mod state;
mod store;
#[cfg(test)]
mod tests;
mod traffic;
mod wanted;
mod way;
mod what_if;

pub use config::{
    FIRST_PRIORITY, FIRST_ROUTE, IntentConfig, LAST_ROUTE, MAX_AVOIDED, MAX_ENDS, MAX_KEY_BYTES, MAX_PRECEDENCE,
    MAX_TRAFFIC_BYTES, MAX_WAYPOINTS, MOST_COMPILED,
};
pub use error::IntentError;
pub use probe::PROBE_MAC;
pub use spec::{
    DelayBound, DelayKind, IntentConstraints, IntentKind, IntentOutcome, IntentSpec, IntentState, IntentStatus, WhatIf,
    WhatIfAnswer,
};
pub use store::{IntentAction, IntentStore};
