//! A slice: sixteen bits of the flow key that some tuple's mask covers, with the set of tuples that each value selects.
use super::sets::TupleSetId;
use weir_packet::FlowKey;

/// Number of a slice within the pruner.
pub(super) type SliceNo = u8;

/// Number of values of a slice.
const VALUES: usize = 1 << 16;

/// Maximum number of slice bits outside a tuple's mask for which the tuple has [`SliceView::Whole`]. Inserting an entry
/// then changes up to 2^8 = 256 values.
const MAX_SPREAD: u32 = 8;

/// Sets of tuples by value of sixteen bits: see the [module](self).
#[derive(Debug)]
pub(super) struct KeySlice {
    /// Index of the word in the flow key.
    pub(super) word: u8,
    /// Position of the slice's lowest bit in the word.
    pub(super) shift: u8,
    /// Number of tuples whose mask covers the slice.
    pub(super) tuples: u32,
    /// By value: the set of the tuples of [`SliceView::Whole`] that have an entry with the value.
    pub(super) sets: Box<[TupleSetId; VALUES]>,
    /// Number of values that select a non-empty set.
    pub(super) values: u32,
    /// By bit of the high byte: the number of tuples of [`SliceView::High`] whose mask has this bit.
    looking: [u16; 8],
    /// Bits of the high byte that some tuple of [`SliceView::High`] has in its mask; all bits after
    /// [`KeySlice::spill`].
    pub(super) high: u8,
    /// True after [`KeySlice::spill`]: some tuple of [`SliceView::Whole`] passes all values of a high byte, because
    /// there was no room for its set. Until no tuple covers the slice any more.
    pub(super) has_spilled: bool,
}

impl KeySlice {
    pub(super) fn new(word: u8, shift: u8) -> KeySlice {
        let sets = vec![0; VALUES].into_boxed_slice().try_into().expect("it has this length");
        KeySlice { word, shift, tuples: 0, sets, values: 0, looking: [0; 8], high: 0, has_spilled: false }
    }

    /// Returns a packet's value of the slice.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "these are the slice's bits")]
    pub(super) fn value(&self, key: &FlowKey) -> u16 {
        (key.words[usize::from(self.word)] >> self.shift) as u16
    }

    /// Counts (`looks`) a tuple of [`SliceView::High`] with this mask, or stops counting it.
    pub(super) fn look_at_high(&mut self, mask: u8, looks: bool) {
        for (bit, count) in self.looking.iter_mut().enumerate().filter(|(bit, _)| mask >> bit & 1 == 1) {
            if looks {
                *count += 1;
            } else {
                *count -= 1;
            }
            self.high = self.high & !(1 << bit) | u8::from(*count > 0 || self.has_spilled) << bit;
        }
    }

    /// Records that a tuple of [`SliceView::Whole`] passes all values of some high byte.
    pub(super) fn spill(&mut self) {
        self.has_spilled = true;
        self.high = u8::MAX;
    }

    /// Forgets that tuples were spilled, because no tuple covers the slice any more.
    pub(super) fn forget_spills(&mut self) {
        self.has_spilled = false;
        self.high = 0;
    }

    /// Returns true if searches skip this slice, because it excludes hardly any tuple: no bit of the high byte counts,
    /// and at most one value selects a set.
    pub(super) fn is_constant(&self) -> bool {
        self.high == 0 && self.values <= 1
    }
}

/// Part of a slice that counts for a tuple.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SliceView {
    /// Only the high byte, under this mask: inserting an entry changes the tuples of up to 128 of the 256 high bytes.
    /// Also used if the mask has bits in the low byte, but too few: an entry would then change the sets of thousands of
    /// values. These bits are ignored, so the tuple is probed for more packets than necessary.
    High(u8),
    /// The whole slice, under this mask: inserting an entry changes the sets of up to 256 values.
    Whole(u16),
}

impl SliceView {
    /// Chooses the part for a mask; `None` if the mask is empty, or has too few bits and all in the low byte.
    pub(super) fn new(mask: u16) -> Option<SliceView> {
        let [high, low] = mask.to_be_bytes();
        if low != 0 && mask.count_zeros() <= MAX_SPREAD {
            return Some(SliceView::Whole(mask));
        }
        (high != 0).then_some(SliceView::High(high))
    }

    /// Returns the bits of the slice that count.
    pub(super) fn mask(self) -> u16 {
        match self {
            SliceView::High(mask) => u16::from(mask) << 8,
            SliceView::Whole(mask) => mask,
        }
    }
}

/// Iterates over all numbers that equal `value` in the bits of `mask`.
pub(super) fn spread(value: u16, mask: u16) -> impl Iterator<Item = u16> {
    let others = !mask;
    let mut next = Some(0_u16);
    std::iter::from_fn(move || {
        let bits = next?;
        // Steps to the next subset of the unmasked bits.
        let after = bits.wrapping_sub(others) & others;
        next = (after != 0).then_some(after);
        Some(value | bits)
    })
}
