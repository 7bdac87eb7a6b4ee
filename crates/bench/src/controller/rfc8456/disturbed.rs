//! Security: exception handling (RFC 8456, sections 5.3.1 and A.6.1) and denial of service (5.3.2 and A.6.2). The tests
//! of path provisioning and change detection are made without and with a disturbance.
use super::attack::ConnectionAttack;
use super::changes::change_trial;
use super::discovery::{no_discovery, search_size};
use super::exceptions::InvalidMessages;
use super::figures::average;
use super::messages::{announce_targets, message_trial};
use super::paths::{chosen_pace, path_trial, rate_trial};
use super::requests::RequestTimes;
use super::results::{ResultRow, TestOutcome, TrialTable};
use super::subject::TestSubject;
use super::testbed::{DiscoveryState, Testbed};

/// Names of the rows with their units.
const RATE: &str = "Path Provisioning Rate (1/s)";
const TIME: &str = "Path Provisioning Time (ms)";
const CHANGE: &str = "Topology Change Detection Time (ms)";
const SIZE: &str = "Network Discovery Size (nodes)";

/// Disturbance of the controller.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Disturbance {
    None,
    /// Invalid messages, so many a second.
    Invalid(f64),
    /// An attack on the southbound interface.
    Attack,
}

/// An average, or the reason why there is none.
type DisturbedFigure = Result<f64, String>;

/// Averages of the tests under a disturbance, in the order of the rows.
struct DisturbedFigures {
    rate: DisturbedFigure,
    time: DisturbedFigure,
    change: DisturbedFigure,
    size: Option<DisturbedFigure>,
    /// Switches that lost their connection and connected again.
    reconnects: u64,
    /// Invalid messages, or connections of the attack.
    events: u64,
    rediscovery_s: Option<f64>,
}

/// Measures the effect of invalid messages.
///
/// # Errors
/// The controller cannot be reached.
pub(super) fn exceptions(subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    let known = match subject.found.processing_rate {
        Some(rate) => rate,
        None => measured_rate(subject)?,
    };
    let shares = [0.0, 0.01, 0.02];
    let mut found = Vec::new();
    for share in shares {
        let disturbance = if share > 0.0 { Disturbance::Invalid(known * share) } else { Disturbance::None };
        found.push(under(subject, disturbance, false)?);
    }
    let columns = [("without exceptions", ""), ("with 1 % exceptions", ""), ("with 2 % exceptions", "")];
    let mut outcome = TestOutcome::measured(compared(&columns, &found));
    outcome.note(format!(
        "invalid messages are 1 % and 2 % of {known:.0} messages a second, the maximum rate of section 5.1.3: packet-ins \
         of a wrong version (A.6.1) and with an incorrect match, and errors of an unknown type, in turn"
    ));
    for (share, figures) in shares.iter().zip(&found).skip(1) {
        outcome.note(format!(
            "with {:.0} %: {} invalid messages, {} connections lost and renewed",
            share * 100.0,
            figures.events,
            figures.reconnects
        ));
    }
    note_common(subject, &mut outcome, &found);
    Ok(outcome)
}

/// Measures the effect of an attack.
///
/// # Errors
/// The controller cannot be reached.
pub(super) fn denial_of_service(subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    let found = [under(subject, Disturbance::None, true)?, under(subject, Disturbance::Attack, true)?];
    let mut outcome = TestOutcome::measured(compared(&[("without attacks", ""), ("with attacks", "")], &found));
    outcome.note(format!(
        "the attack is on the southbound interface: up to {:.0} TCP connections a second (--attack-rate) that send \
         nothing, the last 64 of them open; {} were opened, {} connections of switches were lost and renewed",
        subject.settings.attack_rate, found[1].events, found[1].reconnects
    ));
    note_common(subject, &mut outcome, &found);
    Ok(outcome)
}

fn note_common(subject: &TestSubject, outcome: &mut TestOutcome, found: &[DisturbedFigures]) {
    outcome.note(format!(
        "each figure is the average of at most {} trials, as in the tests of its own, with frames of {} bytes",
        subject.settings.trials,
        first_size(subject)
    ));
    if let Some(period) = found.iter().find_map(|figures| figures.rediscovery_s) {
        outcome.note(format!("the controller repeats discovery on each port after {period:.2} s: see test 5.1.8"));
    }
}

fn first_size(subject: &TestSubject) -> usize {
    subject.settings.frame_sizes.first().copied().unwrap_or(128)
}

/// Measures the maximum processing rate if the test of its own was not made.
fn measured_rate(subject: &mut TestSubject) -> anyhow::Result<f64> {
    let mut bed = subject.deploy()?;
    announce_targets(&mut bed);
    let mut serial = 0;
    let trial =
        message_trial(&mut bed, RequestTimes::Flood, first_size(subject), subject.settings.trial(), &mut serial)?;
    let rate = trial.received as f64 / subject.settings.trial_s;
    subject.found.processing_rate = Some(rate);
    Ok(rate)
}

/// Makes the tests under a disturbance.
fn under(subject: &mut TestSubject, disturbance: Disturbance, with_size: bool) -> anyhow::Result<DisturbedFigures> {
    let settings = subject.settings;
    let mut bed = subject.deploy()?;
    let attack = match disturbance {
        Disturbance::Attack => Some(ConnectionAttack::start(subject.address, settings.attack_rate)?),
        _ => None,
    };
    if let Disturbance::Invalid(per_second) = disturbance {
        bed.network.invalid = Some(InvalidMessages::new(settings.version, bed.now(), per_second));
    }
    let bytes = first_size(subject);
    let offer = chosen_pace(subject, &mut bed)?;
    let rate =
        averaged(subject, |_| Ok(rate_trial(&mut bed, bytes, offer, settings.trial())?.map(|rate| rate.provisioned)))?;
    let time =
        averaged(
            subject,
            |_| Ok(path_trial(&mut bed, bytes, settings.trial())?.map(|times| times.provisioning * 1e3)),
        )?;
    let change = changes(subject, &mut bed)?;
    let size = if with_size { Some(discovered_size(subject)?) } else { None };
    let events = match (&attack, &bed.network.invalid) {
        (Some(attack), _) => attack.connections(),
        (_, Some(invalid)) => invalid.sent,
        _ => 0,
    };
    let seen = &bed.network.seen;
    let (reconnects, rediscovery_s) = (seen.reconnects, seen.rediscovery_s());
    Ok(DisturbedFigures { rate, time, change, size, reconnects, events, rediscovery_s })
}

fn changes(subject: &TestSubject, bed: &mut Testbed) -> anyhow::Result<DisturbedFigure> {
    if bed.discovery == DiscoveryState::None {
        return Ok(Err(no_discovery()));
    }
    let links = bed.network.plan.links.len().max(1);
    averaged(subject, |number| {
        let found = change_trial(bed, number % links, subject.settings.trial())?;
        Ok(found.map(|seconds| seconds * 1e3).ok_or_else(|| "no discovery message followed a change".to_owned()))
    })
}

fn discovered_size(subject: &mut TestSubject) -> anyhow::Result<DisturbedFigure> {
    if subject.settings.topology_command.is_none() {
        return Ok(Err("there is no --topology-command".to_owned()));
    }
    let mut trials = TrialTable::new("", &[("network size", "nodes"), ("links", ""), ("discovered", "")]);
    let size = match search_size(subject, &mut trials) {
        Ok(size) => size,
        Err(error) => return Ok(Err(format!("{error:#}"))),
    };
    Ok(size.map(|size| size as f64).ok_or_else(|| "not even the smallest network was discovered".to_owned()))
}

/// Returns the average of the trials that gave a figure, or the first reason if none did.
fn averaged(
    subject: &TestSubject,
    mut trial: impl FnMut(usize) -> anyhow::Result<DisturbedFigure>,
) -> anyhow::Result<DisturbedFigure> {
    let (mut results, mut reason) = (Vec::new(), None);
    for number in 0..subject.settings.trials as usize {
        if subject.is_over() {
            break;
        }
        let result = trial(number)?;
        if subject.cancel.is_cancelled() {
            break;
        }
        match result {
            Ok(result) => results.push(result),
            Err(problem) => reason = reason.or(Some(problem)),
        }
    }
    let without = || reason.unwrap_or_else(|| "no trial was made within the test's time limit".to_owned());
    Ok(average(&results).ok_or_else(without))
}

/// Returns a table with a row for each test and a column for each disturbance.
fn compared(columns: &[(&'static str, &'static str)], found: &[DisturbedFigures]) -> TrialTable {
    let mut table = TrialTable::new("test", columns);
    table.rows.push(row(RATE, found.iter().map(|figures| &figures.rate)));
    table.rows.push(row(TIME, found.iter().map(|figures| &figures.time)));
    table.rows.push(row(CHANGE, found.iter().map(|figures| &figures.change)));
    let sizes: Vec<&DisturbedFigure> = found.iter().filter_map(|figures| figures.size.as_ref()).collect();
    if !sizes.is_empty() {
        table.rows.push(row(SIZE, sizes.into_iter()));
    }
    table
}

fn row<'a>(name: &str, figures: impl Iterator<Item = &'a DisturbedFigure>) -> ResultRow {
    let mut row = ResultRow { name: name.to_owned(), values: Vec::new(), remark: String::new() };
    for figure in figures {
        row.values.push(figure.as_ref().ok().copied());
        if let Err(reason) = figure
            && row.remark.is_empty()
        {
            row.remark = format!("not applicable, because {reason}");
        }
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_without_a_figure_has_a_reason_in_its_row() {
        let figures = |rate, change: DisturbedFigure| DisturbedFigures {
            rate: Ok(rate),
            time: Ok(2.0),
            change,
            size: None,
            reconnects: 0,
            events: 0,
            rediscovery_s: None,
        };
        let found = [figures(100.0, Err("no discovery".to_owned())), figures(90.0, Err("other".to_owned()))];
        let table = compared(&[("without", ""), ("with", "")], &found);
        assert_eq!(table.rows[0].values, [Some(100.0), Some(90.0)]);
        assert_eq!(table.rows[2].values, [None, None]);
        assert_eq!(table.rows[2].remark, "not applicable, because no discovery");
        assert_eq!(table.rows.len(), 3);
    }
}
