//! Compares the hash with the reference classifier, and with a map.
use super::{EntryHashTable, TupleSpace};
use crate::shape::linear::LinearClassifier;
use crate::shape::{Classifier, EntryId, Lanes, MAX_BURST, WordMatches};
use proptest::prelude::*;
use weir_packet::{Field, FlowKey, FlowMask, ParsedHeaders};

type Entry = (EntryId, u16, WordMatches);

fn words(fields: &[(Field, u128, u128)]) -> WordMatches {
    let (mut key, mut mask) = (FlowKey::EMPTY, FlowMask::EMPTY);
    for (field, value, bits) in fields {
        key.set(*field, value & bits);
        mask.set(*field, *bits);
    }
    WordMatches::new(&key, &mask)
}

fn key(fields: &[(Field, u128)]) -> FlowKey {
    let mut key = FlowKey::EMPTY;
    fields.iter().for_each(|(field, value)| key.set(*field, *value));
    key
}

/// Fields that lie in six words, so that matches have up to six words.
const FIELDS: [Field; 5] = [Field::EthDst, Field::Ipv4Src, Field::TcpDst, Field::Ipv6Src, Field::Metadata];

/// Generates matches with few values and masks, so that they overlap.
fn any_words() -> impl Strategy<Value = WordMatches> {
    let bits = || prop::sample::select(vec![0_u128, 0, 1, 3, 6, u128::MAX]);
    let both = || 1_u128 | 1 << 64;
    proptest::collection::vec((0..8_u128, bits()), FIELDS.len()).prop_map(move |values| {
        let fields = FIELDS.iter().zip(values).map(|(field, (value, bits))| {
            let all = if field.bits() == 128 { bits & (7 * both()) } else { bits & 7 };
            (*field, (value * both()) & field.all_ones(), all & field.all_ones())
        });
        words(&fields.collect::<Vec<_>>())
    })
}

fn any_key() -> impl Strategy<Value = FlowKey> {
    proptest::collection::vec(0..8_u128, FIELDS.len()).prop_map(|values| {
        let both = 1_u128 | 1 << 64;
        let fields = FIELDS.iter().zip(values).map(|(field, value)| (*field, (value * both) & field.all_ones()));
        key(&fields.collect::<Vec<_>>())
    })
}

fn burst(space: &TupleSpace, packets: &[FlowKey], lanes: Lanes) -> Vec<Option<EntryId>> {
    let mut keys = [ParsedHeaders::default(); MAX_BURST];
    keys.iter_mut().zip(packets).for_each(|(place, key)| place.key = *key);
    let mut found = [EntryId(77); MAX_BURST];
    space.lookup_burst(&keys, lanes, &mut found, |_| {});
    let given = |lane: usize| if lanes.has(lane) { found[lane] } else { EntryId::NONE };
    let all: Vec<EntryId> = (0..packets.len()).map(given).collect();
    assert!((0..MAX_BURST).all(|lane| lanes.has(lane) || found[lane] == EntryId(77)), "others are left alone");
    all.into_iter().map(|id| (id != EntryId::NONE).then_some(id)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// After inserting, removing and finding in any order, lookups return entries of the same priority as the
    /// reference.
    #[test]
    fn it_agrees_with_the_reference(
        changes in proptest::collection::vec((0..5_u8, 0..6_u16, any_words(), any::<prop::sample::Index>()), 1..120),
        packets in proptest::collection::vec(any_key(), 12),
        lanes: u64,
    ) {
        let (mut linear, mut space) = (LinearClassifier::default(), TupleSpace::default());
        let (mut there, mut free): (Vec<Entry>, Vec<EntryId>) = Default::default();
        for (kind, priority, words, which) in changes {
            if kind != 0 || there.is_empty() {
                let same = there.iter().find(|(_, p, w)| (p, w) == (&priority, &words)).map(|(id, ..)| *id);
                prop_assert_eq!(space.find(priority, &words), same);
                // Tables replace an entry with the same match and priority.
                if same.is_some() {
                    continue;
                }
                let next = EntryId(u32::try_from(there.len()).expect("few"));
                let id = free.pop().unwrap_or(next);
                linear.insert(id, priority, &words);
                space.make_room(id, &words).expect("there is memory");
                space.insert(id, priority, &words);
                prop_assert_eq!(space.words_of(id, priority), Some(words.clone()));
                prop_assert_eq!(linear.words_of(id, priority), Some(words.clone()));
                there.push((id, priority, words));
            } else {
                let (id, priority, words) = there.swap_remove(which.index(there.len()));
                linear.remove(id, priority, &words);
                space.remove(id, priority, &words);
                prop_assert_eq!(space.find(priority, &words), None);
                free.push(id);
            }
            let priority_of = |id: EntryId| there.iter().find(|(other, ..)| *other == id).map(|(_, priority, _)| *priority);
            let expected: Vec<_> = packets.iter().map(|key| linear.lookup(key).map(priority_of)).collect();
            let singly: Vec<_> = packets.iter().map(|key| space.lookup(key).map(priority_of)).collect();
            prop_assert_eq!(&singly, &expected);
            let lanes = Lanes(lanes & ((1 << packets.len()) - 1));
            let together: Vec<_> = burst(&space, &packets, lanes).into_iter().map(|id| id.map(priority_of)).collect();
            let named = expected.into_iter().enumerate();
            prop_assert_eq!(together, named.map(|(lane, one)| one.filter(|_| lanes.has(lane))).collect::<Vec<_>>());
        }
        for (id, priority, words) in there {
            space.remove(id, priority, &words);
        }
        // Rows are released by the table.
        space.entries_mut().rows_mut().trim(0);
        let entries = space.entries();
        prop_assert_eq!((entries.len(), entries.held(), entries.tuples().in_order().len()), (0, 0, 0), "nothing stays");
    }
}

/// Returns priority, match and packet of entry `n` in a table with three masks: Ethernet, IPv4 with ports, IPv6.
fn entry(n: u32) -> (u16, WordMatches, FlowKey) {
    let (value, all) = (u128::from(n + 1), u128::MAX);
    let fields: Vec<(Field, u128)> = match n % 3 {
        0 => vec![(Field::EthDst, value)],
        1 => vec![(Field::EthType, 0x800), (Field::Ipv4Src, value), (Field::TcpDst, value & 0xff)],
        _ => vec![(Field::EthType, 0x86dd), (Field::Ipv6Src, value << 70), (Field::Ipv6Dst, value), (Field::TcpDst, 7)],
    };
    let masked = fields.iter().map(|(field, value)| (*field, *value, all & field.all_ones()));
    (100, words(&masked.collect::<Vec<_>>()), key(&fields))
}

#[test]
fn many_entries_come_and_go() {
    const COUNT: u32 = 150_000;
    let mut space = TupleSpace::default();
    for n in 0..COUNT {
        let (priority, words, _) = entry(n);
        space.make_room(EntryId(n), &words).expect("there is memory");
        space.insert(EntryId(n), priority, &words);
    }
    let bytes = space.entries().held() / COUNT as usize;
    // Bucket, row, and unused space; a third of the entries have 40 bytes more.
    assert!(bytes < 13 + 64 + 14 + 40, "{bytes} bytes an entry");
    assert_eq!(space.entries().n_places(), COUNT as usize);
    let all = space.entries().entries(0, COUNT as usize);
    assert!(
        (0..COUNT).zip(all).all(|(n, (id, priority, words))| (id, priority, words) == (EntryId(n), 100, entry(n).1))
    );
    for n in 0..COUNT {
        let (priority, words, key) = entry(n);
        assert_eq!(space.find(priority, &words), Some(EntryId(n)));
        assert_eq!(space.lookup(&key), Some(EntryId(n)));
        assert_eq!(space.find(priority + 1, &words), None);
    }
    let missing: Vec<FlowKey> = (COUNT..COUNT + 64).map(|n| entry(n).2).collect();
    assert!(burst(&space, &missing, Lanes(u64::MAX)).iter().all(Option::is_none));
    // Removal order differs from insertion order.
    let removed = |n: u32| u32::try_from(u64::from(n) * 48_271 % u64::from(COUNT)).expect("below COUNT");
    for n in 0..COUNT - 99 {
        let (priority, words, _) = entry(removed(n));
        space.remove(EntryId(removed(n)), priority, &words);
    }
    let left: Vec<u32> = (COUNT - 99..COUNT).map(removed).collect();
    assert_eq!(space.entries().len(), left.len());
    assert!(left.iter().all(|n| space.lookup(&entry(*n).2) == Some(EntryId(*n))));
    for n in left {
        let (priority, words, _) = entry(n);
        space.remove(EntryId(n), priority, &words);
    }
    // Rows are released by the table.
    while !space.entries_mut().rows_mut().trim(0) {}
    assert_eq!(space.entries().held(), 0);
}

#[test]
fn the_next_best_of_a_match_takes_its_place() {
    let (mut entries, all) = (EntryHashTable::default(), words(&[(Field::EthDst, 5, 0xff)]));
    for (id, priority) in [(0, 4), (1, 9), (2, 1), (3, 7)] {
        entries.make_room(EntryId(id), &all).expect("there is memory");
        entries.insert(EntryId(id), priority, &all);
    }
    let tuple = entries.tuples().find(&all).expect("it has entries");
    let packet = key(&[(Field::EthDst, 0x105)]);
    let there = |entries: &EntryHashTable| entries.entries(0, 10).map(|(id, ..)| id.0).collect::<Vec<_>>();
    for (id, priority, left) in [(1, 9, vec![0, 2, 3]), (3, 7, vec![0, 2]), (0, 4, vec![2]), (2, 1, vec![])] {
        assert_eq!(entries.get(tuple, &packet), Some((priority, EntryId(id))));
        assert_eq!(entries.find(priority, &all), Some(EntryId(id)));
        assert_eq!((entries.remove(EntryId(id)), there(&entries)), (Some(tuple), left));
    }
    assert_eq!((entries.remove(EntryId(0)), entries.len()), (None, 0));
}
