//! Checks ways of virtual links against all paths of small networks, offers by asking for them, and what is given back.
mod cycles;
mod drawn;
mod offers;
mod oracle;
mod refused;
mod split;
mod terms;

use std::time::Duration;
use weir_units::{Bps, ByteSize};
use weir_vnet::admission::QueuedLink;
use weir_vnet::ways::{LinkRouting, Substrate, SwitchLink, VirtualLinkRequest, WaySettings};

const US: Duration = Duration::from_micros(1);
const NO_OVERHEAD: ByteSize = ByteSize(0);

fn mbps(rate: u64) -> Bps {
    Bps(rate * 1_000_000)
}

/// Returns links of these capacities in Mbit/s, named by their switches, which are single letters.
fn substrate(links: &[(&str, u64)]) -> Substrate {
    let switches = ["a", "b", "c", "d", "e"];
    let link = |(name, capacity): &(&str, u64)| {
        SwitchLink::new(&name[..1], &name[1..], QueuedLink::new(*name, mbps(*capacity)))
    };
    Substrate::new(NO_OVERHEAD, switches, links.iter().map(link)).unwrap()
}

fn routing(links: &[(&str, u64)]) -> LinkRouting {
    LinkRouting::new(substrate(links), WaySettings::default()).unwrap()
}

fn request(name: &str, ends: &str, rate: u64) -> VirtualLinkRequest {
    VirtualLinkRequest::new(name, &ends[..1], &ends[1..], mbps(rate))
}

/// Returns the paths of a virtual link, and their rates in bit/s.
fn ways(routing: &LinkRouting, name: &str) -> Vec<(String, u64)> {
    routing.get(name).unwrap().ways.iter().map(|way| (way.path.join(" "), way.rate.0)).collect()
}
