//! Expands the section `[topology]` of a scenario: inserts the topology's switches, hosts and links into the document,
//! as if the user had written them there.
//!
//! 1. [`graph`] generates the graph by rule or reads it from a file, and refuses impossible graphs.
//! 2. Each node gets a name and becomes a switch. If the document contains a switch with this name, its settings take
//!    precedence over the topology's (`switches`).
//! 3. Hosts and links are inserted in the same way (`hosts_of`, `links`). Datapath ids and port numbers are those of
//!    the graph, if it has them.
mod graph;

use super::{MAX_NAME, ScenarioResult, SourceFile, timing};
use crate::document::{
    HostToml, LinkEffectsToml, LinkSectionToml, LinkToml, OneOrMore, ScenarioToml, SwitchToml, TopologyToml as Written,
};
use crate::{Profile, SwitchTiming};
use std::collections::{HashMap, HashSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr};
use std::ops::Range;
use toml::Spanned;
use weir_packet::IpNet;
use weir_profile::check::SectionReader;
use weir_topology::Topology;
use weir_topology::names::UniqueNames;
use weir_units::TimeSpan;

/// Default network of hosts' addresses.
const NET: IpNet = IpNet { addr: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 0)), prefix: 8 };

/// Settings of a topology for all its switches that cannot be inserted into the document's switches.
#[derive(Default)]
pub(crate) struct TopologyTiming {
    timing: Option<SwitchTiming>,
    /// Names of the switches to which `timing` does not apply, because they have a timing or a profile themselves or
    /// do not belong to the topology.
    own: HashSet<String>,
}

/// Returns the switch with the topology's timing if that applies to it, otherwise unchanged.
pub(super) fn with_topology_timing(
    mut switch: crate::ScenarioSwitch,
    shared: &TopologyTiming,
) -> crate::ScenarioSwitch {
    if shared.is_timing_of(&switch.name) {
        switch.timing.clone_from(&shared.timing);
        switch.profile = shared.timing.clone().map(|timing| Box::new(Profile::of_timing(&switch.name, timing)));
    }
    switch
}

impl TopologyTiming {
    /// Returns true if the topology has a section `timing` and it applies to this switch, which has neither a timing
    /// nor a profile itself.
    pub(crate) fn is_timing_of(&self, switch: &str) -> bool {
        self.timing.is_some() && !self.own.contains(switch)
    }
}

/// Inserts the topology's switches, hosts and links into the document's lists, and removes the topology from the
/// document. Returns the topology's settings that are applied to switches later.
pub(crate) fn expand(document: &mut ScenarioToml, source: &SourceFile<'_>) -> ScenarioResult<TopologyTiming> {
    let Some(spanned) = document.topology.take() else { return Ok(TopologyTiming::default()) };
    let place = TopologySpan { source, span: spanned.span() };
    let written = spanned.into_inner();
    let (made, hosts) = graph::build_graph(&place, &written)?;
    let timing = shared_timing(&place, &written)?;
    let names = name_all(&made, hosts, written.file.is_some());
    let own = |switch: &Spanned<SwitchToml>| {
        let switch = switch.as_ref();
        (switch.timing.is_some() || switch.profile.is_some()).then(|| switch.name.as_ref().clone())
    };
    let mut own: HashSet<String> = document.switch.iter().filter_map(own).collect();
    own.extend(
        document.switch.iter().map(|s| s.as_ref().name.as_ref().clone()).filter(|s| !names.switches.contains(s)),
    );
    let given = std::mem::take(&mut document.switch);
    document.switch = switches(&place, &written, &names, &made, given);
    let given = std::mem::take(&mut document.host);
    document.host = hosts_of(&place, &written, &names, &made, given)?;
    let given = std::mem::take(&mut document.link);
    document.link = links(&place, &written, &names, &made, given)?;
    Ok(TopologyTiming { timing, own })
}

/// Position of the topology in the scenario file, for error messages and for the items made from it.
struct TopologySpan<'a> {
    source: &'a SourceFile<'a>,
    span: Range<usize>,
}

impl TopologySpan<'_> {
    fn error(&self, problem: impl std::fmt::Display) -> crate::ScenarioError {
        self.source.error(self.span.clone(), format!("topology: {problem}"))
    }

    fn spanned<T>(&self, value: T) -> Spanned<T> {
        Spanned::new(self.span.clone(), value)
    }
}

fn shared_timing(place: &TopologySpan<'_>, written: &Written) -> ScenarioResult<Option<SwitchTiming>> {
    if let (Some(_), Some(timing)) = (&written.profile, &written.timing) {
        let both = "topology: found `profile` and a section `timing`, expected one of them: a profile has its own";
        return Err(place.source.error(timing.span(), both.to_owned()));
    }
    timing::timing_section(
        place.source,
        &SectionReader { what: "topology: timing".to_owned() },
        written.timing.as_ref(),
    )
}

/// Names of all switches, and of the hosts at each of them.
struct SwitchAndHostNames {
    switches: Vec<String>,
    hosts: Vec<Vec<String>>,
}

/// Names all switches and hosts. Switches are named after the nodes of the graph. Hosts are named `h1`, `h2`, ... if
/// the graph was generated by rule. If it was read from a file (`is_file`), they are named `h-SWITCH`, or `h1-SWITCH`,
/// `h2-SWITCH`, ... if there are several at each switch.
fn name_all(made: &Topology, hosts: usize, is_file: bool) -> SwitchAndHostNames {
    let mut names = UniqueNames::default();
    // Prefix of a host's name.
    let front = |number: usize| if hosts == 1 { "h-".to_owned() } else { format!("h{number}-") };
    let room = if is_file { MAX_NAME.saturating_sub(front(hosts).len()).max(3) } else { MAX_NAME };
    let switches: Vec<String> = made.nodes.iter().map(|node| names.take(&node.name, room)).collect();
    let mut number = 0;
    let mut host = |switch: &str, at: usize| {
        number += 1;
        let label = if is_file { format!("{}{switch}", front(at)) } else { format!("h{number}") };
        names.take(&label, MAX_NAME)
    };
    let mut hosts_of =
        |takes: bool, switch: &str| (1..=if takes { hosts } else { 0 }).map(|at| host(switch, at)).collect();
    let hosts = made.nodes.iter().zip(&switches).map(|(node, switch)| hosts_of(node.takes_hosts, switch)).collect();
    SwitchAndHostNames { switches, hosts }
}

/// Returns the topology's switches, followed by the other switches of the document (`given`). A topology's switch has
/// the settings of the document's switch with its name, if there is one.
fn switches(
    place: &TopologySpan<'_>,
    written: &Written,
    names: &SwitchAndHostNames,
    made: &Topology,
    given: Vec<Spanned<SwitchToml>>,
) -> Vec<Spanned<SwitchToml>> {
    let (mut by_name, order) = group_by_key(given, |switch| switch.name.as_ref().clone());
    let mut all = Vec::new();
    for (name, node) in names.switches.iter().zip(&made.nodes) {
        let mut switch = by_name.get_mut(name).and_then(VecDeque::pop_front).unwrap_or_else(|| {
            let name = place.spanned(name.clone());
            place.spanned(SwitchToml::named(name))
        });
        let inner = switch.as_mut();
        inner.dpid = inner.dpid.take().or(node.dpid.map(|dpid| place.spanned(dpid)));
        inner.fail_mode = inner.fail_mode.or(written.fail_mode);
        if inner.profile.is_none() && inner.timing.is_none() {
            inner.profile.clone_from(&written.profile);
        }
        all.push(switch);
    }
    all.extend(unclaimed_items(by_name, order));
    all
}

fn hosts_of(
    place: &TopologySpan<'_>,
    written: &Written,
    names: &SwitchAndHostNames,
    made: &Topology,
    given: Vec<Spanned<HostToml>>,
) -> ScenarioResult<Vec<Spanned<HostToml>>> {
    let net = written.ip.as_ref().map_or(NET, |ip| *ip.as_ref());
    let total = names.hosts.iter().map(Vec::len).sum::<usize>();
    let line = LinkEffectsToml {
        rate: written.host_rate,
        delay: written.host_delay.clone(),
        buffer: written.host_buffer.clone(),
        ..LinkEffectsToml::default()
    };
    let (mut by_name, order) = group_by_key(given, |host| host.name.as_ref().clone());
    let mut all = Vec::new();
    for (switch, hosts) in names.switches.iter().zip(&names.hosts).take(made.nodes.len()) {
        for name in hosts {
            let address = address(net, all.len() + 1)
                .ok_or_else(|| place.error(format!("ip: found {net}, expected room for {total} addresses")))?;
            let mut host = by_name.get_mut(name).and_then(VecDeque::pop_front).unwrap_or_else(|| {
                let name = place.spanned(name.clone());
                place.spanned(HostToml::only(name))
            });
            let inner = host.as_mut();
            if inner.switch.is_none() {
                inner.switch = Some(place.spanned(switch.clone()));
            }
            if inner.ip.is_none() {
                inner.ip = Some(OneOrMore(vec![place.spanned(address)]));
            }
            inner.fill_in(line.clone());
            all.push(host);
        }
    }
    all.extend(unclaimed_items(by_name, order));
    Ok(all)
}

/// Returns the address with index `number` in a network, where index 0 is the network's own address; `None` if the
/// network is too small.
fn address(net: IpNet, number: usize) -> Option<IpNet> {
    let bits = if net.addr.is_ipv4() { 32 } else { 128 };
    let room = 1_u128.checked_shl(u32::from(bits - net.prefix)).unwrap_or(u128::MAX);
    let number = number as u128;
    // The last address is the broadcast address.
    if number + 1 >= room {
        return None;
    }
    let addr = match net.addr {
        IpAddr::V4(v4) => {
            let base = u128::from(v4.to_bits()) & !(room - 1);
            IpAddr::V4(Ipv4Addr::from_bits(u32::try_from(base + number).ok()?))
        }
        IpAddr::V6(v6) => IpAddr::V6(((v6.to_bits() & !(room - 1)) + number).into()),
    };
    Some(IpNet { addr, prefix: net.prefix })
}

fn links(
    place: &TopologySpan<'_>,
    written: &Written,
    names: &SwitchAndHostNames,
    made: &Topology,
    given: Vec<Spanned<LinkToml>>,
) -> ScenarioResult<Vec<Spanned<LinkToml>>> {
    let key = |link: &LinkToml| {
        let mut ends = [link.ends[0].as_ref().clone(), link.ends[1].as_ref().clone()];
        ends.sort();
        ends
    };
    let (mut by_ends, order) = group_by_key(given, key);
    let mut all = Vec::new();
    for link in &made.links {
        let ends = link.ends.map(|end| names.switches[end].clone());
        let from = ends[0].clone();
        let mut sorted = ends.clone();
        sorted.sort();
        let mut item = by_ends.get_mut(&sorted).and_then(VecDeque::pop_front).unwrap_or_else(|| {
            let ends = ends.map(|end| place.spanned(end));
            place.spanned(LinkToml::only(ends))
        });
        let inner = item.as_mut();
        if let (None, Some([a, b])) = (&inner.ports, link.ports) {
            let in_its_order = if *inner.ends[0].as_ref() == from { [a, b] } else { [b, a] };
            inner.ports = Some(in_its_order.map(|port| place.spanned(port)));
        }
        let usual = written.line();
        let delay = link.delay.map(|delay| place.spanned(TimeSpan(delay)));
        inner.fill_in(LinkEffectsToml {
            rate: link.rate.or(usual.rate),
            delay: delay.or(usual.delay.clone()),
            ..usual
        });
        all.push(item);
    }
    all.extend(unclaimed_items(by_ends, order));
    Ok(all)
}

type ItemsByKey<K, T> = (HashMap<K, VecDeque<Spanned<T>>>, Vec<K>);

/// Groups the document's items by key, in the order of the file. Also returns the key of each item, in the order of
/// the file.
fn group_by_key<K: std::hash::Hash + Eq + Clone, T>(items: Vec<Spanned<T>>, key: impl Fn(&T) -> K) -> ItemsByKey<K, T> {
    let (mut by_key, mut order): (HashMap<K, VecDeque<_>>, _) = (HashMap::new(), Vec::new());
    for item in items {
        let key = key(item.as_ref());
        order.push(key.clone());
        by_key.entry(key).or_default().push_back(item);
    }
    (by_key, order)
}

/// Returns the document's items that were not taken from `by_key`, because they do not belong to the topology, in the
/// order of the file. `order` contains the keys in this order.
fn unclaimed_items<K: std::hash::Hash + Eq, T>(
    mut by_key: HashMap<K, VecDeque<Spanned<T>>>,
    order: Vec<K>,
) -> Vec<Spanned<T>> {
    order.iter().filter_map(|key| by_key.get_mut(key).and_then(VecDeque::pop_front)).collect()
}
