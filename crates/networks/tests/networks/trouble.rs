//! Switches that go away, refuse, or have what the service needs; stores that are full or damaged.
use super::{Bench, OPERATOR, active, at, book, events, link, settle, state, store};
use weir_networks::manager::{LifecycleState, ManagerSettings};
use weir_networks::plan::SliceSpec;
use weir_networks::service::NetworkService;
use weir_networks::switches::SwitchBackoff;
use weir_units::Instant;

fn foreign(name: &str, dpid: u64, port: u32) -> SliceSpec {
    let text = format!(r#"{{ "name": "{name}", "dpid": {dpid}, "select": [{{ "port": {port} }}], "ports": [] }}"#);
    SliceSpec::from_value(serde_json::from_str(&text).unwrap()).unwrap()
}

#[test]
fn a_switch_that_goes_away_half_way_degrades_its_networks_only() {
    let bench = Bench::new();
    let mut service = bench.open();
    active(&mut service, &link("left", ["a1", "b1"], "'20Mbit/s'"), at(0));
    bench.switches.set_silent("s3", true);
    let gold = link("gold", ["a2", "a3"], "'20Mbit/s'");
    service.change(|manager| manager.request(&OPERATOR, &gold, at(10))).unwrap();
    service.change(|manager| manager.commit(&OPERATOR, "gold", at(10))).unwrap();
    service.round(at(10)).unwrap();
    assert_eq!(state(&service, "gold"), LifecycleState::Provisioning);
    assert_eq!(bench.switches.names(), ["s1/left-a1-b1-1"], "a new network waits for all its switches");
    assert!(events(service.manager(), "gold").last().unwrap().contains("switch s3 does not answer"));
    let count = events(service.manager(), "gold").len();
    let next = service.round(at(10)).unwrap();
    assert!(next > at(10), "the next attempt is later");
    assert_eq!(events(service.manager(), "gold").len(), count, "nothing new is told");
    bench.switches.set_silent("s3", false);
    settle(&mut service, next);
    assert_eq!(state(&service, "gold"), LifecycleState::Active);
    // Now it goes away while the network is active, and comes back without anything.
    bench.switches.set_silent("s3", true);
    bench.switches.clear("s3");
    settle(&mut service, at(20));
    assert_eq!([state(&service, "gold"), state(&service, "left")], [LifecycleState::Degraded, LifecycleState::Active]);
    bench.switches.set_silent("s3", false);
    settle(&mut service, at(100));
    assert_eq!(state(&service, "gold"), LifecycleState::Active);
    assert!(bench.switches.names().contains(&"s3/gold-a2-a3-2".to_owned()));
    assert!(events(service.manager(), "gold").last().unwrap().starts_with("Recovered"));
    assert_eq!(events(service.manager(), "left").len(), 4, "held, committed, provisioning, active");
}

#[test]
fn a_network_that_is_refused_fails_and_leaves_nothing() {
    let bench = Bench::new();
    let mut service = bench.open();
    bench.switches.set_full("s3");
    let gold = link("gold", ["a1", "a3"], "'20Mbit/s'");
    service.change(|manager| manager.request(&OPERATOR, &gold, at(0))).unwrap();
    service.change(|manager| manager.commit(&OPERATOR, "gold", at(0))).unwrap();
    settle(&mut service, at(0));
    assert_eq!(state(&service, "gold"), LifecycleState::Failed);
    let problem = service.manager().show(&OPERATOR, "gold").unwrap().problem.clone().unwrap();
    assert_eq!(problem, "add virtual switch gold-a1-a3-3 to s3: no room");
    assert!(bench.switches.names().is_empty());
    assert!(service.manager().book().network("gold").is_none(), "nothing is reserved");
}

#[test]
fn virtual_switches_of_others_are_not_touched() {
    let (name, dpid, port) = ("s2/gold-a1-a3-2", 0x0001_0000_0000_0001, 1);
    let cases = [
        (foreign(name.split_once('/').unwrap().1, 7, 9), "not of this service"),
        (foreign("mine", dpid, 9), "which gold-a1-a3-"),
        (foreign("mine", 7, 3), "has packets of port 3 with VLAN id 1"),
    ];
    for (other, expected) in cases {
        let bench = Bench::new();
        let switch = if other.dpid() == dpid { "s1" } else { "s2" };
        bench.switches.put(switch, other.clone());
        bench.switches.put("s2", foreign("bystander", 8, port));
        let before = bench.switches.all();
        let mut service = bench.open();
        let gold = link("gold", ["a1", "a3"], "'20Mbit/s'");
        service.change(|manager| manager.request(&OPERATOR, &gold, at(0))).unwrap();
        service.change(|manager| manager.commit(&OPERATOR, "gold", at(0))).unwrap();
        settle(&mut service, at(0));
        assert_eq!(state(&service, "gold"), LifecycleState::Failed, "{expected}");
        let problem = service.manager().show(&OPERATOR, "gold").unwrap().problem.clone().unwrap();
        assert!(problem.contains(expected), "{problem}");
        assert_eq!(bench.switches.all(), before);
        assert!(bench.switches.take_steps().is_empty(), "nothing was done before the conflict was found");
    }
}

#[test]
fn what_others_change_on_switches_is_put_right() {
    let bench = Bench::new();
    let mut service = bench.open();
    active(&mut service, &link("gold", ["a1", "a3"], "'20Mbit/s'"), at(0));
    let before = bench.switches.all();
    bench.switches.clear("s2");
    settle(&mut service, at(60));
    assert_eq!(bench.switches.all(), before);
    assert_eq!(state(&service, "gold"), LifecycleState::Active);
}

#[test]
fn a_store_of_another_substrate_is_refused() {
    let bench = Bench::new();
    let mut service = bench.open();
    active(&mut service, &link("gold", ["a1", "a3"], "'20Mbit/s'"), at(0));
    drop(service);
    let mut other = book();
    let tin = link("tin", ["a1", "b1"], "'20Mbit/s'");
    other.request(&tin, at(0)).unwrap();
    let opened = NetworkService::open(
        other,
        ManagerSettings::default(),
        store(&bench.file()),
        bench.switches.clone(),
        Box::new(super::virtual_switch),
    );
    let error = opened.unwrap_err().to_string();
    assert!(error.starts_with("network gold cannot be restored: "), "{error}");
}

#[test]
fn waits_for_a_silent_switch_double_up_to_a_minute() {
    let mut backoff = SwitchBackoff::default();
    let (mut now, mut waits) = (at(0), Vec::new());
    for _ in 0..8 {
        assert!(!backoff.is_waiting(now));
        backoff.failed(now, "no answer".to_owned());
        assert!(backoff.is_waiting(now));
        waits.push((backoff.next() - now).as_secs());
        now = backoff.next();
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    assert!(!backoff.is_waiting(Instant::ZERO), "the clock went back by years");
}
