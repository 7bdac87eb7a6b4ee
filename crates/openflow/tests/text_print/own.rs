//! One or more messages of every type, of 1.0 and 1.3.
use weir_openflow::model::config::TableMod;
use weir_openflow::model::error::{BadMatch, ErrorMessage, FlowModFailed, HelloFailed};
use weir_openflow::model::flow::FlowRemoved;
use weir_openflow::model::group::{Bucket, GroupDesc, GroupFeatures, GroupMod, GroupStats};
use weir_openflow::model::meter::{Band, BandKind, MeterConfig, MeterFeatures, MeterMod, MeterStats};
use weir_openflow::model::multipart::{
    AggregateStats, Desc, FlowRequest, FlowStats, MultipartReply, MultipartRequest, OxmId, ReplyBody, RequestBody,
    TableFeatures, TableProperty, TableStats, TypeId,
};
use weir_openflow::model::port::{PortMod, PortStats, PortStatus, PortStatusReason};
use weir_openflow::model::queue::{ALL_QUEUES, QueueConfig, QueueConfigReply, QueueProperty, QueueStats};
use weir_openflow::model::role::{AsyncConfig, Role, RoleMessage};
use weir_openflow::model::{
    Action, BufferId, FeaturesReply, FlowCommand, FlowFlags, FlowMod, FlowRemovedReason, GroupId, Hello, Match,
    MeterId, PacketIn, PacketInReason, PacketOut, PortDesc, SwitchConfig, TableId,
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
    let speed = |kbps| if version == Version::V13 { kbps } else { 0 };
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
    }
}

/// An ICMP echo request, from Ethernet on.
fn ping() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0, 0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0x66, 0xde];
    frame.extend([10, 0, 0, 1, 10, 0, 0, 2, 8, 0, 0xf7, 0xfd, 0, 1, 0, 1]);
    frame
}

/// A TCP SYN over IPv6 in two VLANs.
fn tagged_syn() -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xa8, 0x60, 5, 0x81, 0, 0x20, 6, 0x86, 0xdd];
    frame.extend([0x60, 0xb0, 0, 9, 0, 20, 6, 63]);
    frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    frame.extend([0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    frame.extend([0, 80, 0x1f, 0x90, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, 2, 0xff, 0xff, 0x12, 0x34, 0, 0]);
    frame
}

/// A labelled packet of two entries.
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
        cookie: flow.cookie,
        packet_count: 7,
        byte_count: 4200,
        matching: flow.matching,
        instructions: flow.instructions,
    }
}

fn error(data: Vec<u8>, code: impl Into<weir_openflow::model::ErrorType>) -> Body {
    Body::Error(ErrorMessage { error: code.into(), data: data.into() })
}

/// What both versions have.
fn common(version: Version) -> Vec<Body> {
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
        matching: flow("tcp,in_port=1,tp_dst=80 actions=drop").matching,
    };
    let out = |buffer: Option<u32>, data: Vec<u8>| PacketOut {
        buffer_id: buffer.map(BufferId),
        in_port: PortNo::CONTROLLER,
        actions: vec![Action::output(PortNo::FLOOD), Action::output(PortNo(4))],
        data: data.into(),
    };
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
    };
    let desc = Desc {
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
    };
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
        Body::PortMod(PortMod {
            port_no: PortNo(3),
            hw_addr: MacAddr([2, 0, 0, 0, 0, 7]),
            config: 1,
            mask: 0b101,
            advertise: 0,
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

pub(crate) fn v10() -> Vec<Body> {
    let table = |number, active| TableStats {
        table: TableId(number),
        name: format!("table{number}"),
        wildcards: 0x003f_ffff & !(1 << 1),
        max_entries: 1000,
        active_count: active,
        lookup_count: 7,
        matched_count: 3,
    };
    let mut bodies = common(Version::V10);
    bodies.extend([
        Body::Hello(Hello { versions: None }),
        Body::FeaturesReply(FeaturesReply {
            datapath_id: 0x1234,
            n_buffers: 256,
            n_tables: 2,
            auxiliary_id: 0,
            capabilities: 0xc7,
            actions: 0xfff,
            ports: vec![port(2, Version::V10), port(1, Version::V10), port(PortNo::LOCAL.0, Version::V10)],
        }),
        Body::FlowMod(flow("in_port=1 actions=mod_vlan_vid:5,mod_vlan_pcp:3,enqueue:2:7")),
        Body::FlowMod(flow(
            "ip actions=mod_nw_src:10.0.0.1,mod_nw_dst:10.0.0.2,mod_nw_tos:32,mod_tp_src:1,mod_tp_dst:2",
        )),
        Body::QueueGetConfigReply(QueueConfigReply {
            port: PortNo(1),
            queues: vec![QueueConfig { queue: 3, port: PortNo::ANY, properties: vec![QueueProperty::MinRate(505)] }],
        }),
        reply(ReplyBody::Table(vec![table(0, 1), table(1, 1), table(2, 0)])),
    ]);
    bodies
}

/// Table features of a table that goes to all behind it.
fn table_features(number: u8, name: &str) -> TableFeatures {
    let oxm = |field: Field, has_mask: bool| OxmId {
        class: 0x8000,
        number: field.oxm().unwrap(),
        has_mask,
        length: u8::try_from(field.bytes() << u8::from(has_mask)).unwrap(),
        experimenter: None,
    };
    let ids = |numbers: &[u16]| numbers.iter().map(|number| TypeId::Standard(*number)).collect::<Vec<_>>();
    let set = [Field::EthSrc, Field::EthDst, Field::VlanVid, Field::Ipv4Src, Field::TcpDst];
    let fields = || set.iter().map(|field| oxm(*field, false)).collect::<Vec<_>>();
    let matched = [(Field::InPort, false), (Field::EthDst, true), (Field::EthSrc, true), (Field::EthType, false)];
    let more = [(Field::VlanVid, true), (Field::VlanPcp, false), (Field::IpProto, false), (Field::Ipv4Dst, true)];
    let all = || matched.iter().chain(&more);
    TableFeatures {
        table: TableId(number),
        name: name.into(),
        metadata_match: u64::MAX,
        metadata_write: u64::MAX,
        config: 0,
        max_entries: 1_000_000,
        properties: vec![
            TableProperty::Instructions { miss: false, ids: ids(&[1, 2, 3, 4, 5, 6]) },
            TableProperty::NextTables { miss: false, tables: (number + 1..5).map(TableId).collect() },
            TableProperty::WriteActions { miss: false, ids: ids(&[0, 22, 25, 17, 18]) },
            TableProperty::ApplyActions { miss: false, ids: ids(&[0, 22, 25, 17, 18]) },
            TableProperty::Match(all().map(|(field, mask)| oxm(*field, *mask)).collect()),
            TableProperty::Wildcards(all().map(|(field, _)| oxm(*field, false)).collect()),
            TableProperty::WriteSetField { miss: false, fields: fields() },
            TableProperty::ApplySetField { miss: false, fields: fields() },
        ],
    }
}

pub(crate) fn v13() -> Vec<Body> {
    let mut bodies = common(Version::V13);
    bodies.extend(v13_flows());
    bodies.extend(v13_groups_and_meters());
    bodies.extend(v13_others());
    bodies
}

fn v13_flows() -> Vec<Body> {
    let texts = [
        "table=3,ip,nw_dst=10.0.0.0/255.0.255.0 actions=push_vlan:0x8100,set_field:4197->vlan_vid,output:2",
        "tcp6,ipv6_src=fe80::1,ipv6_dst=2001:db8::/32,tcp_flags=+syn-ack actions=set_field:80->tcp_dst,goto_table:3",
        "icmp6,icmp_type=135,nd_target=fe80::1,nd_sll=2:0:0:0:0:1 actions=write_actions(group:5,set_queue:1,4)",
        "metadata=5/0xff,tun_id=7 actions=meter:1,set_field:9->tun_id,clear_actions,write_metadata:0x5/0xf,goto_table:200",
        "mpls,mpls_label=5,mpls_tc=3,mpls_bos=1 actions=dec_mpls_ttl,set_mpls_ttl:9,pop_mpls:0x800",
        "ip actions=push_mpls:0x8847,set_field:7->mpls_label,set_field:1->mpls_tc,1",
        "dl_vlan_pcp=3 actions=pop_vlan,1",
        "vlan_tci=0x1000/0x1000,ip actions=set_field:3->vlan_pcp,dec_ttl,mod_nw_ttl:7,set_field:10->ip_dscp,set_field:1->nw_ecn",
        "sctp,tp_src=1,tp_dst=2 actions=set_field:3->sctp_src",
        "udp6,ipv6_label=5,nw_ecn=1,tp_src=0x10/0xf0 actions=set_field:3->udp_dst,set_field:fe80::9->ipv6_src",
        "arp,arp_sha=2:0:0:0:0:1,arp_tha=0:0:0:0:0:0 actions=set_field:2->arp_op,set_field:10.0.0.9->arp_spa,in_port",
        "dl_dst=01:00:00:00:00:00/01:00:00:00:00:00,reset_counts,no_packet_counts,no_byte_counts actions=controller",
        "in_port=LOCAL,ipv6,nw_proto=47,nw_tos=252 actions=ALL",
        "rarp actions=NORMAL",
        "ip,nw_frag=later actions=drop",
    ];
    let mut bodies: Vec<Body> = texts.iter().map(|text| Body::FlowMod(flow(text))).collect();
    let modify = "cookie=5/-1,table=1,in_port=1 actions=2";
    let modify = text::parse_flow(modify, FlowCommand::Modify).unwrap();
    bodies.push(Body::FlowMod(modify.clone()));
    bodies.push(Body::FlowMod(FlowMod { command: FlowCommand::ModifyStrict, cookie: 0, cookie_mask: 0, ..modify }));
    bodies.push(Body::FlowMod(FlowMod { out_group: GroupId(3), ..FlowMod::delete_all() }));
    let mut stats = flow_stats("table=2,send_flow_rem,hard_timeout=9,tcp,tp_dst=80 actions=goto_table:3");
    stats.flags = FlowFlags::SEND_FLOW_REM.with(FlowFlags::RESET_COUNTS);
    bodies.push(reply(ReplyBody::Flow(vec![stats])));
    bodies.push(request(RequestBody::Flow(FlowRequest { cookie: 5, cookie_mask: 7, ..FlowRequest::all() })));
    bodies
}

fn v13_groups_and_meters() -> Vec<Body> {
    let bucket = |weight, watch: PortNo, actions: &str| Bucket {
        weight,
        watch_port: watch,
        watch_group: GroupId::ANY,
        actions: text::parse_actions(actions).unwrap(),
    };
    let any = PortNo::ANY;
    let groups: [(u16, u8, u32, Vec<Bucket>); 5] = [
        (0, 0, 1, vec![bucket(0, any, "1"), bucket(0, any, "set_field:2:0:0:0:0:1->eth_dst,2")]),
        (1, 1, 2, vec![bucket(1, any, "1"), bucket(10, any, "2")]),
        (0, 2, 3, vec![bucket(0, any, "group:1")]),
        (0, 3, 4, vec![bucket(0, PortNo(1), "1"), bucket(0, PortNo(2), "2")]),
        (2, 0, GroupId::ALL.0, vec![]),
    ];
    let descs = groups[..4].iter().map(|(_, kind, group, buckets)| GroupDesc {
        kind: *kind,
        group: GroupId(*group),
        buckets: buckets.clone(),
    });
    let descs = reply(ReplyBody::GroupDesc(descs.collect()));
    let mods = groups.into_iter().map(|(command, kind, group, buckets)| {
        Body::GroupMod(GroupMod { command, kind, group: GroupId(group), buckets })
    });
    let stats = GroupStats {
        group: GroupId(1),
        ref_count: 2,
        packet_count: 3,
        byte_count: 4,
        duration_sec: 5,
        duration_nsec: 6_000_000,
        buckets: vec![(1, 2), (3, 4)],
    };
    let features =
        GroupFeatures { types: 0xf, capabilities: 0x7, max_groups: [10, 20, 30, 40], actions: [0x0240_0001, 1, 1, 0] };
    let bands = vec![
        Band { rate: 1000, burst_size: 100, kind: BandKind::Drop },
        Band { rate: 2000, burst_size: 0, kind: BandKind::DscpRemark { prec_level: 1 } },
    ];
    let meter = |flags| MeterConfig { flags, meter: MeterId(3), bands: bands.clone() };
    let meter_stats = MeterStats {
        meter: MeterId(3),
        flow_count: 1,
        packet_in_count: 2,
        byte_in_count: 3,
        duration_sec: 4,
        duration_nsec: 0,
        bands: vec![(5, 6), (7, 8)],
    };
    let features_of_meters =
        MeterFeatures { max_meter: 100, band_types: 0b110, capabilities: 0b1111, max_bands: 8, max_color: 0 };
    let mut bodies: Vec<Body> = mods.collect();
    bodies.extend([
        descs,
        request(RequestBody::Group(GroupId::ALL)),
        request(RequestBody::Group(GroupId(7))),
        request(RequestBody::GroupDesc),
        request(RequestBody::GroupFeatures),
        reply(ReplyBody::Group(vec![stats])),
        reply(ReplyBody::GroupFeatures(features)),
        Body::MeterMod(MeterMod { command: 0, flags: 0b1101, meter: MeterId(3), bands: bands.clone() }),
        Body::MeterMod(MeterMod { command: 1, flags: 0b1010, meter: MeterId::CONTROLLER, bands: bands.clone() }),
        Body::MeterMod(MeterMod { command: 2, flags: 0, meter: MeterId::ALL, bands: vec![] }),
        request(RequestBody::Meter(MeterId::ALL)),
        request(RequestBody::MeterConfig(MeterId(3))),
        request(RequestBody::MeterFeatures),
        reply(ReplyBody::Meter(vec![meter_stats.clone(), meter_stats])),
        reply(ReplyBody::MeterConfig(vec![meter(0b0101), meter(0b0010)])),
        reply(ReplyBody::MeterFeatures(features_of_meters)),
    ]);
    bodies
}

fn v13_others() -> Vec<Body> {
    let table = |number, active| TableStats {
        table: TableId(number),
        name: String::new(),
        wildcards: 0,
        max_entries: 0,
        active_count: active,
        lookup_count: 7,
        matched_count: 3,
    };
    let property = |rate, other| vec![QueueProperty::MinRate(rate), QueueProperty::MaxRate(other)];
    let queue = |queue, rate, other| QueueConfig { queue, port: PortNo(1), properties: property(rate, other) };
    let role = |role, generation_id| RoleMessage { role, generation_id };
    let features = FeaturesReply {
        datapath_id: 0xabcd,
        n_buffers: 0,
        n_tables: 254,
        auxiliary_id: 1,
        capabilities: 0x14f,
        actions: 0,
        ports: vec![],
    };
    let config = AsyncConfig { packet_in: [3, 1], port_status: [7, 0], flow_removed: [15, 4] };
    vec![
        Body::Hello(Hello { versions: Some(vec![1, 4]) }),
        Body::Hello(Hello { versions: None }),
        error(vec![4, 20, 0, 8, 0, 0, 0, 1], BadMatch::BadPrereq),
        Body::FeaturesReply(features),
        Body::TableMod(TableMod { table: TableId::ALL, config: 0 }),
        Body::TableMod(TableMod { table: TableId(3), config: 3 }),
        Body::QueueGetConfigReply(QueueConfigReply {
            port: PortNo(1),
            queues: vec![queue(0, 500, 1000), queue(1, 1001, 0xffff)],
        }),
        Body::RoleRequest(role(Role::NoChange, 0)),
        Body::RoleRequest(role(Role::Equal, 3)),
        Body::RoleRequest(role(Role::Master, 17)),
        Body::RoleReply(role(Role::Slave, u64::MAX)),
        Body::GetAsyncRequest,
        Body::GetAsyncReply(config),
        Body::SetAsync(config),
        request(RequestBody::PortDesc),
        reply(ReplyBody::PortDesc(vec![
            port(2, Version::V13),
            port(1, Version::V13),
            port(PortNo::LOCAL.0, Version::V13),
        ])),
        reply(ReplyBody::Table(vec![table(0, 1), table(1, 0), table(2, 0), table(3, 0), table(4, 1), table(5, 1)])),
        request(RequestBody::TableFeatures(vec![])),
        reply(ReplyBody::TableFeatures(vec![
            table_features(0, "first"),
            table_features(1, "second"),
            table_features(2, ""),
            table_features(3, ""),
            TableFeatures { max_entries: 5, ..table_features(4, "small") },
        ])),
        Body::MultipartReply(MultipartReply { more: true, body: ReplyBody::Flow(vec![flow_stats("actions=1")]) }),
    ]
}
