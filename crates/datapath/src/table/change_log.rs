//! Records changes to a table's entries, regardless of their origin, for clients that keep a copy of the entries
//! outside the datapath. Bundles that are rolled back record the reverse changes as well.
use super::{FlowEntry, FlowTable};
use weir_openflow::model::MatchField;
use weir_packet::Field;

/// Change of a flow entry. The entry's name is a number that no other entry of the datapath ever has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryChange {
    /// Entry added. An entry that replaces another with the same match and priority is a new one.
    Added {
        /// Name of the entry.
        entry: u64,
        /// Priority of the entry.
        priority: u16,
        /// True if the entry matches Ethernet addresses.
        ethernet: bool,
        /// True if the entry matches IP addresses, of either version.
        ip: bool,
    },
    /// Entry with a new program.
    Modified {
        /// Name of the entry.
        entry: u64,
    },
    /// Entry removed from the table.
    Removed {
        /// Name of the entry.
        entry: u64,
    },
}

/// Changes since they were last taken, oldest first.
#[derive(Debug, Default)]
pub(super) struct EntryChangeLog(Vec<EntryChange>);

impl EntryChangeLog {
    pub(super) fn log_added(&mut self, entry: &FlowEntry) {
        let fields = entry.matching.to_match().fields;
        let looks_at = |wanted: &[Field]| {
            let is_one = |field: &MatchField| matches!(field, MatchField::Known { field, mask, .. } if *mask != Some(0) && wanted.contains(field));
            fields.iter().any(is_one)
        };
        self.0.push(EntryChange::Added {
            entry: entry.stamp,
            priority: entry.priority,
            ethernet: looks_at(&[Field::EthSrc, Field::EthDst]),
            ip: looks_at(&[Field::Ipv4Src, Field::Ipv4Dst, Field::Ipv6Src, Field::Ipv6Dst]),
        });
    }

    pub(super) fn modified(&mut self, entry: &FlowEntry) {
        self.0.push(EntryChange::Modified { entry: entry.stamp });
    }

    pub(super) fn log_removed(&mut self, entry: &FlowEntry) {
        self.0.push(EntryChange::Removed { entry: entry.stamp });
    }
}

impl FlowTable {
    /// Starts recording changes. The present entries are recorded as added.
    pub(crate) fn watch(&mut self) {
        let mut watch = EntryChangeLog::default();
        self.iter().for_each(|(_, entry)| watch.log_added(entry));
        self.watch = Some(Box::new(watch));
    }

    /// Appends the changes since the last call to `into`; nothing if changes are not recorded.
    pub(crate) fn take_changes(&mut self, into: &mut Vec<EntryChange>) {
        if let Some(watch) = &mut self.watch {
            into.append(&mut watch.0);
        }
    }
}
