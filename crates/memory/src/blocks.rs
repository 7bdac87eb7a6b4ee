//! Stores large items that are added and removed one by one and never move, such as the pieces of a table. The memory
//! of removed items returns to the operating system, whereas a heap returns only memory at its end.
use crate::region::{HUGE, ReservedRegion};
use std::fmt;
use std::marker::PhantomData;
use std::ptr::NonNull;

/// Address space reserved at a time, in bytes. Only the used part has pages.
const EXTENT: usize = 256 << 20;

/// Maximum number of blocks that one call releases: some microseconds each, more if other processors must flush their
/// TLBs.
const MAX_GIVEN: usize = 1;

/// A sequence of items (pieces), some of which may be absent. The first is on the heap, so that a sequence of one item
/// needs no address space of its own. The others are in reserved address space, on huge pages if Linux has them. If no
/// address space can be reserved, they are on the heap as well.
///
/// The memory of a removed item is kept until [`BlockArena::give_back`] is called, so that removing does not wait for
/// the system.
pub struct BlockArena<P> {
    pieces: Vec<Option<BlockPointer<P>>>,
    extents: Vec<Option<ArenaExtent>>,
    /// Blocks that had pages but no pieces when they were listed: number of the extent and of the block.
    /// [`BlockArena::give_back`] removes those that are in use again.
    emptied: Vec<(usize, usize)>,
    /// Number of present pieces that are in extents.
    n_mapped: usize,
    owned: PhantomData<P>,
}

struct BlockPointer<P> {
    at: NonNull<P>,
    is_mapped: bool,
}

/// Address space for many pieces, and the use of its blocks of [`HUGE`] bytes.
struct ArenaExtent {
    region: ReservedRegion,
    blocks: Vec<HugePageUse>,
}

#[derive(Clone, Copy, Default)]
struct HugePageUse {
    /// Number of pieces that lie in the block, wholly or partly.
    used: usize,
    /// True if the block has pages or is about to get them.
    is_backed: bool,
    /// True if the block is in the list `BlockArena::emptied`.
    is_listed: bool,
}

// SAFETY: the pieces belong to the sequence alone.
unsafe impl<P: Send> Send for BlockArena<P> {}
// SAFETY: `&BlockArena<P>` gives `&P` only.
unsafe impl<P: Sync> Sync for BlockArena<P> {}

impl<P> Default for BlockArena<P> {
    fn default() -> BlockArena<P> {
        const { assert!(size_of::<P>() != 0 && size_of::<P>() <= HUGE && align_of::<P>() <= 4096) };
        BlockArena { pieces: Vec::new(), extents: Vec::new(), emptied: Vec::new(), n_mapped: 0, owned: PhantomData }
    }
}

impl<P> BlockArena<P> {
    /// Number of pieces in an extent.
    const EACH: usize = EXTENT / size_of::<P>();

    /// Returns the length of the sequence, including absent pieces.
    pub fn len(&self) -> usize {
        self.pieces.len()
    }

    /// Returns true if the length of the sequence is 0.
    pub fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Returns the piece at `index`, if it is present.
    #[inline]
    pub fn get(&self, index: usize) -> Option<&P> {
        let piece = self.pieces.get(index)?.as_ref()?;
        // SAFETY: a piece in `pieces` exists and belongs to the sequence; `&self` keeps it.
        Some(unsafe { piece.at.as_ref() })
    }

    /// Returns the piece at `index` for modification, if it is present.
    #[inline]
    pub fn get_mut(&mut self, index: usize) -> Option<&mut P> {
        let piece = self.pieces.get_mut(index)?.as_mut()?;
        // SAFETY: as in `get`; `&mut self` is the only access.
        Some(unsafe { piece.at.as_mut() })
    }

    /// Returns the size in bytes of the memory that the sequence holds: pieces on the heap, and the huge pages of the
    /// other pieces.
    pub fn held(&self) -> usize {
        let backed = self.extents.iter().flatten().flat_map(|extent| &extent.blocks).filter(|block| block.is_backed);
        let on_heap = self.pieces.iter().flatten().filter(|piece| !piece.is_mapped);
        backed.count() * HUGE + on_heap.count() * size_of::<P>()
    }

    /// Stores a piece at `index`, and drops the piece that was there. If `index` is beyond the end, the sequence is
    /// lengthened. Returns the stored piece.
    pub fn put(&mut self, index: usize, piece: P) -> &mut P {
        self.remove(index);
        if self.pieces.len() <= index {
            self.pieces.resize_with(index + 1, || None);
        }
        let place = self.room(index).map_or_else(
            || BlockPointer { at: NonNull::from(Box::leak(Box::<P>::new_uninit())).cast(), is_mapped: false },
            |at| BlockPointer { at, is_mapped: true },
        );
        let mut at = place.at;
        self.n_mapped += usize::from(place.is_mapped);
        self.pieces[index] = Some(place);
        // SAFETY: there is room for a `P` without another user: from a box, or in an extent at the place of this
        // index.
        unsafe {
            at.write(piece);
            at.as_mut()
        }
    }

    /// Returns uninitialised memory for the piece at `index` in an extent. Returns `None` for the first piece, or if
    /// no address space can be reserved.
    fn room(&mut self, index: usize) -> Option<NonNull<P>> {
        let (number, from) = Self::place(index)?;
        if self.extents.len() <= number {
            self.extents.resize_with(number + 1, || None);
        }
        if self.extents[number].is_none() {
            let region = ReservedRegion::reserve(EXTENT).ok()?;
            self.extents[number] = Some(ArenaExtent { region, blocks: vec![HugePageUse::default(); EXTENT / HUGE] });
        }
        let extent = self.extents[number].as_mut()?;
        let ahead = extent.occupy(from, from + size_of::<P>());
        self.emptied.extend(ahead.map(|block| (number, block)));
        // SAFETY: the place is in the region.
        Some(unsafe { extent.region.start().add(from) }.cast())
    }

    /// Returns the extent number and the offset in bytes of the piece at `index`; `None` for the first piece, which is
    /// on the heap.
    fn place(index: usize) -> Option<(usize, usize)> {
        let index = index.checked_sub(1)?;
        Some((index / Self::EACH, index % Self::EACH * size_of::<P>()))
    }

    /// Drops the piece at `index`. Returns false if it was absent.
    pub fn remove(&mut self, index: usize) -> bool {
        let Some(piece) = self.pieces.get_mut(index).and_then(Option::take) else { return false };
        if !piece.is_mapped {
            // SAFETY: the piece was made by a box, and nothing refers to it any more.
            drop(unsafe { Box::from_raw(piece.at.as_ptr()) });
            return true;
        }
        self.n_mapped -= 1;
        if let Some((number, from)) = Self::place(index)
            && let Some(extent) = &mut self.extents[number]
        {
            extent.vacate(from, from + size_of::<P>(), |block| self.emptied.push((number, block)));
        }
        // SAFETY: the piece was written when it was stored, and nothing refers to it any more.
        unsafe { piece.at.drop_in_place() };
        true
    }

    /// Shortens the sequence by one if its last piece is absent. Returns true if it did.
    pub fn forget_last(&mut self) -> bool {
        let is_absent = matches!(self.pieces.last(), Some(None));
        if is_absent {
            self.pieces.pop();
        }
        is_absent
    }

    /// Releases memory of removed pieces, a bounded amount per call. Returns true if nothing is left to release. While
    /// there are pieces in extents, one empty block is kept for new pieces.
    pub fn give_back(&mut self) -> bool {
        let kept = usize::from(self.n_mapped != 0);
        if self.emptied.len() > kept {
            let extents = &mut self.extents;
            self.emptied
                .retain(|(number, block)| extents[*number].as_mut().is_some_and(|one| one.is_still_empty(*block)));
            // Blocks in front are used first.
            self.emptied.sort_unstable();
        }
        for _ in 0..MAX_GIVEN {
            if self.emptied.len() <= kept {
                break;
            }
            let Some((number, block)) = self.emptied.pop() else { break };
            if let Some(extent) = &mut self.extents[number] {
                extent.give_back(block);
            }
        }
        while matches!(self.extents.last(), Some(extent) if extent.as_ref().is_none_or(ArenaExtent::is_unused)) {
            self.extents.pop();
        }
        self.emptied.len() <= kept
    }
}

impl ArenaExtent {
    /// Counts a piece in the bytes `from..to` of the extent. If they end near the next block, also prepares that block,
    /// which then has pages but no piece. Returns its number if the caller must list it in `BlockArena::emptied`.
    fn occupy(&mut self, from: usize, to: usize) -> Option<usize> {
        for block in &mut self.blocks[from / HUGE..=(to - 1) / HUGE] {
            block.used += 1;
            block.is_backed = true;
        }
        let next = (to + HUGE / 4) / HUGE;
        let block = self.blocks.get_mut(next).filter(|block| !block.is_backed)?;
        block.is_backed = true;
        self.region.prepare(next * HUGE, HUGE);
        (!std::mem::replace(&mut block.is_listed, true)).then_some(next)
    }

    /// Removes the piece in the bytes `from..to` from the counts. Calls `emptied` for each block that has no piece
    /// left and is not listed yet.
    fn vacate(&mut self, from: usize, to: usize, mut emptied: impl FnMut(usize)) {
        for number in from / HUGE..=(to - 1) / HUGE {
            let block = &mut self.blocks[number];
            block.used -= 1;
            if block.used == 0 && !std::mem::replace(&mut block.is_listed, true) {
                emptied(number);
            }
        }
    }

    /// Returns true if a listed block still has no pieces; otherwise marks it as not listed.
    fn is_still_empty(&mut self, number: usize) -> bool {
        let block = &mut self.blocks[number];
        block.is_listed = block.used == 0;
        block.is_listed
    }

    /// Releases the pages of an empty block.
    fn give_back(&mut self, number: usize) {
        let block = &mut self.blocks[number];
        block.is_listed = false;
        if self.region.give_back(number * HUGE, HUGE).is_ok() {
            block.is_backed = false;
        }
    }

    fn is_unused(&self) -> bool {
        self.blocks.iter().all(|block| block.used == 0 && !block.is_listed)
    }
}

impl<P> Drop for BlockArena<P> {
    fn drop(&mut self) {
        (0..self.pieces.len()).for_each(|index| {
            self.remove(index);
        });
    }
}

impl<P> fmt::Debug for BlockArena<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pieces").field("len", &self.len()).field("held", &self.held()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    /// An item of 20 KB with a field that must be dropped.
    struct Big {
        number: Arc<usize>,
        bytes: [u8; 20_000],
    }

    fn big(number: &Arc<usize>) -> Big {
        Big { number: number.clone(), bytes: [number.to_le_bytes()[0]; 20_000] }
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn memory_goes_back_while_some_stay_and_when_all_are_gone() {
        let (mut pieces, number) = (BlockArena::default(), Arc::new(7));
        for index in 0..1000 {
            pieces.put(index, big(&number));
        }
        assert!((20_000_000..30_000_000).contains(&pieces.held()), "{} bytes", pieces.held());
        assert_eq!(Arc::strong_count(&number), 1001);
        (100..900).for_each(|index| assert!(pieces.remove(index)));
        while !pieces.give_back() {}
        assert!(pieces.held() <= 12_000_000, "{} bytes for a fifth", pieces.held());
        assert!([0, 99, 900, 999].iter().all(|index| pieces.get(*index).is_some_and(|one| one.bytes == [7; 20_000])));
        assert!((pieces.get(500).is_none(), pieces.len(), Arc::strong_count(&number)) == (true, 1000, 201));
        (0..1000).for_each(|index| assert_eq!(pieces.remove(index), !(100..900).contains(&index)));
        while pieces.forget_last() {}
        while !pieces.give_back() {}
        assert_eq!((pieces.held(), pieces.len(), pieces.extents.len()), (0, 0, 0));
        pieces.put(3, big(&number));
        assert_eq!((Arc::strong_count(&number), pieces.len()), (2, 4));
        drop(pieces);
        assert_eq!(Arc::strong_count(&number), 1);
    }

    #[test]
    #[cfg_attr(miri, ignore = "maps memory")]
    fn one_that_comes_and_goes_costs_no_pages() {
        let (mut pieces, number) = (BlockArena::default(), Arc::new(1));
        (0..200).for_each(|index| _ = pieces.put(index, big(&number)));
        let held = pieces.held();
        for _ in 0..3 {
            (110..200).for_each(|index| _ = pieces.remove(index));
            assert!(pieces.give_back() && pieces.held() >= held - HUGE, "a block is kept");
            (110..200).for_each(|index| _ = pieces.put(index, big(&number)));
        }
        assert!(pieces.held() <= held);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 32 }, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_is_like_a_map(changes in proptest::collection::vec((0..6_u8, 0..if cfg!(miri) { 8_usize } else { 500 }), 1..300)) {
            let (mut pieces, mut map) = (BlockArena::default(), BTreeMap::new());
            for (kind, index) in changes {
                match kind {
                    0..3 => {
                        let number = Arc::new(index);
                        pieces.put(index, big(&number));
                        map.insert(index, number);
                    }
                    3 => _ = pieces.give_back(),
                    4 => _ = pieces.forget_last(),
                    _ => prop_assert_eq!(pieces.remove(index), map.remove(&index).is_some()),
                }
                let both = (pieces.get(index).map(|one| *one.number), map.get(&index).map(|number| **number));
                prop_assert_eq!(both.0, both.1);
            }
            for (index, number) in &map {
                let there = pieces.get_mut(*index).is_some_and(|one| one.bytes == [number.to_le_bytes()[0]; 20_000]);
                prop_assert!(there && Arc::strong_count(number) == 2);
            }
            drop(pieces);
            prop_assert!(map.values().all(|number| Arc::strong_count(number) == 1));
        }
    }
}
