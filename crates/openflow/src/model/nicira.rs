//! Nicira's extensions: the messages and actions that Open vSwitch added to OpenFlow, as its tools and controllers use them.
use super::flow::{FlowMod, FlowRemoved};
use super::packet_io::PacketIn;
use super::role::{AsyncConfig, RoleMessage};
use super::{Action, Bytes, PortNo, Subfield, TableId};
use serde::Serialize;

/// Nicira's number as an experimenter (1.0: vendor).
pub const NICIRA: u32 = 0x0000_2320;

/// Most nesting of what is inside `clone(...)`, on the wire and as text.
pub const MAX_CLONES: usize = 16;

/// A message of Nicira's. In 1.0 they carry what only later versions have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum NxMessage {
    /// How flow entries are told to this controller (1.0).
    SetFlowFormat(FlowFormat),
    /// Whether the high byte of a flow-mod's command is its table (1.0).
    FlowModTableId(bool),
    /// A flow-mod whose match is a list of fields (1.0).
    FlowMod(FlowMod),
    /// A flow-removed whose match is a list of fields (1.0).
    FlowRemoved(FlowRemoved),
    /// 1.0's role request.
    RoleRequest(RoleMessage),
    /// 1.0's role reply.
    RoleReply(RoleMessage),
    /// How packets are told to this controller.
    SetPacketInFormat(PacketInFormat),
    /// A packet-in with the pipeline's fields (1.0).
    PacketIn(PacketIn),
    /// A packet-in with properties.
    PacketIn2(PacketIn2),
    /// Which messages of the switch's own accord this controller gets (1.0).
    SetAsync(AsyncConfig),
    /// The number by which the action `controller(id=...)` means this controller.
    SetControllerId(u16),
    /// Ends the flow monitor of this number (1.0 and 1.3).
    FlowMonitorCancel(u32),
    /// Flow monitors' updates are left out from here on (1.0 and 1.3).
    FlowMonitorPaused,
    /// Flow monitors' updates are complete again from here on (1.0 and 1.3).
    FlowMonitorResumed,
}

/// `NXFF_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum FlowFormat {
    /// 1.0's own.
    OpenFlow10,
    /// Lists of fields.
    Nxm,
    /// No such format.
    Unknown(u32),
}

/// `NXPIF_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum PacketInFormat {
    /// The version's own.
    Standard,
    /// [`NxMessage::PacketIn`].
    Nxt,
    /// [`NxMessage::PacketIn2`].
    Nxt2,
    /// No such format.
    Unknown(u32),
}

/// A packet-in with properties: what [`PacketIn`] says, and what the action says that sent it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PacketIn2 {
    /// The packet.
    pub packet: PacketIn,
    /// What the entry's action says to the controller.
    pub userdata: Bytes,
}

/// An action of Nicira's that no version has of its own.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub enum NxAction {
    /// Looks the packet up in a table, as if it had come in on a port, runs what it finds there, and goes on.
    Resubmit {
        /// The port, `IN_PORT` for the packet's own.
        port: PortNo,
        /// The table; none for the one that the action is in.
        table: Option<TableId>,
    },
    /// Writes bits of a field.
    Load {
        /// Which.
        dst: Subfield,
        /// What.
        value: u64,
    },
    /// Sets the tunnel id.
    SetTunnel {
        /// To what.
        id: u64,
        /// Whether it came in 64 bits.
        wide: bool,
    },
    /// Undoes set-queue.
    PopQueue,
    /// Nothing: says something to people.
    Note(Bytes),
    /// No further actions.
    Exit,
    /// Decrements the TTL; if it is used up, the controllers of these numbers are told.
    DecTtl(Vec<u16>),
    /// Picks a link by a hash.
    Multipath(Multipath),
    /// Picks a port by a hash or by whether it is up.
    Bundle(Bundle),
    /// Outputs to the port that a field holds.
    OutputReg {
        /// The field.
        src: Subfield,
        /// Bytes of the packet if it goes to the controller.
        max_len: u16,
    },
    /// Adds a flow entry made of the packet.
    Learn(Learn),
    /// Shortens the entry's time-outs when TCP says FIN or RST.
    FinTimeout {
        /// Seconds; 0 for no change.
        idle: u16,
        /// Seconds; 0 for no change.
        hard: u16,
    },
    /// Sends the packet to controllers.
    Controller(ControllerAction),
    /// Writes bits of the metadata (1.0).
    WriteMetadata {
        /// What.
        metadata: u64,
        /// Which bits.
        mask: u64,
    },
    /// Keeps bits of a field on the packet's stack.
    Push(Subfield),
    /// Writes bits of a field from the packet's stack.
    Pop(Subfield),
    /// Outputs the packet's first bytes.
    OutputTrunc {
        /// Where.
        port: PortNo,
        /// How many.
        max_len: u32,
    },
    /// Runs actions on a copy of the packet.
    Clone(Vec<Action>),
    /// Writes whether the packet is longer than `length` into one bit.
    CheckLarger {
        /// Bytes, without the Ethernet header.
        length: u16,
        /// The bit.
        dst: Subfield,
    },
}

/// `controller(...)`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct ControllerAction {
    /// Bytes of the packet that go along.
    pub max_len: u16,
    /// Which controllers: those that gave themselves this number.
    pub id: u16,
    /// `OFPR_*`.
    pub reason: u8,
    /// What to say to the controller.
    pub userdata: Bytes,
    /// Whether the packet waits for the controller to resume it.
    pub pause: bool,
}

/// `NX_HASH_FIELDS_*`: what a hash is made of.
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

/// `NX_MP_ALG_*`: how a hash becomes a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[repr(u16)]
#[allow(missing_docs, reason = "named as in text")]
pub enum MultipathAlgorithm {
    ModuloN = 0,
    HashThreshold = 1,
    Hrw = 2,
    IterHash = 3,
}

/// `multipath(...)`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Multipath {
    /// What is hashed.
    pub fields: HashFields,
    /// Makes this hash differ from others.
    pub basis: u16,
    /// How a link is found.
    pub algorithm: MultipathAlgorithm,
    /// The highest link, one less than there are.
    pub max_link: u16,
    /// The algorithm's argument.
    pub arg: u32,
    /// Where the link's number is written.
    pub dst: Subfield,
}

/// `bundle(...)`, and `bundle_load(...)` when it has a `dst`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Bundle {
    /// Whether a hash picks among the ports that are up (`hrw`), or the first of them is taken (`active_backup`).
    pub is_hrw: bool,
    /// What is hashed.
    pub fields: HashFields,
    /// Makes this hash differ from others.
    pub basis: u16,
    /// The ports.
    pub members: Vec<PortNo>,
    /// Where the port's number is written, instead of outputting to it.
    pub dst: Option<Subfield>,
}

/// `learn(...)`: the flow entry it adds.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
#[allow(missing_docs, reason = "as in the flow-mod")]
pub struct Learn {
    pub idle_timeout: u16,
    pub hard_timeout: u16,
    pub priority: u16,
    pub cookie: u64,
    /// `NX_LEARN_F_*`.
    pub flags: u16,
    pub table: TableId,
    /// Idle time-out once TCP says FIN or RST.
    pub fin_idle_timeout: u16,
    /// Hard time-out once TCP says FIN or RST.
    pub fin_hard_timeout: u16,
    /// Its match and actions.
    pub specs: Vec<LearnSpec>,
}

/// One part of a learned flow entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub struct LearnSpec {
    /// What goes in.
    pub src: LearnSrc,
    /// Where it goes.
    pub dst: LearnDst,
    /// Bits of both.
    pub bits: u16,
}

/// Where a part of a learned flow entry comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum LearnSrc {
    /// From the packet.
    Field(Subfield),
    /// The same for every packet.
    Value(#[serde(serialize_with = "super::wide::value")] u128),
}

/// Where a part of a learned flow entry goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum LearnDst {
    /// Into the match.
    Match(Subfield),
    /// Into an action that writes it.
    Load(Subfield),
    /// Into an action that outputs to that port.
    Output,
}

impl NxAction {
    /// As an action.
    pub fn into_action(self) -> Action {
        Action::Nx(Box::new(self))
    }

    /// Whether running it looks packets up in tables, so that the action set is needed.
    pub fn looks_up(&self) -> bool {
        match self {
            NxAction::Resubmit { .. } => true,
            NxAction::Clone(actions) => actions.iter().any(|action| matches!(action, Action::Nx(nx) if nx.looks_up())),
            _ => false,
        }
    }
}

impl ControllerAction {
    /// Sends `max_len` bytes to the controllers without a number of their own.
    pub fn new(max_len: u16) -> ControllerAction {
        ControllerAction { max_len, id: 0, reason: 1, userdata: Bytes::default(), pause: false }
    }
}
