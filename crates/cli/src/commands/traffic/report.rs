//! Formats the result of a traffic run as text.
use std::fmt::Write as _;
use weir_generator::per_visit::{DelayGrowth, ServiceTimePerVisit};
use weir_generator::{DelayWithoutRig, SentReport, TrafficRunReport};
use weir_terminal::table::ReportTable;
use weir_traffic::recorder::{PathReport, ReceptionReport};
use weir_traffic::{GapQuality, TimeStatistics};
use weir_units::Bps;

/// Formats the whole report.
pub(super) fn text(report: &TrafficRunReport) -> String {
    let mut text = String::new();
    if let Some(sent) = &report.sent {
        text += &sender(sent);
    }
    if let Some(received) = &report.received {
        text += &receiver(received);
    }
    let rows = delays(report);
    if !rows.is_empty() {
        let _ = writeln!(text, "\nDelays (microseconds)\n{}", table(&rows));
    }
    if let Some(net) = &report.net {
        text += &without_rig(net);
    }
    if let Some(path) = &report.path {
        text += &tapped_packets(path);
    }
    if report.others > 0 {
        let _ = writeln!(text, "{} frames came that are not of this run", report.others);
    }
    text + if report.partial { "Stopped early, results are partial\n" } else { "" }
}

fn sender(sent: &SentReport) -> String {
    let mut text = format!(
        "Sent      {} of {} packets due in {:.2} s: {:.1} of {:.1} packets/s, {:.1}\n",
        sent.sent,
        sent.offered,
        sent.duration_s,
        sent.sent_pps,
        sent.offered_pps,
        rate(sent.bytes, sent.duration_s)
    );
    if sent.without_header > 0 {
        let _ = writeln!(
            text,
            "Headers   {} packets had no room for one: what became of them is not known",
            sent.without_header
        );
    }
    if sent.refused > 0 {
        let _ = writeln!(text, "Refused   {} packets by the port: more than it takes", sent.refused);
    }
    if sent.refused_flows > 0 {
        let _ = writeln!(text, "Refused   {} flows: too many at a time", sent.refused_flows);
    }
    if sent.new_flows > 0 {
        let share = sent.new_flows as f64 / sent.sent.max(1) as f64;
        let _ = writeln!(text, "Flows     {} packets began one, {:.4} of all", sent.new_flows, share);
    }
    if let Some(late) = &sent.late {
        let share = sent.late_share.unwrap_or(0.0) * 100.0;
        let _ = writeln!(
            text,
            "Late      mean {:.2} us, p99 {:.1} us, max {:.0} us; {share:.2} % by more than 10 us",
            late.mean_us, late.p99_us, late.max_us
        );
    }
    text + &gaps("Gaps", sent.gaps.as_ref()) + &format!("Seed      {}, run {}\n", sent.seed, sent.run)
}

fn gaps(title: &str, quality: Option<&GapQuality>) -> String {
    let Some(gaps) = quality else { return String::new() };
    let mut text = format!(
        "{title:9} mean {:.3} us, planned {:.3} us ({:+.3} %); SCV {:.3}, planned {:.3}\n",
        gaps.mean_us,
        gaps.planned_mean_us,
        gaps.mean_error * 100.0,
        gaps.scv,
        gaps.planned_scv
    );
    if let Some(errors) = &gaps.errors {
        let _ = writeln!(
            text,
            "          single ones are off by {:.2} us in the mean, p99 {:.1} us; distance from the plan {:.4}",
            errors.mean_us,
            errors.p99_us,
            gaps.distance_from_plan.unwrap_or(0.0)
        );
    }
    if let Some(fit) = &gaps.fit {
        let verdict = if fit.fits() { "nothing speaks against the law" } else { "they do not have the law" };
        let _ = writeln!(
            text,
            "          Kolmogorov-Smirnov: distance {:.4} of {} gaps, p = {:.3}: {verdict}",
            fit.distance, fit.samples, fit.p_value
        );
    }
    text
}

fn receiver(received: &ReceptionReport) -> String {
    let mut text = format!(
        "Received  {} of {} packets in {:.2} s, {:.1}; lost {}{}\n",
        received.received,
        received.sent,
        received.span_s,
        rate(received.bytes, received.span_s),
        received.lost,
        received.loss.map_or_else(String::new, |loss| format!(" ({:.4} %)", loss * 100.0))
    );
    let order = &received.reordering;
    let _ = writeln!(
        text,
        "          {} duplicates, {} reordered{}",
        received.duplicates,
        order.reordered,
        order.extent_max.map_or_else(String::new, |most| format!(" (by at most {most:.0} packets)"))
    );
    if received.before_sent > 0 {
        let _ = writeln!(
            text,
            "          {} came before they were sent: the clocks of sender and recorder are two; delays say nothing",
            received.before_sent
        );
    }
    if let (Some(threshold), Some(share)) = (received.threshold_us, received.effective_new) {
        let _ = writeln!(text, "          {share:.4} took longer than {threshold:.0} us: the effective P_nf");
    }
    let _ = writeln!(text, "Jitter    {:.2} us (RFC 3550)", received.jitter.rfc3550_us);
    text + &gaps("Gaps", received.gaps.as_ref())
}

/// Returns all delays of a run with their names: of classes of packets, then of parts of the path.
pub(super) fn delays(report: &TrafficRunReport) -> Vec<(String, TimeStatistics)> {
    let received = report.received.iter();
    let classes = received.flat_map(|received| {
        [
            ("all", received.delay),
            ("known flows", received.known_flows),
            ("new flows", received.new_flows),
            ("between successors", received.jitter.between_successors),
        ]
    });
    let classes = classes.filter_map(|(name, delay)| Some((name.to_owned(), delay?)));
    let parts = report.path.iter().flat_map(|path| &path.parts);
    classes.chain(parts.map(|part| (format!("{} to {}", part.from, part.to), part.delay))).collect()
}

fn table(rows: &[(String, TimeStatistics)]) -> ReportTable {
    let header = ["", "samples", "min", "mean", "sd", "p50", "p95", "p99", "p99.9", "max"];
    let mut table = ReportTable::new(header).groups([5]).numbers(1..10);
    for (name, d) in rows {
        let percentile = |share: f64, us: f64| d.has_percentile(share).then_some(us);
        let times = [
            Some(d.min_us),
            Some(d.mean_us),
            Some(d.sd_us),
            percentile(0.5, d.p50_us),
            percentile(0.95, d.p95_us),
            percentile(0.99, d.p99_us),
            percentile(0.999, d.p999_us),
            Some(d.max_us),
        ];
        let times = times.map(|us| us.map_or_else(|| "-".to_owned(), |us| format!("{us:.2}")));
        let cells = [name.clone(), d.samples.to_string()].into_iter().chain(times);
        table.row(cells);
    }
    table
}

fn without_rig(net: &DelayWithoutRig) -> String {
    format!(
        "Without the rig's own (mean {:.2} us, median {:.2} us): mean {:.2} +- {:.2} us, p50 {:.2} us, p99 {:.2} us\n",
        net.rig_mean_us, net.rig_p50_us, net.mean_us, net.mean_within_us, net.p50_us, net.p99_us
    )
}

fn tapped_packets(path: &PathReport) -> String {
    let share = path.tapped_share.unwrap_or(0.0);
    let mut text = format!("Taps saw {} of {} packets that arrived, {share:.4} of them\n", path.tapped, path.ended);
    if path.too_many > 0 {
        let _ = writeln!(text, "{} sightings left out: too many of one packet", path.too_many);
    }
    text
}

/// Formats the time per visit.
pub(super) fn per_visit(found: &ServiceTimePerVisit) -> String {
    let mut text = String::from("visits      mean us    median us\n");
    for (visits, mean, median) in &found.runs {
        let _ = writeln!(text, "{visits:6} {mean:12.3} {median:12.3}");
    }
    for (name, DelayGrowth { per_visit_us, ci95_us, rig_us, r2 }) in [("mean", found.mean), ("median", found.median)] {
        let within = ci95_us.map_or_else(String::new, |(low, high)| format!(" ({low:.3} to {high:.3}, 95 %)"));
        let _ = writeln!(
            text,
            "A visit takes {per_visit_us:.3} us by the {name}{within}; without one {rig_us:.3} us; R2 {r2:.4}"
        );
    }
    text
}

fn rate(bytes: u64, seconds: f64) -> Bps {
    Bps::measured(bytes, std::time::Duration::try_from_secs_f64(seconds).unwrap_or_default())
}
