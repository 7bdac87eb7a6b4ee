//! Tracks what lookups in a table can depend on and lead to, so that caches of lookup results know their
//! dependencies, and when they are out of date.
use crate::shape::WordMatches;
use crate::verdict::EntryVerdict;
use weir_packet::FlowMask;

/// Dependencies of lookups in a table. Bits and tables stay until the last entry is removed, so that maintaining them
/// costs nothing. There may be more than the present entries have, never fewer.
#[derive(Debug, Clone, Default)]
pub(crate) struct LookupDependencies {
    version: u64,
    /// Bits of Ethernet packets that the masks of entries cover.
    looks_at: FlowMask,
    /// Tables that entries continue in without doing anything else, one bit each.
    leads_to: [u64; 4],
}

impl LookupDependencies {
    /// Returns the version, which increases with every change of entries and of their programs.
    pub(crate) const fn version(&self) -> u64 {
        self.version
    }

    /// Returns the bits of Ethernet packets that the masks of entries cover.
    pub(crate) const fn looks_at(&self) -> &FlowMask {
        &self.looks_at
    }

    /// Iterates over the tables that entries continue in without doing anything else.
    pub(crate) fn leads_to(&self) -> impl Iterator<Item = u8> {
        (0..=u8::MAX).step_by(64).zip(self.leads_to).flat_map(|(first, bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 != 0).take(bits.count_ones() as usize).map(move |bit| first + bit)
        })
    }

    /// Records a new entry.
    pub(super) fn on_insert(&mut self, words: &WordMatches, verdict: EntryVerdict) {
        // Lookups of other packets are not cached.
        if words.is_of_ethernet() {
            words.iter().for_each(|one| self.looks_at.words[usize::from(one.word)] |= one.mask);
        }
        self.on_modify(verdict);
    }

    /// Records the new verdict of an entry.
    pub(super) fn on_modify(&mut self, verdict: EntryVerdict) {
        self.version += 1;
        if let EntryVerdict::Goto(table) = verdict {
            self.leads_to[usize::from(table / 64)] |= 1 << (table % 64);
        }
    }

    /// Records the removal of an entry.
    pub(super) fn on_remove(&mut self, was_last: bool) {
        self.version += 1;
        if was_last {
            *self = LookupDependencies { version: self.version, ..LookupDependencies::default() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::PortNo;
    use weir_packet::{Field, FlowKey};

    fn match_on(field: Field) -> WordMatches {
        let mut mask = FlowMask::EMPTY;
        mask.set(field, field.all_ones());
        WordMatches::new(&FlowKey::EMPTY, &mask)
    }

    #[test]
    fn it_knows_what_any_entry_looks_at_and_leads_to() {
        let mut reach = LookupDependencies::default();
        reach.on_insert(&match_on(Field::InPort), EntryVerdict::Goto(3));
        reach.on_insert(&match_on(Field::Ipv4Dst), EntryVerdict::Goto(200));
        reach.on_insert(&match_on(Field::EthType), EntryVerdict::Output(PortNo(1)));
        reach.on_modify(EntryVerdict::Goto(253));
        let mut mask = FlowMask::EMPTY;
        for field in [Field::InPort, Field::Ipv4Dst, Field::EthType] {
            mask.set(field, field.all_ones());
        }
        assert_eq!(*reach.looks_at(), mask);
        assert_eq!(reach.leads_to().collect::<Vec<_>>(), [3, 200, 253]);
    }

    #[test]
    fn every_change_has_a_version_of_its_own() {
        let (mut reach, mut versions) = (LookupDependencies::default(), vec![0]);
        reach.on_insert(&match_on(Field::InPort), EntryVerdict::Program);
        versions.push(reach.version());
        reach.on_modify(EntryVerdict::Program);
        versions.push(reach.version());
        reach.on_remove(false);
        versions.push(reach.version());
        assert!(!reach.looks_at().is_empty(), "others may look there");
        reach.on_remove(true);
        versions.push(reach.version());
        assert!(reach.looks_at().is_empty());
        assert!(versions.is_sorted_by(|before, after| before < after), "{versions:?}");
    }
}
