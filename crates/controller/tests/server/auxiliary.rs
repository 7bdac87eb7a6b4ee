//! Tests auxiliary connections: joined to their switch, or refused.
use crate::hub::{NOW, come_up, connect, exchange, hub, learning};
use crate::peer::{Heard, features, packet_in};
use weir_controller::{ConnectionId, ControllerHub, SwitchEvent};
use weir_openflow::model::Body;
use weir_openflow::session::{Session, SessionConfig};
use weir_openflow::{Message, Version};

fn auxiliary(hub: &mut ControllerHub, dpid: u64, number: u8) -> (ConnectionId, Session) {
    let (id, mut session) = connect(hub);
    exchange(hub, id, &mut session, &features(dpid, number));
    (id, session)
}

fn is_packet_out(message: &Message) -> bool {
    matches!(message.body, Body::PacketOut(_))
}

#[test]
fn packets_go_back_the_way_they_came_and_all_else_over_the_main_connection() {
    let heard = Heard::default();
    let mut hub = hub(learning(), SessionConfig::default(), &heard);
    let (main, mut main_session) = come_up(&mut hub, 7);
    let (second, mut session) = auxiliary(&mut hub, 7, 1);
    assert!(!hub.is_ended(second));
    assert!(matches!(heard.events()[..], [SwitchEvent::Up(_), SwitchEvent::Auxiliary { number: 1, .. }]));
    exchange(&mut hub, main, &mut main_session, &features(7, 0));
    session.send(&packet_in()).unwrap();
    let got = exchange(&mut hub, second, &mut session, &features(7, 1));
    assert!(got.iter().any(is_packet_out), "{got:?}");
    main_session.send(&packet_in()).unwrap();
    let got = exchange(&mut hub, main, &mut main_session, &features(7, 0));
    assert!(got.iter().any(is_packet_out), "{got:?}");
    assert_eq!((hub.snapshot().switches.len(), hub.snapshot().counters.packet_ins), (1, 2));
}

#[test]
fn they_end_with_the_main_connection() {
    let heard = Heard::default();
    let mut hub = hub(learning(), SessionConfig::default(), &heard);
    let (main, _session) = come_up(&mut hub, 7);
    let (first, _first) = auxiliary(&mut hub, 7, 1);
    let (second, _second) = auxiliary(&mut hub, 7, 2);
    hub.disconnect(NOW, main, "gone");
    assert!(hub.is_ended(first) && hub.is_ended(second));
    assert_eq!(heard.reasons(), ["gone"], "the switch went once");
}

#[test]
fn one_without_a_main_connection_or_in_another_version_is_refused() {
    let heard = Heard::default();
    let mut hub = hub(learning(), SessionConfig::default(), &heard);
    let (alone, _) = auxiliary(&mut hub, 7, 3);
    assert!(hub.is_ended(alone));
    let (main, _) = connect(&mut hub);
    let older = SessionConfig { versions: vec![Version::V10], ..SessionConfig::default() };
    exchange(&mut hub, main, &mut Session::switch(older, NOW), &features(7, 0));
    let (other, _) = auxiliary(&mut hub, 7, 1);
    assert!(hub.is_ended(other) && !hub.is_ended(main));
    let expected = [
        "it is auxiliary connection 3 of 0000000000000007, whose main one is not up",
        "it is auxiliary connection 1 in OpenFlow 1.5, the main one is in 1.0",
    ];
    assert_eq!(heard.reasons(), expected);
}

/// The switch opens a connection again before the controller has noticed that the old one is dead.
#[test]
fn the_newest_of_one_number_stays() {
    let heard = Heard::default();
    let mut hub = hub(learning(), SessionConfig::default(), &heard);
    let (_main, _session) = come_up(&mut hub, 7);
    let (old, _old) = auxiliary(&mut hub, 7, 1);
    let (new, _new) = auxiliary(&mut hub, 7, 1);
    assert!(hub.is_ended(old) && !hub.is_ended(new));
}
