//! Tests of merging: a split virtual link is put together again.
use std::time::Duration;
use weir_fabric::{
    Crosspoint, DequeueResult, Fabric, FabricConfig, FabricDrop, FabricDropReason, FabricPacket, InputConfig,
    IntraDiscipline, OutputConfig, PortIndex, VirtualPort, VirtualSwitchConfig, VirtualSwitchIndex,
};
use weir_units::{Bps, Instant};

const PATIENCE: Duration = Duration::from_micros(100);

/// Merge of two paths; the items of packets are their numbers.
struct Merge {
    fabric: Fabric<u64>,
    switch: VirtualSwitchIndex,
    dropped: Vec<FabricDrop<u64>>,
}

impl Merge {
    fn new(patience: Duration) -> Merge {
        let rate = Bps(1_000_000_000);
        let outputs = vec![OutputConfig::new(rate, 192_000)];
        let config = FabricConfig { inputs: vec![InputConfig { rate }; 2], outputs, ..FabricConfig::default() };
        let mut fabric = Fabric::new(config).unwrap();
        let mut ports: Vec<VirtualPort> = (0..2).map(|port| VirtualPort::new(PortIndex(port), rate)).collect();
        ports[1].rate_out = Bps(0);
        let intra = IntraDiscipline::Merge { patience };
        let switch = fabric
            .add(Instant::ZERO, VirtualSwitchConfig { intra, ..VirtualSwitchConfig::new("merge", ports, 96_000) });
        Merge { fabric, switch: switch.unwrap(), dropped: Vec::new() }
    }

    fn at(&self, path: u16) -> Crosspoint {
        Crosspoint { switch: self.switch, input: PortIndex(path), output: PortIndex(0) }
    }

    fn arrives(&mut self, ns: u64, path: u16, number: u64) -> bool {
        let packet = FabricPacket { number, ..FabricPacket::new(1000, number) };
        self.fabric.enqueue(Instant::from_nanos(ns), self.at(path), packet, &mut self.dropped)
    }

    fn next(&mut self, ns: u64) -> DequeueResult<u64> {
        self.fabric.dequeue(Instant::from_nanos(ns), PortIndex(0))
    }

    fn serves(&mut self, ns: u64, number: u64) {
        match self.next(ns) {
            DequeueResult::Packet(departure) => assert_eq!(departure.item, number),
            other => panic!("expected number {number}, found {other:?}"),
        }
    }
}

#[test]
fn serves_in_order() {
    let mut merge = Merge::new(PATIENCE);
    for (number, path) in [(1, 1), (3, 1), (0, 0), (2, 0)] {
        assert!(merge.arrives(0, path, number));
    }
    (0..4).for_each(|number| merge.serves(0, number));
    assert_eq!(merge.next(0), DequeueResult::Empty);
    assert_eq!(merge.fabric.merge_counters(merge.switch, PortIndex(0)).unwrap().missing, 0);
}

#[test]
fn waits_for_what_may_come() {
    let mut merge = Merge::new(PATIENCE);
    merge.arrives(500, 1, 1);
    assert_eq!(merge.next(500), DequeueResult::Wait(Instant::from_nanos(100_500)));
    merge.arrives(600, 0, 0);
    merge.serves(600, 0);
    merge.serves(600, 1);
}

#[test]
fn gives_up_and_drops_what_comes_late() {
    let mut merge = Merge::new(PATIENCE);
    merge.arrives(0, 1, 2);
    assert_eq!(merge.next(99_999), DequeueResult::Wait(Instant::from_nanos(100_000)));
    merge.serves(100_000, 2);
    assert!(!merge.arrives(100_001, 0, 0), "late");
    assert_eq!(merge.dropped[0].reason, FabricDropReason::Late);
    let counters = merge.fabric.merge_counters(merge.switch, PortIndex(0)).unwrap();
    assert_eq!((counters.missing, counters.gave_up), (2, 1));
    assert_eq!(merge.fabric.counters(merge.at(0)).unwrap().dropped_for(FabricDropReason::Late).packets, 1);
}

#[test]
fn a_packet_on_every_path_shows_what_was_lost() {
    let mut merge = Merge::new(Duration::MAX);
    merge.arrives(0, 0, 4);
    assert_eq!(merge.next(0), DequeueResult::Wait(Instant::FAR));
    merge.arrives(0, 1, 5);
    merge.serves(0, 4);
    merge.serves(0, 5);
    assert_eq!(merge.fabric.merge_counters(merge.switch, PortIndex(0)).unwrap().missing, 4);
}

#[test]
fn a_finished_path_is_not_waited_for() {
    let mut merge = Merge::new(Duration::MAX);
    merge.arrives(0, 0, 7);
    assert_eq!(merge.next(0), DequeueResult::Wait(Instant::FAR));
    merge.fabric.finish(merge.at(1));
    merge.serves(0, 7);
}

#[test]
fn a_finished_path_is_not_waited_for_after_a_resize() {
    let mut merge = Merge::new(Duration::MAX);
    merge.fabric.finish(merge.at(1));
    let config = merge.fabric.switch(merge.switch).unwrap().clone();
    merge.fabric.resize(Instant::ZERO, merge.switch, config, &mut merge.dropped).unwrap();
    merge.arrives(0, 0, 7);
    merge.serves(0, 7);
}

#[test]
fn a_link_that_starts_anew_is_served() {
    let mut merge = Merge::new(PATIENCE);
    merge.arrives(0, 0, 1 << 40);
    merge.serves(100_000, 1 << 40);
    assert!(merge.arrives(200_000, 0, 0), "the first of a new series");
    merge.serves(200_000, 0);
}
