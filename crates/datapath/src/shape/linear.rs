//! The reference classifier: compares entries one after the other, in descending order of priority.
//!
//! A lookup takes time in proportion to the number of entries above the one found. Inserting and removing an entry
//! does not depend on the number of entries, only (by a binary search) on the number of priorities in use.
use super::describe::ClassifierInfo;
use super::{BurstEntries, BurstHeaders, Classifier, EntryId, Lanes, WordMatches};
use weir_memory::OutOfMemory;
use weir_packet::FlowKey;

/// The reference classifier: see the [module](self).
#[derive(Debug, Default)]
pub(crate) struct LinearClassifier {
    /// Entries by priority, highest first. No group is empty.
    groups: Vec<PriorityList>,
    /// By entry: its index among its group's candidates.
    places: Vec<u32>,
}

/// Entries of one priority.
#[derive(Debug)]
struct PriorityList {
    priority: u16,
    candidates: Vec<LinearEntry>,
}

#[derive(Debug)]
struct LinearEntry {
    id: EntryId,
    words: WordMatches,
}

impl Classifier for LinearClassifier {
    fn make_room(&mut self, _id: EntryId, _words: &WordMatches) -> Result<(), OutOfMemory> {
        Ok(())
    }

    fn insert(&mut self, id: EntryId, priority: u16, words: &WordMatches) {
        let at = self.group(priority).unwrap_or_else(|at| {
            self.groups.insert(at, PriorityList { priority, candidates: Vec::new() });
            at
        });
        if self.places.len() <= id.index() {
            self.places.resize(id.index() + 1, 0);
        }
        let candidates = &mut self.groups[at].candidates;
        self.places[id.index()] = u32::try_from(candidates.len()).expect("no more candidates than entry ids");
        candidates.push(LinearEntry { id, words: words.clone() });
    }

    fn remove(&mut self, id: EntryId, priority: u16, _words: &WordMatches) {
        let Ok(at) = self.group(priority) else { return };
        let candidates = &mut self.groups[at].candidates;
        let place = self.places[id.index()];
        candidates.swap_remove(place as usize);
        if let Some(moved) = candidates.get(place as usize) {
            self.places[moved.id.index()] = place;
        }
        if candidates.is_empty() {
            self.groups.remove(at);
        }
    }

    fn find(&self, priority: u16, words: &WordMatches) -> Option<EntryId> {
        let group = &self.groups[self.group(priority).ok()?];
        group.candidates.iter().find(|candidate| candidate.words == *words).map(|candidate| candidate.id)
    }

    fn words_of(&self, id: EntryId, priority: u16) -> Option<WordMatches> {
        let group = &self.groups[self.group(priority).ok()?];
        let candidate = group.candidates.get(*self.places.get(id.index())? as usize)?;
        (candidate.id == id).then(|| candidate.words.clone())
    }

    #[inline]
    fn lookup(&self, key: &FlowKey) -> Option<EntryId> {
        // Loops instead of chained iterators, because a chain keeps a position at both ends of two lists.
        for group in &self.groups {
            for candidate in &group.candidates {
                if candidate.words.matches(key) {
                    return Some(candidate.id);
                }
            }
        }
        None
    }

    /// Compares each entry with all packets, not each packet with all entries: the entry's words stay in registers.
    #[inline(always)]
    fn lookup_burst(&self, keys: &BurstHeaders, lanes: Lanes, found: &mut BurstEntries, soon: impl Fn(EntryId)) {
        let mut left = lanes;
        for candidate in self.groups.iter().flat_map(|group| &group.candidates) {
            if left.is_empty() {
                return;
            }
            let hits = candidate.words.matches_of(keys, left);
            if !hits.is_empty() {
                soon(candidate.id);
                hits.each(|lane| found[lane] = candidate.id);
                left = left.without(hits);
            }
        }
        left.each(|lane| found[lane] = EntryId::NONE);
    }

    fn describe(&self) -> ClassifierInfo {
        ClassifierInfo { shape: "linear", ..ClassifierInfo::default() }
    }

    fn probes(&self, key: &FlowKey) -> Option<u32> {
        let mut candidates = self.groups.iter().flat_map(|group| &group.candidates);
        let before = candidates.by_ref().take_while(|candidate| !candidate.words.matches(key)).count();
        let all: usize = self.groups.iter().map(|group| group.candidates.len()).sum();
        u32::try_from((before + 1).min(all)).ok()
    }
}

impl LinearClassifier {
    /// Iterates over all entries, with their priorities and matches.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (EntryId, u16, &WordMatches)> {
        let groups = self.groups.iter();
        groups.flat_map(|group| group.candidates.iter().map(move |one| (one.id, group.priority, &one.words)))
    }

    /// Returns the highest-priority entry that a packet matches among the entries for which `shows` returns true.
    pub(crate) fn lookup_among(&self, key: &FlowKey, shows: &dyn Fn(EntryId) -> bool) -> Option<EntryId> {
        let candidates = self.groups.iter().flat_map(|group| &group.candidates);
        let mut matching = candidates.filter(|candidate| candidate.words.matches(key));
        matching.find(|candidate| shows(candidate.id)).map(|candidate| candidate.id)
    }

    fn group(&self, priority: u16) -> Result<usize, usize> {
        self.groups.binary_search_by(|group| priority.cmp(&group.priority))
    }
}
