//! Defines OpenFlow messages independently of the wire version.
//!
//! Messages follow OpenFlow 1.3.5, with additions for what only other versions have. The codec of each version
//! translates to and from these types. For example, `nw_src` of 1.0 becomes `ipv4_src` or `arp_spa`, and the actions
//! of 1.0 become one apply-actions instruction.
pub mod action;
pub mod bundle;
pub mod config;
pub mod error;
pub mod features;
pub mod flow;
pub mod group;
pub mod matching;
pub mod meter;
pub mod monitor;
pub mod multipart;
pub mod nicira;
mod numbered;
pub mod packet_io;
pub mod port;
pub mod property;
pub mod queue;
pub mod role;
pub mod stats;
pub mod status;
mod wide;

pub use action::{Action, ActionType, EncapHeader, Instruction, InstructionType, NshHeader, NshTlv, Subfield};
pub use config::SwitchConfig;
pub use error::{ErrorMessage, ErrorType};
pub use features::FeaturesReply;
pub use flow::{FlowCommand, FlowFlags, FlowMod, FlowRemoved, FlowRemovedReason, TableId};
pub use group::{BucketId, GroupId};
pub use matching::{Match, MatchField, OxmClass};
pub use meter::MeterId;
pub use multipart::{MultipartReply, MultipartRequest};
pub use nicira::{NxAction, NxMessage};
pub use packet_io::{BufferId, PacketIn, PacketInReason, PacketOut};
pub use port::PortDesc;
pub use weir_packet::PortNo;

use serde::Serialize;

/// Wire version of OpenFlow. The discriminant is the version number in the header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, serde::Deserialize)]
#[repr(u8)]
pub enum Version {
    /// OpenFlow 1.0.
    #[serde(rename = "1.0")]
    V10 = 1,
    /// OpenFlow 1.3.
    #[serde(rename = "1.3")]
    V13 = 4,
    /// OpenFlow 1.4.
    #[serde(rename = "1.4")]
    V14 = 5,
    /// OpenFlow 1.5.
    #[serde(rename = "1.5")]
    V15 = 6,
}

/// An OpenFlow message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Transaction id; a reply carries the id of its request.
    pub xid: u32,
    /// Type and content of the message.
    pub body: Body,
}

/// Type and content of a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each is named by the specification (OpenFlow 1.3.5, 7.1)")]
pub enum Body {
    Hello(Hello),
    Error(ErrorMessage),
    EchoRequest(Bytes),
    EchoReply(Bytes),
    Experimenter(Experimenter),
    FeaturesRequest,
    FeaturesReply(FeaturesReply),
    GetConfigRequest,
    GetConfigReply(SwitchConfig),
    SetConfig(SwitchConfig),
    PacketIn(PacketIn),
    FlowRemoved(FlowRemoved),
    PortStatus(port::PortStatus),
    PacketOut(PacketOut),
    FlowMod(FlowMod),
    GroupMod(group::GroupMod),
    PortMod(port::PortMod),
    TableMod(config::TableMod),
    MultipartRequest(MultipartRequest),
    MultipartReply(MultipartReply),
    BarrierRequest,
    BarrierReply,
    QueueGetConfigRequest(PortNo),
    QueueGetConfigReply(queue::QueueConfigReply),
    RoleRequest(role::RoleMessage),
    RoleReply(role::RoleMessage),
    GetAsyncRequest,
    GetAsyncReply(role::AsyncConfig),
    SetAsync(role::AsyncConfig),
    MeterMod(meter::MeterMod),
    /// 1.4 and later.
    RoleStatus(status::RoleStatus),
    /// 1.4 and later.
    TableStatus(status::TableStatus),
    /// 1.4 and later: a copy of another controller's group-mod or meter-mod.
    RequestForward(Box<Message>),
    /// 1.4 and later; in 1.3 an extension of the Open Networking Foundation.
    BundleControl(bundle::BundleControl),
    /// 1.4 and later; in 1.3 an extension of the Open Networking Foundation.
    BundleAdd(bundle::BundleAdd),
    /// Only in OpenFlow 1.5.
    ControllerStatus(status::ControllerStatus),
    /// A message of Nicira's extensions.
    Nx(Box<nicira::NxMessage>),
}

/// Hello: the first message each side of a connection sends (OpenFlow 1.3.5, 7.5.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Hello {
    /// Version numbers the sender supports, from the version bitmap. `None` if the hello has no bitmap: the sender
    /// then supports the version in the header and, presumably, those below.
    pub versions: Option<Vec<u8>>,
}

/// An experimenter message, or an experimenter's multipart body, whose content weir does not interpret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Experimenter {
    /// Experimenter number: an IEEE OUI, or a number assigned by the Open Networking Foundation.
    pub id: u32,
    /// Experimenter type number. `None` in 1.0's vendor message, which has no such field; the number is then in
    /// `data`.
    pub kind: Option<u32>,
    /// Bytes after the experimenter number and type.
    pub data: Bytes,
}

/// Byte string, serialised as hexadecimal text.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Bytes(pub Vec<u8>);

impl Serialize for Bytes {
    fn serialize<S: serde::Serializer>(&self, into: S) -> Result<S::Ok, S::Error> {
        let text: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        into.serialize_str(&text)
    }
}

impl From<Vec<u8>> for Bytes {
    fn from(bytes: Vec<u8>) -> Self {
        Bytes(bytes)
    }
}

impl Version {
    /// Every version, lowest first.
    pub const ALL: [Version; 4] = [Version::V10, Version::V13, Version::V14, Version::V15];

    /// Name of the version: `1.0`, `1.3`, `1.4` or `1.5`.
    pub const fn name(self) -> &'static str {
        match self {
            Version::V10 => "1.0",
            Version::V13 => "1.3",
            Version::V14 => "1.4",
            Version::V15 => "1.5",
        }
    }

    /// Returns the version for a version number in a header; `None` if weir does not implement it.
    pub const fn from_number(number: u8) -> Option<Version> {
        match number {
            1 => Some(Version::V10),
            4 => Some(Version::V13),
            5 => Some(Version::V14),
            6 => Some(Version::V15),
            _ => None,
        }
    }
}

impl std::str::FromStr for Version {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let named = Version::ALL.into_iter().find(|version| version.name() == text);
        named.ok_or_else(|| format!("found `{text}`, expected 1.0, 1.3, 1.4 or 1.5"))
    }
}
