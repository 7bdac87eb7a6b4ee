//! Experiment `ctrl-loaded-latency`, Table 4.6 and Fig. 4.9: the delay of packet-ins with empty and full buffers, and
//! at shares of what the controller answers at most.
use super::subject::ControllerSubject;
use super::{NamedTrial, beside_peers, in_turn, per_ms, trial};
use crate::{ExperimentError, ExperimentRun};
use weir_bench::TrialPace;
use weir_plot::short;

pub(super) const P50_MS: &str = "delay, p50";
pub(super) const MEAN_MS: &str = "delay, mean";
pub(super) const P99_MS: &str = "delay, p99";
pub(super) const ANSWERED: &str = "answers";
const LOST: &str = "lost";
const SWITCHES: u32 = 16;
const EMPTY: &str = "one at a time";
const FULL: &str = "flooded";
/// Shares of what the controller answers as fast as possible, by the names of their cases.
const SHARES: [(&str, f64); 4] = [("a tenth of it", 0.1), ("half of it", 0.5), ("0.8 of it", 0.8), ("twice it", 2.0)];
/// Claimed upper bound of the median delay at half the load, as a multiple of that of one at a time.
const HALF_MOST: f64 = 5.0;
/// Claimed lower bound of what is answered of twice the load, as a share of that as fast as possible.
const KEPT_LEAST: f64 = 0.7;
/// Claimed upper bound of the 99th percentile at twice the load in milliseconds. A bound of the controller's queues
/// (16,384 packet-ins) and of the sockets in front of them.
const OVERLOAD_MOST_MS: f64 = 500.0;

fn case(subject: ControllerSubject, load: &str) -> String {
    format!("{subject}, {load}")
}

/// Measures each controller with empty buffers, with full ones, and at shares of the latter's rate.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    in_turn(
        run,
        &ControllerSubject::all(),
        |run, subject, found| {
            let (load, pace) = match found {
                [] => (EMPTY, TrialPace::OneAtATime),
                [_] => (FULL, TrialPace::Flood),
                [_, full, ..] => {
                    let (load, share) = *SHARES.get(found.len() - 2)?;
                    (load, TrialPace::Rate(share * full.as_ref()?.answered_per_second))
                }
            };
            Some(NamedTrial { case: case(subject, load), trial: trial(run, SWITCHES, pace) })
        },
        |figures, NamedTrial { case, .. }, found| {
            figures.add(case, ANSWERED, "answers/ms", per_ms(found.answered_per_second));
            if let Some(delay) = found.delay {
                figures.add(case, MEAN_MS, "ms", delay.mean_us / 1e3);
                figures.add(case, P50_MS, "ms", delay.p50_us / 1e3);
                figures.add(case, P99_MS, "ms", delay.p99_us / 1e3);
            }
            figures.add(case, LOST, "", found.lost);
        },
    )?;
    claims(run);
    Ok(())
}

fn claims(run: &mut ExperimentRun<'_>) {
    let of = |load: &str| case(ControllerSubject::WEIR, load);
    let [empty, full, half, twice] = [EMPTY, FULL, SHARES[1].0, SHARES[3].0].map(of);
    let text = "with full buffers weir's mean delay is below that of each other controller here (Table 4.6)";
    beside_peers(run, text, MEAN_MS, |subject| case(subject, FULL), |ours, theirs| ours < theirs);
    let text =
        "at half of what it answers at most, weir's median delay is below 5 times that of one at a time (Fig. 4.9)";
    run.claim(text, [(&empty, P50_MS), (&half, P50_MS)], |[alone, half]| {
        (half < alone * HALF_MOST, format!("{} and {} ms", short(half), short(alone)))
    });
    let text = "of twice what it answers at most, weir answers at least 0.7 of that most (Fig. 4.9)";
    run.claim(text, [(&full, ANSWERED), (&twice, ANSWERED)], |[most, twice]| {
        (twice > most * KEPT_LEAST, format!("{} and {} answers/ms", short(twice), short(most)))
    });
    let text = "what weir answers then is at most half a second old, in 99 of 100 cases (Table 4.6)";
    run.claim(text, [(&twice, P99_MS)], |[p99]| (p99 < OVERLOAD_MOST_MS, format!("{} ms", short(p99))));
}
