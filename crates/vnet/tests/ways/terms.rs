//! Terms of requests: waypoints, switches and links to avoid, hosts, costs, and what is left for others.
use super::*;
use weir_topology::generate::{RegularTopology, generate};

const SQUARE: [(&str, u64); 8] =
    [("ab", 10), ("bd", 10), ("ac", 10), ("cd", 10), ("ba", 10), ("db", 10), ("ca", 10), ("dc", 10)];

fn path(routing: &mut LinkRouting, request: VirtualLinkRequest) -> String {
    let name = request.name.clone();
    routing.request(request).unwrap();
    let path = routing.get(&name).unwrap().ways[0].path.join(" ");
    routing.release(&name).unwrap();
    path
}

#[test]
fn ways_keep_to_their_terms() {
    let mut routing = routing(&SQUARE);
    assert_eq!(path(&mut routing, request("v", "ad", 1)), "ab bd");
    assert_eq!(path(&mut routing, request("v", "ad", 1).avoiding(["b"])), "ac cd");
    assert_eq!(path(&mut routing, request("v", "ad", 1).avoiding(["ab"])), "ac cd");
    assert_eq!(path(&mut routing, request("v", "ad", 1).through(["c"])), "ac cd");
    assert_eq!(path(&mut routing, request("v", "ab", 1).through(["c"])), "ac cd db");
    assert_eq!(path(&mut routing, request("v", "aa", 1).through(["d"])), "ab bd db ba", "there and back");
    assert_eq!(path(&mut routing, request("v", "ad", 1).through(["c", "b"])), "ac cd db bd");
    let mut routing = super::routing(&[("ab", 10), ("ac", 10), ("ca", 10)]);
    assert_eq!(path(&mut routing, request("v", "ab", 1).through(["c"])), "ac ca ab", "past c and back");
}

#[test]
fn what_is_left_for_others_decides() {
    let mut routing = routing(&SQUARE);
    routing.request(request("old", "ab", 3)).unwrap();
    assert_eq!(path(&mut routing, request("v", "ad", 1)), "ac cd", "more rate is left there");
    let long = [("ab", 10), ("ac", 100), ("cd", 100), ("db", 100)];
    let mut routing = super::routing(&long);
    assert_eq!(path(&mut routing, request("v", "ab", 1)), "ac cd db", "three links with much left");
    assert_eq!(path(&mut routing, request("v", "ab", 1).weighing_cost(50)), "ab", "a link costs 5% more");
    assert_eq!(path(&mut routing, request("v", "ab", 1).weighing_cost(u32::MAX)), "ab", "only costs count");
}

#[test]
fn costs_of_links_count() {
    let mut links: Vec<SwitchLink> = substrate(&SQUARE).links().to_vec();
    links[0].cost = 3;
    let substrate = Substrate::new(NO_OVERHEAD, ["a", "b", "c", "d"], links).unwrap();
    let settings = WaySettings { ways: 1, ..WaySettings::default() };
    let mut routing = LinkRouting::new(substrate, settings).unwrap();
    assert_eq!(path(&mut routing, request("v", "ad", 1)), "ac cd");
}

#[test]
fn topologies_become_substrates() {
    let mut ring = generate(RegularTopology::Ring { switches: 3 }).unwrap();
    ring.links.push(ring.links[0]);
    ring.links[0].rate = Some(mbps(5));
    ring.links[1].delay = Some(7 * US);
    let usual = QueuedLink { propagation: 2 * US, buffer: ByteSize(9000), ..QueuedLink::new("usual", mbps(10)) };
    let substrate = Substrate::from_topology(NO_OVERHEAD, &ring, &usual).unwrap();
    let substrate = substrate.with_host("h1", "s1").unwrap().with_host("h3", "s3").unwrap();
    let names: Vec<&str> = substrate.links().iter().map(|link| link.queue.name.as_str()).collect();
    assert_eq!(names, ["s1-s2", "s2-s1", "s2-s3", "s3-s2", "s3-s1", "s1-s3", "s1-s2-2", "s2-s1-2"]);
    let queues = [0, 2, 4].map(|link| &substrate.links()[link].queue);
    assert_eq!(queues.map(|queue| queue.capacity), [5, 10, 10].map(mbps));
    assert_eq!(queues.map(|queue| queue.propagation), [2 * US, 7 * US, 2 * US]);
    assert!(queues.iter().all(|queue| queue.buffer == ByteSize(9000)));
    assert_eq!(
        (substrate.switch_at("h3"), substrate.switch_at("s2"), substrate.switch_at("x")),
        (Some("s3"), Some("s2"), None)
    );
    let mut routing = LinkRouting::new(substrate, WaySettings::default()).unwrap();
    assert_eq!(path(&mut routing, VirtualLinkRequest::new("v", "h1", "h3", mbps(1))), "s1-s3");
}
