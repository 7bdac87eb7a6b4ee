//! What entries are compared with: by entry, the values of its tuple's pairs of words ([`super::pairs`]).
//!
//! Beside it, in the same cache line, lie the entry's counters and what becomes of packets that meet it: so looking at an entry and counting
//! at it wait for memory once.
//!
//! A slot has three, which is enough for most of IPv4 and Ethernet. Matches of more have two there, and the others (IPv6 addresses,
//! say) in a list for their number of words.
use super::tuples::TupleId;
use crate::shape::{Count, EntryId};
use std::ops::Range;
use weir_memory::{Array, OutOfMemory, prefetch};
use zerocopy::FromZeros;

/// Words that a slot has room for.
pub(super) const NEAR: usize = 3;

/// Places whose memory is given back at once: some megabytes.
const MAX_TRIM: usize = 1 << 15;

/// One entry's: half a cache line.
#[derive(Debug, Clone, Copy, Default, FromZeros)]
#[repr(C, align(32))]
pub(super) struct Slot {
    /// Beyond [`NEAR`] words the third says where the others are.
    pub(super) words: [u64; NEAR],
    /// 0 without an entry.
    pub(super) tuple: u32,
    pub(super) priority: u16,
    /// Number of words.
    n_words: u8,
    /// 1 for an entry that another of the same match and a higher priority hides.
    hidden: u8,
}

/// What packets touch of an entry.
#[derive(Debug, Default, FromZeros)]
#[repr(C, align(64))]
pub(crate) struct Row {
    slot: Slot,
    /// What the engine's own thread counted.
    pub(crate) count: Count,
    /// What becomes of packets, as the table puts it.
    pub(crate) verdict: u64,
}

const _: () = assert!(size_of::<Row>() == 64);

/// See the module's page.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    rows: Array<Row>,
    /// By number of words: what their slots have no room for.
    far: Vec<Array<u64>>,
}

impl Slot {
    pub(super) const fn is_hidden(&self) -> bool {
        self.hidden != 0
    }
}

impl Slots {
    /// Bytes of memory that it has.
    pub(super) fn held(&self) -> usize {
        self.rows.held() + self.far.iter().map(Array::held).sum::<usize>()
    }

    /// The slots in the places from `from` on, `most` at most, empty ones among them.
    pub(super) fn range(&self, from: usize, most: usize) -> impl Iterator<Item = &Slot> {
        let to = from.saturating_add(most).min(self.rows.len());
        self.rows.get(from..to).unwrap_or_default().iter().map(|row| &row.slot)
    }

    /// What packets touch of the entry at a place, if there may be one.
    #[inline(always)]
    pub(crate) fn row(&self, id: EntryId) -> Option<&Row> {
        self.rows.get(id.index())
    }

    /// The same, to be changed.
    pub(crate) fn row_mut(&mut self, id: EntryId) -> Option<&mut Row> {
        self.rows.get_mut(id.index())
    }

    /// The same soon.
    #[inline(always)]
    pub(crate) fn soon(&self, id: EntryId) {
        prefetch(&self.rows, id.index());
    }

    /// Makes sure that there is a row for an entry.
    ///
    /// # Errors
    /// There is no memory; nothing has changed for other entries.
    pub(crate) fn make_row(&mut self, id: EntryId) -> Result<(), OutOfMemory> {
        if self.rows.len() > id.index() {
            self.rows.use_again(id.index());
            return Ok(());
        }
        self.rows.lengthen(id.index() + 1)
    }

    /// Gives memory of places from this one on back, where no entry is, nor one whose counters are still asked for: not all at once if it is much. Whether that is all.
    pub(crate) fn trim(&mut self, n_places: usize) -> bool {
        self.rows.truncate(n_places.max(self.rows.len().saturating_sub(MAX_TRIM)));
        self.rows.len() <= n_places
    }

    /// States that no entry is in any more; what the last ones counted stays.
    pub(super) fn clear(&mut self) {
        self.far = Vec::new();
    }

    /// Begins to fetch an entry's slot.
    #[inline(always)]
    pub(super) fn fetch(&self, id: u32) {
        prefetch(&self.rows, id as usize);
    }

    /// Begins to fetch what an entry of this many words has beyond its slot.
    #[inline(always)]
    pub(super) fn fetch_far(&self, id: u32, n_words: usize) {
        if let (Some(slot), Some(far)) = (self.get(id), self.far.get(n_words)) {
            let start = far_start(slot, n_words);
            prefetch(far, start);
            prefetch(far, start + stride(n_words) - 1);
        }
    }

    /// An entry's slot, if there is one.
    #[inline(always)]
    pub(super) fn get(&self, id: u32) -> Option<&Slot> {
        self.rows.get(id as usize).map(|row| &row.slot)
    }

    /// The values of an entry, by its slot.
    #[inline]
    pub(super) fn words<'a>(&'a self, slot: &'a Slot) -> impl Iterator<Item = u64> + 'a {
        let n_words = usize::from(slot.n_words);
        let (near, far) = if n_words > NEAR { (NEAR - 1, self.far_words(slot, n_words)) } else { (n_words, &[][..]) };
        slot.words[..near].iter().chain(far).copied()
    }

    /// One of them.
    #[inline]
    pub(super) fn word(&self, slot: &Slot, at: usize) -> u64 {
        let n_words = usize::from(slot.n_words);
        if n_words > NEAR && at >= NEAR - 1 {
            return self.far_words(slot, n_words).get(at - (NEAR - 1)).copied().unwrap_or(0);
        }
        slot.words[at]
    }

    /// Those of them that the slot has no room for.
    #[inline(always)]
    pub(super) fn far_words(&self, slot: &Slot, n_words: usize) -> &[u64] {
        let start = far_start(slot, n_words);
        self.far
            .get(n_words)
            .and_then(|far| far.get(start..start.wrapping_add(n_words - (NEAR - 1))))
            .unwrap_or_default()
    }

    /// Makes sure that [`Slots::occupy`] has memory for this entry, which has at most so many words.
    pub(super) fn make_room(&mut self, id: EntryId, n_words: usize) -> Result<(), OutOfMemory> {
        self.make_row(id)?;
        if n_words > NEAR && self.far.len() <= n_words {
            self.far.resize_with(n_words + 1, Array::new);
        }
        (NEAR + 1..=n_words).try_for_each(|n_words| self.far[n_words].reserve(stride(n_words)))
    }

    /// Places that entries may be in.
    pub(super) fn n_places(&self) -> usize {
        self.rows.len()
    }

    /// Writes an entry's slot; there is room.
    pub(super) fn occupy(&mut self, id: EntryId, tuple: TupleId, priority: u16, words: &[u64]) {
        self.rows.lengthen(id.index() + 1).expect("make_room has seen to it");
        let n_words = words.len();
        let mut slot = Slot { tuple: tuple.0, priority, ..Slot::default() };
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

    /// Gives memory of places back where no entry is, some of it. Whether that is all.
    pub(crate) fn forget(&mut self, places: Range<usize>) -> bool {
        self.rows.forget(places)
    }

    pub(super) fn set_hidden(&mut self, id: EntryId, is_hidden: bool) {
        self.rows[id.index()].slot.hidden = is_hidden.into();
    }

    /// Fills the place of far words with the last ones.
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

/// Words that an entry of this many has in its list: those its slot has no room for, and its id.
const fn stride(n_words: usize) -> usize {
    n_words - (NEAR - 1) + 1
}

/// Where an entry's far words begin.
#[inline(always)]
fn far_start(slot: &Slot, n_words: usize) -> usize {
    usize::try_from(slot.words[NEAR - 1]).unwrap_or(usize::MAX).wrapping_mul(stride(n_words))
}
