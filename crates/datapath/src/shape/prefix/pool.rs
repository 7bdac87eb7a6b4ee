//! Allocates blocks of a few items in one array: the leaves and children of a trie's nodes. A block that grows or
//! shrinks beyond its size moves to one that fits. The block it leaves is reused for the next one of that size.

use weir_memory::{HugePageArray, OutOfMemory};
use zerocopy::FromZeros;

/// Sizes of blocks in items. At most a third of a block of four or more items is unused.
const SIZES: [u8; 14] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128];

/// By number of items: the index of the smallest of `SIZES` that holds them.
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

/// Blocks of items in one array: see the [module](self).
#[derive(Debug)]
pub(super) struct BlockPool<T> {
    items: HugePageArray<T>,
    /// By size: the indices of the first items of unused blocks.
    free: [Vec<u32>; SIZES.len()],
    /// Number of items in unused blocks.
    unused: usize,
}

impl<T: Copy + FromZeros> BlockPool<T> {
    /// Creates a pool that begins with `first` copies of `item`, which belong to no block.
    pub(super) fn new(first: usize, item: T) -> Result<BlockPool<T>, OutOfMemory> {
        let mut items = HugePageArray::new();
        items.lengthen(first)?;
        items.fill(item);
        Ok(BlockPool { items, free: Default::default(), unused: 0 })
    }

    /// Returns all items. A block is identified by the index of its first item.
    #[inline(always)]
    pub(super) fn items(&self) -> &[T] {
        &self.items
    }

    /// Returns all items for modification in place.
    pub(super) fn items_mut(&mut self) -> &mut [T] {
        &mut self.items
    }

    /// Inserts `item` at index `at` of the block of `len` items at `base`. Returns the block's new base. The base of
    /// an empty block is not used.
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

    /// Removes the item at index `at` of the block of `len` items at `base`. Returns the block's new base.
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

    /// Returns the memory held, in bytes.
    pub(super) fn held(&self) -> usize {
        self.items.held() + self.free.iter().map(|free| free.capacity() * size_of::<u32>()).sum::<usize>()
    }

    /// Returns the size of all unused blocks, in bytes.
    pub(super) fn unused(&self) -> usize {
        self.unused * size_of::<T>()
    }

    /// Allocates a block for `len` items with unspecified content.
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
