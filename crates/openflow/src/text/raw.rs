//! Parses and prints fields that weir does not know: `raw_0x0001_37=00000005`. With a mask, `/m` follows the field
//! number and the mask's digits follow the value's (`raw_0x0001_37/m=...`).
use super::{ParseError, number};
use crate::model::matching::RawField;
use std::fmt::Write as _;

/// Prefix of the names of such fields.
const PREFIX: &str = "raw_";

pub(super) fn is_name(key: &str) -> bool {
    key.starts_with(PREFIX)
}

/// Returns the name of the field.
pub(super) fn name(field: &RawField) -> String {
    let mask = if field.has_mask { "/m" } else { "" };
    format!("{PREFIX}{:#06x}_{}{mask}", field.class, field.number)
}

/// Prints bytes as hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Parses a field from its name and its payload. `at` and `payload_at` are their offsets in the whole text.
pub(super) fn parse(name: &str, at: usize, payload: &str, payload_at: usize) -> Result<RawField, ParseError> {
    let parts = || {
        let numbers = name.strip_prefix(PREFIX)?;
        let (numbers, has_mask) = numbers.strip_suffix("/m").map_or((numbers, false), |numbers| (numbers, true));
        let (class, field) = numbers.split_once('_')?;
        Some((number::u16(class).ok()?, number::u8(field).ok().filter(|field| *field < 128)?, has_mask))
    };
    let expected = "the class and number of an OXM field, as in raw_0x0001_37";
    let (class, number, has_mask) = parts().ok_or_else(|| ParseError::new(at, name, expected))?;
    let bytes = number::hex_bytes(payload).ok().filter(|bytes| bytes.len() <= usize::from(u8::MAX));
    let expected = "at most 255 bytes as pairs of hexadecimal digits";
    let bytes = bytes.ok_or_else(|| ParseError::new(payload_at, payload, expected))?;
    Ok(RawField { class, number, has_mask, payload: bytes.into() })
}
