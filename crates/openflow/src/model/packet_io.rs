//! Packets between switch and controller.
use super::{Action, Bytes, Match, PortNo, TableId};
use serde::Serialize;

/// The number of a packet kept in the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct BufferId(pub u32);

/// Why a packet went to the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is named by the specification (OpenFlow 1.3.5, 7.4.1)")]
pub enum PacketInReason {
    NoMatch = 0,
    Action = 1,
    InvalidTtl = 2,
    /// 1.4: an output in an action set; an action in versions before.
    ActionSet = 3,
    /// 1.4: an output in a group's bucket; an action in versions before.
    Group = 4,
    /// 1.4: an output of a packet-out; an action in versions before.
    PacketOut = 5,
}

impl PacketInReason {
    /// Its name in text, as `ovs-ofctl` has it.
    pub const fn name(self) -> &'static str {
        match self {
            PacketInReason::NoMatch => "no_match",
            PacketInReason::Action => "action",
            PacketInReason::InvalidTtl => "invalid_ttl",
            PacketInReason::ActionSet => "action_set",
            PacketInReason::Group => "group",
            PacketInReason::PacketOut => "packet_out",
        }
    }
}

/// `ofp_packet_in` (OpenFlow 1.3.5, 7.4.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PacketIn {
    /// Where the switch keeps the packet, if it does.
    pub buffer_id: Option<BufferId>,
    /// Length of the whole packet; `data` may be shorter.
    pub total_len: u16,
    /// Why.
    pub reason: PacketInReason,
    /// Table the packet was looked up in last; 0 in 1.0.
    pub table: TableId,
    /// Cookie of the entry that sent it; all ones for none. All ones in 1.0.
    pub cookie: u64,
    /// `in_port` and the packet's other pipeline fields (metadata, tunnel, physical port). In 1.0: `in_port` only.
    pub matching: Match,
    /// The packet, or its first bytes.
    pub data: Bytes,
}

impl PacketIn {
    /// The port the packet came in on; `None` for a message that does not say.
    #[expect(clippy::cast_possible_truncation, reason = "in_port has 32 bits")]
    pub fn in_port(&self) -> Option<PortNo> {
        self.matching.get(weir_packet::Field::InPort).map(|(value, _)| PortNo(value as u32))
    }
}

/// `ofp_packet_out` (OpenFlow 1.3.5, 7.3.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PacketOut {
    /// The kept packet to send; none when `data` carries it.
    pub buffer_id: Option<BufferId>,
    /// The packet's input port, or `CONTROLLER`. 1.0's `NONE` is `ANY`.
    pub in_port: PortNo,
    /// 1.5: the packet's other pipeline fields (metadata, tunnel, registers).
    pub matching: Match,
    /// What to do with it.
    pub actions: Vec<Action>,
    /// The packet, when not kept by the switch.
    pub data: Bytes,
}
