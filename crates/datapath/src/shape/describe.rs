//! Describes a table's classifier: its kind, its size and the cost of lookups.
use serde::{Deserialize, Serialize};

/// Kind and size of a classifier.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ClassifierInfo {
    /// Name of the kind of classifier, for display, such as "linear" or "tuple space".
    pub(crate) shape: &'static str,
    /// Number of different masks of the entries; `None` if the classifier does not distinguish masks.
    pub(crate) masks: Option<usize>,
    /// Memory that the classifier holds in addition to the entries themselves, in bytes; `None` if unknown.
    pub(crate) bytes: Option<usize>,
}

/// A table's classifier at one moment, and the cost of lookups in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableShape {
    /// Number of the table.
    pub table: u8,
    /// Name of the kind of classifier, such as "linear" or "tuple space".
    pub shape: String,
    /// Number of entries.
    pub entries: usize,
    /// Number of different masks of the entries, if the classifier distinguishes masks.
    pub masks: Option<usize>,
    /// Memory that the classifier holds in addition to the entries themselves, in bytes, if known.
    pub bytes: Option<usize>,
    /// Packets looked up since the start.
    pub lookups: u64,
    /// Lookups that matched an entry.
    pub matches: u64,
    /// Lookup cost of a sample of the latest packets.
    pub probes: Option<LookupCost>,
}

/// Lookup cost of sampled packets.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LookupCost {
    /// Number of sampled packets.
    pub samples: usize,
    /// Mean cost per packet: the number of entries compared, hashes looked up or tree nodes visited, depending on the
    /// kind of classifier.
    pub mean: f64,
    /// Maximum cost of a sampled packet, in the unit of `mean`.
    pub max: u32,
}

impl LookupCost {
    /// Summarizes the costs of sampled packets; `None` if `costs` is empty.
    pub(crate) fn of(costs: &[u32]) -> Option<LookupCost> {
        let max = *costs.iter().max()?;
        let sum: u64 = costs.iter().map(|cost| u64::from(*cost)).sum();
        Some(LookupCost { samples: costs.len(), mean: sum as f64 / costs.len() as f64, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{Classifier, EntryId, WordMatches, adaptive::AdaptiveClassifier, hash::TupleSpace};
    use weir_packet::{Field, FlowKey, FlowMask};

    fn table<C: Classifier + Default>(entries: &[(u16, u128, u128)]) -> C {
        let mut table = C::default();
        for (id, (priority, value, bits)) in (0..).zip(entries) {
            let (mut key, mut mask) = (FlowKey::EMPTY, FlowMask::EMPTY);
            key.set(Field::Ipv4Dst, *value);
            mask.set(Field::Ipv4Dst, *bits);
            let words = WordMatches::new(&key, &mask);
            table.make_room(EntryId(id), &words).unwrap();
            table.insert(EntryId(id), *priority, &words);
        }
        table
    }

    fn probes(table: &impl Classifier, destination: u128) -> u32 {
        let mut key = FlowKey::EMPTY;
        key.set(Field::Ipv4Dst, destination);
        table.probes(&key).unwrap()
    }

    #[test]
    fn few_entries_are_compared_one_after_the_other() {
        let few: AdaptiveClassifier = table(&[(3, 1, 0xff), (2, 2, 0xff), (1, 0, 0)]);
        assert_eq!(few.describe().shape, "linear");
        assert_eq!([1, 2, 9].map(|destination| probes(&few, destination)), [1, 2, 3]);
    }

    #[test]
    fn a_lookup_probes_masks_until_what_it_found_cannot_be_beaten() {
        let odd = [(9, 0x11, 0x1f), (8, 0x22, 0x2f), (7, 0x33, 0x3f), (6, 0x44, 0x4f), (5, 0x55, 0x5f)];
        let many: TupleSpace = table(&odd);
        assert_eq!((many.describe().shape, many.describe().masks), ("tuple space", Some(5)));
        assert_eq!([0x11, 0x22, 0x80].map(|destination| probes(&many, destination)), [1, 2, 5]);
    }

    #[test]
    fn means_are_over_the_samples() {
        assert_eq!(LookupCost::of(&[1, 2, 6]), Some(LookupCost { samples: 3, mean: 3.0, max: 6 }));
        assert_eq!(LookupCost::of(&[]), None);
    }
}
