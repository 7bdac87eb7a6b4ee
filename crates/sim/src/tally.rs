//! What became of a group's packets in a run.
use crate::stats::Delays;
use weir_fabric::{Count, DropReason};

/// Reasons for which packets are lost: the fabric's, and that their line was full.
pub const REASONS: usize = DropReason::ALL.len() + 1;

/// What became of a group's packets: those that arrived while it counted.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// What arrived at the first fabric of its path.
    pub arrived: Count,
    /// What was lost, by hop.
    pub lost_at: Vec<Count>,
    /// Packets lost by reason, in the order of [`reason_name`].
    pub lost_for: [u64; REASONS],
    /// From the arrival to the start of the last transmission.
    pub delays: Delays,
}

/// The name of a reason, by its place in [`Tally::lost_for`].
pub fn reason_name(place: usize) -> &'static str {
    DropReason::ALL.get(place).map_or("line_full", |reason| reason.name())
}

impl Tally {
    /// What was lost on all hops.
    pub fn lost(&self) -> Count {
        let mut sum = Count::default();
        self.lost_at.iter().for_each(|count| sum += *count);
        sum
    }

    /// What arrived and was not lost.
    pub fn accepted(&self) -> Count {
        let lost = self.lost();
        Count { packets: self.arrived.packets - lost.packets, bytes: self.arrived.bytes - lost.bytes }
    }

    pub(crate) fn lose(&mut self, hop: usize, bytes: u32, reason: usize) {
        if self.lost_at.len() <= hop {
            self.lost_at.resize(hop + 1, Count::default());
        }
        self.lost_at[hop] += Count { packets: 1, bytes: u64::from(bytes) };
        self.lost_for[reason] += 1;
    }

    /// Adds another's.
    pub fn merge(&mut self, other: &Tally) {
        self.arrived += other.arrived;
        if self.lost_at.len() < other.lost_at.len() {
            self.lost_at.resize(other.lost_at.len(), Count::default());
        }
        self.lost_at.iter_mut().zip(&other.lost_at).for_each(|(own, count)| *own += *count);
        self.lost_for.iter_mut().zip(other.lost_for).for_each(|(own, count)| *own += count);
        self.delays.merge(&other.delays);
    }
}
