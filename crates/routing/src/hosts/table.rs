//! The hosts that are known, by Ethernet address, IP address and age.
use crate::map::{Host, SwitchPort};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;
use weir_packet::MacAddr;
use weir_units::Instant;

/// Time for which a host that is seen again counts as seen at the same time: most packets change nothing.
const SEEN_STEP: Duration = Duration::from_secs(1);

/// Hosts that are known.
#[derive(Debug, Default)]
pub(super) struct HostTable {
    hosts: BTreeMap<MacAddr, KnownHost>,
    by_ip: BTreeMap<IpAddr, MacAddr>,
    by_name: BTreeMap<String, MacAddr>,
    /// Hosts by the time at which they were seen or asked last.
    by_age: BTreeSet<(Instant, MacAddr)>,
}

/// A host and what is known besides its place in the map.
#[derive(Debug)]
pub(super) struct KnownHost {
    pub(super) host: Host,
    /// Time since which it is at its port.
    pub(super) since: Instant,
    /// Port that it left because the port was down.
    pub(super) left: Option<SwitchPort>,
    /// VLAN id of its packets.
    pub(super) vlan: Option<u16>,
    /// Transaction of its last request of DHCP, and the time.
    pub(super) dhcp: Option<(u32, Instant)>,
    /// Times at which its IP addresses were confirmed.
    confirmed: BTreeMap<IpAddr, Instant>,
    /// Time by which it is in the order of age.
    age_key: Instant,
}

impl KnownHost {
    /// Returns its IP addresses, those confirmed last first.
    pub(super) fn newest_ips(&self) -> Vec<IpAddr> {
        let mut ips: Vec<_> = self.confirmed.iter().map(|(ip, at)| (Reverse(*at), *ip)).collect();
        ips.sort_unstable();
        ips.into_iter().map(|(_, ip)| ip).collect()
    }
}

impl HostTable {
    pub(super) fn len(&self) -> usize {
        self.hosts.len()
    }

    pub(super) fn get(&self, mac: MacAddr) -> Option<&KnownHost> {
        self.hosts.get(&mac)
    }

    pub(super) fn get_mut(&mut self, mac: MacAddr) -> Option<&mut KnownHost> {
        self.hosts.get_mut(&mac)
    }

    /// Returns the host that uses an IP address.
    pub(super) fn owner(&self, ip: IpAddr) -> Option<MacAddr> {
        self.by_ip.get(&ip).copied()
    }

    pub(super) fn add(&mut self, now: Instant, mac: MacAddr, at: SwitchPort) {
        let host = Host { mac, at, ips: BTreeSet::new(), name: None, seen: now };
        let (left, vlan, dhcp, confirmed) = (None, None, None, BTreeMap::new());
        self.hosts.insert(mac, KnownHost { host, since: now, left, vlan, dhcp, confirmed, age_key: now });
        self.by_age.insert((now, mac));
    }

    pub(super) fn remove(&mut self, mac: MacAddr) -> Option<Host> {
        let known = self.hosts.remove(&mac)?;
        self.by_age.remove(&(known.age_key, mac));
        for ip in &known.host.ips {
            self.by_ip.remove(ip);
        }
        if let Some(name) = &known.host.name {
            self.by_name.remove(name);
        }
        Some(known.host)
    }

    /// Notes that a host was seen. Returns true if that was worth a note: it was not seen for a while, or not since
    /// `since`.
    pub(super) fn see(&mut self, now: Instant, mac: MacAddr, since: Instant) -> bool {
        let Some(known) = self.hosts.get_mut(&mac) else { return false };
        let is_fresh = now < known.host.seen + SEEN_STEP && known.host.seen >= since;
        if !is_fresh {
            known.host.seen = now;
            self.set_age_key(mac, now);
        }
        !is_fresh
    }

    /// Places a host in the order of age.
    pub(super) fn set_age_key(&mut self, mac: MacAddr, key: Instant) {
        if let Some(known) = self.hosts.get_mut(&mac) {
            self.by_age.remove(&(known.age_key, mac));
            self.by_age.insert((key, mac));
            known.age_key = key;
        }
    }

    /// Returns the first host in the order of age, and its time.
    pub(super) fn oldest(&self) -> Option<(Instant, MacAddr)> {
        self.by_age.first().copied()
    }

    /// Places a host at another port. Returns the port at which it was.
    pub(super) fn place(&mut self, now: Instant, mac: MacAddr, at: SwitchPort) -> Option<SwitchPort> {
        let known = self.hosts.get_mut(&mac)?;
        let from = std::mem::replace(&mut known.host.at, at);
        (known.since, known.host.seen, known.left) = (now, now, None);
        self.set_age_key(mac, now);
        Some(from)
    }

    /// Gives a host an IP address that no other host uses. Returns true if the host did not use it before, and whether
    /// another address of it had to give way.
    pub(super) fn give(&mut self, now: Instant, mac: MacAddr, ip: IpAddr, most: usize) -> (bool, bool) {
        let Some(known) = self.hosts.get_mut(&mac) else { return (false, false) };
        if known.confirmed.insert(ip, now).is_some() {
            return (false, false);
        }
        known.host.ips.insert(ip);
        self.by_ip.insert(ip, mac);
        let is_full = known.confirmed.len() > most.max(1);
        let oldest = known.newest_ips().into_iter().rfind(|other| *other != ip);
        if let Some(oldest) = oldest.filter(|_| is_full) {
            self.take(mac, oldest);
        }
        (true, is_full)
    }

    /// Takes an IP address from a host.
    pub(super) fn take(&mut self, mac: MacAddr, ip: IpAddr) {
        if let Some(known) = self.hosts.get_mut(&mac)
            && known.host.ips.remove(&ip)
        {
            known.confirmed.remove(&ip);
            self.by_ip.remove(&ip);
        }
    }

    /// Names a host. Returns whether that changed something; `None` if another host has the name.
    pub(super) fn name(&mut self, mac: MacAddr, name: &str) -> Option<bool> {
        let owner = self.by_name.get(name).copied();
        let Some(known) = self.hosts.get_mut(&mac) else { return Some(false) };
        if owner.is_some() {
            return (owner == Some(mac)).then_some(false);
        }
        if let Some(former) = known.host.name.replace(name.to_owned()) {
            self.by_name.remove(&former);
        }
        self.by_name.insert(name.to_owned(), mac);
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::PortNo;

    const A: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xa]);
    const B: MacAddr = MacAddr([2, 0, 0, 0, 0, 0xb]);
    const AT: SwitchPort = SwitchPort::new(1, PortNo(1));

    fn seconds(seconds: u64) -> Instant {
        Instant::from_nanos(seconds * 1_000_000_000)
    }

    fn ip(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    #[test]
    fn the_address_confirmed_longest_ago_gives_way() {
        let mut table = HostTable::default();
        table.add(seconds(0), A, AT);
        assert_eq!(table.give(seconds(1), A, ip(1), 2), (true, false));
        assert_eq!(table.give(seconds(2), A, ip(2), 2), (true, false));
        assert_eq!(table.give(seconds(3), A, ip(1), 2), (false, false), "confirmed again");
        assert_eq!(table.give(seconds(4), A, ip(3), 2), (true, true));
        assert_eq!(table.get(A).unwrap().newest_ips(), [ip(3), ip(1)]);
        assert_eq!((table.owner(ip(2)), table.owner(ip(1))), (None, Some(A)));
    }

    #[test]
    fn a_host_that_goes_leaves_nothing() {
        let mut table = HostTable::default();
        table.add(seconds(0), A, AT);
        table.add(seconds(0), B, AT);
        table.give(seconds(0), A, ip(1), 8);
        assert_eq!(table.name(A, "a"), Some(true));
        assert_eq!((table.name(A, "a"), table.name(B, "a")), (Some(false), None));
        assert_eq!(table.name(A, "other"), Some(true));
        assert_eq!(table.name(B, "a"), Some(true), "the former name is free");
        for mac in [A, B] {
            assert!(table.remove(mac).is_some());
        }
        assert!(table.hosts.is_empty() && table.by_ip.is_empty() && table.by_name.is_empty());
        assert_eq!(table.oldest(), None);
    }
}
