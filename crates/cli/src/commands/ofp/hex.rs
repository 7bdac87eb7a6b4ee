//! Parses hexadecimal text in common formats: bare digits, `xxd`, `hexdump -C`, `tcpdump -x` and weir's own dumps.
use std::fmt;

/// Position of text that is not hexadecimal.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HexParseError {
    line: usize,
    column: usize,
    found: String,
}

impl fmt::Display for HexParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}: found {}, expected hexadecimal digits", self.line, self.column, self.found)
    }
}

/// Parses the bytes. Digits come in pairs, separated by spaces, `:`, `-`, `,` or `0x`. An offset at a line's start,
/// the characters at its end and lines that start with `#` are skipped.
pub(super) fn parse(text: &str) -> Result<Vec<u8>, HexParseError> {
    let mut bytes = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with('#') {
            continue;
        }
        let (start, end) = digits(line, bytes.len());
        read(&line[start..end], &mut bytes).map_err(|(at, found)| HexParseError {
            line: number + 1,
            column: line[..start + at].chars().count() + 1,
            found,
        })?;
    }
    Ok(bytes)
}

/// Returns the start and end of a line's digits, without offset and characters. `before` is the number of bytes in
/// the preceding lines.
fn digits(line: &str, before: usize) -> (usize, usize) {
    let indent = line.len() - line.trim_start().len();
    let body = &line[indent..];
    let end = body.find('|').unwrap_or(body.len());
    let word = body.find(char::is_whitespace).unwrap_or(body.len());
    // Offsets such as `0x0010:` or `00000010:`; the characters follow two spaces after the digits.
    let colon = body[..word].strip_suffix(':').filter(|offset| !offset.contains(':') && offset.len() > 2);
    if colon.is_some() {
        let rest = body[word..end].trim_start();
        let start = end - rest.len();
        let length = rest.find("  ").unwrap_or(rest.len());
        return (indent + start, indent + start + length);
    }
    // Offsets such as `00000010  ` that equal the number of preceding bytes.
    let offset = body[..word].len() == 8 && body[word..].starts_with("  ");
    let value = usize::from_str_radix(&body[..word], 16);
    if offset && value.is_ok_and(|value| value == 0 || value == before) {
        return (indent + word, indent + end);
    }
    (indent, indent + end)
}

fn read(text: &str, bytes: &mut Vec<u8>) -> Result<(), (usize, String)> {
    let mut high: Option<u32> = None;
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let begins = high.is_none() && (text[at..].starts_with("0x") || text[at..].starts_with("0X"));
        match c.to_digit(16) {
            _ if begins => at += 1,
            Some(low) => match high.take() {
                None => high = Some(low),
                Some(high) => bytes.extend(u8::try_from(high << 4 | low)),
            },
            None if c.is_whitespace() || matches!(c, ':' | '-' | ',') => {
                if high.is_some() {
                    return Err((at, "a single digit".into()));
                }
            }
            None => return Err((at, format!("`{}`", c.escape_debug()))),
        }
        at += c.len_utf8();
    }
    if high.is_some() { Err((text.len(), "a single digit".into())) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_common_dump_is_read() {
        let bytes: Vec<u8> = (0..20).collect();
        let texts = [
            "000102030405060708090a0b0c0d0e0f10111213",
            "0x00 0x01,0x02 03:04:05-06 07 0809 0a0b0c0d\n# a remark\n0e0f10111213\n",
            "00000000: 0001 0203 0405 0607 0809 0a0b 0c0d 0e0f  ................\n00000010: 1011 1213  ....",
            "00000000  00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f  |................|\n00000010  10 11 12 13  |....|",
            "00000000  00 01 02 03 04 05 06 07-08 09 0a 0b 0c 0d 0e 0f |................|\n00000010  10 11 12 13 |....|",
            "\t0x0000:  0001 0203 0405 0607 0809 0a0b 0c0d 0e0f\n\t0x0010:  1011 1213",
        ];
        for text in texts {
            assert_eq!(parse(text), Ok(bytes.clone()), "{text}");
        }
        assert_eq!(parse(""), Ok(vec![]));
    }

    #[test]
    fn errors_say_where() {
        let wrong = |text| parse(text).unwrap_err().to_string();
        assert_eq!(wrong("00\n0g"), "line 2, column 2: found `g`, expected hexadecimal digits");
        assert_eq!(wrong("00 1"), "line 1, column 5: found a single digit, expected hexadecimal digits");
        assert_eq!(wrong("0é"), "line 1, column 2: found `é`, expected hexadecimal digits");
        assert_eq!(wrong("00 1 22"), "line 1, column 5: found a single digit, expected hexadecimal digits");
    }
}
