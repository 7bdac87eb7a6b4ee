//! Compares the fabric with the statistical test vectors of the virtualised crosspoint-queued switch.
//!
//! Every value must be within its interval. The vectors are outside the repository (`data/vx-README.md` there has the
//! rules). A debug build runs fewer replications than a release build.
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;
use weir_fabric::{
    FabricConfig, InputConfig, InterDiscipline, IntraDiscipline, OutputConfig, PortIndex, SplitPolicy, VirtualPort,
    VirtualSwitchConfig,
};
use weir_sim::stats::{Confidence, estimate};
use weir_sim::{
    FabricHop, FabricModel, FabricNetwork, FabricPath, FabricRunResult, FabricSource, LineModel, MeasurementGroup,
    PathSplit, ReplicationLimits, SimulationMonitor, SimulationWindow, replicate, run,
};
use weir_traffic::{ArrivalProcess, BimodalSizes, OfferedPackets, PacketSizeLaw, PacketSizeSampler, TwoStateMmpp};
use weir_units::{Bps, Instant};

/// Number of replications: ten by the rules. A debug build has time for fewer, whose wider interval counts.
const REPLICATIONS: u64 = if cfg!(debug_assertions) { 4 } else { 10 };

struct Case {
    id: String,
    kind: String,
    params: Value,
    /// Metric, mean and half width of the interval.
    expected: Vec<(String, f64, f64)>,
}

fn cases(kind: &str) -> Option<Vec<Case>> {
    let path = weir_testing::shared("data/vx-vectors.csv")?;
    let mut cases: BTreeMap<String, Case> = BTreeMap::new();
    for cells in csv::Reader::from_path(path).unwrap().records().map(Result::unwrap) {
        let case = cases.entry(cells[0].to_owned()).or_insert_with(|| Case {
            id: cells[0].to_owned(),
            kind: cells[1].to_owned(),
            params: serde_json::from_str(&cells[2]).unwrap(),
            expected: Vec::new(),
        });
        case.expected.push((cells[3].to_owned(), cells[5].parse().unwrap(), cells[6].parse().unwrap()));
    }
    Some(cases.into_values().filter(|case| case.kind == kind).collect())
}

fn number(params: &Value, key: &str) -> f64 {
    params[key].as_f64().unwrap_or_else(|| panic!("{key} of {params}"))
}

fn list(params: &Value, key: &str) -> Vec<f64> {
    params[key].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
}

fn whole(value: f64) -> u64 {
    format!("{value:.0}").parse().unwrap()
}

fn seconds(value: f64) -> Duration {
    Duration::from_secs_f64(value)
}

fn generated(params: &Value, per_second: f64) -> OfferedPackets {
    let (high, low) = (number(params, "a"), number(params, "b"));
    let high_s = params["t1"].as_f64().unwrap_or(1.0);
    let size = PacketSizeLaw::Bimodal(BimodalSizes { short: number(params, "p"), ..BimodalSizes::default() });
    OfferedPackets::Rule { arrival: ArrivalProcess::TwoState(TwoStateMmpp { high, low, high_s }), per_second, size }
}

/// Returns the packets per second that load a whole link by `load`, from the mean size.
fn packets_per_second(params: &Value, load: f64) -> f64 {
    let OfferedPackets::Rule { size, .. } = generated(params, 1.0) else { unreachable!("as made") };
    load * number(params, "C") / (8.0 * PacketSizeSampler::new(&size).unwrap().mean())
}

fn line(params: &Value) -> LineModel {
    match params["line"].as_str() {
        Some("serial") => LineModel::Serial(Bps(whole(number(params, "C")))),
        _ => LineModel::Point,
    }
}

fn intra(name: &str) -> IntraDiscipline {
    match name {
        "drr" => IntraDiscipline::Drr,
        "rr" => IntraDiscipline::RoundRobin,
        "fcfs" => IntraDiscipline::Fcfs,
        "lqf" => IntraDiscipline::Lqf,
        other => panic!("discipline {other}"),
    }
}

/// Returns the ports of a virtual switch: packets arrive on `0..inputs` and leave by `0..outputs`.
fn ports(inputs: u16, outputs: u16, rate_out: Bps, quantum: u32) -> Vec<VirtualPort> {
    let port = |number: u16| VirtualPort {
        rate_in: if number < inputs { Bps(1) } else { Bps(0) },
        rate_out: if number < outputs { rate_out } else { Bps(0) },
        quantum,
        ..VirtualPort::new(PortIndex(number), Bps(1))
    };
    (0..inputs.max(outputs)).map(port).collect()
}

/// Returns a model with `N` inputs, `V` virtual switches and one output.
fn port_model(params: &Value) -> FabricNetwork {
    let rate = Bps(whole(number(params, "C")));
    let inputs = u16::try_from(whole(number(params, "N"))).unwrap();
    let (caps, weights, quanta) = (list(params, "caps"), list(params, "weights"), list(params, "quantum"));
    let discipline = if params["host"] == "sp" { InterDiscipline::StrictPriority } else { InterDiscipline::Drr };
    let crosspoint = whole(caps.iter().sum());
    let switch = |v: usize| {
        let quantum = u32::try_from(whole(quanta[v])).unwrap();
        let share = Bps(rate.0 / caps.len() as u64);
        let mut config = VirtualSwitchConfig::new(&format!("v{v}"), ports(inputs, 1, share, quantum), whole(caps[v]));
        config.intra = intra(params["intra"][v].as_str().unwrap());
        config.intra_quantum = u32::try_from(whole(number(params, "q"))).unwrap();
        config.priority = u8::try_from(params["prio"][v].as_u64().unwrap()).unwrap();
        config
    };
    let config = FabricConfig {
        inputs: vec![InputConfig { rate }; usize::from(inputs)],
        outputs: vec![OutputConfig { discipline, ..OutputConfig::new(rate, crosspoint) }],
        ..FabricConfig::default()
    };
    let path = |input: u16, v: usize| FabricPath {
        share: weights[v],
        group: v,
        class: 0,
        hops: vec![FabricHop { fabric: 0, switch: v, input, output: 0, delay: Duration::ZERO }],
    };
    let source = |input: u16, share: f64, paths: Vec<FabricPath>| FabricSource {
        line: usize::from(input),
        traffic: generated(params, packets_per_second(params, number(params, "load")) / f64::from(inputs) * share),
        start: Instant::ZERO,
        stop: Instant::FAR,
        split: PathSplit::Random,
        paths,
    };
    let switches = 0..weights.len();
    let sources = (0..inputs).flat_map(|input| match params["split"] == "source" {
        true => switches.clone().map(|v| source(input, weights[v], vec![path(input, v)])).collect::<Vec<_>>(),
        false => vec![source(input, 1.0, switches.clone().map(|v| path(input, v)).collect())],
    });
    FabricNetwork {
        lines: vec![line(params); usize::from(inputs)],
        sources: sources.collect(),
        groups: switches
            .clone()
            .map(|v| MeasurementGroup { switch: format!("v{v}"), port: "p0".into(), class: 0 })
            .collect(),
        fabrics: vec![FabricModel { config, switches: switches.map(switch).collect() }],
    }
}

/// Returns a model of a virtual link over two paths from one switch to another, with cross traffic.
fn split_model(params: &Value) -> FabricNetwork {
    let rate = Bps(whole(number(params, "C")));
    let (vxb, add) = (whole(number(params, "vxb")), whole(number(params, "add")));
    let quantum = u32::try_from(whole(number(params, "quantum"))).unwrap();
    let fabric = |outputs: usize, crosspoint| FabricConfig {
        inputs: vec![InputConfig { rate }; 2],
        outputs: vec![OutputConfig::new(rate, crosspoint); outputs],
        ..FabricConfig::default()
    };
    let half = Bps(rate.0 / 2);
    let first = |name| VirtualSwitchConfig::new(name, ports(2, 2, half, quantum), vxb);
    let mut merge = VirtualSwitchConfig::new("merge", ports(2, 1, rate, quantum), vxb);
    merge.buffers.per_crosspoint = vec![(PortIndex(0), PortIndex(0), vxb + add)];
    merge.intra = IntraDiscipline::Merge { patience: Duration::from_secs(3600) };
    let fabrics = vec![
        FabricModel { config: fabric(2, 2 * vxb), switches: vec![first("link"), first("cross")] },
        FabricModel { config: fabric(1, vxb + add), switches: vec![merge] },
    ];
    let extra = number(params, "extra");
    let hop = |switch, input, output: u16, delay| FabricHop { fabric: 0, switch, input, output, delay };
    let path = |group, hops| FabricPath { share: 1.0, group, class: 0, hops };
    let link = |output: u16| {
        let delay = if output == 1 { seconds(extra) } else { Duration::ZERO };
        let second = FabricHop { fabric: 1, switch: 0, input: output, output: 0, delay: Duration::ZERO };
        path(0, vec![hop(0, 0, output, delay), second])
    };
    let cross = |output| path(1, vec![hop(1, 1, output, Duration::ZERO)]);
    let source = |line, load, split, paths| FabricSource {
        line,
        traffic: generated(params, packets_per_second(params, load)),
        start: Instant::ZERO,
        stop: Instant::FAR,
        split,
        paths,
    };
    let classifier = match params["classifier"].as_str().unwrap() {
        "alt" => PathSplit::Link(SplitPolicy::Turn),
        "rand" => PathSplit::Link(SplitPolicy::Random),
        "bytes" => PathSplit::Link(SplitPolicy::Bytes),
        other => panic!("classifier {other}"),
    };
    FabricNetwork {
        lines: vec![line(params); 2],
        sources: vec![
            source(0, number(params, "load"), classifier, vec![link(0), link(1)]),
            source(1, number(params, "cross_load"), PathSplit::Random, vec![cross(0), cross(1)]),
        ],
        groups: ["link", "cross"]
            .map(|switch| MeasurementGroup { switch: switch.into(), port: "p0".into(), class: 0 })
            .into(),
        fabrics,
    }
}

/// Returns a metric of a replication, of all groups or of the group that its name ends with.
fn metric(name: &str, result: &FabricRunResult) -> f64 {
    let (what, group) = match name.rsplit_once('_') {
        Some((what, group)) if group.parse::<usize>().is_ok() => (what, group.parse::<usize>().ok()),
        _ => (name, None),
    };
    let mut tally = weir_sim::PacketTally::default();
    match group {
        Some(group) => tally.merge(&result.groups[group]),
        None => result.groups.iter().for_each(|group| tally.merge(group)),
    }
    let all: u64 = result.groups.iter().map(|group| group.accepted().bytes).sum();
    let link = &result.groups[0];
    let lost_at = |hop: usize| link.lost_at.get(hop).map_or(0, |count| count.packets) as f64;
    match what {
        "thr_p" => tally.accepted().packets as f64 / tally.arrived.packets as f64,
        "thr_b" => tally.accepted().bytes as f64 / tally.arrived.bytes as f64,
        "share" => tally.accepted().bytes as f64 / all as f64,
        "delay" => tally.delays.mean_s().unwrap(),
        "delay_p99" => tally.delays.quantile_s(0.99).unwrap(),
        "loss1" => lost_at(0) / link.arrived.packets as f64,
        "loss2" => lost_at(1) / link.arrived.packets as f64,
        other => panic!("metric {other}"),
    }
}

/// Appends to `wrong` the values of a case that are outside their intervals.
fn judge(case: &Case, results: &[FabricRunResult], wrong: &mut Vec<String>) {
    for (name, mean, ci95) in &case.expected {
        let of_link = |result: &FabricRunResult| match (case.kind.as_str(), name.as_str()) {
            ("split", "delay") => metric("delay_0", result),
            _ => metric(name, result),
        };
        let found = estimate(&results.iter().map(of_link).collect::<Vec<_>>(), Confidence::P95).unwrap();
        let own = found.half_width.unwrap();
        let floor = match name.as_str() {
            name if name.starts_with("share") => 5e-4,
            name if name.starts_with("delay") => 0.01 * mean,
            _ => 1e-4,
        };
        let allowed = 1.5 * ci95.hypot(own) + floor;
        let line = format!("{} {name}: {} ± {own:e}, expected {mean} ± {ci95:e}", case.id, found.mean);
        eprintln!("{line}");
        if (found.mean - mean).abs() > allowed {
            wrong.push(line);
        }
    }
}

fn check(kind: &str, model: fn(&Value) -> FabricNetwork) {
    let Some(cases) = cases(kind) else { return };
    assert!(!cases.is_empty());
    let plan = ReplicationLimits { least: REPLICATIONS, most: REPLICATIONS, threads: 2 };
    let mut wrong = Vec::new();
    for case in &cases {
        let model = model(&case.params);
        let window = SimulationWindow {
            warm_up: seconds(number(&case.params, "W")),
            length: seconds(number(&case.params, "T")),
        };
        let watch = SimulationMonitor::default();
        let runs = replicate(&plan, |number| run(&model, window, 1, number, &watch).map(Some), |_| false);
        judge(case, &runs.unwrap_or_else(|error| panic!("{}: {error}", case.id)).results, &mut wrong);
    }
    assert!(wrong.is_empty(), "out of their intervals:\n{}", wrong.join("\n"));
}

#[test]
fn virtual_switches_at_a_port_agree_with_the_vectors() {
    check("port", port_model);
}

#[test]
fn a_split_path_agrees_with_the_vectors() {
    check("split", split_model);
}
