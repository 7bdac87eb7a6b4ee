//! Inserting and removing single buckets, as OpenFlow 1.5 allows (OpenFlow 1.5.1, 6.7).
use super::*;
use weir_datapath::ChannelId;
use weir_openflow::Version;
use weir_openflow::model::error::{BadProperty, GroupModFailed};
use weir_openflow::model::property::RawProperty;

const CONTROLLER_15: ChannelId = ChannelId(15);

fn with_v15() -> Bench {
    let mut bench = Bench::controlled();
    bench.datapath.channel_up(bench.now, CONTROLLER_15, Version::V15);
    bench
}

/// Returns a bucket with an id, which outputs to a port.
fn numbered_bucket(id: u32, port: u32) -> Bucket {
    Bucket::new(BucketId(id), output(port))
}

/// Returns a group-mod of group 1 that concerns a bucket.
fn change(command: GroupCommand, command_bucket: BucketId, buckets: Vec<Bucket>) -> GroupMod {
    GroupMod { command, kind: All, group: GroupId(1), command_bucket, buckets, properties: vec![] }
}

fn tell(bench: &mut Bench, change: GroupMod) -> Option<ErrorType> {
    bench.error_of(CONTROLLER_15, Body::GroupMod(change))
}

/// Returns the ids of the buckets of group 1, in order.
fn order(bench: &mut Bench) -> Vec<u32> {
    bench.groups()[0].buckets.iter().map(|bucket| bucket.id.0).collect()
}

#[test]
fn buckets_come_before_behind_and_between_others_and_go() {
    let mut bench = with_v15();
    let insert = |at, id| change(GroupCommand::InsertBucket, at, vec![numbered_bucket(id, 2)]);
    let remove = |at| change(GroupCommand::RemoveBucket, at, vec![]);
    let steps = [
        (change(GroupCommand::Add, BucketId::ALL, vec![numbered_bucket(10, 2), numbered_bucket(20, 3)]), vec![10, 20]),
        (insert(BucketId::FIRST, 5), vec![5, 10, 20]),
        (insert(BucketId::LAST, 30), vec![5, 10, 20, 30]),
        (insert(BucketId(10), 15), vec![5, 10, 15, 20, 30]),
        (remove(BucketId(10)), vec![5, 15, 20, 30]),
        (remove(BucketId::FIRST), vec![15, 20, 30]),
        (remove(BucketId::LAST), vec![15, 20]),
        (remove(BucketId::ALL), vec![]),
        (remove(BucketId::LAST), vec![]),
        (insert(BucketId::LAST, 1), vec![1]),
    ];
    for (change, expected) in steps {
        assert_eq!(tell(&mut bench, change.clone()), None, "{change:?}");
        assert_eq!(order(&mut bench), expected, "{change:?}");
    }
}

#[test]
fn a_bucket_that_stays_keeps_its_counters_and_the_group_its_type() {
    let mut bench = with_v15();
    let weighed = |id, port| Bucket { weight: 1, ..numbered_bucket(id, port) };
    let add = GroupMod { kind: Select, ..change(GroupCommand::Add, BucketId::ALL, vec![weighed(1, 2)]) };
    assert_eq!(tell(&mut bench, add), None);
    bench.all_to_group(1);
    bench.receive(1, &frame());
    // The group type in the message is ignored.
    let insert = change(GroupCommand::InsertBucket, BucketId::FIRST, vec![weighed(2, 3)]);
    assert_eq!(tell(&mut bench, insert), None);
    assert_eq!(bench.groups()[0].kind, Select);
    let counted = |bench: &mut Bench| -> Vec<u64> {
        bench.group_stats(GroupId(1))[0].buckets.iter().map(|(packets, _)| *packets).collect()
    };
    assert_eq!(counted(&mut bench), [0, 1]);
    assert_eq!(tell(&mut bench, change(GroupCommand::RemoveBucket, BucketId(2), vec![])), None);
    assert_eq!(counted(&mut bench), [1]);
}

#[test]
fn what_names_no_bucket_or_one_twice_is_refused() {
    use GroupModFailed::*;
    let mut bench = with_v15();
    let two = || vec![numbered_bucket(10, 2), numbered_bucket(20, 3)];
    assert_eq!(tell(&mut bench, change(GroupCommand::Add, BucketId::ALL, two())), None);
    let property = |kind| RawProperty { kind, data: vec![0; 12].into() };
    let with =
        |kind| GroupMod { properties: vec![property(kind)], ..change(GroupCommand::Modify, BucketId::ALL, two()) };
    let cases: Vec<(GroupMod, ErrorType)> = vec![
        (change(GroupCommand::InsertBucket, BucketId::LAST, two()), BucketExists.into()),
        (change(GroupCommand::InsertBucket, BucketId(7), vec![]), UnknownBucket.into()),
        (change(GroupCommand::InsertBucket, BucketId::ALL, vec![]), BadBucket.into()),
        (change(GroupCommand::RemoveBucket, BucketId(7), vec![]), UnknownBucket.into()),
        (change(GroupCommand::RemoveBucket, BucketId(0xffff_ff01), vec![]), BadBucket.into()),
        (change(GroupCommand::Modify, BucketId::ALL, vec![numbered_bucket(3, 2); 2]), BucketExists.into()),
        (change(GroupCommand::Modify, BucketId::ALL, vec![numbered_bucket(0xffff_ff01, 2)]), BadBucket.into()),
        (change(GroupCommand::Modify, BucketId::FIRST, two()), BadBucket.into()),
        (change(GroupCommand::Unknown(4), BucketId::ALL, vec![]), BadCommand.into()),
        (with(7), BadProperty::BadType.into()),
        (with(RawProperty::EXPERIMENTER), BadProperty::BadExperimenter.into()),
    ];
    for (change, error) in cases {
        assert_eq!(tell(&mut bench, change.clone()), Some(error), "{change:?}");
        assert_eq!(order(&mut bench), [10, 20], "{change:?}");
    }
    let missing = GroupMod { group: GroupId(2), ..change(GroupCommand::RemoveBucket, BucketId::ALL, vec![]) };
    assert_eq!(tell(&mut bench, missing), Some(UnknownGroup.into()));
    // Versions before 1.5 have no such commands.
    let insert = change(GroupCommand::InsertBucket, BucketId::LAST, vec![]);
    assert_eq!(bench.error_of(CONTROLLER, Body::GroupMod(insert)), Some(BadCommand.into()));
}
