//! Neighbours that a router has heard of, with their ages.
use crate::entries::Neighbours;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;
use weir_controller::waiting::{ASK_INTERVAL, MAX_REQUESTS};
use weir_packet::MacAddr;
use weir_units::Instant;

/// A neighbour.
#[derive(Debug, Clone, Copy)]
struct LearnedNeighbour {
    mac: MacAddr,
    /// Questions since it was last heard of.
    asked: u32,
    /// Time of the next question, or of forgetting it.
    next: Instant,
}

/// Neighbours by IP address.
#[derive(Debug, Default)]
pub(super) struct LearnedNeighbours(BTreeMap<IpAddr, LearnedNeighbour>);

/// Result of hearing of a neighbour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// The neighbour is new, or has another Ethernet address than before.
    Changed,
    /// The neighbour is there, as known.
    Confirmed,
    /// No room was left.
    Full,
}

impl LearnedNeighbours {
    /// Takes up a neighbour, which is asked again after `age`.
    pub(super) fn hear(&mut self, now: Instant, addr: IpAddr, mac: MacAddr, age: Duration, most: usize) -> Heard {
        let former = self.0.get(&addr).map(|known| known.mac);
        if former.is_none() && self.0.len() >= most {
            return Heard::Full;
        }
        self.0.insert(addr, LearnedNeighbour { mac, asked: 0, next: now + age.max(ASK_INTERVAL) });
        if former == Some(mac) { Heard::Confirmed } else { Heard::Changed }
    }

    pub(super) fn get(&self, addr: IpAddr) -> Option<MacAddr> {
        self.0.get(&addr).map(|known| known.mac)
    }

    /// Keeps the neighbours with these addresses.
    pub(super) fn retain(&mut self, is_kept: impl Fn(IpAddr) -> bool) {
        self.0.retain(|addr, _| is_kept(*addr));
    }

    /// Returns the neighbours for entries.
    pub(super) fn known(&self) -> Neighbours {
        self.0.iter().map(|(addr, known)| (*addr, known.mac)).collect()
    }

    /// Returns the time at which the next neighbour is asked or forgotten.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.values().map(|known| known.next).min()
    }

    /// Returns the neighbours to ask, and those that were silent and are forgotten.
    pub(super) fn due(&mut self, now: Instant) -> (Vec<IpAddr>, Vec<IpAddr>) {
        let is_silent = |known: &LearnedNeighbour| known.next <= now && known.asked >= MAX_REQUESTS;
        let silent = self.0.iter().filter(|(_, known)| is_silent(known)).map(|(addr, _)| *addr);
        let silent: Vec<IpAddr> = silent.collect();
        self.0.retain(|_, known| !is_silent(known));
        let mut asked = Vec::new();
        for (addr, known) in self.0.iter_mut().filter(|(_, known)| known.next <= now) {
            (known.asked, known.next) = (known.asked + 1, now + ASK_INTERVAL);
            asked.push(*addr);
        }
        (asked, silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silent_neighbour_is_asked_and_forgotten() {
        let (mut table, addr, age) =
            (LearnedNeighbours::default(), "10.0.0.1".parse().unwrap(), Duration::from_secs(30));
        let start = Instant::ZERO;
        let mac = |last| MacAddr([2, 0, 0, 0, 0, last]);
        assert_eq!(table.hear(start, addr, mac(1), age, 1), Heard::Changed);
        assert_eq!(table.hear(start, addr, mac(1), age, 1), Heard::Confirmed);
        assert_eq!(table.hear(start, addr, mac(2), age, 1), Heard::Changed);
        assert_eq!(table.hear(start, "10.0.0.2".parse().unwrap(), mac(3), age, 1), Heard::Full);
        let mut now = start + age;
        for _ in 0..MAX_REQUESTS {
            assert_eq!((table.next(), table.due(now)), (Some(now), (vec![addr], vec![])));
            now += ASK_INTERVAL;
        }
        assert_eq!((table.due(now), table.get(addr)), ((vec![], vec![addr]), None));
    }

    #[test]
    fn an_answer_ends_the_questions() {
        let (mut table, addr, age) =
            (LearnedNeighbours::default(), "10.0.0.1".parse().unwrap(), Duration::from_secs(30));
        table.hear(Instant::ZERO, addr, MacAddr([2; 6]), age, 9);
        let now = Instant::ZERO + age;
        assert_eq!(table.due(now).0, [addr]);
        table.hear(now, addr, MacAddr([2; 6]), age, 9);
        assert_eq!(table.next(), Some(now + age));
    }
}
