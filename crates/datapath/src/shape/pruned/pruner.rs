//! Finds the tuples that a packet may match, from its values in the 16-bit slices of the flow key that the tuples'
//! masks cover.
use super::MAX_SLICES;
use super::column::SliceSelection;
use super::columns::{ColumnPlace, TupleColumns};
use super::counts::SliceValueCounts;
use super::sets::TupleSets;
use super::slice::{KeySlice, SliceNo, SliceView, spread};
use crate::shape::hash::WordMask;
use weir_memory::prefetch;
use weir_packet::FlowKey;

/// Sets of tuples by slice and value: see the [module](self).
#[derive(Debug, Default)]
pub(super) struct TuplePruner {
    slices: Vec<KeySlice>,
    columns: TupleColumns,
    sets: TupleSets,
    counts: SliceValueCounts,
    /// By place in the columns: the slices that its tuple's mask covers; empty if the place is unused.
    views: Vec<Vec<TupleSlice>>,
}

/// A slice that a tuple's mask covers, and the part of it that counts.
#[derive(Debug, Clone, Copy)]
struct TupleSlice {
    slice: SliceNo,
    /// Index of the word that contains the slice, among the words that the tuple's mask covers.
    from: u8,
    view: SliceView,
}

/// Selections of a packet, one for each slice that may exclude a tuple.
#[derive(Debug)]
pub(super) struct SliceSelections {
    steps: [SliceSelection; MAX_SLICES],
    len: usize,
}

impl TuplePruner {
    /// Adds a tuple without entries; `masks` are the words of its mask. Returns its place, or `None` if no place is
    /// free.
    pub(super) fn add_tuple(&mut self, masks: impl Iterator<Item = WordMask>) -> Option<ColumnPlace> {
        let bit = self.columns.take()?;
        let mut views = Vec::new();
        for (from, WordMask { word, mask }) in (0..).zip(masks) {
            for (shift, mask) in slices_of(mask) {
                let view = SliceView::new(mask);
                let Some((view, slice)) = view.and_then(|view| Some((view, self.slice(word, shift)?))) else {
                    continue;
                };
                let looked_at = &mut self.slices[usize::from(slice)];
                looked_at.tuples += 1;
                if let SliceView::High(high) = view {
                    looked_at.look_at_high(high, true);
                }
                self.columns.put_all_high(slice, bit, false);
                views.push(TupleSlice { slice, from, view });
            }
        }
        if self.views.len() <= usize::from(bit) {
            self.views.resize(usize::from(bit) + 1, Vec::new());
        }
        self.views[usize::from(bit)] = views;
        Some(bit)
    }

    /// Removes a tuple that has no entries any more.
    pub(super) fn remove_tuple(&mut self, bit: ColumnPlace) {
        for TupleSlice { slice, view, .. } in std::mem::take(&mut self.views[usize::from(bit)]) {
            let looked_at = &mut self.slices[usize::from(slice)];
            looked_at.tuples -= 1;
            if let SliceView::High(high) = view {
                looked_at.look_at_high(high, false);
            }
            if looked_at.tuples == 0 {
                looked_at.forget_spills();
            }
            self.columns.put_all_high(slice, bit, true);
        }
        self.columns.give(bit);
    }

    /// Adds an entry of the tuple at place `bit`; `words` are the entry's values of the words that the tuple's mask
    /// covers.
    pub(super) fn add(&mut self, bit: ColumnPlace, words: impl Iterator<Item = u64>) {
        self.each_value(bit, words, |pruner, slice, view, value| {
            if pruner.counts.add(bit, slice, value) {
                pruner.put(bit, slice, view, value, true);
            }
        });
    }

    /// Removes an entry that was added with [`TuplePruner::add`], given the same arguments.
    pub(super) fn remove(&mut self, bit: ColumnPlace, words: impl Iterator<Item = u64>) {
        self.each_value(bit, words, |pruner, slice, view, value| {
            if pruner.counts.remove(bit, slice, value) {
                pruner.put(bit, slice, view, value, false);
            }
        });
    }

    /// Calls `act` with an entry's value of each slice that the tuple's mask covers.
    #[expect(clippy::cast_possible_truncation, reason = "a slice is sixteen bits")]
    fn each_value(
        &mut self,
        bit: ColumnPlace,
        mut words: impl Iterator<Item = u64>,
        mut act: impl FnMut(&mut TuplePruner, SliceNo, SliceView, u16),
    ) {
        let (mut word, mut n_words) = (0, 0);
        for at in 0..self.views[usize::from(bit)].len() {
            let TupleSlice { slice, from, view } = self.views[usize::from(bit)][at];
            while n_words <= from {
                word = words.next().unwrap_or(0);
                n_words += 1;
            }
            let value = (word >> self.slices[usize::from(slice)].shift) as u16 & view.mask();
            act(self, slice, view, value);
        }
    }

    /// Adds (`passes`) a tuple to the tuples that a value of a slice admits, or removes it from them.
    fn put(&mut self, bit: ColumnPlace, slice: SliceNo, view: SliceView, value: u16, passes: bool) {
        match view {
            SliceView::High(mask) => {
                for value in spread(value, u16::from(mask) << 8 | 0xff) {
                    self.columns.put_high(slice, high_byte(value), bit, passes);
                }
            }
            SliceView::Whole(mask) => spread(value, mask).for_each(|value| self.put_value(bit, slice, value, passes)),
        }
    }

    fn put_value(&mut self, bit: ColumnPlace, slice: SliceNo, value: u16, passes: bool) {
        let looked_at = &mut self.slices[usize::from(slice)];
        let before = looked_at.sets[usize::from(value)];
        if self.columns.set_has(before, bit) == passes {
            return;
        }
        match self.sets.flip(before, bit, &mut self.columns) {
            Some(now) => {
                looked_at.sets[usize::from(value)] = now;
                looked_at.values += u32::from(before == 0);
                looked_at.values -= u32::from(now == 0);
                self.sets.release(before);
            }
            // No room for another set: the tuple passes all values with this high byte, or keeps passing this value
            // until it is removed.
            None if passes => {
                looked_at.spill();
                self.columns.put_high(slice, high_byte(value), bit, true);
            }
            None => {}
        }
    }

    /// Prefetches the memory that [`TuplePruner::steps`] reads.
    #[inline(always)]
    pub(super) fn fetch(&self, key: &FlowKey) {
        for slice in &self.slices {
            prefetch(&slice.sets[..], slice.value(key).into());
        }
    }

    /// Returns the selections of a packet: for each slice, the high byte and the set that its value selects.
    #[inline(always)]
    pub(super) fn steps(&self, key: &FlowKey) -> SliceSelections {
        let mut steps = SliceSelections { steps: [SliceSelection::default(); MAX_SLICES], len: 0 };
        for (slice, base) in self.slices.iter().zip((0_u32..).step_by(256)) {
            if slice.is_constant() {
                continue;
            }
            let value = slice.value(key);
            let high = base + u32::from(high_byte(value) & slice.high);
            steps.steps[steps.len] = SliceSelection { high, set: slice.sets[usize::from(value)] };
            steps.len += 1;
        }
        steps
    }

    /// Returns true if removed entries and tuples have left nothing behind: no count, no slice in use, and no set
    /// except the empty one.
    #[cfg(test)]
    pub(super) fn is_clean(&self) -> bool {
        let is_clean =
            |slice: &KeySlice| slice.tuples == 0 && slice.values == 0 && slice.sets.iter().all(|set| *set == 0);
        self.counts.is_empty() && self.sets.len() == 1 && self.slices.iter().all(is_clean) && self.columns.is_clean()
    }

    /// Returns the tuples of the narrow column that the packet may match.
    #[inline(always)]
    pub(super) fn narrow(&self, key: &FlowKey) -> u64 {
        let asking = self.slices.iter().enumerate().filter(|(_, slice)| !slice.is_constant());
        asking.fold(self.columns.narrow.live(), |row, (number, slice)| {
            let value = slice.value(key);
            let high = number * 256 + usize::from(high_byte(value) & slice.high);
            row & self.columns.narrow.passing(high, slice.sets[usize::from(value)])
        })
    }

    pub(super) fn columns(&self) -> &TupleColumns {
        &self.columns
    }

    /// Returns the number of the slice at this location, created if needed; `None` if there are too many.
    fn slice(&mut self, word: u8, shift: u8) -> Option<SliceNo> {
        let same = self.slices.iter().position(|slice| (slice.word, slice.shift) == (word, shift));
        let found = same.or_else(|| {
            let unused = self.slices.iter().position(|slice| slice.tuples == 0)?;
            // An unused slice is empty.
            self.slices[unused].word = word;
            self.slices[unused].shift = shift;
            Some(unused)
        });
        let at = match found {
            Some(at) => at,
            None if self.slices.len() == MAX_SLICES => return None,
            None => {
                self.slices.push(KeySlice::new(word, shift));
                self.columns.add_slice();
                self.slices.len() - 1
            }
        };
        SliceNo::try_from(at).ok()
    }
}

impl std::ops::Deref for SliceSelections {
    type Target = [SliceSelection];

    #[inline(always)]
    fn deref(&self) -> &[SliceSelection] {
        &self.steps[..self.len]
    }
}

#[inline(always)]
fn high_byte(value: u16) -> u8 {
    value.to_be_bytes()[0]
}

/// Iterates over the slices of a word in which a mask has bits: shift, and mask within the slice.
#[expect(clippy::cast_possible_truncation, reason = "sixteen bits of it are meant")]
fn slices_of(mask: u64) -> impl Iterator<Item = (u8, u16)> {
    [48_u8, 32, 16, 0].into_iter().map(move |shift| (shift, (mask >> shift) as u16)).filter(|(_, mask)| *mask != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slice that was spilled into is searched only as long as tuples cover it.
    #[test]
    fn a_slice_without_tuples_forgets_what_was_spilled() {
        let mut pruner = TuplePruner::default();
        let mask = || std::iter::once(WordMask { word: 3, mask: 0xffff });
        let bit = pruner.add_tuple(mask()).unwrap();
        pruner.slices[0].spill();
        assert!(!pruner.slices[0].is_constant());
        pruner.remove_tuple(bit);
        assert!(pruner.is_clean() && pruner.slices[0].is_constant());
        // The next tuple gets the same slice.
        pruner.add_tuple(std::iter::once(WordMask { word: 5, mask: 0xffff })).unwrap();
        assert!(pruner.slices.len() == 1 && pruner.slices[0].is_constant() && !pruner.slices[0].has_spilled);
    }
}
