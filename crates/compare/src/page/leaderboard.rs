//! Page of a leader board.
use super::{foot, verdicts};
use crate::answer::PerformanceMetric;
use crate::leaderboard::{Leaderboard, LeaderboardRow, ScenarioOutcome};
use crate::score::ErrorStatistics;
use weir_plot::{HtmlCell, HtmlPage, HtmlTable};

/// Returns the page of a leader board as HTML.
pub fn render_leaderboard(folder: &str, leaderboard: &Leaderboard) -> String {
    let mut page = HtmlPage::new(&format!("{folder}: who is how far from the reference"));
    if leaderboard.partial {
        page.warning("Stopped early, results are partial");
    }
    let best = leaderboard
        .places
        .iter()
        .filter(|place| place.metric == PerformanceMetric::DelayMean)
        .filter_map(|place| Some((place.common?.mean, place)))
        .min_by(|a, b| a.0.total_cmp(&b.0));
    page.answer(
        &format!(
            "Asked: who comes nearest to the reference in the {} scenarios of {folder}?",
            leaderboard.entries.len()
        ),
        &best.map_or_else(
            || "Open: no two answers have a mean delay in common.".to_owned(),
            |(mean, place)| {
                let by = &place.by;
                format!("Mean delay: {by} is nearest, {:.1} % off on average over the flows in common.", mean * 100.0)
            },
        ),
    );
    page.text(
        "Errors in %, of loss in percentage points. \"In common\" is over the flows that everybody of the same figure answers: only these compare answers with \
         each other. What has no steady state is in no average, and counted.",
    );
    page.table(&HtmlTable {
        head: HEAD.map(str::to_owned).into(),
        texts: 2,
        rows: leaderboard.places.iter().map(place).collect(),
    });
    for entry in &leaderboard.entries {
        page.heading(&entry.file);
        match &entry.outcome {
            ScenarioOutcome::Failed(why) => _ = page.warning(why),
            ScenarioOutcome::Compared(comparison) => {
                verdicts(&mut page, comparison);
                page.details("Measured with", |page| _ = page.text(&foot(comparison)));
            }
        }
    }
    page.finish(&format!("{} scenarios of {folder}, weir {}", leaderboard.entries.len(), env!("CARGO_PKG_VERSION")))
}

const HEAD: [&str; 13] = [
    "of",
    "answer",
    "valid",
    "unstable",
    "not answered",
    "in common",
    "mean, %",
    "median, %",
    "p95, %",
    "all own: mean, %",
    "median, %",
    "p95, %",
    "largest, %",
];

fn place(place: &LeaderboardRow) -> Vec<HtmlCell> {
    let share = |errors: Option<ErrorStatistics>, value: fn(&ErrorStatistics) -> f64| {
        errors.map_or_else(String::new, |errors| format!("{:.2}", value(&errors) * 100.0))
    };
    let mut cells: Vec<HtmlCell> = vec![place.metric.name().into(), place.by.to_string().into()];
    cells.extend([place.valid, place.unstable, place.not_answered].map(|count| HtmlCell::from(count.to_string())));
    cells.push(place.common.map_or(0, |errors| errors.valid).to_string().into());
    let values: [fn(&ErrorStatistics) -> f64; 3] = [|errors| errors.mean, |errors| errors.median, |errors| errors.p95];
    cells.extend(values.map(|value| HtmlCell::from(share(place.common, value))));
    cells.extend(values.map(|value| HtmlCell::from(share(place.own, value))));
    cells.push(share(place.own, |errors| errors.max).into());
    cells
}
