//! Where the stations of one VLAN of one switch are: bounded, ageing.
use super::entries::Flow;
use std::collections::{BTreeSet, HashMap, HashSet};
use weir_openflow::model::PortNo;
use weir_packet::MacAddr;
use weir_units::Instant;

/// Most aged addresses looked at with one packet: bounds the time a packet takes.
const EXPIRE_AT_ONCE: usize = 8;
/// Flow entries listed for each address there can be.
const FLOWS_PER_ADDRESS: usize = 4;

/// Addresses of one VLAN and the ports they were last seen on.
///
/// At most `max` are held. A further one takes the place of the one not seen for longest: a station that makes up addresses
/// pushes out those of its own VLAN, which are then flooded to and learned again, and no others.
///
/// Packets that match an entry in the switch are not seen here. So entries are listed until the switch says they went, and an
/// address does not age while one names it: its traffic goes on undisturbed. The list is bounded as well; an address whose
/// entries found no room on it ages, its entries go with it, and its next packet brings both back.
#[derive(Debug)]
pub(super) struct Addresses {
    places: HashMap<MacAddr, Place>,
    /// The same addresses, the one not seen for longest first.
    by_age: BTreeSet<(Instant, MacAddr)>,
    max: usize,
    /// Entries in the switch.
    flows: HashSet<Flow>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    port: PortNo,
    seen: Instant,
    /// Flow entries that name the address may be in the switch.
    used: bool,
}

/// An address that is not where it was: moved, aged, pushed out, or its port went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Left {
    pub(super) mac: MacAddr,
    /// Where it was.
    pub(super) port: PortNo,
    /// Flow entries that name it may be in the switch.
    pub(super) used: bool,
}

/// What learning an address changed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Learned {
    /// It was not known.
    pub(super) new: bool,
    /// It was on another port.
    pub(super) moved: Option<Left>,
    /// Another had to make room.
    pub(super) pushed_out: Option<Left>,
}

impl Addresses {
    /// None known yet; at most `max`, and at least one, will be.
    pub(super) fn new(max: usize) -> Addresses {
        Addresses { places: HashMap::new(), by_age: BTreeSet::new(), max: max.max(1), flows: HashSet::new() }
    }

    /// `mac` was seen on `port`.
    pub(super) fn learn(&mut self, now: Instant, mac: MacAddr, port: PortNo) -> Learned {
        let known = self.remove(mac);
        let full = self.places.len() >= self.max;
        let pushed_out = if full { self.oldest().and_then(|(_, oldest)| self.remove(oldest)) } else { None };
        let moved = known.filter(|left| left.port != port);
        let used = moved.is_none() && known.is_some_and(|left| left.used);
        self.places.insert(mac, Place { port, seen: now, used });
        self.by_age.insert((now, mac));
        Learned { new: known.is_none(), moved, pushed_out }
    }

    /// Where `mac` is.
    pub(super) fn port_of(&self, mac: MacAddr) -> Option<PortNo> {
        self.places.get(&mac).map(|place| place.port)
    }

    /// An entry for a flow goes to the switch.
    pub(super) fn list(&mut self, flow: Flow) {
        for mac in [flow.src, flow.dst] {
            if let Some(place) = self.places.get_mut(&mac) {
                place.used = true;
            }
        }
        if self.flows.len() < self.max.saturating_mul(FLOWS_PER_ADDRESS) {
            self.flows.insert(flow);
        }
    }

    /// The entry of a flow went.
    pub(super) fn unlist(&mut self, flow: &Flow) {
        self.flows.remove(flow);
    }

    /// Forgets addresses not seen since `before` that no listed entry names; a few at a time.
    pub(super) fn expire(&mut self, now: Instant, before: Instant) -> Vec<Left> {
        let old: Vec<_> =
            self.by_age.iter().take_while(|(seen, _)| *seen < before).take(EXPIRE_AT_ONCE).copied().collect();
        old.into_iter()
            .filter_map(|(_, mac)| if self.is_named(mac) { self.renew(now, mac) } else { self.remove(mac) })
            .collect()
    }

    /// Forgets all addresses of a port.
    pub(super) fn forget_port(&mut self, port: PortNo) {
        let gone: Vec<_> = self.places.iter().filter(|(_, place)| place.port == port).map(|(mac, _)| *mac).collect();
        for mac in gone {
            self.remove(mac);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    fn is_named(&self, mac: MacAddr) -> bool {
        self.flows.iter().any(|flow| flow.src == mac || flow.dst == mac)
    }

    /// Lets an address be as if seen now; it does not leave.
    fn renew(&mut self, now: Instant, mac: MacAddr) -> Option<Left> {
        let place = self.places.get_mut(&mac)?;
        self.by_age.remove(&(place.seen, mac));
        place.seen = now;
        self.by_age.insert((now, mac));
        None
    }

    fn oldest(&self) -> Option<(Instant, MacAddr)> {
        self.by_age.first().copied()
    }

    fn remove(&mut self, mac: MacAddr) -> Option<Left> {
        let place = self.places.remove(&mac)?;
        self.by_age.remove(&(place.seen, mac));
        Some(Left { mac, port: place.port, used: place.used })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
    const C: MacAddr = MacAddr([2, 0, 0, 0, 0, 3]);

    fn flow(src: MacAddr, dst: MacAddr) -> Flow {
        Flow { in_port: PortNo(1), tag: None, vlan: 0, src, dst }
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_move_is_told_with_the_old_port() {
        let mut addresses = Addresses::new(8);
        assert!(addresses.learn(at(0), A, PortNo(1)).new);
        addresses.list(flow(A, B));
        assert_eq!(addresses.learn(at(1), A, PortNo(1)), Learned::default());
        let moved = addresses.learn(at(2), A, PortNo(2)).moved;
        assert_eq!(moved, Some(Left { mac: A, port: PortNo(1), used: true }));
        assert_eq!(addresses.port_of(A), Some(PortNo(2)));
        assert_eq!(addresses.learn(at(3), A, PortNo(3)).moved.map(|left| left.used), Some(false), "no entry since");
    }

    #[test]
    fn a_full_table_pushes_out_the_one_not_seen_for_longest() {
        let mut addresses = Addresses::new(2);
        addresses.learn(at(0), A, PortNo(1));
        addresses.learn(at(1), B, PortNo(1));
        addresses.learn(at(2), A, PortNo(1));
        let learned = addresses.learn(at(3), C, PortNo(1));
        assert_eq!(learned.pushed_out.map(|left| left.mac), Some(B));
        assert_eq!((addresses.places.len(), addresses.port_of(B)), (2, None));
    }

    #[test]
    fn an_address_does_not_age_while_an_entry_names_it() {
        let mut addresses = Addresses::new(8);
        for mac in [A, B, C] {
            addresses.learn(at(0), mac, PortNo(1));
        }
        addresses.list(flow(A, B));
        assert_eq!(addresses.expire(at(9), at(5)).len(), 1, "C");
        assert_eq!(addresses.expire(at(13), at(9)).len(), 0, "renewed at 9");
        addresses.unlist(&flow(A, B));
        let left = addresses.expire(at(15), at(14));
        assert!(left.len() == 2 && left.iter().all(|left| left.used), "{left:?}");
    }

    #[test]
    fn the_list_of_entries_is_bounded() {
        let mut addresses = Addresses::new(2);
        for number in 0..100 {
            addresses.list(flow(A, MacAddr::from_bits(number)));
        }
        assert_eq!(addresses.flows.len(), 8);
    }

    #[test]
    fn addresses_age_and_go_with_their_port() {
        let mut addresses = Addresses::new(8);
        addresses.learn(at(0), A, PortNo(1));
        addresses.learn(at(5), B, PortNo(2));
        let expired = |left: Vec<Left>| left.into_iter().map(|left| left.mac).collect::<Vec<_>>();
        assert_eq!(expired(addresses.expire(at(6), at(1))), [A]);
        assert_eq!(expired(addresses.expire(at(6), at(5))), []);
        addresses.forget_port(PortNo(2));
        assert!(addresses.is_empty() && addresses.by_age.is_empty());
    }
}
