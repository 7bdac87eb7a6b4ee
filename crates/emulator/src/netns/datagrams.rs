//! Sends datagrams between namespaces by the arrival times and lengths that a scenario describes, through the kernel's
//! network stacks, and measures their one-way delays.
//!
//! A datagram carries the time just before it was handed to the kernel. It is received with the kernel's time stamp,
//! so that it does not count how late this process reads it.
use crate::CancelHandle;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::time::Duration;
use weir_network::TrafficMeasurement;
use weir_network::datagrams::{self, CATCH_UP, DatagramPlan, MAX_PAYLOAD};
use weir_port::event::wait_any;
use weir_units::{Clock as _, Epoch, Instant, SystemClock};

/// Bytes that the receiver's kernel keeps until this process reads them.
const RECEIVE_BUFFER: usize = 8 << 20;
/// Longest wait before cancellation is checked.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Wait after the kernel had no room for a datagram.
const NO_ROOM: Duration = Duration::from_millis(1);
/// Maximum number of datagrams sent before received ones are read.
const MAX_BURST: u32 = 64;
/// Most sockets of flows that are kept open.
const MAX_SOCKETS: usize = 64;

/// Ends of an item of datagrams.
pub(super) struct DatagramEnds<'a> {
    /// Names of the namespaces of sender and receiver.
    pub(super) namespaces: [&'a str; 2],
    /// Address and port of the receiver.
    pub(super) to: SocketAddr,
    /// Source port of the item's own flow.
    pub(super) own_port: u16,
}

/// An item's sockets and measurements, on a thread of its own, which stays in the sender's namespace.
pub(super) struct DatagramRun<'a> {
    ends: &'a DatagramEnds<'a>,
    clock: SystemClock,
    receiver: UdpSocket,
    /// Sockets by source port, the latest last.
    senders: VecDeque<(u16, UdpSocket)>,
    measured: TrafficMeasurement,
    first: Option<Instant>,
    payload: Vec<u8>,
}

impl<'a> DatagramRun<'a> {
    /// Opens the item's sockets. The calling thread moves into the namespaces, and stays in the sender's.
    ///
    /// # Errors
    /// A namespace cannot be entered, or the kernel refuses a socket.
    pub(super) fn open(ends: &'a DatagramEnds<'a>, clock: SystemClock) -> io::Result<DatagramRun<'a>> {
        let [from, to] = ends.namespaces;
        enter(to)?;
        let receiver = bound(ends.to.ip(), ends.to.port())?;
        setsockopt(&receiver, sockopt::ReceiveTimestampns, &true)?;
        // Needs root, as the namespaces do.
        setsockopt(&receiver, sockopt::RcvBufForce, &RECEIVE_BUFFER)?;
        enter(from)?;
        // The default slack would add up to 50 us to each sleep.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        Ok(DatagramRun {
            ends,
            clock,
            receiver,
            senders: VecDeque::new(),
            measured: TrafficMeasurement::keeping_times(true),
            first: None,
            payload: vec![0; MAX_PAYLOAD],
        })
    }

    /// Sends the datagrams of a plan, and receives meanwhile.
    pub(super) fn send(&mut self, mut plan: DatagramPlan, cancel: &CancelHandle) -> io::Result<()> {
        while !cancel.is_cancelled() {
            let mut until = self.clock.now() + LOOK_EVERY;
            for _ in 0..MAX_BURST {
                let now = self.clock.now();
                let Some((due, bytes)) = plan.schedule.next.filter(|_| now < plan.end + CATCH_UP) else {
                    self.measured.asked = plan.schedule.asked();
                    return Ok(());
                };
                if due > now {
                    until = until.min(due);
                    break;
                }
                if !self.send_one(plan.ports.next, bytes)? {
                    until = now + NO_ROOM;
                    break;
                }
                self.measured.late.record(now - due);
                plan.schedule.advance();
                plan.ports.draw();
                until = now;
            }
            self.receive_until(until)?;
        }
        self.measured.asked = plan.schedule.asked();
        Ok(())
    }

    /// Sends one datagram from a source port. Returns false if the kernel has no room for it.
    fn send_one(&mut self, port: u16, bytes: usize) -> io::Result<bool> {
        let place = match self.senders.iter().position(|(known, _)| *known == port) {
            Some(place) => place,
            None => {
                let any =
                    if self.ends.to.is_ipv6() { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
                let socket = bound(any, port)?;
                socket.connect(self.ends.to)?;
                if self.senders.len() >= MAX_SOCKETS {
                    self.senders.pop_front();
                }
                self.senders.push_back((port, socket));
                self.senders.len() - 1
            }
        };
        let payload = datagrams::stamped(&mut self.payload, bytes, self.clock.now(), self.measured.sent);
        match self.senders[place].1.send(payload) {
            Ok(_) => {}
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock) => return Ok(false),
            // The receiver's kernel, or a router, refused an earlier one: this one was not sent.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => return Ok(false),
            // Without a route or a neighbour the kernel refuses each: it counts as sent and lost.
            Err(error)
                if matches!(error.kind(), io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable) => {}
            Err(error) => return Err(error),
        }
        self.measured.sent += 1;
        Ok(true)
    }

    /// Receives datagrams until a time.
    fn receive_until(&mut self, until: Instant) -> io::Result<()> {
        loop {
            while self.receive_one()? {}
            let now = self.clock.now();
            if now >= until {
                return Ok(());
            }
            wait_any(&[self.receiver.as_fd()], Some(until - now));
        }
    }

    /// Receives datagrams until `is_over` says that all have had the time to arrive. Returns the measurements.
    pub(super) fn finish(mut self, is_over: impl Fn() -> bool) -> io::Result<TrafficMeasurement> {
        while !is_over() {
            self.receive_until(self.clock.now() + LOOK_EVERY)?;
        }
        while self.receive_one()? {}
        Ok(self.measured)
    }

    /// Receives one datagram. Returns false if there is none.
    fn receive_one(&mut self) -> io::Result<bool> {
        let mut bytes = [0; MAX_PAYLOAD];
        let mut beside = nix::cmsg_space!(TimeSpec);
        let mut parts = [IoSliceMut::new(&mut bytes)];
        let flags = MsgFlags::MSG_DONTWAIT;
        let (length, came_ns) = match recvmsg::<()>(self.receiver.as_raw_fd(), &mut parts, Some(&mut beside), flags) {
            Ok(received) => {
                let stamp = |message| match message {
                    ControlMessageOwned::ScmTimestampns(stamp) => u64::try_from(Duration::from(stamp).as_nanos()).ok(),
                    _ => None,
                };
                (received.bytes, received.cmsgs().ok().and_then(|mut messages| messages.find_map(stamp)))
            }
            Err(nix::errno::Errno::EAGAIN) => return Ok(false),
            Err(error) => return Err(error.into()),
        };
        // The kernel's time stamps are of the wall clock, which may be set, so only the age is taken from it.
        let (now, wall_ns) = self.clock.beside(Epoch::Wall);
        let age_ns = came_ns.map_or(0, |came| wall_ns.saturating_sub(came));
        let came = Instant::from_nanos(now.as_nanos().saturating_sub(age_ns));
        let Some((sent, _)) = datagrams::stamp(&bytes[..length]) else { return Ok(true) };
        self.measured.received += 1;
        self.measured.payload_bytes += length as u64;
        self.measured.span = came - *self.first.get_or_insert(came);
        self.measured.delayed(sent, came);
        Ok(true)
    }
}

/// Moves the calling thread into a namespace.
fn enter(namespace: &str) -> io::Result<()> {
    let file = File::open(format!("/run/netns/{namespace}"))?;
    Ok(move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))?)
}

/// Returns a socket that does not block, bound to an address and port.
fn bound(address: IpAddr, port: u16) -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind(SocketAddr::new(address, port))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}
