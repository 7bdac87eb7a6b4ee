//! Finds the path with the highest rate between two nodes of a topology file, and its delay.
//!
//! `cargo run -p weir-topology --example widest_path -- FILE FROM TO`; without arguments, in a small network.
use std::path::Path;
use std::time::Duration;
use weir_topology::{Topology, TopologyMeasures, read, read_text};
use weir_units::Bps;

/// Network in the format of the Topology Zoo: places give the delays.
const BUILT_IN: &str = r#"<graphml>
<key attr.name="Latitude" for="node" id="a"/><key attr.name="Longitude" for="node" id="o"/>
<key attr.name="label" for="node" id="l"/><key attr.name="LinkSpeedRaw" for="edge" id="r"/>
<graph>
<node id="0"><data key="l">Oslo</data><data key="a">59.91</data><data key="o">10.75</data></node>
<node id="1"><data key="l">Bergen</data><data key="a">60.39</data><data key="o">5.32</data></node>
<node id="2"><data key="l">Stavanger</data><data key="a">58.97</data><data key="o">5.73</data></node>
<node id="3"><data key="l">Trondheim</data><data key="a">63.43</data><data key="o">10.39</data></node>
<edge source="0" target="1"><data key="r">1e9</data></edge>
<edge source="0" target="2"><data key="r">10e9</data></edge>
<edge source="2" target="1"><data key="r">4e9</data></edge>
<edge source="0" target="3"><data key="r">2.5e9</data></edge>
</graph></graphml>"#;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (topology, from, to) = match arguments.as_slice() {
        [file, from, to] => (read(Path::new(file))?, from.as_str(), to.as_str()),
        [] => (read_text(BUILT_IN, "norway.graphml")?, "Oslo", "Bergen"),
        _ => return Err("expected FILE FROM TO, or nothing".into()),
    };
    let measures = TopologyMeasures::of(&topology);
    println!("{} nodes, {} links, diameter {}", measures.nodes, measures.links, measures.diameter);
    let index = |name: &str| {
        let found = topology.nodes.iter().position(|node| node.name == name);
        found.ok_or_else(|| format!("found no node `{name}`"))
    };
    let Some((rate, links)) = widest_path(&topology, index(from)?, index(to)?) else {
        return Err(format!("no path of links with known rates leads from {from} to {to}").into());
    };
    let delay: Duration = links.iter().filter_map(|link| topology.links[*link].delay).sum();
    println!("widest path from {from} to {to}: {rate}, {delay:?}");
    for link in links {
        let [a, b] = topology.links[link].ends.map(|end| topology.nodes[end].name.as_str());
        println!("  {a} - {b}");
    }
    Ok(())
}

/// Returns the rate of the widest path and its links. Dijkstra's algorithm, with the smallest rate of a path instead of
/// the sum of its lengths.
fn widest_path(topology: &Topology, from: usize, to: usize) -> Option<(Bps, Vec<usize>)> {
    let mut best: Vec<Option<(Bps, Vec<usize>)>> = vec![None; topology.nodes.len()];
    let mut done = vec![false; topology.nodes.len()];
    best[from] = Some((Bps(u64::MAX), Vec::new()));
    loop {
        let open = (0..done.len()).filter(|node| !done[*node] && best[*node].is_some());
        let at = open.max_by_key(|node| best[*node].as_ref().map(|(rate, _)| *rate))?;
        if at == to {
            return best[to].take();
        }
        done[at] = true;
        for (number, link) in topology.links.iter().enumerate().filter(|(_, link)| link.ends.contains(&at)) {
            let other = link.ends[usize::from(link.ends[0] == at)];
            let Some(((so_far, path), rate)) = best[at].as_ref().zip(link.rate) else { continue };
            let rate = rate.min(*so_far);
            if best[other].as_ref().is_none_or(|(known, _)| *known < rate) {
                best[other] = Some((rate, [path.as_slice(), &[number]].concat()));
            }
        }
    }
}
