//! What a table looks like from the outside: for people who want to know why it takes as long as it does.
use serde::{Deserialize, Serialize};

/// What a classifier is, and how large.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Described {
    /// Its kind, in words.
    pub(crate) shape: &'static str,
    /// Different masks of its entries; none if it does not tell them apart.
    pub(crate) masks: Option<usize>,
    /// Bytes of memory that it holds beside the entries themselves; none if it does not know.
    pub(crate) bytes: Option<usize>,
}

/// A table's classifier at one moment, and what lookups cost in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TableShape {
    /// The table.
    pub table: u8,
    /// The kind of classifier, in words.
    pub shape: String,
    /// Entries in it.
    pub entries: usize,
    /// Different masks of its entries, if it tells them apart.
    pub masks: Option<usize>,
    /// Bytes of memory that it holds beside the entries themselves, if it knows.
    pub bytes: Option<usize>,
    /// Packets looked up since the start.
    pub lookups: u64,
    /// Those that matched an entry.
    pub matches: u64,
    /// What lookups of some of the packets that came just now cost.
    pub probes: Option<Probes>,
}

/// What lookups cost.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Probes {
    /// Packets it was found out with.
    pub samples: usize,
    /// Entries compared, hashes looked into, or nodes walked: for one packet, on average.
    pub mean: f64,
    /// For the packet with the most.
    pub max: u32,
}

impl Probes {
    /// What lookups of `costs` cost; none without any.
    pub(crate) fn of(costs: &[u32]) -> Option<Probes> {
        let max = *costs.iter().max()?;
        let sum: u64 = costs.iter().map(|cost| u64::from(*cost)).sum();
        Some(Probes { samples: costs.len(), mean: sum as f64 / costs.len() as f64, max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shape::{Classifier, EntryId, WordMatches, adaptive::Adaptive, hash::TupleSpace};
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
        let few: Adaptive = table(&[(3, 1, 0xff), (2, 2, 0xff), (1, 0, 0)]);
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
        assert_eq!(Probes::of(&[1, 2, 6]), Some(Probes { samples: 3, mean: 3.0, max: 6 }));
        assert_eq!(Probes::of(&[]), None);
    }
}
