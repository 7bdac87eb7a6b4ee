//! Counts how many entries of a tuple have which value in a slice, so that removing the last one removes the tuple
//! from the value's set.
//!
//! Uses many small tables instead of one: inserting sometimes waits until a table grows, so no table may be large.
use super::columns::ColumnPlace;
use super::slice::SliceNo;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::hash::BuildHasher;

/// Number of tables, a power of two. At a million values each table has a thousand.
const TABLES: usize = 1 << 10;

/// Counts by tuple, slice and value: see the [module](self).
#[derive(Debug)]
pub(super) struct SliceValueCounts {
    tables: Vec<HashMap<(ColumnPlace, SliceNo, u16), u32, RandomState>>,
    hasher: RandomState,
}

impl Default for SliceValueCounts {
    fn default() -> SliceValueCounts {
        let hasher = RandomState::default();
        SliceValueCounts { tables: (0..TABLES).map(|_| HashMap::with_hasher(RandomState::default())).collect(), hasher }
    }
}

impl SliceValueCounts {
    /// Adds one to a count. Returns true if it was zero.
    pub(super) fn add(&mut self, tuple: ColumnPlace, slice: SliceNo, value: u16) -> bool {
        let count = self.table(tuple, slice, value).entry((tuple, slice, value)).or_insert(0);
        *count += 1;
        *count == 1
    }

    /// Subtracts one from a count. Returns true if it is zero now.
    pub(super) fn remove(&mut self, tuple: ColumnPlace, slice: SliceNo, value: u16) -> bool {
        let table = self.table(tuple, slice, value);
        let Some(count) = table.get_mut(&(tuple, slice, value)) else { return false };
        *count -= 1;
        if *count > 0 {
            return false;
        }
        table.remove(&(tuple, slice, value));
        // Releases the memory of sparse tables; twice the used size stays.
        if table.len() < table.capacity() / 8 {
            table.shrink_to(table.len() * 2);
        }
        true
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.tables.iter().all(HashMap::is_empty)
    }

    fn table(
        &mut self,
        tuple: ColumnPlace,
        slice: SliceNo,
        value: u16,
    ) -> &mut HashMap<(ColumnPlace, SliceNo, u16), u32, RandomState> {
        let hash = self.hasher.hash_one((tuple, slice, value));
        &mut self.tables[(hash >> 32) as usize & (TABLES - 1)]
    }
}
