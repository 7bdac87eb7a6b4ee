//! Experiment: errors of weir's formulas against simulations of the modelled devices, by utilisation.
use super::device::{ModelledControlPath, ModelledDevice};
use super::drawn::{ControlPathStructure, KINDS, draw};
use super::{SimulatedSojourn, simulate};
use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use weir_model::control_path::{four_stations, split};
use weir_model::{ModelError, SwitchSteadyState};
use weir_plot::{Axis, Chart, ChartPoint, ChartSeries};
use weir_traffic::RandomStream;

/// Utilisation ranges of the busiest station behind the data path.
const BANDS: [(f64, f64); 6] = [(0.1, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.8), (0.8, 0.9), (0.9, 0.95)];
/// Highest utilisation at which the formulas must be accurate.
const NEAR_UP_TO: f64 = 0.8;
/// Largest accepted errors, in percent.
const MEAN_NEAR: f64 = 10.0;
const P95_NEAR: f64 = 20.0;
/// Number of devices drawn for each range and kind.
const CASES: u64 = 3;
const CASES_FULL: u64 = 12;

const MEAN: &str = "mean sojourn: error on average";
const MEAN_WORST: &str = "mean sojourn: largest error";
const P95: &str = "95th percentile: error on average";
const P95_WORST: &str = "95th percentile: largest error";
const UNSURE: &str = "the simulations' own 95 % interval";

/// Errors of one device, in percent.
struct SojournErrors {
    mean: f64,
    p95: f64,
    unsure: f64,
}

/// Measures the errors for all kinds of devices and utilisation ranges.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    let cases = if run.options.full { CASES_FULL } else { CASES };
    let mut number = 0;
    for (name, kind) in KINDS {
        for band in BANDS {
            let case = case(name, band);
            let mut errors = Vec::new();
            for _ in 0..cases {
                number += 1;
                let Some(found) = errors_of(run, &case, kind, band, number)? else { return Ok(()) };
                errors.push(found);
            }
            figures(run, &case, &errors);
        }
    }
    claims(run);
    run.plots.push(chart(run, "mean", "Error of the mean sojourn", MEAN, MEAN_WORST));
    run.plots.push(chart(run, "p95", "Error of the 95th percentile", P95, P95_WORST));
    Ok(())
}

fn case(name: &str, (low, high): (f64, f64)) -> String {
    format!("{name}, utilisation {low} to {high}")
}

/// Draws a device, simulates it, and compares the result with its formula.
fn errors_of(
    run: &mut ExperimentRun<'_>,
    case: &str,
    kind: ControlPathStructure,
    band: (f64, f64),
    number: u64,
) -> Result<Option<SojournErrors>, ExperimentError> {
    let seed = run.options.seed;
    let mut random = RandomStream::new(seed, 0, number);
    let utilisation = band.0 + (band.1 - band.0) * random.unit();
    let device = draw(&mut random, kind, utilisation);
    let Some(found) = simulate(run, case, &device.scenario(), seed.wrapping_add(number))? else { return Ok(None) };
    let state = formula(&device)?;
    let SimulatedSojourn { sojourn_s, p95_s, unsure_s, .. } = found;
    let percent = |formula: f64, simulated: f64| 100.0 * (formula / simulated - 1.0).abs();
    Ok(Some(SojournErrors {
        mean: percent(state.sojourn_s, sojourn_s.value),
        p95: percent(state.sojourn.quantile(0.95)?, p95_s.value),
        unsure: 100.0 * unsure_s / sojourn_s.value,
    }))
}

fn formula(device: &ModelledDevice) -> Result<SwitchSteadyState, ModelError> {
    match device.control {
        ModelledControlPath::Measured { idle_s, capacity, scv } => split(&device.split(idle_s, capacity, scv)?),
        ModelledControlPath::Stations { .. } => four_stations(&device.four_stations()?),
    }
}

fn figures(run: &mut ExperimentRun<'_>, case: &str, errors: &[SojournErrors]) {
    let samples = errors.len() as u64;
    let column = |of: fn(&SojournErrors) -> f64| errors.iter().map(of).collect::<Vec<_>>();
    let worst = |values: &[f64]| SampledValue::of(values.iter().copied().fold(0.0, f64::max), samples);
    let (means, p95s) = (column(|errors| errors.mean), column(|errors| errors.p95));
    for (metric, value) in [
        (MEAN, SampledValue::mean_of(&means)),
        (MEAN_WORST, worst(&means)),
        (P95, SampledValue::mean_of(&p95s)),
        (P95_WORST, worst(&p95s)),
        (UNSURE, SampledValue::mean_of(&column(|errors| errors.unsure))),
    ] {
        run.figure(case, metric, "%", value);
    }
}

fn claims(run: &mut ExperimentRun<'_>) {
    for (name, _) in KINDS {
        for (what, metric, near) in [("mean sojourn", MEAN_WORST, MEAN_NEAR), ("95th percentile", P95_WORST, P95_NEAR)]
        {
            let bands = BANDS.into_iter().filter(|(_, high)| *high <= NEAR_UP_TO);
            let worst = bands.filter_map(|band| run.value(&case(name, band), metric)).fold(0.0, f64::max);
            let text = format!("{name}: {what} within {near} % up to a utilisation of {NEAR_UP_TO}");
            run.claims.push(Claim::tested(text, worst <= near, format!("{worst:.1} % at most")));
        }
    }
}

fn chart(run: &ExperimentRun<'_>, name: &str, title: &str, average: &str, worst: &str) -> weir_plot::Figure {
    let line = |kind: &str, metric: &str, suffix: &str| {
        let at =
            |band: (f64, f64)| Some(ChartPoint::new((band.0 + band.1) / 2.0, run.value(&case(kind, band), metric)?));
        ChartSeries {
            name: format!("{kind}, {suffix}"),
            points: BANDS.into_iter().filter_map(at).collect(),
            ..ChartSeries::default()
        }
    };
    let lines =
        |(kind, _): (&str, ControlPathStructure)| [line(kind, average, "average"), line(kind, worst, "largest")];
    Chart {
        name: name.into(),
        title: title.into(),
        x: Axis::linear("utilisation of the busiest place on the control path, from 0 to 1"),
        y: Axis::linear("error, %"),
        series: KINDS.into_iter().flat_map(lines).collect(),
    }
    .into()
}
