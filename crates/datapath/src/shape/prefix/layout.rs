//! Layout that the entries of one trie share: the same masks and values of the same words, except for one field, of
//! which each entry matches a prefix.
use super::super::{WordMatch, WordMatches};
use super::trie::Prefix;
use weir_packet::field::FlowKeyPosition;
use weir_packet::{Field, FlowKey};

/// Minimum width of the field in bits. Narrower fields are left to other data structures.
const MIN_BITS: u32 = 16;

/// The common part of the entries of a trie: see the [module](self).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PrefixLayout {
    /// Conditions other than the field's, in ascending order of their words.
    fixed: Box<[WordMatch]>,
    /// Location of the field in the flow key.
    place: FlowKeyPosition,
}

impl PrefixLayout {
    /// Returns the layout of an entry that matches a proper prefix of exactly one field; `None` if there is no such
    /// field, or more than one.
    pub(super) fn of(words: &WordMatches) -> Option<PrefixLayout> {
        let fields = Field::ALL.into_iter().filter(|field| field.is_maskable() && !field.is_alias());
        let places = fields.map(Field::key_position).filter(|place| place.bits >= MIN_BITS);
        let mut layouts = places.map(|place| PrefixLayout { fixed: Box::default(), place });
        let looks_at_part = |layout: &PrefixLayout| {
            let mask = layout.part(words, |word| word.mask);
            mask != 0 && mask != u128::MAX << (128 - layout.place.bits) && prefix_len(mask).is_some()
        };
        let found = layouts.find(looks_at_part)?;
        // Fields of mutually exclusive packet types may share a location. These count as the same field.
        if layouts.any(|other| other.place != found.place && looks_at_part(&other)) {
            return None;
        }
        let fixed = words.iter().map(|word| found.without_field(word)).filter(|rest| rest.mask != 0).collect();
        Some(PrefixLayout { fixed, place: found.place })
    }

    /// Returns the prefix that an entry of this layout matches; `None` if the entry has another layout.
    pub(super) fn prefix(&self, words: &WordMatches) -> Option<Prefix> {
        let rest = words.iter().map(|word| self.without_field(word)).filter(|rest| rest.mask != 0);
        if !rest.eq(self.fixed.iter().copied()) {
            return None;
        }
        let len = prefix_len(self.part(words, |word| word.mask))?;
        Some(Prefix { bits: self.part(words, |word| word.value), len })
    }

    /// Returns true if a packet matches the layout's masks and values outside the field.
    #[inline(always)]
    pub(super) fn admits(&self, key: &FlowKey) -> bool {
        // A loop without early exit, because there is mostly only one word.
        let differing =
            self.fixed.iter().fold(0, |sum, fixed| sum | key.words[usize::from(fixed.word)] & fixed.mask ^ fixed.value);
        differing == 0
    }

    /// Returns true if the field has more than 64 bits.
    #[inline(always)]
    pub(super) fn is_wide(&self) -> bool {
        self.place.bits > 64
    }

    /// Returns a packet's field in the top bits of the number, followed by the rest of its word; for fields of up to
    /// 64 bits.
    #[inline(always)]
    pub(super) fn narrow(&self, key: &FlowKey) -> u64 {
        key.words[self.place.word] << (64 - self.place.bits - self.place.shift)
    }

    /// Returns a packet's field; for fields of 128 bits.
    #[inline(always)]
    pub(super) fn wide(&self, key: &FlowKey) -> u128 {
        u128::from(key.words[self.place.word]) << 64 | u128::from(key.words[self.place.word + 1])
    }

    /// Returns the bits of a word that belong to the field.
    fn own(&self, word: u8) -> u64 {
        let FlowKeyPosition { word: first, shift, bits } = self.place;
        match usize::from(word).checked_sub(first) {
            Some(0 | 1) if bits > 64 => u64::MAX,
            Some(0) => u64::MAX >> (64 - bits) << shift,
            _ => 0,
        }
    }

    /// Returns the field's part of the masks or values of a match, in the top bits of the number.
    fn part(&self, words: &WordMatches, which: impl Fn(&WordMatch) -> u64) -> u128 {
        words.iter().fold(0, |sum, word| {
            let part = u128::from(which(word) & self.own(word.word));
            let up = match usize::from(word.word) - self.place.word.min(usize::from(word.word)) {
                _ if self.place.bits <= 64 => 128 - self.place.bits - self.place.shift,
                0 => 64,
                _ => 0,
            };
            sum | part << up
        })
    }

    /// Returns the part of a word's condition that does not concern the field.
    fn without_field(&self, word: &WordMatch) -> WordMatch {
        let rest = !self.own(word.word);
        WordMatch { word: word.word, mask: word.mask & rest, value: word.value & rest }
    }
}

/// Returns the number of bits of a mask if they are all at the top; otherwise `None`.
#[expect(clippy::cast_possible_truncation, reason = "at most 128")]
fn prefix_len(mask: u128) -> Option<u8> {
    let len = mask.leading_ones();
    (mask.checked_shl(len).unwrap_or(0) == 0).then_some(len as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::FlowMask;

    fn words(fields: &[(Field, u128, u128)]) -> WordMatches {
        let (mut key, mut mask) = (FlowKey::EMPTY, FlowMask::EMPTY);
        for (field, value, bits) in fields {
            key.set(*field, *value);
            mask.set(*field, *bits);
        }
        WordMatches::new(&key, &mask)
    }

    const IPV4: (Field, u128, u128) = (Field::EthType, 0x800, 0xffff);
    const IPV6: (Field, u128, u128) = (Field::EthType, 0x86dd, 0xffff);

    #[test]
    fn a_route_says_what_others_like_it_have_in_common() {
        let route = words(&[IPV4, (Field::Ipv4Dst, 0x0a01_0000, 0xffff_0000)]);
        let layout = PrefixLayout::of(&route).expect("one field is looked at in part");
        assert_eq!(layout.prefix(&route), Some(Prefix { bits: 0x0a01 << 112, len: 16 }));
        let host = words(&[IPV4, (Field::Ipv4Dst, 0x0a01_0203, 0xffff_ffff)]);
        assert_eq!(layout.prefix(&host), Some(Prefix { bits: 0x0a01_0203 << 96, len: 32 }));
        assert_eq!(layout.prefix(&words(&[IPV4])), Some(Prefix { bits: 0, len: 0 }));
        let others = [
            words(&[]),
            words(&[IPV6]),
            words(&[IPV4, (Field::Ipv4Dst, 0x0a00_0100, 0xff00_ff00)]),
            words(&[IPV4, (Field::Ipv4Src, 0x0a01_0000, 0xffff_0000)]),
            words(&[IPV4, (Field::InPort, 1, 0xffff_ffff), (Field::Ipv4Dst, 0x0a01_0000, 0xffff_0000)]),
        ];
        for other in &others {
            assert_eq!(layout.prefix(other), None, "{other:?}");
        }
    }

    #[test]
    fn other_fields_in_the_same_word_are_apart() {
        let mac = words(&[IPV4, (Field::EthDst, 0x0200_0000_0000, 0xffff_ff00_0000)]);
        let layout = PrefixLayout::of(&mac).expect("one field is looked at in part");
        assert_eq!(layout.prefix(&mac), Some(Prefix { bits: 0x0200_0000_0000 << 80, len: 24 }));
        assert_eq!(layout.prefix(&words(&[IPV6, (Field::EthDst, 0x0200_0000_0000, 0xffff_ff00_0000)])), None);
        let source = words(&[IPV4, (Field::Ipv4Src, 0x0a01_0000, 0xffff_0000), (Field::Ipv4Dst, 7, 0xffff_ffff)]);
        let layout = PrefixLayout::of(&source).expect("one field is looked at in part");
        let mut key = FlowKey::EMPTY;
        key.set(Field::EthType, 0x800);
        key.set(Field::Ipv4Dst, 7);
        key.set(Field::Ipv4Src, 0x0a01_0203);
        assert!(layout.admits(&key));
        assert_eq!(layout.narrow(&key) >> 32, 0x0a01_0203);
        key.set(Field::Ipv4Dst, 8);
        assert!(!layout.admits(&key));
    }

    #[test]
    fn addresses_of_two_words_are_one_number() {
        let (address, mask) = (0x2001_0db8_0000_0000_8000_u128 << 48, u128::MAX << 48);
        let route = words(&[IPV6, (Field::Ipv6Dst, address, mask)]);
        let layout = PrefixLayout::of(&route).expect("one field is looked at in part");
        assert!(layout.is_wide());
        assert_eq!(layout.prefix(&route), Some(Prefix { bits: address, len: 80 }));
        let mut key = FlowKey::EMPTY;
        key.set(Field::Ipv6Dst, address | 5);
        assert_eq!(layout.wide(&key), address | 5);
    }

    #[test]
    fn where_it_might_be_several_fields_it_is_none() {
        let both = words(&[IPV4, (Field::Ipv4Src, 1 << 31, 1 << 31), (Field::Ipv4Dst, 1 << 31, 1 << 31)]);
        assert_eq!(PrefixLayout::of(&both), None);
        assert_eq!(PrefixLayout::of(&words(&[IPV4, (Field::Ipv4Dst, 1, 0xffff_ffff)])), None, "looked at as a whole");
        assert_eq!(PrefixLayout::of(&words(&[])), None);
    }
}
