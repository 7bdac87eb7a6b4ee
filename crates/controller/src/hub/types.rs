//! Events and counters of the hub.
use serde::Serialize;
use std::collections::BTreeMap;
use weir_openflow::model::Body;
use weir_openflow::model::role::Role;
use weir_openflow::{Message, Version};

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

/// Counters of the controller since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ControllerCounters {
    /// Connections accepted or refused.
    pub connections: u64,
    /// Connections that ended before they were up: no common version, no answer, a datapath id that is connected
    /// already, ...
    pub refused: u64,
    /// Packet-ins received from all switches.
    pub packet_ins: u64,
    /// Flow-mods sent to all switches.
    pub flow_mods: u64,
    /// Packet-outs sent to all switches.
    pub packet_outs: u64,
    /// Error messages received.
    pub errors: u64,
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
    /// Counters of the controller.
    pub counters: ControllerCounters,
    /// Counters of the application, by name.
    pub app: BTreeMap<&'static str, u64>,
}

impl ControllerCounters {
    /// Counts a message sent to a switch.
    pub(super) fn count_sent(&mut self, message: &Message) {
        match &message.body {
            Body::FlowMod(_) => self.flow_mods += 1,
            Body::PacketOut(_) => self.packet_outs += 1,
            _ => {}
        }
    }
}
