//! Statistics, descriptions and features of groups.
use super::*;
use std::time::Duration;
use weir_openflow::model::group::{GroupDesc, GroupStats};
use weir_openflow::model::multipart::{ReplyBody, RequestBody};

impl Bench {
    pub(super) fn group_stats(&mut self, group: GroupId) -> Vec<GroupStats> {
        let parts = self.multipart(CONTROLLER, RequestBody::Group(group)).unwrap();
        parts.into_iter().flat_map(|part| if let ReplyBody::Group(groups) = part { groups } else { vec![] }).collect()
    }

    pub(super) fn groups(&mut self) -> Vec<GroupDesc> {
        let parts = self.multipart(CONTROLLER, RequestBody::GroupDesc(GroupId::ALL)).unwrap();
        let groups = |part| if let ReplyBody::GroupDesc(groups) = part { groups } else { vec![] };
        parts.into_iter().flat_map(groups).collect()
    }
}

#[test]
fn packets_count_in_their_group_and_bucket() {
    let mut bench = Bench::controlled();
    bench.add_group(5, FastFailover, vec![watching(2), watching(3)]);
    bench.add_group(3, All, vec![bucket(to_group(5)), bucket(output(4))]);
    bench.all_to_group(3);
    bench.wait(Duration::from_millis(2500));
    bench.receive(1, &frame());
    bench.link(2, false);
    bench.receive(1, &frame());
    bench.receive(1, &frame());
    let bytes = frame().len() as u64;
    let count = |packets| (packets, packets * bytes);
    let stats = |group, ref_count, buckets| GroupStats {
        group: GroupId(group),
        ref_count,
        packet_count: 3,
        byte_count: 3 * bytes,
        duration_sec: 2,
        duration_nsec: 500_000_000,
        buckets,
    };
    let (three, five) = (stats(3, 1, vec![count(3), count(3)]), stats(5, 1, vec![count(1), count(2)]));
    assert_eq!(bench.group_stats(GroupId::ALL), [three, five.clone()]);
    assert_eq!(bench.group_stats(GroupId(5)), [five]);
    assert_eq!(bench.group_stats(GroupId(4)), []);
}

#[test]
fn a_modify_keeps_the_groups_counters_and_resets_its_buckets() {
    let mut bench = Bench::controlled();
    bench.add_group(1, All, vec![bucket(output(2))]);
    bench.all_to_group(1);
    bench.receive(1, &frame());
    bench.wait(Duration::from_secs(1));
    assert_eq!(bench.group(Modify, 1, All, vec![bucket(output(3)), bucket(output(4))]), None);
    let [stats] = bench.group_stats(GroupId(1)).try_into().unwrap();
    assert_eq!((stats.packet_count, stats.duration_sec, stats.ref_count), (1, 1, 1));
    assert_eq!(stats.buckets, [(0, 0), (0, 0)]);
    // A new group in the same slot starts with zero counters.
    assert_eq!(bench.group(Delete, 1, All, vec![]), None);
    bench.add_group(2, All, vec![bucket(output(2))]);
    let [stats] = bench.group_stats(GroupId::ALL).try_into().unwrap();
    assert_eq!((stats.packet_count, stats.duration_sec, stats.ref_count), (0, 0, 0));
    assert_eq!(stats.buckets, [(0, 0)]);
}

#[test]
fn descriptions_are_what_was_asked_for() {
    let mut bench = Bench::controlled();
    // The actions are not in the order of execution.
    let actions = vec![Action::output(PortNo(2)), Action::PushVlan(0x8100)];
    let select = vec![weighing(3, actions), Bucket { watch_port: PortNo(4), ..weighing(0, output(4)) }];
    bench.add_group(7, Select, select.clone());
    bench.add_group(2, FastFailover, vec![watching(2)]);
    let desc = |kind, group, buckets| GroupDesc {
        kind,
        group: GroupId(group),
        buckets: numbered(buckets),
        properties: vec![],
    };
    let expected = [desc(FastFailover, 2, vec![watching(2)]), desc(Select, 7, select)];
    assert_eq!(bench.groups(), expected);
}

#[test]
fn features_promise_what_is_there() {
    let mut bench = Bench::controlled();
    let [ReplyBody::GroupFeatures(features)] = bench.multipart(CONTROLLER, RequestBody::GroupFeatures).unwrap()[..]
    else {
        panic!("another reply");
    };
    assert_eq!((features.types, features.capabilities), (0b1111, 0b1111));
    assert_eq!(features.max_groups, [65_536; 4]);
    // Output, copy and decrement TTL, push and pop, queue, group, set-field: all actions of 1.3.
    assert_eq!(features.actions, [0x0fff_9801; 4]);
    let [Body::FeaturesReply(reply)] = &bench.ask(CONTROLLER, Body::FeaturesRequest)[..] else { panic!() };
    assert_ne!(reply.capabilities & weir_openflow::model::features::capability::GROUP_STATS, 0);
}

#[test]
fn descriptions_of_many_groups_come_in_parts() {
    let mut bench = Bench::controlled();
    for group in 0..5000 {
        bench.add_group(group, All, vec![bucket(output(2)); 2]);
    }
    assert!(bench.multipart(CONTROLLER, RequestBody::GroupDesc(GroupId::ALL)).unwrap().len() > 4);
    assert_eq!(bench.groups().len(), 5000);
    let mut met: Vec<u32> = bench.group_stats(GroupId::ALL).iter().map(|group| group.group.0).collect();
    met.sort_unstable();
    assert!(met.into_iter().eq(0..5000));
}

#[test]
fn a_long_answer_meets_every_group_that_stays_once() {
    let mut bench = Bench::controlled();
    for group in 0..500 {
        bench.add_group(group, All, vec![bucket(output(2)); 2]);
    }
    for body in [RequestBody::Group(GroupId::ALL), RequestBody::GroupDesc(GroupId::ALL)] {
        let request = weir_openflow::model::MultipartRequest { more: false, body };
        let message = weir_openflow::Message { xid: 5, body: Body::MultipartRequest(request) };
        let mut reply = bench.datapath.long_reply(CONTROLLER, &message).expect("it may be long");
        let (mut met, mut parts, mut turn) = (Vec::new(), 0, 0);
        loop {
            let more = bench.datapath.reply_on(bench.now, &mut reply, 10, &mut bench.out);
            for part in bench.told(CONTROLLER) {
                let Body::MultipartReply(part) = part else { panic!("{part:?}") };
                assert_eq!(part.more, more);
                match part.body {
                    ReplyBody::Group(groups) => met.extend(groups.iter().map(|group| group.group.0)),
                    ReplyBody::GroupDesc(groups) => met.extend(groups.iter().map(|group| group.group.0)),
                    other => panic!("{other:?}"),
                }
                parts += 1;
            }
            if !more {
                break;
            }
            // Other groups are added and removed meanwhile.
            let other = 1000 + turn % 7;
            let command = if turn % 2 == 0 { Add } else { Delete };
            bench.group(command, other, All, vec![]);
            turn += 1;
        }
        met.retain(|group| *group < 500);
        met.sort_unstable();
        assert!(met.into_iter().eq(0..500));
        assert!(parts > 100, "{parts}");
    }
}
