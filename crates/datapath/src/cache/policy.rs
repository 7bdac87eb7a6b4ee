//! Decides whether the verdict cache is used, by measuring lookups of the packets that arrive. In a trial, blocks of
//! bursts are looked up with the cache and without it in turn, and their times are compared. The faster method is used
//! until the next trial, whatever makes it faster: tables, flows, their order, the processor's caches, or changes of
//! the tables.
//!
//! The interval to the next trial grows after each failed trial. Between trials a burst costs one comparison more than
//! without a cache. So flows that never repeat, as in an attack, cost hardly more than without a cache. All intervals
//! are counted in bursts. Time is measured during trials only, and for no other purpose.

/// Number of bursts that bypass the cache before the first trial, and after the tables were found not to justify a
/// cache.
const FIRST_REST: u64 = 1 << 10;
/// Number of bursts that bypass the cache after a failed trial; doubled with each further failure.
const REST: u64 = 1 << 13;
/// Maximum number of bursts between trials: some 32 million packets.
const LONGEST_REST: u64 = 1 << 20;
/// Number of bursts that fill the cache before a trial.
const FILLING: u32 = 1 << 10;
/// Number of bursts that fill a large cache before a trial.
const FILLING_LARGE: u32 = 1 << 14;
/// Number of bursts during which a sample of flows is stored, to estimate how many flows repeat. Sampling ends after
/// the first half if there are very few hits; otherwise the hits in the second half decide.
const SAMPLING: u32 = 1 << 14;
/// Inverse sampling rate: one in this many flows is in the sample.
pub(super) const SAMPLED: u32 = 16;
/// Number of bursts in a block: consecutive bursts of a trial that are all looked up with the cache, or all without
/// it.
const BLOCK: u32 = 64;
/// Bursts at the beginning of a block that are not measured, because the processor's caches still hold the data of
/// the previous block.
const UNCOUNTED: u32 = 16;
/// Number of blocks in a trial; half of them use the cache.
const BLOCKS: usize = 16;
/// Number of bursts between trials while the cache is in use.
const TERM: u32 = 1 << 15;
/// Number of bursts over which hits are counted while the cache is in use, to notice that the traffic has changed.
const WINDOW: u32 = 1 << 8;

/// Way in which one burst is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BurstLookupMode {
    /// True if the burst is looked up in the cache.
    pub(super) is_cached: bool,
    /// True if the time of the burst's lookups is measured.
    pub(super) is_timed: bool,
}

/// Result of looking up one burst.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct BurstLookupOutcome {
    pub(super) packets: u32,
    /// Packets found in the cache.
    pub(super) hits: u32,
    /// Duration in cycles of the time stamp counter, if measured; otherwise 0.
    pub(super) cycles: u64,
    /// True if the cache's store of verdicts is full.
    pub(super) is_full: bool,
}

impl BurstLookupOutcome {
    /// Returns the fraction of packets that hit, in 1/256.
    fn share(packets: u32, hits: u32) -> u32 {
        hits.saturating_mul(256) / packets.max(1)
    }
}

/// State of the decision whether the cache is used, and how large its store is: see the [module](self).
#[derive(Debug)]
pub(super) struct CachePolicy {
    phase: CachePhase,
    /// Number of bursts in the current phase so far.
    bursts: u32,
    /// Number of bursts that will bypass the cache after the next failed trial.
    rest: u64,
    trial: CacheTrial,
    trials: u64,
    /// Numbers of packets and of hits in the current [`WINDOW`] (while the cache is in use) or phase (before a trial).
    seen: (u32, u32),
    /// Fraction of packets that hit in the last successful trial, in 1/256.
    usual: u32,
    /// Current size of the store.
    room: CacheStoreSize,
    /// True if a larger store is not expected to help.
    suffices: bool,
    /// Fraction of packets that hit before sampling began, in 1/256.
    before: u32,
}

/// Size of the cache's store of verdicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CacheStoreSize {
    Small,
    /// The store is small and is being enlarged, in steps.
    Growing,
    Large,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CachePhase {
    /// The cache is bypassed.
    Resting,
    Filling,
    /// The store is too small for the flows. Only a sample of flows is stored, to estimate the benefit of a larger
    /// store.
    Sampling,
    /// The cache is bypassed until the store has been enlarged.
    Growing,
    Trying,
    /// The cache is in use.
    Using,
    /// The cache is in use regardless of its cost.
    Forced,
}

/// Measurements of a trial, which compares lookups with and without the cache.
#[derive(Debug, Default)]
struct CacheTrial {
    /// True if the trial began while the cache was in use.
    from_use: bool,
    /// By block: sums of cycles and packets of its timed bursts. Blocks with an even index use the cache.
    sums: [(u64, u32); BLOCKS],
    packets: u32,
    hits: u32,
}

impl CacheTrial {
    /// Returns the cycles per thousand packets with the cache, and without it. Each value is the median over the
    /// blocks, because interrupts lengthen some blocks.
    fn costs(&self) -> [u64; 2] {
        [0, 1].map(|way| {
            let blocks = self.sums.iter().skip(way).step_by(2);
            let mut costs: Vec<u64> =
                blocks.map(|(cycles, packets)| cycles * 1000 / u64::from(*packets).max(1)).collect();
            costs.sort_unstable();
            costs.get(costs.len() / 2).copied().unwrap_or_default()
        })
    }

    /// Returns true if lookups were faster with the cache. If the cache was not in use before the trial, they must be
    /// faster by more than a twentieth.
    fn pays(&self) -> bool {
        let [with, without] = self.costs();
        if self.from_use { with < without } else { with < without - without / 20 }
    }
}

impl CachePolicy {
    /// Creates a choice that uses the cache while trials find it faster.
    pub(super) fn free() -> CachePolicy {
        CachePolicy {
            phase: CachePhase::Resting,
            bursts: 0,
            rest: REST,
            trial: CacheTrial::default(),
            trials: 0,
            seen: (0, 0),
            usual: 0,
            room: CacheStoreSize::Small,
            suffices: false,
            before: 0,
        }
    }

    /// Creates a choice that always uses the cache.
    pub(super) fn forced() -> CachePolicy {
        CachePolicy { phase: CachePhase::Forced, ..CachePolicy::free() }
    }

    /// Returns the number of bursts until the cache is first considered.
    pub(super) const fn first_rest(&self) -> u64 {
        if self.is_forced() { 0 } else { FIRST_REST }
    }

    /// Returns true if the cache is in use regardless of its cost.
    pub(super) const fn is_forced(&self) -> bool {
        matches!(self.phase, CachePhase::Forced)
    }

    /// Returns the number of completed trials.
    pub(super) const fn trials(&self) -> u64 {
        self.trials
    }

    /// Returns true if the cache is in use. It counts as in use during a trial that began while it was.
    pub(super) const fn is_using(&self) -> bool {
        matches!(self.phase, CachePhase::Using | CachePhase::Forced)
            || matches!(self.phase, CachePhase::Trying) && self.trial.from_use
    }

    /// Returns true if a trial, or the preparation of one, is under way while the cache is not in use.
    pub(super) const fn is_trying(&self) -> bool {
        matches!(self.phase, CachePhase::Filling | CachePhase::Sampling | CachePhase::Growing | CachePhase::Trying)
            && !self.trial.from_use
    }

    /// Returns true if only a sample of flows, one in [`SAMPLED`], must be stored.
    pub(super) const fn is_sampling(&self) -> bool {
        matches!(self.phase, CachePhase::Sampling)
    }

    /// Returns true if the store must be enlarged.
    pub(super) const fn is_growing(&self) -> bool {
        matches!(self.room, CacheStoreSize::Growing)
    }

    /// Returns true if the store should be large.
    pub(super) const fn is_large(&self) -> bool {
        matches!(self.room, CacheStoreSize::Large)
    }

    /// Records that the store is large now.
    pub(super) fn has_grown(&mut self) {
        self.room = CacheStoreSize::Large;
        if self.phase == CachePhase::Growing {
            self.enter(CachePhase::Filling);
        }
    }

    /// Records that the store, which was large, has become small because the words or steps to store changed.
    pub(super) fn shrank(&mut self) {
        self.room = CacheStoreSize::Small;
    }

    /// Records that the store could not be enlarged.
    pub(super) fn stays_small(&mut self) {
        (self.room, self.suffices) = (CacheStoreSize::Small, true);
        if self.phase == CachePhase::Growing {
            self.enter(CachePhase::Filling);
        }
    }

    /// Stops using the cache, because the tables do not justify one. Returns the number of bursts that bypass the
    /// cache before the tables are checked again; `None` if the cache is forced.
    pub(super) fn give_up(&mut self) -> Option<u64> {
        self.room = CacheStoreSize::Small;
        if self.phase == CachePhase::Forced {
            return None;
        }
        self.enter(CachePhase::Resting);
        Some(FIRST_REST)
    }

    /// Returns the way in which the next burst is looked up. Must be called only for bursts that do not bypass the
    /// cache.
    #[inline(always)]
    pub(super) fn turn(&mut self) -> BurstLookupMode {
        if let CachePhase::Trying = self.phase {
            let is_cached = (self.bursts / BLOCK).is_multiple_of(2);
            return BurstLookupMode { is_cached, is_timed: self.bursts % BLOCK >= UNCOUNTED };
        }
        if let CachePhase::Resting = self.phase {
            self.trial = CacheTrial::default();
            self.enter(CachePhase::Filling);
        }
        BurstLookupMode { is_cached: self.phase != CachePhase::Growing, is_timed: false }
    }

    /// Records the outcome of a burst. Returns the number of bursts that bypass the cache from now on, if the cache is
    /// no longer used.
    #[inline(always)]
    pub(super) fn record_outcome(&mut self, turn: BurstLookupMode, outcome: BurstLookupOutcome) -> Option<u64> {
        self.bursts += 1;
        match self.phase {
            CachePhase::Forced => {
                self.bursts = 0;
                if outcome.is_full && self.room == CacheStoreSize::Small && !self.suffices {
                    self.room = CacheStoreSize::Growing;
                }
                None
            }
            CachePhase::Using => {
                self.seen.0 += outcome.packets;
                self.seen.1 += outcome.hits;
                if self.bursts.is_multiple_of(WINDOW) { self.look_back() } else { None }
            }
            _ => self.tried(turn, outcome),
        }
    }

    /// Ends a [`WINDOW`] while the cache is in use: begins a trial if [`TERM`] has passed, or if the fraction of hits
    /// is less than half of the usual one. Returns `None`.
    #[cold]
    fn look_back(&mut self) -> Option<u64> {
        let (packets, hits) = std::mem::take(&mut self.seen);
        let share = BurstLookupOutcome::share(packets, hits);
        if self.bursts >= TERM || share < self.usual / 2 {
            self.trial = CacheTrial { from_use: true, ..CacheTrial::default() };
            self.enter(CachePhase::Trying);
        }
        None
    }

    /// Records a burst of a trial, or of the filling and sampling before it. Returns the number of bursts that bypass
    /// the cache from now on, if a trial failed.
    #[cold]
    fn tried(&mut self, turn: BurstLookupMode, outcome: BurstLookupOutcome) -> Option<u64> {
        match self.phase {
            CachePhase::Filling | CachePhase::Sampling => {
                self.seen.0 += outcome.packets;
                self.seen.1 += outcome.hits;
                return if self.phase == CachePhase::Filling { self.filled(outcome.is_full) } else { self.sampled() };
            }
            CachePhase::Trying => {
                let block = self.bursts.saturating_sub(1) / BLOCK;
                if let Some((cycles, packets)) = self.trial.sums.get_mut(block as usize)
                    && turn.is_timed
                {
                    *cycles += outcome.cycles;
                    *packets += outcome.packets;
                }
                if turn.is_cached {
                    self.trial.packets += outcome.packets;
                    self.trial.hits += outcome.hits;
                }
                if self.bursts as usize >= BLOCKS * BLOCK as usize {
                    return self.decide();
                }
            }
            _ => {}
        }
        None
    }

    /// Records a burst that filled the store. After enough of them, begins sampling (if the store is full and many
    /// packets miss) or a trial, or gives up because of too few hits. Returns the number of bursts that bypass the
    /// cache from now on, if it gave up.
    fn filled(&mut self, is_full: bool) -> Option<u64> {
        if self.bursts < if self.is_large() { FILLING_LARGE } else { FILLING } {
            return None;
        }
        let share = BurstLookupOutcome::share(self.seen.0, self.seen.1);
        if is_full && share < 256 / 8 * 7 && self.room == CacheStoreSize::Small && !self.suffices {
            self.before = share;
            self.enter(CachePhase::Sampling);
        } else if share < 256 / 16 {
            // So few hits do not pay for the misses with any tables. No measurement is needed.
            return self.failed();
        } else {
            self.enter(CachePhase::Trying);
        }
        None
    }

    /// Records a burst of the sampling phase. At the middle and the end of the phase, decides from the hits whether a
    /// larger store is worthwhile. Returns the number of bursts that bypass the cache from now on, if none is and the
    /// small store had too few hits.
    fn sampled(&mut self) -> Option<u64> {
        if self.bursts != SAMPLING / 2 && self.bursts != SAMPLING {
            return None;
        }
        let (packets, hits) = std::mem::take(&mut self.seen);
        let share = BurstLookupOutcome::share(packets, hits.saturating_mul(SAMPLED));
        // While a sample is new, some of the repeating flows have not been seen before.
        let least = if self.bursts < SAMPLING { 256 / 8 } else { 256 / 2 }.max(self.before + 256 / 8);
        if share < least {
            self.suffices = true;
            self.rest = self.rest.saturating_mul(4).min(LONGEST_REST);
            if self.before < 256 / 16 {
                return self.failed();
            }
            self.enter(CachePhase::Filling);
        } else if self.bursts == SAMPLING {
            self.room = CacheStoreSize::Growing;
            self.enter(CachePhase::Growing);
        }
        None
    }

    /// Ends a trial: puts the cache in use if it made lookups faster. Otherwise returns the number of bursts that
    /// bypass the cache until the next trial.
    fn decide(&mut self) -> Option<u64> {
        if !self.trial.pays() {
            return self.failed();
        }
        self.trials += 1;
        self.usual = BurstLookupOutcome::share(self.trial.packets, self.trial.hits);
        (self.rest, self.suffices) = (REST, false);
        self.enter(CachePhase::Using);
        None
    }

    fn failed(&mut self) -> Option<u64> {
        self.trials += 1;
        // After a trial of a large store, the next one uses a small store.
        self.suffices = self.room != CacheStoreSize::Small;
        self.room = CacheStoreSize::Small;
        let rest = self.rest;
        self.rest = (rest * 2).min(LONGEST_REST);
        self.enter(CachePhase::Resting);
        Some(rest)
    }

    fn enter(&mut self, phase: CachePhase) {
        (self.phase, self.bursts, self.seen) = (phase, 0, (0, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs bursts of 32 packets, of which `hits` are in the cache. With the cache, a hit takes `hit` cycles and a
    /// miss takes `miss` cycles; without it, a packet takes `plain` cycles. Returns the number of bursts looked up in
    /// the cache.
    fn run(choice: &mut CachePolicy, bursts: u64, hits: u32, hit: u64, miss: u64, plain: u64) -> u64 {
        let (mut pause, mut cached) = (0, 0);
        for _ in 0..bursts {
            if pause > 0 {
                pause -= 1;
                continue;
            }
            let turn = choice.turn();
            let found = if turn.is_cached { hits } else { 0 };
            let cost = u64::from(hits) * hit + u64::from(32 - hits) * miss;
            let cycles = if turn.is_cached { cost } else { 32 * plain };
            cached += u64::from(turn.is_cached);
            pause = choice
                .record_outcome(turn, BurstLookupOutcome { packets: 32, hits: found, cycles, is_full: false })
                .unwrap_or(0);
        }
        cached
    }

    #[test]
    fn a_cache_that_pays_is_used() {
        let mut choice = CachePolicy::free();
        let cached = run(&mut choice, 1 << 20, 32, 20, 100, 80);
        assert!(choice.is_using() && cached > (1 << 20) * 98 / 100, "{cached}");
    }

    #[test]
    fn packets_that_never_come_twice_go_past_it() {
        let mut choice = CachePolicy::free();
        let cached = run(&mut choice, 1 << 22, 0, 20, 100, 80);
        assert!(!choice.is_using() && cached < (1 << 22) / 100, "{cached}");
    }

    #[test]
    fn hits_that_cost_what_they_save_do_not_pay() {
        let mut choice = CachePolicy::free();
        let cached = run(&mut choice, 1 << 22, 30, 12, 40, 12);
        assert!(!choice.is_using() && cached < (1 << 22) / 100, "{cached}");
    }

    #[test]
    fn it_notices_when_packets_become_others() {
        let mut choice = CachePolicy::free();
        run(&mut choice, 1 << 14, 32, 20, 100, 80);
        assert!(choice.is_using());
        let cached = run(&mut choice, 1 << 14, 0, 20, 100, 80);
        assert!(!choice.is_using() && cached < 2000, "{cached}");
        // Back to the first traffic.
        run(&mut choice, 1 << 17, 32, 20, 100, 80);
        assert!(choice.is_using());
    }

    #[test]
    fn interrupted_blocks_do_not_decide() {
        let mut trial = CacheTrial::default();
        for (at, sum) in trial.sums.iter_mut().enumerate() {
            *sum = if at % 2 == 0 { (20_000, 1000) } else { (80_000, 1000) };
        }
        trial.sums[0].0 = 50_000_000;
        trial.sums[2].0 = 90_000_000;
        assert_eq!(trial.costs(), [20_000, 80_000]);
        assert!(trial.pays());
    }

    /// Runs bursts of 32 packets with more flows than fit in a small store; in a large one, `again` of 32 packets
    /// hit. Returns the number of bursts with a large store.
    fn run_many(choice: &mut CachePolicy, bursts: u32, again: u32) -> u32 {
        let (mut pause, mut phase_bursts, mut large) = (0, 0, 0);
        for _ in 0..bursts {
            if pause > 0 {
                pause -= 1;
                continue;
            }
            let turn = choice.turn();
            if choice.is_growing() {
                choice.has_grown();
            }
            phase_bursts = if choice.is_sampling() { phase_bursts + 1 } else { 0 };
            // A sample has few of the flows, and each is new the first time.
            let hits = match (turn.is_cached, choice.is_large(), choice.is_sampling()) {
                (true, true, _) => again,
                (true, _, true) if phase_bursts > SAMPLING / 4 => again / SAMPLED,
                _ => 0,
            };
            let cycles = if turn.is_cached { u64::from(hits) * 30 + u64::from(32 - hits) * 220 } else { 32 * 200 };
            pause = choice
                .record_outcome(turn, BurstLookupOutcome { packets: 32, hits, cycles, is_full: true })
                .unwrap_or(0);
            large += u32::from(choice.is_large());
        }
        large
    }

    #[test]
    fn many_flows_that_come_again_get_room() {
        let mut choice = CachePolicy::free();
        let large = run_many(&mut choice, 1 << 18, 32);
        assert!(choice.is_using() && choice.is_large() && large > (1 << 18) * 8 / 10, "{large}");
        // The flows no longer repeat: the large store is given up.
        assert_eq!(run_many(&mut choice, 1 << 14, 0).max(1 << 11), 1 << 11);
        assert!(!choice.is_using() && !choice.is_large());
    }

    #[test]
    fn flows_that_do_not_come_again_get_no_room() {
        let mut choice = CachePolicy::free();
        assert_eq!(run_many(&mut choice, 1 << 22, 0), 0);
        assert!(!choice.is_using());
        assert!(choice.trials() < 12, "{} trials", choice.trials());
    }

    #[test]
    fn a_forced_cache_grows_when_it_is_full() {
        let mut choice = CachePolicy::forced();
        run(&mut choice, 100, 0, 20, 1000, 1);
        assert!(!choice.is_growing());
        run_many(&mut choice, 2, 0);
        assert!(choice.is_large() && choice.is_using());
        assert_eq!(choice.give_up(), None);
        assert!(!choice.is_large());
    }

    #[test]
    fn a_forced_cache_is_used_whatever_it_costs() {
        let mut choice = CachePolicy::forced();
        assert_eq!(choice.first_rest(), 0);
        assert_eq!(run(&mut choice, 5000, 0, 20, 1000, 1), 5000);
        assert_eq!(choice.give_up(), None);
    }
}
