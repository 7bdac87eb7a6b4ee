//! Events and counters of the hub.
use super::queue::QueueDrops;
use crate::outbox::SentKind;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_openflow::Version;
use weir_openflow::model::role::Role;

/// Event of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum SwitchEvent {
    /// The switch has completed the handshake.
    Up(SwitchInfo),
    /// The switch has granted a role, or another controller has become master.
    Role {
        /// Switch of the event.
        switch: SwitchInfo,
        /// Current role of this controller.
        role: Role,
        /// Generation id as the switch has it, which guards against stale elections; `None` if the switch did not
        /// send it.
        generation_id: Option<u64>,
    },
    /// An auxiliary connection has joined.
    Auxiliary {
        /// Switch of the event.
        switch: SwitchInfo,
        /// Number of the auxiliary connection.
        number: u8,
    },
    /// The switch has disconnected.
    Down {
        /// Switch of the event.
        switch: SwitchInfo,
        /// Reason, for display.
        reason: String,
    },
    /// A connection has ended before it was up.
    Refused {
        /// Address of the peer.
        peer: String,
        /// Reason, for display.
        reason: String,
    },
}

/// Switch that is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SwitchInfo {
    /// Datapath id of the switch.
    pub dpid: u64,
    /// OpenFlow version in use.
    pub version: Version,
    /// Address of the peer.
    pub peer: String,
}

/// Messages that wait for a switch that is up, and drops.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SwitchLoad {
    /// Datapath id of the switch.
    pub dpid: u64,
    /// Messages that are received but not handled yet.
    pub waiting: usize,
    /// Bytes of these messages.
    pub waiting_bytes: usize,
    /// Packet-ins that were dropped since the switch connected, by class and reason.
    pub dropped: Vec<QueueDrops>,
}

/// Counters of the controller since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ControllerCounters {
    /// Connections accepted or refused.
    pub connections: u64,
    /// Connections that ended before they were up: no common version, no answer, a datapath id that is connected
    /// already, ...
    pub refused: u64,
    /// Connections of these that gave their place to another because they had not introduced themselves.
    pub half_open_ended: u64,
    /// Packet-ins received from all switches.
    pub packet_ins: u64,
    /// Flow-mods sent to all switches.
    pub flow_mods: u64,
    /// Packet-outs sent to all switches.
    pub packet_outs: u64,
    /// Error messages received.
    pub errors: u64,
    /// Packet-ins dropped because their switch sends more than is handled.
    pub dropped_overload: u64,
    /// Packet-ins dropped because their port went down while they waited.
    pub dropped_port_down: u64,
    /// Messages not sent because the switch does not read.
    pub dropped_full: u64,
    /// Messages not sent because the switch is no longer connected.
    pub dropped_gone: u64,
    /// Messages not sent because they cannot be encoded in the switch's version.
    pub dropped_unencodable: u64,
}

/// State and counters of the hub.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ControllerSnapshot {
    /// Switches that are up.
    pub switches: Vec<SwitchInfo>,
    /// Load of each of these switches, in the same order.
    pub loads: Vec<SwitchLoad>,
    /// Counters of the controller.
    pub counters: ControllerCounters,
    /// Counters of the application, by name.
    pub app: BTreeMap<&'static str, u64>,
}

impl ControllerSnapshot {
    /// Adds another hub's switches and counters.
    pub fn add(&mut self, other: ControllerSnapshot) {
        self.switches.extend(other.switches);
        self.loads.extend(other.loads);
        self.counters.add(&other.counters);
        for (name, count) in other.app {
            *self.app.entry(name).or_default() += count;
        }
    }
}

impl ControllerCounters {
    /// Adds the counters of another hub.
    pub fn add(&mut self, other: &ControllerCounters) {
        let ControllerCounters {
            connections,
            refused,
            half_open_ended,
            packet_ins,
            flow_mods,
            packet_outs,
            errors,
            dropped_overload,
            dropped_port_down,
            dropped_full,
            dropped_gone,
            dropped_unencodable,
        } = other;
        self.connections += connections;
        self.refused += refused;
        self.half_open_ended += half_open_ended;
        self.packet_ins += packet_ins;
        self.flow_mods += flow_mods;
        self.packet_outs += packet_outs;
        self.errors += errors;
        self.dropped_overload += dropped_overload;
        self.dropped_port_down += dropped_port_down;
        self.dropped_full += dropped_full;
        self.dropped_gone += dropped_gone;
        self.dropped_unencodable += dropped_unencodable;
    }

    /// Counts a message sent to a switch.
    pub(super) fn count_sent(&mut self, kind: SentKind) {
        match kind {
            SentKind::FlowMod => self.flow_mods += 1,
            SentKind::PacketOut => self.packet_outs += 1,
            SentKind::Other => {}
        }
    }
}
