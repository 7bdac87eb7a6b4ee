//! Packet traces: lists of arrival times and lengths read from text.
use crate::TrafficError;
use std::sync::Arc;
use std::time::Duration;

/// Maximum number of packets of a trace.
pub const MAX_TRACE: usize = 20_000_000;

/// Recorded packets in order of time, played one or several times. Clones share the list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TrafficTrace {
    packets: Arc<[TracePacket]>,
    /// Time from the start of one round to the start of the next, in ns.
    period_ns: u64,
    rounds: u32,
    is_replayed: bool,
}

/// A packet of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracePacket {
    /// Arrival time from the start of the trace, in ns.
    pub at_ns: u64,
    /// Length of the packet.
    pub bytes: u32,
}

impl TrafficTrace {
    /// Returns a list that is played once, until its last packet.
    pub fn once(packets: Vec<TracePacket>) -> TrafficTrace {
        let period_ns = packets.last().map_or(0, |last| last.at_ns);
        TrafficTrace { packets: packets.into(), period_ns, rounds: 1, is_replayed: false }
    }

    /// Returns a list that is played `rounds` times, each time for `period_ns`.
    ///
    /// # Errors
    /// There is no packet, or the period is not longer than the time of the last one.
    pub fn repeated(packets: Vec<TracePacket>, period_ns: u64, rounds: u32) -> Result<TrafficTrace, TrafficError> {
        let last_ns = packets.last().map_or(u64::MAX, |last| last.at_ns);
        if last_ns >= period_ns {
            let found = format!("{} in {period_ns} ns", weir_units::counted(packets.len(), "packet", "packets"));
            return Err(TrafficError::parameter("trace", found, "one or more packets, all within the time of a round"));
        }
        Ok(TrafficTrace { packets: packets.into(), period_ns, rounds, is_replayed: true })
    }

    /// Returns the packets that are due before `end`, counted from the start. Rounds that begin before it are whole,
    /// except for a single one.
    #[must_use]
    pub fn until(&self, end: Duration) -> TrafficTrace {
        let end_ns = u64::try_from(end.as_nanos()).unwrap_or(u64::MAX);
        if end_ns < self.period_ns {
            let before = self.packets.partition_point(|packet| packet.at_ns < end_ns);
            let packets = self.packets[..before].into();
            return TrafficTrace { packets, period_ns: end_ns, rounds: 1, is_replayed: self.is_replayed };
        }
        let rounds = end_ns.div_ceil(self.period_ns.max(1)).min(u64::from(self.rounds));
        TrafficTrace { rounds: u32::try_from(rounds).unwrap_or(self.rounds), ..self.clone() }
    }

    /// Returns true if the packets are played in rounds of a known length, and not a list of times.
    pub fn is_replayed(&self) -> bool {
        self.is_replayed
    }

    /// Returns the packets of a round, in order of time.
    pub fn packets(&self) -> &[TracePacket] {
        &self.packets
    }

    /// Returns the time from the start to the end of the last round.
    pub fn length(&self) -> Duration {
        Duration::from_nanos(self.period_ns).saturating_mul(self.rounds)
    }

    /// Returns the mean number of packets per second while the trace is played; 0 if it takes no time.
    pub fn per_second(&self) -> f64 {
        if self.period_ns == 0 { 0.0 } else { self.packets.len() as f64 / (self.period_ns as f64 / 1e9) }
    }

    /// Returns the times between packets in ns, those of one round and the one before the next round.
    pub fn gaps_ns(&self) -> impl Iterator<Item = u64> {
        let of = |pair: &[TracePacket]| pair[1].at_ns.saturating_sub(pair[0].at_ns);
        let ends = self.packets.first().zip(self.packets.last());
        let between = |(first, last): (&TracePacket, &TracePacket)| {
            self.period_ns.saturating_add(first.at_ns).saturating_sub(last.at_ns)
        };
        let next = ends.filter(|_| self.rounds > 1).map(between);
        self.packets.windows(2).map(of).chain(next)
    }

    /// Returns time from the start and length of the packet with this number, counted over all rounds; `None` after
    /// the last.
    #[inline]
    pub(crate) fn packet(&self, number: u64) -> Option<TracePacket> {
        let (round, place) = (number.checked_div(self.packets.len() as u64)?, number % self.packets.len() as u64);
        let packet = self.packets.get(usize::try_from(place).ok()?).filter(|_| round < u64::from(self.rounds))?;
        Some(TracePacket { at_ns: packet.at_ns.saturating_add(self.period_ns.saturating_mul(round)), ..*packet })
    }

    /// Returns the packets with all times multiplied by `factor`.
    #[must_use]
    pub fn slowed(&self, factor: f64) -> TrafficTrace {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
        let slower = |ns: u64| (ns as f64 * factor).round() as u64;
        let packets = self.packets.iter().map(|packet| TracePacket { at_ns: slower(packet.at_ns), ..*packet });
        TrafficTrace { packets: packets.collect(), period_ns: slower(self.period_ns), ..self.clone() }
    }

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
        Ok(TrafficTrace::once(packets))
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
        let found: Vec<_> = trace.packets().iter().map(|packet| (packet.at_ns, packet.bytes)).collect();
        assert_eq!(found, [(500_000_000, 64), (500_001_000, 1500)]);
    }

    #[test]
    fn names_the_line_that_is_wrong() {
        for (text, line) in [("1 64\n0.5 64", 2), ("1 0", 1), ("-1 64", 1), ("1 64 3", 1), ("\n# x\n1", 3)] {
            let error = TrafficTrace::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(&format!("line {line}: found ")), "{text:?}: {error}");
        }
    }

    #[test]
    fn rounds_follow_each_other() {
        let packets = [0, 100, 400].map(|at_ns| TracePacket { at_ns, bytes: 60 });
        let trace = TrafficTrace::repeated(packets.to_vec(), 600, 2).unwrap();
        let times = |trace: &TrafficTrace| {
            (0..).map_while(|number| trace.packet(number)).map(|packet| packet.at_ns).collect::<Vec<_>>()
        };
        assert_eq!(times(&trace), [0, 100, 400, 600, 700, 1000]);
        assert_eq!(trace.gaps_ns().collect::<Vec<_>>(), [100, 300, 200]);
        assert_eq!((trace.length(), trace.per_second()), (Duration::from_nanos(1200), 5e6));
        let slow = trace.slowed(3.0);
        assert_eq!((slow.packet(4).unwrap().at_ns, slow.length()), (2100, Duration::from_nanos(3600)));
        for (none, period_ns) in [(&packets[..0], 600), (&packets[..], 400)] {
            let error = TrafficTrace::repeated(none.to_vec(), period_ns, 1).unwrap_err().to_string();
            assert!(error.contains("within the time of a round"), "{error}");
        }
        assert_eq!(TrafficTrace::default().packet(0), None);
        for (end_ns, expected, per_second) in [(100, 1, 1e7), (400, 2, 5e6), (600, 3, 5e6), (601, 6, 5e6)] {
            let part = trace.until(Duration::from_nanos(end_ns));
            assert_eq!((times(&part).len(), part.per_second()), (expected, per_second), "{end_ns}");
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
