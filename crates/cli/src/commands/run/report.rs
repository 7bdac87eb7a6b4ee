//! Formats the result of a run as text.
use crate::commands::csv::{self, figure, quoted};
use comfy_table::{CellAlignment, Table, presets};
use std::fmt::Write as _;
use std::time::Duration;
use weir_network::LabResult;
use weir_network::certificate::FidelityVerdict;
use weir_network::result::{LabHostKind, StreamResult, TrafficResult};
use weir_scenario::TrafficExpectation;
use weir_traffic::TimeStatistics;
use weir_units::{Bps, counted};

/// Maximum number of hosts for a matrix; wider ones do not fit a screen.
const MATRIX_HOSTS: usize = 12;

/// Formats the whole report.
pub(crate) fn text(result: &LabResult) -> String {
    report(result, None)
}

/// Formats the whole report of a simulation that took this time.
pub(crate) fn simulated_text(result: &LabResult, took: Duration) -> String {
    report(result, Some(took))
}

fn report(result: &LabResult, took: Option<Duration>) -> String {
    let sections = [
        matrix(result).map(|table| ("Who reached whom (from the left to the top)", table)),
        (!result.traffic.is_empty()).then(|| ("Traffic (times in microseconds)", traffic(result))),
        (!result.streams.is_empty()).then(|| ("Streams (times in microseconds)", streams(result))),
        Some(("Switches", switches(result))),
        (!result.drops.is_empty()).then(|| ("Packets dropped", drops(result))),
    ];
    let mut text = String::new();
    for (title, table) in sections.into_iter().flatten() {
        let _ = writeln!(text, "{title}\n{}\n", table.trim_fmt());
    }
    text + &footer(result, took)
}

/// Formats what follows the tables: counts, conditions, and the verdict as the last line.
fn footer(result: &LabResult, took: Option<Duration>) -> String {
    let mut text = String::new();
    if result.drops.is_empty() {
        text += "Packets dropped: none\n";
    }
    if let Some(controller) = &result.controller {
        let _ = writeln!(
            text,
            "Controller: {} packet-ins, {} flow-mods, {} packet-outs, {} errors",
            controller.packet_ins, controller.flow_mods, controller.packet_outs, controller.errors
        );
    }
    result.setup.unused.iter().for_each(|unused| _ = writeln!(text, "{unused}"));
    let certificate = result.certificate.as_ref().map(ToString::to_string).unwrap_or_default();
    text + &lateness(result) + &certificate + &conditions(result, took) + &verdict(result)
}

/// Says how long what was run, with what and on what. `took` is the time that a simulation took, whose own time is
/// virtual.
fn conditions(result: &LabResult, took: Option<Duration>) -> String {
    let setup = &result.setup;
    let hosts = match setup.mode {
        LabHostKind::Memory => "hosts in this process",
        LabHostKind::Netns => "hosts in network namespaces",
        LabHostKind::Virtual => "hosts in virtual time",
    };
    let build = weir_units::BUILD_KIND;
    let how = match (setup.mode, took) {
        (LabHostKind::Virtual, Some(took)) => {
            format!("Simulated {:.1} s of virtual time in {:.1} s", setup.duration_s, took.as_secs_f64())
        }
        (LabHostKind::Virtual, None) => format!("Simulated {:.1} s of virtual time", setup.duration_s),
        _ => format!("Measured in {:.1} s", setup.duration_s),
    };
    format!(
        "{how} with weir {} ({build} build), scenario {}, seed {}, {hosts}, on {} of {}, Linux {}\n",
        setup.version,
        setup.scenario,
        setup.seed,
        counted(setup.machine.cores, "core", "cores"),
        setup.machine.cpu,
        setup.machine.kernel
    )
}

fn verdict(result: &LabResult) -> String {
    let items = result.traffic.len();
    let ok = result.traffic.iter().filter(|item| item.ok).count();
    if result.partial {
        if items == 0 {
            return "Stopped early, results are partial\n".to_owned();
        }
        let through = result.traffic.iter().filter(|item| !item.partial).count();
        let items = counted(items, "item", "items");
        return format!("Stopped early, results are partial: {through} of {items} of traffic were through\n");
    }
    if items == 0 {
        return if result.streams.is_empty() { "The scenario has no traffic\n" } else { "" }.to_owned();
    }
    if result.passed {
        let doubt = result.certificate.as_ref().filter(|own| own.verdict != FidelityVerdict::Faithful);
        let doubt = doubt.map_or_else(String::new, |own| {
            format!("; but the machine disturbed the run: its times are {} (see Fidelity)", own.verdict)
        });
        return match items {
            1 => format!("The item of traffic did what was expected{doubt}\n"),
            _ => format!("All {items} items of traffic did what was expected{doubt}\n"),
        };
    }
    format!("FAILED: {} of {} of traffic did not do what was expected\n", items - ok, counted(items, "item", "items"))
}

/// Returns the matrix of hosts by hosts, or `None` if there are too many hosts or there is no traffic.
fn matrix(result: &LabResult) -> Option<Table> {
    let mut hosts: Vec<&str> = Vec::new();
    for name in result.traffic.iter().flat_map(|item| [item.from.as_str(), item.to.as_str()]) {
        if !hosts.contains(&name) {
            hosts.push(name);
        }
    }
    if hosts.is_empty() || hosts.len() > MATRIX_HOSTS {
        return None;
    }
    let mut table = table(&[""]);
    table.set_header([""].iter().chain(&hosts));
    for from in &hosts {
        let cells = hosts.iter().map(|to| if from == to { "-" } else { cell(result, from, to) });
        table.add_row([*from].into_iter().chain(cells));
    }
    Some(table)
}

/// Returns the worst outcome of all traffic from one host to another.
fn cell(result: &LabResult, from: &str, to: &str) -> &'static str {
    let between = |item: &&TrafficResult| item.from == from && item.to == to;
    let worst = result.traffic.iter().filter(between).map(|item| (item.ok, outcome(item))).min_by_key(|(ok, _)| *ok);
    worst.map_or(".", |(_, outcome)| outcome)
}

fn outcome(item: &TrafficResult) -> &'static str {
    match (item.expect, item.reached) {
        (TrafficExpectation::Reach, true) => "reached",
        (TrafficExpectation::Reach, false) if item.partial => "stopped",
        (TrafficExpectation::Reach, false) => "NOT REACHED",
        (TrafficExpectation::Isolated, false) => "isolated",
        (TrafficExpectation::Isolated, true) => "LEAKED",
    }
}

fn traffic(result: &LabResult) -> Table {
    let mut table = table(&[
        "", "from", "to", "outcome", "sent", "received", "loss", "goodput", "time of", "samples", "min", "mean", "p50",
        "p95", "p99", "max",
    ]);
    for item in &result.traffic {
        let (what, delay) = match (&item.rtt, &item.delay) {
            (Some(rtt), _) => ("round trip", Some(rtt)),
            (None, Some(delay)) => ("one way", Some(delay)),
            (None, None) => ("", None),
        };
        let number = |number: Option<u64>| number.map_or(String::new(), |number| number.to_string());
        let mut row = vec![
            item.kind.to_owned(),
            item.from.clone(),
            format!("{} {}", item.to, item.address),
            outcome(item).to_owned(),
            sent(item),
            if item.kind == "tcp" {
                format!("{:.1} MB", item.received as f64 / 1e6)
            } else {
                item.received.to_string()
            },
            item.loss.map_or(String::new(), |loss| format!("{:.1}%", loss * 100.0)),
            item.goodput_bps.map_or(String::new(), rate),
            what.to_owned(),
            number(delay.map(|delay| delay.samples)),
        ];
        row.extend(times(delay));
        table.add_row(row);
        if let Some(problem) = item.problem.as_ref().filter(|_| !item.ok) {
            table.add_row(["", "", "", problem.as_str()]);
        }
    }
    right_from(&mut table, 4);
    table
}

fn streams(result: &LabResult) -> Table {
    let mut table = table(&[
        "",
        "switch",
        "port",
        "class",
        "sent",
        "received",
        "throughput",
        "loss",
        "rate",
        "share",
        "samples",
        "min",
        "mean",
        "p50",
        "p95",
        "p99",
        "max",
    ]);
    let percent = |share: Option<f64>| share.map_or(String::new(), |share| format!("{:.3}%", share * 100.0));
    for stream in &result.streams {
        let cut = stream.virtual_switch.as_ref().map(|name| format!("{} {name}", stream.switch));
        let mut row = vec![
            stream.name.clone(),
            cut.unwrap_or_else(|| stream.switch.clone()),
            stream.output.to_string(),
            stream.class.to_string(),
            stream.sent.to_string(),
            stream.received.to_string(),
            percent(stream.throughput),
            percent(stream.loss),
            rate(stream.rate_bps),
            percent(stream.share),
            stream.delay.map_or(String::new(), |delay| delay.samples.to_string()),
        ];
        row.extend(times(stream.delay.as_ref()));
        table.add_row(row);
    }
    right_from(&mut table, 2);
    table
}

/// Reports how late packets of streams were sent, which bounds the precision of their delays.
fn lateness(result: &LabResult) -> String {
    let late = result.streams.iter().filter_map(|stream| stream.late);
    let worst = late.fold([0.0_f64; 2], |[p99, max], late| [p99.max(late.p99_us), max.max(late.max_us)]);
    if result.streams.is_empty() {
        return String::new();
    }
    format!("Packets of streams were sent at most {:.0} us late, 99 % of each at most {:.0} us\n", worst[1], worst[0])
}

/// Formats the number of packets sent, and the number requested if not all could be sent.
fn sent(item: &TrafficResult) -> String {
    match (item.sent, item.asked) {
        (Some(sent), Some(asked)) if sent < asked => format!("{sent} of {asked}"),
        (Some(sent), _) => sent.to_string(),
        (None, _) => String::new(),
    }
}

fn times(delay: Option<&TimeStatistics>) -> [String; 6] {
    let Some(delay) = delay else { return Default::default() };
    let percentile = |share: f64, us: f64| delay.has_percentile(share).then_some(us);
    let times = [
        Some(delay.min_us),
        Some(delay.mean_us),
        percentile(0.5, delay.p50_us),
        percentile(0.95, delay.p95_us),
        percentile(0.99, delay.p99_us),
        Some(delay.max_us),
    ];
    times.map(|us| us.map_or_else(|| "-".to_owned(), |us| format!("{us:.0}")))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate above zero, far from the limit")]
fn rate(bps: f64) -> String {
    format!("{:.1}", Bps(bps.round() as u64))
}

fn switches(result: &LabResult) -> Table {
    let mut table = table(&["", "datapath id", "control channels", "flow entries", "packets", "received", "sent"]);
    for switch in &result.switches {
        let counts =
            [switch.entries, switch.packets, switch.rx_packets, switch.tx_packets].map(|count| count.to_string());
        let fixed = [switch.name.clone(), format!("{:016x}", switch.dpid), switch.channels_up.to_string()];
        table.add_row(fixed.into_iter().chain(counts));
    }
    right_from(&mut table, 2);
    table
}

fn drops(result: &LabResult) -> Table {
    let mut table = table(&["where", "why", "packets"]);
    for drop in &result.drops {
        table.add_row([drop.place.clone(), drop.reason.clone(), drop.packets.to_string()]);
    }
    right_from(&mut table, 2);
    table
}

/// Columns of traffic as CSV.
pub(crate) const TRAFFIC_CELLS: &str =
    "kind,from,to,reached,ok,sent,received,loss,goodput_bps,delay_mean_us,delay_p99_us";
/// Columns of streams as CSV.
const STREAM_CELLS: &str = "stream,switch,virtual_switch,port,class,sent,received,throughput,loss,rate_bps,share,delay_mean_us,\
                            delay_p50_us,delay_p95_us,delay_p99_us,delay_max_us";

/// Formats one CSV line for each item of traffic, or for each stream if the scenario has streams only. A certified
/// run has its verdict in the last column, and a run with parameters of profiles that have no effect has these in one.
pub(crate) fn csv(result: &LabResult) -> String {
    let (header, mut lines): (_, Vec<Vec<String>>) = if result.traffic.is_empty() && !result.streams.is_empty() {
        (STREAM_CELLS, result.streams.iter().map(stream_cells).collect())
    } else {
        (TRAFFIC_CELLS, result.traffic.iter().map(traffic_cells).collect())
    };
    let fidelity = result.certificate.as_ref().map(|certificate| ("fidelity", certificate.verdict.to_string()));
    let unused = &result.setup.unused;
    let unused = (!unused.is_empty()).then(|| ("unused", quoted(&unused.join("; "))));
    let mut header = header.to_owned();
    for (name, cell) in [unused, fidelity].into_iter().flatten() {
        header = format!("{header},{name}");
        lines.iter_mut().for_each(|cells| cells.push(cell.clone()));
    }
    csv::lines(&header, lines)
}

/// Returns the cells of an item of traffic, in the order of [`TRAFFIC_CELLS`].
pub(crate) fn traffic_cells(item: &TrafficResult) -> Vec<String> {
    let delay = item.rtt.or(item.delay);
    vec![
        item.kind.to_owned(),
        item.from.clone(),
        item.to.clone(),
        item.reached.to_string(),
        item.ok.to_string(),
        item.sent.map_or(String::new(), |sent| sent.to_string()),
        item.received.to_string(),
        figure(item.loss),
        figure(item.goodput_bps),
        figure(delay.map(|delay| delay.mean_us)),
        figure(delay.map(|delay| delay.p99_us)),
    ]
}

fn stream_cells(stream: &StreamResult) -> Vec<String> {
    let mut cells = vec![
        quoted(&stream.name),
        stream.switch.clone(),
        stream.virtual_switch.clone().unwrap_or_default(),
        stream.output.to_string(),
        stream.class.to_string(),
        stream.sent.to_string(),
        stream.received.to_string(),
        figure(stream.throughput),
        figure(stream.loss),
        stream.rate_bps.to_string(),
        figure(stream.share),
    ];
    let delay = |of: fn(&TimeStatistics) -> f64| figure(stream.delay.as_ref().map(of));
    cells.extend([
        delay(|d| d.mean_us),
        delay(|d| d.p50_us),
        delay(|d| d.p95_us),
        delay(|d| d.p99_us),
        delay(|d| d.max_us),
    ]);
    cells
}

fn table(header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(header);
    table
}

/// Right-aligns the columns from `first` on.
fn right_from(table: &mut Table, first: usize) {
    table.column_iter_mut().skip(first).for_each(|column| column.set_cell_alignment(CellAlignment::Right));
}
