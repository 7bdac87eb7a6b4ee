//! Experiment `vlink-isolation`, section 5.3.2: rate control on the virtual links of two virtual routers that share a
//! machine, and isolation between their virtual networks (Tables 5.2 and 5.3, Figures 5.6 to 5.8), in virtual time.
mod claims;
mod network;
mod trial;

use crate::{ExperimentError, ExperimentRun, SampledValue};
use network::{FLOWS, FlowProtocol, IsolationCase, NETWORKS, RateLimitPlace};
use trial::{CaseFindings, FlowFindings};
use weir_plot::{Axis, Chart, ChartPoint, ChartSeries, LineStyle};
use weir_sim::{ReplicationLimits, replicate};

/// Factors of all rates: the published ones, and ten times these.
const SPEEDS: [u64; 2] = [1, 10];
const RATE: &str = "rate";
const LOSS: &str = "loss";
const MEAN: &str = "mean delay";
const P99: &str = "delay, p99";

impl IsolationCase {
    /// Returns the name of a flow in reports.
    fn flow_name(self, network: usize, flow: usize) -> String {
        let protocol = match self.protocol {
            FlowProtocol::Udp => "UDP",
            FlowProtocol::Tcp => "TCP",
        };
        let place = match self.place {
            RateLimitPlace::VirtualLink => "",
            RateLimitPlace::VirtualNetwork => ", one limit",
        };
        let speed = if self.speed == 1 { String::new() } else { format!(" at {}x", self.speed) };
        format!("case {} {protocol}{place}{speed}, VNet {} flow {}", self.number, network + 1, flow + 1)
    }
}

/// Returns all cases: those of Table 5.3 with limits on each virtual link, and the last one with a limit on each
/// virtual network, too.
fn cases() -> Vec<IsolationCase> {
    let of = |speed: u64| {
        let both = move |number, place| {
            [FlowProtocol::Udp, FlowProtocol::Tcp].map(|protocol| IsolationCase { number, protocol, place, speed })
        };
        let links = (1..=4).flat_map(move |number| both(number, RateLimitPlace::VirtualLink));
        links.chain(both(4, RateLimitPlace::VirtualNetwork))
    };
    SPEEDS.into_iter().flat_map(of).collect()
}

/// Iterates over flows: virtual network, flow, and place among a case's findings.
fn flows() -> impl Iterator<Item = (usize, usize, usize)> {
    (0..NETWORKS * FLOWS).map(|place| (place / FLOWS, place % FLOWS, place))
}

/// A case with the findings of its replications.
type MeasuredCase = (IsolationCase, Vec<CaseFindings>);

/// Simulates all cases.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    run.simulated = true;
    let cases = cases();
    let replications = usize::try_from(run.sizes.replications.max(1)).unwrap_or(1);
    let count = (replications * cases.len()) as u64;
    let (time, seed, cancel) = (run.sizes.time.0, run.options.seed, run.options.cancel.clone());
    let once = |number: u64| {
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        match cases.get(place / replications).filter(|_| !cancel.is_cancelled()) {
            Some(case) => trial::simulate(*case, time, (seed, (place % replications) as u64), &cancel),
            None => Ok(None),
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let progress = &mut *run.progress;
    progress(&format!("{count} simulations"));
    let tell = |done: &[CaseFindings]| {
        if done.len().is_multiple_of(replications) {
            progress(&format!("{} of {count} simulations", done.len()));
        }
        false
    };
    let mut rest = replicate(&ReplicationLimits { least: 1, most: count, threads }, once, tell)?.results;
    let mut measured: Vec<MeasuredCase> = Vec::new();
    for case in cases {
        // Of a rerun that was stopped, complete cases are reported.
        if rest.len() < replications {
            break;
        }
        let later = rest.split_off(replications);
        measured.push((case, std::mem::replace(&mut rest, later)));
    }
    for (case, found) in &measured {
        figures(run, *case, found);
    }
    claims::claims(run, &measured);
    plots(run, &measured);
    run.note("rates count bits of Ethernet frames, as the limits do; those of TCP are the payload that arrived with its headers");
    Ok(())
}

fn figures(run: &mut ExperimentRun<'_>, case: IsolationCase, found: &[CaseFindings]) {
    for (network, flow, place) in flows() {
        let name = case.flow_name(network, flow);
        let mut add = |metric, unit, value: fn(&FlowFindings) -> f64| {
            let values: Vec<f64> = found.iter().map(|one| value(&one[place])).collect();
            run.figure(&name, metric, unit, SampledValue::mean_of(&values));
        };
        add(RATE, "Mbit/s", |flow| flow.rate_mbps);
        if case.protocol == FlowProtocol::Udp {
            add(LOSS, "%", |flow| flow.loss_percent);
            add(MEAN, "us", |flow| flow.mean_us);
            add(P99, "us", |flow| flow.p99_us);
        }
    }
}

/// Draws the rates of the first replication over time, at the published rates.
fn plots(run: &mut ExperimentRun<'_>, measured: &[MeasuredCase]) {
    for (name, title, number, protocol) in [
        ("case-2-tcp", "Case 2: rates of TCP at the limit (Fig. 5.6)", 2, FlowProtocol::Tcp),
        ("case-4-tcp", "Case 4: rates of TCP, VNet 2 out of profile (Fig. 5.7)", 4, FlowProtocol::Tcp),
        ("case-4-udp", "Case 4: rates of UDP, VNet 2 out of profile (Fig. 5.8)", 4, FlowProtocol::Udp),
    ] {
        let shown = |case: &IsolationCase| case.speed == 1 && (case.number, case.protocol) == (number, protocol);
        let series: Vec<ChartSeries> =
            measured.iter().filter(|(case, _)| shown(case)).flat_map(|(case, found)| lines(*case, found)).collect();
        if !series.is_empty() {
            let (x, y) = (Axis::linear("time, s"), Axis::linear("rate, Mbit/s"));
            run.plots.push(Chart { name: name.into(), title: title.into(), x, y, series }.into());
        }
    }
}

/// Returns lines of a case's flows. With one limit for a virtual network only the flows that exceed it are drawn.
fn lines(case: IsolationCase, found: &[CaseFindings]) -> Vec<ChartSeries> {
    let ending = match case.place {
        RateLimitPlace::VirtualLink => "",
        RateLimitPlace::VirtualNetwork => ", one limit",
    };
    let is_drawn = |network: usize| network == 1 || case.place == RateLimitPlace::VirtualLink;
    let line = |(network, flow, place): (usize, usize, usize)| {
        let points = found.first()?[place].rates.iter().map(|(time, rate)| ChartPoint::new(*time, *rate)).collect();
        let name = format!("VNet {} flow {}{ending}", network + 1, flow + 1);
        Some(ChartSeries::looking(name, LineStyle::Curve, points))
    };
    flows().filter(|(network, ..)| is_drawn(*network)).filter_map(line).collect()
}
