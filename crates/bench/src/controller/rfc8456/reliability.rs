//! Reliability: controller failover time (RFC 8456, sections 5.4.1 and A.7.1) and network re-provisioning time (5.4.2
//! and A.7.2).
use super::figures::reprovisioning;
use super::messages::{finished, note_prerequisite};
use super::offer::{OfferedHosts, OfferedPace, OfferedStream};
use super::paths::STORM;
use super::results::{TestOutcome, TrialTable};
use super::subject::TestSubject;
use super::testbed::{QUIET, Testbed, TestbedSettings};
use super::topology::{TestNetworkPlan, TestTopology};
use crate::controller::peers::StartedController;
use std::net::SocketAddr;
use std::time::Duration;
use weir_units::counted;

/// Time of undisturbed traffic before a failure.
const BEFORE: Duration = Duration::from_millis(500);
/// Traffic after the first frame that arrives again, so that late frames are not taken as missing.
const AFTER: Duration = Duration::from_millis(100);
/// Longest wait for a failover: three trials' durations, and at least this.
const FAILOVER: Duration = Duration::from_secs(20);
const CALM: Duration = Duration::from_secs(10);
/// Switches in a path of a network with redundant paths: leaf, spine, leaf.
const SPINES: usize = 2;

/// Measures the failover time.
///
/// # Errors
/// A controller cannot be started or reached.
pub(super) fn failover(subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    if subject.program.is_none() {
        return Ok(TestOutcome::not_applicable(
            "the active controller was not started by this command, which ends only what it started: use --compare",
        ));
    }
    let settings = subject.settings;
    let mode = if settings.connects_to_both { "connected to both" } else { "active-standby" };
    let mut table = TrialTable::new(
        "",
        &[("failover time", "ms"), ("packet loss", "frames"), ("cluster nodes", ""), ("frames before", "")],
    );
    for _ in 0..settings.trials {
        if subject.is_over() {
            break;
        }
        let trial = failover_trial(subject)?;
        if subject.cancel.is_cancelled() {
            break;
        }
        match trial {
            Ok(values) => table.trial(values.map(Some).to_vec()),
            Err(reason) => table.failed_trial(reason),
        }
    }
    let mut outcome = finished(subject, table, "no frame arrived after the failure");
    outcome.note(format!(
        "redundancy mode: {mode}; keep-alive interval: none, a failure shows by the end of the connection, after which a \
         switch connects to the standby controller",
    ));
    outcome.note(match subject.standby {
        Some(standby) => format!("the standby controller is that at {standby}"),
        None => "the standby controller is a second instance of the same program, started here. If instances share no \
                 state, it begins without knowledge of the network"
            .to_owned(),
    });
    outcome
        .note(format!("TP1 sends {} frames a second (--traffic-rate), each from a new source", settings.traffic_rate));
    Ok(outcome)
}

/// Ends the active one of two controllers under traffic. Returns failover time in ms, missing frames, number of
/// controllers, and frames before the failure.
fn failover_trial(subject: &mut TestSubject) -> anyhow::Result<Result<[f64; 4], String>> {
    let settings = subject.settings;
    let active = start(subject)?;
    let started = if subject.standby.is_none() { Some(start(subject)?) } else { None };
    let standby: SocketAddr = match (&started, subject.standby) {
        (Some(started), _) => started.address,
        (None, Some(named)) => named,
        (None, None) => return Ok(Err("there is no standby controller".to_owned())),
    };
    let testbed = TestbedSettings {
        controller: active.address,
        standby: Some(standby),
        connects_to_both: settings.connects_to_both,
        ..subject.testbed_settings()
    };
    subject.pause();
    let mut bed = Testbed::deploy(&testbed, settings.plan.clone())?;
    let (stream, base) = bed.fresh(1 << 16);
    bed.announce(1, base, 1)?;
    bed.network.arrivals[1].expect(stream);
    let interval = Duration::from_secs_f64(1.0 / settings.traffic_rate);
    let bytes = settings.frame_sizes.first().copied().unwrap_or(128);
    let pace = (OfferedPace::Every(interval), 1 << 16);
    let offered = OfferedStream::new(bed.now(), (0, stream), (OfferedHosts::NewSources, base), pace, bytes);
    bed.network.streams = vec![offered];
    bed.run_for(BEFORE)?;
    // A slow controller has time to catch up: no packet drops before the failure (step 2).
    bed.run(settings.trial(), |network| {
        let sent = network.streams.first().map_or(0, |stream| stream.sent as usize);
        network.arrivals[1].unique() * 4 >= sent * 3
    })?;
    let before = bed.network.arrivals[1].unique();
    let sent = bed.network.streams[0].sent;
    let waiting = u64::from(sent).saturating_sub(before as u64);
    if bed.network.is_storming() {
        return Ok(Err(STORM.to_owned()));
    }
    // Frames of the last moments may still be on their way.
    if before == 0 || waiting > u64::from(sent) / 4 {
        return Ok(Err(format!("only {before} of {sent} frames arrived before the failure")));
    }
    let killed = bed.now();
    bed.give_up_first();
    active.kill();
    let limit = FAILOVER.max(settings.trial() * 3);
    let last_sent = sent;
    let is_back = |network: &super::network::TestNetwork| {
        // Frames that were on their way at the failure do not end the interruption.
        network.arrivals[1].gap_after(killed).is_some()
            || network.arrivals[1]
                .log
                .last()
                .is_some_and(|(at, number)| *at > killed + BEFORE && *number > last_sent + 1)
    };
    let is_over = bed.run(limit, is_back)?;
    bed.run_for(AFTER)?;
    bed.network.streams.clear();
    if !is_over {
        return Ok(Err(format!("no frame arrived within {limit:?} of the failure")));
    }
    let nodes = 2.0;
    let gap = bed.network.arrivals[1].gap_after(killed);
    // Without a missing frame the failover time is negligible (A.7.1).
    Ok(Ok(gap.map_or([0.0, 0.0, nodes, before as f64], |gap| {
        [gap.seconds() * 1e3, gap.missing as f64, nodes, before as f64]
    })))
}

fn start(subject: &TestSubject) -> anyhow::Result<StartedController> {
    let program = subject.program.ok_or_else(|| anyhow::anyhow!("the controller was not started by this command"))?;
    program.start_discovering(subject.settings.version, subject.core, subject.cancel)
}

/// Measures the re-provisioning time.
///
/// # Errors
/// The controller cannot be reached.
pub(super) fn reprovisioning_time(subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    let settings = subject.settings;
    let plan = redundant_plan(subject)?;
    let mut outcome = TestOutcome::default();
    let columns = [
        ("re-provisioning time", "ms"),
        ("missing at TP2", "frames"),
        ("missing at TP1", "frames"),
        ("nodes in primary path", ""),
        ("nodes in alternate path", ""),
    ];
    let (mut table, mut storms) = (TrialTable::new(plan.name.clone(), &columns), 0);
    for _ in 0..settings.trials {
        if subject.is_over() {
            break;
        }
        let mut bed = subject.deploy_plan(plan.clone())?;
        note_prerequisite(&mut outcome, bed.discovery);
        let trial = reprovisioning_trial(subject, &mut bed)?;
        if subject.cancel.is_cancelled() {
            break;
        }
        match trial {
            Ok(values) => table.trial(values.map(Some).to_vec()),
            Err(reason) => {
                storms += u32::from(reason == STORM);
                table.failed_trial(reason);
                // The majority is decided.
                if storms * 2 > settings.trials {
                    break;
                }
            }
        }
    }
    let made = by_majority(finished(subject, table, "the alternate path was not provisioned"));
    let has_result = made.not_applicable.is_none();
    outcome.append(made);
    if has_result {
        outcome.note(format!(
            "TP1 and TP2 send {} frames a second each (--traffic-rate); a link of the path is brought down",
            settings.traffic_rate
        ));
        outcome.note(
            "frames of the forward direction are missing at TP2, those of the reverse direction at TP1; section 5.4.2 \
             names them the other way round",
        );
    }
    Ok(outcome)
}

/// Returns what most trials say: whether a frame is lost, or a loop storms, may be chance in a single one. Results
/// count as measured only if more than half of the trials have one, and both are counted in a note.
fn by_majority(made: TestOutcome) -> TestOutcome {
    let Some(table) = made.tables.first() else { return made };
    let (all, with) = (table.rows.len(), table.results().len());
    let reasons = || table.rows.iter().map(|row| row.remark.as_str()).filter(|remark| !remark.is_empty());
    let Some(reason) = reasons().max_by_key(|reason| reasons().filter(|other| other == reason).count()) else {
        return made;
    };
    let without = all - with;
    if with > without {
        let note = format!("{with} of {} gave a result, {without} none: {reason}", counted(all, "trial", "trials"));
        let mut made = made;
        made.note(note);
        return made;
    }
    let mut open = TestOutcome::not_applicable(format!(
        "the result is not known: {with} of {} gave one, {without} none: {reason}",
        counted(all, "trial", "trials")
    ));
    made.notes.into_iter().for_each(|note| open.note(note));
    open
}

/// Returns the settings' network if it has redundant paths, else a leaf-spine with two spines and as many leaves.
fn redundant_plan(subject: &TestSubject) -> anyhow::Result<TestNetworkPlan> {
    let settings = subject.settings;
    if settings.plan.has_redundant_paths() && settings.plan.path_nodes(Some(0)).is_some() {
        return Ok(settings.plan.clone());
    }
    TestNetworkPlan::new(TestTopology::LeafSpine, settings.leaves, SPINES).map_err(anyhow::Error::msg)
}

fn reprovisioning_trial(subject: &TestSubject, bed: &mut Testbed) -> anyhow::Result<Result<[f64; 5], String>> {
    let settings = subject.settings;
    let (stream, base) = bed.fresh(1);
    bed.announce(1, base, 1)?;
    bed.announce(0, base, 1)?;
    if bed.network.is_storming() {
        return Ok(Err(STORM.to_owned()));
    }
    bed.network.arrivals.iter_mut().for_each(|arrivals| arrivals.expect(stream));
    let interval = Duration::from_secs_f64(1.0 / settings.traffic_rate);
    let bytes = settings.frame_sizes.first().copied().unwrap_or(128);
    let now = bed.now();
    let offered = |generator| {
        let pace = (OfferedPace::Every(interval), u32::MAX);
        OfferedStream::new(now, (generator, stream), (OfferedHosts::OnePair, base), pace, bytes)
    };
    bed.network.streams = vec![offered(0), offered(1)];
    bed.run_for(BEFORE * 2)?;
    if bed.network.is_storming() {
        return Ok(Err(STORM.to_owned()));
    }
    let Some(link) = bed.network.last_link.filter(|_| bed.network.arrivals.iter().all(|log| log.unique() > 0)) else {
        return Ok(Err("no frames passed in both directions before the failure".to_owned()));
    };
    let primary = bed.network.plan.path_nodes(None).unwrap_or(0);
    let alternate = bed.network.plan.path_nodes(Some(link)).unwrap_or(0);
    let failed = bed.now();
    bed.network.set_link(failed, link, false);
    let is_back = |network: &super::network::TestNetwork| {
        network.arrivals.iter().all(|log| log.gap_after(failed).is_some()) || network.is_storming()
    };
    let is_over = bed.run(settings.trial(), is_back)?;
    bed.run_for(AFTER)?;
    bed.network.streams.clear();
    bed.wait_quiet(QUIET, CALM);
    let gaps = [1, 0].map(|generator: usize| bed.network.arrivals[generator].gap_after(failed));
    let is_storm = bed.network.is_storming();
    Ok(match gaps {
        _ if is_storm => Err(STORM.to_owned()),
        [Some(forward), Some(reverse)] if is_over => {
            let time = reprovisioning(forward.seconds(), reverse.seconds()) * 1e3;
            let missing = [forward, reverse].map(|gap| gap.missing as f64);
            Ok([time, missing[0], missing[1], primary as f64, alternate as f64])
        }
        _ => Err(format!(
            "found no gap in the frames of both directions that ends within {} s of the link's failure: the controller \
             provisions no alternate path, or no frame was lost (a higher --traffic-rate sees shorter gaps)",
            settings.trial_s
        )),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns what is made of trials with these results.
    fn made(results: &[Option<f64>]) -> TestOutcome {
        let mut table = TrialTable::new("", &[("re-provisioning time", "ms")]);
        for result in results {
            match result {
                Some(_) => table.trial(vec![*result]),
                None => table.failed_trial("no frame was lost"),
            }
        }
        by_majority(TestOutcome::measured(table.summed_up()))
    }

    #[test]
    fn most_trials_decide_and_are_counted() {
        let all = made(&[Some(1.0), Some(2.0)]);
        assert!(all.not_applicable.is_none() && all.notes.is_empty(), "{all:?}");
        let most = made(&[Some(1.0), None, Some(2.0)]);
        assert!(most.not_applicable.is_none(), "{most:?}");
        assert_eq!(most.notes, ["2 of 3 trials gave a result, 1 none: no frame was lost"]);
        for few in [&[None, Some(3.0)][..], &[None, None, Some(3.0)]] {
            let few = made(few);
            let reason = few.not_applicable.as_deref().unwrap_or_default();
            assert!(few.tables.is_empty() && reason.contains("not known: 1 of"), "{few:?}");
        }
    }
}
