//! Compares the prefix tries with the linear reference, also with real routes.
use super::super::hash::TupleSpace;
use super::super::linear::LinearClassifier;
use super::super::{Classifier, EntryId, Lanes, WordMatches};
use super::{MAX_UNINDEXED, PrefixClassifier, PrefixError, PrefixOverlay};
use proptest::prelude::*;
use proptest::sample::Index;
use std::collections::HashMap;
use std::net::IpAddr;
use weir_packet::field::eth_type;
use weir_packet::{Field, FlowKey, FlowMask, ParsedHeaders};
use weir_testing::rules::{SeededRng, gunzip, prefixes};

/// Returns a match on fields, given as value and mask.
fn words(fields: &[(Field, u128, u128)]) -> WordMatches {
    let (mut key, mut mask) = (FlowKey::EMPTY, FlowMask::EMPTY);
    for (field, value, bits) in fields {
        key.set(*field, value & bits);
        mask.set(*field, *bits);
    }
    WordMatches::new(&key, &mask)
}

/// Returns a route for a field: the Ethernet type and the first `len` bits of an address.
fn route(field: Field, address: u128, len: u32) -> WordMatches {
    let mask = field.all_ones() & !(field.all_ones().checked_shr(len).unwrap_or(0));
    words(&[(Field::EthType, type_of(field), 0xffff), (field, address, mask)])
}

fn type_of(field: Field) -> u128 {
    u128::from(if matches!(field, Field::Ipv6Src | Field::Ipv6Dst) { eth_type::IPV6 } else { eth_type::IPV4 })
}

fn packet(field: Field, address: u128) -> FlowKey {
    let mut key = FlowKey::EMPTY;
    key.set(Field::EthType, type_of(field));
    key.set(field, address);
    key
}

/// Generates few different addresses, so that prefixes are nested, end in the same node, or are equal.
fn address(field: Field) -> impl Strategy<Value = u128> {
    let low = field.bits();
    (0..4_u128, 0..4_u128, 0..4_u128, any::<u128>(), 0..8_u32).prop_map(move |(first, second, third, any, rarely)| {
        let near = (first << (low - 2)) | (second << (low - 14)) | (third << (low / 3));
        if rarely == 0 { any & field.all_ones() } else { near }
    })
}

#[derive(Debug, Clone)]
struct Entry {
    words: WordMatches,
    priority: u16,
}

const FIELDS: [Field; 4] = [Field::Ipv4Dst, Field::Ipv6Dst, Field::Ipv4Src, Field::EthDst];

/// Generates routes whose priority does or does not follow their length; sometimes an entry of another kind.
fn entry() -> impl Strategy<Value = Entry> {
    let field = prop_oneof![4 => Just(FIELDS[0]), 3 => Just(FIELDS[1]), 1 => Just(FIELDS[2]), 1 => Just(FIELDS[3])];
    let route_of = |field: Field| {
        let priority = prop_oneof![8 => Just(None), 1 => (0..200_u16).prop_map(Some)];
        (address(field), 0..=field.bits(), priority).prop_map(move |(address, len, priority)| {
            let by_length = u16::try_from(len).expect("at most 128");
            Entry { words: route(field, address, len), priority: priority.unwrap_or(by_length) }
        })
    };
    let odd = (0..3_u128, 0..200_u16).prop_map(|(port, priority)| {
        let mask = if port == 0 { 0 } else { u128::from(u32::MAX) };
        Entry { words: words(&[(Field::InPort, port, mask)]), priority }
    });
    prop_oneof![30 => field.prop_flat_map(route_of), 1 => odd]
}

fn key() -> impl Strategy<Value = FlowKey> {
    (0..FIELDS.len(), 0..3_u128).prop_flat_map(|(field, port)| {
        address(FIELDS[field]).prop_map(move |address| {
            let mut key = packet(FIELDS[field], address);
            key.set(Field::InPort, port);
            key
        })
    })
}

/// Returns the lookup results for a burst of these packets.
fn burst(prefixes: &PrefixClassifier, keys: &[FlowKey], lanes: u64) -> [EntryId; 64] {
    let mut parsed = Box::new([ParsedHeaders::default(); 64]);
    parsed.iter_mut().zip(keys.iter().cycle()).for_each(|(parsed, key)| parsed.key = *key);
    let mut found = [EntryId(7_777_777); 64];
    let told = std::cell::RefCell::new(Vec::new());
    prefixes.lookup_burst(&parsed, Lanes(lanes), &mut found, |id| told.borrow_mut().push(id));
    let there = (0..64).filter(|lane| lanes >> lane & 1 != 0).map(|lane| found[lane]).filter(|id| *id != EntryId::NONE);
    assert_eq!(*told.borrow(), there.collect::<Vec<_>>(), "every entry is told of");
    found
}

proptest! {
    #[test]
    fn it_finds_what_comparing_all_finds(
        changes in proptest::collection::vec((0..3_u8, entry(), any::<Index>()), 1..150),
        keys in proptest::collection::vec(key(), 12),
        lanes in any::<u64>(),
    ) {
        let (mut linear, mut prefixes) = (LinearClassifier::default(), PrefixClassifier::default());
        let mut there: Vec<(EntryId, Entry)> = Vec::new();
        for (number, (what, entry, which)) in (0..).zip(changes) {
            if what == 0 && !there.is_empty() {
                let (id, entry) = there.swap_remove(which.index(there.len()));
                linear.remove(id, entry.priority, &entry.words);
                prefixes.remove(id, entry.priority, &entry.words).expect("there is memory");
            } else if !there.iter().any(|(_, other)| (other.priority, &other.words) == (entry.priority, &entry.words)) {
                let id = EntryId(number);
                if prefixes.insert(id, entry.priority, &entry.words) == Err(PrefixError) {
                    continue;
                }
                linear.make_room(id, &entry.words).expect("there is memory");
                linear.insert(id, entry.priority, &entry.words);
                there.push((id, entry));
            }
            let priority_of = |id: EntryId| there.iter().find(|(other, _)| *other == id).map(|(_, entry)| entry.priority);
            for key in &keys {
                let expected = linear.lookup(key).map(priority_of);
                prop_assert_eq!(prefixes.lookup(key).map(priority_of), expected);
            }
            let found = burst(&prefixes, &keys, lanes);
            for (lane, key) in keys.iter().cycle().take(64).enumerate() {
                let expected = if lanes >> lane & 1 == 0 { EntryId(7_777_777) } else { prefixes.lookup(key).unwrap_or(EntryId::NONE) };
                prop_assert_eq!(found[lane], expected);
            }
        }
        for (id, entry) in there {
            prefixes.remove(id, entry.priority, &entry.words).expect("there is memory");
        }
        prop_assert!(prefixes.is_empty(), "nothing stays of what is gone");
    }
}

/// A table with tries over its hash, and a reference that compares all entries.
#[derive(Default)]
struct Both {
    linear: LinearClassifier,
    hashed: TupleSpace,
    overlay: PrefixOverlay,
    there: Vec<(EntryId, Entry)>,
    next: u32,
}

impl Both {
    fn insert(&mut self, words: WordMatches, priority: u16) -> EntryId {
        let id = EntryId(self.next);
        self.next += 1;
        self.linear.insert(id, priority, &words);
        self.hashed.make_room(id, &words).expect("there is memory");
        self.hashed.insert(id, priority, &words);
        self.overlay.added(self.hashed.entries(), id, priority, &words);
        self.there.push((id, Entry { words, priority }));
        id
    }

    fn remove(&mut self, at: usize) {
        let (id, Entry { words, priority }) = self.there.swap_remove(at);
        self.linear.remove(id, priority, &words);
        self.hashed.remove(id, priority, &words);
        self.overlay.removed(self.hashed.entries(), id, priority, &words);
    }

    fn check(&self, draw: &mut SeededRng) {
        let Some(prefixes) = self.overlay.whole() else { return };
        for _ in 0..4 {
            let (_, entry) = &self.there[draw.below(self.there.len())];
            let mut key = FlowKey::EMPTY;
            entry.words.iter().for_each(|word| {
                let any = if draw.number().is_multiple_of(2) { draw.number() } else { 0 };
                key.words[usize::from(word.word)] = word.value | any & !word.mask;
            });
            let priority =
                |id: EntryId| self.there.iter().find(|(other, _)| *other == id).map(|(_, entry)| entry.priority);
            assert_eq!(prefixes.lookup(&key).map(priority), self.linear.lookup(&key).map(priority));
        }
    }
}

#[test]
fn tries_come_and_go_over_the_hash_a_few_entries_at_a_time() {
    let (mut both, mut draw) = (Both::default(), SeededRng(99));
    let any_route = |draw: &mut SeededRng, len: u32| {
        let mask = u128::MAX << (32 - len) & 0xffff_ffff;
        route(Field::Ipv4Dst, u128::from(draw.number()) & mask & 0x0a03_ff1f, len)
    };
    for host in 0..1000 {
        both.insert(route(Field::Ipv4Dst, 0x0a00_0000 | host, 32), 32);
    }
    assert!(both.overlay.whole().is_none() && both.overlay.held() == 0, "one mask is best hashed");
    // Three masks: the tries are built while entries are inserted and removed on both sides of the build's position.
    let mut n_partial = 0;
    for change in 0..400 {
        let len = [12, 16, 20, 24, 27][change % 5];
        let words = any_route(&mut draw, len);
        if both.there.iter().all(|(_, entry)| entry.words != words) {
            both.insert(words, u16::try_from(len).expect("at most 32"));
        }
        let at = draw.below(both.there.len());
        both.remove(at);
        n_partial += u32::from(matches!(both.overlay, PrefixOverlay::Partial { .. }));
        both.check(&mut draw);
    }
    assert!(n_partial > 10 && both.overlay.whole().is_some(), "partial after {n_partial} changes");
    // Entries of another kind are kept outside the tries until there are too many.
    for port in 0..=u128::try_from(MAX_UNINDEXED).expect("a small number") {
        assert!(both.overlay.whole().is_some(), "with {port} others");
        both.insert(words(&[(Field::InPort, port, u128::from(u32::MAX))]), 1);
        both.check(&mut draw);
    }
    assert!(matches!(both.overlay, PrefixOverlay::None { refused_len: 500.. }), "{:?} after too many", both.overlay);
    // Building is tried again after half of the entries are gone.
    both.there.sort_by_key(|(_, entry)| entry.priority);
    while both.there.len() > 20 {
        both.remove(if both.there[0].1.priority == 1 { 0 } else { draw.below(both.there.len()) });
        both.check(&mut draw);
    }
    assert!(both.overlay.whole().is_some(), "{:?} without the others", both.overlay);
    while !both.there.is_empty() {
        both.remove(0);
    }
    assert!(both.overlay.whole().is_none() && both.overlay.held() == 0);
}

#[test]
fn what_does_not_fit_is_beside_as_long_as_there_is_room() {
    let mut prefixes = PrefixClassifier::default();
    let port = |number: u32| words(&[(Field::InPort, u128::from(number), u128::from(u32::MAX))]);
    prefixes.insert(EntryId(100), 16, &route(Field::Ipv4Dst, 0x0a01_0000, 16)).expect("routes fit");
    for number in (0..).take(MAX_UNINDEXED) {
        prefixes.insert(EntryId(number), 1, &port(number)).expect("there is room");
    }
    assert_eq!(prefixes.insert(EntryId(50), 1, &port(50)), Err(PrefixError));
    prefixes.insert(EntryId(101), 24, &route(Field::Ipv4Dst, 0x0a01_0200, 24)).expect("routes still fit");
    prefixes.remove(EntryId(0), 1, &port(0)).expect("it is there");
    prefixes.insert(EntryId(50), 1, &port(50)).expect("there is room again");
}

/// Routes as field, address and length.
type Routes = Vec<(Field, u128, u32)>;

fn routes(text: &str) -> Routes {
    let field_of = |(address, len)| match address {
        IpAddr::V4(address) => (Field::Ipv4Dst, u128::from(address.to_bits()), len),
        IpAddr::V6(address) => (Field::Ipv6Dst, address.to_bits(), len),
    };
    prefixes(text).into_iter().map(field_of).collect()
}

/// Reference lookup of routes: tries every length, the longest first.
#[derive(Default)]
struct Reference(HashMap<(Field, u32, u128), EntryId>);

impl Reference {
    fn lookup(&self, field: Field, address: u128) -> Option<EntryId> {
        let cut = |len: u32| address & !(field.all_ones().checked_shr(len).unwrap_or(0));
        (0..=field.bits()).rev().find_map(|len| self.0.get(&(field, len, cut(len))).copied())
    }
}

#[test]
fn routes_of_the_internet_are_found_and_go_without_a_trace() {
    if let Some(path) = weir_testing::shared("data/external/rules/routes/internet-full-v4v6-prefixes.txt.gz") {
        come_and_go(routes(&gunzip(&path)));
    }
}

#[test]
fn routes_of_a_campus_are_found_and_go_without_a_trace() {
    let Some(folder) = weir_testing::shared("data/external/rules/stanford") else { return };
    let tables = weir_testing::files(&folder, "", "gz").into_iter().filter(|(name, _)| name.ends_with("_route.txt.gz"));
    let mut count = 0;
    for (name, _) in tables {
        let text = gunzip(&folder.join(name));
        let columns = text.lines().filter_map(|line| line.split_whitespace().next());
        let mut prefixes: Vec<&str> = columns.filter(|column| column.contains('/')).collect();
        prefixes.sort_unstable();
        prefixes.dedup();
        come_and_go(routes(&prefixes.join("\n")));
        count += 1;
    }
    assert!(count > 4, "{count} tables");
}

/// Inserts routes in any order and removes them in another, and compares lookups on the way.
fn come_and_go(mut routes: Routes) {
    let mut draw = SeededRng(4711);
    (1..routes.len()).for_each(|last| routes.swap(last, draw.below(last + 1)));
    // The field that addresses are looked at in part must be known before many full-length addresses are inserted:
    // see `PrefixOverlay`.
    let first = routes.iter().position(|(field, _, len)| (1..field.bits()).contains(len));
    routes.swap(0, first.expect("some route is for more than one address"));
    let (mut prefixes, mut reference) = (PrefixClassifier::default(), Reference::default());
    let miss = words(&[]);
    prefixes.insert(EntryId(9_999_999), 0, &miss).expect("there is room beside");
    for (id, (field, bits, len)) in (0..).zip(&routes) {
        let priority = u16::try_from(*len).expect("at most 128");
        prefixes.insert(EntryId(id), priority, &route(*field, *bits, *len)).expect("routes fit");
        reference.0.insert((*field, *len, *bits), EntryId(id));
    }
    let full = prefixes.held();
    assert!(full < (1 << 20) + 20 * routes.len(), "{full} bytes for {} routes", routes.len());
    // Checks addresses within present and absent routes, and random ones.
    let mut check = |prefixes: &PrefixClassifier, reference: &Reference, count: usize| {
        for _ in 0..count {
            let (field, bits, len) = routes[draw.below(routes.len())];
            let random = u128::from(draw.number()) << 64 | u128::from(draw.number());
            let within = field.all_ones().checked_shr(len).unwrap_or(0);
            let whole = if draw.number().is_multiple_of(8) { field.all_ones() } else { within };
            let address = bits & !whole | random & whole;
            let found = prefixes.lookup(&packet(field, address));
            assert_eq!(found, reference.lookup(field, address).or(Some(EntryId(9_999_999))), "{field} {address:x}");
        }
    };
    check(&prefixes, &reference, 50_000);
    let part = (routes.len() / 10).max(1);
    let mut ids: Vec<u32> = (0..).take(routes.len()).collect();
    let mut order = SeededRng(815);
    (1..ids.len()).for_each(|last| ids.swap(last, order.below(last + 1)));
    for (gone, id) in ids.iter().enumerate() {
        let (field, bits, len) = routes[*id as usize];
        let priority = u16::try_from(len).expect("at most 128");
        prefixes.remove(EntryId(*id), priority, &route(field, bits, len)).expect("there is memory");
        reference.0.remove(&(field, len, bits));
        let left = routes.len() - gone - 1;
        if left.is_multiple_of(part) || left == 5_000 {
            check(&prefixes, &reference, 5_000);
            // The bound allows for huge pages, and for nodes with few leaves.
            let most = if left > routes.len() / 3 { full * 3 / 2 } else { (2 << 20) + 56 * left };
            assert!(prefixes.held() < most, "{} bytes for {left} routes", prefixes.held());
        }
    }
    assert!(prefixes.held() < 4096, "{} bytes for one entry", prefixes.held());
    prefixes.remove(EntryId(9_999_999), 0, &miss).expect("it is there");
    assert!(prefixes.is_empty());
}
