//! Tests of resizing: what a virtual switch keeps.
use weir_fabric::{
    Crosspoint, DropPolicy, Fabric, FabricConfig, FabricDropReason, FabricPacket, InputConfig, OutputConfig, PortIndex,
    RedConfig, VirtualPort, VirtualSwitchConfig,
};
use weir_units::{Bps, Instant};

/// The queue is as long after a resize as before it, so that RED has no reason to begin with an empty one.
#[test]
fn red_goes_on_with_its_average() {
    let rate = Bps(1_000_000_000);
    let outputs = vec![OutputConfig::new(rate, 192_000)];
    let mut fabric =
        Fabric::new(FabricConfig { inputs: vec![InputConfig { rate }], outputs, ..FabricConfig::default() }).unwrap();
    // The average is half the present length after the first packets, and above the upper threshold in the end.
    let red = RedConfig { min: Some(5000), max: Some(10_000), weight: 0.1, ..RedConfig::default() };
    let config = VirtualSwitchConfig {
        drop_policy: DropPolicy::Red(red),
        ..VirtualSwitchConfig::new("red", vec![VirtualPort::new(PortIndex(0), rate)], 96_000)
    };
    let switch = fabric.add(Instant::ZERO, config.clone()).unwrap();
    let at = Crosspoint { switch, input: PortIndex(0), output: PortIndex(0) };
    let mut dropped = Vec::new();
    let is_forced = |fabric: &mut Fabric<()>| {
        let mut dropped = Vec::new();
        fabric.enqueue(Instant::ZERO, at, FabricPacket::new(1000, ()), &mut dropped);
        dropped.first().is_some_and(|drop| drop.reason == FabricDropReason::RedForced)
    };
    assert!((0..90).any(|_| is_forced(&mut fabric)), "the average has come to the upper threshold");
    fabric.resize(Instant::ZERO, switch, config, &mut dropped).unwrap();
    assert!(is_forced(&mut fabric));
}
