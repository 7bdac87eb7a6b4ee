//! Switches that routers share with each other and with other users, and changes while packets flow.
use crate::bed::Bed;
use crate::forwarding::placements;
use serde_json::{Value, json};
use std::time::Duration;
use weir_openflow::model::{Body, FlowCommand, FlowMod};
use weir_vrouter::app::InstallState;
use weir_vrouter::entries::RouterPlacement;

/// Returns a router between 10.0.1.0/24 at one port and 10.0.2.0/24 at another, with these further keys.
pub(crate) fn between(one: &str, other: &str, more: Value) -> Value {
    let mut config = json!({"name": "r", "ports": [
        {"port": one, "mac": "02:00:00:00:00:01", "addresses": ["10.0.1.1/24", "fd00:1::1/64"]},
        {"port": other, "mac": "02:00:00:00:00:02", "addresses": ["10.0.2.1/24", "fd00:2::1/64"]},
    ]});
    let Value::Object(more) = more else { panic!("not an object: {more}") };
    config.as_object_mut().unwrap().extend(more);
    config
}

/// Adds a host in each of both networks.
pub(crate) fn two_hosts(bed: &mut Bed, one: (u32, Option<u16>), other: (u32, Option<u16>)) -> [usize; 2] {
    let first = bed.host((1, one.0), one.1, &["10.0.1.9/24", "fd00:1::9/64"], &["10.0.1.1", "fd00:1::1"]);
    let second = bed.host((1, other.0), other.1, &["10.0.2.9/24", "fd00:2::9/64"], &["10.0.2.1", "fd00:2::1"]);
    [first, second]
}

/// Both routers have the same addresses, in VLANs of their own on the same ports.
#[test]
fn routers_with_the_same_addresses_never_see_each_others_packets() {
    for tables in [7, 1] {
        let mut bed = Bed::new(1);
        bed.connect(1);
        bed.router(1, RouterPlacement::confined(1, 0, tables), &between("1.10", "2.10", json!({})));
        bed.router(1, RouterPlacement::confined(2, 0, tables), &between("1.20", "2.20", json!({})));
        let [a, b] = two_hosts(&mut bed, (1, Some(10)), (2, Some(10)));
        let [c, d] = two_hosts(&mut bed, (1, Some(20)), (2, Some(20)));
        assert!(
            bed.ping(a, "10.0.2.9") && bed.ping(c, "10.0.2.9") && bed.ping(b, "fd00:1::9") && bed.ping(d, "fd00:1::9")
        );
        let neighbours = [1, 2].map(|number| bed.status(1, number).neighbours);
        assert_eq!(neighbours.each_ref().map(|known| known.len()), [4, 4]);
        assert!(neighbours[0].values().all(|mac| !neighbours[1].values().any(|other| other == mac)));
        bed.hosts.iter_mut().for_each(|host| host.received.clear());
        bed.send(a, "10.0.2.9", |frame| frame.udp(1, 2));
        assert_eq!([b, c, d].map(|host| bed.hosts[host].received.len()), [1, 0, 0]);
        // The second goes, the first stays.
        let answer = bed.command("remove", &json!({"dpid": 1, "number": 2}));
        assert_eq!(answer, json!({"removed": true}));
        assert!(bed.ping(a, "10.0.2.9") && !bed.ping(c, "10.0.2.9"));
        let cookie = RouterPlacement::confined(1, 0, 7).cookie;
        assert!(bed.entries(1).iter().all(|entry| entry.cookie & !0xff == cookie));
    }
}

#[test]
fn entries_of_others_are_found_before_anything_is_sent() {
    let mut bed = Bed::new(1);
    bed.foreign(1, "priority=7,in_port=1,actions=output:3");
    bed.foreign(1, "priority=7,in_port=4,actions=output:3");
    bed.foreign(1, "priority=0,actions=controller");
    bed.connect(1);
    bed.router(1, RouterPlacement::confined(1, 0, 7), &between("1", "2", json!({})));
    let status = bed.status(1, 1);
    assert_eq!((&status.install, bed.flow_mods), (&InstallState::Conflicting, 0));
    let [conflict] = &status.conflicts[..] else { panic!("{:?}", status.conflicts) };
    assert!(conflict.contains("in_port=1") && conflict.contains("would take its packets"), "{conflict}");
    // A whole switch leaves nothing to others.
    let whole =
        json!({"dpid": 1, "placement": RouterPlacement::whole_switch(), "config": between("5", "6", json!({}))});
    assert!(bed.command("add", &whole)["error"].as_str().unwrap().contains("there already"));
    // The others go, and the router comes by itself.
    let all = FlowMod::add(7, weir_openflow::text::parse_match("in_port=1").unwrap(), Vec::new());
    bed.tell(1, Body::FlowMod(FlowMod { command: FlowCommand::DeleteStrict, ..all }));
    bed.pass(Duration::from_secs(61));
    assert_eq!(bed.status(1, 1).install, InstallState::Installed);
    assert_eq!(bed.status(1, 1).conflicts, [""; 0]);
}

#[test]
fn overlapping_routers_are_refused() {
    let mut bed = Bed::new(1);
    bed.router(1, RouterPlacement::confined(1, 0, 7), &between("1", "2.5", json!({})));
    for (two, part) in [
        (
            json!({"placement": RouterPlacement::confined(2, 0, 7), "config": between("2.5", "3", json!({}))}),
            "overlaps",
        ),
        (
            json!({"placement": RouterPlacement::confined(1, 0, 7), "config": between("3", "4", json!({}))}),
            "there already",
        ),
        (
            json!({"placement": {"number": 2, "first-table": 0, "tables": 7, "cookie": RouterPlacement::confined(1, 0, 7).cookie,
            "priority": 1000, "confined": true}, "config": between("3", "4", json!({}))}),
            "cookie",
        ),
        (
            json!({"placement": RouterPlacement::confined(2, 250, 7), "config": between("3", "4", json!({}))}),
            "table 254",
        ),
        (json!({"placement": RouterPlacement::confined(2, 0, 7), "config": between("3", "3", json!({}))}), "port 3"),
    ] {
        let mut content = two;
        content["dpid"] = json!(1);
        let answer = bed.command("add", &content);
        assert!(answer["error"].as_str().is_some_and(|error| error.contains(part)), "{part}: {answer}");
    }
    bed.router(1, RouterPlacement::confined(2, 0, 7), &between("2.6", "3", json!({})));
}

#[test]
fn a_change_that_conflicts_changes_nothing() {
    let mut bed = Bed::new(1);
    bed.foreign(1, "priority=7,in_port=4,actions=output:3");
    bed.connect(1);
    bed.router(1, RouterPlacement::confined(1, 0, 7), &between("1", "2", json!({})));
    let before = (bed.status(1, 1), bed.flow_mods);
    let answer = bed.command("replace", &json!({"dpid": 1, "number": 1, "config": between("1", "4", json!({}))}));
    assert!(answer["error"].as_str().unwrap().contains("in_port=4"), "{answer}");
    assert_eq!((bed.status(1, 1), bed.flow_mods), before);
}

#[test]
fn a_change_touches_only_what_differs() {
    for placement in placements() {
        let mut bed = Bed::new(1);
        bed.connect(1);
        bed.router(1, placement, &between("1", "2", json!({})));
        let [a, _] = two_hosts(&mut bed, (1, None), (2, None));
        assert!(bed.ping(a, "10.0.2.9"));
        let (before, neighbours) = (bed.flow_mods, bed.status(1, 1).neighbours);
        let route = json!({"routes": [{"prefix": "192.0.2.0/24", "via": "10.0.2.9"}]});
        let answer = bed.command("replace", &json!({"dpid": 1, "number": 1, "config": between("1", "2", route)}));
        assert_eq!(answer.get("error"), None, "{answer}");
        // One table: the route at each port. Several: the route, and the neighbour as a next hop.
        assert_eq!(bed.flow_mods - before, 2);
        let status = bed.status(1, 1);
        assert_eq!((&status.install, &status.neighbours), (&InstallState::Installed, &neighbours));
        bed.hosts[1].received.clear();
        bed.send(a, "192.0.2.5", |frame| frame.udp(1, 2));
        assert_eq!(bed.hosts[1].received.len(), 1);
        assert_eq!(bed.count(1, 1, "routed_at_controller"), 1);
    }
}

#[test]
fn entries_survive_a_lost_channel_and_are_repaired() {
    let mut bed = Bed::new(1);
    bed.connect(1);
    bed.router(1, RouterPlacement::whole_switch(), &between("1", "2", json!({})));
    let [a, _] = two_hosts(&mut bed, (1, None), (2, None));
    assert!(bed.ping(a, "10.0.2.9"));
    bed.disconnect(1);
    assert_eq!(bed.status(1, 1).install, InstallState::Away);
    assert!(bed.ping(a, "10.0.2.9"), "the switch forwards alone");
    let before = bed.flow_mods;
    bed.connect(1);
    assert_eq!((bed.status(1, 1).install, bed.flow_mods), (InstallState::Installed, before), "nothing was missing");
    // Another user empties the switch: the next check finds it.
    bed.tell(1, Body::FlowMod(FlowMod::delete_all()));
    assert!(!bed.ping(a, "10.0.2.9"));
    bed.pass(Duration::from_secs(61));
    assert!(bed.ping(a, "10.0.2.9"));
    assert!(bed.count(1, 1, "repaired") > 20);
}

#[test]
fn routers_removed_while_their_switch_is_away_leave_nothing() {
    let mut bed = Bed::new(1);
    bed.connect(1);
    bed.foreign(1, "priority=7,in_port=4,actions=output:3");
    bed.router(1, RouterPlacement::confined(3, 2, 7), &between("1", "2", json!({})));
    assert!(bed.entries(1).len() > 20);
    bed.disconnect(1);
    bed.command("remove", &json!({"dpid": 1, "number": 3}));
    bed.connect(1);
    assert_eq!(bed.entries(1).len(), 1);
}

#[test]
fn switches_that_cannot_have_a_router_say_why() {
    let mut bed = Bed::new(1);
    bed.connect(1);
    bed.router(1, RouterPlacement::confined(1, 248, 7), &between("1", "2", json!({})));
    let InstallState::Unsupported { reason } = bed.status(1, 1).install else { panic!("{:?}", bed.status(1, 1)) };
    assert!(reason.contains("table 254"), "{reason}");
    assert_eq!(bed.flow_mods, 0);
}

#[test]
fn commands_that_are_wrong_are_answered() {
    let mut bed = Bed::new(1);
    for (verb, content, part) in [
        ("remove", json!({"dpid": 1, "number": 1}), "router 1 of switch 1 is not there"),
        ("replace", json!({"dpid": 1, "number": 1, "config": between("1", "2", json!({}))}), "is not there"),
        ("add", json!({"dpid": 1}), "missing field"),
        ("drop", json!({}), "status, add, replace or remove"),
    ] {
        let answer = bed.command(verb, &content);
        assert!(answer["error"].as_str().unwrap().contains(part), "{answer}");
    }
}

#[test]
fn hosts_that_use_the_routers_addresses_are_noticed_and_not_believed() {
    let mut bed = Bed::new(1);
    bed.connect(1);
    bed.router(1, RouterPlacement::whole_switch(), &between("1", "2", json!({})));
    let thief = bed.host((1, 1), None, &["10.0.1.1/24"], &[]);
    let mac = bed.hosts[thief].mac;
    let claim = weir_packet::answer::question(mac, "10.0.1.1".parse().unwrap(), "10.0.1.1".parse().unwrap()).unwrap();
    bed.leave_host(thief, &claim);
    assert_eq!((bed.count(1, 1, "claims"), bed.status(1, 1).neighbours.len()), (1, 0));
}

/// Entries of neighbours that came one by one are those that the whole configuration has.
#[test]
fn the_same_configuration_again_changes_nothing() {
    for placement in placements() {
        let mut bed = Bed::new(1);
        bed.connect(1);
        let more = json!({
            "routes": [{"prefix": "192.0.2.0/24", "via": "10.0.2.9"}, {"prefix": "2001:db8::/32", "via": "fd00:1::9"}],
            "translations": [{"inside": "10.0.1.9", "outside": "10.0.2.100", "port": "2"}],
        });
        bed.router(1, placement, &between("1", "2", more.clone()));
        let [a, b] = two_hosts(&mut bed, (1, None), (2, None));
        assert!(bed.ping(a, "10.0.2.9") && bed.ping(b, "fd00:1::9"));
        bed.pass(Duration::from_secs(2));
        let before = (bed.flow_mods, bed.status(1, 1).entries, InstallState::Installed);
        bed.command("replace", &json!({"dpid": 1, "number": 1, "config": between("1", "2", more)}));
        let status = bed.status(1, 1);
        assert_eq!((bed.flow_mods, status.entries, status.install), before);
        assert_eq!(status.neighbours.len(), 4);
    }
}
