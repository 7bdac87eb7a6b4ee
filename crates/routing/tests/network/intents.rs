//! Tests intents over real datapaths: confirmed by packets, kept up through failures, gone without a trace.
use crate::bed::{Bed, FIRST_HOST_PORT};
use crate::forwarding::{assert_all_reach_all, config};
use std::time::Duration;
use weir_routing::forwarding::ForwardingMode;
use weir_routing::intents::{IntentSpec, IntentState, IntentStatus, WhatIf, WhatIfAnswer};
use weir_routing::request::{ErrorKind, NetworkReply, NetworkRequest};

const MS: Duration = Duration::from_millis(1);

/// Returns a ring of six switches with a host each, and the ends of its links.
fn ring() -> (Bed, Vec<[(u64, u32); 2]>) {
    let mut bed = Bed::new(6, 1, config(ForwardingMode::Proactive), Vec::new());
    let links: Vec<_> = (1..=6).map(|dpid| bed.link(dpid, dpid % 6 + 1)).collect();
    (1..=6).for_each(|dpid| _ = bed.host(dpid));
    bed.connect_all();
    bed.run(200 * MS);
    bed.announce_all();
    bed.run(200 * MS);
    (bed, links)
}

fn set(bed: &mut Bed, json: &str) -> IntentStatus {
    let intent: IntentSpec = serde_json::from_str(json).unwrap();
    match bed.ask(&NetworkRequest::SetIntent { intent }) {
        NetworkReply::Intent(status) => status,
        other => panic!("{other:?}"),
    }
}

fn status(bed: &mut Bed, key: &str) -> Option<IntentStatus> {
    bed.state().intents.into_iter().find(|status| status.intent.key == key)
}

#[track_caller]
fn assert_installed(bed: &mut Bed, key: &str) {
    let status = status(bed, key).unwrap();
    assert_eq!((status.state, status.reason.as_str()), (IntentState::Installed, ""), "{status:?}");
}

#[test]
fn all_forms_are_confirmed_by_packets() {
    let (mut bed, _) = ring();
    let [a, b, c] = [0, 2, 4].map(|host: usize| bed.hosts[host].mac);
    let at = |dpid: u64| format!("{dpid:x}:{FIRST_HOST_PORT}");
    let specs = [
        format!(r#"{{"key":"pair","kind":"host-to-host","from":["{a}"],"to":["10.0.0.3"]}}"#),
        format!(
            r#"{{"key":"protected","kind":"host-to-host","from":["{a}"],"to":["{c}"],"constraints":{{"protected":true}}}}"#
        ),
        format!(r#"{{"key":"ports","kind":"point-to-point","from":["{}"],"to":["{}"],"traffic":"udp"}}"#, at(2), at(6)),
        format!(
            r#"{{"key":"many","kind":"many-to-one","from":["{b}","{}"],"to":["{}"],"traffic":"tcp","constraints":{{"priority":1}}}}"#,
            at(4),
            at(6)
        ),
        format!(
            r#"{{"key":"tree","kind":"one-to-many","from":["{}"],"to":["{}","{}"],"traffic":"dl_dst=01:00:5e:01:01:01"}}"#,
            at(6),
            at(2),
            at(4)
        ),
        format!(
            r#"{{"key":"around","kind":"host-to-host","from":["{b}"],"to":["{c}"],"constraints":{{"waypoints":["1"]}}}}"#
        ),
        format!(
            r#"{{"key":"safe-ports","kind":"point-to-point","from":["{}"],"to":["{}"],"traffic":"icmp","constraints":{{"protected":true}}}}"#,
            at(4),
            at(1)
        ),
    ];
    for spec in &specs {
        let state = set(&mut bed, spec).state;
        assert_eq!(state, IntentState::Compiling, "{spec}");
    }
    bed.run(100 * MS);
    for key in ["pair", "protected", "ports", "many", "tree", "around", "safe-ports"] {
        assert_installed(&mut bed, key);
    }
    assert_all_reach_all(&mut bed);
    let number = bed.send(2, 4);
    bed.run(20 * MS);
    assert_eq!((bed.copies(4, number), bed.hops(number)), (1, 4), "past switch 1");
    let entries: Vec<_> = bed.dpids().into_iter().map(|dpid| bed.entries(dpid).len()).collect();
    for key in ["pair", "protected", "ports", "many", "tree", "around", "safe-ports"] {
        assert_eq!(bed.ask(&NetworkRequest::RemoveIntent { key: key.into() }), NetworkReply::Removed);
    }
    bed.run(400 * MS);
    assert_eq!(bed.state().intents, []);
    let after: Vec<_> = bed.dpids().into_iter().map(|dpid| bed.entries(dpid).len()).collect();
    assert!(after.iter().zip(&entries).all(|(after, before)| after < before), "{after:?} {entries:?}");
    assert_all_reach_all(&mut bed);
}

#[test]
fn a_protected_pair_loses_only_what_is_in_flight_when_any_link_fails() {
    for failing in 0..6 {
        let (mut bed, links) = ring();
        let [a, d] = [0, 3].map(|host: usize| bed.hosts[host].mac);
        set(
            &mut bed,
            &format!(
                r#"{{"key":"p","kind":"host-to-host","from":["{a}"],"to":["{d}"],"constraints":{{"protected":true}}}}"#
            ),
        );
        bed.run(100 * MS);
        assert_installed(&mut bed, "p");
        // The controller hears nothing, so only switches can help.
        bed.dpids().into_iter().for_each(|dpid| bed.disconnect(dpid));
        bed.set_link(links[failing], false);
        for _ in 0..10 {
            let there = bed.send(0, 3);
            let back = bed.send(3, 0);
            bed.run(MS);
            let copies = (bed.copies(3, there), bed.copies(0, back));
            assert_eq!(copies, (1, 1), "link {failing}");
            assert_eq!(bed.most_crossings(there), 1);
        }
    }
}

#[test]
fn intents_follow_failures_and_hosts_that_move() {
    let (mut bed, links) = ring();
    let [a, c] = [0, 2].map(|host: usize| bed.hosts[host].mac);
    set(&mut bed, &format!(r#"{{"key":"p","kind":"host-to-host","from":["{a}"],"to":["{c}"]}}"#));
    bed.run(100 * MS);
    assert_eq!(status(&mut bed, "p").unwrap().paths[0].ports.len(), 6);
    bed.set_link(links[0], false);
    bed.run(100 * MS);
    assert_installed(&mut bed, "p");
    assert_eq!(status(&mut bed, "p").unwrap().paths[0].ports.len(), 10);
    assert_all_reach_all(&mut bed);
    bed.set_link(links[4], false);
    bed.run(100 * MS);
    let cut = status(&mut bed, "p").unwrap();
    assert_eq!((cut.state, cut.reason.as_str()), (IntentState::Failed, "no way from switch 1 to switch 3"));
    bed.set_link(links[0], true);
    bed.set_link(links[4], true);
    bed.run(300 * MS);
    assert_installed(&mut bed, "p");
}

#[test]
fn requests_that_are_wrong_get_an_answer_that_says_why() {
    let (mut bed, links) = ring();
    let intent = serde_json::from_str(r#"{"key":"x","kind":"host-to-host","from":["1:1"],"to":["h"]}"#).unwrap();
    match bed.ask(&NetworkRequest::SetIntent { intent }) {
        NetworkReply::Error { kind: ErrorKind::Invalid, message } => {
            assert_eq!(message, "`from`: found the port 1:1, expected a host; for ports there is point-to-point");
        }
        other => panic!("{other:?}"),
    }
    let gone = bed.ask(&NetworkRequest::RemoveIntent { key: "x".into() });
    assert!(matches!(gone, NetworkReply::Error { kind: ErrorKind::NotFound, .. }));
    let [(dpid, port), _] = links[0];
    let at = format!("{dpid:x}:{port}").parse().unwrap();
    let answer = bed.ask(&NetworkRequest::WhatIf { case: WhatIf::LinkFails { at } });
    assert_eq!(answer, NetworkReply::WhatIf(WhatIfAnswer::default()));
}
