//! Monitor: loads of links, and elephant flows.
//!
//! Every [`MonitorConfig::interval`] each switch with links is asked for the statistics of its ports. The load of a
//! link's direction is the rate of the bytes that the port at its beginning has sent, with the time as the switch
//! counts it. Loads are smoothed: an exponentially weighted mean, in which a new measurement has
//! [`MonitorConfig::weight`]. At the default of one half, a load that jumps is known to 94 % after four measurements.
//!
//! Every [`MonitorConfig::flow_interval`] each switch is asked for the entries of its forwarding table. An entry that
//! carries [`MonitorConfig::elephant_rate`] is an elephant flow. A flow is what an entry is about: with the default
//! routes, all packets to one host. The events `elephant` and `elephant-over` tell of its beginning and end, once for
//! the whole network.
//!
//! A switch that has not answered yet is not asked again, for [`PATIENCE`] intervals, so that a busy switch has no
//! requests waiting.
mod config;
mod elephants;
mod rates;

pub use config::{INTERVALS, MonitorConfig};
pub use elephants::{MAX_ELEPHANTS, MAX_FLOWS};

use crate::app::{FORWARDING_TABLE, Network, NetworkApp, NetworkEvent};
use crate::map::SwitchPort;
use elephants::{ElephantEvent, Elephants};
use rates::{ByteReading, bps, smoothed};
use std::collections::{BTreeMap, BTreeSet};
use weir_openflow::model::multipart::{FlowRequest, ReplyBody, RequestBody};
use weir_openflow::model::{PortNo, TableId};
use weir_units::Instant;

/// Intervals after which a switch that has not answered is asked again.
pub const PATIENCE: u32 = 10;
/// Most links' directions whose load is followed.
pub const MAX_LINKS: usize = 16_384;

/// The application.
#[derive(Debug)]
pub struct Monitor {
    config: MonitorConfig,
    links: BTreeMap<SwitchPort, FollowedLink>,
    elephants: Elephants,
    ports: StatisticsRequests,
    flows: StatisticsRequests,
    counters: MonitorCounters,
}

#[derive(Debug)]
struct FollowedLink {
    reading: ByteReading,
    load: Option<f64>,
}

/// Requests for one kind of statistics.
#[derive(Debug, Default)]
struct StatisticsRequests {
    next: Option<Instant>,
    /// Intervals for which switches have not answered.
    waiting: BTreeMap<u64, u32>,
}

#[derive(Debug, Default)]
struct MonitorCounters {
    requests: u64,
    not_asked: u64,
    measured: u64,
    links_full: u64,
}

impl Monitor {
    /// Returns a monitor that has measured nothing.
    ///
    /// # Errors
    /// Fails for the reasons of [`MonitorConfig::check`].
    pub fn new(config: MonitorConfig) -> Result<Monitor, String> {
        config.check()?;
        Ok(Monitor {
            config,
            links: BTreeMap::new(),
            elephants: Elephants::default(),
            ports: StatisticsRequests::default(),
            flows: StatisticsRequests::default(),
            counters: MonitorCounters::default(),
        })
    }

    /// Takes the statistics of a port with a link.
    fn note_port(&mut self, from: SwitchPort, reading: ByteReading, network: &mut dyn Network) {
        let is_full = self.links.len() >= MAX_LINKS;
        let Some(link) = self.links.get_mut(&from) else {
            if is_full {
                self.counters.links_full += 1;
            } else {
                self.links.insert(from, FollowedLink { reading, load: None });
            }
            return;
        };
        let measured = reading.since(&link.reading).map(bps);
        link.reading = reading;
        if let Some(measured) = measured {
            let load = smoothed(link.load, measured, self.config.weight);
            link.load = Some(load);
            self.counters.measured += 1;
            network.set_load(from, load);
        }
    }

    fn tell(&self, event: ElephantEvent, network: &mut dyn Network) {
        match event {
            ElephantEvent::Begins { dpid, flow, rate } => {
                network.report("elephant", format!("flow {flow} carries {rate} at switch {dpid:x}"), false);
            }
            ElephantEvent::Ends { flow } => {
                network.report("elephant-over", format!("flow {flow} carries little"), false)
            }
        }
    }

    /// Asks switches for a kind of statistics, except those that have not answered yet.
    fn ask(
        times: &mut StatisticsRequests,
        counters: &mut MonitorCounters,
        switches: BTreeSet<u64>,
        request: &RequestBody,
        network: &mut dyn Network,
    ) {
        times.waiting.retain(|dpid, _| switches.contains(dpid));
        for dpid in switches {
            let waited = times.waiting.entry(dpid).or_insert(0);
            if *waited > 0 && *waited < PATIENCE {
                *waited += 1;
                counters.not_asked += 1;
                continue;
            }
            *waited = 1;
            counters.requests += 1;
            network.ask(dpid, request.clone());
        }
    }

    fn ask_for_ports(&mut self, network: &mut dyn Network) {
        self.ports.next = Some(network.now() + self.config.interval.0);
        let with_links: BTreeSet<u64> = network.map().links().keys().map(|from| from.dpid).collect();
        Monitor::ask(&mut self.ports, &mut self.counters, with_links, &RequestBody::PortStats(PortNo::ANY), network);
    }

    fn ask_for_flows(&mut self, network: &mut dyn Network) {
        self.flows.next = Some(network.now() + self.config.flow_interval.0);
        for event in self.elephants.begin_round() {
            self.tell(event, network);
        }
        let request = FlowRequest { table: TableId(FORWARDING_TABLE), ..FlowRequest::all() };
        let all = network.map().switches().keys().copied().collect();
        Monitor::ask(&mut self.flows, &mut self.counters, all, &RequestBody::Flow(request), network);
    }
}

impl NetworkApp for Monitor {
    fn name(&self) -> &'static str {
        "monitor"
    }

    fn handle_event(&mut self, event: &NetworkEvent, network: &mut dyn Network) {
        match event {
            NetworkEvent::SwitchUp { dpid } => {
                // Requests of the former connection are lost.
                self.ports.waiting.remove(dpid);
                self.flows.waiting.remove(dpid);
                self.ports.next.get_or_insert(network.now() + self.config.interval.0);
                self.flows.next.get_or_insert(network.now() + self.config.flow_interval.0);
            }
            NetworkEvent::LinkDown { ends } => ends.iter().for_each(|end| _ = self.links.remove(end)),
            NetworkEvent::SwitchDown { dpid } => self.links.retain(|from, _| from.dpid != *dpid),
            _ => {}
        }
    }

    fn handle_reply(&mut self, dpid: u64, reply: &ReplyBody, network: &mut dyn Network) {
        let now = network.now();
        match reply {
            ReplyBody::PortStats(ports) => {
                self.ports.waiting.remove(&dpid);
                for stats in ports {
                    let from = SwitchPort::new(dpid, stats.port_no);
                    let reading = ByteReading::new(stats.tx_bytes, (stats.duration_sec, stats.duration_nsec), now);
                    if let Some(reading) = reading.filter(|_| network.map().is_trunk(from)) {
                        self.note_port(from, reading, network);
                    }
                }
            }
            ReplyBody::Flow(flows) => {
                // Other applications ask for the entries of other tables.
                if flows.iter().any(|stats| stats.table != TableId(FORWARDING_TABLE)) {
                    return;
                }
                self.flows.waiting.remove(&dpid);
                for stats in flows {
                    if let Some(event) = self.elephants.note(dpid, stats, self.config.elephant_rate, now) {
                        self.tell(event, network);
                    }
                }
            }
            _ => {}
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        [self.ports.next, self.flows.next].into_iter().flatten().min()
    }

    fn handle_wake(&mut self, network: &mut dyn Network) {
        let is_due = |next: Option<Instant>, network: &dyn Network| next.is_some_and(|next| next <= network.now());
        if is_due(self.ports.next, network) {
            self.ask_for_ports(network);
        }
        if is_due(self.flows.next, network) {
            self.ask_for_flows(network);
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("requests", self.counters.requests),
            ("not_asked", self.counters.not_asked),
            ("measurements", self.counters.measured),
            ("links_full", self.counters.links_full),
            ("flows", self.elephants.followed()),
            ("elephants", self.elephants.len()),
            ("flows_full", self.elephants.full),
        ]
    }
}

#[cfg(test)]
mod tests;
