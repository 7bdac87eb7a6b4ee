//! Formats the answers to several intents that were set or removed in one request.
use serde_json::Value;
use std::fmt::Write as _;
use weir_terminal::table::ReportTable;
use weir_units::counted;

/// States in the order in which they are counted.
const STATES: [&str; 6] = ["installed", "degraded", "failed", "submitted", "compiling", "withdrawn"];

/// Formats the number of intents in each state, and those that were refused or have a reason.
pub(super) fn outcomes(answers: &Value) -> String {
    let all = answers.as_array().map_or(&[][..], Vec::as_slice);
    let count = |state: &str| all.iter().filter(|answer| answer["state"] == state).count();
    let refused = all.iter().filter(|answer| answer.get("problem").is_some()).count();
    let counts = STATES.into_iter().map(|state| (count(state), state)).chain([(refused, "refused")]);
    let counts: Vec<_> =
        counts.filter(|(count, _)| *count > 0).map(|(count, state)| format!("{count} {state}")).collect();
    let mut text = counted(all.len(), "intent", "intents");
    if !counts.is_empty() {
        let _ = write!(text, ": {}", counts.join(", "));
    }
    text.push('\n');
    let mut rows = ReportTable::new(["intent", "state", "reason"]);
    let mut has_rows = false;
    let shown = |value: &Value| value.as_str().filter(|text| !text.is_empty()).unwrap_or("-").to_owned();
    for answer in all {
        let problem = answer.get("problem");
        let (state, reason) = match problem {
            Some(problem) => ("refused".to_owned(), &problem["detail"]),
            None => (shown(&answer["state"]), &answer["reason"]),
        };
        if problem.is_some() || reason.as_str().is_some_and(|reason| !reason.is_empty()) {
            rows.row([shown(&answer["key"]), state, shown(reason)]);
            has_rows = true;
        }
    }
    if has_rows { format!("{text}\n{rows}\n") } else { text }
}
