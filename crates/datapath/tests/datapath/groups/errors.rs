//! Refused group-mods, which change nothing.
use super::*;
use weir_datapath::DatapathConfig;
use weir_openflow::Version;
use weir_openflow::model::FlowMod;
use weir_openflow::model::error::{BadAction, GroupModFailed};
use weir_packet::Field;

/// Sends group-mods that must be refused, and checks that nothing changed.
fn refused(bench: &mut Bench, cases: Vec<(GroupMod, ErrorType)>) {
    let before = bench.groups();
    for (change, error) in cases {
        assert_eq!(bench.error_of(CONTROLLER, Body::GroupMod(change.clone())), Some(error), "{change:?}");
        assert_eq!(bench.groups(), before, "{change:?}");
    }
}

#[test]
fn wrong_group_mods_get_their_errors() {
    use GroupModFailed::*;
    let mut bench = Bench::controlled();
    bench.add_group(1, Indirect, vec![bucket(output(2))]);
    let watch = |port, group| Bucket { watch_port: port, watch_group: group, ..bucket(output(2)) };
    let one = || vec![bucket(output(2))];
    let acting = |action| vec![bucket(vec![action])];
    let cases: Vec<(GroupMod, ErrorType)> = vec![
        (group_mod(Add, 1, All, one()), GroupExists.into()),
        (group_mod(Add, GroupId::ALL.0, All, one()), InvalidGroup.into()),
        (group_mod(Add, 0xffff_ff01, All, one()), InvalidGroup.into()),
        (group_mod(Modify, GroupId::ANY.0, All, one()), InvalidGroup.into()),
        (group_mod(Modify, 2, All, one()), UnknownGroup.into()),
        (group_mod(Add, 2, GroupKind::Unknown(4), one()), BadType.into()),
        (group_mod(Modify, 1, GroupKind::Unknown(255), one()), BadType.into()),
        (group_mod(GroupCommand::Unknown(9), 1, All, one()), BadCommand.into()),
        (group_mod(Add, 2, Indirect, vec![bucket(output(2)), bucket(output(3))]), InvalidGroup.into()),
        (group_mod(Add, 2, All, vec![weighing(1, output(2))]), InvalidGroup.into()),
        (group_mod(Add, 2, FastFailover, one()), BadWatch.into()),
        (group_mod(Add, 2, FastFailover, vec![watch(PortNo::FLOOD, GroupId::ANY)]), BadWatch.into()),
        (group_mod(Add, 2, Select, vec![watch(PortNo(0), GroupId::ANY)]), BadWatch.into()),
        (group_mod(Add, 2, FastFailover, vec![watch(PortNo::ANY, GroupId(5))]), BadWatch.into()),
        (group_mod(Add, 2, FastFailover, vec![watch(PortNo::ANY, GroupId(2))]), Loop.into()),
        (group_mod(Add, 2, All, acting(Action::Group(GroupId(2)))), Loop.into()),
        (group_mod(Modify, 1, All, acting(Action::Group(GroupId(1)))), Loop.into()),
        (group_mod(Add, 2, All, acting(Action::Group(GroupId(5)))), BadAction::BadOutGroup.into()),
        (group_mod(Add, 2, All, acting(Action::Group(GroupId::ANY))), BadAction::BadOutGroup.into()),
        (group_mod(Add, 2, All, acting(Action::output(PortNo::TABLE))), BadAction::BadOutPort.into()),
        (group_mod(Add, 2, All, acting(Action::PushVlan(0x0800))), BadAction::BadArgument.into()),
        (
            group_mod(Add, 2, All, acting(Action::SetField { field: Field::InPort, value: 1 })),
            BadAction::BadSetType.into(),
        ),
        (
            group_mod(Modify, 1, All, acting(Action::Experimenter { id: 9, data: vec![0; 4].into() })),
            BadAction::BadExperimenter.into(),
        ),
    ];
    refused(&mut bench, cases);
}

#[test]
fn buckets_may_have_actions_of_any_protocol() {
    // The group's packets are not known; actions that do not fit a packet leave it unchanged.
    let mut bench = Bench::controlled();
    let tcp = Action::SetField { field: Field::TcpDst, value: 80 };
    bench.add_group(1, Indirect, vec![bucket(vec![tcp, Action::DecNwTtl, Action::output(PortNo(2))])]);
    bench.all_to_group(1);
    assert_eq!(bench.receive(1, &frame()), [(PortNo(2), frame())]);
}

#[test]
fn entries_and_groups_name_groups_that_are_there() {
    let mut bench = Bench::controlled();
    let missing: ErrorType = BadAction::BadOutGroup.into();
    let flow = FlowMod::add(1, Match::any(), apply(to_group(1)));
    assert_eq!(bench.flow_mod(&flow), Err(missing));
    bench.add_group(1, All, vec![]);
    assert_eq!(bench.flow_mod(&flow), Ok(()));
}

#[test]
fn loops_are_refused_however_long() {
    let mut bench = Bench::controlled();
    bench.add_group(1, Indirect, vec![bucket(output(2))]);
    for group in 2..=8 {
        bench.add_group(group, All, vec![bucket(to_group(group - 1)), bucket(output(3))]);
    }
    let watch = |group| Bucket { watch_group: GroupId(group), ..bucket(output(2)) };
    let cases = vec![
        (group_mod(Modify, 1, Indirect, vec![bucket(to_group(8))]), GroupModFailed::Loop.into()),
        (group_mod(Modify, 3, All, vec![bucket(to_group(1)), bucket(to_group(4))]), GroupModFailed::Loop.into()),
        (group_mod(Modify, 1, FastFailover, vec![watch(5)]), GroupModFailed::Loop.into()),
    ];
    refused(&mut bench, cases);
    bench.all_to_group(8);
    assert_eq!(bench.receive(1, &frame()).len(), 8);
}

#[test]
fn chains_have_a_limit() {
    let mut bench = Bench::controlled();
    bench.add_group(0, Indirect, vec![bucket(output(2))]);
    for group in 1..16 {
        bench.add_group(group, Indirect, vec![bucket(to_group(group - 1))]);
    }
    bench.add_group(100, Indirect, vec![bucket(output(2))]);
    bench.add_group(101, Indirect, vec![bucket(to_group(100))]);
    let too_long: ErrorType = GroupModFailed::ChainingUnsupported.into();
    let cases = vec![
        (group_mod(Add, 16, Indirect, vec![bucket(to_group(15))]), too_long),
        // At the lower end of a chain, because sixteen groups lead to it.
        (group_mod(Modify, 0, Indirect, vec![bucket(to_group(100))]), too_long),
        (group_mod(Modify, 1, Indirect, vec![bucket(to_group(101))]), too_long),
    ];
    refused(&mut bench, cases);
    // After a chain is cut, it may be made longer at its other end.
    assert_eq!(bench.group(Modify, 8, Indirect, vec![bucket(output(3))]), None);
    bench.add_group(16, Indirect, vec![bucket(to_group(15))]);
    assert_eq!(bench.group(Modify, 0, Indirect, vec![bucket(to_group(101))]), None);
    bench.all_to_group(16);
    assert_eq!(bench.ports_of(1, &frame()), [3]);
}

#[test]
fn groups_and_buckets_have_limits() {
    let config = DatapathConfig { max_groups: 3, max_buckets: 4, max_buckets_in_all: 6, ..DatapathConfig::default() };
    let mut bench = Bench::with(config);
    bench.datapath.channel_up(bench.now, CONTROLLER, Version::V13);
    let buckets = |count| vec![bucket(output(2)); count];
    bench.add_group(1, All, buckets(4));
    bench.add_group(2, All, buckets(2));
    let full: ErrorType = GroupModFailed::OutOfBuckets.into();
    let cases = vec![
        (group_mod(Add, 3, All, buckets(5)), full),
        (group_mod(Add, 3, All, buckets(1)), full),
        (group_mod(Modify, 2, All, buckets(3)), full),
    ];
    refused(&mut bench, cases);
    bench.add_group(3, All, buckets(0));
    refused(&mut bench, vec![(group_mod(Add, 4, All, buckets(0)), GroupModFailed::OutOfGroups.into())]);
    // Removed groups and buckets make room.
    assert_eq!(bench.group(Modify, 1, All, buckets(1)), None);
    assert_eq!(bench.group(Delete, 3, All, vec![]), None);
    bench.add_group(4, All, buckets(3));
    assert_eq!(bench.group(Delete, GroupId::ALL.0, All, vec![]), None);
    bench.add_group(1, All, buckets(4));
}
