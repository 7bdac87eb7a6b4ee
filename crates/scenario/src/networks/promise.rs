//! Promises of virtual networks to the traffic of a scenario: rate, delay, and whether the traffic is in profile.
use super::ScenarioNetwork;
use crate::{Scenario, TrafficItem, TrafficKind};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_traffic::{ArrivalProcess, OfferedPackets};
use weir_units::Bps;

/// Longest frame of hosts, in bytes.
const LONGEST_FRAME: u64 = 1514;

/// Promise of a virtual network to an item of traffic between two of its hosts.
#[derive(Debug, Clone, PartialEq)]
pub struct TrafficPromise {
    /// Index of the item in the scenario's traffic.
    pub item: usize,
    /// Name of the network.
    pub network: String,
    /// Names of the links that the packets pass.
    pub links: Vec<String>,
    /// Guaranteed rate: the least of these links.
    pub guaranteed: Bps,
    /// Delay that was asked for, of all links together; `None` if one of them has no promise.
    pub promised: Option<Duration>,
    /// Longest delay of packets in profile, from the first switch on; `None` if one of the links guarantees no rate.
    pub bound: Option<Duration>,
    /// Time that the line from the sending host to its switch adds to the bound.
    pub access: Duration,
    /// Reason why the item is out of profile, so that nothing is promised to its packets; `None` if it is in profile.
    pub out_of_profile: Option<String>,
}

/// Traffic that passes a link in one direction.
#[derive(Debug, Clone, Default)]
struct OfferedLoad {
    bits_per_s: f64,
    /// Bytes of one packet of each item: what may come at once of constant arrivals.
    burst: f64,
    /// First reason why it is not bounded.
    unbounded: Option<String>,
}

/// Returns the promises to the traffic of a scenario, in its order. Pings have none: their packets pass in both
/// directions, and their rate is small.
pub fn promises(scenario: &Scenario) -> Vec<TrafficPromise> {
    let mut ways = Vec::new();
    let mut loads: BTreeMap<(&str, usize, usize), OfferedLoad> = BTreeMap::new();
    for (number, item) in scenario.traffic.iter().enumerate() {
        let [from, to] = [item.from, item.to].map(|host| scenario.hosts[host].name.as_str());
        let found = scenario.networks.iter().find_map(|network| Some((network, network.links_between(from, to)?)));
        let Some((network, links)) = found else { continue };
        for (link, way) in &links {
            add(loads.entry((network.name(), *link, *way)).or_default(), item, from, to);
        }
        if !matches!(item.kind, TrafficKind::Ping { .. }) {
            ways.push((number, network, links));
        }
    }
    let promise = |(item, network, links): (usize, &ScenarioNetwork, Vec<(usize, usize)>)| {
        let designed = &network.held.design.links;
        let promised = links.iter().map(|(link, _)| designed[*link].promise.map(|promise| promise.bound.0)).sum();
        let reason = links.iter().find_map(|(link, way)| {
            excess(&designed[*link].name, &designed[*link].directions[*way], &loads[&(network.name(), *link, *way)])
        });
        TrafficPromise {
            item,
            network: network.name().to_owned(),
            links: links.iter().map(|(link, _)| designed[*link].name.clone()).collect(),
            guaranteed: network.guaranteed_over(&links),
            promised,
            bound: network.delay_over(&links),
            access: access(scenario, &scenario.traffic[item]),
            out_of_profile: reason,
        }
    };
    ways.into_iter().map(promise).collect()
}

/// Returns the time of a longest frame on the line from an item's sender to its switch.
fn access(scenario: &Scenario, item: &TrafficItem) -> Duration {
    let line = &scenario.hosts[item.from].link;
    line.delay + line.rate.map_or(Duration::ZERO, |rate| rate.time_of(LONGEST_FRAME))
}

fn add(load: &mut OfferedLoad, item: &TrafficItem, from: &str, to: &str) {
    let unbounded = match &item.kind {
        TrafficKind::Tcp { .. } => Some(format!("TCP from {from} to {to} sends as fast as it can")),
        // Pings are short, and few.
        TrafficKind::Ping { .. } => None,
        TrafficKind::Udp { offered, .. } => {
            load.bits_per_s += 8.0 * offered.per_second() * offered.mean_bytes().unwrap_or(f64::INFINITY);
            load.burst += offered.longest().ok().flatten().map_or(f64::INFINITY, f64::from);
            let is_constant = matches!(offered, OfferedPackets::Rule { arrival: ArrivalProcess::Constant, .. });
            (!is_constant)
                .then(|| format!("UDP from {from} to {to} has no constant gaps, so that bursts have no limit"))
        }
    };
    load.unbounded = load.unbounded.take().or(unbounded);
}

/// Returns why the load of a link is out of profile.
fn excess(link: &str, direction: &weir_vnet::service::DesignedDirection, load: &OfferedLoad) -> Option<String> {
    if let Some(reason) = &load.unbounded {
        return Some(format!("link {link}: {reason}"));
    }
    let guaranteed = direction.bandwidth.minimum();
    if load.bits_per_s > guaranteed.0 as f64 * (1.0 + 1e-9) {
        let offered = Bps(whole(load.bits_per_s));
        return Some(format!("link {link}: {offered} are offered, {guaranteed} are guaranteed"));
    }
    let burst = direction.burst;
    (load.burst > burst.0 as f64)
        .then(|| format!("link {link}: {} bytes may come at once, and {burst} are in profile", whole(load.burst)))
}

/// Returns a figure without its fraction, for messages.
fn whole(figure: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
    let whole = figure as u64;
    whole
}
