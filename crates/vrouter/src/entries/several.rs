//! Entries of the longer pipeline: a table for each stage.
use super::build::{
    EntryBuilder, RouterEntry, RouterStage, address_fields, with_addresses, with_input, with_transport, with_version,
};
use super::metadata::{PORT_BITS, metadata, next_hop_number};
use super::{Neighbours, RouterPlacement};
use crate::config::{FilterAction, PacketFilter, RouterPort, RouterPortId, VirtualRouterConfig, is_link_local};
use crate::forwarding::{self, RouteOutcome};
use crate::prefix::{AddressPrefix, bits};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};
use weir_openflow::model::{Action, Instruction, Match, MeterId, PortNo};
use weir_packet::field::{VLAN_PRESENT, eth_type, icmpv6_type, ip_proto};
use weir_packet::{Field, MacAddr};

/// Distances of priorities from the placement's.
const OTHER_PORTS: u32 = 0;
const DEFAULT: u32 = 1;
const SPECIFIC: u32 = 2;
const TO_CONTROLLER: u32 = 3;
const TRANSLATED: u32 = 140;
const LINK_LOCAL: u32 = 150;
const LOCAL: u32 = 160;
/// Distance of the first filter; each later one has one less.
const FIRST_FILTER: u32 = 1100;

/// Addresses of IPv6 that are unique on a link only (RFC 4291, 2.5.6).
pub(super) fn link_local() -> AddressPrefix {
    let first = IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0));
    AddressPrefix::new(first, 10).unwrap_or(AddressPrefix::host(first))
}

/// Returns the instructions that send packets to the controller as they are.
pub(super) fn to_controller() -> Vec<Instruction> {
    vec![Instruction::ApplyActions(vec![Action::to_controller()])]
}

/// Returns all entries.
pub(super) fn entries(
    config: &VirtualRouterConfig,
    known: &Neighbours,
    placement: &RouterPlacement,
) -> Vec<RouterEntry> {
    let mut pipeline = SeveralTables { config, placement, builder: EntryBuilder::new(placement) };
    pipeline.input();
    pipeline.route();
    pipeline.filter();
    pipeline.neighbour(known);
    pipeline.translate();
    pipeline.egress();
    pipeline.builder.entries
}

/// Returns the entries for one neighbour, which has them beside all others.
pub(super) fn neighbour_entries(
    config: &VirtualRouterConfig,
    placement: &RouterPlacement,
    hops: &BTreeSet<IpAddr>,
    addr: IpAddr,
    mac: MacAddr,
) -> Vec<RouterEntry> {
    let mut pipeline = SeveralTables { config, placement, builder: EntryBuilder::new(placement) };
    pipeline.add_neighbour(addr, mac, hops);
    pipeline.builder.entries
}

struct SeveralTables<'a> {
    config: &'a VirtualRouterConfig,
    placement: &'a RouterPlacement,
    builder: EntryBuilder<'a>,
}

impl SeveralTables<'_> {
    fn metadata(&self, output: Option<RouterPortId>, hop: u32) -> u64 {
        metadata(self.placement.number, output, hop)
    }

    fn write(&self, output: Option<RouterPortId>, hop: u32, next: RouterStage) -> Vec<Instruction> {
        let metadata = self.metadata(output, hop);
        vec![Instruction::WriteMetadata { metadata, mask: u64::MAX }, self.builder.goto(next)]
    }

    fn input(&mut self) {
        add_input(&mut self.builder, self.config, TO_CONTROLLER);
        let instructions = self.write(None, 0, RouterStage::Route);
        for port in &self.config.ports {
            for is_ipv4 in [true, false] {
                let matching = with_version(with_input(Match::any(), port.port), is_ipv4);
                let matching = matching.with(Field::EthDst, port.mac.to_bits());
                self.builder.add(RouterStage::Input, SPECIFIC, matching, instructions.clone());
            }
        }
    }

    fn route(&mut self) {
        let config = self.config;
        let default = self.write(None, 0, RouterStage::Filter);
        self.builder.add(RouterStage::Route, DEFAULT, self.builder.own(), default.clone());
        for port in &config.ports {
            let connected = self.write(Some(port.port), 0, RouterStage::Filter);
            for network in port.networks() {
                self.add_route(self.builder.own(), network, SPECIFIC + u32::from(network.length()), connected.clone());
            }
            for own in &port.addresses {
                let input = is_link_local(own.addr).then_some(port.port);
                let matching = input.map_or(self.builder.own(), |input| with_input(self.builder.own(), input));
                self.add_route(matching, AddressPrefix::host(own.addr), LOCAL, default.clone());
            }
        }
        for route in &config.routes {
            let instructions = self.lead(forwarding::target(config, route.via));
            self.add_route(self.builder.own(), route.prefix, SPECIFIC + u32::from(route.prefix.length()), instructions);
        }
        for pair in &config.translations {
            let instructions = self.lead(forwarding::route(config, pair.inside));
            let matching = with_input(self.builder.own(), pair.port);
            self.add_route(matching, AddressPrefix::host(pair.outside), TRANSLATED, instructions);
        }
        for (source, destination) in [(Some(link_local()), None), (None, Some(link_local()))] {
            let matching = with_addresses(with_version(self.builder.own(), false), false, source, destination);
            self.builder.add(RouterStage::Route, LINK_LOCAL, matching, Vec::new());
        }
    }

    fn add_route(&mut self, own: Match, prefix: AddressPrefix, above: u32, instructions: Vec<Instruction>) {
        let is_ipv4 = prefix.is_ipv4();
        let matching = with_addresses(with_version(own, is_ipv4), is_ipv4, None, Some(prefix));
        self.builder.add(RouterStage::Route, above, matching, instructions);
    }

    /// Returns the instructions that lead packets to a next hop by its number.
    fn lead(&self, outcome: RouteOutcome<'_>) -> Vec<Instruction> {
        match outcome {
            RouteOutcome::Way(port, hop) => self.write(Some(port.port), next_hop_number(hop), RouterStage::Filter),
            RouteOutcome::Blackhole => Vec::new(),
            RouteOutcome::None => self.write(None, 0, RouterStage::Filter),
        }
    }

    fn filter(&mut self) {
        let permit = vec![self.builder.goto(RouterStage::Neighbour)];
        self.builder.add(RouterStage::Filter, DEFAULT, self.builder.own(), permit.clone());
        for (above, filter) in (0..FIRST_FILTER).rev().zip(&self.config.filters) {
            let instructions = match filter.action {
                FilterAction::Permit => permit.clone(),
                FilterAction::Deny => Vec::new(),
            };
            for matching in self.filter_matches(filter) {
                self.builder.add(RouterStage::Filter, above, matching, instructions.clone());
            }
        }
    }

    fn filter_matches(&self, filter: &PacketFilter) -> Vec<Match> {
        let own = match filter.output {
            Some(output) => Match::any().with_masked(Field::Metadata, self.metadata(Some(output), 0), PORT_BITS),
            None => self.builder.own(),
        };
        let own = filter.input.map_or(own.clone(), |input| with_input(own, input));
        if filter.protocol.is_none() && filter.is_ipv4().is_none() {
            return vec![own];
        }
        let versions = [true, false].into_iter().filter(|is_ipv4| filter.is_ipv4().is_none_or(|only| only == *is_ipv4));
        let matches = |is_ipv4| {
            let matching = with_version(own.clone(), is_ipv4);
            with_transport(with_addresses(matching, is_ipv4, filter.source, filter.destination), filter)
        };
        versions.flat_map(matches).collect()
    }

    fn neighbour(&mut self, known: &Neighbours) {
        self.builder.add(RouterStage::Neighbour, DEFAULT, self.builder.own(), to_controller());
        let hops = forwarding::next_hops(self.config);
        known.iter().for_each(|(addr, mac)| self.add_neighbour(*addr, *mac, &hops));
    }

    fn add_neighbour(&mut self, addr: IpAddr, mac: MacAddr, hops: &BTreeSet<IpAddr>) {
        let Some(port) = self.config.connected(addr) else { return };
        // The TTL comes first: a packet whose TTL expires goes to the controller unchanged.
        let actions = vec![Action::DecNwTtl, Action::set_mac(Field::EthDst, mac)];
        let next = self.builder.goto(RouterStage::TranslateDestination);
        let instructions = vec![Instruction::ApplyActions(actions), next];
        let led = |hop| {
            let metadata = self.metadata(Some(port.port), hop);
            with_version(Match::any().with(Field::Metadata, metadata), addr.is_ipv4())
        };
        let itself = with_addresses(led(0), addr.is_ipv4(), None, Some(AddressPrefix::host(addr)));
        let via = hops.contains(&addr).then(|| led(next_hop_number(addr)));
        for matching in [Some(itself), via].into_iter().flatten() {
            self.builder.add(RouterStage::Neighbour, SPECIFIC, matching, instructions.clone());
        }
    }

    fn translate(&mut self) {
        let [source_stage, destination_stage] = [RouterStage::TranslateSource, RouterStage::TranslateDestination];
        for (stage, next) in [(destination_stage, source_stage), (source_stage, RouterStage::Egress)] {
            let goto = self.builder.goto(next);
            self.builder.add(stage, DEFAULT, self.builder.own(), vec![goto]);
        }
        for pair in &self.config.translations {
            let is_ipv4 = pair.inside.is_ipv4();
            let [source, destination] = address_fields(is_ipv4);
            let set = |field, addr| vec![Action::SetField { field, value: bits(addr) }];
            let arriving = with_version(with_input(self.builder.own(), pair.port), is_ipv4);
            let arriving = arriving.with(destination, bits(pair.outside));
            let actions = Instruction::ApplyActions(set(destination, pair.inside));
            let goto = self.builder.goto(source_stage);
            self.builder.add(destination_stage, SPECIFIC, arriving, vec![actions, goto]);
            let metadata = self.metadata(Some(pair.port), 0);
            let leaving = with_version(Match::any().with_masked(Field::Metadata, metadata, PORT_BITS), is_ipv4);
            let actions = Instruction::ApplyActions(set(source, pair.outside));
            let goto = self.builder.goto(RouterStage::Egress);
            self.builder.add(source_stage, SPECIFIC, leaving.with(source, bits(pair.inside)), vec![actions, goto]);
        }
    }

    fn egress(&mut self) {
        let mut tags: Vec<bool> = self.config.ports.iter().map(|port| port.port.vlan.is_some()).collect();
        tags.sort_unstable();
        tags.dedup();
        for port in &self.config.ports {
            for has_tag in &tags {
                let metadata = self.metadata(Some(port.port), 0);
                let matching = Match::any().with_masked(Field::Metadata, metadata, PORT_BITS);
                let matching = match has_tag {
                    true => matching.with_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT),
                    false => matching.with(Field::VlanVid, 0_u16),
                };
                let back = matching.clone().with(Field::InPort, port.port.number.0);
                self.builder.add(RouterStage::Egress, SPECIFIC, matching, leave(port, *has_tag, false, Vec::new()));
                self.builder.add(RouterStage::Egress, SPECIFIC + 1, back, leave(port, *has_tag, true, Vec::new()));
            }
        }
    }
}

/// Returns the instructions by which a packet leaves by a port after other actions. An output to the port by which the
/// packet came has a name of its own (OpenFlow 1.3.5, 4.5).
pub(super) fn leave(port: &RouterPort, has_tag: bool, is_input: bool, mut actions: Vec<Action>) -> Vec<Instruction> {
    let set_vlan = |vlan: u16| Action::SetField { field: Field::VlanVid, value: (VLAN_PRESENT | vlan).into() };
    match (has_tag, port.port.vlan) {
        (true, Some(vlan)) => actions.push(set_vlan(vlan)),
        (true, None) => actions.push(Action::PopVlan),
        (false, Some(vlan)) => actions.extend([Action::PushVlan(eth_type::VLAN), set_vlan(vlan)]),
        (false, None) => {}
    }
    actions.push(Action::set_mac(Field::EthSrc, port.mac));
    actions.extend(port.queue.map(Action::SetQueue));
    actions.push(Action::output(if is_input { PortNo::IN_PORT } else { port.port.number }));
    let meter = port.meter.map(|meter| Instruction::Meter(MeterId(meter)));
    meter.into_iter().chain([Instruction::ApplyActions(actions)]).collect()
}

/// Adds the entries that both forms have in their first table: ARP and neighbour discovery to the controller, with
/// priority `above`; other packets of the ports are dropped, and those of other ports unless the router is confined.
pub(super) fn add_input(builder: &mut EntryBuilder<'_>, config: &VirtualRouterConfig, above: u32) {
    let mut add = |above, matching, instructions| builder.add(RouterStage::Input, above, matching, instructions);
    for port in &config.ports {
        let input = with_input(Match::any(), port.port);
        add(DEFAULT, input.clone(), Vec::new());
        let outside = config.translations.iter().filter(|pair| pair.port == port.port).map(|pair| pair.outside);
        for addr in port.addresses.iter().map(|own| own.addr).chain(outside) {
            add(above, asks_for(input.clone(), addr), to_controller());
        }
        if port.addresses.iter().any(|own| own.addr.is_ipv6()) {
            add(above, advertises_to(input, port.mac), to_controller());
        }
    }
    if !builder.placement.confined {
        builder.add(RouterStage::Input, OTHER_PORTS, Match::any(), Vec::new());
    }
}

/// Adds the fields of ARP packets and neighbour solicitations about an address.
fn asks_for(input: Match, addr: IpAddr) -> Match {
    match addr {
        IpAddr::V4(v4) => input.with(Field::EthType, eth_type::ARP).with(Field::ArpTpa, v4.to_bits()),
        IpAddr::V6(v6) => with_version(input, false)
            .with(Field::IpProto, ip_proto::ICMPV6)
            .with(Field::Icmpv6Type, icmpv6_type::NEIGHBOUR_SOLICITATION)
            .with(Field::Ipv6NdTarget, v6.to_bits()),
    }
}

/// Adds the fields of neighbour advertisements to an Ethernet address.
fn advertises_to(input: Match, mac: MacAddr) -> Match {
    with_version(input, false)
        .with(Field::EthDst, mac.to_bits())
        .with(Field::IpProto, ip_proto::ICMPV6)
        .with(Field::Icmpv6Type, icmpv6_type::NEIGHBOUR_ADVERTISEMENT)
}
