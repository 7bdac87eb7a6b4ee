//! How many entries of a tuple have which value in a slice, so that what is deleted leaves nothing behind.
//!
//! Many small tables rather than one: adding an entry now and then waits for a table to grow, so none may be large.
use super::columns::Bit;
use super::slice::SliceNo;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::hash::BuildHasher;

/// Tables, a power of two: at a million values each has a thousand.
const TABLES: usize = 1 << 10;

/// See the module's page.
#[derive(Debug)]
pub(super) struct Counts {
    tables: Vec<HashMap<(Bit, SliceNo, u16), u32, RandomState>>,
    hasher: RandomState,
}

impl Default for Counts {
    fn default() -> Counts {
        let hasher = RandomState::default();
        Counts { tables: (0..TABLES).map(|_| HashMap::with_hasher(RandomState::default())).collect(), hasher }
    }
}

impl Counts {
    /// Counts one more; whether it is the first.
    pub(super) fn add(&mut self, tuple: Bit, slice: SliceNo, value: u16) -> bool {
        let count = self.table(tuple, slice, value).entry((tuple, slice, value)).or_insert(0);
        *count += 1;
        *count == 1
    }

    /// Counts one less; whether it was the last.
    pub(super) fn remove(&mut self, tuple: Bit, slice: SliceNo, value: u16) -> bool {
        let table = self.table(tuple, slice, value);
        let Some(count) = table.get_mut(&(tuple, slice, value)) else { return false };
        *count -= 1;
        if *count > 0 {
            return false;
        }
        table.remove(&(tuple, slice, value));
        // What large tables took they give back, half of it at a time.
        if table.len() < table.capacity() / 8 {
            table.shrink_to(table.len() * 2);
        }
        true
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.tables.iter().all(HashMap::is_empty)
    }

    fn table(&mut self, tuple: Bit, slice: SliceNo, value: u16) -> &mut HashMap<(Bit, SliceNo, u16), u32, RandomState> {
        let hash = self.hasher.hash_one((tuple, slice, value));
        &mut self.tables[(hash >> 32) as usize & (TABLES - 1)]
    }
}
