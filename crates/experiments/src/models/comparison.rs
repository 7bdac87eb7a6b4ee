//! Experiment `model-comparison`: repeats Table 7.1 of Ansell (2017). Queueing models predict a switch's mean sojourn
//! time; their predictions are compared with a simulation of the switch from its measured service times.
use super::device::{MeanAndScv, ModelledControlPath, ModelledDevice};
use super::{SimulatedSojourn, simulate};
use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use weir_model::ModelError;
use weir_model::control_path::{four_stations, split};
use weir_model::literature::{ControllerVisits, JarschelModel, ServiceAveraging, base_service_rate, jarschel, mahmood};
use weir_model::score::{DeviationSummary, ModelDeviation, common};
use weir_model::station::{mm1, mm1k};
use weir_plot::{Axis, Chart, ChartPoint, ChartSeries, LineStyle};

/// Points of range two (table 6.2 of the thesis): shares of packets that begin a flow, and packets per second.
const SHARES: [f64; 4] = [0.01, 0.04, 0.25, 0.5];
const RATES: [f64; 10] = [20.0, 40.0, 60.0, 80.0, 100.0, 120.0, 140.0, 160.0, 180.0, 200.0];
/// Mean service times in seconds over the eight sizes in tables 4.1 and 4.3 of the thesis: data path, packet-in,
/// controller and packet-out.
const DATA_S: f64 = 9.00875e-6;
const PACKET_IN_S: f64 = 0.00563625;
const CONTROLLER_S: f64 = 0.00749;
const PACKET_OUT_S: f64 = 0.0059275;
/// Mean time of a packet's way over the controller in seconds, as the thesis' tables give it. It differs by rounding
/// from the sum of [`PACKET_IN_S`], [`CONTROLLER_S`] and [`PACKET_OUT_S`].
const PATH_S: f64 = 0.0190625;
/// Squared coefficient of variation of the control path's service times. Assumed, because none was published.
const SCV: f64 = 0.5;
/// Number of places of each queue, as the thesis estimated it from measured losses.
const PLACES: usize = 200;
/// Packet rate of the calibration's first measurement, per second. All its packets go to the controller, and each finds
/// the device idle.
const IDLE: f64 = 1.0;
/// Range in which the calibration searches the capacity, in packets per second: the largest rate with a loss below
/// [`HARDLY`].
const CAPACITIES: (f64, f64) = (40.0, 200.0);
const HARDLY: f64 = 0.002;
/// Precision of the capacity that the calibration finds, in packets per second.
const NEAR: f64 = 0.5;
/// Variants of the switch: name, and true if its packet-in and packet-out stages share a processor.
const BUILT: [(&str, bool); 2] = [("agents on one processor", true), ("agents apart", false)];

const SCALED: &str = "mean |scaled difference|";
const SUM: &str = "sum of |scaled differences|";
const MEDIAN: &str = "median |scaled difference|";
const P95: &str = "95th percentile of |scaled difference|";
const LOG: &str = "mean |ln (model / simulated)|";
const VALID: &str = "points with an answer";
const UNSTABLE: &str = "points without steady state";
const SOJOURN: &str = "mean sojourn";

/// Mean sojourn time in seconds that a model predicts for a point.
type PredictedSojourn = Result<f64, ModelError>;

/// Name of a model, and the function that predicts the mean sojourn time from the device and its calibration.
type SojournModel = (&'static str, fn(&ModelledDevice, &ControlPathCalibration) -> PredictedSojourn);

/// Measurements of a device's control path from outside.
struct ControlPathCalibration {
    /// Delay over the controller while the device is idle, without the data path's time, in seconds.
    idle_s: f64,
    /// Largest rate without loss, in packets per second.
    capacity: f64,
}

const MODELS: [SojournModel; 8] = [
    ("M/M/1, rates averaged (equation 7.2)", |device, _| base(device, ServiceAveraging::Rate)),
    ("M/M/1", |device, _| base(device, ServiceAveraging::Time)),
    ("M/M/1/K", |device, _| {
        let rate = base_service_rate(device.p, DATA_S, PATH_S, ServiceAveraging::Time)?;
        Ok(mm1k(device.rate, rate, PLACES)?.sojourn_s)
    }),
    ("Jarschel", |device, _| of_jarschel(device, ControllerVisits::Once)),
    ("Jarschel, visits geometric", |device, _| of_jarschel(device, ControllerVisits::Geometric)),
    ("Mahmood", |device, _| of_mahmood(device)),
    ("latency-capacity split", |device, found| Ok(split(&device.split(found.idle_s, found.capacity, SCV)?)?.sojourn_s)),
    ("four stations", |device, _| Ok(four_stations(&device.four_stations()?)?.sojourn_s)),
];

/// Models of weir's own. Of the control path, the first one knows only the two measurements of
/// [`ControlPathCalibration`].
const OURS: [&str; 2] = ["latency-capacity split", "four stations"];

fn base(device: &ModelledDevice, combine: ServiceAveraging) -> PredictedSojourn {
    Ok(mm1(device.rate, base_service_rate(device.p, DATA_S, PATH_S, combine)?)?.sojourn_s)
}

fn of_mahmood(device: &ModelledDevice) -> PredictedSojourn {
    Ok(mahmood(device.rate, device.p, 1.0 / DATA_S, 1.0 / PATH_S)?.sojourn_s)
}

fn of_jarschel(device: &ModelledDevice, returning: ControllerVisits) -> PredictedSojourn {
    let model = JarschelModel {
        arrival_rate: device.rate,
        p: device.p,
        switch_rate: 1.0 / DATA_S,
        controller_rate: 1.0 / PATH_S,
        controller_places: PLACES,
        returning,
    };
    Ok(jarschel(&model)?.sojourn_s)
}

fn device(p: f64, rate: f64, shared: bool) -> ModelledDevice {
    let time = |mean_s| MeanAndScv { mean_s, scv: SCV };
    let control = ModelledControlPath::Stations {
        packet_in: time(PACKET_IN_S),
        controller: time(CONTROLLER_S),
        packet_out: time(PACKET_OUT_S),
        shared,
    };
    ModelledDevice {
        rate,
        p,
        data: MeanAndScv { mean_s: DATA_S, scv: 0.0 },
        control,
        places: Some(PLACES),
        write_s: 0.0,
    }
}

/// Simulates all points for each variant of the switch, and compares the models' predictions with the simulated times.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    for (built, shared) in BUILT {
        let Some(calibration) = calibrate(run, built, shared)? else { return Ok(()) };
        let mut points = Vec::new();
        for (p, rate) in SHARES.into_iter().flat_map(|p| RATES.map(|rate| (p, rate))) {
            let (case, device) = (case(built, p, rate), device(p, rate, shared));
            let Some(found) = simulate(run, &case, &device.scenario(), run.options.seed)? else { return Ok(()) };
            run.figure(&case, SOJOURN, "ms", in_ms(found.sojourn_s));
            points.push((device, found.sojourn_s.value));
        }
        compare(run, built, &calibration, &points);
        for p in [0.25, 0.5] {
            let chart = chart(run, built, &calibration, p, shared);
            run.plots.push(chart);
        }
    }
    claims(run)?;
    run.note("differences are over the points that all models answer, as in the thesis; scaled differences punish answers that are too high, up to without bound, more than those too low, 1 at most");
    Ok(())
}

fn case(built: &str, p: f64, rate: f64) -> String {
    format!("{built}, P_nf {p}, {rate} packets/s")
}

fn in_ms(SampledValue { value, sd, samples }: SampledValue) -> SampledValue {
    SampledValue { value: value * 1e3, sd: sd.map(|sd| sd * 1e3), samples }
}

/// Measures a simulated device as a real one would be measured: its delay while idle, and the largest rate without
/// loss. Returns `None` if the run was cancelled.
fn calibrate(
    run: &mut ExperimentRun<'_>,
    built: &str,
    shared: bool,
) -> Result<Option<ControlPathCalibration>, ExperimentError> {
    let case = format!("{built}, all packets ask");
    let seed = run.options.seed;
    let at = |run: &mut ExperimentRun<'_>, rate: f64| -> Result<Option<SimulatedSojourn>, ExperimentError> {
        simulate(run, &format!("{case}, {rate:.0} packets/s"), &device(1.0, rate, shared).scenario(), seed)
    };
    let Some(idle) = at(run, IDLE)? else { return Ok(None) };
    let (mut low, mut high) = CAPACITIES;
    while high - low > NEAR {
        let middle = (low + high) / 2.0;
        let Some(found) = at(run, middle)? else { return Ok(None) };
        if found.loss.value < HARDLY { low = middle } else { high = middle }
    }
    let samples = idle.control_s.samples;
    run.figure(&case, "control path, idle", "ms", in_ms(idle.control_s));
    run.figure(&case, "carried without loss", "packets/s", SampledValue::of(low, samples));
    Ok(Some(ControlPathCalibration { idle_s: idle.control_s.value - DATA_S, capacity: low }))
}

/// Reports how far each model's predictions are from the simulated times (`points`: device, mean sojourn in seconds).
fn compare(
    run: &mut ExperimentRun<'_>,
    built: &str,
    calibration: &ControlPathCalibration,
    points: &[(ModelledDevice, f64)],
) {
    let difference = |model: SojournModel, of: fn(ModelDeviation) -> f64| {
        let at = |(device, simulated): &(ModelledDevice, f64)| {
            Ok(of(ModelDeviation::of(*simulated, (model.1)(device, calibration)?)?))
        };
        points.iter().map(at).collect::<Vec<PredictedSojourn>>()
    };
    let scaled = MODELS.map(|model| difference(model, |difference| difference.scaled));
    let logs = MODELS.map(|model| difference(model, |difference| difference.log_ratio.unwrap_or(0.0)));
    let shared = common(&scaled.each_ref().map(Vec::as_slice));
    let of = |all: &[PredictedSojourn]| {
        DeviationSummary::of(&shared.iter().map(|point| all[*point].clone()).collect::<Vec<_>>())
    };
    for (((name, _), scaled), logs) in MODELS.into_iter().zip(&scaled).zip(&logs) {
        let (case, whole) = (format!("{name}; {built}"), DeviationSummary::of(scaled));
        let (Some(averages), Some(log)) = (of(scaled).averages, of(logs).averages) else { continue };
        let samples = shared.len() as u64;
        for (metric, value, samples) in [
            (SUM, averages.mean * shared.len() as f64, samples),
            (SCALED, averages.mean, samples),
            (MEDIAN, averages.median, samples),
            (P95, averages.p95, samples),
            (LOG, log.mean, samples),
            (VALID, whole.valid as f64, points.len() as u64),
            (UNSTABLE, whole.unstable as f64, points.len() as u64),
        ] {
            run.figure(&case, metric, "", SampledValue::of(value, samples));
        }
    }
}

fn claims(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    let of = |run: &ExperimentRun<'_>, name: &str, built: &str| {
        run.value(&format!("{name}; {built}"), SCALED).unwrap_or(f64::INFINITY)
    };
    for (built, _) in BUILT {
        let literature =
            MODELS.iter().filter(|(name, _)| !OURS.contains(name)).map(|(name, _)| (of(run, name, built), *name));
        let best = literature.min_by(|left, right| left.0.total_cmp(&right.0)).unwrap_or((f64::INFINITY, "none"));
        for ours in OURS {
            let found = of(run, ours, built);
            let near = Claim::tested(
                format!("{ours}: mean |scaled difference| below 0.10, {built}"),
                found < 0.10,
                format!("{found:.4}; best of the literature {:.4}, {}", best.0, best.1),
            );
            run.claims.push(near);
        }
    }
    let valid = run.value(&format!("Mahmood; {}", BUILT[0].0), VALID).unwrap_or(0.0);
    run.claims.push(Claim::tested(
        "the control path's rate is that of the whole path, 52 packets/s: Mahmood's model then has a steady state at 35 points of 40, which is how many the thesis' sums and means are over",
        valid == 35.0,
        format!("{valid} points"),
    ));
    run.claims.push(base_is_mahmood()?);
    run.claims.push(printed_equation()?);
    Ok(())
}

/// Checks that M/M/1 with averaged times and Mahmood's model agree at 52 packets per second, as the thesis reports. It
/// follows that the thesis averaged times, unlike its equation 7.2.
fn base_is_mahmood() -> Result<Claim, ModelError> {
    let mut largest = 0.0_f64;
    for p in SHARES {
        let device = device(p, 52.0, true);
        largest = largest.max((base(&device, ServiceAveraging::Time)? / of_mahmood(&device)? - 1.0).abs());
    }
    let text = "M/M/1 of averaged times and Mahmood agree within 0.2 % at 52 packets/s, as the thesis reports of its base models";
    Ok(Claim::tested(text, largest < 2e-3, format!("{:.3} % at most", 100.0 * largest)))
}

fn printed_equation() -> Result<Claim, ModelError> {
    let all = SHARES.into_iter().flat_map(|p| RATES.map(|rate| base(&device(p, rate, true), ServiceAveraging::Rate)));
    let most = all.collect::<Result<Vec<f64>, ModelError>>()?.into_iter().fold(0.0, f64::max);
    let text = "equation 7.2 as printed, an average of rates, gives less than 20 us everywhere: it cannot be what the thesis computed";
    Ok(Claim::tested(text, most < 2e-5, format!("{:.1} us at most", most * 1e6)))
}

fn chart(
    run: &ExperimentRun<'_>,
    built: &str,
    calibration: &ControlPathCalibration,
    p: f64,
    shared: bool,
) -> weir_plot::Figure {
    let finer = || (2..=40).map(|step| f64::from(step) * 5.0);
    let model = |(name, answer): &SojournModel| {
        let at = |rate: f64| Some(ChartPoint::new(rate, answer(&device(p, rate, shared), calibration).ok()? * 1e3));
        ChartSeries::looking(*name, LineStyle::Curve, finer().filter_map(at).collect())
    };
    let simulated =
        RATES.into_iter().filter_map(|rate| Some(ChartPoint::new(rate, run.value(&case(built, p, rate), SOJOURN)?)));
    let dots = ChartSeries::looking("simulation", LineStyle::Dots, simulated.collect());
    Chart {
        name: format!("sojourn-{}-{p}", if shared { "one-processor" } else { "apart" }),
        title: format!("Mean sojourn, P_nf {p}, {built}"),
        x: Axis::linear("rate, packets/s"),
        y: Axis::log("mean sojourn, ms"),
        series: MODELS.iter().map(model).chain([dots]).collect(),
    }
    .into()
}
