//! Metrics of the controller of a network: what it has, its intents and events, and the requests to its interface.
use crate::family::{FamilyList, MetricFamily};
use std::collections::BTreeMap;
use weir_routing::state::NetworkSummary;

/// Outcomes of probes of links, by the name of their counter.
const PROBES: [(&str, &str); 6] = [
    ("sent", "discovery_sent"),
    ("received", "discovery_received"),
    ("forged", "discovery_forged"),
    ("replayed", "discovery_replayed"),
    ("contradicted", "discovery_contradicted"),
    ("unknown port", "discovery_unknown_port"),
];
/// Outcomes of packets of hosts at the controller, by the name of their counter.
const PACKETS: [(&str, &str); 6] = [
    ("received", "packets_received"),
    ("source refused", "packets_dropped_source_refused"),
    ("source checked", "packets_dropped_source_checked"),
    ("truncated", "packets_dropped_truncated"),
    ("confirmation of an intent", "packets_of_intents"),
    ("taken by an application", "packets_taken_by_applications"),
];

/// Returns the metrics of a network, and of the requests to its interface by HTTP status.
pub fn families(network: &NetworkSummary, requests: &BTreeMap<u16, u64>) -> Vec<MetricFamily> {
    let mut list = FamilyList::new(Vec::new());
    list.gauge("weir_network_switches", "Switches that are connected", &[], network.switches);
    for (state, count) in [("up", network.ports_up), ("down", network.ports_down)] {
        list.gauge("weir_network_ports", "Ports of these switches", &[("state", state)], count);
    }
    let steady = network.links_up.saturating_sub(network.links_damped);
    for (state, count) in [("up", steady), ("damped", network.links_damped), ("down", network.links_down)] {
        list.gauge("weir_network_links", "Links between switches", &[("state", state)], count);
    }
    list.gauge("weir_network_hosts", "Hosts that are known", &[], network.hosts);
    for (state, count) in &network.intents {
        list.gauge("weir_network_intents", "Intents", &[("state", state)], *count);
    }
    for (kind, count) in &network.events {
        list.counter("weir_network_events", "Events of the network", &[("kind", kind)], *count);
    }
    list.counter("weir_network_alarms", "Events that the operator should look at", &[], network.alarms);
    let outcomes = [
        ("weir_network_probes", "Probes of links", &PROBES),
        ("weir_network_packets", "Packets of hosts at the controller", &PACKETS),
    ];
    for (name, help, counters) in outcomes {
        for (outcome, counter) in counters {
            let count = network.counters.get(*counter).copied().unwrap_or_default();
            list.counter(name, help, &[("outcome", outcome)], count);
        }
    }
    for (status, count) in requests {
        let help = "Requests to the interface of the network, by HTTP status";
        list.counter("weir_api_requests", help, &[("status", &status.to_string())], *count);
    }
    list.done()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode;

    fn named<const N: usize>(counts: [(&str, u64); N]) -> BTreeMap<String, u64> {
        counts.map(|(name, count)| (name.to_owned(), count)).into()
    }

    #[test]
    fn a_network_is_told_by_state_kind_and_outcome() {
        let network = NetworkSummary {
            switches: 3,
            ports_up: 9,
            ports_down: 2,
            links_up: 4,
            links_damped: 1,
            links_down: 5,
            hosts: 6,
            intents: named([("installed", 7), ("failed", 0)]),
            events: named([("link-down", 8)]),
            alarms: 1,
            counters: named([("discovery_sent", 100), ("discovery_forged", 2), ("packets_received", 50)]),
        };
        let text = encode(families(&network, &[(200, 12), (429, 3)].into()));
        for sample in [
            "weir_network_switches 3",
            "weir_network_ports{state=\"up\"} 9",
            "weir_network_ports{state=\"down\"} 2",
            "weir_network_links{state=\"up\"} 3",
            "weir_network_links{state=\"damped\"} 1",
            "weir_network_links{state=\"down\"} 5",
            "weir_network_hosts 6",
            "weir_network_intents{state=\"installed\"} 7",
            "weir_network_intents{state=\"failed\"} 0",
            "weir_network_events_total{kind=\"link-down\"} 8",
            "weir_network_alarms_total 1",
            "weir_network_probes_total{outcome=\"sent\"} 100",
            "weir_network_probes_total{outcome=\"forged\"} 2",
            "weir_network_probes_total{outcome=\"replayed\"} 0",
            "weir_network_packets_total{outcome=\"received\"} 50",
            "weir_api_requests_total{status=\"200\"} 12",
            "weir_api_requests_total{status=\"429\"} 3",
        ] {
            assert!(text.lines().any(|line| line == sample), "no {sample} in:\n{text}");
        }
    }

    #[test]
    fn all_counters_that_are_told_exist() {
        let network = weir_routing::NetworkController::new(weir_routing::NetworkConfig::default(), Vec::new());
        let summary = network.summary();
        for (_, counter) in PROBES.iter().chain(&PACKETS) {
            assert!(summary.counters.contains_key(*counter), "no {counter} in {:?}", summary.counters);
        }
    }
}
