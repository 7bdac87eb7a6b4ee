//! Tests what an operator sees of a hub: what became of each switch's messages, by class.
use crate::hub::{NOW, come_up, connect, exchange, hub, learning};
use crate::peer::{Heard, features, packet_in};
use std::time::Duration;
use weir_controller::hub::MessageClass;
use weir_controller::status::{ClassStatus, ControllerOverview};
use weir_openflow::Message;
use weir_openflow::model::{Body, Bytes};
use weir_openflow::session::{Session, SessionConfig};

fn class(status: &ControllerOverview, class: MessageClass) -> ClassStatus {
    let found = status.switches[0].classes.iter().find(|found| found.class == class);
    found.expect("each class is there").clone()
}

/// Returns the bytes that a switch sends for these messages.
fn bytes(session: &mut Session, bodies: impl IntoIterator<Item = Body>) -> Vec<u8> {
    bodies.into_iter().for_each(|body| session.send(&Message { xid: 9, body }).unwrap());
    std::mem::take(session.output())
}

#[test]
fn messages_are_counted_over_all_connections_of_a_switch() {
    let mut hub = hub(learning(), SessionConfig::default(), &Heard::default());
    let (main, mut main_session) = come_up(&mut hub, 7);
    let (second, mut second_session) = connect(&mut hub);
    exchange(&mut hub, second, &mut second_session, &features(7, 3));
    // What the handshake left is handled before.
    while hub.work(NOW, Duration::from_millis(1)) {}
    let before = hub.status(NOW);
    let echo = Body::EchoRequest(Bytes(vec![1]));
    let sent = bytes(&mut main_session, [echo, Body::BarrierReply, packet_in().body]);
    hub.enqueue(NOW, main, &sent);
    let sent = bytes(&mut second_session, [packet_in().body]);
    hub.enqueue(NOW, second, &sent);
    let waiting = class(&hub.status(NOW), MessageClass::Packet);
    assert_eq!((waiting.received, waiting.waiting, waiting.handled), (2, 2, 0));
    assert!(waiting.waiting_bytes > 0);
    while hub.work(NOW, Duration::from_millis(1)) {}
    let status = hub.status(NOW + Duration::from_secs(3));
    let packets = class(&status, MessageClass::Packet);
    assert_eq!((packets.waiting, packets.handled, packets.answered), (0, 2, 2), "both are flooded");
    let [control, former] = [&status, &before].map(|status| class(status, MessageClass::Control));
    assert_eq!((control.received - former.received, control.answered - former.answered), (2, 1), "the echo request");
    let switch = &status.switches[0];
    assert_eq!((switch.dpid, switch.role.as_str(), switch.up_s, switch.tls), (7, "equal", 3.0, false));
    assert_eq!(switch.auxiliary.iter().map(|connection| connection.number).collect::<Vec<_>>(), [3]);
    assert_eq!((status.applications.len(), status.applications[0].name.as_str()), (1, "learning switch"));
    assert_eq!(status.links, None, "nobody looks for them");
}
