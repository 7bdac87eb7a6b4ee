//! Where queued packets are kept: nodes of doubly linked lists, in chunks that are never moved.
use crate::{MAX_PACKETS, Packet};
use weir_units::Instant;

/// No node.
pub(crate) const NONE: u32 = u32::MAX;
/// Nodes that are made at a time, a power of two: a few dozen microseconds' worth of a fast line.
const CHUNK: usize = 1024;

/// A queued packet.
pub(crate) struct Node<T> {
    pub(crate) next: u32,
    pub(crate) prev: u32,
    pub(crate) arrived: Instant,
    /// Its place among all packets of its virtual switch and output, by arrival.
    pub(crate) order: u64,
    pub(crate) number: u64,
    pub(crate) bytes: u32,
    pub(crate) class: u8,
    /// None while the node is free.
    pub(crate) item: Option<T>,
}

/// All nodes of a fabric. Nodes freed last are used first, while they are in the cache.
pub(crate) struct Slab<T> {
    chunks: Vec<Box<[Node<T>; CHUNK]>>,
    free: u32,
    used: u32,
}

impl<T> Slab<T> {
    pub(crate) fn new() -> Slab<T> {
        Slab { chunks: Vec::new(), free: NONE, used: 0 }
    }

    #[inline]
    pub(crate) fn node(&self, at: u32) -> &Node<T> {
        let at = at as usize;
        &self.chunks[at / CHUNK][at % CHUNK]
    }

    #[inline]
    pub(crate) fn node_mut(&mut self, at: u32) -> &mut Node<T> {
        let at = at as usize;
        &mut self.chunks[at / CHUNK][at % CHUNK]
    }

    /// Packets in it.
    pub(crate) fn used(&self) -> u32 {
        self.used
    }

    /// Whether there is no room for another, whatever buffers say.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.used >= MAX_PACKETS
    }

    /// Puts a packet into a node of its own, linked to `prev` only.
    #[inline]
    pub(crate) fn insert(&mut self, prev: u32, arrived: Instant, order: u64, packet: Packet<T>) -> u32 {
        if self.free == NONE {
            self.grow();
        }
        let at = self.free;
        let node = self.node_mut(at);
        let free = node.next;
        let Packet { bytes, class, number, item } = packet;
        *node = Node { next: NONE, prev, arrived, order, number, bytes, class, item: Some(item) };
        self.free = free;
        self.used += 1;
        at
    }

    /// Frees a node and returns what was in it.
    #[inline]
    pub(crate) fn remove(&mut self, at: u32) -> Option<T> {
        let free = self.free;
        let node = self.node_mut(at);
        node.next = free;
        let item = node.item.take();
        self.free = at;
        self.used -= 1;
        item
    }

    #[cold]
    fn grow(&mut self) {
        #[expect(clippy::cast_possible_truncation, reason = "MAX_PACKETS is far below")]
        let number = |at: usize| (self.chunks.len() * CHUNK + at) as u32;
        let empty = |at: usize| {
            let next = if at + 1 == CHUNK { NONE } else { number(at + 1) };
            Node { next, prev: NONE, arrived: Instant::ZERO, order: 0, number: 0, bytes: 0, class: 0, item: None }
        };
        let (chunk, first) = (Box::new(std::array::from_fn(empty)), number(0));
        self.chunks.push(chunk);
        self.free = first;
    }
}
