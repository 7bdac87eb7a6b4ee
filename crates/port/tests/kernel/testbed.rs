//! Test bed: two host namespaces joined to a switch namespace, and a forwarder between two ports.
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsRawFd as _;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;
use weir_packet::{Frame, FramePool};
use weir_port::{FrameCounters, Port, PortError, PortResult, PortSpec};
use weir_testing::{Namespace, root, run, wait_until};
use weir_units::Instant;

/// Maximum time that tests wait for something that should happen immediately.
pub(crate) const SOON: Duration = Duration::from_secs(5);

/// Hosts `a` (interface a0, 10.77.0.1, fd77::1) and `b` (b0, .2), joined to s0 and s1 of the switch namespace.
pub(crate) struct Bed {
    pub(crate) a: Namespace,
    pub(crate) b: Namespace,
    pub(crate) switch: Namespace,
}

impl Bed {
    /// Creates the bed; `None`, with a message, if the test lacks the privilege.
    pub(crate) fn new() -> Option<Bed> {
        if !root() {
            return None;
        }
        let bed = Bed { a: Namespace::new(), b: Namespace::new(), switch: Namespace::new() };
        bed.switch.join("s0", &bed.a, "a0");
        bed.switch.join("s1", &bed.b, "b0");
        for (host, device, last) in [(&bed.a, "a0", 1), (&bed.b, "b0", 2)] {
            run(host.command("sysctl").args(["-qw", &format!("net.ipv6.conf.{device}.disable_ipv6=0")]));
            host.ip(&format!("addr add 10.77.0.{last}/24 dev {device}"));
            host.ip(&format!("addr add fd77::{last}/64 dev {device} nodad"));
        }
        Some(bed)
    }

    /// Returns a buffer pool, host a's end of its link, and the port at the other end.
    pub(crate) fn host_and_port(&self, spec: &str) -> (FramePool, Box<dyn Port>, Box<dyn Port>) {
        let host = open(&self.a, "af_packet:a0").expect("the host's end opens");
        (FramePool::default(), host, open(&self.switch, spec).expect("the port opens"))
    }

    /// Forwards between two ports opened in the switch namespace, on a separate thread.
    pub(crate) fn forward(&self, first: &str, second: &str) -> Forwarder {
        Forwarder::start(&self.switch, [first.to_owned(), second.to_owned()])
    }

    /// Pings from a to b, over IPv4 and IPv6.
    pub(crate) fn ping(&self) {
        run(self.a.command("ping").args(["-c", "3", "-i", "0.05", "-W", "2", "10.77.0.2"]));
        run(self.a.command("ping").args(["-c", "3", "-i", "0.05", "-W", "2", "fd77::2"]));
    }

    /// Pings from a to b, and moves `bytes` over TCP there and back, over IPv4 and IPv6.
    pub(crate) fn talk(&self, bytes: usize) {
        self.ping();
        self.tcp("10.77.0.2", bytes);
        self.tcp("fd77::2", bytes);
    }

    /// Moves `bytes` over one TCP connection from a to b and back again and checks them. Returns the time it took.
    pub(crate) fn tcp(&self, address: &str, bytes: usize) -> Duration {
        self.tcp_from(&self.a, address, bytes)
    }

    /// Moves `bytes` over one TCP connection from any namespace to b and back again. Returns the time it took.
    pub(crate) fn tcp_from(&self, from: &Namespace, address: &str, bytes: usize) -> Duration {
        let (ready, listening) = mpsc::channel();
        let address = address.to_owned();
        let server_address = address.clone();
        let server = within(&self.b, move || {
            let listener = TcpListener::bind((server_address.as_str(), 5001)).unwrap();
            ready.send(()).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            limit(&stream);
            let mut got = vec![0; bytes];
            stream.read_exact(&mut got).unwrap();
            stream.write_all(&got).unwrap();
        });
        let client = within(from, move || {
            listening.recv_timeout(SOON).unwrap();
            let start = std::time::SystemTime::now();
            let peer = (address.parse::<std::net::IpAddr>().unwrap(), 5001).into();
            let mut stream = TcpStream::connect_timeout(&peer, SOON).expect("TCP connects");
            limit(&stream);
            let sent: Vec<u8> = (0..bytes).map(|at| u8::try_from(at * 31 % 251).unwrap()).collect();
            stream.write_all(&sent).unwrap();
            let mut got = vec![0; bytes];
            stream.read_exact(&mut got).unwrap();
            assert!(got == sent, "the bytes that came back differ");
            start.elapsed().unwrap_or_default()
        });
        let took = client.join().expect("client");
        server.join().expect("server");
        took
    }
}

fn limit(stream: &TcpStream) {
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.set_write_timeout(Some(Duration::from_secs(20))).unwrap();
}

/// Runs `work` on a thread in `namespace`.
pub(crate) fn within<T: Send + 'static>(
    namespace: &Namespace,
    work: impl FnOnce() -> T + Send + 'static,
) -> JoinHandle<T> {
    let file = std::fs::File::open(format!("/run/netns/{}", namespace.name())).expect("the namespace is there");
    std::thread::spawn(move || {
        // SAFETY: setns(2) takes two integers; it changes this thread only.
        let result = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
        assert_eq!(result, 0, "setns: {}", std::io::Error::last_os_error());
        work()
    })
}

/// Opens a port in a namespace.
pub(crate) fn open(namespace: &Namespace, spec: &str) -> Result<Box<dyn Port>, PortError> {
    let spec = spec.to_owned();
    within(namespace, move || weir_port::open(&spec.parse::<PortSpec>()?)).join().expect("opening a port")
}

/// Waits for a frame from a port that `wanted` accepts; `None` if none arrives in time.
pub(crate) fn receive(port: &mut dyn Port, pool: &mut FramePool, wanted: impl Fn(&Frame) -> bool) -> Option<Frame> {
    let mut found = None;
    wait_until(SOON, || {
        let mut batch = Vec::new();
        port.receive(Instant::ZERO, pool, &mut batch, 64).expect("the port works");
        found = batch.into_iter().find(&wanted);
        found.is_some()
    });
    found
}

/// Sends one frame.
pub(crate) fn send(port: &mut dyn Port, pool: &mut FramePool, bytes: &[u8]) {
    port.transmit(Instant::ZERO, pool, &mut vec![Frame::from_bytes(bytes)]).expect("the port works");
}

/// Sends a frame from one port and expects it unchanged at the other.
pub(crate) fn pass(from: &mut dyn Port, to: &mut dyn Port, pool: &mut FramePool, sent: &[u8]) {
    send(from, pool, sent);
    let is_it = |got: &Frame| got.bytes().starts_with(&sent[..12]) && got.bytes().last() == sent.last();
    let got = receive(to, pool, is_it).expect("arrives");
    assert_eq!(got.bytes(), sent);
    assert!(got.offload.is_none());
}

/// Sends a frame from the first port to the second, and back.
pub(crate) fn pass_both_ways(first: &mut dyn Port, second: &mut dyn Port, pool: &mut FramePool, sent: &[u8]) {
    pass(first, second, pool, sent);
    pass(second, first, pool, sent);
}

/// Checks that a forwarder between ports of this kind ends when one of the devices vanishes.
pub(crate) fn a_vanished_device_is_noticed(kind: &str) {
    let Some(bed) = Bed::new() else { return };
    let forwarder = bed.forward(&format!("{kind}:s0"), &format!("{kind}:s1"));
    bed.ping();
    bed.switch.ip("link del s0");
    forwarder.lose();
}

/// Returns a test frame: addresses, type, and a payload filled with `mark`.
pub(crate) fn frame(ethertype: &[u8], mark: u8, payload: usize) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 0xb, 2, 0, 0, 0, 0, 0xa];
    bytes.extend_from_slice(ethertype);
    bytes.resize(bytes.len() + payload, mark);
    bytes
}

/// Returns an interface's features (`ethtool -k`), for comparison before and after.
pub(crate) fn features(namespace: &Namespace, device: &str) -> String {
    run(namespace.command("ethtool").args(["-k", device]))
}

/// Returns the description of an interface by `ip -d link show`.
pub(crate) fn details(namespace: &Namespace, device: &str) -> String {
    run(Command::new("ip").args(["-d", "-n", namespace.name(), "link", "show", device]))
}

/// Two ports and a thread that forwards between them and sleeps on their descriptors.
pub(crate) struct Forwarder {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Outcome>>,
}

/// Final state of a forwarder.
pub(crate) struct Outcome {
    pub(crate) counters: [FrameCounters; 2],
    pub(crate) result: PortResult,
}

impl Forwarder {
    fn start(namespace: &Namespace, specs: [String; 2]) -> Forwarder {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let (ready, opened) = mpsc::channel();
        let thread = within(namespace, move || {
            let mut ports = specs.map(|spec| {
                let opened = spec.parse::<PortSpec>().and_then(|spec| weir_port::open(&spec));
                opened.unwrap_or_else(|error| panic!("{error}"))
            });
            ready.send(()).unwrap();
            let result = forward(&mut ports, &seen);
            Outcome { counters: ports.map(|port| port.counters()), result }
        });
        opened.recv_timeout(SOON).expect("the ports open");
        Forwarder { stop, thread: Some(thread) }
    }

    /// Stops the forwarder, or joins its thread if it stopped by itself.
    pub(crate) fn stop(mut self) -> Outcome {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().expect("stopped once").join().expect("the forwarder does not panic")
    }

    /// Expects the forwarder to stop by itself because a device is gone.
    pub(crate) fn lose(self) {
        assert!(wait_until(SOON, || self.thread.as_ref().is_some_and(JoinHandle::is_finished)));
        let error = self.stop().result.expect_err("the port is gone");
        assert!(matches!(error, PortError::Gone { .. }), "{error}");
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn forward(ports: &mut [Box<dyn Port>; 2], stop: &AtomicBool) -> PortResult {
    let mut pool = FramePool::default();
    let mut batch = Vec::new();
    let mut idle = 0u64;
    while !stop.load(Ordering::Relaxed) {
        idle += 1;
        for from in 0..2 {
            ports[from].receive(Instant::from_nanos(idle * 1_000_000), &mut pool, &mut batch, 64)?;
            if !batch.is_empty() {
                ports[1 - from].transmit(Instant::from_nanos(idle * 1_000_000), &mut pool, &mut batch)?;
            }
        }
        let ready = ports.iter_mut().any(|port| port.arm() == weir_port::ReceiveReadiness::Now);
        if !ready {
            sleep_on(ports);
        }
    }
    Ok(())
}

fn sleep_on(ports: &[Box<dyn Port>; 2]) {
    let mut polls = [0, 1].map(|at| libc::pollfd {
        fd: ports[at].fd().expect("kernel ports have descriptors").as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    });
    // SAFETY: the pointer and the count describe `polls`.
    unsafe { libc::poll(polls.as_mut_ptr(), 2, 50) };
}
