//! Observations at the southbound interface (I1) of the emulated switches and at the traffic generators, with times.
use super::frames;
use super::topology::PortPlace;
use std::collections::{HashMap, HashSet};
use weir_units::Instant;

/// Most arrivals with their times that a generator keeps.
const MAX_ARRIVALS: usize = 1 << 20;

/// Observations of the control channels since the connection, and since the last mark.
#[derive(Debug, Default)]
pub(super) struct SouthboundView {
    /// First discovery message of the controller (Tm1 of section 5.1.1).
    pub(super) first_probe: Option<Instant>,
    /// Last discovery message that told the controller of a direction of a link it had not heard of (Tmn).
    pub(super) last_new_probe: Option<Instant>,
    /// Ports that have received a discovery message and passed it to the controller: directions of links.
    pub(super) probed: HashSet<PortPlace>,
    /// Discovery messages that the controller sent.
    pub(super) probes: u64,
    /// Last discovery message to each port, and the sum and number of the times between two.
    probe_times: HashMap<PortPlace, Instant>,
    gaps_s: f64,
    gaps: u64,
    /// Flow-mods that add or modify, other packet-outs than discovery messages, error messages of the controller.
    pub(super) flow_mods: u64,
    pub(super) packet_outs: u64,
    pub(super) errors: u64,
    /// Other packet-ins than discovery messages.
    pub(super) packet_ins: u64,
    /// Channels that were set up again after their end.
    pub(super) reconnects: u64,
    /// Last time that the controller sent anything but discovery messages and echoes.
    pub(super) last_heard: Option<Instant>,
    /// Since the last mark.
    pub(super) marked: MarkedView,
}

/// Observations since the last mark.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct MarkedView {
    /// First packet-in that asks about a packet (Tsf1 of section 5.1.4).
    pub(super) first_request: Option<Instant>,
    /// Last flow-mod or packet-out that is no discovery message (Tdf1).
    pub(super) last_response: Option<Instant>,
    /// Flow-mods that add or modify.
    pub(super) flow_mods: u64,
    /// Last of them.
    pub(super) last_flow_mod: Option<Instant>,
    /// First port-status message (Tcn of section 5.1.8).
    pub(super) first_status: Option<Instant>,
    /// First discovery message after it (Tcd).
    pub(super) rediscovery: Option<Instant>,
}

impl SouthboundView {
    /// Forgets what was noted since the last mark.
    pub(super) fn mark(&mut self) {
        self.marked = MarkedView::default();
    }

    /// Notes a discovery message that the controller sends to a port.
    pub(super) fn note_probe(&mut self, now: Instant, to: PortPlace) {
        self.probes += 1;
        self.first_probe.get_or_insert(now);
        if let Some(before) = self.probe_times.insert(to, now) {
            self.gaps_s += now.since(before).as_secs_f64();
            self.gaps += 1;
        }
        if self.marked.first_status.is_some() {
            self.marked.rediscovery.get_or_insert(now);
        }
    }

    /// Notes a packet-in.
    pub(super) fn note_packet_in(&mut self, now: Instant, from: PortPlace, frame: &[u8]) {
        if frames::is_discovery(frame) {
            if self.probed.insert(from) {
                self.last_new_probe = Some(now);
            }
        } else {
            self.packet_ins += 1;
            self.marked.first_request.get_or_insert(now);
        }
    }

    /// Notes a flow-mod that adds or modifies an entry.
    pub(super) fn note_flow_mod(&mut self, now: Instant) {
        self.flow_mods += 1;
        self.marked.flow_mods += 1;
        self.marked.last_flow_mod = Some(now);
        self.marked.last_response = Some(now);
    }

    /// Notes a packet-out that is no discovery message.
    pub(super) fn note_packet_out(&mut self, now: Instant) {
        self.packet_outs += 1;
        self.marked.last_response = Some(now);
    }

    /// Returns the number of ports to which discovery messages were sent.
    pub(super) fn probed_ports(&self) -> usize {
        self.probe_times.len()
    }

    /// Returns the mean time between two discovery messages to the same port in seconds: the controller's timeout of
    /// rediscovery as far as it can be seen. `None` if none was repeated.
    pub(super) fn rediscovery_s(&self) -> Option<f64> {
        (self.gaps > 0).then(|| self.gaps_s / self.gaps as f64)
    }
}

/// Frames of one stream that arrived at a generator, each once.
#[derive(Debug, Default)]
pub(super) struct ArrivalLog {
    stream: u32,
    seen: HashSet<u32>,
    /// Times and sequence numbers, in the order of arrival.
    pub(super) log: Vec<(Instant, u32)>,
    /// Announcements of hosts that arrived.
    pub(super) announcements: u64,
}

impl ArrivalLog {
    /// Forgets all frames, and takes those of another stream from now on.
    pub(super) fn expect(&mut self, stream: u32) {
        *self = ArrivalLog { stream, announcements: self.announcements, ..ArrivalLog::default() };
    }

    /// Notes a frame.
    pub(super) fn take(&mut self, now: Instant, frame: &[u8]) {
        match frames::number(frame) {
            Some(number) if number.stream == self.stream && self.log.len() < MAX_ARRIVALS => {
                if self.seen.insert(number.sequence) {
                    self.log.push((now, number.sequence));
                }
            }
            Some(_) => {}
            None => self.announcements += u64::from(!frames::is_discovery(frame)),
        }
    }

    /// Returns the number of different frames (Ndf of section 5.1.6).
    pub(super) fn unique(&self) -> usize {
        self.log.len()
    }

    /// Returns the longest interruption: the last arrival before a gap in the sequence numbers and the first after it
    /// (T1 and T2 of section 5.4.1), and the number of missing frames. Only arrivals from `from` on can end it. `None`
    /// without such a gap.
    pub(super) fn gap_after(&self, from: Instant) -> Option<SequenceGap> {
        let pairs = self.log.windows(2).filter(|pair| pair[1].0 >= from && pair[1].1 > pair[0].1 + 1);
        let gap = |pair: &[(Instant, u32)]| SequenceGap {
            last_before: pair[0].0,
            first_after: pair[1].0,
            // Frames that were only late are not missing.
            missing: (pair[0].1 + 1..pair[1].1).filter(|number| !self.seen.contains(number)).count() as u64,
        };
        pairs.map(gap).filter(|gap| gap.missing > 0).max_by_key(|gap| gap.first_after.since(gap.last_before))
    }
}

/// Interruption of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SequenceGap {
    pub(super) last_before: Instant,
    pub(super) first_after: Instant,
    pub(super) missing: u64,
}

impl SequenceGap {
    /// Returns the length of the interruption in seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.first_after.since(self.last_before).as_secs_f64()
    }
}

#[cfg(test)]
mod tests {
    use super::super::frames::{FrameNumber, HostPlace, TestHost, traffic};
    use super::*;

    fn arrive(log: &mut ArrivalLog, milliseconds: u64, stream: u32, sequence: u32) {
        let [from, to] = [0, 1].map(|generator| TestHost { place: HostPlace::Generator(generator), number: 0 });
        let frame = traffic(from, to, FrameNumber { stream, sequence }, 128);
        log.take(Instant::from_nanos(milliseconds * 1_000_000), &frame);
    }

    #[test]
    fn gaps_by_hand() {
        let mut log = ArrivalLog::default();
        log.expect(3);
        for (milliseconds, sequence) in [(10, 0), (20, 1), (20, 1), (60, 5), (61, 4), (70, 6), (90, 8)] {
            arrive(&mut log, milliseconds, 3, sequence);
        }
        arrive(&mut log, 95, 2, 7);
        assert_eq!(log.unique(), 6, "repeated frames and those of another stream do not count");
        // From frame 1 at 20 ms to frame 5 at 60 ms; 2 and 3 are missing, 4 was late.
        let gap = log.gap_after(Instant::ZERO).unwrap();
        assert_eq!((gap.missing, gap.seconds()), (2, 0.04));
        let later = log.gap_after(Instant::from_nanos(65_000_000)).unwrap();
        assert_eq!((later.missing, later.seconds()), (1, 0.02));
        assert_eq!(log.gap_after(Instant::from_nanos(91_000_000)), None);
    }

    #[test]
    fn rediscovery_is_the_time_between_messages_to_one_port() {
        let mut seen = SouthboundView::default();
        let at = |seconds: u64| Instant::from_nanos(seconds * 1_000_000_000);
        for (seconds, port) in [(1, 1), (2, 2), (4, 1), (6, 2), (9, 1)] {
            seen.note_probe(at(seconds), PortPlace { node: 0, port });
        }
        // Port 1 after 3 s and 5 s, port 2 after 4 s.
        assert_eq!((seen.rediscovery_s(), seen.first_probe), (Some(4.0), Some(at(1))));
        assert_eq!(seen.marked.rediscovery, None, "no change was told before");
        seen.marked.first_status = Some(at(9));
        seen.note_probe(at(10), PortPlace { node: 0, port: 3 });
        assert_eq!(seen.marked.rediscovery, Some(at(10)));
    }
}
