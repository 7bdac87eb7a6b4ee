//! Tests whole scenarios in virtual time.
use weir_network::intents::IntentState;
use weir_network::{LabProgress, LabResult};
use weir_scenario::Scenario;
use weir_sim::SimulationMonitor;
use weir_sim::network::{VirtualTimeSettings, simulate};

fn quickstart() -> Scenario {
    let text = include_str!("../../../examples/quickstart.toml").replace("duration = \"2s\"", "duration = \"300ms\"");
    Scenario::parse(&text, "quickstart.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn run(scenario: &Scenario) -> LabResult {
    let result = simulate(scenario, &VirtualTimeSettings::default(), &SimulationMonitor::default(), &mut |_| {});
    result.unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn the_example_does_what_it_does_live() {
    let result = run(&quickstart());
    assert!(result.passed && !result.partial, "{:#?}", result.traffic);
    let pings: Vec<_> = result.traffic.iter().filter(|item| item.kind == "ping").collect();
    assert_eq!(pings.iter().map(|item| item.received).collect::<Vec<_>>(), [10, 10, 10, 0]);
    // Round trip over a link of 2 ms each way. Little is added, except for the first ping, which is flooded and
    // asks the controller.
    for rtt in pings.iter().filter_map(|item| item.rtt) {
        assert!(rtt.min_us > 4000.0 && rtt.p50_us < 4050.0, "{rtt:?}");
        assert!(rtt.max_us > rtt.p50_us + 100.0, "the controller takes time: {rtt:?}");
    }
    let tcp = result.traffic.iter().find(|item| item.kind == "tcp").unwrap();
    // The window of 96 KiB fills the link, of which datagrams have a fifth.
    let goodput = tcp.goodput_bps.unwrap();
    assert!((40e6..80e6).contains(&goodput), "{goodput}");
    let udp = result.traffic.iter().find(|item| item.kind == "udp").unwrap();
    assert_eq!((udp.sent, udp.loss), (udp.asked, Some(0.0)));
    let controller = result.controller.unwrap();
    assert!(controller.packet_ins > 0 && controller.flow_mods > 0 && controller.errors == 0, "{controller:?}");
    assert!(result.switches.iter().all(|switch| switch.channels_up == 1 && switch.entries > 0));
}

#[test]
fn the_same_scenario_gives_the_same_result() {
    let json = || serde_json::to_string(&run(&quickstart())).unwrap();
    assert_eq!(json(), json());
}

#[test]
fn a_run_that_is_stopped_says_so() {
    let watch = SimulationMonitor::default();
    let mut told = 0;
    let result = simulate(&quickstart(), &VirtualTimeSettings::default(), &watch, &mut |progress| {
        if let LabProgress::Traffic { elapsed, .. } = progress {
            told += 1;
            watch.cancel.store(elapsed.as_millis() > 100, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let result = result.unwrap_or_else(|error| panic!("{error}"));
    assert!(result.partial && !result.passed && told > 0);
}

#[test]
fn a_slow_line_and_no_controller() {
    let text = include_str!("../../../examples/wan.toml");
    let scenario = Scenario::parse(text, "wan.toml").unwrap();
    let result = run(&scenario);
    assert!(result.passed, "{:#?}", result.traffic);
    assert!(result.controller.is_none());
}

#[test]
fn intents_are_carried_out_and_kept_to() {
    let scenario = Scenario::parse(include_str!("../../../examples/intents.toml"), "intents.toml").unwrap();
    let result = run(&scenario);
    assert!(result.passed, "{:#?}", result.traffic);
    let [calls, alarms] = &result.intents[..] else { panic!("{:#?}", result.intents) };
    assert_eq!((calls.key.as_str(), alarms.key.as_str()), ("calls", "alarms"));
    assert_eq!((&calls.from[..], &calls.to[..]), (&["h1".to_owned()][..], &["h4".to_owned()][..]));
    for intent in [calls, alarms] {
        assert_eq!((intent.state, intent.reason.as_str()), (IntentState::Installed, ""), "{intent:#?}");
        let [bound, expected, measured] = [intent.bound_us, intent.expected_us, intent.measured_us].map(Option::unwrap);
        assert!(measured < expected && expected < bound, "{intent:#?}");
    }
    assert_eq!((calls.delay_of.as_deref(), alarms.delay_of.as_deref()), (Some("p99"), Some("worst case")));
    // Both directions, each with a way that is kept ready.
    assert_eq!(calls.ways.len(), 4, "{calls:#?}");
    assert!(alarms.ways.iter().flatten().all(|port| port.dpid != 5), "{alarms:#?}");
}

#[test]
fn intents_that_cannot_be_carried_out_say_why() {
    let text =
        include_str!("../../../examples/intents.toml").replace("bandwidth = \"20Mbit/s\"", "bandwidth = \"101Mbit/s\"");
    let result = run(&Scenario::parse(&text, "intents.toml").unwrap());
    let calls = &result.intents[0];
    assert_eq!(calls.state, IntentState::Failed, "{calls:#?}");
    assert!(calls.reason.contains("101Mbit/s asked for") && calls.ways.is_empty(), "{calls:#?}");
    assert_eq!(result.intents[1].state, IntentState::Installed, "{:#?}", result.intents);
}

/// Returns the example with virtual switches, with streams of a fraction of a second.
fn two_tenants(more: &str) -> Scenario {
    let text = include_str!("../../../examples/two-tenants.toml").replace("duration = \"2s\"", "duration = \"500ms\"");
    let text = text.replace("dpid = 0x102\n", &format!("dpid = 0x102\n{more}"));
    Scenario::parse(&text, "two-tenants.toml").unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn hosts_behind_virtual_switches_have_their_shares() {
    let result = run(&two_tenants(""));
    assert!(result.passed, "{:#?}", result.traffic);
    let received: Vec<u64> = result.traffic.iter().map(|item| item.received).collect();
    assert_eq!(received[..3], [5, 5, 0]);
    // Each stream offers 25 Mbit/s. Its share of the 20 Mbit/s line is three quarters or one quarter, and its buffer
    // still holds packets at the end.
    let sent = [3, 4].map(|at: usize| result.traffic[at].sent.unwrap());
    let [gold, tin] = [0, 1].map(|at| result.traffic[3 + at].received as f64 / sent[at] as f64);
    assert!((0.58..0.72).contains(&gold) && (0.19..0.25).contains(&tin), "{gold} {tin}");
    assert!(gold / tin > 2.8, "{gold} {tin}");
    for (place, item) in [("s1 gold", 0), ("s1 tin", 1)] {
        let lost = sent[item] - result.traffic[3 + item].received;
        let dropped = result.drops.iter().find(|drop| drop.place == place && drop.reason == "buffer full").unwrap();
        assert_eq!(dropped.packets, lost, "{place}: {:?}", result.drops);
    }
    assert!(result.switches[0].packets == 0, "the switch's own tables saw nothing");
    let json = |result: &LabResult| serde_json::to_string(&result.traffic).unwrap();
    assert_eq!(json(&run(&two_tenants(""))), json(&result), "the same every time");
}

/// Entries of switches and virtual switches call ports by the names of what they lead to.
#[test]
fn entries_know_ports_by_name() {
    let numbers = "[\"in_port=1,actions=output:2\", \"in_port=2,actions=output:1\"]";
    let names = "[\"in_port=tin-a,actions=output:world\", \"in_port=world,actions=tin-a\"]";
    let text = include_str!("../../../examples/two-tenants.toml").replace("duration = \"2s\"", "duration = \"500ms\"");
    assert!(text.contains(numbers));
    let scenario = |names: &str| Scenario::parse(&text.replace(numbers, names), "two-tenants.toml").unwrap();
    let json = |scenario: &Scenario| serde_json::to_string(&run(scenario).traffic).unwrap();
    assert_eq!(json(&scenario(names)), json(&scenario(numbers)));
    let bridge = "[[switch]]\nname = 's1'\nentries = ['in_port=a,actions=output:s1-s2']\n\
                  [[switch]]\nname = 's2'\nentries = ['in_port=s2-s1,actions=output:b']\n[[link]]\nends = ['s1', 's2']\n\
                  [[host]]\nname = 'a'\nswitch = 's1'\nip = '10.0.0.1/24'\n[[host]]\nname = 'b'\nswitch = 's2'\nip = '10.0.0.2/24'\n\
                  [[traffic]]\nkind = 'udp'\nfrom = 'a'\nto = 'b'\nduration = '50ms'\n[controller]\nconnect = 'none'\n";
    let result = run(&Scenario::parse(bridge, "bridge.toml").unwrap());
    assert!(result.switches.iter().all(|switch| switch.entries == 1), "{:#?}", result.switches);
}

#[test]
fn a_virtual_switch_ends_with_its_lifetime() {
    let result = run(&two_tenants("lifetime = \"100ms\"\n"));
    let received: Vec<u64> = result.traffic.iter().map(|item| item.received).collect();
    // Two or three of five pings, 50 ms apart, are sent before the lifetime ends.
    assert!(received[0] == 5 && (1..=3).contains(&received[1]), "{received:?}");
    assert!(received[3] > 0 && received[4] == 0, "{received:?}");
}
