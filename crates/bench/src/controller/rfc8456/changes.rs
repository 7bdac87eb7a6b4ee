//! Network Topology Change Detection Time (RFC 8456, sections 5.1.8 and A.4.8).
use super::discovery::no_discovery;
use super::messages::finished;
use super::results::{TestOutcome, TrialTable};
use super::subject::TestSubject;
use super::testbed::{DiscoveryState, QUIET, Testbed};
use std::time::Duration;

/// Time for a link that is up again to be discovered, if the controller's period is not known; and at most.
const REDISCOVERED: Duration = Duration::from_secs(1);
const REDISCOVERED_AT_MOST: Duration = Duration::from_secs(10);

/// Measures the change detection time.
///
/// # Errors
/// The controller cannot be reached.
pub(super) fn change_detection(subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    let settings = subject.settings;
    if subject.found.discovery == Some(DiscoveryState::None) {
        return Ok(TestOutcome::not_applicable(no_discovery()));
    }
    let mut bed = subject.deploy()?;
    if bed.discovery == DiscoveryState::None {
        return Ok(TestOutcome::not_applicable(no_discovery()));
    }
    let mut table = TrialTable::new("", &[("TDT", "ms"), ("between periodic messages", "ms")]);
    for number in 0..settings.trials as usize {
        if subject.is_over() {
            break;
        }
        let link = number % bed.network.plan.links.len().max(1);
        let trial = change_trial(&mut bed, link, settings.trial())?;
        if subject.cancel.is_cancelled() {
            break;
        }
        match trial {
            Some(seconds) => table.trial(vec![Some(seconds * 1e3), periodic_gap_s(&bed).map(|gap| gap * 1e3)]),
            None => table.failed_trial("no discovery message followed the change within the trial"),
        }
    }
    subject.note_discovery(&bed);
    let mut outcome = finished(subject, table, "no discovery message followed a change");
    outcome
        .note("a link is brought down (A.4.8), whose two switches send port-status messages; Tcn is the first of them");
    outcome.note(
        "Tcd is the first discovery message after it. The controller's periodic rediscovery cannot be told apart from it: a \
         time about as long as that between periodic messages on all ports says nothing of detection. Set the \
         controller's period to twice the trial's duration (section 5.1.8, prerequisite 2)",
    );
    Ok(outcome)
}

/// Brings a link down and up again. Returns the time from the first port-status message to the first discovery message,
/// in seconds.
///
/// # Errors
/// The system cannot wait for sockets.
pub(super) fn change_trial(bed: &mut Testbed, link: usize, time: Duration) -> anyhow::Result<Option<f64>> {
    bed.network.seen.mark();
    let now = bed.now();
    bed.network.set_link(now, link, false);
    bed.run(time, |network| network.seen.marked.rediscovery.is_some())?;
    let seen = bed.network.seen.marked;
    let now = bed.now();
    bed.network.set_link(now, link, true);
    let period = bed.network.seen.rediscovery_s().map_or(REDISCOVERED, |period| Duration::from_secs_f64(period * 1.2));
    bed.run_for(period.clamp(REDISCOVERED / 2, REDISCOVERED_AT_MOST))?;
    bed.wait_quiet(QUIET, REDISCOVERED_AT_MOST);
    let times = seen.first_status.zip(seen.rediscovery);
    Ok(times.map(|(told, found)| found.since(told).as_secs_f64()))
}

/// Returns the mean time between two periodic discovery messages on all ports together in seconds.
fn periodic_gap_s(bed: &Testbed) -> Option<f64> {
    let ports = bed.network.seen.probed_ports().max(1);
    bed.network.seen.rediscovery_s().map(|period| period / ports as f64)
}
