//! `weir bench simulate`: events a second in virtual time, on one thread.
use serde::Serialize;
use std::io::Write as _;
use std::process::ExitCode;
use std::time::Duration;
use weir_fabric::{FabricConfig, InputConfig, OutputConfig, PortIndex, VirtualPort, VirtualSwitchConfig};
use weir_sim::queue::{Queue, Service};
use weir_sim::{FabricModel, Group, Hop, LineModel, Model, Path, Source, Split, Watch, Window, run};
use weir_traffic::{Arrival, Bimodal, Offered, Size, TwoState};
use weir_units::{Bps, Clock as _, Instant, SystemClock};

/// Times one thing is repeated; the fastest counts, since other work of the machine only ever slows it down.
const REPEATS: usize = 5;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Ports of the switch
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=256))]
    ports: u16,
    /// Virtual switches that it is cut into
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u16).range(1..=256))]
    switches: u16,
    /// Customers of the single queue
    #[arg(long, default_value_t = 1_000_000)]
    customers: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Speed {
    what: String,
    /// Packets or customers.
    packets: u64,
    events: u64,
    packets_per_second: f64,
    events_per_second: f64,
}

pub(crate) fn run_bench(args: &Args) -> anyhow::Result<ExitCode> {
    let speeds = [queue(args.customers)?, fabric(args)?];
    let text = if args.json {
        serde_json::to_string_pretty(
            &serde_json::json!({ "machine": weir_emulator::result::Machine::this(), "speeds": speeds }),
        )? + "\n"
    } else {
        let line = |speed: &Speed| {
            let (packets, events) = (speed.packets_per_second / 1e6, speed.events_per_second / 1e6);
            format!("{}: {packets:.2} million packets, {events:.2} million events a second\n", speed.what)
        };
        speeds.iter().map(line).collect()
    };
    let _ = std::io::stdout().write_all(text.as_bytes());
    Ok(ExitCode::SUCCESS)
}

/// The fastest of several runs of `work`, which gives packets and events.
fn fastest(what: String, mut work: impl FnMut() -> anyhow::Result<(u64, u64)>) -> anyhow::Result<Speed> {
    let clock = SystemClock::start();
    let mut best: Option<Speed> = None;
    for _ in 0..REPEATS {
        let begin = clock.now();
        let (packets, events) = work()?;
        let seconds = clock.now().since(begin).as_secs_f64().max(1e-9);
        let speed = Speed {
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

/// M/M/1 at a utilisation of 0.8.
fn queue(customers: u64) -> anyhow::Result<Speed> {
    let service = (Service::Exponential, 1e6);
    let queue = Queue {
        arrival: Arrival::Poisson,
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

/// Virtual switches at one output, all ports loaded together to its capacity in bursts.
fn fabric(args: &Args) -> anyhow::Result<Speed> {
    let model = model(args.ports, args.switches);
    let window = Window { warm_up: Duration::ZERO, length: Duration::from_secs(1) };
    let what = format!("{} inputs, {} virtual switches", args.ports, args.switches);
    fastest(what, || {
        let result = run(&model, window, 1, 0, &Watch::default())?;
        Ok((result.packets, result.events))
    })
}

fn model(inputs: u16, switches: u16) -> Model {
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
    // Half short, half long: 753.5 bytes in the mean.
    let per_second = rate.0 as f64 / 8.0 / 753.5 / f64::from(inputs) / f64::from(switches);
    let source = |input: u16, v: u16| Source {
        line: usize::from(input),
        traffic: Offered::Rule {
            arrival: Arrival::TwoState(TwoState { high: 3.0, low: 0.5, high_s: 0.0005 }),
            per_second,
            size: Size::Bimodal(Bimodal::default()),
        },
        start: Instant::ZERO,
        stop: Instant::FAR,
        split: Split::Random,
        paths: vec![Path {
            share: 1.0,
            group: usize::from(v),
            class: 0,
            hops: vec![Hop { fabric: 0, switch: usize::from(v), input, output: 0, delay: Duration::ZERO }],
        }],
    };
    Model {
        lines: vec![LineModel::Serial(rate); usize::from(inputs)],
        sources: (0..inputs)
            .flat_map(|input| (0..switches).map(move |v| (input, v)))
            .map(|(i, v)| source(i, v))
            .collect(),
        groups: (0..switches).map(|v| Group { switch: format!("v{v}"), port: "p0".into(), class: 0 }).collect(),
        fabrics: vec![FabricModel { config, switches: (0..switches).map(cut).collect() }],
    }
}
