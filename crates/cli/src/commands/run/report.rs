//! Formats the result of a run as text.
use crate::commands::csv::{self, figure, quoted};
use crate::commands::net;
use std::fmt::Write as _;
use std::time::Duration;
use weir_network::LabResult;
use weir_network::certificate::FidelityVerdict;
use weir_network::result::{ControllerResult, LabHostKind, StreamResult, TrafficResult};
use weir_scenario::TrafficExpectation;
use weir_terminal::table::ReportTable;
use weir_traffic::TimeStatistics;
use weir_units::{Bps, counted};

/// Maximum number of hosts for a matrix; larger ones are hard to read.
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
        Some(("Traffic", traffic(result))),
        Some(("Delays (microseconds)", delays(result))),
        Some(("Intents", intents(result))),
        Some(("Promises of virtual networks (microseconds)", promises(result))),
        Some(("Streams", streams(result))),
        Some(("Delays of streams (microseconds)", stream_delays(result))),
        Some(("Switches", switches(result))),
        Some(("Packets dropped", drops(result))),
    ];
    let mut text = String::new();
    for (title, table) in sections.into_iter().flatten().filter(|(_, table)| !table.is_empty()) {
        let _ = writeln!(text, "{title}\n{table}\n");
        if title == "Traffic" {
            text += &problems(result);
        }
    }
    text + &footer(result, took)
}

/// Says what went wrong with items of traffic, one line for each.
fn problems(result: &LabResult) -> String {
    let failed = result.traffic.iter().filter(|item| !item.ok);
    let line = |item: &TrafficResult| {
        Some(format!("{} {} -> {}: {}\n", item.kind, item.from, item.to, item.problem.as_ref()?))
    };
    let lines: String = failed.filter_map(line).collect();
    if lines.is_empty() { lines } else { lines + "\n" }
}

/// Formats what follows the tables: counts, conditions, and the verdict as the last line.
fn footer(result: &LabResult, took: Option<Duration>) -> String {
    let mut text = String::new();
    if result.drops.is_empty() {
        text += "Packets dropped: none\n";
    }
    let mut count = |whose: &str, controller: &ControllerResult| {
        let ControllerResult { packet_ins, flow_mods, packet_outs, errors } = controller;
        let _ = writeln!(
            text,
            "{whose}: {packet_ins} packet-ins, {flow_mods} flow-mods, {packet_outs} packet-outs, {errors} errors"
        );
    };
    if let Some(controller) = &result.controller {
        count("Controller", controller);
    }
    for cut in &result.virtual_switches {
        cut.controller
            .iter()
            .for_each(|controller| count(&format!("Controller of {} {}", cut.switch, cut.name), controller));
    }
    for controller in result.external_controller.iter().chain(&result.virtual_external_controllers) {
        let _ = writeln!(text, "{controller}");
    }
    result.setup.unused.iter().for_each(|unused| _ = writeln!(text, "{unused}"));
    let certificate = result.certificate.as_ref().map(ToString::to_string).unwrap_or_default();
    text + &lateness(result) + &certificate + &conditions(result, took) + &verdict(result)
}

/// Says how long what was run, with what and on what. `took` is the time that a simulation took, whose own time is
/// virtual.
pub(crate) fn conditions(result: &LabResult, took: Option<Duration>) -> String {
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

/// Beginning of the last line of a run that the machine could not carry, whose traffic reached whom it should.
const OVERLOADED: &str =
    "NOT FAITHFUL: the machine could not keep the scenario's times, so delays and losses are its own (see Fidelity)";

fn verdict(result: &LabResult) -> String {
    let verdict = result.certificate.as_ref().map(|certificate| certificate.verdict);
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
        return match verdict {
            _ if result.streams.is_empty() => "The scenario has no traffic\n".to_owned(),
            Some(FidelityVerdict::NotFaithful) => format!("{OVERLOADED}\n"),
            _ => String::new(),
        };
    }
    if result.passed {
        let all = if items == 1 { "The item of traffic".to_owned() } else { format!("All {items} items of traffic") };
        return match verdict {
            None | Some(FidelityVerdict::Faithful) => format!("{all} did what was expected\n"),
            Some(FidelityVerdict::Doubtful) => format!(
                "{all} did what was expected; but the machine disturbed the run: its times are doubtful (see Fidelity)\n"
            ),
            Some(FidelityVerdict::NotFaithful) => format!("{OVERLOADED}; who reached whom is as expected\n"),
        };
    }
    format!("FAILED: {} of {} of traffic did not do what was expected\n", items - ok, counted(items, "item", "items"))
}

/// Returns the matrix of hosts by hosts, or `None` if there are too many hosts or there is no traffic.
fn matrix(result: &LabResult) -> Option<ReportTable> {
    let mut hosts: Vec<&str> = Vec::new();
    for name in result.traffic.iter().flat_map(|item| [item.from.as_str(), item.to.as_str()]) {
        if !hosts.contains(&name) {
            hosts.push(name);
        }
    }
    if hosts.is_empty() || hosts.len() > MATRIX_HOSTS {
        return None;
    }
    let mut table = ReportTable::new([""].iter().chain(&hosts).copied());
    for from in &hosts {
        let cells = hosts.iter().map(|to| if from == to { "-" } else { cell(result, from, to) });
        table.row([*from].into_iter().chain(cells));
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

fn traffic(result: &LabResult) -> ReportTable {
    let header = ["", "from", "to", "outcome", "sent", "received", "loss", "goodput"];
    let mut table = ReportTable::new(header).keys(3).numbers(4..8);
    for item in &result.traffic {
        table.row([
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
        ]);
    }
    table
}

/// Columns of delays.
const TIMES: [&str; 7] = ["samples", "min", "mean", "p50", "p95", "p99", "max"];

/// Returns the delays of the items of traffic that have any, and below them those that no stop of the machine touched.
fn delays(result: &LabResult) -> ReportTable {
    let header = ["", "from", "to", "time of"].into_iter().chain(TIMES);
    let mut table = ReportTable::new(header).keys(3).numbers(4..11);
    for item in &result.traffic {
        let (what, delay) = match (&item.rtt, &item.delay) {
            (Some(rtt), _) => ("round trip", rtt),
            (None, Some(delay)) => ("one way", delay),
            (None, None) => continue,
        };
        let names = [item.kind.to_owned(), item.from.clone(), item.to.clone(), what.to_owned()];
        table.row(names.into_iter().chain(times(delay)));
        if let Some(undisturbed) = &item.undisturbed {
            let names = [String::new(), String::new(), String::new(), "no stops".to_owned()];
            table.row(names.into_iter().chain(times(undisturbed)));
        }
    }
    table
}

/// Returns the intents, with the delays that their bounds are about in microseconds.
fn intents(result: &LabResult) -> ReportTable {
    let header = ["", "from", "to", "state", "delay of", "at most", "expected", "measured", "reason"];
    let mut table = ReportTable::new(header).keys(3).numbers(5..8);
    let us = |us: Option<f64>| us.map_or(String::new(), |us| format!("{us:.0}"));
    for intent in &result.intents {
        table.row([
            intent.key.clone(),
            intent.from.join(", "),
            intent.to.join(", "),
            net::text::state(intent.state).to_owned(),
            intent.delay_of.clone().unwrap_or_default(),
            us(intent.bound_us),
            us(intent.expected_us),
            us(intent.measured_us),
            intent.reason.clone(),
        ]);
    }
    table
}

/// Returns the promises of virtual networks with what was measured.
fn promises(result: &LabResult) -> ReportTable {
    let header = ["", "from", "to", "guaranteed", "promised", "bound", "measured", "loss", "kept"];
    let mut table = ReportTable::new(header).keys(3).numbers(3..8);
    let us = |us: Option<f64>| us.map_or(String::new(), |us| format!("{us:.0}"));
    for promise in &result.promises {
        let kept = match (promise.kept, &promise.out_of_profile, &promise.not_judged) {
            (Some(true), ..) => "yes".to_owned(),
            (Some(false), ..) => "NO".to_owned(),
            (None, Some(reason), _) => format!("out of profile: {reason}"),
            (None, None, Some(reason)) => format!("not judged: {reason}"),
            (None, None, None) => String::new(),
        };
        table.row([
            promise.network.clone(),
            promise.from.clone(),
            promise.to.clone(),
            rate(promise.guaranteed_bps as f64),
            us(promise.promised_us),
            us(promise.bound_us),
            us(promise.measured_us),
            promise.loss.map_or(String::new(), |loss| format!("{:.2}%", loss * 100.0)),
            kept,
        ]);
    }
    table
}

/// Returns the names of a stream's switch, output and class.
fn stream_names(stream: &StreamResult) -> [String; 4] {
    let cut = stream.virtual_switch.as_ref().map(|name| format!("{} {name}", stream.switch));
    let switch = cut.unwrap_or_else(|| stream.switch.clone());
    [stream.name.clone(), switch, stream.output.to_string(), stream.class.to_string()]
}

fn streams(result: &LabResult) -> ReportTable {
    let header = ["", "switch", "port", "class", "sent", "received", "throughput", "loss", "rate", "share"];
    let mut table = ReportTable::new(header).keys(4).numbers(2..10);
    let percent = |share: Option<f64>| share.map_or(String::new(), |share| format!("{:.3}%", share * 100.0));
    for stream in &result.streams {
        let figures = [
            stream.sent.to_string(),
            stream.received.to_string(),
            percent(stream.throughput),
            percent(stream.loss),
            rate(stream.rate_bps),
            percent(stream.share),
        ];
        table.row(stream_names(stream).into_iter().chain(figures));
    }
    table
}

/// Returns the delays of the streams of which packets came.
fn stream_delays(result: &LabResult) -> ReportTable {
    let header = ["", "switch", "port", "class"].into_iter().chain(TIMES);
    let mut table = ReportTable::new(header).keys(4).numbers(2..11);
    for stream in &result.streams {
        if let Some(delay) = &stream.delay {
            table.row(stream_names(stream).into_iter().chain(times(delay)));
        }
    }
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

/// Formats delays, in the order of [`TIMES`].
fn times(delay: &TimeStatistics) -> [String; 7] {
    let percentile = |share: f64, us: f64| delay.has_percentile(share).then_some(us);
    let us = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| format!("{us:.0}"));
    [
        delay.samples.to_string(),
        us(Some(delay.min_us)),
        us(Some(delay.mean_us)),
        us(percentile(0.5, delay.p50_us)),
        us(percentile(0.95, delay.p95_us)),
        us(percentile(0.99, delay.p99_us)),
        us(Some(delay.max_us)),
    ]
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rate above zero, far from the limit")]
fn rate(bps: f64) -> String {
    format!("{:.1}", Bps(bps.round() as u64))
}

fn switches(result: &LabResult) -> ReportTable {
    let header = ["", "datapath id", "control channels", "flow entries", "packets", "received", "sent"];
    let mut table = ReportTable::new(header).numbers(2..7);
    for switch in &result.switches {
        let counts =
            [switch.entries, switch.packets, switch.rx_packets, switch.tx_packets].map(|count| count.to_string());
        let fixed = [switch.name.clone(), format!("{:016x}", switch.dpid), switch.channels_up.to_string()];
        table.row(fixed.into_iter().chain(counts));
    }
    table
}

fn drops(result: &LabResult) -> ReportTable {
    let mut table = ReportTable::new(["where", "why", "packets"]).numbers(2..3);
    for drop in &result.drops {
        table.row([drop.place.clone(), drop.reason.clone(), drop.packets.to_string()]);
    }
    table
}

/// Columns of traffic as CSV.
pub(crate) const TRAFFIC_CELLS: &str =
    "kind,from,to,reached,ok,sent,received,loss,goodput_bps,delay_mean_us,delay_p99_us";
/// Columns of streams as CSV.
const STREAM_CELLS: &str = "stream,switch,virtual_switch,port,class,sent,received,throughput,loss,rate_bps,share,delay_mean_us,\
                            delay_p50_us,delay_p95_us,delay_p99_us,delay_max_us";

/// Formats one CSV line for each item of traffic and each stream, with columns of their own if the scenario has only
/// streams. A certified
/// run has its verdict in the last column, and a run with parameters of profiles that have no effect has these in one.
pub(crate) fn csv(result: &LabResult) -> String {
    let (header, mut lines): (_, Vec<Vec<String>>) = if result.traffic.is_empty() && !result.streams.is_empty() {
        (STREAM_CELLS, result.streams.iter().map(stream_cells).collect())
    } else {
        (TRAFFIC_CELLS, traffic_lines(result))
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

/// Returns the cells of all items of traffic and all streams, in the order of [`TRAFFIC_CELLS`].
pub(crate) fn traffic_lines(result: &LabResult) -> Vec<Vec<String>> {
    result.traffic.iter().map(traffic_cells).chain(result.streams.iter().map(stream_as_traffic)).collect()
}

/// Returns the cells of a stream in the columns of traffic. Its rate is that of frames; nothing is expected of it.
fn stream_as_traffic(stream: &StreamResult) -> Vec<String> {
    vec![
        "stream".to_owned(),
        quoted(&stream.name),
        quoted(&format!("{} port {}", stream.switch, stream.output)),
        (stream.received > 0).to_string(),
        String::new(),
        stream.sent.to_string(),
        stream.received.to_string(),
        figure(stream.loss),
        stream.rate_bps.to_string(),
        figure(stream.delay.map(|delay| delay.mean_us)),
        figure(stream.delay.map(|delay| delay.p99_us)),
    ]
}

/// Returns the cells of an item of traffic, in the order of [`TRAFFIC_CELLS`].
fn traffic_cells(item: &TrafficResult) -> Vec<String> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use weir_network::result::{DropCount, StreamResult};
    use weir_scenario::Scenario;
    use weir_sim::network::{VirtualTimeSettings, simulate};
    use weir_terminal::table::MAX_WIDTH;

    /// Returns the result of the quickstart example, with large figures, many hosts, a failure and a stream.
    fn large() -> LabResult {
        let text = include_str!("../../../../../examples/quickstart.toml");
        let mut scenario = Scenario::parse(text, "quickstart").unwrap();
        super::super::set_duration(&mut scenario, "100ms".parse().unwrap()).unwrap();
        let settings = VirtualTimeSettings::default();
        let mut result = simulate(&scenario, &settings, &weir_sim::SimulationMonitor::default(), &mut |_| ()).unwrap();
        let times = TimeStatistics {
            samples: 123_456,
            min_us: 100_000.0,
            mean_us: 123_456.0,
            sd_us: 1000.0,
            p50_us: 123_456.0,
            p95_us: 234_567.0,
            p99_us: 345_678.0,
            p999_us: 456_789.0,
            max_us: 1_234_567.0,
        };
        for (number, item) in result.traffic.iter_mut().enumerate() {
            (item.from, item.to) = (format!("client-{number:02}"), format!("server-{number:02}"));
            (item.sent, item.received, item.delay) = (Some(12_345_678), 12_345_678, Some(times));
            item.undisturbed = Some(times);
        }
        result.traffic[0].ok = false;
        result.traffic[0].problem = Some("no answer came before the time of the item was over, and none later".into());
        result.passed = false;
        result.streams.push(StreamResult {
            name: "background".into(),
            switch: "switch-1".into(),
            virtual_switch: Some("gold".into()),
            output: 33,
            class: 7,
            sent: 12_345_678,
            received: 12_345_678,
            throughput: Some(1.0),
            throughput_bytes: Some(1.0),
            loss: Some(0.012_345),
            rate_bps: 9.87e9,
            share: Some(0.5),
            delay: Some(times),
            late: Some(times),
        });
        result.drops.push(DropCount {
            place: "switch-1 gold".into(),
            reason: "buffer full".into(),
            packets: 12_345_678,
        });
        result
    }

    #[test]
    fn an_overloaded_machine_ends_no_run_well() {
        use weir_network::certificate::{Certificate, MachineLoad};
        let machine = MachineLoad {
            processors: 2,
            busy_share: 1.0,
            own_share: 1.0,
            saturated_share: 1.0,
            stolen_share: 0.0,
            thread_wait_us: None,
            throttled_s: 0.0,
            stops: 0,
            stopped_share: 0.0,
            longest_stop_s: 0.0,
            preempted_share: 0.0,
        };
        let certificate = |verdict| Certificate {
            verdict,
            reasons: Vec::new(),
            advice: Vec::new(),
            dilation: 1.0,
            duration_s: 1.0,
            links: None,
            devices: None,
            senders: None,
            overflows: None,
            flows: Vec::new(),
            machine,
        };
        let last = |verdict| {
            let result = LabResult { passed: true, certificate: Some(certificate(verdict)), ..large() };
            text(&result).lines().last().map(str::to_owned).unwrap_or_default()
        };
        assert!(last(FidelityVerdict::Faithful).ends_with("did what was expected"));
        assert!(last(FidelityVerdict::Doubtful).contains("did what was expected; but the machine disturbed the run"));
        let overloaded = last(FidelityVerdict::NotFaithful);
        assert!(overloaded.starts_with("NOT FAITHFUL: the machine could not keep") && !overloaded.contains("did what"));
        let certificate = Some(certificate(FidelityVerdict::NotFaithful));
        let streams = LabResult { passed: true, certificate, traffic: Vec::new(), ..large() };
        assert!(text(&streams).ends_with("(see Fidelity)\n"), "streams, too");
    }

    #[test]
    fn tables_fit_a_terminal() {
        let text = text(&large());
        let is_cell = |cell: &&str| !cell.trim().is_empty();
        let tables = text.lines().filter(|line| line.trim().split("  ").filter(is_cell).count() >= 3);
        let wide: Vec<&str> = tables.filter(|line| line.chars().count() > MAX_WIDTH).collect();
        assert!(wide.is_empty(), "{wide:#?}");
        for title in [
            "Who reached whom",
            "Traffic\n",
            "\nDelays (",
            "\nStreams\n",
            "\nDelays of streams (",
            "\nPackets dropped\n",
        ] {
            assert!(text.contains(title), "no `{title}` in {text}");
        }
        assert!(text.contains("ping client-00 -> server-00: no answer came before"), "{text}");
    }
}
