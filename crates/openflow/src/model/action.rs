//! Actions and instructions.
use super::stats::Stats;
use super::{Bytes, GroupId, MeterId, PortNo, TableId};
use serde::Serialize;
use weir_packet::{Field, MacAddr, PacketType, nsh};

/// `max_len` of an output to the controller that asks for the whole packet, unbuffered (`OFPCML_NO_BUFFER`).
pub const NO_BUFFER: u16 = 0xffff;

/// What is done to or with a packet (OpenFlow 1.3.5, 5.12 and 7.2.5; OpenFlow 1.0.0, 5.2.4).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum Action {
    /// `max_len`: bytes of the packet that go to the controller, [`NO_BUFFER`] for all; meaningless for other ports.
    Output {
        port: PortNo,
        max_len: u16,
    },
    Group(GroupId),
    SetQueue(u32),
    CopyTtlOut,
    CopyTtlIn,
    SetMplsTtl(u8),
    DecMplsTtl,
    SetNwTtl(u8),
    DecNwTtl,
    /// The EtherType of the new tag: 0x8100 or 0x88a8.
    PushVlan(u16),
    PopVlan,
    /// The EtherType of the new header: 0x8847 or 0x8848.
    PushMpls(u16),
    /// The EtherType of what is under the header.
    PopMpls(u16),
    PushPbb(u16),
    PopPbb,
    /// `value` in the field's low bits.
    SetField {
        field: Field,
        #[serde(serialize_with = "super::wide::value")]
        value: u128,
    },
    /// 1.0: sets the VLAN id, pushing a tag if there is none.
    SetVlanVid(u16),
    /// 1.0: sets the VLAN priority, pushing a tag if there is none.
    SetVlanPcp(u8),
    /// 1.0: sets the IPv4 source; nothing on other packets.
    SetNwSrc(u32),
    /// 1.0: sets the IPv4 destination; nothing on other packets.
    SetNwDst(u32),
    /// 1.0: sets the DSCP bits of the IP header to the upper six bits; nothing on other packets.
    SetNwTos(u8),
    /// 1.0: sets the TCP, UDP or SCTP source port; nothing on other packets.
    SetTpSrc(u16),
    /// 1.0: sets the TCP, UDP or SCTP destination port; nothing on other packets.
    SetTpDst(u16),
    /// 1.0: outputs through a queue of a port.
    Enqueue {
        port: PortNo,
        queue: u32,
    },
    /// As set-field, but only of the bits in `mask` (OpenFlow 1.5.1, 7.2.6.7; Open vSwitch's `load`).
    SetFieldMasked {
        field: Field,
        #[serde(serialize_with = "super::wide::value")]
        value: u128,
        #[serde(serialize_with = "super::wide::value")]
        mask: u128,
    },
    /// Copies bits from field to field; both parts have as many (1.5's copy-field; Open vSwitch's `move`).
    Move {
        src: Subfield,
        dst: Subfield,
    },
    /// 1.5: meters the packet. Versions before have an instruction for it.
    Meter(MeterId),
    /// Takes one off the TTL of the network service header (Open vSwitch's `dec_nsh_ttl`).
    DecNshTtl,
    /// Puts a header in front of the packet (Open vSwitch's `encap`).
    Encap(Encap),
    /// Takes the outermost header off; under it must be a packet of this type, or any for [`PacketType::NEXT_PROTOCOL`] (Open
    /// vSwitch's `decap`).
    Decap(PacketType),
    /// One of Nicira's actions that no version has of its own.
    Nx(Box<super::NxAction>),
    /// Not looked into; `data` is all behind the experimenter's number, padding included.
    Experimenter {
        id: u32,
        data: Bytes,
    },
    /// A set-field of a field weir does not know, kept as it came.
    SetFieldRaw(super::matching::RawField),
}

/// A header to be put in front of a packet.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Encap {
    /// Ethernet, without addresses, in front of a packet that has none.
    Ethernet,
    /// A network service header (RFC 8300).
    Nsh(NshHeader),
}

/// What is said of a network service header when it is put in front of a packet; the rest is as [`nsh::build`] has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
pub struct NshHeader {
    /// Metadata type, if it is said; [`nsh::MD1`] otherwise.
    pub md_type: Option<u8>,
    /// Metadata of type 2.
    pub tlvs: Vec<NshTlv>,
}

/// A value of metadata of type 2.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct NshTlv {
    /// Who defines the type.
    pub class: u16,
    /// What the value is.
    pub kind: u8,
    /// At most [`nsh::MAX_TLV_BYTES`].
    pub value: Bytes,
}

impl NshHeader {
    /// The metadata type.
    pub fn md_type(&self) -> u8 {
        self.md_type.unwrap_or(nsh::MD1)
    }

    /// The metadata of type 2.
    pub fn values(&self) -> impl Iterator<Item = nsh::Tlv<'_>> + Clone {
        self.tlvs.iter().map(|tlv| nsh::Tlv { class: tlv.class, kind: tlv.kind, value: &tlv.value.0 })
    }

    /// Whether there is such a header: its metadata type is known, and its values are of that type and fit.
    pub fn is_valid(&self) -> bool {
        nsh::header_bytes(self.md_type(), self.values()).is_some()
            && (self.tlvs.is_empty() || self.md_type() == nsh::MD2)
    }
}

/// Some bits of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Subfield {
    /// The field.
    pub field: Field,
    /// Its bits below the part.
    pub offset: u16,
    /// Bits of the part, at least one.
    pub bits: u16,
}

impl Subfield {
    /// All of a field.
    pub const fn all(field: Field) -> Subfield {
        #[expect(clippy::cast_possible_truncation, reason = "at most 128")]
        Subfield { field, offset: 0, bits: field.bits() as u16 }
    }

    /// Whether the part lies within its field.
    pub fn is_valid(self) -> bool {
        self.bits > 0 && u32::from(self.offset) + u32::from(self.bits) <= self.field.bits()
    }

    /// The part's bits in the field: what a mask of it is.
    pub fn mask(self) -> u128 {
        let ones = u128::MAX.checked_shr(128 - u32::from(self.bits.clamp(1, 128))).unwrap_or(u128::MAX);
        ones.checked_shl(self.offset.into()).unwrap_or(0)
    }
}

impl Action {
    /// An output to an ordinary port.
    pub const fn output(port: PortNo) -> Action {
        Action::Output { port, max_len: 0 }
    }

    /// An output of the whole packet to the controller.
    pub const fn to_controller() -> Action {
        Action::Output { port: PortNo::CONTROLLER, max_len: NO_BUFFER }
    }

    /// Sets a field holding an Ethernet address.
    pub const fn set_mac(field: Field, mac: MacAddr) -> Action {
        Action::SetField { field, value: mac.to_bits() as u128 }
    }
}

/// What a matching flow entry does (OpenFlow 1.3.5, 5.9), listed in the order they came; executed in the specification's.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum Instruction {
    GotoTable(TableId),
    WriteMetadata {
        metadata: u64,
        mask: u64,
    },
    WriteActions(Vec<Action>),
    ApplyActions(Vec<Action>),
    ClearActions,
    Meter(MeterId),
    /// 1.5: the controller is told the entry's statistics when one reaches its threshold.
    StatTrigger {
        /// `OFPSTF_*`: 1 at every multiple of the threshold, 2 only the first time.
        flags: u32,
        thresholds: Stats,
    },
    /// Not looked into; `data` is all behind the experimenter's number.
    Experimenter {
        id: u32,
        data: Bytes,
    },
}

impl Instruction {
    /// Place in the order in which a switch executes instructions, from 0 (OpenFlow 1.3.5, 5.9); experimenter
    /// instructions, whose place the specification leaves open, come last.
    pub fn execution_order(&self) -> u8 {
        match self {
            Instruction::Meter(_) => 0,
            Instruction::ApplyActions(_) => 1,
            Instruction::ClearActions => 2,
            Instruction::WriteActions(_) => 3,
            Instruction::WriteMetadata { .. } => 4,
            Instruction::StatTrigger { .. } => 5,
            Instruction::GotoTable(_) => 6,
            Instruction::Experimenter { .. } => 7,
        }
    }
}
