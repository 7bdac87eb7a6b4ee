//! Proactive path provisioning through the northbound interface: time (RFC 8456, sections 5.1.5 and A.4.5) and rate
//! (5.1.7 and A.4.7).
use super::messages::{finished, note_prerequisite};
use super::northbound::{NorthboundCommand, provision};
use super::offer::{OfferedHosts, OfferedPace, OfferedStream};
use super::paths::note_path;
use super::results::{TestOutcome, TrialTable};
use super::subject::TestSubject;
use super::testbed::{QUIET, Testbed};
use anyhow::bail;
use std::time::Duration;

/// Time between two frames of a pair whose path is not known yet.
const EVERY: Duration = Duration::from_millis(1);
/// Time between two frames of any pair, while the rate is measured.
const EVERY_OF_MANY: Duration = Duration::from_micros(50);
/// Most paths of a trial of the rate: each takes a command.
const MOST_PATHS: u32 = 1000;
/// Longest time of a command.
const COMMAND: Duration = Duration::from_secs(30);
/// Longest wait for a quiet controller after a trial.
const CALM: Duration = Duration::from_secs(10);

/// Returns the outcome without a command to provision paths.
pub(super) fn no_command() -> TestOutcome {
    TestOutcome::not_applicable(
        "paths cannot be provisioned: give the controller's northbound interface by --provision-command",
    )
}

/// Measures the proactive path provisioning time.
///
/// # Errors
/// The controller cannot be reached.
pub(super) fn proactive_time(subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    let settings = subject.settings;
    let Some(line) = settings.provision_command.as_deref() else { return Ok(no_command()) };
    let mut outcome = TestOutcome::default();
    let mut bed = subject.deploy()?;
    note_prerequisite(&mut outcome, bed.discovery);
    for bytes in &settings.frame_sizes {
        let columns = [("PPT", "ms"), ("flow-mods", "")];
        let mut table = TrialTable::new(format!("frames of {bytes} bytes"), &columns);
        for number in 0..settings.trials {
            if subject.is_over() {
                break;
            }
            let trial = time_trial(&mut bed, line, *bytes, u64::from(number), settings.trial())?;
            if subject.cancel.is_cancelled() {
                break;
            }
            match trial {
                Ok((seconds, flow_mods)) => table.trial(vec![Some(seconds * 1e3), Some(flow_mods as f64)]),
                Err(reason) => table.failed_trial(reason),
            }
        }
        outcome.append(finished(subject, table, "no path was provisioned"));
    }
    outcome.note("packets without a flow entry are dropped by the emulated switches. Tsf1 is the start of the command");
    note_path(subject, &mut outcome);
    Ok(outcome)
}

fn time_trial(
    bed: &mut Testbed,
    line: &str,
    bytes: usize,
    number: u64,
    time: Duration,
) -> anyhow::Result<Result<(f64, u64), String>> {
    let (stream, base) = bed.fresh(1);
    announce_both(bed, base, 1)?;
    bed.network.drops_misses = true;
    bed.network.arrivals[1].expect(stream);
    bed.network.seen.mark();
    let begin = bed.now();
    let pace = (OfferedPace::Every(EVERY), u32::MAX);
    let offered = OfferedStream::new(begin, (0, stream), (OfferedHosts::OnePair, base), pace, bytes);
    let line = provision(line, offered.pair(0), bed.network.plan.generators, number);
    bed.network.streams = vec![offered];
    let answer = bed.command(&line, COMMAND)?;
    bed.run(time, |network| network.arrivals[1].unique() > 0)?;
    bed.network.streams.clear();
    bed.wait_quiet(QUIET, CALM);
    bed.network.drops_misses = false;
    let seen = bed.network.seen.marked;
    Ok(match (answer, bed.network.arrivals[1].unique(), seen.last_flow_mod) {
        (Err(problem), ..) => Err(problem),
        (_, 0, _) => Err("no frame arrived at TP2 within the trial".to_owned()),
        (.., None) => Err("the controller sent no flow-mod: a path was there before".to_owned()),
        (.., Some(last)) => Ok((last.since(begin).as_secs_f64(), seen.flow_mods)),
    })
}

/// Makes the hosts of pairs known at both generators.
///
/// # Errors
/// The system cannot wait for sockets.
pub(super) fn announce_both(bed: &mut Testbed, base: u32, count: u32) -> anyhow::Result<()> {
    bed.announce(1, base, count)?;
    bed.announce(0, base, count)
}

/// Measures the proactive path provisioning rate.
///
/// # Errors
/// The controller cannot be reached.
pub(super) fn proactive_rate(subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    let settings = subject.settings;
    let Some(line) = settings.provision_command.as_deref() else { return Ok(no_command()) };
    let mut outcome = TestOutcome::default();
    let mut bed = subject.deploy()?;
    note_prerequisite(&mut outcome, bed.discovery);
    for bytes in &settings.frame_sizes {
        let columns = [("PPR", "1/s"), ("offered rate", "1/s"), ("Ndf", "")];
        let mut table = TrialTable::new(format!("frames of {bytes} bytes"), &columns);
        for _ in 0..settings.trials {
            if subject.is_over() {
                break;
            }
            let count = settings.max_paths.min(MOST_PATHS);
            let trial = rate_trial(&mut bed, line, *bytes, count, settings.trial())?;
            if subject.cancel.is_cancelled() {
                break;
            }
            match trial {
                Ok((arrived, asked)) => {
                    let rates = [arrived, asked].map(|count| Some(count as f64 / settings.trial_s));
                    table.trial(vec![rates[0], rates[1], Some(arrived as f64)]);
                }
                Err(reason) => table.failed_trial(reason),
            }
        }
        outcome.append(finished(subject, table, "no path was provisioned"));
    }
    outcome.note(
        "the provisioning command is run once for each path, one after the other: the offered rate is what the command \
         itself reaches",
    );
    note_path(subject, &mut outcome);
    Ok(outcome)
}

/// Runs commands for a time. Returns the numbers of paths that carried a frame and of commands that ended well.
fn rate_trial(
    bed: &mut Testbed,
    line: &str,
    bytes: usize,
    count: u32,
    time: Duration,
) -> anyhow::Result<Result<(u64, u64), String>> {
    let (stream, base) = bed.fresh(count);
    announce_both(bed, base, count)?;
    bed.network.drops_misses = true;
    bed.network.arrivals[1].expect(stream);
    let begin = bed.now();
    let offered = OfferedStream::new(
        begin,
        (0, stream),
        (OfferedHosts::Pairs(count), base),
        (OfferedPace::Every(EVERY_OF_MANY), u32::MAX),
        bytes,
    );
    let ports = bed.network.plan.generators;
    bed.network.streams = vec![offered.clone()];
    bed.network.is_watched = true;
    let mut asked = 0;
    let mut problem = None;
    let mut command: Option<NorthboundCommand> = None;
    while bed.now() < begin + time && !bed.is_cancelled() && problem.is_none() {
        let mut running = match command.take() {
            Some(running) => running,
            None if asked >= u64::from(count) => {
                bed.run_for(time.saturating_sub(bed.now().since(begin)))?;
                break;
            }
            None => {
                let pair = offered.pair(u32::try_from(asked).unwrap_or(u32::MAX));
                match NorthboundCommand::start(&provision(line, pair, ports, asked)) {
                    Ok(started) => started,
                    Err(error) => bail!(error),
                }
            }
        };
        let mut ended = None;
        bed.run(time.saturating_sub(bed.now().since(begin)), |_| {
            ended = running.ended();
            ended.is_some()
        })?;
        match ended {
            Some(Ok(_)) => asked += 1,
            Some(Err(error)) => problem = Some(error),
            None => command = Some(running),
        }
    }
    bed.network.is_watched = false;
    bed.network.streams.clear();
    let end = begin + time;
    let arrived = bed.network.arrivals[1].log.iter().filter(|(at, _)| *at <= end).count() as u64;
    bed.wait_quiet(QUIET, CALM);
    bed.network.drops_misses = false;
    Ok(match problem {
        Some(problem) if asked == 0 => Err(problem),
        _ if arrived == 0 => Err("no frame arrived at TP2 within the trial".to_owned()),
        _ => Ok((arrived, asked)),
    })
}
