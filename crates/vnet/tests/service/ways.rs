//! Places of nodes, ways of links, and the virtual switches that they become.
use crate::{admit, fixed, refused, ring, row, written};
use weir_units::Bps;
use weir_vnet::service::{LinkRequest, NetworkServiceRequest, SliceRole};

const TREE: &str = r#"
name = "tree"
[[node]]
name = "top"
[[link]]
ends = ["a1", "top"]
bandwidth = "10Mbit/s"
[[link]]
ends = ["a2", "top"]
bandwidth = "10Mbit/s"
[[link]]
ends = ["top", "a3"]
bandwidth = "20Mbit/s"
"#;

#[test]
fn a_node_is_placed_where_its_links_need_the_fewest_cables() {
    let mut book = row(4);
    admit(&mut book, &written(TREE));
    let design = &book.network("tree").unwrap().design;
    assert_eq!(design.places["top"], "s2");
    let text = |slice: &weir_vnet::service::Slice| {
        let ports = slice.ports.iter().map(|port| {
            let vlan = port.vlan.map_or(String::new(), |vlan| format!("/{vlan}"));
            format!("{}={}{vlan} {}in {}out", port.number, port.port, port.rate_in, port.rate_out)
        });
        format!("{} on {}: {}", slice.name, slice.switch, ports.collect::<Vec<_>>().join(", "))
    };
    let slices: Vec<String> = design.slices.iter().map(text).collect();
    assert_eq!(
        slices,
        [
            "tree-top on s2: 1=3/1 10Mbit/sin 10Mbit/sout, 2=1 10Mbit/sin 10Mbit/sout, 3=4/1 20Mbit/sin 20Mbit/sout",
            "tree-a1-top-1 on s1: 1=1 10Mbit/sin 10Mbit/sout, 2=4/1 10Mbit/sin 10Mbit/sout",
            "tree-top-a3-2 on s3: 1=3/1 20Mbit/sin 20Mbit/sout, 2=1 20Mbit/sin 20Mbit/sout",
        ]
    );
    assert_eq!(design.slices[0].role, SliceRole::Node("top".to_owned()));
    assert_eq!(design.slices[1].role, SliceRole::Transit("a1-top".to_owned()));
    let dpids = &book.network("tree").unwrap().dpids;
    assert_eq!(dpids.len(), 3);
    assert!(dpids[0] != dpids[1] && dpids[1] != dpids[2]);
}

#[test]
fn links_of_a_node_leave_by_different_ports() {
    // On a row, both links of n1 would leave s1 by port 4.
    let twice = r#"
name = "fork"
node = [{ name = "n1", place = "s1" }, { name = "n2", place = "s2" }, { name = "n3", place = "s3" }]
[[link]]
ends = ["n1", "n2"]
bandwidth = "1Mbit/s"
[[link]]
ends = ["n1", "n3"]
bandwidth = "1Mbit/s"
"#;
    let error = refused(&mut row(3), &written(twice));
    assert!(error.contains("link n1-n3: no way leads from switch s1 to switch s3"), "{error}");
    let mut book = ring(3);
    admit(&mut book, &written(twice));
    let ports = &book.network("fork").unwrap().design.slices[0].ports;
    assert_eq!((ports[0].port, ports[1].port), (4, 3));
}

#[test]
fn two_nodes_of_one_switch_are_not_joined_by_a_line() {
    let both = |place: &str| {
        written(&format!(
            "name = \"x\"\nnode = [{{ name = \"n1\", place = \"s1\" }}, {{ name = \"n2\"{place} }}]\n[[link]]\nends = \
             [\"n1\", \"n2\"]\nbandwidth = \"1Mbit/s\"\n"
        ))
    };
    let error = refused(&mut row(2), &both(", place = \"s1\""));
    assert!(error.contains("both its nodes are on switch s1"), "{error}");
    let mut book = row(2);
    admit(&mut book, &both(""));
    assert_eq!(book.network("x").unwrap().design.places["n2"], "s2");
}

#[test]
fn a_full_line_is_gone_around_and_both_directions_take_one_way() {
    let mut book = ring(4);
    admit(&mut book, &NetworkServiceRequest::new("first", vec![LinkRequest::new("a1", "a2", fixed(60))]));
    admit(&mut book, &NetworkServiceRequest::new("second", vec![LinkRequest::new("b1", "b2", fixed(60))]));
    let way = |name: &str| book.network(name).unwrap().design.links[0].clone();
    assert_eq!(way("first").switches, ["s1", "s2"]);
    let around = way("second");
    assert_eq!(around.switches, ["s1", "s4", "s3", "s2"]);
    let ports =
        |direction: usize| around.directions[direction].hops.iter().map(|hop| hop.port.to_string()).collect::<Vec<_>>();
    assert_eq!(ports(0), ["s1:3", "s4:3", "s3:3", "s2:2"]);
    assert_eq!(ports(1), ["s2:4", "s3:4", "s4:4", "s1:2"]);
}

#[test]
fn tags_differ_on_each_line_and_come_back_when_a_network_goes() {
    let mut book = row(3);
    for (name, from, to) in [("one", "a1", "a3"), ("two", "b1", "b2"), ("three", "b3", "a2")] {
        admit(&mut book, &NetworkServiceRequest::new(name, vec![LinkRequest::new(from, to, fixed(5))]));
    }
    let tag = |book: &weir_vnet::service::NetworkBook, name: &str| book.network(name).unwrap().design.links[0].vlan;
    assert_eq!([tag(&book, "one"), tag(&book, "two"), tag(&book, "three")], [Some(1), Some(2), Some(2)]);
    book.release("one").unwrap();
    admit(&mut book, &NetworkServiceRequest::new("four", vec![LinkRequest::new("a1", "a3", fixed(5))]));
    assert_eq!(tag(&book, "four"), Some(1));
    assert!(book.release("one").is_err());
}

#[test]
fn what_is_released_gives_everything_back() {
    let mut book = ring(5);
    let empty = format!("{book:?}");
    let requests = [written(TREE), NetworkServiceRequest::new("pair", vec![LinkRequest::new("b1", "b4", fixed(40))])];
    requests.iter().for_each(|request| admit(&mut book, request));
    let full = book.load(&weir_vnet::service::PortName::new("s1", 4));
    assert!(full > 0.0);
    for request in &requests {
        book.release(&request.name).unwrap();
    }
    assert_eq!(format!("{book:?}"), empty);
}

#[test]
fn a_host_port_has_one_link_of_untagged_packets_or_several_of_tagged_ones() {
    let link = |vlan: Option<u16>, to: &str| LinkRequest { vlan, ..LinkRequest::new("a1", to, fixed(1)) };
    let network = |name: &str, link: LinkRequest| NetworkServiceRequest::new(name, vec![link]);
    let mut book = row(2);
    admit(&mut book, &network("ten", link(Some(10), "b1")));
    let error = refused(&mut book, &network("more", link(Some(10), "a2")));
    assert!(error.contains("the port of host a1 has another virtual link with VLAN id 10"), "{error}");
    let error = refused(&mut book, &network("more", link(None, "a2")));
    assert!(error.contains("give this one a `vlan` there"), "{error}");
    admit(&mut book, &network("twenty", link(Some(20), "a2")));
    assert_eq!(book.rate("twenty", "a1-a2", 1), Some(Bps(1_000_000)));
}
