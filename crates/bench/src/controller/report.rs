//! Reports of controller measurements: tables of at most 100 columns, JSON, CSV.
use super::event::{EventFigures, HalfTimeEvent};
use super::figures::JoinFairness;
use super::measure::{MeasureSettings, MeasuredController};
use crate::machine::BenchMachineInfo;
use serde::Serialize;
use std::fmt::Write as _;
use weir_terminal::prose::wrapped;
use weir_terminal::table::ReportTable;
use weir_traffic::TimeStatistics;
use weir_units::counted;

/// Share of the generator's own ceiling above which a result may be the generator's instead of the controller's.
const NEAR_CEILING: f64 = 2.0 / 3.0;

/// Everything that was measured.
#[derive(Serialize)]
pub(super) struct ControllerBenchReport {
    pub(super) machine: BenchMachineInfo,
    pub(super) release_build: bool,
    pub(super) settings: MeasureSettings,
    /// Results, in the order of the command line.
    pub(super) controllers: Vec<MeasuredController>,
    /// Controllers without a result, and why.
    pub(super) failures: Vec<ControllerFailure>,
}

/// Controller without a result.
#[derive(Serialize)]
pub(super) struct ControllerFailure {
    pub(super) controller: String,
    pub(super) error: String,
}

impl ControllerBenchReport {
    /// Returns the report as text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        if !self.controllers.is_empty() {
            text += &format!("{}\n\n{}\n\n", self.rates().trim_end(), self.replies().trim_end());
        }
        for controller in &self.controllers {
            for note in notes(controller) {
                let _ = writeln!(text, "{}: {note}", controller.controller);
            }
        }
        for failure in &self.failures {
            let _ = writeln!(text, "{}: no result: {}", failure.controller, failure.error);
        }
        wrapped(&text)
    }

    fn rates(&self) -> String {
        let head = ["controller", "resp/s", "p50 us", "p99 us", "max us", "dev %", "Jain", "lost", "cores", "MB"];
        let mut table = ReportTable::new(head).numbers(1..10);
        for one in &self.controllers {
            let delay = |of: fn(&TimeStatistics) -> f64| one.delay.as_ref().map(of);
            let process = one.process.as_ref();
            table.row([
                one.controller.clone(),
                format!("{:.0}", one.rate()),
                figure(delay(|delay| delay.p50_us), 0),
                figure(delay(|delay| delay.p99_us), 0),
                figure(delay(|delay| delay.max_us), 0),
                figure(one.deviation_percent, 1),
                figure(one.jain, 3),
                (one.lost + one.unsent).to_string(),
                figure(process.map(super::process::ProcessUse::cores), 2),
                figure(process.map(|process| process.resident_bytes as f64 / 1e6), 0),
            ]);
        }
        table.to_string()
    }

    fn replies(&self) -> String {
        let head = [
            "replies",
            "flow-mods",
            "pkt-outs",
            "second",
            "repeated",
            "late",
            "wrong",
            "unasked",
            "malformed",
            "errors",
        ];
        let mut table = ReportTable::new(head).numbers(1..10);
        for one in &self.controllers {
            let counts = &one.replies;
            let numbers = [
                counts.flow_mods,
                counts.packet_outs,
                counts.second,
                counts.repeated,
                counts.late,
                counts.wrong,
                counts.unasked,
                counts.malformed,
                counts.errors,
            ];
            let numbers = numbers.into_iter().map(|number| number.to_string());
            table.row([one.controller.clone()].into_iter().chain(numbers));
        }
        table.to_string()
    }

    /// Returns the report as CSV, a line for each controller.
    pub(super) fn csv(&self) -> String {
        let mut text = "controller,switches,openflow,responses_per_second,cbench_per_second,p50_us,p99_us,max_us,\
                        asked,answered,unsent,lost,deviation_percent,jain,cpu_s,resident_bytes,ceiling_per_second\n"
            .to_owned();
        for one in &self.controllers {
            let delay = |of: fn(&TimeStatistics) -> f64| plain(one.delay.as_ref().map(of));
            let process = one.process.as_ref();
            let cells = [
                quoted(&one.controller),
                self.settings.switches.to_string(),
                self.settings.version.name().to_owned(),
                one.responses_per_second.to_string(),
                plain(one.cbench_per_second),
                delay(|delay| delay.p50_us),
                delay(|delay| delay.p99_us),
                delay(|delay| delay.max_us),
                one.asked.to_string(),
                one.answered.to_string(),
                one.unsent.to_string(),
                one.lost.to_string(),
                plain(one.deviation_percent),
                plain(one.jain),
                plain(process.map(|process| process.cpu_s)),
                process.map_or_else(String::new, |process| process.resident_bytes.to_string()),
                plain(one.ceiling_per_second),
            ];
            text += &(cells.join(",") + "\n");
        }
        text
    }
}

/// Returns what the tables do not say, a sentence each.
pub(super) fn notes(one: &MeasuredController) -> Vec<String> {
    let mut notes = Vec::new();
    if one.is_partial {
        notes.push("stopped early: the figures are of the time until then".to_owned());
    }
    if let Some(ceiling) = one.ceiling_per_second {
        let share = one.rate() / ceiling;
        let warning = if share > NEAR_CEILING { "; above two thirds of it the generator may be the limit" } else { "" };
        notes.push(format!(
            "{:.0} % of what the generator itself reaches here ({ceiling:.0} a second){warning}",
            share * 100.0
        ));
    }
    for weight in one.weights.iter().filter(|_| one.weights.len() > 1) {
        notes.push(format!(
            "switches of weight {} ({}): asked {:.0}, answered {:.0} a second each",
            weight.weight, weight.switches, weight.asked_per_second, weight.answered_per_second
        ));
    }
    notes.extend(one.event.as_ref().map(event));
    if !one.storms_ms.is_empty() {
        let times: Vec<String> = one.storms_ms.iter().map(|time| format!("{time:.0}")).collect();
        notes.push(format!("all switches set up after {} ms (storms), {:.0} ms", times.join(", "), one.set_up_ms));
    }
    if let Some(handshakes) = &one.handshakes {
        let [p50, most] = [handshakes.p50_us, handshakes.max_us].map(|us| us / 1e3);
        notes.push(format!(
            "{}: {p50:.1} ms (p50), {most:.1} ms at most; set up and hosts known after {:.0} ms",
            counted(handshakes.samples, "handshake", "handshakes"),
            one.set_up_ms
        ));
    }
    if one.not_set_up > 0 {
        notes.push(format!("{} not set up in time, which sent nothing", counted(one.not_set_up, "switch", "switches")));
    }
    if one.ended > 0 {
        let why = one.ended_why.as_deref().unwrap_or("no reason");
        notes.push(format!("{} ended: {why}", counted(one.ended, "connection", "connections")));
    }
    if one.unsent > 0 {
        notes.push(format!("{} could not be sent when due", counted(one.unsent, "request", "requests")));
    }
    notes
}

fn event(event: &EventFigures) -> String {
    let p99 = |delay: &Option<TimeStatistics>| {
        delay.as_ref().map_or_else(|| "-".to_owned(), |delay| format!("{:.0}", delay.p99_us))
    };
    let what = match event.event {
        HalfTimeEvent::Join if event.fairness.len() > 1 => "a switch began to join and leave",
        HalfTimeEvent::Join => "a switch joined",
        HalfTimeEvent::Greedy => "one switch saturated",
        HalfTimeEvent::Probe => "a probe came",
    };
    let fairness = fairness(&event.fairness);
    let waited = |delay: &TimeStatistics| format!("{:.0} us (p50), {:.0} us (p99)", delay.p50_us, delay.p99_us);
    let own_delay = event.own_delay.as_ref().filter(|_| event.event != HalfTimeEvent::Join);
    let own_delay = own_delay.map_or_else(String::new, |delay| format!(", answered after {}", waited(delay)));
    let lost = if event.echo_lost > 0 { format!(", {} without an answer", event.echo_lost) } else { String::new() };
    let echo =
        event.echo.as_ref().map_or_else(String::new, |delay| format!("; echo replies after {}{lost}", waited(delay)));
    format!(
        "{what} at half time: the others had {:.0} resp/s before and {:.0} after, p99 {} and {} us; it had {:.0} resp/s{own_delay}{fairness}{echo}",
        event.others_before,
        event.others_after,
        p99(&event.delay_before),
        p99(&event.delay_after),
        event.own
    )
}

fn figure(value: Option<f64>, digits: usize) -> String {
    value.map_or_else(|| "-".to_owned(), |value| format!("{value:.digits$}"))
}

fn plain(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

/// Returns when a switch that came was served like the others, each time.
fn fairness(found: &[JoinFairness]) -> String {
    if found.is_empty() {
        return String::new();
    }
    let mut after_ms: Vec<f64> = found.iter().filter_map(|one| one.after_ms).collect();
    after_ms.sort_by(f64::total_cmp);
    let unknown = found.iter().filter(|one| !one.is_telling()).count();
    let longest_ms = found.iter().map(|one| one.window_ms).fold(0.0, f64::max);
    let up_to = if found.len() > 1 { "up to " } else { "" };
    let windows = format!("windows of {up_to}{longest_ms:.0} ms");
    match after_ms.as_slice() {
        [] if unknown == 0 => format!("; not fairly served in this time ({windows})"),
        [] => "; not known when it was fairly served: the others are not served alike either".to_owned(),
        [after] if found.len() == 1 => format!("; fairly served after {after:.0} ms ({windows})"),
        [.., most] => {
            let unknown = if unknown > 0 { format!(", {unknown} times not known") } else { String::new() };
            let (times, fair, median) = (found.len(), after_ms.len(), after_ms[after_ms.len() / 2]);
            format!(
                "; fairly served {fair} of {times} times{unknown}: after {median:.0} ms (median), {most:.0} ms at most \
                 ({windows})"
            )
        }
    }
}
