//! Requests to a network's controller and its replies, as JSON: what the interface and `weir net` pass on.
use crate::intents::{IntentOutcome, IntentSpec, IntentStatus, WhatIf, WhatIfAnswer};
use crate::map::SwitchPort;
use crate::state::{EventRecord, NetworkState, NetworkSummary};
use serde::{Deserialize, Serialize};

/// Request to the controller of a network. Name and content have keys of their own, in this order, so that a long
/// request is read in one pass.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "request", content = "with", rename_all = "kebab-case", deny_unknown_fields)]
pub enum NetworkRequest {
    /// The whole state.
    Show,
    /// Numbers of what is there.
    Summary,
    /// Switches and links as a topology in node-link JSON, which `weir topology` and scenario files read.
    Topology,
    /// Ways between two hosts or ports.
    Paths {
        /// Host (Ethernet address, IP address or name) or port (`DPID:PORT`).
        from: String,
        /// Host or port, named like `from`.
        to: String,
        /// Most ways to return, the best first.
        most: usize,
    },
    /// State of an intent.
    Intent {
        /// Key of the intent.
        key: String,
    },
    /// Adds an intent, or changes the one with the same key.
    SetIntent {
        /// The intent.
        intent: IntentSpec,
    },
    /// Removes an intent.
    RemoveIntent {
        /// Key of the intent.
        key: String,
    },
    /// Adds intents, or changes those with the same keys. They are compiled in the order of their precedence, then in
    /// this order.
    SetIntents {
        /// The intents.
        intents: Vec<IntentSpec>,
    },
    /// Removes intents.
    RemoveIntents {
        /// Keys of the intents; `None` for all.
        keys: Option<Vec<String>>,
    },
    /// How many intents of an earlier [`NetworkRequest::SetIntents`] or [`NetworkRequest::RemoveIntents`] are not
    /// decided.
    IntentBatch {
        /// Number of the batch, from the reply to that request.
        batch: u64,
        /// True for the states of those that are not installed, also while some are not decided.
        states: bool,
    },
    /// Effect that an intent or a failure would have.
    WhatIf {
        /// The case.
        case: WhatIf,
    },
    /// Events after a number.
    Events {
        /// Number of the last event already known; 0 for all that are kept.
        after: u64,
        /// Most events to return, the oldest first.
        most: usize,
    },
}

/// Reply to a [`NetworkRequest`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "reply", content = "with", rename_all = "kebab-case")]
pub enum NetworkReply {
    /// The whole state.
    State(NetworkState),
    /// Numbers of what is there.
    Summary(NetworkSummary),
    /// Switches and links in node-link JSON.
    Topology {
        /// The JSON object.
        network: serde_json::Value,
    },
    /// Ways, the best first.
    Paths {
        /// The ways.
        paths: Vec<PathState>,
    },
    /// State of the intent that was asked for, added or changed.
    Intent(IntentStatus),
    /// The intent was removed.
    Removed,
    /// Answers to several intents that were set or removed.
    Intents {
        /// Number of the batch that they are.
        batch: u64,
        /// An answer for each, in the order of the request; of all intents in the order of their keys.
        answers: Vec<IntentAnswer>,
    },
    /// How far a batch of intents is.
    IntentBatch {
        /// Number of intents that are submitted or compiling, or withdrawn but not gone.
        left: usize,
        /// Intents that are not installed, if there is none left or they were asked for.
        others: Vec<IntentOutcome>,
    },
    /// Effect of a case.
    WhatIf(WhatIfAnswer),
    /// Events, the oldest first.
    Events {
        /// The events.
        events: Vec<EventRecord>,
    },
    /// The request could not be carried out.
    Error {
        /// Kind of the error.
        kind: ErrorKind,
        /// Cause: what was found and what was expected.
        message: String,
    },
}

/// Answer to one of several intents.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntentAnswer {
    /// Outcome of an intent that was set or removed.
    Done(IntentOutcome),
    /// Error of an intent that was not.
    Error {
        /// Kind of the error.
        kind: ErrorKind,
        /// Cause: what was found and what was expected.
        message: String,
    },
}

/// Kind of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorKind {
    /// The request is malformed.
    Invalid,
    /// No such thing as the request names is there.
    NotFound,
    /// The request cannot be fulfilled: no way, or not enough of something.
    Refused,
}

/// A way through the network.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathState {
    /// Ports in the order in which packets pass them: into and out of each switch.
    pub ports: Vec<SwitchPort>,
    /// Delay of its links in microseconds, as far as they are known.
    pub delay_us: Option<f64>,
    /// Bandwidth that intents have left on it, in bit/s; absent if a link states no rate.
    pub free_bps: Option<u64>,
}
