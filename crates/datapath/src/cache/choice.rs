//! Whether the cache pays: tried on the packets that come. Now and then some bursts are looked up with it and some without, in turn, and
//! what they took is compared; the cheaper way is kept to until the next trial. So it does not matter why one is cheaper here and now:
//! tables, flows, their order, the processor's caches, changes of the tables.
//!
//! Trials that fail become rarer, and between them a burst costs one test: packets that never come twice, as those of an attack, cost
//! nearly what they would without a cache. Everything is counted in bursts; time is measured during trials only, and decides nothing
//! else.

/// Bursts until the first trial, and after one was not worth it.
const FIRST_REST: u64 = 1 << 10;
/// Bursts until the next trial after one that failed; twice as many after the next, and so on.
const REST: u64 = 1 << 13;
/// Up to so many: some 32 million packets.
const LONGEST_REST: u64 = 1 << 20;
/// Bursts that fill the cache before it is measured.
const FILLING: u32 = 1 << 10;
/// The same with room for many flows.
const FILLING_LARGE: u32 = 1 << 14;
/// Bursts of which a sample of flows is kept, to see whether many come again. Hits of the second half count.
const SAMPLING: u32 = 1 << 14;
/// Of so many flows one is in the sample.
pub(super) const SAMPLED: u32 = 16;
/// Measured bursts go with and without the cache in turn, so many at once.
const BLOCK: u32 = 64;
/// Those that are not counted at the beginning of a block: the processor's caches still have what the others used.
const UNCOUNTED: u32 = 16;
/// Blocks of a trial, half of them each way.
const BLOCKS: usize = 16;
/// Bursts between trials while the cache is in use.
const TERM: u32 = 1 << 15;
/// Bursts of which hits are counted, to notice that packets have become others.
const WINDOW: u32 = 1 << 8;

/// What is done with a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Turn {
    /// Whether it is looked up in the cache.
    pub(super) is_cached: bool,
    /// Whether it is measured how long that takes.
    pub(super) is_timed: bool,
}

/// What came of it.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Outcome {
    pub(super) packets: u32,
    /// Those that were found in the cache.
    pub(super) hits: u32,
    /// Counts of the time stamp counter, if it was measured.
    pub(super) cycles: u64,
    /// Whether what there was room for is used up.
    pub(super) is_full: bool,
}

impl Outcome {
    /// What share of so many packets hit, in 256ths.
    fn share(packets: u32, hits: u32) -> u32 {
        hits.saturating_mul(256) / packets.max(1)
    }
}

/// See the module's page.
#[derive(Debug)]
pub(super) struct Choice {
    phase: Phase,
    /// Bursts of this phase so far.
    bursts: u32,
    /// How long it rests after the next trial that fails.
    rest: u64,
    trial: Trial,
    trials: u64,
    /// Packets, and hits, since [`WINDOW`] began.
    seen: (u32, u32),
    /// What share of packets hit when it was found to pay, in 256ths.
    usual: u32,
    /// Whether there is room for many flows, or is being made.
    room: Room,
    /// Nothing is to be had from more room, as far as is known.
    suffices: bool,
    /// What share of packets hit before a sample was taken, in 256ths.
    before: u32,
}

/// How many flows there is room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Small,
    /// It is being made larger.
    Growing,
    Large,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// It is not asked.
    Resting,
    Filling,
    /// There are more flows than room: a sample of them is kept, which shows what room for all would be good for.
    Sampling,
    /// That room is being made.
    Growing,
    Trying,
    /// It is in use.
    Using,
    /// It is in use, whatever it costs.
    Forced,
}

/// What a trial has measured.
#[derive(Debug, Default)]
struct Trial {
    /// Whether it began while the cache was in use.
    from_use: bool,
    /// By block.
    sums: [(u64, u32); BLOCKS],
    packets: u32,
    hits: u32,
}

impl Trial {
    /// Counts of a thousand packets each way, with the cache first: the median of the blocks, as some are interrupted.
    fn costs(&self) -> [u64; 2] {
        [0, 1].map(|way| {
            let blocks = self.sums.iter().skip(way).step_by(2);
            let mut costs: Vec<u64> =
                blocks.map(|(cycles, packets)| cycles * 1000 / u64::from(*packets).max(1)).collect();
            costs.sort_unstable();
            costs.get(costs.len() / 2).copied().unwrap_or_default()
        })
    }

    /// Whether the cache made packets cheaper: by a twentieth, before it is begun with.
    fn pays(&self) -> bool {
        let [with, without] = self.costs();
        if self.from_use { with < without } else { with < without - without / 20 }
    }
}

impl Choice {
    /// It is found out, from some bursts on.
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

    /// The cache is always in use.
    pub(super) fn forced() -> Choice {
        Choice { phase: Phase::Forced, ..Choice::free() }
    }

    /// Bursts until the cache is thought of for the first time.
    pub(super) const fn first_rest(&self) -> u64 {
        if self.is_forced() { 0 } else { FIRST_REST }
    }

    /// Whether it is in use whatever it costs.
    pub(super) const fn is_forced(&self) -> bool {
        matches!(self.phase, Phase::Forced)
    }

    /// Trials that are over.
    pub(super) const fn trials(&self) -> u64 {
        self.trials
    }

    /// Whether packets are looked up in the cache, but for trials.
    pub(super) const fn is_using(&self) -> bool {
        matches!(self.phase, Phase::Using | Phase::Forced) || matches!(self.phase, Phase::Trying) && self.trial.from_use
    }

    /// Whether it is being found out whether that pays.
    pub(super) const fn is_trying(&self) -> bool {
        matches!(self.phase, Phase::Filling | Phase::Sampling | Phase::Growing | Phase::Trying) && !self.trial.from_use
    }

    /// Whether only a sample of flows, one of [`SAMPLED`], is to be kept.
    pub(super) const fn is_sampling(&self) -> bool {
        matches!(self.phase, Phase::Sampling)
    }

    /// Whether room for many flows is to be made.
    pub(super) const fn is_growing(&self) -> bool {
        matches!(self.room, Room::Growing)
    }

    /// Whether there is to be room for many flows.
    pub(super) const fn is_large(&self) -> bool {
        matches!(self.room, Room::Large)
    }

    /// Room for many flows has been made.
    pub(super) fn has_grown(&mut self) {
        self.room = Room::Large;
        if self.phase == Phase::Growing {
            self.enter(Phase::Filling);
        }
    }

    /// What there was much room for has become something else, for which there is little.
    pub(super) fn shrank(&mut self) {
        self.room = Room::Small;
    }

    /// Room for many flows could not be made.
    pub(super) fn stays_small(&mut self) {
        (self.room, self.suffices) = (Room::Small, true);
        if self.phase == Phase::Growing {
            self.enter(Phase::Filling);
        }
    }

    /// The tables are not worth it: bursts until that is looked at again, if not [`Choice::forced`].
    pub(super) fn give_up(&mut self) -> Option<u64> {
        self.room = Room::Small;
        if self.phase == Phase::Forced {
            return None;
        }
        self.enter(Phase::Resting);
        Some(FIRST_REST)
    }

    /// What is done with the next burst, rests being over.
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

    /// What came of that burst. Gives a number of bursts if it is to rest for so many.
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

    /// A window of bursts in use is over.
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

    /// A burst of a trial, or before one, is over.
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

    /// A burst was kept before a trial.
    fn filled(&mut self, is_full: bool) -> Option<u64> {
        if self.bursts < if self.is_large() { FILLING_LARGE } else { FILLING } {
            return None;
        }
        let share = Outcome::share(self.seen.0, self.seen.1);
        if is_full && share < 256 / 8 * 7 && self.room == Room::Small && !self.suffices {
            self.before = share;
            self.enter(Phase::Sampling);
        } else if share < 256 / 16 {
            // A few hits do not pay for so many misses, whatever the tables: nothing needs measuring.
            return self.failed();
        } else {
            self.enter(Phase::Trying);
        }
        None
    }

    /// A burst's sample was kept.
    fn sampled(&mut self) -> Option<u64> {
        if self.bursts != SAMPLING / 2 && self.bursts != SAMPLING {
            return None;
        }
        let (packets, hits) = std::mem::take(&mut self.seen);
        let share = Outcome::share(packets, hits.saturating_mul(SAMPLED));
        // While a sample is new, part of what comes again has not come before.
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

    /// A trial is over.
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
        // After one with much room the next is one with little.
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

    /// Bursts of 32 packets, of which so many hit; a cached burst takes what hits and misses take, another what misses take and nothing
    /// for the cache. Gives how many of them were cached.
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
        // And back.
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

    /// Bursts of 32 packets of more flows than there is little room for: of those kept before `again` of 32 come again. Gives the bursts that
    /// had much room.
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
            // In a sample there are few flows of all, and the first time each is new.
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
        // They stay away: the room is given up.
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
