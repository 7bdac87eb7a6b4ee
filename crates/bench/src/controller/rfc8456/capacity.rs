//! Capacities: control sessions (RFC 8456, sections 5.2.1 and A.5.1) and the forwarding table (5.2.3 and A.5.3).
use super::northbound::{provision, read_count};
use super::offer::{OfferedHosts, OfferedPace, OfferedStream};
use super::proactive::announce_both;
use super::results::{TestOutcome, TrialTable};
use super::subject::TestSubject;
use super::testbed::{QUIET, Testbed};
use super::topology::TestNetworkPlan;
use std::time::Duration;

/// Time that the controller has to set up one more switch.
const SESSION: Duration = Duration::from_secs(10);
/// Time for which all sessions have to stay.
const STAY: Duration = Duration::from_secs(1);
/// Equal answers in a row after which the forwarding table is full (section 5.2.3).
const EQUAL_ANSWERS: u32 = 3;
/// Pairs of hosts that announce themselves before paths between them are provisioned.
const ANNOUNCED: u32 = 64;
/// Longest time of a query or of a command.
const COMMAND: Duration = Duration::from_secs(30);
/// Flows a second if the processing rate of section 5.1.3 was not measured; and at most, so that the emulator itself
/// keeps up.
const FLOW_RATE: f64 = 500.0;
const MOST_FLOW_RATE: f64 = 20_000.0;

/// Measures the number of control sessions.
///
/// # Errors
/// The system gives no sockets.
pub(super) fn sessions(subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    let settings = subject.settings;
    subject.pause();
    let most = settings.max_sessions as usize;
    let mut bed = Testbed::unconnected(&subject.testbed_settings(), TestNetworkPlan::isolated(most))?;
    bed.is_renewing = false;
    let mut end = None;
    for node in 0..most {
        if subject.is_over() {
            end = Some("the test's time limit was reached, or Ctrl-C was pressed".to_owned());
            break;
        }
        if let Err(error) = bed.connect_node(node) {
            end = Some(format!("{error:#}"));
            break;
        }
        let wanted = node + 1;
        if !bed.run(SESSION, |network| network.set_up() >= wanted || network.ended().is_some())? {
            end = Some(format!("switch {wanted} was not set up within {SESSION:?}"));
            break;
        }
        if let Some(reason) = bed.network.ended() {
            end = Some(format!("a connection ended after {node} sessions: {reason}"));
            break;
        }
    }
    let accepted = bed.network.set_up();
    bed.run(STAY, |network| network.ended().is_some())?;
    let kept = bed.network.set_up();
    if accepted == 0 {
        return Ok(TestOutcome::not_applicable(end.unwrap_or_else(|| "no session was accepted".to_owned())));
    }
    let mut table = TrialTable::new("test", &[("sessions", "")]);
    table.row("Control Sessions Capacity (CCn)", vec![Some(kept as f64)]);
    let mut outcome = TestOutcome::measured(table);
    match end {
        Some(reason) => outcome.note(format!("ended because {reason}")),
        None => {
            outcome.note(format!("{kept} sessions are the limit of the test (--max-sessions), not the controller's"));
        }
    }
    if kept < accepted {
        outcome.note(format!("{accepted} sessions were accepted, {} of them ended within {STAY:?}", accepted - kept));
    }
    Ok(outcome)
}

/// Measures the forwarding table's capacity: reactively if its entries can be counted, else proactively.
///
/// # Errors
/// The controller cannot be reached.
pub(super) fn forwarding_table(subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    let settings = subject.settings;
    let mut outcome = TestOutcome::default();
    if let Some(line) = settings.flows_command.as_deref() {
        outcome.append(reactive(subject, line)?);
    }
    if let Some(line) = settings.provision_command.as_deref() {
        outcome.append(proactive(subject, line)?);
    }
    if settings.flows_command.is_none() && settings.provision_command.is_none() {
        return Ok(TestOutcome::not_applicable(
            "the entries of the controller's forwarding table cannot be counted (section 5.2.3, prerequisite 4): give \
             its northbound interface by --flows-command or --provision-command",
        ));
    }
    Ok(outcome)
}

fn reactive(subject: &mut TestSubject, line: &str) -> anyhow::Result<TestOutcome> {
    let settings = subject.settings;
    let mut bed = subject.deploy()?;
    let rate = subject.found.processing_rate.unwrap_or(FLOW_RATE).clamp(1.0, MOST_FLOW_RATE);
    let (stream, base) = bed.fresh(settings.max_flows);
    for generator in [0, 1] {
        bed.announce(generator, base, 1)?;
        bed.network.arrivals[generator].expect(stream);
    }
    let now = bed.now();
    let pace = (OfferedPace::Every(Duration::from_secs_f64(2.0 / rate)), settings.max_flows / 2);
    let bytes = settings.frame_sizes.first().copied().unwrap_or(128);
    let offered =
        |generator| OfferedStream::new(now, (generator, stream), (OfferedHosts::NewSources, base), pace, bytes);
    bed.network.streams = vec![offered(0), offered(1)];
    let (mut last, mut equal) = (None, 0);
    while equal < EQUAL_ANSWERS && !subject.is_over() {
        bed.run_for(subject.settings.query())?;
        let count = match bed.command(line, COMMAND)?.and_then(|text| read_count(&text)) {
            Ok(count) => count,
            Err(problem) => return Ok(TestOutcome::not_applicable(problem)),
        };
        equal = if last == Some(count) { equal + 1 } else { 1 };
        last = Some(count);
    }
    let is_exhausted = bed.network.streams.iter().all(|stream| stream.sent >= stream.count);
    bed.network.streams.clear();
    let mut table = TrialTable::new("reactive provisioning", &[("flow entries", "")]);
    table.row("Forwarding Table Capacity (Nrp)", vec![last.map(|count| count as f64)]);
    let mut outcome = TestOutcome::measured(table);
    if is_exhausted {
        outcome.note(format!("all {} flows were sent (--max-flows): the capacity may be greater", settings.max_flows));
    }
    if equal < EQUAL_ANSWERS {
        outcome.note("the number of entries still changed when the test ended, at its time limit or by Ctrl-C");
    }
    Ok(outcome)
}

fn proactive(subject: &mut TestSubject, line: &str) -> anyhow::Result<TestOutcome> {
    let settings = subject.settings;
    let mut bed = subject.deploy()?;
    let (stream, base) = bed.fresh(settings.max_flows);
    let pace = (OfferedPace::Window(1), settings.max_flows);
    let pairs = OfferedStream::new(bed.now(), (0, stream), (OfferedHosts::NewPairs, base), pace, 128);
    let ports = bed.network.plan.generators;
    let (mut accepted, mut failure) = (0_u32, None);
    while accepted < settings.max_flows && failure.is_none() && !subject.is_over() {
        if accepted % ANNOUNCED == 0 {
            announce_both(&mut bed, base + accepted, ANNOUNCED.min(settings.max_flows - accepted))?;
        }
        let line = provision(line, pairs.pair(accepted), ports, u64::from(accepted));
        match bed.command(&line, COMMAND)? {
            Ok(_) => accepted += 1,
            Err(error) => failure = Some(error),
        }
    }
    bed.wait_quiet(QUIET, COMMAND);
    let mut table = TrialTable::new("proactive provisioning", &[("flow entries", "")]);
    table.row("Forwarding Table Capacity (Nrp)", vec![Some(f64::from(accepted))]);
    let mut outcome = TestOutcome::measured(table);
    match failure {
        Some(error) if accepted == 0 => return Ok(TestOutcome::not_applicable(error)),
        Some(error) => outcome.note(format!("ended because {error}")),
        None => outcome
            .note("no command failed before the test's limit (--max-flows, --test-limit): the capacity may be greater"),
    }
    Ok(outcome)
}
