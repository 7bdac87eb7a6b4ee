//! Admits the virtual networks of a scenario one after the other, and divides its switches into their virtual switches.
use super::{ClaimedNames, ScenarioResult, SourceFile, virtual_switches};
use crate::networks::{self, ScenarioNetwork};
use crate::{InterDiscipline, ScenarioHost, ScenarioLink, ScenarioSwitch};
use toml::Spanned;
use weir_units::{ByteSize, Instant};
use weir_vnet::allocation::SharingRule;
use weir_vnet::service::{NetworkBook, NetworkServiceRequest, NodeKind, ShareSettings, SwitchLimits};

/// Most virtual networks of a scenario.
const MAX_NETWORKS: usize = 1000;

/// Admits the networks, gives switches their virtual switches, and returns what was admitted.
pub(super) fn admit(
    source: &SourceFile<'_>,
    names: &mut ClaimedNames,
    items: Vec<Spanned<NetworkServiceRequest>>,
    switches: &mut [ScenarioSwitch],
    hosts: &[ScenarioHost],
    links: &[ScenarioLink],
) -> ScenarioResult<Vec<ScenarioNetwork>> {
    let Some(first) = items.first().map(Spanned::span) else { return Ok(Vec::new()) };
    if let Some(beyond) = items.get(MAX_NETWORKS) {
        return Err(source.error(beyond.span(), format!("[[network]]: expected at most {MAX_NETWORKS}")));
    }
    let wrong = |error: weir_vnet::service::ServiceError| source.error(first.clone(), error.to_string());
    let settings = ShareSettings::default();
    // Switches whose file says how large their buffers are have these.
    let crosspoint = switches.iter().filter_map(|switch| Some(switch.fabric.as_ref()?.crosspoint)).min();
    let unsaid = SwitchLimits::default();
    let limits = SwitchLimits { crosspoint: crosspoint.unwrap_or(unsaid.crosspoint), ..unsaid };
    let substrate = networks::substrate(switches, hosts, links).map_err(wrong)?;
    let mut book = NetworkBook::new(substrate, settings, limits, SharingRule::MaximumSum).map_err(wrong)?;
    let mut order = Vec::new();
    for item in items {
        let span = item.span();
        if let Some(router) = item.as_ref().nodes.iter().find(|node| node.kind == NodeKind::Router) {
            let problem = format!(
                "network {}: node {}: found kind = \"router\", expected \"bridge\" or \"controller\": hosts of scenarios \
                 have no routes yet",
                item.as_ref().name,
                router.name
            );
            return Err(source.error(span, problem));
        }
        names.claim(source, Spanned::new(span.clone(), item.as_ref().name.clone()))?;
        book.request(item.as_ref(), Instant::ZERO).map_err(|error| source.error(span, error.to_string()))?;
        order.push(item.into_inner().name);
    }
    divide(source, first.clone(), &book, limits.crosspoint, switches, hosts, links)?;
    for cut in switches.iter().flat_map(|switch| &switch.virtual_switches) {
        if book.held().any(|held| held.design.slices.iter().any(|slice| slice.name == cut.name)) {
            names.claim(source, Spanned::new(first.clone(), cut.name.clone()))?;
        }
    }
    let admitted = order.iter().filter_map(|name| ScenarioNetwork::of(&book, name));
    Ok(admitted.collect())
}

/// Gives switches the virtual switches of all networks, with the rates that they have beside each other.
fn divide(
    source: &SourceFile<'_>,
    place: std::ops::Range<usize>,
    book: &NetworkBook,
    crosspoint: ByteSize,
    switches: &mut [ScenarioSwitch],
    hosts: &[ScenarioHost],
    links: &[ScenarioLink],
) -> ScenarioResult<()> {
    for (at, switch) in switches.iter_mut().enumerate() {
        let slices = book.held().flat_map(|held| (0..held.design.slices.len()).map(move |slice| (held, slice)));
        let own: Vec<_> = slices.filter(|(held, slice)| held.design.slices[*slice].switch == switch.name).collect();
        if own.is_empty() {
            continue;
        }
        if let Some(found) = promise_breaker(switch) {
            return Err(source.error(place, format!("switch {}: found {found}, and virtual networks", switch.name)));
        }
        let ports = virtual_switches::attached(at, hosts, links);
        let ports = ports.into_iter().filter_map(|(port, rate)| Some((port, rate?)));
        let mut fabric = networks::fabric(ports, book.settings().longest_packet, crosspoint);
        if let Some(written) = &switch.fabric {
            (fabric.ports, fabric.sharing) = (written.ports.clone(), written.sharing);
        }
        switch.virtual_switches =
            own.into_iter().map(|(held, slice)| networks::virtual_switch(book, held, slice, &fabric)).collect();
        switch.fabric = Some(fabric);
    }
    Ok(())
}

/// Returns what a switch has with which the promises of virtual networks would not hold, and why; `None` if nothing.
fn promise_breaker(switch: &ScenarioSwitch) -> Option<&'static str> {
    let discipline = switch.fabric.as_ref().map(|fabric| fabric.discipline);
    if !switch.entries.is_empty() {
        return Some("`entries`, which a switch of networks does not have: it has only their virtual switches");
    }
    if switch.profile.is_some() {
        return Some("the times of a device, which bounds of delays do not count yet");
    }
    discipline
        .is_some_and(|discipline| discipline != InterDiscipline::Drr)
        .then_some("a discipline other than \"drr\", on which the promises rest")
}
