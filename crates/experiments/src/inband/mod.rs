//! Experiments of section 3.4 of Zhao's thesis, 2016 (`experiments/inband-*`): how soon chains of switches reach their
//! controller through each other, and how long the first packet of a flow waits for it. Switches and controller run in
//! this process. Each has a network stack of the kernel of its own, so that control traffic has no way but the links.
mod app;
pub(crate) mod bring_up;
pub(crate) mod latency;
mod network;

use crate::ExperimentRun;
use weir_plot::{Axis, Chart, ChartPoint, ChartSeries};

/// Numbers of switches in a chain.
const CHAINS: std::ops::RangeInclusive<u32> = 1..=10;
/// The longest chain.
const LONGEST: u32 = *CHAINS.end();

/// Returns true if such networks can run here; otherwise notes why not.
fn can_run(run: &mut ExperimentRun<'_>) -> bool {
    let reason = network::missing();
    if let Some(reason) = reason {
        run.missing = reason;
        run.note(reason);
    }
    reason.is_none()
}

/// Returns the case of a chain.
fn case(switches: u32) -> String {
    format!("chain of {switches}")
}

/// Adds a chart of metrics by the number of switches.
fn plot(run: &mut ExperimentRun<'_>, name: &str, title: &str, metrics: &[&str]) {
    let line = |metric: &&str| ChartSeries {
        name: (*metric).to_owned(),
        points: CHAINS
            .filter_map(|switches| {
                let y = run.value(&case(switches), metric)?;
                Some(ChartPoint { x: f64::from(switches), y, ..ChartPoint::default() })
            })
            .collect(),
        ..ChartSeries::default()
    };
    let series: Vec<ChartSeries> = metrics.iter().map(line).filter(|line| !line.points.is_empty()).collect();
    if series.is_empty() {
        return;
    }
    let [x, y] = ["switches", "ms"].map(Axis::linear);
    let chart = Chart { name: name.into(), title: title.into(), x, y, series };
    run.plots.push(chart.into());
}

#[cfg(test)]
mod tests {
    use crate::report::Claim;
    use crate::{ExperimentOptions, ExperimentReport, find};
    use std::time::Duration;

    /// Reruns an experiment at the smallest size.
    fn rerun(id: &str) -> ExperimentReport {
        let options = ExperimentOptions { seed: 1, ..ExperimentOptions::default() };
        let sizes = crate::tests::sizes(Duration::from_millis(200));
        find(id).unwrap().run_sized(&options, sizes, &mut |_| ()).unwrap()
    }

    #[test]
    fn all_sessions_of_chains_and_rings_come_up() {
        if !weir_testing::root() {
            return;
        }
        let report = rerun("inband-bring-up");
        for switches in super::CHAINS {
            let value = report.figure(&super::case(switches), super::bring_up::ALL_UP);
            assert!(value.is_some_and(|ms| ms > 0.0), "{report}");
        }
        assert!(
            report.figure(super::bring_up::RING, super::bring_up::ENDED).is_some_and(|ended| ended < 0.5),
            "{report}"
        );
        assert_eq!(report.claims.len(), 4, "{report}");
        assert!(report.claims.iter().all(is_judged), "{report}");
    }

    /// Returns true if a claim was judged, or was not because other programs disturbed the measurement.
    fn is_judged(claim: &Claim) -> bool {
        claim.holds.is_some() || claim.because.contains("others used")
    }

    #[test]
    fn first_packets_cross_the_chain() {
        if !weir_testing::root() {
            return;
        }
        let report = rerun("inband-latency");
        // A packet crosses eleven links of 0.1 ms, and a question of the last switch twice as many.
        let [reactive, proactive] = [super::latency::REACTIVE, super::latency::PROACTIVE]
            .map(|metric| report.figure(&super::case(super::LONGEST), metric).unwrap_or_else(|| panic!("{report}")));
        assert!(reactive > 12.1 && proactive > 1.3, "{report}");
        assert!(report.figures.iter().any(|figure| figure.published.is_some()), "{report}");
        assert!(report.claims.iter().all(is_judged), "{report}");
    }

    #[test]
    fn a_rerun_that_is_stopped_leaves_its_claims_untested() {
        for (id, claims) in [("inband-bring-up", 4), ("inband-latency", 3)] {
            let options = ExperimentOptions::default();
            options.cancel.cancel();
            let report = find(id).unwrap().run(&options, &mut |_| ()).unwrap();
            assert_eq!((report.claims.len(), report.partial), (claims, true), "{report}");
            assert!(report.claims.iter().all(|claim| claim.holds.is_none()), "{report}");
        }
    }
}
