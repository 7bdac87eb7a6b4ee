//! Answers the interface's requests.
use super::NetworkController;
use crate::map::SwitchPort;
use crate::paths::MapGraph;
use crate::request::{ErrorKind, NetworkReply, NetworkRequest, PathState};
use crate::state::NetworkState;
use std::time::Duration;
use weir_packet::MacAddr;
use weir_topology::paths::MAX_PATHS;
use weir_units::Instant;

/// Most events of one reply.
const MAX_EVENTS_AT_ONCE: usize = 1024;

/// Request that cannot be carried out, and why.
struct RefusedRequest(ErrorKind, String);

impl From<RefusedRequest> for NetworkReply {
    fn from(RefusedRequest(kind, message): RefusedRequest) -> NetworkReply {
        NetworkReply::Error { kind, message }
    }
}

impl NetworkController {
    /// Handles a request in JSON. Returns the reply in JSON; `None` if it is no JSON object.
    pub(super) fn handle_request(&mut self, text: &str) -> Option<String> {
        if !text.trim_start().starts_with('{') {
            return None;
        }
        let reply = match serde_json::from_str(text) {
            Ok(request) => self.answer(request),
            Err(error) => NetworkReply::Error { kind: ErrorKind::Invalid, message: error.to_string() },
        };
        serde_json::to_string(&reply).ok()
    }

    fn answer(&mut self, request: NetworkRequest) -> NetworkReply {
        match request {
            NetworkRequest::Show => NetworkReply::State(self.state()),
            NetworkRequest::Summary => NetworkReply::Summary(self.summary()),
            NetworkRequest::Topology => self.topology(),
            NetworkRequest::Paths { from, to, most } => self.paths(&from, &to, most).unwrap_or_else(NetworkReply::from),
            NetworkRequest::Events { after, most } => {
                NetworkReply::Events { events: self.core.log.after(after, most.min(MAX_EVENTS_AT_ONCE)) }
            }
            NetworkRequest::Intent { key } => {
                let found = self.intents.status(&key, &self.core.map);
                found.map_or_else(|| no_intent(&key), NetworkReply::Intent)
            }
            NetworkRequest::SetIntent { intent } => {
                self.prepare_intents();
                let result = self.intents.set(self.core.now, intent, &self.core.map);
                super::intents::answer(result, NetworkReply::Intent)
            }
            NetworkRequest::RemoveIntent { key } => {
                let result = self.intents.remove(&key);
                super::intents::answer(result, |()| NetworkReply::Removed)
            }
            NetworkRequest::SetIntents { intents } => {
                self.prepare_intents();
                let (batch, results) = self.intents.set_all(self.core.now, intents, &self.core.map);
                let answers = results.into_iter().map(super::intents::answer_of).collect();
                NetworkReply::Intents { batch, answers }
            }
            NetworkRequest::RemoveIntents { keys } => {
                let keys = keys.unwrap_or_else(|| self.intents.keys());
                let (batch, results) = self.intents.remove_all(keys);
                let answers = results.into_iter().map(super::intents::answer_of).collect();
                NetworkReply::Intents { batch, answers }
            }
            NetworkRequest::IntentBatch { batch, states } => match self.intents.batch(batch, states) {
                Some((left, others)) => NetworkReply::IntentBatch { left, others },
                None => NetworkReply::Error {
                    kind: ErrorKind::NotFound,
                    message: format!("found batch {batch}, expected one of the latest batches of intents"),
                },
            },
            NetworkRequest::WhatIf { case } => {
                self.prepare_intents();
                let result = self.intents.what_if(&self.core.map, &case);
                super::intents::answer(result, NetworkReply::WhatIf)
            }
        }
    }

    /// Returns the state of the network for display.
    pub fn state(&mut self) -> NetworkState {
        self.note_delays();
        let mut links = self.core.map.link_states();
        let reserved = self.intents.reserved();
        for link in &mut links {
            let load = |from| self.core.loads.get(&from).copied();
            link.load_bps = load(link.from).zip(load(link.to)).map(|(there, back)| [there, back]);
            let of = |from| reserved.get(&from).copied();
            let [there, back] = [link.from, link.to].map(of);
            link.reserved_bps =
                (there.is_some() || back.is_some()).then(|| [there, back].map(Option::unwrap_or_default));
        }
        let all = self.applications_with_counters().into_iter().flat_map(|(_, counters)| counters);
        NetworkState {
            time_s: self.core.now.since(Instant::ZERO).as_secs_f64(),
            last_event: self.core.log.last(),
            switches: self.core.map.switch_states(),
            links,
            hosts: self.core.map.host_states(self.core.now),
            intents: self.intents.statuses(&self.core.map),
            counters: all.map(|(name, count)| (name.to_owned(), count)).collect(),
        }
    }

    /// Gives intents what was measured last.
    fn prepare_intents(&mut self) {
        self.note_delays();
        self.intents.set_loads(&self.core.loads);
    }

    /// Notes the delays of links as they were measured last.
    pub(super) fn note_delays(&mut self) {
        for link in self.prober.links().filter(|link| !link.indirect) {
            let ends = link.ends.map(|(dpid, port)| SwitchPort::new(dpid, port));
            for end in ends {
                if let Some(known) = self.core.map.links.get_mut(&end) {
                    known.delay = link.delay;
                }
            }
        }
    }

    /// Returns switches and links as a topology.
    fn topology(&mut self) -> NetworkReply {
        self.note_delays();
        let text = weir_topology::write_node_link(&crate::topology_of(&self.core.map));
        match serde_json::from_str(&text) {
            Ok(network) => NetworkReply::Topology { network },
            Err(error) => NetworkReply::Error { kind: ErrorKind::Invalid, message: error.to_string() },
        }
    }

    fn paths(&self, from: &str, to: &str, most: usize) -> Result<NetworkReply, RefusedRequest> {
        let (from, to) = (self.end(from)?, self.end(to)?);
        let map = &self.core.map;
        let ways = MapGraph::of(map).map(|graph| graph.ways(from.dpid, to.dpid, most.clamp(1, MAX_PATHS)));
        let paths: Vec<_> = ways.unwrap_or_default().iter().filter_map(|way| self.path_state(from, way, to)).collect();
        if paths.is_empty() {
            return Err(RefusedRequest(ErrorKind::Refused, format!("no way leads from {from} to {to}")));
        }
        Ok(NetworkReply::Paths { paths })
    }

    /// Returns a way for display, by the ports at which its links begin.
    fn path_state(&self, from: SwitchPort, way: &[SwitchPort], to: SwitchPort) -> Option<PathState> {
        let map = &self.core.map;
        let delay = way.iter().map(|port| map.links().get(port).and_then(|link| link.delay)).sum::<Option<Duration>>();
        let next = way.iter().skip(1).chain([&to]).map(|next| next.dpid);
        let far = way.iter().zip(next).map(|(port, dpid)| map.far_end(*port, dpid)).collect::<Option<Vec<_>>>()?;
        let between = way.iter().zip(far).flat_map(|(port, far)| [*port, far]);
        let ports: Vec<_> = [from].into_iter().chain(between).chain([to]).collect();
        // Ports into switches and out of them alternate.
        let out = ports.iter().skip(1).step_by(2);
        let free = out.map(|port| self.intents.free(*port, &self.core.map)).collect::<Option<Vec<_>>>();
        let delay_us = delay.map(|delay| delay.as_secs_f64() * 1e6);
        Some(PathState { ports, delay_us, free_bps: free.and_then(|free| free.into_iter().min()) })
    }

    /// Returns the port that a text names: a port, or that of a host by Ethernet address, IP address or name.
    fn end(&self, text: &str) -> Result<SwitchPort, RefusedRequest> {
        let map = &self.core.map;
        let by_mac = text.parse::<MacAddr>().ok().and_then(|mac| map.hosts().get(&mac));
        let by_ip = || text.parse().ok().and_then(|ip| map.host_of_ip(ip));
        let by_name = || map.hosts().values().find(|host| host.name.as_deref() == Some(text));
        let host = by_mac.or_else(by_ip).or_else(by_name).map(|host| host.at);
        let port = || text.parse().ok().filter(|at| map.is_up(*at));
        host.or_else(port).ok_or_else(|| RefusedRequest(ErrorKind::NotFound, self.why_no_end(text)))
    }

    /// Returns why a text names no host that is known and no port that is up.
    fn why_no_end(&self, text: &str) -> String {
        let Ok(SwitchPort { dpid, port }) = text.parse() else {
            let known = self.core.map.hosts().len();
            let hosts = weir_units::counted(known, "host is", "hosts are");
            return format!(
                "no host `{text}` is known; {hosts} known, each since its first packet; expected a host (Ethernet \
                 address, IP address or name) or a port (DPID:PORT)"
            );
        };
        match self.core.map.switches().get(&dpid) {
            None => format!("port {text}: switch {dpid:x} is not connected"),
            Some(switch) if switch.ports.contains_key(&port) => format!("port {text} is down"),
            Some(_) => format!("port {text}: switch {dpid:x} has no port {port}"),
        }
    }
}

/// Returns the reply to a request about an intent that is not there.
fn no_intent(key: &str) -> NetworkReply {
    NetworkReply::Error { kind: ErrorKind::NotFound, message: format!("there is no intent with the key `{key}`") }
}
