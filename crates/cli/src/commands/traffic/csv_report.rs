//! Formats the result of a traffic run as CSV, with the names that `--json` has.
use super::report::delays;
use crate::commands::csv::{CsvRows, kinds};
use serde_json::{Value, json};
use weir_generator::TrafficRunReport;
use weir_generator::per_visit::ServiceTimePerVisit;

const SENT: &[&str] = &[
    "sent",
    "offered",
    "bytes",
    "duration_s",
    "sent_pps",
    "offered_pps",
    "without_header",
    "refused",
    "new_flows",
    "refused_flows",
    "late_share",
    "seed",
    "run",
];
const RECEIVED: &[&str] = &[
    "sent",
    "received",
    "bytes",
    "span_s",
    "rate_pps",
    "lost",
    "loss",
    "duplicates",
    "too_late",
    "before_sent",
    "reordering.reordered",
    "threshold_us",
    "effective_new",
    "jitter.rfc3550_us",
];
const TIMES: &[&str] =
    &["name", "samples", "min_us", "mean_us", "sd_us", "p50_us", "p95_us", "p99_us", "p999_us", "max_us"];
const VISITS: &[&str] = &["visits", "mean_us", "median_us"];
const GROWTH: &[&str] = &["by", "per_visit_us", "ci95_low_us", "ci95_high_us", "rig_us", "r2"];

/// Formats a run: what was sent, how late it was sent, what was received, and the delays.
pub(super) fn csv(report: &TrafficRunReport) -> String {
    let named = |(name, times): (String, weir_traffic::TimeStatistics)| {
        let mut row = json!(times);
        row["name"] = name.into();
        row
    };
    let late = report.sent.as_ref().and_then(|sent| sent.late).map(|late| named(("late".to_owned(), late)));
    kinds(&[
        CsvRows { kind: "sent", columns: SENT, rows: report.sent.iter().map(|sent| json!(sent)).collect() },
        CsvRows { kind: "late", columns: TIMES, rows: late.into_iter().collect() },
        CsvRows { kind: "received", columns: RECEIVED, rows: report.received.iter().map(|got| json!(got)).collect() },
        CsvRows { kind: "delay", columns: TIMES, rows: delays(report).into_iter().map(named).collect() },
    ])
}

/// Formats the runs, and the time of a visit by their means and by their medians.
pub(super) fn per_visit(found: &ServiceTimePerVisit) -> String {
    let run = |(visits, mean_us, median_us): &(f64, f64, f64)| json!({"visits": visits, "mean_us": mean_us, "median_us": median_us});
    let growth = |(by, growth): (&str, _)| {
        let mut row: Value = json!(growth);
        row["by"] = by.into();
        [("ci95_low_us", 0), ("ci95_high_us", 1)]
            .into_iter()
            .for_each(|(name, at)| row[name] = row["ci95_us"][at].clone());
        row
    };
    kinds(&[
        CsvRows { kind: "run", columns: VISITS, rows: found.runs.iter().map(run).collect() },
        CsvRows {
            kind: "visit",
            columns: GROWTH,
            rows: [("mean", found.mean), ("median", found.median)].map(growth).into(),
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_generator::per_visit::DelayGrowth;

    #[test]
    fn delays_and_counts_are_lines_with_the_names_of_json() {
        let sent = json!({
            "offered": 12, "sent": 10, "bytes": 640, "without_header": 0, "refused": 0, "new_flows": 0,
            "refused_flows": 0, "duration_s": 1.0, "offered_pps": 12.0, "sent_pps": 10.0, "late": null,
            "late_share": null, "gaps": null, "seed": 1, "run": 2,
        });
        let times = json!({
            "samples": 9, "min_us": 1.0, "mean_us": 2.5, "sd_us": 0.5, "p50_us": 2.0, "p95_us": 3.0, "p99_us": 3.0,
            "p999_us": 3.0, "max_us": 4.0,
        });
        let path = json!({
            "parts": [{"from": "in", "to": "out", "delay": times}], "ended": 9, "tapped": 9, "tapped_share": 1.0,
            "too_many": 0,
        });
        let report = json!({"partial": false, "sent": sent, "path": path, "others": 0, "ports": {}});
        let report: TrafficRunReport = serde_json::from_value(report).unwrap();
        let csv = csv(&report);
        let lines: Vec<&str> = csv.lines().collect();
        assert!(lines[0].starts_with("kind,sent,offered,bytes,duration_s,sent_pps,"), "{csv}");
        assert!(lines[1].starts_with("sent,10,12,640,1.0,10.0,12.0,0,0,0,0,,1,2,"), "{csv}");
        assert!(lines[2].starts_with("delay,") && lines[2].contains(",in to out,9,1.0,2.5,0.5,"), "{csv}");
    }

    #[test]
    fn the_time_of_a_visit_has_its_interval() {
        let growth = DelayGrowth { per_visit_us: 5.0, ci95_us: Some((4.5, 5.5)), rig_us: 1.0, r2: 0.99 };
        let found = ServiceTimePerVisit { mean: growth, median: growth, runs: vec![(1.0, 6.0, 6.5)] };
        let expected = "kind,visits,mean_us,median_us,by,per_visit_us,ci95_low_us,ci95_high_us,rig_us,r2\n\
                        run,1.0,6.0,6.5,,,,,,\nvisit,,,,mean,5.0,4.5,5.5,1.0,0.99\n\
                        visit,,,,median,5.0,4.5,5.5,1.0,0.99\n";
        assert_eq!(per_visit(&found), expected);
    }
}
