//! Reads GraphML as published by the Internet Topology Zoo (Knight et al., The Internet Topology Zoo, JSAC 2011).
//!
//! Nodes have `label`, `Latitude` and `Longitude`. Links have `LinkSpeedRaw` in bit/s, or the name of an optical
//! carrier (`OC-48`, `STM-16`) in `LinkType` or `LinkLabel`.
use super::{LinkProperties, TopologyBuilder, line_of, rate, xml};
use crate::{GeoLocation, TopologyError};
use roxmltree::Node;
use std::collections::HashMap;
use weir_units::Bps;

/// Rates of OC-1 and STM-1 (ITU-T G.707) in bit/s.
const CARRIERS: [(&str, f64); 2] = [("OC-", 51.84e6), ("STM-", 155.52e6)];

pub(super) fn read(text: &str, builder: &mut TopologyBuilder<'_>) -> Result<(), TopologyError> {
    let document = xml(text, builder)?;
    let root = document.root_element();
    if root.tag_name().name() != "graphml" {
        let problem = format!("found the element `{}`, expected `graphml`", root.tag_name().name());
        return Err(builder.error(line_of(root), problem));
    }
    let keys: HashMap<&str, &str> = root
        .children()
        .filter(|child| child.tag_name().name() == "key")
        .filter_map(|key| key.attribute("id").zip(key.attribute("attr.name")))
        .collect();
    let Some(graph) = root.children().find(|child| child.tag_name().name() == "graph") else {
        return Err(builder.error(line_of(root), "found no element `graph`"));
    };
    builder.made.name = data(graph, &keys).remove("Network").map(str::to_owned);
    // Nodes are read first because a link may come before its nodes.
    for node in graph.children().filter(|child| child.tag_name().name() == "node") {
        let id = attribute(node, "id", builder)?;
        let data = data(node, &keys);
        let degrees = |name| data.get(name).and_then(|text| text.parse::<f64>().ok());
        let place =
            degrees("Latitude").zip(degrees("Longitude")).and_then(|(north, east)| GeoLocation::new(north, east));
        builder.node(id, data.get("label").copied(), place, line_of(node))?;
    }
    for edge in graph.children().filter(|child| child.tag_name().name() == "edge") {
        let ends = [attribute(edge, "source", builder)?, attribute(edge, "target", builder)?];
        let about = LinkProperties { rate: speed(&data(edge, &keys)), delay: None, ports: None };
        builder.link(ends, about, line_of(edge))?;
    }
    Ok(())
}

fn attribute<'a>(node: Node<'a, '_>, name: &str, builder: &TopologyBuilder<'_>) -> Result<&'a str, TopologyError> {
    node.attribute(name)
        .ok_or_else(|| builder.error(line_of(node), format!("{}: found no attribute `{name}`", node.tag_name().name())))
}

/// Returns the texts of an element's `data` children, by the names of their keys.
fn data<'a>(of: Node<'a, '_>, keys: &HashMap<&str, &'a str>) -> HashMap<&'a str, &'a str> {
    let items = of.children().filter(|child| child.tag_name().name() == "data");
    items.filter_map(|item| Some((*keys.get(item.attribute("key")?)?, item.text()?.trim()))).collect()
}

fn speed(data: &HashMap<&str, &str>) -> Option<Bps> {
    let raw = data.get("LinkSpeedRaw").and_then(|text| text.parse::<f64>().ok()).and_then(rate);
    raw.or_else(|| ["LinkType", "LinkLabel"].into_iter().find_map(|name| carrier(data.get(name)?)))
}

/// Returns the rate of the optical carrier that a text begins with: `OC-192c`.
fn carrier(text: &str) -> Option<Bps> {
    CARRIERS.iter().find_map(|(prefix, one)| {
        let digits: String = text.strip_prefix(prefix)?.chars().take_while(char::is_ascii_digit).collect();
        rate(digits.parse::<u16>().ok().map(f64::from)? * one)
    })
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use std::time::Duration;
    use weir_units::Bps;

    const HEAD: &str = r#"<graphml xmlns="http://graphml.graphdrawing.org/xmlns">
<key attr.name="Latitude" for="node" id="a"/><key attr.name="Longitude" for="node" id="o"/><key attr.name="label" for="node" id="l"/>
<key attr.name="LinkSpeedRaw" for="edge" id="r"/><key attr.name="LinkType" for="edge" id="t"/><key attr.name="Network" for="graph" id="n"/>
<graph edgedefault="undirected"><data key="n">Small</data>
<node id="0"><data key="l">Oslo</data><data key="a">59.91</data><data key="o">10.75</data></node>
<node id="1"><data key="l">Bergen</data><data key="a">60.39</data><data key="o">5.32</data></node>
<node id="2"><data key="l">Nowhere</data></node>
"#;

    fn with(links: &str) -> String {
        format!("{HEAD}{links}</graph></graphml>")
    }

    #[test]
    fn nodes_links_speeds_and_places_are_read() {
        let links = r#"<edge source="0" target="1"><data key="r">155000000.0</data></edge>
<edge source="2" target="1"><data key="t">OC-48c</data></edge><edge source="2" target="0"/>"#;
        let found = read_text(&with(links), "small.graphml").unwrap();
        assert_eq!(found.name.as_deref(), Some("Small"));
        assert_eq!(
            found.nodes.iter().map(|node| node.name.as_str()).collect::<Vec<_>>(),
            ["Oslo", "Bergen", "Nowhere"]
        );
        assert_eq!(found.nodes[1].line, Some(6));
        let rates: Vec<_> = found.links.iter().map(|link| link.rate).collect();
        assert_eq!(rates, [Some(Bps(155_000_000)), Some(Bps(2_488_320_000)), None]);
        let delays: Vec<_> = found.links.iter().map(|link| link.delay).collect();
        assert!(delays[0].unwrap().abs_diff(Duration::from_micros(1525)) < Duration::from_micros(15), "{delays:?}");
        assert_eq!(delays[1..], [None, None], "nobody knows where Nowhere is");
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (links, line, problem) in [
            ("<edge source='0' target='9'/>", 8, "link: found the node `9`, which there is not"),
            ("\n<edge source='1' target='1'/>", 9, "link: found `1` at both ends, expected two nodes"),
            ("<edge source='1'/>", 8, "edge: found no attribute `target`"),
            ("<node id='1'/>", 8, "node: found `1` twice, expected each once"),
            ("<edge", 8, "found no XML"),
        ] {
            let error = read_text(&with(links), "x.graphml").unwrap_err();
            assert_eq!(error.line(), Some(line), "{error}");
            assert!(error.problem().starts_with(problem), "{error}");
        }
        let other = read_text("<svg/>", "x.graphml").unwrap_err();
        assert_eq!(other.to_string(), "x.graphml:1: found the element `svg`, expected `graphml`");
        let deep = "<a>".repeat(100_000);
        assert!(read_text(&deep, "x.graphml").unwrap_err().problem().starts_with("found no XML"));
        let bomb = "<!DOCTYPE g [<!ENTITY a 'aa'>]><graphml>&a;</graphml>";
        assert!(read_text(bomb, "x.graphml").unwrap_err().problem().contains("DTD"));
    }
}
