//! A flow table: its entries, and the classifier that finds them, for packets and for strict flow-mods.
mod counts;
mod entry;
mod eviction;
mod groups;
mod hot;
mod limits;
mod metered;
mod pending;
mod reach;
mod reading;
mod settings;
mod vacancy;
mod watch;
mod written;

pub(crate) use crate::shape::FlowCounter;
use counts::Counts;
pub(crate) use counts::{WorkerNo, tally_two};
pub(crate) use entry::{FlowEntry, Gone, duration};
use groups::GroupEntries;
pub(crate) use hot::{Verdict, VerdictWord};
pub(crate) use limits::Limits;
pub(crate) use metered::Metered;
pub(crate) use reach::Reach;
pub(crate) use reading::TypeReading;
pub(crate) use settings::TableSettings;
pub(crate) use vacancy::{VacancyEvents, percent};
pub use watch::EntryChange;
pub(crate) use written::Written;

use eviction::Eviction;
use pending::Pending;
use reading::Readings;
use watch::Watch;

use crate::Lookup;
use crate::program::Program;
use crate::shape::adaptive::Adaptive;
use crate::shape::describe::Described;
use crate::shape::{Classifier, EntryId, Lanes, MAX_BURST, WordMatches};
use crate::slab::Slab;
use std::sync::Arc;
use weir_memory::OutOfMemory;
use weir_openflow::model::GroupId;
use weir_packet::{FlowKey, Parsed};
use weir_units::Instant;

/// See the module's page. Packets only read it and count, each worker for itself ([`counts`]), so that workers can share it.
#[derive(Debug)]
pub(crate) struct FlowTable {
    entries: Slab<FlowEntry>,
    classifier: Adaptive,
    groups: GroupEntries,
    metered: Metered,
    eviction: Eviction,
    reach: Reach,
    readings: Readings,
    counts: Counts,
    /// While a bundle changes it that is to take effect as one.
    pending: Option<Box<Pending>>,
    /// While somebody keeps a record of its entries.
    watch: Option<Box<Watch>>,
}

impl FlowTable {
    pub(crate) fn new(lookup: Lookup) -> FlowTable {
        FlowTable {
            entries: Slab::default(),
            classifier: match lookup {
                Lookup::Adaptive => Adaptive::default(),
                Lookup::Linear => Adaptive::reference(),
            },
            groups: GroupEntries::default(),
            metered: Metered::default(),
            eviction: Eviction::default(),
            reach: Reach::default(),
            readings: Readings::default(),
            counts: Counts::default(),
            pending: None,
            watch: None,
        }
    }

    /// Number of entries.
    pub(crate) fn len(&self) -> usize {
        self.entries.len() - self.pending.as_ref().map_or(0, |pending| pending.n_gone())
    }

    /// What its classifier is, for people.
    pub(crate) fn describe(&self) -> Described {
        self.classifier.describe()
    }

    /// Bytes of memory that workers' counters have.
    pub(crate) fn counters_held(&self) -> usize {
        self.counts.held()
    }

    /// What a lookup of a packet costs, if the classifier can tell.
    pub(crate) fn probes(&self, key: &FlowKey) -> Option<u32> {
        self.classifier.probes(key)
    }

    /// Does some of what is left to do for faster lookups; says when to call again, if there is more.
    pub(crate) fn settle(&mut self, now: Instant) -> Option<Instant> {
        self.classifier.settle(now)
    }

    /// The entry that a packet matches.
    #[inline]
    pub(crate) fn lookup(&self, key: &FlowKey) -> Option<(EntryId, &FlowEntry)> {
        let id = self.classifier.lookup(key)?;
        self.seen(id, key)
    }

    /// The entry that was found for a packet, as packets see it; or another if they do not.
    #[inline(always)]
    pub(crate) fn seen(&self, found: EntryId, key: &FlowKey) -> Option<(EntryId, &FlowEntry)> {
        match &self.pending {
            None => Some((found, self.entries.get(found.0)?)),
            Some(pending) => self.shown(pending, found, key),
        }
    }

    /// The same of the lanes of a burst, into `found`.
    #[inline(always)]
    pub(crate) fn lookup_burst(&self, keys: &[Parsed; MAX_BURST], lanes: Lanes, found: &mut [EntryId; MAX_BURST]) {
        self.classifier.lookup_burst(keys, lanes, found, |id| self.classifier.rows().soon(id));
    }

    /// An entry by its place.
    #[inline]
    pub(crate) fn get(&self, id: EntryId) -> Option<&FlowEntry> {
        self.entries.get(id.0).filter(|_| !self.is_gone(id))
    }

    /// Whether an entry is in its place only for packets.
    #[inline]
    fn is_gone(&self, id: EntryId) -> bool {
        self.pending.as_ref().is_some_and(|pending| pending.is_gone(id))
    }

    /// What packets are to do with an entry without asking.
    fn verdict_of(&self, program: &Program) -> Verdict {
        if self.pending.is_some() { Verdict::Program } else { Verdict::of(program) }
    }

    /// What lookups depend on and lead to.
    pub(crate) const fn reach(&self) -> &Reach {
        &self.reach
    }

    /// Whether a lookup costs hardly more than finding out that it need not be made.
    pub(crate) fn is_cheap(&self) -> bool {
        self.classifier.is_cheap()
    }

    /// Which meters entries use.
    pub(crate) fn metered(&self) -> &Metered {
        &self.metered
    }

    /// An entry by its place, to change it; match, priority and program must stay.
    pub(crate) fn get_mut(&mut self, id: EntryId) -> Option<&mut FlowEntry> {
        self.entries.get_mut(id.0)
    }

    /// Changes what an entry does; gives what it did.
    pub(crate) fn set_program(&mut self, id: EntryId, program: Arc<Program>) -> Option<Arc<Program>> {
        let verdict = self.verdict_of(&program);
        let entry = self.entries.get_mut(id.0)?;
        if let Some(pending) = &mut self.pending {
            pending.changes(id, entry);
        }
        self.groups.swap(Some(&entry.program), Some(&program));
        self.metered.swap(Some(&entry.program), Some(&program));
        self.classifier.set_verdict(id, verdict);
        self.reach.does(verdict);
        if let Some(watch) = &mut self.watch {
            watch.modified(entry);
        }
        Some(std::mem::replace(&mut entry.program, program))
    }

    /// Number of entries that send to a group.
    pub(crate) fn entries_of_group(&self, group: GroupId) -> u32 {
        self.groups.count(group)
    }

    /// Whether some entry sends to a group, with [`GroupId::ALL`] to any.
    pub(crate) fn sends_to(&self, group: GroupId) -> bool {
        self.groups.is_by(group)
    }

    /// The entry with exactly this match and priority.
    pub(crate) fn find(&self, words: &WordMatches, priority: u16) -> Option<EntryId> {
        self.classifier.find(priority, words).filter(|id| !self.is_gone(*id))
    }

    /// Finds the entry of this match and priority that was added by a version which reads types in the other way.
    pub(crate) fn find_in_other_reading(&self, words: &WordMatches, priority: u16) -> Option<EntryId> {
        self.find(&self.readings.other(words)?, priority)
    }

    /// Finds the entry of this match and priority, whichever version added it.
    pub(crate) fn find_in_any_reading(&self, words: &WordMatches, priority: u16) -> Option<EntryId> {
        self.find(words, priority).or_else(|| self.find_in_other_reading(words, priority))
    }

    /// Begins to fetch what finding the entry of a match looks at; the result is for [`FlowTable::fetch_entry`].
    pub(crate) fn fetch(&self, words: &WordMatches) -> Option<u32> {
        self.classifier.fetch(words)
    }

    /// Begins to fetch the entry that will probably be found.
    pub(crate) fn fetch_entry(&self, fetched: Option<u32>) {
        if let Some(id) = fetched.and_then(|fetched| self.classifier.probable(fetched)) {
            self.classifier.rows().soon(id);
            self.entries.fetch(id.0);
        }
    }

    /// The entries within a match, where the classifier can tell them without going through all.
    pub(crate) fn few_within(&self, words: &WordMatches) -> Option<Vec<EntryId>> {
        self.there(self.classifier.few_within(words))
    }

    /// Entries of a priority that a match shares packets with, in the same way.
    pub(crate) fn few_overlapping(&self, priority: u16, words: &WordMatches) -> Option<Vec<EntryId>> {
        self.there(self.classifier.few_overlapping(priority, words))
    }

    /// Those of some entries that are there not only for packets.
    fn there(&self, few: Option<Vec<EntryId>>) -> Option<Vec<EntryId>> {
        let mut few = few?;
        few.retain(|id| !self.is_gone(*id));
        Some(few)
    }

    /// An entry's match as tables compare it.
    pub(crate) fn words_of(&self, id: EntryId, entry: &FlowEntry) -> WordMatches {
        self.classifier.words_of(id, entry.priority).unwrap_or_else(|| entry.matching.words())
    }

    /// The entry in the last place below `end` that has one; see [`Slab::last_below`].
    pub(crate) fn last_below(&self, end: &mut u32, most: &mut usize) -> Option<(EntryId, &FlowEntry)> {
        loop {
            let entry = self.entries.last_below(end, most)?;
            if !self.is_gone(EntryId(*end)) {
                return Some((EntryId(*end), entry));
            }
        }
    }

    /// All entries.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (EntryId, &FlowEntry)> {
        self.places(0, usize::MAX)
    }

    /// Number of places for entries, empty ones included.
    pub(crate) fn n_places(&self) -> usize {
        self.entries.n_places()
    }

    /// The entries in at most `most` places from one on. An entry keeps its place for as long as it is there.
    pub(crate) fn places(&self, from: usize, most: usize) -> impl Iterator<Item = (EntryId, &FlowEntry)> {
        let places = self.entries.places(from, most).map(|(place, entry)| (EntryId(place), entry));
        places.filter(|(id, _)| !self.is_gone(*id))
    }

    /// Makes sure that there is memory for adding an entry of this match.
    ///
    /// # Errors
    /// There is none; the table is as it was.
    pub(crate) fn make_room(&mut self, words: &WordMatches) -> Result<(), OutOfMemory> {
        self.make_room_at(EntryId(self.entries.next_place()), words)
    }

    fn make_room_at(&mut self, id: EntryId, words: &WordMatches) -> Result<(), OutOfMemory> {
        self.make_counters(id)?;
        self.classifier.make_room(id, words)
    }

    /// Adds an entry; none with its match and priority is there, and [`FlowTable::make_room`] was asked for it.
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

    /// Puts another entry, of the same match and priority, in an entry's place; gives the former.
    pub(crate) fn replace(&mut self, id: EntryId, entry: FlowEntry) -> Option<FlowEntry> {
        let verdict = self.verdict_of(&entry.program);
        let former = self.entries.get_mut(id.0)?;
        if let Some(pending) = &mut self.pending {
            pending.changes(id, former);
        }
        self.groups.swap(Some(&former.program), Some(&entry.program));
        self.metered.swap(Some(&former.program), Some(&entry.program));
        self.eviction.went(id, former);
        self.eviction.came(id, &entry);
        self.classifier.set_verdict(id, verdict);
        self.reach.does(verdict);
        if let Some(watch) = &mut self.watch {
            watch.went(former);
            watch.came(&entry);
        }
        Some(std::mem::replace(former, entry))
    }

    /// Puts an entry back where it was; gives the one that took its place, which has the same match and priority.
    ///
    /// # Errors
    /// The memory that it had was given back, and there is none now: gives the entry, which is not in the table.
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

    /// Puts an entry to a place where packets may still see another of its match and priority.
    fn come_back(&mut self, id: EntryId, entry: FlowEntry, words: &WordMatches) {
        self.connect(id, &entry, words);
        if let Some(place) = self.entries.get_mut(id.0) {
            *place = entry;
        }
    }

    /// Makes an entry known to all that looks for it; there is room.
    fn index(&mut self, id: EntryId, entry: &FlowEntry, words: &WordMatches) {
        self.classifier.make_room(id, words).expect("FlowTable::make_room has made it");
        self.classifier.insert(id, entry.priority, words);
        self.readings.note(words);
        self.connect(id, entry, words);
    }

    /// The same, but for the classifier.
    fn connect(&mut self, id: EntryId, entry: &FlowEntry, words: &WordMatches) {
        if let Some(pending) = &mut self.pending {
            pending.came(id);
        }
        self.groups.swap(None, Some(&entry.program));
        self.eviction.came(id, entry);
        self.metered.swap(None, Some(&entry.program));
        let verdict = self.verdict_of(&entry.program);
        self.classifier.set_verdict(id, verdict);
        self.reach.came(words, verdict);
        if let Some(watch) = &mut self.watch {
            watch.came(entry);
        }
    }

    /// Removes an entry.
    pub(crate) fn remove(&mut self, id: EntryId) -> Option<FlowEntry> {
        let entry = match &mut self.pending {
            None => self.take_out(id)?,
            Some(pending) => {
                let entry = self.entries.get(id.0).filter(|_| !pending.is_gone(id))?;
                pending.goes(id, entry);
                self.classifier.set_verdict(id, Verdict::Program);
                self.reach.does(Verdict::Program);
                entry.clone()
            }
        };
        self.groups.swap(Some(&entry.program), None);
        self.eviction.went(id, &entry);
        self.metered.swap(Some(&entry.program), None);
        if let Some(watch) = &mut self.watch {
            watch.went(&entry);
        }
        Some(entry)
    }

    /// Gives back memory that entries left which have gone. Whether that was all.
    pub(crate) fn give_back(&mut self) -> bool {
        let all = [self.entries.give_back(), self.trim(), self.hollow()];
        !all.contains(&false)
    }

    /// Gives back some of what is kept beside entries for places that are empty, though there are entries in places behind them.
    fn hollow(&mut self) -> bool {
        let Some(places) = self.entries.vacated() else { return true };
        if !(self.counts.forget(&places) & self.classifier.rows_mut().forget(places.clone())) {
            self.entries.is_still_vacated(&places);
        }
        false
    }

    /// Gives back some of what is kept beside entries for places behind the last one's. Whether that was all.
    fn trim(&mut self) -> bool {
        let n_places = self.entries.n_places();
        self.counts.trim(n_places) & self.classifier.rows_mut().trim(n_places)
    }

    /// Takes an entry from its place.
    fn take_out(&mut self, id: EntryId) -> Option<FlowEntry> {
        // Before, not after: what the entry counted is still asked for.
        self.trim();
        let entry = self.entries.remove(id.0)?;
        let words = self.words_of(id, &entry);
        self.classifier.remove(id, entry.priority, &words);
        self.reach.went(self.entries.len() == 0);
        Some(entry)
    }
}

impl FlowTable {
    /// States whether entries are to make room for others.
    pub(crate) fn set_eviction(&mut self, is_on: bool) {
        let mut eviction = Eviction::default();
        if is_on {
            eviction.start(self.iter());
        }
        self.eviction = eviction;
    }

    /// The entry that goes to make room for one of this importance, if the table evicts.
    pub(crate) fn victim(&self, importance: u16) -> Option<EntryId> {
        self.eviction.victim(importance)
    }
}
