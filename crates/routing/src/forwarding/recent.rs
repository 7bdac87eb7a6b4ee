//! Packets that were sent a moment ago, by their hashes.
use crate::map::SwitchPort;
use std::collections::VecDeque;
use std::hash::BuildHasher as _;
use std::time::Duration;
use weir_units::Instant;

/// Most packets that are remembered.
const MOST: usize = 1024;

/// Packets that were sent lately.
#[derive(Debug)]
pub(super) struct RecentPackets {
    /// Time for which a packet is remembered.
    time: Duration,
    sent: VecDeque<(Instant, u64)>,
    hasher: foldhash::fast::FixedState,
}

impl RecentPackets {
    pub(super) fn new(time: Duration) -> RecentPackets {
        RecentPackets { time, sent: VecDeque::new(), hasher: foldhash::fast::FixedState::default() }
    }

    /// Notes a packet. Returns false if it is one of those that are remembered, or if these are too many.
    pub(super) fn add(&mut self, now: Instant, at: SwitchPort, data: &[u8]) -> bool {
        self.forget(now);
        let hash = self.hash(Some(at), data);
        if self.sent.len() >= MOST || self.sent.iter().any(|(_, known)| *known == hash) {
            return false;
        }
        self.sent.push_back((now, hash));
        true
    }

    /// Notes a packet that is sent in any case, without a port. It is remembered for the whole time from now on, also
    /// if it was sent before; if there are too many, the oldest is forgotten.
    pub(super) fn note(&mut self, now: Instant, data: &[u8]) {
        self.forget(now);
        let hash = self.hash(None, data);
        self.sent.retain(|(_, known)| *known != hash);
        if self.sent.len() >= MOST {
            self.sent.pop_front();
        }
        self.sent.push_back((now, hash));
    }

    /// Returns true if a packet that was noted without a port is remembered.
    pub(super) fn contains(&mut self, now: Instant, data: &[u8]) -> bool {
        self.forget(now);
        let hash = self.hash(None, data);
        self.sent.iter().any(|(_, known)| *known == hash)
    }

    fn forget(&mut self, now: Instant) {
        let before = now.since(Instant::ZERO).saturating_sub(self.time);
        while self.sent.front().is_some_and(|(at, _)| at.since(Instant::ZERO) < before) {
            self.sent.pop_front();
        }
    }

    /// Returns the hash of a packet without the zeros at its end, which short frames get on their way.
    fn hash(&self, at: Option<SwitchPort>, data: &[u8]) -> u64 {
        let end = data.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.hasher.hash_one((at, &data[..end]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::PortNo;

    const PORT: SwitchPort = SwitchPort::new(1, PortNo(2));

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_packet_is_remembered_for_a_time_and_without_its_padding() {
        let mut recent = RecentPackets::new(Duration::from_millis(100));
        assert!(recent.add(at(1000), PORT, &[1, 2]) && !recent.add(at(1001), PORT, &[1, 2, 0, 0]));
        assert!(!recent.contains(at(1001), &[1, 2]), "it has a port");
        recent.note(at(1000), &[1, 2]);
        assert!(recent.contains(at(1100), &[1, 2, 0]) && !recent.contains(at(1100), &[1]));
        assert!(!recent.contains(at(1101), &[1, 2]), "it is forgotten");
        let full = (0..2000_u16).filter(|number| recent.add(at(2000), PORT, &number.to_be_bytes())).count();
        assert_eq!(full, MOST);
    }

    #[test]
    fn packets_that_are_sent_in_any_case_are_remembered() {
        let mut recent = RecentPackets::new(Duration::from_millis(100));
        recent.note(at(1000), &[1]);
        recent.note(at(1090), &[1]);
        assert!(recent.contains(at(1190), &[1]), "since it was sent last");
        (0..1024_u16).for_each(|number| recent.note(at(2000), &number.to_be_bytes()));
        assert!(recent.contains(at(2000), &0_u16.to_be_bytes()));
        recent.note(at(2001), &[7; 9]);
        assert!(recent.contains(at(2001), &[7; 9]) && recent.contains(at(2001), &1_u16.to_be_bytes()));
        assert!(!recent.contains(at(2001), &0_u16.to_be_bytes()), "the oldest");
    }
}
