//! Packets and crosspoints: what enters the fabric, leaves it and is dropped by it.
use std::fmt;
use weir_units::Instant;

/// Index of an input or an output of the fabric, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortIndex(pub u16);

/// Index of a virtual switch of a fabric. After the switch was removed, another one may get the same index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchIndex(pub u16);

/// A queue: a virtual switch's share of the buffer between an input and an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Crosspoint {
    /// Virtual switch that owns the queue.
    pub switch: SwitchIndex,
    /// Input from which packets arrive.
    pub input: PortIndex,
    /// Output to which packets are sent.
    pub output: PortIndex,
}

/// A packet as the fabric sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet<T> {
    /// Length in bytes, which counts for buffers and rates.
    pub bytes: u32,
    /// Traffic class; the fabric only passes it on.
    pub class: u8,
    /// Sequence number of the packet on a virtual link that is split over several paths.
    /// [`IntraDiscipline::Merge`](crate::IntraDiscipline::Merge) restores this order; other disciplines ignore the
    /// number.
    pub number: u64,
    /// Item of the caller, such as a frame's handle.
    pub item: T,
}

impl<T> Packet<T> {
    /// Returns a packet of class 0.
    pub fn new(bytes: u32, item: T) -> Packet<T> {
        Packet { bytes, class: 0, number: 0, item }
    }
}

/// A packet that leaves by its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure<T> {
    /// Virtual switch of the packet.
    pub switch: SwitchIndex,
    /// Input by which the packet arrived.
    pub input: PortIndex,
    /// Length in bytes.
    pub bytes: u32,
    /// Traffic class of the packet.
    pub class: u8,
    /// Time at which the packet was enqueued.
    pub arrived: Instant,
    /// Item of the caller.
    pub item: T,
}

/// Next action of an output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next<T> {
    /// Send this packet. Its buffer space is free from now on.
    Packet(Departure<T>),
    /// Send no packet before this time, unless one arrives: a ceiling or a merge holds the queued packets back.
    /// [`Instant::FAR`] means that only an arrival can change this.
    Wait(Instant),
    /// No packet is queued.
    Empty,
}

/// Reason why a run of packets ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// The caller's `send` wanted no more packets.
    Stopped,
    /// Packets are queued but held back until this time; see [`Next::Wait`].
    Wait(Instant),
    /// No packet is queued; see [`Next::Empty`].
    Empty,
}

/// A packet that the fabric dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped<T> {
    /// Queue of the packet.
    pub at: Crosspoint,
    /// Reason of the drop.
    pub reason: DropReason,
    /// Time at which the packet was enqueued, or dropped if it was never enqueued.
    pub arrived: Instant,
    /// The dropped packet.
    pub packet: Packet<T>,
}

/// Reason why the fabric drops a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// The virtual switch does not exist, or does not lead from this input to this output.
    NoPath,
    /// The arriving packet did not fit.
    BufferFull,
    /// The packet was the oldest of its queue, and an arriving packet did not fit.
    Head,
    /// RED dropped the packet with a probability.
    RedEarly,
    /// RED dropped the packet because the average exceeded the upper threshold.
    RedForced,
    /// The packet lay in buffer space borrowed from another virtual switch, which needed it.
    Reclaimed,
    /// The packet arrived at a merge that had given up waiting for it.
    Late,
    /// The virtual switch was resized, and the packet no longer fits.
    Resized,
    /// The virtual switch was removed.
    Removed,
}

impl DropReason {
    /// All reasons, in the order of their counters.
    pub const ALL: [DropReason; 9] = [
        DropReason::NoPath,
        DropReason::BufferFull,
        DropReason::Head,
        DropReason::RedEarly,
        DropReason::RedForced,
        DropReason::Reclaimed,
        DropReason::Late,
        DropReason::Resized,
        DropReason::Removed,
    ];

    /// Returns the name in reports, such as `buffer_full`.
    pub const fn name(self) -> &'static str {
        match self {
            DropReason::NoPath => "no_path",
            DropReason::BufferFull => "buffer_full",
            DropReason::Head => "head",
            DropReason::RedEarly => "red_early",
            DropReason::RedForced => "red_forced",
            DropReason::Reclaimed => "reclaimed",
            DropReason::Late => "late",
            DropReason::Resized => "resized",
            DropReason::Removed => "removed",
        }
    }
}

impl fmt::Display for DropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
