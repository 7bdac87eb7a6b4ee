//! Tests that ceilings hold over any window.
use proptest::prelude::*;
use std::time::Duration;
use weir_fabric::*;
use weir_units::{Bps, Instant};

const RATE: Bps = Bps(1_000_000_000);

proptest! {
    /// Between any two starts of transmission, a switch with a ceiling sends no more than its ceiling and its slack
    /// allow.
    #[test]
    fn never_exceeded_over_any_window(
        ceiling in 50_000_000..600_000_000u64,
        slack_us in prop_oneof![Just(0u64), 1..200u64],
        arrivals in proptest::collection::vec((0..40_000u64, 0..3u16, 60..1500u32), 50..300),
    ) {
        let slack = Duration::from_micros(slack_us);
        let mut fabric = two_switches(Bps(ceiling), slack);
        let starts = run(&mut fabric, &arrivals);
        let per_byte = 8e9 / ceiling as f64;
        for (place, (start, _)) in starts.iter().enumerate() {
            let mut bytes = 0u64;
            for (later, length) in &starts[place..] {
                let elapsed = (later - start) as f64 + slack.as_nanos() as f64;
                prop_assert!(bytes as f64 * per_byte <= elapsed + 2.0, "{bytes} bytes in {elapsed} ns");
                bytes += u64::from(*length);
            }
        }
    }

    /// A switch that always has packets and has the line to itself sends at its ceiling.
    #[test]
    fn reached(ceiling in 50_000_000..600_000_000u64, lengths in proptest::collection::vec(60..1500u32, 2..60)) {
        let mut fabric = two_switches(Bps(ceiling), Duration::ZERO);
        let arrivals: Vec<(u64, u16, u32)> = lengths.iter().map(|bytes| (0, 0, *bytes)).collect();
        let starts = run(&mut fabric, &arrivals);
        let sent: u32 = lengths[..lengths.len() - 1].iter().sum();
        let took = starts.last().unwrap().0 as f64;
        let expected = f64::from(sent) * 8e9 / ceiling as f64;
        prop_assert!((took - expected).abs() < 2.0 + lengths.len() as f64, "took {took} ns, expected {expected}");
    }
}

/// A neighbour that always has packets delays each packet of a switch below its ceiling. With a burst of two packets
/// that costs no rate; without one, each wait does.
#[test]
fn waits_for_others_cost_no_rate() {
    let ceiling = Bps(190_000_000);
    let arrivals: Vec<(u64, u16, u32)> =
        (0..600).map(|packet| (0, if packet % 3 == 0 { 0 } else { 2 }, 1500)).collect();
    let took = |burst: u32| {
        let mut fabric = with_burst(ceiling, burst);
        let starts = run(&mut fabric, &arrivals);
        starts.last().unwrap().0 as f64
    };
    let expected = 199.0 * 1500.0 * 8e9 / ceiling.0 as f64;
    assert!(took(3000) <= expected, "{} ns, expected at most {expected}", took(3000));
    assert!(took(3000) >= 0.98 * expected, "the ceiling holds: {} ns", took(3000));
    assert!(took(0) > 1.05 * expected, "{} ns", took(0));
}

/// Tags that a ceiling does not count take line time only: short packets get the whole rate of what counts.
#[test]
fn tags_do_not_count() {
    let ceiling = Bps(100_000_000);
    let output = OutputConfig::new(RATE, 4_000_000);
    let config =
        FabricConfig { inputs: vec![InputConfig { rate: RATE }], outputs: vec![output], ..FabricConfig::default() };
    let mut fabric = Fabric::new(config).unwrap();
    let port = VirtualPort { ceiling: Some(ceiling), uncounted: 4, ..VirtualPort::new(PortIndex(0), Bps(40_000_000)) };
    fabric.add(Instant::ZERO, VirtualSwitchConfig::new("v", vec![port], 2_000_000)).unwrap();
    let arrivals = vec![(0, 0, 64); 200];
    let took = run(&mut fabric, &arrivals).last().unwrap().0 as f64;
    let expected = 199.0 * 60.0 * 8e9 / ceiling.0 as f64;
    assert!((took - expected).abs() < 300.0, "took {took} ns, expected {expected}");
}

/// Returns a fabric in which switch 0 has a ceiling with a burst and a quantum of a packet, and switch 1 neither.
fn with_burst(ceiling: Bps, ceiling_burst: u32) -> Fabric<()> {
    let output = OutputConfig::new(RATE, 4_000_000);
    let config =
        FabricConfig { inputs: vec![InputConfig { rate: RATE }], outputs: vec![output], ..FabricConfig::default() };
    let mut fabric = Fabric::new(config).unwrap();
    for (ceiling, quantum) in [(Some(ceiling), 1500), (None, 3000)] {
        let port = VirtualPort { ceiling, ceiling_burst, quantum, ..VirtualPort::new(PortIndex(0), Bps(40_000_000)) };
        fabric.add(Instant::ZERO, VirtualSwitchConfig::new("v", vec![port], 2_000_000)).unwrap();
    }
    fabric
}

/// Returns a fabric in which switch 0 has a ceiling and switch 1 has none.
fn two_switches(ceiling: Bps, ceiling_slack: Duration) -> Fabric<()> {
    let output = OutputConfig { ceiling_slack, ..OutputConfig::new(RATE, 2_000_000) };
    let config =
        FabricConfig { inputs: vec![InputConfig { rate: RATE }], outputs: vec![output], ..FabricConfig::default() };
    let mut fabric = Fabric::new(config).unwrap();
    for ceiling in [Some(ceiling), None] {
        let port = VirtualPort { ceiling, ..VirtualPort::new(PortIndex(0), Bps(40_000_000)) };
        fabric.add(Instant::ZERO, VirtualSwitchConfig::new("v", vec![port], 1_000_000)).unwrap();
    }
    fabric
}

/// Runs arrivals (gap to the previous one, switch drawn of three, bytes), of which two thirds are for switch 0.
/// Returns start time and length of the packets of switch 0.
fn run(fabric: &mut Fabric<()>, arrivals: &[(u64, u16, u32)]) -> Vec<(u64, u32)> {
    let mut line = OutputLine::new(RATE, Duration::ZERO);
    let (mut now, mut comes) = (Instant::ZERO, 0);
    let mut coming = arrivals.iter().map(|(gap, switch, bytes)| {
        comes += gap;
        (Instant::from_nanos(comes), switch / 2, *bytes)
    });
    let mut starts = Vec::new();
    let mut arrival = coming.next();
    loop {
        while let Some((_, switch, bytes)) = arrival.filter(|(at, ..)| *at <= now) {
            let at = Crosspoint { switch: VirtualSwitchIndex(switch), input: PortIndex(0), output: PortIndex(0) };
            assert!(fabric.enqueue(now, at, FabricPacket::new(bytes, ()), &mut Vec::new()));
            arrival = coming.next();
        }
        let next_arrival = arrival.map(|(at, ..)| at);
        now = match fabric.dequeue(now, PortIndex(0)) {
            DequeueResult::Packet(departure) => {
                if departure.switch == VirtualSwitchIndex(0) {
                    starts.push((now.as_nanos(), departure.bytes));
                }
                line.send(now, departure.bytes)
            }
            DequeueResult::Wait(until) => next_arrival.map_or(until, |at| at.min(until)),
            DequeueResult::Empty => match next_arrival {
                Some(at) => at,
                None => return starts,
            },
        };
    }
}
