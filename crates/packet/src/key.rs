//! The flow key: every field a flow entry can match on, at a fixed place in thirty words.
//!
//! Fields that exclude each other share bits (ARP with IPv4 addresses, ICMP type and code with ports, neighbour
//! discovery with ARP hardware addresses); OpenFlow's prerequisites make that safe, since an entry that matches on one of
//! them also matches on the `eth_type` or `ip_proto` that tells them apart. So a match is a mask and a value over words,
//! whatever fields it names, and a table needs to look only at the words its entries use.
use crate::Field;
use crate::field::{Place, eth_type};

/// Words of a flow key.
pub const WORDS: usize = 30;

/// The words that hold only pipeline fields: metadata, tunnel id, physical port and packet type, registers, tunnel addresses,
/// `actset_output`.
const PIPELINE_WORDS: [usize; 13] = [5, 6, 16, 17, 18, 19, 20, 21, 22, 23, 24, 28, 29];

/// The matchable fields of one packet. [`Field`] says where each one lies; absent fields are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FlowKey {
    /// The words; see the table in [`crate::field`].
    pub words: [u64; WORDS],
}

/// Which bits of a flow key count: ones in the places of a [`FlowKey`].
pub type FlowMask = FlowKey;

impl FlowKey {
    /// All fields absent.
    pub const EMPTY: FlowKey = FlowKey { words: [0; WORDS] };

    /// Where the key says which tag follows the outermost one: see [`FlowKey::set_second_tag`].
    pub const SECOND_TAG: Place = Place { word: 3, shift: 0, bits: 2 };

    /// The field's value, in the low [`Field::bits`] bits.
    #[inline]
    pub fn get(&self, field: Field) -> u128 {
        let place = field.place();
        if place.bits > 64 {
            return u128::from(self.words[place.word]) << 64 | u128::from(self.words[place.word + 1]);
        }
        u128::from(self.read(place))
    }

    /// Sets the field to the low [`Field::bits`] bits of `value`.
    #[expect(clippy::cast_possible_truncation, reason = "the high half is written first, then the low half")]
    #[inline]
    pub fn set(&mut self, field: Field, value: u128) {
        let place = field.place();
        if place.bits > 64 {
            self.words[place.word] = (value >> 64) as u64;
            self.words[place.word + 1] = value as u64;
            return;
        }
        self.write(place, value as u64);
    }

    /// Notes the type behind the outermost VLAN tag if that is another tag's, 0x8100 or 0x88a8. No field of OpenFlow's is about
    /// it: 1.0's `dl_type` is that type (OpenFlow 1.0.0, figure 4), later versions' `eth_type` the one behind all tags.
    #[inline]
    pub fn set_second_tag(&mut self, eth_type: u16) {
        let bits = match eth_type {
            eth_type::VLAN => 1,
            eth_type::QINQ => 2,
            _ => 0,
        };
        self.write(FlowKey::SECOND_TAG, bits);
    }

    /// Returns the type that [`FlowKey::set_second_tag`] was given; zero if it was not a VLAN tag's.
    pub fn second_tag(&self) -> u16 {
        match self.read(FlowKey::SECOND_TAG) {
            1 => eth_type::VLAN,
            2 => eth_type::QINQ,
            _ => 0,
        }
    }

    /// States, in a mask, whether a match compares the second tag.
    pub fn count_second_tag(&mut self, counts: bool) {
        let place = FlowKey::SECOND_TAG;
        self.write(place, if counts { ones(place.bits) } else { 0 });
    }

    /// The bits at a place of up to 64.
    #[inline]
    fn read(&self, place: Place) -> u64 {
        self.words[place.word] >> place.shift & ones(place.bits)
    }

    /// Writes the low bits of `value` to a place of up to 64.
    #[inline]
    fn write(&mut self, place: Place, value: u64) {
        let mask = ones(place.bits) << place.shift;
        let word = &mut self.words[place.word];
        *word = *word & !mask | value << place.shift & mask;
    }

    /// Whether every bit of `self` that counts in `mask` equals the one in `value` (whose other bits are zero).
    pub fn matches(&self, value: &FlowKey, mask: &FlowMask) -> bool {
        let words = self.words.iter().zip(&mask.words).zip(&value.words);
        words.fold(0, |difference, ((key, mask), value)| difference | key & mask ^ value) == 0
    }

    /// The bits of `self` that count in `mask`, others zero.
    pub fn masked(&self, mask: &FlowMask) -> FlowKey {
        FlowKey { words: std::array::from_fn(|word| self.words[word] & mask.words[word]) }
    }

    /// Takes over what travels with a packet and is not in its bytes ([`Field::is_pipeline`]), but for the input port.
    pub fn carry_pipeline_fields(&mut self, from: &FlowKey) {
        for word in PIPELINE_WORDS {
            self.words[word] = from.words[word];
        }
    }

    /// Whether no bit is set: for a mask, whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.words == [0; WORDS]
    }
}

/// The low `bits` bits, `1..=64`.
const fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_holds_its_extremes() {
        for field in Field::ALL {
            let mut key = FlowKey { words: [u64::MAX; WORDS] };
            key.set(field, 0);
            assert_eq!(key.get(field), 0, "{field:?}");
            key = FlowKey::EMPTY;
            key.set(field, field.all_ones());
            assert_eq!(key.get(field), field.all_ones(), "{field:?}");
            let set: u32 = key.words.iter().map(|w| w.count_ones()).sum();
            assert_eq!(set, field.bits(), "{field:?}");
        }
    }

    #[test]
    fn pipeline_fields_are_carried_and_others_are_not() {
        let from = FlowKey { words: [u64::MAX; WORDS] };
        let mut key = FlowKey::EMPTY;
        key.carry_pipeline_fields(&from);
        for field in Field::ALL {
            let expected = if field.is_pipeline() && field != Field::InPort { field.all_ones() } else { 0 };
            assert_eq!(key.get(field), expected, "{field}");
        }
    }

    #[test]
    fn the_second_tag_lies_in_no_field() {
        let mut key = FlowKey { words: [u64::MAX; WORDS] };
        Field::ALL.into_iter().for_each(|field| key.set(field, 0));
        assert_eq!(key.read(FlowKey::SECOND_TAG), 3);
        for tag in [eth_type::VLAN, eth_type::QINQ, 0] {
            key.set_second_tag(tag);
            assert_eq!(key.second_tag(), tag);
        }
        assert_eq!(key.read(FlowKey::SECOND_TAG), 0);
    }

    #[test]
    fn matching_looks_only_at_masked_bits() {
        let (mut key, mut value, mut mask) = (FlowKey::EMPTY, FlowKey::EMPTY, FlowMask::EMPTY);
        key.set(Field::Ipv4Dst, 0x0a00_0105);
        value.set(Field::Ipv4Dst, 0x0a00_0100);
        mask.set(Field::Ipv4Dst, 0xffff_ff00);
        assert!(key.matches(&value, &mask));
        key.set(Field::Ipv4Dst, 0x0a00_0205);
        assert!(!key.matches(&value, &mask));
        assert!(key.matches(&FlowKey::EMPTY, &FlowMask::EMPTY));
    }
}
