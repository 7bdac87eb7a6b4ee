//! Entries of the shorter pipeline: each is about one input port, destination, filter and translated source.
//!
//! The priority of an entry begins with its destination: the longest prefix wins, and has an entry for each filter and
//! one for no filter, so that no packet falls through to shorter prefixes. Below it comes the filter, then whether the
//! source is translated.
use super::build::{
    EntryBuilder, RouterEntry, RouterStage, address_fields, with_addresses, with_input, with_transport, with_version,
};
use super::several::{add_input, leave, link_local, to_controller};
use super::{Neighbours, RouterPlacement, RouterPlacementError};
use crate::config::{FilterAction, PacketFilter, RouterPort, VirtualRouterConfig, is_link_local};
use crate::forwarding::{self, RouteOutcome};
use crate::prefix::{AddressPrefix, bits};
use std::net::IpAddr;
use weir_openflow::model::{Action, Instruction, Match};
use weir_packet::{Field, MacAddr};

/// Most entries of a router in a single table.
pub const MAX_ENTRIES_SINGLE: usize = 65_536;

/// Bands of priorities, one above the other, after those of the prefixes' lengths plus one.
const TRANSLATED: u32 = 130;
const LINK_LOCAL: u32 = 131;
const LOCAL: u32 = 132;
const BANDS: u32 = 133;
/// Distance of the lowest band from the placement's priority.
const FIRST: u32 = 2;

/// Destinations that are treated alike.
struct DestinationClass<'a> {
    band: u32,
    source: Option<AddressPrefix>,
    /// `None` for all of the version of IP.
    destination: Option<AddressPrefix>,
    treatment: Treatment<'a>,
}

#[derive(Clone, Copy)]
enum Treatment<'a> {
    Drop,
    /// The controller gets packets that would leave by this port, if any.
    Controller(Option<&'a RouterPort>),
    /// Packets leave by the port to the next hop, with another destination address if it is translated.
    Send(&'a RouterPort, MacAddr, Option<IpAddr>),
}

impl<'a> Treatment<'a> {
    fn output(self) -> Option<&'a RouterPort> {
        match self {
            Treatment::Drop => None,
            Treatment::Controller(port) => port,
            Treatment::Send(port, ..) => Some(port),
        }
    }
}

/// Returns the number of priorities of a band.
fn slots(config: &VirtualRouterConfig) -> u32 {
    2 * (u32::try_from(config.filters.len()).unwrap_or(u32::MAX / 1024) + 1)
}

/// Returns the number of priorities that a router needs.
pub(super) fn priorities(config: &VirtualRouterConfig) -> u32 {
    FIRST + BANDS.saturating_mul(slots(config)) + 1
}

/// Returns all entries.
pub(super) fn entries(
    config: &VirtualRouterConfig,
    known: &Neighbours,
    placement: &RouterPlacement,
) -> Result<Vec<RouterEntry>, RouterPlacementError> {
    let mut table = SingleTable { config, known, builder: EntryBuilder::new(placement) };
    add_input(&mut table.builder, config, priorities(config));
    for input in &config.ports {
        for is_ipv4 in [true, false] {
            for class in table.classes(input, is_ipv4) {
                table.add_class(input, is_ipv4, &class);
                if table.builder.entries.len() > MAX_ENTRIES_SINGLE {
                    return Err(RouterPlacementError::Entries { most: MAX_ENTRIES_SINGLE });
                }
            }
        }
    }
    Ok(table.builder.entries)
}

struct SingleTable<'a> {
    config: &'a VirtualRouterConfig,
    known: &'a Neighbours,
    builder: EntryBuilder<'a>,
}

impl<'a> SingleTable<'a> {
    /// Returns the destinations of packets of a version of IP that come by a port.
    fn classes(&self, input: &RouterPort, is_ipv4: bool) -> Vec<DestinationClass<'a>> {
        let config = self.config;
        let class = |band, destination, treatment| DestinationClass { band, source: None, destination, treatment };
        let mut classes = vec![class(0, None, Treatment::Controller(None))];
        let routed = |prefix: AddressPrefix, treatment| class(1 + u32::from(prefix.length()), Some(prefix), treatment);
        for port in &config.ports {
            classes.extend(port.networks().map(|network| routed(network, Treatment::Controller(Some(port)))));
            let own = port.addresses.iter().map(|own| own.addr);
            let own = own.filter(|own| !is_link_local(*own) || port.port == input.port).map(AddressPrefix::host);
            classes.extend(own.map(|own| class(LOCAL, Some(own), Treatment::Controller(None))));
        }
        for (addr, mac) in self.known {
            if let RouteOutcome::Way(port, hop) = forwarding::route(config, *addr)
                && hop == *addr
            {
                // Above the network of the port, even if that has only one address more.
                classes.push(routed(AddressPrefix::host(*addr), Treatment::Send(port, *mac, None)));
            }
        }
        for route in &config.routes {
            classes.push(routed(route.prefix, self.treatment(forwarding::target(config, route.via), None)));
        }
        for pair in config.translations.iter().filter(|pair| pair.port == input.port) {
            let treatment = self.treatment(forwarding::route(config, pair.inside), Some(pair.inside));
            classes.push(class(TRANSLATED, Some(AddressPrefix::host(pair.outside)), treatment));
        }
        if !is_ipv4 {
            for (source, destination) in [(Some(link_local()), None), (None, Some(link_local()))] {
                classes.push(DestinationClass { band: LINK_LOCAL, source, destination, treatment: Treatment::Drop });
            }
        }
        classes.retain(|class| class.destination.is_none_or(|prefix| prefix.is_ipv4() == is_ipv4));
        classes
    }

    fn treatment(&self, outcome: RouteOutcome<'a>, destination: Option<IpAddr>) -> Treatment<'a> {
        match outcome {
            RouteOutcome::None => Treatment::Controller(None),
            RouteOutcome::Blackhole => Treatment::Drop,
            RouteOutcome::Way(port, hop) => match self.known.get(&hop) {
                Some(mac) => Treatment::Send(port, *mac, destination),
                None => Treatment::Controller(Some(port)),
            },
        }
    }

    /// Adds the entries of a class: for each filter that can apply, and for packets that none applies to.
    fn add_class(&mut self, input: &RouterPort, is_ipv4: bool, class: &DestinationClass<'a>) {
        let config = self.config;
        let highest = FIRST + class.band * slots(config) + slots(config) - 2;
        let all = PacketFilter::all(FilterAction::Permit);
        if matches!(class.treatment, Treatment::Drop) {
            return self.add_filtered(input, is_ipv4, class, &all, highest);
        }
        for (index, filter) in (0..).zip(config.filters.iter().chain([&all])) {
            let output = class.treatment.output().map(|port| port.port);
            if filter.input.is_none_or(|wanted| wanted == input.port)
                && filter.output.is_none_or(|wanted| Some(wanted) == output)
                && filter.is_ipv4().is_none_or(|only| only == is_ipv4)
            {
                self.add_filtered(input, is_ipv4, class, filter, highest - 2 * index);
            }
        }
    }

    /// Adds the entries of packets of a class that a filter applies to.
    fn add_filtered(
        &mut self,
        input: &RouterPort,
        is_ipv4: bool,
        class: &DestinationClass<'a>,
        filter: &PacketFilter,
        above: u32,
    ) {
        let (Ok(source), Ok(destination)) =
            (common(class.source, filter.source), common(class.destination, filter.destination))
        else {
            return;
        };
        let link = with_input(Match::any(), input.port).with(Field::EthDst, input.mac.to_bits());
        let mut add = |above, source, instructions: Vec<Instruction>| {
            let matching = with_addresses(with_version(link.clone(), is_ipv4), is_ipv4, source, destination);
            for matching in with_transport(matching, filter) {
                self.builder.add(RouterStage::Route, above, matching, instructions.clone());
            }
        };
        let (port, mac, new_destination) = match class.treatment {
            _ if filter.action == FilterAction::Deny => return add(above, source, Vec::new()),
            Treatment::Drop => return add(above, source, Vec::new()),
            Treatment::Controller(_) => return add(above, source, to_controller()),
            Treatment::Send(port, mac, new_destination) => (port, mac, new_destination),
        };
        let send = |new_source: Option<IpAddr>| {
            let [source, destination] = address_fields(is_ipv4);
            let set = |(field, addr): (Field, Option<IpAddr>)| Some(Action::SetField { field, value: bits(addr?) });
            let mut actions = vec![Action::DecNwTtl, Action::set_mac(Field::EthDst, mac)];
            actions.extend([(source, new_source), (destination, new_destination)].into_iter().filter_map(set));
            let is_input = port.port.number == input.port.number;
            leave(port, input.port.vlan.is_some(), is_input, actions)
        };
        add(above, source, send(None));
        let leaving = self.config.translations.iter().filter(|pair| pair.port == port.port);
        for pair in leaving.filter(|pair| pair.inside.is_ipv4() == is_ipv4) {
            if let Ok(source) = common(source, Some(AddressPrefix::host(pair.inside))) {
                add(above + 1, source, send(Some(pair.outside)));
            }
        }
    }
}

/// Returns the addresses that are in both prefixes, where `None` stands for all.
fn common(one: Option<AddressPrefix>, other: Option<AddressPrefix>) -> Result<Option<AddressPrefix>, ()> {
    match (one, other) {
        (Some(one), Some(other)) => one.intersection(other).map(Some).ok_or(()),
        (one, other) => Ok(one.or(other)),
    }
}
