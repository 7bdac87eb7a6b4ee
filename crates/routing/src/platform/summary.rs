//! Summary of a network: numbers of its switches, ports, links, hosts, intents and events.
use super::NetworkController;
use crate::map::{SwitchPort, is_port_up};
use crate::state::NetworkSummary;
use std::collections::BTreeSet;

/// Most links that are remembered as down.
const MAX_LOST_LINKS: usize = 16_384;

/// Links that were up and are down now.
#[derive(Debug, Default)]
pub(super) struct LostLinks(BTreeSet<[SwitchPort; 2]>);

impl LostLinks {
    /// Notes that a link is up. Other links of its two ports are no longer counted as down: a port has one link.
    pub(super) fn note_up(&mut self, ends: [SwitchPort; 2]) {
        self.0.retain(|lost| !lost.iter().any(|end| ends.contains(end)));
    }

    /// Notes that a link is down, unless [`MAX_LOST_LINKS`] links are noted already.
    pub(super) fn note_down(&mut self, ends: [SwitchPort; 2]) {
        self.note_up(ends);
        if self.0.len() < MAX_LOST_LINKS {
            self.0.insert(ends);
        }
    }
}

impl NetworkController {
    /// Returns the numbers of what the network has.
    pub fn summary(&self) -> NetworkSummary {
        let map = &self.core.map;
        let ports = map.switches.values().flat_map(|switch| switch.ports.values());
        let (up, down): (Vec<_>, Vec<_>) =
            ports.filter(|port| port.port_no.is_ordinary()).partition(|port| is_port_up(port));
        let links = map.links.iter().filter(|(from, link)| **from < link.to);
        let damped = links.clone().filter(|(_, link)| link.damped).count();
        let (events, alarms) = self.core.log.counts();
        let counters = self.applications_with_counters().into_iter().flat_map(|(_, counters)| counters);
        NetworkSummary {
            switches: map.switches.len() as u64,
            ports_up: up.len() as u64,
            ports_down: down.len() as u64,
            links_up: links.count() as u64,
            links_damped: damped as u64,
            links_down: self.core.lost_links.0.len() as u64,
            hosts: map.hosts.len() as u64,
            intents: self.intents.count_by_state(),
            events: events.iter().map(|(kind, count)| ((*kind).to_owned(), *count)).collect(),
            alarms,
            counters: counters.map(|(name, count)| (name.to_owned(), count)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::PortNo;

    #[test]
    fn a_link_that_takes_the_place_of_another_ends_the_wait_for_it() {
        let at = |dpid, port| SwitchPort::new(dpid, PortNo(port));
        let mut lost = LostLinks::default();
        lost.note_down([at(1, 1), at(2, 1)]);
        lost.note_down([at(3, 1), at(4, 1)]);
        lost.note_down([at(1, 1), at(2, 1)]);
        assert_eq!(lost.0.len(), 2);
        lost.note_up([at(1, 2), at(2, 2)]);
        assert_eq!(lost.0.len(), 2, "other ports");
        lost.note_up([at(2, 1), at(9, 1)]);
        assert_eq!(lost.0.into_iter().collect::<Vec<_>>(), [[at(3, 1), at(4, 1)]]);
    }
}
