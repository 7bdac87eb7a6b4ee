//! Sockets shared by tunnel ports: several tunnels of one kind use one UDP port or one IP protocol.
//!
//! Each port reads from the socket. A frame for another port waits in that port's bounded list, and the reader wakes
//! that port's thread.
use super::header::{Encapsulation, TunnelHeader};
use crate::event::EventFd;
use crate::sys::datagrams::{DatagramReceiveSlots, ReceivedDatagram, name};
use crate::sys::socket;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::linux::fs::MetadataExt as _;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use weir_packet::{Frame, FramePool, Tunnel};
use weir_units::Instant;

/// Maximum number of frames waiting for a port; further frames are dropped and counted.
const WAITING_MAX: usize = 512;
/// Receive buffer of the socket in bytes, before the kernel drops datagrams.
const RECEIVE_BUFFER: i32 = 8 << 20;

/// Local address of tunnels of one kind, with the settings of their socket.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct TunnelEndpointConfig {
    pub(super) encapsulation: Encapsulation,
    /// Local IPv4 address; unspecified for any address of the machine.
    pub(super) local: Ipv4Addr,
    /// UDP port; 0 for GRE.
    pub(super) port: u16,
    /// Socket settings for sending.
    pub(super) sending: TunnelSendOptions,
}

/// Socket settings for sending datagrams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TunnelSendOptions {
    /// True if routers may not fragment the datagrams.
    pub(super) whole: bool,
    /// True if the datagrams carry a UDP checksum.
    pub(super) checksum: bool,
    /// Time to live of the datagrams.
    pub(super) ttl: u8,
}

/// Selector of the packets that a port receives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct TunnelSelector {
    /// Required sender; `None` accepts any sender.
    pub(super) remote: Option<Ipv4Addr>,
    pub(super) key: TunnelKeySelector,
}

/// Selector of tunnel keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum TunnelKeySelector {
    /// Any key, or none.
    Any,
    /// Exactly this key, or exactly no key.
    Exactly(Option<u32>),
}

/// A socket shared by all tunnel ports that have the same [`TunnelEndpointConfig`]: tunnel kind, local address and
/// socket settings.
pub(super) struct TunnelEndpoint {
    pub(super) socket: OwnedFd,
    encapsulation: Encapsulation,
    state: Mutex<TunnelEndpointState>,
}

struct TunnelEndpointState {
    receiving: Box<DatagramReceiveSlots>,
    members: HashMap<TunnelSelector, EndpointMember>,
    /// Time at which the socket was found empty; other ports do not read it again in that round.
    empty_at: Option<Instant>,
}

/// State of one port at an endpoint.
struct EndpointMember {
    waiting: VecDeque<Frame>,
    wake: Arc<EventFd>,
    any_packet_type: bool,
    missed: u64,
}

/// Counts of one call of [`TunnelEndpoint::receive`], besides the frames.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct TunnelReceiveCounts {
    /// Datagrams that are damaged or match no port.
    pub(super) errors: u64,
}

/// Open endpoints by network namespace (inode number) and place.
type EndpointRegistry = Mutex<HashMap<(u64, TunnelEndpointConfig), Weak<TunnelEndpoint>>>;
static REGISTRY: LazyLock<EndpointRegistry> = LazyLock::new(EndpointRegistry::default);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The state is consistent after each statement that could panic, so a poisoned lock is safe to use.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TunnelEndpoint {
    /// Returns the endpoint for `place`; opens it if no port uses it yet in the calling thread's network namespace.
    pub(super) fn at(place: &TunnelEndpointConfig) -> io::Result<Arc<TunnelEndpoint>> {
        let namespace = std::fs::metadata("/proc/thread-self/ns/net")?.st_ino();
        let mut registry = lock(&REGISTRY);
        registry.retain(|_, endpoint| endpoint.strong_count() > 0);
        let key = (namespace, place.clone());
        if let Some(endpoint) = registry.get(&key).and_then(Weak::upgrade) {
            return Ok(endpoint);
        }
        let endpoint = Arc::new(TunnelEndpoint {
            socket: open(place)?,
            encapsulation: place.encapsulation,
            state: Mutex::new(TunnelEndpointState {
                receiving: DatagramReceiveSlots::new(),
                members: HashMap::new(),
                empty_at: None,
            }),
        });
        registry.insert(key, Arc::downgrade(&endpoint));
        Ok(endpoint)
    }

    /// Adds a port. Returns false if another port has the same selector.
    pub(super) fn join(&self, wanted: TunnelSelector, any_packet_type: bool, wake: Arc<EventFd>) -> bool {
        let mut state = lock(&self.state);
        if state.members.contains_key(&wanted) {
            return false;
        }
        state.members.insert(wanted, EndpointMember { waiting: VecDeque::new(), wake, any_packet_type, missed: 0 });
        true
    }

    /// Removes a port and drops its waiting frames.
    pub(super) fn leave(&self, wanted: TunnelSelector) {
        lock(&self.state).members.remove(&wanted);
    }

    /// Returns true if frames wait for a port.
    pub(super) fn has_waiting(&self, wanted: TunnelSelector) -> bool {
        lock(&self.state).members.get(&wanted).is_some_and(|member| !member.waiting.is_empty())
    }

    /// Returns the number of frames for a port that were dropped because too many waited.
    pub(super) fn missed(&self, wanted: TunnelSelector) -> u64 {
        lock(&self.state).members.get(&wanted).map_or(0, |member| member.missed)
    }

    /// Appends at most `max` frames for the port `wanted` to `batch`. Frames read for other ports wait in those ports'
    /// lists.
    pub(super) fn receive(
        &self,
        wanted: TunnelSelector,
        now: Instant,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        max: usize,
    ) -> TunnelReceiveCounts {
        let mut state = lock(&self.state);
        let mut found = TunnelReceiveCounts::default();
        let before = batch.len();
        if let Some(member) = state.members.get_mut(&wanted) {
            if !member.waiting.is_empty() {
                member.wake.drain();
            }
            let taken = member.waiting.len().min(max);
            batch.extend(member.waiting.drain(..taken));
        }
        let left = max - (batch.len() - before);
        if left == 0 || state.empty_at == Some(now) {
            return found;
        }
        match state.receiving.receive(self.socket.as_fd(), pool, left) {
            Ok(count) => {
                for slot in 0..count {
                    let datagram = state.receiving.take(slot);
                    self.sort(&mut state, wanted, datagram, pool, batch, &mut found);
                }
            }
            // Either no datagram waits, or an error caused by a peer's message was read: the next round reads on.
            Err(_) => state.empty_at = Some(now),
        }
        found
    }

    /// Delivers a datagram: to `batch` if it is for the reading port, else to the list of its port.
    fn sort(
        &self,
        state: &mut TunnelEndpointState,
        reader: TunnelSelector,
        datagram: Option<ReceivedDatagram>,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        found: &mut TunnelReceiveCounts,
    ) {
        let Some((frame, wanted)) = datagram.and_then(|datagram| self.unpack(state, datagram, pool)) else {
            found.errors += 1;
            return;
        };
        if wanted == reader {
            return batch.push(frame);
        }
        let Some(member) = state.members.get_mut(&wanted) else { return };
        if member.waiting.len() == WAITING_MAX {
            member.missed += 1;
            return pool.give(frame);
        }
        if member.waiting.is_empty() {
            member.wake.signal();
        }
        member.waiting.push_back(frame);
    }

    /// Removes the outer headers and finds the port. Returns `None` if the datagram is damaged or matches no port.
    fn unpack(
        &self,
        state: &TunnelEndpointState,
        datagram: ReceivedDatagram,
        pool: &mut FramePool,
    ) -> Option<(Frame, TunnelSelector)> {
        let ReceivedDatagram { mut frame, source, destination } = datagram;
        let outer =
            if self.encapsulation == Encapsulation::Gre { ipv4_header(frame.bytes()) } else { Some((0, destination)) };
        let read = outer.and_then(|(bytes, destination)| {
            let header = self.encapsulation.read(frame.bytes().get(bytes..)?)?;
            Some((bytes, destination, header))
        });
        let taker = read.and_then(|(bytes, destination, header)| {
            let (wanted, member) = state.taker(source, &header)?;
            let is_taken = header.packet_type.is_ethernet() || member.any_packet_type;
            is_taken.then_some((bytes + header.bytes, destination, header, wanted))
        });
        let Some((bytes, destination, header, wanted)) = taker else {
            pool.give(frame);
            return None;
        };
        frame.remove(0, bytes);
        if header.packet_type.is_ethernet() && frame.len() < 14 {
            pool.give(frame);
            return None;
        }
        frame.set_packet_type(header.packet_type);
        let dst = destination.unwrap_or(Ipv4Addr::UNSPECIFIED).to_bits();
        frame.tunnel = Tunnel { id: header.key.unwrap_or(0), src: source.to_bits(), dst };
        Some((frame, wanted))
    }
}

impl TunnelEndpointState {
    /// Returns the port with the most specific selector for a packet; the sender takes precedence over the key.
    fn taker(&self, source: Ipv4Addr, header: &TunnelHeader) -> Option<(TunnelSelector, &EndpointMember)> {
        let key = TunnelKeySelector::Exactly(header.key);
        let ways =
            [(Some(source), key), (Some(source), TunnelKeySelector::Any), (None, key), (None, TunnelKeySelector::Any)];
        ways.into_iter().find_map(|(remote, key)| {
            let wanted = TunnelSelector { remote, key };
            Some((wanted, self.members.get(&wanted)?))
        })
    }
}

/// Returns the length in bytes and the destination of a packet's IPv4 header, which the kernel has checked.
fn ipv4_header(packet: &[u8]) -> Option<(usize, Option<Ipv4Addr>)> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let destination = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
    Some((usize::from(header[0] & 15) * 4, Some(destination)))
}

fn open(place: &TunnelEndpointConfig) -> io::Result<OwnedFd> {
    let is_gre = place.encapsulation == Encapsulation::Gre;
    let (kind, protocol) = if is_gre { (libc::SOCK_RAW, libc::IPPROTO_GRE) } else { (libc::SOCK_DGRAM, 0) };
    let opened = socket::open(libc::AF_INET, kind, protocol)?;
    configure(opened.as_fd(), place)?;
    socket::bind(opened.as_fd(), &name(place.local, place.port))?;
    Ok(opened)
}

fn configure(socket: BorrowedFd<'_>, place: &TunnelEndpointConfig) -> io::Result<()> {
    let TunnelSendOptions { whole, checksum, ttl } = place.sending;
    let ip = |option, value: i32| socket::set(socket, libc::IPPROTO_IP, option, &value);
    ip(libc::IP_MTU_DISCOVER, if whole { libc::IP_PMTUDISC_DO } else { libc::IP_PMTUDISC_DONT })?;
    ip(libc::IP_TTL, ttl.into())?;
    if place.encapsulation != Encapsulation::Gre {
        ip(libc::IP_PKTINFO, 1)?;
        socket::set(socket, libc::SOL_SOCKET, libc::SO_NO_CHECK, &i32::from(!checksum))?;
    }
    socket::set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER)
        .or_else(|_| socket::set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER))
}
