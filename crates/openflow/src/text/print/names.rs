//! Provides the names of messages, and the head of the first line.
use super::nicira;
use crate::codec::MessageHeader;
use crate::model::multipart::{ReplyBody, RequestBody};
use crate::model::{Body, Version};

/// Returns the head of a message's first line: `OFPT_HELLO (OF1.3) (xid=0x1):`. Version 1.0 is left out, as in
/// `ovs-ofctl`.
pub(super) fn head(name: &str, version: u8, xid: u32) -> String {
    let version = match version {
        1 => String::new(),
        2..=6 => format!(" (OF1.{})", version - 1),
        other => format!(" (OF 0x{other:02x})"),
    };
    format!("{name}{version} (xid={xid:#x}):")
}

/// Returns the name of a message.
pub(super) fn of_body(body: &Body, version: Version) -> String {
    let kind = match body {
        Body::Hello(_) => "HELLO",
        Body::Error(_) => "ERROR",
        Body::EchoRequest(_) => "ECHO_REQUEST",
        Body::EchoReply(_) => "ECHO_REPLY",
        Body::Experimenter(_) if version == Version::V10 => "VENDOR",
        Body::Experimenter(_) => "EXPERIMENTER",
        Body::FeaturesRequest => "FEATURES_REQUEST",
        Body::FeaturesReply(_) => "FEATURES_REPLY",
        Body::GetConfigRequest => "GET_CONFIG_REQUEST",
        Body::GetConfigReply(_) => "GET_CONFIG_REPLY",
        Body::SetConfig(_) => "SET_CONFIG",
        Body::PacketIn(_) => "PACKET_IN",
        Body::FlowRemoved(_) => "FLOW_REMOVED",
        Body::PortStatus(_) => "PORT_STATUS",
        Body::PacketOut(_) => "PACKET_OUT",
        Body::FlowMod(_) => "FLOW_MOD",
        Body::GroupMod(_) => "GROUP_MOD",
        Body::PortMod(_) => "PORT_MOD",
        Body::TableMod(_) => "TABLE_MOD",
        Body::MultipartRequest(request) if matches!(request.body, RequestBody::FlowMonitor(_)) => {
            return format!("{}_FLOW_MONITOR request", monitors_of(version));
        }
        Body::MultipartReply(reply) if matches!(reply.body, ReplyBody::FlowMonitor(_)) => {
            return format!("{}_FLOW_MONITOR reply", monitors_of(version));
        }
        Body::MultipartRequest(request) if is_nicira_request(&request.body) => {
            return format!("NXST_{} request", of_request(&request.body));
        }
        Body::MultipartReply(reply) if is_nicira_reply(&reply.body) => {
            return format!("NXST_{} reply", of_reply(&reply.body));
        }
        Body::MultipartRequest(request) => return format!("OFPST_{} request", of_request(&request.body)),
        Body::MultipartReply(reply) => return format!("OFPST_{} reply", of_reply(&reply.body)),
        Body::BarrierRequest => "BARRIER_REQUEST",
        Body::BarrierReply => "BARRIER_REPLY",
        Body::QueueGetConfigRequest(_) => "QUEUE_GET_CONFIG_REQUEST",
        Body::QueueGetConfigReply(_) => "QUEUE_GET_CONFIG_REPLY",
        Body::RoleRequest(_) => "ROLE_REQUEST",
        Body::RoleReply(_) => "ROLE_REPLY",
        Body::GetAsyncRequest => "GET_ASYNC_REQUEST",
        Body::GetAsyncReply(_) => "GET_ASYNC_REPLY",
        Body::SetAsync(_) => "SET_ASYNC",
        Body::MeterMod(_) => "METER_MOD",
        Body::RoleStatus(_) => "ROLE_STATUS",
        Body::TableStatus(_) => "TABLE_STATUS",
        Body::RequestForward(_) => "REQUESTFORWARD",
        Body::Nx(message) if version == Version::V13 && nicira::is_foundations(message) => {
            return nicira::name(message).replacen("NXT", "ONFT", 1);
        }
        Body::BundleControl(_) if version == Version::V13 => return "ONFT_BUNDLE_CONTROL".into(),
        Body::BundleControl(_) => "BUNDLE_CONTROL",
        Body::BundleAdd(_) if version == Version::V13 => return "ONFT_BUNDLE_ADD_MESSAGE".into(),
        Body::BundleAdd(_) => "BUNDLE_ADD_MESSAGE",
        Body::ControllerStatus(_) => "CONTROLLER_STATUS",
        Body::Nx(message) => return nicira::name(message).into(),
    };
    format!("OFPT_{kind}")
}

/// Returns the prefix for the multipart type of flow monitors in a version.
const fn monitors_of(version: Version) -> &'static str {
    match version {
        Version::V10 => "NXST",
        Version::V13 => "ONFST",
        _ => "OFPST",
    }
}

const fn is_nicira_request(body: &RequestBody) -> bool {
    matches!(body, RequestBody::NxFlow(_) | RequestBody::NxAggregate(_))
}

const fn is_nicira_reply(body: &ReplyBody) -> bool {
    matches!(body, ReplyBody::NxFlow(_) | ReplyBody::NxAggregate(_))
}

fn of_request(body: &RequestBody) -> &'static str {
    match body {
        RequestBody::Desc => "DESC",
        RequestBody::Flow(_) | RequestBody::NxFlow(_) => "FLOW",
        RequestBody::Aggregate(_) | RequestBody::NxAggregate(_) => "AGGREGATE",
        RequestBody::Table => "TABLE",
        RequestBody::PortStats(_) => "PORT",
        RequestBody::Queue { .. } => "QUEUE",
        RequestBody::Group(_) => "GROUP",
        RequestBody::GroupDesc(_) => "GROUP_DESC",
        RequestBody::GroupFeatures => "GROUP_FEATURES",
        RequestBody::Meter(_) => "METER",
        RequestBody::MeterConfig(_) => "METER_CONFIG",
        RequestBody::MeterFeatures => "METER_FEATURES",
        RequestBody::TableFeatures(_) => "TABLE_FEATURES",
        RequestBody::PortDesc(_) => "PORT_DESC",
        RequestBody::TableDesc => "TABLE_DESC",
        RequestBody::QueueDesc { .. } => "QUEUE_DESC",
        RequestBody::FlowMonitor(_) => "FLOW_MONITOR",
        RequestBody::FlowCounters(_) => "FLOW_STATS",
        RequestBody::ControllerStatus => "CONTROLLER_STATUS",
        RequestBody::BundleFeatures(_) => "BUNDLE_FEATURES",
        RequestBody::Experimenter(_) => "EXPERIMENTER",
    }
}

fn of_reply(body: &ReplyBody) -> &'static str {
    match body {
        ReplyBody::Desc(_) => "DESC",
        ReplyBody::Flow(_) | ReplyBody::NxFlow(_) => "FLOW",
        ReplyBody::Aggregate(_) | ReplyBody::NxAggregate(_) => "AGGREGATE",
        ReplyBody::Table(_) => "TABLE",
        ReplyBody::PortStats(_) => "PORT",
        ReplyBody::Queue(_) => "QUEUE",
        ReplyBody::Group(_) => "GROUP",
        ReplyBody::GroupDesc(_) => "GROUP_DESC",
        ReplyBody::GroupFeatures(_) => "GROUP_FEATURES",
        ReplyBody::Meter(_) => "METER",
        ReplyBody::MeterConfig(_) => "METER_CONFIG",
        ReplyBody::MeterFeatures(_) => "METER_FEATURES",
        ReplyBody::TableFeatures(_) => "TABLE_FEATURES",
        ReplyBody::PortDesc(_) => "PORT_DESC",
        ReplyBody::TableDesc(_) => "TABLE_DESC",
        ReplyBody::QueueDesc(_) => "QUEUE_DESC",
        ReplyBody::FlowMonitor(_) => "FLOW_MONITOR",
        ReplyBody::FlowCounters(_) => "FLOW_STATS",
        ReplyBody::ControllerStatus(_) => "CONTROLLER_STATUS",
        ReplyBody::BundleFeatures(_) => "BUNDLE_FEATURES",
        ReplyBody::Experimenter(_) => "EXPERIMENTER",
    }
}

/// Names of message types, indexed by number, of version 1.5 (OpenFlow 1.5.1, 7.1.1). 1.3 has the first 30, 1.4 all
/// but the last.
const TYPES: [&str; 36] = [
    "HELLO",
    "ERROR",
    "ECHO_REQUEST",
    "ECHO_REPLY",
    "EXPERIMENTER",
    "FEATURES_REQUEST",
    "FEATURES_REPLY",
    "GET_CONFIG_REQUEST",
    "GET_CONFIG_REPLY",
    "SET_CONFIG",
    "PACKET_IN",
    "FLOW_REMOVED",
    "PORT_STATUS",
    "PACKET_OUT",
    "FLOW_MOD",
    "GROUP_MOD",
    "PORT_MOD",
    "TABLE_MOD",
    "MULTIPART_REQUEST",
    "MULTIPART_REPLY",
    "BARRIER_REQUEST",
    "BARRIER_REPLY",
    "QUEUE_GET_CONFIG_REQUEST",
    "QUEUE_GET_CONFIG_REPLY",
    "ROLE_REQUEST",
    "ROLE_REPLY",
    "GET_ASYNC_REQUEST",
    "GET_ASYNC_REPLY",
    "SET_ASYNC",
    "METER_MOD",
    "ROLE_STATUS",
    "TABLE_STATUS",
    "REQUESTFORWARD",
    "BUNDLE_CONTROL",
    "BUNDLE_ADD_MESSAGE",
    "CONTROLLER_STATUS",
];

/// Names of multipart types, indexed by number (OpenFlow 1.5.1, 7.3.5). 1.0 has the first six, 1.3 fourteen, 1.4
/// seventeen.
const PARTS: [&str; 20] = [
    "DESC",
    "FLOW",
    "AGGREGATE",
    "TABLE",
    "PORT",
    "QUEUE",
    "GROUP",
    "GROUP_DESC",
    "GROUP_FEATURES",
    "METER",
    "METER_CONFIG",
    "METER_FEATURES",
    "TABLE_FEATURES",
    "PORT_DESC",
    "TABLE_DESC",
    "QUEUE_DESC",
    "FLOW_MONITOR",
    "FLOW_STATS",
    "CONTROLLER_STATUS",
    "BUNDLE_FEATURES",
];

/// Returns the name of a message that may be undecodable, from its header and, for multipart messages, the type after
/// it.
pub(super) fn of_bytes(header: MessageHeader, bytes: &[u8]) -> String {
    let unknown = || format!("OFPT_{}", header.kind);
    let kind = match (header.version, header.kind) {
        (1, 15) => "PORT_MOD",
        (1, 16) => "MULTIPART_REQUEST",
        (1, 17) => "MULTIPART_REPLY",
        (1, 18) => "BARRIER_REQUEST",
        (1, 19) => "BARRIER_REPLY",
        (1, 20) => "QUEUE_GET_CONFIG_REQUEST",
        (1, 21) => "QUEUE_GET_CONFIG_REPLY",
        (1, 4) => "VENDOR",
        (1, 22..) | (4, 30..) | (5, 35..) => return unknown(),
        (_, kind) => match TYPES.get(usize::from(kind)) {
            Some(name) => name,
            None => return unknown(),
        },
    };
    let part = bytes.get(8..10).map(|number| u16::from_be_bytes([number[0], number[1]]));
    match (kind.strip_prefix("MULTIPART_"), part) {
        (Some(way), Some(part)) => {
            let name = match part {
                0xffff => "EXPERIMENTER".to_owned(),
                part => PARTS.get(usize::from(part)).map_or_else(|| part.to_string(), |name| (*name).to_owned()),
            };
            format!("OFPST_{name} {}", way.to_lowercase())
        }
        _ => format!("OFPT_{kind}"),
    }
}
