//! The virtual switch that is added and removed during runs. It has all ports and the packets to its prefix.
use super::frames::VIRTUAL_PREFIX;
use weir_slicing::{FabricPort, FabricSpec, PacketSelector, VirtualPortSpec, VirtualSwitch};
use weir_units::{Bps, ByteSize};

/// Name of the virtual switch.
pub(super) const NAME: &str = "tenant";

/// Returns the fabric of a switch with `ports` ports.
pub(super) fn fabric(ports: u32) -> FabricSpec {
    let ports = (1..=ports).map(|port| FabricPort { port, rate: Bps(1_000_000_000) });
    FabricSpec { ports: ports.collect(), ..FabricSpec::default() }
}

/// Returns the specification of the virtual switch on a switch with `ports` ports.
pub(super) fn spec(ports: u32) -> VirtualSwitch {
    let (fabric, rate) = (fabric(ports), Bps(400_000_000));
    let shares = fabric.ports.iter().map(|port| VirtualPortSpec::new(port, rate, rate)).collect();
    let ip_dst = Some(VIRTUAL_PREFIX.parse().expect("an address with its prefix"));
    let select = vec![PacketSelector { ip_dst, ..PacketSelector::default() }];
    VirtualSwitch { select, ..VirtualSwitch::new(NAME, 257, shares, ByteSize(64_000), &fabric) }
}
