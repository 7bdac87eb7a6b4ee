//! Records the paths of packets through the tables during their lookup.
use super::dependencies::MAX_STEPS;
use crate::shape::{BurstEntries, EntryId, Lanes, MAX_BURST};

/// Tables that a packet reached, in order: one byte each, the first one lowest; [`NO_TABLE`] after the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TablePath(pub(super) u64);

/// Byte for "no table"; there are at most 254 tables.
const NO_TABLE: u8 = u8::MAX;

impl TablePath {
    /// Returns the number of tables.
    #[inline(always)]
    pub(super) const fn len(self) -> usize {
        (u64::BITS - (!self.0).leading_zeros()).div_ceil(u8::BITS) as usize
    }

    /// Returns the table at a step, which must be below [`MAX_STEPS`].
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "one byte of the word")]
    pub(super) const fn table(self, step: usize) -> u8 {
        (self.0 >> (8 * step)) as u8
    }

    /// Returns the last table.
    #[inline(always)]
    pub(super) const fn last(self) -> u8 {
        self.table(self.len().saturating_sub(1))
    }
}

/// Paths of a burst's packets.
#[derive(Debug)]
pub(super) struct TablePaths {
    lens: [u8; MAX_BURST],
    tables: [[u8; MAX_STEPS]; MAX_BURST],
    entries: [[EntryId; MAX_STEPS]; MAX_BURST],
}

impl Default for TablePaths {
    fn default() -> TablePaths {
        TablePaths {
            lens: [0; MAX_BURST],
            tables: [[NO_TABLE; MAX_STEPS]; MAX_BURST],
            entries: [[EntryId::NONE; MAX_STEPS]; MAX_BURST],
        }
    }
}

impl TablePaths {
    /// Starts empty paths for these packets.
    pub(super) fn begin(&mut self, lanes: Lanes) {
        lanes.each(|lane| {
            self.lens[lane] = 0;
            self.tables[lane] = [NO_TABLE; MAX_STEPS];
        });
    }

    /// Records that packets reached a table; `found` has their entries there.
    pub(super) fn note(&mut self, table: u8, lanes: Lanes, found: &BurstEntries) {
        lanes.each(|lane| {
            let step = usize::from(self.lens[lane]);
            if step < MAX_STEPS {
                self.tables[lane][step] = table;
                self.entries[lane][step] = found[lane];
            }
            self.lens[lane] = self.lens[lane].saturating_add(1);
        });
    }

    /// Returns a packet's route and its entries, if the path has at most `steps` tables.
    pub(super) fn get(&self, lane: usize, steps: usize) -> Option<(TablePath, &[EntryId])> {
        let len = usize::from(self.lens[lane]);
        (1..=steps)
            .contains(&len)
            .then(|| (TablePath(u64::from_le_bytes(self.tables[lane])), &self.entries[lane][..len]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_have_the_tables_in_order() {
        let mut ways = TablePaths::default();
        let (both, one) = (Lanes(0b101), Lanes(0b100));
        let mut found = [EntryId::NONE; MAX_BURST];
        ways.begin(both);
        (found[0], found[2]) = (EntryId(7), EntryId(8));
        ways.note(0, both, &found);
        found[2] = EntryId(9);
        ways.note(253, one, &found);
        let (route, entries) = ways.get(2, MAX_STEPS).expect("it came to two tables");
        assert_eq!((route.len(), route.table(0), route.table(1), route.last()), (2, 0, 253, 253));
        assert_eq!(entries, [EntryId(8), EntryId(9)]);
        let (route, entries) = ways.get(0, 1).expect("it came to one");
        assert_eq!((route.len(), route.last(), entries), (1, 0, &[EntryId(7)][..]));
        assert_eq!(ways.get(2, 1), None, "too long");
        assert_eq!(ways.get(1, MAX_STEPS), None, "it came to none");
    }

    #[test]
    fn a_way_that_is_too_long_is_not_kept() {
        let mut ways = TablePaths::default();
        let found = [EntryId(1); MAX_BURST];
        for table in 0..9 {
            ways.note(table, Lanes(1), &found);
            let is_kept = ways.get(0, MAX_STEPS).is_some();
            assert_eq!(is_kept, table < 8);
        }
        assert_eq!(TablePath(u64::MAX).len(), 0);
        assert_eq!(TablePath(u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 253])).len(), 8);
    }
}
