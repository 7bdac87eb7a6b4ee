//! What happens to a table's entries, whoever does it, for who keeps a record of them beside the datapath. Bundles that are taken back undo what they
//! did here, too.
use super::{FlowEntry, FlowTable};
use weir_openflow::model::MatchField;
use weir_packet::Field;

/// What happened to a flow entry. Its name is a number that no other entry of the datapath ever has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryChange {
    /// It is there now. An entry that takes the place of another of its match and priority is a new one.
    Added {
        /// Its name.
        entry: u64,
        /// Its priority.
        priority: u16,
        /// Whether it looks at Ethernet addresses.
        ethernet: bool,
        /// Whether it looks at IP addresses, of either version.
        ip: bool,
    },
    /// It does something else now.
    Modified {
        /// Its name.
        entry: u64,
    },
    /// It is gone.
    Removed {
        /// Its name.
        entry: u64,
    },
}

/// What happened since it was taken last, oldest first.
#[derive(Debug, Default)]
pub(super) struct Watch(Vec<EntryChange>);

impl Watch {
    pub(super) fn came(&mut self, entry: &FlowEntry) {
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

    pub(super) fn went(&mut self, entry: &FlowEntry) {
        self.0.push(EntryChange::Removed { entry: entry.stamp });
    }
}

impl FlowTable {
    /// Writes down from now on what happens to entries, beginning with those that are there.
    pub(crate) fn watch(&mut self) {
        let mut watch = Watch::default();
        self.iter().for_each(|(_, entry)| watch.came(entry));
        self.watch = Some(Box::new(watch));
    }

    /// Appends what happened since this was called last; nothing unless it is watched.
    pub(crate) fn take_changes(&mut self, into: &mut Vec<EntryChange>) {
        if let Some(watch) = &mut self.watch {
            into.append(&mut watch.0);
        }
    }
}
