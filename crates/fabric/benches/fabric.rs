//! Benchmark of the fabric's cost per packet: enqueue and dequeue, with as many virtual switches and waiting packets
//! as in live use.
//!
//! `cargo bench -p weir-fabric --bench fabric -- [switches ports [discipline]]` runs one case only; the discipline is
//! given by its place in the list. This is for counting instructions: run the program that `--no-run` names under
//! `valgrind --tool=callgrind --toggle-collect='fabric::turn'` (or `turn_of_one`), which counts only the instructions
//! of that function, and divide by the number of packets in the output. (A pattern such as `*turn*` would also match
//! the fabric's own functions.)
//!
//! Packets arrive in bursts of 32 for outputs and switches drawn at random, and as many leave. The best and the
//! median of many short windows are shown, because other load on the machine only adds time.
#![allow(missing_docs, reason = "a program")]
use std::hint::black_box;
use std::time::Duration;
use weir_fabric::{
    Crosspoint, DequeueResult, Fabric, FabricConfig, FabricDrop, FabricPacket, InputConfig, InterDiscipline,
    IntraDiscipline, OutputConfig, OutputLine, PortIndex, VirtualPort, VirtualSwitchConfig, VirtualSwitchIndex,
};
use weir_testing::rules::SeededRng;
use weir_units::{Bps, Clock, Instant, SystemClock};

const RATE: Bps = Bps(10_000_000_000);
const BURST: usize = 32;
/// Bursts per window.
const BURSTS: usize = 512;
const WINDOWS: usize = 60;
/// Windows when instructions are counted.
const FEW_WINDOWS: usize = 2;

fn main() {
    let numbers: Vec<u16> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let (windows, cases) = match numbers[..] {
        [switches, ports, ..] => (FEW_WINDOWS, vec![(switches, ports)]),
        _ => (WINDOWS, vec![(1, 2), (2, 2), (2, 32), (8, 32), (32, 32)]),
    };
    let disciplines = [
        ("drr, drr", InterDiscipline::Drr, IntraDiscipline::Drr),
        ("drr, round robin", InterDiscipline::Drr, IntraDiscipline::RoundRobin),
        ("drr, fcfs", InterDiscipline::Drr, IntraDiscipline::Fcfs),
        ("drr, lqf", InterDiscipline::Drr, IntraDiscipline::Lqf),
        ("strict, drr", InterDiscipline::StrictPriority, IntraDiscipline::Drr),
    ];
    let only = numbers.get(2).copied().map(usize::from);
    for (switches, ports) in cases {
        let chosen = disciplines.iter().enumerate().filter(|(place, _)| only.is_none_or(|only| only == *place));
        for (_, (name, inter, intra)) in chosen {
            for waiting in [1, 8] {
                measure(name, fabric(*inter, *intra, switches, ports), [switches, ports], waiting, windows);
            }
            runs(name, fabric(*inter, *intra, switches, ports), [switches, ports], windows);
        }
    }
}

/// Measures single packets. `waiting` is the number of packets in the queues of an output, per virtual switch.
fn measure(name: &str, mut fabric: Fabric<usize>, [switches, ports]: [u16; 2], waiting: usize, windows: usize) {
    let (clock, mut draw) = (SystemClock::start(), SeededRng(1));
    let mut dropped = Vec::new();
    for packet in 0..waiting * usize::from(ports) * usize::from(switches) {
        let at = crosspoint(&mut draw, switches, ports);
        enqueue(&mut fabric, Instant::ZERO, at, packet, &mut dropped);
    }
    let mut ns = Vec::new();
    for _ in 0..windows {
        let places: Vec<Crosspoint> = (0..BURST * BURSTS).map(|_| crosspoint(&mut draw, switches, ports)).collect();
        let start = clock.now();
        for burst in places.chunks(BURST) {
            turn(&mut fabric, start, burst, &mut dropped);
        }
        ns.push(clock.now().since(start).as_secs_f64() * 1e9 / (BURST * BURSTS) as f64);
        assert!(dropped.is_empty(), "buffers are large enough");
    }
    ns.sort_by(f64::total_cmp);
    let packets = windows * BURST * BURSTS;
    println!(
        "{switches:>3} switches, {ports:>3} ports, {name:<17} {waiting} waiting: {:5.1} ns, median {:5.1} ({packets} packets)",
        ns[0],
        ns[ns.len() / 2]
    );
}

/// Measures bursts for one crosspoint, each sent at once by a line that is never busy: a live switch's case while
/// packets need not wait.
fn runs(name: &str, mut fabric: Fabric<usize>, [switches, ports]: [u16; 2], windows: usize) {
    let (clock, mut draw) = (SystemClock::start(), SeededRng(1));
    let mut dropped = Vec::new();
    let mut ns = Vec::new();
    for _ in 0..windows {
        let places: Vec<Crosspoint> = (0..BURSTS).map(|_| crosspoint(&mut draw, switches, ports)).collect();
        let start = clock.now();
        for at in places {
            turn_of_one(&mut fabric, start, at, &mut dropped);
        }
        ns.push(clock.now().since(start).as_secs_f64() * 1e9 / (BURST * BURSTS) as f64);
        assert!(dropped.is_empty() && fabric.queued() == 0, "all that came left");
    }
    ns.sort_by(f64::total_cmp);
    println!(
        "{switches:>3} switches, {ports:>3} ports, {name:<17} in runs:   {:5.1} ns, median {:5.1} ({} packets)",
        ns[0],
        ns[ns.len() / 2],
        windows * BURST * BURSTS
    );
}

/// Enqueues a burst for one crosspoint and dequeues it.
#[inline(never)]
fn turn_of_one(fabric: &mut Fabric<usize>, now: Instant, at: Crosspoint, dropped: &mut Vec<FabricDrop<usize>>) {
    fabric.enqueue_all(now, at, (0..BURST).map(|packet| FabricPacket::new(60, packet)), dropped);
    let mut line = OutputLine::new(Bps(RATE.0 * 1000), Duration::ZERO);
    let until = now + Duration::from_micros(10);
    fabric.dequeue_run(now, at.output, |departure| {
        let next = line.send(now, departure.bytes);
        black_box(departure);
        (next <= until).then_some(next)
    });
}

/// Enqueues a burst, and dequeues as many packets from the same outputs.
#[inline(never)]
fn turn(fabric: &mut Fabric<usize>, now: Instant, burst: &[Crosspoint], dropped: &mut Vec<FabricDrop<usize>>) {
    for (packet, at) in burst.iter().enumerate() {
        enqueue(fabric, now, *at, packet, dropped);
    }
    for at in burst {
        let DequeueResult::Packet(departure) = fabric.dequeue(now, at.output) else {
            panic!("as many are there as came")
        };
        black_box(departure);
    }
}

fn enqueue(
    fabric: &mut Fabric<usize>,
    now: Instant,
    at: Crosspoint,
    packet: usize,
    dropped: &mut Vec<FabricDrop<usize>>,
) {
    let bytes = if packet.is_multiple_of(2) { 64 } else { 1500 };
    fabric.enqueue(now, at, FabricPacket::new(bytes, packet), dropped);
}

fn crosspoint(draw: &mut SeededRng, switches: u16, ports: u16) -> Crosspoint {
    let mut below = |limit: u16| u16::try_from(draw.below(usize::from(limit))).expect("below 2^16");
    Crosspoint {
        switch: VirtualSwitchIndex(below(switches)),
        input: PortIndex(below(ports)),
        output: PortIndex(below(ports)),
    }
}

fn fabric(discipline: InterDiscipline, intra: IntraDiscipline, switches: u16, ports: u16) -> Fabric<usize> {
    let output = OutputConfig { discipline, ..OutputConfig::new(RATE, 100_000_000) };
    let inputs = vec![InputConfig { rate: RATE }; usize::from(ports)];
    let outputs = vec![output; usize::from(ports)];
    let mut fabric = Fabric::new(FabricConfig { inputs, outputs, ..FabricConfig::default() }).expect("in limits");
    for index in 0..switches {
        let ports =
            (0..ports).map(|port| VirtualPort::new(PortIndex(port), Bps(RATE.0 / u64::from(switches)))).collect();
        let config = VirtualSwitchConfig {
            intra,
            priority: u8::try_from(index % 4).expect("below 4"),
            ..VirtualSwitchConfig::new("v", ports, 3_000_000)
        };
        fabric.add(Instant::ZERO, config).expect("there is room");
    }
    fabric
}
