//! Ways of intents through the network: links from an input port to an output port.
use crate::map::{MapLink, NetworkMap, SwitchPort};
use std::collections::BTreeSet;
use std::time::Duration;
use weir_openflow::model::PortNo;

/// A link in one direction: the port that sends and the port that receives.
pub(super) type DirectedLink = [SwitchPort; 2];

/// A way through the network.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Way {
    /// Port by which packets come in.
    pub(super) from: SwitchPort,
    /// Links in the order in which packets pass them.
    pub(super) links: Vec<DirectedLink>,
    /// Port by which packets leave.
    pub(super) to: SwitchPort,
}

/// A pass of a way through a switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Pass {
    /// Port by which packets come.
    pub(super) at: SwitchPort,
    /// Port by which they leave.
    pub(super) out: PortNo,
    /// Switch that the output leads to; `None` at the end of the way.
    pub(super) next: Option<u64>,
}

impl Way {
    /// Returns the way back.
    pub(super) fn reversed(&self) -> Way {
        let links = self.links.iter().rev().map(|[out, into]| [*into, *out]);
        Way { from: self.to, links: links.collect(), to: self.from }
    }

    /// Returns the passes through switches, in order.
    pub(super) fn passes(&self) -> impl Iterator<Item = Pass> + '_ {
        let ins = std::iter::once(self.from).chain(self.links.iter().map(|link| link[1]));
        let outs = self.links.iter().map(|[out, into]| (out.port, Some(into.dpid)));
        let outs = outs.chain(std::iter::once((self.to.port, None)));
        ins.zip(outs).map(|(at, (out, next))| Pass { at, out, next })
    }

    /// Returns the pass through the last switch.
    pub(super) fn last(&self) -> Pass {
        let at = self.links.last().map_or(self.from, |link| link[1]);
        Pass { at, out: self.to.port, next: None }
    }

    /// Returns all ports in the order in which packets pass them.
    pub(super) fn ports(&self) -> Vec<SwitchPort> {
        let inner = self.links.iter().flatten().copied();
        std::iter::once(self.from).chain(inner).chain(std::iter::once(self.to)).collect()
    }

    /// Returns true if all links and both ports of the ends are there and up.
    pub(super) fn is_intact(&self, map: &NetworkMap) -> bool {
        let is_there = |[out, into]: &DirectedLink| link(map, *out).is_some_and(|link| link.to == *into);
        map.is_up(self.from) && map.is_up(self.to) && self.links.iter().all(is_there)
    }

    /// Returns the delay of the links; `None` if that of one is not known.
    pub(super) fn delay(&self, map: &NetworkMap) -> Option<Duration> {
        let of = |[out, _]: &DirectedLink| link(map, *out).and_then(|link| link.delay);
        self.links.iter().map(of).sum()
    }

    /// Returns the links without their direction: the lesser port of each.
    pub(super) fn undirected(&self) -> BTreeSet<SwitchPort> {
        self.links.iter().map(|[out, into]| *out.min(into)).collect()
    }
}

/// Returns the direction of a link that begins at a port, if the link is up and the switches of both ends are there.
pub(super) fn link(map: &NetworkMap, from: SwitchPort) -> Option<&MapLink> {
    let link = map.links().get(&from)?;
    let there = [from.dpid, link.to.dpid].iter().all(|dpid| map.switches().contains_key(dpid));
    there.then_some(link)
}
