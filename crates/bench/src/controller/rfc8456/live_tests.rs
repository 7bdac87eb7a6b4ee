//! Tests of the emulated network: in virtual time against a scripted controller, and over sockets against weir's own
//! controller, the reflector, and peers that are no controller.
use super::exceptions::InvalidMessages;
use super::network::TestNetwork;
use super::offer::{OfferedHosts, OfferedPace, OfferedStream};
use super::results::{BenchmarkTest, TestOutcome};
use super::scripted::ScriptedRun;
use super::subject::{TestSettings, TestSubject};
use super::testbed::Testbed;
use super::topology::{TestNetworkPlan, TestTopology};
use crate::controller::reflector::Reflector;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::time::Duration;
use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
use weir_controller::{Controller, ControllerConfig};
use weir_emulator::CancelHandle;
use weir_openflow::Version;

fn run(rule: TestTopology, spines: usize, version: Version, discovers: bool) -> ScriptedRun {
    let plan = TestNetworkPlan::new(rule, 3, spines).unwrap();
    let mut run = ScriptedRun::new(TestNetwork::new(plan, version), version, discovers);
    run.run(10);
    if discovers {
        run.probe();
        run.run(10);
    }
    assert_eq!(run.network.set_up(), run.network.plan.nodes);
    run
}

/// Lets generator `generator` send frames by this rule.
fn offer(run: &mut ScriptedRun, generator: usize, hosts: OfferedHosts, count: u32) {
    run.network.arrivals[1 - generator].expect(1);
    let pace = (OfferedPace::Every(Duration::from_millis(1)), count);
    run.network.streams = vec![OfferedStream::new(run.now, (generator, 1), (hosts, 0), pace, 128)];
    run.run(u64::from(count) + 5);
}

#[test]
fn discovery_messages_pass_links_in_both_directions() {
    for version in [Version::V10, Version::V13] {
        let run = run(TestTopology::LeafSpine, 2, version, true);
        let seen = &run.network.seen;
        assert!(run.network.is_discovered(), "{} directions", run.network.discovered_directions());
        assert_eq!(run.network.discovered_directions(), 12);
        assert!(seen.first_probe <= seen.last_new_probe && seen.packet_ins == 0, "{seen:?}");
    }
    let none = run(TestTopology::LeafSpine, 2, Version::V13, false);
    assert_eq!((none.network.discovered_directions(), none.network.seen.first_probe), (0, None));
}

#[test]
fn frames_follow_the_flow_entries_that_the_controller_provisions() {
    for version in [Version::V10, Version::V13] {
        let mut run = run(TestTopology::Line, 0, version, false);
        offer(&mut run, 1, OfferedHosts::Announcements, 4);
        assert_eq!(run.network.arrivals[0].announcements, 4);
        run.network.seen.mark();
        offer(&mut run, 0, OfferedHosts::NewPairs, 4);
        // Each of three switches asks about each of four pairs.
        let seen = run.network.seen.marked;
        assert_eq!((run.network.arrivals[1].unique(), seen.flow_mods), (4, 12), "{version:?}");
        assert!(seen.first_request <= seen.last_response);
        run.network.seen.mark();
        offer(&mut run, 0, OfferedHosts::NewPairs, 4);
        let again = run.network.seen.marked;
        assert_eq!((run.network.arrivals[1].unique(), again.first_request), (4, None), "entries are used");
    }
}

#[test]
fn a_failed_link_is_told_and_rediscovered() {
    let mut run = run(TestTopology::Ring, 0, Version::V13, true);
    run.network.seen.mark();
    let now = run.now;
    run.network.set_link(now, 1, false);
    run.run(3);
    let seen = run.network.seen.marked;
    assert!(seen.first_status.is_some() && seen.rediscovery >= seen.first_status, "{seen:?}");
}

#[test]
fn floods_in_a_network_with_loops_are_noticed_and_end() {
    let mut run = run(TestTopology::LeafSpine, 2, Version::V13, false);
    offer(&mut run, 0, OfferedHosts::NewPairs, 1);
    assert!(run.network.is_storming());
    let mut tree = self::run(TestTopology::LeafSpine, 1, Version::V13, false);
    offer(&mut tree, 0, OfferedHosts::NewPairs, 200);
    assert!(!tree.network.is_storming() && tree.network.arrivals[1].unique() == 200);
}

#[test]
fn packets_without_an_entry_are_dropped_for_proactive_tests() {
    let mut run = run(TestTopology::Line, 0, Version::V13, false);
    run.network.drops_misses = true;
    offer(&mut run, 0, OfferedHosts::NewPairs, 3);
    assert_eq!((run.network.seen.packet_ins, run.network.arrivals[1].unique()), (0, 0));
}

#[test]
fn invalid_messages_reach_the_controller() {
    let mut run = run(TestTopology::Line, 0, Version::V13, false);
    run.network.invalid = Some(InvalidMessages::new(Version::V13, run.now, 100.0));
    run.run(95);
    let sent = run.network.invalid.as_ref().map_or(0, |invalid| invalid.sent);
    // weir's session answers each of the two kinds that it can refuse with an error, and reports the third.
    assert_eq!((sent, run.network.seen.errors), (9, 6));
}

fn settings(leaves: usize) -> TestSettings {
    TestSettings {
        version: Version::V13,
        topology: TestTopology::Line,
        leaves,
        spines: 1,
        plan: TestNetworkPlan::new(TestTopology::Line, leaves, 0).unwrap(),
        frame_sizes: vec![128],
        trials: 2,
        trial_s: 0.2,
        limit_s: 60.0,
        discovery_s: 0.5,
        pause_s: 0.05,
        step: 0.5,
        tolerance: 0.9,
        path_rate: None,
        max_paths: 20,
        max_sessions: 8,
        max_nodes: 4,
        max_flows: 10,
        traffic_rate: 200.0,
        attack_rate: 50.0,
        query_s: 0.05,
        topology_command: None,
        provision_command: None,
        flows_command: None,
        connects_to_both: false,
    }
}

/// Makes a test against the controller at an address.
fn outcome(test: BenchmarkTest, address: SocketAddr, settings: &TestSettings) -> anyhow::Result<TestOutcome> {
    let cancel = CancelHandle::new();
    super::measured(test, &mut TestSubject::new("x", address, settings, &cancel))
}

#[test]
fn the_reflector_answers_messages_and_has_no_discovery() {
    let reflector = Reflector::start(Version::V13).unwrap();
    let settings = settings(2);
    let found = outcome(BenchmarkTest::MessageProcessingTime, reflector.address, &settings).unwrap();
    let rows = &found.tables[0].rows;
    assert_eq!(rows.len(), 2);
    assert!(rows[0].values[0].unwrap() > 0.0 && rows[0].values[1].unwrap() >= 1.0, "{rows:?}");
    let found = outcome(BenchmarkTest::MessageProcessingRate, reflector.address, &settings).unwrap();
    let marks: Vec<&str> = found.tables[0].rows.iter().map(|row| row.remark.as_str()).collect();
    assert!(marks.iter().any(|mark| mark.contains("Maximum")), "{marks:?}");
    let sessions = outcome(BenchmarkTest::SessionsCapacity, reflector.address, &settings).unwrap();
    assert_eq!(sessions.tables[0].results(), [8.0]);
    assert!(sessions.notes[0].contains("--max-sessions"), "{:?}", sessions.notes);
    for test in [BenchmarkTest::TopologyDiscoveryTime, BenchmarkTest::ChangeDetectionTime] {
        let found = outcome(test, reflector.address, &settings).unwrap();
        assert!(found.not_applicable.unwrap().contains("no discovery messages"));
    }
}

#[test]
fn without_a_northbound_interface_some_tests_do_not_apply() {
    let reflector = Reflector::start(Version::V13).unwrap();
    let settings = settings(2);
    for (test, option) in [
        (BenchmarkTest::ProactivePathTime, "--provision-command"),
        (BenchmarkTest::ProactivePathRate, "--provision-command"),
        (BenchmarkTest::DiscoverySize, "--topology-command"),
        (BenchmarkTest::ForwardingTableCapacity, "--flows-command"),
        (BenchmarkTest::FailoverTime, "--compare"),
    ] {
        let reason = outcome(test, reflector.address, &settings).unwrap().not_applicable.unwrap();
        assert!(reason.contains(option), "{test:?}: {reason}");
    }
}

#[test]
fn answers_of_a_topology_command_are_compared_with_the_network() {
    let reflector = Reflector::start(Version::V13).unwrap();
    // Says that it knows three switches and their two links, whatever the network is.
    let known = TestSettings { topology_command: Some("echo 3 2".to_owned()), ..settings(3) };
    let found = outcome(BenchmarkTest::DiscoverySize, reflector.address, &known).unwrap();
    let last = found.tables[0].rows.last().unwrap();
    assert_eq!((last.name.as_str(), last.values[0]), ("Network Discovery Size (Ns)", Some(3.0)));
    let wrong = TestSettings { topology_command: Some("echo 1 0".to_owned()), ..settings(3) };
    let found = outcome(BenchmarkTest::DiscoverySize, reflector.address, &wrong).unwrap();
    assert!(found.not_applicable.unwrap().contains("not even the smallest"));
    let flows = TestSettings { flows_command: Some("echo 12".to_owned()), ..settings(3) };
    let found = outcome(BenchmarkTest::ForwardingTableCapacity, reflector.address, &flows).unwrap();
    assert_eq!(found.tables[0].results(), [12.0]);
    let fails = TestSettings { provision_command: Some("test {number} -lt 4".to_owned()), ..settings(3) };
    let found = outcome(BenchmarkTest::ForwardingTableCapacity, reflector.address, &fails).unwrap();
    assert_eq!(found.tables[0].results(), [4.0]);
}

#[test]
fn weirs_controller_provisions_paths_and_survives_exceptions_and_attacks() {
    let listen = vec!["tcp:127.0.0.1:0".parse().unwrap()];
    let app = LearningSwitch::new(LearningConfig::default());
    let controller = Controller::start(Box::new(app), ControllerConfig { listen, ..ControllerConfig::default() });
    let controller = controller.unwrap();
    let port = controller.addresses()[0].to_string().rsplit(':').next().unwrap().parse().unwrap();
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    // Busy machines are slow: the trial ends as soon as the frame arrives.
    let settings = TestSettings { trial_s: 5.0, trials: 1, ..settings(3) };
    let time = outcome(BenchmarkTest::ReactivePathTime, address, &settings).unwrap();
    let row = &time.tables[0].rows[0];
    assert!(row.values[0].unwrap() > 0.0 && row.values[2].unwrap() >= 3.0, "{row:?}");
    assert!(time.notes.iter().any(|note| note.contains("switches in the path: 3")), "{:?}", time.notes);
    let rate = outcome(BenchmarkTest::ReactivePathRate, address, &settings).unwrap();
    assert!(rate.tables[0].rows[0].values[0].unwrap() > 0.0);
    let short = TestSettings { trial_s: 3.0, ..settings };
    for (test, columns) in [(BenchmarkTest::ExceptionHandling, 3), (BenchmarkTest::DenialOfService, 2)] {
        let found = outcome(test, address, &short).unwrap();
        let rows = &found.tables[0].rows;
        assert_eq!(rows[0].values.len(), columns);
        assert!(rows[2].remark.starts_with("not applicable, because the controller sends no discovery"), "{rows:?}");
        let is_known = |value: &Option<f64>| value.is_some_and(|value| value > 0.0);
        assert!(rows[..2].iter().all(|row| row.values.iter().all(is_known)), "{rows:?} {:?}", found.notes);
    }
    let loops = outcome(BenchmarkTest::ReprovisioningTime, address, &short).unwrap();
    assert!(loops.not_applicable.unwrap().contains("frames circle"));
}

#[test]
fn an_address_without_a_controller_is_an_error() {
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr()).unwrap();
    let error = outcome(BenchmarkTest::MessageProcessingTime, free, &settings(2)).unwrap_err().to_string();
    assert!(error.contains("does the controller listen there?"), "{error}");
}

#[test]
fn switches_whose_connection_ends_connect_again() {
    let reflector = Reflector::start(Version::V13).unwrap();
    let (settings, cancel) = (settings(2), CancelHandle::new());
    let mut subject = TestSubject::new("x", reflector.address, &settings, &cancel);
    subject.found.discovery = Some(super::testbed::DiscoveryState::None);
    let mut bed: Testbed = subject.deploy().unwrap();
    let now = bed.now();
    crate::controller::engine::ServedChannels::close(&mut bed.network, 0, now, "a test");
    let is_back = bed.run(Duration::from_secs(20), |network| network.set_up() == 2 && network.ended().is_none());
    assert!(is_back.unwrap() && bed.network.seen.reconnects == 1);
}
