//! The order in which a route's entries reach the switches.
//!
//! A new hop is sent once the hops to which it leads are confirmed: from the destination outwards. A packet that meets
//! a new hop then finds new hops all the way, and one that does not follows the former way, which had no loop either.
//! So no mixture of former and new hops has a loop or an end (the order of Francois and Bonaventure, 2007, for one
//! destination). Packets that left by a former hop towards a switch whose new hop leads back would have to leave by the
//! port by which they came, which switches do not do: such a hop waits until they have passed. Hops that are no longer
//! wanted are removed in the opposite order, once packets on their way have arrived.
use super::entry::{EntryContent, EntryKey, EntryWork};
use super::entry_table::EntryHandle;
use super::route::{Hop, HopOutput, HopPlace, Route, RouteId};
use super::switches::AllTables;
use crate::app::FORWARDING_TABLE;
use crate::map::{NetworkMap, SwitchPort};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use weir_openflow::model::PortNo;
use weir_packet::Field;
use weir_units::Instant;

/// A route on its way into the switches.
#[derive(Debug)]
pub(super) struct RouteWork {
    /// Route that is wanted; `None` if it is being removed.
    pub(super) target: Option<PlannedRoute>,
    /// Route that was wanted before, while the switches have not confirmed the target.
    pub(super) former: Option<PlannedRoute>,
    /// Entries that switches were asked to have.
    pub(super) placed: BTreeMap<HopPlace, PlacedHop>,
    pub(super) phase: WorkPhase,
}

/// Phase of a route's work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkPhase {
    /// New hops are sent.
    Installing,
    /// Packets on former hops get time to arrive.
    Draining(Instant),
    /// Former hops are removed.
    Removing,
    /// The switches have what is wanted.
    Done,
}

/// How far the hops of a route are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum InstallProgress {
    /// Some are not confirmed, or not sent; with the time at which one can be sent.
    Waits(Option<Instant>),
    /// All are confirmed.
    Done,
}

/// A route with the order of its hops.
#[derive(Debug)]
pub(super) struct PlannedRoute {
    pub(super) route: Route,
    /// The route's hops, in the order of their places.
    hops: Vec<PlannedHop>,
}

#[derive(Debug)]
struct PlannedHop {
    place: HopPlace,
    /// Places to which its packets go.
    leads_to: Vec<HopPlace>,
    /// Time that packets need from one switch to the next, if the former hop here still carries packets.
    transit: Option<Duration>,
}

/// How far a hop of a route is.
#[derive(Debug, Clone, Copy)]
struct HopProgress {
    /// True if the switch was asked for it.
    is_placed: bool,
    /// True if the switch has confirmed it, or is away.
    is_ready: bool,
}

/// An entry of a route.
#[derive(Debug, Clone)]
pub(super) struct PlacedHop {
    entry: EntryHandle,
    content: Arc<EntryContent>,
    /// Places to which its packets go.
    leads_to: Vec<HopPlace>,
    /// Places to which packets went by the hop before this one.
    former: Vec<HopPlace>,
    /// Time at which the switch was known to have it.
    confirmed: Option<Instant>,
    /// True once its removal was sent.
    is_removed: bool,
}

impl PlannedRoute {
    /// Returns a route with the order of its hops, in place of those that are `placed`. Packets need `transit` from one
    /// switch to the next, besides the delay of the link.
    pub(super) fn new(
        route: Route,
        placed: &BTreeMap<HopPlace, PlacedHop>,
        transit: Duration,
        map: &NetworkMap,
    ) -> PlannedRoute {
        let transit_of = |place: &HopPlace| {
            let outputs = placed.get(place)?.hop()?.outputs.iter().filter(|output| output.next.is_some());
            let links = outputs.map(|output| map.links().get(&SwitchPort::new(place.dpid, output.port)));
            // A hop over a link that is gone carries no packets, and its successor is urgent.
            let delays = links.map(|link| Some(link?.delay.unwrap_or_default()));
            let delay = delays.collect::<Option<Vec<_>>>()?.into_iter().max().unwrap_or_default();
            Some(transit + 2 * delay)
        };
        let hop = |(place, hop): (&HopPlace, &Hop)| PlannedHop {
            place: *place,
            leads_to: leads_to(&route, *place, hop, map),
            transit: transit_of(place),
        };
        let hops = route.hops.iter().map(hop).collect();
        PlannedRoute { route, hops }
    }

    /// Returns the key of the entry of a place.
    fn key(&self, place: HopPlace) -> EntryKey {
        let matching = self.route.matching.clone();
        let (priority, matching) = match place.in_port {
            Some(port) => (self.route.priority.saturating_add(1), matching.with(Field::InPort, port.0)),
            None => (self.route.priority, matching),
        };
        EntryKey { table: FORWARDING_TABLE, priority, matching }.canonical()
    }

    /// Returns how far each hop is.
    fn progress(&self, placed: &BTreeMap<HopPlace, PlacedHop>, tables: &AllTables) -> Vec<HopProgress> {
        let progress = |(planned, hop): (&PlannedHop, &Hop)| {
            let dpid = planned.place.dpid;
            let there = placed.get(&planned.place).filter(|known| known.is(hop));
            let is_away = || tables.get(dpid).is_none_or(|switch| switch.is_away());
            let is_ready = there.map_or_else(is_away, |known| tables.is_confirmed(dpid, known.entry));
            HopProgress { is_placed: there.is_some(), is_ready }
        };
        self.hops.iter().zip(self.route.hops.values()).map(progress).collect()
    }

    /// Returns the numbers of the hops that have to be sent next: not placed as wanted yet, and all that they lead to
    /// is ready. If nothing is on its way and nothing can be sent in order, all are. With the time until which a hop
    /// has to wait for packets on their way, if there is one.
    fn next(
        &self,
        now: Instant,
        placed: &BTreeMap<HopPlace, PlacedHop>,
        progress: &[HopProgress],
    ) -> (Vec<usize>, Option<Instant>) {
        let number = |place: &HopPlace| self.hops.binary_search_by_key(place, |hop| hop.place).ok();
        let is_ready = |place: &HopPlace| number(place).and_then(|at| progress.get(at)).is_some_and(|hop| hop.is_ready);
        let open = || (0..).zip(&self.hops).zip(progress).filter(|(_, hop)| !hop.is_placed).map(|(hop, _)| hop);
        let led_here = |place: &HopPlace, needed: &HopPlace| {
            placed.get(needed).filter(|known| known.former.contains(place)).and_then(|known| known.confirmed)
        };
        let free_at = |hop: &PlannedHop| {
            let transit = hop.transit?;
            hop.leads_to.iter().filter_map(|needed| led_here(&hop.place, needed)).map(|at| at + transit).max()
        };
        let in_order: Vec<(usize, &PlannedHop)> = open().filter(|(_, hop)| hop.leads_to.iter().all(is_ready)).collect();
        let waits = progress.iter().any(|hop| hop.is_placed && !hop.is_ready);
        if in_order.is_empty() && !waits {
            return (open().map(|(number, _)| number).collect(), None);
        }
        let is_free = |(_, hop): &(usize, &PlannedHop)| free_at(hop).is_none_or(|at| at <= now);
        let (next, later): (Vec<_>, Vec<_>) = in_order.into_iter().partition(is_free);
        let until = later.iter().filter_map(|(_, hop)| free_at(hop)).min();
        (next.into_iter().map(|(number, _)| number).collect(), until)
    }

    /// Asks for a hop, which takes the place of the one that is there.
    fn place(&self, number: usize, id: RouteId, placed: &mut BTreeMap<HopPlace, PlacedHop>, tables: &mut AllTables) {
        let Some(PlannedHop { place, leads_to, .. }) = self.hops.get(number) else { return };
        let Some(hop) = self.route.hops.get(place).cloned() else { return };
        let idle_timeout = self.route.idle_timeout;
        let content = Arc::new(EntryContent { work: EntryWork::Hop(hop), idle_timeout, hard_timeout: 0 });
        let entry = tables.set(Some(id), place.dpid, self.key(*place), Arc::clone(&content));
        let former = placed.remove(place).map(|placed| placed.leads_to).unwrap_or_default();
        let (leads_to, confirmed, is_removed) = (leads_to.clone(), None, false);
        placed.insert(*place, PlacedHop { entry, content, leads_to, former, confirmed, is_removed });
    }
}

impl PlacedHop {
    /// Returns true if the entry is there as `hop` says.
    fn is(&self, hop: &Hop) -> bool {
        !self.is_removed && self.hop() == Some(hop)
    }

    fn hop(&self) -> Option<&Hop> {
        match &self.content.work {
            EntryWork::Hop(hop) => Some(hop),
            EntryWork::Instructions(_) => None,
        }
    }
}

/// Returns the places of a route to which packets go from a place.
fn leads_to(route: &Route, place: HopPlace, hop: &Hop, map: &NetworkMap) -> Vec<HopPlace> {
    let of_output = |output: &HopOutput| -> Vec<HopPlace> {
        let Some(next) = output.next else { return Vec::new() };
        let port = if output.port == PortNo::IN_PORT { place.in_port } else { Some(output.port) };
        let arrival =
            port.and_then(|port| map.links().get(&SwitchPort::new(place.dpid, port))).map(|link| link.to.port);
        let at_arrival = HopPlace { dpid: next, in_port: arrival };
        if arrival.is_some() && route.hops.contains_key(&at_arrival) {
            return vec![at_arrival];
        }
        if output.port == PortNo::IN_PORT && arrival.is_none() {
            // Packets may have come by any port of that switch that the route knows.
            let of_next = route.hops.keys().filter(|at| at.dpid == next && at.in_port.is_some());
            return of_next.copied().collect();
        }
        Some(HopPlace::at(next)).filter(|at| route.hops.contains_key(at)).into_iter().collect()
    };
    let mut places: Vec<_> = hop.outputs.iter().flat_map(of_output).filter(|to| *to != place).collect();
    places.sort_unstable();
    places.dedup();
    places
}

impl RouteWork {
    pub(super) fn new() -> RouteWork {
        RouteWork { target: None, former: None, placed: BTreeMap::new(), phase: WorkPhase::Done }
    }

    /// Returns the places whose hops are not wanted.
    pub(super) fn unwanted(&self) -> Vec<HopPlace> {
        let hops = self.target.as_ref().map(|planned| &planned.route.hops);
        let is_wanted = |place: &HopPlace| hops.is_some_and(|hops| hops.contains_key(place));
        self.placed.keys().filter(|place| !is_wanted(place)).copied().collect()
    }

    /// Returns true if an entry of a switch was asked for as the route that is wanted now has it.
    pub(super) fn wants(&self, dpid: u64, entry: EntryHandle) -> bool {
        let hop_of = |place: &HopPlace| self.target.as_ref().and_then(|planned| planned.route.hops.get(place));
        let mut of_entry = self.placed.iter().filter(|(place, placed)| place.dpid == dpid && placed.entry == entry);
        of_entry.any(|(place, placed)| hop_of(place).is_some_and(|hop| placed.is(hop)))
    }

    /// Sends the hops that can be sent.
    pub(super) fn install(&mut self, now: Instant, id: RouteId, tables: &mut AllTables) -> InstallProgress {
        let Some(planned) = &self.target else { return InstallProgress::Waits(None) };
        let placed = &mut self.placed;
        loop {
            for (place, hop) in placed.iter_mut().filter(|(_, hop)| hop.confirmed.is_none()) {
                let switch = tables.get(place.dpid);
                hop.confirmed = switch.is_some_and(|switch| switch.is_confirmed(hop.entry)).then_some(now);
            }
            let progress = planned.progress(placed, tables);
            let (next, until) = planned.next(now, placed, &progress);
            if next.is_empty() {
                let is_done = progress.iter().all(|hop| hop.is_ready);
                return if is_done { InstallProgress::Done } else { InstallProgress::Waits(until) };
            }
            next.into_iter().for_each(|number| planned.place(number, id, placed, tables));
        }
    }

    /// Removes the unwanted hops that can be removed. Returns true if all are gone.
    pub(super) fn remove(&mut self, id: RouteId, tables: &mut AllTables) -> bool {
        loop {
            self.placed.retain(|place, placed| !placed.is_removed || !tables.is_gone(place.dpid, placed.entry));
            let removable = self.removable();
            if removable.is_empty() {
                return self.unwanted().is_empty();
            }
            for place in removable {
                if let Some(placed) = self.placed.get_mut(&place) {
                    placed.is_removed = true;
                    tables.remove(id, place.dpid, placed.entry);
                }
            }
        }
    }

    /// Returns the unwanted places that can be removed next: no packet comes from another unwanted place that is still
    /// there. If there is none, because they lead to each other, all are.
    fn removable(&self) -> Vec<HopPlace> {
        let unwanted = self.unwanted();
        let there: Vec<_> = unwanted.iter().filter_map(|place| self.placed.get(place)).collect();
        let is_fed = |place: &HopPlace| there.iter().any(|placed| placed.leads_to.contains(place));
        let waiting = there.iter().any(|placed| placed.is_removed);
        let open = || unwanted.iter().filter(|place| self.placed.get(place).is_some_and(|placed| !placed.is_removed));
        let free: Vec<_> = open().filter(|place| !is_fed(place)).copied().collect();
        if free.is_empty() && !waiting { open().copied().collect() } else { free }
    }
}
