//! Reads node-link JSON (as written by networkx) with the attributes of TopoHub (Jurkiewicz, TopoHub: a repository of
//! reference Gabriel graph and real-world topologies for networking research, SoftwareX 2023) and of weir.
//!
//! `pos` is longitude and latitude, `dist` the length of a link in km. Nodes without a name are named by their
//! number. weir's attributes, all optional:
//!
//! | of | attribute | meaning |
//! |---|---|---|
//! | graph | `delays_from_places` | `false`: links without a delay keep none |
//! | node | `dpid` | datapath id: hexadecimal digits as a text, or a number |
//! | node | `takes_hosts` | `false`: no hosts are attached |
//! | link | `rate_bps` | rate in bit/s |
//! | link | `delay_ns` | propagation delay in nanoseconds, in place of `dist` |
//! | link | `ports` | port numbers at `source` and `target` |
use super::{LinkProperties, TopologyBuilder};
use crate::{GeoLocation, TopologyError, delay_of_km};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;
use weir_units::Bps;

#[derive(Serialize, Deserialize)]
pub(crate) struct NodeLinkDocument {
    #[serde(default)]
    pub(crate) directed: bool,
    /// True if nodes may be joined by several links.
    #[serde(default)]
    pub(crate) multigraph: bool,
    #[serde(default)]
    pub(crate) graph: NodeLinkGraph,
    pub(crate) nodes: Vec<NodeLinkNode>,
    #[serde(alias = "links")]
    pub(crate) edges: Vec<NodeLinkEdge>,
}

#[derive(Serialize, Deserialize, Default)]
pub(crate) struct NodeLinkGraph {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delays_from_places: Option<bool>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct NodeLinkNode {
    pub(crate) id: NodeLinkId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pos: Option<[f64; 2]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dpid: Option<NodeLinkDpid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) takes_hosts: Option<bool>,
}

#[derive(Serialize, Deserialize)]
pub(crate) struct NodeLinkEdge {
    pub(crate) source: NodeLinkId,
    pub(crate) target: NodeLinkId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) dist: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rate_bps: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) delay_ns: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ports: Option<[u32; 2]>,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "a number or a text")]
pub(crate) enum NodeLinkId {
    Number(i64),
    Text(String),
}

impl fmt::Display for NodeLinkId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeLinkId::Number(number) => write!(f, "{number}"),
            NodeLinkId::Text(text) => f.write_str(text),
        }
    }
}

/// Datapath id. It is written as text, because JSON's numbers lose digits of it in many programs.
#[derive(Serialize, Deserialize)]
#[serde(untagged, expecting = "a datapath id: a text of hexadecimal digits, or a number")]
pub(crate) enum NodeLinkDpid {
    Number(u64),
    Text(String),
}

impl NodeLinkDpid {
    /// Returns the datapath id, or the text that is none.
    fn get(&self) -> Result<u64, &str> {
        match self {
            NodeLinkDpid::Number(number) => Ok(*number),
            NodeLinkDpid::Text(text) => {
                u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).map_err(|_| text.as_str())
            }
        }
    }
}

pub(super) fn read(text: &str, builder: &mut TopologyBuilder<'_>) -> Result<(), TopologyError> {
    let document: NodeLinkDocument = serde_json::from_str(text)
        .map_err(|error| builder.error(Some(error.line()), format!("found no topology as JSON: {error}")))?;
    builder.made.name = document.graph.name.filter(|name| !name.is_empty());
    builder.has_all_delays = document.graph.delays_from_places == Some(false);
    document.nodes.iter().try_for_each(|node| add_node(node, builder))?;
    document.edges.iter().try_for_each(|edge| add_link(edge, builder))
}

fn add_node(node: &NodeLinkNode, builder: &mut TopologyBuilder<'_>) -> Result<(), TopologyError> {
    let place = node.pos.and_then(|[east, north]| GeoLocation::new(north, east));
    let dpid = node.dpid.as_ref().map(NodeLinkDpid::get).transpose().map_err(|found| {
        let expected = "expected up to 16 hexadecimal digits";
        builder.error(None, format!("node {}: dpid: found `{found}`, {expected}", node.id))
    })?;
    let number = builder.node(&node.id.to_string(), node.name.as_deref(), place, None)?;
    let made = &mut builder.made.nodes[number];
    (made.dpid, made.takes_hosts) = (dpid, node.takes_hosts.unwrap_or(true));
    Ok(())
}

fn add_link(edge: &NodeLinkEdge, builder: &mut TopologyBuilder<'_>) -> Result<(), TopologyError> {
    let [source, target] = [edge.source.to_string(), edge.target.to_string()];
    let wrong = |problem: String| builder.error(None, format!("link {source} - {target}: {problem}"));
    if let Some(found) = edge.dist.filter(|km| !(0.0..=1e6).contains(km)) {
        return Err(wrong(format!("dist: found {found}, expected 0 to 1000000 km")));
    }
    if edge.rate_bps == Some(0) {
        return Err(wrong("rate_bps: found 0, expected at least 1".to_owned()));
    }
    if edge.ports.is_some_and(|ports| ports.contains(&0)) {
        return Err(wrong("ports: found 0, expected port numbers from 1".to_owned()));
    }
    let delay = edge.delay_ns.map(Duration::from_nanos).or(edge.dist.map(delay_of_km));
    let about = LinkProperties { rate: edge.rate_bps.map(Bps), delay, ports: edge.ports };
    builder.link([&source, &target], about, None)
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use std::time::Duration;

    #[test]
    fn nodes_and_links_are_read() {
        let text = r#"{"directed": false, "graph": {"name": "abc", "demands": {}}, "nodes": [{"id": 7, "name": "A", "pos": [10.75, 59.91]},
            {"id": "x", "pos": [5.32, 60.39]}, {"id": 9}], "edges": [{"source": 7, "target": "x", "dist": 1000.0},
            {"source": "x", "target": 7}, {"source": 9, "target": 7}]}"#;
        let found = read_text(text, "abc.json").unwrap();
        assert_eq!(found.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(), ["A", "x", "9"]);
        assert_eq!(found.links[0].delay, Some(Duration::from_micros(5003)), "the file's length");
        assert!(found.links[1].delay.is_some_and(|delay| delay < Duration::from_millis(2)), "the distance");
        assert_eq!(found.links[2].delay, None);
    }

    #[test]
    fn what_is_wrong_is_told() {
        for (text, problem) in [
            ("{\"nodes\": [],\n \"edges\": 3}", "x.json:2: found no topology as JSON: invalid type: integer `3`"),
            (r#"{"nodes": [], "edges": []}"#, "x.json: found no nodes, expected at least one"),
            (
                r#"{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": 2}]}"#,
                "x.json: link: found the node `2`, which there is not",
            ),
            (
                r#"{"nodes": [{"id": 1}, {"id": "1"}], "edges": []}"#,
                "x.json: node: found `1` twice, expected each once",
            ),
            (
                r#"{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": 2, "dist": -5}]}"#,
                "x.json: link 1 - 2: dist: found -5",
            ),
            (
                r#"{"nodes": [{"id": 1, "dpid": "xyz"}], "edges": []}"#,
                "x.json: node 1: dpid: found `xyz`, expected up to 16 hexadecimal digits",
            ),
            (
                r#"{"nodes": [{"id": 1, "dpid": -1}], "edges": []}"#,
                "x.json:1: found no topology as JSON: a datapath id",
            ),
            (
                r#"{"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 2, "rate_bps": 0}]}"#,
                "x.json: link 1 - 2: rate_bps: found 0, expected at least 1",
            ),
            (
                r#"{"nodes": [{"id": 1}, {"id": 2}], "edges": [{"source": 1, "target": 2, "ports": [1, 0]}]}"#,
                "x.json: link 1 - 2: ports: found 0, expected port numbers from 1",
            ),
        ] {
            let error = read_text(text, "x.json").unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}");
        }
        assert!(read_text(&"[".repeat(1_000_000), "x.json").is_err());
    }
}
