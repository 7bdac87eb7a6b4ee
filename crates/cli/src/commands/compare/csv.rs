//! Formats a comparison as CSV: one line for each subject, answer and figure.
use crate::commands::csv::quoted;
use std::fmt::Write as _;
use weir_compare::page::SweptComparison;
use weir_compare::{AnswerRowStatus, Comparison, FlowDecision, PerformanceMetric, SubjectKind};

const HEADER: &str = "scenario,part,name,answer,status,metric,value,half_width,reference,scaled_difference,log_ratio,inside,verdict,judges,set_aside";

/// Formats all points of a sweep; the swept values are the first columns.
pub(super) fn csv(points: &[SweptComparison]) -> String {
    let keys = points.first().map_or(&[][..], |point| &point.values);
    let mut text: String = keys.iter().map(|(key, _)| quoted(key) + ",").collect();
    text += &format!("{HEADER}\n");
    for point in points {
        let values: String = point.values.iter().map(|(_, value)| quoted(value) + ",").collect();
        rows(&mut text, &values, &point.comparison);
    }
    text
}

fn rows(text: &mut String, values: &str, comparison: &Comparison) {
    for answer in &comparison.answers {
        for row in &answer.rows {
            let part = match row.subject.part {
                SubjectKind::Flow => "flow",
                SubjectKind::Device => "device",
            };
            let start = format!(
                "{values}{},{part},{},{}",
                quoted(&comparison.scenario),
                quoted(&row.subject.name),
                quoted(&answer.by.to_string())
            );
            match &row.status {
                AnswerRowStatus::Ok => {}
                AnswerRowStatus::Unstable(why) => _ = writeln!(text, "{start},unstable,,,,,,,,{},,", quoted(why)),
                AnswerRowStatus::NotAnswered(why) => {
                    _ = writeln!(text, "{start},not_answered,,,,,,,,{},,", quoted(why))
                }
            }
            let own = comparison.compared.iter().find(|compared| compared.by == answer.by);
            let decision = own.and_then(|compared| compared.decision(&row.subject));
            for (metric, figure) in &row.figures {
                let difference = comparison.difference(&answer.by, &row.subject, *metric);
                let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
                let _ = writeln!(
                    text,
                    "{start},ok,{},{},{},{},{},{},{},{},{},{}",
                    key(*metric),
                    figure.value,
                    number(figure.half_width),
                    number(difference.map(|one| one.reference.value)),
                    number(difference.and_then(|one| one.scaled)),
                    number(difference.and_then(|one| one.log_ratio)),
                    difference.and_then(|one| one.is_inside).map_or(String::new(), |inside| inside.to_string()),
                    quoted(&difference.map_or_else(String::new, |one| one.verdict.to_string())),
                    difference.and(decision).map_or("", |decision| judges(decision, *metric)),
                    row.set_aside.filter(|_| metric.is_delay()).map_or(String::new(), |count| count.to_string()),
                );
            }
        }
    }
}

/// Says whether a figure decides about its flow, is judged beside the one that decides, or is not judged.
fn judges(decision: &FlowDecision, metric: PerformanceMetric) -> &'static str {
    match () {
        () if decision.metric == metric => "decides",
        () if decision.judged_by.contains(&metric) => "judged",
        () => "",
    }
}

/// Returns the metric's name as in JSON.
fn key(metric: PerformanceMetric) -> String {
    serde_json::to_value(metric).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}
