//! Counts a table's entries by the meters they use, so that a meter's statistics and its removal need not visit every
//! entry of every table.
use crate::program::EntryProgram;
use foldhash::HashMap;
use weir_openflow::model::MeterId;

/// Number of entries by meter. Contains only meters that some entry uses.
#[derive(Debug, Default)]
pub(crate) struct EntriesByMeter(HashMap<MeterId, u32>);

impl EntriesByMeter {
    /// Returns the number of entries that use a meter.
    pub(crate) fn by(&self, meter: MeterId) -> u32 {
        self.0.get(&meter).copied().unwrap_or(0)
    }

    /// Returns true if some entry uses a meter (`ALL`: any meter).
    pub(crate) fn is_by(&self, meter: MeterId) -> bool {
        if meter == MeterId::ALL { !self.0.is_empty() } else { self.0.contains_key(&meter) }
    }

    /// Updates the counts: an entry with the program `went` was removed, one with `came` added.
    pub(super) fn swap(&mut self, went: Option<&EntryProgram>, came: Option<&EntryProgram>) {
        for meter in came.iter().flat_map(|program| program.meters()) {
            *self.0.entry(*meter).or_default() += 1;
        }
        for meter in went.iter().flat_map(|program| program.meters()) {
            let Some(count) = self.0.get_mut(meter) else { continue };
            *count -= 1;
            if *count == 0 {
                self.0.remove(meter);
            }
        }
    }
}
