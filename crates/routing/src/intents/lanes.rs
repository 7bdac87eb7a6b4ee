//! Bandwidth that intents have reserved, and what is left of the rates of ports.
use super::way::Way;
use crate::map::{NetworkMap, SwitchPort};
use std::collections::BTreeMap;
use std::fmt;
use weir_units::Bps;

/// A direction of a link or of the connection of a host. It has a rate, which intents share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Lane {
    /// Out of a port: over a link, or to a host.
    From(SwitchPort),
    /// From a host into a port.
    Into(SwitchPort),
}

/// Bandwidth by lane, in bit/s.
pub(super) type Demand = BTreeMap<Lane, u64>;

/// Bandwidth that all intents together have reserved.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Reservations(BTreeMap<Lane, u64>);

impl Reservations {
    pub(super) fn add(&mut self, demand: &Demand) {
        for (lane, bps) in demand {
            let sum = self.0.entry(*lane).or_default();
            *sum = sum.saturating_add(*bps);
        }
    }

    pub(super) fn release(&mut self, demand: &Demand) {
        for (lane, bps) in demand {
            let left = self.0.get(lane).map_or(0, |sum| sum.saturating_sub(*bps));
            if left == 0 {
                self.0.remove(lane);
            } else {
                self.0.insert(*lane, left);
            }
        }
    }

    pub(super) fn of(&self, lane: Lane) -> u64 {
        self.0.get(&lane).copied().unwrap_or(0)
    }

    pub(super) fn all(&self) -> &BTreeMap<Lane, u64> {
        &self.0
    }
}

impl Lane {
    /// Returns the rate of the lane in bit/s: the lesser one of both ports of a link; `None` if one states none and
    /// none is assumed.
    pub(super) fn rate(self, map: &NetworkMap, assumed: Option<Bps>) -> Option<u64> {
        let of = |at: SwitchPort| {
            let desc = map.switches().get(&at.dpid).and_then(|switch| switch.ports.get(&at.port))?;
            let stated = u64::from(desc.curr_speed) * 1000;
            if stated > 0 { Some(stated) } else { assumed.map(|rate| rate.0) }
        };
        match self {
            Lane::Into(at) => of(at),
            Lane::From(at) => match map.links().get(&at) {
                Some(link) => of(at).zip(of(link.to)).map(|(one, other)| one.min(other)),
                None => of(at),
            },
        }
    }
}

impl fmt::Display for Lane {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Lane::From(at) => write!(out, "out of port {at}"),
            Lane::Into(at) => write!(out, "into port {at}"),
        }
    }
}

/// Returns the lanes of a way, in order.
pub(super) fn lanes(way: &Way) -> impl Iterator<Item = Lane> + '_ {
    let outs = way.links.iter().map(|link| Lane::From(link[0]));
    std::iter::once(Lane::Into(way.from)).chain(outs).chain(std::iter::once(Lane::From(way.to)))
}

/// Returns for each lane the larger one of two demands.
pub(super) fn larger(one: &Demand, other: &Demand) -> Demand {
    let mut both = one.clone();
    for (lane, bps) in other {
        let most = both.entry(*lane).or_default();
        *most = (*most).max(*bps);
    }
    both
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::PortNo;

    #[test]
    fn what_is_released_is_gone() {
        let lane = |port| Lane::From(SwitchPort::new(1, PortNo(port)));
        let (one, other) = (Demand::from([(lane(1), 5), (lane(2), 7)]), Demand::from([(lane(2), 9)]));
        let mut all = Reservations::default();
        all.add(&one);
        all.add(&other);
        assert_eq!((all.of(lane(1)), all.of(lane(2)), all.of(lane(3))), (5, 16, 0));
        all.release(&one);
        assert_eq!((all.of(lane(1)), all.of(lane(2))), (0, 9));
        all.release(&other);
        assert_eq!(all, Reservations::default());
        assert_eq!(larger(&one, &other), Demand::from([(lane(1), 5), (lane(2), 9)]));
    }
}
