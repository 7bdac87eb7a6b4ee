//! Classifier of a flow table with entries for several packet types. A match without a packet type is about Ethernet
//! packets (OpenFlow 1.5.1, 7.2.3.11). Entries of all other types are in a classifier of their own, so that lookups of
//! Ethernet packets need not compare the type.
use super::adaptive::AdaptiveClassifier;
use super::describe::ClassifierInfo;
use super::hash::EntryRows;
use super::{BurstEntries, BurstHeaders, Classifier, EntryId, Lanes, WordMatches};
use weir_memory::OutOfMemory;
use weir_packet::{Field, FlowKey};
use weir_units::Instant;

/// Classifier for entries of all packet types: see the [module](self).
#[derive(Debug, Default)]
pub(crate) struct PacketTypeClassifier {
    /// Entries for Ethernet packets. Its rows (counters, verdicts) are in use for the entries of all types.
    ethernet: AdaptiveClassifier,
    /// Entries for other packet types, if there are any.
    others: Option<Box<AdaptiveClassifier>>,
}

/// Returns true if a key is that of a packet with an Ethernet header.
#[inline(always)]
fn is_of_ethernet(key: &FlowKey) -> bool {
    key.get(Field::PacketType) == 0
}

impl PacketTypeClassifier {
    /// Creates a classifier that always compares entries one by one: the reference for the other data structures.
    pub(crate) fn reference() -> PacketTypeClassifier {
        PacketTypeClassifier { ethernet: AdaptiveClassifier::reference(), others: None }
    }

    /// Returns the rows: the memory that packets touch of each entry.
    #[inline(always)]
    pub(crate) const fn rows(&self) -> &EntryRows {
        self.ethernet.rows()
    }

    /// Returns the rows for modification.
    pub(crate) const fn rows_mut(&mut self) -> &mut EntryRows {
        self.ethernet.rows_mut()
    }

    /// Returns true if a lookup of an Ethernet packet takes a few comparisons, or one or two hashes.
    pub(crate) fn is_cheap(&self) -> bool {
        self.ethernet.is_cheap()
    }

    /// Continues deferred work that speeds up lookups, for some tens of microseconds at most. Returns the time of the
    /// next call if work is left.
    pub(crate) fn settle(&mut self, now: Instant) -> Option<Instant> {
        self.ethernet.settle(now).or_else(|| self.others.as_mut()?.settle(now))
    }

    /// Returns the highest-priority entry that a packet matches among the entries for which `shows` returns true. Not
    /// for the fast path.
    pub(crate) fn lookup_among(&self, key: &FlowKey, shows: &dyn Fn(EntryId) -> bool) -> Option<EntryId> {
        self.for_key(key)?.lookup_among(key, shows)
    }

    /// Looks up those packets of a burst that are in `lanes` and have no Ethernet header, as
    /// [`Classifier::lookup_burst`] does for Ethernet packets.
    #[cold]
    pub(crate) fn lookup_others(&self, keys: &BurstHeaders, lanes: Lanes, found: &mut BurstEntries) {
        match &self.others {
            Some(others) => others.lookup_burst(keys, lanes, found, |id| self.rows().soon(id)),
            None => lanes.each(|lane| found[lane] = EntryId::NONE),
        }
    }

    /// Returns the classifier of the packets with this key, if there is one.
    fn for_key(&self, key: &FlowKey) -> Option<&AdaptiveClassifier> {
        if is_of_ethernet(key) { Some(&self.ethernet) } else { self.others.as_deref() }
    }

    /// Returns the classifier of the entries with this match, if there is one.
    fn for_match(&self, words: &WordMatches) -> Option<&AdaptiveClassifier> {
        if words.is_of_ethernet() { Some(&self.ethernet) } else { self.others.as_deref() }
    }

    fn for_match_mut(&mut self, words: &WordMatches) -> &mut AdaptiveClassifier {
        if words.is_of_ethernet() {
            return &mut self.ethernet;
        }
        self.others.get_or_insert_with(|| Box::new(self.ethernet.another()))
    }
}

impl Classifier for PacketTypeClassifier {
    fn make_room(&mut self, id: EntryId, words: &WordMatches) -> Result<(), OutOfMemory> {
        self.for_match_mut(words).make_room(id, words)
    }

    fn insert(&mut self, id: EntryId, priority: u16, words: &WordMatches) {
        self.for_match_mut(words).insert(id, priority, words);
    }

    fn remove(&mut self, id: EntryId, priority: u16, words: &WordMatches) {
        self.for_match_mut(words).remove(id, priority, words);
        if self.others.as_ref().is_some_and(|others| others.is_empty()) {
            self.others = None;
        }
    }

    fn find(&self, priority: u16, words: &WordMatches) -> Option<EntryId> {
        self.for_match(words)?.find(priority, words)
    }

    fn fetch(&self, words: &WordMatches) -> Option<u32> {
        if words.is_of_ethernet() { self.ethernet.fetch(words) } else { None }
    }

    fn probable(&self, fetched: u32) -> Option<EntryId> {
        self.ethernet.probable(fetched)
    }

    fn words_of(&self, id: EntryId, priority: u16) -> Option<WordMatches> {
        self.ethernet.words_of(id, priority).or_else(|| self.others.as_ref()?.words_of(id, priority))
    }

    fn few_within(&self, words: &WordMatches) -> Option<Vec<EntryId>> {
        if !words.is_of_ethernet() {
            return self.others.as_ref().map_or(Some(Vec::new()), |others| others.few_within(words));
        }
        let mut few = self.ethernet.few_within(words)?;
        if let Some(others) = &self.others {
            few.extend(others.few_within(words)?);
        }
        Some(few)
    }

    fn few_overlapping(&self, priority: u16, words: &WordMatches) -> Option<Vec<EntryId>> {
        self.for_match(words).map_or(Some(Vec::new()), |entries| entries.few_overlapping(priority, words))
    }

    #[inline]
    fn lookup(&self, key: &FlowKey) -> Option<EntryId> {
        if is_of_ethernet(key) { self.ethernet.lookup(key) } else { self.others.as_ref()?.lookup(key) }
    }

    fn describe(&self) -> ClassifierInfo {
        let ClassifierInfo { shape, masks, bytes } = self.ethernet.describe();
        let others = self.others.as_ref().map(|others| others.describe()).unwrap_or_default();
        let sum = |one: Option<usize>, other: Option<usize>| one.map(|one| one + other.unwrap_or(0)).or(other);
        ClassifierInfo { shape, masks: sum(masks, others.masks), bytes: sum(bytes, others.bytes) }
    }

    fn probes(&self, key: &FlowKey) -> Option<u32> {
        self.for_key(key).map_or(Some(0), |entries| entries.probes(key))
    }

    /// Looks up packets with an Ethernet header. For other packets there is [`PacketTypeClassifier::lookup_others`].
    #[inline(always)]
    fn lookup_burst(&self, keys: &BurstHeaders, lanes: Lanes, found: &mut BurstEntries, soon: impl Fn(EntryId)) {
        self.ethernet.lookup_burst(keys, lanes, found, soon);
    }
}

#[cfg(test)]
mod tests {
    use super::super::MAX_BURST;
    use super::*;
    use proptest::prelude::*;
    use weir_packet::{FlowMask, PacketType, ParsedHeaders};

    /// Returns the match of an entry for a packet type (0 for Ethernet) and an IPv4 destination, or any destination.
    fn words(kind: u32, destination: Option<u32>) -> WordMatches {
        let (mut key, mut mask) = (FlowKey::EMPTY, FlowMask::EMPTY);
        key.set(Field::PacketType, kind.into());
        mask.set(Field::PacketType, if kind == 0 { 0 } else { Field::PacketType.all_ones() });
        if let Some(destination) = destination {
            key.set(Field::Ipv4Dst, destination.into());
            mask.set(Field::Ipv4Dst, Field::Ipv4Dst.all_ones());
        }
        WordMatches::new(&key, &mask)
    }

    fn packet(kind: u32, destination: u32) -> FlowKey {
        let mut key = FlowKey::EMPTY;
        key.set(Field::PacketType, kind.into());
        key.set(Field::Ipv4Dst, destination.into());
        key
    }

    proptest! {
        /// Entries come and go; each packet finds the best entry of its own type, also in a burst, and requests find
        /// the entries that a search through all of them finds.
        #[test]
        fn each_packet_finds_entries_of_its_type(
            steps in prop::collection::vec((0_u32..3, prop::option::of(0_u32..9), 0_u16..3, any::<bool>()), 1..80),
            is_reference in any::<bool>(),
        ) {
            let ip = PacketType::of_eth_type(0x0800).to_bits();
            let kinds = [0, ip, PacketType::NSH.to_bits()];
            let mut table = if is_reference { PacketTypeClassifier::reference() } else { PacketTypeClassifier::default() };
            let mut entries: Vec<(EntryId, u16, u32, Option<u32>)> = Vec::new();
            for (number, (kind, destination, priority, goes)) in (0..).zip(steps) {
                let kind = kinds[kind as usize];
                let one = words(kind, destination);
                let at = entries.iter().position(|entry| (entry.1, entry.2, entry.3) == (priority, kind, destination));
                prop_assert_eq!(table.find(priority, &one), at.map(|at| entries[at].0));
                match at {
                    Some(at) if goes => {
                        let (id, ..) = entries.swap_remove(at);
                        table.remove(id, priority, &one);
                    }
                    Some(_) => {}
                    None => {
                        table.make_room(EntryId(number), &one).unwrap();
                        table.insert(EntryId(number), priority, &one);
                        entries.push((EntryId(number), priority, kind, destination));
                    }
                }
            }
            let mut keys = Box::new([ParsedHeaders::default(); MAX_BURST]);
            let packets = kinds.into_iter().flat_map(|kind| (0..10).map(move |destination| (kind, destination)));
            for (lane, (kind, destination)) in packets.enumerate() {
                keys[lane].key = packet(kind, destination);
                let hits = entries.iter().filter(|entry| entry.2 == kind && entry.3.is_none_or(|one| one == destination));
                let best = hits.map(|entry| entry.1).max();
                let found = table.lookup(&keys[lane].key);
                let priority = |id: EntryId| entries.iter().find(|entry| entry.0 == id).map(|entry| (entry.1, entry.2));
                prop_assert_eq!(found.and_then(priority), best.map(|best| (best, kind)));
                prop_assert_eq!(table.lookup_among(&keys[lane].key, &|_| true).and_then(priority), found.and_then(priority));
                let mut burst = Box::new([EntryId(7_777_777); MAX_BURST]);
                if kind == 0 {
                    table.lookup_burst(&keys, Lanes(1 << lane), &mut burst, |_| ());
                } else {
                    table.lookup_others(&keys, Lanes(1 << lane), &mut burst);
                }
                prop_assert_eq!(burst[lane], found.unwrap_or(EntryId::NONE));
            }
            for (kind, destination) in kinds.into_iter().flat_map(|kind| [(kind, None), (kind, Some(3))]) {
                let wider = words(kind, destination);
                let within = entries.iter().filter(|entry| words(entry.2, entry.3).is_within(&wider));
                if let Some(mut few) = table.few_within(&wider) {
                    few.retain(|id| entries.iter().any(|entry| entry.0 == *id && words(entry.2, entry.3).is_within(&wider)));
                    few.sort_unstable();
                    let mut expected: Vec<_> = within.map(|entry| entry.0).collect();
                    expected.sort_unstable();
                    prop_assert_eq!(few, expected);
                }
            }
            for (id, priority, kind, destination) in &entries {
                prop_assert_eq!(table.words_of(*id, *priority), Some(words(*kind, *destination)));
                table.remove(*id, *priority, &words(*kind, *destination));
            }
            prop_assert!(table.others.is_none(), "nothing is kept for types without entries");
        }
    }
}
