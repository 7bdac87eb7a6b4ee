//! Formats the results of a simulation as text and as CSV.
use super::report_stations;
use super::streams::{SimulationSetup, StreamSimulation};
use super::{SimulateResult, SimulatedPoint};
use crate::commands::csv::{figure, quoted};
use crate::commands::run::report::{TRAFFIC_CELLS, traffic_cells};
use crate::commands::sweep::plain;
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write as _;
use weir_sim::report::FabricReportRow;
use weir_sim::stats::Estimate;
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
    let mut table = table(&[
        "virtual switch",
        "port",
        "class",
        "packets",
        "rate",
        "throughput",
        "loss",
        "mean delay",
        "p50",
        "p99",
        "max",
    ]);
    for row in rows(result) {
        let delays = row.delays.as_ref();
        let us = |s: Option<f64>| s.map_or(String::new(), |s| format!("{:.2}", s * 1e6));
        table.add_row([
            row.switch.clone().unwrap_or_else(|| "all".into()),
            row.port.clone().unwrap_or_default(),
            row.class.map_or(String::new(), |class| class.to_string()),
            row.packets.to_string(),
            within(row.rate_bps, 1e-6, 2, " Mbit/s"),
            within(row.throughput, 100.0, 3, "%"),
            within(row.loss, 100.0, 3, "%"),
            within(row.delay_s, 1e6, 2, ""),
            us(delays.map(|delays| delays.p50_s)),
            us(delays.map(|delays| delays.p99_s)),
            us(delays.map(|delays| delays.max_s)),
        ]);
    }
    table.column_iter_mut().skip(3).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
    let mut text = format!("Packets (delays in microseconds, to the start of transmission)\n{}\n\n", table.trim_fmt());
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
fn rows(result: &StreamSimulation) -> impl Iterator<Item = &FabricReportRow> {
    let report = &result.report;
    let lists = [&report.groups, &report.switches, &report.ports, &report.classes];
    let most = lists.into_iter().find(|rows| rows.len() > 1);
    most.into_iter().flatten().chain([&report.total])
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

/// Formats a mean with half its confidence interval.
pub(super) fn within(estimate: Option<Estimate>, scale: f64, digits: usize, unit: &str) -> String {
    let Some(Estimate { mean, half_width, .. }) = estimate else { return String::new() };
    let half = half_width.map_or(String::new(), |half| format!(" ± {:.digits$}", half * scale));
    format!("{:.digits$}{half}{unit}", mean * scale)
}

pub(super) fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

/// Formats one CSV line for each group and point; for networks one for each item of traffic.
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
            SimulateResult::Network(network) => {
                (TRAFFIC_CELLS, network.result.traffic.iter().map(traffic_cells).collect())
            }
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
