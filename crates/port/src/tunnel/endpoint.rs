//! Sockets that tunnel ports share: several tunnels of one kind arrive at one UDP port, or as one IP protocol.
//!
//! Each port reads from the socket; what is for another port waits for that one in a bounded list, and wakes its thread.
use super::header::{Encapsulation, Header};
use crate::event::EventFd;
use crate::sys::datagrams::{Datagram, ReceiveDatagrams, name};
use crate::sys::socket;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::os::linux::fs::MetadataExt as _;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError, Weak};
use weir_packet::{Frame, FramePool, Tunnel};
use weir_units::Instant;

/// Frames that wait for a port at most; those beyond are dropped and counted.
const WAITING_MAX: usize = 512;
/// Bytes the kernel may hold for weir before it drops datagrams.
const RECEIVE_BUFFER: i32 = 8 << 20;

/// Where tunnels of one kind arrive.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Place {
    pub(super) encapsulation: Encapsulation,
    /// The address they are sent to; unspecified for any of the machine's.
    pub(super) local: Ipv4Addr,
    /// The UDP port; 0 without.
    pub(super) port: u16,
    /// Settings of the socket that sending depends on.
    pub(super) sending: Sending,
}

/// How datagrams are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Sending {
    /// Whether routers may not fragment them.
    pub(super) whole: bool,
    /// Whether they carry a checksum.
    pub(super) checksum: bool,
    /// Their time to live.
    pub(super) ttl: u8,
}

/// Which packets a port takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Wanted {
    /// From this address only.
    pub(super) remote: Option<Ipv4Addr>,
    pub(super) key: WantedKey,
}

/// Which keys a port takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum WantedKey {
    /// Whatever it is.
    Any,
    /// This one, or none.
    Exactly(Option<u32>),
}

/// A shared socket.
pub(super) struct Endpoint {
    pub(super) socket: OwnedFd,
    encapsulation: Encapsulation,
    state: Mutex<State>,
}

struct State {
    receiving: Box<ReceiveDatagrams>,
    members: HashMap<Wanted, Member>,
    /// When the socket had nothing: it is not asked again by other ports in the same round.
    empty_at: Option<Instant>,
}

/// A port's part.
struct Member {
    waiting: VecDeque<Frame>,
    wake: Arc<EventFd>,
    any_packet_type: bool,
    missed: u64,
}

/// What one call of [`Endpoint::receive`] found beside frames.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Found {
    /// Datagrams that are damaged, or for no port.
    pub(super) errors: u64,
}

/// The endpoints there are, by network namespace and place.
type Registry = Mutex<HashMap<(u64, Place), Weak<Endpoint>>>;
static REGISTRY: LazyLock<Registry> = LazyLock::new(Registry::default);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing is left half done between statements that could panic.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Endpoint {
    /// The endpoint at a place, opened if no port has it yet in the calling thread's network namespace.
    pub(super) fn at(place: &Place) -> io::Result<Arc<Endpoint>> {
        let namespace = std::fs::metadata("/proc/thread-self/ns/net")?.st_ino();
        let mut registry = lock(&REGISTRY);
        registry.retain(|_, endpoint| endpoint.strong_count() > 0);
        let key = (namespace, place.clone());
        if let Some(endpoint) = registry.get(&key).and_then(Weak::upgrade) {
            return Ok(endpoint);
        }
        let endpoint = Arc::new(Endpoint {
            socket: open(place)?,
            encapsulation: place.encapsulation,
            state: Mutex::new(State { receiving: ReceiveDatagrams::new(), members: HashMap::new(), empty_at: None }),
        });
        registry.insert(key, Arc::downgrade(&endpoint));
        Ok(endpoint)
    }

    /// Adds a port; whether no other one wants the same packets.
    pub(super) fn join(&self, wanted: Wanted, any_packet_type: bool, wake: Arc<EventFd>) -> bool {
        let mut state = lock(&self.state);
        if state.members.contains_key(&wanted) {
            return false;
        }
        state.members.insert(wanted, Member { waiting: VecDeque::new(), wake, any_packet_type, missed: 0 });
        true
    }

    /// Removes a port.
    pub(super) fn leave(&self, wanted: Wanted) {
        lock(&self.state).members.remove(&wanted);
    }

    /// Whether frames wait for a port.
    pub(super) fn has_waiting(&self, wanted: Wanted) -> bool {
        lock(&self.state).members.get(&wanted).is_some_and(|member| !member.waiting.is_empty())
    }

    /// Frames for a port that were dropped since too many waited.
    pub(super) fn missed(&self, wanted: Wanted) -> u64 {
        lock(&self.state).members.get(&wanted).map_or(0, |member| member.missed)
    }

    /// Appends at most `max` frames for a port to `batch`.
    pub(super) fn receive(
        &self,
        wanted: Wanted,
        now: Instant,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        max: usize,
    ) -> Found {
        let mut state = lock(&self.state);
        let mut found = Found::default();
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
            // Nothing there, or an error that a peer's message caused: the next call goes on.
            Err(_) => state.empty_at = Some(now),
        }
        found
    }

    /// Gives a datagram to the port that wants it.
    fn sort(
        &self,
        state: &mut State,
        reader: Wanted,
        datagram: Option<Datagram>,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        found: &mut Found,
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

    /// Takes the outer headers off and finds the port.
    fn unpack(&self, state: &State, datagram: Datagram, pool: &mut FramePool) -> Option<(Frame, Wanted)> {
        let Datagram { mut frame, source, destination } = datagram;
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

impl State {
    /// The port that takes a packet: the one that says most of it; the sender counts before the key.
    fn taker(&self, source: Ipv4Addr, header: &Header) -> Option<(Wanted, &Member)> {
        let key = WantedKey::Exactly(header.key);
        let ways = [(Some(source), key), (Some(source), WantedKey::Any), (None, key), (None, WantedKey::Any)];
        ways.into_iter().find_map(|(remote, key)| {
            let wanted = Wanted { remote, key };
            Some((wanted, self.members.get(&wanted)?))
        })
    }
}

/// The length of a packet's IPv4 header, and where it goes. The kernel has checked it.
fn ipv4_header(packet: &[u8]) -> Option<(usize, Option<Ipv4Addr>)> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let destination = Ipv4Addr::new(header[16], header[17], header[18], header[19]);
    Some((usize::from(header[0] & 15) * 4, Some(destination)))
}

fn open(place: &Place) -> io::Result<OwnedFd> {
    let is_gre = place.encapsulation == Encapsulation::Gre;
    let (kind, protocol) = if is_gre { (libc::SOCK_RAW, libc::IPPROTO_GRE) } else { (libc::SOCK_DGRAM, 0) };
    let opened = socket::open(libc::AF_INET, kind, protocol)?;
    configure(opened.as_fd(), place)?;
    socket::bind(opened.as_fd(), &name(place.local, place.port))?;
    Ok(opened)
}

fn configure(socket: BorrowedFd<'_>, place: &Place) -> io::Result<()> {
    let Sending { whole, checksum, ttl } = place.sending;
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
