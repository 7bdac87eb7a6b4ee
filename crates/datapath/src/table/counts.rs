//! Packet counters of a table: per entry, and in total. Each worker has its own counters, so that no worker waits for
//! another's cache line. Reads return the sum.
use super::FlowTable;
use crate::counting::WorkerNo;
use crate::shape::packet_types::PacketTypeClassifier;
use crate::shape::{AtomicFlowCounter, EntryId, FlowCounter};
use crate::verdict::{EntryVerdict, VerdictWord};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weir_memory::{HugePageArray, OutOfMemory, prefetch};
use weir_units::Instant;

/// Maximum number of places whose memory is released at once: some megabytes.
const MAX_TRIM: usize = 1 << 16;

/// Number of entries whose rows (one cache line each) mostly fit in a second-level cache.
const NEAR_PLACES: usize = 1 << 13;

/// Counters of the workers. Those of the engine's own thread lie beside the words that entries are compared with, in
/// the rows of [`crate::shape::hash::EntryRows`].
#[derive(Debug)]
pub(super) struct FlowTableCounters {
    /// By worker from 1 on, then by entry: the worker's counters.
    shares: Vec<HugePageArray<AtomicFlowCounter>>,
    /// By worker: the totals.
    tables: Vec<TableLookupCount>,
}

/// Number of packets looked up, and of those that matched an entry.
#[derive(Debug, Default)]
#[repr(align(64))]
struct TableLookupCount {
    lookups: AtomicU64,
    matches: AtomicU64,
}

impl Default for FlowTableCounters {
    fn default() -> FlowTableCounters {
        FlowTableCounters { shares: Vec::new(), tables: vec![TableLookupCount::default()] }
    }
}

impl FlowTableCounters {
    /// Releases the memory of the places from `n_places` on, at most [`MAX_TRIM`] places per call. These places must
    /// have no entry. Returns true if all of it is released.
    pub(super) fn trim(&mut self, n_places: usize) -> bool {
        self.shares.iter_mut().for_each(|share| share.truncate(n_places.max(share.len().saturating_sub(MAX_TRIM))));
        self.shares.iter().all(|share| share.len() <= n_places)
    }

    /// Releases some of the memory of places that have no entry. Returns true if all of it is released.
    pub(super) fn forget(&mut self, places: &Range<usize>) -> bool {
        self.shares.iter_mut().fold(true, |all, share| share.forget(places.clone()) & all)
    }

    /// Returns the memory of the workers' counters, in bytes.
    pub(super) fn held(&self) -> usize {
        self.shares.iter().map(HugePageArray::held).sum::<usize>()
    }
}

impl PacketTypeClassifier {
    /// Stores the verdict of an entry.
    pub(super) fn set_verdict(&mut self, id: EntryId, verdict: EntryVerdict) {
        if let Some(row) = self.rows_mut().row_mut(id) {
            row.verdict = VerdictWord::new(verdict).bits();
        }
    }
}

impl FlowTable {
    /// Adds the counters for another worker.
    pub(crate) fn add_worker(&mut self) {
        let mut share = HugePageArray::new();
        share.lengthen(self.n_places()).expect("there is memory for another worker");
        self.counts.shares.push(share);
        self.counts.tables.push(TableLookupCount::default());
    }

    /// Initializes an entry's counters: the engine's to `counter`, the workers' to zero.
    pub(crate) fn start_counter(&mut self, id: EntryId, counter: FlowCounter) {
        if let Some(row) = self.classifier.rows_mut().row_mut(id) {
            row.count.set(counter);
        }
        for count in self.counts.shares.iter_mut().filter_map(|share| share.get_mut(id.index())) {
            count.set(FlowCounter::default());
        }
    }

    /// Makes sure that an entry has counters.
    ///
    /// # Errors
    /// Out of memory; other entries are unchanged.
    pub(super) fn make_counters(&mut self, id: EntryId) -> Result<(), OutOfMemory> {
        for share in &mut self.counts.shares {
            if share.len() > id.index() {
                share.use_again(id.index());
            } else {
                share.lengthen(id.index() + 1)?;
            }
        }
        self.classifier.rows_mut().make_row(id)
    }

    /// Returns the sum of all workers' counters for an entry.
    pub(crate) fn counter_of(&self, id: EntryId) -> FlowCounter {
        let own = self.classifier.rows().row(id).map(|row| row.count.read()).unwrap_or_default();
        let shares = self.counts.shares.iter().filter_map(|share| share.get(id.index()));
        shares.fold(own, |sum, count| sum.and(count.read()))
    }

    /// Returns the total number of packets looked up, and of those that matched.
    pub(crate) fn counted(&self) -> (u64, u64) {
        let sum = |sum: (u64, u64), count: &TableLookupCount| {
            (sum.0 + count.lookups.load(Relaxed), sum.1.wrapping_add(count.matches.load(Relaxed)))
        };
        self.counts.tables.iter().fold((0, 0), sum)
    }

    /// Counts packets that were looked up, and how many of them matched.
    #[inline]
    pub(crate) fn looked_up(&self, worker: WorkerNo, lookups: u64, matches: u64) {
        let Some(count) = self.counts.tables.get(worker.0) else { return };
        count.lookups.store(count.lookups.load(Relaxed) + lookups, Relaxed);
        count.matches.store(count.matches.load(Relaxed).wrapping_add(matches), Relaxed);
    }

    /// Counts a packet that was looked up, in the totals and at the entry it matched.
    #[inline]
    pub(crate) fn met(&self, worker: WorkerNo, now: Instant, found: Option<EntryId>, bytes: usize) {
        self.looked_up(worker, 1, u64::from(found.is_some()));
        if let Some(count) = found.and_then(|id| self.count_of(worker, id)) {
            count.add(1, bytes as u64, now);
        }
    }

    /// Moves the count of a packet from one entry to another, or to none.
    #[cold]
    pub(crate) fn recount(&self, worker: WorkerNo, now: Instant, from: EntryId, to: Option<EntryId>, bytes: usize) {
        if let Some(count) = self.count_of(worker, from) {
            count.take_back(bytes as u64);
        }
        if to.is_none()
            && let Some(count) = self.counts.tables.get(worker.0)
        {
            // The packet was counted as a match, perhaps by another worker, but packets do not see its entry yet.
            // Only the sum over all workers is meaningful.
            count.matches.store(count.matches.load(Relaxed).wrapping_sub(1), Relaxed);
        }
        // If both are the same place, the former entry that packets still see has no counters any more.
        if let Some(count) = to.filter(|id| *id != from).and_then(|id| self.count_of(worker, id)) {
            count.add(1, bytes as u64, now);
        }
    }

    /// Prefetches a worker's counters for an entry.
    #[inline(always)]
    pub(crate) fn fetch_count(&self, worker: WorkerNo, id: EntryId) {
        match worker {
            WorkerNo::ENGINE => self.classifier.rows().soon(id),
            WorkerNo(other) => {
                if let Some(share) = self.counts.shares.get(other - 1) {
                    prefetch(share, id.index());
                }
            }
        }
    }

    /// Returns true if there are so many entries that their counters are mostly not in a near cache.
    #[inline(always)]
    pub(crate) fn has_many(&self) -> bool {
        self.n_places() > NEAR_PLACES
    }

    /// Returns the verdict for packets that match an entry; [`EntryVerdict::Program`] for [`EntryId::NONE`].
    #[inline(always)]
    pub(crate) fn verdict(&self, id: EntryId) -> VerdictWord {
        VerdictWord::of_bits(self.classifier.rows().row(id).map_or(0, |row| row.verdict))
    }

    /// Returns a worker's counters for an entry.
    #[inline(always)]
    pub(crate) fn count_of(&self, worker: WorkerNo, id: EntryId) -> Option<&AtomicFlowCounter> {
        match worker {
            WorkerNo::ENGINE => self.classifier.rows().row(id).map(|row| &row.count),
            WorkerNo(other) => self.counts.shares.get(other - 1).and_then(|share| share.get(id.index())),
        }
    }
}

/// Counts packets one after the other at the entries they matched in two tables. Each item has the first table's
/// entry in the low half of a word and the second table's in the high half, and the length in bytes. Absent entries
/// and absent tables are skipped.
#[inline(always)]
pub(crate) fn tally_two<'a>(
    tables: [Option<&'a FlowTable>; 2],
    worker: WorkerNo,
    now: Instant,
    packets: impl Iterator<Item = (u64, u32)>,
) {
    match worker {
        WorkerNo::ENGINE => {
            let [first, second] = tables.map(|table| table.map(|table| table.classifier.rows()));
            tally_with(
                now,
                packets,
                |id| first.and_then(|rows| rows.row(id)).map(|row| &row.count),
                |id| second.and_then(|rows| rows.row(id)).map(|row| &row.count),
            );
        }
        WorkerNo(other) => {
            let share = |table: &'a FlowTable| table.counts.shares.get(other - 1).map(|share| &**share);
            let [first, second] = tables.map(|table| table.and_then(share).unwrap_or_default());
            tally_with(now, packets, |id| first.get(id.index()), |id| second.get(id.index()));
        }
    }
}

/// Counts packets at the counters that `first` and `second` return for each half. Consecutive packets with the same
/// entries are counted together.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "halves of the word")]
fn tally_with<'a>(
    now: Instant,
    packets: impl Iterator<Item = (u64, u32)>,
    first: impl Fn(EntryId) -> Option<&'a AtomicFlowCounter>,
    second: impl Fn(EntryId) -> Option<&'a AtomicFlowCounter>,
) {
    let (mut entries, mut count, mut bytes) = (u64::MAX, 0, 0);
    let tally = |entries: u64, count, bytes| {
        if let Some(counter) = first(EntryId(entries as u32)) {
            counter.add(count, bytes, now);
        }
        if let Some(counter) = second(EntryId((entries >> 32) as u32)) {
            counter.add(count, bytes, now);
        }
    };
    for (next, length) in packets {
        if next != entries {
            tally(entries, count, bytes);
            (entries, count, bytes) = (next, 0, 0);
        }
        count += 1;
        bytes += u64::from(length);
    }
    tally(entries, count, bytes);
}
