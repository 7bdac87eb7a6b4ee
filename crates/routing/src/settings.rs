//! Reads settings of a network's controller that the command line and scenario files share.
use crate::intents::IntentConfig;
use std::ops::RangeInclusive;
use std::time::Duration;
use weir_units::{ByteSize, TimeSpan};

/// Times between two probes of a link that are allowed.
pub const PROBE_INTERVALS: RangeInclusive<Duration> = Duration::from_millis(10)..=Duration::from_secs(3600);

/// Largest buffer of a port that is believed.
const MAX_PORT_BUFFER: u64 = 1 << 32;

/// Reads the time between two probes of a link.
///
/// # Errors
/// The text is no time, or one outside of [`PROBE_INTERVALS`].
pub fn parse_probe_interval(text: &str) -> Result<TimeSpan, String> {
    let expected = || format!("found `{text}`, expected a time from 10ms to 1h, such as 25ms");
    let span: TimeSpan = text.parse().map_err(|_| expected())?;
    PROBE_INTERVALS.contains(&span.0).then_some(span).ok_or_else(expected)
}

/// Reads the time without a packet after which reactive entries are removed.
///
/// # Errors
/// The text is no time, or one that OpenFlow has no number for: whole seconds, at most 65535.
pub fn parse_idle_timeout(text: &str) -> Result<TimeSpan, String> {
    let expected = || format!("found `{text}`, expected whole seconds from 0s to 65535s, such as 60s");
    let span: TimeSpan = text.parse().map_err(|_| expected())?;
    let whole = span.0.subsec_nanos() == 0 && span.0.as_secs() <= u64::from(u16::MAX);
    whole.then_some(span).ok_or_else(expected)
}

/// Reads how much can wait at a port: bytes (`64kB`) or packets (`100 packets`) of the length that the model of delays
/// assumes, 1500 bytes.
///
/// # Errors
/// The text is neither, or not from one byte to 4 GiB.
pub fn parse_port_buffer(text: &str) -> Result<ByteSize, String> {
    let expected = || {
        format!(
            "found `{text}`, expected bytes such as 64kB, or packets of 1500 bytes such as 100packets, at most 4GiB"
        )
    };
    let packets = ["packets", "packet"].iter().find_map(|unit| text.strip_suffix(unit));
    let bytes = match packets {
        Some(number) => {
            let packets: u64 = number.trim_end().parse().map_err(|_| expected())?;
            packets.checked_mul(IntentConfig::default().packet_bytes).ok_or_else(expected)?
        }
        None => text.parse::<ByteSize>().map_err(|_| expected())?.0,
    };
    (1..=MAX_PORT_BUFFER).contains(&bytes).then_some(ByteSize(bytes)).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_are_read_in_bytes_and_in_packets() {
        assert_eq!(parse_port_buffer("64kB"), Ok(ByteSize(64_000)));
        assert_eq!(parse_port_buffer("100packets"), Ok(ByteSize(150_000)));
        assert_eq!(parse_port_buffer("1 packet"), Ok(ByteSize(1500)));
        for wrong in
            ["", "64", "packets", "0B", "0packets", "-1packets", "1.5packets", "5GiB", "99999999999999999999packets"]
        {
            let said = parse_port_buffer(wrong).unwrap_err();
            assert!(said.starts_with(&format!("found `{wrong}`, expected bytes such as 64kB, or packets")), "{said}");
        }
    }

    #[test]
    fn times_are_kept_within_what_probes_and_entries_can_have() {
        assert_eq!(parse_probe_interval("10ms").map(|span| span.0), Ok(Duration::from_millis(10)));
        assert_eq!(parse_idle_timeout("2min").map(|span| span.0), Ok(Duration::from_secs(120)));
        for wrong in ["9ms", "61min", "25", ""] {
            assert!(parse_probe_interval(wrong).is_err(), "{wrong}");
        }
        for wrong in ["60", "0.5s", "65536s", ""] {
            assert!(parse_idle_timeout(wrong).is_err(), "{wrong}");
        }
    }
}
