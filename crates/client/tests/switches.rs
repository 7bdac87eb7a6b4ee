//! Clients and switches over real sockets: correct switches and faulty ones.
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_client::{ClientError, OpenFlowClient, SwitchAddress};
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::{Body, ErrorMessage, FeaturesReply};
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_openflow::{Message, Version};
use weir_units::{Clock as _, SystemClock};

const SOON: Duration = Duration::from_secs(20);
const BRIEF: Duration = Duration::from_millis(200);

/// Starts a switch behind a socket for one connection, on which it runs `act`.
fn switch(act: impl FnOnce(TcpStream) + Send + 'static) -> (SwitchAddress, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = SwitchAddress::Tcp(listener.local_addr().unwrap().to_string());
    let thread = std::thread::spawn(move || act(listener.accept().unwrap().0));
    (target, thread)
}

fn open(target: &SwitchAddress, patience: Duration) -> Result<OpenFlowClient, ClientError> {
    OpenFlowClient::open(target, &[Version::V13, Version::V10], patience, SystemClock::start())
}

fn refusal(target: &SwitchAddress, patience: Duration) -> String {
    open(target, patience).err().map(|error| error.to_string()).unwrap_or_default()
}

/// Runs a switch that speaks one version and replies to each message with the result of `answer`, if any.
fn answering(
    mut stream: TcpStream,
    version: Version,
    mut answer: impl FnMut(&Message) -> Option<Body>,
) -> std::io::Result<()> {
    let clock = SystemClock::start();
    let config = SessionConfig { versions: vec![version], ..SessionConfig::default() };
    let mut session = Session::switch(config, clock.now());
    let mut piece = [0; 4096];
    loop {
        stream.write_all(&std::mem::take(session.output()))?;
        let bytes = stream.read(&mut piece)?;
        if bytes == 0 {
            return Ok(());
        }
        session.receive(clock.now(), &piece[..bytes]);
        while let Some(event) = session.take_event() {
            if let SessionEvent::Message(message) = event
                && let Some(body) = answer(&message)
            {
                session.send(&Message { xid: message.xid, body }).expect("it is up");
            }
        }
    }
}

fn obliging(message: &Message) -> Option<Body> {
    match message.body {
        Body::FeaturesRequest => Some(Body::FeaturesReply(FeaturesReply::default())),
        Body::BarrierRequest => Some(Body::BarrierReply),
        Body::GetAsyncRequest => {
            Some(Body::Error(ErrorMessage { error: BadRequest::BadType.into(), data: Default::default() }))
        }
        _ => None,
    }
}

#[test]
fn questions_are_answered_in_either_version() {
    for version in [Version::V10, Version::V13] {
        let (target, thread) = switch(move |stream| drop(answering(stream, version, obliging)));
        let mut client = open(&target, SOON).unwrap();
        assert_eq!(client.version(), version);
        assert_eq!(client.ask(Body::BarrierRequest).unwrap(), Body::BarrierReply);
        // More bytes than any socket's buffers hold.
        let barrier = [version as u8, if version == Version::V10 { 18 } else { 20 }, 0, 8, 0, 0, 0, 1];
        let bytes = barrier.repeat(200_000);
        assert_eq!(client.stream_and_ask(&bytes, Body::BarrierRequest).unwrap(), Body::BarrierReply);
        client.write(&bytes[..80]).unwrap();
        client.send(&[Message { xid: 77, body: Body::BarrierRequest }]).unwrap();
        let clock = SystemClock::start();
        let came = loop {
            if let Some((_, message)) = client.poll().unwrap()
                && message.xid == 77
            {
                break message;
            }
            assert!(clock.now().as_secs_f64() < SOON.as_secs_f64());
        };
        assert_eq!(came.body, Body::BarrierReply);
        drop(client);
        thread.join().unwrap();
    }
}

#[test]
fn errors_are_told() {
    let (target, thread) = switch(|stream| drop(answering(stream, Version::V13, obliging)));
    let mut client = open(&target, SOON).unwrap();
    let refused = client.ask(Body::GetAsyncRequest);
    assert!(
        matches!(refused, Err(ClientError::Refused { error, .. }) if error == BadRequest::BadType.into()),
        "{refused:?}"
    );
    drop(client);
    thread.join().unwrap();
}

#[test]
fn other_versions_are_refused_by_name() {
    let (target, thread) = switch(|stream| drop(answering(stream, Version::V15, obliging)));
    let error = refusal(&target, SOON);
    assert!(error.starts_with(&target.to_string()) && error.contains("1.5") && error.contains("1.3"), "{error}");
    thread.join().unwrap();
}

#[test]
fn who_says_hello_and_no_more_is_given_up() {
    let (target, thread) = switch(|stream| drop(answering(stream, Version::V13, |_| None)));
    let error = refusal(&target, BRIEF);
    assert!(error.contains("the handshake failed: no features reply within 200ms"), "{error}");
    thread.join().unwrap();
}

#[test]
fn who_stops_answering_or_goes_is_told_apart() {
    let mut asked = 0;
    let once = move |message: &Message| {
        asked += u32::from(message.body == Body::BarrierRequest);
        obliging(message).filter(|_| asked < 2)
    };
    let (target, thread) = switch(move |stream| drop(answering(stream, Version::V13, once)));
    let mut client = open(&target, BRIEF).unwrap();
    client.ask(Body::BarrierRequest).unwrap();
    // The echo request is sent at the same time, so either error may come first.
    let error = client.ask(Body::BarrierRequest).unwrap_err();
    assert!(matches!(error, ClientError::Silent(_) | ClientError::Ended { .. }), "{error}");
    drop(client);
    thread.join().unwrap();
    let (target, thread) = switch(|stream| {
        let mut left = 1;
        let _ = answering(stream.try_clone().unwrap(), Version::V13, |message| {
            if message.body == Body::BarrierRequest {
                left -= 1;
                if left < 0 {
                    let _ = stream.shutdown(std::net::Shutdown::Both);
                }
            }
            obliging(message)
        });
    });
    let mut client = open(&target, SOON).unwrap();
    client.ask(Body::BarrierRequest).unwrap();
    let error = client.ask(Body::BarrierRequest).unwrap_err();
    assert!(matches!(error, ClientError::Ended { .. }), "{error}");
    thread.join().unwrap();
}

#[test]
fn garbage_ends_the_channel_with_a_reason() {
    for garbage in ["HTTP/1.1 400 Bad Request\r\n\r\n", "\u{4}\0\0\u{3}abcdefgh", "SSH-2.0-OpenSSH_9.2\r\n"] {
        let (target, thread) = switch(move |mut stream| {
            let _ = stream.write_all(garbage.as_bytes());
            let _ = stream.read_to_end(&mut Vec::new());
        });
        let error = refusal(&target, SOON);
        assert!(error.contains("the handshake failed: "), "{garbage:?}: {error}");
        thread.join().unwrap();
    }
    // Garbage after a correct handshake.
    let (target, thread) = switch(|stream| {
        let mut other = stream.try_clone().unwrap();
        let _ = answering(stream, Version::V13, move |message| {
            if message.body != Body::BarrierRequest {
                return obliging(message);
            }
            // A message of an unknown type, then one shorter than its header.
            other.write_all(&[4, 99, 0, 8, 0, 0, 0, 1, 4, 0, 0, 0, 0, 0, 0, 0]).unwrap();
            None
        });
    });
    let mut client = open(&target, SOON).unwrap();
    let error = client.ask(Body::BarrierRequest).unwrap_err();
    assert!(error.to_string().contains("0 bytes long"), "{error}");
    drop(client);
    thread.join().unwrap();
}

#[test]
fn nobody_is_told_in_time() {
    let nowhere = "ptcp:127.0.0.1:0".parse().unwrap();
    assert_eq!(refusal(&nowhere, Duration::from_millis(50)), "ptcp:127.0.0.1:0: no switch connected within 50ms");
    // A listener that sends nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let target = SwitchAddress::Tcp(silent.local_addr().unwrap().to_string());
    let error = refusal(&target, Duration::from_millis(50));
    assert!(error.contains("no hello within") || error.contains("no OpenFlow handshake within"), "{error}");
    drop(silent);
    let error = refusal(&target, SOON);
    assert!(error.contains("does the switch listen there?"), "{error}");
}
