//! Formats the results of a simulation as text and as CSV.
use super::report_stations;
use super::streams::{SimulationSetup, StreamSimulation};
use super::{SimulateResult, SimulatedPoint};
use crate::commands::csv::{figure, quoted};
use crate::commands::run::report::{TRAFFIC_CELLS, traffic_lines};
use crate::commands::sweep::plain;
use std::fmt::Write as _;
use weir_sim::report::FabricReportRow;
use weir_sim::stats::Estimate;
use weir_terminal::table::ReportTable;
use weir_units::counted;

/// Formats the whole report. `asked` is the number of points that were to be simulated.
pub(super) fn text(answers: &[SimulatedPoint], asked: usize) -> String {
    let mut text = String::new();
    for answer in answers {
        if !answer.point.is_empty() {
            let _ = writeln!(text, "== {}", answer.point);
        }
        match &answer.result {
            SimulateResult::Streams(result) => text += &streams(result),
            SimulateResult::Stations(result) => text += &report_stations::text(result),
            SimulateResult::Network(network) => {
                text += &crate::commands::run::report::simulated_text(&network.result, network.took);
            }
        }
    }
    if answers.len() < asked {
        let _ = writeln!(text, "Stopped early: {} of {asked} points were begun", answers.len());
    }
    text
}

fn streams(result: &StreamSimulation) -> String {
    let names = ["virtual switch", "port", "class"];
    let header = names.into_iter().chain(["packets", "rate", "throughput", "loss"]);
    let mut packets = ReportTable::new(header).keys(3).numbers(3..7);
    let mut delays =
        ReportTable::new(names.into_iter().chain(["mean delay", "p50", "p99", "max"])).keys(3).numbers(3..7);
    for row in rows(result) {
        let names = [
            row.switch.clone().unwrap_or_else(|| "all".into()),
            row.port.clone().unwrap_or_default(),
            row.class.map_or(String::new(), |class| class.to_string()),
        ];
        let figures = [
            row.packets.to_string(),
            within(row.rate_bps, 1e-6, 2, " Mbit/s"),
            within(row.throughput, 100.0, 3, "%"),
            within(row.loss, 100.0, 3, "%"),
        ];
        packets.row(names.clone().into_iter().chain(figures));
        if let Some(known) = &row.delays {
            let us = [known.p50_s, known.p99_s, known.max_s].map(|s| format!("{:.2}", s * 1e6));
            delays.row(names.into_iter().chain([within(row.delay_s, 1e6, 2, "")]).chain(us));
        }
    }
    let mut text = format!("Packets\n{packets}\n\n");
    if !delays.is_empty() {
        let _ = writeln!(text, "Delays (microseconds, to the start of transmission)\n{delays}\n");
    }
    if !result.report.total.lost.is_empty() {
        let lost: Vec<String> = result
            .report
            .total
            .lost
            .iter()
            .map(|(reason, count)| format!("{count} {}", reason.replace('_', " ")))
            .collect();
        let _ = writeln!(text, "Lost: {}", lost.join(", "));
    }
    let first = result.first_replication_s.map_or_else(String::new, |seconds| {
        format!("Stopped early, results are partial: {seconds:.3} s of the first replication are in them\n")
    });
    text + &conditions(&result.setup, result.is_sure, result.partial && first.is_empty()) + &first
}

/// Returns the most detailed rows of the report (groups, switches, ports or classes), followed by the total.
pub(super) fn rows(result: &StreamSimulation) -> impl Iterator<Item = &FabricReportRow> {
    let report = &result.report;
    let lists = [&report.groups, &report.switches, &report.ports, &report.classes];
    let most = lists.into_iter().find(|rows| rows.len() > 1);
    most.into_iter().flatten().chain([&report.total])
}

/// Says with what and on what a result was simulated.
pub(super) fn setup(result: &SimulateResult) -> String {
    match result {
        SimulateResult::Streams(result) => conditions(&result.setup, None, false),
        SimulateResult::Stations(result) => conditions(&result.setup, None, false),
        SimulateResult::Network(network) => {
            crate::commands::run::report::conditions(&network.result, Some(network.took))
        }
    }
}

/// Describes the simulation's setup and whether the requested precision was reached.
pub(super) fn conditions(setup: &SimulationSetup, is_sure: Option<bool>, is_partial: bool) -> String {
    let build = weir_units::BUILD_KIND;
    let mut text = format!(
        "Simulated {} of {} s (after {} s) in {:.1} s, {:.1} million events a second on {}, with weir {} \
         ({build} build), scenario {}, seed {}; ± is half a 95% interval; on {} of {}, Linux {}\n",
        counted(setup.replications, "replication", "replications"),
        setup.duration_s,
        setup.warm_up_s,
        setup.wall_s,
        setup.events_per_second / 1e6,
        counted(setup.threads, "thread", "threads"),
        setup.version,
        setup.scenario,
        setup.seed,
        counted(setup.machine.cores, "core", "cores"),
        setup.machine.cpu,
        setup.machine.kernel,
    );
    if is_sure == Some(false) {
        text += "The intervals are not as narrow as asked for\n";
    }
    if is_partial {
        text += "Stopped early, results are partial: only whole replications are in them\n";
    }
    text
}

/// Formats a mean with half its confidence interval, with at most so many decimals: fewer if the mean has four
/// significant digits without them, and none if both are zero.
pub(super) fn within(estimate: Option<Estimate>, scale: f64, digits: usize, unit: &str) -> String {
    let Some(Estimate { mean, half_width, .. }) = estimate else { return String::new() };
    let value = (mean * scale).abs();
    let before_point = if value < 1.0 { 0 } else { format!("{value:.0}").len() };
    let is_zero = value == 0.0 && half_width.is_none_or(|half| half == 0.0);
    let digits = if is_zero { 0 } else { digits.min(4_usize.saturating_sub(before_point)) };
    let half = half_width.map_or(String::new(), |half| format!(" ± {:.digits$}", half * scale));
    format!("{:.digits$}{half}{unit}", mean * scale)
}

/// Formats one CSV line for each group and point; for networks one for each item of traffic and each stream.
pub(super) fn csv(answers: &[SimulatedPoint]) -> String {
    let mut text = String::new();
    // Parameters of profiles without effect have a column if any point has some.
    let has_unused = answers.iter().any(|answer| !answer.result.unused().is_empty());
    for (number, answer) in answers.iter().enumerate() {
        let unused = has_unused.then(|| quoted(&answer.result.unused().join("; ")));
        let keys: Vec<String> = answer.point.0.keys().map(|key| quoted(key)).collect();
        let values: Vec<String> = answer.point.0.values().map(|value| quoted(&plain(value))).collect();
        let mut line = |own: &[String], cells: &[String], last: Option<&String>| {
            let all: Vec<&str> = own.iter().chain(cells).chain(last).map(String::as_str).collect();
            let _ = writeln!(text, "{}", all.join(","));
        };
        let (header, rows) = match &answer.result {
            SimulateResult::Streams(result) => (STREAM_CELLS, rows(result).map(stream_cells).collect::<Vec<_>>()),
            SimulateResult::Stations(result) => (report_stations::CELLS, report_stations::cells(result)),
            SimulateResult::Network(network) => (TRAFFIC_CELLS, traffic_lines(&network.result)),
        };
        if number == 0 {
            let last = has_unused.then(|| "unused".to_owned());
            line(&keys, &[header.to_owned()], last.as_ref());
        }
        rows.iter().for_each(|cells| line(&values, cells, unused.as_ref()));
    }
    text
}

const STREAM_CELLS: &str = "switch,port,class,packets,throughput,throughput_ci,loss,loss_ci,rate_bps,rate_bps_ci,share,share_ci,\
                            delay_s,delay_s_ci,delay_p50_s,delay_p99_s,delay_p99_s_ci,delay_max_s";

fn stream_cells(row: &FabricReportRow) -> Vec<String> {
    let mut cells = vec![
        quoted(row.switch.as_deref().unwrap_or("all")),
        quoted(row.port.as_deref().unwrap_or_default()),
        row.class.map_or(String::new(), |class| class.to_string()),
        row.packets.to_string(),
    ];
    for estimate in [row.throughput, row.loss, row.rate_bps, row.share, row.delay_s] {
        cells.push(figure(estimate.map(|estimate| estimate.mean)));
        cells.push(figure(estimate.and_then(|estimate| estimate.half_width)));
    }
    cells.push(figure(row.delay_p50_s.map(|estimate| estimate.mean)));
    cells.push(figure(row.delay_p99_s.map(|estimate| estimate.mean)));
    cells.push(figure(row.delay_p99_s.and_then(|estimate| estimate.half_width)));
    cells.push(figure(row.delays.as_ref().map(|delays| delays.max_s)));
    cells
}
