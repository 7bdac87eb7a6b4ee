//! Counts packets and bytes of groups and buckets. Each worker has its own counters, as for flow entries
//! ([`crate::counting::WorkerNo`]), so that workers sharing a group never wait. Readers get the sum.
use super::{BucketId, GroupEntry};
use crate::counting::WorkerNo;
use crate::effects::BucketRef;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counters of all groups.
#[derive(Debug)]
pub(crate) struct GroupCounters {
    /// Counters of each worker. All workers have the same number of slots and buckets.
    shares: Vec<Vec<WorkerGroupCount>>,
}

/// Counters of a group that belong to one worker.
#[derive(Debug, Default)]
struct WorkerGroupCount {
    total: AtomicGroupCount,
    /// Counters of each bucket.
    buckets: Vec<AtomicGroupCount>,
}

/// Number of packets and bytes. One thread writes it, others read.
#[derive(Debug, Default)]
struct AtomicGroupCount {
    packets: AtomicU64,
    bytes: AtomicU64,
}

/// Sums of all workers' counters of a group.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct GroupTotals {
    /// Packets and bytes of the group.
    pub(super) total: (u64, u64),
    /// Packets and bytes of each bucket.
    pub(super) buckets: Vec<(u64, u64)>,
}

impl Default for GroupCounters {
    /// Returns counters for the engine's own thread.
    fn default() -> GroupCounters {
        GroupCounters { shares: vec![Vec::new()] }
    }
}

impl GroupCounters {
    /// Adds counters for another worker.
    pub(crate) fn add_worker(&mut self) {
        let like = |group: &WorkerGroupCount| WorkerGroupCount::of(group.buckets.len());
        self.shares.push(self.shares[0].iter().map(like).collect());
    }

    /// Counts a packet in the group in a slot.
    #[inline]
    pub(crate) fn count(&self, worker: WorkerNo, slot: usize, bytes: usize) {
        if let Some(group) = self.share(worker).get(slot) {
            group.total.add(bytes);
        }
    }

    /// Counts a packet in a bucket.
    #[inline]
    pub(crate) fn count_bucket(&self, worker: WorkerNo, at: BucketRef, bytes: usize) {
        if let Some(bucket) = self.share(worker).get(at.slot()).and_then(|group| group.buckets.get(at.bucket())) {
            bucket.add(bytes);
        }
    }

    fn share(&self, worker: WorkerNo) -> &[WorkerGroupCount] {
        self.shares.get(worker.0).map(Vec::as_slice).unwrap_or_default()
    }

    /// Returns the sums of all workers for the group in a slot.
    pub(super) fn of(&self, slot: usize) -> GroupTotals {
        let mut sum = GroupTotals::default();
        for group in self.shares.iter().filter_map(|share| share.get(slot)) {
            add(&mut sum.total, group.total.read());
            sum.buckets.resize(group.buckets.len(), (0, 0));
            sum.buckets.iter_mut().zip(&group.buckets).for_each(|(sum, bucket)| add(sum, bucket.read()));
        }
        sum
    }

    /// Resets the counters of the group in a slot.
    pub(super) fn start(&mut self, slot: usize, buckets: usize) {
        for share in &mut self.shares {
            if share.len() <= slot {
                share.resize_with(slot + 1, WorkerGroupCount::default);
            }
            share[slot] = WorkerGroupCount::of(buckets);
        }
    }

    /// Removes the counters of all groups.
    pub(super) fn clear(&mut self) {
        self.shares.iter_mut().for_each(|share| *share = Vec::new());
    }

    /// Resets the counters of buckets after a group replaced another. With `keeps`, buckets that remain keep their
    /// counters.
    pub(super) fn replace_buckets(&mut self, slot: usize, old: &GroupEntry, new: &GroupEntry, keeps: bool) {
        for group in self.shares.iter_mut().filter_map(|share| share.get_mut(slot)) {
            let counts = std::mem::take(&mut group.buckets);
            let mut former: HashMap<BucketId, AtomicGroupCount> =
                old.asked().map(|bucket| bucket.id).zip(counts).filter(|_| keeps).collect();
            group.buckets = new.asked().map(|bucket| former.remove(&bucket.id).unwrap_or_default()).collect();
        }
    }

    /// Sets the counters of the group in a slot to given sums.
    pub(super) fn put_back(&mut self, slot: usize, counted: &GroupTotals) {
        self.start(slot, counted.buckets.len());
        let group = &self.shares[0][slot];
        group.total.set(counted.total);
        group.buckets.iter().zip(&counted.buckets).for_each(|(bucket, counted)| bucket.set(*counted));
    }
}

impl WorkerGroupCount {
    fn of(buckets: usize) -> WorkerGroupCount {
        let mut group = WorkerGroupCount::default();
        group.buckets.resize_with(buckets, AtomicGroupCount::default);
        group
    }
}

impl AtomicGroupCount {
    /// Counts a packet. Only the thread that owns the counter may call this.
    fn add(&self, bytes: usize) {
        self.packets.store(self.packets.load(Relaxed) + 1, Relaxed);
        self.bytes.store(self.bytes.load(Relaxed) + bytes as u64, Relaxed);
    }

    fn set(&self, (packets, bytes): (u64, u64)) {
        self.packets.store(packets, Relaxed);
        self.bytes.store(bytes, Relaxed);
    }

    fn read(&self) -> (u64, u64) {
        (self.packets.load(Relaxed), self.bytes.load(Relaxed))
    }
}

fn add(sum: &mut (u64, u64), more: (u64, u64)) {
    *sum = (sum.0 + more.0, sum.1 + more.1);
}
