//! Packets that intents have claimed where they come in, so that no two intents give a switch contrary entries.
use super::intent::IntentNo;
use super::traffic::overlap;
use crate::map::SwitchPort;
use std::collections::BTreeMap;
use weir_openflow::model::Match;
use weir_packet::Field;

/// Packets that an intent has claimed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct TrafficClaim {
    /// Port at which they come in.
    pub(super) at: SwitchPort,
    /// Priority of the entries.
    pub(super) priority: u16,
    pub(super) matching: Match,
}

/// Claims by port, priority and destination. Most intents differ in the destination.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Claims(BTreeMap<(SwitchPort, u16), BTreeMap<Option<u128>, ClaimList>>);

type ClaimList = Vec<(IntentNo, Match)>;

impl Claims {
    /// Adds packets of an intent.
    pub(super) fn add(&mut self, intent: IntentNo, claim: &TrafficClaim) {
        let there = self.0.entry((claim.at, claim.priority)).or_default();
        there.entry(destination(&claim.matching)).or_default().push((intent, claim.matching.clone()));
    }

    /// Removes packets of an intent.
    pub(super) fn remove(&mut self, intent: IntentNo, claim: &TrafficClaim) {
        let (place, destination) = ((claim.at, claim.priority), destination(&claim.matching));
        let Some(there) = self.0.get_mut(&place) else { return };
        let Some(list) = there.get_mut(&destination) else { return };
        if let Some(known) = list.iter().position(|(of, matching)| *of == intent && *matching == claim.matching) {
            list.swap_remove(known);
        }
        if list.is_empty() {
            there.remove(&destination);
        }
        if there.is_empty() {
            self.0.remove(&place);
        }
    }

    /// Returns another intent that has claimed some of the packets.
    pub(super) fn other(&self, at: SwitchPort, priority: u16, intent: IntentNo, matching: &Match) -> Option<IntentNo> {
        let there = self.0.get(&(at, priority))?;
        let meets = |list: &ClaimList| {
            let mut others = list.iter().filter(|(other, claimed)| *other != intent && overlap(claimed, matching));
            others.next().map(|(other, _)| *other)
        };
        match destination(matching) {
            None => there.values().find_map(meets),
            one => [one, None].iter().filter_map(|to| there.get(to)).find_map(meets),
        }
    }
}

/// Returns the Ethernet address to which packets go; `None` if there may be several.
fn destination(matching: &Match) -> Option<u128> {
    matching.get(Field::EthDst).filter(|(_, mask)| *mask == Field::EthDst.all_ones()).map(|(value, _)| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::PortNo;

    #[test]
    fn only_packets_in_common_at_the_same_place_and_priority_are_contrary() {
        let (here, there) = (SwitchPort::new(1, PortNo(1)), SwitchPort::new(1, PortNo(2)));
        let to = |mac: u64| Match::any().with(Field::EthDst, mac);
        let (one, other) = (IntentNo(7), IntentNo(8));
        let claim = TrafficClaim { at: here, priority: 2000, matching: to(5) };
        let mut claims = Claims::default();
        claims.add(one, &claim);
        assert_eq!(claims.other(here, 2000, other, &to(5)), Some(one));
        assert_eq!(claims.other(here, 2000, other, &Match::any()), Some(one));
        assert_eq!(claims.other(here, 2000, other, &Match::any().with_masked(Field::EthDst, 5_u64, 7_u64)), Some(one));
        assert_eq!(claims.other(here, 2000, one, &to(5)), None, "its own");
        assert_eq!(claims.other(here, 2000, other, &to(6)), None, "other packets");
        assert_eq!(claims.other(here, 2002, other, &to(5)), None, "another priority");
        assert_eq!(claims.other(there, 2000, other, &to(5)), None, "another port");
        let wide = TrafficClaim { matching: Match::any(), ..claim.clone() };
        claims.add(other, &wide);
        assert_eq!(claims.other(here, 2000, one, &to(5)), Some(other), "packets to any destination");
        claims.remove(one, &claim);
        claims.remove(other, &wide);
        assert_eq!(claims, Claims::default());
    }
}
