//! Converts matches between the two readings of `eth_type`. A frame with several VLAN tags has several EtherTypes, and
//! the OpenFlow version decides which of them a match on `eth_type` is compared with.
use crate::shape::WordMatches;
use weir_openflow::Version;
use weir_packet::field::{FlowKeyPosition, eth_type};
use weir_packet::{Field, FlowKey, FlowMask};

/// Reading of `eth_type`: the EtherType, of a frame with several VLAN tags, that a match on `eth_type` is compared
/// with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EthTypeReading {
    /// The EtherType behind all tags (OpenFlow 1.3.5, table 13).
    BehindAllTags,
    /// The EtherType behind the outermost tag, which is a VLAN type if a second tag follows (OpenFlow 1.0.0, figure
    /// 4).
    BehindOneTag,
}

impl EthTypeReading {
    /// Returns the reading that messages of a version use. Nicira's extension messages use the type behind all tags in
    /// 1.0, too.
    pub(crate) fn of(version: Version, is_nicira: bool) -> EthTypeReading {
        if version == Version::V10 && !is_nicira { EthTypeReading::BehindOneTag } else { EthTypeReading::BehindAllTags }
    }

    /// Returns an entry's match in the form that tables compare with packets.
    pub(crate) fn words(self, key: &FlowKey, mask: &FlowMask) -> WordMatches {
        if self == EthTypeReading::BehindAllTags || mask.get(Field::EthType) == 0 {
            return WordMatches::new(key, mask);
        }
        let (mut key, mut mask) = (*key, *mask);
        if !exchange_for_second_tag(&mut key, &mut mask) {
            // For a frame with a second tag, the type is that tag's and not the one in the match.
            mask.count_second_tag(true);
        }
        WordMatches::new(&key, &mask)
    }

    /// Returns the match of a non-strict request in the form that is compared with the matches of entries, to find
    /// those that are at least as specific (OpenFlow 1.3.5, 6.4). Entries of both readings are found, unless the match
    /// is on the type of a VLAN tag.
    pub(crate) fn filter_words(self, key: &FlowKey, mask: &FlowMask) -> WordMatches {
        if self == EthTypeReading::BehindAllTags {
            return WordMatches::new(key, mask);
        }
        let (mut key, mut mask) = (*key, *mask);
        exchange_for_second_tag(&mut key, &mut mask);
        WordMatches::new(&key, &mask)
    }
}

/// Translates an entry's match from `reading` to the other reading, to find entries that another OpenFlow version
/// added.
fn translated(words: &WordMatches, reading: EthTypeReading) -> WordMatches {
    let (mut key, mut mask) = words.key_and_mask();
    match reading {
        EthTypeReading::BehindAllTags if exchange_for_second_tag(&mut key, &mut mask) => {}
        EthTypeReading::BehindAllTags => mask.count_second_tag(true),
        EthTypeReading::BehindOneTag => {
            if mask.get(Field::EthType) == 0 {
                key.set(Field::EthType, key.second_tag().into());
                mask.set(Field::EthType, Field::EthType.all_ones());
            }
            mask.count_second_tag(false);
        }
    }
    WordMatches::new(&key, &mask)
}

/// Replaces a match on a VLAN tag's type by one on the second tag, which has its own location in the key. Returns
/// false and changes nothing if the match is on another type or on none.
fn exchange_for_second_tag(key: &mut FlowKey, mask: &mut FlowMask) -> bool {
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

/// Readings that matches on `eth_type` in a table have or had. A table with one reading needs no second search.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct EthTypeReadings {
    behind_all_tags: bool,
    behind_one_tag: bool,
}

impl EthTypeReadings {
    /// Records the reading of a match.
    pub(super) fn note(&mut self, words: &WordMatches) {
        match reading_of(words) {
            Some(EthTypeReading::BehindAllTags) => self.behind_all_tags = true,
            Some(EthTypeReading::BehindOneTag) => self.behind_one_tag = true,
            None => {}
        }
    }

    /// Translates a match to the other reading; `None` if no entry of the table has that reading.
    pub(super) fn other(self, words: &WordMatches) -> Option<WordMatches> {
        let reading = reading_of(words)?;
        let is_there = match reading {
            EthTypeReading::BehindAllTags => self.behind_one_tag,
            EthTypeReading::BehindOneTag => self.behind_all_tags,
        };
        is_there.then(|| translated(words, reading))
    }
}

/// Returns the reading of a match that [`EthTypeReading::words`] made; `None` if the match is not on `eth_type`.
fn reading_of(words: &WordMatches) -> Option<EthTypeReading> {
    let looks_at = |place: FlowKeyPosition| {
        let bits = u64::MAX >> (64 - place.bits) << place.shift;
        words.iter().any(|one| usize::from(one.word) == place.word && one.mask & bits != 0)
    };
    if looks_at(FlowKey::SECOND_TAG) {
        return Some(EthTypeReading::BehindOneTag);
    }
    looks_at(Field::EthType.key_position()).then_some(EthTypeReading::BehindAllTags)
}
