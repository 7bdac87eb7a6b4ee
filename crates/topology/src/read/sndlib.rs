//! Reads SNDlib's native XML (Orlowski et al., SNDlib 1.0: survivable network design library, Networks 2010).
//!
//! Nodes have coordinates; links have installed capacities, and modules of capacity that can be bought. A link's rate
//! is its installed capacity; without one, the capacity of its first module. Capacities have no unit and are read as
//! Mbit/s.
use super::{LinkProperties, TopologyBuilder, line_of, rate, xml};
use crate::{GeoLocation, TopologyError};
use roxmltree::Node;

pub(super) fn read(text: &str, builder: &mut TopologyBuilder<'_>) -> Result<(), TopologyError> {
    let document = xml(text, builder)?;
    let root = document.root_element();
    let Some(structure) = child(root, "networkStructure").filter(|_| root.tag_name().name() == "network") else {
        let problem = "found no `network` with a `networkStructure`, expected SNDlib's native XML";
        return Err(builder.error(line_of(root), problem));
    };
    let nodes = child(structure, "nodes");
    // Other coordinate types are positions on a drawing.
    let is_on_earth = nodes.and_then(|nodes| nodes.attribute("coordinatesType")) == Some("geographical");
    for node in nodes.into_iter().flat_map(|nodes| nodes.children()).filter(|node| node.is_element()) {
        let id = id_of(node, builder)?;
        let coordinates = child(node, "coordinates").filter(|_| is_on_earth);
        let degrees = |name| coordinates.and_then(|at| number(at, name));
        let place = degrees("y").zip(degrees("x")).and_then(|(north, east)| GeoLocation::new(north, east));
        builder.node(id, Some(&id.replace('_', " ")), place, line_of(node))?;
    }
    let links = child(structure, "links").into_iter().flat_map(|links| links.children());
    for link in links.filter(|link| link.is_element()) {
        let end = |name| {
            let found = child(link, name).and_then(|end| end.text()).map(str::trim);
            found.ok_or_else(|| builder.error(line_of(link), format!("link: found no element `{name}`")))
        };
        let ends = [end("source")?, end("target")?];
        let there = child(link, "preInstalledModule").and_then(|module| number(module, "capacity"));
        let module = || number(child(child(link, "additionalModules")?, "addModule")?, "capacity");
        let capacity = there.filter(|capacity| *capacity > 0.0).or_else(module);
        let about = LinkProperties { rate: capacity.and_then(|mbps| rate(mbps * 1e6)), delay: None, ports: None };
        builder.link(ends, about, line_of(link))?;
    }
    Ok(())
}

fn id_of<'a>(node: Node<'a, '_>, builder: &TopologyBuilder<'_>) -> Result<&'a str, TopologyError> {
    let found = node.attribute("id");
    found.ok_or_else(|| builder.error(line_of(node), format!("{}: found no attribute `id`", node.tag_name().name())))
}

fn child<'a, 'i>(of: Node<'a, 'i>, name: &str) -> Option<Node<'a, 'i>> {
    of.children().find(|child| child.tag_name().name() == name)
}

fn number(of: Node<'_, '_>, name: &str) -> Option<f64> {
    child(of, name)?.text()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use crate::read_text;
    use weir_units::Bps;

    fn network(coordinates: &str, links: &str) -> String {
        format!(
            "<?xml version='1.0'?>\n<network xmlns='http://sndlib.zib.de/network' version='1.0'><networkStructure>\n\
             <nodes coordinatesType='{coordinates}'>\n<node id='Bonn'><coordinates><x>7.1</x><y>50.7</y></coordinates></node>\n\
             <node id='Bad_Ems'><coordinates><x>7.7</x><y>50.3</y></coordinates></node></nodes>\n<links>{links}</links>\
             </networkStructure><demands/></network>"
        )
    }

    #[test]
    fn capacities_there_or_to_be_had_are_rates() {
        let ends = "<source>Bonn</source><target> Bad_Ems </target>";
        let module =
            "<additionalModules><addModule><capacity>40.0</capacity><cost>1</cost></addModule></additionalModules>";
        let links = format!(
            "<link id='a'>{ends}<preInstalledModule><capacity>2.5</capacity></preInstalledModule>{module}</link>\
             <link id='b'>{ends}<preInstalledModule><capacity>0.0</capacity></preInstalledModule>{module}</link><link id='c'>{ends}</link>"
        );
        let found = read_text(&network("geographical", &links), "x.xml").unwrap();
        let rates: Vec<_> = found.links.iter().map(|link| link.rate).collect();
        assert_eq!(rates, [Some(Bps(2_500_000)), Some(Bps(40_000_000)), None]);
        assert_eq!(found.nodes[1].name, "Bad Ems");
        assert!(found.links.iter().all(|link| link.delay.is_some_and(|delay| delay.as_micros() > 200)));
        let drawn = read_text(&network("pixel", &links), "x.xml").unwrap();
        assert!(drawn.links.iter().all(|link| link.delay.is_none()));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        let error = |links| read_text(&network("pixel", links), "x.xml").unwrap_err().to_string();
        assert_eq!(error("<link id='a'><source>Bonn</source></link>"), "x.xml:6: link: found no element `target`");
        assert_eq!(
            error("\n<link id='a'><source>Bonn</source><target>Ulm</target></link>"),
            "x.xml:7: link: found the node `Ulm`, which there is not"
        );
        let other = read_text("<a/>", "x.xml").unwrap_err().to_string();
        assert!(other.starts_with("x.xml:1: found no `network` with a `networkStructure`"), "{other}");
    }
}
