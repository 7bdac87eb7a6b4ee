//! What packets' ways through the tables came to, kept by each worker for the next packets of the same flow: the entries to count at, and
//! what becomes of the packet. One lookup then stands for one in each table.
//!
//! What is kept is what lookups found, under all bits of the packet that any entry on any such way looks at ([`plan`]); a way ends where
//! more happens to a packet than going on to the next table. So two packets that agree in those bits have the same way for as
//! long as no table on it changes, and not a moment longer: every change of entries has a version. Entries, idle times and tables count as
//! they do without.
//!
//! A cache in front of one table costs as much as the table. So it is tried where there are several tables, or one that is searched at
//! length, and used while it pays ([`choice`]).
mod choice;
mod counts;
mod plan;
mod store;
mod ways;

use crate::VerdictCache;
use crate::burst::{Counting, Fate};
use crate::shape::{EntryId, Lanes, MAX_BURST};
use crate::table::{FlowTable, VerdictWord, tally_two};
pub use counts::{CacheCounts, CacheState};

use choice::{Choice, Outcome, Turn};
use plan::Plan;
use store::{Hits, Store};
use ways::{Route, Ways};
use weir_memory::{Wide, Work, cycles, run_widest};
use weir_packet::Parsed;

/// Of so many bursts with many packets that were not found those of one are kept, once there is no room.
const SPARSE: u32 = 8;

/// See the module's page.
#[derive(Debug)]
pub(crate) struct Cache {
    /// Bursts that go past it before it is thought of again.
    rest: u64,
    /// Whether ways of packets are noted, to be kept.
    notes: bool,
    inner: Box<Inner>,
}

/// What bursts that go past it never touch.
#[derive(Debug)]
struct Inner {
    is_off: bool,
    choice: Choice,
    plan: Plan,
    /// The tables' generation that the plan was last seen to be right for.
    generation: Option<u64>,
    /// Whether there is something to look up in.
    is_ready: bool,
    store: Store,
    hits: Hits,
    ways: Ways,
    /// Packets of the burst whose ways are kept.
    kept: Lanes,
    /// Whether what is kept is of a sample of flows only.
    is_sample: bool,
    /// What is done with the burst, and what has come of it so far.
    turn: Turn,
    outcome: Outcome,
    counts: CacheCounts,
    /// Bursts that were looked up.
    bursts: u32,
}

/// A burst that comes to be looked up, and what is found out about it.
pub(crate) struct Asked<'a> {
    pub(crate) tables: &'a [FlowTable],
    /// Counts what may have changed the tables.
    pub(crate) generation: u64,
    pub(crate) keys: &'a [Parsed; MAX_BURST],
    pub(crate) lanes: Lanes,
    pub(crate) bytes: &'a [u32; MAX_BURST],
    pub(crate) counting: Counting,
    pub(crate) fates: &'a mut [Fate; MAX_BURST],
}

/// What the cache knew.
pub(crate) struct Known {
    /// Packets that are still to be looked up.
    pub(crate) left: Lanes,
    /// What becomes of the others, if it is the same for all.
    pub(crate) alike: Option<VerdictWord>,
}

impl Cache {
    pub(crate) fn new(mode: VerdictCache) -> Cache {
        let choice = if mode == VerdictCache::On { Choice::forced() } else { Choice::free() };
        let is_off = mode == VerdictCache::Off;
        let rest = if is_off { u64::MAX } else { choice.first_rest() };
        let inner = Inner {
            is_off,
            choice,
            plan: Plan::default(),
            generation: None,
            is_ready: false,
            store: Store::default(),
            hits: Hits::default(),
            ways: Ways::default(),
            kept: Lanes::default(),
            is_sample: false,
            turn: Turn { is_cached: false, is_timed: false },
            outcome: Outcome::default(),
            counts: CacheCounts::default(),
            bursts: 0,
        };
        Cache { rest, notes: false, inner: Box::new(inner) }
    }

    /// Whether a burst goes past it.
    #[inline(always)]
    pub(crate) const fn rests(&mut self) -> bool {
        let rests = self.rest > 0;
        self.rest -= rests as u64;
        rests
    }

    /// Whether [`Cache::note`] is to be told where packets come.
    #[inline(always)]
    pub(crate) const fn notes(&self) -> bool {
        self.notes
    }

    /// Looks a burst up, if it is its turn, and counts what is found. [`Cache::end`] follows when all of it is looked up.
    #[inline(never)]
    pub(crate) fn begin(&mut self, mut asked: Asked<'_>) -> Known {
        let nothing = Known { left: asked.lanes, alike: None };
        let inner = &mut *self.inner;
        inner.turn = inner.choice.turn();
        inner.outcome = Outcome { packets: asked.lanes.count(), ..Outcome::default() };
        if inner.turn.is_timed {
            inner.outcome.cycles = cycles();
        }
        if inner.choice.is_growing() {
            inner.grow();
        }
        if !inner.turn.is_cached {
            return nothing;
        }
        // This is part of what the cache costs, while tables change.
        if inner.generation != Some(asked.generation) {
            inner.follow(&asked);
        }
        if !inner.is_ready {
            self.rest = inner.choice.give_up().unwrap_or(0);
            inner.outcome = Outcome::default();
            inner.agree();
            return nothing;
        }
        let known = run_widest(LookUp { inner: &mut *inner, asked: &mut asked });
        inner.kept = inner.wanted(known.left, asked.lanes);
        self.notes = !inner.kept.is_empty();
        if self.notes {
            inner.ways.begin(known.left);
        }
        known
    }

    /// Packets came to a table, where `found` are their entries.
    #[inline(never)]
    pub(crate) fn note(&mut self, table: u8, lanes: Lanes, found: &[EntryId; MAX_BURST]) {
        self.inner.ways.note(table, lanes, found);
    }

    /// Keeps what became of packets that it had not known.
    #[inline(never)]
    pub(crate) fn end(&mut self, keys: &[Parsed; MAX_BURST], fates: &[Fate; MAX_BURST]) {
        let inner = &mut *self.inner;
        if self.notes {
            inner.store.keep(&inner.plan.words, keys, inner.kept, &inner.hits, &inner.ways, fates);
            self.notes = false;
        }
        if inner.outcome.packets == 0 {
            return;
        }
        if inner.turn.is_timed {
            inner.outcome.cycles = cycles().saturating_sub(inner.outcome.cycles);
        }
        inner.outcome.is_full = inner.store.is_full();
        if let Some(rest) = inner.choice.came(inner.turn, inner.outcome) {
            self.rest = rest;
        }
        if inner.choice.is_sampling() != inner.is_sample || inner.choice.is_large() != inner.store.has_many() {
            inner.agree();
        }
    }

    /// What it did so far, and how it stands.
    pub(crate) fn counts(&self) -> CacheCounts {
        let inner = &*self.inner;
        let state = match (inner.is_off, inner.choice.is_using(), inner.choice.is_trying()) {
            (true, ..) => CacheState::Off,
            (_, true, _) => CacheState::Using,
            (.., true) => CacheState::Trying,
            _ => CacheState::Resting,
        };
        CacheCounts {
            state,
            slots: inner.store.room(),
            kept: inner.store.kept(),
            trials: inner.choice.trials(),
            ..inner.counts
        }
    }
}

impl Inner {
    /// Makes a new plan if the tables are not what they were.
    #[cold]
    fn follow(&mut self, asked: &Asked<'_>) {
        self.generation = Some(asked.generation);
        if self.plan.holds(asked.tables) && self.is_ready {
            return;
        }
        self.plan = Plan::of(asked.tables);
        self.counts.renewals += 1;
        let is_wanted = self.plan.is_dear || self.choice.is_forced();
        self.is_ready = is_wanted && self.store.renew(self.plan.words.len(), self.plan.steps).is_ok();
    }

    /// Makes some more room.
    #[cold]
    fn grow(&mut self) {
        match self.store.grow() {
            Ok(true) => self.choice.has_grown(),
            Ok(false) => {}
            Err(_) => self.choice.stays_small(),
        }
    }

    /// Makes the store as it was chosen to be.
    #[cold]
    fn agree(&mut self) {
        if self.choice.is_large() && !self.store.is_large() {
            self.choice.shrank();
        }
        if !self.choice.is_large() && !self.choice.is_growing() && self.store.has_many() {
            self.store.shrink();
        }
        if self.choice.is_sampling() != self.is_sample {
            self.is_sample = self.choice.is_sampling();
            self.store.clear();
        }
    }

    #[inline(always)]
    fn look_up(&mut self, asked: &mut Asked<'_>) -> Known {
        let lanes = asked.lanes;
        let found = self.store.find(&self.plan.words, asked.keys, lanes, &mut self.hits);
        let left = lanes.without(found);
        let alike = self.settle(found, asked);
        self.outcome.hits = found.count();
        self.counts.hits += u64::from(found.count());
        self.counts.misses += u64::from(left.count());
        Known { left, alike }
    }

    /// Those of the packets that were not found that are to be kept. Once there is no room, those of flows that come often get in soon
    /// enough if few are: each that does costs as much as a lookup in a table or two, and puts another out.
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

    /// Says what becomes of packets that were found, and counts them, those of one route together. Gives what becomes of them
    /// if it is the same for all.
    #[inline(always)]
    fn settle(&self, found: Lanes, asked: &mut Asked<'_>) -> Option<VerdictWord> {
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
                asked.fates[lane] = Fate { verdict, table, entry };
                differs |= *first.get_or_insert(verdict) != verdict;
                missed += u64::from(entry == EntryId::NONE);
            }
            self.count(route, lanes, missed, asked);
        }
        first.filter(|_| !differs)
    }

    /// Begins to fetch where packets are counted at one step of their route, if that is mostly far.
    #[inline(always)]
    fn fetch_counts(&self, step: usize, route: Route, lanes: Lanes, asked: &Asked<'_>) {
        if let Some(table) = asked.tables.get(usize::from(route.table(step)))
            && table.has_many()
            && let Counting::For(worker, _) = asked.counting
        {
            lanes.each(|lane| table.fetch_count(worker, self.hits.entry(lane, step)));
        }
    }

    /// Counts packets of one route, where so many found no entry in its last table: two steps at once, as their entries are kept.
    #[inline(always)]
    fn count(&self, route: Route, lanes: Lanes, missed: u64, asked: &Asked<'_>) {
        let Counting::For(worker, now) = asked.counting else { return };
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

/// Looking a burst up.
struct LookUp<'a, 'b> {
    inner: &'a mut Inner,
    asked: &'a mut Asked<'b>,
}

impl Work for LookUp<'_, '_> {
    type Output = Known;

    #[inline(always)]
    fn run<W: Wide>(self, _wide: W) -> Known {
        self.inner.look_up(self.asked)
    }
}
