//! Buffer space: decides which packets are accepted and which are dropped to make room.
use crate::output::FabricOutput;
use crate::queue::DequeuedPacket;
use crate::slab::PacketSlab;
use crate::{
    BufferSharing, Crosspoint, DropPolicy, FabricDrop, FabricDropReason, FabricPacket, PortIndex, VirtualSwitchIndex,
};
use weir_units::Instant;

/// A packet about to enter a queue.
pub(crate) struct FabricArrival<T> {
    pub(crate) now: Instant,
    pub(crate) at: Crosspoint,
    pub(crate) packet: FabricPacket<T>,
}

impl<T> FabricArrival<T> {
    pub(crate) fn drop(self, reason: FabricDropReason) -> FabricDrop<T> {
        FabricDrop { at: self.at, reason, arrived: self.now, packet: self.packet }
    }
}

impl<T> DequeuedPacket<T> {
    pub(crate) fn drop(self, at: Crosspoint, reason: FabricDropReason) -> FabricDrop<T> {
        FabricDrop { at, reason, arrived: self.arrived, packet: self.packet }
    }
}

impl FabricOutput {
    /// Enqueues a packet for an existing outlet, or drops the packet or others. Returns true if the packet is queued.
    #[inline]
    pub(crate) fn enqueue<T>(
        &mut self,
        arrival: FabricArrival<T>,
        slab: &mut PacketSlab<T>,
        random: impl FnOnce() -> f64,
        dropped: &mut Vec<FabricDrop<T>>,
    ) -> bool {
        let (switch, input) = (arrival.at.switch.0, arrival.at.input.0);
        let Some(outlet) = self.outlets[usize::from(switch)].as_deref_mut() else { return false };
        let bytes = arrival.packet.bytes;
        outlet.queues[usize::from(input)].arrived.add(bytes);
        if outlet.has_plain_room(input, bytes) && !slab.is_full() {
            outlet.accept(arrival.now, input, arrival.packet, slab);
            // If the switch was ready already, nothing changes.
            if !self.ready.contains(switch) {
                self.update_readiness(switch);
            }
            return true;
        }
        self.enqueue_checked(arrival, slab, random, dropped)
    }

    /// Enqueues a packet after all checks: refusal by RED or a merge, buffer sharing, drop-head. Returns true if it
    /// is queued.
    #[inline(never)]
    fn enqueue_checked<T>(
        &mut self,
        arrival: FabricArrival<T>,
        slab: &mut PacketSlab<T>,
        random: impl FnOnce() -> f64,
        dropped: &mut Vec<FabricDrop<T>>,
    ) -> bool {
        let (switch, input, bytes) = (arrival.at.switch.0, arrival.at.input.0, arrival.packet.bytes);
        let Some(outlet) = self.outlet_mut(switch) else { return false };
        let refused = outlet.decide_refusal(arrival.now, input, &arrival.packet, random);
        let reason = match refused {
            None if self.admit(&arrival, slab, dropped) => {
                self.accept(arrival, slab);
                return true;
            }
            None => FabricDropReason::BufferFull,
            Some(reason) => reason,
        };
        if let Some(outlet) = self.outlet_mut(switch) {
            outlet.drops[usize::from(input)][reason as usize].add(bytes);
        }
        dropped.push(arrival.drop(reason));
        false
    }

    /// Enqueues packets as long as room is the only condition to check. Returns the first packet that needs further
    /// checks.
    #[inline]
    pub(crate) fn enqueue_plain<T>(
        &mut self,
        now: Instant,
        at: Crosspoint,
        packets: &mut impl Iterator<Item = FabricPacket<T>>,
        slab: &mut PacketSlab<T>,
    ) -> Option<FabricPacket<T>> {
        let (switch, input) = (at.switch.0, at.input.0);
        let Some(outlet) = self.outlet_mut(switch) else { return packets.next() };
        let before = outlet.arrivals();
        let left = outlet.accept_run(now, input, packets, slab);
        let any = outlet.arrivals() != before;
        if any && !self.ready.contains(switch) {
            self.update_readiness(switch);
        }
        left
    }

    #[inline]
    fn accept<T>(&mut self, arrival: FabricArrival<T>, slab: &mut PacketSlab<T>) {
        let Crosspoint { switch, input, .. } = arrival.at;
        if self.sharing == BufferSharing::Flexible {
            self.occupied[usize::from(input.0)] += u64::from(arrival.packet.bytes);
        }
        if let Some(outlet) = self.outlet_mut(switch.0) {
            outlet.accept(arrival.now, input.0, arrival.packet, slab);
        }
        self.update_readiness(switch.0);
    }

    /// Returns true if there is room for a packet, after dropping packets that must give way.
    #[inline]
    fn admit<T>(
        &mut self,
        arrival: &FabricArrival<T>,
        slab: &mut PacketSlab<T>,
        dropped: &mut Vec<FabricDrop<T>>,
    ) -> bool {
        let at = arrival.at;
        let bytes = u64::from(arrival.packet.bytes);
        if slab.is_full() {
            return false;
        }
        if self.sharing == BufferSharing::Strict && self.fits_own(at, bytes) {
            return true;
        }
        self.make_room(arrival.now, at, bytes, slab, dropped)
    }

    /// Returns true if a queue's own buffer has room.
    #[inline]
    fn fits_own(&self, at: Crosspoint, bytes: u64) -> bool {
        let Some(outlet) = self.outlet(at.switch.0) else { return false };
        let queue = &outlet.queues[usize::from(at.input.0)];
        u64::from(queue.bytes) + bytes <= u64::from(queue.capacity)
    }

    /// Returns true if the physical crosspoint has room.
    fn fits_crosspoint(&self, input: PortIndex, bytes: u64) -> bool {
        self.occupied[usize::from(input.0)] + bytes <= self.config.crosspoint_bytes
    }

    fn make_room<T>(
        &mut self,
        now: Instant,
        at: Crosspoint,
        bytes: u64,
        slab: &mut PacketSlab<T>,
        dropped: &mut Vec<FabricDrop<T>>,
    ) -> bool {
        let flexible = self.sharing == BufferSharing::Flexible;
        let drops_head = self.outlet(at.switch.0).is_some_and(|outlet| outlet.manager == DropPolicy::DropHead);
        loop {
            if flexible && self.fits_crosspoint(at.input, bytes) {
                return true;
            }
            if self.fits_own(at, bytes) {
                return !flexible || self.reclaim(now, at, bytes, slab, dropped);
            }
            // If the packet does not fit even in an empty queue, dropping others would not help.
            if !drops_head
                || !self.could_fit(at, bytes)
                || !self.evict(now, at, true, FabricDropReason::Head, slab, dropped)
            {
                return false;
            }
        }
    }

    /// Returns true if a queue's own buffer could hold this many bytes if it were empty.
    fn could_fit(&self, at: Crosspoint, bytes: u64) -> bool {
        self.outlet(at.switch.0).is_some_and(|outlet| bytes <= outlet.queues[usize::from(at.input.0)].capacity.into())
    }

    /// Reclaims buffer space that others borrowed at a crosspoint, first from the virtual switch that borrowed most.
    ///
    /// Borrowed space exists: the sum of all own buffers does not exceed the crosspoint, so if a queue within its own
    /// buffer finds no room, another queue holds more than its own buffer.
    #[cold]
    fn reclaim<T>(
        &mut self,
        now: Instant,
        at: Crosspoint,
        bytes: u64,
        slab: &mut PacketSlab<T>,
        dropped: &mut Vec<FabricDrop<T>>,
    ) -> bool {
        while !self.fits_crosspoint(at.input, bytes) {
            let Some(borrower) = self.largest_borrower(at.input) else { return false };
            let from = Crosspoint { switch: VirtualSwitchIndex(borrower), ..at };
            if !self.evict(now, from, false, FabricDropReason::Reclaimed, slab, dropped) {
                return false;
            }
        }
        true
    }

    /// Returns the virtual switch whose queue from an input exceeds its own buffer by most.
    fn largest_borrower(&self, input: PortIndex) -> Option<u16> {
        let beyond = |(switch, outlet): (u16, &Option<Box<crate::outlet::OutputShare>>)| {
            let queue = &outlet.as_ref()?.queues[usize::from(input.0)];
            queue.bytes.checked_sub(queue.capacity).filter(|beyond| *beyond > 0).map(|beyond| (beyond, switch))
        };
        (0..).zip(&self.outlets).filter_map(beyond).max_by_key(|(beyond, _)| *beyond).map(|(_, switch)| switch)
    }

    /// Drops a queue's oldest or youngest packet. Returns false if there is none.
    pub(crate) fn evict<T>(
        &mut self,
        now: Instant,
        at: Crosspoint,
        oldest: bool,
        reason: FabricDropReason,
        slab: &mut PacketSlab<T>,
        dropped: &mut Vec<FabricDrop<T>>,
    ) -> bool {
        let taken = self.outlet_mut(at.switch.0).and_then(|outlet| outlet.evict(now, at.input.0, oldest, reason, slab));
        let Some(taken) = taken else { return false };
        if self.sharing == BufferSharing::Flexible {
            self.occupied[usize::from(at.input.0)] -= u64::from(taken.packet.bytes);
        }
        dropped.push(taken.drop(at, reason));
        self.note_drops(at.switch.0);
        true
    }
}
