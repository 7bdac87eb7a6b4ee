//! Tests the hub in virtual time.
use crate::peer::{Heard, features, packet_in};
use std::time::Duration;
use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
use weir_controller::hub::TooManyConnections;
use weir_controller::{ConnectionId, ControllerApp, ControllerHub, ControllerOutbox, SwitchEvent};
use weir_openflow::model::{Body, FeaturesReply, Match, Version};
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_openflow::{Message, model::FlowMod};
use weir_units::Instant;

pub(crate) const NOW: Instant = Instant::from_nanos(1);

pub(crate) fn learning() -> Box<dyn ControllerApp> {
    Box::new(LearningSwitch::new(LearningConfig::default()))
}

pub(crate) fn hub(app: Box<dyn ControllerApp>, session: SessionConfig, heard: &Heard) -> ControllerHub {
    ControllerHub::new(app, session, 3, heard.observer().unwrap())
}

pub(crate) fn connect(hub: &mut ControllerHub) -> (ConnectionId, Session) {
    let id = hub.connect(NOW, "test".into()).unwrap();
    (id, Session::switch(SessionConfig::default(), NOW))
}

/// Moves bytes once each way, twice, which is enough for a handshake. Returns the messages that the switch received.
pub(crate) fn exchange(
    hub: &mut ControllerHub,
    id: ConnectionId,
    session: &mut Session,
    features: &FeaturesReply,
) -> Vec<Message> {
    let mut got = Vec::new();
    for _ in 0..4 {
        let down = hub.output(id).map(std::mem::take).unwrap_or_default();
        session.receive(NOW, &down);
        while let Some(event) = session.take_event() {
            match event {
                SessionEvent::Message(Message { xid, body: Body::FeaturesRequest }) => {
                    session.send(&Message { xid, body: Body::FeaturesReply(features.clone()) }).unwrap();
                }
                SessionEvent::Message(message) => got.push(message),
                _ => {}
            }
        }
        let up = std::mem::take(session.output());
        hub.receive(NOW, id, &up);
    }
    got
}

pub(crate) fn come_up(hub: &mut ControllerHub, dpid: u64) -> (ConnectionId, Session) {
    let (id, mut session) = connect(hub);
    exchange(hub, id, &mut session, &features(dpid, 0));
    (id, session)
}

#[test]
fn a_second_switch_of_the_same_datapath_id_is_refused() {
    let heard = Heard::default();
    let mut hub = hub(learning(), SessionConfig::default(), &heard);
    let (first, _session) = come_up(&mut hub, 7);
    let (second, _session) = come_up(&mut hub, 7);
    assert!(hub.is_ended(second) && !hub.is_ended(first));
    assert_eq!(heard.reasons(), ["datapath id 0000000000000007 is connected already, from test"]);
    // The datapath id is accepted again once the first connection is gone.
    hub.disconnect(NOW, first, "gone");
    let (third, _session) = come_up(&mut hub, 7);
    assert!(!hub.is_ended(third));
    assert_eq!((hub.snapshot().switches.len(), hub.snapshot().counters.refused), (1, 1));
}

#[test]
fn connections_have_a_maximum() {
    let heard = Heard::default();
    let mut hub = hub(learning(), SessionConfig::default(), &heard);
    let switches = [1, 2, 3].map(|dpid| come_up(&mut hub, dpid));
    assert_eq!(hub.connect(NOW, "fourth".into()), Err(TooManyConnections(3)));
    hub.disconnect(NOW, switches[0].0, "gone");
    connect(&mut hub);
    assert_eq!((hub.snapshot().counters.connections, hub.snapshot().counters.refused), (5, 1));
}

/// Silent connections cannot keep switches out.
#[test]
fn half_open_connections_give_way_the_oldest_first() {
    let heard = Heard::default();
    let mut hub = hub(learning(), SessionConfig::default(), &heard);
    let (up, _session) = come_up(&mut hub, 1);
    let silent: Vec<_> = (0..10_000).map(|_| connect(&mut hub).0).collect();
    let counters = hub.snapshot().counters;
    assert_eq!((counters.connections, counters.half_open_ended, counters.refused), (10_001, 9_998, 9_998));
    assert!(!hub.is_ended(up) && hub.is_ended(silent[0]) && !hub.is_ended(silent[9_999]));
    for id in &silent[..9_998] {
        hub.disconnect(NOW, *id, "closed");
    }
    let (late, _session) = come_up(&mut hub, 2);
    assert!(!hub.is_ended(late) && hub.snapshot().switches.len() == 2);
}

#[test]
fn nonsense_ends_its_connection_and_no_other() {
    let heard = Heard::default();
    let mut hub = hub(learning(), SessionConfig::default(), &heard);
    let (good, mut session) = come_up(&mut hub, 1);
    let (bad, _) = connect(&mut hub);
    hub.receive(NOW, bad, b"GET / HTTP/1.1\r\nHost: controller\r\n\r\n");
    let (silent, _) = connect(&mut hub);
    let end = hub.deadline(silent).unwrap();
    hub.poll(end, silent);
    assert!(hub.is_ended(bad) && hub.is_ended(silent) && !hub.is_ended(good));
    assert_eq!(heard.reasons().len(), 2, "{:?}", heard.reasons());
    session.send(&packet_in()).unwrap();
    let got = exchange(&mut hub, good, &mut session, &features(1, 0));
    assert!(got.iter().any(|message| matches!(message.body, Body::PacketOut(_))));
}

#[test]
fn a_switch_that_does_not_read_costs_a_bounded_amount_of_memory() {
    let heard = Heard::default();
    let config = SessionConfig { max_output_bytes: 20_000, ..SessionConfig::default() };
    let mut hub = hub(learning(), config, &heard);
    let (id, mut session) = come_up(&mut hub, 1);
    for _ in 0..100 {
        session.send(&packet_in()).unwrap();
    }
    hub.receive(NOW, id, &std::mem::take(session.output()));
    let counters = hub.snapshot().counters;
    assert_eq!(counters.packet_outs + counters.dropped_full, 100);
    assert!(counters.dropped_full > 70 && hub.output(id).unwrap().len() < 22_000, "{counters:?}");
}

/// Application that sends a switch's message to all switches, among messages that one version cannot encode.
#[derive(Default)]
struct Gossip(Vec<ConnectionId>);

impl ControllerApp for Gossip {
    fn handle_switch_up(
        &mut self,
        _: Instant,
        switch: ConnectionId,
        _: Version,
        _: &FeaturesReply,
        _: &mut ControllerOutbox,
    ) {
        self.0.push(switch);
    }

    fn handle_message(&mut self, _: Instant, _: ConnectionId, _: Message, out: &mut ControllerOutbox) {
        let entry = Body::FlowMod(FlowMod::add(1, Match::any(), Vec::new()));
        let both = || [entry.clone(), Body::GetAsyncRequest].map(|body| Message { xid: 0, body });
        out.extend(self.0.iter().flat_map(|switch| both().map(|message| (*switch, message))));
    }

    fn handle_switch_down(&mut self, _: Instant, _: ConnectionId) {}
}

#[test]
fn applications_reach_other_switches_and_what_cannot_be_sent_is_counted() {
    let heard = Heard::default();
    let mut hub = hub(Box::new(Gossip::default()), SessionConfig::default(), &heard);
    let other = hub.connect(NOW, "1.0".into()).unwrap();
    let v10 = SessionConfig { versions: vec![Version::V10], ..SessionConfig::default() };
    let mut other_session = Session::switch(v10, NOW);
    exchange(&mut hub, other, &mut other_session, &features(1, 0));
    let (gone, _) = come_up(&mut hub, 2);
    hub.disconnect(NOW, gone, "gone");
    let (id, mut session) = come_up(&mut hub, 3);
    session.send(&packet_in()).unwrap();
    hub.take_changed(&mut Vec::new());
    let got = exchange(&mut hub, id, &mut session, &features(3, 0));
    let mut changed = Vec::new();
    hub.take_changed(&mut changed);
    assert!(changed.contains(&other) && changed.len() == 2, "{changed:?}");
    assert!(matches!(got[..], [Message { body: Body::FlowMod(_), .. }, Message { body: Body::GetAsyncRequest, .. }]));
    assert_ne!(got[0].xid, got[1].xid);
    let got = exchange(&mut hub, other, &mut other_session, &features(1, 0));
    assert!(matches!(got[..], [Message { body: Body::FlowMod(_), .. }]));
    let counters = hub.snapshot().counters;
    assert_eq!((counters.flow_mods, counters.dropped_gone, counters.dropped_unencodable), (2, 2, 1));
}

#[test]
fn a_switch_that_falls_silent_goes_down() {
    let heard = Heard::default();
    let mut hub = hub(learning(), SessionConfig::default(), &heard);
    let (id, _session) = come_up(&mut hub, 1);
    for _ in 0..2 {
        let at = hub.deadline(id).unwrap();
        assert!(at <= NOW + Duration::from_secs(10));
        hub.poll(at, id);
    }
    assert!(
        matches!(&heard.events()[..], [SwitchEvent::Up(_), SwitchEvent::Down { reason, .. }] if reason.contains("echo"))
    );
    assert_eq!((hub.snapshot().switches.len(), hub.deadline(id)), (0, None));
}
