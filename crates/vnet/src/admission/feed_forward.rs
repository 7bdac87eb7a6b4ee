//! Calculates the bounds of virtual links over a network of links without cycles.
use super::bound::{ArrivalCurve, MAX_PS, Multiplexing, PS_PER_S, ServiceCurve};
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

/// Bounds of one virtual link, in picoseconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct FlowBound {
    /// Delay of each hop, propagation included.
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

/// Bounds of all virtual links.
pub(super) struct NetworkBounds {
    pub(super) flows: Vec<FlowBound>,
    /// Backlog of each link in bits, as far as they are not sent.
    pub(super) backlogs: Vec<u128>,
}

/// Returns the links in an order in which each is behind all that feed it.
///
/// # Errors
/// There is none: the error has links that feed each other in a cycle.
pub(super) fn feed_forward_order<'a>(
    links: usize,
    paths: impl Iterator<Item = &'a Vec<usize>>,
) -> Result<Vec<usize>, Vec<usize>> {
    let mut before = vec![BTreeSet::new(); links];
    let mut after = vec![BTreeSet::new(); links];
    for path in paths {
        for pair in path.windows(2) {
            before[pair[1]].insert(pair[0]);
            after[pair[0]].insert(pair[1]);
        }
    }
    let mut missing: Vec<usize> = before.iter().map(BTreeSet::len).collect();
    let mut order: Vec<usize> = (0..links).filter(|link| missing[*link] == 0).collect();
    let mut next = 0;
    while let Some(link) = order.get(next).copied() {
        next += 1;
        for fed in &after[link] {
            missing[*fed] -= 1;
            if missing[*fed] == 0 {
                order.push(*fed);
            }
        }
    }
    let Some(mut at) = (0..links).find(|link| missing[*link] > 0) else { return Ok(order) };
    // Each link that is left is fed by one that is left: going back leads into a cycle.
    let mut walked = Vec::new();
    while !walked.contains(&at) {
        walked.push(at);
        at = *before[at].iter().find(|link| missing[**link] > 0).expect("one that feeds it is left");
    }
    let mut cycle = walked.split_off(walked.iter().position(|link| *link == at).expect("it was walked"));
    cycle.reverse();
    Err(cycle)
}

/// Calculates the bounds, link by link. No link may be given more than its rate.
pub(super) fn calculate(links: &[LinkServer], order: &[usize], flows: &[BoundedFlow]) -> NetworkBounds {
    let mut through = vec![Vec::new(); links.len()];
    for (index, flow) in flows.iter().enumerate() {
        flow.path.iter().for_each(|link| through[*link].push(index));
    }
    let mut arrivals: Vec<ArrivalCurve> = flows.iter().map(|flow| flow.arrivals).collect();
    let mut whole: Vec<Option<ServiceCurve>> = vec![None; flows.len()];
    let mut bounds = NetworkBounds {
        flows: flows.iter().map(|_| FlowBound { hops: Vec::new(), once: 0 }).collect(),
        backlogs: vec![0; links.len()],
    };
    for index in order {
        let LinkServer { service, propagation_ps, multiplexing } = links[*index].clone();
        let all = through[*index].iter().fold(ArrivalCurve::default(), |sum, flow| sum.plus(arrivals[*flow]));
        bounds.backlogs[*index] = service.backlog(all).expect("the rates fit");
        for flow in through[*index].iter().copied() {
            let (own, others) = (arrivals[flow], all.minus(arrivals[flow]));
            let delay = service.shared_delay_ps(own, others, multiplexing).expect("the rates fit");
            let mut left = service.left_over(others, multiplexing).expect("the rates fit, and none is 0");
            if flows[flow].path.last() != Some(index) {
                left = left.packetised(flows[flow].longest);
            }
            whole[flow] = Some(whole[flow].map_or(left, |whole| whole.then(left)));
            bounds.flows[flow].hops.push((delay + propagation_ps).min(MAX_PS));
            bounds.flows[flow].once += propagation_ps;
            let shortest_delay = flows[flow].shortest * PS_PER_S / service.rate;
            arrivals[flow] = own.after_jitter(delay.saturating_sub(shortest_delay));
        }
    }
    for ((bound, whole), flow) in bounds.flows.iter_mut().zip(whole).zip(flows) {
        let queued = whole.and_then(|whole| whole.delay_ps(flow.arrivals)).expect("a path has links, the rates fit");
        bound.once = (bound.once + queued).min(MAX_PS);
    }
    bounds
}
