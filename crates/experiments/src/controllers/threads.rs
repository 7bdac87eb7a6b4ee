//! Experiment `ctrl-threads`, Figs. 4.5 to 4.8 and Table 4.9: weir with one, two and three threads, 16 and 64 switches.
use super::subject::ControllerSubject;
use super::{NamedTrial, in_turn, mean_ms, per_ms, trial};
use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun};
use weir_bench::TrialPace;
use weir_network::result::LabMachineInfo;
use weir_plot::short;
use weir_units::counted;

pub(super) const DELAY_MS: &str = "delay, one at a time";
pub(super) const FLOOD: &str = "answers, flooded";
const SWITCHES: [u32; 2] = [16, 64];
const MOST_THREADS: usize = 3;
/// Claimed lower bound of what a second thread gains where the emulated switches share its processor.
const GAIN_LEAST: f64 = 1.2;
/// Claimed upper bound of the delay with a second thread, as a multiple of that with one.
const SLOWER_MOST: f64 = 1.5;

fn case(threads: usize, switches: u32) -> String {
    format!("weir, {}, {switches} switches", counted(threads, "thread", "threads"))
}

/// Measures weir's controller with each number of threads that the machine has processors for.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    let cores = LabMachineInfo::this().cores;
    let subjects: Vec<_> = (1..=MOST_THREADS.min(cores)).map(|threads| ControllerSubject::Weir { threads }).collect();
    let trials: Vec<(u32, TrialPace)> =
        SWITCHES.iter().flat_map(|count| [(*count, TrialPace::OneAtATime), (*count, TrialPace::Flood)]).collect();
    in_turn(
        run,
        &subjects,
        |run, subject, found| {
            let ControllerSubject::Weir { threads } = subject else { return None };
            let (switches, pace) = *trials.get(found.len())?;
            Some(NamedTrial { case: case(threads, switches), trial: trial(run, switches, pace) })
        },
        |figures, NamedTrial { case, trial }, found| {
            if trial.pace == TrialPace::OneAtATime {
                mean_ms(found).into_iter().for_each(|mean| figures.add(case, DELAY_MS, "ms", mean));
            } else {
                figures.add(case, FLOOD, "answers/ms", per_ms(found.answered_per_second));
            }
        },
    )?;
    let [one, two] = [1, 2].map(|threads| case(threads, SWITCHES[1]));
    let text = "a second thread answers at least 1.2 times as many for 64 switches, also where it shares a processor \
                with them (Fig. 4.6)";
    run.claim(text, [(&one, FLOOD), (&two, FLOOD)], |[one, two]| {
        (two > one * GAIN_LEAST, format!("{} and {} answers/ms", short(two), short(one)))
    });
    let text = "a second thread does not make the delay of 64 switches more than 1.5 times as long (Fig. 4.5)";
    if cores > 2 {
        run.claim(text, [(&one, DELAY_MS), (&two, DELAY_MS)], |[one, two]| {
            (two < one * SLOWER_MOST, format!("{} and {} ms", short(two), short(one)))
        });
    } else {
        // The switches would wait for their processor, not for the controller.
        run.claims.push(Claim::untested(text, "two threads and the emulated switches need three processors"));
    }
    run.note("the other controllers here have one thread, as Pox and Ryu have, which were left out, too");
    if cores <= MOST_THREADS {
        run.note(format!(
            "with {} the emulated switches share one with the controller from {cores} threads on, as with 4 threads in \
             the thesis",
            counted(cores, "processor", "processors")
        ));
    }
    Ok(())
}
