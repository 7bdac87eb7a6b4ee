//! Checks fabrics and the virtual switches cut from them.
use super::virtual_app::refuse;
use super::virtual_switch::virtual_switch;
use super::{ClaimedNames, ScenarioResult, SourceFile};
use crate::{ScenarioHost, ScenarioLink, ScenarioSwitch, document};
use std::collections::BTreeMap;
use std::time::Duration;
use toml::Spanned;
use weir_slicing::{FabricPort, FabricSpec, VirtualSwitch};
use weir_units::{Bps, ByteSize, Instant};

/// Most ports of a fabric, which has a crosspoint for each pair of ports.
const MAX_PORTS: u32 = 256;
/// Most virtual switches of one switch.
const MAX_VIRTUAL: usize = 256;
const MAX_CROSSPOINT: ByteSize = ByteSize(1_000_000_000);

/// Sections of the file on a switch's fabric and virtual switches.
type SlicingSections = (Option<Spanned<document::FabricToml>>, Vec<Spanned<document::VirtualSwitchToml>>);

/// Cuts switches into virtual switches. Refuses virtual switches that the fabric does not admit.
pub(super) fn cut(
    source: &SourceFile<'_>,
    names: &mut ClaimedNames,
    cuts: Vec<SlicingSections>,
    switches: &mut [ScenarioSwitch],
    hosts: &[ScenarioHost],
    links: &[ScenarioLink],
) -> ScenarioResult<()> {
    for (index, (fabric_item, items)) in cuts.into_iter().enumerate() {
        let Some(place) = fabric_item.as_ref().map(Spanned::span).or_else(|| items.first().map(Spanned::span)) else {
            continue;
        };
        let attached = attached(index, hosts, links);
        let name = &switches[index].name;
        let fabric = fabric(source, name, place.clone(), fabric_item.map(Spanned::into_inner), attached)?;
        if let Some(beyond) = items.get(MAX_VIRTUAL) {
            return Err(source.error(beyond.span(), format!("[[switch.virtual]]: expected at most {MAX_VIRTUAL}")));
        }
        let admission = weir_fabric::Fabric::<()>::new(fabric.config(Duration::ZERO, 0));
        let mut admission = admission.map_err(|error| source.error(place, format!("switch {name}: {error}")))?;
        for item in items {
            let span = item.span();
            let cut = virtual_switch(item.into_inner(), source, &fabric)?;
            if let Err(refused) = admission.add(Instant::ZERO, cut.config(&fabric, Instant::ZERO)) {
                let problem = format!("virtual switch {}: {}", cut.name, fabric.numbered(refused));
                return Err(source.error(span, problem));
            }
            names.claim(source, Spanned::new(span.clone(), cut.name.clone()))?;
            let twin = |dpid| switches.iter().flat_map(ScenarioSwitch::dpids).any(|taken| taken == dpid);
            if twin(cut.dpid) {
                let problem = format!("found dpid {:#x} twice, expected each once", cut.dpid);
                return Err(source.error(span, problem));
            }
            let others = &mut switches[index].virtual_switches;
            if let Some((selector, other)) = cut.select.iter().find_map(|selector| {
                let other = others.iter().find(|other| other.select.contains(selector))?;
                Some((selector, other))
            }) {
                let problem =
                    format!("virtual switch {}: select: found {selector}, which {} has", cut.name, other.name);
                return Err(source.error(span, problem));
            }
            others.push(cut);
        }
        switches[index].fabric = Some(fabric);
    }
    Ok(())
}

/// Checks a file that has only a fabric and virtual switches, for a switch with these ports.
pub(crate) fn fabric_file(
    source: &SourceFile<'_>,
    switch: &str,
    document: document::SlicingToml,
    ports: BTreeMap<u32, Option<Bps>>,
) -> ScenarioResult<(FabricSpec, Vec<VirtualSwitch>)> {
    let place = document.fabric.as_ref().map_or(0..0, Spanned::span);
    if let Some(count) = document.fabric.as_ref().and_then(|fabric| fabric.as_ref().ports.as_ref()) {
        let problem = "fabric: ports: found in the file of a switch, whose ports are those it is given; leave it out";
        return Err(source.error(count.span(), problem.to_owned()));
    }
    let fabric = fabric(source, switch, place, document.fabric.map(Spanned::into_inner), ports)?;
    let items = document.r#virtual.into_iter().map(|item| {
        let span = item.span();
        let cut = virtual_switch(item.into_inner(), source, &fabric)?;
        let wrong = |problem| source.error(span, format!("virtual switch {}: {problem}", cut.name));
        refuse(cut.app.as_ref()).map_err(wrong)?;
        Ok(cut)
    });
    let cuts = items.collect::<ScenarioResult<Vec<_>>>()?;
    Ok((fabric, cuts))
}

/// Returns a switch's ports at hosts and links, with their rates if the file gives any.
pub(super) fn attached(switch: usize, hosts: &[ScenarioHost], links: &[ScenarioLink]) -> BTreeMap<u32, Option<Bps>> {
    let hosts = hosts.iter().filter(|host| host.switch == switch).map(|host| (host.port, host.link.rate));
    let links = links.iter().flat_map(|link| link.ends.iter().map(|end| (end, link.spec.rate)));
    hosts.chain(links.filter(|(end, _)| end.switch == switch).map(|(end, rate)| (end.port, rate))).collect()
}

fn fabric(
    source: &SourceFile<'_>,
    switch: &str,
    place: std::ops::Range<usize>,
    item: Option<document::FabricToml>,
    mut ports: BTreeMap<u32, Option<Bps>>,
) -> ScenarioResult<FabricSpec> {
    let item = item.unwrap_or_default();
    if let Some(count) = &item.ports {
        let found = *count.as_ref();
        if !(1..=MAX_PORTS).contains(&found) {
            let problem = format!("switch {switch}: fabric: ports: found {found}, expected 1 to {MAX_PORTS}");
            return Err(source.error(count.span(), problem));
        }
        (1..=found).for_each(|number| _ = ports.entry(number).or_default());
    }
    let unsaid = FabricSpec::default();
    let max_packet = size(source, "max_packet", item.max_packet.as_ref(), unsaid.max_packet, 64..=65_535)?;
    let least = max_packet.0..=MAX_CROSSPOINT.0;
    let crosspoint = size(source, "crosspoint", item.crosspoint.as_ref(), unsaid.crosspoint, least)?;
    let default = item.rate.map(Spanned::into_inner);
    let rated = |(port, rate): (u32, Option<Bps>)| {
        let missing = || {
            let problem = format!(
                "switch {switch}: fabric: found no rate for port {port}, expected the port's link to have one, or \
                 `rate` in [switch.fabric] for all that have none"
            );
            source.error(place.clone(), problem)
        };
        Ok(FabricPort { port, rate: rate.or(default).ok_or_else(missing)? })
    };
    Ok(FabricSpec {
        ports: ports.into_iter().map(rated).collect::<ScenarioResult<_>>()?,
        crosspoint,
        max_packet,
        discipline: item.discipline.unwrap_or(unsaid.discipline),
        sharing: item.sharing.unwrap_or(unsaid.sharing),
    })
}

/// Returns a size checked against its limits, or the default.
pub(super) fn size(
    source: &SourceFile<'_>,
    what: &str,
    item: Option<&Spanned<ByteSize>>,
    default: ByteSize,
    limits: std::ops::RangeInclusive<u64>,
) -> ScenarioResult<ByteSize> {
    item.map_or(Ok(default), |item| within(source, what, item, limits))
}

/// Returns a size checked against its limits.
pub(super) fn within(
    source: &SourceFile<'_>,
    what: &str,
    item: &Spanned<ByteSize>,
    limits: std::ops::RangeInclusive<u64>,
) -> ScenarioResult<ByteSize> {
    if limits.contains(&item.as_ref().0) {
        return Ok(*item.as_ref());
    }
    let (low, high) = (ByteSize(*limits.start()), ByteSize(*limits.end()));
    Err(source.error(item.span(), format!("{what}: found {}, expected {low} to {high}", item.as_ref())))
}
