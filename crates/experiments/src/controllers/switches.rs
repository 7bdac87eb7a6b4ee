//! Experiment `ctrl-switches`, Figs. 4.3 and 4.4: one thread, 1 to 256 switches.
use super::subject::ControllerSubject;
use super::{NamedTrial, beside_peers, in_turn, mean_ms, per_ms, trial};
use crate::{ExperimentError, ExperimentRun};
use weir_bench::TrialPace;
use weir_plot::{Axis, Chart, ChartPoint, ChartSeries, short};

pub(super) const DELAY_MS: &str = "delay, one at a time";
pub(super) const FLOOD: &str = "answers, flooded";
pub(super) const LOST: &str = "lost, flooded";
const SWITCHES: [u32; 5] = [1, 4, 16, 64, 256];
const MANY: u32 = 256;
/// Claimed lower bound of the answers with 256 switches, as a share of those with 64.
const KEPT_LEAST: f64 = 0.7;
/// Published delay with 256 switches in milliseconds.
const PUBLISHED_MS: f64 = 10.0;

fn case(subject: ControllerSubject, switches: u32) -> String {
    format!("{subject}, {}", weir_units::counted(switches, "switch", "switches"))
}

/// Measures each controller with each number of switches.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    let trials: Vec<(u32, TrialPace)> =
        SWITCHES.iter().flat_map(|count| [(*count, TrialPace::OneAtATime), (*count, TrialPace::Flood)]).collect();
    in_turn(
        run,
        &ControllerSubject::all(),
        |run, subject, found| {
            let (switches, pace) = *trials.get(found.len())?;
            Some(NamedTrial { case: case(subject, switches), trial: trial(run, switches, pace) })
        },
        |figures, NamedTrial { case, trial }, found| {
            if trial.pace == TrialPace::OneAtATime {
                mean_ms(found).into_iter().for_each(|mean| figures.add(case, DELAY_MS, "ms", mean));
            } else {
                figures.add(case, FLOOD, "answers/ms", per_ms(found.answered_per_second));
                figures.add(case, LOST, "", found.lost);
            }
        },
    )?;
    claims(run);
    plots(run);
    Ok(())
}

fn claims(run: &mut ExperimentRun<'_>) {
    let [some, many] = [64, MANY].map(|count| case(ControllerSubject::WEIR, count));
    let text = "256 switches together get at least 0.7 of the answers of 64, where published controllers break down \
                (Fig. 4.4)";
    run.claim(text, [(&some, FLOOD), (&many, FLOOD)], |[some, many]| {
        (many > some * KEPT_LEAST, format!("{} and {} answers/ms", short(many), short(some)))
    });
    let text = "with 256 switches, one packet-in at a time each, weir answers sooner than after the published 10 ms \
                (Fig. 4.3)";
    run.claim(text, [(&many, DELAY_MS)], |[ours]| (ours < PUBLISHED_MS, format!("after {} ms", short(ours))));
    let text = "with 256 switches no packet-in is lost (Fig. 4.4)";
    run.claim(text, [(&many, LOST)], |[lost]| (lost <= 0.0, format!("{} of them lost", short(lost))));
    let text = "with 256 switches weir answers more than each other controller here (Fig. 4.4)";
    beside_peers(run, text, FLOOD, |subject| case(subject, MANY), |ours, theirs| ours > theirs);
}

fn plots(run: &mut ExperimentRun<'_>) {
    for (name, title, y, metric) in [
        ("delay", "Delay by number of switches (Fig. 4.3)", "mean delay, ms", DELAY_MS),
        ("answers", "Answers by number of switches (Fig. 4.4)", "answers/ms", FLOOD),
    ] {
        let line = |subject: ControllerSubject| ChartSeries {
            name: subject.to_string(),
            points: SWITCHES
                .iter()
                .filter_map(|count| {
                    let y = run.value(&case(subject, *count), metric)?;
                    Some(ChartPoint { x: f64::from(*count), y, ..ChartPoint::default() })
                })
                .collect(),
            ..ChartSeries::default()
        };
        let series = ControllerSubject::all().into_iter().map(line).filter(|line| !line.points.is_empty()).collect();
        let chart = Chart { name: name.into(), title: title.into(), x: Axis::log("switches"), y: Axis::log(y), series };
        run.plots.push(chart.into());
    }
}
