//! Defines Nicira's extensions: messages and actions that Open vSwitch added to OpenFlow and that its tools and
//! controllers use.
use super::flow::{FlowMod, FlowRemoved};
use super::numbered::numbered_enum;
use super::packet_io::{PacketIn, PacketInReason};
use super::role::{AsyncConfig, RoleMessage};
use super::{Action, Bytes, PortNo, Subfield, TableId};
use serde::Serialize;
use std::fmt;

/// Nicira's experimenter number (1.0: vendor number).
pub const NICIRA: u32 = 0x0000_2320;

/// Maximum nesting depth of `clone(...)`, on the wire and as text.
pub const MAX_CLONES: usize = 16;

/// A message of Nicira's extensions. In 1.0 they provide what only later versions have as standard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum NxMessage {
    /// Sets the format of messages about flow entries to this controller (1.0).
    SetFlowFormat(FlowFormat),
    /// True if the high byte of a flow-mod's command is its table number from now on (1.0).
    FlowModTableId(bool),
    /// A flow-mod with the match as a list of fields (1.0).
    FlowMod(FlowMod),
    /// A flow-removed with the match as a list of fields (1.0).
    FlowRemoved(FlowRemoved),
    /// Role request for 1.0.
    RoleRequest(RoleMessage),
    /// Role reply for 1.0.
    RoleReply(RoleMessage),
    /// Sets the format of packet-ins to this controller.
    SetPacketInFormat(PacketInFormat),
    /// A packet-in with the packet's pipeline fields (1.0).
    PacketIn(PacketIn),
    /// A packet-in with properties.
    PacketIn2(PacketIn2),
    /// Selects the asynchronous messages that this controller receives (1.0).
    SetAsync(AsyncConfig),
    /// Sets the number that identifies this controller in the action `controller(id=...)`.
    SetControllerId(u16),
    /// Ends the flow monitor with this number (1.0 and 1.3).
    FlowMonitorCancel(u32),
    /// The switch leaves out flow monitor updates from here on (1.0 and 1.3).
    FlowMonitorPaused,
    /// The switch sends all flow monitor updates again from here on (1.0 and 1.3).
    FlowMonitorResumed,
}

numbered_enum! {
    /// Format of messages about flow entries, `NXFF_*`.
    #[derive(Serialize)]
    pub enum FlowFormat: u32 {
        /// `NXFF_OPENFLOW10`: 1.0's fixed match structure.
        OpenFlow10 = 0,
        /// `NXFF_NXM`: match as a list of fields.
        Nxm = 2,
    }
}

numbered_enum! {
    /// Format of packet-ins, `NXPIF_*`.
    #[derive(Serialize)]
    pub enum PacketInFormat: u32 {
        /// `NXPIF_STANDARD`: the packet-in of the OpenFlow version.
        Standard = 0,
        /// `NXPIF_NXT_PACKET_IN`: packet-in with pipeline fields, [`NxMessage::PacketIn`].
        Nxt = 1,
        /// `NXPIF_NXT_PACKET_IN2`: packet-in with properties, [`NxMessage::PacketIn2`].
        Nxt2 = 2,
    }
}

/// A packet-in with properties: the content of a [`PacketIn`], and data of the action that sent it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PacketIn2 {
    /// Packet, input port and reason.
    pub packet: PacketIn,
    /// Data that the flow entry's `controller` action passes to the controller.
    pub userdata: Bytes,
}

/// An action of Nicira's extensions that no OpenFlow version has as a standard action.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub enum NxAction {
    /// Looks the packet up in a table as if received on a port, runs the actions found, then continues.
    Resubmit {
        /// Input port for the lookup; `IN_PORT` for the packet's own.
        port: PortNo,
        /// Table to look up in; `None` for the table that the action is in.
        table: Option<TableId>,
    },
    /// Writes bits of a field.
    Load {
        /// Bits to write.
        dst: Subfield,
        /// Value to write, right-aligned.
        value: u64,
    },
    /// Sets the tunnel id.
    SetTunnel {
        /// New tunnel id.
        id: u64,
        /// True if the action was received in its form with a 64-bit id.
        wide: bool,
    },
    /// Undoes set-queue: selects the default queue.
    PopQueue,
    /// Has no effect; carries a comment.
    Note(Bytes),
    /// Skips all further actions.
    Exit,
    /// Decrements the TTL. If it expires, the packet is sent to the controllers with these numbers.
    DecTtl(Vec<u16>),
    /// Selects a link by a hash.
    Multipath(MultipathAction),
    /// Outputs to a port selected by a hash or by whether its link is up.
    Bundle(BundleAction),
    /// Outputs to the port whose number a field holds.
    OutputReg {
        /// Bits that hold the port number.
        src: Subfield,
        /// Bytes of the packet to send if the port is the controller.
        max_len: u16,
    },
    /// Adds a flow entry built from the packet.
    Learn(LearnAction),
    /// Shortens the flow entry's time-outs when a TCP packet has FIN or RST set.
    FinTimeout {
        /// New idle time-out in seconds; 0 for no change.
        idle: u16,
        /// New hard time-out in seconds; 0 for no change.
        hard: u16,
    },
    /// Sends the packet to controllers.
    Controller(ControllerAction),
    /// Writes bits of the metadata (1.0).
    WriteMetadata {
        /// Value to write.
        metadata: u64,
        /// Bits to write.
        mask: u64,
    },
    /// Pushes the value of these bits onto the packet's stack.
    Push(Subfield),
    /// Pops a value from the packet's stack into these bits.
    Pop(Subfield),
    /// Outputs the packet cut to its first bytes.
    OutputTrunc {
        /// Port to output to.
        port: PortNo,
        /// Number of bytes to keep.
        max_len: u32,
    },
    /// Runs actions on a copy of the packet.
    Clone(Vec<Action>),
    /// Sets one bit to 1 if the packet is longer than `length`, otherwise to 0.
    CheckLarger {
        /// Length in bytes, without the Ethernet header.
        length: u16,
        /// Bit to write.
        dst: Subfield,
    },
}

/// Reason that an action tells the switch to state in its packet-ins, `OFPR_*`. Open vSwitch accepts any number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "u8")]
pub enum RequestedReason {
    /// A reason that packet-ins can have.
    Known(PacketInReason),
    /// A number that stands for no reason.
    Unknown(u8),
}

impl RequestedReason {
    /// Reason of an action that states none.
    pub const DEFAULT: RequestedReason = RequestedReason::Known(PacketInReason::Action);

    /// Returns the reason for a number in a message.
    pub fn from_number(number: u8) -> RequestedReason {
        PacketInReason::from_number(number).map_or(RequestedReason::Unknown(number), RequestedReason::Known)
    }

    /// Returns the number in messages.
    pub const fn number(self) -> u8 {
        match self {
            RequestedReason::Known(reason) => reason as u8,
            RequestedReason::Unknown(number) => number,
        }
    }
}

impl From<RequestedReason> for u8 {
    fn from(reason: RequestedReason) -> u8 {
        reason.number()
    }
}

impl fmt::Display for RequestedReason {
    /// Writes the name in the text of `ovs-ofctl`, or the number of an unknown reason.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RequestedReason::Known(reason) => f.write_str(reason.name()),
            RequestedReason::Unknown(number) => number.fmt(f),
        }
    }
}

/// Sends the packet to controllers, `controller(...)`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct ControllerAction {
    /// Bytes of the packet to send.
    pub max_len: u16,
    /// Number of the controllers to send to, which they set with [`NxMessage::SetControllerId`].
    pub id: u16,
    /// Reason in the packet-in.
    pub reason: RequestedReason,
    /// Data to pass to the controller.
    pub userdata: Bytes,
    /// True if the packet's processing pauses until the controller resumes it.
    pub pause: bool,
}

/// Fields that a hash covers, `NX_HASH_FIELDS_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u16)]
#[allow(missing_docs, reason = "named as in text")]
pub enum HashFields {
    EthSrc = 0,
    SymmetricL4 = 1,
    SymmetricL3L4 = 2,
    SymmetricL3L4Udp = 3,
    NwSrc = 4,
    NwDst = 5,
    SymmetricL3 = 6,
}

/// Algorithm that maps a hash to a link, `NX_MP_ALG_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u16)]
#[allow(missing_docs, reason = "named as in text")]
pub enum MultipathAlgorithm {
    ModuloN = 0,
    HashThreshold = 1,
    Hrw = 2,
    IterHash = 3,
}

/// Selects a link by a hash, `multipath(...)`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct MultipathAction {
    /// Fields that the hash covers.
    pub fields: HashFields,
    /// Basis of the hash: different values give independent hashes.
    pub basis: u16,
    /// Algorithm that maps the hash to a link.
    pub algorithm: MultipathAlgorithm,
    /// Number of the highest link, the number of links minus one.
    pub max_link: u16,
    /// Argument of the algorithm.
    pub arg: u32,
    /// Bits to write the link number to.
    pub dst: Subfield,
}

/// Selects a port: `bundle(...)`, or `bundle_load(...)` if there is a `dst`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct BundleAction {
    /// True if a hash selects among the ports that are up (`hrw`); false for the first port that is up
    /// (`active_backup`).
    pub is_hrw: bool,
    /// Fields that the hash covers.
    pub fields: HashFields,
    /// Basis of the hash: different values give independent hashes.
    pub basis: u16,
    /// Ports to select from.
    pub members: Vec<PortNo>,
    /// Bits to write the port number to; `None` to output to the port.
    pub dst: Option<Subfield>,
}

/// Adds a flow entry built from the packet, `learn(...)`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "as in the flow-mod")]
pub struct LearnAction {
    pub idle_timeout: u16,
    pub hard_timeout: u16,
    pub priority: u16,
    pub cookie: u64,
    /// Flags, a set of `NX_LEARN_F_*`.
    pub flags: u16,
    pub table: TableId,
    /// Idle time-out in seconds after a TCP packet with FIN or RST.
    pub fin_idle_timeout: u16,
    /// Hard time-out in seconds after a TCP packet with FIN or RST.
    pub fin_hard_timeout: u16,
    /// Parts of the match and the actions.
    pub specs: Vec<LearnSpec>,
}

/// A part of a learned flow entry's match or actions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct LearnSpec {
    /// Source of the value.
    pub src: LearnSrc,
    /// Destination of the value in the new entry.
    pub dst: LearnDst,
    /// Width in bits of source and destination.
    pub bits: u16,
}

/// Source of a value in a learned flow entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum LearnSrc {
    /// Bits of the packet that triggers the action.
    Field(Subfield),
    /// A value that is constant.
    Value(#[serde(serialize_with = "super::wide::value")] u128),
}

/// Destination of a value in a learned flow entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum LearnDst {
    /// Bits of a field in the match.
    Match(Subfield),
    /// Bits of a field that an action of the new entry writes.
    Load(Subfield),
    /// Port number of an output action of the new entry.
    Output,
}

impl NxAction {
    /// Wraps the Nicira action in an [`Action`].
    pub fn into_action(self) -> Action {
        Action::Nx(Box::new(self))
    }

    /// Returns true if running the action looks the packet up in tables, directly or inside a clone. Such actions
    /// need the packet's action set.
    pub fn looks_up(&self) -> bool {
        match self {
            NxAction::Resubmit { .. } => true,
            NxAction::Clone(actions) => actions.iter().any(|action| matches!(action, Action::Nx(nx) if nx.looks_up())),
            _ => false,
        }
    }
}

impl ControllerAction {
    /// Returns an action that sends `max_len` bytes to the controllers with number 0, the number of those that set
    /// none.
    pub fn new(max_len: u16) -> ControllerAction {
        let (reason, userdata) = (RequestedReason::DEFAULT, Bytes::default());
        ControllerAction { max_len, id: 0, reason, userdata, pause: false }
    }
}
