//! Tests the server on real sockets and streams.
use crate::peer::{Heard, PATIENCE, Peer, packet_in};
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UnixStream};
use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
use weir_controller::hub::SwitchLoad;
use weir_controller::{Controller, ControllerConfig, ListenAddress, SwitchEvent};
use weir_openflow::model::Body;
use weir_openflow::session::SessionConfig;

fn start(listen: &[&str], heard: &Heard) -> Controller {
    let listen = listen.iter().map(|address| address.parse().unwrap()).collect();
    let config = ControllerConfig { listen, observer: heard.observer(), ..ControllerConfig::default() };
    Controller::start(Box::new(LearningSwitch::new(LearningConfig::default())), config).unwrap()
}

/// Runs a test, which fails if it takes too long.
pub(crate) fn block_on<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime
        .block_on(async { tokio::time::timeout(2 * PATIENCE, test).await })
        .expect("what must happen happens in time")
}

fn tcp_address(controller: &Controller) -> std::net::SocketAddr {
    let [ListenAddress::Tcp(address)] = controller.addresses() else { panic!("{:?}", controller.addresses()) };
    assert_ne!(address.port(), 0);
    *address
}

fn is_packet_out(body: &Body) -> bool {
    matches!(body, Body::PacketOut(_))
}

#[test]
fn switches_come_over_tcp_and_within_the_process_and_all_is_closed_at_the_end() {
    let heard = Heard::default();
    let controller = start(&["tcp:127.0.0.1:0"], &heard);
    block_on(async {
        let mut remote = Peer::up(TcpStream::connect(tcp_address(&controller)).await.unwrap(), 1).await;
        let mut embedded = Peer::up(controller.connect(), 2).await;
        remote.send(&packet_in()).await;
        embedded.send(&packet_in()).await;
        assert!(remote.until(is_packet_out).await.is_some());
        assert!(embedded.until(is_packet_out).await.is_some());
        let snapshot = controller.snapshot();
        let peers: Vec<_> = snapshot.switches.iter().map(|switch| (switch.dpid, &switch.peer[..4])).collect();
        assert_eq!(peers, [(1, "tcp:"), (2, "this")]);
        let summary = controller.stop();
        assert_eq!((summary.switches.len(), summary.counters.packet_ins, summary.counters.packet_outs), (2, 2, 2));
        assert!(remote.until(|_| false).await.is_none() && embedded.until(|_| false).await.is_none(), "closed");
    });
    assert_eq!(heard.reasons(), ["the controller stops", "the controller stops"]);
}

#[test]
fn a_switch_that_closes_goes_down_and_comes_back() {
    let heard = Heard::default();
    let controller = start(&["tcp:127.0.0.1:0"], &heard);
    block_on(async {
        for _ in 0..3 {
            // The connection is refused until the controller has noticed the end of the previous one.
            let peer = Peer::up(TcpStream::connect(tcp_address(&controller)).await.unwrap(), 1).await;
            let ups = heard.events().len();
            drop(peer);
            while heard.events().len() == ups {
                tokio::task::yield_now().await;
            }
        }
    });
    assert_eq!(heard.events().len(), 6);
    assert_eq!(heard.reasons(), ["the switch closed the connection"; 3]);
}

#[test]
fn a_stream_to_a_controller_that_ended_is_closed() {
    let controller = start(&[], &Heard::default());
    let mut stream = controller.connect();
    drop(controller);
    block_on(async {
        let mut rest = Vec::new();
        tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("the stream ends").unwrap();
    });
}

#[test]
fn an_address_in_use_is_named() {
    let first = start(&["tcp:127.0.0.1:0"], &Heard::default());
    let taken = tcp_address(&first);
    let config = ControllerConfig { listen: vec![ListenAddress::Tcp(taken)], ..ControllerConfig::default() };
    let second = Controller::start(Box::new(LearningSwitch::new(LearningConfig::default())), config);
    let error = second.err().expect("the address is taken");
    assert_eq!(error.kind(), ErrorKind::AddrInUse);
    assert!(error.to_string().starts_with(&format!("cannot listen on tcp:{taken}: ")), "{error}");
}

#[test]
fn unix_sockets_are_private_taken_over_when_dead_and_removed() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("controller.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a dead socket stays behind");
    let address = format!("unix:{}", path.display());
    let controller = start(&[&address], &Heard::default());
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    block_on(async {
        Peer::up(UnixStream::connect(&path).await.unwrap(), 1).await;
    });
    let config = ControllerConfig { listen: vec![address.parse().unwrap()], ..ControllerConfig::default() };
    let second = Controller::start(Box::new(LearningSwitch::new(LearningConfig::default())), config);
    assert_eq!(second.err().map(|error| error.kind()), Some(ErrorKind::AddrInUse), "a live one is left alone");
    controller.stop();
    assert!(!path.exists());
}

/// The controller goes on reading, so that it hears echo replies. What it cannot answer is dropped and counted.
#[test]
fn a_switch_that_floods_and_never_reads_is_heard_and_others_are_served() {
    let heard = Heard::default();
    let controller = start(&[], &heard);
    block_on(async {
        let mut stalled = Peer::up(controller.connect(), 1).await;
        for _ in 0..100 {
            stalled.session.send(&packet_in()).unwrap();
        }
        let flood = std::mem::take(stalled.session.output());
        while controller.snapshot().counters.dropped_overload < 10_000 {
            stalled.stream.write_all(&flood).await.unwrap();
        }
        let mut other = Peer::up(controller.connect(), 2).await;
        other.send(&packet_in()).await;
        assert!(other.until(is_packet_out).await.is_some());
        let end = controller.snapshot();
        assert_eq!(end.counters.dropped_full, 0, "nothing is made that cannot be sent");
        let dropped = |load: &SwitchLoad| load.dropped.iter().map(|drops| drops.count).sum::<u64>();
        assert!(dropped(&end.loads[0]) >= 10_000 && dropped(&end.loads[1]) == 0, "{:?}", end.loads);
    });
}

#[test]
fn a_switch_that_stalls_is_given_up() {
    let heard = Heard::default();
    let session = SessionConfig { echo_interval: Duration::from_millis(50), ..SessionConfig::default() };
    let config = ControllerConfig { session, observer: heard.observer(), ..ControllerConfig::default() };
    let controller = Controller::start(Box::new(LearningSwitch::new(LearningConfig::default())), config).unwrap();
    block_on(async {
        let mut stalled = Peer::up(controller.connect(), 1).await;
        let mut rest = Vec::new();
        let end = stalled.stream.read_to_end(&mut rest);
        tokio::time::timeout(PATIENCE, end).await.expect("the connection ends").unwrap();
    });
    let [SwitchEvent::Up(_), SwitchEvent::Down { reason, .. }] = &heard.events()[..] else {
        panic!("{:?}", heard.events())
    };
    assert_eq!(reason, "no answer to an echo request within 50ms");
}
