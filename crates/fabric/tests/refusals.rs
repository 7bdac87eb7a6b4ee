//! Tests that a fabric refuses invalid requests with the reason and changes nothing, and of changes while packets
//! wait.
use std::time::Duration;
use weir_fabric::{
    AdmissionError, Crosspoint, CrosspointBuffers, DequeueResult, Fabric, FabricConfig, FabricDropReason, FabricPacket,
    ForwardingMatrix, InputConfig, OutputConfig, PortIndex, VirtualPort, VirtualSwitchConfig, VirtualSwitchIndex,
};
use weir_units::{Bps, Instant};

const RATE: Bps = Bps(1_000_000_000);
const NOW: Instant = Instant::from_nanos(1_000_000);

/// Returns a fabric with two ports of 1 Gbit/s, crosspoints of 10 kB, and packets of at most 1500 bytes.
fn fabric() -> Fabric<u32> {
    let config = FabricConfig {
        inputs: vec![InputConfig { rate: RATE }; 2],
        outputs: vec![OutputConfig::new(RATE, 10_000); 2],
        max_packet: 1500,
        ..FabricConfig::default()
    };
    Fabric::new(config).unwrap()
}

/// Returns a virtual switch with half of both ports.
fn half(name: &str) -> VirtualSwitchConfig {
    let ports = (0..2).map(|port| VirtualPort::new(PortIndex(port), Bps(RATE.0 / 2))).collect();
    VirtualSwitchConfig::new(name, ports, 5000)
}

const AT: Crosspoint = Crosspoint { switch: VirtualSwitchIndex(0), input: PortIndex(0), output: PortIndex(1) };

#[test]
fn what_does_not_fit_or_makes_no_sense_is_refused_and_changes_nothing() {
    let mut fabric = fabric();
    fabric.add(NOW, half("first")).unwrap();
    let of = |change: &dyn Fn(&mut VirtualSwitchConfig)| {
        let mut config = half("second");
        change(&mut config);
        config
    };
    let path = (PortIndex(0), PortIndex(7));
    let cases: [(&str, VirtualSwitchConfig); 9] = [
        (
            "input 0: asked for 600Mbit/s, 500Mbit/s of 1Gbit/s are free: 100Mbit/s short",
            of(&|c| c.ports[0].rate_in = Bps(600_000_000)),
        ),
        (
            "crosspoint 0 to 0: asked for 6000 bytes, 5000 of 10000 are free: 1000 short",
            of(&|c| c.buffers.default = 6000),
        ),
        (
            "crosspoint 0 to 0: found 1499 bytes, expected at least one packet of 1500",
            of(&|c| c.buffers = CrosspointBuffers { default: 1499, per_crosspoint: Vec::new() }),
        ),
        ("quantum: found 0 bytes, expected 1 to", of(&|c| c.ports[1].quantum = 0)),
        ("port 2: there is no such", of(&|c| c.ports[1].physical = PortIndex(2))),
        ("port 0: found twice, expected each once", of(&|c| c.ports[1].physical = PortIndex(0))),
        ("found no port to come in or none to leave by", of(&|c| c.ports.clear())),
        ("path 0 to 7: found no such input or output", of(&|c| c.forwarding = ForwardingMatrix::Paths(vec![path]))),
        ("which is not after now", of(&|c| c.expires = Some(NOW))),
    ];
    let before: Vec<_> = fabric.switches().map(|(index, config)| (index, config.clone())).collect();
    for (says, config) in &cases {
        let refused = fabric.add(NOW, config.clone()).unwrap_err().to_string();
        assert!(refused.contains(says), "{says}: {refused}");
    }
    // The requests are also refused as changes of an existing virtual switch, which stays as it was. Only requests
    // that are short fit then, because the switch's own resources count as free.
    for (says, config) in cases.iter().filter(|(says, _)| !says.contains("short")) {
        let refused =
            fabric.resize(NOW, VirtualSwitchIndex(0), config.clone(), &mut Vec::new()).unwrap_err().to_string();
        assert!(refused.contains(says), "{says}: {refused}");
    }
    let none = fabric.resize(NOW, VirtualSwitchIndex(3), half("third"), &mut Vec::new());
    assert_eq!(none, Err(AdmissionError::NoSuchSwitch(VirtualSwitchIndex(3))));
    let after: Vec<_> = fabric.switches().map(|(index, config)| (index, config.clone())).collect();
    assert_eq!(before, after);
    fabric.add(NOW, half("second")).unwrap();
}

#[test]
fn a_smaller_buffer_keeps_the_oldest_that_fit_and_touches_nobody_else() {
    let (mut fabric, mut dropped) = (fabric(), Vec::new());
    fabric.add(NOW, half("first")).unwrap();
    fabric.add(NOW, half("second")).unwrap();
    let other = Crosspoint { switch: VirtualSwitchIndex(1), ..AT };
    for number in 0..5 {
        assert!(fabric.enqueue(NOW, AT, FabricPacket::new(1000, number), &mut dropped));
        assert!(fabric.enqueue(NOW, other, FabricPacket::new(1000, 100 + number), &mut dropped));
    }
    let mut smaller = half("first");
    smaller.buffers.default = 2500;
    fabric.resize(NOW, VirtualSwitchIndex(0), smaller, &mut dropped).unwrap();
    let mut lost: Vec<u32> = dropped.drain(..).map(|dropped| dropped.packet.item).collect();
    lost.sort_unstable();
    assert_eq!(lost, [2, 3, 4], "the youngest");
    // The first switch ends while packets of the other one wait.
    fabric.remove(NOW, VirtualSwitchIndex(0), &mut dropped);
    assert!(dropped.iter().all(|dropped| dropped.reason == FabricDropReason::Removed));
    assert_eq!(dropped.drain(..).map(|dropped| dropped.packet.item).collect::<Vec<_>>(), [0, 1]);
    let mut left = Vec::new();
    while let DequeueResult::Packet(departure) = fabric.dequeue(NOW + Duration::from_millis(1), PortIndex(1)) {
        left.push(departure.item);
    }
    assert_eq!(left, [100, 101, 102, 103, 104]);
    assert!(!fabric.enqueue(NOW, AT, FabricPacket::new(1000, 9), &mut dropped), "nobody's");
}
