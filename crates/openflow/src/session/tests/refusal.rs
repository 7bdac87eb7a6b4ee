//! Tests sessions whose peer sends invalid messages or does not read.
use super::*;
use crate::model::error::BadAction;

#[test]
fn another_version_than_the_one_agreed_on_is_refused() {
    let mut session = switch_up();
    for version in [1, 2, 5, 0, 0xff] {
        let mut offender = bytes_of(&flow_mod(8), Version::V13);
        offender[0] = version;
        session.receive(Instant::ZERO, &offender);
        let messages = said(&mut session);
        let error = error_in(&messages).unwrap();
        assert_eq!((messages[0].xid, error.error), (8, BadRequest::BadVersion.into()));
        assert_eq!(error.data.0, offender[..64]);
    }
    session.receive(Instant::ZERO, &bytes_of(&flow_mod(9), Version::V13));
    assert_eq!(session.take_event(), Some(SessionEvent::Message(flow_mod(9))), "the session goes on");
    assert_eq!(session.counters().refused, 5);
}

#[test]
fn what_cannot_be_understood_is_answered_and_the_session_goes_on() {
    let mut session = switch_up();
    let mut unknown_type = bytes_of(&Message { xid: 3, body: Body::BarrierRequest }, Version::V13);
    unknown_type[1] = 99;
    session.receive(Instant::ZERO, &unknown_type);
    let messages = said(&mut session);
    assert_eq!(error_in(&messages).unwrap().error, BadRequest::BadType.into());
    assert_eq!(error_in(&messages).unwrap().data.0, unknown_type, "all of a short message");
    assert_eq!((messages[0].xid, session.version()), (3, Some(Version::V13)));
}

#[test]
fn messages_for_the_other_end_are_refused() {
    let mut session = switch_up();
    session.receive(Instant::ZERO, &bytes_of(&packet_in(4), Version::V13));
    assert_eq!(error_in(&said(&mut session)).unwrap().error, BadRequest::BadType.into());
    assert_eq!(session.take_event(), None);
}

#[test]
fn an_error_is_never_answered_with_an_error() {
    let mut session = switch_up();
    let mut error = ErrorMessage { error: BadAction::BadType.into(), data: Bytes::default() };
    let message = Message { xid: 4, body: Body::Error(error.clone()) };
    session.receive(Instant::ZERO, &bytes_of(&message, Version::V13));
    assert_eq!(session.take_event(), Some(SessionEvent::Message(message)));
    // This error message is too short to hold a type and a code.
    session.receive(Instant::ZERO, &[4, 1, 0, 8, 0, 0, 0, 4]);
    assert_eq!(session.take_event(), None);
    error.error = HelloFailed::Eperm.into();
    session.receive(Instant::ZERO, &bytes_of(&Message { xid: 4, body: Body::Error(error) }, Version::V13));
    assert!(session.is_closed() && session.output().is_empty());
}

#[test]
fn a_length_that_cannot_be_ends_the_session() {
    for length in 0..8 {
        let mut session = switch_up();
        session.receive(Instant::ZERO, &[4, 2, 0, length, 0, 0, 0, 6, 1, 2, 3]);
        assert_eq!(error_in(&said(&mut session)).unwrap().error, BadRequest::BadLen.into());
        assert!(session.is_closed());
        session.receive(Instant::ZERO, &bytes_of(&flow_mod(1), Version::V13));
        assert!(session.take_event().is_some_and(|event| is_closed_event(&event)));
        assert_eq!((session.take_event(), session.output().len()), (None, 0));
    }
}

#[test]
fn a_peer_that_does_not_read_fills_a_bounded_output() {
    let config = SessionConfig { max_output_bytes: 1000, ..SessionConfig::default() };
    let mut session = Session::switch(config, Instant::ZERO);
    session.receive(Instant::ZERO, &hello(None, Version::V13));
    let full = (0..100).map(|xid| session.send(&packet_in(xid))).find(Result::is_err).unwrap();
    assert!(matches!(full, Err(SendError::Full(1000..))));
    let echo = bytes_of(&Message { xid: 1, body: Body::EchoRequest(Bytes(vec![0; 60_000])) }, Version::V13);
    session.receive(Instant::ZERO, &echo.repeat(50));
    assert!(session.output().len() < 1000 + 65_536);
    assert_eq!(session.counters().answers_dropped, 50);
    session.output().clear();
    assert_eq!(session.send(&packet_in(1)), Ok(()));
}

#[test]
fn input_held_is_less_than_a_message() {
    let mut session = switch_up();
    let large = bytes_of(&Message { xid: 1, body: Body::EchoReply(Bytes(vec![0; 65_527])) }, Version::V13);
    for _ in 0..20 {
        session.receive(Instant::ZERO, &large[..60_000]);
        session.receive(Instant::ZERO, &large[60_000..]);
    }
    assert_eq!(session.counters().received, 21);
    session.receive(Instant::ZERO, &large[..65_534]);
    assert_eq!(session.input.rest().len(), 65_534);
}
