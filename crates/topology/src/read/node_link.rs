//! Reads node-link JSON (as written by networkx) with the attributes of TopoHub (Jurkiewicz, TopoHub: a repository of
//! reference Gabriel graph and real-world topologies for networking research, SoftwareX 2023).
//!
//! `pos` is longitude and latitude, `dist` the length of a link in km. Nodes without a name are named by their
//! number.
use super::{LinkProperties, TopologyBuilder};
use crate::{GeoLocation, TopologyError, delay_of_km};
use serde::Deserialize;
use std::fmt;

#[derive(Deserialize)]
struct NodeLinkDocument {
    #[serde(default)]
    graph: NodeLinkGraph,
    nodes: Vec<NodeLinkNode>,
    #[serde(alias = "links")]
    edges: Vec<NodeLinkEdge>,
}

#[derive(Deserialize, Default)]
struct NodeLinkGraph {
    name: Option<String>,
}

#[derive(Deserialize)]
struct NodeLinkNode {
    id: NodeLinkId,
    name: Option<String>,
    pos: Option<[f64; 2]>,
}

#[derive(Deserialize)]
struct NodeLinkEdge {
    source: NodeLinkId,
    target: NodeLinkId,
    dist: Option<f64>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a number or a text")]
enum NodeLinkId {
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

pub(super) fn read(text: &str, builder: &mut TopologyBuilder<'_>) -> Result<(), TopologyError> {
    let document: NodeLinkDocument = serde_json::from_str(text)
        .map_err(|error| builder.error(Some(error.line()), format!("found no topology as JSON: {error}")))?;
    builder.made.name = document.graph.name.filter(|name| !name.is_empty());
    for node in document.nodes {
        let place = node.pos.and_then(|[east, north]| GeoLocation::new(north, east));
        builder.node(&node.id.to_string(), node.name.as_deref(), place, None)?;
    }
    for edge in document.edges {
        let [source, target] = [edge.source.to_string(), edge.target.to_string()];
        if let Some(wrong) = edge.dist.filter(|km| !(0.0..=1e6).contains(km)) {
            let problem = format!("link {source} - {target}: dist: found {wrong}, expected 0 to 1000000 km");
            return Err(builder.error(None, problem));
        }
        let about = LinkProperties { rate: None, delay: edge.dist.map(delay_of_km) };
        builder.link([&source, &target], about, None)?;
    }
    Ok(())
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
        ] {
            let error = read_text(text, "x.json").unwrap_err().to_string();
            assert!(error.starts_with(problem), "{error}");
        }
        assert!(read_text(&"[".repeat(1_000_000), "x.json").is_err());
    }
}
