//! `tap:NAME[,offload=on|off]`: a network interface that the port creates, for traffic with the machine's own network
//! stack.
//!
//! The interface is created and set up when the port opens, and deleted when the port closes. An existing persistent
//! TAP interface (`ip tuntap add NAME mode tap`) is used and stays. With `offload=on` (the default) the machine
//! leaves checksums and segmentation undone, and the offload travels with the frame, as in [`crate::af_packet`].
use crate::interface::{AdminDownGuard, KernelInterface, LINK_HEADER_MAX, refused};
use crate::netlink::LinkQuery;
use crate::spec::PortOptions;
use crate::sys::ioctl::{self, InterfaceRequest};
use crate::sys::messages::{ReceiveBufferPair, read_frame, write_frame};
use crate::sys::{errno, while_busy};
use crate::{FrameCounters, LinkState, Port, PortError, PortInfo, PortResult, unfinished, virtio};
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;
use weir_packet::frame::{Frame, FramePool};
use weir_packet::offload;
use weir_units::Instant;

/// Offloads that the machine may leave undone. UDP segmentation is separate because older kernels do not know it.
const OFFLOADS: u32 = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6 | libc::TUN_F_TSO_ECN;
const UDP_OFFLOADS: u32 = libc::TUN_F_USO4 | libc::TUN_F_USO6;

/// A TAP interface.
pub struct TapPort {
    info: PortInfo,
    frame_max: usize,
    device: File,
    interface: Arc<KernelInterface>,
    hand_on: bool,
    slot: ReceiveBufferPair,
    header: virtio::VirtioNetHeader,
    finished: Vec<Frame>,
    counters: FrameCounters,
    query: LinkQuery,
    /// Frames the kernel had dropped before the port was opened.
    missed_before: u64,
    /// True if the interface existed and was down before; closing the port sets it down again.
    set_down: bool,
    held_down: Option<AdminDownGuard>,
}

impl TapPort {
    /// Creates the interface `name` in the calling thread's network namespace, or attaches to an existing persistent
    /// one.
    ///
    /// # Errors
    /// The name belongs to another kind of interface or is in use, or `CAP_NET_ADMIN` is missing.
    pub fn open(name: &str, options: &PortOptions) -> Result<Self, PortError> {
        options.expect_only(&["offload"])?;
        let hand_on = options.flag("offload", true)?;
        let existed = KernelInterface::find(name, options).ok();
        let device = attach(name, options)?;
        let failed = |tried: &'static str| move |source| refused(options, tried, source, "CAP_NET_ADMIN");
        set_offloads(device.as_fd(), hand_on).map_err(failed("set the TAP interface's offloads"))?;
        let interface = Arc::new(KernelInterface::find(name, options)?);
        let set_down = existed.is_some() && !interface.is_up();
        interface.set_up().map_err(failed("set the TAP interface up"))?;
        let info = interface.describe(options)?;
        let query = LinkQuery::new(interface.index()).map_err(failed("open a netlink socket"))?;
        Ok(TapPort {
            frame_max: info.mtu as usize + LINK_HEADER_MAX,
            info,
            device,
            interface,
            hand_on,
            slot: ReceiveBufferPair::default(),
            header: virtio::VirtioNetHeader::default(),
            finished: Vec::new(),
            counters: FrameCounters::default(),
            missed_before: query.statistics().map_or(0, |stats| stats.tx_dropped),
            query,
            set_down,
            held_down: None,
        })
    }

    /// Reads one frame; `None` if the frame is damaged, which is counted. An error of kind `EAGAIN` means that no
    /// frame waits.
    fn read(&mut self, pool: &mut FramePool) -> io::Result<Option<Frame>> {
        let length = read_frame(self.device.as_fd(), &mut self.header, self.slot.buffers(pool))?;
        let frame = length.checked_sub(virtio::VirtioNetHeader::LENGTH).zip(self.header.offload());
        let Some((length, offload)) = frame else {
            self.counters.rx_errors += 1;
            return Ok(None);
        };
        let mut frame = self.slot.take(length);
        frame.offload = offload;
        Ok(Some(frame))
    }

    /// Appends a frame to `batch`, finished in software if required, and counts it.
    fn accept(&mut self, frame: Frame, pool: &mut FramePool, batch: &mut Vec<Frame>) {
        let before = batch.len();
        if self.hand_on || frame.offload.is_none() {
            batch.push(frame);
        } else if !offload::finish(frame, pool, batch) {
            self.counters.rx_errors += 1;
            return;
        }
        self.counters.count_received(&batch[before..]);
    }

    /// Sends one frame and counts it. An error means that the device is gone; a refused frame is only counted.
    fn send(&mut self, frame: &Frame) -> io::Result<()> {
        if frame.len() > self.frame_max && frame.offload.segmentation.is_none() {
            self.counters.tx_too_long += 1;
            return Ok(());
        }
        match write_frame(self.device.as_fd(), frame) {
            Ok(()) => {
                self.counters.tx_packets += 1;
                self.counters.tx_bytes += frame.len() as u64;
                Ok(())
            }
            Err(error) => match errno(&error) {
                libc::EAGAIN | libc::ENOBUFS | libc::ENOMEM | libc::EINTR => {
                    self.counters.tx_full += 1;
                    Ok(())
                }
                libc::EBADFD => {
                    self.counters.tx_errors += 1;
                    Err(error)
                }
                // EIO: the interface is down. EINVAL: the frame is refused.
                _ => {
                    self.counters.tx_errors += 1;
                    Ok(())
                }
            },
        }
    }

    fn gone(&self) -> PortError {
        PortError::Gone { spec: self.info.spec.clone() }
    }
}

impl Port for TapPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn receive(&mut self, _now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        for _ in 0..max {
            match self.read(pool) {
                Ok(Some(frame)) => self.accept(frame, pool, batch),
                Ok(None) => {}
                Err(error) if errno(&error) == libc::EBADFD => return Err(self.gone()),
                Err(_) => break,
            }
        }
        Ok(())
    }

    fn transmit(&mut self, _now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        let finish = if self.hand_on { unfinished::finish_hidden } else { unfinished::finish };
        self.counters.tx_errors += finish(frames, &mut self.finished, pool);
        let mut result = Ok(());
        for frame in frames.drain(..) {
            result = result.and(self.send(&frame));
            pool.give(frame);
        }
        result.map_err(|_| self.gone())
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.device.as_fd())
    }

    fn link(&mut self) -> LinkState {
        self.interface.link()
    }

    fn counters(&self) -> FrameCounters {
        let dropped = self.query.statistics().map_or(0, |stats| stats.tx_dropped);
        FrameCounters { rx_missed: dropped.saturating_sub(self.missed_before), ..self.counters }
    }

    fn set_admin(&mut self, up: bool) -> io::Result<()> {
        AdminDownGuard::set(&mut self.held_down, &self.interface, up)
    }
}

impl Drop for TapPort {
    /// Resets the offloads of an interface that stays, and restores whether it was up.
    fn drop(&mut self) {
        let _ = ioctl::with_number(self.device.as_fd(), libc::TUNSETOFFLOAD, 0);
        self.held_down = None;
        if self.set_down {
            let _ = self.interface.set_down();
        }
    }
}

/// Creates the interface or attaches to it.
fn attach(name: &str, options: &PortOptions) -> Result<File, PortError> {
    let Some(mut request) = InterfaceRequest::of(name).filter(|_| !name.contains(['/', '%'])) else {
        return Err(options.error("expected tap:NAME with a name of 1 to 15 characters"));
    };
    let device = open_device().map_err(|source| no_device(options, source))?;
    request.set_flags(libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR);
    match while_busy(|| { request }.send(device.as_fd(), crate::sys::fitted(libc::TUNSETIFF))) {
        Ok(()) => Ok(device),
        Err(source) => Err(not_attached(options, name, source)),
    }
}

fn open_device() -> io::Result<File> {
    OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")
}

fn no_device(options: &PortOptions, source: io::Error) -> PortError {
    let advice = match errno(&source) {
        libc::ENOENT | libc::ENODEV => "; the kernel's TUN/TAP driver is missing: sudo modprobe tun",
        libc::EACCES => {
            "; run as root (sudo), or let everybody open the device as most systems do: sudo chmod 666 /dev/net/tun"
        }
        _ => "",
    };
    let tried = "open /dev/net/tun".to_owned();
    PortError::System { spec: options.spec().to_owned(), tried, source, advice: advice.to_owned() }
}

fn not_attached(options: &PortOptions, name: &str, source: io::Error) -> PortError {
    let advice = match errno(&source) {
        libc::EBUSY => format!("; another program is attached to {name}"),
        libc::EINVAL => format!(
            "; {name} is no single-queue TAP interface: choose a name that is not taken, or use af_packet:{name}"
        ),
        _ => return refused(options, "make the TAP interface", source, "CAP_NET_ADMIN"),
    };
    PortError::System { spec: options.spec().to_owned(), tried: "make the TAP interface".into(), source, advice }
}

fn set_offloads(device: BorrowedFd<'_>, on: bool) -> io::Result<()> {
    let set = |offloads| ioctl::with_number(device, libc::TUNSETOFFLOAD, offloads);
    // The header's length stays set on a persistent interface, so an earlier program may have changed it.
    let length = i32::try_from(virtio::VirtioNetHeader::LENGTH).unwrap_or(i32::MAX);
    ioctl::with_number_at(device, libc::TUNSETVNETHDRSZ, length)?;
    if !on {
        return set(0);
    }
    set(OFFLOADS | UDP_OFFLOADS).or_else(|_| set(OFFLOADS))
}
