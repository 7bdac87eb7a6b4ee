//! Flow entries as applications ask for them.
use super::route::Hop;
use weir_openflow::model::{Instruction, Match, MatchField};

/// Identity of an entry in a switch.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EntryKey {
    /// Number of the table.
    pub table: u8,
    /// Priority.
    pub priority: u16,
    /// Match.
    pub matching: Match,
}

impl EntryKey {
    /// Returns the key with its fields in order and masks only where they leave bits out, so that equal matches are
    /// equal keys, whether they come from an application or from a switch.
    pub(super) fn canonical(mut self) -> EntryKey {
        for entry in &mut self.matching.fields {
            if let MatchField::Known { field, mask, .. } = entry
                && *mask == Some(field.all_ones())
            {
                *mask = None;
            }
        }
        let order = |entry: &MatchField| match entry {
            MatchField::Known { field, .. } => (Some(*field), 0),
            MatchField::Raw(raw) => (None, u32::from(raw.class) << 16 | u32::from(raw.number)),
        };
        self.matching.fields.sort_by_key(order);
        self
    }
}

/// An entry that a switch should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredEntry {
    /// Identity of the entry.
    pub key: EntryKey,
    /// Instructions for its packets.
    pub instructions: Vec<Instruction>,
    /// Seconds without a packet after which the switch removes it; 0 for never. An entry that the switch has removed is
    /// no longer asked for.
    pub idle_timeout: u16,
    /// Seconds after which the switch removes it; 0 for never.
    pub hard_timeout: u16,
}

impl DesiredEntry {
    /// Returns an entry without time-outs.
    pub fn new(table: u8, priority: u16, matching: Match, instructions: Vec<Instruction>) -> DesiredEntry {
        let key = EntryKey { table, priority, matching };
        DesiredEntry { key, instructions, idle_timeout: 0, hard_timeout: 0 }
    }
}

/// Work of an entry, before groups have numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum EntryWork {
    Instructions(Vec<Instruction>),
    Hop(Hop),
}

/// Content of an entry besides its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntryContent {
    pub(super) work: EntryWork,
    pub(super) idle_timeout: u16,
    pub(super) hard_timeout: u16,
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::Field;

    #[test]
    fn equal_matches_are_equal_keys() {
        let key = |matching| EntryKey { table: 1, priority: 2, matching }.canonical();
        let one = Match::any().with(Field::EthSrc, 1_u64).with(Field::InPort, 2_u32);
        let other = Match::any().with(Field::InPort, 2_u32).with_masked(Field::EthSrc, 1_u64, Field::EthSrc.all_ones());
        assert_eq!(key(one.clone()), key(other));
        assert_ne!(key(one), key(Match::any().with_masked(Field::EthSrc, 1_u64, 1_u64).with(Field::InPort, 2_u32)));
    }
}
