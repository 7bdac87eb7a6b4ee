//! Interface that every kind of port implements: receiving, transmitting, waiting, link state, counters, queues.
use crate::queues::TransmitQueues;
use crate::spec::PortKind;
use std::os::fd::BorrowedFd;
use weir_packet::{Frame, FramePool, MacAddr};
use weir_units::{Bps, ByteSize, Instant, SystemClock};

/// Source and sink of frames, driven by one thread; no method blocks.
pub trait Port: Send {
    /// Returns name, address and MTU of the port, which are fixed while the port is open.
    fn info(&self) -> &PortInfo;

    /// Returns the port around which this one is a wrapper, if it is one. What a wrapper does not do itself, it leaves
    /// to that port. One that holds frames back answers [`Port::stamp_departures`] and [`Port::departed`] itself,
    /// because it does not know when they leave.
    fn inner(&self) -> Option<&dyn Port> {
        None
    }

    /// Returns the port of [`Port::inner`] with mutable access.
    fn inner_mut(&mut self) -> Option<&mut dyn Port> {
        None
    }

    /// Appends at most `max` received frames to `batch`, in buffers from `pool`.
    ///
    /// # Errors
    /// [`PortError::Gone`] if the device vanished: the port delivers no more frames and must be closed. Transient
    /// problems (no buffer, a frame too long, a full ring) are counted, not returned.
    fn receive(&mut self, now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult;

    /// Sends all `frames` in order; drops and counts frames that do not fit. Buffers of frames go to `pool` or to the
    /// receiver, and `frames` is empty afterwards. Checksums and segmentation that the frames' sender left undone are
    /// passed to the device or done in software.
    ///
    /// # Errors
    /// [`PortError::Gone`] when the device vanished; the frames count as dropped.
    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult;

    /// Requests a wake-up; called right before the engine sleeps on [`Port::fd`]. [`ReceiveReadiness::Now`] means that
    /// frames arrived in the meantime and the engine must not sleep.
    fn arm(&mut self) -> ReceiveReadiness {
        self.inner_mut().map_or(ReceiveReadiness::OnDescriptor, |inner| inner.arm())
    }

    /// Returns a descriptor that is readable when there are frames to receive; `None` for a port that never wakes its
    /// engine (null).
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.inner()?.fd()
    }

    /// Returns the latest time to call [`Port::receive`] and [`Port::transmit`] (with pending frames or with none),
    /// for ports that delay frames: shapers, links, replays.
    fn next_wake(&self) -> Option<Instant> {
        self.inner()?.next_wake()
    }

    /// Makes frames received from now on carry their arrival time (`arrived`) in nanoseconds of `clock` instead of
    /// the time at which the engine read them. Returns false if the port cannot tell. Only ports with stamping
    /// enabled pay its cost.
    fn stamp_arrivals(&mut self, clock: SystemClock) -> bool {
        self.inner_mut().is_some_and(|inner| inner.stamp_arrivals(clock))
    }

    /// Makes the port measure with `clock` when transmitted frames leave ([`Port::departed`]). Returns false if the
    /// port cannot tell. Only ports with stamping enabled pay its cost.
    fn stamp_departures(&mut self, clock: SystemClock) -> bool {
        self.inner_mut().is_some_and(|inner| inner.stamp_departures(clock))
    }

    /// Returns when the last frame of the last [`Port::transmit`] left: after the sender's work of handing it over
    /// and before the receiver's work, such as waking up. `None` if stamping is off, or if the time of this frame is
    /// not known.
    fn departed(&mut self) -> Option<Instant> {
        self.inner_mut()?.departed()
    }

    /// Declares, after [`Port::stamp_arrivals`], that the engine keeps a schedule: its frames count as sent at the
    /// `now` given to [`Port::transmit`], however late the call is. If both ends keep a schedule, frames arrive with
    /// that time, so a late engine does not delay the next one. Implemented by memory ports.
    fn keep_schedule(&mut self) {
        if let Some(inner) = self.inner_mut() {
            inner.keep_schedule();
        }
    }

    /// Returns true if both ends keep a schedule: the arrival time of a frame is then the time at which it was due,
    /// whatever sending it costs.
    fn is_scheduled(&self) -> bool {
        self.inner().is_some_and(|inner| inner.is_scheduled())
    }

    /// Returns true if the port carries packets without an Ethernet header, as some tunnels do.
    fn takes_any_packet_type(&self) -> bool {
        self.inner().is_some_and(|inner| inner.takes_any_packet_type())
    }

    /// Returns whether the link is up, and its rate. May cost a system call: call it now and then, not per batch.
    fn link(&mut self) -> LinkState;

    /// Returns the counts of frames since the port was opened.
    fn counters(&self) -> FrameCounters;

    /// Takes the port into or out of service, as an administrator does. The link goes up or down, for the other end
    /// too if the kind of port can do that. Closing a port restores the state of its device.
    ///
    /// # Errors
    /// The system refuses. The engine passes no frames while the port is administratively down, whatever the device
    /// does.
    fn set_admin(&mut self, up: bool) -> std::io::Result<()> {
        self.inner_mut().map_or(Ok(()), |inner| inner.set_admin(up))
    }

    /// Stops limiting the transmit rate and returns the rate and buffer that were in force, so that queues in front
    /// take over.
    fn take_rate(&mut self) -> Option<(Bps, ByteSize)> {
        self.inner_mut()?.take_rate()
    }

    /// Calls `look` with the port's queues, if it has any. Queues are in front of every other wrapper. A call lends
    /// them because the port may be shared with other threads. See also `queues` of `dyn Port`.
    fn look_at_queues(&self, _look: &mut dyn FnMut(&TransmitQueues)) {}

    /// Calls `change` with mutable access to the port's queues, if it has any.
    fn change_queues(&mut self, _change: &mut dyn FnMut(&mut TransmitQueues)) {}

    /// Inserts queues in front of the inner port, where callers cannot wrap it themselves because several threads share
    /// it. Returns false if the port has no such inner port and the caller must wrap the port.
    fn begin_queues(&mut self) -> bool {
        false
    }
}

impl dyn Port + '_ {
    /// Returns the result of `look` on the port's queues; `None` if the port has no queues.
    pub fn queues<R>(&self, look: impl FnOnce(&TransmitQueues) -> R) -> Option<R> {
        let (mut look, mut seen) = (Some(look), None);
        self.look_at_queues(&mut |queues| seen = look.take().map(|look| look(queues)));
        seen
    }

    /// Returns the result of `change` on the port's queues; `None` if the port has no queues.
    pub fn queues_mut<R>(&mut self, change: impl FnOnce(&mut TransmitQueues) -> R) -> Option<R> {
        let (mut change, mut done) = (Some(change), None);
        self.change_queues(&mut |queues| done = change.take().map(|change| change(queues)));
        done
    }

    /// Returns true if the port has queues.
    pub fn has_queues(&self) -> bool {
        self.queues(|_| ()).is_some()
    }
}

/// Result of [`Port::arm`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveReadiness {
    /// Frames can be received now.
    Now,
    /// The descriptor becomes readable when frames arrive.
    OnDescriptor,
}

/// Implements the methods by which a wrapper names its inner port, the field `port`.
macro_rules! inner_port {
    () => {
        fn info(&self) -> &$crate::PortInfo {
            self.port.info()
        }

        fn inner(&self) -> Option<&dyn $crate::Port> {
            Some(&*self.port)
        }

        fn inner_mut(&mut self) -> Option<&mut dyn $crate::Port> {
            Some(&mut *self.port)
        }
    };
}

pub(crate) use inner_port;

/// Fixed properties of a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortInfo {
    /// Kind and name as the user wrote them: `af_packet:eth0`.
    pub spec: String,
    /// Short name, as controllers see it: `eth0`.
    pub name: String,
    /// Ethernet address of the port.
    pub mac: MacAddr,
    /// Longest payload of a frame, without link header.
    pub mtu: u32,
}

impl PortInfo {
    /// Returns the kind of the port; `None` if its text names none, as for ports of tests.
    pub fn kind(&self) -> Option<PortKind> {
        PortKind::of(&self.spec)
    }
}

/// State of a port's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkState {
    /// True if frames can pass.
    pub up: bool,
    /// Rate of the link, if it has one.
    pub speed: Option<Bps>,
}

/// Counters of a port. A received or sent frame is counted in packets and bytes (without frame check sequence; a
/// super-frame as one frame, unless the port cuts it into segments). A dropped frame is counted under its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct FrameCounters {
    /// Frames received from the device or peer.
    pub rx_packets: u64,
    /// Bytes of received frames.
    pub rx_bytes: u64,
    /// Frames lost before weir could read them because the kernel's ring or the peer's queue was full.
    pub rx_missed: u64,
    /// Frames received damaged or longer than a buffer.
    pub rx_errors: u64,
    /// Frames handed to the device or peer.
    pub tx_packets: u64,
    /// Bytes of sent frames.
    pub tx_bytes: u64,
    /// Frames dropped because the device's or peer's queue was full.
    pub tx_full: u64,
    /// Frames dropped because they exceed the link's maximum length.
    pub tx_too_long: u64,
    /// Frames dropped because the device refused them or is down.
    pub tx_errors: u64,
    /// Transmitted frames that the emulated link lost ([`crate::link::LinkShape::loss`]).
    pub tx_lost: u64,
    /// Frames sent to the port that the emulated link lost.
    pub rx_lost: u64,
}

impl FrameCounters {
    /// Counts frames that were received.
    pub(crate) fn count_received(&mut self, frames: &[Frame]) {
        self.rx_packets += frames.len() as u64;
        self.rx_bytes += frames.iter().map(|frame| frame.len() as u64).sum::<u64>();
    }

    /// Counts frames that were handed to the device or peer.
    pub(crate) fn note_sent(&mut self, frames: &[Frame]) {
        self.tx_packets += frames.len() as u64;
        self.tx_bytes += frames.iter().map(|frame| frame.len() as u64).sum::<u64>();
    }

    /// Returns the number of frames that should have been sent and were not. Losses on the emulated link are not
    /// included.
    pub fn tx_dropped(&self) -> u64 {
        self.tx_full + self.tx_too_long + self.tx_errors
    }
}

/// Outcome of moving frames.
pub type PortResult = Result<(), PortError>;

/// Error of opening or using a port.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The port's specification is not valid.
    #[error("port {spec}: {problem}")]
    Spec {
        /// Specification as the user wrote it.
        spec: String,
        /// Text that says what was found, what was expected, and how to fix it.
        problem: String,
    },
    /// The system refused an operation.
    #[error("port {spec}: {tried}: {source}{advice}")]
    System {
        /// Specification as the user wrote it.
        spec: String,
        /// Operation that failed.
        tried: String,
        /// Error of the system.
        source: std::io::Error,
        /// Advice for the user, with a leading separator; may be empty.
        advice: String,
    },
    /// The device vanished while in use.
    #[error("port {spec}: the device is gone")]
    Gone {
        /// Specification as the user wrote it.
        spec: String,
    },
}
