//! Stores a match as the controller wrote it, in few bytes. It is only needed for statistics and messages about its
//! entry.
use super::EthTypeReading;
use crate::shape::WordMatches;
use weir_openflow::model::{Match, MatchField};
use weir_packet::Field;

/// Marker before the number of a field that has a mask; no field has this number.
const MASKED: u8 = 127;
/// Marker before all fields of a match of OpenFlow 1.0 on `eth_type`; no field has this number.
const BEHIND_ONE_TAG: u8 = 126;

/// A match that `Match::key_and_mask` accepted. Contains its fields in their order: for each field its number, the
/// value in as many bytes as the field is wide, and the mask in as many bytes if there is one.
#[derive(Debug, Clone)]
pub(crate) struct PackedMatch(PackedMatchBytes);

/// Number of bytes stored inline: enough for a connection and its input port.
const NEAR: usize = 30;

#[derive(Debug, Clone)]
enum PackedMatchBytes {
    Near { len: u8, bytes: [u8; NEAR] },
    Far(Box<[u8]>),
}

const _: () = assert!(size_of::<PackedMatch>() == 32);

impl PackedMatch {
    /// Encodes a match that was found valid, and its reading of `eth_type`.
    pub(crate) fn new(matching: &Match, reading: EthTypeReading) -> PackedMatch {
        // Without a type both readings are equal.
        let is_noted = reading == EthTypeReading::BehindOneTag && matching.get(Field::EthType).is_some();
        let length = known(matching).map(|(field, _, mask)| match mask {
            Some(_) => 2 + 2 * width(field),
            None => 1 + width(field),
        });
        PackedMatch(PackedMatchBytes::written(length.sum::<usize>() + usize::from(is_noted), |bytes| {
            let mut rest = bytes;
            if is_noted {
                put(&mut rest, &[BEHIND_ONE_TAG]);
            }
            for (field, value, mask) in known(matching) {
                if mask.is_some() {
                    put(&mut rest, &[MASKED]);
                }
                put(&mut rest, &[field as u8]);
                for bits in [Some(value), mask].into_iter().flatten() {
                    put(&mut rest, &bits.to_le_bytes()[..width(field)]);
                }
            }
        }))
    }

    fn bytes(&self) -> &[u8] {
        match &self.0 {
            PackedMatchBytes::Near { len, bytes } => bytes.get(..usize::from(*len)).unwrap_or_default(),
            PackedMatchBytes::Far(bytes) => bytes,
        }
    }

    /// Returns the match in the form that tables compare.
    pub(crate) fn words(&self) -> WordMatches {
        let (key, mask) = self.to_match().key_and_mask().expect("nothing was wrong with it");
        self.reading().words(&key, &mask)
    }

    /// Returns the reading of `eth_type`.
    pub(crate) fn reading(&self) -> EthTypeReading {
        match self.bytes().first() {
            Some(&BEHIND_ONE_TAG) => EthTypeReading::BehindOneTag,
            _ => EthTypeReading::BehindAllTags,
        }
    }

    /// Returns the bytes of the fields, without the marker for the reading.
    fn fields(&self) -> &[u8] {
        let bytes = self.bytes();
        bytes.strip_prefix(&[BEHIND_ONE_TAG]).unwrap_or(bytes)
    }

    /// Returns true if every packet matches.
    pub(crate) fn is_any(&self) -> bool {
        self.bytes().is_empty() || self.words().is_any()
    }

    /// Decodes the match.
    pub(crate) fn to_match(&self) -> Match {
        // One-byte fields take two bytes, most fields more.
        let mut rest = self.fields();
        let mut fields = Vec::with_capacity(rest.len().div_ceil(3));
        while let Some(field) = next(&mut rest) {
            fields.push(field);
        }
        Match { fields }
    }
}

impl PackedMatchBytes {
    /// Allocates `len` bytes, and fills them with `write`.
    fn written(len: usize, write: impl FnOnce(&mut [u8])) -> PackedMatchBytes {
        if len > NEAR {
            let mut bytes = vec![0; len].into_boxed_slice();
            write(&mut bytes);
            return PackedMatchBytes::Far(bytes);
        }
        let mut bytes = [0; NEAR];
        write(&mut bytes[..len]);
        PackedMatchBytes::Near { len: u8::try_from(len).unwrap_or(0), bytes }
    }
}

/// Copies bytes to the front of `rest`, and removes that part from it.
fn put(rest: &mut &mut [u8], bytes: &[u8]) {
    if let Some(place) = rest.split_off_mut(..bytes.len()) {
        place.copy_from_slice(bytes);
    }
}

/// Decodes and removes the first field; `None` at the end.
fn next(rest: &mut &[u8]) -> Option<MatchField> {
    let first = *rest.split_off_first()?;
    let is_masked = first == MASKED;
    let number = if is_masked { *rest.split_off_first()? } else { first };
    let field = Field::ALL[Field::ALL.binary_search_by_key(&number, |field| *field as u8).ok()?];
    let mut bits = || {
        let mut bytes = [0; 16];
        bytes[..width(field)].copy_from_slice(rest.split_off(..width(field))?);
        Some(u128::from_le_bytes(bytes))
    };
    let value = bits()?;
    Some(MatchField::Known { field, value, mask: if is_masked { Some(bits()?) } else { None } })
}

/// Iterates over the fields known to weir: all fields of a valid match.
fn known(matching: &Match) -> impl Iterator<Item = (Field, u128, Option<u128>)> {
    matching.fields.iter().filter_map(|entry| match entry {
        MatchField::Known { field, value, mask } => Some((*field, *value, *mask)),
        MatchField::Raw(_) => None,
    })
}

/// Returns the number of bytes that hold every value of a field.
fn width(field: Field) -> usize {
    field.bits().div_ceil(8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates any field with any value and mask of its width, including a mask of all ones.
    fn any_field() -> impl Strategy<Value = MatchField> {
        let mask = prop_oneof![Just(None), Just(Some(u128::MAX)), any::<u128>().prop_map(Some)];
        (prop::sample::select(&Field::ALL[..]), any::<u128>(), mask).prop_map(|(field, value, mask)| {
            let ones = field.all_ones();
            MatchField::Known { field, value: value & ones, mask: mask.map(|mask| mask & ones) }
        })
    }

    proptest! {
        #[test]
        fn what_was_written_comes_back(fields in prop::collection::vec(any_field(), 0..20), is_v10 in any::<bool>()) {
            let matching = Match { fields };
            let reading = if is_v10 { EthTypeReading::BehindOneTag } else { EthTypeReading::BehindAllTags };
            let written = PackedMatch::new(&matching, reading);
            prop_assert_eq!(written.to_match(), matching.clone());
            if matching.get(Field::EthType).is_some() {
                prop_assert_eq!(written.reading(), reading);
            }
        }
    }

    #[test]
    fn every_field_comes_back_at_its_ends() {
        for (field, mask) in Field::ALL.into_iter().flat_map(|f| [(f, None), (f, Some(0)), (f, Some(f.all_ones()))]) {
            for value in [0, 1, field.all_ones()] {
                let fields = vec![MatchField::Known { field, value, mask }];
                let written = PackedMatch::new(&Match { fields: fields.clone() }, EthTypeReading::BehindAllTags);
                assert_eq!(written.to_match().fields, fields);
            }
        }
    }

    #[test]
    fn numbers_of_fields_ascend_and_tell_marks_apart() {
        assert!(Field::ALL.is_sorted_by_key(|field| *field as u8));
        assert!(Field::ALL.iter().all(|field| ![MASKED, BEHIND_ONE_TAG].contains(&(*field as u8))));
    }

    #[test]
    fn five_fields_of_a_connection_take_less_than_their_wire_form() {
        let fields = [(Field::EthType, 0x0800), (Field::IpProto, 17), (Field::Ipv4Src, 1), (Field::Ipv4Dst, 2)];
        let ports = [(Field::UdpSrc, 3), (Field::UdpDst, 4)];
        let all = fields.into_iter().chain(ports);
        let matching = all.fold(Match::any(), |matching, (field, value): (_, u128)| matching.with(field, value));
        assert_eq!(PackedMatch::new(&matching, EthTypeReading::BehindAllTags).bytes().len(), 6 + 2 + 1 + 4 + 4 + 2 + 2);
    }
}
