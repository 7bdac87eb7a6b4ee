//! Reactive path provisioning: time (RFC 8456, sections 5.1.4 and A.4.4) and rate (5.1.6 and A.4.6).
use super::messages::{finished, note_prerequisite};
use super::offer::{OfferedHosts, OfferedPace, OfferedStream};
use super::results::{TestOutcome, TrialTable};
use super::subject::TestSubject;
use super::testbed::{QUIET, Testbed};
use std::time::Duration;

/// Time after which a stream's next frame follows if the first has not arrived.
const AGAIN: Duration = Duration::from_millis(100);
/// Longest wait for a quiet controller after a trial.
const CALM: Duration = Duration::from_secs(30);
/// Frames on the way at once, if as many paths are asked for as are provisioned.
const ON_THE_WAY: u32 = 128;
/// Paths of the first trial, by which the number of paths of the others is chosen; and what they have more than the
/// first rate needs.
const PILOT_PATHS: u32 = 200;
const MORE: f64 = 1.3;

/// Reason why a network with loops gives no result (section 4.1).
pub(super) const STORM: &str = "frames circle in the network: the controller floods and prevents no loops (RFC 8456, \
                                section 4.1); use a topology without loops (--spines 1, or --topology line)";

/// Times of a provisioned path in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathTimes {
    /// From the first request to the last response at I1 (section 5.1.4).
    pub(super) provisioning: f64,
    /// From the frame at TP1 to its arrival at TP2 (section A.4.4).
    pub(super) traffic: f64,
    pub(super) flow_mods: u64,
}

/// Provisions one path to a host that has made itself known. Returns the reason if there is no result.
///
/// # Errors
/// The system cannot wait for sockets.
pub(super) fn path_trial(bed: &mut Testbed, bytes: usize, time: Duration) -> anyhow::Result<Result<PathTimes, String>> {
    let (stream, base) = bed.fresh(1);
    bed.announce(1, base, 1)?;
    bed.network.seen.mark();
    bed.network.arrivals[1].expect(stream);
    let begin = bed.now();
    let pace = (OfferedPace::Every(AGAIN), u32::MAX);
    bed.network.streams = vec![OfferedStream::new(begin, (0, stream), (OfferedHosts::OnePair, base), pace, bytes)];
    bed.run(time, |network| network.arrivals[1].unique() > 0 || network.is_storming())?;
    bed.network.streams.clear();
    bed.wait_quiet(QUIET, CALM);
    let seen = bed.network.seen.marked;
    if bed.network.is_storming() {
        return Ok(Err(STORM.to_owned()));
    }
    let Some((arrived, _)) = bed.network.arrivals[1].log.first().copied() else {
        return Ok(Err("no frame arrived at TP2 within the trial".to_owned()));
    };
    let (Some(asked), Some(answered)) = (seen.first_request, seen.last_response) else {
        return Ok(Err("the switches did not have to ask the controller".to_owned()));
    };
    if seen.flow_mods == 0 {
        return Ok(Err("the controller provisions no flow entries: it forwards each packet itself".to_owned()));
    }
    Ok(Ok(PathTimes {
        provisioning: answered.since(asked).as_secs_f64(),
        traffic: arrived.since(begin).as_secs_f64(),
        flow_mods: seen.flow_mods,
    }))
}

/// Measures the reactive path provisioning time.
///
/// # Errors
/// The controller cannot be reached.
pub(super) fn reactive_time(subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    let settings = subject.settings;
    let mut outcome = TestOutcome::default();
    let mut bed = subject.deploy()?;
    note_prerequisite(&mut outcome, bed.discovery);
    for bytes in &settings.frame_sizes {
        let columns = [("RPT", "ms"), ("TP1 to TP2 (A.4.4)", "ms"), ("flow-mods", "")];
        let mut table = TrialTable::new(format!("frames of {bytes} bytes"), &columns);
        for _ in 0..settings.trials {
            if subject.is_over() {
                break;
            }
            let trial = path_trial(&mut bed, *bytes, settings.trial())?;
            if subject.cancel.is_cancelled() {
                break;
            }
            match trial {
                Ok(times) => table.trial(vec![
                    Some(times.provisioning * 1e3),
                    Some(times.traffic * 1e3),
                    Some(times.flow_mods as f64),
                ]),
                Err(reason) => table.failed_trial(reason),
            }
        }
        outcome.append(finished(subject, table, "no path was provisioned"));
    }
    note_path(subject, &mut outcome);
    subject.note_discovery(&bed);
    Ok(outcome)
}

/// Result of a trial of the rate.
#[derive(Debug, Clone, Copy)]
pub(super) struct PathRate {
    /// Paths a second (Ndf/Td).
    pub(super) provisioned: f64,
    /// Frames with a new pair of addresses a second.
    pub(super) offered: f64,
    pub(super) arrived: u64,
    /// Duration of the trial in seconds.
    pub(super) time_s: f64,
}

/// Asks for `count` paths for a time. The trial ends early, and its duration is shorter, if all are provisioned.
/// Returns the reason if there is no result.
///
/// # Errors
/// The system cannot wait for sockets.
pub(super) fn rate_trial(
    bed: &mut Testbed,
    bytes: usize,
    (pace, count): (OfferedPace, u32),
    time: Duration,
) -> anyhow::Result<Result<PathRate, String>> {
    let (stream, base) = bed.fresh(count);
    bed.announce(1, base, count)?;
    bed.network.seen.mark();
    bed.network.arrivals[1].expect(stream);
    let begin = bed.now();
    bed.network.streams =
        vec![OfferedStream::new(begin, (0, stream), (OfferedHosts::NewPairs, base), (pace, count), bytes)];
    let all = count as usize;
    bed.run(time, |network| network.arrivals[1].unique() >= all || network.is_storming())?;
    let sent = bed.network.streams.first().map_or(0, |stream| stream.sent);
    bed.network.streams.clear();
    let end = begin + time;
    let arrivals = bed.network.arrivals[1].log.iter().take_while(|(at, _)| *at <= end);
    let (arrived, last) = arrivals.fold((0, begin), |(count, _), (at, _)| (count + 1, *at));
    let flow_mods = bed.network.seen.marked.flow_mods;
    // A controller that has fallen behind works off what was asked.
    bed.wait_quiet(QUIET * 3, CALM);
    if bed.network.is_storming() {
        return Ok(Err(STORM.to_owned()));
    }
    if arrived == 0 {
        return Ok(Err("no frame arrived at TP2 within the trial".to_owned()));
    }
    if flow_mods == 0 {
        return Ok(Err("the controller provisions no flow entries: it forwards each packet itself".to_owned()));
    }
    let is_all = arrived >= u64::from(count);
    let time_s = if is_all { last.since(begin).as_secs_f64().max(1e-6) } else { time.as_secs_f64() };
    Ok(Ok(PathRate { provisioned: arrived as f64 / time_s, offered: f64::from(sent) / time_s, arrived, time_s }))
}

/// Returns pace and number of paths for the trials of the rate: the user's rate, or as fast as paths are provisioned,
/// by the rate of a first trial.
///
/// # Errors
/// The system cannot wait for sockets.
pub(super) fn chosen_pace(subject: &TestSubject, bed: &mut Testbed) -> anyhow::Result<(OfferedPace, u32)> {
    let settings = subject.settings;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "within the limits of a count")]
    let paths = |rate: f64| (rate * settings.trial_s).clamp(1.0, f64::from(settings.max_paths)) as u32;
    if let Some(rate) = settings.path_rate {
        return Ok((OfferedPace::Every(Duration::from_secs_f64(1.0 / rate)), paths(rate)));
    }
    let pace = OfferedPace::Window(ON_THE_WAY);
    let bytes = settings.frame_sizes.first().copied().unwrap_or(128);
    let pilot = rate_trial(bed, bytes, (pace, PILOT_PATHS.min(settings.max_paths)), settings.trial())?;
    Ok((pace, pilot.map_or(PILOT_PATHS, |pilot| paths(pilot.provisioned * MORE).max(PILOT_PATHS))))
}

/// Measures the reactive path provisioning rate.
///
/// # Errors
/// The controller cannot be reached.
pub(super) fn reactive_rate(subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    let settings = subject.settings;
    let mut outcome = TestOutcome::default();
    let mut bed = subject.deploy()?;
    note_prerequisite(&mut outcome, bed.discovery);
    let offer = chosen_pace(subject, &mut bed)?;
    let mut has_short = false;
    for bytes in &settings.frame_sizes {
        let columns = [("RPR", "1/s"), ("offered rate", "1/s"), ("Ndf", ""), ("Td", "s")];
        let mut table = TrialTable::new(format!("frames of {bytes} bytes"), &columns);
        for _ in 0..settings.trials {
            if subject.is_over() {
                break;
            }
            let trial = rate_trial(&mut bed, *bytes, offer, settings.trial())?;
            if subject.cancel.is_cancelled() {
                break;
            }
            match trial {
                Ok(rate) => {
                    has_short |= rate.time_s < settings.trial_s;
                    let values = [rate.provisioned, rate.offered, rate.arrived as f64, rate.time_s];
                    table.trial(values.map(Some).to_vec());
                }
                Err(reason) => table.failed_trial(reason),
            }
        }
        outcome.append(finished(subject, table, "no path was provisioned"));
    }
    if has_short {
        outcome.note(format!(
            "trials ended once all of their paths were provisioned (at most {}, --max-paths); Td is the time until then",
            settings.max_paths
        ));
    }
    if settings.path_rate.is_none() {
        outcome.note(format!("the offered rate follows the controller: at most {ON_THE_WAY} frames are on the way"));
    }
    note_path(subject, &mut outcome);
    Ok(outcome)
}

/// Notes the number of switches in the path, which the reports of sections 5.1.4 to 5.1.7 have.
pub(super) fn note_path(subject: &TestSubject, outcome: &mut TestOutcome) {
    if let Some(nodes) = subject.settings.plan.path_nodes(None) {
        outcome.note(format!("switches in the path: {nodes} ({})", subject.settings.plan.name));
    }
}
