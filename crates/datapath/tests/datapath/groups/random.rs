//! Random group-mods, most of them invalid: after refusals the groups are consistent, and packets do not loop.
use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use weir_openflow::model::error::GroupModFailed;
use weir_openflow::model::group::GroupDesc;

/// Number of groups used.
const GROUPS: u32 = 7;

fn any_bucket() -> impl Strategy<Value = Bucket> {
    let group = || proptest::option::weighted(0.5, 0..GROUPS).prop_map(|group| group.map(GroupId));
    let port = proptest::option::weighted(0.3, 0..7_u32).prop_map(|port| port.map_or(PortNo::ANY, PortNo));
    (group(), group(), port, 0..3_u16, 1..=PORTS).prop_map(|(next, watched, watch_port, weight, port)| {
        let actions = next.map_or_else(|| output(port), |next| to_group(next.0));
        Bucket { weight, watch_port, watch_group: watched.unwrap_or(GroupId::ANY), ..bucket(actions) }
    })
}

fn any_change() -> impl Strategy<Value = GroupMod> {
    let command = prop_oneof![3 => Just(Add), 3 => Just(Modify), 1 => Just(Delete)];
    let group = prop_oneof![20 => 0..GROUPS, 1 => Just(GroupId::ALL.0), 1 => Just(GroupId::ANY.0)];
    let buckets = (0..5_u8, proptest::collection::vec(any_bucket(), 0..3)).prop_map(|(kind, mut buckets)| {
        let kind = GroupKind::from_number(kind);
        // Valid more often than not.
        buckets.iter_mut().for_each(|bucket| bucket.weight *= kind.default_weight());
        (kind, buckets)
    });
    (command, group, buckets).prop_map(|(command, group, (kind, buckets))| group_mod(command, group, kind, buckets))
}

/// Returns the groups that a group sends to, and those that it watches.
fn leads(group: &GroupDesc) -> (Vec<GroupId>, Vec<GroupId>) {
    let next = |bucket: &Bucket| match bucket.actions[..] {
        [Action::Group(group)] => Some(group),
        _ => None,
    };
    let watched = group.buckets.iter().map(|bucket| bucket.watch_group).filter(|group| *group != GroupId::ANY);
    (group.buckets.iter().filter_map(next).collect(), watched.collect())
}

/// Returns the length of the longest chain from a group. Panics if it exceeds `most`.
fn depth(groups: &BTreeMap<GroupId, GroupDesc>, group: GroupId, most: usize) -> usize {
    assert!(most > 0, "a loop");
    let (next, watched) = leads(&groups[&group]);
    1 + next.into_iter().chain(watched).map(|group| depth(groups, group, most - 1)).max().unwrap_or(0)
}

fn check(bench: &mut Bench) {
    let groups: BTreeMap<GroupId, GroupDesc> = bench.groups().into_iter().map(|group| (group.group, group)).collect();
    for id in groups.keys() {
        assert!(depth(&groups, *id, groups.len()) <= 16);
    }
    for stats in bench.group_stats(GroupId::ALL) {
        let forwarders = groups.values().filter(|group| leads(group).0.contains(&stats.group)).count();
        assert_eq!(stats.ref_count as usize, forwarders);
        assert_eq!(stats.buckets.len(), groups[&stats.group].buckets.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn what_is_left_makes_sense(changes in proptest::collection::vec(any_change(), 1..40)) {
        let mut bench = Bench::controlled();
        for change in changes {
            let before = bench.groups();
            let is_led_to = before.iter().any(|group| {
                let (next, watched) = leads(group);
                next.contains(&change.group) || watched.contains(&change.group)
            });
            let error = bench.error_of(CONTROLLER, Body::GroupMod(change.clone()));
            if error.is_some() {
                prop_assert_eq!(bench.groups(), before);
            }
            let is_chained = change.command == Delete && is_led_to;
            prop_assert_eq!(error == Some(GroupModFailed::ChainedGroup.into()), is_chained);
            check(&mut bench);
        }
        for group in bench.groups() {
            bench.add(1, Match::any(), to_group(group.group.0));
            let before = bench.datapath.drops().total();
            let sent = bench.receive(1, &frame()).len() as u64;
            prop_assert!(sent + bench.datapath.drops().total() - before > 0, "every packet goes somewhere or is counted");
        }
    }
}
