//! Represents the lines of a scenario, and finds the route of packets.
use crate::virtuals::VirtualSwitchOutput;
use std::collections::VecDeque;
use weir_scenario::{LinkSpec, Scenario};

/// Line: one direction of a link.
#[derive(Debug, Clone)]
pub(crate) struct DirectedLink {
    /// Names of both ends.
    pub(crate) name: String,
    pub(crate) spec: LinkSpec,
    /// Port numbers of the switches at both ends; 0 at a host.
    pub(crate) ports: [u32; 2],
}

/// Element of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RouteHop {
    /// Line with this index.
    Line(usize),
    /// Switch with this index in the scenario.
    Switch(usize),
    /// Share of an output that a virtual switch has.
    Output(VirtualSwitchOutput),
}

/// Lines, and the switches that they connect.
#[derive(Debug)]
pub(crate) struct RouteGraph {
    pub(crate) lines: Vec<DirectedLink>,
    /// For each switch: pairs of an outgoing line and the switch at its end.
    next: Vec<Vec<(usize, usize)>>,
    hosts: usize,
}

impl RouteGraph {
    /// Builds the lines: two for each host, to its switch and from it, then two for each link.
    pub(crate) fn of(scenario: &Scenario) -> RouteGraph {
        let line = |from: &str, to: &str, suffix: &str, spec, ports| DirectedLink {
            name: format!("{from} -> {to}{suffix}"),
            spec,
            ports,
        };
        let switch = |at: usize| scenario.switches[at].name.as_str();
        let mut lines = Vec::new();
        for host in &scenario.hosts {
            lines.push(line(&host.name, switch(host.switch), "", host.link, [0, host.port]));
            lines.push(line(switch(host.switch), &host.name, "", host.link, [host.port, 0]));
        }
        let mut next = vec![Vec::new(); scenario.switches.len()];
        let suffixes = scenario.link_suffixes();
        for ((link, used), suffix) in scenario.links.iter().zip(scenario.used_links()).zip(&suffixes) {
            let [a, b] = link.ends;
            for (from, to) in [(a, b), (b, a)] {
                if used {
                    next[from.switch].push((lines.len(), to.switch));
                }
                lines.push(line(switch(from.switch), switch(to.switch), suffix, link.spec, [from.port, to.port]));
            }
        }
        RouteGraph { lines, next, hosts: scenario.hosts.len() }
    }

    /// Returns the route of a virtual network that joins the hosts, or else that with the fewest links, the first in
    /// the file among equals; none if there is none.
    pub(crate) fn route(&self, scenario: &Scenario, from: usize, to: usize) -> Option<Vec<RouteHop>> {
        self.network_route(scenario, from, to).or_else(|| self.shortest_route(scenario, from, to))
    }

    /// Returns the route over the ways of the virtual network that joins two hosts; none if there is no such network.
    fn network_route(&self, scenario: &Scenario, from: usize, to: usize) -> Option<Vec<RouteHop>> {
        let [from_name, to_name] = [from, to].map(|host| scenario.hosts[host].name.as_str());
        let found = scenario.networks.iter().find_map(|network| {
            let links = network.links_between(from_name, to_name)?;
            Some((&network.held.design.links, links))
        });
        let (designed, links) = found?;
        let mut route = vec![RouteHop::Line(self.up(from))];
        for (link, way) in links {
            for hop in &designed[link].directions[way].hops {
                let switch = scenario.switches.iter().position(|switch| switch.name == hop.port.switch)?;
                route
                    .extend([RouteHop::Switch(switch), RouteHop::Line(self.line_at(scenario, switch, hop.port.port)?)]);
            }
        }
        Some(route)
    }

    /// Returns the line that a switch sends on at a port.
    fn line_at(&self, scenario: &Scenario, switch: usize, port: u32) -> Option<usize> {
        let to_host = scenario.hosts.iter().position(|host| host.switch == switch && host.port == port);
        let to_switch = || {
            scenario.links.iter().enumerate().find_map(|(number, link)| {
                let end = link.ends.iter().position(|end| end.switch == switch && end.port == port)?;
                Some(2 * (self.hosts + number) + end)
            })
        };
        to_host.map(|host| self.down(host)).or_else(to_switch)
    }

    fn shortest_route(&self, scenario: &Scenario, from: usize, to: usize) -> Option<Vec<RouteHop>> {
        let (start, end) = (scenario.hosts[from].switch, scenario.hosts[to].switch);
        let mut came: Vec<Option<(usize, usize)>> = vec![None; self.next.len()];
        let mut seen = vec![false; self.next.len()];
        let mut open = VecDeque::from([start]);
        seen[start] = true;
        while let Some(at) = open.pop_front() {
            for (line, to) in &self.next[at] {
                if !std::mem::replace(&mut seen[*to], true) {
                    came[*to] = Some((*line, at));
                    open.push_back(*to);
                }
            }
        }
        if !seen[end] {
            return None;
        }
        let mut back = vec![RouteHop::Line(self.down(to)), RouteHop::Switch(end)];
        let mut at = end;
        while let Some((line, before)) = came[at].filter(|_| at != start) {
            back.extend([RouteHop::Line(line), RouteHop::Switch(before)]);
            at = before;
        }
        back.push(RouteHop::Line(self.up(from)));
        back.reverse();
        Some(back)
    }

    fn up(&self, host: usize) -> usize {
        debug_assert!(host < self.hosts);
        2 * host
    }

    /// Returns true if a line leads to a host.
    pub(crate) fn is_down(&self, line: usize) -> bool {
        line < 2 * self.hosts && line % 2 == 1
    }

    fn down(&self, host: usize) -> usize {
        2 * host + 1
    }
}
