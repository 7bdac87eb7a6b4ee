//! Tests that random messages decode to themselves, and that random bytes decode without a panic.
use crate::dice::Dice;
use proptest::collection::vec;
use proptest::prelude::*;
use weir_openflow::codec::HEADER_BYTES;
use weir_openflow::model::{Message, Version};
use weir_openflow::{decode, encode};

fn encoded(message: &Message, version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(message, version, &mut bytes).unwrap();
    bytes
}

fn message(noise: &[u8], version: Version) -> Message {
    Dice::new(noise).message(version)
}

fn version() -> impl Strategy<Value = Version> {
    prop::sample::select(Version::ALL.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn messages_come_back(noise in vec(any::<u8>(), 0..600), version in version()) {
        let message = message(&noise, version);
        let bytes = encoded(&message, version);
        prop_assert_eq!(decode(&bytes), Ok(message));
    }

    #[test]
    fn encoding_appends(noise in vec(any::<u8>(), 0..200), version in version()) {
        let message = message(&noise, version);
        let mut bytes = vec![7; 3];
        encode(&message, version, &mut bytes).unwrap();
        prop_assert_eq!(&bytes[..3], &[7; 3]);
        prop_assert_eq!(&bytes[3..], &encoded(&message, version)[..]);
    }

    /// A decoded message stays equal when it is encoded and decoded again.
    #[test]
    fn what_is_understood_is_kept(noise in vec(any::<u8>(), 0..400), version in version(), changes in vec((any::<prop::sample::Index>(), any::<u8>()), 1..4)) {
        let mut bytes = encoded(&message(&noise, version), version);
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        if let (Ok(message), Some(version)) = (decode(&bytes), Version::from_number(bytes[0])) {
            let mut again = Vec::new();
            // Encoding may fail for content that only other implementations can encode, such as a name without zero
            // byte.
            if encode(&message, version, &mut again).is_ok() {
                prop_assert_eq!(decode(&again).unwrap(), message);
            }
        }
    }

    #[test]
    fn any_bytes_are_told_apart(mut bytes in vec(any::<u8>(), 0..300), version in version(), kind in 0_u8..40) {
        let _ = decode(&bytes);
        if bytes.len() >= HEADER_BYTES {
            let length = u16::try_from(bytes.len()).unwrap().to_be_bytes();
            bytes[..4].copy_from_slice(&[version as u8, kind, length[0], length[1]]);
            let _ = decode(&bytes);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// A message cut at any length, with or without a corrected header length, gives an error or another message, but
    /// no panic.
    #[test]
    fn cut_messages_are_told_apart(noise in vec(any::<u8>(), 0..400), version in version()) {
        let bytes = encoded(&message(&noise, version), version);
        for length in 0..bytes.len() {
            let mut cut = bytes[..length].to_vec();
            prop_assert!(decode(&cut).is_err());
            if length >= HEADER_BYTES {
                cut[2..4].copy_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
                let _ = decode(&cut);
            }
        }
    }
}
