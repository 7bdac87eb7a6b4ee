//! Tests echo requests and sessions whose peer falls silent.
use super::*;

#[test]
fn an_idle_pair_stays_up() {
    let mut pair = Pair::up(&[Version::V13, Version::V10], &[3]);
    pair.pass(3600 * SECOND);
    assert_eq!((pair.switch_events.len(), pair.controller_events.len()), (0, 0));
    let sent = pair.controller.counters().sent;
    assert!((700..1500).contains(&sent), "an hour has 720 intervals of 5 s: {sent} messages");
}

#[test]
fn a_silent_peer_ends_the_session_after_two_intervals() {
    let mut session = switch_up();
    let probe = session.deadline().unwrap();
    assert_eq!(probe, Instant::ZERO + 5 * SECOND);
    session.poll(probe);
    assert!(matches!(said(&mut session)[..], [Message { body: Body::EchoRequest(_), .. }]));
    let end = session.deadline().unwrap();
    session.poll(end - Duration::from_nanos(1));
    assert!(!session.is_closed());
    session.poll(end);
    assert!(session.take_event().is_some_and(|event| is_closed_event(&event)) && session.deadline().is_none());
}

#[test]
fn any_message_answers_a_probe() {
    let mut session = switch_up();
    session.poll(Instant::ZERO + 5 * SECOND);
    session.receive(Instant::ZERO + 6 * SECOND, &bytes_of(&flow_mod(1), Version::V13));
    assert_eq!(session.deadline(), Some(Instant::ZERO + 11 * SECOND));
}

#[test]
fn without_an_echo_interval_silence_is_accepted() {
    let config = SessionConfig { echo_interval: Duration::ZERO, ..SessionConfig::default() };
    let mut session = Session::switch(config, Instant::ZERO);
    session.receive(Instant::ZERO, &hello(None, Version::V13));
    assert_eq!(session.deadline(), None);
}

#[test]
fn echo_requests_are_answered_with_their_data() {
    let mut session = switch_up();
    let request = Message { xid: 77, body: Body::EchoRequest(Bytes(vec![1, 2, 3])) };
    session.receive(Instant::ZERO, &bytes_of(&request, Version::V13));
    assert_eq!(said(&mut session), [Message { xid: 77, body: Body::EchoReply(Bytes(vec![1, 2, 3])) }]);
    assert_eq!(session.take_event(), None);
}

#[test]
fn a_peer_that_is_not_read_is_excused() {
    let mut session = switch_up();
    let at = |seconds: u32| Instant::ZERO + seconds * SECOND;
    for seconds in [5, 10, 15] {
        session.excuse(at(seconds));
        session.poll(at(seconds));
        assert!(said(&mut session).is_empty(), "no question while nothing is read");
    }
    session.poll(at(20));
    assert!(matches!(said(&mut session)[..], [Message { body: Body::EchoRequest(_), .. }]));
    session.excuse(at(25));
    session.poll(at(25));
    assert!(!session.is_closed(), "its answer may wait to be read");
    session.poll(at(30));
    assert!(session.is_closed());
}
