//! VLAN tags, filters, translated addresses, meters and queues.
use crate::bed::Bed;
use crate::forwarding::placements;
use crate::shared::{between, two_hosts};
use serde_json::json;

#[test]
fn tags_are_pushed_popped_and_changed_even_on_one_port() {
    for placement in placements() {
        let mut bed = Bed::new(1);
        bed.connect(1);
        let port = |port: &str, n: u8| {
            let addresses = [format!("10.0.{n}.1/24"), format!("fd00:{n}::1/64")];
            json!({"port": port, "mac": format!("02:00:00:00:00:0{n}"), "addresses": addresses})
        };
        let ports = [port("1", 1), port("1.10", 2), port("2.20", 3), port("3", 4)];
        bed.router(1, placement, &json!({"name": "stick", "ports": ports}));
        for (n, (number, vlan)) in (1..).zip([(1, None), (1, Some(10)), (2, Some(20)), (3, None)]) {
            let own = [format!("10.0.{n}.9/24"), format!("fd00:{n}::9/64")];
            let gateways = [format!("10.0.{n}.1"), format!("fd00:{n}::1")];
            bed.host((1, number), vlan, &own.each_ref().map(String::as_str), &gateways.each_ref().map(String::as_str));
        }
        for from in 0..4 {
            for to in (1..5).filter(|to| *to != from + 1) {
                // Twice: by the controller, and by the entries.
                for _ in 0..2 {
                    assert!(bed.ping(from, &format!("10.0.{to}.9")), "{from} to {to}");
                    assert!(bed.ping(from, &format!("fd00:{to}::9")), "{from} to {to}");
                }
            }
        }
    }
}

#[test]
fn filters_decide_in_their_order() {
    for placement in placements() {
        let mut bed = Bed::new(1);
        bed.connect(1);
        let filters = json!({"filters": [
            {"action": "permit", "protocol": "udp", "destination-port": 53},
            {"action": "deny", "protocol": "udp", "source": "10.0.1.0/24", "destination-port": "1-1023"},
            {"action": "deny", "input": "2", "protocol": "icmp", "icmp-type": 8},
            {"action": "deny", "output": "2", "protocol": "icmpv6", "icmp-type": 128},
        ]});
        bed.router(1, placement, &between("1", "2", filters));
        let [a, b] = two_hosts(&mut bed, (1, None), (2, None));
        let mut passes = |from: usize, to: usize, target: &str, port: u16| {
            bed.hosts[to].received.clear();
            bed.send(from, target, |frame| frame.udp(9, port));
            !bed.hosts[to].received.is_empty()
        };
        assert!(passes(a, b, "10.0.2.9", 53) && !passes(a, b, "10.0.2.9", 80) && passes(a, b, "10.0.2.9", 1024));
        assert!(passes(b, a, "10.0.1.9", 80) && passes(a, b, "fd00:2::9", 80));
        assert!(bed.ping(a, "10.0.2.9") && !bed.ping(b, "10.0.1.9"));
        assert!(!bed.ping(a, "fd00:2::9") && bed.ping(b, "fd00:1::9"));
        // The router's own addresses are behind its filters, too.
        assert!(!bed.ping(b, "10.0.2.1") && bed.ping(a, "10.0.1.1") && bed.ping(a, "fd00:1::1"));
    }
}

#[test]
fn addresses_are_translated_in_both_directions() {
    for placement in placements() {
        let mut bed = Bed::new(1);
        bed.connect(1);
        let translations = json!({"translations": [
            {"inside": "10.0.1.9", "outside": "10.0.2.100", "port": "2"},
            {"inside": "fd00:1::9", "outside": "fd00:2::100", "port": "2"},
        ]});
        bed.router(1, placement, &between("1", "2", translations));
        let [a, b] = two_hosts(&mut bed, (1, None), (2, None));
        // From outside first: the router answers for the outside address, and asks for the inside one.
        for (outside, from_inside) in [("10.0.2.100", "10.0.2.9"), ("fd00:2::100", "fd00:2::9")] {
            for _ in 0..2 {
                assert!(bed.ping(b, outside) && bed.ping(a, from_inside), "{outside}");
            }
            let seen = bed.hosts[b].icmp().iter().any(|(source, ..)| source.to_string() == outside);
            assert!(seen, "{outside}: {:?}", bed.hosts[b].icmp());
        }
        // Checksums of every frame that leaves a switch are verified; these have them in UDP.
        bed.hosts[b].received.clear();
        bed.send(a, "10.0.2.9", |frame| frame.udp(5, 6).payload(b"out"));
        bed.send(a, "fd00:2::9", |frame| frame.udp(5, 6).payload(b"out"));
        assert_eq!(bed.hosts[b].received.len(), 2);
    }
}

/// Meters and queues are in the entries, where ports have them.
#[test]
fn meters_and_queues_are_used() {
    for placement in placements() {
        let mut config = between("1", "2", json!({}));
        config["ports"][1]["queue"] = json!(3);
        config["ports"][1]["meter"] = json!(5);
        config["ports"][1]["neighbours"] = json!([{"address": "10.0.2.9", "mac": "02:00:00:00:00:99"}]);
        let config = serde_json::from_value(config).unwrap();
        let all = weir_vrouter::entries::entries(&config, &Default::default(), &placement).unwrap();
        let sending: Vec<String> =
            all.iter().map(ToString::to_string).filter(|entry| entry.contains("output:2")).collect();
        assert!(!sending.is_empty());
        assert!(sending.iter().all(|entry| entry.contains("meter:5") && entry.contains("set_queue:3")), "{sending:?}");
    }
}
