//! Blocks of a few items in one array: what the nodes of a trie own. A block that grows or shrinks beyond its size moves to one
//! that fits; what it leaves is used by the next of that size.

use weir_memory::{Array, OutOfMemory};
use zerocopy::FromZeros;

/// The sizes of blocks; at most a third of a block of four or more is unused.
const SIZES: [u8; 14] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128];

/// By a number of items: the smallest of `SIZES` that holds them.
const SIZE_OF: [u8; 129] = {
    let (mut table, mut size, mut items) = ([0; 129], 0, 1);
    while items < table.len() {
        if items > SIZES[size as usize] as usize {
            size += 1;
        }
        table[items] = size;
        items += 1;
    }
    table
};

/// See the module's page.
#[derive(Debug)]
pub(super) struct Pool<T> {
    items: Array<T>,
    /// By size: where blocks begin that nobody uses.
    free: [Vec<u32>; SIZES.len()],
    /// Items of these blocks.
    unused: usize,
}

impl<T: Copy + FromZeros> Pool<T> {
    /// A pool that begins with so many items, which belong to no block.
    pub(super) fn new(first: usize, item: T) -> Result<Pool<T>, OutOfMemory> {
        let mut items = Array::new();
        items.lengthen(first)?;
        items.fill(item);
        Ok(Pool { items, free: Default::default(), unused: 0 })
    }

    /// All of them in one: blocks are found by the index of their first item.
    #[inline(always)]
    pub(super) fn items(&self) -> &[T] {
        &self.items
    }

    /// The items, to change them where they are.
    pub(super) fn items_mut(&mut self) -> &mut [T] {
        &mut self.items
    }

    /// Puts `item` before the one at `at` of the block of `len` items at `base`; where the block is now. A block of no items is
    /// nowhere.
    pub(super) fn insert(&mut self, base: u32, len: u32, at: u32, item: T) -> Result<u32, OutOfMemory> {
        let (from, at, end) = (base as usize, at as usize, len as usize);
        if len > 0 && SIZE_OF[end] == SIZE_OF[end + 1] {
            self.items.copy_within(from + at..from + end, from + at + 1);
            self.items[from + at] = item;
            return Ok(base);
        }
        let moved = self.take(end + 1)?;
        let to = moved as usize;
        self.items.copy_within(from..from + at, to);
        self.items[to + at] = item;
        self.items.copy_within(from + at..from + end, to + at + 1);
        self.give(base, end);
        Ok(moved)
    }

    /// Removes the item at `at` of the block of `len` items at `base`; where the block is now.
    pub(super) fn remove(&mut self, base: u32, len: u32, at: u32) -> Result<u32, OutOfMemory> {
        let (from, at, end) = (base as usize, at as usize, len as usize);
        let moved = match end {
            0 | 1 => 0,
            _ if SIZE_OF[end] == SIZE_OF[end - 1] => base,
            _ => self.take(end - 1)?,
        };
        self.items.copy_within(from + at + 1..from + end, from + at);
        if moved != base {
            self.items.copy_within(from..from + end - 1, moved as usize);
            self.give(base, end);
        }
        Ok(moved)
    }

    /// The bytes that it occupies.
    pub(super) fn held(&self) -> usize {
        self.items.held() + self.free.iter().map(|free| free.capacity() * size_of::<u32>()).sum::<usize>()
    }

    /// The bytes that are in blocks which nobody uses.
    pub(super) fn unused(&self) -> usize {
        self.unused * size_of::<T>()
    }

    /// A block for `len` items, of whatever content.
    fn take(&mut self, len: usize) -> Result<u32, OutOfMemory> {
        let size = usize::from(SIZE_OF[len]);
        if let Some(base) = self.free[size].pop() {
            self.unused -= usize::from(SIZES[size]);
            return Ok(base);
        }
        let base = u32::try_from(self.items.len()).map_err(|_| OutOfMemory { bytes: usize::MAX })?;
        self.items.lengthen(self.items.len() + usize::from(SIZES[size]))?;
        Ok(base)
    }

    fn give(&mut self, base: u32, len: usize) {
        if len > 0 {
            let size = usize::from(SIZE_OF[len]);
            self.free[size].push(base);
            self.unused += usize::from(SIZES[size]);
        }
    }
}
