//! Cases of intents, one by one.
use super::bed::{HOST_PORT, TestNetwork, mac};
use crate::intents::{IntentConfig, IntentError, IntentState, WhatIf};
use crate::map::SwitchPort;
use std::time::Duration;
use weir_openflow::model::PortNo;

const RING: [(u64, u64); 4] = [(1, 2), (2, 3), (3, 4), (4, 1)];
const H2H: &str = r#"{"key":"a","kind":"host-to-host","from":["h1"],"to":["10.0.0.3"]}"#;

fn ring() -> TestNetwork {
    TestNetwork::new(4, &RING, IntentConfig::default())
}

fn host(number: u64) -> SwitchPort {
    SwitchPort::new(number, PortNo(HOST_PORT))
}

#[test]
fn an_intent_is_installed_when_packets_were_seen_to_pass() {
    let mut network = ring();
    let status = network.set(H2H);
    assert_eq!((status.state, status.reason.as_str(), status.confirmed), (IntentState::Installed, "", 2));
    assert_eq!(status.paths.len(), 2);
    assert_eq!((network.probes, network.routes.len()), (2, 2), "entries that catch packets are gone");
    let again = network.set(H2H);
    assert_eq!((again, network.probes), (status, 2), "equal content changes nothing");
    network.store.remove("a").unwrap();
    network.act();
    assert!(network.store.status("a", &network.map).is_none() && network.routes.is_empty());
    assert_eq!(network.store.remove("a"), Err(IntentError::Unknown { key: "a".into() }));
}

#[test]
fn a_switch_that_loses_packets_keeps_an_intent_from_being_installed() {
    let mut network = ring();
    network.deaf = [2, 4].into();
    let status = network.set(H2H);
    assert_eq!(status.state, IntentState::Compiling);
    network.run(Duration::from_secs(2));
    let status = network.status("a");
    assert_eq!((status.state, status.confirmed), (IntentState::Degraded, 0));
    assert!(
        status.reason.starts_with("confirmation: 2 of 2 packets did not arrive after 5 tries"),
        "{}",
        status.reason
    );
    assert_eq!(network.routes.len(), 2, "no entries that catch packets stay");
    network.deaf.clear();
    network.run(Duration::from_secs(11));
    assert_eq!(network.status("a").state, IntentState::Installed);
}

#[test]
fn forged_and_stray_confirmation_packets_are_not_believed() {
    let mut network = ring();
    network.deaf = [1, 2, 3, 4].into();
    network.set(H2H);
    let forged = crate::intents::probe::build(&weir_openflow::model::Match::any(), 1, 77).unwrap();
    assert!(network.store.handle_probe(host(3), &forged));
    assert!(!network.store.handle_probe(host(3), &[0; 80]));
    assert_eq!(network.status("a").confirmed, 0);
    let count = network.store.counters().into_iter().find(|(name, _)| *name == "intent_probes_not_ours").unwrap();
    assert_eq!(count.1, 1);
}

#[test]
fn bandwidth_that_is_not_left_is_refused_with_where_and_how_much() {
    let mut network = TestNetwork::new(3, &[(1, 2), (2, 3)], IntentConfig::default());
    let with = |key: &str, from: u64, to: u64, rate: &str| {
        format!(
            r#"{{"key":"{key}","kind":"point-to-point","from":["h{from}"],"to":["h{to}"],"constraints":{{"bandwidth":"{rate}"}}}}"#
        )
    };
    assert_eq!(network.set(&with("a", 1, 3, "700Mbit/s")).state, IntentState::Installed);
    let status = network.set(&with("b", 2, 3, "400Mbit/s"));
    let reason =
        format!("bandwidth: 300Mbit/s of 1Gbit/s left out of port {}, 400Mbit/s asked for", network.port(2, 3));
    assert_eq!((status.state, status.reason), (IntentState::Failed, reason));
    // The other direction is free.
    assert_eq!(network.set(&with("c", 3, 2, "900Mbit/s")).state, IntentState::Installed);
    // What becomes free is used.
    network.store.remove("a").unwrap();
    network.run(Duration::from_millis(1));
    assert_eq!(network.status("b").state, IntentState::Installed);
}

#[test]
fn hosts_nobody_knows_are_waited_for() {
    let mut network = ring();
    let status = network.set(r#"{"key":"a","kind":"host-to-host","from":["h1"],"to":["h9"]}"#);
    assert_eq!((status.state, status.reason.as_str()), (IntentState::Failed, "to: no host `h9` is known"));
    network.place_host(9, SwitchPort::new(3, PortNo(HOST_PORT + 1)));
    network.change();
    assert_eq!(network.status("a").state, IntentState::Installed);
    network.place_host(9, SwitchPort::new(2, PortNo(HOST_PORT + 1)));
    network.change();
    let status = network.status("a");
    assert_eq!((status.state, status.paths[0].ports.last().unwrap().dpid), (IntentState::Installed, 2));
}

#[test]
fn a_full_table_leaves_nothing_or_the_former_way() {
    let mut network = ring();
    network.full = [2].into();
    let spec = r#"{"key":"a","kind":"host-to-host","from":["h1"],"to":["h2"]}"#;
    let status = network.set(spec);
    assert_eq!((status.state, status.reason.as_str()), (IntentState::Failed, "switch 2 refused an entry: TABLE_FULL"));
    assert!(network.routes.is_empty(), "nothing half installed: {:?}", network.routes);
    network.full.clear();
    network.run(Duration::from_secs(11));
    assert_eq!(network.status("a").state, IntentState::Installed);
    // A better way that is refused leaves the former one.
    let slow = network.port(1, 2);
    let before = network.routes.clone();
    network.set_delay(slow, Duration::from_millis(5));
    network.full = [3].into();
    network.run(Duration::from_secs(25));
    let status = network.status("a");
    assert_eq!((network.routes.clone(), status.paths[0].ports.len()), (before, 4));
    assert!(network.reports.iter().any(|text| text.contains("refused")), "{:?}", network.reports);
    network.full.clear();
    network.run(Duration::from_secs(60));
    assert_eq!((network.status("a").state, network.status("a").paths[0].ports.len()), (IntentState::Installed, 8));
}

#[test]
fn better_ways_are_taken_only_if_they_are_shorter_by_enough_for_a_while() {
    let mut network = TestNetwork::new(2, &[(1, 2), (1, 2)], IntentConfig::default());
    network.set(r#"{"key":"a","kind":"host-to-host","from":["h1"],"to":["h2"]}"#);
    let used = network.status("a").paths[0].ports[1];
    let other = SwitchPort::new(1, PortNo(3 - used.port.0));
    network.set_delay(other, Duration::ZERO);
    network.run(Duration::from_secs(60));
    assert_eq!(network.status("a").paths[0].ports[1], used, "100 us are not enough, whatever share they are");
    network.set_delay(used, Duration::from_millis(10));
    network.set_delay(other, Duration::from_micros(9500));
    network.run(Duration::from_secs(60));
    assert_eq!(network.status("a").paths[0].ports[1], used, "5 % are not enough");
    network.set_delay(other, Duration::from_millis(5));
    network.run(Duration::from_secs(11));
    network.set_delay(other, Duration::from_millis(10));
    network.run(Duration::from_secs(30));
    assert_eq!(network.status("a").paths[0].ports[1], used, "not for long");
    network.set_delay(other, Duration::from_millis(5));
    network.run(Duration::from_secs(30));
    assert_eq!((network.status("a").paths[0].ports[1], network.status("a").state), (other, IntentState::Installed));
}

#[test]
fn equal_packets_are_not_claimed_twice_at_equal_priority() {
    let mut network = ring();
    network.set(H2H);
    let other = r#"{"key":"b","kind":"point-to-point","from":["h1"],"to":["2:101"],"traffic":"tcp"}"#;
    let status = network.set(other);
    assert_eq!(status.state, IntentState::Failed);
    assert_eq!(status.reason, "traffic: intent `a` has packets in common at port 1:100 and equal priority");
    let status = network.set(&other.replace(r#""tcp"}"#, r#""tcp","constraints":{"priority":5}}"#));
    assert_eq!(status.state, IntentState::Installed);
    network.set(&other.replace(r#""b""#, r#""c""#));
    network.store.remove("b").unwrap();
    network.store.remove("a").unwrap();
    network.run(Duration::from_millis(1));
    let status = network.status("c");
    assert_eq!(
        (status.state, status.reason.as_str()),
        (IntentState::Installed, ""),
        "tried again when packets are free"
    );
}

#[test]
fn delays_are_bounded_by_the_model_and_kept_for_earlier_intents() {
    let mut network = TestNetwork::new(3, &[(1, 2), (2, 3)], IntentConfig::default());
    let with = |key: &str, rate: &str, most: &str| {
        format!(
            r#"{{"key":"{key}","kind":"point-to-point","from":["{}"],"to":["h3"],"constraints":{{"bandwidth":"{rate}","delay":{{"most":"{most}","percentile":99.0}}}}}}"#,
            if key == "a" { "h1" } else { "h2" }
        )
    };
    let status = network.set(&with("a", "100Mbit/s", "300us"));
    assert_eq!(status.state, IntentState::Installed);
    // Three switches of 10 us, three sendings of 12 us, two links of 100 us, and waits at a load of 0.1.
    let delay = status.expected_delay_us.unwrap();
    assert!((266.0..300.0).contains(&delay), "{delay}");
    let status = network.set(&with("b", "850Mbit/s", "10ms"));
    assert_eq!(status.state, IntentState::Failed);
    assert!(status.reason.contains("bound of intent `a` would not hold"), "{}", status.reason);
    let status = network.set(&with("c", "1Mbit/s", "100us"));
    assert!(status.reason.starts_with("delay: 1") && status.reason.contains("at most 100.0 us"), "{}", status.reason);
    let worst = r#"{"key":"d","kind":"point-to-point","from":["h1"],"to":["h2"],"traffic":"tcp","constraints":{"delay":{"most":"10ms","worst-case":null}}}"#;
    assert_eq!(network.set(worst).reason, "delay: the buffers of ports are not known");
}

#[test]
fn unknown_rates_are_refused_or_assumed() {
    for (assumed, state) in [(None, IntentState::Failed), (Some(weir_units::Bps(1_000_000)), IntentState::Installed)] {
        let config = IntentConfig { assumed_rate: assumed, ..IntentConfig::default() };
        let mut network = TestNetwork::new(2, &[(1, 2)], config);
        let at = network.port(1, 2);
        network.map.switches.get_mut(&1).unwrap().ports.get_mut(&at.port).unwrap().curr_speed = 0;
        let json =
            r#"{"key":"a","kind":"point-to-point","from":["h1"],"to":["h2"],"constraints":{"bandwidth":"500kbit/s"}}"#;
        let status = network.set(json);
        assert_eq!(status.state, state, "{}", status.reason);
        assert!(state == IntentState::Installed || status.reason.contains("rate out of port 1:1 is not known"));
    }
}

#[test]
fn what_if_tells_without_doing() {
    let mut network = TestNetwork::new(4, &[(1, 2), (2, 3), (3, 1), (3, 4)], IntentConfig::default());
    network.set(r#"{"key":"a","kind":"host-to-host","from":["h1"],"to":["h2"],"constraints":{"protected":true}}"#);
    network.set(r#"{"key":"b","kind":"host-to-host","from":["h3"],"to":["h4"]}"#);
    let (routes, reserved) = (network.routes.clone(), network.store.reserved());
    let ask = |network: &TestNetwork, case: &WhatIf| network.store.what_if(&network.map, case).unwrap();
    let cut = ask(&network, &WhatIf::LinkFails { at: network.port(3, 4) });
    assert_eq!(cut.cut_off, [mac(4).to_string()]);
    let states: Vec<_> = cut.intents.iter().map(|intent| (intent.intent.key.as_str(), intent.state)).collect();
    assert_eq!(states, [("b", IntentState::Failed)]);
    let degraded = ask(&network, &WhatIf::LinkFails { at: network.port(1, 2) });
    assert_eq!((degraded.intents[0].state, degraded.cut_off.len()), (IntentState::Degraded, 0));
    let switch = ask(&network, &WhatIf::SwitchFails { dpid: "2".into() });
    assert_eq!(switch.intents[0].state, IntentState::Failed);
    assert_eq!(switch.cut_off, [mac(2).to_string()]);
    let json = r#"{"key":"c","kind":"point-to-point","from":["h1"],"to":["h4"],"traffic":"udp","constraints":{"bandwidth":"2Gbit/s"}}"#;
    let more = ask(&network, &WhatIf::Intent { intent: serde_json::from_str(json).unwrap() });
    assert_eq!((more.intents.len(), more.intents[0].state), (1, IntentState::Failed));
    assert!(network.store.what_if(&network.map, &WhatIf::LinkFails { at: host(1) }).is_err());
    network.act();
    assert_eq!((&network.routes, network.store.reserved()), (&routes, reserved));
    assert_eq!(network.store.statuses(&network.map).len(), 2);
    network.store.set_loads(&[(network.port(1, 2), 800e6), (network.port(1, 3), 400e6)].into());
    let overloaded = ask(&network, &WhatIf::LinkFails { at: network.port(1, 2) }).overloaded;
    assert_eq!(overloaded, [network.port(1, 3)], "the load goes the other way round");
}

#[test]
fn limits_are_kept_and_counted() {
    let mut network =
        TestNetwork::new(2, &[(1, 2)], IntentConfig { most_intents: 1, labels: 7..=7, ..IntentConfig::default() });
    let ports = |key: &str, traffic: &str| {
        format!(r#"{{"key":"{key}","kind":"point-to-point","from":["1:100"],"to":["2:100"],"traffic":"{traffic}"}}"#)
    };
    assert_eq!(network.set(&ports("a", "tcp")).state, IntentState::Installed);
    let spec = serde_json::from_str(&ports("b", "udp")).unwrap();
    let error = network.store.set(network.now, spec, &network.map).unwrap_err();
    assert_eq!((&error, error.kind()), (&IntentError::Full { most: 1 }, crate::request::ErrorKind::Refused));
    // The same label cannot be used twice at a time, so a changed intent needs a second one for a moment.
    let status = network.set(&ports("a", "udp"));
    assert_eq!((status.state, status.reason.as_str()), (IntentState::Failed, "labels: all 1 are in use"));
    network.change();
    assert_eq!(network.status("a").state, IntentState::Installed);
}

#[test]
fn a_tree_with_a_leaf_at_its_first_switch_is_confirmed_to_all_leaves() {
    let mut network = ring();
    let json = r#"{"key":"a","kind":"one-to-many","from":["1:100"],"to":["1:101","2:100","3:100","3:101"]}"#;
    let status = network.set(json);
    assert_eq!((status.state, status.reason.as_str(), status.confirmed), (IntentState::Installed, "", 4));
}

#[test]
fn confirmation_packets_of_many_intents_wait_for_each_other() {
    let mut network = ring();
    network.deaf = [1, 2, 3, 4].into();
    let intent = |number: u16| {
        let json = r#"{"key":"N","kind":"point-to-point","from":["h1"],"to":["h3"],"traffic":"udp,tp_dst=N"}"#;
        serde_json::from_str(&json.replace('N', &number.to_string())).unwrap()
    };
    let (batch, answers) = network.store.set_all(network.now, (1..=1100).map(intent).collect(), &network.map);
    network.act();
    network.run(Duration::from_millis(1));
    assert_eq!((answers.len(), network.probes), (1100, 1024));
    network.run(Duration::from_secs(3));
    assert_eq!(network.probes, 5 * 1100, "each is tried as often as the first ones");
    let (left, others) = network.store.batch(batch, false).unwrap();
    assert!(left == 0 && others.len() == 1100 && others.iter().all(|other| other.state == IntentState::Degraded));
}

#[test]
fn requests_about_the_same_intents_do_not_pile_up() {
    let mut network = ring();
    let intent = |key: &str| {
        let json = r#"{"key":"N","kind":"point-to-point","from":["h1"],"to":["h3"]}"#;
        serde_json::from_str(&json.replace('N', key)).unwrap()
    };
    for _ in 0..200 {
        network.store.set_all(network.now, vec![intent("a")], &network.map);
    }
    assert!(network.store.intents.values().all(|intent| intent.batches.len() <= 64), "it is not laid yet");
    network.act();
    assert_eq!(network.status("a").state, IntentState::Installed);
    // Keys without an intent do not make a large request, whose intents are reported together.
    network.reports.clear();
    let keys = (0..40).map(|number| if number == 0 { "a".to_owned() } else { format!("none-{number}") });
    let (_, removed) = network.store.remove_all(keys.collect());
    network.act();
    assert_eq!((removed.iter().flatten().count(), network.reports.len()), (1, 1), "{:?}", network.reports);
}
