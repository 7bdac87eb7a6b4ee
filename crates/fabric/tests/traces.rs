//! Tests of arrivals with a known order of service: every discipline, to the nanosecond.
use std::time::Duration;
use weir_fabric::{
    Crosspoint, CrosspointBuffers, DequeueResult, Fabric, FabricConfig, FabricDrop, FabricPacket, InputConfig,
    InterDiscipline, IntraDiscipline, OutputConfig, OutputLine, PortIndex, VirtualPort, VirtualSwitchConfig,
    VirtualSwitchIndex,
};
use weir_units::{Bps, Instant};

const RATE: Bps = Bps(1_000_000_000);

/// Arrival of a packet: time in ns, input, virtual switch, length in bytes.
type Arrival = (u64, u16, u16, u32);

/// Virtual switch of a trace.
struct Switch {
    buffer: u64,
    quantum: u32,
    priority: u8,
    intra: IntraDiscipline,
    intra_quantum: u32,
}

/// Result of a trace; packets are identified by their place in the list.
#[derive(Debug, Default, PartialEq)]
struct Outcome {
    served: Vec<usize>,
    lost: Vec<usize>,
    /// Sum of the times from arrival to start of transmission.
    delay_ns: u64,
}

/// Returns a fabric with one output and as many inputs and virtual switches as the trace has.
fn fabric(inputs: usize, discipline: InterDiscipline, switches: &[Switch]) -> Fabric<usize> {
    let output = OutputConfig { discipline, ..OutputConfig::new(RATE, 1_000_000) };
    let config = FabricConfig {
        inputs: vec![InputConfig { rate: RATE }; inputs],
        outputs: vec![output],
        ..FabricConfig::default()
    };
    let mut fabric = Fabric::new(config).unwrap();
    let share = Bps(RATE.0 / switches.len() as u64);
    for (index, switch) in switches.iter().enumerate() {
        let port = |input: usize| VirtualPort {
            rate_out: if input == 0 { share } else { Bps(0) },
            quantum: switch.quantum,
            ..VirtualPort::new(PortIndex(u16::try_from(input).unwrap()), share)
        };
        let config = VirtualSwitchConfig {
            buffers: CrosspointBuffers { default: switch.buffer, per_crosspoint: Vec::new() },
            priority: switch.priority,
            intra: switch.intra,
            intra_quantum: switch.intra_quantum,
            ..VirtualSwitchConfig::new(&format!("v{index}"), (0..inputs).map(port).collect(), 0)
        };
        fabric.add(Instant::ZERO, config).unwrap();
    }
    fabric
}

/// Runs a trace. Packets that arrive while the line is busy, or just as it becomes free, are enqueued before the line
/// decides.
fn run(mut fabric: Fabric<usize>, arrivals: &[Arrival]) -> Outcome {
    let mut line = OutputLine::new(RATE, Duration::ZERO);
    let mut outcome = Outcome::default();
    let mut dropped: Vec<FabricDrop<usize>> = Vec::new();
    let mut coming = arrivals.iter().enumerate().peekable();
    let mut now = Instant::ZERO;
    loop {
        while let Some((item, (_, input, switch, bytes))) = coming.next_if(|(_, arrival)| arrival.0 <= now.as_nanos()) {
            let at = Crosspoint { switch: VirtualSwitchIndex(*switch), input: PortIndex(*input), output: PortIndex(0) };
            fabric.enqueue(Instant::from_nanos(arrivals[item].0), at, FabricPacket::new(*bytes, item), &mut dropped);
        }
        now = match fabric.dequeue(now, PortIndex(0)) {
            DequeueResult::Packet(departure) => {
                outcome.served.push(departure.item);
                outcome.delay_ns += now.as_nanos() - departure.arrived.as_nanos();
                line.send(now, departure.bytes)
            }
            DequeueResult::Wait(until) => panic!("nothing holds packets, but wait until {until:?}"),
            DequeueResult::Empty => match coming.peek() {
                Some((_, arrival)) => Instant::from_nanos(arrival.0),
                None => break,
            },
        };
    }
    outcome.lost = dropped.iter().map(|dropped| dropped.packet.item).collect();
    outcome
}

fn drr(buffer: u64, quantum: u32) -> Switch {
    Switch { buffer, quantum, priority: 0, intra: IntraDiscipline::Drr, intra_quantum: 1500 }
}

#[test]
fn agrees_with_the_published_traces() {
    let Some(file) = weir_testing::shared("data/vx-vectors.csv") else {
        return weir_testing::skip("the traces of virtual switches are not here");
    };
    let text = std::fs::read_to_string(file).unwrap();
    let rows: Vec<Vec<String>> = text.lines().map(csv_fields).filter(|row| row[1] == "trace").collect();
    assert!(!rows.is_empty(), "no trace in the file");
    for row in rows {
        let parameters: serde_json::Value = serde_json::from_str(&row[2]).unwrap();
        let outcome = run_published(&parameters);
        match row[3].as_str() {
            "delay" => {
                assert_eq!(outcome.served, listed(&row[8], "service order "), "{}", row[0]);
                let mean = outcome.delay_ns as f64 / outcome.served.len() as f64 * 1e-9;
                let expected: f64 = row[5].parse().unwrap();
                assert!((mean / expected - 1.0).abs() < 1e-9, "{}: mean delay {mean}, expected {expected}", row[0]);
            }
            "lost" => assert_eq!(outcome.lost, listed(&row[8], "lost "), "{}", row[0]),
            other => panic!("{}: unknown metric {other}", row[0]),
        }
    }
}

/// Splits a line of CSV into fields, with quotes doubled inside quotes.
fn csv_fields(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => fields.last_mut().unwrap().extend(chars.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => fields.last_mut().unwrap().push(c),
        }
    }
    fields
}

fn listed(note: &str, before: &str) -> Vec<usize> {
    serde_json::from_str(note.strip_prefix(before).unwrap()).unwrap()
}

fn run_published(parameters: &serde_json::Value) -> Outcome {
    let number = |value: &serde_json::Value| u32::try_from(value.as_u64().unwrap()).unwrap();
    let quantum = number(&parameters["q"]);
    let switches: Vec<Switch> = (0..number(&parameters["V"]) as usize)
        .map(|v| Switch {
            buffer: number(&parameters["caps"][v]).into(),
            quantum: number(&parameters["quantum"][v]),
            priority: u8::try_from(number(&parameters["prio"][v])).unwrap(),
            intra: match parameters["intra"][v].as_str().unwrap() {
                "drr" => IntraDiscipline::Drr,
                "rr" => IntraDiscipline::RoundRobin,
                "fcfs" => IntraDiscipline::Fcfs,
                "lqf" => IntraDiscipline::Lqf,
                other => panic!("unknown discipline {other}"),
            },
            intra_quantum: quantum,
        })
        .collect();
    let host = match parameters["host"].as_str().unwrap() {
        "drr" => InterDiscipline::Drr,
        "sp" => InterDiscipline::StrictPriority,
        other => panic!("unknown discipline {other}"),
    };
    let arrivals: Vec<Arrival> = serde_json::from_value(parameters["arrivals_ns_input_switch_size"].clone()).unwrap();
    run(fabric(number(&parameters["N"]) as usize, host, &switches), &arrivals)
}

#[test]
fn quanta_shares_an_output() {
    // Three packets for each of two switches, the second with twice the quantum.
    let arrivals: Vec<Arrival> = (0..6).map(|packet| (0, 0, packet % 2, 1500)).collect();
    let outcome = run(fabric(1, InterDiscipline::Drr, &[drr(9000, 1500), drr(9000, 3000)]), &arrivals);
    assert_eq!(outcome.served, [0, 1, 3, 2, 5, 4]);
    assert_eq!(outcome.delay_ns, 12_000 * (1 + 2 + 3 + 4 + 5));
}
