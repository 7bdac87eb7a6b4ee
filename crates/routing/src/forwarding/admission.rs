//! Entries that admit packets: what the controller has to see, links, and hosts at their ports.
use crate::app::{ACCESS_TABLE, ADMISSION_TABLE, FORWARDING_TABLE, Network, REWRITE_TABLE};
use crate::map::SwitchPort;
use crate::tables::{DesiredEntry, EntryKey};
use std::time::Duration;
use weir_openflow::model::{Action, Instruction, Match, TableId};
use weir_packet::field::{eth_type, icmpv6_type, ip_proto};
use weir_packet::{Field, MacAddr};

/// EtherTypes of link probes.
const PROBES: [u16; 2] = [eth_type::LLDP, eth_type::BROADCAST_DISCOVERY];
/// Group addresses that bridges do not forward, `01:80:c2:00:00:00` to `...:0f` (IEEE 802.1Q-2022, table 8-1).
const RESERVED: (u64, u64) = (0x0180_c200_0000, 0xffff_ffff_fff0);
/// Bit that a group address has (IEEE 802-2014, 8.2).
pub(super) const GROUP_BIT: u64 = 0x0100_0000_0000;
/// Types of neighbour discovery: router solicitation to neighbour advertisement (RFC 4861, 4).
pub(super) const NEIGHBOUR_DISCOVERY: std::ops::RangeInclusive<u8> =
    icmpv6_type::ROUTER_SOLICITATION..=icmpv6_type::NEIGHBOUR_ADVERTISEMENT;

/// Priorities of the admission table.
pub mod priority {
    /// Probes of links.
    pub const PROBE: u16 = 65_000;
    /// Frames between bridges.
    pub const RESERVED: u16 = 60_000;
    /// Packets from links.
    pub const LINK: u16 = 40_000;
    /// Copies of address resolution from islands.
    pub const ISLAND_COPIES: u16 = 39_002;
    /// Address resolution from islands.
    pub const ISLAND_RESOLUTION: u16 = 39_001;
    /// Packets from islands.
    pub const ISLAND: u16 = 39_000;
    /// Sources that are refused for a while.
    pub const BLOCKED: u16 = 35_000;
    /// Packets that applications want to see.
    pub const APPLICATION: u16 = 31_000;
    /// Address resolution.
    pub const RESOLUTION: u16 = 30_000;
    /// Hosts at their ports.
    pub const HOST: u16 = 20_000;
}

/// Asks for the entries that every switch has.
pub(super) fn set_up(network: &mut dyn Network, dpid: u64) {
    let mut set = |table, priority, matching, instructions| {
        network.set_entry(dpid, DesiredEntry::new(table, priority, matching, instructions));
    };
    for number in PROBES {
        set(ADMISSION_TABLE, priority::PROBE, Match::any().with(Field::EthType, number), to_controller());
    }
    let (address, mask) = RESERVED;
    let reserved = Match::any().with_masked(Field::EthDst, address, mask);
    set(ADMISSION_TABLE, priority::RESERVED, reserved, Vec::new());
    for matching in resolution() {
        set(ADMISSION_TABLE, priority::RESOLUTION, matching, to_controller());
    }
    set(ADMISSION_TABLE, 0, Match::any(), to_controller());
    set(ACCESS_TABLE, 0, Match::any(), go_to(REWRITE_TABLE));
    set(REWRITE_TABLE, 0, Match::any(), go_to(FORWARDING_TABLE));
    set(FORWARDING_TABLE, 0, Match::any(), to_controller());
}

/// Admits packets from a port that leads to another switch.
pub(crate) fn admit_link(network: &mut dyn Network, at: SwitchPort) {
    let key = link_key(at);
    let entry = DesiredEntry::new(key.table, key.priority, key.matching, go_to(FORWARDING_TABLE));
    network.set_entry(at.dpid, entry);
}

/// Withdraws the entry of [`admit_link`].
pub(crate) fn forget_link(network: &mut dyn Network, at: SwitchPort) {
    network.remove_entry(at.dpid, &link_key(at));
}

/// Admits packets from a port of an island that connects parts of the network. Packets of address resolution go to the
/// controller. An island passes packets for group addresses to all its ports: those of address resolution go to the
/// controller from one port only, for which `takes_groups` is true, and are dropped at the others.
pub(crate) fn admit_island(network: &mut dyn Network, at: SwitchPort, takes_groups: bool) {
    set_island(network, at, priority::ISLAND, Match::any(), go_to(FORWARDING_TABLE));
    for matching in resolution() {
        if !takes_groups {
            set_island(network, at, priority::ISLAND_COPIES, to_group(matching.clone()), Vec::new());
        }
        set_island(network, at, priority::ISLAND_RESOLUTION, matching, to_controller());
    }
}

/// Drops packets from a port that leads to an island and is not used.
pub(crate) fn block_island(network: &mut dyn Network, at: SwitchPort) {
    set_island(network, at, priority::ISLAND, Match::any(), Vec::new());
}

/// Withdraws the entries of [`admit_island`] and [`block_island`].
pub(crate) fn forget_island(network: &mut dyn Network, at: SwitchPort) {
    let copies = resolution().into_iter().map(|matching| (priority::ISLAND_COPIES, to_group(matching)));
    let resolution = resolution().into_iter().map(|matching| (priority::ISLAND_RESOLUTION, matching));
    for (priority, matching) in copies.chain(resolution).chain([(priority::ISLAND, Match::any())]) {
        let key = EntryKey { table: ADMISSION_TABLE, priority, matching: matching.with(Field::InPort, at.port.0) };
        network.remove_entry(at.dpid, &key);
    }
}

fn set_island(network: &mut dyn Network, at: SwitchPort, priority: u16, matching: Match, work: Vec<Instruction>) {
    let matching = matching.with(Field::InPort, at.port.0);
    network.set_entry(at.dpid, DesiredEntry::new(ADMISSION_TABLE, priority, matching, work));
}

/// Restricts a match to packets for group addresses.
fn to_group(matching: Match) -> Match {
    matching.with_masked(Field::EthDst, GROUP_BIT, GROUP_BIT)
}

/// Returns the matches of address resolution.
fn resolution() -> Vec<Match> {
    let icmpv6 = || Match::any().with(Field::EthType, eth_type::IPV6).with(Field::IpProto, ip_proto::ICMPV6);
    let discovery = NEIGHBOUR_DISCOVERY.map(|kind| icmpv6().with(Field::Icmpv6Type, kind));
    [Match::any().with(Field::EthType, eth_type::ARP)].into_iter().chain(discovery).collect()
}

/// Admits packets of a host at its port.
pub(super) fn admit_host(network: &mut dyn Network, mac: MacAddr, at: SwitchPort) {
    let key = host_key(priority::HOST, mac, at);
    network.set_entry(at.dpid, DesiredEntry::new(key.table, key.priority, key.matching, go_to(ACCESS_TABLE)));
}

/// Withdraws the entry of [`admit_host`].
pub(super) fn forget_host(network: &mut dyn Network, mac: MacAddr, at: SwitchPort) {
    network.remove_entry(at.dpid, &host_key(priority::HOST, mac, at));
}

/// Drops packets from an address at a port for a while, so that they do not reach the controller.
pub(crate) fn block(network: &mut dyn Network, mac: MacAddr, at: SwitchPort, time: Duration) {
    let key = host_key(priority::BLOCKED, mac, at);
    let hard_timeout = u16::try_from(time.as_secs().max(1)).unwrap_or(u16::MAX);
    network.set_entry(at.dpid, DesiredEntry { key, instructions: Vec::new(), idle_timeout: 0, hard_timeout });
}

/// Withdraws the entry of [`block`] before its time is over.
pub(crate) fn unblock(network: &mut dyn Network, mac: MacAddr, at: SwitchPort) {
    network.remove_entry(at.dpid, &host_key(priority::BLOCKED, mac, at));
}

/// Admits confirmation packets of intents, which have a source of their own, at a port for a moment.
pub(crate) fn admit_probe(network: &mut dyn Network, mac: MacAddr, at: SwitchPort) {
    let key = host_key(priority::HOST, mac, at);
    let entry = DesiredEntry { key, instructions: go_to(ACCESS_TABLE), idle_timeout: 0, hard_timeout: 2 };
    network.set_entry(at.dpid, entry);
}

fn link_key(at: SwitchPort) -> EntryKey {
    let matching = Match::any().with(Field::InPort, at.port.0);
    EntryKey { table: ADMISSION_TABLE, priority: priority::LINK, matching }
}

fn host_key(priority: u16, mac: MacAddr, at: SwitchPort) -> EntryKey {
    let matching = Match::any().with(Field::InPort, at.port.0).with(Field::EthSrc, mac.to_bits());
    EntryKey { table: ADMISSION_TABLE, priority, matching }
}

pub(crate) fn to_controller() -> Vec<Instruction> {
    vec![Instruction::ApplyActions(vec![Action::to_controller()])]
}

fn go_to(table: u8) -> Vec<Instruction> {
    vec![Instruction::GotoTable(TableId(table))]
}
