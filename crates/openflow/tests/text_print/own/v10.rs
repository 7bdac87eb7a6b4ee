//! Defines the test messages of 1.0.
use super::common::common;
use super::*;

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
