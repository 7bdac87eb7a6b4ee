//! Prints messages in the format of `ovs-ofctl ofp-print`.
//!
//! The layout is that of Open vSwitch 3.1 for every message that it prints. Open vSwitch refuses some messages that
//! weir decodes: experimenter messages, actions, bands and fields that it does not know. They are printed with their
//! number and bytes.
pub(super) mod error;
pub(super) mod flow;
mod frame;
pub(super) mod group;
pub(super) mod meter;
mod names;
mod newer;
mod nicira;
mod packet;
mod port;
mod queue;
mod shape;
mod switch;
mod table;
mod table_features;
mod table_names;

use crate::codec::{HEADER_BYTES, MessageHeader, decode};
use crate::model::multipart::{ReplyBody, RequestBody};
use crate::model::{Body, Message, Version};
use std::fmt::Write as _;

/// Amount of detail to print of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PrintDetail {
    /// Fields of the message, without the packets it carries.
    Fields,
    /// In addition, the headers of the packets it carries.
    Packets,
    /// In addition, the bytes of the packets it carries.
    Bytes,
}

/// Maximum number of lines after the first that are joined to one line.
const MAX_JOINED: usize = 20;

/// Maximum nesting depth to which messages quoted in error messages are decoded; deeper ones are printed as bytes.
const MAX_DEPTH: u8 = 4;

/// Parameters of printing, passed to all parts of a message.
#[derive(Clone, Copy)]
struct PrintContext {
    /// Wire version, for its spelling; 1.3 for versions that weir does not implement.
    version: Version,
    /// Number of the wire version.
    number: u8,
    detail: PrintDetail,
    /// Number of further levels of quoted messages to decode.
    depth: u8,
}

/// Prints a message that had `version` in its header (hello and error messages may have any version). The text ends
/// with a line break.
pub fn print_message(message: &Message, version: u8, detail: PrintDetail) -> String {
    print_nested(message, version, detail, MAX_DEPTH)
}

/// Prints the bytes of one message, valid or not. The text ends with a line break.
pub fn print_bytes(bytes: &[u8], detail: PrintDetail) -> String {
    print_bytes_nested(bytes, detail, MAX_DEPTH)
}

/// Prints the bytes of one message, valid or not, on one line without a line break. The lines of [`print_bytes`] are
/// joined with `; `, without dumps of bytes, and after [`MAX_JOINED`] of them it says how many are left out.
pub fn print_bytes_line(bytes: &[u8], detail: PrintDetail) -> String {
    let text = print_bytes(bytes, detail);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut joined = lines.next().unwrap_or_default().to_owned();
    let mut left_out = 0;
    for (number, line) in lines.filter(|line| !is_dump(line)).enumerate() {
        if number >= MAX_JOINED {
            left_out += 1;
            continue;
        }
        joined.push_str(if joined.ends_with(':') { " " } else { "; " });
        joined.push_str(line);
    }
    if left_out > 0 {
        let _ = write!(joined, "; and {left_out} more lines");
    }
    joined
}

/// Returns true for a line of [`shape::hex_dump`].
fn is_dump(line: &str) -> bool {
    line.split_once("  ").is_some_and(|(at, _)| at.len() == 8 && at.bytes().all(|byte| byte.is_ascii_hexdigit()))
}

fn print_nested(message: &Message, version: u8, detail: PrintDetail, depth: u8) -> String {
    let show =
        PrintContext { version: Version::from_number(version).unwrap_or(Version::V13), number: version, detail, depth };
    let name = names::of_body(&message.body, show.version);
    let mut text = names::head(&name, version, message.xid);
    text.push_str(&body(&message.body, show));
    // A message without content ends at the colon.
    text.truncate(text.trim_end_matches(['\n', ' ']).len());
    text.push('\n');
    text
}

fn print_bytes_nested(bytes: &[u8], detail: PrintDetail, depth: u8) -> String {
    let Some(header) = MessageHeader::read(bytes) else {
        return match bytes.len() {
            0 => "OpenFlow message is empty\n".into(),
            length => {
                let need = format!("OpenFlow message too short: {length} bytes of at least {HEADER_BYTES}\n");
                need + &shape::hex_dump(bytes)
            }
        };
    };
    let length = usize::from(header.length);
    let head = names::head(&names::of_bytes(header, bytes), header.version, header.xid);
    if length > bytes.len() {
        // Bytes with an unknown version are probably not a message, so no head is printed.
        let head = if Version::from_number(header.version).is_some() { head + "\n" } else { String::new() };
        let note = format!("{head}(***truncated to {} bytes from {length}***)\n", bytes.len());
        return note + &shape::hex_dump(bytes);
    }
    if length < bytes.len() {
        let note = format!("{head}\n(***only uses {length} bytes out of {}***)\n", bytes.len());
        return note + &shape::hex_dump(bytes);
    }
    match decode(bytes) {
        Ok(message) => print_nested(&message, header.version, detail, depth),
        Err(wrong) => {
            let name = error::name(wrong.error);
            format!("{head} ***decode error: {name}*** {wrong}\n{}", shape::hex_dump(bytes))
        }
    }
}

/// Prints the content of a message, after the colon of the head.
fn body(body: &Body, show: PrintContext) -> String {
    match body {
        Body::Hello(hello) => switch::hello(hello, show.number),
        Body::Error(message) => error::message(message, show),
        Body::EchoRequest(data) | Body::EchoReply(data) => {
            format!(" {} bytes of payload\n{}", data.0.len(), shape::hex_dump(&data.0))
        }
        Body::Experimenter(message) => switch::experimenter(message),
        Body::FeaturesReply(features) => switch::features(features, show),
        Body::GetConfigReply(config) | Body::SetConfig(config) => switch::config(config),
        Body::PacketIn(packet_in) => packet::packet_in(packet_in, show),
        Body::FlowRemoved(removed) => flow::removed(removed, show),
        Body::PortStatus(status) => port::status(status, show),
        Body::PacketOut(packet_out) => packet::packet_out(packet_out, show),
        Body::FlowMod(flow_mod) => flow::flow_mod(flow_mod, show),
        Body::GroupMod(group_mod) => group::group_mod(group_mod, show),
        Body::PortMod(port_mod) => port::port_mod(port_mod),
        Body::TableMod(table_mod) => table::table_mod(table_mod, show),
        Body::MultipartRequest(request) => more(request.more) + &self::request(&request.body, show),
        Body::MultipartReply(reply) => more(reply.more) + &self::reply(&reply.body, show),
        Body::QueueGetConfigRequest(port) => format!(" port={port}"),
        Body::QueueGetConfigReply(reply) => queue::config(reply),
        Body::RoleRequest(role) | Body::RoleReply(role) => switch::role(role),
        Body::GetAsyncReply(config) | Body::SetAsync(config) => switch::async_config(config, show),
        Body::MeterMod(meter_mod) => meter::meter_mod(meter_mod),
        Body::RoleStatus(status) => newer::role_status(status),
        Body::TableStatus(status) => newer::table_status(status),
        Body::RequestForward(request) => newer::forwarded(request, show),
        Body::BundleControl(control) => newer::bundle_control(control),
        Body::BundleAdd(add) => newer::bundle_add(add, show),
        Body::ControllerStatus(status) => newer::controller_status(status),
        Body::Nx(message) => nicira::body(message, show),
        Body::FeaturesRequest
        | Body::GetConfigRequest
        | Body::BarrierRequest
        | Body::BarrierReply
        | Body::GetAsyncRequest => String::new(),
    }
}

fn more(more: bool) -> String {
    if more { " flags=[more]".into() } else { String::new() }
}

fn request(body: &RequestBody, show: PrintContext) -> String {
    match body {
        RequestBody::Flow(request)
        | RequestBody::Aggregate(request)
        | RequestBody::NxFlow(request)
        | RequestBody::NxAggregate(request) => flow::request(request, show),
        RequestBody::PortStats(port) => format!(" port_no={port}"),
        RequestBody::Queue { port, queue } => queue::request(*port, *queue),
        RequestBody::Group(group) => format!(" group_id={}", super::flow::group_text(*group)),
        RequestBody::Meter(meter) | RequestBody::MeterConfig(meter) => format!(" meter={meter}"),
        RequestBody::TableFeatures(tables) => table_features::features(tables),
        RequestBody::Experimenter(message) => switch::experimenter(message),
        RequestBody::GroupDesc(group) => format!(" group_id={}", super::flow::group_text(*group)),
        RequestBody::PortDesc(port) => format!(" port={port}"),
        RequestBody::QueueDesc { port, queue } => queue::desc_request(*port, *queue),
        RequestBody::FlowCounters(request) => flow::request(request, show),
        RequestBody::FlowMonitor(monitors) => lines(monitors, |monitor| newer::monitor(monitor, show)),
        RequestBody::BundleFeatures(request) => newer::bundle_features_request(request),
        RequestBody::Desc
        | RequestBody::TableDesc
        | RequestBody::ControllerStatus
        | RequestBody::Table
        | RequestBody::GroupFeatures
        | RequestBody::MeterFeatures => String::new(),
    }
}

fn reply(body: &ReplyBody, show: PrintContext) -> String {
    match body {
        ReplyBody::Desc(desc) => switch::desc(desc),
        ReplyBody::Flow(entries) | ReplyBody::NxFlow(entries) => lines(entries, |entry| flow::stats(entry, show)),
        ReplyBody::Aggregate(stats) | ReplyBody::NxAggregate(stats) => flow::aggregate(stats),
        ReplyBody::Table(tables) => table::stats(tables, show),
        ReplyBody::PortStats(ports) => port::stats(ports, show),
        ReplyBody::Queue(queues) => queue::stats(queues, show),
        ReplyBody::Group(groups) => lines(groups, group::stats),
        ReplyBody::GroupDesc(groups) => lines(groups, |group| group::desc(group, show)),
        ReplyBody::GroupFeatures(features) => group::features(features),
        ReplyBody::Meter(meters) => lines(meters, meter::stats),
        ReplyBody::MeterConfig(meters) => lines(meters, |meter| meter::config(meter.meter, meter.flags, &meter.bands)),
        ReplyBody::MeterFeatures(features) => meter::features(features),
        ReplyBody::TableFeatures(tables) => table_features::features(tables),
        ReplyBody::PortDesc(ports) => format!("\n{}", port::descs(ports, show)),
        ReplyBody::TableDesc(tables) => tables.iter().map(table::desc).collect(),
        ReplyBody::QueueDesc(queues) => queue::descs(queues),
        ReplyBody::FlowMonitor(updates) => lines(updates, |update| newer::flow_update(update, show)),
        ReplyBody::FlowCounters(entries) => lines(entries, |entry| newer::flow_counters(entry, show)),
        ReplyBody::ControllerStatus(channels) => lines(channels, newer::controller_status),
        ReplyBody::BundleFeatures(features) => newer::bundle_features(features),
        ReplyBody::Experimenter(message) => switch::experimenter(message),
    }
}

/// Prints each item, preceded by a line break.
fn lines<T>(items: &[T], text: impl Fn(&T) -> String) -> String {
    items.iter().fold(String::new(), |mut lines, item| {
        let _ = write!(lines, "\n{}", text(item));
        lines
    })
}
