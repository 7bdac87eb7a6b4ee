//! A queue at a crosspoint: a list of packets in order of arrival, from which the head or the tail can be removed.
use crate::slab::{NONE, NodeVisit, PacketSlab};
use crate::{FabricDeparture, FabricPacket, PacketByteCount, PortIndex, VirtualSwitchIndex};
use weir_units::Instant;

/// State of a queue on the packet path, in one cache line.
pub(crate) struct CrosspointQueue {
    head: u32,
    tail: u32,
    /// Length of the oldest packet in bytes, cached so that disciplines need not access its node.
    head_bytes: u32,
    pub(crate) packets: u32,
    pub(crate) bytes: u32,
    /// Own buffer in bytes; 0: its virtual switch does not lead here.
    pub(crate) capacity: u32,
    /// Bytes that the queue may still send in its turn, under deficit round robin.
    pub(crate) deficit: u32,
    pub(crate) peak: u32,
    pub(crate) arrived: PacketByteCount,
}

/// A packet removed from a queue.
pub(crate) struct DequeuedPacket<T> {
    pub(crate) arrived: Instant,
    pub(crate) packet: FabricPacket<T>,
}

impl<T> DequeuedPacket<T> {
    /// Converts the packet to a departure by its output.
    #[inline]
    pub(crate) fn depart(self, switch: u16, input: u16) -> FabricDeparture<T> {
        let FabricPacket { bytes, class, item, .. } = self.packet;
        FabricDeparture {
            switch: VirtualSwitchIndex(switch),
            input: PortIndex(input),
            bytes,
            class,
            arrived: self.arrived,
            item,
        }
    }
}

impl CrosspointQueue {
    pub(crate) fn new(capacity: u32) -> CrosspointQueue {
        CrosspointQueue {
            head: NONE,
            tail: NONE,
            head_bytes: 0,
            packets: 0,
            bytes: 0,
            capacity,
            deficit: 0,
            peak: 0,
            arrived: PacketByteCount::default(),
        }
    }

    /// Takes over the packets and counters of the queue that this one replaces.
    pub(crate) fn resume(&mut self, before: CrosspointQueue) {
        *self = CrosspointQueue { capacity: self.capacity, deficit: 0, ..before };
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Returns the node of the oldest packet. Call only while there is one.
    #[inline]
    pub(crate) fn head(&self) -> u32 {
        self.head
    }

    /// Returns the length in bytes of the oldest packet. Call only while there is one.
    #[inline]
    pub(crate) fn head_bytes(&self) -> u32 {
        self.head_bytes
    }

    #[inline]
    pub(crate) fn push<T>(&mut self, slab: &mut PacketSlab<T>, now: Instant, order: u64, packet: FabricPacket<T>) {
        self.bytes += packet.bytes;
        self.peak = self.peak.max(self.bytes);
        self.packets += 1;
        let bytes = packet.bytes;
        let at = slab.insert(self.tail, now, order, packet);
        if self.packets == 1 {
            (self.head, self.head_bytes) = (at, bytes);
        } else {
            slab.node_mut(self.tail).next = at;
        }
        self.tail = at;
    }

    /// Appends packets and counts them as arrived, as long as the queue's own buffer has room. Returns the first
    /// packet that does not fit. `orders` is the number of packets that arrived before.
    #[inline]
    pub(crate) fn push_run<T>(
        &mut self,
        slab: &mut PacketSlab<T>,
        now: Instant,
        orders: &mut u64,
        packets: &mut impl Iterator<Item = FabricPacket<T>>,
    ) -> Option<FabricPacket<T>> {
        let room = self.capacity.saturating_sub(self.bytes);
        let (mut bytes, mut count, mut left) = (0, 0, None);
        let mut first_bytes = 0;
        let run = slab.insert_run(self.tail, now, *orders + 1, || {
            let packet = packets.next()?;
            if packet.bytes > room - bytes {
                left = Some(packet);
                return None;
            }
            if count == 0 {
                first_bytes = packet.bytes;
            }
            bytes += packet.bytes;
            count += 1;
            Some(packet)
        });
        if let Some((first, last)) = run {
            match self.packets {
                0 => (self.head, self.head_bytes) = (first, first_bytes),
                _ => slab.node_mut(self.tail).next = first,
            }
            self.tail = last;
            self.packets += count;
            self.bytes += bytes;
            self.peak = self.peak.max(self.bytes);
            self.arrived.packets += u64::from(count);
            self.arrived.bytes += u64::from(bytes);
            *orders += u64::from(count);
        }
        left.or_else(|| packets.next())
    }

    /// Removes the oldest packets, never the last one, as long as `may_go` accepts the length of the oldest and
    /// `send` wants more. Returns the bytes removed.
    #[inline]
    pub(crate) fn pop_run<T>(
        &mut self,
        slab: &mut PacketSlab<T>,
        mut may_go: impl FnMut(u32) -> bool,
        mut send: impl FnMut(DequeuedPacket<T>) -> bool,
    ) -> u32 {
        let mut bytes = 0;
        let (count, head) = slab.remove_run(self.head, self.packets.saturating_sub(1), |node| {
            if !may_go(node.bytes) {
                return NodeVisit::Stay;
            }
            let Some(item) = node.item.take() else { return NodeVisit::Stay };
            bytes += node.bytes;
            let packet = FabricPacket { bytes: node.bytes, class: node.class, number: node.number, item };
            if send(DequeuedPacket { arrived: node.arrived, packet }) { NodeVisit::Taken } else { NodeVisit::Last }
        });
        if count > 0 {
            (self.head, self.head_bytes) = (head, slab.node(head).bytes);
            self.packets -= count;
            self.bytes -= bytes;
        }
        bytes
    }

    /// Removes the oldest packet.
    #[inline]
    pub(crate) fn pop_head<T>(&mut self, slab: &mut PacketSlab<T>) -> Option<DequeuedPacket<T>> {
        let at = self.head;
        if self.packets == 0 {
            return None;
        }
        self.head = slab.node(at).next;
        if self.packets > 1 {
            self.head_bytes = slab.node(self.head).bytes;
        }
        self.take(slab, at)
    }

    /// Removes the youngest packet.
    pub(crate) fn pop_tail<T>(&mut self, slab: &mut PacketSlab<T>) -> Option<DequeuedPacket<T>> {
        let at = self.tail;
        if self.packets == 0 {
            return None;
        }
        self.tail = slab.node(at).prev;
        self.take(slab, at)
    }

    /// Removes the packet of a node that is already unlinked from the list.
    #[inline]
    fn take<T>(&mut self, slab: &mut PacketSlab<T>, at: u32) -> Option<DequeuedPacket<T>> {
        let node = slab.node(at);
        let (arrived, bytes, class, number) = (node.arrived, node.bytes, node.class, node.number);
        self.packets -= 1;
        self.bytes -= bytes;
        if self.packets == 0 {
            (self.head, self.tail) = (NONE, NONE);
        }
        let item = slab.remove(at)?;
        Some(DequeuedPacket { arrived, packet: FabricPacket { bytes, class, number, item } })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loses_either_end() {
        let mut slab = PacketSlab::new();
        let mut queue = CrosspointQueue::new(1000);
        for item in 0..5u32 {
            queue.push(&mut slab, Instant::ZERO, u64::from(item), FabricPacket::new(10 + item, item));
        }
        assert_eq!((queue.packets, queue.bytes), (5, 60));
        let mut take = |tail: bool| {
            let taken = if tail { queue.pop_tail(&mut slab) } else { queue.pop_head(&mut slab) };
            taken.map(|taken| taken.packet.item)
        };
        assert_eq!([take(true), take(false), take(true), take(false)], [Some(4), Some(0), Some(3), Some(1)]);
        assert_eq!([take(true), take(true), take(false)], [Some(2), None, None]);
        queue.push(&mut slab, Instant::ZERO, 9, FabricPacket::new(1, 9));
        assert_eq!((queue.head_bytes(), queue.bytes, queue.peak), (1, 1, 60));
    }
}
