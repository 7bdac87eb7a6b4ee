//! Tests the handshake: version negotiation, and messages received before it is complete.
use super::*;

#[test]
fn the_highest_common_version_is_used() {
    use Version::{V10, V13};
    for (switch, controller, expected) in [
        (&[V13, V10][..], &[V10, V13][..], V13),
        (&[V13, V10], &[V10], V10),
        (&[V10], &[V13, V10], V10),
        (&[V13], &[V13, V10], V13),
        // Without the bitmaps, 1.5 and 1.3 would agree on 1.3.
        (&[V13, V10], &[Version::V15, V10], V10),
    ] {
        let mut pair = Pair::new(config(switch), config(controller), &[]);
        pair.exchange();
        assert_eq!(pair.switch_events[0], SessionEvent::Up { version: expected, features: None });
        let up = SessionEvent::Up { version: expected, features: Some(features()) };
        assert_eq!(pair.controller_events, [up], "{switch:?} {controller:?}");
    }
}

#[test]
fn ends_without_a_common_version_tell_each_other() {
    let mut pair = Pair::new(config(&[Version::V13]), config(&[Version::V10]), &[]);
    pair.exchange();
    for events in [&pair.switch_events, &pair.controller_events] {
        let [SessionEvent::Closed { reason }] = &events[..] else {
            panic!("{events:?}");
        };
        assert!(reason.contains("no common OpenFlow version"), "{reason}");
    }
}

#[test]
fn a_handshake_has_its_time() {
    let mut silent = Session::switch(SessionConfig::default(), Instant::ZERO);
    silent.poll(Instant::ZERO + 10 * SECOND);
    assert!(silent.is_closed());
    let mut mute = Session::controller(SessionConfig::default(), Instant::ZERO);
    mute.receive(Instant::ZERO + 9 * SECOND, &hello(None, Version::V13));
    mute.poll(Instant::ZERO + 10 * SECOND);
    assert_eq!(
        mute.take_event(),
        Some(SessionEvent::Closed { reason: "no features reply within 10s of connecting".into() })
    );
}

#[test]
fn a_handshake_without_hello_is_refused() {
    for body in [Body::FeaturesRequest, Body::EchoRequest(Bytes::default()), flow_mod(5).body] {
        let mut session = Session::switch(SessionConfig::default(), Instant::ZERO);
        session.output().clear();
        let offender = bytes_of(&Message { xid: 5, body }, Version::V13);
        session.receive(Instant::ZERO, &offender);
        let messages = said(&mut session);
        assert_eq!(messages[0].xid, 5);
        assert_eq!(error_in(&messages).unwrap().error, BadRequest::BadType.into());
        assert!(session.take_event().is_some_and(|event| is_closed_event(&event)));
        assert_eq!(session.send(&flow_mod(1)), Err(SendError::NotUp));
    }
}

#[test]
fn another_protocol_is_refused_before_the_message_it_seems_to_be_is_whole() {
    for text in [&b"GET / HTTP/1.1\r\n"[..], b"SSH-2.0-OpenSSH_9.2\r\n", &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc]] {
        let mut session = Session::controller(SessionConfig::default(), Instant::ZERO);
        session.receive(Instant::ZERO, text);
        assert!(session.is_closed(), "{text:?}");
    }
}

#[test]
fn messages_before_the_features_reply_are_left_aside() {
    let mut session = Session::controller(SessionConfig::default(), Instant::ZERO);
    session.receive(Instant::ZERO, &hello(None, Version::V13));
    session.receive(Instant::ZERO, &bytes_of(&packet_in(9), Version::V13));
    assert_eq!((session.take_event(), session.counters().early), (None, 1));
    let asked = said(&mut session)[1].xid;
    let reply = |xid| bytes_of(&Message { xid, body: Body::FeaturesReply(features()) }, Version::V13);
    session.receive(Instant::ZERO, &reply(asked.wrapping_add(1)));
    assert_eq!(session.take_event(), None, "nobody asked with this transaction id");
    session.receive(Instant::ZERO, &reply(asked));
    assert_eq!(session.take_event(), Some(SessionEvent::Up { version: Version::V13, features: Some(features()) }));
}

#[test]
fn an_error_during_the_handshake_ends_it() {
    let mut session = Session::controller(SessionConfig::default(), Instant::ZERO);
    let error = ErrorMessage { error: HelloFailed::Incompatible.into(), data: Bytes(b"only \n1.5".to_vec()) };
    session.receive(Instant::ZERO, &bytes_of(&Message { xid: 1, body: Body::Error(error) }, Version::V13));
    let reason = "the peer refused the hello (OFPHFC_INCOMPATIBLE): only 1.5".to_owned();
    assert_eq!(session.take_event(), Some(SessionEvent::Closed { reason }));
}

#[test]
fn a_later_hello_must_fit_the_version_agreed_on() {
    let mut session = switch_up();
    session.receive(Instant::ZERO, &hello(Some(vec![4]), Version::V13));
    assert_eq!((session.take_event(), session.version()), (None, Some(Version::V13)));
    session.receive(Instant::ZERO, &hello(None, Version::V10));
    assert_eq!(error_in(&said(&mut session)).unwrap().error, HelloFailed::Incompatible.into());
    assert!(session.is_closed());
}

/// Each corruption of a hello is answered with the right error code, or closes the session.
#[test]
fn a_corrupt_hello_is_refused() {
    let good = hello(Some(vec![4]), Version::V13);
    let refused = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut session = Session::switch(SessionConfig::default(), Instant::ZERO);
        session.output().clear();
        let mut bytes = good.clone();
        change(&mut bytes);
        session.receive(Instant::ZERO, &bytes);
        let error = error_in(&said(&mut session)).map(|error| error.error);
        (error, session.take_event().is_some_and(|event| is_closed_event(&event)))
    };
    for kind in 2..=255 {
        let end = refused(&|bytes| bytes[1] = kind);
        assert_eq!(end, (Some(BadRequest::BadType.into()), true), "type {kind}");
    }
    for length in 0..8 {
        let end = refused(&|bytes| bytes[2..4].copy_from_slice(&[0, length]));
        assert_eq!(end, (Some(BadRequest::BadLen.into()), true), "length {length}");
    }
    // There is no version below 1.0. A bitmap with 1.3 counts regardless of the header's version.
    assert_eq!(refused(&|bytes| *bytes = vec![0, 0, 0, 8, 0, 0, 0, 1]), (Some(HelloFailed::Incompatible.into()), true));
    for version in 4..=255 {
        assert_eq!(refused(&|bytes| bytes[0] = version).0, None, "version {version}");
    }
    // Versions that weir does not implement.
    for version in [2, 3] {
        let plain = vec![version, 0, 0, 8, 0, 0, 0, 1];
        assert_eq!(refused(&|bytes| bytes.clone_from(&plain)), (Some(HelloFailed::Incompatible.into()), true));
    }
    // An element with an invalid length is skipped, because versions before 1.3.1 attach no meaning to a hello's
    // body.
    let accepted = |session_closed: (Option<ErrorType>, bool)| session_closed == (None, false);
    assert!((0..4).all(|length| accepted(refused(&|bytes| bytes[11] = length))));
}

#[test]
fn a_peer_that_speaks_tls_is_named() {
    let mut session = Session::switch(SessionConfig::default(), Instant::ZERO);
    session.receive(Instant::ZERO, &[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3]);
    let Some(SessionEvent::Closed { reason }) = session.take_event() else { panic!() };
    assert!(reason.starts_with("the peer speaks TLS; use ssl: and pssl: at both ends"), "{reason}");
}

/// Repeated and late hellos do not change the version that the first one agreed on.
#[test]
fn hellos_do_not_renegotiate() {
    let mut session = switch_up();
    for _ in 0..100 {
        session.receive(Instant::ZERO, &hello(Some(vec![1, 4]), Version::V13));
    }
    assert_eq!((session.take_event(), session.version()), (None, Some(Version::V13)));
    session.receive(Instant::ZERO, &hello(Some(vec![1]), Version::V13));
    assert_eq!(error_in(&said(&mut session)).unwrap().error, HelloFailed::Incompatible.into());
    assert!(session.is_closed());
}

/// An error message in place of the hello closes the session.
#[test]
fn a_handshake_that_begins_with_an_error_ends() {
    let mut session = Session::switch(SessionConfig::default(), Instant::ZERO);
    let error = ErrorMessage { error: BadRequest::BadVersion.into(), data: Bytes::default() };
    session.receive(Instant::ZERO, &bytes_of(&Message { xid: 1, body: Body::Error(error) }, Version::V13));
    let Some(SessionEvent::Closed { reason }) = session.take_event() else { panic!() };
    assert!(reason.contains("answered the handshake with an error"), "{reason}");
}
