//! Finds entries of others that take packets of a router, or lose packets to it.
use crate::entries::RouterEntry;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::fmt;
use weir_openflow::model::TableId;
use weir_packet::{FlowKey, FlowMask};

/// Two entries of one table that both match some packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntryConflict {
    /// Entry of the router.
    pub mine: RouterEntry,
    /// Entry of others.
    pub other: RouterEntry,
    /// Entry that gets the packets that both match.
    pub winner: ConflictWinner,
}

/// Entry that gets the packets of two entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConflictWinner {
    /// The router's has the higher priority.
    Mine,
    /// The other one has the higher priority.
    Other,
    /// Both have the same priority: the switch decides (OpenFlow 1.3.5, 5.3).
    Undefined,
}

impl fmt::Display for EntryConflict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let winner = match self.winner {
            ConflictWinner::Mine => "the router's entry would take its packets",
            ConflictWinner::Other => "it would take packets of the router",
            ConflictWinner::Undefined => "both have the same priority",
        };
        write!(f, "found `{}`, which overlaps with `{}` of the router: {winner}", self.other, self.mine)
    }
}

/// Returns the entries of others that match packets which entries of a router match, too. Each entry of others is named
/// once, with the first of the router's. Entries with the keys of the router's own count as well: `existing` must not
/// have the router's.
///
/// Table-miss entries of others (priority 0, no match) are left out: they are for packets that no one else wants.
pub fn conflicts(existing: &[RouterEntry], mine: &[RouterEntry]) -> Vec<EntryConflict> {
    let mut tables: BTreeMap<TableId, Vec<ComparedEntry<'_>>> = BTreeMap::new();
    for entry in mine {
        tables.entry(entry.key.table).or_default().push(ComparedEntry::of(entry));
    }
    let is_miss = |entry: &&RouterEntry| entry.key.priority == 0 && entry.key.matching.fields.is_empty();
    let first = |other: &RouterEntry| {
        let mine = tables.get(&other.key.table)?;
        let compared = ComparedEntry::of(other);
        let mine = mine.iter().find(|mine| mine.overlaps(&compared))?.entry;
        let winner = match mine.key.priority.cmp(&other.key.priority) {
            Ordering::Greater => ConflictWinner::Mine,
            Ordering::Less => ConflictWinner::Other,
            Ordering::Equal => ConflictWinner::Undefined,
        };
        Some(EntryConflict { mine: mine.clone(), other: other.clone(), winner })
    };
    existing.iter().filter(|other| !is_miss(other)).filter_map(first).collect()
}

/// An entry with its match as key and mask; `None` for a match that weir cannot read.
struct ComparedEntry<'a> {
    entry: &'a RouterEntry,
    matching: Option<(FlowKey, FlowMask)>,
}

impl<'a> ComparedEntry<'a> {
    fn of(entry: &'a RouterEntry) -> ComparedEntry<'a> {
        ComparedEntry { entry, matching: entry.key.matching.key_and_mask().ok() }
    }

    /// Returns true if some packet matches both entries: they agree in the bits that both compare. An entry with an
    /// unknown match overlaps with all, to be safe.
    fn overlaps(&self, other: &ComparedEntry<'_>) -> bool {
        let (Some((one, one_mask)), Some((other, other_mask))) = (&self.matching, &other.matching) else { return true };
        one.masked(other_mask) == other.masked(one_mask)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::RouterEntryKey;
    use weir_openflow::model::{FlowCommand, Match};

    fn entry(text: &str) -> RouterEntry {
        let flow = weir_openflow::text::parse_flow(text, FlowCommand::Add).unwrap();
        let key = RouterEntryKey::new(flow.table, flow.priority, flow.matching);
        RouterEntry { key, cookie: flow.cookie, instructions: flow.instructions }
    }

    fn winner(mine: &str, other: &str) -> Option<ConflictWinner> {
        conflicts(&[entry(other)], &[entry(mine)]).first().map(|conflict| conflict.winner)
    }

    #[test]
    fn entries_that_share_packets_conflict() {
        let mine = "priority=10,in_port=1,ip,nw_dst=10.0.0.0/8,actions=drop";
        assert_eq!(winner(mine, "priority=5,in_port=1,actions=normal"), Some(ConflictWinner::Mine));
        assert_eq!(winner(mine, "priority=15,ip,nw_dst=10.1.0.0/16,actions=output:2"), Some(ConflictWinner::Other));
        assert_eq!(winner(mine, "priority=10,tcp,tp_dst=80,actions=output:2"), Some(ConflictWinner::Undefined));
        assert_eq!(winner(mine, "priority=1,actions=normal"), Some(ConflictWinner::Mine));
    }

    #[test]
    fn entries_of_other_packets_do_not() {
        let mine = "priority=10,in_port=1,ip,nw_dst=10.0.0.0/8,actions=drop";
        for other in [
            "priority=10,in_port=2,actions=drop",
            "priority=10,arp,actions=normal",
            "priority=10,ip,nw_dst=11.0.0.0/8,actions=drop",
            "table=1,priority=10,actions=drop",
            "priority=0,actions=controller",
        ] {
            assert_eq!(winner(mine, other), None, "{other}");
        }
    }

    #[test]
    fn a_conflict_names_both_entries() {
        let all = conflicts(&[entry("priority=7,actions=normal")], &[entry("priority=9,in_port=3,actions=drop")]);
        let text = all[0].to_string();
        assert!(
            text.contains("priority=7") && text.contains("in_port=3") && text.contains("take its packets"),
            "{text}"
        );
    }

    #[test]
    fn a_match_that_cannot_be_read_conflicts() {
        let mut other = entry("priority=7,in_port=9,actions=drop");
        other.key.matching = Match::any().with(weir_packet::Field::TcpDst, 80_u16);
        assert_eq!(conflicts(&[other], &[entry("priority=9,in_port=3,actions=drop")]).len(), 1);
    }
}
