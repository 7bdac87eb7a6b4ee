//! Measures the sections of a packet's path: time between consecutive sightings at taps.
//!
//! All times are of one clock. Several events may come from one tap, such as a packet-in and the packet-out that
//! follows it.
use crate::{ProbeHeader, TimeHistogram, TimeStatistics};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Maximum number of events of one packet.
pub const MAX_EVENTS: usize = 16;
/// Maximum number of packets in transit; a later packet replaces one that many numbers behind.
const UNDER_WAY: usize = 1 << 14;

/// Records of packets seen at taps.
#[derive(Debug, Clone, Default)]
pub struct PathRecorder {
    names: Vec<String>,
    /// Packets in transit by number modulo the length; allocated with the first packet.
    packets: Vec<PacketInTransit>,
    /// Times between consecutive events, by first and second event.
    parts: BTreeMap<(PathEvent, PathEvent), TimeHistogram>,
    /// Number of packets that reached their end, then those of them that some tap saw.
    ended: u64,
    tapped: u64,
    too_many: u64,
}

#[derive(Debug, Clone, Default)]
struct PacketInTransit {
    sequence: u32,
    events: Vec<(PathEvent, u64)>,
}

/// Event of a packet. For a tap: its index, and how often the packet was seen there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PathEvent {
    Sent,
    Tap { tap: usize, time: usize },
    Received,
}

/// Delays of the sections of a path.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// Sections, in the order of their events.
    pub parts: Vec<PathSection>,
    /// Number of packets that reached their end.
    pub ended: u64,
    /// Number of those packets that a tap saw.
    pub tapped: u64,
    /// Share of those packets: with taps on the control channel, the effective probability of a new flow.
    pub tapped_share: Option<f64>,
    /// Sightings that were ignored because a packet had too many events.
    pub too_many: u64,
}

/// A section of a path, from one event to the next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PathSection {
    /// First event: `sent`, or a tap's name with the ordinal number of the sighting.
    pub from: String,
    /// Second event: a tap's name with the ordinal number of the sighting, or `received`.
    pub to: String,
    /// Time between the two events.
    pub delay: TimeStatistics,
}

impl PathRecorder {
    /// Creates a record for taps with these names.
    pub fn new(names: Vec<String>) -> PathRecorder {
        PathRecorder { names, ..PathRecorder::default() }
    }

    /// Records that the tap with index `tap` saw a packet at `now_ns` of the sender's clock.
    pub fn seen(&mut self, tap: usize, probe: &ProbeHeader, now_ns: u64) {
        let packet = self.packet(probe.sequence);
        if packet.events.len() >= MAX_EVENTS {
            self.too_many += 1;
            return;
        }
        let is_same = |event: &&(PathEvent, u64)| matches!(event.0, PathEvent::Tap { tap: other, .. } if other == tap);
        let time = packet.events.iter().filter(is_same).count();
        packet.events.push((PathEvent::Tap { tap, time }, now_ns));
    }

    /// Records that a packet reached its end at `now_ns`, and evaluates its events.
    pub fn ended(&mut self, probe: &ProbeHeader, now_ns: u64) {
        let mut events = std::mem::take(&mut self.packet(probe.sequence).events);
        self.ended += 1;
        self.tapped += u64::from(!events.is_empty());
        // Taps are read in turn, so sightings at two taps may be reported out of order.
        events.sort_by_key(|(_, at_ns)| *at_ns);
        events.push((PathEvent::Received, now_ns));
        let mut before = (PathEvent::Sent, probe.sent_ns);
        for event in events {
            self.parts.entry((before.0, event.0)).or_default().record_ns(event.1.saturating_sub(before.1));
            before = event;
        }
    }

    fn packet(&mut self, sequence: u32) -> &mut PacketInTransit {
        if self.packets.is_empty() {
            self.packets = vec![PacketInTransit::default(); UNDER_WAY];
        }
        let packet = &mut self.packets[sequence as usize % UNDER_WAY];
        if packet.sequence != sequence {
            packet.sequence = sequence;
            packet.events.clear();
        }
        packet
    }

    /// Returns the delays of all sections.
    pub fn report(&self) -> PathReport {
        let name = |event: &PathEvent| match event {
            PathEvent::Sent => "sent".to_owned(),
            PathEvent::Tap { tap, time } => format!("{} {}", self.names.get(*tap).map_or("", String::as_str), time + 1),
            PathEvent::Received => "received".to_owned(),
        };
        let part = |((from, to), delays): (&(PathEvent, PathEvent), &TimeHistogram)| {
            Some(PathSection { from: name(from), to: name(to), delay: delays.summary()? })
        };
        PathReport {
            parts: self.parts.iter().filter_map(part).collect(),
            ended: self.ended,
            tapped: self.tapped,
            tapped_share: (self.ended > 0).then(|| self.tapped as f64 / self.ended as f64),
            too_many: self.too_many,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn probe(sequence: u32, sent_ns: u64) -> ProbeHeader {
        ProbeHeader { run: 1, sequence, sent_ns, is_new_flow: true, counts: true, is_wall: false }
    }

    #[test]
    fn the_parts_of_a_way_come_apart() {
        let mut path = PathRecorder::new(vec!["control".into()]);
        for n in 0..10 {
            let packet = probe(n, u64::from(n) * 100_000_000);
            let at = |us: u64| packet.sent_ns + us * 1000;
            if n % 2 == 0 {
                path.seen(0, &packet, at(5660));
                path.seen(0, &packet, at(5660 + 7570));
                path.ended(&packet, at(5660 + 7570 + 6020));
            } else {
                path.ended(&packet, at(4));
            }
        }
        let report = path.report();
        assert_eq!((report.ended, report.tapped, report.tapped_share), (10, 5, Some(0.5)));
        let parts: Vec<_> =
            report.parts.iter().map(|part| (part.from.as_str(), part.to.as_str(), part.delay.samples)).collect();
        let expected = [
            ("sent", "control 1", 5),
            ("sent", "received", 5),
            ("control 1", "control 2", 5),
            ("control 2", "received", 5),
        ];
        assert_eq!(parts, expected);
        for (part, us) in report.parts.iter().zip([5660.0, 4.0, 7570.0, 6020.0]) {
            assert!((part.delay.mean_us - us).abs() < us / 500.0, "{part:?}");
        }
    }

    #[test]
    fn an_old_packet_gives_way_and_events_are_limited() {
        let mut path = PathRecorder::new(vec!["t".into()]);
        path.seen(0, &probe(1, 0), 10);
        let later = probe(1 + u32::try_from(UNDER_WAY).unwrap(), 0);
        path.ended(&later, 50);
        assert_eq!(path.report().tapped, 0, "what was seen is another packet's");
        for _ in 0..MAX_EVENTS + 3 {
            path.seen(0, &probe(7, 0), 10);
        }
        assert_eq!(path.report().too_many, 3);
    }
}
