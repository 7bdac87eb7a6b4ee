//! Reads packets of a real trace: lengths, times and destinations.
use crate::ExperimentError;
use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;
use weir_packet::{Field, FramePool, PortNo, parse};
use weir_port::pcap::PcapFileReader;
use weir_profiler::validation::ReplayedPacket;
use weir_traffic::RandomStream;

/// Trace that is built into the command.
const BUILT_IN: &str = include_str!("../../../../../experiments/model-validation-data/trace.csv");
/// Maximum number of packets in a trace.
const MOST: usize = 5_000_000;

/// A packet with its arrival time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TraceArrival {
    at_ns: u64,
    bytes: u32,
    destination: u32,
}

/// Packets in order of time.
#[derive(Debug)]
pub(super) struct CapturedTrace(Vec<TraceArrival>);

impl CapturedTrace {
    /// Reads a capture, or the built-in trace.
    pub(super) fn open(file: Option<&Path>) -> Result<CapturedTrace, ExperimentError> {
        match file {
            Some(file) => CapturedTrace::capture(file),
            None => CapturedTrace::parse(BUILT_IN),
        }
    }

    /// Parses lines of `SECONDS,BYTES,DESTINATION`.
    fn parse(text: &str) -> Result<CapturedTrace, ExperimentError> {
        let wrong = |line: &str| ExperimentError::Case(format!("trace: found `{line}`, expected SECONDS,BYTES,NUMBER"));
        let mut packets = Vec::new();
        // Skips the comments and the header.
        for line in text.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit())) {
            let mut words = line.split(',');
            let mut word = || words.next().ok_or_else(|| wrong(line));
            let seconds: f64 = word()?.parse().map_err(|_| wrong(line))?;
            let bytes = word()?.parse().map_err(|_| wrong(line))?;
            let destination = word()?.parse().map_err(|_| wrong(line))?;
            let at = Duration::try_from_secs_f64(seconds).map_err(|_| wrong(line))?;
            let at_ns = u64::try_from(at.as_nanos()).map_err(|_| wrong(line))?;
            packets.push(TraceArrival { at_ns, bytes, destination });
        }
        Ok(CapturedTrace(packets))
    }

    fn capture(file: &Path) -> Result<CapturedTrace, ExperimentError> {
        let wrong = |problem: String| ExperimentError::Case(format!("--trace {}: {problem}", file.display()));
        let mut reader = PcapFileReader::open(file).map_err(|error| wrong(error.to_string()))?;
        let mut pool = FramePool::new(2048, 4);
        let mut numbers: HashMap<u128, u32> = HashMap::new();
        let mut packets = Vec::new();
        while let Some((at_ns, frame)) = reader.next(&mut pool).map_err(|error| wrong(error.to_string()))? {
            let bytes = u32::try_from(frame.bytes().len()).unwrap_or(u32::MAX);
            let next = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
            let destination = *numbers.entry(destination(frame.bytes())).or_insert(next);
            pool.give(frame);
            packets.push(TraceArrival { at_ns, bytes, destination });
            if packets.len() > MOST {
                return Err(wrong(format!("found more, expected {MOST} packets at most; cut it with editcap -c")));
            }
        }
        if packets.is_empty() {
            return Err(wrong("found no packets, expected some on Ethernet".to_owned()));
        }
        // Captures of several processors have packets only nearly in order of time.
        packets.sort_by_key(|packet| packet.at_ns);
        Ok(CapturedTrace(packets))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `count` consecutive packets from a random position, continuing at the beginning after the end. The
    /// time between packets is limited to `longest`; the first one has no gap.
    pub(super) fn draw(&self, count: u32, longest: Option<Duration>, random: &mut RandomStream) -> Vec<ReplayedPacket> {
        let all = self.0.len();
        let from = crate::draw::below(random, all);
        let packet = |at: usize| {
            let (seen, before) = (&self.0[(from + at) % all], (from + at + all - 1) % all);
            // No time is known between the trace's last and first packet.
            let ns = if at == 0 { 0 } else { seen.at_ns.saturating_sub(self.0[before].at_ns) };
            let gap = Duration::from_nanos(ns).min(longest.unwrap_or(Duration::MAX));
            ReplayedPacket { gap, bytes: seen.bytes, destination: seen.destination }
        };
        (0..count as usize).map(packet).collect()
    }
}

/// Returns the destination of a frame: its IP destination, or else its Ethernet destination.
fn destination(frame: &[u8]) -> u128 {
    let Ok(parsed) = parse::parse(frame, PortNo(1)) else { return 0 };
    let of = |field| Some(parsed.key.get(field)).filter(|value| *value != 0);
    of(Field::Ipv4Dst).or_else(|| of(Field::Ipv6Dst)).or_else(|| of(Field::EthDst)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_one_is_of_packets_in_order() {
        let trace = CapturedTrace::open(None).unwrap();
        assert_eq!(trace.len(), 3103);
        assert!(trace.0.windows(2).all(|pair| pair[0].at_ns <= pair[1].at_ns));
        assert!(trace.0.iter().map(|packet| packet.destination).max() > Some(20));
        assert!(CapturedTrace::parse("1,2\n").is_err() && CapturedTrace::parse("-1,2,3\nx\n").unwrap().len() == 0);
    }

    #[test]
    fn packets_are_drawn_in_a_row() {
        let trace = CapturedTrace::parse("0.0,60,0\n0.001,70,1\n0.5,80,2\n").unwrap();
        let drawn = trace.draw(7, Some(Duration::from_millis(100)), &mut RandomStream::new(1, 0, 0));
        assert_eq!(drawn[0].gap, Duration::ZERO);
        for (at, packet) in drawn.iter().enumerate() {
            let expected = (drawn[0].destination + u32::try_from(at).unwrap()) % 3;
            assert_eq!((packet.destination, packet.bytes), (expected, 60 + 10 * expected));
            let gap = [Duration::ZERO, Duration::from_millis(1), Duration::from_millis(100)][expected as usize];
            assert!(at == 0 || packet.gap == gap, "{packet:?}");
        }
    }

    #[test]
    fn what_is_no_capture_is_told() {
        let error = CapturedTrace::open(Some(Path::new("/dev/null"))).unwrap_err().to_string();
        assert!(error.contains("--trace /dev/null"), "{error}");
    }
}
