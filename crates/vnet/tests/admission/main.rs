//! Checks bounds against published closed forms and simulated packets, and decisions against the bounds.
mod drawn;
mod offers;
mod packets;
mod published;
mod refused;
mod whole;

use std::time::Duration;
use weir_units::{Bps, ByteSize};
use weir_vnet::admission::{LinkAdmission, LinkDemand, Multiplexing, QueuedLink};

const US: Duration = Duration::from_micros(1);

fn mbps(rate: u64) -> Bps {
    Bps(rate * 1_000_000)
}

/// Returns a virtual link of packets of 1500 bytes.
fn demand(name: &str, path: &[&str], rate: Bps, packets: u64) -> LinkDemand {
    let size = ByteSize(1500);
    LinkDemand::new(name, path.iter().copied(), rate).with_packets(size, size).with_burst(ByteSize(1500 * packets))
}

/// Returns links of 10 Mbit/s without overhead of frames.
fn admission(links: &[&str], multiplexing: Multiplexing) -> LinkAdmission {
    let link = |name: &&str| QueuedLink { multiplexing, ..QueuedLink::new(*name, mbps(10)) };
    LinkAdmission::new(ByteSize(0), links.iter().map(link)).unwrap()
}
