//! Crowds of connections: more than the switch accepts, silent ones, and ones that come and go.
//!
//! These tests have their own process and run one at a time, because they count the process's descriptors.
#[path = "../live/bed.rs"]
#[allow(dead_code, reason = "shared with the other tests")]
mod bed;

use bed::{Controller, PATIENCE, forward, switch, until};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;
use weir_switch::threads::ThreadsConfig;
use weir_switch::{ListenTarget, SoftwareSwitchConfig, SwitchHandle};

/// Maximum number of concurrent channels, as in docs/guide/switch.md.
const MAX_CHANNELS: usize = 256;

static ONE_AT_A_TIME: Mutex<()> = Mutex::const_new(());

fn listening(controllers: Vec<weir_switch::ControllerSpec>) -> (SwitchHandle, Vec<bed::Host>, SocketAddr) {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("the soft limit may be raised");
    let config = SoftwareSwitchConfig {
        listeners: vec!["ptcp:0".parse().unwrap()],
        controllers,
        ..SoftwareSwitchConfig::default()
    };
    let (switch, hosts) = switch(2, config);
    let ListenTarget::Tcp(address) = switch.listeners()[0] else { unreachable!() };
    (switch, hosts, address)
}

fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn channels(switch: &SwitchHandle) -> usize {
    switch.snapshot().unwrap().channels.len()
}

/// Thousand connections that send nothing, or only the beginning of a hello, neither keep others out nor stop
/// anything.
#[tokio::test]
async fn a_thousand_half_open_connections() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let (switch, mut hosts, address) = listening(Vec::new());
    let mut early = Controller::up(TcpStream::connect(address).await.unwrap()).await;
    early.send(weir_openflow::Body::FlowMod(forward(1, 2))).await;
    early.barrier().await;
    let mut silent = Vec::new();
    for number in 0..1000 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let beginning = &[4, 0, 0, 8, 0][..number % 6];
        // The connection may have been closed already to make room.
        let _ = stream.write_all(beginning).await;
        silent.push(stream);
        assert!(channels(&switch) <= MAX_CHANNELS);
    }
    until(|| channels(&switch) == MAX_CHANNELS).await;
    let mut late = Controller::up(TcpStream::connect(address).await.unwrap()).await;
    late.barrier().await;
    early.barrier().await;
    let [a, b] = &mut hosts[..] else { unreachable!() };
    a.send(b, 77);
    assert_eq!(b.tag(), 77, "frames pass by");
    drop(silent);
    until(|| channels(&switch) == 2).await;
}

/// Channels with a finished handshake stay, however many new connections arrive.
#[tokio::test]
async fn beyond_the_maximum_a_connection_is_refused() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let (switch, _hosts, address) = listening(Vec::new());
    let mut up = Vec::new();
    for _ in 0..MAX_CHANNELS {
        up.push(Controller::up(TcpStream::connect(address).await.unwrap()).await);
    }
    for _ in 0..50 {
        let mut refused = TcpStream::connect(address).await.unwrap();
        let mut rest = Vec::new();
        let end = tokio::time::timeout(PATIENCE, refused.read_to_end(&mut rest)).await.expect("it is closed");
        assert!(end.is_err() || rest.is_empty(), "refused without a word");
    }
    for controller in &mut up {
        controller.barrier().await;
    }
    up.pop();
    until(|| channels(&switch) < MAX_CHANNELS).await;
    Controller::up(TcpStream::connect(address).await.unwrap()).await.barrier().await;
}

/// Connections that come and go, properly closed or not, leave nothing behind; nor do controllers that keep breaking.
#[tokio::test]
async fn churn_leaves_nothing_behind() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let controller = format!("tcp:{},aux=3", listener.local_addr().unwrap()).parse().unwrap();
    let (switch, _hosts, address) = listening(vec![controller]);
    let accept = async || {
        let accepted = tokio::time::timeout(PATIENCE, listener.accept()).await.expect("the switch connects");
        Controller::up(accepted.unwrap().0).await
    };
    let main = accept().await;
    let auxiliaries = [accept().await, accept().await, accept().await];
    until(|| channels(&switch) == 4).await;
    let before = descriptors();
    for round in 0..300 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        match round % 3 {
            0 => Controller::up(stream).await.barrier().await,
            1 => stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap(),
            _ => drop(stream),
        }
    }
    until(|| channels(&switch) == 4).await;
    // The control thread's runtime closes sockets a moment later.
    until(|| descriptors() <= before).await;
    drop((main, auxiliaries));
    let _main = accept().await;
    let _auxiliaries = [accept().await, accept().await, accept().await];
    until(|| channels(&switch) == 4 && descriptors() <= before).await;
}

/// All controllers send requests with long replies and read nothing. The switch keeps a few replies for each,
/// continues, and stops when it is told to.
#[tokio::test]
async fn a_crowd_that_asks_and_never_reads() {
    let _turn = ONE_AT_A_TIME.lock().await;
    let (switch, mut hosts, address) = listening(Vec::new());
    switch.flow_mod(forward(1, 2)).unwrap();
    let mut working = Controller::up(TcpStream::connect(address).await.unwrap()).await;
    // A hello, and four thousand requests for the features of all tables.
    let asked =
        [&[4, 0, 0, 8, 0, 0, 0, 1][..], &[4, 18, 0, 16, 0, 0, 0, 2, 0, 12, 0, 0, 0, 0, 0, 0].repeat(4000)].concat();
    let mut deaf = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let _ = tokio::time::timeout(std::time::Duration::from_millis(20), stream.write_all(&asked)).await;
        deaf.push(stream);
    }
    working.barrier().await;
    let [a, b] = &mut hosts[..] else { unreachable!() };
    a.send(b, 5);
    assert_eq!(b.tag(), 5);
    let answered: u64 = switch.snapshot().unwrap().channels.iter().map(|channel| channel.sent).sum();
    assert!(answered < 100_000, "{answered} answers to those that do not read");
    drop(deaf);
    until(|| channels(&switch) == 1).await;
    assert!(resident_bytes() < 1 << 30, "{} bytes", resident_bytes());
    switch.stop();
}

fn resident_bytes() -> u64 {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok()).unwrap() * 4096
}

/// Runs all work on the engine's thread.
fn threads() -> ThreadsConfig {
    ThreadsConfig::default()
}
