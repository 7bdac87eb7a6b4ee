//! Represents flow entries of a router, and builds their matches.
use super::metadata::ROUTER_BITS;
use super::{RouterPlacement, metadata::metadata};
use crate::config::{IpProtocol, PacketFilter, RouterPortId};
use crate::prefix::{AddressPrefix, bits};
use std::fmt;
use weir_openflow::model::multipart::FlowStats;
use weir_openflow::model::{FlowCommand, FlowMod, GroupId, Instruction, Match, MatchField, PortNo, TableId};
use weir_packet::field::{VLAN_PRESENT, eth_type, ip_proto};
use weir_packet::{Field, PortRange};

/// Identity of an entry in a switch. Fields of the match are in the order of their numbers, which puts prerequisites
/// first, and masks of all bits are left out, so that equal matches are equal keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct RouterEntryKey {
    /// Table of the entry.
    pub table: TableId,
    /// Priority: the highest matching entry of a table wins.
    pub priority: u16,
    /// Match of the entry.
    pub matching: Match,
}

/// A flow entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouterEntry {
    /// Identity of the entry.
    pub key: RouterEntryKey,
    /// Cookie: that of the router's placement with the stage in the low bits.
    pub cookie: u64,
    /// Instructions, in the order of their execution. None to drop the packet.
    pub instructions: Vec<Instruction>,
}

/// Stages of the pipeline, with the distance of their table from the first one. The numbers are in cookies, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum RouterStage {
    Input = 0,
    Route = 1,
    Filter = 2,
    Neighbour = 3,
    TranslateDestination = 4,
    TranslateSource = 5,
    Egress = 6,
}

impl RouterEntryKey {
    /// Returns the key with its match in the form that keys have.
    pub fn new(table: TableId, priority: u16, mut matching: Match) -> RouterEntryKey {
        for entry in &mut matching.fields {
            if let MatchField::Known { field, mask, .. } = entry
                && *mask == Some(field.all_ones())
            {
                *mask = None;
            }
        }
        matching.fields.sort_by_key(|entry| match entry {
            MatchField::Known { field, .. } => (Some(*field), 0),
            MatchField::Raw(raw) => (None, u32::from(raw.class) << 16 | u32::from(raw.number)),
        });
        RouterEntryKey { table, priority, matching }
    }
}

impl RouterEntry {
    /// Returns an entry that a switch has.
    pub fn of(found: &FlowStats) -> RouterEntry {
        let mut instructions = found.instructions.clone();
        instructions.sort_by_key(Instruction::execution_order);
        let key = RouterEntryKey::new(found.table, found.priority, found.matching.clone());
        RouterEntry { key, cookie: found.cookie, instructions }
    }

    /// Returns the message that adds the entry, or replaces the one with the same key.
    pub fn add(&self) -> FlowMod {
        let RouterEntryKey { table, priority, matching } = self.key.clone();
        let add = FlowMod::add(priority, matching, self.instructions.clone());
        FlowMod { table, cookie: self.cookie, ..add }
    }

    /// Returns the message that deletes the entry, if it still has its cookie.
    pub fn delete(&self) -> FlowMod {
        FlowMod {
            command: FlowCommand::DeleteStrict,
            cookie_mask: u64::MAX,
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            instructions: Vec::new(),
            ..self.add()
        }
    }
}

impl fmt::Display for RouterEntry {
    /// Writes the entry as `ovs-ofctl` writes flows.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&weir_openflow::text::format_flow(&self.add(), weir_openflow::Version::V13))
    }
}

/// Returns the entries with each key once: two addresses of a port on one network have the same entries.
pub(super) fn without_doubles(entries: Vec<RouterEntry>) -> Vec<RouterEntry> {
    let mut seen = std::collections::HashSet::new();
    entries.into_iter().filter(|entry| seen.insert(entry.key.clone())).collect()
}

/// Builder of the entries of a router.
pub(super) struct EntryBuilder<'a> {
    pub(super) placement: &'a RouterPlacement,
    pub(super) entries: Vec<RouterEntry>,
}

impl<'a> EntryBuilder<'a> {
    pub(super) fn new(placement: &'a RouterPlacement) -> EntryBuilder<'a> {
        EntryBuilder { placement, entries: Vec::new() }
    }

    /// Adds an entry to the table of a stage; in the shorter pipeline all stages have one table. `above` is the
    /// distance of its priority from the placement's.
    pub(super) fn add(&mut self, stage: RouterStage, above: u32, matching: Match, instructions: Vec<Instruction>) {
        let table = match self.placement.pipeline() {
            super::RouterPipeline::Several => self.placement.first_table.saturating_add(stage as u8),
            super::RouterPipeline::Single => self.placement.first_table,
        };
        let priority = u32::from(self.placement.priority) + above;
        let key = RouterEntryKey::new(TableId(table), u16::try_from(priority).unwrap_or(u16::MAX), matching);
        self.entries.push(RouterEntry { key, cookie: self.placement.cookie | stage as u64, instructions });
    }

    /// Returns the instruction that continues in the table of a stage.
    pub(super) fn goto(&self, stage: RouterStage) -> Instruction {
        Instruction::GotoTable(TableId(self.placement.first_table.saturating_add(stage as u8)))
    }

    /// Returns the match of the router's packets in tables after the first.
    pub(super) fn own(&self) -> Match {
        Match::any().with_masked(Field::Metadata, metadata(self.placement.number, None, 0), ROUTER_BITS)
    }
}

/// Adds the port by which packets come, with their tag.
pub(super) fn with_input(matching: Match, input: RouterPortId) -> Match {
    let vlan = input.vlan.map_or(0, |vlan| VLAN_PRESENT | vlan);
    matching.with(Field::InPort, input.number.0).with(Field::VlanVid, vlan)
}

/// Adds the version of IP.
pub(super) fn with_version(matching: Match, is_ipv4: bool) -> Match {
    matching.with(Field::EthType, if is_ipv4 { eth_type::IPV4 } else { eth_type::IPV6 })
}

/// Returns the fields of the source and destination addresses.
pub(super) const fn address_fields(is_ipv4: bool) -> [Field; 2] {
    if is_ipv4 { [Field::Ipv4Src, Field::Ipv4Dst] } else { [Field::Ipv6Src, Field::Ipv6Dst] }
}

/// Adds prefixes of the source and the destination. The version of IP must be there already.
pub(super) fn with_addresses(
    matching: Match,
    is_ipv4: bool,
    source: Option<AddressPrefix>,
    destination: Option<AddressPrefix>,
) -> Match {
    let [source_field, destination_field] = address_fields(is_ipv4);
    let with = |matching: Match, field, prefix: Option<AddressPrefix>| match prefix {
        Some(prefix) => matching.with_bits(field, bits(prefix.addr()), prefix.mask()),
        None => matching,
    };
    with(with(matching, source_field, source), destination_field, destination)
}

/// Returns the matches that together have the protocol, ports and ICMP type of a filter. The version of IP must be
/// there already if the filter names any of them.
pub(super) fn with_transport(matching: Match, filter: &PacketFilter) -> Vec<Match> {
    let Some(IpProtocol(number)) = filter.protocol else { return vec![matching] };
    let matching = matching.with(Field::IpProto, number);
    let matching = match (filter.icmp_type, number) {
        (Some(kind), ip_proto::ICMP) => matching.with(Field::Icmpv4Type, kind),
        (Some(kind), ip_proto::ICMPV6) => matching.with(Field::Icmpv6Type, kind),
        _ => matching,
    };
    let fields = match number {
        ip_proto::UDP => [Field::UdpSrc, Field::UdpDst],
        ip_proto::SCTP => [Field::SctpSrc, Field::SctpDst],
        _ => [Field::TcpSrc, Field::TcpDst],
    };
    let mut matches = vec![matching];
    for (field, range) in fields.into_iter().zip([filter.source_port, filter.destination_port]) {
        let Some(blocks) = range.map(PortRange::blocks) else { continue };
        let with_block = |matching: &Match| {
            let matching = matching.clone();
            let with = |(value, mask): &(u16, u16)| matching.clone().with_bits(field, *value, *mask);
            blocks.iter().map(with).collect::<Vec<_>>()
        };
        matches = matches.iter().flat_map(with_block).collect();
    }
    matches
}
