//! Writes out a scenario with a `[topology]` as one without: its switches, hosts and links are listed, other settings
//! are kept.
use crate::check::{self, SourceFile, TopologyTiming};
use crate::document::{self, ScenarioToml};
use crate::{JitterLaw, LinkSpec, Scenario, ScenarioError};
use toml::{Spanned, Table, Value};
use weir_units::{Bps, TimeSpan};

/// Writes out a scenario's text with all items of its `[topology]`, so that single switches, hosts and links can be
/// changed. Comments are lost. `file` names the text in errors and is the base of relative paths.
///
/// # Errors
/// The text is not a valid scenario.
pub fn expand_topology(text: &str, file: &str) -> Result<String, ScenarioError> {
    let scenario = Scenario::parse(text, file)?;
    let syntax = |error| ScenarioError::syntax(file, text, &error);
    let mut document: ScenarioToml = toml::from_str(text).map_err(syntax)?;
    let shared = check::expand(&mut document, &SourceFile { file, text })?;
    let mut table: Table = toml::from_str(text).map_err(syntax)?;
    let topology = table.remove("topology").and_then(|topology| topology.as_table().cloned()).unwrap_or_default();
    let mut given = |what: &str| match table.remove(what) {
        Some(Value::Array(items)) => items.into_iter().filter_map(|item| item.as_table().cloned()).collect(),
        _ => Vec::new(),
    };
    let (switches, hosts, links) = (given("switch"), given("host"), given("link"));
    let switches = written_switches(&document.switch, switches, &topology, &shared);
    let switches = switches.map_err(|problem| ScenarioError::at(file, text, &(0..0), problem))?;
    insert_items(&mut table, "switch", switches);
    insert_items(&mut table, "host", written_hosts(&scenario, hosts));
    insert_items(&mut table, "link", written_links(&scenario, &document.link, links));
    let written = toml::to_string(&table);
    written.map_err(|error| ScenarioError::at(file, text, &(0..0), format!("cannot write it out: {error}")))
}

fn insert_items(table: &mut Table, what: &str, items: Vec<Table>) {
    if !items.is_empty() {
        table.insert(what.to_owned(), Value::Array(items.into_iter().map(Value::Table).collect()));
    }
}

fn is_named(item: &Table, name: &str) -> bool {
    item.get("name").and_then(Value::as_str) == Some(name)
}

fn set_if_missing(item: &mut Table, key: &str, value: impl Into<Value>) {
    item.entry(key).or_insert(value.into());
}

fn written_switches(
    switches: &[Spanned<document::SwitchToml>],
    mut given: Vec<Table>,
    topology: &Table,
    shared: &TopologyTiming,
) -> Result<Vec<Table>, String> {
    let write = |switch: &Spanned<document::SwitchToml>| {
        let switch = switch.as_ref();
        let name = switch.name.as_ref();
        let known = given.iter().position(|item| is_named(item, name));
        let mut item = known.map(|at| given.remove(at)).unwrap_or_default();
        set_if_missing(&mut item, "name", name.as_str());
        if let Some(dpid) = switch.dpid.as_ref().map(Spanned::as_ref) {
            let expected = format!("expected at most {:#x}, the largest number of TOML", i64::MAX);
            let number = i64::try_from(*dpid)
                .map_err(|_| format!("cannot write it out: switch {name}: found dpid {dpid:#x}, {expected}"))?;
            set_if_missing(&mut item, "dpid", number);
        }
        let says = [
            ("profile", switch.profile.is_some()),
            ("timing", shared.is_timing_of(name)),
            ("fail_mode", switch.fail_mode.is_some()),
        ];
        for (key, _) in says.into_iter().filter(|(_, says)| *says) {
            if let Some(value) = topology.get(key) {
                set_if_missing(&mut item, key, value.clone());
            }
        }
        Ok(item)
    };
    switches.iter().map(write).collect()
}

fn written_hosts(scenario: &Scenario, mut given: Vec<Table>) -> Vec<Table> {
    let write = |host: &crate::ScenarioHost| {
        let known = given.iter().position(|item| is_named(item, &host.name));
        let mut item = known.map(|at| given.remove(at)).unwrap_or_default();
        set_if_missing(&mut item, "name", host.name.as_str());
        set_if_missing(&mut item, "switch", scenario.switches[host.switch].name.as_str());
        let ip: Vec<String> = host.ip.iter().map(ToString::to_string).collect();
        match ip.as_slice() {
            [one] => set_if_missing(&mut item, "ip", one.as_str()),
            more => set_if_missing(&mut item, "ip", more.to_vec()),
        }
        say_link(&mut item, &host.link);
        item
    };
    scenario.hosts.iter().map(write).collect()
}

fn written_links(scenario: &Scenario, links: &[Spanned<document::LinkToml>], mut given: Vec<Table>) -> Vec<Table> {
    let write = |(link, written): (&crate::ScenarioLink, &Spanned<document::LinkToml>)| {
        let names = link.ends.map(|end| scenario.switches[end.switch].name.as_str());
        let joins = |item: &Table| {
            let ends: Vec<&str> =
                item.get("ends").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
            ends == names || ends == [names[1], names[0]]
        };
        let mut item = given.iter().position(joins).map(|at| given.remove(at)).unwrap_or_default();
        set_if_missing(&mut item, "ends", names.map(str::to_owned).to_vec());
        if let Some(ports) = &written.as_ref().ports {
            let ports = ports.iter().map(|port| Value::from(i64::from(*port.as_ref())));
            set_if_missing(&mut item, "ports", ports.collect::<Vec<_>>());
        }
        say_link(&mut item, &link.spec);
        item
    };
    scenario.links.iter().zip(links).map(write).collect()
}

/// Adds a link's settings that the item does not have.
fn say_link(item: &mut Table, spec: &LinkSpec) {
    if let Some(rate) = spec.rate {
        // Uses the short form unless it would round the rate.
        let short = rate.to_string();
        set_if_missing(
            item,
            "rate",
            if short.parse() == Ok::<Bps, _>(rate) { short } else { format!("{}bit/s", rate.0) },
        );
    }
    if !spec.delay.is_zero() {
        set_if_missing(item, "delay", TimeSpan(spec.delay).to_string());
    }
    if let Some(buffer) = spec.buffer.filter(|buffer| *buffer != crate::defaults::LINK_BUFFER) {
        set_if_missing(item, "buffer", buffer.to_string());
    }
    if let Some(jitter) = spec.jitter {
        set_if_missing(item, "jitter", TimeSpan(jitter.size).to_string());
        let law = match jitter.law {
            JitterLaw::Uniform => "uniform",
            JitterLaw::Normal => "normal",
            JitterLaw::Pareto => "pareto",
        };
        set_if_missing(item, "jitter_law", law);
        if jitter.reorder {
            set_if_missing(item, "reorder", true);
        }
    }
    if let Some(loss) = spec.loss {
        set_if_missing(item, "loss", loss.share);
        if let Some(burst) = loss.burst {
            set_if_missing(item, "loss_burst", burst);
        }
    }
}
