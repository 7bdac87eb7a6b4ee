//! What packets count in a table: by entry, and in all. Each worker counts for itself, so that none waits for another's cache
//! line; what is read is the sum.
use super::hot::{Count, FlowCounter, Hot, Verdict, VerdictWord};
use crate::shape::EntryId;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weir_memory::{Array, OutOfMemory, prefetch};
use weir_units::Instant;

/// Places whose memory is given back at once: some megabytes.
const MAX_TRIM: usize = 1 << 16;

/// Who counts: 0 is the engine's own thread, its workers follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WorkerNo(pub(crate) usize);

impl WorkerNo {
    pub(crate) const ENGINE: WorkerNo = WorkerNo(0);
}

/// See the module's page.
#[derive(Debug)]
pub(crate) struct Counts {
    /// By entry: what it does, and what the engine's own thread counted.
    hot: Array<Hot>,
    /// By worker from 1 on, by entry.
    shares: Vec<Array<Count>>,
    /// By worker.
    tables: Vec<TableCount>,
}

/// Packets looked up, and those that matched an entry.
#[derive(Debug, Default)]
#[repr(align(64))]
struct TableCount {
    lookups: AtomicU64,
    matches: AtomicU64,
}

impl Default for Counts {
    fn default() -> Counts {
        Counts { hot: Array::new(), shares: Vec::new(), tables: vec![TableCount::default()] }
    }
}

impl Counts {
    /// Makes room for another worker's counters.
    pub(crate) fn add_worker(&mut self) {
        let mut share = Array::new();
        share.lengthen(self.hot.len()).expect("there is memory for another worker");
        self.shares.push(share);
        self.tables.push(TableCount::default());
    }

    /// States what an entry does.
    pub(crate) fn set_verdict(&mut self, id: EntryId, verdict: Verdict) {
        self.make_room(id).expect("the table has made room");
        self.hot[id.index()].verdict = VerdictWord::new(verdict);
    }

    /// Starts an entry's counters.
    pub(crate) fn start(&mut self, id: EntryId, counter: FlowCounter) {
        self.make_room(id).expect("the table has made room");
        self.hot[id.index()].count.set(counter);
        for share in &mut self.shares {
            share[id.index()].set(FlowCounter::default());
        }
    }

    /// Makes sure that an entry has counters.
    ///
    /// # Errors
    /// There is no memory; nothing has changed for other entries.
    pub(crate) fn make_room(&mut self, id: EntryId) -> Result<(), OutOfMemory> {
        if self.hot.len() > id.index() {
            self.hot.use_again(id.index());
            self.shares.iter_mut().for_each(|share| share.use_again(id.index()));
            return Ok(());
        }
        // The workers' first: what the engine's own have room for, all have.
        self.shares.iter_mut().try_for_each(|share| share.lengthen(id.index() + 1))?;
        self.hot.lengthen(id.index() + 1)
    }

    /// Gives memory of places from this one on back, where no entry is: not all at once if it is much. Whether that is all.
    pub(crate) fn trim(&mut self, n_places: usize) -> bool {
        let len = n_places.max(self.hot.len().saturating_sub(MAX_TRIM));
        if self.hot.len() > len {
            self.hot.truncate(len);
            self.shares.iter_mut().for_each(|share| share.truncate(len));
        }
        self.hot.len() <= n_places
    }

    /// Gives memory of places back where no entry is, some of it. Whether that is all.
    pub(crate) fn forget(&mut self, places: Range<usize>) -> bool {
        let all = self.hot.forget(places.clone());
        self.shares.iter_mut().fold(all, |all, share| share.forget(places.clone()) & all)
    }

    /// Bytes of memory that entries have here.
    pub(crate) fn held(&self) -> usize {
        self.hot.held() + self.shares.iter().map(Array::held).sum::<usize>()
    }

    /// What all workers counted for an entry.
    pub(crate) fn of(&self, id: EntryId) -> FlowCounter {
        let own = self.hot.get(id.index()).map(|hot| hot.count.read()).unwrap_or_default();
        self.shares.iter().filter_map(|share| share.get(id.index())).fold(own, |sum, count| sum.and(count.read()))
    }

    /// Packets looked up, and matched, in all.
    pub(crate) fn table(&self) -> (u64, u64) {
        let sum = |sum: (u64, u64), count: &TableCount| {
            (sum.0 + count.lookups.load(Relaxed), sum.1 + count.matches.load(Relaxed))
        };
        self.tables.iter().fold((0, 0), sum)
    }

    /// Counts packets looked up, and those of them that matched.
    #[inline]
    pub(crate) fn looked_up(&self, worker: WorkerNo, lookups: u64, matches: u64) {
        let Some(count) = self.tables.get(worker.0) else { return };
        count.lookups.store(count.lookups.load(Relaxed) + lookups, Relaxed);
        count.matches.store(count.matches.load(Relaxed) + matches, Relaxed);
    }

    /// Counts a packet that was looked up, and at the entry that it met.
    #[inline]
    pub(crate) fn met(&self, worker: WorkerNo, now: Instant, found: Option<EntryId>, bytes: usize) {
        self.looked_up(worker, 1, u64::from(found.is_some()));
        if let Some(count) = found.and_then(|id| self.count_of(worker, id)) {
            count.add(1, bytes as u64, now);
        }
    }

    /// Counts a packet at another entry, or none, than it was counted at.
    #[cold]
    pub(crate) fn recount(&self, worker: WorkerNo, now: Instant, from: EntryId, to: Option<EntryId>, bytes: usize) {
        if let Some(count) = self.count_of(worker, from) {
            count.take_back(bytes as u64);
        }
        // At the entry that packets still see there is nothing to count any more.
        if let Some(count) = to.filter(|id| *id != from).and_then(|id| self.count_of(worker, id)) {
            count.add(1, bytes as u64, now);
        }
    }

    /// Counts packets one after the other, each with its entry and its length in bytes; those without an entry are left out.
    #[inline(always)]
    pub(crate) fn tally(&self, worker: WorkerNo, now: Instant, packets: impl Iterator<Item = (EntryId, u32)>) {
        match worker {
            WorkerNo::ENGINE => {
                let hot: &[Hot] = &self.hot;
                tally_with(now, packets, |id| hot.get(id.index()).map(|hot| &hot.count));
            }
            WorkerNo(other) => {
                let share: &[Count] = self.shares.get(other - 1).map(|share| &**share).unwrap_or_default();
                tally_with(now, packets, |id| share.get(id.index()));
            }
        }
    }

    /// What packets touch of an entry.
    #[inline(always)]
    pub(crate) fn hot(&self, id: EntryId) -> Option<&Hot> {
        self.hot.get(id.index())
    }

    /// Where a worker counts packets for an entry.
    #[inline(always)]
    pub(crate) fn count_of(&self, worker: WorkerNo, id: EntryId) -> Option<&Count> {
        match worker {
            WorkerNo::ENGINE => self.hot(id).map(|hot| &hot.count),
            WorkerNo(other) => self.shares.get(other - 1).and_then(|share| share.get(id.index())),
        }
    }

    /// An entry's counters are soon asked for.
    #[inline(always)]
    pub(crate) fn soon(&self, id: EntryId) {
        prefetch(&self.hot, id.index());
    }
}

/// Counts packets where `count_of` says; those of one entry that follow each other at once.
#[inline(always)]
fn tally_with<'a>(
    now: Instant,
    packets: impl Iterator<Item = (EntryId, u32)>,
    count_of: impl Fn(EntryId) -> Option<&'a Count>,
) {
    let (mut entry, mut count, mut bytes) = (EntryId::NONE, 0, 0);
    let tally = |entry, count, bytes| {
        if let Some(counter) = count_of(entry) {
            counter.add(count, bytes, now);
        }
    };
    for (next, length) in packets {
        if next != entry {
            tally(entry, count, bytes);
            (entry, count, bytes) = (next, 0, 0);
        }
        count += 1;
        bytes += u64::from(length);
    }
    tally(entry, count, bytes);
}
