//! Experiments on the profiler: whether it finds randomly drawn profiles in virtual time, where only the measuring
//! itself can cause errors.
pub(crate) mod fidelity;
mod hidden;
pub(crate) mod validation;

use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::time::Duration;
use weir_model::fit::quantiles::MedianAndSpread;
use weir_profile::{ParameterValue as Parameter, Profile};
use weir_profiler::{
    Measurement, MeasurementGrid, MeasurementOptions, MeasurementParts, MeasurementSettings, PriorityOrder,
    ProfileMetadata, ProgressReporter, RawDataStore, VirtualTimeSwitch,
};

/// Largest accepted relative error of a rate.
const NEAR: f64 = 0.05;
const RATE: &str = "largest error of a rate";
const MEDIAN: &str = "median error of rates";
const FOUND: &str = "levels found exactly";

fn grid(runs: u32) -> MeasurementGrid {
    use PriorityOrder::{Ascending, Descending, Random, Same};
    MeasurementGrid {
        priorities: vec![Same, Ascending, Descending, Random],
        entries: vec![1, 10, 20, 40, 80, 120, 160, 240, 320, 400, 500],
        batches: vec![1, 2, 4, 8],
        deletions: vec![1, 10, 40, 80, 160, 300, 500],
        runs,
        entries_max: 700,
        batch_max: 64,
        spacing_ms: 10,
        messages: 10,
        packets: 10,
        bytes: vec![64, 1500],
        gaps_us: vec![100, 1000],
        idle_ms: 33_000,
        trial_ms: 0,
    }
}

/// Measures a switch with a hidden profile. Returns the measurement and the profile that was found, or `None` if
/// stopped.
fn measured(
    run: &ExperimentRun<'_>,
    truth: &Profile,
    number: u32,
    grid: MeasurementGrid,
    parts: MeasurementParts,
) -> Result<Option<(Measurement, Profile)>, ExperimentError> {
    let failed = |error: weir_profiler::ProfilerError| ExperimentError::Case(format!("{}: {error}", truth.name));
    let mut switch = VirtualTimeSwitch::new(truth, 3, run.options.seed ^ u64::from(number)).map_err(failed)?;
    // Virtual time has no limit of the machine's time resolution.
    let settings = MeasurementSettings {
        finest: Duration::from_micros(2),
        grace: Duration::from_millis(2),
        resolution: 1.0 / 400.0,
        seed: run.options.seed,
        ..MeasurementSettings::default()
    };
    measure_device(run, &mut switch, settings, grid, parts, &truth.name)
}

/// Measures a device; `name` names it in errors. Returns `None` if stopped.
fn measure_device(
    run: &ExperimentRun<'_>,
    device: &mut dyn weir_profiler::DeviceUnderTest,
    settings: MeasurementSettings,
    grid: MeasurementGrid,
    parts: MeasurementParts,
    name: &str,
) -> Result<Option<(Measurement, Profile)>, ExperimentError> {
    let failed = |error: weir_profiler::ProfilerError| ExperimentError::Case(format!("{name}: {error}"));
    let mut stop = || run.options.cancel.is_cancelled();
    let mut tell = |_: &weir_profiler::MeasurementProgress<'_>| ();
    let options = MeasurementOptions {
        settings,
        grid,
        parts,
        ports: Vec::new(),
        stop: &mut stop,
        progress: ProgressReporter::new(&mut tell),
    };
    let (found, ended) = weir_profiler::measure(device, options, &mut RawDataStore::none());
    match ended {
        Err(weir_profiler::ProfilerError::Stopped) => return Ok(None),
        other => other.map_err(failed)?,
    }
    let about = ProfileMetadata { name: "found".to_owned(), source: name.to_owned(), ..ProfileMetadata::default() };
    let profile = found.profile(&about).map_err(failed)?;
    Ok(Some((found, profile)))
}

fn case(number: u32, truth: &Profile) -> String {
    format!("hidden {}: {} levels", number + 1, truth.levels.len())
}

/// Experiment on sizes, policies and batches.
pub(crate) fn tables(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    run.simulated = true;
    let (mut sizes, mut policies, mut batches, mut timeouts) = (0, 0, 0, Vec::new());
    let count = run.sizes.replications;
    for number in 0..count {
        let truth = hidden::profile(run.options.seed, number)?;
        let case = case(number, &truth);
        run.tell(&case);
        let parts = MeasurementParts { control: false, tables: true, data: false };
        let Some((_, found)) = measured(run, &truth, number, grid(1), parts)? else { return Ok(()) };
        let (Some(hidden), Some(found)) = (&truth.tables, &found.tables) else { continue };
        let known: Vec<_> = hidden.levels.iter().map(|level| level.size).collect();
        let same = found.levels.iter().map(|level| level.size).collect::<Vec<_>>() == known;
        let right = found.levels.iter().zip(&known).filter(|(level, size)| level.size == **size).count();
        run.figure(&case, FOUND, "", SampledValue::of(right as f64, 1));
        let policy = found.policy == hidden.policy;
        let batch = found.batching.most == hidden.batching.most;
        (sizes, policies, batches) =
            (sizes + u32::from(same), policies + u32::from(policy), batches + u32::from(batch));
        run.figure(&case, "policy found", "", SampledValue::of(f64::from(u8::from(policy)), 1));
        run.figure(&case, "largest batch found", "", SampledValue::of(f64::from(u8::from(batch)), 1));
        if hidden.batching.most > 1 {
            let error = (found.batching.timeout_s / hidden.batching.timeout_s - 1.0).abs() * 100.0;
            timeouts.push(error);
            run.figure(&case, "error of the batch time-out", "%", SampledValue::of(error, 1));
        }
    }
    let all =
        |text: &str, right: u32| Claim::tested(text, right == count, format!("{right} of {count} hidden profiles"));
    run.claims.push(all("sizes of all levels are found exactly", sizes));
    run.claims.push(all("policies are found, with what decides among equals", policies));
    run.claims.push(all("the largest batch is found exactly", batches));
    let worst = timeouts.iter().copied().fold(0.0, f64::max);
    run.claims.push(Claim::tested(
        "time-outs of batches are found within 5 %",
        worst < 5.0,
        format!("{worst:.1} % at most"),
    ));
    run.note("a switch that puts out first what was used or had traffic least is not told from one that puts out nobody: what comes has had neither");
    Ok(())
}

/// Experiment on the cost of commands.
pub(crate) fn control(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    run.simulated = true;
    let mut worst: Vec<(f64, String)> = Vec::new();
    let mut all = Vec::new();
    for number in 0..run.sizes.replications {
        let truth = hidden::profile(run.options.seed, number)?;
        let case = case(number, &truth);
        run.tell(&case);
        let runs = if run.options.full { 10 } else { 4 };
        let Some((measurement, found)) =
            measured(run, &truth, number, grid(runs), MeasurementParts { data: false, ..MeasurementParts::ALL })?
        else {
            return Ok(());
        };
        let mut errors = errors(&truth, &found, is_command);
        errors.extend(deletes(&truth, &found));
        let (error, key) = errors.iter().cloned().fold((0.0, String::new()), |a, b| if b.0 > a.0 { b } else { a });
        let samples = measurement.timed.len() as u64;
        run.figure(&case, RATE, "%", SampledValue::of(error * 100.0, samples));
        let sizes: Vec<f64> = errors.iter().map(|(error, _)| *error).collect();
        run.figure(&case, MEDIAN, "%", SampledValue::of(MedianAndSpread::of(&sizes)?.median * 100.0, samples));
        run.note(format!("{case}: the largest error is that of {key}"));
        all.extend(sizes);
        worst.push((error, case));
    }
    let within = all.iter().filter(|error| **error < NEAR).count();
    let (error, case) = worst.iter().cloned().fold((0.0, String::new()), |a, b| if b.0 > a.0 { b } else { a });
    let because = format!("{within} of {} rates are; the worst is {:.1} % off ({case})", all.len(), error * 100.0);
    run.claims.push(Claim::tested("rates are found within 5 %", within == all.len(), because));
    Ok(())
}

/// Experiment on the delays of packets.
pub(crate) fn data(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    run.simulated = true;
    let mut worst: (f64, String) = (0.0, "none".to_owned());
    let mut count = 0;
    for number in 0..run.sizes.replications {
        let truth = hidden::profile(run.options.seed, number)?;
        let case = case(number, &truth);
        run.tell(&case);
        let parts = MeasurementParts { control: false, tables: false, data: true };
        let grid = MeasurementGrid {
            gaps_us: vec![100, 300, 1000, 3000, 10_000, 30_000],
            bytes: vec![64, 512, 1500],
            ..grid(1)
        };
        let Some((_, found)) = measured(run, &truth, number, grid, parts)? else { return Ok(()) };
        let mut errors = errors(&truth, &found, |key| key.contains(".forward.") && !key.ends_with("shortest"));
        errors.extend(steps(&truth, &found));
        count += errors.len();
        let (error, key) = errors.into_iter().fold((0.0, String::new()), |a, b| if b.0 > a.0 { b } else { a });
        run.figure(&case, RATE, "%", SampledValue::of(error * 100.0, 1));
        if error > worst.0 {
            worst = (error, format!("{key}, {case}"));
        }
    }
    let because = format!("of {count} the worst is {:.2} % off ({})", worst.0 * 100.0, worst.1);
    run.claims.push(Claim::tested(
        "delays by match, length, entries and time between packets are found within 5 %",
        worst.0 < NEAR,
        because,
    ));
    Ok(())
}

/// Returns the relative error of each level's deletion time, which is a key of the profile or else the time of
/// writing.
fn deletes(truth: &Profile, found: &Profile) -> Vec<(f64, String)> {
    let of = |profile: &Profile| {
        let levels = profile.tables.as_ref().map(|tables| tables.levels.clone()).unwrap_or_default();
        levels.iter().map(|level| level.costs.deleted_s()).collect::<Vec<_>>()
    };
    let found = of(found);
    let error = |(at, truth): (usize, f64)| {
        ((found.get(at).copied().unwrap_or(0.0) / truth - 1.0).abs(), format!("level{}.delete", at + 1))
    };
    of(truth).into_iter().enumerate().map(error).collect()
}

/// Returns the relative errors of the times between packets at which delays change.
fn steps(truth: &Profile, found: &Profile) -> Vec<(f64, String)> {
    let levels = |profile: &Profile| {
        let of = |law: &Option<weir_profile::LevelForwarding>| {
            law.as_ref().map_or(Vec::new(), |law| law.gap_levels_s.clone())
        };
        profile.forwarding.iter().map(of).collect::<Vec<_>>()
    };
    let mut errors = Vec::new();
    for (at, (hidden, found)) in levels(truth).into_iter().zip(levels(found)).enumerate() {
        let key = format!("level{}.forward.gap_levels", at + 1);
        if hidden.len() != found.len() {
            errors.push((1.0, key));
            continue;
        }
        errors.extend(hidden.iter().zip(&found).map(|(hidden, found)| ((found / hidden - 1.0).abs(), key.clone())));
    }
    errors
}

/// Returns true if a parameter is a rate of commands.
fn is_command(key: &str) -> bool {
    let ends = ["per_entry", ".shift", ".search", ".write", "barrier.lag", "batching.timeout"];
    key == "effect" || ends.iter().any(|end| key.ends_with(end)) && !key.contains(".forward.")
}

/// Returns the relative error of each rate of the hidden profile.
fn errors(truth: &Profile, found: &Profile, is_rate: fn(&str) -> bool) -> Vec<(f64, String)> {
    let found = found.parameters();
    let number = |key: &str| found.iter().find(|one| one.key == key).and_then(|one| one.value.number());
    let parameters = truth.parameters();
    let rates = parameters.iter().filter(|one| is_rate(&one.key));
    rates
        .filter_map(|one| match &one.value {
            Parameter::Number(_) | Parameter::Law { .. } => Some((one.key.clone(), one.value.number()?)),
            _ => None,
        })
        .filter(|(_, value)| *value > 0.0)
        .map(|(key, value)| ((number(&key).unwrap_or(0.0) / value - 1.0).abs(), key))
        .collect()
}

#[cfg(test)]
mod tests {
    use crate::ExperimentOptions;

    #[test]
    fn what_two_switches_hide_is_found() {
        let options = ExperimentOptions { seed: 1, ..ExperimentOptions::default() };
        let report = crate::find("profile-tables").unwrap().run(&options, &mut |_| ()).unwrap();
        assert!(report.holds(), "{report}");
        assert!(report.figures.len() >= 6);
    }

    #[test]
    fn what_commands_cost_on_two_switches_is_found() {
        let options = ExperimentOptions { seed: 1, ..ExperimentOptions::default() };
        let report = crate::find("profile-control").unwrap().run(&options, &mut |_| ()).unwrap();
        assert!(report.holds(), "{report}");
    }

    #[test]
    fn profiles_that_are_drawn_are_profiles() {
        for number in 0..40 {
            let profile = super::hidden::profile(3, number).unwrap();
            assert!(profile.tables.is_some() && profile.levels.len() >= 2);
        }
    }
}
