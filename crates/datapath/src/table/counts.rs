//! What packets count in a table: by entry, and in all. Each worker counts for itself, so that none waits for another's cache
//! line; what is read is the sum.
use super::hot::{Count, FlowCounter, Hot, Verdict};
use crate::shape::EntryId;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weir_memory::prefetch;
use weir_units::Instant;

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
    hot: Vec<Hot>,
    /// By worker from 1 on, by entry.
    shares: Vec<Vec<Count>>,
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
        Counts { hot: Vec::new(), shares: Vec::new(), tables: vec![TableCount::default()] }
    }
}

impl Counts {
    /// Makes room for another worker's counters.
    pub(crate) fn add_worker(&mut self) {
        let share = (0..self.hot.len()).map(|_| Count::default()).collect();
        self.shares.push(share);
        self.tables.push(TableCount::default());
    }

    /// States what an entry does.
    pub(crate) fn set_verdict(&mut self, id: EntryId, verdict: Verdict) {
        self.make_room(id);
        self.hot[id.index()].verdict = verdict;
    }

    /// Starts an entry's counters.
    pub(crate) fn start(&mut self, id: EntryId, counter: FlowCounter) {
        self.make_room(id);
        self.hot[id.index()].count.set(counter);
        for share in &mut self.shares {
            share[id.index()].set(FlowCounter::default());
        }
    }

    fn make_room(&mut self, id: EntryId) {
        if self.hot.len() <= id.index() {
            self.hot.resize_with(id.index() + 1, Hot::default);
            for share in &mut self.shares {
                share.resize_with(id.index() + 1, Count::default);
            }
        }
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

    /// Counts packets for an entry.
    #[inline(always)]
    pub(crate) fn count(&self, worker: WorkerNo, id: EntryId, packets: u64, bytes: u64, now: Instant) {
        let count = match worker {
            WorkerNo::ENGINE => self.hot.get(id.index()).map(|hot| &hot.count),
            WorkerNo(other) => self.shares.get(other - 1).and_then(|share| share.get(id.index())),
        };
        if let Some(count) = count {
            count.add(packets, bytes, now);
        }
    }

    /// What an entry does.
    #[inline(always)]
    pub(crate) fn verdict(&self, id: EntryId) -> Verdict {
        self.hot.get(id.index()).map_or(Verdict::Program, |hot| hot.verdict)
    }

    /// An entry's counters are soon asked for.
    #[inline(always)]
    pub(crate) fn soon(&self, id: EntryId) {
        prefetch(&self.hot, id.index());
    }
}
