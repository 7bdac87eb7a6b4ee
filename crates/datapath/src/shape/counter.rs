//! Counts an entry's packets and bytes, and keeps the time of its last packet.
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use weir_units::Instant;
use zerocopy::FromZeros;

/// Packet and byte count of an entry, and the time of its last use.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FlowCounter {
    pub(crate) packets: u64,
    pub(crate) bytes: u64,
    /// Arrival time of the last packet; the time at which the entry was added if there was none.
    pub(crate) used: Instant,
}

/// Counters that one thread writes and other threads read. They use plain loads and stores, which cost no more than
/// ordinary memory accesses.
#[derive(Debug, Default, FromZeros)]
#[repr(C)]
pub(crate) struct AtomicFlowCounter {
    packets: AtomicU64,
    bytes: AtomicU64,
    used: AtomicU64,
}

impl AtomicFlowCounter {
    /// Counts packets. Only the thread that owns these counters may call this.
    #[inline(always)]
    pub(crate) fn add(&self, packets: u64, bytes: u64, now: Instant) {
        self.packets.store(self.packets.load(Relaxed).wrapping_add(packets), Relaxed);
        self.bytes.store(self.bytes.load(Relaxed).wrapping_add(bytes), Relaxed);
        self.used.store(now.as_nanos(), Relaxed);
    }

    /// Takes back one packet that another thread's counters may include. The counters may wrap below zero; only the
    /// sum over all threads is correct.
    pub(crate) fn take_back(&self, bytes: u64) {
        self.packets.store(self.packets.load(Relaxed).wrapping_sub(1), Relaxed);
        self.bytes.store(self.bytes.load(Relaxed).wrapping_sub(bytes), Relaxed);
    }

    pub(crate) fn read(&self) -> FlowCounter {
        FlowCounter {
            packets: self.packets.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            used: Instant::from_nanos(self.used.load(Relaxed)),
        }
    }

    pub(crate) fn set(&mut self, counter: FlowCounter) {
        *self.packets.get_mut() = counter.packets;
        *self.bytes.get_mut() = counter.bytes;
        *self.used.get_mut() = counter.used.as_nanos();
    }
}

impl FlowCounter {
    /// Returns the sum of two threads' counters for one entry.
    pub(crate) fn and(self, other: FlowCounter) -> FlowCounter {
        FlowCounter {
            packets: self.packets.wrapping_add(other.packets),
            bytes: self.bytes.wrapping_add(other.bytes),
            used: self.used.max(other.used),
        }
    }
}
