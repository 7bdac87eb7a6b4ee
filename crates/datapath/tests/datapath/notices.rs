//! Notices about one controller to the others (OpenFlow 1.4.1, 7.4.4 and 7.4.6; OpenFlow 1.5.1, 7.4.7).
use crate::bench::*;
use weir_datapath::ChannelId;
use weir_openflow::model::error::RoleRequestFailed;
use weir_openflow::model::group::{Bucket, BucketId, GroupCommand, GroupKind, GroupMod};
use weir_openflow::model::meter::{Band, BandKind, MeterCommand, MeterMod};
use weir_openflow::model::multipart::{ReplyBody, RequestBody};
use weir_openflow::model::role::{AsyncConfig, Role, RoleMessage};
use weir_openflow::model::status::{ControllerReason, RoleReason, RoleStatus};
use weir_openflow::model::{GroupId, MeterId};
use weir_openflow::{Body, Message, Version};

const FIRST: ChannelId = ChannelId(1);
const SECOND: ChannelId = ChannelId(2);
const OLD: ChannelId = ChannelId(3);

/// Returns a bench with channels of 1.5, 1.4 and 1.3.
fn bench() -> Bench {
    let mut bench = Bench::new();
    for (channel, version) in [(FIRST, Version::V15), (SECOND, Version::V14), (OLD, Version::V13)] {
        bench.datapath.channel_up(bench.now, channel, version);
    }
    bench
}

fn role(role: Role, short_id: u16, generation_id: u64) -> Body {
    Body::RoleRequest(RoleMessage { role, short_id, generation_id })
}

#[test]
fn a_displaced_master_is_told() {
    let mut bench = bench();
    bench.ask(FIRST, role(Role::Master, 0, 1));
    let held = bench.ask(SECOND, role(Role::Master, 0, 2));
    assert!(matches!(held[..], [Body::RoleReply(RoleMessage { role: Role::Master, .. })]), "{held:?}");
    let (role_now, reason) = (Role::Slave, RoleReason::MasterRequest);
    let status = RoleStatus { role: role_now, reason, generation_id: 2, properties: Vec::new() };
    assert_eq!(bench.told(FIRST), [Body::RoleStatus(status)]);
    assert_eq!(bench.told(OLD), []);
    // Version 1.3 has no such message, so a displaced master of 1.3 gets none.
    bench.ask(OLD, role(Role::Master, 0, 3));
    bench.told(SECOND);
    bench.ask(SECOND, role(Role::Master, 0, 4));
    assert_eq!(bench.told(OLD), []);
}

#[test]
fn group_and_meter_mods_are_forwarded_to_those_that_asked() {
    let mut bench = bench();
    let buckets = vec![Bucket::new(BucketId(0), output(2))];
    let (group, command_bucket, properties) = (GroupId(1), BucketId::ALL, Vec::new());
    let group = Body::GroupMod(GroupMod {
        command: GroupCommand::Add,
        kind: GroupKind::All,
        group,
        command_bucket,
        buckets,
        properties,
    });
    let bands = vec![Band { kind: BandKind::Drop, rate: 5, burst_size: 0 }];
    let meter = Body::MeterMod(MeterMod { command: MeterCommand::Add, flags: 1, meter: MeterId(1), bands });
    bench.ask(FIRST, group.clone());
    assert_eq!(bench.told(SECOND), [], "nobody asked");
    let config = AsyncConfig { requestforward: [Some(0b10), Some(0)], ..AsyncConfig::default() };
    for channel in [FIRST, SECOND] {
        bench.ask(channel, Body::SetAsync(config.clone()));
    }
    assert_eq!(bench.ask(FIRST, meter.clone()), [], "not to the one that sent it");
    assert_eq!(bench.told(SECOND), [Body::RequestForward(Box::new(Message { xid: 77, body: meter.clone() }))]);
    assert!(matches!(bench.ask(FIRST, meter)[..], [Body::Error(_)]));
    assert_eq!(bench.told(SECOND), [], "what was refused");
    bench.ask(FIRST, group);
    assert_eq!(bench.told(SECOND), [], "group-mods it did not ask for");
}

#[test]
fn controllers_are_told_of_each_others_roles() {
    let mut bench = bench();
    let config = AsyncConfig { controller_status: [Some(0xff); 2], ..AsyncConfig::default() };
    bench.ask(FIRST, Body::SetAsync(config));
    bench.ask(SECOND, role(Role::Master, 7, 1));
    let told = bench.told(FIRST);
    let [Body::ControllerStatus(status)] = &told[..] else { panic!("{told:?}") };
    assert_eq!((status.role, status.short_id, status.reason), (Role::Master, 7, ControllerReason::Role));
    let taken = bench.error_of(FIRST, role(Role::NoChange, 7, 0));
    assert_eq!(taken, Some(RoleRequestFailed::IdInUse.into()));
    let replies = bench.multipart(FIRST, RequestBody::ControllerStatus).unwrap();
    let [ReplyBody::ControllerStatus(all)] = &replies[..] else { panic!("{replies:?}") };
    let shown: Vec<_> = all.iter().map(|status| (status.short_id, status.role, status.is_up)).collect();
    assert_eq!(shown, [(0, Role::Equal, true), (7, Role::Master, true), (0, Role::Equal, true)]);
}

#[test]
fn controllers_are_told_of_each_others_channels() {
    let mut bench = bench();
    let config = AsyncConfig {
        controller_status: [Some(1 << ControllerReason::ChannelStatus as u32); 2],
        ..AsyncConfig::default()
    };
    bench.ask(FIRST, Body::SetAsync(config));
    bench.ask(SECOND, role(Role::Master, 7, 1));
    assert_eq!(bench.told(FIRST), [], "a role is another reason");
    let changes = |bench: &mut Bench| {
        let told = bench.told(FIRST).into_iter().map(|body| match body {
            Body::ControllerStatus(status) => (status.short_id, status.role, status.reason, status.is_up),
            other => panic!("{other:?}"),
        });
        told.collect::<Vec<_>>()
    };
    bench.datapath.tell_channel(SECOND, false, &mut bench.out);
    bench.datapath.channel_down(bench.now, SECOND);
    assert_eq!(changes(&mut bench), [(7, Role::Master, ControllerReason::ChannelStatus, false)]);
    bench.datapath.channel_up(bench.now, SECOND, Version::V15);
    bench.datapath.tell_channel(SECOND, true, &mut bench.out);
    assert_eq!(changes(&mut bench), [(0, Role::Equal, ControllerReason::ChannelStatus, true)]);
    assert_eq!((bench.told(SECOND), bench.told(OLD)), (vec![], vec![]), "neither itself, nor who did not ask");
    let auxiliary = ChannelId(9);
    assert!(bench.datapath.auxiliary_up(bench.now, auxiliary, SECOND, 1));
    bench.datapath.tell_channel(auxiliary, false, &mut bench.out);
    assert_eq!(changes(&mut bench), [], "another connection of the same channel");
}
