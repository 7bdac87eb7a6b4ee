//! The store of intents: takes them, and keeps them carried out while the network changes.
//!
//! An intent is carried out in steps, each after switches have confirmed the one before: entries for labelled packets
//! between the ends, entries where packets come in, confirmation packets. On a better way the former one stays until
//! the new one is confirmed; what is refused leaves the former one, or nothing.
use super::batches::IntentBatches;
use super::bounded::BoundedLanes;
use super::claims::Claims;
use super::config::{FIRST_ROUTE, IntentConfig, MOST_PROBES};
use super::counters::IntentCounters;
use super::error::IntentError;
use super::graph::KeptGraph;
use super::intent::{Intent, IntentNo};
use super::labels::Labels;
use super::lanes::{Lane, Reservations};
use super::spec::{IntentSpec, IntentState, IntentStatus};
use super::wanted::Wanted;
use super::way::Way;
use crate::map::{NetworkMap, SwitchPort};
use crate::request::PathState;
use crate::tables::{Route, RouteId};
use foldhash::fast::RandomState as FastState;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::hash::RandomState;
use weir_units::Instant;

/// Work of the controller for intents.
#[derive(Debug, Clone, PartialEq)]
pub enum IntentAction {
    /// Lays a route, or changes it. The store is told when switches have confirmed it, also if nothing had to change.
    SetRoute(RouteId, Route),
    /// Removes a route. The store is told when it is gone, also if it was gone already.
    RemoveRoute(RouteId),
    /// Sends a packet through the tables of a switch as if it had come by the port.
    SendProbe {
        /// The port.
        at: SwitchPort,
        /// The packet.
        frame: Vec<u8>,
    },
    /// Records an event.
    Report {
        /// Kind of the event.
        kind: &'static str,
        /// Event in words.
        text: String,
        /// True if the operator should look at it.
        alarm: bool,
    },
}

/// Intents of a network.
#[derive(Debug, Clone)]
pub struct IntentStore {
    pub(super) config: IntentConfig,
    /// Intents by their numbers, the oldest first.
    pub(super) intents: BTreeMap<IntentNo, Intent>,
    /// Numbers of intents by their keys.
    pub(super) keys: BTreeMap<String, IntentNo>,
    /// Intents by their routes.
    pub(super) owners: HashMap<RouteId, IntentNo, FastState>,
    /// Routes whose removal is not confirmed, with the label that is free then.
    pub(super) leaving: HashMap<RouteId, Option<u16>, FastState>,
    /// Intents by numbers of confirmation packets under way.
    pub(super) sent: HashMap<u64, IntentNo, FastState>,
    /// Intents whose confirmation packets wait until fewer are under way.
    pub(super) unconfirmed: VecDeque<IntentNo>,
    pub(super) reserved: Reservations,
    pub(super) claims: Claims,
    pub(super) labels: Labels,
    /// Measured load by sending port, in bit/s.
    pub(super) loads: BTreeMap<SwitchPort, f64>,
    /// Intents to compile, those of the highest precedence first, then the oldest.
    pub(super) queue: BTreeSet<(Reverse<u16>, IntentNo)>,
    /// Timers of intents.
    pub(super) timers: BTreeSet<(Instant, IntentNo)>,
    /// Failed intents that have no timer: they are tried again when something is free.
    pub(super) failed: BTreeSet<IntentNo>,
    /// Intents with a bound of their delay.
    pub(super) bounded: BoundedLanes,
    /// Time of the next look for better ways, and the intent after which it goes on.
    pub(super) look: Option<(Instant, IntentNo)>,
    pub(super) batches: IntentBatches,
    pub(super) actions: Vec<IntentAction>,
    /// Routes in `actions`: reports about them are about earlier content.
    pub(super) unsent: HashSet<RouteId, FastState>,
    pub(super) last_intent: u64,
    pub(super) next_route: u64,
    pub(super) next_probe: u64,
    pub(super) key: RandomState,
    pub(super) counters: IntentCounters,
    /// Version of the map when intents were last held against it.
    pub(super) version: u64,
    /// Links of the map as they were last looked at.
    pub(super) graph: KeptGraph,
}

impl IntentStore {
    /// Creates a store without intents.
    pub fn new(config: IntentConfig) -> IntentStore {
        IntentStore {
            labels: Labels::new(config.labels.clone()),
            config,
            intents: BTreeMap::new(),
            keys: BTreeMap::new(),
            owners: HashMap::default(),
            leaving: HashMap::default(),
            sent: HashMap::default(),
            unconfirmed: VecDeque::new(),
            reserved: Reservations::default(),
            claims: Claims::default(),
            loads: BTreeMap::new(),
            queue: BTreeSet::new(),
            timers: BTreeSet::new(),
            failed: BTreeSet::new(),
            bounded: BoundedLanes::default(),
            look: None,
            batches: IntentBatches::default(),
            actions: Vec::new(),
            unsent: HashSet::default(),
            last_intent: 0,
            next_route: FIRST_ROUTE,
            next_probe: 1,
            key: RandomState::new(),
            counters: IntentCounters::default(),
            version: 0,
            graph: KeptGraph::default(),
        }
    }

    /// Adds an intent, or changes the one with the same key. Equal content changes nothing.
    ///
    /// Returns its state. An intent that cannot be carried out now is kept as failed, with the reason, and is tried
    /// again when the network changes.
    ///
    /// # Errors
    /// The intent is malformed (with its key, what was found and what was expected), or there are too many already.
    pub fn set(&mut self, now: Instant, spec: IntentSpec, map: &NetworkMap) -> Result<IntentStatus, IntentError> {
        let key = spec.key.clone();
        self.accept(now, spec)?;
        self.compile_queue(now, map);
        self.status(&key, map).ok_or(IntentError::Unknown { key })
    }

    /// Takes an intent, which is compiled later. Returns its number.
    pub(super) fn accept(&mut self, now: Instant, spec: IntentSpec) -> Result<IntentNo, IntentError> {
        let wanted = Wanted::read(&spec)?;
        let known = self.keys.get(&spec.key).and_then(|number| self.intents.get(number).map(|known| (*number, known)));
        if let Some((number, intent)) = known
            && intent.state != IntentState::Withdrawn
            && intent.spec == spec
        {
            return Ok(number);
        }
        let known = known.map(|(number, _)| number);
        if known.is_none() && self.intents.len() >= self.config.most_intents {
            self.counters.refused_full += 1;
            return Err(IntentError::Full { most: self.config.most_intents });
        }
        let number = match known {
            Some(number) => {
                self.replace(number, spec, wanted);
                number
            }
            None => {
                self.last_intent += 1;
                let number = IntentNo(self.last_intent);
                self.keys.insert(spec.key.clone(), number);
                self.intents.insert(number, Intent::new(spec, wanted));
                number
            }
        };
        if self.look.is_none() {
            self.look = Some((now + self.config.better_after, IntentNo::default()));
        }
        self.enqueue(number);
        Ok(number)
    }

    /// Replaces what an intent asks for.
    fn replace(&mut self, number: IntentNo, spec: IntentSpec, wanted: Wanted) {
        self.dequeue(number);
        if let Some(intent) = self.intents.get_mut(&number) {
            (intent.spec, intent.wanted, intent.state) = (spec, wanted, IntentState::Submitted);
            intent.reason.clear();
            intent.outdated = true;
        }
        self.failed.remove(&number);
        self.note_bound(number);
    }

    /// Removes an intent. It is withdrawn until switches have confirmed that its entries are gone.
    ///
    /// # Errors
    /// No intent has the key.
    pub fn remove(&mut self, key: &str) -> Result<(), IntentError> {
        let number = self.withdraw(key, false)?;
        self.forget_if_gone(number);
        self.retry_failed();
        Ok(())
    }

    /// Takes an intent down that is to be removed, with a report of its own unless it is `told_together` with others.
    /// Returns its number.
    pub(super) fn withdraw(&mut self, key: &str, told_together: bool) -> Result<IntentNo, IntentError> {
        let number = self.number_of(key).ok_or_else(|| IntentError::Unknown { key: key.to_owned() })?;
        self.dequeue(number);
        self.take_down(number);
        self.change_state(number, IntentState::Withdrawn, String::new(), told_together);
        Ok(number)
    }

    /// Returns the number of an intent that is not being removed.
    pub(super) fn number_of(&self, key: &str) -> Option<IntentNo> {
        let is_there =
            |number: &IntentNo| self.intents.get(number).is_some_and(|intent| intent.state != IntentState::Withdrawn);
        self.keys.get(key).copied().filter(is_there)
    }

    /// Returns the state of an intent; `None` if no intent has the key.
    pub fn status(&self, key: &str, map: &NetworkMap) -> Option<IntentStatus> {
        self.intents.get(self.keys.get(key)?).map(|intent| self.status_of(intent, map))
    }

    fn status_of(&self, intent: &Intent, map: &NetworkMap) -> IntentStatus {
        let plan = intent.laid.as_ref().map(|laid| &laid.plan);
        let ways = plan.into_iter().flat_map(|plan| plan.ways.iter().chain(&plan.spare));
        let path = |way: &Way| PathState {
            ports: way.ports(),
            delay_us: way.delay(map).map(|delay| delay.as_secs_f64() * 1e6),
            free_bps: self.free_on(way, map),
        };
        IntentStatus {
            intent: intent.spec.clone(),
            state: intent.state,
            reason: intent.reason.clone(),
            paths: ways.map(path).collect(),
            expected_delay_us: plan.and_then(|plan| plan.delay_s).map(|delay| delay * 1e6),
            confirmed: intent.confirmed,
        }
    }

    /// Returns the states of all intents, in the order of their keys.
    pub fn statuses(&self, map: &NetworkMap) -> Vec<IntentStatus> {
        let intents = self.keys.values().filter_map(|number| self.intents.get(number));
        intents.map(|intent| self.status_of(intent, map)).collect()
    }

    /// Returns the bandwidth that intents have reserved out of each port, in bit/s.
    pub fn reserved(&self) -> BTreeMap<SwitchPort, u64> {
        let out = |(lane, bps): (&Lane, &u64)| match lane {
            Lane::From(at) => Some((*at, *bps)),
            Lane::Into(_) => None,
        };
        self.reserved.all().iter().filter_map(out).collect()
    }

    /// Notes the measured loads of links' directions, by the ports at which they begin, in bit/s.
    pub fn set_loads(&mut self, loads: &BTreeMap<SwitchPort, f64>) {
        self.loads.clone_from(loads);
    }

    /// Returns what there is to do, in order, and forgets it.
    pub fn take_actions(&mut self) -> Vec<IntentAction> {
        self.unsent.clear();
        std::mem::take(&mut self.actions)
    }

    /// Returns the time of the next call of [`IntentStore::handle_wake`]; `None` if there is no timer.
    pub fn next_wake(&self) -> Option<Instant> {
        let may_send = !self.unconfirmed.is_empty() && self.sent.len() < MOST_PROBES;
        if !self.queue.is_empty() || may_send {
            return Some(Instant::ZERO);
        }
        let look = self.look.as_ref().map(|(at, _)| *at);
        self.timers.first().map(|(at, _)| *at).into_iter().chain(look).min()
    }

    /// Returns the bandwidth left out of a port in bit/s; `None` if its rate is not known.
    pub fn free(&self, at: SwitchPort, map: &NetworkMap) -> Option<u64> {
        self.left(Lane::From(at), map)
    }

    fn left(&self, lane: Lane, map: &NetworkMap) -> Option<u64> {
        Some(lane.rate(map, self.config.assumed_rate)?.saturating_sub(self.reserved.of(lane)))
    }

    /// Returns the bandwidth left on a way in bit/s; `None` if a rate is not known.
    fn free_on(&self, way: &Way, map: &NetworkMap) -> Option<u64> {
        super::lanes::lanes(way).map(|lane| self.left(lane, map)).collect::<Option<Vec<_>>>()?.into_iter().min()
    }
}
