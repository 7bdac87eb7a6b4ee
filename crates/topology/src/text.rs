//! Formats topologies as text for the terminal.
use crate::{Topology, TopologyMeasures};
use std::fmt::Write as _;
use weir_units::{TimeSpan, counted};

/// Returns the measures of a topology as text, one line per measure.
pub fn show(topology: &Topology, measures: &TopologyMeasures) -> String {
    let m = measures;
    let mut rows = vec![
        ("nodes", m.nodes.to_string()),
        ("links", m.links.to_string()),
        ("degree", format!("{} to {}, {:.2} in the mean", m.degree_min, m.degree_max, m.degree_mean)),
    ];
    let mean = m.hops_mean.map(|mean| format!(", {mean:.2} links between two nodes in the mean")).unwrap_or_default();
    rows.push(("diameter", format!("{}{mean}", counted(m.diameter, "link", "links"))));
    rows.push(("rates", range(m.rates.map(|ends| ends.map(|rate| rate.to_string())), m.without_rate)));
    rows.push(("delays", range(m.delays.map(|ends| ends.map(|delay| TimeSpan(delay).to_string())), m.without_delay)));
    if m.parts > 1 {
        let parts = format!("{} that nothing joins, the largest of {} nodes", m.parts, m.largest_part);
        rows.push(("parts", parts));
    }
    if m.duplicates > 0 {
        rows.push(("duplicates", format!("{} beside another one", counted(m.duplicates, "link", "links"))));
    }
    let mut text = topology.name.as_ref().map(|name| format!("{name}\n")).unwrap_or_default();
    for (what, value) in rows {
        let _ = writeln!(text, "  {what:10}  {value}");
    }
    text
}

fn range(ends: Option<[String; 2]>, without: usize) -> String {
    let known = ends.map(|[low, high]| if low == high { low } else { format!("{low} to {high}") });
    let without = (without > 0).then(|| format!("{} without", counted(without, "link", "links")));
    let parts: Vec<String> = known.into_iter().chain(without).collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(", ") }
}

/// Returns all nodes with their number of links, then all links with their known properties.
pub fn list(topology: &Topology) -> String {
    let next = topology.neighbours();
    let nodes = topology.nodes.iter().zip(&next).map(|(node, next)| {
        let place = node.place.map(|place| format!("{:.2} {:.2}", place.latitude, place.longitude));
        vec![node.name.clone(), next.len().to_string(), place.unwrap_or_else(|| "-".to_owned())]
    });
    let name = |end: usize| topology.nodes[end].name.clone();
    let links = topology.links.iter().map(|link| {
        let rate = link.rate.map_or_else(|| "-".to_owned(), |rate| rate.to_string());
        let delay = link.delay.map_or_else(|| "-".to_owned(), |delay| TimeSpan(delay).to_string());
        vec![name(link.ends[0]), name(link.ends[1]), rate, delay]
    });
    table(&["node", "links", "place"], nodes.collect())
        + "\n"
        + &table(&["link from", "to", "rate", "delay"], links.collect())
}

fn table(head: &[&str], rows: Vec<Vec<String>>) -> String {
    let head: Vec<String> = head.iter().map(|name| (*name).to_owned()).collect();
    let all = || std::iter::once(&head).chain(&rows);
    let widths: Vec<usize> =
        (0..head.len()).map(|at| all().map(|row| row[at].chars().count()).max().unwrap_or(0)).collect();
    all().fold(String::new(), |mut text, row| {
        let cells: Vec<String> = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        let _ = writeln!(text, "  {}", cells.join("  ").trim_end());
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::of;

    #[test]
    fn a_broken_network_is_told() {
        let mut broken = of(4, &[[0, 1], [1, 0], [1, 2]]);
        broken.name = Some("small".to_owned());
        broken.links[2].rate = None;
        assert_eq!(
            show(&broken, &TopologyMeasures::of(&broken)),
            "small\n  nodes       4\n  links       3\n  degree      0 to 3, 1.50 in the mean\n  \
             diameter    2 links, 1.33 links between two nodes in the mean\n  rates       10Mbit/s, 1 link without\n  \
             delays      3 links without\n  parts       2 that nothing joins, the largest of 3 nodes\n  duplicates  1 link beside another one\n"
        );
        let list = list(&broken);
        assert!(list.starts_with("  node  links  place\n  n0    2      -\n"), "{list}");
        assert!(list.ends_with("  n1         n2  -         -\n"), "{list}");
    }
}
