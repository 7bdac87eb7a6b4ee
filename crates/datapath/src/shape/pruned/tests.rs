use super::*;
use crate::shape::MAX_BURST;
use crate::shape::linear::LinearClassifier;
use proptest::prelude::*;
use std::time::Duration;
use weir_packet::{Field, FlowMask, ParsedHeaders};
use weir_testing::rules::{self, HeaderSampling, RuleSetEntry, SeededRng};

/// Content of a classifier: its entries' ids, priorities and matches.
type There = Vec<(EntryId, u16, WordMatches)>;

fn parsed(key: FlowKey) -> ParsedHeaders {
    ParsedHeaders { key, ..ParsedHeaders::default() }
}

/// Returns the priority found for a packet. All kinds of lookup must agree.
fn priority_found(pruned: &PrunedTupleSpace, priorities: &[u16], key: &FlowKey) -> Option<u16> {
    let one = pruned.lookup(key);
    let mut keys = [parsed(FlowKey::EMPTY); MAX_BURST];
    let mut found = [EntryId::NONE; MAX_BURST];
    keys[3] = parsed(*key);
    pruned.lookup_burst(&keys, Lanes(1 << 3), &mut found, |_| ());
    assert_eq!(one.unwrap_or(EntryId::NONE), found[3], "alone and in a burst");
    one.map(|id| priorities[id.index()])
}

/// Returns true if the index has no trace of removed entries, as far as tuples are distinguished exactly.
fn is_clean(index: &PrunerIndex) -> bool {
    index.pruner.is_clean() && index.unpruned().len() == 1 && index.pruner.columns().narrow.survivors(&[]) == 0
}

/// Generates matches on fields in all kinds of slices, with all kinds of masks and few values, so that entries
/// overlap.
fn any_words() -> impl Strategy<Value = WordMatches> {
    let field = prop::sample::select(vec![
        Field::EthDst,
        Field::EthType,
        Field::VlanVid,
        Field::Ipv4Src,
        Field::Ipv4Dst,
        Field::UdpSrc,
        Field::UdpDst,
        Field::IpProto,
        Field::Ipv6Dst,
        Field::Metadata,
        Field::Reg0,
    ]);
    let mask = prop_oneof![
        Just(u128::MAX),
        (0..128_u32).prop_map(|bits| u128::MAX << bits),
        Just(0x0f0f),
        Just(0x8001_8001),
        Just(0xff),
        Just(1),
    ];
    proptest::collection::vec((field, any_value(), mask), 0..4).prop_map(|fields| {
        let (mut key, mut bits) = (FlowKey::EMPTY, FlowMask::EMPTY);
        for (field, value, mask) in fields {
            bits.set(field, mask & field.all_ones());
            key.set(field, value & mask & field.all_ones());
        }
        WordMatches::new(&key, &bits)
    })
}

fn any_value() -> impl Strategy<Value = u128> {
    (0..4_u128, 0..4_u128).prop_map(|(high, low)| high << 14 | high << 46 | low | low << 32)
}

fn any_key() -> impl Strategy<Value = FlowKey> {
    proptest::collection::vec(any_value(), 11).prop_map(|values| {
        let fields = [Field::EthDst, Field::EthType, Field::VlanVid, Field::Ipv4Src, Field::Ipv4Dst, Field::UdpSrc];
        let others = [Field::UdpDst, Field::IpProto, Field::Ipv6Dst, Field::Metadata, Field::Reg0];
        let mut key = FlowKey::EMPTY;
        for (field, value) in fields.into_iter().chain(others).zip(values) {
            key.set(field, value & field.all_ones());
        }
        key
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// After inserting and removing in any order, lookups return entries of the same priority as the reference.
    #[test]
    fn it_agrees_with_the_reference(
        changes in proptest::collection::vec((0..3_u8, 0..6_u16, any_words(), any::<prop::sample::Index>()), 1..150),
        keys in proptest::collection::vec(any_key(), 6),
    ) {
        let (mut linear, mut pruned) = (LinearClassifier::default(), PrunedTupleSpace::default());
        let (mut there, mut priorities) = (There::new(), Vec::new());
        let mut now = Instant::ZERO;
        for (kind, priority, words, which) in changes {
            // Sometimes the table is unchanged for a long time, so that an index is renewed, also during changes.
            now += Duration::from_secs(if kind == 2 { 60 } else { 0 });
            pruned.settle(now);
            if kind > 0 || there.is_empty() {
                if there.iter().any(|(_, p, w)| (p, w) == (&priority, &words)) {
                    continue;
                }
                let id = EntryId(u32::try_from(priorities.len()).expect("few"));
                pruned.make_room(id, &words).expect("there is memory");
                linear.insert(id, priority, &words);
                pruned.insert(id, priority, &words);
                prop_assert_eq!(pruned.find(priority, &words), Some(id));
                priorities.push(priority);
                there.push((id, priority, words));
            } else {
                let (id, priority, words) = there.swap_remove(which.index(there.len()));
                linear.remove(id, priority, &words);
                pruned.remove(id, priority, &words);
            }
            for key in &keys {
                let expected = linear.lookup(key).map(|id| priorities[id.index()]);
                prop_assert_eq!(priority_found(&pruned, &priorities, key), expected);
            }
        }
        prop_assume!(pruned.index.is_some());
        // Removes all entries except one that looks at nothing: the index is there until the end.
        let (last, any) = (EntryId(u32::try_from(priorities.len()).expect("few")), WordMatches::new(&FlowKey::EMPTY, &FlowMask::EMPTY));
        pruned.insert(last, 9, &any);
        for (id, priority, words) in there {
            pruned.remove(id, priority, &words);
        }
        let index = pruned.index.as_ref().expect("it was made, and an entry is left");
        prop_assert!(is_clean(index), "nothing stays of what is gone");
        pruned.remove(last, 9, &any);
        prop_assert!(pruned.index.is_none());
    }
}

fn words_of(rule: &RuleSetEntry) -> WordMatches {
    WordMatches::new(&rule.value, &rule.mask)
}

/// Returns the classifier and the reference with these rules, in this order. The first one counts if two have the
/// same match and priority.
fn with_rules(rules: &[RuleSetEntry]) -> (PrunedTupleSpace, LinearClassifier, Vec<u16>, There) {
    let (mut pruned, mut linear) = (PrunedTupleSpace::default(), LinearClassifier::default());
    let (mut priorities, mut there) = (Vec::new(), There::new());
    for rule in rules {
        let (id, words) = (EntryId(u32::try_from(priorities.len()).expect("few")), words_of(rule));
        if pruned.find(rule.priority, &words).is_some() {
            continue;
        }
        pruned.make_room(id, &words).expect("there is memory");
        pruned.insert(id, rule.priority, &words);
        linear.insert(id, rule.priority, &words);
        priorities.push(rule.priority);
        there.push((id, rule.priority, words));
    }
    (pruned, linear, priorities, there)
}

fn agrees(rules: &[RuleSetEntry], name: &str) {
    let (mut pruned, mut linear, priorities, mut there) = with_rules(rules);
    let mut draw = SeededRng(5);
    for round in 0..3 {
        assert!(pruned.index().is_some(), "{name} has enough masks");
        for kind in [HeaderSampling::Hits, HeaderSampling::Crossed, HeaderSampling::Random] {
            for key in rules::headers(rules, kind, 150, round) {
                let expected = linear.lookup(&key).map(|id| priorities[id.index()]);
                assert_eq!(priority_found(&pruned, &priorities, &key), expected, "{name}, {kind:?}: {key:?}");
            }
        }
        // Removes a third of the rules.
        for _ in 0..there.len() / 3 {
            let (id, priority, words) = there.swap_remove(draw.below(there.len()));
            linear.remove(id, priority, &words);
            pruned.remove(id, priority, &words);
        }
    }
    for (id, priority, words) in there {
        pruned.remove(id, priority, &words);
    }
    assert!(pruned.index.is_none() && pruned.entries().len() == 0, "{name}: nothing stays");
}

#[test]
fn generated_firewalls_are_searched_right() {
    for name in ["acl1", "acl2", "fw1", "fw2", "ipc1"] {
        let Some(path) = weir_testing::shared(&format!("data/external/rules/classbench/{name}_10k.gz")) else { return };
        let rules = rules::classbench(&rules::gunzip(&path));
        agrees(&rules, name);
    }
}

#[test]
fn entries_may_come_in_any_order() {
    let Some(path) = weir_testing::shared("data/external/rules/classbench/ipc1_10k.gz") else { return };
    let mut rules = rules::classbench(&rules::gunzip(&path));
    rules.reverse();
    agrees(&rules, "lowest first");
    let mut draw = SeededRng(9);
    (1..rules.len()).rev().for_each(|at| rules.swap(at, draw.below(at + 1)));
    agrees(&rules, "mixed");
}

#[test]
fn access_lists_of_a_campus_are_searched_right() {
    let Some(folder) = weir_testing::shared("data/external/rules/stanford") else { return };
    let mut rules = Vec::new();
    for name in ["bbra", "boza", "coza", "soza", "yoza"] {
        rules.extend(rules::access_lists(&rules::gunzip(&folder.join(format!("{name}_rtr_config.txt.gz")))));
    }
    assert!(rules.len() > 300, "the lists are read: {}", rules.len());
    agrees(&rules, "stanford");
}

/// Returns a match on the bits of metadata that `number` selects, so that each number has its own mask.
fn numbered(number: u64) -> WordMatches {
    let (mut key, mut mask) = (FlowKey::EMPTY, FlowMask::EMPTY);
    mask.set(Field::Metadata, (number + 1).into());
    key.set(Field::Metadata, (number + 1).into());
    WordMatches::new(&key, &mask)
}

/// More masks than the pruner has places for: the others are probed as well.
#[test]
fn more_masks_than_places_are_searched() {
    let count = 4500_u64;
    let mut pruned = PrunedTupleSpace::default();
    for number in 0..count {
        let (id, words) = (EntryId(u32::try_from(number).expect("few")), numbered(number));
        pruned.make_room(id, &words).expect("there is memory");
        pruned.insert(id, 7, &words);
    }
    let index = pruned.index().expect("there are enough masks");
    assert_eq!(index.unpruned().len(), 4500 - 4160);
    for number in [0, 63, 64, 600, 4159, 4160, 4499] {
        let mut key = FlowKey::EMPTY;
        key.set(Field::Metadata, (number + 1_u64).into());
        assert!(pruned.lookup(&key).is_some(), "{number}");
    }
    assert_eq!(pruned.lookup(&FlowKey::EMPTY), None);
    for number in (0..count).rev() {
        pruned.remove(EntryId(u32::try_from(number).expect("few")), 7, &numbered(number));
    }
    assert!(pruned.index.is_none());
}

/// Entries that pass every slice, each because of a different one: nothing is pruned, and the correct entry is found.
#[test]
fn entries_that_fail_only_together_are_asked_one_by_one() {
    let mut pruned = PrunedTupleSpace::default();
    let mut number = 0;
    for tuple in 0..40_u32 {
        let bits = (1_u128 << (tuple % 16)) | 1 << (16 + tuple / 16);
        let mut add = |source: u128, destination: u128| {
            let (mut key, mut mask) = (FlowKey::EMPTY, FlowMask::EMPTY);
            for (field, value) in [(Field::Ipv4Src, source), (Field::Ipv4Dst, destination)] {
                key.set(field, value & !bits & 0xffff_ffff);
                mask.set(field, !bits & 0xffff_ffff);
            }
            let words = WordMatches::new(&key, &mask);
            let id = EntryId(number);
            pruned.make_room(id, &words).expect("there is memory");
            pruned.insert(id, 1, &words);
            number += 1;
        };
        // The packet below has the source of the first entry and the destination of the second.
        add(0x0101_0101, 0x0909_0909);
        add(0x0202_0202, 0x0707_0707);
    }
    let index = pruned.index().expect("there are enough masks");
    let packet = |source: u128, destination: u128| {
        let mut key = FlowKey::EMPTY;
        key.set(Field::Ipv4Src, source);
        key.set(Field::Ipv4Dst, destination);
        key
    };
    let crossed = packet(0x0101_0101, 0x0707_0707);
    let passing = index.pruner.columns().narrow.survivors(&index.pruner.steps(&crossed));
    assert!(passing.count_ones() > 20, "{passing:b}");
    assert_eq!(pruned.lookup(&crossed), None);
    assert!(pruned.lookup(&packet(0x0202_0202, 0x0707_0707)).is_some());
}

/// Returns the mean number of probes for packets that match the table's entries.
fn probes(pruned: &PrunedTupleSpace, count: u64) -> f64 {
    let key = |number: u64| {
        let mut key = FlowKey::EMPTY;
        key.set(Field::Metadata, (number + 1).into());
        key
    };
    let all: u32 = (0..count).map(|number| pruned.probes(&key(number)).expect("it can tell")).sum();
    f64::from(all) / count as f64
}

/// Tuples created in the wrong order are reordered when the table is left unchanged; lookups return the same entries.
#[test]
fn a_table_left_alone_is_put_in_order() {
    let (count, mut pruned) = (1000_u16, PrunedTupleSpace::default());
    for number in 0..count {
        let (id, words) = (EntryId(number.into()), numbered(number.into()));
        pruned.make_room(id, &words).expect("there is memory");
        pruned.insert(id, number, &words);
    }
    let before = probes(&pruned, count.into());
    let (mut now, mut calls) = (Instant::ZERO, 0);
    while let Some(at) = pruned.settle(now) {
        assert!(at >= now, "it is not asked for the past");
        (now, calls) = (at, calls + 1);
        assert!(calls < 10_000, "it ends");
    }
    let index = pruned.index().expect("there are enough masks");
    assert!(!index.places.are_disordered() && index.unpruned().len() == 0);
    assert!(calls > 100 && now > Instant::ZERO, "a few tuples at a time, after a while");
    assert!(probes(&pruned, count.into()) < before, "fewer are asked in vain");
    assert_eq!(pruned.settle(now + Duration::from_secs(3600)), None);
    let mut key = FlowKey::EMPTY;
    for number in 0..count {
        key.set(Field::Metadata, (u128::from(number)) + 1);
        let found = pruned.lookup(&key).expect("its own entry matches");
        assert!(found.0 >= number.into(), "no later one has a lower priority");
    }
}

/// The entry that all packets match is probed last, regardless of when it was inserted.
#[test]
fn what_matches_all_is_asked_last() {
    let mut pruned = PrunedTupleSpace::default();
    let any = WordMatches::new(&FlowKey::EMPTY, &FlowMask::EMPTY);
    let others = (1..100).map(|number| (9, numbered(number)));
    for (id, (priority, words)) in (0..).map(EntryId).zip(std::iter::once((0, any)).chain(others)) {
        pruned.make_room(id, &words).expect("there is memory");
        pruned.insert(id, priority, &words);
    }
    let mut key = FlowKey::EMPTY;
    key.set(Field::Metadata, 0x40);
    let unpruned = pruned.index().expect("there are enough masks").unpruned();
    assert_eq!((unpruned.len(), unpruned.best()), (1, Some(0)));
    assert_eq!(pruned.lookup(&key), Some(EntryId(0x3f)), "numbers are from 0 on");
    assert_eq!(pruned.lookup(&FlowKey::EMPTY), Some(EntryId(0)));
}

/// A table that gets its masks late is indexed step by step, and lookups are correct meanwhile.
#[test]
fn a_large_table_is_indexed_in_steps() {
    let exact = |number: u64| {
        let (mut key, mut mask) = (FlowKey::EMPTY, FlowMask::EMPTY);
        key.set(Field::EthDst, number.into());
        mask.set(Field::EthDst, Field::EthDst.all_ones());
        (key, WordMatches::new(&key, &mask))
    };
    let mut pruned = PrunedTupleSpace::default();
    let mut insert = |id: u64, priority: u16, words: &WordMatches| {
        let id = EntryId(u32::try_from(id).expect("few"));
        pruned.make_room(id, words).expect("there is memory");
        pruned.insert(id, priority, words);
        assert_eq!(pruned.lookup(&exact(777).0), (id.0 >= 777).then_some(EntryId(777)));
        pruned.index().is_some()
    };
    let before = 5000;
    (0..before).for_each(|number| assert!(!insert(number, 9, &exact(number).1)));
    let is_ready: Vec<bool> = (0..400).map(|number| insert(before + number, 1, &numbered(number))).collect();
    assert!(!is_ready[20] && is_ready[399]);
    // Changes of entries that are counted already, and of others.
    pruned.remove(EntryId(777), 9, &exact(777).1);
    assert_eq!(pruned.lookup(&exact(777).0), None);
}
