//! Checks that the published statements on virtual switches hold in the deterministic simulations of the small size,
//! with the exceptions that the experiments' pages list.
use weir_experiments::report::Claim;
use weir_experiments::{ExperimentOptions, find};

/// Runs an experiment. It must have a chart for each of its figures, and contradict no published statement except
/// `but`.
fn holds(id: &str, but: &[&str]) {
    let options = ExperimentOptions { seed: 1, ..ExperimentOptions::default() };
    let report = find(id).unwrap().run(&options, &mut |_| ()).unwrap();
    let contradicts = |claim: &&Claim| claim.holds != Some(true) && !but.contains(&claim.text.as_str());
    assert!(report.claims.len() >= 3 && report.claims.iter().find(contradicts).is_none(), "{report}");
    assert_eq!(report.plots.len(), 2);
    for plot in &report.plots {
        let weir_plot::Figure::Chart(chart) = plot else { panic!("{} is a chart of lines", plot.name()) };
        assert!(chart.series.iter().all(|series| !series.points.is_empty()), "{}: a line without points", plot.name());
        assert!(report.html().contains("tested claims hold"), "the page says what came out");
        assert!(report.html().contains(&plot.svg()), "{} is on the page", plot.name());
    }
}

#[test]
fn scale() {
    holds("vx-scale", &[]);
}

#[test]
fn priority() {
    holds(
        "vx-priority",
        &["it costs VS2 less than 1 % of throughput", "strict priority takes 0.1 to 0.6 ms off VS1's delay"],
    );
}

#[test]
fn split_path() {
    holds("vx-split-path", &[]);
}
