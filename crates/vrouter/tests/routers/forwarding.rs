//! Routers in a row: packets reach hosts, and senders hear why others do not.
use crate::bed::Bed;
use serde_json::{Value, json};
use std::time::Duration;
use weir_packet::answer::IpPacket;
use weir_vrouter::app::InstallState;
use weir_vrouter::entries::RouterPlacement;

/// Places for routers that have their switches alone: with a table for each stage, and with one.
pub(crate) fn placements() -> [RouterPlacement; 2] {
    let whole = RouterPlacement::whole_switch();
    [whole, RouterPlacement { tables: 1, ..whole }]
}

/// Returns router `n` of a row: port 1 leads to the router before or to hosts, port 2 to the one after or to hosts.
/// Networks between are numbered from 0.
fn router_in_a_row(n: u8, last: u8) -> Value {
    let (before, after) = (n - 1, n);
    // The first network has the router as .1; in each other the router before it has .1 and the one after it .2.
    let own = if n == 1 { 1 } else { 2 };
    let mut routes = Vec::new();
    for network in 0..=last {
        let via = match network {
            far if far + 1 < n => format!("{before}.1"),
            far if far > n => format!("{after}.2"),
            _ => continue,
        };
        let (to, host) = via.split_once('.').unwrap();
        routes.push(json!({"prefix": format!("10.0.{network}.0/24"), "via": format!("10.0.{to}.{host}")}));
        routes.push(json!({"prefix": format!("fd00:{network}::/64"), "via": format!("fd00:{to}::{host}")}));
    }
    json!({
        "name": format!("r{n}"),
        "ports": [
            {"port": "1", "mac": format!("02:00:00:00:{n:02}:01"),
             "addresses": [format!("10.0.{before}.{own}/24"), format!("fd00:{before}::{own}/64"), "fe80::1/64"]},
            {"port": "2", "mac": format!("02:00:00:00:{n:02}:02"),
             "addresses": [format!("10.0.{after}.1/24"), format!("fd00:{after}::1/64"), "fe80::1/64"]},
        ],
        "routes": routes,
    })
}

/// Returns `n` routers in a row with a host at each end.
fn row(n: u8, placement: RouterPlacement) -> Bed {
    let last = u64::from(n);
    let mut bed = Bed::new(last);
    for number in 1..=n {
        bed.router(number.into(), placement, &router_in_a_row(number, n));
        bed.connect(number.into());
        assert_eq!(bed.status(number.into(), 1).install, InstallState::Installed);
    }
    (1..last).for_each(|dpid| bed.wire((dpid, 2), (dpid + 1, 1)));
    bed.host((1, 1), None, &["10.0.0.9/24", "fd00:0::9/64"], &["10.0.0.1", "fd00:0::1"]);
    bed.host(
        (last, 2),
        None,
        &[&format!("10.0.{n}.9/24"), &format!("fd00:{n}::9/64")],
        &[&format!("10.0.{n}.1"), &format!("fd00:{n}::1")],
    );
    bed
}

#[test]
fn two_and_three_routers_in_a_row_carry_pings() {
    for placement in placements() {
        for n in [1, 2, 3] {
            let mut bed = row(n, placement);
            for to in [format!("10.0.{n}.9"), format!("fd00:{n}::9")] {
                assert!(bed.ping(0, &to), "{to} over {n} routers");
            }
            assert!(bed.ping(1, "10.0.0.9") && bed.ping(1, "fd00:0::9"));
            // The neighbours are known now: packets no longer come to the controller.
            let before = bed.count(1, 1, "routed_at_controller");
            assert!(bed.ping(0, &format!("10.0.{n}.9")));
            assert_eq!(bed.count(1, 1, "routed_at_controller"), before);
        }
    }
}

#[test]
fn traceroute_shows_each_router() {
    for placement in placements() {
        let mut bed = row(3, placement);
        assert!(bed.ping(0, "10.0.3.9") && bed.ping(0, "fd00:3::9"));
        let hops = [
            ("10.0.3.9", ["10.0.0.1", "10.0.1.2", "10.0.2.2"], 11, 3),
            ("fd00:3::9", ["fd00::1", "fd00:1::2", "fd00:2::2"], 3, 1),
        ];
        for (to, hops, expired, _) in hops {
            for (ttl, hop) in (1..).zip(hops) {
                bed.hosts[0].received.clear();
                bed.send(0, to, |frame| frame.ttl(ttl).udp(4000, 33_434).payload(&[7; 32]));
                assert_eq!(bed.hosts[0].icmp(), [(hop.parse().unwrap(), expired, 0)], "{to} with TTL {ttl}");
            }
            bed.hosts[1].received.clear();
            bed.send(0, to, |frame| frame.ttl(4).udp(4000, 33_434).payload(&[7; 32]));
            let [arrived] = &bed.hosts[1].received[..] else { panic!("not one packet") };
            assert_eq!(IpPacket::of(arrived).unwrap().ttl, 1);
        }
    }
}

#[test]
fn routers_answer_for_themselves() {
    for placement in placements() {
        let mut bed = row(2, placement);
        for to in ["10.0.0.1", "fd00::1", "10.0.1.1", "10.0.1.2", "fd00:2::1"] {
            assert!(bed.ping(0, to), "{to}");
        }
        bed.hosts[0].received.clear();
        bed.send(0, "10.0.0.1", |frame| frame.udp(1, 33_434));
        bed.send(0, "fd00::1", |frame| frame.udp(1, 33_434));
        let [v4, v6] = &bed.hosts[0].icmp()[..] else { panic!("not two answers") };
        assert_eq!([(v4.1, v4.2), (v6.1, v6.2)], [(3, 3), (1, 4)]);
    }
}

#[test]
fn senders_hear_why_packets_are_not_delivered() {
    for placement in placements() {
        let mut bed = row(2, placement);
        // No route: at once. A host that is not there: after three questions.
        for (to, code) in
            [("192.0.2.1", (3, 0)), ("2001:db8::1", (1, 0)), ("10.0.2.77", (3, 1)), ("fd00:2::77", (1, 3))]
        {
            bed.hosts[0].received.clear();
            bed.send(0, to, |frame| frame.udp(1, 2));
            bed.pass(Duration::from_secs(4));
            let heard: Vec<_> = bed.hosts[0].icmp().iter().map(|(_, kind, code)| (*kind, *code)).collect();
            assert_eq!(heard, [code], "{to}");
        }
        assert_eq!((bed.count(1, 1, "drop_no_route"), bed.count(2, 1, "drop_unreachable")), (2, 2));
    }
}

#[test]
fn the_longest_prefix_wins() {
    for placement in placements() {
        let mut bed = Bed::new(1);
        let port = |n: u8| json!({"port": n.to_string(), "mac": format!("02:00:00:00:00:0{n}"), "addresses": [format!("10.0.{n}.1/24")]});
        let route = |prefix: &str, via: &str| json!({"prefix": prefix, "via": via});
        let config = json!({"name": "r", "ports": [port(1), port(2), port(3)], "routes": [
            route("0.0.0.0/0", "10.0.2.9"),
            route("172.16.0.0/12", "10.0.3.9"),
            route("172.16.5.0/24", "10.0.2.9"),
            route("172.16.5.128/25", "blackhole"),
            route("172.16.5.129/32", "10.0.3.9"),
        ]});
        bed.router(1, placement, &config);
        bed.connect(1);
        bed.host((1, 1), None, &["10.0.1.9/24"], &["10.0.1.1"]);
        bed.host((1, 2), None, &["10.0.2.9/24"], &["10.0.2.1"]);
        bed.host((1, 3), None, &["10.0.3.9/24"], &["10.0.3.1"]);
        for (to, receiver) in [
            ("192.0.2.1", Some(1)),
            ("172.17.0.1", Some(2)),
            ("172.16.5.1", Some(1)),
            ("172.16.5.200", None),
            ("172.16.5.129", Some(2)),
        ] {
            bed.hosts.iter_mut().for_each(|host| host.received.clear());
            bed.send(0, to, |frame| frame.udp(1, 2));
            let got: Vec<usize> = (0..3).filter(|host| !bed.hosts[*host].received.is_empty()).collect();
            assert_eq!(got, receiver.into_iter().collect::<Vec<usize>>(), "{to}");
        }
    }
}

#[test]
fn packets_larger_than_the_link_are_told_when_they_come_to_the_controller() {
    let mut bed = Bed::new(1);
    let port = |n: u8, mtu: u16| {
        let addresses = [format!("10.0.{n}.1/24"), format!("fd00:{n}::1/64")];
        json!({"port": n.to_string(), "mac": format!("02:00:00:00:00:0{n}"), "addresses": addresses, "mtu": mtu})
    };
    bed.router(1, RouterPlacement::whole_switch(), &json!({"name": "r", "ports": [port(1, 1500), port(2, 1300)]}));
    bed.connect(1);
    bed.host((1, 1), None, &["10.0.1.9/24", "fd00:1::9/64"], &["10.0.1.1", "fd00:1::1"]);
    for (to, kind, code) in [("10.0.2.9", 3, 4), ("fd00:2::9", 2, 0)] {
        bed.hosts[0].received.clear();
        bed.send(0, to, |frame| frame.udp(1, 2).payload(&[1; 1400]));
        let (_, got_kind, got_code) = bed.hosts[0].icmp()[0];
        assert_eq!((got_kind, got_code), (kind, code));
        let packet = &bed.hosts[0].received[0];
        let at = if kind == 3 { 14 + 20 + 4 } else { 14 + 40 + 4 };
        assert_eq!(packet[at..at + 4], [0, 0, 5, 20], "the MTU is 1300");
    }
}

#[test]
fn several_packets_wait_for_a_neighbour() {
    let mut bed = row(1, RouterPlacement::whole_switch());
    bed.hosts[1].is_silent = true;
    for _ in 0..12 {
        bed.send(0, "10.0.1.9", |frame| frame.udp(1, 2));
    }
    bed.hosts[1].is_silent = false;
    bed.pass(Duration::from_secs(1));
    // Eight wait at most; they arrive once the host answers the second question.
    assert_eq!((bed.hosts[1].received.len(), bed.count(1, 1, "drop_queue_full")), (8, 4));
}

#[test]
fn silent_neighbours_are_forgotten() {
    let mut bed = row(1, RouterPlacement::whole_switch());
    assert!(bed.ping(0, "10.0.1.9"));
    assert_eq!(bed.status(1, 1).neighbours.len(), 2);
    bed.pass(Duration::from_secs(310));
    assert_eq!(bed.status(1, 1).neighbours.len(), 2, "both have answered");
    assert!(bed.hosts[1].asked >= 2);
    bed.hosts[1].is_silent = true;
    let before = bed.entries(1).len();
    bed.pass(Duration::from_secs(310));
    assert_eq!((bed.status(1, 1).neighbours.len(), bed.entries(1).len()), (1, before - 1));
}
