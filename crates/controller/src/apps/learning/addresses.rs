//! Keeps the ports of the stations in one VLAN of one switch, bounded in number and with ageing.
use super::entries::EthernetFlow;
use super::flow_list::FlowList;
use foldhash::fast::RandomState;
use std::collections::{BTreeSet, HashMap};
use std::time::Duration;
use weir_openflow::model::PortNo;
use weir_packet::MacAddr;
use weir_units::Instant;

/// Most aged addresses examined per packet, to bound the time that a packet takes.
const EXPIRE_AT_ONCE: usize = 8;
/// Time for which an address that is seen again counts as seen at the same time: most packets change nothing.
const AGE_STEP: Duration = Duration::from_secs(1);

/// Addresses of one VLAN and the ports on which they were last seen.
///
/// At most `max` addresses are held. A further one replaces the one not seen for longest. A station that forges
/// addresses therefore replaces only addresses of its own VLAN. Frames to these are flooded until they are learned
/// again.
///
/// Packets that match an entry in the switch are not seen here. Entries are therefore listed until the switch reports
/// their removal, and an address does not age while a listed entry names it, so its traffic is not interrupted. The
/// list is bounded, too. An address whose entries had no room on the list ages and its entries are deleted; its next
/// packet brings both back.
#[derive(Debug)]
pub(super) struct VlanMacTable {
    entries: HashMap<MacAddr, VlanMacEntry, RandomState>,
    /// Addresses by the time they were last seen, oldest first; to [`AGE_STEP`].
    by_age: BTreeSet<(Instant, MacAddr)>,
    max: usize,
    /// Entries in the switch.
    flows: FlowList,
    /// No address was last seen before this time.
    none_before: Instant,
}

#[derive(Debug, Clone, Copy)]
struct VlanMacEntry {
    port: PortNo,
    seen: Instant,
    /// True if flow entries that name the address may be in the switch.
    used: bool,
    /// Listed entries that name the address.
    n_flows: u32,
}

impl VlanMacEntry {
    /// Returns true if the address was seen at this port so short a time ago that seeing it again changes nothing.
    fn is_fresh(&self, now: Instant, port: PortNo) -> bool {
        self.port == port && now < self.seen + AGE_STEP
    }

    /// Notes that a flow entry names the address. `is_new` is true if it is listed and was not before.
    fn name(&mut self, is_new: bool) {
        self.used = true;
        self.n_flows += u32::from(is_new);
    }
}

/// Address that is no longer at its place: it moved, aged, was replaced, or its port went down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RemovedAddress {
    pub(super) mac: MacAddr,
    /// Port on which it was.
    pub(super) port: PortNo,
    /// True if flow entries that name it may be in the switch.
    pub(super) used: bool,
    /// Listed entries that name it.
    n_flows: u32,
}

/// Changes made by learning an address.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct LearnOutcome {
    /// True if the address was not known.
    pub(super) new: bool,
    /// Former place of the address, if it was on another port.
    pub(super) moved: Option<RemovedAddress>,
    /// Address that was removed to make room.
    pub(super) evicted: Option<RemovedAddress>,
}

impl VlanMacTable {
    /// Returns an empty table for at most `max` addresses, at least one.
    pub(super) fn new(max: usize) -> VlanMacTable {
        let (entries, by_age, max) = (HashMap::default(), BTreeSet::new(), max.max(1));
        VlanMacTable { entries, by_age, max, flows: FlowList::new(max), none_before: Instant::ZERO }
    }

    /// Returns the port of a flow's destination and lists the flow's entry, if nothing else is to be done: both
    /// addresses are known, the source was seen at this port a moment ago, and no address was last seen before
    /// `before`. Does what [`Self::expire`], [`Self::learn`], [`Self::port_of`] and [`Self::add_flow`] do, but looks
    /// each address up once. Otherwise changes nothing.
    pub(super) fn forward(&mut self, now: Instant, before: Instant, flow: &EthernetFlow) -> Option<PortNo> {
        if self.none_before < before || flow.src == flow.dst {
            return None;
        }
        let [Some(src), Some(dst)] = self.entries.get_disjoint_mut([&flow.src, &flow.dst]) else { return None };
        if !src.is_fresh(now, flow.in_port) || dst.port == flow.in_port {
            return None;
        }
        let port = dst.port;
        let is_new = self.flows.insert(flow);
        src.name(is_new);
        dst.name(is_new);
        Some(port)
    }

    /// Records that `mac` was seen on `port`.
    pub(super) fn learn(&mut self, now: Instant, mac: MacAddr, port: PortNo) -> LearnOutcome {
        if self.entries.get(&mac).is_some_and(|known| known.is_fresh(now, port)) {
            return LearnOutcome::default();
        }
        let known = self.remove(mac);
        let full = self.entries.len() >= self.max;
        let pushed_out = if full { self.oldest().and_then(|(_, oldest)| self.remove(oldest)) } else { None };
        let moved = known.filter(|left| left.port != port);
        let stays = known.filter(|left| left.port == port);
        let (used, n_flows) = stays.map_or((false, 0), |left| (left.used, left.n_flows));
        self.entries.insert(mac, VlanMacEntry { port, seen: now, used, n_flows });
        self.by_age.insert((now, mac));
        LearnOutcome { new: known.is_none(), moved, evicted: pushed_out }
    }

    /// Returns the port of `mac`.
    pub(super) fn port_of(&self, mac: MacAddr) -> Option<PortNo> {
        self.entries.get(&mac).map(|place| place.port)
    }

    /// Lists the entry of a flow that is being sent to the switch, and marks its addresses as used.
    pub(super) fn add_flow(&mut self, flow: &EthernetFlow) {
        let is_new = self.flows.insert(flow);
        for mac in [flow.src, flow.dst] {
            if let Some(place) = self.entries.get_mut(&mac) {
                place.name(is_new);
            }
        }
    }

    /// Removes the entry of a flow from the list because the switch has removed it.
    pub(super) fn remove_flow(&mut self, flow: &EthernetFlow) {
        if self.flows.remove(flow) {
            for mac in [flow.src, flow.dst] {
                if let Some(place) = self.entries.get_mut(&mac) {
                    place.n_flows = place.n_flows.saturating_sub(1);
                }
            }
        }
    }

    /// Removes addresses not seen since `before` unless a listed entry names them. Examines a few addresses at a
    /// time, oldest first.
    pub(super) fn expire(&mut self, now: Instant, before: Instant) -> Vec<RemovedAddress> {
        self.none_before = self.oldest().map_or(now, |(seen, _)| seen);
        if self.none_before >= before {
            return Vec::new();
        }
        let old: Vec<_> =
            self.by_age.iter().take_while(|(seen, _)| *seen < before).take(EXPIRE_AT_ONCE).copied().collect();
        old.into_iter()
            .filter_map(|(_, mac)| if self.is_named(mac) { self.renew(now, mac) } else { self.remove(mac) })
            .collect()
    }

    /// Removes all addresses of a port.
    pub(super) fn forget_port(&mut self, port: PortNo) {
        let gone: Vec<_> = self.entries.iter().filter(|(_, place)| place.port == port).map(|(mac, _)| *mac).collect();
        for mac in gone {
            self.remove(mac);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    fn is_named(&self, mac: MacAddr) -> bool {
        self.entries.get(&mac).is_some_and(|place| place.n_flows > 0)
    }

    /// Sets the time an address was last seen to now. Returns `None`, because the address stays.
    fn renew(&mut self, now: Instant, mac: MacAddr) -> Option<RemovedAddress> {
        let place = self.entries.get_mut(&mac)?;
        self.by_age.remove(&(place.seen, mac));
        place.seen = now;
        self.by_age.insert((now, mac));
        None
    }

    fn oldest(&self) -> Option<(Instant, MacAddr)> {
        self.by_age.first().copied()
    }

    fn remove(&mut self, mac: MacAddr) -> Option<RemovedAddress> {
        let place = self.entries.remove(&mac)?;
        self.by_age.remove(&(place.seen, mac));
        Some(RemovedAddress { mac, port: place.port, used: place.used, n_flows: place.n_flows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);
    const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 2]);
    const C: MacAddr = MacAddr([2, 0, 0, 0, 0, 3]);

    fn flow(src: MacAddr, dst: MacAddr) -> EthernetFlow {
        EthernetFlow { in_port: PortNo(1), tag: None, vlan: 0, src, dst }
    }

    fn at(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    #[test]
    fn a_move_is_told_with_the_old_port() {
        let mut addresses = VlanMacTable::new(8);
        assert!(addresses.learn(at(0), A, PortNo(1)).new);
        addresses.add_flow(&flow(A, B));
        assert_eq!(addresses.learn(at(1), A, PortNo(1)), LearnOutcome::default());
        let moved = addresses.learn(at(2), A, PortNo(2)).moved;
        assert_eq!(moved, Some(RemovedAddress { mac: A, port: PortNo(1), used: true, n_flows: 1 }));
        assert_eq!(addresses.port_of(A), Some(PortNo(2)));
        assert_eq!(addresses.learn(at(3), A, PortNo(3)).moved.map(|left| left.used), Some(false), "no entry since");
    }

    #[test]
    fn a_full_table_pushes_out_the_one_not_seen_for_longest() {
        let mut addresses = VlanMacTable::new(2);
        addresses.learn(at(0), A, PortNo(1));
        addresses.learn(at(1), B, PortNo(1));
        addresses.learn(at(2), A, PortNo(1));
        let learned = addresses.learn(at(3), C, PortNo(1));
        assert_eq!(learned.evicted.map(|left| left.mac), Some(B));
        assert_eq!((addresses.entries.len(), addresses.port_of(B)), (2, None));
    }

    #[test]
    fn an_address_does_not_age_while_an_entry_names_it() {
        let mut addresses = VlanMacTable::new(8);
        for mac in [A, B, C] {
            addresses.learn(at(0), mac, PortNo(1));
        }
        addresses.add_flow(&flow(A, B));
        assert_eq!(addresses.expire(at(9), at(5)).len(), 1, "C");
        assert_eq!(addresses.expire(at(13), at(9)).len(), 0, "renewed at 9");
        addresses.remove_flow(&flow(A, B));
        let left = addresses.expire(at(15), at(14));
        assert!(left.len() == 2 && left.iter().all(|left| left.used), "{left:?}");
    }

    /// Compares the short way with the four steps that it stands for.
    #[test]
    fn a_flow_between_known_addresses_is_forwarded_in_one_step() {
        let (mut addresses, mut stepwise) = (VlanMacTable::new(8), VlanMacTable::new(8));
        for table in [&mut addresses, &mut stepwise] {
            table.learn(at(9), A, PortNo(1));
            table.learn(at(9), B, PortNo(2));
        }
        assert_eq!(addresses.forward(at(9), at(1), &flow(A, B)), None, "it is not known whether any is old");
        for table in [&mut addresses, &mut stepwise] {
            assert_eq!(table.expire(at(9), at(1)), []);
        }
        for _ in 0..2 {
            assert_eq!(addresses.forward(at(9), at(1), &flow(A, B)), Some(PortNo(2)));
            assert_eq!(stepwise.learn(at(9), A, PortNo(1)), LearnOutcome::default());
            stepwise.add_flow(&flow(A, B));
        }
        let listed = |table: &VlanMacTable| [A, B].map(|mac| (table.entries[&mac].used, table.entries[&mac].n_flows));
        assert_eq!((listed(&addresses), addresses.flows.len()), ([(true, 1); 2], 1));
        assert_eq!(listed(&addresses), listed(&stepwise));
        let elsewhere = EthernetFlow { in_port: PortNo(3), ..flow(A, B) };
        let back = EthernetFlow { in_port: PortNo(2), ..flow(B, B) };
        for other in [flow(A, C), flow(C, A), elsewhere, EthernetFlow { src: A, ..back }, back] {
            assert_eq!(addresses.forward(at(9), at(1), &other), None, "{other:?}");
        }
        assert_eq!(addresses.forward(at(10), at(1), &flow(A, B)), None, "the source is seen anew");
        assert_eq!(addresses.forward(at(9), at(10), &flow(A, B)), None, "an address is old");
        assert_eq!((listed(&addresses), addresses.flows.len()), ([(true, 1); 2], 1), "nothing has changed");
    }

    #[test]
    fn addresses_age_and_go_with_their_port() {
        let mut addresses = VlanMacTable::new(8);
        addresses.learn(at(0), A, PortNo(1));
        addresses.learn(at(5), B, PortNo(2));
        let expired = |left: Vec<RemovedAddress>| left.into_iter().map(|left| left.mac).collect::<Vec<_>>();
        assert_eq!(expired(addresses.expire(at(6), at(1))), [A]);
        assert_eq!(expired(addresses.expire(at(6), at(5))), []);
        addresses.forget_port(PortNo(2));
        assert!(addresses.is_empty() && addresses.by_age.is_empty());
    }
}
