//! Provides formats that several messages share: bit names, durations, hexadecimal dumps.
use std::fmt::Write as _;

/// Names of bits or groups of bits, in the order in which they are printed.
pub(super) type BitNames = &'static [(u32, &'static str)];

/// Prints the names of the bits that are set, then the remaining bits as a number; `0` if no bit is set.
pub(super) fn bits(value: u32, names: BitNames) -> String {
    if value == 0 {
        return "0".into();
    }
    let set = names.iter().filter(|(bit, _)| value & bit != 0);
    let left = set.clone().fold(value, |left, (bit, _)| left & !bit);
    let mut words: Vec<String> = set.map(|(_, name)| (*name).to_owned()).collect();
    if left != 0 {
        words.push(format!("{left:#x}"));
    }
    words.join(" ")
}

/// Prints a duration in seconds: with three decimals if whole milliseconds suffice, otherwise with as many as needed:
/// `3.048825s`, `3.100s`, `3s`.
pub(super) fn duration(seconds: u32, nanoseconds: u32) -> String {
    match nanoseconds {
        0 => format!("{seconds}s"),
        _ if nanoseconds.is_multiple_of(1_000_000) => format!("{seconds}.{:03}s", nanoseconds / 1_000_000),
        _ => {
            let digits = format!("{nanoseconds:09}");
            format!("{seconds}.{}s", digits.trim_end_matches('0'))
        }
    }
}

/// Prints a counter; `?` for one that is not kept.
pub(super) fn counter(value: u64) -> String {
    if value == u64::MAX { "?".into() } else { value.to_string() }
}

/// Prints bytes, sixteen a line: offset, bytes, characters.
pub(super) fn hex_dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (line, bytes) in bytes.chunks(16).enumerate() {
        let _ = write!(text, "{:08x}  ", line * 16);
        for at in 0..16 {
            let gap = if at == 7 && bytes.len() > 7 { '-' } else { ' ' };
            match bytes.get(at) {
                Some(byte) => write!(text, "{byte:02x}{gap}"),
                None => write!(text, "   "),
            }
            .unwrap_or_default();
        }
        let shown: String = bytes.iter().map(|byte| printable(*byte)).collect();
        let _ = writeln!(text, "|{shown:16}|");
    }
    text
}

fn printable(byte: u8) -> char {
    if byte == b' ' || byte.is_ascii_graphic() { char::from(byte) } else { '.' }
}

/// Escapes control characters in a text received from a peer, so that it stays on one line.
pub(super) fn safe(text: &str) -> String {
    text.chars().fold(String::new(), |mut safe, c| {
        if c.is_control() {
            safe.extend(c.escape_default());
        } else {
            safe.push(c);
        }
        safe
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dumps_align() {
        let dump = hex_dump(b"hoge");
        assert_eq!(dump, "00000000  68 6f 67 65                                     |hoge            |\n");
        let dump = hex_dump(&[0xff; 8]);
        assert_eq!(dump, "00000000  ff ff ff ff ff ff ff ff-                        |........        |\n");
        assert_eq!(hex_dump(&[0; 17]).lines().count(), 2);
    }

    #[test]
    fn durations_and_bits() {
        assert_eq!((duration(3, 0), duration(0, 100_000_000)), ("3s".into(), "0.100s".into()));
        assert_eq!((duration(0, 480_000), duration(600, 500)), ("0.00048s".into(), "600.0000005s".into()));
        assert_eq!(bits(0b1011, &[(1, "A"), (2, "B")]), "A B 0x8");
        assert_eq!(safe("a\nb\u{1b}c"), "a\\nb\\u{1b}c");
    }
}
