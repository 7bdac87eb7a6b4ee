//! Defines the test messages that both 1.0 and 1.3 have.
use super::*;

/// Returns messages of every type, ordered by type number.
pub(super) fn common(version: Version) -> Vec<Body> {
    let parts = [channel(version), packets_and_news(version), flow_mods(), requests(), replies(version)];
    parts.into_iter().flatten().collect()
}

/// Returns messages about the channel and the configuration.
fn channel(version: Version) -> Vec<Body> {
    vec![
        Body::EchoRequest(vec![].into()),
        Body::EchoReply(b"weir".to_vec().into()),
        error(vec![version as u8, 14, 0, 80, 0, 0, 0, 5], FlowModFailed::TableFull),
        error(vec![version as u8, 2, 0, 8, 0, 0, 0, 5], FlowModFailed::Overlap),
        error(b"versions differ".to_vec(), HelloFailed::Incompatible),
        Body::FeaturesRequest,
        Body::GetConfigRequest,
        Body::GetConfigReply(SwitchConfig { flags: 1, miss_send_len: 128 }),
        Body::SetConfig(SwitchConfig { flags: 0, miss_send_len: 0xffff }),
    ]
}

/// Returns packet-ins, packet-outs, and other asynchronous messages.
fn packets_and_news(version: Version) -> Vec<Body> {
    let flow_removed = |reason, nanoseconds| FlowRemoved {
        cookie: 9,
        priority: 100,
        reason,
        table: TableId(u8::from(version == Version::V13)),
        duration_sec: 61,
        duration_nsec: nanoseconds,
        idle_timeout: 60,
        hard_timeout: 0,
        packet_count: 1,
        byte_count: 98,
        more: OxsExtraStats::default(),
        matching: flow("tcp,in_port=1,tp_dst=80 actions=drop").matching,
    };
    let out = |buffer: Option<u32>, data: Vec<u8>| PacketOut {
        buffer_id: buffer.map(BufferId),
        in_port: PortNo::CONTROLLER,
        matching: Match::any(),
        actions: vec![Action::output(PortNo::FLOOD), Action::output(PortNo(4))],
        data: data.into(),
    };
    vec![
        Body::PacketIn(packet_in(ping(), version)),
        Body::PacketIn(PacketIn {
            buffer_id: Some(BufferId(5)),
            reason: PacketInReason::Action,
            ..packet_in(arp(), version)
        }),
        Body::PacketIn(PacketIn { total_len: 1500, ..packet_in(labelled(), version) }),
        Body::PacketIn(packet_in(tagged_syn(), version)),
        Body::FlowRemoved(flow_removed(FlowRemovedReason::IdleTimeout, 250_000_000)),
        Body::FlowRemoved(flow_removed(FlowRemovedReason::Delete, 1)),
        Body::PortStatus(PortStatus { reason: PortStatusReason::Add, desc: port(3, version) }),
        Body::PortStatus(PortStatus { reason: PortStatusReason::Delete, desc: port(3, version) }),
        Body::PacketOut(out(Some(7), vec![])),
        Body::PacketOut(out(None, ping())),
    ]
}

/// Returns flow-mods of several kinds.
fn flow_mods() -> Vec<Body> {
    vec![
        Body::FlowMod(flow("actions=drop")),
        Body::FlowMod(flow("priority=5,ip,nw_src=10.0.0.0/8,nw_tos=32 actions=1,controller:128,LOCAL,in_port,all")),
        Body::FlowMod(flow(
            "idle_timeout=3,hard_timeout=4,cookie=7,send_flow_rem,check_overlap,in_port=2 actions=flood",
        )),
        Body::FlowMod(flow("dl_vlan=5,dl_vlan_pcp=3,dl_src=2:0:0:0:0:1,dl_dst=2:0:0:0:0:2 actions=strip_vlan,normal")),
        Body::FlowMod(flow("dl_vlan=0xffff,dl_type=0x88cc actions=table")),
        Body::FlowMod(flow("arp,arp_op=1,arp_spa=10.0.0.0/24,arp_tpa=10.0.0.1 actions=controller")),
        Body::FlowMod(flow("icmp,icmp_type=8,icmp_code=0 actions=1")),
        Body::FlowMod(flow("udp,tp_src=68,tp_dst=67 actions=mod_dl_src:2:0:0:0:0:9,2")),
        Body::FlowMod(FlowMod { buffer_id: Some(BufferId(0x10)), ..flow("actions=2") }),
        Body::FlowMod(FlowMod { out_port: PortNo(3), ..FlowMod::delete_all() }),
        Body::FlowMod(FlowMod { priority: 7, ..delete("table=0,in_port=3", FlowCommand::DeleteStrict) }),
    ]
}

/// Returns other changes, and requests.
fn requests() -> Vec<Body> {
    vec![
        Body::PortMod(PortMod {
            port_no: PortNo(3),
            hw_addr: MacAddr([2, 0, 0, 0, 0, 7]),
            config: 1,
            mask: 0b101,
            advertise: 0,
            properties: vec![],
        }),
        Body::BarrierRequest,
        Body::BarrierReply,
        Body::QueueGetConfigRequest(PortNo(1)),
        request(RequestBody::Desc),
        request(RequestBody::Flow(FlowRequest::all())),
        request(RequestBody::Flow(FlowRequest {
            table: TableId(0),
            out_port: PortNo(2),
            matching: flow("tcp,tp_dst=80 actions=drop").matching,
            ..FlowRequest::all()
        })),
        request(RequestBody::Aggregate(FlowRequest::all())),
        request(RequestBody::Table),
        request(RequestBody::PortStats(PortNo::ANY)),
        request(RequestBody::Queue { port: PortNo::ANY, queue: ALL_QUEUES }),
        request(RequestBody::Queue { port: PortNo(1), queue: 2 }),
    ]
}

/// Returns statistics and descriptions.
fn replies(version: Version) -> Vec<Body> {
    let stats = |number, count| PortStats {
        port_no: PortNo(number),
        rx_packets: count,
        tx_packets: 2,
        rx_bytes: 3,
        tx_bytes: 4,
        rx_dropped: 5,
        tx_dropped: 6,
        rx_errors: 7,
        tx_errors: 8,
        rx_frame_err: 9,
        rx_over_err: u64::MAX,
        rx_crc_err: 10,
        collisions: 11,
        duration_sec: if version == Version::V13 { 5 } else { 0 },
        duration_nsec: 0,
        properties: vec![],
    };
    let desc = SwitchDesc {
        mfr_desc: "maker".into(),
        hw_desc: "board".into(),
        sw_desc: "weir".into(),
        serial_num: "1".into(),
        dp_desc: "s1".into(),
    };
    let queue = |queue| QueueStats {
        port: PortNo(1),
        queue,
        tx_bytes: 3,
        tx_packets: 2,
        tx_errors: u64::MAX,
        duration_sec: 0,
        duration_nsec: 0,
        properties: vec![],
    };
    vec![
        reply(ReplyBody::Desc(desc)),
        reply(ReplyBody::Flow(vec![])),
        reply(ReplyBody::Flow(vec![
            flow_stats("actions=drop"),
            flow_stats("priority=9,cookie=3,idle_timeout=60,ip,nw_dst=10.0.0.1 actions=2,3"),
        ])),
        reply(ReplyBody::Aggregate(AggregateStats { packet_count: 1, byte_count: 2, flow_count: 3 })),
        reply(ReplyBody::PortStats(vec![stats(1, 1), stats(10, u64::MAX), stats(PortNo::LOCAL.0, 0)])),
        reply(ReplyBody::Queue(vec![queue(1), queue(20)])),
    ]
}
