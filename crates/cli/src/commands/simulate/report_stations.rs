//! Formats the results of simulated stations as text and as CSV.
use super::report::{conditions, within};
use super::stations::StationSimulation;
use crate::commands::csv::figure;
use std::fmt::Write as _;
use weir_sim::stations::report::{FlowRow, StationRow, SwitchRow};
use weir_sim::stats::Estimate;
use weir_terminal::table::ReportTable;

/// Formats the whole report.
pub(super) fn text(result: &StationSimulation) -> String {
    let report = &result.report;
    let mut text =
        "Simulated as queueing stations: switches and controller take the times that the scenario says\n\n".to_owned();
    text += &flows(&report.flows, (report.flows.len() > 1).then_some(&report.total));
    text += &switches(&report.switches);
    text += &stations(&report.stations);
    if !report.left_out.is_empty() {
        let _ = writeln!(text, "Left out, since stations know datagrams only: {}", report.left_out.join(", "));
    }
    report.unused.iter().for_each(|unused| _ = writeln!(text, "{unused}"));
    for station in report.stations.iter().filter(|station| station.overloaded) {
        let _ = writeln!(
            text,
            "{}: gets more than it serves and holds any number: no steady state, its delays depend on `duration`",
            station.name
        );
    }
    text + &conditions(&result.setup, result.is_sure, result.partial)
}

fn ms(estimate: Option<Estimate>) -> String {
    within(estimate, 1e3, 4, "")
}

fn percent(estimate: Option<Estimate>) -> String {
    within(estimate, 100.0, 3, "%")
}

fn flows(rows: &[FlowRow], total: Option<&FlowRow>) -> String {
    let header = ["from", "to", "class", "packets", "a second", "loss"];
    let mut packets = ReportTable::new(header).keys(3).numbers(3..6);
    let mut times = ReportTable::new(["from", "to", "class", "mean", "p50", "p95", "p99"]).keys(3).numbers(3..7);
    for row in rows.iter().chain(total) {
        let several = row.data.packets > 0 && row.control.packets > 0;
        let classes = [("all", &row.all), ("data", &row.data), ("control", &row.control)];
        for (class, delays) in classes.into_iter().take(if several { 3 } else { 1 }) {
            let whole = class == "all";
            let names = [
                row.from.clone().unwrap_or_else(|| "all".into()),
                row.to.clone().unwrap_or_default(),
                class.to_owned(),
            ];
            let figures = [
                if whole { row.packets } else { delays.packets }.to_string(),
                if whole { within(row.per_second, 1.0, 1, "") } else { String::new() },
                if whole { percent(row.loss) } else { String::new() },
            ];
            packets.row(names.clone().into_iter().chain(figures));
            let delays = [delays.mean_s, delays.p50_s, delays.p95_s, delays.p99_s].map(ms);
            times.row(names.into_iter().chain(delays));
        }
    }
    format!(
        "Packets from host to host (control: those that the controller was asked about)\n{packets}\n\n\
         Delays from host to host (milliseconds)\n{times}\n\n"
    )
}

fn switches(rows: &[SwitchRow]) -> String {
    let mut table = ReportTable::new(["switch", "packets", "asked", "held up", "mean", "p95", "p99"]).numbers(1..7);
    for row in rows {
        table.row([
            row.name.clone(),
            row.packets.to_string(),
            percent(row.asked),
            percent(row.held_up),
            ms(row.delay.mean_s),
            ms(row.delay.p95_s),
            ms(row.delay.p99_s),
        ]);
    }
    format!("Switches (held up: asked, or slower than `slow`: the effective share of new flows)\n{table}\n\n")
}

fn stations(rows: &[StationRow]) -> String {
    let mut table =
        ReportTable::new(["station", "packets", "a second", "busy", "queue", "mean", "loss"]).groups([4]).numbers(1..7);
    for row in rows {
        table.row([
            row.name.clone(),
            row.packets.to_string(),
            within(row.per_second, 1.0, 1, ""),
            percent(row.utilisation),
            within(row.queue, 1.0, 3, ""),
            ms(row.stay_s),
            percent(row.loss),
        ]);
    }
    format!("Stations (queue: packets there, with the one in service)\n{table}\n\n")
}

/// Columns of the CSV form.
pub(super) const CELLS: &str = "kind,name,to,packets,per_second,loss,loss_ci,delay_s,delay_s_ci,p50_s,p95_s,p95_s_ci,p99_s,p99_s_ci,data_s,data_s_ci,\
                                control_s,control_s_ci,asked,held_up,utilisation,utilisation_ci,queue,overloaded";

/// Returns the CSV lines: flows, switches, stations.
pub(super) fn cells(result: &StationSimulation) -> Vec<Vec<String>> {
    let report = &result.report;
    let flows = report.flows.iter().map(flow_cells);
    flows.chain(report.switches.iter().map(switch_cells)).chain(report.stations.iter().map(station_cells)).collect()
}

fn mean(estimate: Option<Estimate>) -> String {
    figure(estimate.map(|estimate| estimate.mean))
}

/// Returns a mean and half its confidence interval as two cells.
fn sure(estimate: Option<Estimate>) -> [String; 2] {
    [mean(estimate), figure(estimate.and_then(|estimate| estimate.half_width))]
}

fn flow_cells(row: &FlowRow) -> Vec<String> {
    let name = |end: &Option<String>| end.clone().unwrap_or_default();
    let mut cells =
        vec!["flow".to_owned(), name(&row.from), name(&row.to), row.packets.to_string(), mean(row.per_second)];
    cells.extend(sure(row.loss));
    cells.extend(sure(row.all.mean_s));
    cells.push(mean(row.all.p50_s));
    cells.extend(
        [sure(row.all.p95_s), sure(row.all.p99_s), sure(row.data.mean_s), sure(row.control.mean_s)]
            .into_iter()
            .flatten(),
    );
    cells.extend([const { String::new() }; 6]);
    cells
}

fn switch_cells(row: &SwitchRow) -> Vec<String> {
    let mut cells = vec!["switch".to_owned(), row.name.clone(), String::new(), row.packets.to_string()];
    cells.extend([const { String::new() }; 3]);
    cells.extend(sure(row.delay.mean_s));
    cells.push(mean(row.delay.p50_s));
    cells.extend([sure(row.delay.p95_s), sure(row.delay.p99_s)].into_iter().flatten());
    cells.extend([const { String::new() }; 4]);
    cells.extend([mean(row.asked), mean(row.held_up)]);
    cells.extend([const { String::new() }; 4]);
    cells
}

fn station_cells(row: &StationRow) -> Vec<String> {
    let mut cells =
        vec!["station".to_owned(), row.name.clone(), String::new(), row.packets.to_string(), mean(row.per_second)];
    cells.extend(sure(row.loss));
    cells.extend(sure(row.stay_s));
    cells.extend([const { String::new() }; 11]);
    cells.extend(sure(row.utilisation));
    cells.extend([mean(row.queue), row.overloaded.to_string()]);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_a_cell_for_every_column() {
        let text = include_str!("../../../../../examples/at-x510.toml");
        let mut scenario = weir_scenario::Scenario::parse(text, "at-x510.toml").unwrap();
        scenario.simulate.duration = std::time::Duration::from_secs(10);
        scenario.simulate.replications = 2;
        let result = super::super::stations::simulate(&scenario, 1, &weir_sim::SimulationMonitor::default()).unwrap();
        let columns = CELLS.split(',').count();
        let lines = cells(&result);
        assert!(lines.iter().all(|line| line.len() == columns), "{columns} columns: {lines:?}");
        assert_eq!(lines.len(), 1 + 1 + result.report.stations.len());
    }
}
