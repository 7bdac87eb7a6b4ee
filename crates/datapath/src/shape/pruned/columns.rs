//! All columns of the pruner: a narrow one for the first 64 tuples, and wide ones for the others, created and removed
//! as needed. A table of few masks thus reads eight bytes where a table of many masks reads a cache line, and growth
//! never copies existing data.
use super::column::TupleColumn;
use super::sets::TupleSetId;
use super::slice::SliceNo;
use super::tuple_set::{TupleSet, WideTupleSet};

/// Number of a tuple within the pruner: its place in the columns.
pub(super) type ColumnPlace = u16;

/// Maximum number of wide columns.
const MAX_WIDE: usize = 8;

/// Maximum number of tuples: 4160.
pub(super) const MAX_PLACES: usize = u64::TUPLES + MAX_WIDE * WideTupleSet::TUPLES;

/// All columns of the pruner: see the [module](self).
#[derive(Debug)]
pub(super) struct TupleColumns {
    pub(super) narrow: TupleColumn<u64>,
    pub(super) wide: Vec<TupleColumn<WideTupleSet>>,
    slices: usize,
    sets: usize,
}

/// Evaluates an expression for the column that a tuple is in, narrow or wide.
macro_rules! column_of {
    ($columns:expr, $bit:expr, |$column:ident, $place:ident| $body:expr) => {
        match place($bit) {
            (None, $place) => {
                let $column = &mut $columns.narrow;
                $body
            }
            (Some(wide), $place) => {
                let $column = &mut $columns.wide[wide];
                $body
            }
        }
    };
}

impl Default for TupleColumns {
    fn default() -> TupleColumns {
        // The empty set always exists.
        TupleColumns { narrow: TupleColumn::new(0, 1), wide: Vec::new(), slices: 0, sets: 1 }
    }
}

impl TupleColumns {
    /// Allocates the lowest free place and returns it; its tuple passes every slice at first. Returns `None` if all
    /// places are in use.
    pub(super) fn take(&mut self) -> Option<ColumnPlace> {
        let bit = if !self.narrow.is_full() {
            self.narrow.vacancy()
        } else {
            let column = self.wide.iter().position(|column| !column.is_full()).unwrap_or(self.wide.len());
            if column == MAX_WIDE {
                return None;
            }
            if column == self.wide.len() {
                self.wide.push(TupleColumn::new(self.slices, self.sets));
            }
            u64::TUPLES + column * WideTupleSet::TUPLES + self.wide[column].vacancy()
        };
        let bit = ColumnPlace::try_from(bit).expect("columns hold fewer tuples than that");
        column_of!(self, bit, |column, place| column.put_live(place, true));
        Some(bit)
    }

    /// Releases a place. Its tuple must be in no set, and pass all high bytes.
    pub(super) fn give(&mut self, bit: ColumnPlace) {
        column_of!(self, bit, |column, place| column.put_live(place, false));
        while self.wide.last().is_some_and(TupleColumn::is_empty) {
            self.wide.pop();
        }
    }

    pub(super) fn add_slice(&mut self) {
        self.slices += 1;
        self.narrow.add_slice();
        self.wide.iter_mut().for_each(TupleColumn::add_slice);
    }

    pub(super) fn put_all_high(&mut self, slice: SliceNo, bit: ColumnPlace, passes: bool) {
        column_of!(self, bit, |column, place| column.put_all_high(slice, place, passes));
    }

    pub(super) fn put_high(&mut self, slice: SliceNo, high: u8, bit: ColumnPlace, passes: bool) {
        column_of!(self, bit, |column, place| column.put_high(slice, high, place, passes));
    }

    pub(super) fn set_has(&self, set: TupleSetId, bit: ColumnPlace) -> bool {
        match place(bit) {
            (None, place) => self.narrow.set_has(set, place),
            (Some(wide), place) => self.wide[wide].set_has(set, place),
        }
    }

    /// Makes the set `to` equal to `from`, apart from `bit`, which is in exactly one of them.
    pub(super) fn make_set(&mut self, from: TupleSetId, to: TupleSetId, bit: ColumnPlace) {
        self.sets = self.sets.max(usize::from(to) + 1);
        self.narrow.copy_set(from, to);
        self.wide.iter_mut().for_each(|column| column.copy_set(from, to));
        let is_in = !self.set_has(from, bit);
        column_of!(self, bit, |column, place| column.put_in_set(to, place, is_in));
    }

    /// Returns true if removed tuples have left nothing behind: no wide column, and a narrow column as when new.
    #[cfg(test)]
    pub(super) fn is_clean(&self) -> bool {
        self.wide.is_empty() && self.narrow.is_clean()
    }

    /// Returns true if two sets are equal apart from `bit`, which must be in exactly one of them.
    pub(super) fn differ_by(&self, one: TupleSetId, other: TupleSetId, bit: ColumnPlace) -> bool {
        let (of_wide, place) = place(bit);
        let in_narrow = of_wide.is_none().then_some(place);
        self.narrow.are_same(one, other, in_narrow)
            && (0..)
                .zip(&self.wide)
                .all(|(number, column)| column.are_same(one, other, (of_wide == Some(number)).then_some(place)))
    }
}

/// Returns the index of the wide column (`None` for the narrow one) and the place in it.
fn place(bit: ColumnPlace) -> (Option<usize>, usize) {
    let bit = usize::from(bit);
    match bit.checked_sub(u64::TUPLES) {
        None => (None, bit),
        Some(bit) => (Some(bit / WideTupleSet::TUPLES), bit % WideTupleSet::TUPLES),
    }
}
