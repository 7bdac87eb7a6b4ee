//! What entries are compared with: by entry, the values of its tuple's pairs of words ([`super::pairs`]).
//!
//! A slot has three, which is enough for most of IPv4 and Ethernet. Matches of more have two there, and the others (IPv6 addresses,
//! say) in a list for their number of words.
use super::tuples::TupleId;
use crate::shape::EntryId;
use std::ops::Range;
use weir_memory::{Array, OutOfMemory, prefetch};
use zerocopy::FromZeros;

/// Words that a slot has room for.
pub(super) const NEAR: usize = 3;

/// How many places at the end are looked at when one is emptied, to give up those that are empty.
const MAX_TRIM: usize = 8;

/// The same when memory is given back that thousands of entries left.
const MAX_GIVEN: usize = 2048;

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

const _: () = assert!(size_of::<Slot>() == 32);

/// See the module's page.
#[derive(Debug, Default)]
pub(super) struct Slots {
    slots: Array<Slot>,
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
        self.slots.held() + self.far.iter().map(Array::held).sum::<usize>()
    }

    /// The slots in the places from `from` on, `most` at most, empty ones among them.
    pub(super) fn range(&self, from: usize, most: usize) -> &[Slot] {
        let to = from.saturating_add(most).min(self.slots.len());
        self.slots.get(from..to).unwrap_or_default()
    }

    /// Begins to fetch an entry's slot.
    #[inline(always)]
    pub(super) fn fetch(&self, id: u32) {
        prefetch(&self.slots, id as usize);
    }

    /// Begins to fetch what an entry of this many words has beyond its slot.
    #[inline(always)]
    pub(super) fn fetch_far(&self, id: u32, n_words: usize) {
        if let (Some(slot), Some(far)) = (self.slots.get(id as usize), self.far.get(n_words)) {
            let start = far_start(slot, n_words);
            prefetch(far, start);
            prefetch(far, start + stride(n_words) - 1);
        }
    }

    /// An entry's slot, if there is one.
    #[inline(always)]
    pub(super) fn get(&self, id: u32) -> Option<&Slot> {
        self.slots.get(id as usize)
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
        self.slots.reserve((id.index() + 1).saturating_sub(self.slots.len()))?;
        self.slots.use_again(id.index());
        if n_words > NEAR && self.far.len() <= n_words {
            self.far.resize_with(n_words + 1, Array::new);
        }
        (NEAR + 1..=n_words).try_for_each(|n_words| self.far[n_words].reserve(stride(n_words)))
    }

    /// Places that entries may be in.
    pub(super) fn n_places(&self) -> usize {
        self.slots.len()
    }

    /// Writes an entry's slot; there is room.
    pub(super) fn occupy(&mut self, id: EntryId, tuple: TupleId, priority: u16, words: &[u64]) {
        self.slots.lengthen(id.index() + 1).expect("make_room has seen to it");
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
        self.slots[id.index()] = slot;
    }

    /// Empties an entry's slot.
    pub(super) fn vacate(&mut self, id: EntryId) {
        let slot = std::mem::take(&mut self.slots[id.index()]);
        let n_words = usize::from(slot.n_words);
        if n_words > NEAR {
            self.give_far(slot.words[NEAR - 1], n_words);
        }
        let last = self.slots.iter().rev().take(MAX_TRIM).take_while(|slot| slot.tuple == 0).count();
        self.slots.truncate(self.slots.len() - last);
    }

    /// Gives up empty places at the end, not all at once if they are many. Whether that is all.
    pub(super) fn give_back(&mut self) -> bool {
        let last = self.slots.iter().rev().take(MAX_GIVEN).take_while(|slot| slot.tuple == 0).count();
        if last != 0 {
            self.slots.truncate(self.slots.len() - last);
        }
        last < MAX_GIVEN
    }

    /// Gives memory of places back where no entry is, some of it. Whether that is all.
    pub(super) fn forget(&mut self, places: Range<usize>) -> bool {
        self.slots.forget(places)
    }

    pub(super) fn set_hidden(&mut self, id: EntryId, is_hidden: bool) {
        self.slots[id.index()].hidden = is_hidden.into();
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
            self.slots[owner].words[NEAR - 1] = place;
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
