//! Keeps the bounds of virtual links over a network of links without cycles, and calculates only those that change.
//!
//! A virtual link that comes or goes changes the bounds at the links of its path. Others that pass there arrive with
//! another burst at their next link, which is then calculated too, and so on, in the order in which links feed each
//! other. A link to which nothing arrives otherwise than before is left alone. All numbers are whole, so that the
//! bounds are those that a calculation of all links has, to the last bit.
use super::bound::{ArrivalCurve, MAX_PS, Multiplexing, PS_PER_S, ServiceCurve};
use super::feed_order::FeedOrder;
use std::collections::{BTreeMap, BTreeSet};

/// A substrate link as numbers. Bits are those on the wire.
#[derive(Debug, Clone)]
pub(super) struct LinkServer {
    pub(super) service: ServiceCurve,
    pub(super) propagation_ps: u128,
    pub(super) multiplexing: Multiplexing,
}

/// A virtual link as numbers. Bits are those on the wire.
#[derive(Debug, Clone)]
pub(super) struct BoundedFlow {
    /// Indices of its links.
    pub(super) path: Vec<usize>,
    pub(super) arrivals: ArrivalCurve,
    /// Least delay at each link: the time in which the shortest packet is sent.
    pub(super) least_ps: Vec<u128>,
    pub(super) longest: u128,
}

/// Bounds of a virtual link at one link of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HopBound {
    /// Curve of what arrives.
    arrivals: ArrivalCurve,
    /// Longest delay in picoseconds, propagation included.
    pub(super) delay_ps: u128,
}

/// Bounds of one virtual link, in picoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FlowBound {
    /// Longest delay at each link, propagation included.
    pub(super) hops: Vec<u128>,
    /// Delay of the path if bursts are paid once.
    pub(super) once: u128,
}

impl FlowBound {
    pub(super) fn sum(&self) -> u128 {
        self.hops.iter().sum::<u128>().min(MAX_PS)
    }

    pub(super) fn least(&self) -> u128 {
        self.sum().min(self.once)
    }
}

/// Load of one link.
#[derive(Debug, Clone, Default)]
pub(super) struct LinkLoad {
    /// Virtual links through it, with the place of the link in their paths.
    through: Vec<(usize, usize)>,
    /// Sum of their rates in bit/s on the wire.
    pub(super) rate: u128,
    /// Longest packet of them; 0 if there are none.
    pub(super) longest: u128,
    /// Curve of all that arrives.
    all: ArrivalCurve,
}

/// Substrate with virtual links, each in a slot of its own.
#[derive(Debug, Clone)]
pub(super) struct BoundedNetwork {
    servers: Vec<LinkServer>,
    loads: Vec<LinkLoad>,
    flows: Vec<Option<(BoundedFlow, Vec<HopBound>)>>,
    free: BTreeSet<usize>,
    order: FeedOrder,
}

/// Bounds that change if a virtual link comes or goes.
#[derive(Debug)]
pub(super) struct BoundChange {
    /// Bounds of hops by slot, where they are calculated anew.
    hops: Vec<Option<Vec<HopBound>>>,
    /// Slots with bounds of this change.
    pub(super) slots: Vec<usize>,
    /// Curves of all that arrives at calculated links.
    arrivals: BTreeMap<usize, ArrivalCurve>,
}

impl BoundedNetwork {
    pub(super) fn new(servers: Vec<LinkServer>) -> BoundedNetwork {
        let loads = vec![LinkLoad::default(); servers.len()];
        let order = FeedOrder::new(servers.len());
        BoundedNetwork { servers, loads, flows: Vec::new(), free: BTreeSet::new(), order }
    }

    /// Returns the least delay of a packet of this length at each link of a path.
    pub(super) fn least_delays(&self, path: &[usize], shortest: u128) -> Vec<u128> {
        path.iter().map(|link| shortest * PS_PER_S / self.servers[*link].service.rate).collect()
    }

    /// Returns the slot that the next virtual link gets.
    pub(super) fn next_slot(&self) -> usize {
        self.free.first().copied().unwrap_or(self.flows.len())
    }

    /// Returns what a link carries.
    pub(super) fn load(&self, link: usize) -> &LinkLoad {
        &self.loads[link]
    }

    /// Returns places for the links with one more path, as [`FeedOrder::ranks_with`] does.
    pub(super) fn ranks_with(&self, path: &[usize]) -> Result<Option<Vec<usize>>, Vec<usize>> {
        self.order.ranks_with(path)
    }

    /// Calculates what changes if a virtual link comes into the next slot. No link may be given more than its rate.
    /// `ranks` are those that [`BoundedNetwork::ranks_with`] returned for its path.
    ///
    /// `may_go_on` is asked for each calculated link with its backlog; if it returns false, `None` is returned.
    pub(super) fn change_with(
        &self,
        asked: &BoundedFlow,
        ranks: Option<&[usize]>,
        may_go_on: impl Fn(usize, u128) -> bool,
    ) -> Option<BoundChange> {
        let slot = self.next_slot();
        let mut change = self.no_change();
        change.hops[slot] = Some(vec![HopBound { arrivals: asked.arrivals, delay_ps: 0 }; asked.path.len()]);
        change.slots.push(slot);
        let ranks = ranks.unwrap_or(self.order.ranks());
        self.settle(&mut change, Some((slot, asked)), &asked.path, ranks, may_go_on).then_some(change)
    }

    /// Inserts a virtual link with a change that was calculated for it.
    pub(super) fn insert(&mut self, flow: BoundedFlow, ranks: Option<Vec<usize>>, change: BoundChange) {
        let slot = self.next_slot();
        self.order.insert(&flow.path, ranks);
        for (hop, link) in flow.path.iter().enumerate() {
            let load = &mut self.loads[*link];
            load.through.push((slot, hop));
            load.rate += flow.arrivals.rate;
            load.longest = load.longest.max(flow.longest);
        }
        if !self.free.remove(&slot) {
            self.flows.push(None);
        }
        self.flows[slot] = Some((flow, Vec::new()));
        self.apply(change);
    }

    /// Removes the virtual link in a slot, and returns the slots of others whose bounds may have changed.
    pub(super) fn remove(&mut self, slot: usize) -> Vec<usize> {
        let Some((flow, _)) = self.flows[slot].take() else { return Vec::new() };
        self.free.insert(slot);
        self.order.remove(&flow.path);
        for link in &flow.path {
            self.loads[*link].through.retain(|(one, _)| *one != slot);
            let others = self.loads[*link].through.iter().filter_map(|(one, _)| self.flows[*one].as_ref());
            self.loads[*link].longest = others.map(|(flow, _)| flow.longest).max().unwrap_or(0);
            self.loads[*link].rate -= flow.arrivals.rate;
        }
        let mut change = self.no_change();
        self.settle(&mut change, None, &flow.path, self.order.ranks(), |_, _| true);
        let affected = self.affected(&change);
        self.apply(change);
        affected
    }

    /// Returns the slots whose bounds a change may change, in order: those of all virtual links through calculated
    /// links. What the others leave of a link may be less even if the delay at the link is not longer.
    pub(super) fn affected(&self, change: &BoundChange) -> Vec<usize> {
        let mut is_affected = vec![false; change.hops.len()];
        let links = change.arrivals.keys();
        let through = links.flat_map(|link| &self.loads[*link].through).map(|(slot, _)| slot);
        change.slots.iter().chain(through).for_each(|slot| is_affected[*slot] = true);
        (0..is_affected.len()).filter(|slot| is_affected[*slot]).collect()
    }

    /// Returns the backlogs of calculated links in bits, as far as they are not sent.
    pub(super) fn backlogs<'a>(&'a self, change: &'a BoundChange) -> impl Iterator<Item = (usize, u128)> + 'a {
        let backlog = |(link, all): (&usize, &ArrivalCurve)| Some((*link, self.servers[*link].service.backlog(*all)?));
        change.arrivals.iter().filter_map(backlog)
    }

    /// Returns the virtual link in a slot.
    pub(super) fn flow(&self, slot: usize) -> Option<&BoundedFlow> {
        Some(&self.flows.get(slot)?.as_ref()?.0)
    }

    /// Returns the delays at the hops of a virtual link with a change.
    pub(super) fn delays<'a>(
        &'a self,
        change: &'a BoundChange,
        slot: usize,
    ) -> impl Iterator<Item = u128> + Clone + 'a {
        self.hops(Some(change), slot).iter().map(|hop| hop.delay_ps)
    }

    /// Returns the bounds of a virtual link, with a change if it is given.
    pub(super) fn bound(&self, flow: &BoundedFlow, slot: usize, change: Option<&BoundChange>) -> FlowBound {
        let hops = self.hops(change, slot);
        FlowBound { hops: hops.iter().map(|hop| hop.delay_ps).collect(), once: self.paid_once(flow, hops, change) }
    }

    /// Returns the delay of a path if bursts are paid once.
    fn paid_once(&self, flow: &BoundedFlow, hops: &[HopBound], change: Option<&BoundChange>) -> u128 {
        let left = |(place, (link, hop)): (usize, (&usize, &HopBound))| {
            let LinkServer { service, multiplexing, .. } = &self.servers[*link];
            let changed = change.and_then(|change| change.arrivals.get(link)).copied();
            let others = changed.unwrap_or(self.loads[*link].all).minus(hop.arrivals);
            let left = service.left_over(others, *multiplexing).expect("the rates fit, and none is 0");
            if place + 1 < flow.path.len() { left.packetised(flow.longest) } else { left }
        };
        let whole = flow.path.iter().zip(hops).enumerate().map(left).reduce(ServiceCurve::then);
        let queued = whole.and_then(|whole| whole.delay_ps(flow.arrivals)).expect("a path has links, the rates fit");
        let propagation: u128 = flow.path.iter().map(|link| self.servers[*link].propagation_ps).sum();
        (propagation + queued).min(MAX_PS)
    }

    fn no_change(&self) -> BoundChange {
        BoundChange { hops: vec![None; self.flows.len() + 1], slots: Vec::new(), arrivals: BTreeMap::new() }
    }

    fn apply(&mut self, mut change: BoundChange) {
        for slot in change.slots {
            if let (Some((_, kept)), Some(hops)) = (&mut self.flows[slot], change.hops[slot].take()) {
                *kept = hops;
            }
        }
        for (link, arrivals) in change.arrivals {
            self.loads[link].all = arrivals;
        }
    }

    /// Calculates links, those that feed others first, until nothing changes any more. Returns false if `may_go_on`
    /// did.
    fn settle(
        &self,
        change: &mut BoundChange,
        asked: Option<(usize, &BoundedFlow)>,
        first: &[usize],
        ranks: &[usize],
        may_go_on: impl Fn(usize, u128) -> bool,
    ) -> bool {
        let mut open: BTreeSet<(usize, usize)> = first.iter().map(|link| (ranks[*link], *link)).collect();
        while let Some((_, link)) = open.pop_first() {
            let new = asked.and_then(|(slot, flow)| Some((slot, flow.path.iter().position(|one| *one == link)?)));
            let through = || self.loads[link].through.iter().copied().chain(new);
            let arrivals = |(slot, hop): (usize, usize)| self.hops(Some(change), slot)[hop].arrivals;
            let all = through().map(arrivals).fold(ArrivalCurve::default(), ArrivalCurve::plus);
            let LinkServer { service, propagation_ps, multiplexing } = &self.servers[link];
            if !may_go_on(link, service.backlog(all).expect("the rates fit")) {
                return false;
            }
            change.arrivals.insert(link, all);
            // Each virtual link through a FIFO link has the delay of all together.
            let of_all = service.delay_ps(all).filter(|_| *multiplexing == Multiplexing::Fifo);
            for (slot, hop) in through() {
                let flow = match asked {
                    Some((of_asked, flow)) if of_asked == slot => flow,
                    _ => self.flow(slot).expect("a link has only kept virtual links"),
                };
                let kept = self.hops(Some(change), slot)[hop];
                let own = kept.arrivals;
                let of_own = || service.shared_delay_ps(own, all.minus(own), *multiplexing);
                let delay = of_all.or_else(of_own).expect("the rates fit");
                let delay_ps = (delay + propagation_ps).min(MAX_PS);
                if delay_ps != kept.delay_ps {
                    self.changed(change, slot)[hop].delay_ps = delay_ps;
                }
                let Some(next) = flow.path.get(hop + 1) else { continue };
                let sent = own.after_jitter(delay.saturating_sub(flow.least_ps[hop]));
                if self.hops(Some(change), slot)[hop + 1].arrivals != sent {
                    self.changed(change, slot)[hop + 1].arrivals = sent;
                    open.insert((ranks[*next], *next));
                }
            }
        }
        true
    }

    /// Returns the bounds of the hops of a virtual link, with a change if it is given.
    fn hops<'a>(&'a self, change: Option<&'a BoundChange>, slot: usize) -> &'a [HopBound] {
        let kept = || &self.flows[slot].as_ref().expect("a link has only kept virtual links").1;
        change.and_then(|change| change.hops[slot].as_ref()).unwrap_or_else(kept)
    }

    /// Returns the bounds of the hops of a virtual link to change.
    fn changed<'a>(&self, change: &'a mut BoundChange, slot: usize) -> &'a mut [HopBound] {
        change.hops[slot].get_or_insert_with(|| {
            change.slots.push(slot);
            self.flows[slot].as_ref().map(|(_, hops)| hops.clone()).unwrap_or_default()
        })
    }
}
