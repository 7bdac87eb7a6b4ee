//! Tests labs with hosts in this process, from scenario to result.
use std::time::Duration;
use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
use weir_controller::{Controller, ControllerConfig};
use weir_emulator::{CancelHandle, LabError, LabOptions, run};
use weir_network::result::TrafficResult;
use weir_network::{LabProgress, LabResult, NetworkError};
use weir_scenario::{Scenario, TrafficKind};

/// Returns the README's example, with traffic of a fraction of a second.
fn quickstart() -> Scenario {
    let mut scenario = Scenario::read(&weir_testing::workspace().join("examples/quickstart.toml")).unwrap();
    for item in &mut scenario.traffic {
        item.start = item.start.min(Duration::from_millis(400));
        if let TrafficKind::Tcp { duration } | TrafficKind::Udp { duration, .. } = &mut item.kind {
            *duration = Duration::from_millis(400);
        }
    }
    scenario
}

/// Returns two hosts on two switches. `more` is added to the file, `link` to the link between the switches.
fn pair(link: &str, more: &str) -> Scenario {
    let text = format!(
        r#"
        [[switch]]
        name = "s1"
        fail_mode = "standalone"
        [[switch]]
        name = "s2"
        fail_mode = "standalone"
        [[host]]
        name = "a"
        switch = "s1"
        ip = ["10.0.0.1/24", "fd00::1/64"]
        [[host]]
        name = "b"
        switch = "s2"
        ip = ["10.0.0.2/24", "fd00::2/64"]
        [[link]]
        ends = ["s1", "s2"]
        {link}
        {more}
        "#
    );
    Scenario::parse(&text, "pair.toml").unwrap()
}

const PING: &str = "[[traffic]]\nkind = \"ping\"\nfrom = \"a\"\nto = \"b\"\ncount = 3\ninterval = \"20ms\"\n";

fn lab(scenario: &Scenario) -> LabResult {
    run(scenario, &LabOptions::default(), &mut |_| {}).unwrap()
}

fn of_kind<'a>(result: &'a LabResult, kind: &str) -> &'a TrafficResult {
    result.traffic.iter().find(|item| item.kind == kind).unwrap()
}

#[test]
fn a_live_run_is_certified_if_asked() {
    let scenario = pair("delay = \"1ms\"", PING);
    assert!(lab(&scenario).certificate.is_none());
    let options = LabOptions { certify: true, ..LabOptions::default() };
    let certificate = run(&scenario, &options, &mut |_| {}).unwrap().certificate.unwrap();
    // Each of three pings crosses the link twice, and so do questions for addresses.
    assert!(certificate.links.unwrap().by.samples >= 6, "{certificate}");
    let senders = certificate.senders.unwrap();
    assert_eq!((senders.asked, senders.sent), (3, 3), "{certificate}");
    assert!(certificate.overflows.as_ref().is_some_and(|full| full.frames > 0 && full.lost == 0), "{certificate}");
    // This run has no such option.
    assert!(certificate.advice.iter().all(|advice| !advice.contains("use --dilate")), "{certificate}");
}

#[test]
fn tenants_reach_their_own_and_nobody_else() {
    let scenario = quickstart();
    let mut steps = Vec::new();
    let mut last = None;
    let result = run(&scenario, &LabOptions::default(), &mut |progress| match progress {
        LabProgress::Step(step) => steps.push(step),
        LabProgress::Traffic { .. } => last = Some(progress),
        LabProgress::Pings { .. } => unreachable!("only at a prompt"),
    })
    .unwrap();
    assert!(result.passed && !result.partial, "{result:#?}");
    assert_eq!(steps, ["making hosts", "starting switches", "cleaning up"]);
    assert!(matches!(last, Some(LabProgress::Traffic { done: 6, items: 6, .. })), "{last:?}");

    for item in &result.traffic {
        assert_eq!(item.reached, item.from != "red-a" || item.to != "blue-b", "{item:?}");
    }
    let pings: Vec<_> = result.traffic.iter().filter_map(|item| item.rtt).collect();
    assert_eq!(pings.len(), 3);
    for rtt in pings {
        // The link delays each way by 2 ms. No upper bound, because the machine may be busy.
        assert_eq!(rtt.samples, 10);
        assert!(
            rtt.min_us >= 4000.0 && rtt.min_us <= rtt.p50_us && rtt.p50_us <= rtt.p99_us && rtt.p99_us <= rtt.max_us
        );
    }
    let tcp = of_kind(&result, "tcp");
    assert!(tcp.goodput_bps.unwrap() > 1e6 && tcp.goodput_bps.unwrap() < 1e9, "{tcp:?}");
    let udp = of_kind(&result, "udp");
    // A busy machine may keep the sender below its rate, which is then reported. Sent datagrams arrive.
    assert!(udp.sent.unwrap() * 2 > udp.asked.unwrap() && udp.loss.unwrap() < 0.05, "{udp:?}");
    assert!(udp.delay.unwrap().min_us >= 2000.0);
    assert!(result.switches.iter().all(|switch| switch.entries >= 5 && switch.channels_up == 1), "{result:#?}");
    let controller = result.controller.as_ref().unwrap();
    assert!(controller.packet_ins > 0 && controller.flow_mods > 0 && controller.errors == 0);
}

#[test]
fn the_json_document_says_what_it_was_measured_with() {
    let result = lab(&pair("", PING));
    let json = serde_json::to_value(&result).unwrap();
    assert_eq!(json["setup"]["scenario"], "pair");
    assert_eq!(json["setup"]["mode"], "memory");
    assert_eq!(json["traffic"][0]["rtt"]["samples"], 3);
    for figure in ["seed", "version", "machine", "duration_s"] {
        assert!(!json["setup"][figure].is_null(), "{figure}");
    }
}

#[test]
fn what_is_not_as_expected_fails() {
    let result = lab(&pair("", &format!("{PING}expect = \"isolated\"")));
    assert!(!result.passed && !result.partial && result.traffic[0].reached);
}

#[test]
fn a_full_link_drops_and_says_where() {
    let traffic = "[[traffic]]\nkind = \"udp\"\nfrom = \"a\"\nto = \"b\"\nrate = \"20Mbit/s\"\nduration = \"500ms\"\n";
    let queue = "{ queue = 0, max = \"5Mbit/s\", buffer = \"10kB\" }";
    for link in ["rate = \"5Mbit/s\"\nbuffer = \"10kB\"", &format!("rate = \"1Gbit/s\"\nqueues = [{queue}]")] {
        drops_in_full_buffer(&lab(&pair(link, traffic)));
    }
}

fn drops_in_full_buffer(result: &LabResult) {
    let udp = of_kind(result, "udp");
    assert!(result.passed, "{result:#?}");
    // Of 1042 bytes 1000 are payload: 4.8 Mbit/s, less if a busy machine made the sender send in bursts.
    let goodput = udp.goodput_bps.unwrap();
    assert!(goodput > 2e6 && goodput < 5e6, "{udp:?}");
    let lost = udp.sent.unwrap() - udp.received;
    let drops = &result.drops;
    let of_link = drops.iter().find(|drop| drop.place == "s1 port 2 to s2").expect("the link's drops");
    assert_eq!(of_link.reason, "sending: queue full");
    // A host whose port a busy machine does not serve in time loses some packets there; every loss has a place.
    let counted: u64 = drops.iter().map(|drop| drop.packets).sum();
    assert!(of_link.packets * 2 > lost && counted >= lost && counted <= lost + 2, "{lost} lost, {drops:?}");
}

#[test]
fn other_controls_work_too() {
    for control in ["app = \"learning\"\nopenflow = \"1.0\"", "connect = \"none\""] {
        let ipv6 = PING.to_owned() + "ipv6 = true\n";
        let result = lab(&pair("", &format!("{PING}{ipv6}[controller]\n{control}")));
        assert!(result.passed, "{control}: {result:#?}");
    }
}

#[test]
fn a_stopped_run_is_partial() {
    let long = "[[traffic]]\nkind = \"ping\"\nfrom = \"a\"\nto = \"b\"\ncount = 1000\ninterval = \"10ms\"\n";
    let cancel = CancelHandle::new();
    let options = LabOptions { cancel: cancel.clone(), ..LabOptions::default() };
    let result = run(&pair("", long), &options, &mut |progress| {
        if matches!(progress, LabProgress::Traffic { elapsed, .. } if elapsed > Duration::from_millis(300)) {
            cancel.cancel();
        }
    })
    .unwrap();
    assert!(result.partial && !result.passed && result.traffic[0].partial);
    let received = result.traffic[0].received;
    assert!(received > 0 && received < 200, "{received}");
}

#[test]
fn a_server_has_many_clients() {
    let mut text = String::from("[[switch]]\nname = \"s\"\n");
    for number in 0..25 {
        let host = format!("[[host]]\nname = \"h{number}\"\nswitch = \"s\"\nip = \"10.0.0.{}/24\"\n", number + 1);
        let to_first = format!("[[traffic]]\nkind = \"ping\"\nfrom = \"h{number}\"\nto = \"h0\"\ncount = 2\n");
        text += &host;
        text += if number == 0 { "" } else { &to_first };
    }
    let result = lab(&Scenario::parse(&text, "many").unwrap());
    assert!(result.passed, "{result:#?}");
    assert!(result.traffic.iter().all(|item| item.received == 2), "{result:#?}");
}

/// Returns a topology with pings between all hosts.
fn all_pings(topology: &str, hosts: usize) -> Scenario {
    let mut text = format!("[topology]\n{topology}\n");
    for from in 1..=hosts {
        for to in (1..=hosts).filter(|to| *to != from) {
            text += &format!("[[traffic]]\nkind = \"ping\"\nfrom = \"h{from}\"\nto = \"h{to}\"\ncount = 2\n");
        }
    }
    Scenario::parse(&text, "topology").unwrap()
}

#[test]
fn all_reach_all_where_links_form_loops() {
    for (topology, hosts) in [("kind = 'ring'\nswitches = 4", 4), ("kind = 'fat-tree'\nk = 4\nhosts = 1", 8)] {
        let result = lab(&all_pings(topology, hosts));
        assert!(result.passed && result.traffic.iter().all(|item| item.received == 2), "{topology}: {result:#?}");
    }
}

#[test]
fn links_lose_what_they_are_told_to() {
    let text = "[topology]\nkind = 'linear'\nswitches = 2\nrate = '100Mbit/s'\ndelay = '2ms'\njitter = '1ms'\nloss = '50%'\n\
                [[traffic]]\nkind = 'udp'\nfrom = 'h1'\nto = 'h2'\nrate = 1000\nduration = '1s'\n";
    let result = lab(&Scenario::parse(text, "lossy").unwrap());
    let item = &result.traffic[0];
    let dropped = |reason: &str| -> u64 {
        result.drops.iter().filter(|drop| drop.reason == reason).map(|drop| drop.packets).sum()
    };
    let (lost, unanswered) = (dropped("sending: lost by the link"), dropped("no answer to ARP or neighbour discovery"));
    // Address requests are lost, too, with the datagrams that wait for their answers; few datagrams may reach the
    // link at all.
    assert!(lost > 0 && item.received > 0, "{result:#?}");
    assert!((item.received + lost + unanswered).abs_diff(1000) <= 20, "{result:#?}");
}

#[test]
fn what_no_lab_can_be_is_refused() {
    let refused = |scenario: &Scenario| run(scenario, &LabOptions::default(), &mut |_| {}).unwrap_err().to_string();
    let twice = pair("", "[[link]]\nends = [\"s1\", \"s2\"]\n[controller]\nconnect = \"none\"");
    assert!(refused(&twice).starts_with("link s1 - s2: found a loop of links"), "{}", refused(&twice));
    let ring = Scenario::parse("[topology]\nkind = 'ring'\nswitches = 3\nfail_mode = 'standalone'", "ring").unwrap();
    assert!(refused(&ring).contains("found a loop of links and the standalone switch s1"), "{}", refused(&ring));
    let mut crowded = pair("", PING);
    crowded.hosts[0].ip = vec![crowded.hosts[0].ip[0]; 9];
    assert_eq!(refused(&crowded), "host a: found 9 addresses, expected at most 8");
}

#[test]
fn a_controller_elsewhere_controls_the_switches() {
    let app = Box::new(LearningSwitch::new(LearningConfig::default()));
    let listen = vec!["tcp:127.0.0.1:0".parse().unwrap()];
    let controller = Controller::start(app, ControllerConfig { listen, ..ControllerConfig::default() }).unwrap();
    let connect = format!("{PING}[controller]\nconnect = \"{}\"", controller.addresses()[0]);
    let result = lab(&pair("", &connect));
    assert!(result.passed && result.controller.is_none(), "{result:#?}");
    assert!(result.switches.iter().all(|switch| switch.channels_up == 1 && switch.entries > 1), "{result:#?}");
    assert_eq!(controller.stop().counters.errors, 0);
}

#[test]
fn the_example_of_a_slow_line_shows_delay_and_drops() {
    let mut scenario = Scenario::read(&weir_testing::workspace().join("examples/wan.toml")).unwrap();
    for item in &mut scenario.traffic {
        if let TrafficKind::Tcp { duration } | TrafficKind::Udp { duration, .. } = &mut item.kind {
            *duration = Duration::from_secs(1);
        }
    }
    let result = lab(&scenario);
    assert!(result.passed, "{result:#?}");
    let rtts: Vec<_> = result.traffic.iter().filter_map(|item| item.rtt).map(|rtt| rtt.min_us).collect();
    assert!(rtts[0] >= 20_000.0 && rtts[1] >= 24_000.0, "{rtts:?}");
    assert!(result.switches.iter().all(|switch| switch.entries == 0 && switch.channels_up == 0), "{result:#?}");
    assert!(result.drops.iter().any(|drop| drop.place == "west port 3 to east"), "{:#?}", result.drops);
}

#[test]
fn the_example_of_a_controller_elsewhere_runs() {
    let app = Box::new(LearningSwitch::new(LearningConfig::default()));
    let listen = vec!["tcp:127.0.0.1:0".parse().unwrap()];
    let controller = Controller::start(app, ControllerConfig { listen, ..ControllerConfig::default() }).unwrap();
    // Another program may use the file's address on this machine.
    let file = weir_testing::workspace().join("examples/external.toml");
    let text = std::fs::read_to_string(file).unwrap();
    let address = controller.addresses()[0].to_string();
    let result = lab(&Scenario::parse(&text.replace("tcp:127.0.0.1:6653", &address), "external").unwrap());
    assert!(result.passed && result.switches.len() == 3, "{result:#?}");
    assert_eq!(controller.stop().counters.errors, 0);
}

#[test]
fn a_controller_that_is_not_there_is_an_error() {
    let scenario = pair("", &format!("{PING}[controller]\nconnect = \"tcp:127.0.0.1:1\""));
    let cancel = CancelHandle::new();
    let options = LabOptions { cancel: cancel.clone(), ..LabOptions::default() };
    let result = run(&scenario, &options, &mut |_| {});
    assert!(matches!(result, Err(LabError::Network(NetworkError::NotReady(_)))), "{result:?}");
}
