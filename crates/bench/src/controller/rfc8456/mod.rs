//! `weir bench rfc8456`: the 15 tests of RFC 8456 (Benchmarking Methodology for SDN Controller Performance) for any
//! OpenFlow controller, by Appendix A of the RFC.
//!
//! `topology`, `frames`, `figures` and `seen` have networks, frames, formulas and observations. `network` is the
//! emulated network without sockets and clock: `node` a switch, `offer` the traffic generators, `requests` and
//! `exceptions` messages made for a test. `testbed` connects it by the sockets of `controller::engine`. `subject` is a
//! controller under test; `tests` calls the module of each test: `discovery`, `messages`, `paths`, `proactive`,
//! `changes`, `capacity`, `disturbed` (with `attack`) and `reliability`. `northbound` runs commands of the user;
//! `results`, `report` and `page` show what was found.
mod args;
mod attack;
mod capacity;
mod changes;
mod discovery;
mod disturbed;
mod exceptions;
mod figures;
mod frames;
#[cfg(test)]
mod live_tests;
mod messages;
mod network;
mod node;
mod northbound;
mod offer;
mod page;
mod parameters;
mod paths;
mod proactive;
mod reliability;
mod report;
mod requests;
mod results;
#[cfg(test)]
mod scripted;
mod seen;
mod subject;
mod testbed;
mod topology;

pub(crate) use args::Rfc8456Args;

use super::peers::ComparedController;
use super::reflector::Reflector;
use super::resolve;
use crate::machine::BenchMachineInfo;
use anyhow::Context as _;
use report::{EmulatorCapabilities, Rfc8456Report, TestedController};
use requests::RequestTimes;
use results::{BenchmarkTest, TestOutcome, TestResult};
use std::process::ExitCode;
use std::time::Duration;
use subject::{SubjectFindings, TestSettings, TestSubject};
use testbed::DiscoveryState;
use weir_emulator::CancelHandle;
use weir_terminal::output;
use weir_terminal::progress::ProgressDisplay;
use weir_terminal::signals::{STOPPED, StopSignalHandler};

/// Duration of the two measurements of the emulator itself.
const EMULATOR_TRIAL: Duration = Duration::from_millis(300);
/// Most switches that the command can be asked to emulate.
const MOST_DEVICES: u32 = 4096;

pub(crate) fn run(args: &Rfc8456Args) -> anyhow::Result<ExitCode> {
    if let Some(path) = &args.plot {
        output::check_file(path).with_context(|| format!("--plot: cannot write {}", path.display()))?;
    }
    let settings = args.settings()?;
    // The tests of failover connect each switch twice, and renewed connections have descriptors of their own.
    super::ensure_descriptors(settings.max_sessions.max(u32::try_from(settings.plan.nodes * 4)?), 1)?;
    let standby = args.standby.as_deref().map(resolve).transpose()?;
    let signals = StopSignalHandler::watch()?;
    let mut progress = ProgressDisplay::lines();
    let mut report = Rfc8456Report {
        machine: BenchMachineInfo::detect(),
        release_build: weir_units::IS_RELEASE_BUILD,
        emulator: EmulatorCapabilities { max_devices: MOST_DEVICES, processing_us: None, processing_rate: None },
        settings: settings.clone(),
        controllers: Vec::new(),
        failures: Vec::new(),
        is_partial: false,
    };
    if !args.no_emulator {
        progress.stage("measuring the emulator itself");
        match emulator(&settings, &signals.cancel) {
            Ok(found) => report.emulator = found,
            Err(error) => report.failures.push(("the emulator itself".to_owned(), format!("{error:#}"))),
        }
    }
    if let Some(text) = &args.address {
        let mut subject = TestSubject::new(text, resolve(text)?, &settings, &signals.cancel);
        subject.standby = standby;
        report.controllers.push(tested(&mut subject, args, &report.machine, &mut progress)?);
    }
    for controller in &args.compare {
        if signals.cancel.is_cancelled() {
            break;
        }
        let core = core(args);
        match compared(controller, args, (&settings, standby, core), &report.machine, &signals.cancel, &mut progress) {
            Ok(result) => report.controllers.push(result),
            Err(error) => report.failures.push((controller.name.clone(), format!("{error:#}"))),
        }
    }
    report.is_partial = signals.cancel.is_cancelled();
    let text = match (args.json, args.csv) {
        (true, _) => serde_json::to_string_pretty(&report)? + "\n",
        (_, true) => report.csv(),
        _ => report.text(),
    };
    output::print(&text)?;
    if let Some(path) = &args.plot {
        output::write_file(path, &page::page(&report)).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(match (report.is_partial, report.failures.is_empty()) {
        (true, _) => ExitCode::from(STOPPED),
        (_, true) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    })
}

/// Returns the core of compared controllers: the first if there are several, unless the user says otherwise.
fn core(args: &Rfc8456Args) -> Option<usize> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    args.core.or((cores > 1).then_some(0))
}

/// Tests a controller, which is started anew for each test: none finds hosts, links or entries of another one.
fn compared(
    controller: &ComparedController,
    args: &Rfc8456Args,
    (settings, standby, core): (&TestSettings, Option<std::net::SocketAddr>, Option<usize>),
    machine: &BenchMachineInfo,
    cancel: &CancelHandle,
    progress: &mut ProgressDisplay,
) -> anyhow::Result<TestedController> {
    let mut tested = TestedController { name: controller.name.clone(), parameters: Vec::new(), tests: Vec::new() };
    let mut found = SubjectFindings::default();
    for test in args.selected() {
        if cancel.is_cancelled() {
            break;
        }
        let started = match controller.start_discovering(settings.version, core, cancel) {
            Ok(started) => started,
            Err(error) if tested.tests.is_empty() => return Err(error),
            Err(error) => {
                tested.tests.push(TestOutcome::not_applicable(format!("the test failed: {error:#}")).of(test));
                continue;
            }
        };
        let settings = settings.with_northbound(started.northbound, started.commands.as_ref());
        let mut subject = TestSubject::new(&controller.name, started.address, &settings, cancel);
        subject.standby = standby;
        subject.program = Some(controller);
        subject.core = core;
        subject.found = found;
        tested.tests.push(result(test, &mut subject, progress));
        found = subject.found;
        tested.parameters = parameters::of(&subject, args, machine);
    }
    Ok(tested)
}

/// Makes the tests of a controller that runs already.
fn tested(
    subject: &mut TestSubject,
    args: &Rfc8456Args,
    machine: &BenchMachineInfo,
    progress: &mut ProgressDisplay,
) -> anyhow::Result<TestedController> {
    // An address without a listener is an error of the command, not of each test.
    std::net::TcpStream::connect_timeout(&subject.address, Duration::from_secs(5))
        .with_context(|| format!("cannot connect to the controller at {}; does it listen there?", subject.address))?;
    let mut tests = Vec::new();
    for test in args.selected() {
        if subject.cancel.is_cancelled() {
            break;
        }
        tests.push(result(test, subject, progress));
    }
    let parameters = parameters::of(subject, args, machine);
    Ok(TestedController { name: subject.name.clone(), parameters, tests })
}

/// Makes a test. If it fails, the result is the reason, so that others can follow.
fn result(test: BenchmarkTest, subject: &mut TestSubject, progress: &mut ProgressDisplay) -> TestResult {
    let (section, title) = test.title();
    progress.stage(&format!("{}: {section} {title}", subject.name));
    subject.begin_test();
    let outcome = measured(test, subject)
        .unwrap_or_else(|error| TestOutcome::not_applicable(format!("the test failed: {error:#}")));
    outcome.of(test)
}

fn measured(test: BenchmarkTest, subject: &mut TestSubject) -> anyhow::Result<TestOutcome> {
    match test {
        BenchmarkTest::TopologyDiscoveryTime => discovery::discovery_time(subject),
        BenchmarkTest::MessageProcessingTime => messages::processing_time(subject),
        BenchmarkTest::MessageProcessingRate => messages::processing_rate(subject),
        BenchmarkTest::ReactivePathTime => paths::reactive_time(subject),
        BenchmarkTest::ProactivePathTime => proactive::proactive_time(subject),
        BenchmarkTest::ReactivePathRate => paths::reactive_rate(subject),
        BenchmarkTest::ProactivePathRate => proactive::proactive_rate(subject),
        BenchmarkTest::ChangeDetectionTime => changes::change_detection(subject),
        BenchmarkTest::SessionsCapacity => capacity::sessions(subject),
        BenchmarkTest::DiscoverySize => discovery::discovery_size(subject),
        BenchmarkTest::ForwardingTableCapacity => capacity::forwarding_table(subject),
        BenchmarkTest::ExceptionHandling => disturbed::exceptions(subject),
        BenchmarkTest::DenialOfService => disturbed::denial_of_service(subject),
        BenchmarkTest::FailoverTime => reliability::failover(subject),
        BenchmarkTest::ReprovisioningTime => reliability::reprovisioning_time(subject),
    }
}

/// Measures the emulator with a peer that does nothing but answer (section 4.8, capabilities of the test emulator).
fn emulator(settings: &TestSettings, cancel: &CancelHandle) -> anyhow::Result<EmulatorCapabilities> {
    let reflector = Reflector::start(settings.version)?;
    let mut subject = TestSubject::new("reflector", reflector.address, settings, cancel);
    subject.found.discovery = Some(DiscoveryState::None);
    let mut bed = subject.deploy()?;
    let bytes = settings.frame_sizes.first().copied().unwrap_or(128);
    let mut serial = 0;
    let mut trial = |times| messages::message_trial(&mut bed, times, bytes, EMULATOR_TRIAL, &mut serial);
    let series = trial(RequestTimes::InSeries)?;
    let flood = trial(RequestTimes::Flood)?;
    Ok(EmulatorCapabilities {
        max_devices: MOST_DEVICES,
        processing_us: series.processing_s.map(|seconds| seconds * 1e6),
        processing_rate: Some(flood.received as f64 / EMULATOR_TRIAL.as_secs_f64()),
    })
}
