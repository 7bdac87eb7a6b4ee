//! Experiment `ctrl-fairness`, Tables 4.7 and 4.8: how equally 128 switches are served that all send as fast as
//! possible, and how soon one more is.
use super::subject::ControllerSubject;
use super::{NamedTrial, beside_peers, in_turn, trial};
use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun};
use weir_bench::{ControllerTrial, TrialPace};
use weir_plot::short;

pub(super) const DEVIATION: &str = "deviation of the switches";
pub(super) const FAIR_AFTER: &str = "time to fairness";
const FAIR_RUNS: &str = "runs that came to fairness";
const SWITCHES: u32 = 128;
/// Claimed upper bound of the deviation in percent: that of the fairest published controller.
const DEVIATION_MOST: f64 = 1.0;
/// Claimed upper bound of the time to fairness in seconds: that of the published controller that was soonest.
const FAIR_MOST_S: f64 = 1.0;
/// Claimed upper bound of the deviation as a multiple of each peer's, where both are small.
const WORSE_MOST: f64 = 2.0;

/// Measures each controller with 128 switches, then with a 129th that comes later.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    in_turn(
        run,
        &ControllerSubject::all(),
        |run, subject, found| {
            let joins = *[false, true].get(found.len())?;
            let trial = ControllerTrial { joins, ..trial(run, SWITCHES, TrialPace::Flood) };
            Some(NamedTrial { case: subject.to_string(), trial })
        },
        |figures, NamedTrial { case, trial }, found| {
            if trial.joins {
                figures.add(case, FAIR_RUNS, "", f64::from(u8::from(found.fair_after_s.is_some())));
                found.fair_after_s.into_iter().for_each(|after| figures.add(case, FAIR_AFTER, "s", after));
            } else {
                found.deviation_percent.into_iter().for_each(|percent| figures.add(case, DEVIATION, "%", percent));
            }
        },
    )?;
    let text = "the answers of 128 switches deviate by less than 1 % (Table 4.7)";
    run.claim(text, [("weir", DEVIATION)], |[ours]| (ours < DEVIATION_MOST, format!("{} %", short(ours))));
    let text = "weir is within 2 times the deviation of each other controller here, or below 1 % (Table 4.7)";
    let case = |subject: ControllerSubject| subject.to_string();
    beside_peers(run, text, DEVIATION, case, |ours, theirs| ours < DEVIATION_MOST.max(theirs * WORSE_MOST));
    let text = "a 129th switch is served as the others are within a second (Table 4.8)";
    let half = run.sizes.time.0.as_secs_f64() / 2.0;
    let claim = match (run.value("weir", FAIR_RUNS), run.value("weir", FAIR_AFTER)) {
        (None, _) => Claim::untested(text, "it was not measured"),
        (Some(_), None) if half < FAIR_MOST_S => Claim::untested(text, "the measurement was too short to see it"),
        (Some(_), None) => Claim::tested(text, false, format!("not within {} s", short(half))),
        (Some(runs), Some(after)) => {
            let because = format!("after {} s, in {} of the runs", short(after), short(runs));
            Claim::tested(text, after < FAIR_MOST_S && runs >= 1.0, because)
        }
    };
    run.claims.push(claim);
    Ok(())
}
