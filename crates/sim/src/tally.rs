//! Counts the packets of a group in a run.
use crate::stats::DelayTally;
use weir_fabric::{FabricDropReason, PacketByteCount};

/// Number of reasons for which packets are lost: the fabric's, and a full line.
pub const REASONS: usize = FabricDropReason::ALL.len() + 1;

/// Counters of a group's packets that arrived in the window.
#[derive(Debug, Clone, Default)]
pub struct PacketTally {
    /// Packets and bytes that arrived at the first fabric of their path, or were lost on the line before it.
    pub arrived: PacketByteCount,
    /// Packets and bytes lost, by hop.
    pub lost_at: Vec<PacketByteCount>,
    /// Packets lost by reason, in the order of [`reason_name`].
    pub lost_for: [u64; REASONS],
    /// Delays from arrival to the start of the last transmission.
    pub delays: DelayTally,
}

/// Returns the name of a reason, by its index in [`PacketTally::lost_for`].
pub fn reason_name(place: usize) -> &'static str {
    FabricDropReason::ALL.get(place).map_or("line_full", |reason| reason.name())
}

impl PacketTally {
    /// Returns the packets and bytes lost on all hops.
    pub fn lost(&self) -> PacketByteCount {
        let mut sum = PacketByteCount::default();
        self.lost_at.iter().for_each(|count| sum += *count);
        sum
    }

    /// Returns the packets and bytes that arrived and were not lost.
    pub fn accepted(&self) -> PacketByteCount {
        let lost = self.lost();
        PacketByteCount { packets: self.arrived.packets - lost.packets, bytes: self.arrived.bytes - lost.bytes }
    }

    pub(crate) fn lose(&mut self, hop: usize, bytes: u32, reason: usize) {
        if self.lost_at.len() <= hop {
            self.lost_at.resize(hop + 1, PacketByteCount::default());
        }
        self.lost_at[hop] += PacketByteCount { packets: 1, bytes: u64::from(bytes) };
        self.lost_for[reason] += 1;
    }

    /// Adds the counters of `other`.
    pub fn merge(&mut self, other: &PacketTally) {
        self.arrived += other.arrived;
        if self.lost_at.len() < other.lost_at.len() {
            self.lost_at.resize(other.lost_at.len(), PacketByteCount::default());
        }
        self.lost_at.iter_mut().zip(&other.lost_at).for_each(|(own, count)| *own += *count);
        self.lost_for.iter_mut().zip(other.lost_for).for_each(|(own, count)| *own += count);
        self.delays.merge(&other.delays);
    }
}
