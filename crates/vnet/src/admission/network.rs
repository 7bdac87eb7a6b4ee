//! Keeps the bounds of virtual links over a network of links without cycles, and calculates only those that change.
//!
//! A virtual link that comes or goes changes the bounds at the links of its path. Others that pass there arrive with
//! another burst at their next link, which is then calculated too, and so on, in the order in which links feed each
//! other. A link to which nothing arrives otherwise than before is left alone. All numbers are whole, so that the bounds
//! are those that a calculation of all links has, to the last bit.
use super::bound::{ArrivalCurve, MAX_PS, Multiplexing, PS_PER_S, ServiceCurve};
use super::feed_order::FeedOrder;
use std::collections::BTreeSet;

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
    pub(super) shortest: u128,
    pub(super) longest: u128,
}

/// Bounds of a virtual link at one link of its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HopBound {
    /// Curve of what arrives.
    arrivals: ArrivalCurve,
    /// Longest delay in picoseconds, propagation included.
    pub(super) delay_ps: u128,
    /// Service that the others leave.
    left: ServiceCurve,
}

/// Bounds of one virtual link, in picoseconds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct FlowBound {
    pub(super) hops: Vec<HopBound>,
    /// Delay of the path if bursts are paid once.
    pub(super) once: u128,
}

impl FlowBound {
    pub(super) fn sum(&self) -> u128 {
        self.hops.iter().map(|hop| hop.delay_ps).sum::<u128>().min(MAX_PS)
    }

    pub(super) fn least(&self) -> u128 {
        self.sum().min(self.once)
    }
}

/// What one link carries.
#[derive(Debug, Clone, Default)]
pub(super) struct LinkLoad {
    /// Virtual links through it, with the place of the link in their paths.
    through: BTreeSet<(usize, usize)>,
    /// Sum of their rates in bit/s on the wire.
    pub(super) rate: u128,
}

/// Substrate with virtual links, each in a slot of its own.
#[derive(Debug, Clone)]
pub(super) struct BoundedNetwork {
    servers: Vec<LinkServer>,
    loads: Vec<LinkLoad>,
    flows: Vec<Option<(BoundedFlow, FlowBound)>>,
    free: BTreeSet<usize>,
    order: FeedOrder,
}

/// Bounds that change if a virtual link comes or goes.
#[derive(Debug, Default)]
pub(super) struct BoundChange {
    /// Bounds by slot, where they are calculated anew.
    bounds: Vec<Option<FlowBound>>,
    /// Slots with bounds of this change.
    pub(super) slots: BTreeSet<usize>,
    /// Backlogs of calculated links in bits, as far as they are not sent.
    pub(super) backlogs: Vec<(usize, u128)>,
}

impl BoundChange {
    /// Returns the changed bounds by slot.
    pub(super) fn changed(&self) -> impl Iterator<Item = (usize, &FlowBound)> {
        self.slots.iter().filter_map(|slot| Some((*slot, self.bounds[*slot].as_ref()?)))
    }
}

impl BoundedNetwork {
    pub(super) fn new(servers: Vec<LinkServer>) -> BoundedNetwork {
        let links = servers.len();
        let order = FeedOrder::new(links);
        BoundedNetwork {
            servers,
            loads: vec![LinkLoad::default(); links],
            flows: Vec::new(),
            free: BTreeSet::new(),
            order,
        }
    }

    /// Returns the slot that the next virtual link gets.
    pub(super) fn next_slot(&self) -> usize {
        self.free.first().copied().unwrap_or(self.flows.len())
    }

    /// Returns what a link carries.
    pub(super) fn load(&self, link: usize) -> &LinkLoad {
        &self.loads[link]
    }

    /// Returns the longest packet of the virtual links through a link; 0 if there are none.
    pub(super) fn longest_packet(&self, link: usize) -> u128 {
        let flows = self.loads[link].through.iter().filter_map(|(slot, _)| self.flows[*slot].as_ref());
        flows.map(|(flow, _)| flow.longest).max().unwrap_or(0)
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
        let mut change = BoundChange { bounds: vec![None; self.flows.len() + 1], ..BoundChange::default() };
        let slot = self.next_slot();
        let hop = HopBound { arrivals: asked.arrivals, delay_ps: 0, left: ServiceCurve { rate: 1, latency_ps: 0 } };
        change.bounds[slot] = Some(FlowBound { hops: vec![hop; asked.path.len()], once: 0 });
        change.slots.insert(slot);
        let ranks = ranks.unwrap_or(self.order.ranks());
        self.settle(&mut change, Some((slot, asked)), &asked.path, ranks, may_go_on).then_some(change)
    }

    /// Inserts a virtual link with a change that was calculated for it.
    pub(super) fn insert(&mut self, flow: BoundedFlow, ranks: Option<Vec<usize>>, change: BoundChange) {
        let slot = self.next_slot();
        self.order.insert(&flow.path, ranks);
        for (hop, link) in flow.path.iter().enumerate() {
            self.loads[*link].through.insert((slot, hop));
            self.loads[*link].rate += flow.arrivals.rate;
        }
        if !self.free.remove(&slot) {
            self.flows.push(None);
        }
        self.flows[slot] = Some((flow, FlowBound::default()));
        self.apply(change);
    }

    /// Removes the virtual link in a slot, and returns the slots of others whose bounds changed.
    pub(super) fn remove(&mut self, slot: usize) -> BTreeSet<usize> {
        let Some((flow, _)) = self.flows[slot].take() else { return BTreeSet::new() };
        self.free.insert(slot);
        self.order.remove(&flow.path);
        for (hop, link) in flow.path.iter().enumerate() {
            self.loads[*link].through.remove(&(slot, hop));
            self.loads[*link].rate -= flow.arrivals.rate;
        }
        let mut change = BoundChange { bounds: vec![None; self.flows.len()], ..BoundChange::default() };
        self.settle(&mut change, None, &flow.path, self.order.ranks(), |_, _| true);
        let changed = change.slots.clone();
        self.apply(change);
        changed
    }

    /// Returns the bounds of the virtual link in a slot.
    pub(super) fn bound(&self, slot: usize) -> Option<&FlowBound> {
        Some(&self.flows.get(slot)?.as_ref()?.1)
    }

    fn apply(&mut self, change: BoundChange) {
        let slots = change.slots;
        for (slot, bound) in change.bounds.into_iter().enumerate().filter(|(slot, _)| slots.contains(slot)) {
            if let (Some((_, kept)), Some(bound)) = (&mut self.flows[slot], bound) {
                *kept = bound;
            }
        }
    }

    /// Calculates links, those that feed others first, until nothing changes any more. Returns false if `may_go_on` did.
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
            let through: Vec<(usize, usize)> = self.loads[link].through.iter().copied().chain(new).collect();
            let flow = |slot: usize| match asked {
                Some((of_asked, flow)) if of_asked == slot => flow,
                _ => &self.flows[slot].as_ref().expect("a link has only kept virtual links").0,
            };
            let all = through
                .iter()
                .fold(ArrivalCurve::default(), |sum, (slot, hop)| sum.plus(self.hop(change, *slot, *hop).arrivals));
            let LinkServer { service, propagation_ps, multiplexing } = self.servers[link].clone();
            let backlog = service.backlog(all).expect("the rates fit");
            if !may_go_on(link, backlog) {
                return false;
            }
            change.backlogs.push((link, backlog));
            for (slot, hop) in through {
                let (kept, flow) = (self.hop(change, slot, hop), flow(slot));
                let (own, others) = (kept.arrivals, all.minus(kept.arrivals));
                let delay = service.shared_delay_ps(own, others, multiplexing).expect("the rates fit");
                let mut left = service.left_over(others, multiplexing).expect("the rates fit, and none is 0");
                if hop + 1 < flow.path.len() {
                    left = left.packetised(flow.longest);
                }
                let found = HopBound { arrivals: own, delay_ps: (delay + propagation_ps).min(MAX_PS), left };
                if found != kept {
                    self.changed(change, slot).hops[hop] = found;
                }
                let shortest_delay = flow.shortest * PS_PER_S / service.rate;
                let sent = own.after_jitter(delay.saturating_sub(shortest_delay));
                if let Some(next) = flow.path.get(hop + 1)
                    && self.hop(change, slot, hop + 1).arrivals != sent
                {
                    self.changed(change, slot).hops[hop + 1].arrivals = sent;
                    open.insert((ranks[*next], *next));
                }
            }
        }
        for slot in &change.slots {
            let flow = match asked {
                Some((of_asked, flow)) if of_asked == *slot => flow,
                _ => &self.flows[*slot].as_ref().expect("only kept virtual links change").0,
            };
            if let Some(bound) = &mut change.bounds[*slot] {
                bound.once = self.paid_once(flow, &bound.hops);
            }
        }
        true
    }

    /// Returns the delay of a path if bursts are paid once.
    fn paid_once(&self, flow: &BoundedFlow, hops: &[HopBound]) -> u128 {
        let whole = hops.iter().map(|hop| hop.left).reduce(ServiceCurve::then);
        let queued = whole.and_then(|whole| whole.delay_ps(flow.arrivals)).expect("a path has links, the rates fit");
        let propagation: u128 = flow.path.iter().map(|link| self.servers[*link].propagation_ps).sum();
        (propagation + queued).min(MAX_PS)
    }

    /// Returns the bounds at a hop, as changed.
    fn hop(&self, change: &BoundChange, slot: usize, hop: usize) -> HopBound {
        let kept = || &self.flows[slot].as_ref().expect("a link has only kept virtual links").1;
        change.bounds[slot].as_ref().unwrap_or_else(kept).hops[hop]
    }

    /// Returns the bounds of a virtual link to change.
    fn changed<'a>(&self, change: &'a mut BoundChange, slot: usize) -> &'a mut FlowBound {
        change.slots.insert(slot);
        change.bounds[slot]
            .get_or_insert_with(|| self.flows[slot].as_ref().map(|(_, bound)| bound.clone()).unwrap_or_default())
    }
}
