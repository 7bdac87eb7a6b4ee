//! Verdict cache: each worker stores the results of packets' lookups (the entries to count at, and the verdict) for
//! later packets of the same flow. One lookup in the cache then replaces one lookup in each table.
//!
//! A packet's path is the sequence of tables that it takes through entries whose only effect is a goto. The path ends
//! at the first entry that has another effect, or at a table miss. A cached result holds for all packets that agree in
//! the bits that the mask of any entry on any path covers ([`dependencies`]): two packets that agree in those bits take
//! the same path as long as no table on it changes. Every change of entries has a version, so outdated results are
//! never used. Packets found in the cache update the counters and idle times of entries and tables exactly as packets
//! looked up in the tables do.
//!
//! A cache in front of one table costs as much as the table. It is therefore tried if there are several tables, or
//! one with expensive lookups, and used while it pays ([`policy`]).
mod counts;
mod dependencies;
mod policy;
mod store;
mod table_paths;

use crate::VerdictCacheMode;
use crate::counting::CountingMode;
use crate::shape::{BurstEntries, BurstHeaders, EntryId, Lanes, MAX_BURST};
use crate::table::{FlowTable, tally_two};
use crate::verdict::LookupResult;
use crate::verdict::VerdictWord;
pub use counts::{CacheCounts, CacheState};

use dependencies::CacheDependencies;
use policy::{BurstLookupMode, BurstLookupOutcome, CachePolicy};
use store::{CacheHits, VerdictStore};
use table_paths::{TablePath, TablePaths};
use weir_memory::{SimdInstructions, SimdOperation, cycles, run_simd};

/// Inverse rate of storing: when the cache is full, the misses of one in this many bursts with many misses are stored.
const SPARSE: u32 = 8;

/// Verdict cache of one worker: see the [module](self).
#[derive(Debug)]
pub(crate) struct WorkerVerdictCache {
    /// Number of bursts that bypass the cache before it is considered again.
    rest: u64,
    /// True if the tables and entries that packets of this burst reach are recorded, because their results will be
    /// stored.
    notes: bool,
    inner: Box<CacheInner>,
}

/// State that is separate because bursts that bypass the cache never access it.
#[derive(Debug)]
struct CacheInner {
    is_off: bool,
    policy: CachePolicy,
    depends_on: CacheDependencies,
    /// Generation of the tables for which the plan was last found valid.
    generation: Option<u64>,
    /// True if the plan is worth a cache and the store has memory for it.
    is_ready: bool,
    store: VerdictStore,
    hits: CacheHits,
    paths: TablePaths,
    /// Packets of the burst whose results will be stored.
    kept: Lanes,
    /// True if only a sample of flows is stored.
    is_sample: bool,
    /// Way in which the current burst is looked up, and its outcome so far.
    lookup_mode: BurstLookupMode,
    outcome: BurstLookupOutcome,
    counts: CacheCounts,
    /// Number of bursts looked up.
    bursts: u32,
}

/// Burst to look up, and the memory for its results.
pub(crate) struct CacheQuery<'a> {
    pub(crate) tables: &'a [FlowTable],
    /// Incremented whenever the tables may have changed.
    pub(crate) generation: u64,
    pub(crate) keys: &'a BurstHeaders,
    pub(crate) lanes: Lanes,
    pub(crate) bytes: &'a [u32; MAX_BURST],
    pub(crate) counting: CountingMode,
    pub(crate) lookup_results: &'a mut [LookupResult; MAX_BURST],
}

/// Results of a lookup in the cache.
pub(crate) struct CacheResult {
    /// Packets that must be looked up in the tables.
    pub(crate) left: Lanes,
    /// Verdict of the other packets, if all have the same.
    pub(crate) alike: Option<VerdictWord>,
}

impl WorkerVerdictCache {
    pub(crate) fn new(mode: VerdictCacheMode) -> WorkerVerdictCache {
        let choice = if mode == VerdictCacheMode::On { CachePolicy::forced() } else { CachePolicy::free() };
        let is_off = mode == VerdictCacheMode::Off;
        let rest = if is_off { u64::MAX } else { choice.first_rest() };
        let inner = CacheInner {
            is_off,
            policy: choice,
            depends_on: CacheDependencies::default(),
            generation: None,
            is_ready: false,
            store: VerdictStore::default(),
            hits: CacheHits::default(),
            paths: TablePaths::default(),
            kept: Lanes::default(),
            is_sample: false,
            lookup_mode: BurstLookupMode { is_cached: false, is_timed: false },
            outcome: BurstLookupOutcome::default(),
            counts: CacheCounts::default(),
            bursts: 0,
        };
        WorkerVerdictCache { rest, notes: false, inner: Box::new(inner) }
    }

    /// Returns true if the current burst bypasses the cache, and counts it. Must be called once for each burst.
    #[inline(always)]
    pub(crate) const fn skip_burst(&mut self) -> bool {
        let rests = self.rest > 0;
        self.rest -= rests as u64;
        rests
    }

    /// Returns true if [`WorkerVerdictCache::note`] must be called for each table that packets reach.
    #[inline(always)]
    pub(crate) const fn notes(&self) -> bool {
        self.notes
    }

    /// Looks up a burst in the cache, sets the fates of the packets found, and counts them at their entries and tables.
    /// The caller must look up the other packets ([`CacheResult::left`]) in the tables and then call
    /// [`WorkerVerdictCache::end`]. All packets are left if the cache is not used for this burst.
    #[inline(never)]
    pub(crate) fn begin(&mut self, mut asked: CacheQuery<'_>) -> CacheResult {
        let nothing = CacheResult { left: asked.lanes, alike: None };
        let inner = &mut *self.inner;
        inner.lookup_mode = inner.policy.turn();
        inner.outcome = BurstLookupOutcome { packets: asked.lanes.count(), ..BurstLookupOutcome::default() };
        if inner.lookup_mode.is_timed {
            inner.outcome.cycles = cycles();
        }
        if inner.policy.is_growing() {
            inner.grow();
        }
        if !inner.lookup_mode.is_cached {
            return nothing;
        }
        // Timed as well, because following changes of the tables is part of the cache's cost.
        if inner.generation != Some(asked.generation) {
            inner.follow(&asked);
        }
        if !inner.is_ready {
            self.rest = inner.policy.give_up().unwrap_or(0);
            inner.outcome = BurstLookupOutcome::default();
            inner.agree();
            return nothing;
        }
        let known = run_simd(CacheLookup { inner: &mut *inner, asked: &mut asked });
        inner.kept = inner.wanted(known.left, asked.lanes);
        self.notes = !inner.kept.is_empty();
        if self.notes {
            inner.paths.begin(known.left);
        }
        known
    }

    /// Records that packets reached a table. `found` contains the entries that they match there.
    #[inline(never)]
    pub(crate) fn note(&mut self, table: u8, lanes: Lanes, found: &BurstEntries) {
        self.inner.paths.note(table, lanes, found);
    }

    /// Ends the burst begun by [`WorkerVerdictCache::begin`]: stores the results of packets that were not found (all or
    /// a selection), and records the burst's outcome for the decision whether the cache is used.
    #[inline(never)]
    pub(crate) fn end(&mut self, keys: &BurstHeaders, fates: &[LookupResult; MAX_BURST]) {
        let inner = &mut *self.inner;
        if self.notes {
            inner.store.keep(&inner.depends_on.words, keys, inner.kept, &inner.hits, &inner.paths, fates);
            self.notes = false;
        }
        if inner.outcome.packets == 0 {
            return;
        }
        if inner.lookup_mode.is_timed {
            inner.outcome.cycles = cycles().saturating_sub(inner.outcome.cycles);
        }
        inner.outcome.is_full = inner.store.is_full();
        if let Some(rest) = inner.policy.record_outcome(inner.lookup_mode, inner.outcome) {
            self.rest = rest;
        }
        if inner.policy.is_sampling() != inner.is_sample || inner.policy.is_large() != inner.store.has_many() {
            inner.agree();
        }
    }

    /// Returns the statistics since the start, and the current state.
    pub(crate) fn counts(&self) -> CacheCounts {
        let inner = &*self.inner;
        let state = match (inner.is_off, inner.policy.is_using(), inner.policy.is_trying()) {
            (true, ..) => CacheState::Off,
            (_, true, _) => CacheState::Using,
            (.., true) => CacheState::Trying,
            _ => CacheState::Resting,
        };
        CacheCounts {
            state,
            slots: inner.store.room(),
            kept: inner.store.kept(),
            trials: inner.policy.trials(),
            ..inner.counts
        }
    }
}

impl CacheInner {
    /// Makes a new plan if tables of the current plan have changed, or if the store could not be used with it.
    #[cold]
    fn follow(&mut self, asked: &CacheQuery<'_>) {
        self.generation = Some(asked.generation);
        if self.depends_on.holds(asked.tables) && self.is_ready {
            return;
        }
        self.depends_on = CacheDependencies::of(asked.tables);
        self.counts.renewals += 1;
        let is_wanted = self.depends_on.is_dear || self.policy.is_forced();
        self.is_ready = is_wanted && self.store.renew(self.depends_on.words.len(), self.depends_on.steps).is_ok();
    }

    /// Adds some room to the store.
    #[cold]
    fn grow(&mut self) {
        match self.store.grow() {
            Ok(true) => self.policy.has_grown(),
            Ok(false) => {}
            Err(_) => self.policy.stays_small(),
        }
    }

    /// Adapts the store's size and contents to the decision in `choice` on size and sampling.
    #[cold]
    fn agree(&mut self) {
        if self.policy.is_large() && !self.store.is_large() {
            self.policy.shrank();
        }
        if !self.policy.is_large() && !self.policy.is_growing() && self.store.has_many() {
            self.store.shrink();
        }
        if self.policy.is_sampling() != self.is_sample {
            self.is_sample = self.policy.is_sampling();
            self.store.clear();
        }
    }

    #[inline(always)]
    fn look_up(&mut self, asked: &mut CacheQuery<'_>) -> CacheResult {
        let lanes = asked.lanes;
        let found = self.store.find(&self.depends_on.words, asked.keys, lanes, &mut self.hits);
        let left = lanes.without(found);
        let alike = self.settle(found, asked);
        self.outcome.hits = found.count();
        self.counts.hits += u64::from(found.count());
        self.counts.misses += u64::from(left.count());
        CacheResult { left, alike }
    }

    /// Selects the packets to store among those that were not found. If the store is full and many are missing, most
    /// bursts are skipped: flows with many packets are stored soon anyway, and storing one costs as much as a lookup
    /// in a table or two and evicts another.
    #[inline(always)]
    fn wanted(&mut self, left: Lanes, lanes: Lanes) -> Lanes {
        self.bursts = self.bursts.wrapping_add(1);
        let are_few = left.count() * 16 <= lanes.count();
        if left.is_empty() || self.store.is_full() && !are_few && !self.bursts.is_multiple_of(SPARSE) {
            Lanes::default()
        } else if self.is_sample {
            self.store.sampled(left, &self.hits)
        } else {
            left
        }
    }

    /// Sets the fates of packets that were found, and counts them, together for packets of one route. Returns their
    /// verdict if all have the same one.
    #[inline(always)]
    fn settle(&self, found: Lanes, asked: &mut CacheQuery<'_>) -> Option<VerdictWord> {
        let (mut first, mut differs, mut left) = (None, false, found);
        while !left.is_empty() {
            let route = self.hits.route(left.0.trailing_zeros() as usize);
            let mut lanes = Lanes::default();
            left.each(|lane| lanes.0 |= u64::from(self.hits.route(lane) == route) << lane);
            left = left.without(lanes);
            let (steps, table, mut missed) = (route.len(), route.last(), 0);
            (0..steps).for_each(|step| self.fetch_counts(step, route, lanes, asked));
            for lane in lanes {
                let (verdict, entry) = (self.hits.verdict(lane), self.hits.entry(lane, steps.saturating_sub(1)));
                asked.lookup_results[lane] = LookupResult { verdict, table, entry };
                differs |= *first.get_or_insert(verdict) != verdict;
                missed += u64::from(entry == EntryId::NONE);
            }
            self.count(route, lanes, missed, asked);
        }
        first.filter(|_| !differs)
    }

    /// Prefetches the counters for one step of a route, if they are mostly not in a near cache.
    #[inline(always)]
    fn fetch_counts(&self, step: usize, route: TablePath, lanes: Lanes, asked: &CacheQuery<'_>) {
        if let Some(table) = asked.tables.get(usize::from(route.table(step)))
            && table.has_many()
            && let CountingMode::For(worker, _) = asked.counting
        {
            lanes.each(|lane| table.fetch_count(worker, self.hits.entry(lane, step)));
        }
    }

    /// Counts packets of one route, of which `missed` matched no entry in the last table. Two steps are counted at
    /// once, as their entries are stored in pairs.
    #[inline(always)]
    fn count(&self, route: TablePath, lanes: Lanes, missed: u64, asked: &CacheQuery<'_>) {
        let CountingMode::For(worker, now) = asked.counting else { return };
        let steps = route.len();
        let table = |step: usize| asked.tables.get(usize::from(route.table(step))).filter(|_| step < steps);
        for two in 0..steps.div_ceil(2) {
            let packets = lanes.into_iter().map(|lane| (self.hits.entries(lane, two), asked.bytes[lane]));
            tally_two([table(2 * two), table(2 * two + 1)], worker, now, packets);
        }
        let lookups = u64::from(lanes.count());
        for step in 0..steps {
            if let Some(table) = table(step) {
                table.looked_up(worker, lookups, lookups - if step + 1 == steps { missed } else { 0 });
            }
        }
    }
}

/// Lookup of a burst.
struct CacheLookup<'a, 'b> {
    inner: &'a mut CacheInner,
    asked: &'a mut CacheQuery<'b>,
}

impl SimdOperation for CacheLookup<'_, '_> {
    type Output = CacheResult;

    #[inline(always)]
    fn run<W: SimdInstructions>(self, _wide: W) -> CacheResult {
        self.inner.look_up(self.asked)
    }
}
