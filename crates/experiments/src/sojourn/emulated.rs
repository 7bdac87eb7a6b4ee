//! Compares a simulation of the published device with its emulation. The simulation is a network of stations with the
//! times of the device's profile. The emulation is a live switch with this profile, which gets packets at one port and
//! forwards them to another, and a controller that returns every packet. Cases of a sweep run one at a time, each for
//! its published duration within bounds.
use super::{loss, over, simulate_scenario, sojourn_ms};
use crate::live::{ASKING, ControlChannelKind, SwitchWithController};
use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::path::Path;
use std::time::Duration;
use weir_generator::{FrameSpec, TrafficRun, TrafficRunConfig, TrafficRunReport, TrafficSenderConfig};
use weir_model::fit::quantiles::MedianAndSpread;
use weir_port::memory;
use weir_profile::Profile;
use weir_sim::stations::QueueingRunResult;
use weir_switch::Spin;
use weir_traffic::{ArrivalProcess, FlowMix, OfferedPackets, OfferedTraffic, PacketSizeLaw};

/// Name of the device's profile.
const PROFILE: &str = "at-x510";
/// Delay above which a packet counts as sent through the controller. Such a packet waits for the controller path's 4
/// ms ticks on the way there and back. Machines that stop for a millisecond or more, as shared ones do several times
/// a second, delay packets on the data path, too; stops as long as this are rare.
const SLOW: Duration = Duration::from_millis(7);
/// Warm-up before packets count, in cases in which the path through the controller is not overloaded: in the published
/// size, and in the small one.
const WARM_UP: Duration = Duration::from_secs(4);
const FEW_WARM_UP: Duration = Duration::from_secs(2);
/// Warm-up in overloaded cases, until the queues of the path through the controller are full. The queue of the second
/// agent grows slowly: the first agent passes 177 packets per second (5.64 ms each), and the second one 165.
const FILLING: Duration = Duration::from_secs(20);
/// Packets per second that the slower of the two agents can pass: 6.04 ms each.
const PASSED: f64 = 165.0;
/// Time to wait for packets in transit after sending ends: as long as the agents' queues take.
const DRAIN: Duration = Duration::from_millis(500);
/// Capacity, in frames, of each memory port between the traffic generator and the switch.
const CABLE: usize = 1 << 14;
const SOJOURN: &str = "mean sojourn";
const LOSS: &str = "loss";
const EFFECTIVE: &str = "effective P_nf";
/// Metric: share of packets that went through the controller, as the packets themselves are marked. It equals the
/// effective P_nf, which is computed from delays, if the machine never stops for long.
const ASKED: &str = "of them began a flow";
/// Maximum accepted relative difference of the emulated mean sojourn from the simulated one, in the median over all
/// cases.
const NEAR: f64 = 0.1;
/// Maximum accepted difference of the emulated loss from the simulated one, in percentage points.
const NEAR_LOSS: f64 = 2.0;

/// A case of a sweep: share of packets that begin a flow (P_nf), packets per second, and frame length in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct EmulatedCase {
    pub(super) share: f64,
    pub(super) rate: u32,
    pub(super) bytes: u32,
}

impl EmulatedCase {
    pub(super) fn case(&self, how: &str) -> String {
        format!("at-x510, {how}, P_nf {}, {} B, {} packets/s", self.share, self.bytes, self.rate)
    }

    /// Returns how long the switch runs before packets count.
    fn warm_up(&self, is_full: bool) -> Duration {
        match (self.share * f64::from(self.rate) > PASSED, is_full) {
            (true, _) => FILLING,
            (false, true) => WARM_UP,
            (false, false) => FEW_WARM_UP,
        }
    }

    /// Returns the text of the case's scenario, for the simulation as stations.
    fn scenario(&self) -> String {
        let EmulatedCase { share, rate, bytes } = self;
        let host = |name: &str, last: u8| {
            format!("[[host]]\nname = \"{name}\"\nswitch = \"x510\"\nip = \"10.0.0.{last}/24\"\n")
        };
        format!(
            "[controller]\napp = \"learning\"\n[[switch]]\nname = \"x510\"\nprofile = \"{PROFILE}\"\n{}{}[[traffic]]\nkind = \"udp\"\nfrom = \"h1\"\nto = \"h2\"\n\
             arrival = \"poisson\"\nrate = {rate}\npayload = \"{}B\"\nnew_flows = {share}\n",
            host("h1", 1),
            host("h2", 2),
            bytes - super::HEADERS
        )
    }
}

/// Simulates each case, emulates it on a live switch for `time`, adds the figures of both to the report, and adds
/// claims that they are close. Does nothing but add a note if live switches are not requested (`--live`).
pub(super) fn measure(
    run: &mut ExperimentRun<'_>,
    cases: &[EmulatedCase],
    time: Duration,
) -> Result<(), ExperimentError> {
    if !run.options.live {
        run.note("the at-x510 emulated beside its simulation: ask for it, --live");
        return Ok(());
    }
    let profile = Profile::find(PROFILE, Path::new(".")).map_err(|error| ExperimentError::Case(error.to_string()))?;
    let mut pairs = Vec::new();
    for case in cases {
        let name = case.case("simulated");
        let Some(simulated) = simulate_scenario(run, &name, &case.scenario())? else { return Ok(()) };
        figures(run, &name, of_stations(&simulated));
        let name = case.case("emulated");
        run.tell(&name);
        let Some(report) = one(run, case, &profile, time)? else { return Ok(()) };
        let Some(emulated) = of_report(&report) else { continue };
        let expected = of_stations(&simulated);
        figures(run, &name, emulated);
        if let Some(asked) = asked(&report) {
            run.figure(&name, ASKED, "%", asked);
        }
        pairs.push((*case, expected, emulated));
    }
    claims(run, &pairs)
}

/// Figures of a case: mean sojourn in milliseconds, loss in percent, effective P_nf in percent.
type SojournFigures = [SampledValue; 3];

fn figures(run: &mut ExperimentRun<'_>, case: &str, found: SojournFigures) {
    let metrics = [(SOJOURN, "ms"), (LOSS, "%"), (EFFECTIVE, "%")];
    for ((metric, unit), value) in metrics.into_iter().zip(found) {
        run.figure(case, metric, unit, value);
    }
}

fn of_stations(results: &[QueueingRunResult]) -> SojournFigures {
    let held_up = |result: &QueueingRunResult| {
        100.0 * result.switches[0].held_up as f64 / result.switches[0].passed.max(1) as f64
    };
    [over(results, |result| sojourn_ms(result, true)), over(results, loss), over(results, held_up)]
}

fn of_report(report: &TrafficRunReport) -> Option<SojournFigures> {
    let received = report.received.as_ref()?;
    let delay = received.delay?;
    let percent = |share: Option<f64>| share.unwrap_or(0.0) * 100.0;
    Some([
        SampledValue { value: delay.mean_us / 1e3, sd: None, samples: delay.samples },
        SampledValue::of(percent(received.loss), received.sent),
        SampledValue::of(percent(received.effective_new), delay.samples),
    ])
}

/// Returns the share of received packets that went through the controller, in percent.
fn asked(report: &TrafficRunReport) -> Option<SampledValue> {
    let received = report.received.as_ref()?;
    let (all, new) = (received.delay?.samples, received.new_flows.map_or(0, |new| new.samples));
    Some(SampledValue::of(100.0 * new as f64 / all.max(1) as f64, all))
}

/// Emulates one case on a live switch for `time`. Returns `None` if the user stopped the run.
fn one(
    run: &ExperimentRun<'_>,
    case: &EmulatedCase,
    profile: &Profile,
    time: Duration,
) -> Result<Option<TrafficRunReport>, ExperimentError> {
    let failed = |error: std::io::Error| ExperimentError::Case(error.to_string());
    let ((near, inlet), (outlet, far)) = (memory::pair(CABLE).map_err(failed)?, memory::pair(CABLE).map_err(failed)?);
    let cancel = &run.options.cancel;
    let switch = SwitchWithController::start(
        Some(profile),
        vec![Box::new(inlet), Box::new(outlet)],
        ControlChannelKind::Within,
        (Spin::Auto, run.options.seed),
        cancel,
    )?;
    switch.forward()?;
    let offered = OfferedPackets::Rule {
        arrival: ArrivalProcess::Poisson,
        per_second: case.rate.into(),
        size: PacketSizeLaw::Fixed(case.bytes),
    };
    let offer = OfferedTraffic::Packets { offered, flows: FlowMix { new: case.share, ..FlowMix::default() } };
    let frames = FrameSpec { new_flow_port: Some(ASKING), ..FrameSpec::default() };
    let source = TrafficSenderConfig { offer, replay: None, frames, seed: run.options.seed };
    let warm_up = case.warm_up(run.options.full);
    let config = TrafficRunConfig {
        duration: Some(time),
        warm_up,
        drain: DRAIN,
        threshold: Some(SLOW),
        ..TrafficRunConfig::default()
    };
    let wrong = |error: weir_generator::GeneratorError| ExperimentError::Case(error.to_string());
    let rig =
        TrafficRun::new(config, Some((source, Box::new(near))), Some(Box::new(far)), Vec::new()).map_err(wrong)?;
    let report = rig.run(&mut || run.is_stopped(), &mut |_| ()).map_err(wrong)?;
    Ok((!run.is_stopped()).then_some(report))
}

fn claims(
    run: &mut ExperimentRun<'_>,
    pairs: &[(EmulatedCase, SojournFigures, SojournFigures)],
) -> Result<(), ExperimentError> {
    if pairs.is_empty() {
        return Ok(());
    }
    let off = |(_, expected, found): &(EmulatedCase, SojournFigures, SojournFigures)| {
        (found[0].value / expected[0].value - 1.0).abs()
    };
    let all: Vec<f64> = pairs.iter().map(off).collect();
    let middle = MedianAndSpread::of(&all)?.median;
    let worst = pairs.iter().max_by(|a, b| off(a).total_cmp(&off(b)));
    let at = worst.map_or_else(String::new, |worst| {
        format!("{:.1} % at most ({})", off(worst) * 100.0, worst.0.case("emulated"))
    });
    run.live_claims.push(Claim::tested(
        "the emulated at-x510's mean sojourns are the simulated ones' within 10 % in the middle of the cases",
        middle < NEAR,
        format!("{:.1} % in the middle of {} cases, {at}", middle * 100.0, pairs.len()),
    ));
    let losses = pairs.iter().map(|(case, expected, found)| ((found[1].value - expected[1].value).abs(), case));
    let (apart, case) = losses.fold((0.0, None), |a, b| if b.0 > a.0 { (b.0, Some(b.1)) } else { a });
    let at = case.map_or_else(String::new, |case| format!(" ({})", case.case("emulated")));
    run.live_claims.push(Claim::tested(
        "its losses are the simulated ones within 2 % of the packets",
        apart < NEAR_LOSS,
        format!("{apart:.2} % of the packets apart at most{at}"),
    ));
    run.note("at-x510: its profile has the idle service times of Table 4.1 and queues of 200, no writes and no controller that takes time: not the measured path's capacity of 70 a second");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_scenario::Scenario;

    /// Checks only lower bounds, because the closeness depends on the machine: packets take at least the profile's
    /// times, on the data path and through the controller.
    #[test]
    fn a_case_is_measured_both_ways() {
        let options = crate::ExperimentOptions { live: true, seed: 1, ..Default::default() };
        let mut tell = |_: &str| ();
        let mut run = ExperimentRun::new(&options, crate::tests::sizes(Duration::from_secs(20)), &mut tell);
        let case = EmulatedCase { share: 0.02, rate: 1000, bytes: 600 };
        measure(&mut run, &[case], Duration::from_secs(2)).unwrap();
        for how in ["simulated", "emulated"] {
            let value = |metric| run.value(&case.case(how), metric).unwrap();
            assert!(value(SOJOURN) >= 0.008 && value(EFFECTIVE) > 0.5 && (0.0..=100.0).contains(&value(LOSS)), "{how}");
        }
        // Every packet through the controller took longer than the threshold.
        let value = |metric| run.value(&case.case("emulated"), metric).unwrap();
        assert!(value(EFFECTIVE) >= value(ASKED) - 1e-9 && value(ASKED) > 0.5);
        assert_eq!(run.live_claims.len(), 2);
    }

    #[test]
    fn without_being_asked_nothing_is_live() {
        let (options, mut tell) = (crate::ExperimentOptions::default(), |_: &str| ());
        let mut run = ExperimentRun::new(&options, crate::tests::sizes(Duration::from_secs(1)), &mut tell);
        measure(&mut run, &[EmulatedCase { share: 0.02, rate: 1000, bytes: 600 }], Duration::from_secs(1)).unwrap();
        assert!(run.figures.is_empty() && run.live_claims.is_empty() && run.notes[0].contains("--live"));
    }

    #[test]
    fn queues_that_overflow_are_filled_first() {
        let case = |rate| EmulatedCase { share: 0.02, rate, bytes: 600 };
        assert_eq!((case(5_000).warm_up(true), case(15_000).warm_up(false)), (WARM_UP, FILLING));
    }

    #[test]
    fn cases_are_scenarios_with_the_profile() {
        let case = EmulatedCase { share: 0.25, rate: 100, bytes: 600 };
        let scenario = Scenario::parse(&case.scenario(), "case").unwrap();
        let timing = scenario.switches[0].timing.as_ref().unwrap();
        assert!(
            matches!(timing.control, weir_profile::ControlPathTiming::Agents { buffer: Some(200), .. }),
            "{timing:?}"
        );
        assert!(weir_sim::stations::plan(&scenario).is_ok());
    }
}
