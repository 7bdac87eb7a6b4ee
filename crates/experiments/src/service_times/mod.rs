//! Measures the service times of an idle switch and its controller, part by part, by the two methods of Ansell's thesis
//! (2017, sections 4.1 to 4.3): *network events*, the times at which a packet passes taps on its way, and *loops*,
//! which pass it through the switch several times, for times too short to be seen next to the setup's own delay.
//!
//! In virtual time the methods themselves are tested on the published device's profile; live (`--live`), on weir
//! without and with that profile.
mod live;
mod simulated;

use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::path::Path;
use weir_plot::{Axis, Chart, ChartPoint, ChartSeries};
use weir_profile::{ControlPathTiming, Profile};

/// Packet lengths in bytes, as published.
const SIZES: [u32; 8] = [100, 200, 400, 600, 800, 1000, 1200, 1400];
/// Packet lengths of the small size.
const FEW_SIZES: [u32; 3] = [100, 600, 1400];
/// Numbers of visits to the switch in the loops.
const VISITS: [u32; 4] = [1, 2, 3, 4];
/// Profile of the published device.
const PROFILE: &str = "at-x510";
/// Largest accepted relative error.
const NEAR: f64 = 0.05;

const TO_CONTROLLER: &str = "switch to controller";
const CONTROLLER: &str = "controller";
const FROM_CONTROLLER: &str = "controller to switch";
const ALL: &str = "in all, by the controller";
const LOOPS: &str = "data path, loops";
const EVENTS: &str = "data path, events";
/// Time that the setup takes to send a packet; it is subtracted from the events' times of weir without a profile.
const HOP: &str = "rig: sending once";
/// Resolution of events: their time beyond that of loops, on weir without a profile.
const BLUR: &str = "events see beyond loops";

/// Names of the devices in cases.
const SIMULATED: &str = "x510 in virtual time";
const EMULATED: &str = "x510 emulated";
const SLOWED: &str = "x510 emulated, data path slowed";
const NATIVE: &str = "weir";

/// Factor by which the data path of [`SLOWED`] is slower. Its times of 66 us and more can be measured by taps on
/// interfaces.
const SLOWER: f64 = 16.0;

fn case(device: &str, bytes: u32) -> String {
    format!("{device}, {bytes} B")
}

fn sizes(run: &ExperimentRun<'_>) -> &'static [u32] {
    if run.options.full { &SIZES } else { &FEW_SIZES }
}

/// Values of the profile: both agents' mean times in microseconds, and the data path by length.
struct ProfileServiceTimes {
    to_controller_us: f64,
    from_controller_us: f64,
    profile: Profile,
}

impl ProfileServiceTimes {
    fn of(profile: Profile) -> Option<ProfileServiceTimes> {
        let ControlPathTiming::Agents { packet_in, packet_out, .. } = &profile.timing.as_ref()?.control else {
            return None;
        };
        let mean_us = |time: &Option<weir_profile::ServiceTime>| Some(time.as_ref()?.mean_s(0.0) * 1e6);
        Some(ProfileServiceTimes {
            to_controller_us: mean_us(packet_in)?,
            from_controller_us: mean_us(packet_out)?,
            profile: profile.clone(),
        })
    }

    /// Returns a device with a data path slowed by [`SLOWER`].
    fn slowed(&self) -> Result<ProfileServiceTimes, ExperimentError> {
        let mut profile = self.profile.clone();
        if let Some(data) = profile.timing.as_mut().and_then(|timing| timing.data.as_mut()) {
            data.law = data.law.as_ref().map(|law| law.scaled(SLOWER)).transpose()?;
            data.per_byte_s *= SLOWER;
        }
        Ok(ProfileServiceTimes { profile, ..*self })
    }

    fn data_us(&self, bytes: u32) -> f64 {
        let data = self.profile.timing.as_ref().and_then(|timing| timing.data.as_ref());
        data.map_or(0.0, |data| data.mean_s(bytes.into()) * 1e6)
    }
}

/// Measures in virtual time, and live if requested.
pub(crate) fn measure(run: &mut ExperimentRun<'_>) -> Result<(), ExperimentError> {
    run.simulated = true;
    let found = Profile::find(PROFILE, Path::new(".")).map_err(|error| ExperimentError::Case(error.to_string()))?;
    let wrong =
        || ExperimentError::Case(format!("profile {PROFILE}: found no agents, expected packet_in and packet_out"));
    let known = ProfileServiceTimes::of(found).ok_or_else(wrong)?;
    simulated::measure(run, &known)?;
    let claims = claims(run, &known, SIMULATED);
    run.claims.extend(claims);
    live::measure(run, &known)?;
    plots(run, &known);
    Ok(())
}

/// Adds the figures of one length, in microseconds: to the controller, in the controller, and back.
fn parts(run: &mut ExperimentRun<'_>, case: &str, parts: [SampledValue; 3]) {
    for (metric, part) in [TO_CONTROLLER, CONTROLLER, FROM_CONTROLLER].into_iter().zip(parts) {
        run.figure(case, metric, "us", part);
    }
    let all = parts.iter().map(|part| part.value).sum();
    run.figure(case, ALL, "us", SampledValue::of(all, parts[0].samples));
}

/// Returns the claims about a device.
fn claims(run: &ExperimentRun<'_>, known: &ProfileServiceTimes, device: &str) -> Vec<Claim> {
    let sizes = sizes(run);
    let mean = |metric: &str| {
        let values: Vec<f64> = sizes.iter().filter_map(|bytes| run.value(&case(device, *bytes), metric)).collect();
        (values.len() == sizes.len()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let off = |metric: &str, us: f64| mean(metric).map(|found| (found, found / us - 1.0));
    let both = off(TO_CONTROLLER, known.to_controller_us).zip(off(FROM_CONTROLLER, known.from_controller_us));
    let agents = both.map(|((to, to_off), (from, from_off))| {
        let because = format!(
            "{:.2} ms to the controller ({:+.1} %), {:.2} ms back ({:+.1} %), over all lengths",
            to / 1e3,
            to_off * 100.0,
            from / 1e3,
            from_off * 100.0
        );
        (to_off.abs() < NEAR && from_off.abs() < NEAR, because)
    });
    vec![
        tested(format!("{device}: the switch's parts of the controller's path are the profile's within 5 %"), agents),
        by_loops(run, known, device),
        by_both(run, device),
    ]
}

/// Claims that loops find the profile's data path times.
fn by_loops(run: &ExperimentRun<'_>, known: &ProfileServiceTimes, device: &str) -> Claim {
    let of = |bytes| Some((run.value(&case(device, bytes), LOOPS)?, known.data_us(bytes)));
    let text = format!("{device}: the data path, by loops, is the profile's within 5 % at every length");
    tested(text, farthest(sizes(run), device, of))
}

/// Claims that both methods find the same data path times, at lengths where 5 % of them exceeds the events'
/// resolution.
fn by_both(run: &ExperimentRun<'_>, device: &str) -> Claim {
    let text =
        format!("{device}: both methods find the same data path within 5 % at every length that events can tell");
    let loops = |bytes: &u32| run.value(&case(device, *bytes), LOOPS);
    // In virtual time events are exact.
    let blur = |bytes: &u32| run.value(&case(NATIVE, *bytes), BLUR).filter(|_| device != SIMULATED).unwrap_or(0.0);
    let told = |bytes: &u32| loops(bytes).is_none_or(|us| us * NEAR >= blur(bytes));
    let (decided, rest): (Vec<u32>, Vec<u32>) = sizes(run).iter().copied().partition(told);
    let blurred = rest.first().map(|bytes| {
        let (us, blur) = (loops(bytes).unwrap_or_default(), blur(bytes));
        format!("{} of {} lengths are too short: at {bytes} B events tell {blur:.2} us apart at best, and the data path takes {us:.2} us", rest.len(), sizes(run).len())
    });
    if decided.is_empty() {
        return Claim::untested(text, blurred.unwrap_or_default());
    }
    let found = farthest(&decided, device, |bytes| Some((run.value(&case(device, bytes), EVENTS)?, loops(&bytes)?)));
    tested(
        text,
        found.map(|(holds, because)| (holds, blurred.map_or(because.clone(), |rest| format!("{because}; {rest}")))),
    )
}

fn tested(text: String, found: Option<(bool, String)>) -> Claim {
    match found {
        Some((holds, because)) => Claim::tested(text, holds, because),
        None => Claim::untested(text, "stopped before all cases were measured"),
    }
}

/// Finds the packet length at which the two values of `of`, found and expected in us, differ most, relative to the
/// expected value. Returns true if they differ by less than [`NEAR`] there, with a description. Returns `None` if a
/// value is missing.
fn farthest(lengths: &[u32], device: &str, of: impl Fn(u32) -> Option<(f64, f64)>) -> Option<(bool, String)> {
    let mut worst: Option<(f64, String)> = None;
    for bytes in lengths {
        let (found, expected) = of(*bytes)?;
        let off = found / expected - 1.0;
        if worst.as_ref().is_none_or(|(before, _)| off.abs() > before.abs()) {
            let at = case(device, *bytes);
            worst = Some((off, format!("{found:.2} for {expected:.2} us ({at}), {:+.1} %, at most", off * 100.0)));
        }
    }
    worst.map(|(off, because)| (off.abs() < NEAR, because))
}

fn plots(run: &mut ExperimentRun<'_>, known: &ProfileServiceTimes) {
    let line = |run: &ExperimentRun<'_>, device: &str, metric: &str, name: String| {
        let point = |bytes: &u32| Some(ChartPoint::new((*bytes).into(), run.value(&case(device, *bytes), metric)?));
        ChartSeries::line(name, SIZES.iter().filter_map(point).collect())
    };
    let devices = [SIMULATED, EMULATED, SLOWED, NATIVE];
    let mut data: Vec<ChartSeries> =
        devices.iter().map(|device| line(run, device, LOOPS, (*device).to_owned())).collect();
    let law = SIZES.iter().map(|bytes| ChartPoint::new((*bytes).into(), known.data_us(*bytes)));
    data.push(ChartSeries::line("the profile", law.collect()));
    let control = devices[..2].iter().flat_map(|device| {
        [TO_CONTROLLER, FROM_CONTROLLER].map(|metric| line(run, device, metric, format!("{metric}, {device}")))
    });
    let control: Vec<ChartSeries> = control.collect();
    let chart = |name: &str, title: &str, series: Vec<ChartSeries>| Chart {
        name: name.into(),
        title: title.into(),
        x: Axis::linear("frame length, bytes"),
        y: Axis::linear("service time, us"),
        series: series.into_iter().filter(|line| !line.points.is_empty()).collect(),
    };
    let made = [
        chart("data-path", "Data path by loops (Table 4.3)", data),
        chart("control-path", "The switch's parts of the controller's path (Table 4.1)", control),
    ];
    run.plots.extend(made.map(Into::into));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ExperimentOptions;

    /// Claims that cannot be decided remain untested and give the reason.
    #[test]
    fn what_events_cannot_tell_is_not_judged() {
        let (options, mut tell) = (ExperimentOptions::default(), |_: &str| ());
        let mut run = ExperimentRun::new(&options, crate::tests::sizes(std::time::Duration::from_secs(1)), &mut tell);
        for (bytes, [events, loops]) in FEW_SIZES.iter().zip([[6.0, 4.0], [60.5, 60.0], [130.0, 100.0]]) {
            run.figure(&case(EMULATED, *bytes), EVENTS, "us", SampledValue::of(events, 1));
            run.figure(&case(EMULATED, *bytes), LOOPS, "us", SampledValue::of(loops, 1));
            run.figure(&case(NATIVE, *bytes), BLUR, "us", SampledValue::of(1.5, 1));
        }
        let claim = by_both(&run, EMULATED);
        assert_eq!(claim.holds, Some(false));
        assert!(
            claim.because.contains("+30.0 %") && claim.because.contains("1 of 3 lengths are too short: at 100 B"),
            "{}",
            claim.because
        );
        for bytes in FEW_SIZES {
            run.figure(&case(SLOWED, bytes), LOOPS, "us", SampledValue::of(20.0, 1));
        }
        assert_eq!(by_both(&run, SLOWED).holds, None);
    }

    #[test]
    fn a_slowed_device_takes_as_many_times_as_long() {
        let known = ProfileServiceTimes::of(Profile::find(PROFILE, Path::new(".")).unwrap()).unwrap();
        let slowed = known.slowed().unwrap();
        for bytes in SIZES {
            assert!((slowed.data_us(bytes) / known.data_us(bytes) - SLOWER).abs() < 1e-9);
        }
        assert_eq!(slowed.to_controller_us, known.to_controller_us);
    }

    #[test]
    fn both_methods_find_the_profiles_times_in_virtual_time() {
        let options = ExperimentOptions { seed: 1, ..ExperimentOptions::default() };
        let report = crate::find("service-times").unwrap().run(&options, &mut |_| ()).unwrap();
        assert!(report.holds(), "{report}");
        assert_eq!(report.claims.iter().filter(|claim| claim.holds == Some(true)).count(), 3, "{report}");
        let data = report.figure("x510 in virtual time, 600 B", super::LOOPS).unwrap();
        assert!((data - 8.116).abs() < 0.01, "{data}");
        assert!(report.figures.iter().any(|figure| figure.published.is_some()));
    }
}
