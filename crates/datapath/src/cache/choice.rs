//! Decides whether the cache is used, by measurement with the present packets. From time to time some bursts are
//! looked up with the cache and some without, in turn, and their times are compared. The faster method is used until
//! the next trial. The cause does not matter: tables, flows, their order, the processor's caches, or changes of the
//! tables.
//!
//! After failed trials the next ones become rarer. Between trials a burst costs one test, so that packets which never
//! repeat, as in an attack, cost nearly as much as without a cache. All intervals are counted in bursts. Time is
//! measured during trials only, and for no other purpose.

/// Bursts until the first trial, and after tables turned out not to be worth a cache.
const FIRST_REST: u64 = 1 << 10;
/// Bursts until the next trial after a failed one; doubled with each further failure.
const REST: u64 = 1 << 13;
/// Maximum number of bursts between trials: some 32 million packets.
const LONGEST_REST: u64 = 1 << 20;
/// Bursts that fill the cache before it is measured.
const FILLING: u32 = 1 << 10;
/// Bursts that fill a large cache before it is measured.
const FILLING_LARGE: u32 = 1 << 14;
/// Bursts during which a sample of flows is stored, to see whether many repeat. Hits are checked after the first
/// half, and decide after the second.
const SAMPLING: u32 = 1 << 14;
/// Inverse sampling rate: one in this many flows is in the sample.
pub(super) const SAMPLED: u32 = 16;
/// Number of consecutive measured bursts with the cache, and then without.
const BLOCK: u32 = 64;
/// Bursts at the beginning of a block that are not measured, because the processor's caches still hold the data of
/// the previous block.
const UNCOUNTED: u32 = 16;
/// Number of blocks in a trial; half of them use the cache.
const BLOCKS: usize = 16;
/// Bursts between trials while the cache is in use.
const TERM: u32 = 1 << 15;
/// Bursts over which hits are counted, to notice that the traffic has changed.
const WINDOW: u32 = 1 << 8;

/// Handling of one burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    /// True if the burst is looked up in the cache.
    pub(super) is_cached: bool,
    /// True if the time is measured.
    pub(super) is_timed: bool,
}

/// Outcome of one burst.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outcome {
    pub(super) packets: u32,
    /// Packets found in the cache.
    pub(super) hits: u32,
    /// Time stamp counter cycles, if measured.
    pub(super) cycles: u64,
    /// True if the store is full.
    pub(super) is_full: bool,
}

impl Outcome {
    /// Returns the fraction of packets that hit, in 1/256.
    fn share(packets: u32, hits: u32) -> u32 {
        hits.saturating_mul(256) / packets.max(1)
    }
}

/// Decision on the use and the size of the cache: see the [module](self).
#[derive(Debug)]
pub(super) struct Choice {
    phase: Phase,
    /// Bursts in the present phase so far.
    bursts: u32,
    /// Number of bursts to rest after the next failed trial.
    rest: u64,
    trial: Trial,
    trials: u64,
    /// Packets and hits in the present [`WINDOW`] or phase.
    seen: (u32, u32),
    /// Fraction of packets that hit in the last successful trial, in 1/256.
    usual: u32,
    /// Present size of the store.
    room: Room,
    /// True if a larger store is not expected to help.
    suffices: bool,
    /// Fraction of packets that hit before sampling began, in 1/256.
    before: u32,
}

/// Size of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Small,
    /// Small, and being enlarged.
    Growing,
    Large,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The cache is bypassed.
    Resting,
    Filling,
    /// A sample of flows is stored, because more flows exist than fit, to estimate the benefit of a larger store.
    Sampling,
    /// The store is being enlarged.
    Growing,
    Trying,
    /// The cache is in use.
    Using,
    /// The cache is in use regardless of its cost.
    Forced,
}

/// Measurements of a trial.
#[derive(Debug, Default)]
struct Trial {
    /// True if the trial began while the cache was in use.
    from_use: bool,
    /// By block: cycles and packets.
    sums: [(u64, u32); BLOCKS],
    packets: u32,
    hits: u32,
}

impl Trial {
    /// Returns the cycles per thousand packets with the cache, and without. Each is the median over the blocks,
    /// because some are interrupted.
    fn costs(&self) -> [u64; 2] {
        [0, 1].map(|way| {
            let blocks = self.sums.iter().skip(way).step_by(2);
            let mut costs: Vec<u64> =
                blocks.map(|(cycles, packets)| cycles * 1000 / u64::from(*packets).max(1)).collect();
            costs.sort_unstable();
            costs.get(costs.len() / 2).copied().unwrap_or_default()
        })
    }

    /// Returns true if the cache made lookups faster; by a twentieth at least, if it was not in use before.
    fn pays(&self) -> bool {
        let [with, without] = self.costs();
        if self.from_use { with < without } else { with < without - without / 20 }
    }
}

impl Choice {
    /// Creates a choice by measurement.
    pub(super) fn free() -> Choice {
        Choice {
            phase: Phase::Resting,
            bursts: 0,
            rest: REST,
            trial: Trial::default(),
            trials: 0,
            seen: (0, 0),
            usual: 0,
            room: Room::Small,
            suffices: false,
            before: 0,
        }
    }

    /// Creates a choice that always uses the cache.
    pub(super) fn forced() -> Choice {
        Choice { phase: Phase::Forced, ..Choice::free() }
    }

    /// Returns the number of bursts until the cache is first considered.
    pub(super) const fn first_rest(&self) -> u64 {
        if self.is_forced() { 0 } else { FIRST_REST }
    }

    /// Returns true if the cache is in use regardless of its cost.
    pub(super) const fn is_forced(&self) -> bool {
        matches!(self.phase, Phase::Forced)
    }

    /// Returns the number of completed trials.
    pub(super) const fn trials(&self) -> u64 {
        self.trials
    }

    /// Returns true if packets are looked up in the cache (apart from trials).
    pub(super) const fn is_using(&self) -> bool {
        matches!(self.phase, Phase::Using | Phase::Forced) || matches!(self.phase, Phase::Trying) && self.trial.from_use
    }

    /// Returns true if a trial, or the preparation of one, is under way while the cache is not in use.
    pub(super) const fn is_trying(&self) -> bool {
        matches!(self.phase, Phase::Filling | Phase::Sampling | Phase::Growing | Phase::Trying) && !self.trial.from_use
    }

    /// Returns true if only a sample of flows, one in [`SAMPLED`], must be stored.
    pub(super) const fn is_sampling(&self) -> bool {
        matches!(self.phase, Phase::Sampling)
    }

    /// Returns true if the store must be enlarged.
    pub(super) const fn is_growing(&self) -> bool {
        matches!(self.room, Room::Growing)
    }

    /// Returns true if the store should be large.
    pub(super) const fn is_large(&self) -> bool {
        matches!(self.room, Room::Large)
    }

    /// Records that the store is large now.
    pub(super) fn has_grown(&mut self) {
        self.room = Room::Large;
        if self.phase == Phase::Growing {
            self.enter(Phase::Filling);
        }
    }

    /// Records that the store, which was large, has become small because the words or steps to store changed.
    pub(super) fn shrank(&mut self) {
        self.room = Room::Small;
    }

    /// Records that the store could not be enlarged.
    pub(super) fn stays_small(&mut self) {
        (self.room, self.suffices) = (Room::Small, true);
        if self.phase == Phase::Growing {
            self.enter(Phase::Filling);
        }
    }

    /// Stops using the cache because the tables do not justify one. Returns the number of bursts until this is
    /// checked again; `None` if the cache is forced.
    pub(super) fn give_up(&mut self) -> Option<u64> {
        self.room = Room::Small;
        if self.phase == Phase::Forced {
            return None;
        }
        self.enter(Phase::Resting);
        Some(FIRST_REST)
    }

    /// Returns the handling of the next burst; called only when no rest is left.
    #[inline(always)]
    pub(super) fn turn(&mut self) -> Turn {
        if let Phase::Trying = self.phase {
            let is_cached = (self.bursts / BLOCK).is_multiple_of(2);
            return Turn { is_cached, is_timed: self.bursts % BLOCK >= UNCOUNTED };
        }
        if let Phase::Resting = self.phase {
            self.trial = Trial::default();
            self.enter(Phase::Filling);
        }
        Turn { is_cached: self.phase != Phase::Growing, is_timed: false }
    }

    /// Records the outcome of a burst. Returns the number of bursts to rest, if a rest begins.
    #[inline(always)]
    pub(super) fn came(&mut self, turn: Turn, outcome: Outcome) -> Option<u64> {
        self.bursts += 1;
        match self.phase {
            Phase::Forced => {
                self.bursts = 0;
                if outcome.is_full && self.room == Room::Small && !self.suffices {
                    self.room = Room::Growing;
                }
                None
            }
            Phase::Using => {
                self.seen.0 += outcome.packets;
                self.seen.1 += outcome.hits;
                if self.bursts.is_multiple_of(WINDOW) { self.look_back() } else { None }
            }
            _ => self.tried(turn, outcome),
        }
    }

    /// Handles the end of a window of bursts while the cache is in use.
    #[cold]
    fn look_back(&mut self) -> Option<u64> {
        let (packets, hits) = std::mem::take(&mut self.seen);
        let share = Outcome::share(packets, hits);
        if self.bursts >= TERM || share < self.usual / 2 {
            self.trial = Trial { from_use: true, ..Trial::default() };
            self.enter(Phase::Trying);
        }
        None
    }

    /// Handles a burst of a trial, or of its preparation.
    #[cold]
    fn tried(&mut self, turn: Turn, outcome: Outcome) -> Option<u64> {
        match self.phase {
            Phase::Filling | Phase::Sampling => {
                self.seen.0 += outcome.packets;
                self.seen.1 += outcome.hits;
                return if self.phase == Phase::Filling { self.filled(outcome.is_full) } else { self.sampled() };
            }
            Phase::Trying => {
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

    /// Handles a burst that filled the store before a trial.
    fn filled(&mut self, is_full: bool) -> Option<u64> {
        if self.bursts < if self.is_large() { FILLING_LARGE } else { FILLING } {
            return None;
        }
        let share = Outcome::share(self.seen.0, self.seen.1);
        if is_full && share < 256 / 8 * 7 && self.room == Room::Small && !self.suffices {
            self.before = share;
            self.enter(Phase::Sampling);
        } else if share < 256 / 16 {
            // So few hits do not pay for the misses with any tables. No measurement is needed.
            return self.failed();
        } else {
            self.enter(Phase::Trying);
        }
        None
    }

    /// Handles a burst of which a sample was stored.
    fn sampled(&mut self) -> Option<u64> {
        if self.bursts != SAMPLING / 2 && self.bursts != SAMPLING {
            return None;
        }
        let (packets, hits) = std::mem::take(&mut self.seen);
        let share = Outcome::share(packets, hits.saturating_mul(SAMPLED));
        // While a sample is new, some of the repeating flows have not been seen before.
        let least = if self.bursts < SAMPLING { 256 / 8 } else { 256 / 2 }.max(self.before + 256 / 8);
        if share < least {
            self.suffices = true;
            self.rest = self.rest.saturating_mul(4).min(LONGEST_REST);
            if self.before < 256 / 16 {
                return self.failed();
            }
            self.enter(Phase::Filling);
        } else if self.bursts == SAMPLING {
            self.room = Room::Growing;
            self.enter(Phase::Growing);
        }
        None
    }

    /// Handles the end of a trial.
    fn decide(&mut self) -> Option<u64> {
        if !self.trial.pays() {
            return self.failed();
        }
        self.trials += 1;
        self.usual = Outcome::share(self.trial.packets, self.trial.hits);
        (self.rest, self.suffices) = (REST, false);
        self.enter(Phase::Using);
        None
    }

    fn failed(&mut self) -> Option<u64> {
        self.trials += 1;
        // After a trial of a large store, the next one uses a small store.
        self.suffices = self.room != Room::Small;
        self.room = Room::Small;
        let rest = self.rest;
        self.rest = (rest * 2).min(LONGEST_REST);
        self.enter(Phase::Resting);
        Some(rest)
    }

    fn enter(&mut self, phase: Phase) {
        (self.phase, self.bursts, self.seen) = (phase, 0, (0, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs bursts of 32 packets, of which `hits` hit. A cached burst takes `hit` and `miss` cycles per packet,
    /// another one `plain` cycles per packet. Returns the number of cached bursts.
    fn run(choice: &mut Choice, bursts: u64, hits: u32, hit: u64, miss: u64, plain: u64) -> u64 {
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
            pause = choice.came(turn, Outcome { packets: 32, hits: found, cycles, is_full: false }).unwrap_or(0);
        }
        cached
    }

    #[test]
    fn a_cache_that_pays_is_used() {
        let mut choice = Choice::free();
        let cached = run(&mut choice, 1 << 20, 32, 20, 100, 80);
        assert!(choice.is_using() && cached > (1 << 20) * 98 / 100, "{cached}");
    }

    #[test]
    fn packets_that_never_come_twice_go_past_it() {
        let mut choice = Choice::free();
        let cached = run(&mut choice, 1 << 22, 0, 20, 100, 80);
        assert!(!choice.is_using() && cached < (1 << 22) / 100, "{cached}");
    }

    #[test]
    fn hits_that_cost_what_they_save_do_not_pay() {
        let mut choice = Choice::free();
        let cached = run(&mut choice, 1 << 22, 30, 12, 40, 12);
        assert!(!choice.is_using() && cached < (1 << 22) / 100, "{cached}");
    }

    #[test]
    fn it_notices_when_packets_become_others() {
        let mut choice = Choice::free();
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
        let mut trial = Trial::default();
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
    fn run_many(choice: &mut Choice, bursts: u32, again: u32) -> u32 {
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
            pause = choice.came(turn, Outcome { packets: 32, hits, cycles, is_full: true }).unwrap_or(0);
            large += u32::from(choice.is_large());
        }
        large
    }

    #[test]
    fn many_flows_that_come_again_get_room() {
        let mut choice = Choice::free();
        let large = run_many(&mut choice, 1 << 18, 32);
        assert!(choice.is_using() && choice.is_large() && large > (1 << 18) * 8 / 10, "{large}");
        // The flows no longer repeat: the large store is given up.
        assert_eq!(run_many(&mut choice, 1 << 14, 0).max(1 << 11), 1 << 11);
        assert!(!choice.is_using() && !choice.is_large());
    }

    #[test]
    fn flows_that_do_not_come_again_get_no_room() {
        let mut choice = Choice::free();
        assert_eq!(run_many(&mut choice, 1 << 22, 0), 0);
        assert!(!choice.is_using());
        assert!(choice.trials() < 12, "{} trials", choice.trials());
    }

    #[test]
    fn a_forced_cache_grows_when_it_is_full() {
        let mut choice = Choice::forced();
        run(&mut choice, 100, 0, 20, 1000, 1);
        assert!(!choice.is_growing());
        run_many(&mut choice, 2, 0);
        assert!(choice.is_large() && choice.is_using());
        assert_eq!(choice.give_up(), None);
        assert!(!choice.is_large());
    }

    #[test]
    fn a_forced_cache_is_used_whatever_it_costs() {
        let mut choice = Choice::forced();
        assert_eq!(choice.first_rest(), 0);
        assert_eq!(run(&mut choice, 5000, 0, 20, 1000, 1), 5000);
        assert_eq!(choice.give_up(), None);
    }
}
