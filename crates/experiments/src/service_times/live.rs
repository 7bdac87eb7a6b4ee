//! Measures service times live by both methods. Events are the kernel's time stamps of a packet at interfaces: where
//! it is sent, where it is received, and on the control channel in between. Loops use cables in memory from one port
//! of the switch to another.
use super::{
    BLUR, EMULATED, EVENTS, HOP, LOOPS, NATIVE, ProfileServiceTimes, SLOWED, VISITS, by_both, case, claims, parts,
    sizes,
};
use crate::live::{ASKING, AWAKE, ControlChannelKind, PORTS, SwitchWithController};
use crate::report::Claim;
use crate::{ExperimentError, ExperimentRun, SampledValue};
use std::time::Duration;
use weir_emulator::VethPairSet;
use weir_generator::per_visit::{self, DelayGrowth};
use weir_generator::{FrameSpec, TrafficRun, TrafficRunConfig, TrafficRunReport, TrafficSenderConfig};
use weir_openflow::model::PortNo;
use weir_port::{Port, memory};
use weir_profile::Profile;
use weir_traffic::recorder::PathSection;
use weir_traffic::{ArrivalProcess, FlowMix, OfferedPackets, OfferedTraffic, PacketSizeLaw, TimeStatistics};

/// Packets per second through the controller, for the small and the published size; at both the switch is idle when a
/// packet arrives.
const ASKING_PPS: [f64; 2] = [40.0, 10.0];
/// Packets per second that stay on the data path.
const PASSING_PPS: f64 = 500.0;
/// Divisor of a case's time for the data path and for each number of visits.
const SHARE: u32 = 4;
/// Number of rounds of loops.
const ROUNDS: u32 = 3;
/// Maximum number of attempts until a measurement has packets.
const TRIES: u32 = 10;
/// Time before packets count, for addresses, caches and threads to warm up.
const WARM_UP: Duration = Duration::from_millis(200);
/// Capacity of a cable in frames.
const CABLE: usize = 1024;
/// Name of the tap on the control channel.
const TAP: &str = "control";
/// Name of the tap where packets enter the switch.
const INLET: &str = "inlet";

pub(super) fn measure(run: &mut ExperimentRun<'_>, known: &ProfileServiceTimes) -> Result<(), ExperimentError> {
    let why_not =
        if run.options.live { VethPairSet::missing() } else { Some("ask for it: --live, as root".to_owned()) };
    if let Some(why) = why_not {
        run.live_claims.push(Claim::untested("live, both methods find the profile's times within 5 %", why));
        return Ok(());
    }
    let pairs = VethPairSet::make(2)?;
    let slowed = known.slowed()?;
    for (device, known) in [(NATIVE, None), (EMULATED, Some(known)), (SLOWED, Some(&slowed))] {
        let profile = known.map(|known| &known.profile);
        by_events(run, device, profile, &pairs)?;
        by_loops(run, device, profile)?;
        if run.is_stopped() {
            return Ok(());
        }
    }
    blurs(run);
    let mut made = claims(run, known, EMULATED);
    made.extend([super::by_loops(run, &slowed, SLOWED), by_both(run, SLOWED)]);
    run.live_claims.extend(made);
    run.note("live: cables of the loop method are in memory; those of the network-event method are pairs of interfaces of the kernel: from when the kernel saw a packet where it goes into the switch to when it saw it come out; of weir as it is, less what the rig itself takes from sending a packet to its being seen, by which a switch with a profile sends earlier");
    run.note("live: events cannot tell apart what they see of weir as it is, beyond what loops see of it: looking at interfaces, and sending by them, are system calls");
    run.note("live: the controller answers at once, where the published one took 7.5 ms");
    Ok(())
}

/// Adds the figure of the events' resolution: the difference between events and loops on a switch that takes almost
/// no time.
fn blurs(run: &mut ExperimentRun<'_>) {
    for bytes in sizes(run) {
        let case = case(NATIVE, *bytes);
        if let (Some(events), Some(loops)) = (run.value(&case, EVENTS), run.value(&case, LOOPS)) {
            run.figure(&case, BLUR, "us", SampledValue::of((events - loops).abs(), 1));
        }
    }
}

/// Measures by network events: the data path, and the controller's path unless the device differs from another one
/// only in its data path.
fn by_events(
    run: &mut ExperimentRun<'_>,
    device: &str,
    profile: Option<&Profile>,
    pairs: &VethPairSet,
) -> Result<(), ExperimentError> {
    let ([near, inlet], [outlet, far]) = (pairs.ends(0), pairs.ends(1));
    let ports = vec![open(inlet)?, open(outlet)?];
    let switch = SwitchWithController::start(
        profile,
        ports,
        ControlChannelKind::Tcp,
        (AWAKE, run.options.seed),
        &run.options.cancel,
    )?;
    switch.forward()?;
    let time = run.sizes.time.0;
    for bytes in sizes(run) {
        let case = case(device, *bytes);
        run.tell(&format!("{case}, events"));
        if device != SLOWED && !by_controller(run, &case, *bytes, near, far)? {
            return Ok(());
        }
        let passing = (PASSING_PPS, *bytes, 9);
        let ends = || Ok::<_, ExperimentError>([open(near)?, open(far)?]);
        let through = || sent(run, passing, time / SHARE, ends()?, vec![(INLET.to_owned(), open(inlet)?)]);
        let Some(passed) = with_packets(through)? else { return Ok(()) };
        let path = passed.path.ok_or_else(|| wrong(&case, "no report of the tap"))?.parts;
        let through = delay(&path, &case, &format!("{INLET} 1"), "received")?;
        // Delay of the setup itself: from one end of a pair to the other, received at the inlet and not by way of the
        // switch.
        let hop = || sent(run, passing, time / SHARE, [open(near)?, open(inlet)?], Vec::new());
        let Some(direct) = with_packets(hop)? else { return Ok(()) };
        let hop = direct.received.and_then(|all| all.delay).ok_or_else(|| wrong(&case, "no packets"))?;
        // A switch with a profile compensates for this delay: it sends packets that much before they are due.
        let own_us = if device == NATIVE { hop.p50_us } else { 0.0 };
        run.figure(&case, EVENTS, "us", SampledValue::of(through.p50_us - own_us, through.samples));
        run.figure(&case, HOP, "us", SampledValue::of(hop.p50_us, hop.samples));
    }
    note_lateness(run, device, &switch)
}

/// Measures the parts of the controller's path. Returns false if stopped.
fn by_controller(
    run: &mut ExperimentRun<'_>,
    case: &str,
    bytes: u32,
    near: &str,
    far: &str,
) -> Result<bool, ExperimentError> {
    let pps = ASKING_PPS[usize::from(run.options.full)];
    let time = run.sizes.time.0;
    let measure = || {
        let tap = (TAP.to_owned(), open("lo")?);
        sent(run, (pps, bytes, ASKING), time, [open(near)?, open(far)?], vec![tap])
    };
    let Some(asked) = with_packets(measure)? else { return Ok(false) };
    let path = asked.path.ok_or_else(|| wrong(case, "no report of the tap"))?.parts;
    let [first, second] = [1, 2].map(|time| format!("{TAP} {time}"));
    let part = |from: &str, to: &str| {
        let TimeStatistics { mean_us, sd_us, samples, .. } = delay(&path, case, from, to)?;
        Ok::<_, ExperimentError>(SampledValue { value: mean_us, sd: Some(sd_us), samples })
    };
    parts(run, case, [part("sent", &first)?, part(&first, &second)?, part(&second, "received")?]);
    Ok(true)
}

fn note_lateness(
    run: &mut ExperimentRun<'_>,
    device: &str,
    switch: &SwitchWithController,
) -> Result<(), ExperimentError> {
    if let Some([p50, p99]) = switch.lateness_us()? {
        run.note(format!(
            "{device}: what was due was released {p50:.1} us late in the middle, {p99:.1} us at the 99th percentile"
        ));
    }
    Ok(())
}

fn delay(path: &[PathSection], case: &str, from: &str, to: &str) -> Result<TimeStatistics, ExperimentError> {
    let found = path.iter().find(|part| part.from == from && part.to == to);
    Ok(found.ok_or_else(|| wrong(case, &format!("no packet was seen from {from} to {to}")))?.delay)
}

/// Measures by loops. The median of several rounds counts, because a disturbance during the run with three visits is
/// not part of a visit's time.
fn by_loops(run: &mut ExperimentRun<'_>, device: &str, profile: Option<&Profile>) -> Result<(), ExperimentError> {
    for bytes in sizes(run) {
        let case = case(device, *bytes);
        run.tell(&format!("{case}, loops"));
        let mut rounds = Vec::new();
        for _ in 0..ROUNDS {
            let Some(found) = round(run, profile, *bytes)? else { return Ok(()) };
            rounds.push(found);
        }
        rounds.sort_by(|one, other| one.per_visit_us.total_cmp(&other.per_visit_us));
        let found = rounds[rounds.len() / 2];
        run.figure(&case, LOOPS, "us", SampledValue::of(found.per_visit_us, u64::from(ROUNDS) * VISITS.len() as u64));
        if found.r2 < 0.99 {
            run.note(format!("{case}: visits explain {:.1} % of the differences between loops", found.r2 * 100.0));
        }
    }
    Ok(())
}

/// Measures each number of visits once. Returns the growth of the median delay with the visits, or `None` if stopped.
fn round(
    run: &ExperimentRun<'_>,
    profile: Option<&Profile>,
    bytes: u32,
) -> Result<Option<DelayGrowth>, ExperimentError> {
    let time = run.sizes.time.0 / SHARE / ROUNDS;
    let mut reports = Vec::new();
    for visits in VISITS {
        let visit = || {
            let ([near, inlet], [outlet, far]) = (cable()?, cable()?);
            let mut ports = vec![inlet, outlet];
            for _ in 1..visits {
                ports.extend(cable()?);
            }
            let spin = (AWAKE, run.options.seed);
            let switch =
                SwitchWithController::start(profile, ports, ControlChannelKind::Within, spin, &run.options.cancel)?;
            switch.pass(&ways(visits))?;
            sent(run, (PASSING_PPS, bytes, 9), time, [near, far], Vec::new())
        };
        match with_packets(visit)? {
            Some(report) => reports.push((f64::from(visits), report)),
            None => return Ok(None),
        }
    }
    Ok(Some(per_visit::per_visit(&reports).map_err(failed)?.median))
}

/// Returns the pairs of ports for packets that visit the switch `visits` times: from the inlet through one cable
/// after the other, then out.
fn ways(visits: u32) -> Vec<(PortNo, PortNo)> {
    let [inlet, outlet] = PORTS;
    let entries = (1..visits).map(|cable| PortNo(1 + 2 * cable));
    let exits = (1..visits).map(|cable| PortNo(2 + 2 * cable));
    let from = std::iter::once(inlet).chain(exits);
    from.zip(entries.chain([outlet])).collect()
}

/// Measures until packets arrive, [`TRIES`] times at most, because a busy machine may stop the sender for all of a
/// short measurement.
fn with_packets(
    mut measure: impl FnMut() -> Result<Option<TrafficRunReport>, ExperimentError>,
) -> Result<Option<TrafficRunReport>, ExperimentError> {
    let arrived = |report: &TrafficRunReport| report.received.as_ref().is_some_and(|all| all.delay.is_some());
    for _ in 1..TRIES {
        let report = measure()?;
        if report.as_ref().is_none_or(arrived) {
            return Ok(report);
        }
    }
    measure()
}

/// Sends packets at a rate for `time` to a UDP port. Returns the report, or `None` if stopped.
fn sent(
    run: &ExperimentRun<'_>,
    (pps, bytes, port): (f64, u32, u16),
    time: Duration,
    [near, far]: [Box<dyn Port>; 2],
    taps: Vec<(String, Box<dyn Port>)>,
) -> Result<Option<TrafficRunReport>, ExperimentError> {
    let offered =
        OfferedPackets::Rule { arrival: ArrivalProcess::Constant, per_second: pps, size: PacketSizeLaw::Fixed(bytes) };
    let frames = FrameSpec { udp: [1024, port], ..FrameSpec::default() };
    let offer = OfferedTraffic::Packets { offered, flows: FlowMix::default() };
    let source = TrafficSenderConfig { offer, replay: None, frames, seed: run.options.seed };
    let config = TrafficRunConfig { duration: Some(time), warm_up: WARM_UP, ..TrafficRunConfig::default() };
    let rig = TrafficRun::new(config, Some((source, near)), Some(far), taps).map_err(failed)?;
    let report = rig.run(&mut || run.is_stopped(), &mut |_| ()).map_err(failed)?;
    Ok((!run.is_stopped()).then_some(report))
}

fn cable() -> Result<[Box<dyn Port>; 2], ExperimentError> {
    let (a, b) = memory::pair(CABLE).map_err(|error| ExperimentError::Case(error.to_string()))?;
    Ok([Box::new(a), Box::new(b)])
}

fn open(device: &str) -> Result<Box<dyn Port>, ExperimentError> {
    let wrong = |error: weir_port::PortError| ExperimentError::Case(error.to_string());
    weir_port::open(&format!("af_packet:{device}").parse().map_err(wrong)?).map_err(wrong)
}

fn failed(error: weir_generator::GeneratorError) -> ExperimentError {
    ExperimentError::Case(error.to_string())
}

fn wrong(case: &str, problem: &str) -> ExperimentError {
    ExperimentError::Case(format!("{case}: {problem}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Times on a machine can be too long, never too short: the profile's agents take at least 4 ms. The time per
    /// visit is a difference, which a busy machine can distort in any direction.
    #[test]
    fn a_live_switch_takes_its_profiles_times() {
        if !weir_testing::root() {
            return;
        }
        let options = crate::ExperimentOptions { live: true, seed: 1, ..Default::default() };
        let mut tell = |_: &str| ();
        let mut run = ExperimentRun::new(&options, crate::tests::sizes(Duration::from_millis(400)), &mut tell);
        let known =
            ProfileServiceTimes::of(Profile::find(super::super::PROFILE, std::path::Path::new(".")).unwrap()).unwrap();
        measure(&mut run, &known).unwrap();
        for bytes in sizes(&run) {
            let value = |metric| run.value(&case(EMULATED, *bytes), metric).unwrap();
            assert!(value(super::super::TO_CONTROLLER) >= 4000.0 && value(super::super::FROM_CONTROLLER) >= 4000.0);
            assert!(value(LOOPS).is_finite());
            assert!(run.value(&case(NATIVE, *bytes), BLUR).is_some());
            assert!(run.value(&case(SLOWED, *bytes), EVENTS).is_some());
        }
        assert_eq!(run.live_claims.len(), 5);
    }

    #[test]
    fn cables_follow_each_other() {
        let numbers = |visits| ways(visits).into_iter().map(|(from, to)| (from.0, to.0)).collect::<Vec<_>>();
        assert_eq!(numbers(1), [(1, 2)]);
        assert_eq!(numbers(3), [(1, 3), (4, 5), (6, 2)]);
    }
}
