//! Implements a flow table: its entries, and the classifier that finds them for packets and for strict flow-mods.
mod change_log;
mod counts;
mod dependencies;
mod entries_by_group;
mod entries_by_meter;
mod entry;
mod eviction;
mod limits;
mod packed_match;
mod pending;
mod reading;
mod settings;
mod vacancy;

pub(crate) use crate::shape::FlowCounter;
pub use change_log::EntryChange;
use counts::FlowTableCounters;
pub(crate) use counts::tally_two;
pub(crate) use dependencies::LookupDependencies;
use entries_by_group::EntriesByGroup;
pub(crate) use entries_by_meter::EntriesByMeter;
pub(crate) use entry::{FlowEntry, FlowRemovedNotice};
pub(crate) use limits::TableRestrictions;
pub(crate) use packed_match::PackedMatch;
pub(crate) use reading::EthTypeReading;
pub(crate) use settings::TableSettings;
pub(crate) use vacancy::{VacancyEvents, percent};

use change_log::EntryChangeLog;
use eviction::EvictionOrder;
use pending::PendingEntries;
use reading::EthTypeReadings;

use crate::LookupMethod;
use crate::program::EntryProgram;
use crate::shape::describe::ClassifierInfo;
use crate::shape::packet_types::PacketTypeClassifier;
use crate::shape::{BurstEntries, BurstHeaders, Classifier, EntryId, Lanes, WordMatches};
use crate::slab::ChunkedSlab;
use crate::verdict::EntryVerdict;
use std::sync::Arc;
use weir_memory::OutOfMemory;
use weir_openflow::model::GroupId;
use weir_packet::FlowKey;
use weir_units::Instant;

/// A flow table. Workers can share it, because packets change nothing but counters, and each worker has its own
/// counters ([`counts`]).
#[derive(Debug)]
pub(crate) struct FlowTable {
    entries: ChunkedSlab<FlowEntry>,
    classifier: PacketTypeClassifier,
    groups: EntriesByGroup,
    metered: EntriesByMeter,
    eviction: EvictionOrder,
    reach: LookupDependencies,
    readings: EthTypeReadings,
    counts: FlowTableCounters,
    /// Former state of changed entries, which packets still match while a bundle changes the table atomically.
    pending: Option<Box<PendingEntries>>,
    /// Record of changes to entries, if [`FlowTable::watch`] was called.
    watch: Option<Box<EntryChangeLog>>,
}

impl FlowTable {
    pub(crate) fn new(lookup: LookupMethod) -> FlowTable {
        FlowTable {
            entries: ChunkedSlab::default(),
            classifier: match lookup {
                LookupMethod::Adaptive => PacketTypeClassifier::default(),
                LookupMethod::Linear => PacketTypeClassifier::reference(),
            },
            groups: EntriesByGroup::default(),
            metered: EntriesByMeter::default(),
            eviction: EvictionOrder::default(),
            reach: LookupDependencies::default(),
            readings: EthTypeReadings::default(),
            counts: FlowTableCounters::default(),
            pending: None,
            watch: None,
        }
    }

    /// Returns the number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.pending.as_ref().map_or(0, |pending| pending.n_gone())
    }

    /// Describes the classifier, for display.
    pub(crate) fn describe(&self) -> ClassifierInfo {
        self.classifier.describe()
    }

    /// Returns the memory of the workers' counters, in bytes.
    pub(crate) fn counters_held(&self) -> usize {
        self.counts.held()
    }

    /// Returns the cost of a lookup of a packet (entries, hashes or nodes examined), if the classifier can tell.
    pub(crate) fn probes(&self, key: &FlowKey) -> Option<u32> {
        self.classifier.probes(key)
    }

    /// Continues deferred work on the classifier that makes lookups faster. Returns the time of the next call if work
    /// is left.
    pub(crate) fn settle(&mut self, now: Instant) -> Option<Instant> {
        self.classifier.settle(now)
    }

    /// Returns the entry that a packet matches.
    #[inline]
    pub(crate) fn lookup(&self, key: &FlowKey) -> Option<(EntryId, &FlowEntry)> {
        let id = self.classifier.lookup(key)?;
        self.seen(id, key)
    }

    /// Returns the entry that applies to a packet for which the classifier found `found`. While a bundle is pending,
    /// this is the entry as it was before the bundle, which may be another one or none.
    #[inline(always)]
    pub(crate) fn seen(&self, found: EntryId, key: &FlowKey) -> Option<(EntryId, &FlowEntry)> {
        match &self.pending {
            None => Some((found, self.entries.get(found.0)?)),
            Some(pending) => self.shown(pending, found, key),
        }
    }

    /// Looks up those packets of a burst that are in `lanes`, all with an Ethernet header. Writes each one's entry, or
    /// [`EntryId::NONE`], to `found`.
    #[inline(always)]
    pub(crate) fn lookup_burst(&self, keys: &BurstHeaders, lanes: Lanes, found: &mut BurstEntries) {
        self.classifier.lookup_burst(keys, lanes, found, |id| self.classifier.rows().soon(id));
    }

    /// Looks up packets of a burst like [`FlowTable::lookup_burst`], but packets without an Ethernet header.
    #[cold]
    pub(crate) fn lookup_others(&self, keys: &BurstHeaders, lanes: Lanes, found: &mut BurstEntries) {
        self.classifier.lookup_others(keys, lanes, found);
    }

    /// Returns the entry with this id, if it is in the table.
    #[inline]
    pub(crate) fn get(&self, id: EntryId) -> Option<&FlowEntry> {
        self.entries.get(id.0).filter(|_| !self.is_gone(id))
    }

    /// Returns true if an entry is removed, but still applies to packets until the pending bundle is complete.
    #[inline]
    fn is_gone(&self, id: EntryId) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.is_gone(id))
    }

    /// Returns the verdict to store in the classifier for an entry. While a bundle is pending, it is always
    /// [`EntryVerdict::Program`], so that packets take the path that considers the bundle.
    fn verdict_of(&self, program: &EntryProgram) -> EntryVerdict {
        if self.pending.is_some() { EntryVerdict::Program } else { program.verdict() }
    }

    /// Returns the bits of packets on which lookups in this table depend, and the tables to which its entries lead.
    pub(crate) const fn reach(&self) -> &LookupDependencies {
        &self.reach
    }

    /// Returns true if a lookup is so cheap that caching its result would save nothing.
    pub(crate) fn is_cheap(&self) -> bool {
        self.classifier.is_cheap()
    }

    /// Returns the number of entries that use each meter.
    pub(crate) fn metered(&self) -> &EntriesByMeter {
        &self.metered
    }

    /// Returns the entry with this id for modification. Its match, priority and program must not be changed.
    pub(crate) fn get_mut(&mut self, id: EntryId) -> Option<&mut FlowEntry> {
        self.entries.get_mut(id.0)
    }

    /// Replaces the program of an entry. Returns the former program.
    pub(crate) fn set_program(&mut self, id: EntryId, program: Arc<EntryProgram>) -> Option<Arc<EntryProgram>> {
        let verdict = self.verdict_of(&program);
        let entry = self.entries.get_mut(id.0)?;
        if let Some(pending) = &mut self.pending {
            pending.changes(id, entry);
        }
        self.groups.swap(Some(&entry.program), Some(&program));
        self.metered.swap(Some(&entry.program), Some(&program));
        self.classifier.set_verdict(id, verdict);
        self.reach.on_modify(verdict);
        if let Some(watch) = &mut self.watch {
            watch.modified(entry);
        }
        Some(std::mem::replace(&mut entry.program, program))
    }

    /// Returns the number of entries that send to a group.
    pub(crate) fn entries_of_group(&self, group: GroupId) -> u32 {
        self.groups.count(group)
    }

    /// Returns true if some entry sends to a group ([`GroupId::ALL`]: to any group).
    pub(crate) fn sends_to(&self, group: GroupId) -> bool {
        self.groups.is_by(group)
    }

    /// Returns the entry with exactly this match and priority.
    pub(crate) fn find(&self, words: &WordMatches, priority: u16) -> Option<EntryId> {
        self.classifier.find(priority, words).filter(|id| !self.is_gone(*id))
    }

    /// Returns the entry with this match and priority that was added with the other reading of `eth_type` (see
    /// [`EthTypeReading`]).
    pub(crate) fn find_in_other_reading(&self, words: &WordMatches, priority: u16) -> Option<EntryId> {
        self.find(&self.readings.other(words)?, priority)
    }

    /// Returns the entry with this match and priority, in either reading of `eth_type`.
    pub(crate) fn find_in_any_reading(&self, words: &WordMatches, priority: u16) -> Option<EntryId> {
        self.find(words, priority).or_else(|| self.find_in_other_reading(words, priority))
    }

    /// Prefetches the memory that [`FlowTable::find`] reads first for this match. The result is for
    /// [`FlowTable::fetch_entry`].
    pub(crate) fn fetch(&self, words: &WordMatches) -> Option<u32> {
        self.classifier.fetch(words)
    }

    /// Prefetches the entry that [`FlowTable::find`] will probably return; `fetched` is the result of
    /// [`FlowTable::fetch`].
    pub(crate) fn fetch_entry(&self, fetched: Option<u32>) {
        if let Some(id) = fetched.and_then(|fetched| self.classifier.probable(fetched)) {
            self.classifier.rows().soon(id);
            self.entries.fetch(id.0);
        }
    }

    /// Returns the entries whose match is at least as specific as `words`; `None` if that would require visiting all
    /// entries.
    pub(crate) fn few_within(&self, words: &WordMatches) -> Option<Vec<EntryId>> {
        self.there(self.classifier.few_within(words))
    }

    /// Returns the entries of a priority whose match overlaps with `words` (some packet matches both); `None` if that
    /// would require visiting all entries.
    pub(crate) fn few_overlapping(&self, priority: u16, words: &WordMatches) -> Option<Vec<EntryId>> {
        self.there(self.classifier.few_overlapping(priority, words))
    }

    /// Returns the list without the entries that are removed but still apply to packets.
    fn there(&self, few: Option<Vec<EntryId>>) -> Option<Vec<EntryId>> {
        let mut few = few?;
        few.retain(|id| !self.is_gone(*id));
        Some(few)
    }

    /// Returns an entry's match in the form that the classifier compares with packets.
    pub(crate) fn words_of(&self, id: EntryId, entry: &FlowEntry) -> WordMatches {
        self.classifier.words_of(id, entry.priority).unwrap_or_else(|| entry.matching.words())
    }

    /// Returns the last entry below the place `end`; see [`ChunkedSlab::last_below`].
    pub(crate) fn last_below(&self, end: &mut u32, most: &mut usize) -> Option<(EntryId, &FlowEntry)> {
        loop {
            let entry = self.entries.last_below(end, most)?;
            if !self.is_gone(EntryId(*end)) {
                return Some((EntryId(*end), entry));
            }
        }
    }

    /// Iterates over all entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (EntryId, &FlowEntry)> {
        self.places(0, usize::MAX)
    }

    /// Returns the number of places for entries, including empty ones.
    pub(crate) fn n_places(&self) -> usize {
        self.entries.n_places()
    }

    /// Iterates over the entries in the places `from..from + most`. An entry keeps its place while it is present.
    pub(crate) fn places(&self, from: usize, most: usize) -> impl Iterator<Item = (EntryId, &FlowEntry)> {
        let places = self.entries.places(from, most).map(|(place, entry)| (EntryId(place), entry));
        places.filter(|(id, _)| !self.is_gone(*id))
    }

    /// Reserves memory for inserting an entry with this match.
    ///
    /// # Errors
    /// Out of memory; the table is unchanged.
    pub(crate) fn make_room(&mut self, words: &WordMatches) -> Result<(), OutOfMemory> {
        self.make_room_at(EntryId(self.entries.next_place()), words)
    }

    fn make_room_at(&mut self, id: EntryId, words: &WordMatches) -> Result<(), OutOfMemory> {
        self.make_counters(id)?;
        self.classifier.make_room(id, words)
    }

    /// Inserts an entry and returns its id. No entry with its match and priority may be present, and
    /// [`FlowTable::make_room`] must have been called.
    pub(crate) fn insert(&mut self, entry: FlowEntry, words: &WordMatches) -> EntryId {
        if self.pending.is_some()
            && let Some(gone) = self.classifier.find(entry.priority, words)
        {
            self.come_back(gone, entry, words);
            return gone;
        }
        let id = EntryId(self.entries.next_place());
        self.index(id, &entry, words);
        self.entries.insert(entry);
        id
    }

    /// Replaces an entry by another one with the same match and priority. Returns the former entry.
    pub(crate) fn replace(&mut self, id: EntryId, entry: FlowEntry) -> Option<FlowEntry> {
        let verdict = self.verdict_of(&entry.program);
        let former = self.entries.get_mut(id.0)?;
        if let Some(pending) = &mut self.pending {
            pending.changes(id, former);
        }
        self.groups.swap(Some(&former.program), Some(&entry.program));
        self.metered.swap(Some(&former.program), Some(&entry.program));
        self.eviction.remove_ranked(id, former);
        self.eviction.insert_ranked(id, &entry);
        self.classifier.set_verdict(id, verdict);
        self.reach.on_modify(verdict);
        if let Some(watch) = &mut self.watch {
            watch.log_removed(former);
            watch.log_added(&entry);
        }
        Some(std::mem::replace(former, entry))
    }

    /// Restores a removed or replaced entry under its former id. Returns the entry that had replaced it, with the same
    /// match and priority, if there is one.
    ///
    /// # Errors
    /// The memory for its place was released, and there is none now. Returns the entry, which is not in the table.
    pub(crate) fn put_back(&mut self, id: EntryId, entry: FlowEntry) -> Result<Option<FlowEntry>, Box<FlowEntry>> {
        if self.get(id).is_some() {
            return Ok(self.replace(id, entry));
        }
        let words = entry.matching.words();
        if self.is_gone(id) {
            self.come_back(id, entry, &words);
            return Ok(None);
        }
        if self.make_room_at(id, &words).is_err() {
            return Err(Box::new(entry));
        }
        self.index(id, &entry, &words);
        self.entries.put_back(id.0, entry);
        Ok(None)
    }

    /// Stores an entry in the place of a removed one with the same match and priority, which may still apply to
    /// packets.
    fn come_back(&mut self, id: EntryId, entry: FlowEntry, words: &WordMatches) {
        self.connect(id, &entry, words);
        if let Some(place) = self.entries.get_mut(id.0) {
            *place = entry;
        }
    }

    /// Adds an entry to the classifier and to all other indexes; there must be room.
    fn index(&mut self, id: EntryId, entry: &FlowEntry, words: &WordMatches) {
        self.classifier.make_room(id, words).expect("FlowTable::make_room has made it");
        self.classifier.insert(id, entry.priority, words);
        self.readings.note(words);
        self.connect(id, entry, words);
    }

    /// Adds an entry to all indexes except the classifier.
    fn connect(&mut self, id: EntryId, entry: &FlowEntry, words: &WordMatches) {
        if let Some(pending) = &mut self.pending {
            pending.note_hidden_insert(id);
        }
        self.groups.swap(None, Some(&entry.program));
        self.eviction.insert_ranked(id, entry);
        self.metered.swap(None, Some(&entry.program));
        let verdict = self.verdict_of(&entry.program);
        self.classifier.set_verdict(id, verdict);
        self.reach.on_insert(words, verdict);
        if let Some(watch) = &mut self.watch {
            watch.log_added(entry);
        }
    }

    /// Removes and returns an entry.
    pub(crate) fn remove(&mut self, id: EntryId) -> Option<FlowEntry> {
        let entry = match &mut self.pending {
            None => self.take_out(id)?,
            Some(pending) => {
                let entry = self.entries.get(id.0).filter(|_| !pending.is_gone(id))?;
                pending.note_hidden_removal(id, entry);
                self.classifier.set_verdict(id, EntryVerdict::Program);
                self.reach.on_modify(EntryVerdict::Program);
                entry.clone()
            }
        };
        self.groups.swap(Some(&entry.program), None);
        self.eviction.remove_ranked(id, &entry);
        self.metered.swap(Some(&entry.program), None);
        if let Some(watch) = &mut self.watch {
            watch.log_removed(&entry);
        }
        Some(entry)
    }

    /// Releases some memory of removed entries. Returns true if all of it is released.
    pub(crate) fn give_back(&mut self) -> bool {
        let all = [self.entries.give_back(), self.trim(), self.hollow()];
        !all.contains(&false)
    }

    /// Releases some of the counters and classifier rows of empty places that precede used ones. Returns true if there
    /// are no such places.
    fn hollow(&mut self) -> bool {
        let Some(places) = self.entries.vacated() else { return true };
        if !(self.counts.forget(&places) & self.classifier.rows_mut().forget(places.clone())) {
            self.entries.is_still_vacated(&places);
        }
        false
    }

    /// Releases some of the counters and classifier rows of the places after the last entry. Returns true if all of
    /// them are released.
    fn trim(&mut self) -> bool {
        let n_places = self.entries.n_places();
        self.counts.trim(n_places) & self.classifier.rows_mut().trim(n_places)
    }

    /// Removes an entry from its place and from the classifier.
    fn take_out(&mut self, id: EntryId) -> Option<FlowEntry> {
        // Trimmed before removing, because the counters of the removed entry are still to be read.
        self.trim();
        let entry = self.entries.remove(id.0)?;
        let words = self.words_of(id, &entry);
        self.classifier.remove(id, entry.priority, &words);
        self.reach.on_remove(self.entries.len() == 0);
        Some(entry)
    }
}

impl FlowTable {
    /// Switches eviction on or off.
    pub(crate) fn set_eviction(&mut self, is_on: bool) {
        let mut eviction = EvictionOrder::default();
        if is_on {
            eviction.start(self.iter());
        }
        self.eviction = eviction;
    }

    /// Returns the entry to evict for a new entry of this importance, if eviction is on and there is an entry that is
    /// not more important.
    pub(crate) fn victim(&self, importance: u16) -> Option<EntryId> {
        self.eviction.victim(importance)
    }
}
