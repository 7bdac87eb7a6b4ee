//! Computes the service time of a device that is too short to measure directly: in each run packets visit the device N
//! times, with a different N in each run (Ansell 2017, 4.3).
//!
//! A line is fitted to the delay as a function of N. Its slope is the device's service time. Its intercept is the
//! delay of the measuring equipment (the rig), which therefore does not matter.
use crate::{GeneratorError, TrafficRunReport};
use serde::Serialize;
use weir_model::fit::line::RegressionLine;

/// Service time per visit, estimated from the mean and from the median delays of the runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ServiceTimePerVisit {
    /// Growth of the mean delay with the number of visits.
    pub mean: DelayGrowth,
    /// Growth of the median delay with the number of visits. A few disturbed packets hardly affect it.
    pub median: DelayGrowth,
    /// For each run: number of visits, mean delay and median delay in microseconds.
    pub runs: Vec<(f64, f64, f64)>,
}

/// Linear growth of the delay with the number of visits, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DelayGrowth {
    /// Delay added by each visit.
    pub per_visit_us: f64,
    /// 95 % confidence interval of `per_visit_us`; `None` for two runs.
    pub ci95_us: Option<(f64, f64)>,
    /// Delay without a visit: the rig's own.
    pub rig_us: f64,
    /// Coefficient of determination: share of the variance between runs that the line explains.
    pub r2: f64,
}

/// Computes the service time per visit from several runs, each given with its number of visits.
///
/// # Errors
/// Fewer than two different numbers of visits, or a run without delays.
pub fn per_visit(runs: &[(f64, TrafficRunReport)]) -> Result<ServiceTimePerVisit, GeneratorError> {
    let points = runs.iter().map(|(visits, report)| {
        let delay = report.received.as_ref().and_then(|received| received.delay);
        let delay =
            delay.ok_or_else(|| GeneratorError::wrong("run", format!("{visits} visits, no delays"), "delays"))?;
        Ok((*visits, delay.mean_us, delay.p50_us))
    });
    let points = points.collect::<Result<Vec<_>, GeneratorError>>()?;
    let visits: Vec<f64> = points.iter().map(|point| point.0).collect();
    let growth = |of: fn(&(f64, f64, f64)) -> f64| {
        let line = RegressionLine::fit(&visits, &points.iter().map(of).collect::<Vec<_>>())
            .map_err(|error| GeneratorError::wrong("runs", error, "two numbers of visits or more"))?;
        Ok::<_, GeneratorError>(DelayGrowth {
            per_visit_us: line.slope,
            ci95_us: line.slope_ci95,
            rig_us: line.intercept,
            r2: line.r2,
        })
    };
    Ok(ServiceTimePerVisit { mean: growth(|point| point.1)?, median: growth(|point| point.2)?, runs: points })
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_traffic::{ProbeHeader, ProbeRecorder};

    /// Returns a report of a run in which every packet had this delay.
    fn run(delay_ns: u64) -> TrafficRunReport {
        let mut recorder = ProbeRecorder::default();
        for sequence in 0..100 {
            let probe = ProbeHeader { run: 0, sequence, sent_ns: 0, is_new_flow: false, counts: true, is_wall: false };
            recorder.record(delay_ns, &probe, 100);
        }
        let received = Some(recorder.report(None, None, None));
        TrafficRunReport {
            partial: false,
            sent: None,
            received,
            path: None,
            net: None,
            others: 0,
            ports: Default::default(),
        }
    }

    #[test]
    fn what_each_visit_adds_is_the_devices() {
        let runs: Vec<_> =
            [1_u32, 2, 3, 4].map(|visits| (visits.into(), run(30_000 + 4_000 * u64::from(visits)))).into();
        let found = per_visit(&runs).unwrap();
        for growth in [found.mean, found.median] {
            assert!((growth.per_visit_us - 4.0).abs() < 0.02 && (growth.rig_us - 30.0).abs() < 0.05, "{growth:?}");
            assert!(growth.r2 > 0.999 && growth.ci95_us.is_some());
        }
    }

    #[test]
    fn one_number_of_visits_is_refused() {
        let error = per_visit(&[(2.0, run(5)), (2.0, run(6))]).unwrap_err().to_string();
        assert!(error.contains("two different values"), "{error}");
        let empty = TrafficRunReport { received: None, ..run(1) };
        assert!(per_visit(&[(1.0, run(1)), (2.0, empty)]).is_err());
    }

    #[test]
    fn the_rigs_delay_is_taken_off() {
        let (mut whole, rig) = (run(30_000), run(20_000));
        whole.take_off(&rig).unwrap();
        let net = whole.net.unwrap();
        assert!((net.mean_us - 10.0).abs() < 0.05 && (net.p50_us - 10.0).abs() < 0.05, "{net:?}");
        assert!(whole.take_off(&TrafficRunReport { received: None, ..rig }).is_err());
    }
}
