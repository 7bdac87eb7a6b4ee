//! A slice: sixteen bits of the flow key that some tuple looks at, with the set of tuples that each value selects.
use super::sets::SetId;
use weir_packet::FlowKey;

/// Number of a slice within the pruner.
pub(super) type SliceNo = u8;

/// Number of values of a slice.
const VALUES: usize = 1 << 16;

/// Maximum number of unmasked bits for which a slice is looked at as a whole: inserting an entry changes up to 256
/// values then.
const MAX_SPREAD: u32 = 8;

/// Sets of tuples by value of sixteen bits: see the [module](self).
#[derive(Debug)]
pub(super) struct Slice {
    /// Index of the word in the flow key.
    pub(super) word: u8,
    /// Position of the slice's lowest bit in the word.
    pub(super) shift: u8,
    /// Number of tuples that look at the slice.
    pub(super) tuples: u32,
    /// By value: the tuples that look at more than the high byte, and accept the value.
    pub(super) sets: Box<[SetId; VALUES]>,
    /// Number of values that select a non-empty set.
    pub(super) values: u32,
    /// By bit of the high byte: the number of tuples that look at this bit and at no more than the high byte.
    looking: [u16; 8],
    /// Bits of the high byte that some tuple looks at that looks at no more than the high byte.
    pub(super) high: u8,
    /// True if some tuple that looks at more passes all values of a high byte, because there was no room for its set.
    pub(super) has_spilled: bool,
}

impl Slice {
    pub(super) fn new(word: u8, shift: u8) -> Slice {
        let sets = vec![0; VALUES].into_boxed_slice().try_into().expect("it has this length");
        Slice { word, shift, tuples: 0, sets, values: 0, looking: [0; 8], high: 0, has_spilled: false }
    }

    /// Returns a packet's value of the slice.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "these are the slice's bits")]
    pub(super) fn value(&self, key: &FlowKey) -> u16 {
        (key.words[usize::from(self.word)] >> self.shift) as u16
    }

    /// Counts a tuple that looks at these bits of the high byte only, or stops counting it.
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

    /// Records that a tuple that looks at more than the high byte passes all values of some high byte.
    pub(super) fn spill(&mut self) {
        self.has_spilled = true;
        self.high = u8::MAX;
    }

    /// Returns true if this slice excludes hardly any tuple, because at most one value selects a set.
    pub(super) fn is_constant(&self) -> bool {
        self.high == 0 && self.values <= 1
    }
}

/// Form in which a tuple's values of a slice are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// Only the high byte: up to 128 of 256 sets change with a value. Also used if the mask has bits in the low byte,
    /// but so few that thousands of values would change; these bits are ignored, and more packets pass than need to.
    High(u8),
    /// The whole slice: up to 256 values change with a value.
    Whole(u16),
}

impl View {
    /// Chooses the form for a mask; `None` if the mask is empty, or has too few bits and all in the low byte.
    pub(super) fn new(mask: u16) -> Option<View> {
        let [high, low] = mask.to_be_bytes();
        if low != 0 && mask.count_zeros() <= MAX_SPREAD {
            return Some(View::Whole(mask));
        }
        (high != 0).then_some(View::High(high))
    }

    /// Returns the bits looked at.
    pub(super) fn mask(self) -> u16 {
        match self {
            View::High(mask) => u16::from(mask) << 8,
            View::Whole(mask) => mask,
        }
    }
}

/// Iterates over all numbers that have `value` under `mask`.
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
