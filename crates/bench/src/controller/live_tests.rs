//! Tests of measurements over real sockets: against the reflector, and against peers that are no controller.
use super::event::HalfTimeEvent;
use super::measure::{MeasureSettings, MeasuredPace, measure};
use super::reflector::Reflector;
use super::request::{AskedFrames, AskedSources};
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use weir_emulator::CancelHandle;
use weir_openflow::Version;

fn settings(version: Version, pace: MeasuredPace) -> MeasureSettings {
    MeasureSettings {
        version,
        switches: 3,
        hosts: 8,
        frames: AskedFrames::L2,
        sources: AskedSources::Known,
        pace,
        weights: Vec::new(),
        event: None,
        joins: 1,
        storms: 0,
        time_s: 0.2,
        warm_up_s: 0.0,
        timeout_s: 5.0,
        seed: 1,
    }
}

#[test]
fn the_reflector_answers_every_request_once() {
    for version in [Version::V10, Version::V13, Version::V14] {
        let reflector = Reflector::start(version).unwrap();
        for pace in [MeasuredPace::Window(1), MeasuredPace::Flood] {
            let settings = MeasureSettings { storms: 1, ..settings(version, pace) };
            let found = measure("reflector", reflector.address, &settings, None, &CancelHandle::new()).unwrap();
            let counts = found.replies;
            assert!(found.answered > 0 && found.lost == 0 && found.ended == 0, "{found:?}");
            assert!(counts.unasked + counts.wrong + counts.malformed + counts.errors == 0, "{counts:?}");
            assert_eq!((found.storms_ms.len(), found.handshakes.unwrap().samples), (1, 6));
        }
    }
}

#[test]
fn cbench_counts_and_events_are_reported() {
    let reflector = Reflector::start(Version::V10).unwrap();
    let cbench = MeasureSettings {
        sources: AskedSources::Cbench,
        frames: AskedFrames::Ip,
        ..settings(Version::V10, MeasuredPace::CbenchLatency)
    };
    let found = measure("reflector", reflector.address, &cbench, None, &CancelHandle::new()).unwrap();
    assert!(found.cbench_per_second.is_some_and(|rate| rate > 0.0), "{found:?}");
    for (event, joins) in [(HalfTimeEvent::Join, 3), (HalfTimeEvent::Greedy, 1), (HalfTimeEvent::Probe, 1)] {
        let settings = MeasureSettings {
            event: Some(event),
            joins,
            weights: vec![1, 2],
            time_s: 1.0,
            ..settings(Version::V10, MeasuredPace::Window(2))
        };
        let pid = Some(std::process::id());
        let found = measure("reflector", reflector.address, &settings, pid, &CancelHandle::new()).unwrap();
        assert_eq!(found.ended, 0, "a switch that leaves was not ended by the controller: {:?}", found.ended_why);
        let figures = found.event.unwrap();
        assert!(figures.own > 0.0 && figures.others_before > 0.0, "{figures:?}");
        assert_eq!(figures.fairness.len(), if event == HalfTimeEvent::Join { 3 } else { 0 });
        assert_eq!(figures.echo.is_some_and(|echo| echo.samples > 5), event == HalfTimeEvent::Probe, "{figures:?}");
        assert!(found.weights.len() == 2 && found.process.is_some_and(|process| process.cpu_s > 0.0));
    }
}

/// Starts a peer that sends these bytes to each connection and closes it. Returns its address.
fn peer(bytes: &'static [u8]) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.write_all(bytes);
        }
    });
    address
}

#[test]
fn peers_that_are_no_controller_are_errors() {
    let settings = settings(Version::V13, MeasuredPace::Window(1));
    let error = |address| measure("x", address, &settings, None, &CancelHandle::new()).unwrap_err().to_string();
    let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|free| free.local_addr()).unwrap();
    assert!(error(free).contains("does the controller listen there?"), "{}", error(free));
    for bytes in [&b""[..], b"HTTP/1.1 400 Bad Request\r\n\r\n"] {
        let found = error(peer(bytes));
        assert!(found.contains("set up none of 3 switches"), "{found}");
    }
    let (cancel, reflector) = (CancelHandle::new(), Reflector::start(Version::V13).unwrap());
    cancel.cancel();
    let found = measure("x", reflector.address, &settings, None, &cancel).unwrap_err().to_string();
    assert!(found.contains("stopped before the first request"), "{found}");
}
