//! Access lists: an ordered list of rules decides which packets of hosts the network carries.
//!
//! The first rule that applies to a packet decides; a packet that no rule applies to is carried. Rules become entries
//! of [`ACCESS_TABLE`](crate::app::ACCESS_TABLE), the first rule's with the highest priority. A rule that denies has an
//! entry without instructions. A rule that permits sends packets on to the next table, where routers may still change
//! them; that the packet's source is known was checked in the table before. Ranges of ports become masked matches.
//!
//! All switches have the entries, not only those with hosts, so that a port where a host appears is covered from the
//! beginning. Packets pass the table only where they enter the network.
//!
//! The switches send packets of unknown sources to the controller without this table. The application judges them by
//! the rules itself. ARP, neighbour discovery, LLDP and DHCP are never denied: without them a network does not work.
//!
//! Denied packets are counted by rule from the entries' statistics, every [`COUNT_INTERVAL`].
mod counts;
mod entries;
mod rule;

pub use entries::{MAX_ENTRIES, MAX_ENTRIES_OF_RULE, MAX_RULES, TOP_PRIORITY};
pub use rule::{AccessAction, AccessPlace, AccessProtocol, AccessRule, IpPrefix};
pub use weir_packet::PortRange;

use crate::app::{ACCESS_TABLE, Network, NetworkApp, NetworkEvent};
use crate::{HostPacket, PacketDecision};
use counts::RuleCounts;
use entries::{AccessEntry, entries_of};
use std::time::Duration;
use weir_openflow::model::TableId;
use weir_openflow::model::multipart::{FlowRequest, ReplyBody, RequestBody};
use weir_packet::field::{eth_type, icmpv6_type, ip_proto};
use weir_packet::{Field, FlowKey, parse};
use weir_units::Instant;

/// Time between two requests for the entries' statistics.
pub const COUNT_INTERVAL: Duration = Duration::from_secs(10);
/// Most events about denied packets in one interval.
pub const MAX_REPORTS: usize = 16;

/// UDP ports of DHCP's servers and clients (RFC 2131, 4.1).
const DHCP: [u128; 2] = [67, 68];
/// ICMPv6 types of neighbour discovery (RFC 4861, 4): router solicitation to redirect.
const NEIGHBOUR_DISCOVERY: std::ops::RangeInclusive<u8> = icmpv6_type::ROUTER_SOLICITATION..=icmpv6_type::REDIRECT;

/// The application.
#[derive(Debug)]
pub struct AccessList {
    rules: Vec<AccessRule>,
    entries: Vec<AccessEntry>,
    counts: RuleCounts,
    /// Packets of each rule that events have told of.
    reported: Vec<u64>,
    next_count: Option<Instant>,
    counters: AccessCounters,
}

#[derive(Debug, Default)]
struct AccessCounters {
    entries: u64,
    judged: u64,
    denied: u64,
}

/// Packets of a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccessRuleCount {
    /// Name of the rule, or its number from 1.
    pub name: String,
    /// Decision of the rule.
    pub action: AccessAction,
    /// Packets to which it applied, as of the last statistics.
    pub packets: u64,
}

impl AccessList {
    /// Returns the application with these rules, the first of which decides first.
    ///
    /// # Errors
    /// The number of a rule that is wrong, and why; or too many rules.
    pub fn new(rules: Vec<AccessRule>) -> Result<AccessList, String> {
        let entries = entries_of(&rules)?;
        let counts = RuleCounts::new(rules.len(), &entries);
        let reported = vec![0; rules.len()];
        Ok(AccessList { rules, entries, counts, reported, next_count: None, counters: AccessCounters::default() })
    }

    /// Returns the packets of each rule, in their order.
    pub fn rule_counts(&self) -> Vec<AccessRuleCount> {
        let count = |(index, rule): (usize, &AccessRule)| AccessRuleCount {
            name: self.name_of(index),
            action: rule.action,
            packets: self.counts.of(index),
        };
        self.rules.iter().enumerate().map(count).collect()
    }

    fn name_of(&self, index: usize) -> String {
        let name = self.rules.get(index).and_then(|rule| rule.name.clone());
        name.unwrap_or_else(|| (index + 1).to_string())
    }

    fn denies(&self, index: usize) -> bool {
        self.rules.get(index).is_some_and(|rule| rule.action == AccessAction::Deny)
    }

    /// Asks for the entries of a switch.
    fn install(&mut self, dpid: u64, network: &mut dyn Network) {
        for entry in self.entries.iter().filter(|entry| entry.dpid.is_none_or(|only| only == dpid)) {
            let Some(rule) = self.rules.get(entry.rule) else { continue };
            network.set_entry(dpid, entry.desired(rule.action));
            self.counters.entries += 1;
        }
    }

    /// Records events about rules that have denied packets since the last event.
    fn report(&mut self, network: &mut dyn Network) {
        let mut left = MAX_REPORTS;
        for index in 0..self.rules.len() {
            let (packets, known) = (self.counts.of(index), self.reported[index]);
            if !self.denies(index) || packets == known || left == 0 {
                continue;
            }
            left -= 1;
            self.reported[index] = packets;
            let denied = weir_units::counted(packets - known, "packet", "packets");
            let text = format!("rule {} of the access list denied {denied}, {packets} in all", self.name_of(index));
            network.report("access-denied", text, false);
        }
    }
}

impl NetworkApp for AccessList {
    fn name(&self) -> &'static str {
        "access-list"
    }

    fn handle_event(&mut self, event: &NetworkEvent, network: &mut dyn Network) {
        if let NetworkEvent::SwitchUp { dpid } = event {
            self.install(*dpid, network);
            self.next_count.get_or_insert(network.now() + COUNT_INTERVAL);
        }
    }

    fn handle_packet(&mut self, packet: &HostPacket<'_>, _network: &mut dyn Network) -> PacketDecision {
        let Ok(parsed) = parse(packet.data, packet.at.port) else { return PacketDecision::PassedOn };
        if packet.from_trunk || is_of_the_network(&parsed.key) {
            return PacketDecision::PassedOn;
        }
        self.counters.judged += 1;
        let rule = self.entries.iter().find(|entry| entry.applies(packet.at, &parsed.key)).map(|entry| entry.rule);
        let Some(rule) = rule else { return PacketDecision::PassedOn };
        self.counts.add(rule);
        if !self.denies(rule) {
            return PacketDecision::PassedOn;
        }
        self.counters.denied += 1;
        PacketDecision::Taken
    }

    fn handle_reply(&mut self, dpid: u64, reply: &ReplyBody, _network: &mut dyn Network) {
        let ReplyBody::Flow(stats) = reply else { return };
        for stats in stats.iter().filter(|stats| stats.table == TableId(ACCESS_TABLE)) {
            self.counts.note(dpid, stats);
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        self.next_count
    }

    fn handle_wake(&mut self, network: &mut dyn Network) {
        if self.next_count.is_none_or(|at| at > network.now()) {
            return;
        }
        self.report(network);
        self.next_count = Some(network.now() + COUNT_INTERVAL);
        let request = FlowRequest { table: TableId(ACCESS_TABLE), ..FlowRequest::all() };
        for dpid in network.map().switches().keys().copied().collect::<Vec<_>>() {
            network.ask(dpid, RequestBody::Flow(request.clone()));
        }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let of_denied = (0..self.rules.len()).filter(|rule| self.denies(*rule)).map(|rule| self.counts.of(rule));
        vec![
            ("entries_set", self.counters.entries),
            ("denied", of_denied.sum()),
            ("judged_at_controller", self.counters.judged),
            ("denied_at_controller", self.counters.denied),
            ("statistics_full", self.counts.full),
        ]
    }
}

/// Returns true for ARP, LLDP, neighbour discovery and DHCP.
fn is_of_the_network(key: &FlowKey) -> bool {
    let kind = key.get(Field::EthType);
    let is_ip = [eth_type::IPV4, eth_type::IPV6].iter().any(|ip| u128::from(*ip) == kind);
    let protocol = key.get(Field::IpProto);
    if !is_ip {
        return kind == u128::from(eth_type::ARP) || kind == u128::from(eth_type::LLDP);
    }
    let is_dhcp = protocol == ip_proto::UDP.into()
        && DHCP.contains(&key.get(Field::UdpDst))
        && DHCP.contains(&key.get(Field::UdpSrc));
    let is_discovery = protocol == ip_proto::ICMPV6.into()
        && kind == u128::from(eth_type::IPV6)
        && u8::try_from(key.get(Field::Icmpv6Type)).is_ok_and(|kind| NEIGHBOUR_DISCOVERY.contains(&kind));
    is_dhcp || is_discovery
}

#[cfg(test)]
mod tests;
