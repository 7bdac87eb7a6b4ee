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

/// What becomes of a packet that a run has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// It stays, and those behind it.
    Stay,
    /// Its item was taken, and no more is wanted.
    Last,
    /// Its item was taken.
    Taken,
}

/// All nodes of a fabric. Nodes freed last are used first, while they are in the cache.
///
/// Free nodes are linked by `next`, as queues are: a run of packets takes and gives back nodes as they are linked.
pub(crate) struct Slab<T> {
    chunks: Vec<Box<[Node<T>; CHUNK]>>,
    free: u32,
    used: u32,
}

impl<T> Node<T> {
    /// Puts a packet into it; what it is linked to behind it stays.
    #[inline]
    fn fill(&mut self, prev: u32, arrived: Instant, order: u64, packet: Packet<T>) {
        let Packet { bytes, class, number, item } = packet;
        (self.prev, self.arrived, self.order, self.number) = (prev, arrived, order, number);
        (self.bytes, self.class, self.item) = (bytes, class, Some(item));
    }
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

    /// Puts a packet into a node of its own, linked to `prev` only; its `next` means nothing.
    #[inline]
    pub(crate) fn insert(&mut self, prev: u32, arrived: Instant, order: u64, packet: Packet<T>) -> u32 {
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

    /// Puts packets into nodes linked one behind the other, the first to `prev` only, as long as there are any and room for them, numbered
    /// from `order` on. The first node and the last, whose `next` means nothing; none: no packet came.
    #[inline]
    pub(crate) fn insert_run(
        &mut self,
        prev: u32,
        arrived: Instant,
        order: u64,
        mut packets: impl FnMut() -> Option<Packet<T>>,
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
                // The list of free nodes may have come to its end, and gone on with new ones.
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

    /// Frees a node and returns what was in it.
    #[inline]
    pub(crate) fn remove(&mut self, at: u32) -> Option<T> {
        self.used -= 1;
        let free = std::mem::replace(&mut self.free, at);
        let node = self.node_mut(at);
        node.next = free;
        node.item.take()
    }

    /// Frees nodes linked one behind the other from the first on, `most` of them at most, as long as `take` takes what is in them. How many,
    /// and the node behind them.
    #[inline]
    pub(crate) fn remove_run(
        &mut self,
        first: u32,
        most: u32,
        mut take: impl FnMut(&mut Node<T>) -> Step,
    ) -> (u32, u32) {
        let (mut count, mut last, mut at) = (0, NONE, first);
        let mut wants_more = true;
        while wants_more && count < most {
            let place = at as usize / CHUNK;
            let chunk = &mut *self.chunks[place];
            while count < most && at as usize / CHUNK == place {
                let node = &mut chunk[at as usize % CHUNK];
                let step = take(node);
                wants_more = step == Step::Taken;
                if step != Step::Stay {
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
            Node { next, prev: NONE, arrived: Instant::ZERO, order: 0, number: 0, bytes: 0, class: 0, item: None }
        };
        let (chunk, first) = (Box::new(std::array::from_fn(empty)), number(0));
        self.chunks.push(chunk);
        self.free = first;
    }
}
