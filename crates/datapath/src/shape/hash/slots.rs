//! Holds the memory that packets touch of each entry: the values of its tuple's pairs of words ([`super::pairs`]),
//! its counters and its verdict.
//!
//! All of these lie in one cache line, so that comparing an entry and counting at it wait for memory once.
//!
//! A slot holds three values, which is enough for most matches on IPv4 and Ethernet. Matches with more words keep two
//! values in the slot. The others (for example of IPv6 addresses) are in a list of their own for each number of
//! words.
use super::tuples::TupleId;
use crate::shape::{AtomicFlowCounter, EntryId};
use std::ops::Range;
use weir_memory::{HugePageArray, OutOfMemory, prefetch};
use zerocopy::FromZeros;

/// Number of words that a slot can hold.
pub(super) const NEAR: usize = 3;

/// Maximum number of places whose memory is released at once: some megabytes.
const MAX_TRIM: usize = 1 << 15;

/// Compared part of an entry: half a cache line.
#[derive(Debug, Clone, Copy, Default, FromZeros)]
#[repr(C, align(32))]
pub(super) struct EntrySlot {
    /// Values of the words. With more than [`NEAR`] words, the third is the index of the others in their list.
    pub(super) words: [u64; NEAR],
    /// Tuple of the entry; 0 if the place is empty.
    pub(super) tuple: u32,
    pub(super) priority: u16,
    /// Number of words.
    n_words: u8,
    /// 1 if an entry with the same match and a higher priority hides this entry, otherwise 0.
    hidden: u8,
}

/// Memory that packets touch of an entry: one cache line.
#[derive(Debug, Default, FromZeros)]
#[repr(C, align(64))]
pub(crate) struct EntryRow {
    slot: EntrySlot,
    /// Packets counted by the engine's own thread.
    pub(crate) count: AtomicFlowCounter,
    /// Outcome for matching packets, in the encoding of the table.
    pub(crate) verdict: u64,
}

const _: () = assert!(size_of::<EntryRow>() == 64);

/// Rows of all entries, and the words that do not fit in them.
#[derive(Debug, Default)]
pub(crate) struct EntryRows {
    rows: HugePageArray<EntryRow>,
    /// By number of words: lists of the values that do not fit in the slots.
    far: Vec<HugePageArray<u64>>,
}

impl EntrySlot {
    pub(super) const fn is_hidden(&self) -> bool {
        self.hidden != 0
    }
}

impl EntryRows {
    /// Returns the memory held, in bytes.
    pub(super) fn held(&self) -> usize {
        self.rows.held() + self.far.iter().map(HugePageArray::held).sum::<usize>()
    }

    /// Iterates over the slots in the places `from..from + most`, including empty ones.
    pub(super) fn range(&self, from: usize, most: usize) -> impl Iterator<Item = &EntrySlot> {
        let to = from.saturating_add(most).min(self.rows.len());
        self.rows.get(from..to).unwrap_or_default().iter().map(|row| &row.slot)
    }

    /// Returns the row of a place, if the place exists.
    #[inline(always)]
    pub(crate) fn row(&self, id: EntryId) -> Option<&EntryRow> {
        self.rows.get(id.index())
    }

    /// Returns the row of a place for modification, if the place exists.
    pub(crate) fn row_mut(&mut self, id: EntryId) -> Option<&mut EntryRow> {
        self.rows.get_mut(id.index())
    }

    /// Prefetches the row of a place.
    #[inline(always)]
    pub(crate) fn soon(&self, id: EntryId) {
        prefetch(&self.rows, id.index());
    }

    /// Makes sure that a row for this entry exists.
    ///
    /// # Errors
    /// Out of memory; other entries are unchanged.
    pub(crate) fn make_row(&mut self, id: EntryId) -> Result<(), OutOfMemory> {
        if self.rows.len() > id.index() {
            self.rows.use_again(id.index());
            return Ok(());
        }
        self.rows.lengthen(id.index() + 1)
    }

    /// Releases the memory of the places from `n_places` on, at most [`MAX_TRIM`] places per call. These places must
    /// have no entry, and no counters that are still to be read. Returns true if all of it is released.
    pub(crate) fn trim(&mut self, n_places: usize) -> bool {
        self.rows.truncate(n_places.max(self.rows.len().saturating_sub(MAX_TRIM)));
        self.rows.len() <= n_places
    }

    /// Releases what no present entry needs; to be called when no entry is left. The rows, with the counters of
    /// removed entries, stay.
    pub(super) fn clear(&mut self) {
        self.far = Vec::new();
    }

    /// Prefetches an entry's slot.
    #[inline(always)]
    pub(super) fn fetch(&self, id: u32) {
        prefetch(&self.rows, id as usize);
    }

    /// Prefetches the words of an entry that do not fit in its slot, given the number of words.
    #[inline(always)]
    pub(super) fn fetch_far(&self, id: u32, n_words: usize) {
        if let (Some(slot), Some(far)) = (self.get(id), self.far.get(n_words)) {
            let start = far_start(slot, n_words);
            prefetch(far, start);
            prefetch(far, start + stride(n_words) - 1);
        }
    }

    /// Returns the slot of a place, if the place exists.
    #[inline(always)]
    pub(super) fn get(&self, id: u32) -> Option<&EntrySlot> {
        self.rows.get(id as usize).map(|row| &row.slot)
    }

    /// Iterates over the values of the entry that has this slot.
    #[inline]
    pub(super) fn words<'a>(&'a self, slot: &'a EntrySlot) -> impl Iterator<Item = u64> + 'a {
        let n_words = usize::from(slot.n_words);
        let (near, far) = if n_words > NEAR { (NEAR - 1, self.far_words(slot, n_words)) } else { (n_words, &[][..]) };
        slot.words[..near].iter().chain(far).copied()
    }

    /// Returns one value of the entry that has this slot.
    #[inline]
    pub(super) fn word(&self, slot: &EntrySlot, at: usize) -> u64 {
        let n_words = usize::from(slot.n_words);
        if n_words > NEAR && at >= NEAR - 1 {
            return self.far_words(slot, n_words).get(at - (NEAR - 1)).copied().unwrap_or(0);
        }
        slot.words[at]
    }

    /// Returns the values that do not fit in the slot; empty if there is no such list entry.
    #[inline(always)]
    pub(super) fn far_words(&self, slot: &EntrySlot, n_words: usize) -> &[u64] {
        let start = far_start(slot, n_words);
        self.far
            .get(n_words)
            .and_then(|far| far.get(start..start.wrapping_add(n_words - (NEAR - 1))))
            .unwrap_or_default()
    }

    /// Reserves memory for [`EntryRows::occupy`] of this entry, with up to `n_words` words.
    pub(super) fn make_room(&mut self, id: EntryId, n_words: usize) -> Result<(), OutOfMemory> {
        self.make_row(id)?;
        if n_words > NEAR && self.far.len() <= n_words {
            self.far.resize_with(n_words + 1, HugePageArray::new);
        }
        (NEAR + 1..=n_words).try_for_each(|n_words| self.far[n_words].reserve(stride(n_words)))
    }

    /// Returns the number of places; all entries have ids below it.
    pub(super) fn n_places(&self) -> usize {
        self.rows.len()
    }

    /// Writes an entry's slot; [`EntryRows::make_room`] must have been called.
    pub(super) fn occupy(&mut self, id: EntryId, tuple: TupleId, priority: u16, words: &[u64]) {
        self.rows.lengthen(id.index() + 1).expect("make_room has seen to it");
        let n_words = words.len();
        let mut slot = EntrySlot { tuple: tuple.0, priority, ..EntrySlot::default() };
        slot.n_words = u8::try_from(n_words).expect("a flow key has fewer words");
        let near = if n_words > NEAR { NEAR - 1 } else { NEAR };
        slot.words.iter_mut().zip(words.iter().take(near)).for_each(|(place, word)| *place = *word);
        if n_words > NEAR {
            let far = &mut self.far[n_words];
            slot.words[NEAR - 1] = (far.len() / stride(n_words)) as u64;
            let rest = words[near..].iter().copied();
            rest.chain([id.0.into()]).for_each(|word| far.push(word).expect("make_room has seen to it"));
        }
        self.rows[id.index()].slot = slot;
    }

    /// Empties an entry's slot.
    pub(super) fn vacate(&mut self, id: EntryId) {
        let slot = std::mem::take(&mut self.rows[id.index()].slot);
        let n_words = usize::from(slot.n_words);
        if n_words > NEAR {
            self.give_far(slot.words[NEAR - 1], n_words);
        }
    }

    /// Releases some of the memory of places that have no entry. Returns true if all of it is released.
    pub(crate) fn forget(&mut self, places: Range<usize>) -> bool {
        self.rows.forget(places)
    }

    pub(super) fn set_hidden(&mut self, id: EntryId, is_hidden: bool) {
        self.rows[id.index()].slot.hidden = is_hidden.into();
    }

    /// Removes far words at `place`. The last ones of the list move there, and their entry's slot is updated.
    fn give_far(&mut self, place: u64, n_words: usize) {
        let (far, stride) = (&mut self.far[n_words], stride(n_words));
        let last = far.len() - stride;
        let at = usize::try_from(place).expect("a place in memory") * stride;
        far.copy_within(last.., at);
        let owner = usize::try_from(far[at + stride - 1]).expect("an entry id");
        far.truncate(last);
        if at != last {
            self.rows[owner].slot.words[NEAR - 1] = place;
        }
    }
}

/// Returns the list length of an entry with this many words: the words that do not fit in its slot, and its id.
const fn stride(n_words: usize) -> usize {
    n_words - (NEAR - 1) + 1
}

/// Returns the index in the list at which an entry's far words begin.
#[inline(always)]
fn far_start(slot: &EntrySlot, n_words: usize) -> usize {
    usize::try_from(slot.words[NEAR - 1]).unwrap_or(usize::MAX).wrapping_mul(stride(n_words))
}
