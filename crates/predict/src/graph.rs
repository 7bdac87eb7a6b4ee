//! A scenario's lines and the way of packets over them.
use crate::virtuals::Output;
use std::collections::VecDeque;
use weir_scenario::{LinkSpec, Scenario};

/// One direction of a link.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// Its two ends, by name.
    pub(crate) name: String,
    pub(crate) spec: LinkSpec,
    /// Numbers of the switches' ports at its ends; 0 at a host.
    pub(crate) ports: [u32; 2],
}

/// What a packet comes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hop {
    /// A line, by its number.
    Line(usize),
    /// A switch, by its place in the file.
    Switch(usize),
    /// What a virtual switch has of an output.
    Output(Output),
}

/// Lines, and which of them leads from which switch to which.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) lines: Vec<Line>,
    /// By switch: line and switch at its end.
    next: Vec<Vec<(usize, usize)>>,
    hosts: usize,
}

impl Graph {
    /// Of each host two lines, to its switch and from it; then two of each link.
    pub(crate) fn of(scenario: &Scenario) -> Graph {
        let line = |from: &str, to: &str, spec, ports| Line { name: format!("{from} -> {to}"), spec, ports };
        let switch = |at: usize| scenario.switches[at].name.as_str();
        let mut lines = Vec::new();
        for host in &scenario.hosts {
            lines.push(line(&host.name, switch(host.switch), host.link, [0, host.port]));
            lines.push(line(switch(host.switch), &host.name, host.link, [host.port, 0]));
        }
        let mut next = vec![Vec::new(); scenario.switches.len()];
        for (link, used) in scenario.links.iter().zip(scenario.used_links()) {
            let [a, b] = link.ends;
            for (from, to) in [(a, b), (b, a)] {
                if used {
                    next[from.switch].push((lines.len(), to.switch));
                }
                lines.push(line(switch(from.switch), switch(to.switch), link.spec, [from.port, to.port]));
            }
        }
        Graph { lines, next, hosts: scenario.hosts.len() }
    }

    /// The way over the fewest links, the first in the file if there are several; none if there is none.
    pub(crate) fn route(&self, scenario: &Scenario, from: usize, to: usize) -> Option<Vec<Hop>> {
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
        let mut back = vec![Hop::Line(self.down(to)), Hop::Switch(end)];
        let mut at = end;
        while let Some((line, before)) = came[at].filter(|_| at != start) {
            back.extend([Hop::Line(line), Hop::Switch(before)]);
            at = before;
        }
        back.push(Hop::Line(self.up(from)));
        back.reverse();
        Some(back)
    }

    fn up(&self, host: usize) -> usize {
        debug_assert!(host < self.hosts);
        2 * host
    }

    /// Whether a line leads to a host.
    pub(crate) fn is_down(&self, line: usize) -> bool {
        line < 2 * self.hosts && line % 2 == 1
    }

    fn down(&self, host: usize) -> usize {
        2 * host + 1
    }
}
