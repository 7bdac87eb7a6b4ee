//! Experiment `emulator-fidelity`: measures a switch that emulates a profile, and checks that the measured profile
//! equals the emulated one. In virtual time all errors come from the profiler; with a live switch (`--live`), the
//! machine adds errors.
use super::{errors, is_command, measure_device, measured, steps};
use crate::live::{AWAKE, ControlChannelKind, SwitchWithController};
use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::collections::BTreeMap;
use std::time::Duration;
use weir_emulator::VethPairSet;
use weir_model::fit::quantiles::MedianAndSpread;
use weir_model::switch::forward::PacketConditions;
use weir_openflow::Version;
use weir_plot::{Axis, Chart, ChartPoint, ChartSeries};
use weir_port::Port;
use weir_profile::{MatchLayers, ParameterValue as Parameter, Profile, SwitchTiming};
use weir_profiler::{
    LiveDevice, Measurement, MeasurementGrid, MeasurementParts, MeasurementSettings, PriorityOrder, SwitchAddress,
};

/// Maximum accepted relative error of a parameter.
const NEAR: f64 = 0.05;
/// An invented device with two levels, slow enough that the machine's own forwarding time (some microseconds) is
/// small against its times.
const DEVICE: &str = include_str!("device.toml");
/// Name of the invented device in cases.
const SLOW: &str = "slow hardware";
/// Shipped profiles that are measured in virtual time, too.
const SHIPPED: [&str; 2] = ["ofsoftswitch13", "ovs-kernel"];
/// Number of interfaces connected to the switch's ports.
const INTERFACES: usize = 3;
const VIRTUAL: &str = "virtual time";
const LIVE: &str = "live";

/// Way of measuring a profile (in virtual time, or live), with the names of its figures in the report.
#[derive(Clone, Copy, PartialEq)]
struct FidelityMode {
    name: &'static str,
    found: &'static str,
    off: &'static str,
}

const BY_VIRTUAL: FidelityMode = FidelityMode { name: VIRTUAL, found: "found, virtual time", off: "off, virtual time" };
const BY_LIVE: FidelityMode = FidelityMode { name: LIVE, found: "found, live", off: "off, live" };

/// Results of measuring a switch that emulates a profile.
struct FidelityMeasurement {
    how: FidelityMode,
    measurement: Measurement,
    found: Profile,
}

/// Runs the experiment: measures the invented device in virtual time, with `--full` also the shipped profiles, and
/// with `--live` a live switch that emulates the invented device.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    run.simulated = true;
    let truth = device()?;
    let Some(simulated) = by_virtual(run, &truth)? else { return Ok(()) };
    compare(run, SLOW, &truth, &simulated);
    if run.options.full {
        for name in SHIPPED {
            let truth = Profile::find(name, std::path::Path::new(".")).map_err(case_error)?;
            let Some(simulated) = by_virtual(run, &truth)? else { return Ok(()) };
            compare(run, name, &truth, &simulated);
        }
    }
    let live = live(run, &truth, grid(run.options.full))?;
    if let Some(live) = &live {
        compare(run, SLOW, &truth, live);
        curves(run, &simulated, live);
    }
    plots(run, &truth, [Some(&simulated), live.as_ref()].into_iter().flatten());
    Ok(())
}

fn device() -> Result<Profile, ExperimentError> {
    Profile::parse(DEVICE, "device.toml").map_err(case_error)
}

fn case_error(error: impl ToString) -> ExperimentError {
    ExperimentError::Case(error.to_string())
}

fn grid(is_full: bool) -> MeasurementGrid {
    use PriorityOrder::{Ascending, Descending, Random, Same};
    MeasurementGrid {
        priorities: vec![Same, Ascending, Descending, Random],
        entries: vec![1, 20, 40, 60, 80, 120, 160, 200],
        batches: vec![1, 2, 4, 8],
        deletions: vec![1, 10, 40, 80, 160],
        runs: if is_full { 10 } else { 3 },
        entries_max: 400,
        batch_max: 32,
        spacing_ms: 10,
        messages: if is_full { 100 } else { 30 },
        packets: if is_full { 100 } else { 30 },
        bytes: vec![64, 512, 1024, 1500],
        gaps_us: vec![1500, 3000, 10_000, 30_000],
        idle_ms: 33_000,
        trial_ms: 0,
    }
}

fn by_virtual(run: &mut ExperimentRun<'_>, truth: &Profile) -> Result<Option<FidelityMeasurement>, ExperimentError> {
    run.tell(&format!("{} in virtual time", truth.name));
    // Virtual time allows more runs and packets, which reduce the random error: a command's cost is one of many in a
    // burst's time, and some devices have random times.
    let live = grid(run.options.full);
    let more = MeasurementGrid { runs: 10, packets: 4 * live.packets, ..live };
    let found = measured(run, truth, 0, more, MeasurementParts::ALL)?;
    Ok(found.map(|(measurement, found)| FidelityMeasurement { how: BY_VIRTUAL, measurement, found }))
}

/// Measures a live switch that emulates the profile `truth`, over pairs of virtual interfaces. Returns `None` if live
/// measuring was not requested or is impossible on this machine (a claim then states the reason), or if the run was
/// stopped.
fn live(
    run: &mut ExperimentRun<'_>,
    truth: &Profile,
    grid: MeasurementGrid,
) -> Result<Option<FidelityMeasurement>, ExperimentError> {
    let why_not =
        if run.options.live { VethPairSet::missing() } else { Some("ask for it: --live, as root".to_owned()) };
    if let Some(why) = why_not {
        run.live_claims.push(Claim::untested(text(LIVE), why));
        return Ok(None);
    }
    run.tell(&format!("{} live", truth.name));
    let pairs = VethPairSet::make(INTERFACES)?;
    let port = |number: usize| open(pairs.ends(number)[0]);
    let ports = (0..INTERFACES).map(port).collect::<Result<Vec<_>, _>>()?;
    let cancel = run.options.cancel.clone();
    let switch = SwitchWithController::start(
        Some(truth),
        ports,
        ControlChannelKind::Listens,
        (AWAKE, run.options.seed),
        &cancel,
    )?;
    let target: SwitchAddress = switch.target().parse().map_err(ExperimentError::Case)?;
    let interfaces: Vec<String> = (0..INTERFACES).map(|number| pairs.ends(number)[1].to_owned()).collect();
    let patience = Duration::from_secs(20);
    let mut device = LiveDevice::open(&target, &interfaces, &[Version::V13], patience).map_err(case_error)?;
    let settings = MeasurementSettings { patience, seed: run.options.seed, ..MeasurementSettings::default() };
    let found = measure_device(run, &mut device, settings, grid, MeasurementParts::ALL, &truth.name)?;
    if let Some([p50, p99]) = switch.lateness_us()? {
        run.note(format!(
            "live, the switch released what was due {p50:.1} us late in the middle, {p99:.1} us at the 99th percentile"
        ));
    }
    let Some((measurement, found)) = found else { return Ok(None) };
    for note in measurement.notes() {
        run.note(format!("live: {note}"));
    }
    Ok(Some(FidelityMeasurement { how: BY_LIVE, measurement, found }))
}

fn open(device: &str) -> Result<Box<dyn Port>, ExperimentError> {
    let spec = format!("af_packet:{device}").parse::<weir_port::PortSpec>().map_err(case_error)?;
    weir_port::open(&spec).map_err(case_error)
}

fn text(how: &str) -> String {
    format!("every parameter that the grid measures comes back within 5 %, sizes and policies exactly ({how})")
}

/// Returns true for numeric parameters that the grid measures.
fn is_measured(key: &str) -> bool {
    is_command(key)
        || key.contains(".forward.") && !key.ends_with("shortest")
        || ["timing.packet_in", "timing.packet_out"].contains(&key)
}

/// Adds, for each parameter, figures of its true value, its found value and the error, and one claim about all errors.
fn compare(run: &mut ExperimentRun<'_>, name: &str, truth: &Profile, result: &FidelityMeasurement) {
    let mut all = errors(truth, &result.found, is_measured);
    all.extend(steps(truth, &result.found));
    all.extend(data_path(truth, &result.found));
    let (known, found) = (truth.parameters(), result.found.parameters());
    let value = |list: &[weir_profile::ProfileParameter], key: &str| {
        let number = list.iter().find(|one| one.key == key).and_then(|one| match &one.value {
            Parameter::Numbers(all) => all.first().copied(),
            value => value.number(),
        });
        number.unwrap_or(0.0)
    };
    for (error, key) in &all {
        let case = format!("{name}: {key}");
        let unit = known.iter().find(|one| one.key == *key).map_or("", |one| one.unit);
        if !unit.is_empty() && run.value(&case, "profile").is_none() {
            run.figure(&case, "profile", unit, SampledValue::of(value(&known, key), 1));
        }
        if !unit.is_empty() {
            run.figure(&case, result.how.found, unit, SampledValue::of(value(&found, key), 1));
        }
        run.figure(&case, result.how.off, "%", SampledValue::of(error * 100.0, 1));
    }
    let exact = exact(truth, &result.found);
    let (worst, key) = all.iter().cloned().fold((0.0, String::new()), |a, b| if b.0 > a.0 { b } else { a });
    let within = all.iter().filter(|(error, _)| *error < NEAR).count();
    let because = format!(
        "{within} of {} are; the worst, {key}, is {:.1} % off; {}",
        all.len(),
        worst * 100.0,
        exact.as_deref().unwrap_or("sizes, policy and largest batch are the profile's")
    );
    let holds = within == all.len() && exact.is_none();
    let claim = Claim::tested(format!("{}: {name}", text(result.how.name)), holds, because);
    if result.how == BY_LIVE { run.live_claims.push(claim) } else { run.claims.push(claim) }
}

/// Describes the parameters that must be found exactly (sizes, policy, largest batch) and were not. Returns `None` if
/// all were found.
fn exact(truth: &Profile, found: &Profile) -> Option<String> {
    let (Some(known), Some(found)) = (&truth.tables, &found.tables) else { return None };
    let sizes = |model: &weir_model::switch::device::SwitchModel| {
        model.levels.iter().map(|level| level.size).collect::<Vec<_>>()
    };
    let mut wrong = Vec::new();
    if sizes(known) != sizes(found) {
        wrong.push(format!("sizes are {:?} instead of {:?}", sizes(found), sizes(known)));
    }
    if known.policy != found.policy {
        wrong.push("the policy is another".to_owned());
    }
    if known.batching.most != found.batching.most {
        wrong.push(format!("the largest batch is {} instead of {}", found.batching.most, known.batching.most));
    }
    (!wrong.is_empty()).then(|| wrong.join(", "))
}

/// Returns the relative errors of the delays, if the profile has one law for all packets instead of levels. The
/// profiler finds it as the law of the first level.
fn data_path(truth: &Profile, found: &Profile) -> Vec<(f64, String)> {
    // If there are levels, their laws apply; the law for all packets is then only used by formulas.
    let Some(SwitchTiming { data: Some(data), .. }) = truth.timing.as_ref().filter(|_| truth.tables.is_none()) else {
        return Vec::new();
    };
    let Some(law) = found.forwarding.first().and_then(Option::as_ref) else { return Vec::new() };
    let of = |bytes: f64| {
        let at = PacketConditions { gap_s: 5e-3, entries: 100.0, bytes };
        let found_s = law.forward(MatchLayers::L2L3, at).ok()?.delay_s;
        Some(((found_s / data.mean_s(bytes) - 1.0).abs(), format!("timing.data at {bytes} bytes")))
    };
    [64.0, 1500.0].into_iter().filter_map(of).collect()
}

/// Medians of a curve by position, such as the packet length.
type MedianCurve = BTreeMap<u64, f64>;

/// Returns the median delays of packets that the first level forwards, by packet length or by time between packets, as
/// `along` selects. Only rows that differ from the base case in no other value count.
fn delays(measurement: &Measurement, along: fn(&weir_profiler::PacketDelayRow) -> u64) -> MedianCurve {
    let rows = measurement.delays().iter().filter(|row| row.level == 0 && row.kind == MatchLayers::L2L3.name());
    let rows: Vec<_> = rows.collect();
    // The first row is the base case, from which the others differ in one value.
    let Some(base) = rows.first() else { return MedianCurve::new() };
    let others = |row: &weir_profiler::PacketDelayRow| [u64::from(row.bytes), u64::from(row.gap_us), row.entries];
    let mut by: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for row in &rows {
        let differ = others(row).iter().zip(others(base)).filter(|(value, base)| *value != base).count();
        let is_along = differ == 0 || differ == 1 && along(row) != along(base);
        if let (true, Some(delay)) = (is_along, row.delay_s) {
            by.entry(along(row)).or_default().push(delay);
        }
    }
    medians(by)
}

/// Returns the median time to add one entry, in seconds, by the number of entries present.
fn adding(measurement: &Measurement) -> MedianCurve {
    let mut by: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    let is_it = |timed: &&weir_profiler::control::MeasuredBurst| {
        timed.command == weir_profiler::control::TimedCommandKind::Add
            && timed.batch == 1
            && timed.priorities == PriorityOrder::Same
    };
    for timed in measurement.timed.iter().filter(is_it) {
        by.entry(timed.entries).or_default().push(timed.seconds());
    }
    medians(by)
}

fn medians(by: BTreeMap<u64, Vec<f64>>) -> MedianCurve {
    by.into_iter().filter_map(|(at, values)| Some((at, MedianAndSpread::of(&values).ok()?.median))).collect()
}

/// A curve's name, the function that extracts it, and the unit of its positions.
type NamedCurve = (&'static str, fn(&Measurement) -> MedianCurve, &'static str);

const CURVES: [NamedCurve; 3] = [
    ("delays of packets by length", |of| delays(of, |row| row.bytes.into()), "bytes"),
    ("delays of packets by time between them", |of| delays(of, |row| row.gap_us.into()), "microseconds"),
    ("time of adding by entries there", adding, "entries there"),
];

/// Compares the curves measured live with those measured in virtual time, which are free of disturbances. Adds a
/// figure and a claim for each curve.
fn curves(run: &mut ExperimentRun<'_>, simulated: &FidelityMeasurement, live: &FidelityMeasurement) {
    for (name, curve, along) in CURVES {
        let (expected, got) = (curve(&simulated.measurement), curve(&live.measurement));
        let off = expected.iter().filter_map(|(at, value)| Some((got.get(at)? / value - 1.0, *at)));
        let off: Vec<(f64, u64)> = off.collect();
        let (worst, at) = off.iter().copied().fold((0.0_f64, 0), |a, b| if b.0.abs() > a.0.abs() { b } else { a });
        run.figure(name, "farthest point", "%", SampledValue::of(worst.abs() * 100.0, off.len() as u64));
        let claim = format!("{name}: the live curve is within 5 % of that in virtual time");
        let because = format!("{} points, the farthest, at {at} {along}, is {:+.1} % off", off.len(), worst * 100.0);
        run.live_claims.push(Claim::tested(claim, !off.is_empty() && worst.abs() < NEAR, because));
    }
}

fn plots<'r>(run: &mut ExperimentRun<'_>, truth: &Profile, results: impl Iterator<Item = &'r FidelityMeasurement>) {
    let results: Vec<_> = results.collect();
    for (number, (title, curve, along)) in CURVES.into_iter().enumerate() {
        let line = |result: &&FidelityMeasurement| {
            let points = curve(&result.measurement).into_iter().map(|(at, s)| ChartPoint::new(at as f64, s * 1e6));
            ChartSeries::line(result.how.name, points.collect())
        };
        let mut series: Vec<ChartSeries> = results.iter().map(line).collect();
        if number == 0 {
            series.push(by_law(truth, results.first().map(|result| curve(&result.measurement)).unwrap_or_default()));
        }
        let (x, y) = (Axis::linear(along), Axis::linear("time, us"));
        let name = ["delay-by-length", "delay-by-gap", "adding-by-entries"][number];
        run.plots.push(Chart { name: name.into(), title: title.into(), x, y, series }.into());
    }
}

/// Returns the delay that the profile `truth` gives to each packet length of `curve`, for the plot: delays of the
/// first level, with 1 ms between packets and 60 entries.
fn by_law(truth: &Profile, curve: MedianCurve) -> ChartSeries {
    let law = truth.forwarding.first().and_then(Option::as_ref);
    let point = |bytes: &u64| {
        let at = PacketConditions { gap_s: 1e-3, entries: 60.0, bytes: *bytes as f64 };
        let delay_s = law?.forward(MatchLayers::L2L3, at).ok()?.delay_s;
        Some(ChartPoint::new(*bytes as f64, delay_s * 1e6))
    };
    ChartSeries::line("the profile", curve.keys().filter_map(point).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExperimentOptions;

    /// Checks only lower bounds, because times measured on a busy machine can be too long, but not too short.
    #[test]
    fn a_live_switch_is_measured_on_interfaces_of_its_own() {
        if !weir_testing::root() {
            return;
        }
        let options = ExperimentOptions { live: true, seed: 1, ..ExperimentOptions::default() };
        let mut tell = |_: &str| ();
        let mut run = ExperimentRun::new(&options, crate::tests::sizes(Duration::from_secs(1)), &mut tell);
        let few = MeasurementGrid {
            priorities: vec![PriorityOrder::Same],
            entries: vec![1, 20],
            batches: vec![1],
            deletions: vec![1],
            runs: 1,
            messages: 4,
            packets: 6,
            bytes: vec![64, 1500],
            gaps_us: vec![1500, 10_000],
            ..grid(false)
        };
        let truth = Profile::parse(ONE_LEVEL, "one.toml").unwrap();
        let found = live(&mut run, &truth, few).unwrap().expect("it is measured");
        // Rejected entries show the total room exactly. The number of levels is judged in virtual time only: a
        // profile lists levels in the order of their sizes, so that its sum may be larger.
        let sizes = found.measurement.sizes.as_ref().unwrap();
        assert!(sizes.is_full && sizes.sizes.iter().flatten().sum::<u64>() == 40, "{sizes:?}, {:?}", run.notes);
        let delay_s = delays(&found.measurement, |row| row.bytes.into())[&128];
        assert!(delay_s >= 400e-6, "{delay_s}");
        let adds = || {
            found.measurement.timed.iter().filter(|one| one.command == weir_profiler::control::TimedCommandKind::Add)
        };
        // No packet sent before a command took effect shows its change. If the machine stops the profiler between
        // sending and reading the clock, times are too short, so the longest ones are judged.
        let longest = |of: fn(&weir_profiler::control::MeasuredBurst) -> f64| adds().map(of).fold(0.0, f64::max);
        assert!(longest(|one| one.high_s) >= 3e-3, "{:?}", found.measurement.timed);
        assert!(longest(|one| one.barrier_s) >= 3e-3, "{:?}", found.measurement.timed);
    }

    const ONE_LEVEL: &str = "name = \"one\"\ndevice = \"One\"\norigin = \"assumed\"\nsource = \"A test\"\n\
        [[level]]\nname = \"only\"\nsize = 40\nwrite = \"3ms\"\nforward = { base_l2l3 = \"400us\" }\n";

    /// Checks the profiler's own precision in virtual time, and that no live switch is started unless requested.
    #[test]
    fn the_profile_comes_back_in_virtual_time() {
        let options = ExperimentOptions { seed: 1, ..ExperimentOptions::default() };
        let report = crate::find("emulator-fidelity").unwrap().run(&options, &mut |_| ()).unwrap();
        assert!(report.holds(), "{report}");
        assert!(report.claims.iter().any(|claim| claim.holds.is_none()), "the live one is not tested");
        assert!(report.figures.len() > 60 && report.plots.len() == 3, "{report}");
        assert!(!report.plots[0].svg().is_empty());
    }
}
