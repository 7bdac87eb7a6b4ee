//! Counters of the fabric.
use crate::FabricDropReason;
use std::ops::AddAssign;

/// Number of packets and of their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PacketByteCount {
    /// Number of packets.
    pub packets: u64,
    /// Sum of their lengths in bytes.
    pub bytes: u64,
}

impl PacketByteCount {
    /// Counts a packet.
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// Returns the difference to `other`, which must be a part of this count.
    pub(crate) fn without(self, other: PacketByteCount) -> PacketByteCount {
        PacketByteCount { packets: self.packets - other.packets, bytes: self.bytes - other.bytes }
    }
}

impl AddAssign for PacketByteCount {
    fn add_assign(&mut self, other: PacketByteCount) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// Counters of a queue since its virtual switch was added. Arrived equals departed plus dropped plus queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CrosspointCounters {
    /// Packets that arrived for the queue, accepted or not.
    pub arrived: PacketByteCount,
    /// Packets dequeued by the output.
    pub departed: PacketByteCount,
    /// Packets in the queue.
    pub queued: PacketByteCount,
    /// Maximum number of bytes that the queue held; in sums, the largest of the summands.
    pub peak_bytes: u64,
    /// Dropped packets, by reason.
    drops: [PacketByteCount; FabricDropReason::ALL.len()],
}

impl CrosspointCounters {
    pub(crate) fn new(
        arrived: PacketByteCount,
        queued: PacketByteCount,
        peak_bytes: u64,
        drops: [PacketByteCount; FabricDropReason::ALL.len()],
    ) -> Self {
        let mut counters =
            CrosspointCounters { arrived, departed: PacketByteCount::default(), queued, peak_bytes, drops };
        counters.departed = arrived.without(queued).without(counters.dropped());
        counters
    }

    /// Returns the packets dropped for a reason.
    pub fn dropped_for(&self, reason: FabricDropReason) -> PacketByteCount {
        self.drops[reason as usize]
    }

    /// Returns the packets dropped for any reason.
    pub fn dropped(&self) -> PacketByteCount {
        let mut sum = PacketByteCount::default();
        self.drops.iter().for_each(|count| sum += *count);
        sum
    }
}

impl AddAssign for CrosspointCounters {
    fn add_assign(&mut self, other: CrosspointCounters) {
        self.arrived += other.arrived;
        self.departed += other.departed;
        self.queued += other.queued;
        self.peak_bytes = self.peak_bytes.max(other.peak_bytes);
        self.drops.iter_mut().zip(other.drops).for_each(|(sum, count)| *sum += count);
    }
}

/// Counters of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MergeCounters {
    /// Numbers that were skipped: lost before the merge, or waited for in vain.
    pub missing: u64,
    /// Number of packets served because the patience had run out.
    pub gave_up: u64,
}
