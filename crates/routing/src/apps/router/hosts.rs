//! Hosts to which the router sends packets, and their entries in all switches.
use crate::app::{FORWARDING_TABLE, Network, REWRITE_TABLE};
use crate::forwarding::admission::to_controller;
use crate::tables::DesiredEntry;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use weir_openflow::model::{Action, Instruction, Match, TableId};
use weir_packet::field::eth_type;
use weir_packet::{Field, MacAddr};

/// Most addresses of hosts with entries of their own. Packets to others go through the controller.
pub const MAX_ROUTED: usize = 8192;
/// Priority of the entries for hosts.
const HOST_PRIORITY: u16 = 200;
/// Priority of the entries that send other packets to the controller.
const ROUTER_PRIORITY: u16 = 100;

/// Hosts by IP address.
#[derive(Debug)]
pub(super) struct RoutedHosts {
    router: MacAddr,
    hosts: BTreeMap<IpAddr, MacAddr>,
    /// Addresses that found no room.
    pub(super) full: u64,
    /// Addresses that a host uses while another one has them.
    pub(super) conflicts: u64,
}

impl RoutedHosts {
    /// Returns no hosts, for a router with this Ethernet address.
    pub(super) fn new(router: MacAddr) -> RoutedHosts {
        RoutedHosts { router, hosts: BTreeMap::new(), full: 0, conflicts: 0 }
    }

    /// Returns the number of addresses.
    pub(super) fn len(&self) -> u64 {
        u64::try_from(self.hosts.len()).unwrap_or(u64::MAX)
    }

    /// Returns the Ethernet address for an IP address.
    pub(super) fn get(&self, ip: IpAddr) -> Option<MacAddr> {
        self.hosts.get(&ip).copied()
    }

    /// Asks for all entries of a switch that has come up.
    pub(super) fn install(&self, dpid: u64, network: &mut dyn Network) {
        for kind in [eth_type::IPV4, eth_type::IPV6] {
            let matching = self.to_router(kind);
            network.set_entry(dpid, DesiredEntry::new(REWRITE_TABLE, ROUTER_PRIORITY, matching, to_controller()));
        }
        for (ip, mac) in &self.hosts {
            network.set_entry(dpid, self.entry(*ip, *mac));
        }
    }

    /// Changes the addresses of a host to `ips`. Returns those that are new. An address that another host has is left
    /// to it until that host no longer uses it.
    pub(super) fn update(&mut self, mac: MacAddr, ips: BTreeSet<IpAddr>, network: &mut dyn Network) -> Vec<IpAddr> {
        self.withdraw(mac, |ip| !ips.contains(ip), network);
        let mut added = Vec::new();
        for ip in ips {
            match self.hosts.get(&ip) {
                Some(owner) if *owner == mac => continue,
                Some(owner) => {
                    self.conflicts += 1;
                    network.report("address-conflict", format!("host {mac} uses {ip} of host {owner}"), true);
                    continue;
                }
                None if self.hosts.len() >= MAX_ROUTED => {
                    self.full += 1;
                    continue;
                }
                None => {}
            }
            self.add(ip, mac, network);
            added.push(ip);
        }
        added
    }

    /// Removes a host.
    pub(super) fn remove(&mut self, mac: MacAddr, network: &mut dyn Network) {
        self.withdraw(mac, |_| true, network);
    }

    fn add(&mut self, ip: IpAddr, mac: MacAddr, network: &mut dyn Network) {
        self.hosts.insert(ip, mac);
        let entry = self.entry(ip, mac);
        for dpid in switches(network) {
            network.set_entry(dpid, entry.clone());
        }
    }

    /// Removes those addresses of a host that are `gone`, or gives them to another host that uses them.
    fn withdraw(&mut self, mac: MacAddr, gone: impl Fn(&IpAddr) -> bool, network: &mut dyn Network) {
        let own = self.hosts.iter().filter(|(ip, owner)| **owner == mac && gone(ip));
        for ip in own.map(|(ip, _)| *ip).collect::<Vec<_>>() {
            let heir = network.map().hosts().values().find(|host| host.mac != mac && host.ips.contains(&ip));
            if let Some(heir) = heir.map(|host| host.mac) {
                self.add(ip, heir, network);
                continue;
            }
            self.hosts.remove(&ip);
            let key = self.entry(ip, mac).key;
            for dpid in switches(network) {
                network.remove_entry(dpid, &key);
            }
        }
    }

    /// Returns the match of packets to the router.
    fn to_router(&self, kind: u16) -> Match {
        Match::any().with(Field::EthDst, self.router.to_bits()).with(Field::EthType, kind)
    }

    /// Returns the entry for a host. The TTL comes first: a packet whose TTL expires goes to the controller unchanged.
    fn entry(&self, ip: IpAddr, mac: MacAddr) -> DesiredEntry {
        let matching = match ip {
            IpAddr::V4(ip) => self.to_router(eth_type::IPV4).with(Field::Ipv4Dst, ip.to_bits()),
            IpAddr::V6(ip) => self.to_router(eth_type::IPV6).with(Field::Ipv6Dst, ip.to_bits()),
        };
        let addresses = [(Field::EthSrc, self.router), (Field::EthDst, mac)];
        let mut actions = vec![Action::DecNwTtl];
        actions.extend(addresses.map(|(field, mac)| Action::set_mac(field, mac)));
        let goto = Instruction::GotoTable(TableId(FORWARDING_TABLE));
        let instructions = vec![Instruction::ApplyActions(actions), goto];
        DesiredEntry::new(REWRITE_TABLE, HOST_PRIORITY, matching, instructions)
    }
}

/// Returns the switches of the map.
fn switches(network: &dyn Network) -> Vec<u64> {
    network.map().switches().keys().copied().collect()
}
