//! Stores queued packets: nodes of doubly linked lists, in chunks that never move.
use crate::{FabricPacket, MAX_PACKETS};
use weir_units::Instant;

/// Index that stands for no node.
pub(crate) const NONE: u32 = u32::MAX;
/// Number of nodes allocated at once, a power of two: a few dozen microseconds' worth of a fast line.
const CHUNK: usize = 1024;

/// A node: a queued packet, or a free node.
pub(crate) struct PacketNode<T> {
    pub(crate) next: u32,
    pub(crate) prev: u32,
    pub(crate) arrived: Instant,
    /// Order of arrival among all packets of its virtual switch and output.
    pub(crate) order: u64,
    pub(crate) number: u64,
    pub(crate) bytes: u32,
    pub(crate) class: u8,
    /// Item of the packet; `None` while the node is free.
    pub(crate) item: Option<T>,
}

/// Result of visiting a packet in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NodeVisit {
    /// The packet and those after it stay.
    Stay,
    /// The packet's item was taken, and no more are wanted.
    Last,
    /// The packet's item was taken, and the run continues.
    Taken,
}

/// All nodes of a fabric. The most recently freed nodes are reused first, while they are in the cache.
///
/// Free nodes are linked by `next`, as the nodes of queues are, so a run of packets allocates and frees nodes in
/// linked order.
pub(crate) struct PacketSlab<T> {
    chunks: Vec<Box<[PacketNode<T>; CHUNK]>>,
    free: u32,
    used: u32,
}

impl<T> PacketNode<T> {
    /// Stores a packet in the node; its `next` link is unchanged.
    #[inline]
    fn fill(&mut self, prev: u32, arrived: Instant, order: u64, packet: FabricPacket<T>) {
        let FabricPacket { bytes, class, number, item } = packet;
        (self.prev, self.arrived, self.order, self.number) = (prev, arrived, order, number);
        (self.bytes, self.class, self.item) = (bytes, class, Some(item));
    }
}

impl<T> PacketSlab<T> {
    pub(crate) fn new() -> PacketSlab<T> {
        PacketSlab { chunks: Vec::new(), free: NONE, used: 0 }
    }

    #[inline]
    pub(crate) fn node(&self, at: u32) -> &PacketNode<T> {
        let at = at as usize;
        &self.chunks[at / CHUNK][at % CHUNK]
    }

    #[inline]
    pub(crate) fn node_mut(&mut self, at: u32) -> &mut PacketNode<T> {
        let at = at as usize;
        &mut self.chunks[at / CHUNK][at % CHUNK]
    }

    /// Returns the number of packets stored.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// Returns true if no more packets can be stored, whatever buffers allow.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.used >= MAX_PACKETS
    }

    /// Stores a packet in a new node, linked to `prev` only; its `next` is undefined.
    #[inline]
    pub(crate) fn insert(&mut self, prev: u32, arrived: Instant, order: u64, packet: FabricPacket<T>) -> u32 {
        if self.free == NONE {
            self.grow();
        }
        let at = self.free;
        let node = self.node_mut(at);
        node.fill(prev, arrived, order, packet);
        self.free = node.next;
        self.used += 1;
        at
    }

    /// Stores packets in nodes linked one after the other, the first to `prev` only, until `packets` returns `None`
    /// or the slab is full. Their orders count from `order` on. Returns the first and the last node, whose `next` is
    /// undefined; `None` if there was no packet.
    #[inline]
    pub(crate) fn insert_run(
        &mut self,
        prev: u32,
        arrived: Instant,
        order: u64,
        mut packets: impl FnMut() -> Option<FabricPacket<T>>,
    ) -> Option<(u32, u32)> {
        let (mut first, mut last, mut order) = (NONE, prev, order);
        let mut packet = if self.is_full() { None } else { packets() };
        while packet.is_some() {
            if self.free == NONE {
                self.grow();
            }
            let mut at = self.free;
            match first {
                NONE => first = at,
                // The free list may have ended and continued with new nodes, so the link is set explicitly.
                _ => self.node_mut(last).next = at,
            }
            let place = at as usize / CHUNK;
            let (chunk, mut most) = (&mut *self.chunks[place], MAX_PACKETS - self.used);
            while let Some(its) = packet.take() {
                let node = &mut chunk[at as usize % CHUNK];
                node.fill(last, arrived, order, its);
                (last, at) = (at, node.next);
                order += 1;
                most -= 1;
                if most > 0 {
                    packet = packets();
                }
                if at as usize / CHUNK != place {
                    break;
                }
            }
            (self.free, self.used) = (at, MAX_PACKETS - most);
        }
        (first != NONE).then_some((first, last))
    }

    /// Frees a node and returns its item.
    #[inline]
    pub(crate) fn remove(&mut self, at: u32) -> Option<T> {
        self.used -= 1;
        let free = std::mem::replace(&mut self.free, at);
        let node = self.node_mut(at);
        node.next = free;
        node.item.take()
    }

    /// Frees at most `most` linked nodes from `first` on, as long as `take` takes their items. Returns their number
    /// and the node after them.
    #[inline]
    pub(crate) fn remove_run(
        &mut self,
        first: u32,
        most: u32,
        mut take: impl FnMut(&mut PacketNode<T>) -> NodeVisit,
    ) -> (u32, u32) {
        let (mut count, mut last, mut at) = (0, NONE, first);
        let mut wants_more = true;
        while wants_more && count < most {
            let place = at as usize / CHUNK;
            let chunk = &mut *self.chunks[place];
            while count < most && at as usize / CHUNK == place {
                let node = &mut chunk[at as usize % CHUNK];
                let step = take(node);
                wants_more = step == NodeVisit::Taken;
                if step != NodeVisit::Stay {
                    (last, at) = (at, node.next);
                    count += 1;
                }
                if !wants_more {
                    break;
                }
            }
        }
        if count > 0 {
            self.node_mut(last).next = self.free;
            self.free = first;
            self.used -= count;
        }
        (count, at)
    }

    #[cold]
    fn grow(&mut self) {
        #[expect(clippy::cast_possible_truncation, reason = "MAX_PACKETS is far below")]
        let number = |at: usize| (self.chunks.len() * CHUNK + at) as u32;
        let empty = |at: usize| {
            let next = if at + 1 == CHUNK { NONE } else { number(at + 1) };
            PacketNode { next, prev: NONE, arrived: Instant::ZERO, order: 0, number: 0, bytes: 0, class: 0, item: None }
        };
        let (chunk, first) = (Box::new(std::array::from_fn(empty)), number(0));
        self.chunks.push(chunk);
        self.free = first;
    }
}
