//! Makes the graph of a `[topology]` by rule, or reads it from a file.
use super::{ScenarioResult, TopologySpan};
use crate::MAX_ITEMS;
use crate::document::{ParallelLinkPolicy, PartitionPolicy, TopologyKind, TopologyToml as Written};
use std::path::Path;
use toml::Spanned;
use weir_topology::generate::{RegularTopology, generate, usual_hosts};
use weir_topology::{Topology, TopologyMeasures};

/// Returns the graph, and the number of hosts at each switch that takes hosts.
pub(super) fn build_graph(place: &TopologySpan<'_>, written: &Written) -> ScenarioResult<(Topology, usize)> {
    let hosts = written.hosts.as_ref().map(|hosts| count(*hosts.as_ref()));
    let (made, usual) = match (&written.kind, &written.file) {
        (Some(kind), None) => {
            let rule = rule(place, written, *kind.as_ref())?;
            (generate(rule).map_err(|problem| place.error(problem))?, usual_hosts(rule))
        }
        (None, Some(file)) => {
            refuse_unused(place, written, "file", &[])?;
            (from_file(place, written, file)?, 1)
        }
        _ => {
            let kinds = "kind = \"single\", \"linear\", \"tree\", \"ring\" or \"fat-tree\", or file = \"NAME.graphml\"";
            return Err(place.error(format!("expected either `kind` or `file`: {kinds}")));
        }
    };
    let hosts = hosts.unwrap_or(usual);
    let takers = made.nodes.iter().filter(|node| node.takes_hosts).count();
    for (what, found) in
        [("switches", made.nodes.len()), ("links", made.links.len()), ("hosts", takers.saturating_mul(hosts))]
    {
        if found > MAX_ITEMS {
            return Err(place.error(format!("found {found} {what}, expected at most {MAX_ITEMS}")));
        }
    }
    Ok((made, hosts))
}

fn count(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn rule(place: &TopologySpan<'_>, written: &Written, kind: TopologyKind) -> ScenarioResult<RegularTopology> {
    let (name, needed): (_, &[&str]) = match kind {
        TopologyKind::Single => ("single", &[]),
        TopologyKind::Linear => ("linear", &["switches"]),
        TopologyKind::Tree => ("tree", &["depth", "fanout"]),
        TopologyKind::Ring => ("ring", &["switches"]),
        TopologyKind::FatTree => ("fat-tree", &["k"]),
    };
    let kind_text = format!("kind = \"{name}\"");
    refuse_unused(place, written, &kind_text, needed)?;
    let get = |key: &str| {
        let found = numbers(written).into_iter().find(|(name, _)| *name == key).and_then(|(_, number)| number);
        found
            .map(|number| count(*number.as_ref()))
            .ok_or_else(|| place.error(format!("{kind_text}: found no `{key}`, expected it")))
    };
    Ok(match kind {
        TopologyKind::Single => RegularTopology::Single,
        TopologyKind::Linear => RegularTopology::Linear { switches: get("switches")? },
        TopologyKind::Tree => RegularTopology::Tree { depth: get("depth")?, fanout: get("fanout")? },
        TopologyKind::Ring => RegularTopology::Ring { switches: get("switches")? },
        TopologyKind::FatTree => RegularTopology::FatTree { k: get("k")? },
    })
}

fn numbers(written: &Written) -> [(&'static str, Option<&Spanned<u32>>); 4] {
    [
        ("switches", written.switches.as_ref()),
        ("depth", written.depth.as_ref()),
        ("fanout", written.fanout.as_ref()),
        ("k", written.k.as_ref()),
    ]
}

/// Refuses settings that this kind of topology does not use.
fn refuse_unused(place: &TopologySpan<'_>, written: &Written, what: &str, used: &[&str]) -> ScenarioResult<()> {
    for (name, number) in numbers(written) {
        if let Some(number) = number.filter(|_| !used.contains(&name)) {
            let expected = if used.is_empty() { "none".to_owned() } else { used.join(" and ") };
            let problem = format!("topology: found `{name}` with {what}, expected of such numbers: {expected}");
            return Err(place.source.error(number.span(), problem));
        }
    }
    Ok(())
}

fn from_file(place: &TopologySpan<'_>, written: &Written, file: &Spanned<String>) -> ScenarioResult<Topology> {
    let directory = Path::new(place.source.file).parent().unwrap_or(Path::new(""));
    let wrong = |problem: String| place.source.error(file.span(), format!("topology: {problem}"));
    let mut found = weir_topology::read(&directory.join(file.as_ref())).map_err(|error| wrong(error.to_string()))?;
    let name = file.as_ref();
    let of_link = |found: &Topology, link: &weir_topology::TopologyLink| {
        let line = link.line.map(|line| format!(":{line}")).unwrap_or_default();
        let [a, b] = link.ends.map(|end| found.nodes[end].name.as_str());
        format!("{name}{line}: link {a} - {b}")
    };
    match (found.duplicates().first(), written.duplicates.unwrap_or_default()) {
        (None, _) | (_, ParallelLinkPolicy::Keep) => {}
        (Some(_), ParallelLinkPolicy::Merge) => found.merge_duplicates(),
        (Some(second), ParallelLinkPolicy::Refuse) => {
            let link = of_link(&found, &found.links[*second]);
            let expected = "expected one: duplicates = \"merge\" makes one of such links, \"keep\" keeps them";
            return Err(wrong(format!("{link}: found it beside another one, {expected}")));
        }
    }
    let measures = TopologyMeasures::of(&found);
    match (measures.parts, written.unconnected.unwrap_or_default()) {
        (0 | 1, _) | (_, PartitionPolicy::Keep) => {}
        (_, PartitionPolicy::Largest) => found.keep_largest_part(),
        (parts, PartitionPolicy::Refuse) => {
            let TopologyMeasures { largest_part, nodes, .. } = measures;
            let expected = "expected one: unconnected = \"largest\" takes the largest, \"keep\" all";
            let problem = format!(
                "{name}: found {parts} parts that nothing joins, the largest of {largest_part} of {nodes} nodes, {expected}"
            );
            return Err(wrong(problem));
        }
    }
    for link in &found.links {
        for (missing, what) in [
            (link.rate.is_none() && written.rate.is_none(), "rate"),
            (link.delay.is_none() && written.delay.is_none(), "delay"),
        ] {
            if missing {
                let problem = format!(
                    "{}: found no {what}, expected `{what}` in [topology] for links without",
                    of_link(&found, link)
                );
                return Err(wrong(problem));
            }
        }
    }
    Ok(found)
}
