//! `weir bench simulate`: measures events per second in virtual time, on one thread.
use super::tree::tree;
use serde::Serialize;
use std::process::ExitCode;
use std::time::Duration;
use weir_fabric::{FabricConfig, InputConfig, OutputConfig, PortIndex, VirtualPort, VirtualSwitchConfig};
use weir_scenario::Scenario;
use weir_sim::queue::{QueueServiceLaw, SingleServerQueue};
use weir_sim::{
    FabricHop, FabricModel, FabricNetwork, FabricPath, FabricSource, LineModel, MeasurementGroup, PathSplit,
    SimulationMonitor, SimulationWindow, run,
};
use weir_traffic::{ArrivalProcess, BimodalSizes, OfferedPackets, PacketSizeLaw, TwoStateMmpp};
use weir_units::{Bps, Clock as _, Instant, SystemClock};

/// Repeats of a measurement; the fastest counts, because other work of the machine can only slow one down.
const REPEATS: usize = 5;

#[derive(clap::Args)]
pub(crate) struct SimulateBenchArgs {
    /// Ports of the switch
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=256))]
    ports: u16,
    /// Number of virtual switches that it is divided into
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=256))]
    switches: u16,
    /// Customers of the single queue
    #[arg(long, default_value_t = 1_000_000)]
    customers: u64,
    /// Switches of the tree of queueing stations
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u16).range(2..=200))]
    stations: u16,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct SimulationSpeed {
    what: String,
    /// Number of packets or customers.
    packets: u64,
    events: u64,
    packets_per_second: f64,
    events_per_second: f64,
}

pub(crate) fn run_bench(args: &SimulateBenchArgs) -> anyhow::Result<ExitCode> {
    let speeds = [queue(args.customers)?, fabric(args)?, one_switch()?, stations(args)?];
    let text = if args.json {
        serde_json::to_string_pretty(
            &serde_json::json!({ "machine": weir_emulator::result::LabMachineInfo::this(), "speeds": speeds }),
        )? + "\n"
    } else {
        let line = |speed: &SimulationSpeed| {
            let (packets, events) = (speed.packets_per_second / 1e6, speed.events_per_second / 1e6);
            format!("{}: {packets:.2} million packets, {events:.2} million events a second\n", speed.what)
        };
        speeds.iter().map(line).collect()
    };
    weir_terminal::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the fastest of several runs of `work`, which returns its packets and events.
fn fastest(what: String, mut work: impl FnMut() -> anyhow::Result<(u64, u64)>) -> anyhow::Result<SimulationSpeed> {
    let clock = SystemClock::start();
    let mut best: Option<SimulationSpeed> = None;
    for _ in 0..REPEATS {
        let begin = clock.now();
        let (packets, events) = work()?;
        let seconds = clock.now().since(begin).as_secs_f64().max(1e-9);
        let speed = SimulationSpeed {
            what: what.clone(),
            packets,
            events,
            packets_per_second: packets as f64 / seconds,
            events_per_second: events as f64 / seconds,
        };
        if best.as_ref().is_none_or(|best| best.events_per_second < speed.events_per_second) {
            best = Some(speed);
        }
    }
    best.ok_or_else(|| anyhow::anyhow!("nothing was run"))
}

/// Simulates an M/M/1 queue at a utilisation of 0.8.
fn queue(customers: u64) -> anyhow::Result<SimulationSpeed> {
    let service = (QueueServiceLaw::Exponential, 1e6);
    let queue = SingleServerQueue {
        arrival: ArrivalProcess::Poisson,
        per_second: 0.8e6,
        service: service.0,
        service_per_second: service.1,
        places: None,
    };
    fastest("M/M/1".into(), || {
        let result = queue.run(1, 0, 0, customers)?;
        Ok((result.arrived, result.events))
    })
}

/// Simulates virtual switches at one output; all ports together offer its capacity, in bursts.
fn fabric(args: &SimulateBenchArgs) -> anyhow::Result<SimulationSpeed> {
    let model = model(args.ports, args.switches);
    let window = SimulationWindow { warm_up: Duration::ZERO, length: Duration::from_secs(1) };
    let what = format!("{} inputs, {} virtual switches", args.ports, args.switches);
    fastest(what, || {
        let result = run(&model, window, 1, 0, &SimulationMonitor::default())?;
        Ok((result.packets, result.events))
    })
}

/// Simulates a switch and its controller as queueing stations.
fn one_switch() -> anyhow::Result<SimulationSpeed> {
    let scenario = Scenario::parse(ONE_SWITCH, "one.toml")?;
    let plan = weir_sim::stations::plan(&scenario)?;
    fastest("stations of a switch and its controller".into(), || counted(&plan, Duration::from_secs(200)))
}

/// Simulates the queueing stations of many switches and one controller.
fn stations(args: &SimulateBenchArgs) -> anyhow::Result<SimulationSpeed> {
    let plan = weir_sim::stations::plan(&tree(usize::from(args.stations))?)?;
    fastest(format!("stations of {} switches in a tree", args.stations), || counted(&plan, Duration::from_secs(1)))
}

fn counted(plan: &weir_sim::stations::QueueingPlan, length: Duration) -> anyhow::Result<(u64, u64)> {
    let window = SimulationWindow { warm_up: Duration::ZERO, length };
    let result = weir_sim::stations::run(plan, window, 1, 0, &SimulationMonitor::default())?;
    Ok((result.packets, result.events))
}

const ONE_SWITCH: &str = r#"
[controller]
service = { law = "exponential", mean = "500us" }
[[switch]]
name = "s1"
[switch.timing]
data = { law = "exponential", mean = "100us" }
packet_in = "200us"
packet_out = "200us"
returns = "fifo"
[[host]]
name = "a"
switch = "s1"
ip = "10.0.0.1/24"
[[host]]
name = "b"
switch = "s1"
ip = "10.0.0.2/24"
[[traffic]]
kind = "udp"
from = "a"
to = "b"
rate = 5000
arrival = "poisson"
new_flows = 0.2
"#;

fn model(inputs: u16, switches: u16) -> FabricNetwork {
    let rate = Bps(10_000_000_000);
    let buffer = 6000;
    let port = |number: u16| VirtualPort {
        rate_in: Bps(1),
        rate_out: if number == 0 { Bps(rate.0 / u64::from(switches)) } else { Bps(0) },
        ..VirtualPort::new(PortIndex(number), Bps(1))
    };
    let cut = |v: u16| VirtualSwitchConfig::new(&format!("v{v}"), (0..inputs).map(port).collect(), buffer);
    let config = FabricConfig {
        inputs: vec![InputConfig { rate }; usize::from(inputs)],
        outputs: vec![OutputConfig::new(rate, buffer * u64::from(switches))],
        ..FabricConfig::default()
    };
    // Half of the packets are short, half long: 753.5 bytes on average.
    let per_second = rate.0 as f64 / 8.0 / 753.5 / f64::from(inputs) / f64::from(switches);
    let source = |input: u16, v: u16| FabricSource {
        line: usize::from(input),
        traffic: OfferedPackets::Rule {
            arrival: ArrivalProcess::TwoState(TwoStateMmpp { high: 3.0, low: 0.5, high_s: 0.0005 }),
            per_second,
            size: PacketSizeLaw::Bimodal(BimodalSizes::default()),
        },
        start: Instant::ZERO,
        stop: Instant::FAR,
        split: PathSplit::Random,
        paths: vec![FabricPath {
            share: 1.0,
            group: usize::from(v),
            class: 0,
            hops: vec![FabricHop { fabric: 0, switch: usize::from(v), input, output: 0, delay: Duration::ZERO }],
        }],
    };
    FabricNetwork {
        lines: vec![LineModel::Serial(rate); usize::from(inputs)],
        sources: (0..inputs)
            .flat_map(|input| (0..switches).map(move |v| (input, v)))
            .map(|(i, v)| source(i, v))
            .collect(),
        groups: (0..switches)
            .map(|v| MeasurementGroup { switch: format!("v{v}"), port: "p0".into(), class: 0 })
            .collect(),
        fabrics: vec![FabricModel { config, switches: (0..switches).map(cut).collect() }],
    }
}
