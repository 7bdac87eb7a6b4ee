//! `weir net --csv`: formats answers of a controller as CSV, with the names that `--json` has.
use crate::commands::csv::{CsvRows, kinds};
use serde_json::{Value, json};

const PORTS: &[&str] = &["dpid", "number", "name", "up", "rate_kbps"];
const LINKS: &[&str] = &[
    "from",
    "to",
    "delay_us",
    "damped",
    "load_bps",
    "load_back_bps",
    "reserved_bps",
    "reserved_back_bps",
    "indirect",
    "blocked",
];
const HOSTS: &[&str] = &["mac", "at", "ips", "name", "seen_s"];
const PATHS: &[&str] = &["path", "ports", "delay_us", "free_bps"];
const INTENTS: &[&str] = &[
    "key",
    "kind",
    "from",
    "to",
    "traffic",
    "bandwidth=constraints.bandwidth",
    "delay=constraints.delay.most",
    "waypoints=constraints.waypoints",
    "avoid=constraints.avoid",
    "priority=constraints.priority",
    "protected=constraints.protected",
    "state",
    "reason",
    "expected_delay_us",
    "confirmed",
];
const OUTCOMES: &[&str] = &["key", "state", "reason", "problem=problem.detail"];
const COUNTERS: &[&str] = &["counter", "count"];
const CUT_OFF: &[&str] = &["mac"];
const OVERLOADED: &[&str] = &["link"];

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn table(kind: &'static str, columns: &'static [&'static str], rows: Vec<Value>) -> CsvRows {
    CsvRows { kind, columns, rows }
}

pub(super) fn network(network: &Value) -> String {
    let counters = network["counters"].as_object().into_iter().flatten();
    let counters = counters.map(|(name, count)| json!({"counter": name, "count": count})).collect();
    kinds(&[
        table("port", PORTS, all_ports(&network["switches"])),
        table("link", LINKS, all_links(&network["links"])),
        table("host", HOSTS, list(&network["hosts"])),
        table("intent", INTENTS, list(&network["intents"])),
        table("counter", COUNTERS, counters),
    ])
}

pub(super) fn ports(switches: &Value) -> String {
    table("", PORTS, all_ports(switches)).table()
}

/// Returns the ports of all switches, each with its switch.
fn all_ports(switches: &Value) -> Vec<Value> {
    let of = |switch: Value| {
        let dpid = switch["dpid"].clone();
        list(&switch["ports"]).into_iter().map(move |mut port| {
            port["dpid"] = dpid.clone();
            port
        })
    };
    list(switches).into_iter().flat_map(of).collect()
}

pub(super) fn links(links: &Value) -> String {
    table("", LINKS, all_links(links)).table()
}

/// Returns the links, with a column for each direction.
fn all_links(links: &Value) -> Vec<Value> {
    let each = |mut link: Value| {
        for (pair, back) in [("load_bps", "load_back_bps"), ("reserved_bps", "reserved_back_bps")] {
            link[back] = link[pair][1].clone();
            link[pair] = link[pair][0].clone();
        }
        link
    };
    list(links).into_iter().map(each).collect()
}

pub(super) fn hosts(hosts: &Value) -> String {
    table("", HOSTS, list(hosts)).table()
}

pub(super) fn paths(paths: &Value) -> String {
    let numbered = (1..).zip(list(paths)).map(|(number, mut path): (u64, Value)| {
        path["path"] = number.into();
        path
    });
    table("", PATHS, numbered.collect()).table()
}

pub(super) fn intents(intents: &Value) -> String {
    table("", INTENTS, list(intents)).table()
}

/// Formats the answers to several intents.
pub(super) fn outcomes(answers: &Value) -> String {
    table("", OUTCOMES, list(answers)).table()
}

pub(super) fn effect(effect: &Value) -> String {
    let named = |name: &str, values: &Value| list(values).into_iter().map(|value| json!({name: value})).collect();
    kinds(&[
        table("intent", INTENTS, list(&effect["intents"])),
        table("cut_off", CUT_OFF, named("mac", &effect["cut_off"])),
        table("overloaded", OVERLOADED, named("link", &effect["overloaded"])),
    ])
}

#[cfg(test)]
mod tests {
    use super::super::text::tests::{an_intent, network as a_network};
    use super::*;

    #[test]
    fn a_network_has_a_row_for_each_thing() {
        let csv = network(&json!(a_network()));
        let rows = |kind: &str| csv.lines().filter(|line| line.starts_with(&format!("{kind},"))).count();
        assert_eq!(
            [rows("port"), rows("link"), rows("host"), rows("intent"), rows("counter")],
            [4, 1, 1, 1, 1],
            "{csv}"
        );
        let links = links(&json!(a_network().links));
        assert_eq!(links.lines().nth(1), Some("1:1,2:2,250.0,false,900000000.0,1000000.0,10000000,0,false,false"));
    }

    #[test]
    fn every_column_is_a_name_of_json() {
        let network = a_network();
        let intent = json!(an_intent());
        for (columns, row) in [
            (PORTS, all_ports(&json!(network.switches))[0].clone()),
            (LINKS, all_links(&json!(network.links))[0].clone()),
            (HOSTS, json!(network.hosts[0])),
            (INTENTS, intent),
        ] {
            for column in columns {
                let path = column.split_once('=').map_or(*column, |(_, path)| path).replace('.', "/");
                assert!(row.pointer(&format!("/{path}")).is_some(), "{column}: {row}");
            }
        }
    }
}
