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
use crate::burst::{Counting, Fate, Run};
use crate::shape::{EntryId, Lanes, MAX_BURST};
use crate::table::{FlowTable, VerdictWord};
pub use counts::{CacheCounts, CacheState};

use choice::{Choice, Outcome, Turn};
use plan::Plan;
use store::{Hits, Store};
use ways::{Route, Ways};
use weir_memory::cycles;
use weir_packet::Parsed;

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
    /// What is done with the burst, and what has come of it so far.
    turn: Turn,
    outcome: Outcome,
    counts: CacheCounts,
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
            turn: Turn { is_cached: false, is_timed: false },
            outcome: Outcome::default(),
            counts: CacheCounts::default(),
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
    pub(crate) fn begin(&mut self, asked: Asked<'_>) -> Known {
        let nothing = Known { left: asked.lanes, alike: None };
        let inner = &mut *self.inner;
        if inner.generation != Some(asked.generation) {
            inner.follow(&asked);
        }
        if !inner.is_ready {
            self.rest = inner.choice.give_up().unwrap_or(0);
            (inner.turn, inner.outcome) = (Turn { is_cached: false, is_timed: false }, Outcome::default());
            return nothing;
        }
        inner.turn = inner.choice.turn();
        inner.outcome = Outcome { packets: asked.lanes.count(), ..Outcome::default() };
        if inner.turn.is_timed {
            inner.outcome.cycles = cycles();
        }
        if !inner.turn.is_cached {
            return nothing;
        }
        let known = inner.look_up(asked);
        self.notes = !known.left.is_empty();
        known
    }

    /// Packets came to a table, where `found` are their entries.
    #[inline(never)]
    pub(crate) fn note(&mut self, table: u8, lanes: Lanes, found: &[EntryId; MAX_BURST]) {
        self.inner.ways.note(table, lanes, found);
    }

    /// Keeps what became of packets that it had not known.
    #[inline(never)]
    pub(crate) fn end(&mut self, left: Lanes, keys: &[Parsed; MAX_BURST], fates: &[Fate; MAX_BURST]) {
        let inner = &mut *self.inner;
        if self.notes {
            inner.store.keep(&inner.plan.words, keys, left, &inner.hits, &inner.ways, fates);
            self.notes = false;
        }
        if inner.outcome.packets == 0 {
            return;
        }
        if inner.turn.is_timed {
            inner.outcome.cycles = cycles().saturating_sub(inner.outcome.cycles);
        }
        if let Some(rest) = inner.choice.came(inner.turn, inner.outcome) {
            self.rest = rest;
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

    fn look_up(&mut self, asked: Asked<'_>) -> Known {
        let lanes = asked.lanes;
        let found = self.store.find(&self.plan.words, asked.keys, lanes, &mut self.hits);
        let left = lanes.without(found);
        let alike = self.note_fates(found, asked.fates);
        self.count(found, &asked);
        self.ways.begin(left);
        self.outcome.hits = found.count();
        self.counts.hits += u64::from(found.count());
        self.counts.misses += u64::from(left.count());
        Known { left, alike }
    }

    /// Says what becomes of packets; gives it once if it is the same for all.
    fn note_fates(&self, found: Lanes, fates: &mut [Fate; MAX_BURST]) -> Option<VerdictWord> {
        let (mut first, mut differs) = (None, false);
        for lane in found {
            let route = self.hits.route(lane);
            let verdict = self.hits.verdict(lane);
            let entry = self.hits.entry(lane, route.len().saturating_sub(1));
            fates[lane] = Fate { verdict, table: route.last(), entry };
            differs |= *first.get_or_insert(verdict) != verdict;
        }
        first.filter(|_| !differs)
    }

    /// Counts packets at the entries that they meet, those of one route together.
    fn count(&self, found: Lanes, asked: &Asked<'_>) {
        let mut left = found;
        while let Some(first) = left.into_iter().next() {
            let route = self.hits.route(first);
            let mut alike = Lanes::default();
            left.each(|lane| alike.0 |= u64::from(self.hits.route(lane) == route) << lane);
            (0..route.len()).for_each(|step| self.count_at(step, route, alike, asked));
            left = left.without(alike);
        }
    }

    /// Counts packets at one step of their route.
    #[inline(always)]
    fn count_at(&self, step: usize, route: Route, lanes: Lanes, asked: &Asked<'_>) {
        let Some(table) = asked.tables.get(usize::from(route.table(step))) else { return };
        let (mut run, mut missed) = (Run::of(EntryId::NONE), 0);
        for lane in lanes {
            let entry = self.hits.entry(lane, step);
            if entry != run.entry {
                run.count(table, asked.counting);
                run = Run::of(entry);
            }
            run.add(asked.bytes[lane]);
            missed += u64::from(entry == EntryId::NONE);
        }
        run.count(table, asked.counting);
        if let Counting::For(worker, _) = asked.counting {
            let lookups = u64::from(lanes.count());
            table.counts.looked_up(worker, lookups, lookups - missed);
        }
    }
}
