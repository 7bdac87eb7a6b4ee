//! Defines the test messages of 1.3.
use super::common::common;
use super::*;

pub(crate) fn v13() -> Vec<Body> {
    let mut bodies = common(Version::V13);
    bodies.extend(flows());
    bodies.extend(groups_and_meters::all());
    bodies.extend(others());
    bodies
}

fn flows() -> Vec<Body> {
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

fn others() -> Vec<Body> {
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
    let role = |role, generation_id| RoleMessage { role, short_id: 0, generation_id };
    let features = FeaturesReply {
        datapath_id: 0xabcd,
        n_buffers: 0,
        n_tables: 254,
        auxiliary_id: 1,
        capabilities: 0x14f,
        actions: 0,
        ports: vec![],
    };
    let config = AsyncConfig {
        packet_in: [Some(3), Some(1)],
        port_status: [Some(7), Some(0)],
        flow_removed: [Some(15), Some(4)],
        ..AsyncConfig::default()
    };
    vec![
        Body::Hello(Hello { versions: Some(vec![1, 4]) }),
        Body::Hello(Hello { versions: None }),
        error(vec![4, 20, 0, 8, 0, 0, 0, 1], BadMatch::BadPrereq),
        Body::FeaturesReply(features),
        Body::TableMod(TableMod::new(TableId::ALL, 0)),
        Body::TableMod(TableMod::new(TableId(3), 3)),
        Body::QueueGetConfigReply(QueueConfigReply {
            port: PortNo(1),
            queues: vec![queue(0, 500, 1000), queue(1, 1001, 0xffff)],
        }),
        Body::RoleRequest(role(Role::NoChange, 0)),
        Body::RoleRequest(role(Role::Equal, 3)),
        Body::RoleRequest(role(Role::Master, 17)),
        Body::RoleReply(role(Role::Slave, u64::MAX)),
        Body::GetAsyncRequest,
        Body::GetAsyncReply(config.clone()),
        Body::SetAsync(config),
        request(RequestBody::PortDesc(PortNo::ANY)),
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

/// Returns the features of a table that leads to all later tables.
fn table_features(number: u8, name: &str) -> TableFeatures {
    let oxm = |field: Field, has_mask: bool| OxmId {
        class: OxmClass::OpenflowBasic,
        number: field.oxm().unwrap(),
        has_mask,
        length: u8::try_from(field.bytes() << u8::from(has_mask)).unwrap(),
        experimenter: None,
    };
    let instructions = InstructionType::NAMED.iter().filter(|kind| **kind != InstructionType::StatTrigger);
    let actions = || {
        use ActionType::{Group, Output, PopVlan, PushVlan, SetField};
        [Output, Group, SetField, PushVlan, PopVlan].map(FeatureTypeId::Standard).to_vec()
    };
    let set = [Field::EthSrc, Field::EthDst, Field::VlanVid, Field::Ipv4Src, Field::TcpDst];
    let fields = || set.iter().map(|field| oxm(*field, false)).collect::<Vec<_>>();
    let matched = [(Field::InPort, false), (Field::EthDst, true), (Field::EthSrc, true), (Field::EthType, false)];
    let more = [(Field::VlanVid, true), (Field::VlanPcp, false), (Field::IpProto, false), (Field::Ipv4Dst, true)];
    let all = || matched.iter().chain(&more);
    TableFeatures {
        table: TableId(number),
        command: TableFeaturesCommand::Replace,
        features: 0,
        name: name.into(),
        metadata_match: u64::MAX,
        metadata_write: u64::MAX,
        config: 0,
        max_entries: 1_000_000,
        properties: vec![
            TableProperty::Instructions {
                miss: false,
                ids: instructions.copied().map(FeatureTypeId::Standard).collect(),
            },
            TableProperty::NextTables { miss: false, tables: (number + 1..5).map(TableId).collect() },
            TableProperty::WriteActions { miss: false, ids: actions() },
            TableProperty::ApplyActions { miss: false, ids: actions() },
            TableProperty::Match(all().map(|(field, mask)| oxm(*field, *mask)).collect()),
            TableProperty::Wildcards(all().map(|(field, _)| oxm(*field, false)).collect()),
            TableProperty::WriteSetField { miss: false, fields: fields() },
            TableProperty::ApplySetField { miss: false, fields: fields() },
        ],
    }
}
