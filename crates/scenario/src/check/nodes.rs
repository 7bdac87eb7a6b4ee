//! Checks tenants, switches, hosts and links.
use super::{ClaimedNames, ScenarioResult, SourceFile, find, links, queues, timing};
use crate::document::LinkSectionToml;
use crate::{FailMode, LinkEnd, ScenarioHost, ScenarioLink, ScenarioSwitch, Tenant, document};
use std::collections::BTreeSet;
use toml::Spanned;
use weir_packet::{IpNet, MacAddr};

/// Highest port number. OpenFlow 1.0, which a lab may use, numbers ports up to 0xff00.
const MAX_PORT: u32 = 0xfeff;

pub(super) fn tenant(
    source: &SourceFile<'_>,
    names: &mut ClaimedNames,
    item: document::TenantToml,
) -> ScenarioResult<Tenant> {
    let name = names.claim(source, item.name)?;
    let vlan = *item.vlan.as_ref();
    if !(1..=4094).contains(&vlan) {
        return Err(source.error(item.vlan.span(), format!("tenant {name}: vlan: found {vlan}, expected 1 to 4094")));
    }
    Ok(Tenant { name, vlan })
}

pub(super) fn switch(
    source: &SourceFile<'_>,
    names: &mut ClaimedNames,
    item: document::SwitchToml,
    place: u64,
) -> ScenarioResult<ScenarioSwitch> {
    let name = names.claim(source, item.name.clone())?;
    let profile = timing::switch(source, &name, &item)?.map(Box::new);
    let (tables, max_entries) = table_limits(source, &name, item.tables, item.max_entries)?;
    Ok(ScenarioSwitch {
        name,
        timing: profile.as_ref().and_then(|profile| profile.timing.clone()),
        profile,
        dpid: item.dpid.map_or(place, Spanned::into_inner),
        tables,
        max_entries,
        fail_mode: item.fail_mode.unwrap_or(FailMode::Secure),
        threads: item.threads,
        entries: item.entries,
        fabric: None,
        virtual_switches: Vec::new(),
    })
}

/// Returns the number of tables of a switch, and the most entries of each, checked or by default.
pub(super) fn table_limits(
    source: &SourceFile<'_>,
    name: &str,
    tables: Option<Spanned<u8>>,
    max_entries: Option<Spanned<u32>>,
) -> ScenarioResult<(u8, u32)> {
    if let Some(found) = tables.as_ref().filter(|tables| !(1..=254).contains(tables.as_ref())) {
        let problem = format!("switch {name}: tables: found {}, expected 1 to 254", found.as_ref());
        return Err(source.error(found.span(), problem));
    }
    if let Some(zero) = max_entries.as_ref().filter(|max| *max.as_ref() == 0) {
        return Err(source.error(zero.span(), format!("switch {name}: max_entries: found 0, expected at least 1")));
    }
    Ok((tables.map_or(64, Spanned::into_inner), max_entries.map_or(1_000_000, Spanned::into_inner)))
}

/// Returns a port's number, checked against its limits.
pub(super) fn port_number(source: &SourceFile<'_>, port: &Spanned<u32>) -> ScenarioResult<u32> {
    let number = *port.as_ref();
    if (1..=MAX_PORT).contains(&number) {
        return Ok(number);
    }
    Err(source.error(port.span(), format!("port: found {number}, expected 1 to {MAX_PORT}")))
}

/// Port numbers in use on each switch. Numbers in the file are claimed first; other ports get the lowest free
/// numbers.
struct ClaimedPorts(Vec<BTreeSet<u32>>);

impl ClaimedPorts {
    fn claim(
        &mut self,
        source: &SourceFile<'_>,
        switch: &ScenarioSwitch,
        index: usize,
        port: &Spanned<u32>,
    ) -> ScenarioResult<()> {
        let number = port_number(source, port)?;
        if !self.0[index].insert(number) {
            let problem = format!("port: found {number} twice on switch {}, expected each once", switch.name);
            return Err(source.error(port.span(), problem));
        }
        Ok(())
    }

    fn next(&mut self, index: usize) -> u32 {
        let taken = &mut self.0[index];
        let free = (1..).find(|number| !taken.contains(number)).unwrap_or(u32::MAX);
        taken.insert(free);
        free
    }
}

/// Checks hosts and links, and assigns a switch port to each end.
pub(super) fn attach(
    source: &SourceFile<'_>,
    names: &mut ClaimedNames,
    hosts: Vec<Spanned<document::HostToml>>,
    links: Vec<Spanned<document::LinkToml>>,
    switches: &[ScenarioSwitch],
    tenants: &[Tenant],
) -> ScenarioResult<(Vec<ScenarioHost>, Vec<ScenarioLink>)> {
    let known: Vec<&str> = switches.iter().map(|switch| switch.name.as_str()).collect();
    let mut ports = ClaimedPorts(vec![BTreeSet::new(); switches.len()]);
    for host in hosts.iter().map(Spanned::as_ref) {
        if let (Some(port), Some(switch)) = (&host.port, &host.switch) {
            let index = find(source, "switch", switch, known.clone())?;
            ports.claim(source, &switches[index], index, port)?;
        }
    }
    for link in links.iter().map(Spanned::as_ref) {
        for (end, port) in link.ends.iter().zip(link.ports.iter().flatten()) {
            let index = find(source, "link: ends", end, known.clone())?;
            ports.claim(source, &switches[index], index, port)?;
        }
    }
    let mut checked_hosts: Vec<ScenarioHost> = Vec::new();
    for (place, item) in hosts.into_iter().enumerate() {
        let host = host(source, names, item.into_inner(), &known, tenants, &mut ports, place, &checked_hosts)?;
        checked_hosts.push(host);
    }
    let mut checked_links = Vec::new();
    for item in links {
        checked_links.push(link(source, item, &known, &mut ports)?);
    }
    Ok((checked_hosts, checked_links))
}

#[expect(clippy::too_many_arguments, reason = "what a host refers to")]
fn host(
    source: &SourceFile<'_>,
    names: &mut ClaimedNames,
    item: document::HostToml,
    switches: &[&str],
    tenants: &[Tenant],
    ports: &mut ClaimedPorts,
    place: usize,
    others: &[ScenarioHost],
) -> ScenarioResult<ScenarioHost> {
    let name_span = item.name.span();
    let line = item.line();
    let name = names.claim(source, item.name)?;
    let missing = |key: &str, expected: &str| {
        let problem = format!("host {name}: found no `{key}`, expected {expected}: no [topology] has this host");
        source.error(name_span.clone(), problem)
    };
    let switch = item.switch.ok_or_else(|| missing("switch", "the name of its switch"))?;
    let ip = item.ip.ok_or_else(|| missing("ip", "an address such as \"10.0.0.1/24\""))?;
    let switch_span = switch.span();
    let switch = find(source, "switch", &switch, switches.to_vec())?;
    let known = tenants.iter().map(|tenant| tenant.name.as_str()).collect();
    let tenant = item.tenant.map(|tenant| find(source, "tenant", &tenant, known)).transpose()?;
    let mac = item.mac.as_ref().map_or_else(|| default_mac(place), |mac| *mac.as_ref());
    if let Some(wrong) = item.mac.filter(|mac| mac.as_ref().is_multicast() || mac.as_ref().to_bits() == 0) {
        let problem = format!("host {name}: mac: found {}, expected a unicast address", wrong.as_ref());
        return Err(source.error(wrong.span(), problem));
    }
    if ip.0.is_empty() {
        return Err(source.error(switch_span, format!("host {name}: ip: found none, expected at least one")));
    }
    for ip in &ip.0 {
        let twin = others.iter().find(|other| {
            other.tenant == tenant && other.ip.iter().any(|taken: &IpNet| taken.addr == ip.as_ref().addr)
        });
        if let Some(twin) = twin {
            let problem = format!("host {name}: ip: found {}, which host {} has", ip.as_ref(), twin.name);
            return Err(source.error(ip.span(), problem));
        }
    }
    let ip = ip.0.into_iter().map(Spanned::into_inner).collect();
    let port = item.port.map_or_else(|| ports.next(switch), Spanned::into_inner);
    let link = links::spec(source, line)?;
    let queues = queues::queues(source, item.queues, &link)?;
    Ok(ScenarioHost { name, switch, port, tenant, ip, mac, link, queues })
}

/// Returns the default MAC address of a host, locally administered: `02:00:00:00:00:01` for the first host, and so
/// on.
fn default_mac(place: usize) -> MacAddr {
    MacAddr::from_bits(0x0200_0000_0001 + place as u64)
}

fn link(
    source: &SourceFile<'_>,
    item: Spanned<document::LinkToml>,
    switches: &[&str],
    ports: &mut ClaimedPorts,
) -> ScenarioResult<ScenarioLink> {
    let span = item.span();
    let item = item.into_inner();
    let mut ends = [LinkEnd { switch: 0, port: 0 }; 2];
    for (index, (end, name)) in ends.iter_mut().zip(&item.ends).enumerate() {
        end.switch = find(source, "link: ends", name, switches.to_vec())?;
        let given = item.ports.as_ref().map(|ports| *ports[index].as_ref());
        end.port = given.unwrap_or_else(|| ports.next(end.switch));
    }
    if ends[0].switch == ends[1].switch {
        let problem = format!("link: ends: found {} twice, expected two switches", item.ends[0].as_ref());
        return Err(source.error(span, problem));
    }
    let spec = links::spec(source, item.line())?;
    Ok(ScenarioLink { ends, spec, queues: queues::queues(source, item.queues, &spec)? })
}
