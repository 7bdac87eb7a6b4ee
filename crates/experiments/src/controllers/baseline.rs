//! Experiment `ctrl-baseline`, Tables 4.3 to 4.5: one thread and one switch, a packet-in at a time and as fast as
//! possible.
use super::subject::ControllerSubject;
use super::{NamedTrial, beside_peers, in_turn, mean_ms, per_ms, trial};
use crate::{ExperimentError, ExperimentRun};
use weir_bench::TrialPace;
use weir_plot::short;

pub(super) const ALONE: &str = "answers, one at a time";
pub(super) const ALONE_MS: &str = "delay, one at a time";
pub(super) const FLOOD: &str = "answers, flooded";
pub(super) const RATIO: &str = "flooded / one at a time";
/// Claimed upper bound of weir's delay one at a time, as a multiple of the fastest peer's: most of it is the system's.
const SLOWER_MOST: f64 = 1.25;
/// Claimed lower bound of what many packet-ins at once gain: about what the second of the five had.
const GAIN_LEAST: f64 = 10.0;
/// Claimed lower bound of weir's answers as a multiple of each peer's.
const FASTER_LEAST: f64 = 2.0;

const PACES: [TrialPace; 2] = [TrialPace::OneAtATime, TrialPace::Flood];

/// Measures each controller with one switch.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    let mut alone = None;
    in_turn(
        run,
        &ControllerSubject::all(),
        |run, subject, found| {
            let pace = *PACES.get(found.len())?;
            Some(NamedTrial { case: subject.to_string(), trial: trial(run, 1, pace) })
        },
        |figures, NamedTrial { case, trial }, found| {
            let answers = per_ms(found.answered_per_second);
            if trial.pace == TrialPace::OneAtATime {
                alone = Some((case.clone(), answers));
                figures.add(case, ALONE, "answers/ms", answers);
                mean_ms(found).into_iter().for_each(|mean| figures.add(case, ALONE_MS, "ms", mean));
            } else {
                figures.add(case, FLOOD, "answers/ms", answers);
                let alone = alone.as_ref().filter(|(of, _)| of == case);
                alone.into_iter().for_each(|(_, alone)| figures.add(case, RATIO, "", answers / alone));
            }
        },
    )?;
    let case = |subject: ControllerSubject| subject.to_string();
    let text = "as fast as possible, weir answers at least 2 times as many as each other controller here (Table 4.4)";
    beside_peers(run, text, FLOOD, case, |ours, theirs| ours > theirs * FASTER_LEAST);
    let text = "one at a time, weir answers within 1.25 times the delay of each other controller here (Table 4.4)";
    beside_peers(run, text, ALONE_MS, case, |ours, theirs| ours < theirs * SLOWER_MOST);
    let text = "one at a time, weir takes less than the 0.143 ms of a controller in Python (Table 4.3)";
    run.claim(text, [("weir", ALONE_MS)], |[ours]| (ours < 0.143, format!("{} ms", short(ours))));
    let text = "many packet-ins at once make weir at least 10 times as fast, where published ones gain 0.9 to 38 times \
                (Tables 4.4, 4.5)";
    run.claim(text, [("weir", RATIO)], |[ratio]| (ratio > GAIN_LEAST, format!("{} times", short(ratio))));
    Ok(())
}
