//! Checks that the published statements on sojourns, models and rates of virtual links, and weir's claims on its own
//! formulas, hold in the deterministic calculations of the small size, with the exceptions that the experiments' pages
//! list.
use weir_experiments::report::Claim;
use weir_experiments::{ExperimentOptions, find};

/// Runs an experiment. It must have `charts` charts without empty lines, and contradict no published statement except
/// `but`.
fn holds(id: &str, charts: usize, but: &[&str]) {
    let options = ExperimentOptions { seed: 1, ..ExperimentOptions::default() };
    let report = find(id).unwrap().run(&options, &mut |_| ()).unwrap();
    let contradicts = |claim: &&Claim| claim.holds != Some(true) && !but.contains(&claim.text.as_str());
    assert!(report.claims.len() >= 6 && report.claims.iter().find(contradicts).is_none(), "{report}");
    assert_eq!(report.plots.len(), charts);
    for plot in &report.plots {
        let weir_plot::Figure::Chart(chart) = plot else { panic!("{} is a chart of lines", plot.name()) };
        assert!(chart.series.iter().all(|series| !series.points.is_empty()), "{}: a line without points", plot.name());
    }
    // Every published figure has one of ours for comparison, except those for scale.
    let published = find(id).unwrap().definition().unwrap().published;
    let paired = published.iter().filter(|figure| !figure.note.as_deref().unwrap_or_default().starts_with("for scale"));
    let paired = paired.count();
    assert_eq!(report.figures.iter().filter(|figure| figure.published.is_some()).count(), paired, "{report}");
}

#[test]
fn range_one() {
    holds("sojourn-range-one", 3, &["the mean sojourn falls from the lowest rate on, at P_nf 0.005 as well"]);
}

#[test]
fn range_two() {
    holds("sojourn-range-two", 5, &[]);
}

#[test]
fn comparison_of_models() {
    holds("model-comparison", 4, &[]);
}

#[test]
fn rates_of_virtual_links() {
    holds("vlink-allocation", 1, &[]);
}

#[test]
fn isolation_of_virtual_networks() {
    holds("vlink-isolation", 3, &[]);
}

#[test]
fn promises_of_drawn_virtual_networks() {
    let options = ExperimentOptions { seed: 1, ..ExperimentOptions::default() };
    let report = find("network-promises").unwrap().run(&options, &mut |_| ()).unwrap();
    assert!(report.claims.len() == 4 && report.claims.iter().all(|claim| claim.holds == Some(true)), "{report}");
    assert!(report.figure("all sets", "networks in profile").is_some_and(|count| count >= 20.0), "{report}");
}

#[test]
fn accuracy_of_ours() {
    holds("model-accuracy", 2, &[]);
}
