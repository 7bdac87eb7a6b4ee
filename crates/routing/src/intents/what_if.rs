//! Thinks cases through: what an intent or a failure would do, on copies of intents and map.
use super::config::MOST_COMPILED;
use super::error::IntentError;
use super::graph::KeptGraph;
use super::lanes::Lane;
use super::search::Links;
use super::spec::{IntentState, IntentStatus, WhatIf, WhatIfAnswer};
use super::store::IntentStore;
use super::way::{DirectedLink, link};
use crate::map::{NetworkMap, SwitchPort, parse_dpid};
use std::collections::{BTreeMap, BTreeSet};
use weir_packet::MacAddr;
use weir_units::Instant;

impl IntentStore {
    /// Returns the effect of a case. Nothing is changed.
    ///
    /// Intents are in the state that they would reach if switches accept everything. Hosts are cut off if they could
    /// reach the largest part of the hosts before and cannot then. The measured load of a link that fails is put on the
    /// shortest way around it.
    ///
    /// # Errors
    /// The case names a link, switch or intent that is malformed or not there.
    pub fn what_if(&self, map: &NetworkMap, case: &WhatIf) -> Result<WhatIfAnswer, IntentError> {
        let now = Instant::ZERO;
        let mut store = self.clone();
        store.compile_all(now, map);
        let before = store.settled(map);
        let mut after_map = map.clone();
        match case {
            WhatIf::Intent { intent } => drop(store.set(now, intent.clone(), map)?),
            WhatIf::LinkFails { at } => {
                let to = map.links().get(at).map(|link| link.to);
                let expected = "a port (DPID:PORT) at which a link begins";
                let to = to.ok_or_else(|| IntentError::invalid("at", format!("`{at}`"), expected))?;
                store.shift_load([*at, to], map);
                remove_link(&mut after_map, [*at, to]);
            }
            WhatIf::SwitchFails { dpid } => {
                let number = parse_dpid(dpid).filter(|dpid| map.switches().contains_key(dpid));
                let expected = "the datapath id of a connected switch in hexadecimal";
                let number = number.ok_or_else(|| IntentError::invalid("dpid", format!("`{dpid}`"), expected))?;
                remove_switch(&mut after_map, number);
            }
        }
        store.handle_network_change(now, &after_map);
        store.compile_all(now, &after_map);
        let after = store.settled(&after_map);
        let changed = |(key, status): (String, IntentStatus)| (before.get(&key) != Some(&status)).then_some(status);
        Ok(WhatIfAnswer {
            intents: after.into_iter().filter_map(changed).collect(),
            cut_off: cut_off(map, &after_map).iter().map(ToString::to_string).collect(),
            overloaded: store.overloaded(&after_map),
        })
    }

    /// Compiles all intents that wait for it.
    fn compile_all(&mut self, now: Instant, map: &NetworkMap) {
        for _ in 0..=self.intents.len() / MOST_COMPILED {
            self.compile_queue(now, map);
        }
    }

    /// Returns the states that intents reach if switches accept everything.
    fn settled(&self, map: &NetworkMap) -> BTreeMap<String, IntentStatus> {
        let settle = |mut status: IntentStatus| {
            let is_on_its_way = matches!(status.state, IntentState::Submitted | IntentState::Compiling);
            if is_on_its_way {
                let intent = self.keys.get(&status.intent.key).and_then(|number| self.intents.get(number));
                let lacks = intent.and_then(super::intent::Intent::shortcoming);
                let state = if lacks.is_some() { IntentState::Degraded } else { IntentState::Installed };
                (status.state, status.reason) = (state, lacks.unwrap_or_default());
            }
            // What others reserve changes it, but not the intent.
            status.paths.iter_mut().for_each(|path| path.free_bps = None);
            (status.intent.key.clone(), status)
        };
        self.statuses(map).into_iter().map(settle).collect()
    }

    /// Puts the measured load of a link that fails on the shortest way around it.
    fn shift_load(&mut self, ends: [SwitchPort; 2], map: &NetworkMap) {
        let [one, other] = ends;
        let others = |link: &DirectedLink| !ends.contains(&link[0]);
        let mut graph = KeptGraph::default();
        graph.refresh(map, &self.config);
        for [from, to] in [[one, other], [other, one]] {
            let Some(load) = self.loads.remove(&from) else { continue };
            let links = Links { graph: &graph, allowed: &others, all: false };
            let around = links.shortest(from.dpid, to.dpid).unwrap_or_default();
            for [out, _] in around {
                *self.loads.entry(out).or_default() += load;
            }
        }
    }

    /// Returns the sending ports of links whose reserved or measured load exceeds their rate.
    fn overloaded(&self, map: &NetworkMap) -> Vec<SwitchPort> {
        let exceeds = |from: &SwitchPort| {
            let lane = Lane::From(*from);
            let rate = lane.rate(map, self.config.assumed_rate)? as f64;
            let load = self.loads.get(from).copied().unwrap_or(0.0).max(self.reserved.of(lane) as f64);
            (load > rate).then_some(*from)
        };
        map.links().keys().filter_map(exceeds).collect()
    }
}

fn remove_link(map: &mut NetworkMap, ends: [SwitchPort; 2]) {
    for end in ends {
        map.links.remove(&end);
    }
    map.version += 1;
}

fn remove_switch(map: &mut NetworkMap, dpid: u64) {
    map.switches.remove(&dpid);
    map.links.retain(|from, link| from.dpid != dpid && link.to.dpid != dpid);
    map.hosts.retain(|_, host| host.at.dpid != dpid);
    map.version += 1;
}

/// Returns the hosts that are not in the largest part of the hosts after a failure, but were before.
fn cut_off(before: &NetworkMap, after: &NetworkMap) -> BTreeSet<MacAddr> {
    let (was, is) = (largest_part(before), largest_part(after));
    was.difference(&is).copied().collect()
}

/// Returns the hosts of the part of a network that has most of them; of equal parts the one with the least address.
fn largest_part(map: &NetworkMap) -> BTreeSet<MacAddr> {
    let mut largest = BTreeSet::new();
    let mut seen = BTreeSet::new();
    for host in map.hosts().values() {
        if seen.contains(&host.at.dpid) || !map.switches().contains_key(&host.at.dpid) {
            continue;
        }
        let part = reached(map, host.at.dpid);
        let hosts = map.hosts().values().filter(|host| part.contains(&host.at.dpid)).map(|host| host.mac);
        let hosts: BTreeSet<MacAddr> = hosts.collect();
        if hosts.len() > largest.len() {
            largest = hosts;
        }
        seen.extend(part);
    }
    largest
}

/// Returns the switches that packets reach from one.
fn reached(map: &NetworkMap, from: u64) -> BTreeSet<u64> {
    let (mut reached, mut next) = (BTreeSet::from([from]), vec![from]);
    while let Some(dpid) = next.pop() {
        let ports = map.switches().get(&dpid).into_iter().flat_map(|switch| switch.ports.keys());
        let ports = ports.map(|port| SwitchPort::new(dpid, *port));
        let next_to = |at| link(map, at).map(|link| link.to).into_iter().chain(map.over_island(at));
        for to in ports.flat_map(next_to).map(|at| at.dpid) {
            if reached.insert(to) {
                next.push(to);
            }
        }
    }
    reached
}
