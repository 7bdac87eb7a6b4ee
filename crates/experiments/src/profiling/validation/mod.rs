//! Experiments `model-validation-control` and `model-validation-data`: whether a profile found by the profiler
//! predicts a switch (Cheng 2015, sections 4.5 and 5.4). Random commands and packets are measured on the switch, and
//! in the same way on a switch in virtual time with the profile.
mod errors;
mod subject;
mod times;
mod trace;

use crate::{ExperimentError, ExperimentRun};
use errors::{ProfilePredictionErrors, ValidationCriterion, ValidationRuns};
use subject::{ValidatedPlane, ValidationSubject};
use times::SeriesTimes;
use trace::CapturedTrace;
use weir_profiler::validation::{
    CommandCompletion, CommandSeries, CommandSeriesParams, PacketSeries, commands, packets,
};
use weir_profiler::{ProfilerError, RigDelayTable};
use weir_traffic::RandomStream;

/// Commands per second, as published.
const PER_SECOND: f64 = 100.0;
/// Stream number of the random numbers, different from those for drawing profiles.
const STREAM: u64 = 0x76;

/// Models that get the same commands, each with other random numbers: the mean of their times is the prediction.
const MODELS: u64 = 8;

/// Numbers of commands or packets in a run, and the number of runs of each.
#[derive(Debug, Clone, Copy)]
struct ValidationPlan {
    counts: &'static [u32],
    runs: u32,
}

const SMALL: ValidationPlan = ValidationPlan { counts: &[100, 300], runs: 4 };
/// Plans as published.
const COMMANDS: ValidationPlan = ValidationPlan { counts: &[100, 200, 500, 1000, 1500, 2000], runs: 16 };
const PACKETS: ValidationPlan = ValidationPlan { counts: &[100, 200, 500, 800, 1000, 2000], runs: 16 };

/// Upper bounds of the times between packets, in seconds, by which their errors are reported, and names of the groups.
const GAP_GROUPS: [(f64, &str); 4] = [
    (200e-6, "packets 0 to 0.2 ms behind another"),
    (2e-3, "packets 0.2 to 2 ms behind another"),
    (10e-3, "packets 2 to 10 ms behind another"),
    (f64::INFINITY, "packets 10 ms or more behind another"),
];

/// Upper bounds of the times between commands, in seconds, and names of the groups.
const COMMAND_GAP_GROUPS: [(f64, &str); 3] = [
    (2e-3, "commands 0 to 2 ms behind another"),
    (10e-3, "commands 2 to 10 ms behind another"),
    (f64::INFINITY, "commands 10 ms or more behind another"),
];

/// Returns the name of each item's group by the time since the item before, given the times at which they were sent.
fn gap_groups(sent_s: &[f64], groups: &[(f64, &'static str)]) -> Vec<&'static str> {
    let last = groups.last().map_or("", |(_, name)| *name);
    let group = |gap_s: f64| groups.iter().find(|(bound_s, _)| gap_s < *bound_s).map_or(last, |(_, name)| *name);
    let first = sent_s.first().map(|_| last);
    first.into_iter().chain(sent_s.windows(2).map(|pair| group(pair[1] - pair[0]))).collect()
}

/// Measures random commands.
pub(crate) fn control(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    let plan = if run.options.full { COMMANDS } else { SMALL };
    let cells = all(run, ValidatedPlane::Control, plan, &mut |run, subject, count, random| {
        let most = subject.room();
        let drawn =
            CommandSeriesParams { count, per_second: PER_SECOND, entries: (most * 2 / 3).max(1), entries_most: most };
        let series = CommandSeries::draw(&drawn, random)?;
        let cancel = run.options.cancel.clone();
        let mut stop = || cancel.is_cancelled();
        let (known, settings) = (subject.known.clone(), subject.settings);
        let seconds = |became: Vec<CommandCompletion>| became.iter().map(CommandCompletion::seconds).collect();
        let measured = seconds(commands(subject.device.as_mut(), &known, settings, &series, &mut stop)?);
        let again = match run.options.switch {
            Some(_) => Some(seconds(commands(subject.device.as_mut(), &known, settings, &series, &mut stop)?)),
            None => None,
        };
        let mut foretold: Vec<Vec<Option<f64>>> = Vec::new();
        for number in 0..MODELS {
            foretold.push(seconds(commands(&mut subject.model(number)?, &known, settings, &series, &mut stop)?));
        }
        let sent_s: Vec<f64> = series.sent_after().map(|after| after.as_secs_f64()).collect();
        let groups = vec![series.kind_of_each(), gap_groups(&sent_s, &COMMAND_GAP_GROUPS)];
        Ok(SeriesTimes { measured, again, models: foretold, groups })
    })?;
    ValidationCriterion { things: ValidatedPlane::Control.things(), below: 10.0 }.report(run, &cells);
    Ok(())
}

/// Measures random packets of a real trace.
pub(crate) fn data(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    let plan = if run.options.full { PACKETS } else { SMALL };
    let trace = CapturedTrace::open(run.options.trace.as_deref())?;
    if run.options.trace.is_some() {
        run.note(format!("the trace has {} packets", trace.len()));
    }
    let cells = all(run, ValidatedPlane::Data, plan, &mut |run, subject, count, random| {
        let drawn = trace.draw(count, subject.longest_gap, random);
        let series = PacketSeries::draw(&drawn, subject.room(), subject.kinds(), random)?;
        let cancel = run.options.cancel.clone();
        let mut stop = || cancel.is_cancelled();
        let (known, settings) = (subject.known.clone(), subject.settings);
        let measured = packets(subject.device.as_mut(), &known, &subject.rig, settings, &series, &mut stop)?;
        let again = match run.options.switch {
            Some(_) => Some(packets(subject.device.as_mut(), &known, &subject.rig, settings, &series, &mut stop)?),
            None => None,
        };
        // The model gets the packets when they were sent, not when they were due.
        let (series, rig) = (series.as_sent(&measured.sent), RigDelayTable::default());
        let foretold = packets(&mut subject.model(0)?, &known, &rig, settings, &series, &mut stop)?;
        let sent_s: Vec<f64> = measured.sent.iter().map(|at| at.as_secs_f64()).collect();
        let (groups, again) = (vec![gap_groups(&sent_s, &GAP_GROUPS)], again.map(|again| again.delays_s));
        Ok(SeriesTimes { measured: measured.delays_s, again, models: vec![foretold.delays_s], groups })
    })?;
    ValidationCriterion { things: ValidatedPlane::Data.things(), below: 5.0 }.report(run, &cells);
    Ok(())
}

/// Times of a series, or the reason why it was not measured.
type SeriesResult = Result<SeriesTimes, ProfilerError>;

/// Function that draws a series of the given length, and runs it on a switch and on its model.
type SeriesRunner<'o> =
    dyn FnMut(&mut ExperimentRun<'_>, &mut ValidationSubject, u32, &mut RandomStream) -> SeriesResult + 'o;

/// Runs a plan on every switch.
fn all(
    run: &mut ExperimentRun<'_>,
    plane: ValidatedPlane,
    plan: ValidationPlan,
    once: &mut SeriesRunner<'_>,
) -> Result<Vec<ValidationRuns>, ExperimentError> {
    let mut cells = Vec::new();
    let live = run.options.switch.clone();
    run.simulated = live.is_none();
    let subjects = if live.is_some() { 1 } else { run.sizes.replications };
    for number in 0..subjects {
        let subject = match &live {
            Some(switch) => ValidationSubject::live(run, switch, plane)?,
            None => ValidationSubject::hidden(run, number, plane)?,
        };
        let Some(mut subject) = subject else { return Ok(cells) };
        for count in plan.counts {
            run.tell(&format!("{}: {} runs of {count}", subject.name, plan.runs));
            let mut cell = ValidationRuns { subject: subject.name.clone(), count: *count, errors: Vec::new() };
            for repetition in 0..plan.runs {
                let seed = run.options.seed ^ (STREAM << 32 | u64::from(number));
                let mut random = RandomStream::new(seed, u64::from(repetition), u64::from(*count));
                match once(run, &mut subject, *count, &mut random) {
                    Ok(times) => match ProfilePredictionErrors::of(&times) {
                        Some(errors) => cell.errors.push(errors),
                        None => run.note(format!(
                            "{}: run {} of {count} {} cannot be compared: its times on the switch add up to nothing \
                             beside the delay of the test's own path, as on a machine that is too busy",
                            subject.name,
                            repetition + 1,
                            plane.things(),
                        )),
                    },
                    Err(ProfilerError::Stopped) => {
                        cells.push(cell);
                        return Ok(cells);
                    }
                    Err(error) => return Err(ExperimentError::Case(format!("{}: {error}", subject.name))),
                }
            }
            cells.push(cell);
        }
    }
    Ok(cells)
}

#[cfg(test)]
mod tests {
    use crate::{ExperimentOptions, ExperimentReport, ExternalSwitch};

    fn report(id: &str) -> ExperimentReport {
        let options = ExperimentOptions { seed: 1, ..ExperimentOptions::default() };
        crate::find(id).unwrap().run(&options, &mut |_| ()).unwrap()
    }

    #[test]
    fn packets_are_grouped_by_the_time_since_the_one_before() {
        let groups = super::gap_groups(&[0.0, 1e-4, 1.1e-3, 6.1e-3, 36.1e-3], &super::GAP_GROUPS);
        let names = super::GAP_GROUPS.map(|(_, name)| name);
        assert_eq!(groups, [names[3], names[0], names[1], names[2], names[3]]);
        assert!(super::gap_groups(&[], &super::GAP_GROUPS).is_empty());
    }

    #[test]
    fn packets_of_a_trace_are_foretold() {
        let report = report("model-validation-data");
        assert!(report.holds(), "{report}");
        assert!(report.figure("300 packets", super::errors::RATE).is_some_and(|rate| rate < 5.0), "{report}");
        assert_eq!(report.plots.len(), 1);
    }

    #[test]
    fn random_commands_are_foretold() {
        let report = report("model-validation-control");
        assert!(report.holds(), "{report}");
        let case = report.figures.iter().find(|figure| figure.case == "100 commands").unwrap();
        assert_eq!((case.metric, case.samples), (super::errors::RATE, 8));
    }

    #[test]
    fn a_switch_that_is_not_there_is_told() {
        let target = "unix:/nonexistent/switch".parse().unwrap();
        let switch = Some(ExternalSwitch { target: Some(target), data: Vec::new(), profile: None });
        let options = ExperimentOptions { switch, ..ExperimentOptions::default() };
        let found = crate::find("model-validation-data").unwrap().run(&options, &mut |_| ());
        let error = found.map(|_| ()).unwrap_err().to_string();
        assert!(error.contains("/nonexistent/switch"), "{error}");
    }
}
