//! Defines actions and instructions.
use super::numbered::numbered_enum;
use super::stats::OxsStats;
use super::{Bytes, GroupId, MeterId, PortNo, TableId};
use serde::Serialize;
use weir_packet::{Field, MacAddr, PacketType, nsh};

/// `max_len` of an output to the controller that requests the whole packet, unbuffered (`OFPCML_NO_BUFFER`).
pub const NO_BUFFER: u16 = 0xffff;

/// An action (OpenFlow 1.3.5, 5.12 and 7.2.5; OpenFlow 1.0.0, 5.2.4).
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "each is named by the specification")]
pub enum Action {
    /// `max_len`: bytes of the packet to send to the controller, [`NO_BUFFER`] for all; ignored for other ports.
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
    /// EtherType of the new tag: 0x8100 or 0x88a8.
    PushVlan(u16),
    PopVlan,
    /// EtherType of the new header: 0x8847 or 0x8848.
    PushMpls(u16),
    /// EtherType of the payload below the removed header.
    PopMpls(u16),
    PushPbb(u16),
    PopPbb,
    /// Sets a field. `value` is right-aligned.
    SetField {
        field: Field,
        #[serde(serialize_with = "super::wide::value")]
        value: u128,
    },
    /// 1.0: sets the VLAN id, pushing a tag if the packet has none.
    SetVlanVid(u16),
    /// 1.0: sets the VLAN priority, pushing a tag if the packet has none.
    SetVlanPcp(u8),
    /// 1.0: sets the IPv4 source address; no effect on other packets.
    SetNwSrc(u32),
    /// 1.0: sets the IPv4 destination address; no effect on other packets.
    SetNwDst(u32),
    /// 1.0: sets the DSCP bits of the IP header to the upper six bits of the value; no effect on other packets.
    SetNwTos(u8),
    /// 1.0: sets the TCP, UDP or SCTP source port; no effect on other packets.
    SetTpSrc(u16),
    /// 1.0: sets the TCP, UDP or SCTP destination port; no effect on other packets.
    SetTpDst(u16),
    /// 1.0: outputs to a port through one of its queues.
    Enqueue {
        port: PortNo,
        queue: u32,
    },
    /// Sets only the bits of a field that are in `mask` (OpenFlow 1.5.1, 7.2.6.7; Open vSwitch's `load`).
    SetFieldMasked {
        field: Field,
        #[serde(serialize_with = "super::wide::value")]
        value: u128,
        #[serde(serialize_with = "super::wide::value")]
        mask: u128,
    },
    /// Copies bits from one field to another; both parts have the same width (1.5's copy-field; Open vSwitch's
    /// `move`).
    Move {
        src: Subfield,
        dst: Subfield,
    },
    /// 1.5: meters the packet. Earlier versions use an instruction.
    Meter(MeterId),
    /// Decrements the TTL of the network service header (Open vSwitch's `dec_nsh_ttl`).
    DecNshTtl,
    /// Pushes a header in front of the packet (Open vSwitch's `encap`).
    Encap(EncapHeader),
    /// Removes the outermost header. The packet below must be of this type, or of any type for
    /// [`PacketType::NEXT_PROTOCOL`] (Open vSwitch's `decap`).
    Decap(PacketType),
    /// An action of Nicira's extensions that no OpenFlow version has as a standard action.
    Nx(Box<super::NxAction>),
    /// An experimenter action that weir does not interpret. `data` is everything after the experimenter number,
    /// including padding.
    Experimenter {
        id: u32,
        data: Bytes,
    },
    /// A set-field of a field that weir does not know, kept as received.
    SetFieldRaw(super::matching::RawField),
}

numbered_enum! {
    /// Type of an action, `OFPAT_*` (OpenFlow 1.3.5, 7.2.5; OpenFlow 1.5.1, 7.2.6). The types of 1.0 have other
    /// numbers.
    #[derive(Serialize)]
    #[serde(into = "u16")]
    pub enum ActionType: u16 {
        /// `OFPAT_OUTPUT`: outputs to a port.
        Output = 0,
        /// `OFPAT_COPY_TTL_OUT`: copies the TTL to the outermost header from the next one.
        CopyTtlOut = 11,
        /// `OFPAT_COPY_TTL_IN`: copies the TTL from the outermost header to the next one.
        CopyTtlIn = 12,
        /// `OFPAT_SET_MPLS_TTL`: sets the TTL of the MPLS header.
        SetMplsTtl = 15,
        /// `OFPAT_DEC_MPLS_TTL`: decrements the TTL of the MPLS header.
        DecMplsTtl = 16,
        /// `OFPAT_PUSH_VLAN`: pushes a VLAN tag.
        PushVlan = 17,
        /// `OFPAT_POP_VLAN`: pops the outermost VLAN tag.
        PopVlan = 18,
        /// `OFPAT_PUSH_MPLS`: pushes an MPLS header.
        PushMpls = 19,
        /// `OFPAT_POP_MPLS`: pops the outermost MPLS header.
        PopMpls = 20,
        /// `OFPAT_SET_QUEUE`: selects the queue of later outputs.
        SetQueue = 21,
        /// `OFPAT_GROUP`: sends the packet through a group.
        Group = 22,
        /// `OFPAT_SET_NW_TTL`: sets the TTL of the IP header.
        SetNwTtl = 23,
        /// `OFPAT_DEC_NW_TTL`: decrements the TTL of the IP header.
        DecNwTtl = 24,
        /// `OFPAT_SET_FIELD`: sets a field.
        SetField = 25,
        /// `OFPAT_PUSH_PBB`: pushes a PBB header.
        PushPbb = 26,
        /// `OFPAT_POP_PBB`: pops the outermost PBB header.
        PopPbb = 27,
        /// `OFPAT_COPY_FIELD`: copies bits from one field to another. Since OpenFlow 1.5.
        CopyField = 28,
        /// `OFPAT_METER`: meters the packet. Since OpenFlow 1.5.
        Meter = 29,
    }
}

/// Header that the encap action pushes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EncapHeader {
    /// An Ethernet header without addresses, for a packet that has no Ethernet header.
    Ethernet,
    /// A network service header (RFC 8300).
    Nsh(NshHeader),
}

/// Parameters of a network service header to push; [`nsh::build`] sets the other fields.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default, Serialize)]
pub struct NshHeader {
    /// Metadata type; `None` stands for [`nsh::MD1`].
    pub md_type: Option<u8>,
    /// Metadata values; only for metadata type 2.
    pub tlvs: Vec<NshTlv>,
}

/// A metadata value (TLV) of metadata type 2.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct NshTlv {
    /// Class: the organisation that defines `kind`.
    pub class: u16,
    /// Type of the value, within its class.
    pub kind: u8,
    /// Content, at most [`nsh::MAX_TLV_BYTES`] bytes.
    pub value: Bytes,
}

impl NshHeader {
    /// Returns the metadata type, [`nsh::MD1`] if none is given.
    pub fn md_type(&self) -> u8 {
        self.md_type.unwrap_or(nsh::MD1)
    }

    /// Returns the metadata values of type 2.
    pub fn values(&self) -> impl Iterator<Item = nsh::NshTlvRef<'_>> + Clone {
        self.tlvs.iter().map(|tlv| nsh::NshTlvRef { class: tlv.class, kind: tlv.kind, value: &tlv.value.0 })
    }

    /// Returns true if the header can be built: the metadata type is known, values are given only for type 2, and
    /// they fit.
    pub fn is_valid(&self) -> bool {
        nsh::header_bytes(self.md_type(), self.values()).is_some()
            && (self.tlvs.is_empty() || self.md_type() == nsh::MD2)
    }
}

/// A contiguous range of bits of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct Subfield {
    /// Field that contains the bits.
    pub field: Field,
    /// Number of the field's bits below the range.
    pub offset: u16,
    /// Width of the range in bits, at least 1.
    pub bits: u16,
}

impl Subfield {
    /// Returns the range of all bits of a field.
    pub const fn all(field: Field) -> Subfield {
        #[expect(clippy::cast_possible_truncation, reason = "at most 128")]
        Subfield { field, offset: 0, bits: field.bits() as u16 }
    }

    /// Returns true if the range is not empty and lies within its field.
    pub fn is_valid(self) -> bool {
        self.bits > 0 && u32::from(self.offset) + u32::from(self.bits) <= self.field.bits()
    }

    /// Returns the mask of the field that covers the range.
    pub fn mask(self) -> u128 {
        let ones = u128::MAX.checked_shr(128 - u32::from(self.bits.clamp(1, 128))).unwrap_or(u128::MAX);
        ones.checked_shl(self.offset.into()).unwrap_or(0)
    }
}

impl Action {
    /// Returns an output action to an ordinary port.
    pub const fn output(port: PortNo) -> Action {
        Action::Output { port, max_len: 0 }
    }

    /// Returns an output action that sends the whole packet to the controller.
    pub const fn to_controller() -> Action {
        Action::Output { port: PortNo::CONTROLLER, max_len: NO_BUFFER }
    }

    /// Returns the type of the action, or `None` if it belongs to an experimenter or sets an unknown field. Actions of
    /// 1.0 have the type of their later equivalent.
    pub const fn kind(&self) -> Option<ActionType> {
        Some(match self {
            Action::Output { .. } | Action::Enqueue { .. } => ActionType::Output,
            Action::CopyTtlOut => ActionType::CopyTtlOut,
            Action::CopyTtlIn => ActionType::CopyTtlIn,
            Action::SetMplsTtl(_) => ActionType::SetMplsTtl,
            Action::DecMplsTtl => ActionType::DecMplsTtl,
            Action::PushVlan(_) => ActionType::PushVlan,
            Action::PopVlan => ActionType::PopVlan,
            Action::PushMpls(_) => ActionType::PushMpls,
            Action::PopMpls(_) => ActionType::PopMpls,
            Action::SetQueue(_) => ActionType::SetQueue,
            Action::Group(_) => ActionType::Group,
            Action::SetNwTtl(_) => ActionType::SetNwTtl,
            Action::DecNwTtl => ActionType::DecNwTtl,
            Action::SetField { .. }
            | Action::SetFieldMasked { .. }
            | Action::SetVlanVid(_)
            | Action::SetVlanPcp(_)
            | Action::SetNwSrc(_)
            | Action::SetNwDst(_)
            | Action::SetNwTos(_)
            | Action::SetTpSrc(_)
            | Action::SetTpDst(_) => ActionType::SetField,
            Action::PushPbb(_) => ActionType::PushPbb,
            Action::PopPbb => ActionType::PopPbb,
            Action::Move { .. } => ActionType::CopyField,
            Action::Meter(_) => ActionType::Meter,
            Action::DecNshTtl
            | Action::Encap(_)
            | Action::Decap(_)
            | Action::Nx(_)
            | Action::Experimenter { .. }
            | Action::SetFieldRaw(_) => return None,
        })
    }

    /// Returns an action that sets a field holding an Ethernet address.
    pub const fn set_mac(field: Field, mac: MacAddr) -> Action {
        Action::SetField { field, value: mac.to_bits() as u128 }
    }
}

/// An instruction of a flow entry (OpenFlow 1.3.5, 5.9). Messages keep the order received; a switch executes
/// instructions in the order that the specification prescribes ([`Instruction::execution_order`]).
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
    /// 1.5: sends the flow entry's statistics to the controller when a statistic reaches its threshold.
    StatTrigger {
        /// `OFPSTF_*`: 1 at every multiple of the threshold, 2 only the first time.
        flags: u32,
        thresholds: OxsStats,
    },
    /// An instruction that weir does not interpret. `data` is everything after the experimenter number.
    Experimenter {
        id: u32,
        data: Bytes,
    },
}

numbered_enum! {
    /// Type of an instruction, `OFPIT_*` (OpenFlow 1.3.5, 7.2.4; OpenFlow 1.5.1, 7.2.5).
    #[derive(Serialize)]
    #[serde(into = "u16")]
    pub enum InstructionType: u16 {
        /// `OFPIT_GOTO_TABLE`: continues in another table.
        GotoTable = 1,
        /// `OFPIT_WRITE_METADATA`: writes bits of the metadata.
        WriteMetadata = 2,
        /// `OFPIT_WRITE_ACTIONS`: adds actions to the action set.
        WriteActions = 3,
        /// `OFPIT_APPLY_ACTIONS`: runs actions.
        ApplyActions = 4,
        /// `OFPIT_CLEAR_ACTIONS`: empties the action set.
        ClearActions = 5,
        /// `OFPIT_METER`: meters the packet. Until OpenFlow 1.4.
        Meter = 6,
        /// `OFPIT_STAT_TRIGGER`: sends statistics that reach a threshold. Since OpenFlow 1.5.
        StatTrigger = 7,
    }
}

impl Instruction {
    /// Returns the type of the instruction, or `None` if it belongs to an experimenter.
    pub const fn kind(&self) -> Option<InstructionType> {
        Some(match self {
            Instruction::GotoTable(_) => InstructionType::GotoTable,
            Instruction::WriteMetadata { .. } => InstructionType::WriteMetadata,
            Instruction::WriteActions(_) => InstructionType::WriteActions,
            Instruction::ApplyActions(_) => InstructionType::ApplyActions,
            Instruction::ClearActions => InstructionType::ClearActions,
            Instruction::Meter(_) => InstructionType::Meter,
            Instruction::StatTrigger { .. } => InstructionType::StatTrigger,
            Instruction::Experimenter { .. } => return None,
        })
    }

    /// Returns the position, from 0, at which a switch executes the instruction (OpenFlow 1.3.5, 5.9). Experimenter
    /// instructions come last; the specification leaves their position open.
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
