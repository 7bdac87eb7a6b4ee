//! Defines the test messages that 1.4 and 1.5 added, as far as Open vSwitch prints them.
use super::*;
use weir_openflow::model::bundle::*;
use weir_openflow::model::config::VacancyThresholds;
use weir_openflow::model::monitor::*;
use weir_openflow::model::status::*;
use weir_openflow::model::{Body, FlowRemovedReason, Message};

fn table(number: u8, config: u32, vacancy: Option<VacancyThresholds>) -> TableMod {
    TableMod { eviction: (config & 4 != 0).then_some(6), vacancy, ..TableMod::new(TableId(number), config) }
}

fn monitors() -> Vec<FlowMonitor> {
    let initial = MonitorFlags::INITIAL.with(MonitorFlags::ADD).with(MonitorFlags::MODIFY);
    let add = FlowMonitor {
        id: 7,
        out_port: PortNo(22),
        out_group: GroupId::ANY,
        flags: initial,
        table: TableId(3),
        command: MonitorCommand::Add,
        matching: flow("tcp,tp_dst=80 actions=drop").matching,
    };
    let delete = FlowMonitor { command: MonitorCommand::Delete, matching: Match::any(), ..add.clone() };
    vec![add, delete]
}

fn updates() -> Vec<FlowUpdate> {
    let full = |event, reason, instructions: &str| {
        let entry = flow(instructions);
        FlowUpdate::Full(FlowUpdateFull {
            event,
            reason,
            table: TableId(1),
            idle_timeout: 60,
            hard_timeout: 0,
            priority: entry.priority,
            cookie: 5,
            matching: entry.matching,
            instructions: entry.instructions,
        })
    };
    vec![
        full(FlowEvent::Initial, None, "arp actions=NORMAL"),
        full(FlowEvent::Added, None, "ip actions=drop"),
        full(FlowEvent::Modified, None, "ip actions=1"),
        full(FlowEvent::Removed, Some(FlowRemovedReason::Eviction), "ip actions=drop"),
        FlowUpdate::Abbrev { xid: 0x4d2 },
        FlowUpdate::Paused,
        FlowUpdate::Resumed,
    ]
}

fn asynchronous() -> AsyncConfig {
    AsyncConfig {
        packet_in: [Some(0b11_1111), Some(0)],
        port_status: [Some(7), Some(7)],
        flow_removed: [Some(0b11_1111), Some(0)],
        role_status: [Some(7), Some(1)],
        table_status: [Some(0b1_1000), Some(0)],
        requestforward: [Some(3), Some(0)],
        ..AsyncConfig::default()
    }
}

/// Returns bundle messages, which 1.3 has, too.
pub(crate) fn bundles() -> Vec<Body> {
    let control = |command, flags| {
        let (bundle, flags) = (BundleId(0x4d2), BundleFlags(flags));
        Body::BundleControl(BundleControl { bundle, command, flags, properties: vec![] })
    };
    let message = Box::new(Message { xid: 1, body: Body::FlowMod(flow("in_port=1 actions=2")) });
    vec![
        control(BundleCommand::OpenRequest, 1),
        control(BundleCommand::OpenReply, 3),
        control(BundleCommand::CommitRequest, 0),
        control(BundleCommand::DiscardReply, 2),
        Body::BundleAdd(BundleAdd { bundle: BundleId(1), flags: BundleFlags(3), message, properties: vec![] }),
    ]
}

/// Returns messages of 1.4 that 1.5 has, too.
pub(crate) fn v14(version: Version) -> Vec<Body> {
    let vacancy = VacancyThresholds { down: 20, up: 80, now: 99 };
    let role = |role, reason, generation_id| RoleStatus { role, reason, generation_id, properties: vec![] };
    let queue = |port, queue| QueueConfig {
        queue,
        port: PortNo(port),
        properties: vec![QueueProperty::MinRate(300), QueueProperty::MaxRate(900)],
    };
    let features = FeaturesReply { datapath_id: 5, n_tables: 10, capabilities: 0x647, ..FeaturesReply::default() };
    let group = Body::GroupMod(GroupMod {
        command: GroupCommand::Add,
        kind: GroupKind::All,
        group: GroupId(1),
        command_bucket: BucketId::ALL,
        buckets: vec![Bucket::new(BucketId(0), vec![Action::output(PortNo(1))])],
        properties: vec![],
    });
    let meter = Body::MeterMod(MeterMod { command: MeterCommand::Delete, flags: 0, meter: MeterId(1), bands: vec![] });
    let forward = |body| Body::RequestForward(Box::new(Message { xid: 1, body }));
    let mut bodies = bundles();
    bodies.extend([
        Body::FeaturesReply(features),
        Body::FlowMod(FlowMod { importance: 7, ..flow("cookie=3,in_port=1,actions=2") }),
        Body::TableMod(table(3, 0, None)),
        Body::TableMod(TableMod::new(TableId::ALL, 12)),
        Body::RoleStatus(role(Role::Slave, RoleReason::MasterRequest, 7)),
        Body::RoleStatus(role(Role::Master, RoleReason::Config, u64::MAX)),
        Body::TableStatus(TableStatus { reason: TableReason::VacancyDown, table: table(8, 12, Some(vacancy)) }),
        Body::TableStatus(TableStatus { reason: TableReason::VacancyUp, table: table(8, 0, None) }),
        forward(group),
        forward(meter),
        Body::GetAsyncReply(asynchronous()),
        Body::SetAsync(asynchronous()),
        request(RequestBody::TableDesc),
        reply(ReplyBody::TableDesc(vec![table(0, 4, None), table(1, 12, Some(vacancy)), table(2, 0, None)])),
        request(RequestBody::QueueDesc { port: PortNo::ANY, queue: ALL_QUEUES }),
        request(RequestBody::QueueDesc { port: PortNo(7), queue: 1 }),
        reply(ReplyBody::QueueDesc(vec![queue(7, 0), queue(8, 1), queue(8, 2)])),
        request(RequestBody::FlowMonitor(monitors())),
        reply(ReplyBody::FlowMonitor(updates())),
        reply(ReplyBody::Flow(vec![FlowStats { importance: 7, ..flow_stats("ip actions=1") }])),
        reply(ReplyBody::PortDesc(vec![port(1, version)])),
        error(vec![], weir_openflow::model::error::BundleFailed::OutOfBundles),
    ]);
    bodies
}

/// Returns messages of 1.5 that 1.4 lacks, in addition to those of 1.4.
pub(crate) fn v15() -> Vec<Body> {
    let bucket = |id, weight| Bucket { weight, ..Bucket::new(BucketId(id), vec![Action::output(PortNo(id))]) };
    let change = |command, at, buckets| {
        let (kind, group, command_bucket) = (GroupKind::Select, GroupId(9), BucketId(at));
        Body::GroupMod(GroupMod { command, kind, group, command_bucket, buckets, properties: vec![] })
    };
    let desc = GroupDesc {
        kind: GroupKind::Select,
        group: GroupId(9),
        buckets: vec![bucket(5, 1), bucket(6, 7)],
        properties: vec![],
    };
    let mut bodies = v14(Version::V15);
    bodies.extend([
        change(GroupCommand::Add, BucketId::ALL.0, vec![bucket(5, 1), bucket(6, 7)]),
        change(GroupCommand::InsertBucket, BucketId::FIRST.0, vec![bucket(7, 8)]),
        change(GroupCommand::InsertBucket, 5, vec![bucket(7, 8)]),
        change(GroupCommand::RemoveBucket, BucketId::LAST.0, vec![]),
        change(GroupCommand::RemoveBucket, BucketId::ALL.0, vec![]),
        reply(ReplyBody::GroupDesc(vec![desc])),
        request(RequestBody::GroupDesc(GroupId(9))),
        request(RequestBody::PortDesc(PortNo(3))),
        reply(ReplyBody::Aggregate(AggregateStats { packet_count: 1, byte_count: 2, flow_count: 3 })),
        Body::RoleRequest(RoleMessage { role: Role::Master, short_id: 5, generation_id: 3 }),
    ]);
    bodies
}
