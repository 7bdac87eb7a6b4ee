//! Decodes bytes as OpenFlow messages: no panic, and a decoded message is unchanged by encoding and decoding.
#![no_main]
use libfuzzer_sys::fuzz_target;
use weir_openflow::model::Version;
use weir_openflow::{decode, encode};

fuzz_target!(|bytes: &[u8]| {
    let mut message = bytes.to_vec();
    // Sets the right length, so that the fuzzer need not find it.
    if let (Some(length), Ok(right)) = (message.get_mut(2..4), u16::try_from(bytes.len())) {
        length.copy_from_slice(&right.to_be_bytes());
    }
    for bytes in [bytes, &message] {
        let Ok(understood) = decode(bytes) else { continue };
        for version in Version::ALL {
            let mut encoded = Vec::new();
            // Another version, and sometimes the original one, cannot encode every message.
            if encode(&understood, version, &mut encoded).is_err() {
                continue;
            }
            match decode(&encoded) {
                Ok(again) => assert!(version as u8 != bytes[0] || again == understood, "{understood:?}\n{again:?}"),
                // A property that one version treats as unknown may be malformed in a version that knows it.
                Err(error) => assert!(version as u8 != bytes[0], "{understood:?}\n{error:?}"),
            }
        }
    }
});
