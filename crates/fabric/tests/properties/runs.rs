//! Tests that bursts and runs give the same result as single packets.
use crate::model::{fabric_configs, switch_configs};
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;
use weir_fabric::*;
use weir_units::{Bps, Instant};

/// A burst for a crosspoint (switch, input, output, lengths), and how long the output then sends in ns, if it does.
type Step = (u16, u16, u16, Vec<u32>, Option<u32>);

fn steps() -> impl Strategy<Value = Step> {
    let burst = vec(prop_oneof![60u32..=100, 1350u32..=1500], 0..12);
    (0..3u16, 0..4u16, 0..2u16, burst, proptest::option::weighted(0.6, 0..40_000u32))
}

/// All effects on a fabric: departures with their times, dropped packets, how the run of each step ended, and
/// counters.
type Seen = (Vec<(Instant, FabricDeparture<u64>)>, Vec<FabricDrop<u64>>, Vec<DequeueStop>, Vec<CrosspointCounters>);

fn run(config: &FabricConfig, switches: &[VirtualSwitchConfig], steps: &[Step], at_once: bool) -> Seen {
    let mut fabric = Fabric::new(config.clone()).unwrap();
    switches.iter().for_each(|switch| _ = fabric.add(Instant::ZERO, switch.clone()));
    let mut lines = vec![OutputLine::new(Bps(1_000_000_000), Duration::ZERO); 2];
    let (mut now, mut number) = (Instant::ZERO, 0);
    let (mut left, mut dropped, mut pauses) = (Vec::new(), Vec::new(), Vec::new());
    for (switch, input, output, burst, time) in steps {
        let at =
            Crosspoint { switch: VirtualSwitchIndex(*switch), input: PortIndex(*input), output: PortIndex(*output) };
        let packets = burst.iter().map(|bytes| {
            number += 1;
            FabricPacket { number, ..FabricPacket::new(*bytes, number) }
        });
        if at_once {
            fabric.enqueue_all(now, at, packets, &mut dropped);
        } else {
            packets.for_each(|packet| _ = fabric.enqueue(now, at, packet, &mut dropped));
        }
        let Some(time) = time else { continue };
        let (line, until) = (&mut lines[usize::from(*output)], now + Duration::from_nanos((*time).into()));
        let first = line.free_at().max(now);
        let mut starts = first;
        let mut send = |departure: FabricDeparture<u64>| {
            let bytes = departure.bytes;
            left.push((starts, departure));
            starts = line.send(starts, bytes);
            (starts <= until).then_some(starts)
        };
        if first <= until {
            pauses.push(if at_once {
                fabric.dequeue_run(first, at.output, &mut send)
            } else {
                one_by_one(&mut fabric, first, at.output, &mut send)
            });
        }
        now = until;
    }
    let crosspoints =
        (0..3).flat_map(|switch| (0..3).flat_map(move |input| (0..2).map(move |output| (switch, input, output))));
    let counters = crosspoints.filter_map(|(switch, input, output)| {
        fabric.counters(Crosspoint {
            switch: VirtualSwitchIndex(switch),
            input: PortIndex(input),
            output: PortIndex(output),
        })
    });
    let counters = counters.collect();
    (left, dropped, pauses, counters)
}

fn one_by_one(
    fabric: &mut Fabric<u64>,
    mut now: Instant,
    output: PortIndex,
    send: &mut impl FnMut(FabricDeparture<u64>) -> Option<Instant>,
) -> DequeueStop {
    loop {
        match fabric.dequeue(now, output) {
            DequeueResult::Packet(departure) => match send(departure) {
                Some(then) => now = then,
                None => return DequeueStop::Stopped,
            },
            DequeueResult::Wait(until) => return DequeueStop::Wait(until),
            DequeueResult::Empty => return DequeueStop::Empty,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    /// For all disciplines, sharings, ceilings and queue managers: the same packets leave at the same times, are
    /// dropped for the same reasons in the same order, and are counted alike.
    #[test]
    fn are_the_same_as_single_packets(
        fabric in fabric_configs(),
        switches in vec(switch_configs(), 3),
        steps in vec(steps(), 1..60),
    ) {
        let (runs, single) = (run(&fabric, &switches, &steps, true), run(&fabric, &switches, &steps, false));
        for (run, single) in runs.0.iter().zip(&single.0) {
            prop_assert_eq!(run, single);
        }
        prop_assert_eq!(&runs.1, &single.1);
        prop_assert_eq!(&runs.2, &single.2);
        prop_assert_eq!(runs, single);
    }
}
