//! `af_xdp:NAME[,mode=native|generic]`: a network interface through AF_XDP sockets.
//!
//! The port for packets per second: about twice those of [`crate::af_packet`], taken in the driver (native mode) or, where
//! the driver cannot, right behind it (generic mode). Every receive queue of the interface has a socket, so no frame takes
//! another way; frames are sent through the first. All frames of the interface are taken: the host's own network stack
//! sees none while the port is open.
//!
//! AF_XDP has no offloads. What hosts behind a veth leave undone is recognised and travels on with the frame;
//! what is to be sent is finished in software. So TCP works with the hosts' settings as they are; its bulk rate is below
//! `af_packet`'s. In native mode the kernel itself stops the veth peer from making super-frames while the port is open.
//!
//! A VLAN tag that a host's VLAN interface leaves to the veth is not in the bytes that XDP sees. So the host's end is
//! looked for and its `tx-vlan-offload` switched off while the port is open; where it is out of reach, a warning says
//! so. That is where the host is in another namespace and the port is opened by a switch that runs, which has given up
//! the right to enter it.
mod checksum;
mod program;
mod queue;

use crate::claim::Claim;
use crate::ethtool::{self, SwitchedOff};
use crate::interface::{HeldDown, Interface, LINK_HEADER_MAX, refused};
use crate::peer::{self, Peer};
use crate::spec::Options;
use crate::sys::{Plain as _, errno, socket};
use crate::{Counters, LinkState, Port, PortError, PortInfo, Ready, af_packet, unfinished};
use program::{Mode, Program};
use queue::{Queue, Received};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use weir_packet::Parsed;
use weir_packet::frame::{Frame, FramePool};
use weir_units::Instant;

/// Bytes the kernel keeps free in front of each received frame (`XDP_PACKET_HEADROOM`).
const KERNEL_HEADROOM: usize = 256;
/// Chunks for frames of an ordinary MTU, and for longer frames.
const SMALL_CHUNK: u32 = 2048;
const LARGE_CHUNK: u32 = 4096;
/// How often a port that is polled without sleep looks whether its device is still there.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// XDP sees frames as the driver gives them: tags must not have been taken out nor frames merged. Restored when the port
/// closes; if the process is killed outright, by `weir cleanup` or the next port that closes.
const OFF: [&str; 4] = ["rx-vlan-hw-parse", "rx-vlan-stag-hw-parse", "rx-lro", "rx-gro-hw"];
/// A host's VLAN interfaces must put their tags into the frames.
const PEER_OFF: [&str; 2] = ["tx-vlan-hw-insert", "tx-vlan-stag-hw-insert"];
/// A type that no frame has (RFC 1701's reserved): the packet socket that watches the device receives nothing.
const NO_FRAMES: u16 = 0xffff;

/// What programs, sockets, settings and locked memory need.
const CAPABILITIES: &str = "CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_IPC_LOCK";

/// A network interface through AF_XDP sockets.
pub struct AfXdp {
    info: PortInfo,
    frame_max: usize,
    // Dropped in this order: no more frames are redirected, then the sockets go, then the settings come back.
    program: Program,
    queues: Vec<Queue>,
    _settings: Settings,
    _claim: Option<Claim>,
    interface: Arc<Interface>,
    /// Tells of the device going down or away, and holds its promiscuous mode.
    watch: OwnedFd,
    readable: OwnedFd,
    check_at: Instant,
    /// The device was gone when the link was asked for. `watch` tells only that it goes down, which may be long before.
    vanished: bool,
    /// The MTU was raised beyond what the sockets' chunks hold: the port has to be opened again.
    outgrown: bool,
    first_queue: usize,
    finished: Vec<Frame>,
    /// What received frames are parsed in.
    scratch: Box<Parsed>,
    counters: Counters,
    held_down: Option<HeldDown>,
}

impl AfXdp {
    /// Opens a port on the interface `name` of the calling thread's network namespace.
    ///
    /// # Errors
    /// There is no such interface, it cannot do what was asked for, or a capability is missing (`CAP_NET_ADMIN`,
    /// `CAP_NET_RAW`, `CAP_BPF`, and `CAP_IPC_LOCK` or a limit of locked memory of several MiB).
    pub fn open(name: &str, options: &Options) -> Result<Self, PortError> {
        options.expect_only(&["mode"])?;
        let mode = mode(options)?;
        let interface = Arc::new(Interface::find(name, options)?);
        let info = interface.describe(options)?;
        let claim = Claim::make(&interface, options)?;
        let queue_count = ethtool::receive_queues(&interface);
        let watch =
            watch(&interface).map_err(|source| refused(options, "watch the interface", source, CAPABILITIES))?;
        let settings = Settings::make(&interface);
        let program = Program::attach(&interface, queue_count, mode, options)?;
        let chunk = chunk(&info, program.mode);
        let queues = (0..queue_count)
            .map(|number| open_queue(&interface, &program, number, chunk))
            .collect::<io::Result<Vec<_>>>()
            .map_err(|source| no_socket(options, name, source))?;
        let sockets = queues.iter().map(Queue::socket);
        let readable = socket::any_of(sockets, Some(watch.as_fd()))
            .map_err(|source| refused(options, "wait for frames", source, ""))?;
        Ok(AfXdp {
            frame_max: info.mtu as usize + LINK_HEADER_MAX,
            info,
            program,
            queues,
            _settings: settings,
            _claim: claim,
            interface,
            watch,
            readable,
            check_at: Instant::ZERO,
            vanished: false,
            outgrown: false,
            first_queue: 0,
            finished: Vec::new(),
            scratch: Box::default(),
            counters: Counters::default(),
            held_down: None,
        })
    }

    /// Counts a received frame and notes what its sender left undone.
    fn accept(&mut self, received: Received, pool: &mut FramePool, batch: &mut Vec<Frame>) {
        let Received::Frame(mut frame) = received else {
            self.counters.rx_errors += 1;
            return;
        };
        let Some(offload) = checksum::left_undone(&frame, &mut self.scratch, self.frame_max, self.info.mtu as usize)
        else {
            self.counters.rx_errors += 1;
            return pool.give(frame);
        };
        frame.offload = offload;
        self.counters.rx_packets += 1;
        self.counters.rx_bytes += frame.len() as u64;
        batch.push(frame);
    }

    /// Puts frames into the transmit ring, sending when it is full.
    fn send(&mut self, frames: &[Frame]) -> io::Result<()> {
        // What an interface that is down left in the ring goes when it is up again; no more is added to it.
        if self.queues[0].has_unsent() && !self.kick()? {
            self.counters.tx_errors += frames.len() as u64;
            return Ok(());
        }
        let longest = self.frame_max.min(self.queues[0].transmit_max());
        for frame in frames {
            if frame.len() > longest {
                self.counters.tx_too_long += 1;
            } else if frame.is_empty() {
                self.counters.tx_errors += 1;
            } else if self.queues[0].enqueue(frame.bytes()) || (self.kick()? && self.queues[0].enqueue(frame.bytes())) {
                self.counters.tx_packets += 1;
                self.counters.tx_bytes += frame.len() as u64;
            } else {
                self.counters.tx_full += 1;
            }
        }
        self.kick().map(drop)
    }

    /// Sends what waits; whether the interface is up.
    fn kick(&mut self) -> io::Result<bool> {
        let sent = self.queues[0].send()?;
        self.counters.tx_packets -= sent.dropped;
        self.counters.tx_bytes -= sent.dropped_bytes;
        self.counters.tx_full += sent.dropped;
        Ok(!sent.down)
    }

    /// Takes over an MTU that was changed. Sockets keep the chunks that they were opened with: a port whose chunks are
    /// too short ends as if its device had gone, and whoever waits for the device opens it again.
    fn follow_mtu(&mut self) {
        let Ok(mtu) = self.interface.mtu() else { return };
        if mtu == self.info.mtu {
            return;
        }
        let before = chunk(&self.info, self.program.mode);
        self.info.mtu = mtu;
        self.frame_max = mtu as usize + LINK_HEADER_MAX;
        self.outgrown |= chunk(&self.info, self.program.mode) > before;
        if self.outgrown {
            tracing::info!(
                interface = self.interface.name(),
                mtu,
                "frames are longer than the port has room for: it is opened again"
            );
        }
    }

    /// An interface that is down comes back; one that vanished does not.
    fn check_device(&self) -> Result<(), PortError> {
        if self.interface.exists() && !self.outgrown {
            Ok(())
        } else {
            Err(PortError::Gone { spec: self.info.spec.clone() })
        }
    }
}

impl Port for AfXdp {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn receive(
        &mut self,
        now: Instant,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        max: usize,
    ) -> Result<(), PortError> {
        if self.vanished || self.outgrown {
            return self.check_device();
        }
        let mut left = max;
        for at in 0..self.queues.len() {
            // Each queue is first in turn, so that a busy one does not starve the others.
            let at = (self.first_queue + at) % self.queues.len();
            let before = left;
            while left > 0
                && let Some(received) = self.queues[at].next(pool)
            {
                left -= 1;
                self.accept(received, pool, batch);
            }
            if left < before {
                self.queues[at].release();
            }
        }
        self.first_queue = (self.first_queue + 1) % self.queues.len();
        if left == max && now >= self.check_at {
            self.check_at = now + CHECK_INTERVAL;
            if socket::pending_error(self.watch.as_fd()).is_err() {
                return self.check_device();
            }
        }
        Ok(())
    }

    fn transmit(&mut self, _now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> Result<(), PortError> {
        self.counters.tx_errors += unfinished::finish(frames, &mut self.finished, pool);
        let result = self.send(frames);
        pool.give_burst(frames);
        result.or_else(|_| self.check_device())
    }

    fn arm(&mut self) -> Ready {
        if self.queues[0].has_unsent() {
            // An error shows when frames are received or sent next.
            let _ = self.kick();
        }
        self.check_at = Instant::ZERO;
        if self.vanished || self.outgrown || self.queues.iter().any(Queue::has_received) {
            Ready::Now
        } else {
            Ready::OnDescriptor
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.readable.as_fd())
    }

    fn link(&mut self) -> LinkState {
        self.vanished = !self.interface.exists();
        self.follow_mtu();
        self.interface.link()
    }

    fn counters(&self) -> Counters {
        Counters { rx_missed: self.queues.iter().map(Queue::missed).sum(), ..self.counters }
    }

    fn set_admin(&mut self, up: bool) -> io::Result<()> {
        HeldDown::set(&mut self.held_down, &self.interface, up)
    }
}

/// The mode that the user asks for; `None`: the best there is.
fn mode(options: &Options) -> Result<Option<Mode>, PortError> {
    match options.text("mode") {
        None | Some("auto") => Ok(None),
        Some("native") => Ok(Some(Mode::Native)),
        Some("generic") => Ok(Some(Mode::Generic)),
        Some(other) => Err(options.error(format!("option mode: found `{other}`, expected native, generic or auto"))),
    }
}

/// Chunks that hold a frame of the interface; the largest there are for the super-frames that generic mode sees.
fn chunk(info: &PortInfo, mode: Mode) -> u32 {
    let fits = info.mtu as usize + LINK_HEADER_MAX + KERNEL_HEADROOM <= SMALL_CHUNK as usize;
    if fits && mode == Mode::Native { SMALL_CHUNK } else { LARGE_CHUNK }
}

/// What is switched off on the interface, and on the host's end of a veth, while the port is open.
struct Settings {
    _own: Option<SwitchedOff>,
    _peer: Option<SwitchedOff>,
}

impl Settings {
    fn make(interface: &Arc<Interface>) -> Self {
        let name = interface.name();
        let switch_off = |interface: &Arc<Interface>, features: &[&str]| {
            SwitchedOff::new(interface, features)
                .map_err(|error| af_packet::settings_kept(interface.name(), &error))
                .ok()
        };
        let peer = match peer::find(interface) {
            Peer::None => None,
            Peer::Found(peer) => switch_off(&Arc::new(peer), &PEER_OFF),
            Peer::OutOfReach => {
                tracing::warn!(
                    interface = name,
                    "the other end of this veth is out of reach (a switch enters no other namespace once it runs): if \
                     VLAN interfaces are on it, their tags are lost unless it has `ethtool -K NAME txvlan off`"
                );
                None
            }
        };
        Settings { _own: switch_off(interface, &OFF), _peer: peer }
    }
}

/// A queue with its socket, which gets the queue's frames from now on.
fn open_queue(interface: &Interface, program: &Program, number: u32, chunk: u32) -> io::Result<Queue> {
    let queue = Queue::open(interface.index(), number, chunk)?;
    program.set_socket(number, queue.socket())?;
    Ok(queue)
}

/// A packet socket that receives nothing, holds promiscuous mode and an error once the device is down or gone.
fn watch(interface: &Interface) -> io::Result<OwnedFd> {
    let watch = socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    let mut address = libc::sockaddr_ll::zeroed();
    address.sll_family = u16::try_from(libc::AF_PACKET).unwrap_or(0);
    address.sll_protocol = NO_FRAMES;
    address.sll_ifindex = interface.index();
    socket::bind(watch.as_fd(), &address)?;
    af_packet::promiscuous(watch.as_fd(), interface.index())?;
    Ok(watch)
}

fn no_socket(options: &Options, name: &str, source: io::Error) -> PortError {
    let advice = match errno(&source) {
        libc::EPERM | libc::EACCES => return refused(options, "open an AF_XDP socket", source, CAPABILITIES),
        libc::ENOBUFS | libc::ENOMEM => {
            "; its frames are locked in memory: give weir CAP_IPC_LOCK, or raise the limit (ulimit -l unlimited)"
                .to_owned()
        }
        libc::EBUSY => format!("; another program uses AF_XDP on {name}"),
        libc::EAFNOSUPPORT => format!("; this kernel has no AF_XDP, try --port N=af_packet:{name}"),
        _ => format!("; try --port N=af_packet:{name}"),
    };
    let tried = "open an AF_XDP socket".to_owned();
    PortError::System { spec: options.spec().to_owned(), tried, source, advice }
}
