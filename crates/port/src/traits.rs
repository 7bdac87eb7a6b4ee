//! What every kind of port does.
use crate::queues::Queues;
use std::os::fd::BorrowedFd;
use weir_packet::{Frame, FramePool, MacAddr};
use weir_units::{Bps, ByteSize, Instant, SystemClock};

/// A place where frames come in and go out, driven by one thread, never blocking.
pub trait Port: Send {
    /// What the port is: fixed while it is open.
    fn info(&self) -> &PortInfo;

    /// Appends at most `max` received frames to `batch`, in buffers from `pool`.
    ///
    /// # Errors
    /// [`PortError::Gone`] when the device vanished: the port gives no more frames and is to be closed. Anything that
    /// passes (no buffer, a frame too long, a full ring) is counted, not returned.
    fn receive(
        &mut self,
        now: Instant,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        max: usize,
    ) -> Result<(), PortError>;

    /// Sends all `frames` in order, or drops and counts those that do not fit; their buffers go to `pool` or to the
    /// receiver, and `frames` is empty afterwards. Work left undone by their sender (checksum, segmentation) is handed on or
    /// done in software.
    ///
    /// # Errors
    /// [`PortError::Gone`] when the device vanished; the frames count as dropped.
    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> Result<(), PortError>;

    /// Asks for a wake-up, right before the engine sleeps on [`Port::fd`]. [`Ready::Now`]: frames came in meanwhile, do not
    /// sleep.
    fn arm(&mut self) -> Ready {
        Ready::OnDescriptor
    }

    /// Readable when there is something to receive; `None` for a port that never wakes anybody (null).
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// When to call [`Port::receive`] (and [`Port::transmit`] with what there is, possibly nothing) at the latest, for ports
    /// that hold frames back: shapers, delays, replays.
    fn next_wake(&self) -> Option<Instant> {
        None
    }

    /// Has the frames that are received from now on say when they came (`arrived`), in nanoseconds of `clock`, rather than when they were taken; whether
    /// the port can know. What it costs is for ports that were asked alone.
    fn stamp_arrivals(&mut self, _clock: SystemClock) -> bool {
        false
    }

    /// Has the port say when what it transmits from now on left ([`Port::departed`]), by `clock`; whether it can know. What it costs is for ports that were asked alone.
    fn stamp_departures(&mut self, _clock: SystemClock) -> bool {
        false
    }

    /// When the last frame of the last [`Port::transmit`] left: the sender's part of handing it over had been done, the receiver's, such as waking up, had not begun.
    /// None if the port was not asked, or cannot say it of this one.
    fn departed(&mut self) -> Option<Instant> {
        None
    }

    /// States that whoever has the port keeps a schedule, after [`Port::stamp_arrivals`]: its frames are sent at the time that [`Port::transmit`] is told, however
    /// late it got to it. Between two such owners, frames then say that they came at that time, so that what makes one late does not make the next one late, too.
    /// For ports that can carry it (memory, and wrappers around it).
    fn keep_schedule(&mut self) {}

    /// Whether both ends do: when frames come is when they were due, whatever sending them takes.
    fn is_scheduled(&self) -> bool {
        false
    }

    /// Whether it carries packets without Ethernet header, as some tunnels do.
    fn takes_any_packet_type(&self) -> bool {
        false
    }

    /// Whether the link is up and at what rate. Asked for now and then, not per batch: may cost a system call.
    fn link(&mut self) -> LinkState;

    /// What came and went since the port was opened.
    fn counters(&self) -> Counters;

    /// Takes the port into or out of service, as an administrator does: its link goes up or down, for the other end too where
    /// the port's kind can do that. A port that is closed puts back how its device was.
    ///
    /// # Errors
    /// The system refuses; the engine passes no frames while the port is to be down, whatever the device does.
    fn set_admin(&mut self, _up: bool) -> std::io::Result<()> {
        Ok(())
    }

    /// Gives up limiting the rate of what is transmitted, and says what rate and buffer were: for queues that are put in front.
    fn take_rate(&mut self) -> Option<(Bps, ByteSize)> {
        None
    }

    /// Shows `look` the port's queues, if it has any; they are in front of every other wrapper. Lent for a call, since the port may be
    /// one that other threads use, too. See also `queues` of `dyn Port`.
    fn look_at_queues(&self, _look: &mut dyn FnMut(&Queues)) {}

    /// The same, to be changed.
    fn change_queues(&mut self, _change: &mut dyn FnMut(&mut Queues)) {}

    /// Puts queues in front of the port that is inside, if nobody but this one can. Whether it did.
    fn begin_queues(&mut self) -> bool {
        false
    }
}

impl dyn Port + '_ {
    /// What `look` makes of the port's queues, if it has any.
    pub fn queues<R>(&self, look: impl FnOnce(&Queues) -> R) -> Option<R> {
        let (mut look, mut seen) = (Some(look), None);
        self.look_at_queues(&mut |queues| seen = look.take().map(|look| look(queues)));
        seen
    }

    /// What `change` makes of the port's queues, if it has any.
    pub fn queues_mut<R>(&mut self, change: impl FnOnce(&mut Queues) -> R) -> Option<R> {
        let (mut change, mut done) = (Some(change), None);
        self.change_queues(&mut |queues| done = change.take().map(|change| change(queues)));
        done
    }

    /// Whether it has queues.
    pub fn has_queues(&self) -> bool {
        self.queues(|_| ()).is_some()
    }
}

/// What [`Port::arm`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// There is something to receive now.
    Now,
    /// The descriptor will tell.
    OnDescriptor,
}

/// What a port is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PortInfo {
    /// Kind and name as the user wrote them: `af_packet:eth0`.
    pub spec: String,
    /// Short name, as controllers see it: `eth0`.
    pub name: String,
    /// Its Ethernet address.
    pub mac: MacAddr,
    /// Longest payload of a frame, without link header.
    pub mtu: u32,
}

/// A port's link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkState {
    /// Whether frames can pass.
    pub up: bool,
    /// The rate it runs at, if it has one.
    pub speed: Option<Bps>,
}

/// Counters of a port. A frame that passed counts in packets and bytes (without frame check sequence; a super-frame as
/// one); one that did not counts under its reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
pub struct Counters {
    /// Frames received.
    pub rx_packets: u64,
    /// Bytes received.
    pub rx_bytes: u64,
    /// Frames lost before weir could take them: the kernel's ring or the peer's queue was full.
    pub rx_missed: u64,
    /// Frames that came damaged or longer than a buffer.
    pub rx_errors: u64,
    /// Frames sent.
    pub tx_packets: u64,
    /// Bytes sent.
    pub tx_bytes: u64,
    /// Frames dropped since the device's or peer's queue was full.
    pub tx_full: u64,
    /// Frames dropped since they are longer than the link carries.
    pub tx_too_long: u64,
    /// Frames dropped since the device refused them or is down.
    pub tx_errors: u64,
    /// Frames sent that the link lost on their way, as it was told to ([`crate::shaper::Shape::loss`]).
    pub tx_lost: u64,
    /// Frames sent to the port that the link lost on their way, as it was told to.
    pub rx_lost: u64,
}

impl Counters {
    /// Frames that were to be sent and were not; what a link loses on the way is none of them.
    pub fn tx_dropped(&self) -> u64 {
        self.tx_full + self.tx_too_long + self.tx_errors
    }
}

/// Why a port could not be opened or used.
#[derive(Debug, thiserror::Error)]
pub enum PortError {
    /// The text of the port's specification is wrong.
    #[error("port {spec}: {problem}")]
    Spec {
        /// What the user wrote.
        spec: String,
        /// What was found, expected, and what to do.
        problem: String,
    },
    /// The system refused something.
    #[error("port {spec}: {tried}: {source}{advice}")]
    System {
        /// What the user wrote.
        spec: String,
        /// What was tried.
        tried: String,
        /// What the system said.
        source: std::io::Error,
        /// What to do, with a leading separator; may be empty.
        advice: String,
    },
    /// The device vanished while in use.
    #[error("port {spec}: the device is gone")]
    Gone {
        /// What the user wrote.
        spec: String,
    },
}
