//! Defines test messages: at least one of every type, in every version.
mod common;
mod groups_and_meters;
mod newer;
mod v10;
mod v13;

pub(crate) use newer::{bundles, v14, v15};
pub(crate) use v10::v10;
pub(crate) use v13::v13;

use weir_openflow::model::config::TableMod;
use weir_openflow::model::error::{BadMatch, ErrorMessage, FlowModFailed, HelloFailed};
use weir_openflow::model::flow::FlowRemoved;
use weir_openflow::model::group::{Bucket, GroupCommand, GroupDesc, GroupFeatures, GroupKind, GroupMod, GroupStats};
use weir_openflow::model::meter::{Band, BandKind, MeterCommand, MeterConfig, MeterFeatures, MeterMod, MeterStats};
use weir_openflow::model::multipart::{
    AggregateStats, FeatureTypeId, FlowRequest, FlowStats, MultipartReply, MultipartRequest, OxmId, ReplyBody,
    RequestBody, SwitchDesc, TableFeatures, TableFeaturesCommand, TableProperty, TableStats,
};
use weir_openflow::model::port::{PortMod, PortStats, PortStatus, PortStatusReason};
use weir_openflow::model::queue::{ALL_QUEUES, QueueConfig, QueueConfigReply, QueueProperty, QueueStats};
use weir_openflow::model::role::{AsyncConfig, Role, RoleMessage};
use weir_openflow::model::stats::OxsExtraStats;
use weir_openflow::model::{
    Action, ActionType, BucketId, BufferId, FeaturesReply, FlowCommand, FlowFlags, FlowMod, FlowRemovedReason, GroupId,
    Hello, InstructionType, Match, MeterId, OxmClass, PacketIn, PacketInReason, PacketOut, PortDesc, SwitchConfig,
    TableId,
};
use weir_openflow::{Body, Version, text};
use weir_packet::{Field, MacAddr, PortNo};

fn flow(text: &str) -> FlowMod {
    text::parse_flow(text, FlowCommand::Add).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn delete(text: &str, command: FlowCommand) -> FlowMod {
    text::parse_flow(text, command).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn port(number: u32, version: Version) -> PortDesc {
    let speed = |kbps| if version == Version::V10 { 0 } else { kbps };
    PortDesc {
        port_no: PortNo(number),
        hw_addr: MacAddr([2, 0, 0, 0, 0, 7]),
        name: format!("eth{number}"),
        config: 0b100_0001,
        state: 1,
        curr: 0b10_1000_0100_0000,
        advertised: 0,
        supported: 0b10_1000_0010_0000,
        peer: 0b1000,
        curr_speed: speed(10_000_000),
        max_speed: speed(40_000_000),
        properties: vec![],
    }
}

/// Returns an ICMP echo request, from the Ethernet header on.
fn ping() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0x66, 0xde];
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 8, 0, 0xf7, 0xfd, 0, 1, 0, 1]);
    frame
}

/// Returns a TCP SYN over IPv6 with two VLAN tags.
fn tagged_syn() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xa8, 0x60, 5, 0x81, 0, 0x20, 6, 0x86, 0xdd];
    frame.extend([0x60, 0xb0, 0, 9, 0, 20, 6, 63]);
    frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    frame.extend([0, 80, 0x1f, 0x90, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0x12, 0x34, 0, 0]);
    frame
}

/// Returns a packet with two MPLS label stack entries.
fn labelled() -> Vec<u8> {
    vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0x47, 0, 0, 0x5a, 64, 0, 0, 0x61, 63, 0x45, 0, 0, 20]
}

fn arp() -> Vec<u8> {
    let mut frame = vec![0xff; 6];
    frame.extend([2, 0, 0, 0, 0, 1, 8, 6, 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1]);
    frame.extend([0, 0, 0, 0, 0, 0, 10, 0, 0, 2]);
    frame
}

fn packet_in(data: Vec<u8>, version: Version) -> PacketIn {
    PacketIn {
        buffer_id: None,
        total_len: u16::try_from(data.len()).unwrap(),
        reason: PacketInReason::NoMatch,
        table: TableId(if version == Version::V13 { 3 } else { 0 }),
        cookie: if version == Version::V13 { 0x17 } else { u64::MAX },
        matching: Match::any().with(Field::InPort, 2_u32),
        data: data.into(),
    }
}

fn request(body: RequestBody) -> Body {
    Body::MultipartRequest(MultipartRequest { more: false, body })
}

fn reply(body: ReplyBody) -> Body {
    Body::MultipartReply(MultipartReply { more: false, body })
}

fn flow_stats(written: &str) -> FlowStats {
    let flow = flow(written);
    FlowStats {
        table: flow.table,
        duration_sec: 12,
        duration_nsec: 345_000_000,
        priority: flow.priority,
        idle_timeout: flow.idle_timeout,
        hard_timeout: flow.hard_timeout,
        flags: flow.flags,
        importance: 0,
        cookie: flow.cookie,
        packet_count: 7,
        byte_count: 4200,
        more: OxsExtraStats::default(),
        matching: flow.matching,
        instructions: flow.instructions,
    }
}

fn error(data: Vec<u8>, code: impl Into<weir_openflow::model::ErrorType>) -> Body {
    Body::Error(ErrorMessage { error: code.into(), data: data.into() })
}
