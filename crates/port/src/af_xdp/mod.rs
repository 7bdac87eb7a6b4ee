//! `af_xdp:NAME[,mode=native|generic|auto]`: a network interface through AF_XDP sockets.
//!
//! The port for high packet rates: about twice that of [`crate::af_packet`]. Frames are received in the driver
//! (native mode) or, if the driver does not support that, right after it (generic mode). Every receive queue of the
//! interface has a socket, so no frame takes another path; frames are sent through the first queue's socket. The port
//! receives all frames of the interface: the host's own network stack sees none while the port is open.
//!
//! AF_XDP has no offloads. Checksums and segmentation that hosts behind a veth leave undone are recognised and travel
//! on with the frame. Frames to send are finished in software. Therefore TCP works without changing the hosts'
//! settings, at a lower bulk rate than with `af_packet`. In native mode the kernel itself stops the veth peer from
//! making super-frames while the port is open.
//!
//! A VLAN tag that a host's VLAN interface leaves to the veth is not in the bytes that XDP sees. Therefore the port
//! finds the host's end and switches off its `tx-vlan-offload` while the port is open. If that end is out of reach,
//! the port logs a warning: for example if the host is in another namespace and a running switch, which has given up
//! the right to enter it, opens the port.
mod checksum;
mod program;
mod queue;

use crate::claim::InterfaceClaim;
use crate::ethtool::{self, DisabledFeatures};
use crate::interface::{AdminDownGuard, KernelInterface, LINK_HEADER_MAX, refused};
use crate::peer::{self, VethPeer};
use crate::spec::PortOptions;
use crate::sys::{PlainData as _, errno, socket};
use crate::{FrameCounters, LinkState, Port, PortError, PortInfo, PortResult, ReceiveReadiness, af_packet, unfinished};
use program::{XdpAttachMode, XdpProgram};
use queue::{XdpQueue, XdpReceiveResult};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use weir_packet::ParsedHeaders;
use weir_packet::frame::{Frame, FramePool};
use weir_units::Instant;

/// Bytes that the kernel reserves in front of each received frame (`XDP_PACKET_HEADROOM`).
const KERNEL_HEADROOM: usize = 256;
/// Chunk sizes in bytes, for frames of an ordinary MTU and for longer frames.
const SMALL_CHUNK: u32 = 2048;
const LARGE_CHUNK: u32 = 4096;
/// Interval at which a busy-polled port checks that its device still exists.
const CHECK_INTERVAL: Duration = Duration::from_millis(10);
/// Features switched off while the port is open: XDP sees frames as the driver passes them, so tags must not be
/// stripped and frames must not be merged. After the process was killed, `weir cleanup` or the next port on the
/// interface restores them.
const OFF: [&str; 4] = ["rx-vlan-hw-parse", "rx-vlan-stag-hw-parse", "rx-lro", "rx-gro-hw"];
/// Features switched off at a veth peer, so that VLAN interfaces on it write their tags into the frames.
const PEER_OFF: [&str; 2] = ["tx-vlan-hw-insert", "tx-vlan-stag-hw-insert"];
/// EtherType that no frame has (RFC 1701's reserved): the packet socket that watches the device receives no frames.
const NO_FRAMES: u16 = 0xffff;

/// Capabilities needed for programs, sockets, settings and locked memory.
const CAPABILITIES: &str = "CAP_NET_ADMIN, CAP_NET_RAW, CAP_BPF and CAP_IPC_LOCK";

/// A port on a network interface through AF_XDP sockets.
pub struct AfXdp {
    info: PortInfo,
    frame_max: usize,
    // Drop order: first stop redirecting frames, then close the sockets, then restore the settings.
    program: XdpProgram,
    queues: Vec<XdpQueue>,
    _settings: XdpDisabledFeatures,
    _claim: Option<InterfaceClaim>,
    interface: Arc<KernelInterface>,
    /// Packet socket that reports an error when the device goes down or vanishes, and holds its promiscuous mode.
    watch: OwnedFd,
    readable: OwnedFd,
    check_at: Instant,
    /// True if the device was gone when the link was last read. `watch` only reports that it goes down, possibly long
    /// before.
    vanished: bool,
    /// True if the MTU was raised beyond what the sockets' chunks hold: the port must be opened again.
    outgrown: bool,
    first_queue: usize,
    finished: Vec<Frame>,
    /// Memory reused for parsing received frames.
    scratch: Box<ParsedHeaders>,
    counters: FrameCounters,
    held_down: Option<AdminDownGuard>,
}

impl AfXdp {
    /// Opens a port on the interface `name` of the calling thread's network namespace.
    ///
    /// # Errors
    /// No such interface, the interface does not support the requested mode, or a capability is missing
    /// (`CAP_NET_ADMIN`, `CAP_NET_RAW`, `CAP_BPF`, and `CAP_IPC_LOCK` or a limit of locked memory of several MiB).
    pub fn open(name: &str, options: &PortOptions) -> Result<Self, PortError> {
        options.expect_only(&["mode"])?;
        let mode = mode(options)?;
        let interface = Arc::new(KernelInterface::find(name, options)?);
        let info = interface.describe(options)?;
        let claim = InterfaceClaim::make(&interface, options)?;
        let queue_count = ethtool::receive_queues(&interface);
        let watch =
            watch(&interface).map_err(|source| refused(options, "watch the interface", source, CAPABILITIES))?;
        let settings = XdpDisabledFeatures::make(&interface);
        let program = XdpProgram::attach(&interface, queue_count, mode, options)?;
        let chunk = chunk(&info, program.mode);
        let queues = (0..queue_count)
            .map(|number| open_queue(&interface, &program, number, chunk))
            .collect::<io::Result<Vec<_>>>()
            .map_err(|source| no_socket(options, name, source))?;
        let sockets = queues.iter().map(XdpQueue::socket);
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
            counters: FrameCounters::default(),
            held_down: None,
        })
    }

    /// Counts a received frame, sets its offload and appends it to `batch`.
    fn accept(&mut self, received: XdpReceiveResult, pool: &mut FramePool, batch: &mut Vec<Frame>) {
        let XdpReceiveResult::Frame(mut frame) = received else {
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

    /// Puts frames into the transmit ring, and sends whenever the ring is full.
    fn send(&mut self, frames: &[Frame]) -> io::Result<()> {
        // Frames left in the ring by an interface that is down are sent when it is up again; no more frames are added
        // to them.
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

    /// Sends the frames in the transmit ring. Returns true if the interface is up.
    fn kick(&mut self) -> io::Result<bool> {
        let sent = self.queues[0].send()?;
        self.counters.tx_packets -= sent.dropped;
        self.counters.tx_bytes -= sent.dropped_bytes;
        self.counters.tx_full += sent.dropped;
        Ok(!sent.down)
    }

    /// Adopts a changed MTU. Sockets keep the chunks that they were opened with. A port whose chunks are too short
    /// ends as if its device had vanished; the switch, which waits for the device, then opens the port again.
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

    /// Returns [`PortError::Gone`] if the interface vanished or outgrew the port. An interface that is only down may
    /// come up again.
    fn check_device(&self) -> PortResult {
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

    fn receive(&mut self, now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        if self.vanished || self.outgrown {
            return self.check_device();
        }
        let mut left = max;
        for at in 0..self.queues.len() {
            // The first queue rotates, so that a busy queue does not starve the others.
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

    fn transmit(&mut self, _now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        self.counters.tx_errors += unfinished::finish(frames, &mut self.finished, pool);
        let result = self.send(frames);
        pool.give_burst(frames);
        result.or_else(|_| self.check_device())
    }

    fn arm(&mut self) -> ReceiveReadiness {
        if self.queues[0].has_unsent() {
            // The next receive or transmit reports a persistent error.
            let _ = self.kick();
        }
        self.check_at = Instant::ZERO;
        if self.vanished || self.outgrown || self.queues.iter().any(XdpQueue::has_received) {
            ReceiveReadiness::Now
        } else {
            ReceiveReadiness::OnDescriptor
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

    fn counters(&self) -> FrameCounters {
        FrameCounters { rx_missed: self.queues.iter().map(XdpQueue::missed).sum(), ..self.counters }
    }

    fn set_admin(&mut self, up: bool) -> io::Result<()> {
        AdminDownGuard::set(&mut self.held_down, &self.interface, up)
    }
}

/// Parses the mode; `None` selects the best one available.
fn mode(options: &PortOptions) -> Result<Option<XdpAttachMode>, PortError> {
    match options.text("mode") {
        None | Some("auto") => Ok(None),
        Some("native") => Ok(Some(XdpAttachMode::Native)),
        Some("generic") => Ok(Some(XdpAttachMode::Generic)),
        Some(other) => Err(options.error(format!("option mode: found `{other}`, expected native, generic or auto"))),
    }
}

/// Returns the chunk size in bytes that holds a frame of the interface; the largest size in generic mode, which sees
/// super-frames.
fn chunk(info: &PortInfo, mode: XdpAttachMode) -> u32 {
    let fits = info.mtu as usize + LINK_HEADER_MAX + KERNEL_HEADROOM <= SMALL_CHUNK as usize;
    if fits && mode == XdpAttachMode::Native { SMALL_CHUNK } else { LARGE_CHUNK }
}

/// Features switched off on the interface, and on the host's end of a veth, while the port is open.
struct XdpDisabledFeatures {
    _own: Option<DisabledFeatures>,
    _peer: Option<DisabledFeatures>,
}

impl XdpDisabledFeatures {
    fn make(interface: &Arc<KernelInterface>) -> Self {
        let name = interface.name();
        let switch_off = |interface: &Arc<KernelInterface>, features: &[&str]| {
            DisabledFeatures::new(interface, features)
                .map_err(|error| af_packet::settings_kept(interface.name(), &error))
                .ok()
        };
        let peer = match peer::find(interface) {
            VethPeer::None => None,
            VethPeer::Found(peer) => switch_off(&Arc::new(peer), &PEER_OFF),
            VethPeer::OutOfReach => {
                tracing::warn!(
                    interface = name,
                    "the other end of this veth is out of reach (a switch enters no other namespace once it runs): if \
                     VLAN interfaces are on it, their tags are lost unless it has `ethtool -K NAME txvlan off`"
                );
                None
            }
        };
        XdpDisabledFeatures { _own: switch_off(interface, &OFF), _peer: peer }
    }
}

/// Opens a queue's socket and directs the queue's frames to it.
fn open_queue(interface: &KernelInterface, program: &XdpProgram, number: u32, chunk: u32) -> io::Result<XdpQueue> {
    let queue = XdpQueue::open(interface.index(), number, chunk)?;
    program.set_socket(number, queue.socket())?;
    Ok(queue)
}

/// Opens a packet socket that receives no frames. It holds promiscuous mode, and an error once the device is down or
/// gone.
fn watch(interface: &KernelInterface) -> io::Result<OwnedFd> {
    let watch = socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0)?;
    let mut address = libc::sockaddr_ll::zeroed();
    address.sll_family = u16::try_from(libc::AF_PACKET).unwrap_or(0);
    address.sll_protocol = NO_FRAMES;
    address.sll_ifindex = interface.index();
    socket::bind(watch.as_fd(), &address)?;
    af_packet::promiscuous(watch.as_fd(), interface.index())?;
    Ok(watch)
}

fn no_socket(options: &PortOptions, name: &str, source: io::Error) -> PortError {
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
