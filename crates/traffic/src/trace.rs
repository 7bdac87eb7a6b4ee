//! Packet traces: lists of arrival times and lengths read from text.
use crate::TrafficError;
use std::sync::Arc;

/// Maximum number of packets of a trace.
pub const MAX_TRACE: usize = 20_000_000;

/// Recorded packets in order of time. Clones share the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrafficTrace(pub Arc<[TracePacket]>);

/// A packet of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracePacket {
    /// Arrival time from the start of the trace, in ns.
    pub at_ns: u64,
    /// Length of the packet.
    pub bytes: u32,
}

impl TrafficTrace {
    /// Parses lines of `SECONDS BYTES` or `SECONDS,BYTES`. `#` begins a comment; a header line without digits is
    /// skipped.
    ///
    /// # Errors
    /// The first line that cannot be parsed or goes back in time; more than [`MAX_TRACE`] packets.
    pub fn parse(text: &str) -> Result<TrafficTrace, TrafficError> {
        let mut packets: Vec<TracePacket> = Vec::new();
        for (number, line) in lines(text) {
            let wrong =
                |expected| TrafficError::Line { line: number, found: line.chars().take(60).collect(), expected };
            let expected = "seconds and bytes (1 to 65535), such as `0.000125 1500`";
            let [at, bytes] = two(line).ok_or_else(|| wrong(expected))?;
            let at: f64 = at.parse().map_err(|_| wrong(expected))?;
            let bytes: u32 = bytes.parse().map_err(|_| wrong(expected))?;
            if !(0.0..1e9).contains(&at) || !(1..=crate::MAX_BYTES).contains(&bytes) {
                return Err(wrong(expected));
            }
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
            let at_ns = (at * 1e9).round() as u64;
            if packets.last().is_some_and(|last| last.at_ns > at_ns) {
                return Err(wrong("a time not before the line before"));
            }
            packets.push(TracePacket { at_ns, bytes });
            if packets.len() > MAX_TRACE {
                return Err(TrafficError::parameter("trace", "more", format!("at most {MAX_TRACE} packets")));
            }
        }
        Ok(TrafficTrace(packets.into()))
    }
}

/// Iterates over non-empty lines without comments, numbered from 1; skips a header line.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let content = |line: &'_ str| -> usize { line.find('#').unwrap_or(line.len()) };
    let numbered = text.lines().enumerate().map(move |(at, line)| (at + 1, line[..content(line)].trim()));
    numbered.filter(|(_, line)| !line.is_empty()).enumerate().filter_map(|(at, (number, line))| {
        let is_header = at == 0 && !line.contains(|c: char| c.is_ascii_digit());
        (!is_header).then_some((number, line))
    })
}

/// Splits a line into its two words, separated by a comma, semicolon or spaces; `None` for another number of words.
pub(crate) fn two(line: &str) -> Option<[&str; 2]> {
    let mut words = line.split(|c: char| c == ',' || c == ';' || c.is_whitespace()).filter(|word| !word.is_empty());
    let found = [words.next()?, words.next()?];
    words.next().is_none().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_what_tools_write() {
        let trace = TrafficTrace::parse("time,bytes\n0.5,64\n\n0.500001 1500 # long\n").unwrap();
        let found: Vec<_> = trace.0.iter().map(|packet| (packet.at_ns, packet.bytes)).collect();
        assert_eq!(found, [(500_000_000, 64), (500_001_000, 1500)]);
    }

    #[test]
    fn names_the_line_that_is_wrong() {
        for (text, line) in [("1 64\n0.5 64", 2), ("1 0", 1), ("-1 64", 1), ("1 64 3", 1), ("\n# x\n1", 3)] {
            let error = TrafficTrace::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("line {line}: found ")), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-z.,# \n-]{0,200}") {
            let _ = TrafficTrace::parse(&text);
            let _ = crate::EmpiricalSizes::parse(&text);
        }
    }
}
