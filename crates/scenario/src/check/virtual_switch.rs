//! Checks a virtual switch.
use super::nodes::{port_number, table_limits};
use super::virtual_app;
use super::virtual_switches::{size, within};
use super::{ClaimedNames, ScenarioResult, SourceFile, duration};
use crate::document;
use toml::Spanned;
use weir_slicing::{
    CrosspointBuffer, FabricSpec, MAX_CEILING_BURST, MAX_QUANTUM, MAX_TIME_WEIGHT, MIN_QUANTUM, PacketSelector,
    QueueManager, RedSpec, VirtualPortSpec, VirtualSwitch,
};
use weir_units::Bps;

/// Checks a virtual switch of a switch with this fabric.
pub(crate) fn virtual_switch(
    item: document::VirtualSwitchToml,
    source: &SourceFile<'_>,
    fabric: &FabricSpec,
) -> ScenarioResult<VirtualSwitch> {
    let name = ClaimedNames::default().claim(source, item.name.clone())?;
    let wrong = |span, problem: String| source.error(span, format!("virtual switch {name}: {problem}"));
    let Some(dpid) = item.dpid.as_ref().map(|dpid| *dpid.as_ref()) else {
        return Err(wrong(
            item.name.span(),
            "found no dpid, expected a datapath id of its own, such as dpid = 0x101".into(),
        ));
    };
    let app = virtual_app::app(source, &name, &item)?;
    let ports = ports(source, &name, item.ports, fabric)?;
    let least = fabric.max_packet.0..=fabric.crosspoint.0;
    let buffer = within(source, "buffer", &item.buffer, least.clone())?;
    let buffers = buffers(source, &name, item.buffers, &ports, least)?;
    let known = |number: u32| ports.iter().any(|port| port.number == number);
    if let Some(path) = item.paths.iter().flatten().find(|path| !path.as_ref().iter().all(|number| known(*number))) {
        let problem = format!("paths: found {:?}, expected pairs of numbers of its ports", path.as_ref());
        return Err(wrong(path.span(), problem));
    }
    let queue = item.queue.unwrap_or_default();
    let red = red(source, &name, item.red, queue)?;
    let unsaid = VirtualSwitch::new(&name, dpid, ports, buffer, fabric);
    let quantum = MIN_QUANTUM..=MAX_QUANTUM;
    let intra_quantum = size(source, "intra_quantum", item.intra_quantum.as_ref(), unsaid.intra_quantum, quantum)?;
    let (tables, max_entries) = table_limits(source, &name, item.tables, item.max_entries)?;
    let select = select(source, &unsaid, item.select, fabric)?;
    Ok(VirtualSwitch {
        select,
        paths: item.paths.map(|paths| paths.into_iter().map(Spanned::into_inner).collect()),
        buffers,
        queue,
        red,
        discipline: item.discipline.unwrap_or_default(),
        intra_quantum,
        priority: item.priority.map_or(unsaid.priority, Spanned::into_inner),
        time_weight: time_weight(source, &name, item.time_weight)?,
        lifetime: item.lifetime.map(|lifetime| duration(source, "lifetime", &lifetime)).transpose()?,
        app,
        connect: texts(item.connect),
        listen: texts(item.listen),
        tables,
        max_entries,
        max_packet_ins: item.max_packet_ins.map_or(unsaid.max_packet_ins, Spanned::into_inner),
        fail_mode: item.fail_mode.unwrap_or(unsaid.fail_mode),
        entries: item.entries,
        ..unsaid
    })
}

/// Checks the virtual switch's weight in sharing the engine's time.
fn time_weight(source: &SourceFile<'_>, name: &str, item: Option<Spanned<u64>>) -> ScenarioResult<Option<u64>> {
    let Some(weight) = item else { return Ok(None) };
    if !(1..=MAX_TIME_WEIGHT).contains(weight.as_ref()) {
        let problem = format!(
            "virtual switch {name}: time_weight: found {}, expected 1 to {MAX_TIME_WEIGHT}: who weighs nothing would never be served",
            weight.as_ref()
        );
        return Err(source.error(weight.span(), problem));
    }
    Ok(Some(weight.into_inner()))
}

/// Checks shares of individual crosspoints' buffers.
fn buffers(
    source: &SourceFile<'_>,
    name: &str,
    items: Vec<Spanned<document::CrosspointBufferToml>>,
    ports: &[VirtualPortSpec],
    limits: std::ops::RangeInclusive<u64>,
) -> ScenarioResult<Vec<CrosspointBuffer>> {
    let known = |number: u32| ports.iter().any(|port| port.number == number);
    let mut buffers: Vec<CrosspointBuffer> = Vec::new();
    for item in items {
        let wrong = |problem: String| source.error(item.span(), format!("virtual switch {name}: buffers: {problem}"));
        let document::CrosspointBufferToml { from, to, buffer } = item.as_ref();
        let (from, to) = (*from, *to);
        if !known(from) || !known(to) {
            return Err(wrong(format!("found {from} to {to}, expected numbers of its ports")));
        }
        if buffers.iter().any(|other| (other.from, other.to) == (from, to)) {
            return Err(wrong(format!("found {from} to {to} twice, expected each once")));
        }
        let buffer = within(source, "buffers: buffer", buffer, limits.clone())?;
        buffers.push(CrosspointBuffer { from, to, buffer });
    }
    Ok(buffers)
}

fn texts(items: Option<document::OneOrMore<Spanned<String>>>) -> Vec<String> {
    items.into_iter().flat_map(|items| items.0).map(Spanned::into_inner).collect()
}

fn ports(
    source: &SourceFile<'_>,
    name: &str,
    items: Spanned<Vec<Spanned<document::VirtualPortToml>>>,
    fabric: &FabricSpec,
) -> ScenarioResult<Vec<VirtualPortSpec>> {
    if items.as_ref().is_empty() {
        let problem = format!("virtual switch {name}: ports: found none, expected at least one");
        return Err(source.error(items.span(), problem));
    }
    let mut ports: Vec<VirtualPortSpec> = Vec::new();
    for item in items.into_inner() {
        let span = item.span();
        let port = port(source, name, item, fabric)?;
        let wrong = |problem: String| source.error(span, format!("virtual switch {name}: ports: {problem}"));
        if ports.iter().any(|other| other.port == port.port) {
            return Err(wrong(format!("found port {} twice, expected each once", port.port)));
        }
        if let Some(other) = ports.iter().find(|other| other.number == port.number) {
            let problem = "expected each number once: give one of them another `number`";
            let (number, first, second) = (port.number, other.port, port.port);
            return Err(wrong(format!("found number {number} for ports {first} and {second}, {problem}")));
        }
        ports.push(port);
    }
    Ok(ports)
}

fn port(
    source: &SourceFile<'_>,
    name: &str,
    item: Spanned<document::VirtualPortToml>,
    fabric: &FabricSpec,
) -> ScenarioResult<VirtualPortSpec> {
    let span = item.span();
    let item = item.into_inner();
    let wrong = |span, problem: String| source.error(span, format!("virtual switch {name}: {problem}"));
    let port = *item.port.as_ref();
    let Some(physical) = fabric.ports.iter().find(|known| known.port == port) else {
        let known = fabric.ports.len();
        return Err(wrong(item.port.span(), format!("port: found {port}, expected one of the switch's {known} ports")));
    };
    if item.rate.is_none() && item.rate_in.is_none() && item.rate_out.is_none() {
        return Err(wrong(
            span,
            format!("port {port}: found no rate, expected `rate`, or `rate_in` or `rate_out` or both"),
        ));
    }
    let rate = |own: &Option<Spanned<Bps>>, what| match own.as_ref().or(item.rate.as_ref()) {
        Some(rate) if *rate.as_ref() > physical.rate => {
            let problem =
                format!("port {port}: {what}: found {}, expected at most the port's {}", rate.as_ref(), physical.rate);
            Err(wrong(rate.span(), problem))
        }
        rate => Ok(rate.map_or(Bps(0), |rate| *rate.as_ref())),
    };
    let (rate_in, rate_out) = (rate(&item.rate_in, "rate_in")?, rate(&item.rate_out, "rate_out")?);
    if let Some(low) = item.ceiling.as_ref().filter(|ceiling| *ceiling.as_ref() < rate_out) {
        let problem =
            format!("port {port}: ceiling: found {}, expected at least its guaranteed {rate_out}", low.as_ref());
        return Err(wrong(low.span(), problem));
    }
    let unsaid = VirtualPortSpec::new(physical, rate_in, rate_out);
    if let Some(vlan) = item.vlan.as_ref().filter(|vlan| !(1..=4094).contains(vlan.as_ref())) {
        return Err(wrong(vlan.span(), format!("port {port}: vlan: found {}, expected 1 to 4094", vlan.as_ref())));
    }
    Ok(VirtualPortSpec {
        vlan: item.vlan.map(Spanned::into_inner),
        number: item.number.as_ref().map_or(Ok(unsaid.number), |number| port_number(source, number))?,
        ceiling: item.ceiling.map(Spanned::into_inner),
        ceiling_burst: size(
            source,
            "ceiling_burst",
            item.ceiling_burst.as_ref(),
            unsaid.ceiling_burst,
            0..=MAX_CEILING_BURST,
        )?,
        quantum: size(source, "quantum", item.quantum.as_ref(), unsaid.quantum, MIN_QUANTUM..=MAX_QUANTUM)?,
        ..unsaid
    })
}

fn red(
    source: &SourceFile<'_>,
    name: &str,
    item: Option<Spanned<RedSpec>>,
    queue: QueueManager,
) -> ScenarioResult<RedSpec> {
    let Some(item) = item else { return Ok(RedSpec::default()) };
    let wrong = |problem: &str| source.error(item.span(), format!("virtual switch {name}: red: {problem}"));
    if queue != QueueManager::Red {
        return Err(wrong("found without queue = \"red\", expected both or neither"));
    }
    item.as_ref().check().map_err(wrong)?;
    Ok(*item.as_ref())
}

/// Returns the selectors of a virtual switch, by default those of `unsaid`: one for each of its ports.
fn select(
    source: &SourceFile<'_>,
    unsaid: &VirtualSwitch,
    items: Vec<Spanned<document::SelectorToml>>,
    fabric: &FabricSpec,
) -> ScenarioResult<Vec<PacketSelector>> {
    if items.is_empty() {
        return Ok(unsaid.select.clone());
    }
    let checked = |item: Spanned<document::SelectorToml>| {
        let span = item.span();
        let item = item.into_inner();
        let selector = PacketSelector {
            port: item.port.map(Spanned::into_inner),
            vlan: item.vlan.map(Spanned::into_inner),
            eth_src: item.eth_src,
            eth_dst: item.eth_dst,
            ip_src: item.ip_src,
            ip_dst: item.ip_dst,
            mpls: item.mpls.map(Spanned::into_inner),
            tunnel: item.tunnel,
        };
        let wrong = |problem| source.error(span, format!("virtual switch {}: select: {problem}", unsaid.name));
        selector.checked(&unsaid.ports, fabric).map_err(wrong)
    };
    items.into_iter().map(checked).collect()
}
