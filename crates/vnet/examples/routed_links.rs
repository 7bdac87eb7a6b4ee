//! Places the routers of a virtual network on a ring of switches, routes virtual links, splits one, and shows what a
//! refusal offers.
//!
//! `cargo run -p weir-vnet --example routed_links`
use std::time::Duration;
use weir_topology::generate::{RegularTopology, generate};
use weir_units::{Bps, ByteSize};
use weir_vnet::admission::{ETHERNET_OVERHEAD, QueuedLink};
use weir_vnet::placement::{NetworkPlacement, SwitchRoom, VirtualNetworkRequest, VirtualRouter};
use weir_vnet::ways::{LinkRouting, Substrate, VirtualLinkRequest, WaySettings};

fn mbps(rate: u64) -> Bps {
    Bps(rate * 1_000_000)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let ring = generate(RegularTopology::Ring { switches: 5 })?;
    let usual = QueuedLink {
        propagation: Duration::from_micros(50),
        switch_latency: Duration::from_micros(10),
        buffer: ByteSize(100_000),
        other_packet: ByteSize(1514),
        ..QueuedLink::new("usual", mbps(1000))
    };
    let substrate = Substrate::from_topology(ETHERNET_OVERHEAD, &ring, &usual)?.with_host("h1", "s1")?;

    let mut routing = LinkRouting::new(substrate.clone(), WaySettings::default())?;
    let request = |name: &str, rate: u64| {
        VirtualLinkRequest::new(name, "h1", "s3", mbps(rate)).with_packets(ByteSize(500), ByteSize(1514))
    };
    for request in [
        request("voice", 20).within(Duration::from_micros(300)),
        request("video", 600).avoiding(["s2"]),
        request("backup", 950).within(Duration::from_millis(2)),
        request("backup", 950).within(Duration::from_millis(2)).over_ways(2),
        request("mirror", 300).avoiding(["s2"]),
    ] {
        let name = request.name.clone();
        match routing.request(request) {
            Ok(link) => {
                let ways: Vec<String> =
                    link.ways.iter().map(|way| format!("{} over {}", way.rate, way.path.join(", "))).collect();
                println!(
                    "{name}: {}; no packet takes more than {:?}",
                    ways.join(" and "),
                    routing.delay(&name).unwrap_or_default()
                );
            }
            Err(refused) => println!("{refused}"),
        }
    }

    let room = SwitchRoom { ports: 8, entries: 1000, rate: mbps(10_000) };
    let mut placement = NetworkPlacement::new(LinkRouting::new(substrate, WaySettings::default())?, |_| room);
    let needs = SwitchRoom { ports: 2, entries: 700, rate: mbps(500) };
    let routers = vec![
        VirtualRouter::new("west", needs).at("h1"),
        VirtualRouter::new("core", needs),
        VirtualRouter::new("east", needs).at("s4"),
    ];
    let link = |name: &str, from: &str, to: &str| VirtualLinkRequest::new(name, from, to, mbps(100));
    let links = vec![link("up", "west", "core"), link("on", "core", "east"), link("back", "east", "west")];
    let placed = placement.request(VirtualNetworkRequest { name: "blue".to_owned(), routers, links })?;
    let reserved = placed.reserved / 1_000_000;
    println!("{}: {:?}, {reserved}Mbit/s times links", placed.request.name, placed.places);
    Ok(())
}
