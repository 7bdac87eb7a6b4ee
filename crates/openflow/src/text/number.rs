//! Parses numbers, decimal or hexadecimal with `0x`, and bytes.

/// Parses a number of at most `max`. The error says what was expected.
pub(super) fn parse(text: &str, max: u128) -> Result<u128, String> {
    let expected = || match max {
        0..=0xffff => format!("a number from 0 to {max}, decimal or hexadecimal as 0x1f"),
        _ => format!("a number from 0 to {max:#x}, decimal or hexadecimal as 0x1f"),
    };
    let (digits, radix) = match text.strip_prefix("0x").or(text.strip_prefix("0X")) {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    if radix == 10 && digits.len() > 1 && digits.starts_with('0') {
        return Err(format!("{}: a leading 0 means octal to some programs and decimal to others", expected()));
    }
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(expected());
    }
    u128::from_str_radix(digits, radix).ok().filter(|value| *value <= max).ok_or_else(expected)
}

/// Defines a parser for each unsigned type.
macro_rules! readers {
    ($($name:ident),*) => { $(
        pub(super) fn $name(text: &str) -> Result<$name, String> {
            parse(text, u128::from($name::MAX)).map(|value| $name::try_from(value).unwrap_or($name::MAX))
        }
    )* };
}
readers!(u8, u16, u32, u64);

/// Parses bytes written as pairs of hexadecimal digits.
pub(super) fn hex_bytes(text: &str) -> Result<Vec<u8>, String> {
    let expected = "pairs of hexadecimal digits";
    if !text.len().is_multiple_of(2) || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(expected.into());
    }
    let pair = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| expected.to_owned());
    (0..text.len()).step_by(2).map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_and_hexadecimal() {
        assert_eq!(u16("65535"), Ok(65535));
        assert_eq!(u64("0xffffFFFFffffffff"), Ok(u64::MAX));
        for wrong in ["", "0x", "65536", "-1", "+1", "1.5", "010", "0x1g", " 1"] {
            assert!(u16(wrong).is_err(), "{wrong}");
        }
        assert!(u16("ten").unwrap_err().contains("0 to 65535"));
    }

    #[test]
    fn bytes() {
        assert_eq!(hex_bytes("00fF"), Ok(vec![0, 255]));
        assert_eq!(hex_bytes(""), Ok(vec![]));
        assert!(hex_bytes("0").is_err() && hex_bytes("é").is_err() && hex_bytes("+1").is_err());
    }
}
