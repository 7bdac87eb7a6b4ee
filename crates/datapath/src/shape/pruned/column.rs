//! A column of the pruner: for up to 64 or up to 512 tuples, one bit in every set of tuples.
use super::sets::TupleSetId;
use super::slice::SliceNo;
use super::tuple_set::TupleSet;

/// Number of values of a slice's high byte.
const BYTES: usize = 256;

/// The bits of one group of tuples in every set: see the [module](self).
#[derive(Debug)]
pub(super) struct TupleColumn<R> {
    /// Places in use by tuples.
    live: R,
    /// By slice and high byte: the tuples of [`View::High`](super::slice::SliceView::High) that have an entry with this
    /// high byte, and tuples that were spilled there. Tuples whose mask does not cover the slice have their bit set for
    /// every high byte, as have unused places.
    by_high: Vec<R>,
    /// By set: its tuples.
    sets: Vec<R>,
}

impl<R: TupleSet> TupleColumn<R> {
    /// Creates a column without tuples.
    pub(super) fn new(slices: usize, sets: usize) -> TupleColumn<R> {
        let mut column = TupleColumn { live: R::NONE, by_high: Vec::new(), sets: Vec::new() };
        // Reserves address space for the maximum size: growing moves no data, and memory is taken as it is used.
        column.by_high.reserve_exact(super::MAX_SLICES * BYTES);
        column.sets.reserve_exact(super::MAX_SETS);
        column.by_high.resize(slices * BYTES, R::ALL);
        column.sets.resize(sets, R::NONE);
        column
    }

    pub(super) fn is_empty(&self) -> bool {
        self.live == R::NONE
    }

    /// Returns true if the column is as when new: all tuples pass all high bytes, and the empty set has no tuple.
    #[cfg(test)]
    pub(super) fn is_clean(&self) -> bool {
        self.by_high.iter().all(|row| *row == R::ALL) && self.sets[0] == R::NONE
    }

    pub(super) fn is_full(&self) -> bool {
        self.live == R::ALL
    }

    /// Returns the lowest unused place; the column must not be full.
    pub(super) fn vacancy(&self) -> usize {
        (0..R::TUPLES).find(|place| !self.live.has(*place)).expect("the column is not full")
    }

    pub(super) fn put_live(&mut self, place: usize, is_live: bool) {
        self.live.put(place, is_live);
    }

    pub(super) fn add_slice(&mut self) {
        self.by_high.resize(self.by_high.len() + BYTES, R::ALL);
    }

    /// Sets (`passes`) or clears the bit of a tuple for all high bytes of a slice.
    pub(super) fn put_all_high(&mut self, slice: SliceNo, place: usize, passes: bool) {
        let first = usize::from(slice) * BYTES;
        self.by_high[first..first + BYTES].iter_mut().for_each(|row| row.put(place, passes));
    }

    /// Sets (`passes`) or clears the bit of a tuple for one high byte of a slice.
    pub(super) fn put_high(&mut self, slice: SliceNo, high: u8, place: usize, passes: bool) {
        self.by_high[usize::from(slice) * BYTES + usize::from(high)].put(place, passes);
    }

    pub(super) fn set_has(&self, set: TupleSetId, place: usize) -> bool {
        self.sets[usize::from(set)].has(place)
    }

    /// Copies a set to another one, which exists or has the next number.
    pub(super) fn copy_set(&mut self, from: TupleSetId, to: TupleSetId) {
        let row = self.sets[usize::from(from)];
        match self.sets.get_mut(usize::from(to)) {
            Some(set) => *set = row,
            None => self.sets.push(row),
        }
    }

    pub(super) fn put_in_set(&mut self, set: TupleSetId, place: usize, is_in: bool) {
        self.sets[usize::from(set)].put(place, is_in);
    }

    /// Returns true if two sets are equal in this column, apart from the bit of one tuple, if given, which must
    /// differ.
    pub(super) fn are_same(&self, one: TupleSetId, other: TupleSetId, but_for: Option<usize>) -> bool {
        let (mut one, other) = (self.sets[usize::from(one)], self.sets[usize::from(other)]);
        if let Some(place) = but_for {
            one.put(place, !one.has(place));
        }
        one == other
    }

    /// Returns the tuples that a packet may match, given its selections in all slices.
    #[inline(always)]
    pub(super) fn survivors(&self, steps: &[SliceSelection]) -> R {
        let mut row = self.live;
        for step in steps {
            row.keep(&self.by_high[step.high as usize], &self.sets[usize::from(step.set)]);
        }
        row
    }
}

impl TupleColumn<u64> {
    pub(super) fn live(&self) -> u64 {
        self.live
    }

    /// Returns the tuples that one slice admits; `high` is an index into `by_high`.
    #[inline(always)]
    pub(super) fn passing(&self, high: usize, set: TupleSetId) -> u64 {
        self.by_high[high] | self.sets[usize::from(set)]
    }
}

/// Selection of a packet's value in one slice.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SliceSelection {
    /// Index into `by_high`.
    pub(super) high: u32,
    pub(super) set: TupleSetId,
}
