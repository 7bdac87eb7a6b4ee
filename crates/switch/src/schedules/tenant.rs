//! The virtual switch that is added and removed during runs. It has all ports and the packets to its prefix.
use super::frames::VIRTUAL_PREFIX;
use std::collections::BTreeMap;
use weir_scenario::{FabricSpec, VirtualSwitch};
use weir_units::Bps;

/// Name of the virtual switch.
pub(super) const NAME: &str = "tenant";

/// Returns the fabric of a switch with `ports` ports.
pub(super) fn fabric(ports: u32) -> FabricSpec {
    let ports: BTreeMap<u32, Option<Bps>> = (1..=ports).map(|port| (port, None)).collect();
    FabricSpec::parse_cut("[fabric]\nrate = '1Gbit/s'\n", "schedules", "schedules", ports).expect("it can be read").0
}

/// Returns the specification of the virtual switch on a switch with `ports` ports.
pub(super) fn spec(ports: u32) -> VirtualSwitch {
    let listed: Vec<String> = (1..=ports).map(|port| format!("{{ port = {port}, rate = '400Mbit/s' }}")).collect();
    let text = format!(
        "name = '{NAME}'\ndpid = 257\nports = [{}]\nbuffer = '64kB'\nselect = [{{ ip_dst = '{VIRTUAL_PREFIX}' }}]\n",
        listed.join(", ")
    );
    VirtualSwitch::parse(&text, "schedules", &fabric(ports)).expect("it can be read")
}
