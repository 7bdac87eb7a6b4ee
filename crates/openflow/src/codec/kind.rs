//! Message types: their numbers and names, and the messages that have them. Those of 1.0 above flow-mod have other
//! numbers, which `v10` defines.
use crate::model::Body;

pub(crate) const HELLO: u8 = 0;
pub(crate) const ERROR: u8 = 1;
pub(crate) const ECHO_REQUEST: u8 = 2;
pub(crate) const ECHO_REPLY: u8 = 3;
/// Called "vendor" in 1.0.
pub(crate) const EXPERIMENTER: u8 = 4;
pub(crate) const FEATURES_REQUEST: u8 = 5;
pub(crate) const FEATURES_REPLY: u8 = 6;
pub(crate) const GET_CONFIG_REQUEST: u8 = 7;
pub(crate) const GET_CONFIG_REPLY: u8 = 8;
pub(crate) const SET_CONFIG: u8 = 9;
pub(crate) const PACKET_IN: u8 = 10;
pub(crate) const FLOW_REMOVED: u8 = 11;
pub(crate) const PORT_STATUS: u8 = 12;
pub(crate) const PACKET_OUT: u8 = 13;
pub(crate) const FLOW_MOD: u8 = 14;
/// Since 1.3, as the following.
pub(crate) const GROUP_MOD: u8 = 15;
pub(crate) const PORT_MOD: u8 = 16;
pub(crate) const TABLE_MOD: u8 = 17;
pub(crate) const MULTIPART_REQUEST: u8 = 18;
pub(crate) const MULTIPART_REPLY: u8 = 19;
pub(crate) const BARRIER_REQUEST: u8 = 20;
pub(crate) const BARRIER_REPLY: u8 = 21;
/// In 1.3 only; a multipart message since 1.4, as the reply.
pub(crate) const QUEUE_GET_CONFIG_REQUEST: u8 = 22;
pub(crate) const QUEUE_GET_CONFIG_REPLY: u8 = 23;
pub(crate) const ROLE_REQUEST: u8 = 24;
pub(crate) const ROLE_REPLY: u8 = 25;
pub(crate) const GET_ASYNC_REQUEST: u8 = 26;
pub(crate) const GET_ASYNC_REPLY: u8 = 27;
pub(crate) const SET_ASYNC: u8 = 28;
pub(crate) const METER_MOD: u8 = 29;
/// Since 1.4, as the following. [`holds_messages`](super::holds_messages) counts on numbers 32 to 34 being
/// request-forward, bundle control and bundle add.
pub(crate) const ROLE_STATUS: u8 = 30;
pub(crate) const TABLE_STATUS: u8 = 31;
pub(crate) const REQUESTFORWARD: u8 = 32;
pub(crate) const BUNDLE_CONTROL: u8 = 33;
pub(crate) const BUNDLE_ADD: u8 = 34;
/// Since 1.5.
pub(crate) const CONTROLLER_STATUS: u8 = 35;

/// Number of types, from 0 on, that are the same in all versions.
const SHARED: usize = 15;

/// Names of the types that are the same in all versions, indexed by number.
const NAMES: [&str; SHARED] = [
    "hello",
    "error",
    "echo request",
    "echo reply",
    "experimenter",
    "features request",
    "features reply",
    "get-config request",
    "get-config reply",
    "set-config",
    "packet-in",
    "flow-removed",
    "port-status",
    "packet-out",
    "flow-mod",
];

/// Returns the name of a message type for error messages. `later` has the version's names of the types from
/// [`GROUP_MOD`]'s number on.
pub(crate) fn name(kind: u8, later: &[&'static str]) -> &'static str {
    let kind = usize::from(kind);
    let name = if kind < SHARED { NAMES.get(kind) } else { later.get(kind - SHARED) };
    name.copied().unwrap_or("message")
}

/// Returns the type number of a message in 1.3 and later.
pub(crate) const fn of(body: &Body) -> u8 {
    match body {
        Body::Hello(_) => HELLO,
        Body::Error(_) => ERROR,
        Body::EchoRequest(_) => ECHO_REQUEST,
        Body::EchoReply(_) => ECHO_REPLY,
        Body::Experimenter(_) | Body::Nx(_) => EXPERIMENTER,
        Body::FeaturesRequest => FEATURES_REQUEST,
        Body::FeaturesReply(_) => FEATURES_REPLY,
        Body::GetConfigRequest => GET_CONFIG_REQUEST,
        Body::GetConfigReply(_) => GET_CONFIG_REPLY,
        Body::SetConfig(_) => SET_CONFIG,
        Body::PacketIn(_) => PACKET_IN,
        Body::FlowRemoved(_) => FLOW_REMOVED,
        Body::PortStatus(_) => PORT_STATUS,
        Body::PacketOut(_) => PACKET_OUT,
        Body::FlowMod(_) => FLOW_MOD,
        Body::GroupMod(_) => GROUP_MOD,
        Body::PortMod(_) => PORT_MOD,
        Body::TableMod(_) => TABLE_MOD,
        Body::MultipartRequest(_) => MULTIPART_REQUEST,
        Body::MultipartReply(_) => MULTIPART_REPLY,
        Body::BarrierRequest => BARRIER_REQUEST,
        Body::BarrierReply => BARRIER_REPLY,
        Body::QueueGetConfigRequest(_) => QUEUE_GET_CONFIG_REQUEST,
        Body::QueueGetConfigReply(_) => QUEUE_GET_CONFIG_REPLY,
        Body::RoleRequest(_) => ROLE_REQUEST,
        Body::RoleReply(_) => ROLE_REPLY,
        Body::GetAsyncRequest => GET_ASYNC_REQUEST,
        Body::GetAsyncReply(_) => GET_ASYNC_REPLY,
        Body::SetAsync(_) => SET_ASYNC,
        Body::MeterMod(_) => METER_MOD,
        Body::RoleStatus(_) => ROLE_STATUS,
        Body::TableStatus(_) => TABLE_STATUS,
        Body::RequestForward(_) => REQUESTFORWARD,
        Body::BundleControl(_) => BUNDLE_CONTROL,
        Body::BundleAdd(_) => BUNDLE_ADD,
        Body::ControllerStatus(_) => CONTROLLER_STATUS,
    }
}

/// Returns what a version lacks that has no message of a type.
pub(crate) const fn lacking(kind: u8) -> &'static str {
    match kind {
        GROUP_MOD => "groups",
        METER_MOD => "meters",
        TABLE_MOD => "table configuration",
        ROLE_REQUEST | ROLE_REPLY => "controller roles",
        GET_ASYNC_REQUEST | GET_ASYNC_REPLY | SET_ASYNC => "asynchronous configuration",
        QUEUE_GET_CONFIG_REQUEST | QUEUE_GET_CONFIG_REPLY => "queue configuration other than as queue descriptions",
        ROLE_STATUS => "role status",
        TABLE_STATUS => "table status",
        REQUESTFORWARD => "forwarded requests",
        BUNDLE_CONTROL | BUNDLE_ADD => "bundles",
        CONTROLLER_STATUS => "controller status",
        _ => "this message",
    }
}
