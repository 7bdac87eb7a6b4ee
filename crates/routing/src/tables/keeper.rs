//! Keeps the tables of all switches: sends what is missing, deletes what is not wanted, and waits for confirmations.
use super::config::TableConfig;
use super::entry::{DesiredEntry, EntryContent, EntryKey, EntryWork};
use super::event::TableEvent;
use super::route::{Route, RouteId, RouteState};
use super::switch::SwitchTables;
use super::switches::AllTables;
use super::work::{InstallProgress, PlannedRoute, RouteWork, WorkPhase};
use crate::map::NetworkMap;
use foldhash::fast::RandomState;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use weir_openflow::model::Body;
use weir_units::Instant;

/// Tables of all switches.
#[derive(Debug, Default)]
pub struct TableKeeper {
    pub(super) config: TableConfig,
    pub(super) tables: AllTables,
    pub(super) routes: HashMap<RouteId, RouteWork, RandomState>,
    /// Routes to look at.
    pub(super) active: BTreeSet<RouteId>,
    /// Barriers that were answered and are not in effect yet.
    pub(super) lagging: VecDeque<(Instant, u64)>,
    /// Ends of the times for packets to arrive.
    timers: BTreeSet<(Instant, RouteId)>,
    /// Times at which switches are asked again for entries of applications that they have refused.
    pub(super) retries: BTreeMap<u64, Instant>,
    /// Routes whose numbers others got.
    n_retired: u64,
    pub(super) events: Vec<TableEvent>,
    pub(super) counters: [u64; COUNTERS.len()],
}

const COUNTERS: [&str; 6] = [
    "tables_messages",
    "tables_barriers",
    "tables_refused_entries",
    "tables_expired_entries",
    "tables_lost_entries",
    "tables_routes_changed",
];

#[derive(Clone, Copy)]
pub(super) enum TableCounter {
    Messages,
    Barriers,
    Refused,
    Expired,
    Lost,
    RoutesChanged,
}

impl TableKeeper {
    /// Returns a keeper that knows no switch.
    pub fn new(config: TableConfig) -> TableKeeper {
        TableKeeper { config, ..TableKeeper::default() }
    }

    /// Handles a switch that has connected. Returns messages for it: it is asked for what it has. Entries follow when
    /// it has answered.
    pub fn handle_switch_up(&mut self, dpid: u64) -> Vec<Body> {
        let messages = self.tables.of(dpid).connect();
        self.tables.unsent.insert(dpid);
        messages.into()
    }

    /// Handles a switch that is gone. What it should have is kept until it is back.
    pub fn handle_switch_down(&mut self, dpid: u64) {
        if let Some(tables) = self.tables.get_mut(dpid) {
            tables.disconnect();
            self.tables.forget_if_idle(dpid);
        }
        self.lagging.retain(|(_, of)| *of != dpid);
        // It is asked for all when it is back.
        self.retries.remove(&dpid);
        self.look_at_routes_over(dpid);
    }

    pub(super) fn look_at_routes_over(&mut self, dpid: u64) {
        let over = |work: &RouteWork| {
            let target = work.target.iter().flat_map(|planned| planned.route.hops.keys());
            work.phase != WorkPhase::Done && target.chain(work.placed.keys()).any(|place| place.dpid == dpid)
        };
        self.active.extend(self.routes.iter().filter(|(_, work)| over(work)).map(|(id, _)| *id));
    }

    pub(super) fn confirm(&mut self, dpid: u64) {
        if let Some(tables) = self.tables.get_mut(dpid) {
            self.active.extend(tables.confirm());
            // What waited for the confirmation can be sent.
            self.tables.unsent.insert(dpid);
        }
    }

    /// Asks for an entry, in place of the one with the same key.
    pub fn set_entry(&mut self, dpid: u64, entry: DesiredEntry) {
        let DesiredEntry { key, instructions, idle_timeout, hard_timeout } = entry;
        let content = EntryContent { work: EntryWork::Instructions(instructions), idle_timeout, hard_timeout };
        self.tables.set(None, dpid, key.canonical(), Arc::new(content));
    }

    /// Withdraws an entry.
    pub fn remove_entry(&mut self, dpid: u64, key: &EntryKey) {
        if let Some(tables) = self.tables.get_mut(dpid) {
            tables.remove_key(&key.clone().canonical());
            self.tables.unsent.insert(dpid);
        }
    }

    /// Returns a switch's progress: the number of changes that were asked for, and how many of them, the oldest first,
    /// the switch has confirmed. (0, 0) for a switch that is not connected.
    pub fn progress(&self, dpid: u64) -> (u64, u64) {
        self.tables.get(dpid).filter(|tables| !tables.is_away()).map_or((0, 0), SwitchTables::progress)
    }

    /// Asks for a route, in place of the one with the same number.
    pub fn set_route(&mut self, id: RouteId, route: Route, map: &NetworkMap) {
        let is_about = |planned: &PlannedRoute| planned.route.is_about_as(&route);
        if self.routes.get(&id).and_then(|work| work.target.as_ref()).is_some_and(|planned| !is_about(planned)) {
            self.retire(id);
        }
        let work = self.routes.entry(id).or_insert_with(RouteWork::new);
        if work.target.as_ref().is_some_and(|planned| planned.route == route) {
            return;
        }
        let before = work.target.take();
        if work.phase != WorkPhase::Installing {
            work.former = before;
        }
        work.target = Some(PlannedRoute::new(route, &work.placed, self.config.transit, map));
        work.phase = WorkPhase::Installing;
        self.counters[TableCounter::RoutesChanged as usize] += 1;
        self.active.insert(id);
    }

    /// Withdraws a route whose number another one gets, about other packets.
    fn retire(&mut self, id: RouteId) {
        if let Some(work) = self.routes.remove(&id) {
            self.n_retired += 1;
            let retired = RouteId(u64::MAX - self.n_retired);
            self.routes.insert(retired, work);
            self.remove_route(retired);
        }
    }

    /// Withdraws a route.
    pub fn remove_route(&mut self, id: RouteId) {
        if let Some(work) = self.routes.get_mut(&id) {
            (work.target, work.former, work.phase) = (None, None, WorkPhase::Removing);
            self.active.insert(id);
        }
    }

    /// Returns how far a route is; `None` if it is not known, or no longer.
    pub fn route_state(&self, id: RouteId) -> Option<RouteState> {
        let installing = |work: &RouteWork| work.target.is_none() || work.phase == WorkPhase::Installing;
        self.routes.get(&id).map(|work| if installing(work) { RouteState::Pending } else { RouteState::Installed })
    }

    /// Returns the time of the next call of [`TableKeeper::flush`].
    pub fn next_wake(&self) -> Option<Instant> {
        let lagging = self.lagging.front().map(|(at, _)| *at);
        let retry = self.retries.values().min().copied();
        [lagging, self.timers.first().map(|(at, _)| *at), retry].into_iter().flatten().min()
    }

    /// Returns true if [`TableKeeper::flush`] has something to do now.
    pub fn has_work(&self) -> bool {
        !self.active.is_empty() || !self.tables.unsent.is_empty() || !self.tables.overtaken.is_empty()
    }

    /// Carries on with all routes. Returns messages for switches, by datapath id, in order.
    pub fn flush(&mut self, now: Instant) -> Vec<(u64, Vec<Body>)> {
        while let Some((_, dpid)) = self.lagging.front().copied().filter(|(at, _)| *at <= now) {
            self.lagging.pop_front();
            self.confirm(dpid);
        }
        while let Some((at, id)) = self.timers.first().copied().filter(|(at, _)| *at <= now) {
            self.timers.remove(&(at, id));
            let Some(work) = self.routes.get_mut(&id) else { continue };
            if work.phase == WorkPhase::Draining(at) {
                work.phase = WorkPhase::Removing;
            }
            self.active.insert(id);
        }
        self.retry_refused(now);
        let mut sent = Vec::new();
        while self.has_work() {
            self.active.append(&mut self.tables.overtaken);
            for id in std::mem::take(&mut self.active) {
                self.advance(now, id);
            }
            for dpid in std::mem::take(&mut self.tables.unsent) {
                let messages = self.tables.get_mut(dpid).map(SwitchTables::flush).unwrap_or_default();
                if !messages.is_empty() {
                    self.counters[TableCounter::Messages as usize] += messages.len() as u64;
                    self.counters[TableCounter::Barriers as usize] += 1;
                    sent.push((dpid, messages));
                }
            }
        }
        sent
    }

    fn retry_refused(&mut self, now: Instant) {
        let due: Vec<_> = self.retries.extract_if(.., |_, at| *at <= now).collect();
        for (dpid, _) in due {
            if let Some(tables) = self.tables.get_mut(dpid) {
                tables.retry_refused();
                self.tables.unsent.insert(dpid);
            }
        }
    }

    /// Carries on with a route.
    fn advance(&mut self, now: Instant, id: RouteId) {
        let Some(work) = self.routes.get_mut(&id) else { return };
        let tables = &mut self.tables;
        if work.phase == WorkPhase::Installing {
            match work.install(now, id, tables) {
                InstallProgress::Waits(until) => self.timers.extend(until.map(|at| (at, id))),
                InstallProgress::Done => {
                    work.former = None;
                    self.events.push(TableEvent::Route(id, RouteState::Installed));
                    work.phase = WorkPhase::Done;
                    if !work.unwanted().is_empty() {
                        let end = now + self.config.drain;
                        self.timers.insert((end, id));
                        work.phase = WorkPhase::Draining(end);
                    }
                }
            }
        }
        if work.phase == WorkPhase::Removing && work.remove(id, tables) {
            work.phase = WorkPhase::Done;
            if work.target.is_none() {
                self.routes.remove(&id);
                self.events.push(TableEvent::Removed(id));
            }
        }
    }

    /// Takes what has happened since the last call.
    pub fn take_events(&mut self) -> Vec<TableEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns the counters by name.
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let entries = self.tables.values().map(SwitchTables::sizes);
        let (wanted, present) = entries.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let sizes = [("tables_wanted", wanted), ("tables_present", present), ("tables_routes", self.routes.len())];
        let sizes = sizes.into_iter().map(|(name, size)| (name, size as u64));
        COUNTERS.into_iter().zip(self.counters).chain(sizes).collect()
    }
}
