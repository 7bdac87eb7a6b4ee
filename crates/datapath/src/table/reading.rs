//! How versions read the type of a frame with several VLAN tags, and what that makes of a match.
use crate::shape::WordMatches;
use weir_openflow::Version;
use weir_packet::field::{Place, eth_type};
use weir_packet::{Field, FlowKey, FlowMask};

/// Which type of a frame a match on `eth_type` is about, where that has several VLAN tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeReading {
    /// The one behind all tags (OpenFlow 1.3.5, table 13).
    BehindAllTags,
    /// The one behind the outermost tag, which a second tag may have (OpenFlow 1.0.0, figure 4).
    BehindOneTag,
}

impl TypeReading {
    /// What messages of a version mean. Nicira's, with matches of their own, mean the same in all versions.
    pub(crate) fn of(version: Version, is_nicira: bool) -> TypeReading {
        if version == Version::V10 && !is_nicira { TypeReading::BehindOneTag } else { TypeReading::BehindAllTags }
    }

    /// An entry's match as tables compare it.
    pub(crate) fn words(self, mut key: FlowKey, mut mask: FlowMask) -> WordMatches {
        if self == TypeReading::BehindOneTag && mask.get(Field::EthType) != 0 && !reads_a_tag(&mut key, &mut mask) {
            // Frames with a second tag have that tag's type.
            mask.count_second_tag(true);
        }
        WordMatches::new(&key, &mask)
    }

    /// What is compared with the entries' matches to find those that are at least as specific. An entry of either reading is
    /// about a type that is not a tag's.
    pub(crate) fn filter_words(self, mut key: FlowKey, mut mask: FlowMask) -> WordMatches {
        if self == TypeReading::BehindOneTag {
            reads_a_tag(&mut key, &mut mask);
        }
        WordMatches::new(&key, &mask)
    }
}

/// The same match as [`TypeReading::words`] gives it in the other reading than `reading`, which is its own.
fn in_other(words: &WordMatches, reading: TypeReading) -> WordMatches {
    let (mut key, mut mask) = words.key_and_mask();
    match reading {
        TypeReading::BehindAllTags if reads_a_tag(&mut key, &mut mask) => {}
        TypeReading::BehindAllTags => mask.count_second_tag(true),
        TypeReading::BehindOneTag => {
            if mask.get(Field::EthType) == 0 {
                key.set(Field::EthType, key.second_tag().into());
                mask.set(Field::EthType, Field::EthType.all_ones());
            }
            mask.count_second_tag(false);
        }
    }
    WordMatches::new(&key, &mask)
}

/// Exchanges a type that is a second tag's for what frames' keys say of that tag; whether it was one.
fn reads_a_tag(key: &mut FlowKey, mask: &mut FlowMask) -> bool {
    let number = u16::try_from(key.get(Field::EthType)).unwrap_or_default();
    if mask.get(Field::EthType) == 0 || !matches!(number, eth_type::VLAN | eth_type::QINQ) {
        return false;
    }
    key.set_second_tag(number);
    mask.count_second_tag(true);
    key.set(Field::EthType, 0);
    mask.set(Field::EthType, 0);
    true
}

/// The readings that entries of a table on `eth_type` have, or had.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Readings {
    behind_all_tags: bool,
    behind_one_tag: bool,
}

impl Readings {
    /// Notes a match.
    pub(super) fn note(&mut self, words: &WordMatches) {
        match reading_of(words) {
            Some(TypeReading::BehindAllTags) => self.behind_all_tags = true,
            Some(TypeReading::BehindOneTag) => self.behind_one_tag = true,
            None => {}
        }
    }

    /// A match as entries of the other reading have it; none if there are none.
    pub(super) fn other(self, words: &WordMatches) -> Option<WordMatches> {
        let reading = reading_of(words)?;
        let is_there = match reading {
            TypeReading::BehindAllTags => self.behind_one_tag,
            TypeReading::BehindOneTag => self.behind_all_tags,
        };
        is_there.then(|| in_other(words, reading))
    }
}

/// The reading of a match as [`TypeReading::words`] gives it; none if it is on no type.
fn reading_of(words: &WordMatches) -> Option<TypeReading> {
    let looks_at = |place: Place| {
        let bits = u64::MAX >> (64 - place.bits) << place.shift;
        words.iter().any(|one| usize::from(one.word) == place.word && one.mask & bits != 0)
    };
    if looks_at(FlowKey::SECOND_TAG) {
        return Some(TypeReading::BehindOneTag);
    }
    looks_at(Field::EthType.place()).then_some(TypeReading::BehindAllTags)
}
