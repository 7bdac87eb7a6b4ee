//! Defines packets of the fabric, the queues (crosspoints) that hold them, departures, and drops with their reasons.
use std::fmt;
use weir_units::Instant;

/// Index of an input or an output of the fabric, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortIndex(pub u16);

/// Index of a virtual switch of a fabric. After the virtual switch is removed, a new one may get its index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VirtualSwitchIndex(pub u16);

/// A queue of the fabric: it holds the packets of one virtual switch from one input to one output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Crosspoint {
    /// Virtual switch that owns the queue.
    pub switch: VirtualSwitchIndex,
    /// Input from which packets arrive.
    pub input: PortIndex,
    /// Output to which packets are sent.
    pub output: PortIndex,
}

/// A packet in the fabric, which knows its length and order but not its contents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricPacket<T> {
    /// Length in bytes, which counts for buffers and rates.
    pub bytes: u32,
    /// Traffic class. The fabric returns it with the departing packet and does not use it.
    pub class: u8,
    /// Sequence number of the packet on a virtual link that is split over several paths.
    /// [`IntraDiscipline::Merge`](crate::IntraDiscipline::Merge) restores this order; other disciplines ignore the
    /// number.
    pub number: u64,
    /// Item of the caller, such as a frame's handle.
    pub item: T,
}

impl<T> FabricPacket<T> {
    /// Returns a packet of class 0.
    pub fn new(bytes: u32, item: T) -> FabricPacket<T> {
        FabricPacket { bytes, class: 0, number: 0, item }
    }
}

/// A packet that leaves the fabric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricDeparture<T> {
    /// Virtual switch of the packet.
    pub switch: VirtualSwitchIndex,
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
pub enum DequeueResult<T> {
    /// Send this packet. Its buffer space is free from now on.
    Packet(FabricDeparture<T>),
    /// Send no packet before this time, unless another one arrives: queued packets wait because their virtual switch
    /// has used up its maximum rate ([`ceiling`](crate::VirtualPort::ceiling)), or because
    /// [`IntraDiscipline::Merge`](crate::IntraDiscipline::Merge) waits for an earlier packet of the order. With
    /// [`Instant::FAR`] only an arrival ends the wait.
    Wait(Instant),
    /// No packet is queued.
    Empty,
}

/// Reason why the fabric stopped passing packets to the caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DequeueStop {
    /// The function `send` of the caller accepted no more packets.
    Stopped,
    /// Packets are queued, but none may be sent before this time; see [`DequeueResult::Wait`].
    Wait(Instant),
    /// No packet is queued; see [`DequeueResult::Empty`].
    Empty,
}

/// A packet that the fabric dropped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FabricDrop<T> {
    /// Queue of the packet.
    pub at: Crosspoint,
    /// Reason of the drop.
    pub reason: FabricDropReason,
    /// Time at which the packet was enqueued, or dropped if it was never enqueued.
    pub arrived: Instant,
    /// The dropped packet.
    pub packet: FabricPacket<T>,
}

/// Reason why the fabric drops a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FabricDropReason {
    /// The virtual switch does not exist, or has no queue from this input to this output.
    NoPath,
    /// The arriving packet did not fit in the buffer.
    BufferFull,
    /// The packet was the oldest of its queue, and was dropped to make room for an arriving packet.
    Head,
    /// RED dropped the packet at random, because the average queue length was between its thresholds.
    RedEarly,
    /// RED dropped the packet because the average queue length exceeded the upper threshold.
    RedForced,
    /// The packet was in buffer space borrowed from another virtual switch, which needed the space.
    Reclaimed,
    /// The packet arrived at a queue with [`IntraDiscipline::Merge`](crate::IntraDiscipline::Merge) after the
    /// discipline had stopped waiting for it.
    Late,
    /// The virtual switch was resized, and the packet no longer fits.
    Resized,
    /// The virtual switch was removed.
    Removed,
}

impl FabricDropReason {
    /// All reasons, in the order in which counters are kept.
    pub const ALL: [FabricDropReason; 9] = [
        FabricDropReason::NoPath,
        FabricDropReason::BufferFull,
        FabricDropReason::Head,
        FabricDropReason::RedEarly,
        FabricDropReason::RedForced,
        FabricDropReason::Reclaimed,
        FabricDropReason::Late,
        FabricDropReason::Resized,
        FabricDropReason::Removed,
    ];

    /// Returns the name of the reason in reports, such as `buffer_full`.
    pub const fn name(self) -> &'static str {
        match self {
            FabricDropReason::NoPath => "no_path",
            FabricDropReason::BufferFull => "buffer_full",
            FabricDropReason::Head => "head",
            FabricDropReason::RedEarly => "red_early",
            FabricDropReason::RedForced => "red_forced",
            FabricDropReason::Reclaimed => "reclaimed",
            FabricDropReason::Late => "late",
            FabricDropReason::Resized => "resized",
            FabricDropReason::Removed => "removed",
        }
    }
}

impl fmt::Display for FabricDropReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
