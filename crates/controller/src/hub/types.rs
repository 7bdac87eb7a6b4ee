//! What the hub tells of switches, and what it counts.
use serde::Serialize;
use std::collections::BTreeMap;
use weir_openflow::model::Body;
use weir_openflow::model::role::Role;
use weir_openflow::{Message, Version};

/// A switch came or went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum SwitchEvent {
    /// It shook hands.
    Up(SwitchInfo),
    /// It gave us a role, or another controller took ours.
    Role {
        /// Which.
        switch: SwitchInfo,
        /// What we are to it now.
        role: Role,
        /// What guards against stale elections, as the switch has it; absent if the switch did not say.
        generation_id: Option<u64>,
    },
    /// It has one more connection, an auxiliary one.
    Auxiliary {
        /// Which.
        switch: SwitchInfo,
        /// The connection's number.
        number: u8,
    },
    /// It went away.
    Down {
        /// Which.
        switch: SwitchInfo,
        /// Why, for people.
        reason: String,
    },
    /// It never came up.
    Refused {
        /// Where it connected from.
        peer: String,
        /// Why, for people.
        reason: String,
    },
}

/// A switch that is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SwitchInfo {
    /// Its datapath id.
    pub dpid: u64,
    /// The version it speaks with us.
    pub version: Version,
    /// Where it connected from.
    pub peer: String,
}

/// What the controller counted since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Connections that came.
    pub connections: u64,
    /// Connections that ended before they were up: no common version, no answer, a datapath id that is there already, ...
    pub refused: u64,
    /// Packet-ins received.
    pub packet_ins: u64,
    /// Flow-mods sent.
    pub flow_mods: u64,
    /// Packet-outs sent.
    pub packet_outs: u64,
    /// Errors received.
    pub errors: u64,
    /// Messages not sent, because the switch does not read.
    pub dropped_full: u64,
    /// Messages not sent, because the switch was gone.
    pub dropped_gone: u64,
    /// Messages not sent, because the switch's version cannot carry them.
    pub dropped_unencodable: u64,
}

/// What there is and what was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// Switches that are up.
    pub switches: Vec<SwitchInfo>,
    /// What was counted.
    pub counters: Counters,
    /// What the application counted.
    pub app: BTreeMap<&'static str, u64>,
}

impl Counters {
    /// Counts a message to a switch.
    pub(super) fn count_sent(&mut self, message: &Message) {
        match &message.body {
            Body::FlowMod(_) => self.flow_mods += 1,
            Body::PacketOut(_) => self.packet_outs += 1,
            _ => {}
        }
    }
}
