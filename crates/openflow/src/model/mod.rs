//! OpenFlow messages, free of wire versions.
//!
//! A message is what OpenFlow 1.3.5 says it is; what only 1.0 has is there too, and the codec of each version maps to and
//! from these types (1.0's `nw_src` is `ipv4_src` or `arp_spa`, its actions are one apply-actions instruction, ...).
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
pub mod packet_io;
pub mod port;
pub mod property;
pub mod queue;
pub mod role;
pub mod stats;
pub mod status;
mod wide;

pub use action::{Action, Encap, Instruction, NshHeader, NshTlv, Subfield};
pub use config::SwitchConfig;
pub use error::{ErrorMessage, ErrorType};
pub use features::FeaturesReply;
pub use flow::{FlowCommand, FlowFlags, FlowMod, FlowRemoved, FlowRemovedReason, TableId};
pub use group::{BucketId, GroupId};
pub use matching::{Match, MatchField};
pub use meter::MeterId;
pub use multipart::{MultipartReply, MultipartRequest};
pub use nicira::{NxAction, NxMessage};
pub use packet_io::{BufferId, PacketIn, PacketInReason, PacketOut};
pub use port::PortDesc;
pub use weir_packet::PortNo;

use serde::Serialize;

/// A wire version of OpenFlow, by its number in the header.
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

/// A message: its transaction id, and what it says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Message {
    /// Transaction id; a reply carries its request's.
    pub xid: u32,
    /// What it says.
    pub body: Body,
}

/// What a message says.
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
    /// 1.4.
    RoleStatus(status::RoleStatus),
    /// 1.4.
    TableStatus(status::TableStatus),
    /// 1.4: another controller's group-mod or meter-mod, as it came.
    RequestForward(Box<Message>),
    /// 1.4; in 1.3 the Open Networking Foundation's extension.
    BundleControl(bundle::BundleControl),
    /// 1.4; in 1.3 the Open Networking Foundation's extension.
    BundleAdd(bundle::BundleAdd),
    /// 1.5.
    ControllerStatus(status::ControllerStatus),
    /// One of Nicira's messages.
    Nx(Box<nicira::NxMessage>),
}

/// The first message of either end (OpenFlow 1.3.5, 7.5.1).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Default)]
pub struct Hello {
    /// Version numbers the sender speaks, from its bitmap element; none when it sent no bitmap: then it speaks the
    /// version of the header and, presumably, those below.
    pub versions: Option<Vec<u8>>,
}

/// A message, multipart body or other extension of an experimenter, not looked into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Experimenter {
    /// Whose it is: an IEEE OUI, or a number the Open Networking Foundation gave out.
    pub id: u32,
    /// The experimenter's type number; absent where the version has none (1.0's vendor message): then it is in `data`.
    pub kind: Option<u32>,
    /// What follows.
    pub data: Bytes,
}

/// Bytes that JSON shows as hexadecimal text.
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

    /// `1.0`, `1.3`, `1.4` or `1.5`.
    pub const fn name(self) -> &'static str {
        match self {
            Version::V10 => "1.0",
            Version::V13 => "1.3",
            Version::V14 => "1.4",
            Version::V15 => "1.5",
        }
    }

    /// The version of a number in a header.
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
