//! Experiments of section 4.2 of Zhao's thesis, 2016 (`experiments/ctrl-*`): how fast, how fairly and after which time
//! controllers answer packet-ins. The thesis measured five controllers with cbench; here weir's controller and those of
//! other projects that are installed are measured in turn, by the emulated switches of `weir bench controller`.
pub(crate) mod baseline;
pub(crate) mod fairness;
pub(crate) mod loaded;
mod subject;
pub(crate) mod switches;
pub(crate) mod threads;

use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use subject::ControllerSubject;
use weir_bench::{ControllerTrial, TrialFigures, TrialPace};
use weir_plot::short;

/// A measurement of a controller, and its case in the report.
struct NamedTrial {
    case: String,
    trial: ControllerTrial,
}

/// Values of repeated measurements by case and metric, in the order in which they first came.
#[derive(Default)]
struct RepeatedFigures(Vec<RepeatedFigure>);

struct RepeatedFigure {
    case: String,
    metric: &'static str,
    unit: &'static str,
    values: Vec<f64>,
}

impl RepeatedFigures {
    fn add(&mut self, case: &str, metric: &'static str, unit: &'static str, value: f64) {
        match self.0.iter_mut().find(|figure| figure.case == case && figure.metric == metric) {
            Some(figure) => figure.values.push(value),
            None => self.0.push(RepeatedFigure { case: case.to_owned(), metric, unit, values: vec![value] }),
        }
    }

    /// Adds the mean of each figure to the report.
    fn report(self, run: &mut ExperimentRun<'_>) {
        for RepeatedFigure { case, metric, unit, values } in self.0 {
            run.figure(&case, metric, unit, SampledValue::mean_of(&values));
        }
    }
}

/// Measures each controller by its trials, all of them in turn as often as the sizes say: what disturbs the machine for
/// a while then meets more than one. `next` is given what was found of the controller in this turn, `None` for a trial
/// without a result, and returns the next trial. What cannot be measured of a controller of another project is left out
/// with a note, and not tried again.
fn in_turn(
    run: &mut ExperimentRun<'_>,
    subjects: &[ControllerSubject],
    mut next: impl FnMut(&ExperimentRun<'_>, ControllerSubject, &[Option<TrialFigures>]) -> Option<NamedTrial>,
    mut add: impl FnMut(&mut RepeatedFigures, &NamedTrial, &TrialFigures),
) -> Result<(), ExperimentError> {
    let mut figures = RepeatedFigures::default();
    let mut left_out = Vec::new();
    for turn in 1..=run.sizes.replications {
        for subject in subjects.iter().copied() {
            if left_out.contains(&subject.to_string()) || run.is_stopped() {
                continue;
            }
            let controller = match subject.start(&run.options.cancel) {
                Ok(controller) => controller,
                Err(error) => {
                    leave_out(run, &mut left_out, subject, subject.to_string(), error)?;
                    continue;
                }
            };
            let mut found: Vec<Option<TrialFigures>> = Vec::new();
            while let Some(named) = next(run, subject, &found).filter(|_| !run.is_stopped()) {
                let name = format!("{}, {}", named.case, pace_name(named.trial.pace));
                if left_out.contains(&name) {
                    found.push(None);
                    continue;
                }
                run.tell(&format!("{name}, turn {turn} of {}", run.sizes.replications));
                match named.trial.measure(controller.address(), &run.options.cancel) {
                    Ok(measured) if measured.is_partial => break,
                    Ok(measured) => {
                        add(&mut figures, &named, &measured);
                        found.push(Some(measured));
                    }
                    Err(error) => {
                        leave_out(run, &mut left_out, subject, name, error)?;
                        found.push(None);
                    }
                }
            }
        }
    }
    figures.report(run);
    Ok(())
}

/// Notes that something of another project's controller is left out. For weir that is an error; for a run that was
/// stopped it is neither.
fn leave_out(
    run: &mut ExperimentRun<'_>,
    left_out: &mut Vec<String>,
    subject: ControllerSubject,
    name: String,
    error: String,
) -> Result<(), ExperimentError> {
    if run.is_stopped() {
        return Ok(());
    }
    if !subject.is_peer() {
        return Err(ExperimentError::Case(format!("{name}: {error}")));
    }
    run.note(format!("{name}: left out: {error}"));
    left_out.push(name);
    Ok(())
}

fn pace_name(pace: TrialPace) -> &'static str {
    match pace {
        TrialPace::OneAtATime => "one packet-in at a time",
        TrialPace::Flood => "as fast as possible",
        TrialPace::Rate(_) => "at a rate",
    }
}

/// Returns a trial with the sizes of the run.
fn trial(run: &ExperimentRun<'_>, switches: u32, pace: TrialPace) -> ControllerTrial {
    ControllerTrial { switches, pace, joins: false, time: run.sizes.time.0, seed: run.options.seed }
}

/// Converts answers a second to the unit of the thesis.
fn per_ms(per_second: f64) -> f64 {
    per_second / 1e3
}

/// Returns the mean delay in milliseconds, if anything was answered.
fn mean_ms(found: &TrialFigures) -> Option<f64> {
    found.delay.map(|delay| delay.mean_us / 1e3)
}

/// Claims that a figure of weir is at least (`factor` above one) or at most so many times that of each measured peer.
/// `case` names the case of a controller.
fn beside_peers(
    run: &mut ExperimentRun<'_>,
    text: &str,
    metric: &'static str,
    case: impl Fn(ControllerSubject) -> String,
    holds: impl Fn(f64, f64) -> bool,
) {
    let Some(ours) = run.value(&case(ControllerSubject::WEIR), metric) else {
        return run.claims.push(Claim::untested(text, "weir was not measured"));
    };
    let peers: Vec<(ControllerSubject, f64)> =
        ControllerSubject::PEERS.into_iter().filter_map(|peer| Some((peer, run.value(&case(peer), metric)?))).collect();
    if peers.is_empty() {
        return run.claims.push(Claim::untested(text, "no controller of another project could be measured"));
    }
    let all = peers.iter().all(|(_, theirs)| holds(ours, *theirs));
    let said: Vec<_> = peers.iter().map(|(peer, theirs)| format!("{} of {peer}", short(*theirs))).collect();
    run.claims.push(Claim::tested(text, all, format!("{metric}: {} of weir, {}", short(ours), said.join(", "))));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ExperimentOptions, find};
    use std::time::Duration;

    /// Experiments, their figures that have published counterparts, and the number of their claims.
    const EXPERIMENTS: [(&str, &[&str], usize); 5] = [
        ("ctrl-baseline", &[baseline::ALONE, baseline::ALONE_MS, baseline::FLOOD, baseline::RATIO], 4),
        ("ctrl-switches", &[switches::DELAY_MS, switches::FLOOD], 4),
        ("ctrl-threads", &[threads::DELAY_MS, threads::FLOOD], 2),
        ("ctrl-fairness", &[fairness::DEVIATION, fairness::FAIR_AFTER], 3),
        ("ctrl-loaded-latency", &[loaded::MEAN_MS], 4),
    ];

    #[test]
    fn weir_is_measured_with_one_switch() {
        let options = ExperimentOptions { seed: 1, ..ExperimentOptions::default() };
        let sizes = crate::tests::sizes(Duration::from_secs(1));
        let report = find("ctrl-baseline").unwrap().run_sized(&options, sizes, &mut |_| ()).unwrap();
        for metric in EXPERIMENTS[0].1 {
            assert!(report.figure("weir", metric).is_some_and(|value| value > 0.0), "{metric}: {report}");
        }
        assert_eq!(report.figures.iter().filter(|figure| figure.published.is_some()).count(), 4, "{report}");
    }

    #[test]
    fn claims_name_their_tables_and_published_figures_are_those_measured() {
        for (id, metrics, claims) in EXPERIMENTS {
            let experiment = find(id).unwrap();
            for figure in experiment.definition().unwrap().published {
                assert!(metrics.contains(&figure.metric.as_str()), "{id}: {}", figure.metric);
                let mut subjects = ControllerSubject::PEERS.into_iter().chain([ControllerSubject::WEIR]);
                assert!(subjects.any(|subject| figure.case.starts_with(&subject.to_string())), "{id}: {}", figure.case);
            }
            let options = ExperimentOptions::default();
            options.cancel.cancel();
            let report = experiment.run(&options, &mut |_| ()).unwrap();
            assert_eq!((report.claims.len(), report.partial), (claims, true), "{report}");
            let cites = |claim: &Claim| claim.text.contains("(Table") || claim.text.contains("(Fig");
            assert!(report.claims.iter().all(|claim| claim.holds.is_none() && cites(claim)), "{report}");
        }
    }

    #[test]
    fn missing_peers_leave_claims_untested() {
        let options = ExperimentOptions::default();
        let mut silent = |_: &str| ();
        let mut run = ExperimentRun::new(&options, crate::tests::sizes(Duration::from_millis(1)), &mut silent);
        let mut figures = RepeatedFigures::default();
        [1.0, 3.0].into_iter().for_each(|value| figures.add("weir", "x", "ms", value));
        figures.report(&mut run);
        assert_eq!((run.figures[0].ours, run.figures[0].samples), (2.0, 2));
        beside_peers(&mut run, "a", "x", |subject| subject.to_string(), |ours, theirs| ours < theirs);
        run.figure("os-ken", "x", "ms", SampledValue::of(5.0, 1));
        beside_peers(&mut run, "b", "x", |subject| subject.to_string(), |ours, theirs| ours < theirs);
        run.claim("c", [("weir", "x"), ("os-ken", "y")], |_| (true, String::new()));
        let holds: Vec<_> = run.claims.iter().map(|claim| claim.holds).collect();
        assert_eq!(holds, [None, Some(true), None]);
        assert_eq!(run.claims[1].because, "x: 2.000 of weir, 5.000 of os-ken");
    }
}
