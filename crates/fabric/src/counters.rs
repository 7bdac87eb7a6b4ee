//! What the fabric counts.
use crate::DropReason;
use std::ops::AddAssign;

/// Packets and their bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Count {
    /// How many.
    pub packets: u64,
    /// Their lengths together.
    pub bytes: u64,
}

impl Count {
    /// One more.
    pub(crate) fn add(&mut self, bytes: u32) {
        self.packets += 1;
        self.bytes += u64::from(bytes);
    }

    /// What is left without `other`, which is part of it.
    pub(crate) fn without(self, other: Count) -> Count {
        Count { packets: self.packets - other.packets, bytes: self.bytes - other.bytes }
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.packets += other.packets;
        self.bytes += other.bytes;
    }
}

/// What happened at a queue since its virtual switch was added. What came in is what went out, was dropped and is queued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CrosspointCounters {
    /// What was to be enqueued.
    pub arrived: Count,
    /// What was dequeued.
    pub departed: Count,
    /// What is in the queue.
    pub queued: Count,
    /// Most bytes that the queue held; of sums, the largest of them.
    pub peak_bytes: u64,
    /// What was dropped, by reason.
    drops: [Count; DropReason::ALL.len()],
}

impl CrosspointCounters {
    pub(crate) fn new(arrived: Count, queued: Count, peak_bytes: u64, drops: [Count; DropReason::ALL.len()]) -> Self {
        let mut counters = CrosspointCounters { arrived, departed: Count::default(), queued, peak_bytes, drops };
        counters.departed = arrived.without(queued).without(counters.dropped());
        counters
    }

    /// What was dropped for a reason.
    pub fn dropped_for(&self, reason: DropReason) -> Count {
        self.drops[reason as usize]
    }

    /// What was dropped for whatever reason.
    pub fn dropped(&self) -> Count {
        let mut sum = Count::default();
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

/// What a merge did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MergeCounters {
    /// Numbers that it passed over: lost before it, or waited for in vain.
    pub missing: u64,
    /// How often it served a packet because its patience was at an end.
    pub gave_up: u64,
}
