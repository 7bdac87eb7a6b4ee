//! Writes the results of a simulation as an HTML page with charts.
use super::{SimulateResult, SimulatedPoint, report};
use crate::commands::predict::report::ReportTimeUnit;
use crate::commands::sweep::{key_with_most_values, plain};
use std::collections::BTreeMap;
use weir_plot::{
    Axis, Bar, BarChart, Chart, ChartPoint, ChartSeries, HtmlCell, HtmlPage, HtmlTable, LineStyle, short, swept_axis,
};
use weir_sim::report::FabricReportRow;
use weir_sim::stations::report::{FlowRow, StationRow};
use weir_sim::stats::Estimate;

/// Maximum number of stations in a chart.
const MOST_STATIONS: usize = 20;

/// A value with half its confidence interval, if there is one.
#[derive(Clone, Copy)]
struct SimulatedValue {
    value: f64,
    half: Option<f64>,
}

/// Simulated packets of a kind: a flow, an item of traffic, a group of streams.
struct SimulatedTraffic {
    name: String,
    /// True for the sum of all others.
    is_total: bool,
    packets: u64,
    loss: Option<SimulatedValue>,
    mean_s: Option<SimulatedValue>,
    p50_s: Option<SimulatedValue>,
    p99_s: Option<SimulatedValue>,
    /// Delays in seconds with the share of packets that take no longer.
    distribution: Vec<(f64, f64)>,
}

/// Returns the page as HTML.
pub(super) fn page(answers: &[SimulatedPoint], scenario: &str) -> String {
    let all: Vec<Vec<SimulatedTraffic>> = answers.iter().map(|answer| traffic(&answer.result)).collect();
    let longest = |traffic: &SimulatedTraffic| traffic.p99_s.or(traffic.mean_s).map_or(0.0, |delay| delay.value);
    let unit = ReportTimeUnit::for_longest(all.iter().flatten().map(longest).fold(0.0, f64::max));
    let mut page = HtmlPage::new(&format!("Simulation of {scenario}"));
    match (answers, &all[..]) {
        ([one], [traffic]) if one.point.is_empty() => single(&mut page, scenario, &one.result, traffic, &unit),
        _ => swept(&mut page, scenario, answers, &all, &unit),
    }
    page.finish(answers.last().map_or_else(String::new, |answer| report::setup(&answer.result)).trim_end())
}

fn single(
    page: &mut HtmlPage,
    scenario: &str,
    result: &SimulateResult,
    traffic: &[SimulatedTraffic],
    unit: &ReportTimeUnit,
) {
    page.answer(
        &format!("Asked: what becomes of the packets of scenario {scenario}, in virtual time?"),
        &in_a_line(result, traffic, unit),
    );
    let line = |one: &SimulatedTraffic| {
        let points = one.distribution.iter().map(|(delay_s, share)| ChartPoint::new(unit.scaled(*delay_s), *share));
        ChartSeries::looking(one.name.clone(), LineStyle::Curve, points.collect())
    };
    let delays = Chart {
        name: "delays".into(),
        title: "Delay by flow".into(),
        x: Axis::linear(format!("delay, {}", unit.name)),
        y: Axis::linear("share of packets, from 0 to 1"),
        series: traffic.iter().filter(|one| !one.distribution.is_empty()).map(line).collect(),
    };
    page.figure(&delays.into(), "Shares of packets that take no longer");
    page.heading("Traffic").table(&table(traffic, unit));
    stations(page, result, unit);
}

/// Returns the answer in a line: the slowest traffic, what loses most, and the busiest station.
fn in_a_line(result: &SimulateResult, traffic: &[SimulatedTraffic], unit: &ReportTimeUnit) -> String {
    let mut parts = Vec::new();
    let single = || traffic.iter().filter(|one| !one.is_total || traffic.len() == 1);
    let delays = || single().filter_map(|one| Some((one, one.mean_s?.value)));
    if let Some((one, mean_s)) = delays().max_by(|a, b| a.1.total_cmp(&b.1)) {
        let (count, mean) = (delays().count(), unit.time(mean_s));
        parts.push(format!("{} is the slowest of {count} with {mean} {} on average", one.name, unit.short()));
    }
    let losses = single().filter_map(|one| Some((one, one.loss?.value)));
    parts.push(match losses.filter(|(_, loss)| *loss > 0.0).max_by(|a, b| a.1.total_cmp(&b.1)) {
        Some((one, loss)) => format!("{} loses most, {:.2} % of its packets", one.name, loss * 100.0),
        None => "nothing is lost".to_owned(),
    });
    let busiest = busiest(result);
    if let Some((station, busy)) = busiest.first().and_then(|station| Some((station, station.utilisation?))) {
        parts.push(format!("{} is the busiest station at {:.1} %", station.name, busy.mean * 100.0));
    }
    if result.is_partial() {
        parts.push("the simulation was stopped early".to_owned());
    }
    parts.join("; ") + "."
}

/// Returns the stations, the busiest first; none if the simulation had none.
fn busiest(result: &SimulateResult) -> Vec<&StationRow> {
    let SimulateResult::Stations(result) = result else { return Vec::new() };
    let mut all: Vec<&StationRow> = result.report.stations.iter().collect();
    let busy = |station: &StationRow| station.utilisation.map_or(0.0, |busy| busy.mean);
    all.sort_by(|a, b| busy(b).total_cmp(&busy(a)));
    all
}

fn stations(page: &mut HtmlPage, result: &SimulateResult, unit: &ReportTimeUnit) {
    let all = busiest(result);
    if all.is_empty() {
        return;
    }
    let shown = || all.iter().take(MOST_STATIONS);
    let bar = |busy: SimulatedValue| {
        let (value, half) = (busy.value * 100.0, busy.half.map(|half| half * 100.0));
        Bar { value, interval: half.map(|half| [value - half, value + half]) }
    };
    let chart = BarChart {
        name: "utilisation".into(),
        title: "How busy stations are".into(),
        x: String::new(),
        y: Axis::linear("utilisation, %"),
        groups: shown().map(|station| station.name.clone()).collect(),
        series: vec![("simulated".into(), shown().map(|station| value(station.utilisation).map(bar)).collect())],
    };
    page.heading("Stations");
    page.figure(&weir_plot::Figure::Bars(chart), "");
    let row = |station: &&StationRow| {
        let figures = [
            station.packets.to_string(),
            percent(value(station.utilisation)),
            station.queue.map_or_else(String::new, |queue| short(queue.mean)),
            time(value(station.stay_s), unit),
            percent(value(station.loss)),
        ];
        [station.name.clone()].into_iter().chain(figures).map(HtmlCell::from).collect()
    };
    let stay = format!("mean time there, {}", unit.short());
    let head = ["station", "packets", "busy", "packets there", &stay, "loss"].map(str::to_owned);
    page.table(&HtmlTable { head: head.into(), texts: 1, rows: all.iter().map(row).collect() });
}

fn table(traffic: &[SimulatedTraffic], unit: &ReportTimeUnit) -> HtmlTable {
    let times = ["mean", "p50", "p99"].map(|name| format!("{name}, {}", unit.short()));
    let head = ["traffic", "packets", "loss"].map(str::to_owned).into_iter().chain(times).collect();
    let row = |one: &SimulatedTraffic| {
        let figures = [one.mean_s, one.p50_s, one.p99_s].map(|delay| time(delay, unit));
        let names = [one.name.clone(), one.packets.to_string(), percent(one.loss)];
        names.into_iter().chain(figures).map(HtmlCell::from).collect()
    };
    HtmlTable { head, texts: 1, rows: traffic.iter().map(row).collect() }
}

/// Adds line charts over the swept values, if they are numbers, otherwise over their positions in the sweep.
fn swept(
    page: &mut HtmlPage,
    scenario: &str,
    answers: &[SimulatedPoint],
    all: &[Vec<SimulatedTraffic>],
    unit: &ReportTimeUnit,
) {
    let key = key_with_most_values(answers.iter().map(|answer| &answer.point));
    let values: Vec<String> =
        answers.iter().map(|answer| answer.point.0.get(&key).map(plain).unwrap_or_default()).collect();
    let (label, along) = swept_axis(&key, &values);
    let (from, to) = (values.first().map_or("", String::as_str), values.last().map_or("", String::as_str));
    let means: Vec<f64> = all.iter().flatten().filter_map(|one| Some(one.mean_s?.value)).collect();
    let ends = means.iter().copied().reduce(f64::min).zip(means.iter().copied().reduce(f64::max));
    let answer = ends.map_or_else(
        || "No packet has a delay.".to_owned(),
        |(low, high)| format!("Packets take {} to {} {} on average.", unit.time(low), unit.time(high), unit.short()),
    );
    let asked = format!(
        "Asked: what becomes of the packets of scenario {scenario} while {key} goes from {from} to {to}, in virtual time?"
    );
    page.answer(&asked, &answer);
    let delay = format!("delay, {}", unit.name);
    let factor = unit.scaled(1.0);
    for (file, title, axis, factor, of) in [
        ("mean", "Mean delay", Axis::linear(&delay), factor, (|one| one.mean_s) as ValueOfTraffic),
        ("p99", "99 of 100 packets take no longer", Axis::linear(&delay), factor, |one| one.p99_s),
        ("loss", "Loss", Axis::linear("loss, %"), 100.0, |one| one.loss),
    ] {
        let mut lines: BTreeMap<String, Vec<ChartPoint>> = BTreeMap::new();
        for ((answer, traffic), x) in answers.iter().zip(all).zip(&along) {
            let group = answer.point.without(&key);
            for one in traffic {
                let point = of(one).map_or(ChartPoint::new(*x, f64::NAN), |found| {
                    ChartPoint::within(*x, found.value * factor, found.half.map(|half| half * factor))
                });
                lines.entry(format!("{}{group}", one.name)).or_default().push(point);
            }
        }
        let is_shown = |point: &ChartPoint| point.y.is_finite() && (file != "loss" || point.y > 0.0);
        lines.retain(|_, points| points.iter().any(is_shown));
        if lines.is_empty() {
            continue;
        }
        let series = lines.into_iter().map(|(name, points)| ChartSeries::line(name, points)).collect();
        let chart = Chart { name: file.into(), title: title.into(), x: Axis::linear(&label), y: axis, series };
        page.figure(&chart.into(), "");
    }
    for (answer, traffic) in answers.iter().zip(all) {
        page.details(&answer.point.to_string(), |page| {
            page.table(&table(traffic, unit));
            stations(page, &answer.result, unit);
        });
    }
}

/// A figure of simulated traffic.
type ValueOfTraffic = fn(&SimulatedTraffic) -> Option<SimulatedValue>;

/// Brings all results into one form.
fn traffic(result: &SimulateResult) -> Vec<SimulatedTraffic> {
    match result {
        SimulateResult::Streams(result) => report::rows(result).map(of_streams).collect(),
        SimulateResult::Stations(result) => result.report.flows.iter().map(of_flow).collect(),
        SimulateResult::Network(network) => {
            let streams = network.result.streams.iter().map(of_live_stream);
            network.result.traffic.iter().map(of_item).chain(streams).collect()
        }
    }
}

fn of_streams(row: &FabricReportRow) -> SimulatedTraffic {
    let class = row.class.map(|class| format!("class {class}"));
    let port = row.port.as_ref().map(|port| format!("port {port}"));
    let names: Vec<String> = row.switch.iter().cloned().chain(port).chain(class).collect();
    SimulatedTraffic {
        is_total: names.is_empty(),
        name: if names.is_empty() { "all".to_owned() } else { names.join(" ") },
        packets: row.packets,
        loss: value(row.loss),
        mean_s: value(row.delay_s),
        p50_s: value(row.delay_p50_s),
        p99_s: value(row.delay_p99_s),
        distribution: shares(&row.histogram),
    }
}

fn of_flow(row: &FlowRow) -> SimulatedTraffic {
    let name = |end: &Option<String>| end.clone().unwrap_or_else(|| "all".to_owned());
    SimulatedTraffic {
        name: format!("{} -> {}", name(&row.from), name(&row.to)),
        is_total: false,
        packets: row.packets,
        loss: value(row.loss),
        mean_s: value(row.all.mean_s),
        p50_s: value(row.all.p50_s),
        p99_s: value(row.all.p99_s),
        distribution: shares(&row.all.histogram),
    }
}

fn of_item(item: &weir_network::result::TrafficResult) -> SimulatedTraffic {
    let name = format!("{} {} -> {}", item.kind, item.from, item.to);
    let quantiles = item.quantiles_us.iter().map(|(share, us)| (us / 1e6, *share)).collect();
    measured_once(name, (item.received, item.loss), item.rtt.or(item.delay), quantiles)
}

fn of_live_stream(stream: &weir_network::result::StreamResult) -> SimulatedTraffic {
    let name = format!("stream {} -> {} port {}", stream.name, stream.switch, stream.output);
    measured_once(name, (stream.received, stream.loss), stream.delay, Vec::new())
}

/// Returns the traffic of one run, from its packets that arrived, its share of lost ones, and its times.
fn measured_once(
    name: String,
    (packets, loss): (u64, Option<f64>),
    times: Option<weir_traffic::TimeStatistics>,
    distribution: Vec<(f64, f64)>,
) -> SimulatedTraffic {
    let once = |us: Option<f64>| us.map(|us| SimulatedValue { value: us / 1e6, half: None });
    let percentile = |share, us: fn(&weir_traffic::TimeStatistics) -> f64| {
        once(times.filter(|times| times.has_percentile(share)).map(|times| us(&times)))
    };
    SimulatedTraffic {
        name,
        is_total: false,
        packets,
        loss: loss.map(|loss| SimulatedValue { value: loss, half: None }),
        mean_s: once(times.map(|times| times.mean_us)),
        p50_s: percentile(0.5, |times| times.p50_us),
        p99_s: percentile(0.99, |times| times.p99_us),
        distribution,
    }
}

fn value(estimate: Option<Estimate>) -> Option<SimulatedValue> {
    estimate.map(|estimate| SimulatedValue { value: estimate.mean, half: estimate.half_width })
}

/// Returns the share of packets up to the end of each bin of a histogram.
fn shares(histogram: &[(f64, u64)]) -> Vec<(f64, f64)> {
    let all: u64 = histogram.iter().map(|(_, packets)| packets).sum();
    let mut sum = 0;
    let up_to = |(end_s, packets): &(f64, u64)| {
        sum += packets;
        (*end_s, sum as f64 / all.max(1) as f64)
    };
    histogram.iter().map(up_to).collect()
}

fn time(delay: Option<SimulatedValue>, unit: &ReportTimeUnit) -> String {
    let half = |found: SimulatedValue| found.half.map_or_else(String::new, |half| format!(" ± {}", unit.time(half)));
    delay.map_or_else(String::new, |found| unit.time(found.value) + &half(found))
}

fn percent(share: Option<SimulatedValue>) -> String {
    let half = |found: SimulatedValue| found.half.map_or_else(String::new, |half| format!(" ± {:.2}", half * 100.0));
    share.map_or_else(String::new, |found| format!("{:.2}{}%", found.value * 100.0, half(found)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::simulate::{SimulateArgs, answer, apply_overrides};
    use crate::commands::sweep;
    use clap::Parser as _;

    #[derive(clap::Parser)]
    struct Command {
        #[command(flatten)]
        args: SimulateArgs,
    }

    /// Returns the page of an example, simulated with these options.
    fn of(example: &str, options: &[&str]) -> String {
        let file = format!("{}/../../examples/{example}", env!("CARGO_MANIFEST_DIR"));
        let words = ["simulate", &file].into_iter().chain(options.iter().copied());
        let args = Command::parse_from(words).args;
        let points = sweep::points(&args.file, &args.sweep).unwrap();
        let cancel = weir_emulator::CancelHandle::new();
        let simulated = |(point, scenario)| {
            let result = answer(&apply_overrides(scenario, &args).unwrap(), &args, &cancel, "a test").unwrap();
            SimulatedPoint { point, result }
        };
        page(&points.into_iter().map(simulated).collect::<Vec<_>>(), "example")
    }

    fn has(page: &str, words: &[&str]) {
        for word in words {
            assert!(page.contains(word), "no `{word}` in {page}");
        }
    }

    #[test]
    fn a_page_of_stations_has_delays_and_how_busy_they_are() {
        let page = of("at-x510.toml", &["--duration", "10s", "--replications", "2", "--threads", "1"]);
        has(
            &page,
            &["what becomes of the packets of scenario example, in virtual time?", "h1 -&gt; h2 is the slowest of 1"],
        );
        has(
            &page,
            &[
                "nothing is lost; ",
                " is the busiest station at ",
                "Delay by flow",
                "How busy stations are",
                "utilisation, %",
            ],
        );
        has(&page, &["Simulated 2 replications of 10 s"]);
    }

    #[test]
    fn a_page_of_streams_and_one_of_a_network_have_delays() {
        let streams = of("vx-priority.toml", &["--duration", "20ms", "--replications", "2", "--threads", "1"]);
        has(
            &streams,
            &[
                "big is the slowest of 2 with ",
                "Delay by flow",
                ">small</td>",
                ">all</td>",
                "share of packets, from 0 to 1",
            ],
        );
        let network = of("office.toml", &["--duration", "100ms"]);
        has(&network, &["udp ann -&gt; bob", "Delay by flow", "nothing is lost.", " of virtual time in "]);
    }

    #[test]
    fn a_sweep_is_lines_over_its_values() {
        let options = ["--sweep", "traffic.rate=20,60", "--duration", "10s", "--replications", "2", "--threads", "1"];
        let page = of("at-x510.toml", &options);
        has(
            &page,
            &["while traffic.rate goes from 20 to 60, in virtual time?", "traffic.rate, packets/s", "Mean delay"],
        );
        has(&page, &["Packets take ", "99 of 100 packets take no longer", "traffic.rate = 60"]);
        assert!(!page.contains("Loss</"), "nothing is lost: {page}");
    }
}
