//! Longest-prefix lookup, for tables whose entries match a prefix of one field and are otherwise alike, such as routes.
//!
//! Entries of one layout (`eth_type=0x800,ipv4_dst=P/n`) share a [`trie`]. A table may have a few layouts (IPv4 and
//! IPv6 routes), and a few unordered entries of any kind (such as the table-miss entry), which are compared one after
//! the other. Priorities are unrestricted. While no shorter prefix has a higher priority than a longer one, the
//! longest matching prefix is taken without looking at the others. An entry that would violate this order is kept
//! outside the trie while there is room.
//!
//! An entry that does not fit is [`PrefixError`]; the table then uses another data structure.
mod group;
mod layout;
mod node;
mod order;
mod overlay;
mod pool;
mod trie;
mod trie_rebuild;
mod walk;

#[cfg(test)]
mod tests;

use super::{BurstEntries, BurstHeaders, EntryId, Lanes, MAX_BURST, WordMatches};
pub(crate) use overlay::PrefixOverlay;

use group::PrefixTrie;
use layout::PrefixLayout;
use trie::{Prefix, TrieLeaf};
use walk::{PrefixAddress, TrieWalk};
use weir_memory::{OutOfMemory, SimdInstructions, SimdOperation, run_simd};
use weir_packet::FlowKey;

/// Maximum number of layouts of a table.
const MAX_LAYOUTS: usize = 4;
/// Maximum number of entries outside the tries. Each may cost every packet a comparison.
const MAX_UNINDEXED: usize = 8;

/// Tries for a table's entries: see the [module](self).
#[derive(Debug, Default)]
pub(crate) struct PrefixClassifier {
    groups: Vec<PrefixTrie>,
    /// Entries outside the tries, highest priority first.
    unindexed: Vec<UnindexedEntry>,
}

/// An entry that is in no trie.
#[derive(Debug)]
struct UnindexedEntry {
    id: EntryId,
    priority: u16,
    words: WordMatches,
}

/// Error: the entries do not fit in tries, or no longer do. The tries must be discarded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PrefixError;

impl From<OutOfMemory> for PrefixError {
    fn from(_: OutOfMemory) -> PrefixError {
        PrefixError
    }
}

impl PrefixClassifier {
    /// Inserts an entry; `id` must not be present.
    pub(crate) fn insert(&mut self, id: EntryId, priority: u16, words: &WordMatches) -> Result<(), PrefixError> {
        let leaf = TrieLeaf { id, priority };
        let fitting = self.fitting(words).next();
        if let Some((at, prefix)) = fitting {
            let order = &self.groups[at].order;
            if order.is_by_length() && !order.admits(prefix.len, priority) && self.has_room() {
                return self.insert_unindexed(id, priority, words);
            }
            return Ok(self.groups[at].insert(prefix, leaf)?);
        }
        if self.groups.len() == MAX_LAYOUTS {
            return self.insert_unindexed(id, priority, words);
        }
        let Some(layout) = PrefixLayout::of(words) else { return self.insert_unindexed(id, priority, words) };
        self.groups.push(PrefixTrie::new(layout)?);
        self.adopt()?;
        self.insert(id, priority, words)
    }

    /// Returns true if an entry is present.
    fn has(&self, id: EntryId, priority: u16, words: &WordMatches) -> bool {
        let is_beside = self.unindexed.iter().any(|beside| beside.id == id);
        is_beside || self.fitting(words).any(|(at, prefix)| self.groups[at].has(prefix, TrieLeaf { id, priority }))
    }

    /// Returns true if a trie for this entry exists or could be added.
    fn has_trie_for(&self, words: &WordMatches) -> bool {
        self.fitting(words).next().is_some() || self.groups.len() < MAX_LAYOUTS && PrefixLayout::of(words).is_some()
    }

    /// Removes an entry, given its priority and match, if it is present.
    pub(crate) fn remove(&mut self, id: EntryId, priority: u16, words: &WordMatches) -> Result<(), PrefixError> {
        if let Some(at) = self.unindexed.iter().position(|beside| beside.id == id) {
            self.unindexed.remove(at);
            return Ok(());
        }
        for group in &mut self.groups {
            if let Some(prefix) = group.layout.prefix(words)
                && group.remove(prefix, TrieLeaf { id, priority })?
            {
                break;
            }
        }
        self.groups.retain(|group| !group.is_empty());
        Ok(())
    }

    /// Returns the entry that a packet matches.
    #[inline]
    pub(crate) fn lookup(&self, key: &FlowKey) -> Option<EntryId> {
        let mut best = TrieLeaf::NONE;
        for group in self.groups.iter().filter(|group| group.layout.admits(key)) {
            best = best.or_higher(group.lookup(key));
        }
        best = self.or_unindexed(best, key);
        best.is_some().then_some(best.id)
    }

    /// Looks up those packets of a burst that are in `lanes`: see
    /// [`Classifier::lookup_burst`](super::Classifier::lookup_burst).
    // Not inlined, so that tables of other kinds do not pay for the registers and the stack that it takes.
    #[inline(never)]
    pub(crate) fn lookup_burst(
        &self,
        keys: &BurstHeaders,
        lanes: Lanes,
        found: &mut BurstEntries,
        soon: impl Fn(EntryId),
    ) {
        run_simd(PrefixSearch { prefixes: self, keys, lanes, found, soon });
    }

    /// Returns how many tries a lookup of a packet walks.
    pub(crate) fn probes(&self, key: &FlowKey) -> u32 {
        let walked = self.groups.iter().filter(|group| group.layout.admits(key)).count();
        u32::try_from(walked).unwrap_or(u32::MAX)
    }

    /// Returns true if there are no entries.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.unindexed.is_empty()
    }

    /// Returns the memory held, in bytes.
    pub(crate) fn held(&self) -> usize {
        self.groups.iter().map(PrefixTrie::held).sum::<usize>()
            + self.unindexed.capacity() * size_of::<UnindexedEntry>()
    }

    /// Returns the better of `best`, the result of the tries, and the entries outside the tries.
    #[inline(always)]
    fn or_unindexed(&self, best: TrieLeaf, key: &FlowKey) -> TrieLeaf {
        match self.unindexed.first() {
            Some(first) if first.priority > best.priority || !best.is_some() => self.compare_beside(best, key),
            _ => best,
        }
    }

    fn compare_beside(&self, best: TrieLeaf, key: &FlowKey) -> TrieLeaf {
        let higher = self.unindexed.iter().take_while(|beside| beside.priority > best.priority || !best.is_some());
        let mut matching = higher.filter(|beside| beside.words.matches(key));
        matching.next().map_or(best, |beside| TrieLeaf { id: beside.id, priority: beside.priority })
    }

    /// Iterates over the groups whose layout an entry has, with the entry's prefix in each.
    fn fitting(&self, words: &WordMatches) -> impl Iterator<Item = (usize, Prefix)> {
        let groups = self.groups.iter().enumerate();
        groups.filter_map(|(at, group)| Some((at, group.layout.prefix(words)?)))
    }

    fn has_room(&self) -> bool {
        self.unindexed.len() < MAX_UNINDEXED
    }

    fn insert_unindexed(&mut self, id: EntryId, priority: u16, words: &WordMatches) -> Result<(), PrefixError> {
        if !self.has_room() {
            return Err(PrefixError);
        }
        let at = self.unindexed.partition_point(|other| other.priority >= priority);
        self.unindexed.insert(at, UnindexedEntry { id, priority, words: words.clone() });
        Ok(())
    }

    /// Moves the entries outside the tries that fit in the newest group into it.
    fn adopt(&mut self) -> Result<(), PrefixError> {
        let Some(group) = self.groups.last_mut() else { return Ok(()) };
        for beside in std::mem::take(&mut self.unindexed) {
            match group.layout.prefix(&beside.words) {
                Some(prefix) if group.order.admits(prefix.len, beside.priority) => {
                    group.insert(prefix, TrieLeaf { id: beside.id, priority: beside.priority })?;
                }
                _ => self.unindexed.push(beside),
            }
        }
        Ok(())
    }
}

/// Lookup of a burst. Run in the widest instruction set available, because it counts bits, for which newer processors
/// have an instruction.
struct PrefixSearch<'a, S> {
    prefixes: &'a PrefixClassifier,
    keys: &'a BurstHeaders,
    lanes: Lanes,
    found: &'a mut BurstEntries,
    soon: S,
}

impl<S: Fn(EntryId)> SimdOperation for PrefixSearch<'_, S> {
    type Output = ();

    #[inline(always)]
    fn run<W: SimdInstructions>(self, _: W) {
        let PrefixSearch { prefixes, keys, lanes, found, soon } = self;
        let mut best = BestLeaves { found, priority: [0; MAX_BURST] };
        for lane in lanes {
            best.found[lane] = EntryId::NONE;
        }
        for group in &prefixes.groups {
            if !group.order.is_by_length() {
                one_by_one(group, keys, lanes, &mut best);
            } else if group.layout.is_wide() {
                all_at_once::<u128>(group, keys, lanes, &mut best);
            } else {
                all_at_once::<u64>(group, keys, lanes, &mut best);
            }
        }
        for lane in lanes {
            let leaf = prefixes.or_unindexed(best.get(lane), &keys[lane].key);
            best.found[lane] = leaf.id;
            if leaf.is_some() {
                soon(leaf.id);
            }
        }
    }
}

/// Best entries found so far for the packets of a burst.
struct BestLeaves<'a> {
    found: &'a mut BurstEntries,
    /// Priorities; valid only where an entry was found.
    priority: [u16; MAX_BURST],
}

impl BestLeaves<'_> {
    #[inline(always)]
    fn get(&self, lane: usize) -> TrieLeaf {
        TrieLeaf { id: self.found[lane], priority: self.priority[lane] }
    }

    #[inline(always)]
    fn see(&mut self, lane: usize, leaf: TrieLeaf) {
        let better = self.get(lane).or_higher(leaf);
        (self.found[lane], self.priority[lane]) = (better.id, better.priority);
    }
}

/// Looks up the packets of a burst level by level. Requires that the longest prefix is the best.
#[inline(always)]
fn all_at_once<A: PrefixAddress>(group: &PrefixTrie, keys: &BurstHeaders, lanes: Lanes, best: &mut BestLeaves<'_>) {
    let (mut walk, mut admitted) = (TrieWalk::new(), Lanes::default());
    for lane in lanes {
        let key = &keys[lane].key;
        if group.layout.admits(key) {
            admitted.add(lane);
            walk.begin(&group.trie, lane, A::of(&group.layout, key));
        }
    }
    walk.run(&group.trie);
    for lane in admitted {
        best.see(lane, walk.found(&group.trie, lane));
    }
}

/// Looks up the packets of a burst one by one, for groups whose longest prefix may not be the best.
#[inline(never)]
fn one_by_one(group: &PrefixTrie, keys: &BurstHeaders, lanes: Lanes, best: &mut BestLeaves<'_>) {
    for lane in lanes {
        let key = &keys[lane].key;
        if group.layout.admits(key) {
            best.see(lane, group.lookup(key));
        }
    }
}
