//! Intents as they are asked for and shown: JSON objects with these fields.
use crate::map::SwitchPort;
use crate::request::PathState;
use serde::{Deserialize, Serialize};
use weir_units::{Bps, TimeSpan};

/// An intent: packets that the network has to carry, between whom, and under which conditions.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with the fields of an intent")]
pub struct IntentSpec {
    /// Name of the intent, chosen by the client. An intent with the key of an earlier one replaces it; with equal
    /// content nothing changes.
    pub key: String,
    /// Form of the intent.
    pub kind: IntentKind,
    /// Sources: hosts (Ethernet address, IP address or name) or ports (`DPID:PORT`).
    pub from: Vec<String>,
    /// Destinations, as `from`.
    pub to: Vec<String>,
    /// Packets that it is about, as a match in the text of `ovs-ofctl`, such as `tcp,tp_dst=80`; empty for all between
    /// the ends.
    #[serde(default)]
    pub traffic: String,
    /// Conditions.
    #[serde(default)]
    pub constraints: IntentConstraints,
}

/// Form of an intent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntentKind {
    /// Two hosts, in both directions.
    HostToHost,
    /// From one port or host to another, in one direction.
    PointToPoint,
    /// From several to one.
    ManyToOne,
    /// From one to several: each packet reaches all.
    OneToMany,
}

/// Conditions of an intent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct IntentConstraints {
    /// Bandwidth to reserve on each link of the way and direction.
    pub bandwidth: Option<Bps>,
    /// Most delay.
    pub delay: Option<DelayBound>,
    /// Switches that the way has to pass, in this order, by datapath id in hexadecimal.
    pub waypoints: Vec<String>,
    /// Switches (datapath id in hexadecimal) and ports of links (`DPID:PORT`) that the way must not use.
    pub avoid: Vec<String>,
    /// Precedence over other intents about equal packets; higher is preferred, from 0 to 1000.
    pub priority: u16,
    /// True if a second way that shares no link is kept ready, which switches use at once when a link fails.
    pub protected: bool,
}

/// Bound of a delay.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DelayBound {
    /// Most time from end to end.
    pub most: TimeSpan,
    /// Which delay is meant.
    #[serde(flatten)]
    pub kind: DelayKind,
}

/// Which delay of a way a bound is about.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DelayKind {
    /// A percentile of the model's delays, in percent, such as 99.
    Percentile(f64),
    /// The longest possible: full queues on the way.
    WorstCase,
}

/// How far an intent is carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntentState {
    /// Accepted, not looked at yet.
    Submitted,
    /// A way was chosen, and switches are given entries.
    Compiling,
    /// All switches confirmed their entries, and packets were seen to pass.
    Installed,
    /// Carried out, but not as asked: the second way is missing, or a condition no longer holds.
    Degraded,
    /// Not carried out; the reason says why. A change of the network causes another try.
    Failed,
    /// Being removed.
    Withdrawn,
}

impl IntentState {
    /// Returns true if it is not known yet whether the intent is carried out.
    pub const fn is_undecided(self) -> bool {
        matches!(self, IntentState::Submitted | IntentState::Compiling)
    }
}

/// State of one of several intents that were asked for together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IntentOutcome {
    /// Key of the intent.
    pub key: String,
    /// State.
    pub state: IntentState,
    /// Why it is degraded or failed; empty otherwise.
    pub reason: String,
}

/// An intent and its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct IntentStatus {
    /// Intent as it was asked for.
    #[serde(flatten)]
    pub intent: IntentSpec,
    /// State.
    pub state: IntentState,
    /// Why it is degraded or failed; empty otherwise.
    pub reason: String,
    /// Ways in use, one for each pair of ends and direction, then ways kept ready.
    pub paths: Vec<PathState>,
    /// Delay that the model expects on the worst of these ways, in microseconds, if a bound was asked for.
    pub expected_delay_us: Option<f64>,
    /// Packets that were sent to confirm it and have arrived.
    pub confirmed: u64,
}

/// A case to think through.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "case", rename_all = "kebab-case", deny_unknown_fields)]
pub enum WhatIf {
    /// An intent is added.
    Intent {
        /// The intent.
        intent: IntentSpec,
    },
    /// A link fails, named by one of its ends.
    LinkFails {
        /// End of the link.
        at: SwitchPort,
    },
    /// A switch fails.
    SwitchFails {
        /// Datapath id in hexadecimal.
        dpid: String,
    },
}

/// Effect of a case.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WhatIfAnswer {
    /// Intents that would change or fail, as they would be.
    pub intents: Vec<IntentStatus>,
    /// Hosts that could no longer be reached from all others, by Ethernet address.
    pub cut_off: Vec<String>,
    /// Links whose reserved or measured load would exceed their rate.
    pub overloaded: Vec<SwitchPort>,
}
