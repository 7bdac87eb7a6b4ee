//! Admits virtual links with a promised delay over two substrate links, and shows what refusals offer.
//!
//! `cargo run -p weir-vnet --example promised_links`
use std::time::Duration;
use weir_units::{Bps, ByteSize};
use weir_vnet::admission::{ETHERNET_OVERHEAD, LinkAdmission, LinkDemand, PromiseError, QueuedLink};

fn main() -> Result<(), PromiseError> {
    let links = ["s1-s2", "s2-s3"].map(|name| QueuedLink {
        propagation: Duration::from_micros(5),
        switch_latency: Duration::from_micros(10),
        buffer: ByteSize(64_000),
        other_packet: ByteSize(1514),
        ..QueuedLink::new(name, Bps(1_000_000_000))
    });
    let mut admission = LinkAdmission::new(ETHERNET_OVERHEAD, links)?;
    let demand = |name: &str, mbps: u64, burst: u64, delay: u64| {
        LinkDemand::new(name, ["s1-s2", "s2-s3"], Bps(mbps * 1_000_000))
            .with_packets(ByteSize(200), ByteSize(1514))
            .with_burst(ByteSize(burst))
            .within(Duration::from_micros(delay))
    };
    let demands = [
        demand("voice", 20, 2000, 500),
        demand("video", 200, 20_000, 600),
        demand("backup", 900, 10_000, 2000),
        demand("control", 10, 1514, 400),
        demand("mirror", 50, 60_000, 5000),
    ];
    for demand in demands {
        let name = demand.name.clone();
        match admission.request(demand) {
            Ok(bound) => println!("{name}: no packet takes more than {:?}, by {:?}", bound.delay, bound.method),
            Err(refused) => println!("{refused}"),
        }
    }
    Ok(())
}
