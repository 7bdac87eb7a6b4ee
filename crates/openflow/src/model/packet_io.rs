//! Defines packet-in and packet-out.
use super::{Action, Bytes, Match, PortNo, TableId};
use serde::Serialize;

/// Number of a packet buffered in the switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct BufferId(pub u32);

/// Reason of a packet-in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u8)]
#[allow(missing_docs, reason = "each is named by the specification (OpenFlow 1.3.5, 7.4.1)")]
pub enum PacketInReason {
    NoMatch = 0,
    Action = 1,
    InvalidTtl = 2,
    /// 1.4: an output in an action set; encoded as `Action` in earlier versions.
    ActionSet = 3,
    /// 1.4: an output in a group's bucket; encoded as `Action` in earlier versions.
    Group = 4,
    /// 1.4: an output in a packet-out; encoded as `Action` in earlier versions.
    PacketOut = 5,
}

impl PacketInReason {
    /// Every reason, in the order of their numbers.
    pub const ALL: [PacketInReason; 6] = [
        PacketInReason::NoMatch,
        PacketInReason::Action,
        PacketInReason::InvalidTtl,
        PacketInReason::ActionSet,
        PacketInReason::Group,
        PacketInReason::PacketOut,
    ];

    /// Returns the reason for a number; `None` if there is none.
    pub fn from_number(number: u8) -> Option<PacketInReason> {
        PacketInReason::ALL.get(usize::from(number)).copied()
    }

    /// Returns the reason's name in the text of `ovs-ofctl`.
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

/// Packet-in, `ofp_packet_in` (OpenFlow 1.3.5, 7.4.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PacketIn {
    /// Number of the buffered packet, if the switch keeps it.
    pub buffer_id: Option<BufferId>,
    /// Length of the whole packet in bytes; `data` may be shorter.
    pub total_len: u16,
    /// Reason for sending the packet.
    pub reason: PacketInReason,
    /// Table of the last lookup; 0 in 1.0.
    pub table: TableId,
    /// Cookie of the flow entry that sent the packet; all ones for none. All ones in 1.0.
    pub cookie: u64,
    /// Pipeline fields of the packet: `in_port`, metadata, tunnel, physical port. In 1.0 only `in_port`.
    pub matching: Match,
    /// The packet, or its first bytes.
    pub data: Bytes,
}

impl PacketIn {
    /// Returns the packet's input port; `None` if the message does not carry it.
    #[expect(clippy::cast_possible_truncation, reason = "in_port has 32 bits")]
    pub fn in_port(&self) -> Option<PortNo> {
        self.matching.get(weir_packet::Field::InPort).map(|(value, _)| PortNo(value as u32))
    }
}

/// Packet-out, `ofp_packet_out` (OpenFlow 1.3.5, 7.3.7).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PacketOut {
    /// Buffered packet to send; `None` if `data` contains the packet.
    pub buffer_id: Option<BufferId>,
    /// Input port of the packet, or `CONTROLLER`. 1.0's `NONE` becomes `ANY`.
    pub in_port: PortNo,
    /// 1.5: the packet's other pipeline fields (metadata, tunnel, registers).
    pub matching: Match,
    /// Actions to run on the packet.
    pub actions: Vec<Action>,
    /// The packet, if it is not buffered in the switch.
    pub data: Bytes,
}
