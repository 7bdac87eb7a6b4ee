//! Counts a table's entries by the groups they send to, so that statistics and the deletion of a group need not visit
//! every entry.
use crate::program::EntryProgram;
use foldhash::HashMap;
use weir_openflow::model::GroupId;

/// Number of entries by group. Contains only groups that some entry sends to.
#[derive(Debug, Default)]
pub(super) struct EntriesByGroup(HashMap<GroupId, u32>);

impl EntriesByGroup {
    /// Updates the counts: an entry with the program `went` was removed, one with `came` added.
    pub(super) fn swap(&mut self, went: Option<&EntryProgram>, came: Option<&EntryProgram>) {
        for group in came.iter().flat_map(|program| program.groups()) {
            *self.0.entry(*group).or_default() += 1;
        }
        for group in went.iter().flat_map(|program| program.groups()) {
            let Some(count) = self.0.get_mut(group) else { continue };
            *count -= 1;
            if *count == 0 {
                self.0.remove(group);
            }
        }
    }

    /// Returns the number of entries that send to a group.
    pub(super) fn count(&self, group: GroupId) -> u32 {
        self.0.get(&group).copied().unwrap_or(0)
    }

    /// Returns true if some entry sends to a group ([`GroupId::ALL`]: to any group).
    pub(super) fn is_by(&self, group: GroupId) -> bool {
        if group == GroupId::ALL { !self.0.is_empty() } else { self.0.contains_key(&group) }
    }
}
