//! `af_packet:NAME[,offload=on|off][,outgoing=on|off][,qdisc=on|off]`: a network interface through a packet socket.
//!
//! The port for bulk traffic between hosts on the same machine. A sending host may leave a frame unfinished: its
//! checksum or its segmentation is still to be done, usually by a network card. With `offload=on` (the default), such
//! a frame passes weir as it is, together with the description of the work left, so TCP moves super-frames of 64 KiB.
//! The port receives every frame whatever its address, and re-inserts VLAN tags that the kernel removed.
//!
//! With `offload=off`, each received frame is finished in software, so that every frame that weir handles, counts and
//! captures is one that a wire could carry.
//!
//! With [`Port::stamp_arrivals`], the kernel reports the arrival time of each frame: the time at which the frame's
//! sender or the network card handed it over, however long a sleeping engine takes to read it. The kernel begins some
//! milliseconds after the request; earlier frames carry the time at which they were read.
//!
//! With [`Port::stamp_departures`], the kernel reports in the same way when frames leave, if the driver supports it:
//! drivers of most cards, and veth pairs, do so right before they pass a frame on. Frames sent less than 50
//! microseconds after others get no departure time, because requesting it would raise their cost by a third.
//!
//! With `outgoing=on`, the port also receives frames that the host itself sends on the interface: for observing,
//! never for forwarding.
//!
//! With `qdisc=on`, frames pass through the kernel's queueing at the interface (`tc`), for rates that other programs
//! configured there. Otherwise frames bypass the queueing and go directly to the driver.
//!
//! An unfinished frame stays unfinished on its way through veth pairs. A capture on the receiving host shows its
//! checksum as wrong, as it does for any two hosts that Linux joins.
use crate::claim::InterfaceClaim;
use crate::ethtool::{self, DisabledFeatures};
use crate::interface::{AdminDownGuard, KernelInterface, refused};
use crate::spec::PortOptions;
use crate::sys::messages::{PacketSocketFrame, ReceiveSlots, SendSlots, left_ns};
use crate::sys::{PlainData as _, errno, socket};
use crate::{FrameCounters, LinkState, Port, PortError, PortInfo, PortResult, ReceiveReadiness, unfinished};
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;
use weir_packet::{Frame, FramePool, offload};
use weir_units::{Clock as _, Epoch, Instant, SystemClock};

/// Receive buffer of the socket in bytes: 10,000 small frames or 100 super-frames, before the kernel drops frames.
const RECEIVE_BUFFER: i32 = 8 << 20;
/// Minimum gap after a transmission for requesting a departure timestamp of the next one.
const OFTEN: Duration = Duration::from_micros(50);
/// Maximum number of consecutive retries on a full device queue before the rest of the batch is dropped.
const RETRIES_MAX: u32 = 3;
/// Interface features that the port switches off. Large receive offload merges frames, which then cannot be forwarded
/// as they arrived.
const OFF: [&str; 1] = ["rx-lro"];

/// A port on a network interface through a packet socket.
pub struct AfPacket {
    info: PortInfo,
    interface: Arc<KernelInterface>,
    socket: OwnedFd,
    /// True if frames with pending offloads (checksum or segmentation) are passed on with them (`offload=on`); false
    /// if the port carries the offloads out in software.
    hand_on: bool,
    slots: Box<ReceiveSlots>,
    sending: Box<SendSlots>,
    finished: Vec<Frame>,
    /// True if transmitted frames bypass the kernel's queueing at the interface (`qdisc=off`).
    bypasses: bool,
    counters: FrameCounters,
    /// Number of frames that the kernel dropped before the port read them. Reading the kernel's counter resets it, so
    /// the values are summed here.
    missed: Cell<u64>,
    /// True if the interface did not exist when the link state was last read. The socket only reports that the
    /// interface goes down, possibly long before it vanishes.
    vanished: bool,
    held_down: Option<AdminDownGuard>,
    /// Clock of arrival times; `None` if arrivals are not stamped.
    stamps: Option<SystemClock>,
    /// Clock of departure times; `None` if departures are not stamped.
    departures: Option<SystemClock>,
    /// End of the last transmission, if departures are stamped.
    sent: Instant,
    /// Departure time of the last frame of the last transmission, if the kernel reported it.
    departed: Option<Instant>,
    _settings: Option<DisabledFeatures>,
    _claim: Option<InterfaceClaim>,
}

impl AfPacket {
    /// Opens a port on the interface `name` of the calling thread's network namespace.
    ///
    /// # Errors
    /// No such interface, or a capability is missing (`CAP_NET_RAW`).
    pub fn open(name: &str, options: &PortOptions) -> Result<Self, PortError> {
        options.expect_only(&["offload", "outgoing", "qdisc"])?;
        let hand_on = options.flag("offload", true)?;
        let takes_outgoing = options.flag("outgoing", false)?;
        let bypasses = !options.flag("qdisc", false)?;
        let interface = Arc::new(KernelInterface::find(name, options)?);
        let info = interface.describe(options)?;
        let claim = if takes_outgoing { None } else { InterfaceClaim::make(&interface, options)? };
        let failed = |tried: &'static str| move |source| refused(options, tried, source, "CAP_NET_RAW");
        // Protocol 0: the socket receives nothing before it is bound to the one interface.
        let socket = socket::open(libc::AF_PACKET, libc::SOCK_RAW, 0).map_err(failed("open a packet socket"))?;
        configure(socket.as_fd(), takes_outgoing, bypasses).map_err(failed("set up the packet socket"))?;
        attach(socket.as_fd(), interface.index()).map_err(failed("bind the packet socket to the interface"))?;
        Ok(AfPacket {
            info,
            _settings: DisabledFeatures::new(&interface, &OFF).map_err(|error| settings_kept(name, &error)).ok(),
            _claim: claim,
            interface,
            socket,
            hand_on,
            slots: ReceiveSlots::new(),
            sending: SendSlots::new(),
            finished: Vec::new(),
            bypasses,
            counters: FrameCounters::default(),
            missed: Cell::new(0),
            vanished: false,
            held_down: None,
            stamps: None,
            departures: None,
            sent: Instant::ZERO,
            departed: None,
        })
    }

    /// Sets the arrival time of the frames just appended to the batch. `now` and `wall_ns` are the same moment in
    /// both clocks; `came_ns` is the kernel's timestamp in wall-clock time, if there is one.
    #[cold]
    fn stamp((now, wall_ns): (Instant, u64), came_ns: Option<u64>, frames: &mut [Frame]) {
        // The kernel's timestamps are wall-clock times, and that clock may be set. Only the age of the frame is used.
        let age_ns = came_ns.map_or(0, |came| wall_ns.saturating_sub(came));
        frames.iter_mut().for_each(|frame| frame.set_arrived(now.as_nanos().saturating_sub(age_ns)));
    }

    /// Returns the latest departure time that the kernel reported since the last call, if any.
    #[cold]
    fn left(&self) -> Option<Instant> {
        let left_ns = left_ns(self.socket.as_fd())?;
        let (now, wall_ns) = self.departures?.beside(Epoch::Wall);
        Some(Instant::from_nanos(now.as_nanos().saturating_sub(wall_ns.saturating_sub(left_ns))))
    }

    /// Appends a received frame to `batch`, or counts it as an error.
    fn accept(&mut self, received: PacketSocketFrame, pool: &mut FramePool, batch: &mut Vec<Frame>) {
        let Some(mut frame) = received.frame else {
            self.counters.rx_errors += 1;
            return;
        };
        if let Some((protocol, control)) = received.vlan
            && !put_tag(&mut frame, protocol, control)
        {
            self.counters.rx_errors += 1;
            return pool.give(frame);
        }
        let before = batch.len();
        if self.hand_on || frame.offload.is_none() {
            batch.push(frame);
        } else if !offload::finish(frame, pool, batch) {
            self.counters.rx_errors += 1;
            return;
        }
        self.counters.count_received(&batch[before..]);
    }

    /// Sends all frames as far as possible and counts them. Records the departure time of the last one if it was
    /// requested.
    fn send_stamped(&mut self, clock: SystemClock, frames: &[Frame]) -> PortResult {
        let began = clock.now();
        let asks = began.since(self.sent) >= OFTEN;
        let result = self.send(frames, asks);
        // A departure time reported late belongs to an earlier transmission and is discarded.
        self.departed = if asks { self.left().filter(|left| *left >= began) } else { None };
        self.sent = clock.now();
        result
    }

    /// Sends all frames as far as possible and counts them. `asks` requests a departure timestamp.
    fn send(&mut self, frames: &[Frame], asks: bool) -> PortResult {
        let mut sent = 0;
        let mut retries = 0;
        while sent < frames.len() {
            match self.sending.send(self.socket.as_fd(), &frames[sent..], asks) {
                Ok(count) => {
                    self.counters.note_sent(&frames[sent..sent + count]);
                    sent += count;
                    retries = 0;
                }
                Err(error) => match errno(&error) {
                    libc::EINTR => {}
                    libc::ENOBUFS | libc::EAGAIN if retries < RETRIES_MAX => retries += 1,
                    libc::ENOBUFS if self.bypasses && frames[sent].offload.segmentation.is_some() => {
                        self.leave_cutting_to_the_kernel();
                        retries = 0;
                    }
                    libc::ENOBUFS | libc::EAGAIN => {
                        self.counters.tx_full += (frames.len() - sent) as u64;
                        return Ok(());
                    }
                    libc::EMSGSIZE => {
                        self.counters.tx_too_long += 1;
                        sent += 1;
                    }
                    libc::ENETDOWN | libc::ENXIO | libc::ENODEV => {
                        self.counters.tx_errors += (frames.len() - sent) as u64;
                        return self.check_device();
                    }
                    // The frame itself is refused, for instance because its offload does not fit its headers.
                    _ => {
                        self.counters.tx_errors += 1;
                        sent += 1;
                    }
                },
            }
        }
        Ok(())
    }

    /// Sends through the kernel's queueing from now on. The bypass drops super-frames that the device cannot cut; the
    /// kernel's queueing cuts them. A full device returns the same error; switching loses nothing then.
    #[cold]
    fn leave_cutting_to_the_kernel(&mut self) {
        self.bypasses = false;
        match socket::set(self.socket.as_fd(), libc::SOL_PACKET, libc::PACKET_QDISC_BYPASS, &0i32) {
            Ok(()) => tracing::info!(port = self.info.spec, "the device does not cut super-frames: the kernel does"),
            Err(error) => {
                tracing::warn!(port = self.info.spec, %error, "super-frames that the device cannot cut are lost")
            }
        }
    }

    /// Returns [`PortError::Gone`] if the interface vanished. An interface that is only down may come up again.
    fn check_device(&self) -> PortResult {
        if self.interface.exists() { Ok(()) } else { Err(PortError::Gone { spec: self.info.spec.clone() }) }
    }
}

impl Port for AfPacket {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn receive(&mut self, _now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        if self.vanished {
            return self.check_device();
        }
        match self.slots.receive(self.socket.as_fd(), pool, max) {
            Ok(count) => {
                let read = self.stamps.filter(|_| count > 0).map(|clock| clock.beside(Epoch::Wall));
                for slot in 0..count {
                    let received = self.slots.take(slot);
                    let (came_ns, before) = (received.came_ns, batch.len());
                    self.accept(received, pool, batch);
                    if let Some(read) = read {
                        AfPacket::stamp(read, came_ns, &mut batch[before..]);
                    }
                }
                Ok(())
            }
            Err(error) => match errno(&error) {
                libc::EAGAIN | libc::EINTR => Ok(()),
                // The frame is of a kind that the virtio header cannot describe, such as a tunnel's super-frame.
                libc::EINVAL => {
                    self.counters.rx_errors += 1;
                    Ok(())
                }
                _ => self.check_device(),
            },
        }
    }

    fn stamp_arrivals(&mut self, clock: SystemClock) -> bool {
        let asked = socket::set(self.socket.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32);
        if let Err(error) = &asked {
            tracing::warn!(port = self.info.spec, %error, "the kernel does not say when frames come: they count from when they are taken");
        }
        self.slots.are_stamped = asked.is_ok();
        self.stamps = self.slots.are_stamped.then_some(clock);
        self.slots.are_stamped
    }

    fn transmit(&mut self, _now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        let finish = if self.hand_on { unfinished::finish_hidden } else { unfinished::finish };
        self.counters.tx_errors += finish(frames, &mut self.finished, pool);
        let result = match self.departures {
            Some(clock) => self.send_stamped(clock, frames),
            None => self.send(frames, false),
        };
        pool.give_burst(frames);
        result
    }

    fn stamp_departures(&mut self, clock: SystemClock) -> bool {
        // The request succeeds with every driver, but not every driver answers it.
        if !ethtool::says_departures(&self.interface) {
            return false;
        }
        let asked = self.sending.ask_when_left(self.socket.as_fd());
        if let Err(error) = &asked {
            tracing::debug!(port = self.info.spec, %error, "the kernel does not say when frames leave");
        }
        self.departures = asked.is_ok().then_some(clock);
        self.departures.is_some()
    }

    fn departed(&mut self) -> Option<Instant> {
        self.departed
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.socket.as_fd())
    }

    fn arm(&mut self) -> ReceiveReadiness {
        if self.departures.is_some() {
            // Discards late departure reports: a pending report would make the next wait return immediately.
            self.left();
        }
        if self.vanished { ReceiveReadiness::Now } else { ReceiveReadiness::OnDescriptor }
    }

    fn link(&mut self) -> LinkState {
        self.vanished = !self.interface.exists();
        self.interface.link()
    }

    fn counters(&self) -> FrameCounters {
        let kernel: Option<libc::tpacket_stats> =
            socket::get(self.socket.as_fd(), libc::SOL_PACKET, libc::PACKET_STATISTICS).ok();
        self.missed.set(self.missed.get() + kernel.map_or(0, |stats| u64::from(stats.tp_drops)));
        FrameCounters { rx_missed: self.missed.get(), ..self.counters }
    }

    fn set_admin(&mut self, up: bool) -> io::Result<()> {
        AdminDownGuard::set(&mut self.held_down, &self.interface, up)
    }
}

/// Sets the socket options that must be set before the first frame is received.
fn configure(socket: BorrowedFd<'_>, takes_outgoing: bool, bypasses: bool) -> io::Result<()> {
    let on = |option| socket::set(socket, libc::SOL_PACKET, option, &1i32);
    on(libc::PACKET_VNET_HDR)?;
    on(libc::PACKET_AUXDATA)?;
    if !takes_outgoing {
        on(libc::PACKET_IGNORE_OUTGOING)?;
    }
    if bypasses {
        // Frames go directly to the driver because weir does its own queueing.
        on(libc::PACKET_QDISC_BYPASS)?;
    }
    // Without CAP_NET_ADMIN the kernel caps the buffer at net.core.rmem_max.
    socket::set(socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER)
        .or_else(|_| socket::set(socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER))
}

/// Binds the socket to the interface and enables promiscuous reception. The kernel undoes both when the socket
/// closes.
fn attach(socket: BorrowedFd<'_>, index: i32) -> io::Result<()> {
    let mut address = libc::sockaddr_ll::zeroed();
    address.sll_family = u16::try_from(libc::AF_PACKET).unwrap_or(0);
    address.sll_protocol = u16::try_from(libc::ETH_P_ALL).unwrap_or(0).to_be();
    address.sll_ifindex = index;
    socket::bind(socket, &address)?;
    promiscuous(socket, index)
}

/// Makes an interface receive every frame, whatever its address (promiscuous mode), as long as `socket` is open.
pub(crate) fn promiscuous(socket: BorrowedFd<'_>, index: i32) -> io::Result<()> {
    let mut membership = libc::packet_mreq::zeroed();
    membership.mr_ifindex = index;
    membership.mr_type = u16::try_from(libc::PACKET_MR_PROMISC).unwrap_or(0);
    socket::set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

/// Inserts a VLAN tag after the addresses. Returns false if the frame has no room or is too short.
fn put_tag(frame: &mut Frame, protocol: u16, control: u16) -> bool {
    if frame.len() < 12 || frame.insert(12, 4).is_err() {
        return false;
    }
    let tag = &mut frame.bytes_mut()[12..16];
    tag[..2].copy_from_slice(&protocol.to_be_bytes());
    tag[2..].copy_from_slice(&control.to_be_bytes());
    true
}

/// Logs that receive offloads of an interface could not be switched off. The port works nevertheless, but with some
/// drivers it sees merged frames or frames without their VLAN tags.
pub(crate) fn settings_kept(name: &str, error: &io::Error) {
    tracing::warn!(interface = name, %error, "cannot switch off receive offloads; merged or untagged frames may be seen");
}
