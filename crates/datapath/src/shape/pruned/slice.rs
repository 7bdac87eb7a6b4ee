//! Sixteen bits of the flow key that some tuple looks at: which set of tuples each of their values selects.
use super::sets::SetId;
use weir_packet::FlowKey;

/// A slice's number within the pruner.
pub(super) type SliceNo = u8;

/// Values of a slice.
const VALUES: usize = 1 << 16;

/// At most this many values change when an entry comes or goes.
const MAX_SPREAD: u32 = 8;

/// See the module's page.
#[derive(Debug)]
pub(super) struct Slice {
    /// The word of the key.
    pub(super) word: u8,
    /// How far above its low end the slice begins.
    pub(super) shift: u8,
    /// How many tuples look at it.
    pub(super) tuples: u32,
    /// By value: the tuples that look at more than the high byte, and accept it.
    pub(super) sets: Box<[SetId; VALUES]>,
    /// How many values select a set that is not empty.
    pub(super) values: u32,
    /// By bit of the high byte: how many tuples look at it and no further.
    looking: [u16; 8],
    /// The bits of the high byte that some tuple looks at, and no further.
    pub(super) high: u8,
    /// Some tuple that looks further had to be let pass all values of a high byte.
    pub(super) has_spilled: bool,
}

impl Slice {
    pub(super) fn new(word: u8, shift: u8) -> Slice {
        let sets = vec![0; VALUES].into_boxed_slice().try_into().expect("it has this length");
        Slice { word, shift, tuples: 0, sets, values: 0, looking: [0; 8], high: 0, has_spilled: false }
    }

    /// The slice's value of a packet.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "these are the slice's bits")]
    pub(super) fn value(&self, key: &FlowKey) -> u16 {
        (key.words[usize::from(self.word)] >> self.shift) as u16
    }

    /// Notes that a tuple looks at these bits of the high byte and no further, or does so no more.
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

    /// Notes that a tuple that looks further passes all values of some high byte.
    pub(super) fn spill(&mut self) {
        self.has_spilled = true;
        self.high = u8::MAX;
    }

    /// Whether hardly any packet is told apart by this slice: one value at most is asked for.
    pub(super) fn is_constant(&self) -> bool {
        self.high == 0 && self.values <= 1
    }
}

/// How a tuple's values in a slice are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum View {
    /// Only the high byte: up to 128 of 256 sets change with a value. Where the mask has more bits, but so few that thousands of
    /// values would change, the others are left out: more packets pass than need to.
    High(u8),
    /// The whole slice: up to 256 values change.
    Whole(u16),
}

impl View {
    /// How to look at the bits of a mask; none if it looks at nothing, or at too few bits at the low end.
    pub(super) fn new(mask: u16) -> Option<View> {
        let [high, low] = mask.to_be_bytes();
        if low != 0 && mask.count_zeros() <= MAX_SPREAD {
            return Some(View::Whole(mask));
        }
        (high != 0).then_some(View::High(high))
    }

    /// The bits looked at.
    pub(super) fn mask(self) -> u16 {
        match self {
            View::High(mask) => u16::from(mask) << 8,
            View::Whole(mask) => mask,
        }
    }
}

/// All numbers that are `value` under `mask`.
pub(super) fn spread(value: u16, mask: u16) -> impl Iterator<Item = u16> {
    let others = !mask;
    let mut next = Some(0_u16);
    std::iter::from_fn(move || {
        let bits = next?;
        // The next subset of the other bits.
        let after = bits.wrapping_sub(others) & others;
        next = (after != 0).then_some(after);
        Some(value | bits)
    })
}
