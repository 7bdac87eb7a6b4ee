//! Asynchronous messages: processing time (RFC 8456, sections 5.1.2 and A.4.2) and rate (5.1.3 and A.4.3).
use super::figures::{MessageRateTrial, RateSearch, RateStep, loss_ratio, unsuccessful_percent};
use super::network::TestNetwork;
use super::requests::{AsyncRequests, MOST_WAITING, RequestTimes};
use super::results::{TestOutcome, TrialTable};
use super::subject::TestSubject;
use super::testbed::{DiscoveryState, QUIET, Testbed};
use std::time::Duration;

/// Longest wait until a controller has worked off what it was sent.
const WORKED_OFF: Duration = Duration::from_secs(30);
/// Time without any response after which the rest is given up.
const SILENT: Duration = Duration::from_secs(2);
/// Share of the trial's duration after its end in which responses still count for the loss ratio: the last messages of
/// a trial cannot be answered within it.
const GRACE: f64 = 0.05;

/// Result of a trial.
pub(super) struct MessageTrial {
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Responses within the grace time after the trial.
    late: u64,
    unsent: u64,
    /// Mean time of an answered message in seconds.
    pub(super) processing_s: Option<f64>,
}

/// Sends asynchronous messages for the trial's duration and waits until the controller is quiet. Serial numbers
/// start from `serial`, which becomes the next one.
///
/// # Errors
/// The system cannot wait for sockets.
pub(super) fn message_trial(
    bed: &mut Testbed,
    times: RequestTimes,
    frame_bytes: usize,
    time: Duration,
    serial: &mut u32,
) -> anyhow::Result<MessageTrial> {
    let version = bed.version();
    let grace = time.mul_f64(GRACE);
    let requests = AsyncRequests::new(version, times, frame_bytes, (bed.now(), time, grace), *serial);
    bed.network.requests = Some(requests);
    bed.run_for(time + grace)?;
    work_off(bed)?;
    let requests = bed.network.requests.take();
    let requests = requests.unwrap_or_else(|| AsyncRequests::new(version, times, 0, (bed.now(), time, grace), 0));
    *serial = requests.next_serial();
    Ok(MessageTrial {
        sent: requests.sent,
        received: requests.received,
        late: requests.received_late,
        unsent: requests.unsent,
        processing_s: requests.processing_s(),
    })
}

/// Waits until the controller has returned to normal operation (section 5.1.3, step 3): it has answered all, or says
/// nothing any more. Later responses are not carried out either.
fn work_off(bed: &mut Testbed) -> anyhow::Result<()> {
    let until = bed.now() + WORKED_OFF;
    while bed.now() < until && !bed.is_cancelled() {
        let begin = bed.now();
        let is_answered = |network: &TestNetwork| network.requests.as_ref().is_none_or(|left| left.waiting() == 0);
        if bed.run(SILENT, is_answered)? || bed.network.seen.last_heard.is_none_or(|heard| heard < begin) {
            break;
        }
    }
    bed.wait_quiet(QUIET, WORKED_OFF);
    Ok(())
}

/// Lets the controller learn where the targets of asynchronous messages are.
pub(super) fn announce_targets(bed: &mut Testbed) {
    let now = bed.now();
    bed.network.announce_targets(now);
    bed.wait_quiet(QUIET, WORKED_OFF);
}

/// Deploys a network whose controller knows the targets of asynchronous messages. Returns it with an outcome that says
/// what is missing of the prerequisites, and the serial number of the first message.
fn deploy_with_targets(subject: &mut TestSubject) -> anyhow::Result<(Testbed, TestOutcome, u32)> {
    let mut outcome = TestOutcome::default();
    let mut bed = subject.deploy()?;
    note_prerequisite(&mut outcome, bed.discovery);
    announce_targets(&mut bed);
    Ok((bed, outcome, 0))
}

/// Measures the processing time.
///
/// # Errors
/// The controller cannot be reached.
pub(super) fn processing_time(subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    let settings = subject.settings;
    let (mut bed, mut outcome, mut serial) = deploy_with_targets(subject)?;
    for bytes in &settings.frame_sizes {
        let mut table =
            TrialTable::new(format!("frames of {bytes} bytes"), &[("APT", "us"), ("Nrx", ""), ("unsuccessful", "%")]);
        for _ in 0..settings.trials {
            if subject.is_over() {
                break;
            }
            let trial = message_trial(&mut bed, RequestTimes::InSeries, *bytes, settings.trial(), &mut serial)?;
            if subject.cancel.is_cancelled() {
                break;
            }
            let unsuccessful = unsuccessful_percent(trial.received, trial.sent);
            let time = trial.processing_s.map(|seconds| seconds * 1e6);
            table.trial(vec![time, Some(trial.received as f64), unsuccessful]);
        }
        outcome.append(finished(subject, table, "the controller answered no packet-in within the trials"));
    }
    Ok(outcome)
}

/// Measures the maximum and the loss-free processing rate.
///
/// # Errors
/// The controller cannot be reached.
pub(super) fn processing_rate(subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    let settings = subject.settings;
    let (mut bed, mut outcome, mut serial) = deploy_with_targets(subject)?;
    for bytes in &settings.frame_sizes {
        let mut search = RateSearch::new(settings.step, settings.tolerance);
        while !subject.is_over() {
            let times = match search.next() {
                RateStep::Flood => RequestTimes::Flood,
                RateStep::Rate(rate) => RequestTimes::Rate(rate),
                RateStep::Done => break,
            };
            let trial = message_trial(&mut bed, times, *bytes, settings.trial(), &mut serial)?;
            if subject.cancel.is_cancelled() {
                break;
            }
            search.record(rate_trial(&trial, settings.trial_s));
        }
        let is_done = search.next() == RateStep::Done;
        let part = rate_table(&search, *bytes);
        let [best, loss_free] = search.benchmarks();
        if let Some(best) = best {
            let rate = search.trials[best].processed;
            subject.found.processing_rate = Some(subject.found.processing_rate.map_or(rate, |known| known.max(rate)));
        }
        if !is_done {
            outcome.note(format!("frames of {bytes} bytes: the search ended early, at its time limit or by Ctrl-C"));
        } else if loss_free.is_none() {
            outcome.note(format!("frames of {bytes} bytes: no rate without loss was found"));
        } else if loss_free != best && loss_free.is_some_and(|at| at + 1 < search.trials.len()) {
            outcome.note(format!("frames of {bytes} bytes: the rate without loss was not reached again when repeated"));
        }
        match best.is_some_and(|best| search.trials[best].processed > 0.0) {
            true => outcome.append(TestOutcome::measured(part)),
            false => {
                outcome.append(TestOutcome::not_applicable("the controller answered no packet-in within the trials"))
            }
        }
    }
    outcome.note(format!(
        "Td is {} s, STEP {} % of the first rate, P {} %. The maximum rate is sent with at most \
         {MOST_WAITING} messages on the way. Responses up to {} % of Td after its end count for the loss ratio, not for \
         the rate",
        settings.trial_s,
        settings.step * 100.0,
        settings.tolerance * 100.0,
        GRACE * 100.0
    ));
    Ok(outcome)
}

/// Returns the figures of a trial of so many seconds.
fn rate_trial(trial: &MessageTrial, seconds: f64) -> MessageRateTrial {
    let offered = trial.sent + trial.unsent;
    MessageRateTrial {
        offered: offered as f64 / seconds,
        processed: trial.received as f64 / seconds,
        loss: loss_ratio((trial.received + trial.late).min(offered), offered).unwrap_or(0.0),
    }
}

fn rate_table(search: &RateSearch, bytes: usize) -> TrialTable {
    let mut table = TrialTable::new(
        format!("frames of {bytes} bytes"),
        &[("APR", "1/s"), ("offered rate", "1/s"), ("loss ratio", "")],
    );
    let [best, loss_free] = search.benchmarks();
    for (at, trial) in search.trials.iter().enumerate() {
        table.trial(vec![Some(trial.processed), Some(trial.offered), Some(trial.loss)]);
        let names = [(best, "Maximum"), (loss_free, "Loss-Free")];
        let names = names.iter().filter(|(found, _)| *found == Some(at)).map(|(_, name)| *name);
        if let Some(row) = table.rows.last_mut() {
            row.remark = names.collect::<Vec<_>>().join(", ");
        }
    }
    table
}

/// Returns a table with its average, or the reason why there is no value.
pub(super) fn finished(subject: &TestSubject, table: TrialTable, without: &str) -> TestOutcome {
    let planned = subject.settings.trials as usize;
    let cut = subject.cut_short(table.rows.len(), planned);
    let mut outcome = if table.results().is_empty() {
        let reasons: Vec<&str> =
            table.rows.iter().map(|row| row.remark.as_str()).filter(|text| !text.is_empty()).collect();
        let reason =
            reasons.first().copied().unwrap_or(if table.rows.is_empty() { "no trial was made" } else { without });
        TestOutcome::not_applicable(reason)
    } else {
        TestOutcome::measured(table.summed_up())
    };
    cut.into_iter().for_each(|cut| outcome.note(cut));
    outcome
}

/// Notes if the topology was not discovered before a test that has this as its prerequisite.
pub(super) fn note_prerequisite(outcome: &mut TestOutcome, discovery: DiscoveryState) {
    match discovery {
        DiscoveryState::Complete => {}
        DiscoveryState::Partial(found, all) => outcome.note(format!(
            "the prerequisite of a discovered topology is not met: discovery messages passed {found} of {all} \
             directions of links in time"
        )),
        DiscoveryState::None => outcome.note(
            "the prerequisite of a discovered topology is not met: the controller sends no discovery messages. What it \
             does without (learning addresses) is measured",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_loss_by_hand() {
        let trial = MessageTrial { sent: 900, received: 700, late: 150, unsent: 100, processing_s: None };
        // 1000 due in 2 s, 700 answered in time, 850 in all.
        let found = rate_trial(&trial, 2.0);
        assert_eq!((found.offered, found.processed), (500.0, 350.0));
        assert!((found.loss - 0.15).abs() < 1e-12);
    }

    #[test]
    fn benchmarks_are_marked_at_their_trial() {
        let mut search = RateSearch::new(0.5, 0.05);
        for (offered, processed) in [(1000.0, 600.0), (500.0, 500.0), (1000.0, 610.0), (500.0, 500.0)] {
            search.record(MessageRateTrial { offered, processed, loss: 1.0 - processed / offered });
        }
        assert_eq!(search.next(), RateStep::Done);
        let remarks: Vec<String> = rate_table(&search, 128).rows.into_iter().map(|row| row.remark).collect();
        assert_eq!(remarks, ["", "", "Maximum", "Loss-Free"]);
    }
}
