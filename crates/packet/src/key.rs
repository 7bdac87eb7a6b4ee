//! Defines the flow key: every field that a flow entry can match on, at a fixed place in thirty 64-bit words.
//!
//! Fields that exclude each other share bits: ARP and IPv4 addresses, ICMP type and code and ports, neighbour
//! discovery and ARP hardware addresses. OpenFlow's prerequisites make that safe: an entry that matches on one of
//! them also matches on the `eth_type` or `ip_proto` that distinguishes them. A match is therefore a mask and a value
//! over words, whatever its fields, and a table needs to look only at the words that its entries use.
use crate::Field;
use crate::field::{FlowKeyPosition, eth_type};

/// Number of words in a flow key.
pub const WORDS: usize = 30;

/// Words that hold only pipeline fields: metadata, tunnel id, physical port and packet type, registers, tunnel
/// addresses, `actset_output`.
const PIPELINE_WORDS: [usize; 13] = [5, 6, 16, 17, 18, 19, 20, 21, 22, 23, 24, 28, 29];

/// The match fields of one packet. [`Field`] defines their places; absent fields are zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FlowKey {
    /// Words of the key; the table in [`crate::field`] describes them.
    pub words: [u64; WORDS],
}

/// Bits of a flow key that count: ones in the places of a [`FlowKey`].
pub type FlowMask = FlowKey;

impl FlowKey {
    /// Key without any field.
    pub const EMPTY: FlowKey = FlowKey { words: [0; WORDS] };

    /// Place of the type of the second VLAN tag, see [`FlowKey::set_second_tag`].
    pub const SECOND_TAG: FlowKeyPosition = FlowKeyPosition { word: 3, shift: 0, bits: 2 };

    /// Returns the field's value in the low [`Field::bits`] bits.
    #[inline]
    pub fn get(&self, field: Field) -> u128 {
        let place = field.key_position();
        if place.bits > 64 {
            return u128::from(self.words[place.word]) << 64 | u128::from(self.words[place.word + 1]);
        }
        u128::from(self.read(place))
    }

    /// Sets the field to the low [`Field::bits`] bits of `value`.
    #[expect(clippy::cast_possible_truncation, reason = "the high half is written first, then the low half")]
    #[inline]
    pub fn set(&mut self, field: Field, value: u128) {
        let place = field.key_position();
        if place.bits > 64 {
            self.words[place.word] = (value >> 64) as u64;
            self.words[place.word + 1] = value as u64;
            return;
        }
        self.write(place, value as u64);
    }

    /// Stores the type after the outermost VLAN tag, if it is that of another tag, 0x8100 or 0x88a8. No OpenFlow
    /// field holds it: `dl_type` of 1.0 is that type (OpenFlow 1.0.0, figure 4), while `eth_type` of later versions
    /// is the type after all tags.
    #[inline]
    pub fn set_second_tag(&mut self, eth_type: u16) {
        let bits = match eth_type {
            eth_type::VLAN => 1,
            eth_type::QINQ => 2,
            _ => 0,
        };
        self.write(FlowKey::SECOND_TAG, bits);
    }

    /// Returns the type passed to [`FlowKey::set_second_tag`]; zero if it was not a VLAN tag's.
    pub fn second_tag(&self) -> u16 {
        match self.read(FlowKey::SECOND_TAG) {
            1 => eth_type::VLAN,
            2 => eth_type::QINQ,
            _ => 0,
        }
    }

    /// Sets, in a mask, whether a match compares the second tag's type.
    pub fn count_second_tag(&mut self, counts: bool) {
        let place = FlowKey::SECOND_TAG;
        self.write(place, if counts { ones(place.bits) } else { 0 });
    }

    /// Returns the bits at a place of at most 64 bits.
    #[inline]
    fn read(&self, place: FlowKeyPosition) -> u64 {
        self.words[place.word] >> place.shift & ones(place.bits)
    }

    /// Writes the low bits of `value` to a place of at most 64 bits.
    #[inline]
    fn write(&mut self, place: FlowKeyPosition, value: u64) {
        let mask = ones(place.bits) << place.shift;
        let word = &mut self.words[place.word];
        *word = *word & !mask | value << place.shift & mask;
    }

    /// Returns true if every bit of `self` that counts in `mask` equals that in `value`, whose other bits must be
    /// zero.
    pub fn matches(&self, value: &FlowKey, mask: &FlowMask) -> bool {
        let words = self.words.iter().zip(&mask.words).zip(&value.words);
        words.fold(0, |difference, ((key, mask), value)| difference | key & mask ^ value) == 0
    }

    /// Returns the bits of `self` that count in `mask`, with the other bits zero.
    pub fn masked(&self, mask: &FlowMask) -> FlowKey {
        FlowKey { words: std::array::from_fn(|word| self.words[word] & mask.words[word]) }
    }

    /// Copies the pipeline fields ([`Field::is_pipeline`]), which are not in a packet's bytes, except the input port.
    pub fn carry_pipeline_fields(&mut self, from: &FlowKey) {
        for word in PIPELINE_WORDS {
            self.words[word] = from.words[word];
        }
    }

    /// Returns true if no bit is set: as a mask, it matches every packet.
    pub fn is_empty(&self) -> bool {
        self.words == [0; WORDS]
    }
}

/// Returns the low `bits` bits set, for `1..=64`.
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
