//! What goes into the fabric, comes out and falls out.
use std::fmt;
use weir_units::Instant;

/// A port of the fabric, counted from 0: an input or an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortIndex(pub u16);

/// A virtual switch of a fabric. After it was removed, another may get the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SwitchIndex(pub u16);

/// A queue: a virtual switch's share of the buffer between an input and an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Crosspoint {
    /// Whose.
    pub switch: SwitchIndex,
    /// Where its packets come from.
    pub input: PortIndex,
    /// Where they go.
    pub output: PortIndex,
}

/// A packet as the fabric knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packet<T> {
    /// Its length: what it takes of buffers and rates.
    pub bytes: u32,
    /// The traffic class that it is accounted to; the fabric hands it on.
    pub class: u8,
    /// Its number on a split virtual link, in the order of which [`IntraDiscipline::Merge`](crate::IntraDiscipline::Merge) serves; others
    /// do not look at it.
    pub number: u64,
    /// What it is to the caller.
    pub item: T,
}

impl<T> Packet<T> {
    /// A packet of class 0.
    pub fn new(bytes: u32, item: T) -> Packet<T> {
        Packet { bytes, class: 0, number: 0, item }
    }
}

/// A packet that leaves by its output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Departure<T> {
    /// Its virtual switch.
    pub switch: SwitchIndex,
    /// The input it came by.
    pub input: PortIndex,
    /// Its length.
    pub bytes: u32,
    /// Its class.
    pub class: u8,
    /// When it was enqueued.
    pub arrived: Instant,
    /// What it is to the caller.
    pub item: T,
}

/// What an output sends next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next<T> {
    /// This packet. Its buffer is free from now on.
    Packet(Departure<T>),
    /// Nothing before then, unless something arrives: a ceiling or a merge holds what there is. [`Instant::FAR`]: only an arrival helps.
    Wait(Instant),
    /// Nothing is queued.
    Empty,
}

/// Why a run of packets ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// Whoever sends them wants no more for now.
    Stopped,
    /// As [`Next::Wait`].
    Wait(Instant),
    /// As [`Next::Empty`].
    Empty,
}

/// A packet that the fabric lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dropped<T> {
    /// Where.
    pub at: Crosspoint,
    /// Why.
    pub reason: DropReason,
    /// When it was enqueued; when it was dropped, if it never was.
    pub arrived: Instant,
    /// The packet.
    pub packet: Packet<T>,
}

/// Why the fabric drops a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DropReason {
    /// No such virtual switch, or it does not lead from this input to this output.
    NoPath,
    /// It arrived and did not fit.
    BufferFull,
    /// It was the oldest, and what arrived did not fit.
    Head,
    /// RED dropped it with a probability.
    RedEarly,
    /// RED dropped it because the average was beyond the upper threshold.
    RedForced,
    /// It lay in buffer borrowed from another virtual switch, which needed it.
    Reclaimed,
    /// It arrived at a merge that had given up waiting for it.
    Late,
    /// Its virtual switch was resized and it fits no more.
    Resized,
    /// Its virtual switch was removed.
    Removed,
}

impl DropReason {
    /// All of them, in the order of their counters.
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

    /// Its name in reports, such as `buffer_full`.
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
