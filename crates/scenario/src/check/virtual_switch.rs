//! Checks a virtual switch.
use super::nodes::{port_number, table_limits};
use super::virtual_switches::{size, within};
use super::{ClaimedNames, ScenarioResult, SourceFile, duration};
use crate::{
    CrosspointBuffer, FabricSpec, PacketSelector, QueueManager, RedSpec, SwitchFailMode, VirtualPortSpec,
    VirtualSwitch, document,
};
use toml::Spanned;
use weir_units::{Bps, ByteSize};

/// Default quantum in bytes of a share of a port's whole capacity; smaller shares get proportionally less. A 32nd of
/// the capacity sends one packet a round.
const DEFAULT_ROUND_BYTES: u64 = 32 * 1514;
/// Smallest quantum, the length of the smallest frame. A smaller quantum would only need more rounds for equal
/// shares.
const MIN_QUANTUM: u64 = 60;
const MAX_QUANTUM: u64 = 1 << 24;
const DEFAULT_PACKET_INS: u32 = 1000;
/// Largest weight: 1 Tbit/s in Mbit/s, the unit of default weights.
const MAX_TIME_WEIGHT: u64 = 1_000_000;
const MAX_LABEL: u32 = (1 << 20) - 1;

/// Checks a virtual switch of a switch with this fabric.
pub(crate) fn virtual_switch(
    item: document::VirtualSwitchToml,
    source: &SourceFile<'_>,
    fabric: &FabricSpec,
) -> ScenarioResult<VirtualSwitch> {
    let name = ClaimedNames::default().claim(source, item.name.clone())?;
    let wrong = |span, problem: String| source.error(span, format!("virtual switch {name}: {problem}"));
    let Some(dpid) = item.dpid.map(Spanned::into_inner) else {
        return Err(wrong(
            item.name.span(),
            "found no dpid, expected a datapath id of its own, such as dpid = 0x101".into(),
        ));
    };
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
    let quantum = MIN_QUANTUM..=MAX_QUANTUM;
    let intra_quantum = size(source, "intra_quantum", item.intra_quantum.as_ref(), fabric.max_packet, quantum)?;
    let (tables, max_entries) = table_limits(source, &name, item.tables, item.max_entries)?;
    let select = select(source, &name, item.select, &ports, fabric)?;
    Ok(VirtualSwitch {
        dpid,
        select,
        ports,
        paths: item.paths.map(|paths| paths.into_iter().map(Spanned::into_inner).collect()),
        buffer,
        buffers,
        queue,
        red,
        discipline: item.discipline.unwrap_or_default(),
        intra_quantum,
        priority: item.priority.map_or(0, Spanned::into_inner),
        time_weight: time_weight(source, &name, item.time_weight)?,
        lifetime: item.lifetime.map(|lifetime| duration(source, "lifetime", &lifetime)).transpose()?,
        connect: texts(item.connect),
        listen: texts(item.listen),
        tables,
        max_entries,
        max_packet_ins: item.max_packet_ins.map_or(DEFAULT_PACKET_INS, Spanned::into_inner),
        fail_mode: item.fail_mode.unwrap_or(SwitchFailMode::Secure),
        entries: item.entries,
        name,
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
        if ports.iter().any(|other| other.number == port.number || other.port == port.port) {
            let problem = format!("virtual switch {name}: ports: found port {} twice, expected each once", port.port);
            return Err(source.error(span, problem));
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
    let share = u128::from(DEFAULT_ROUND_BYTES) * u128::from(rate_out.0) / u128::from(physical.rate.0.max(1));
    let default = ByteSize(u64::try_from(share).unwrap_or(MAX_QUANTUM).max(MIN_QUANTUM));
    if let Some(vlan) = item.vlan.as_ref().filter(|vlan| !(1..=4094).contains(vlan.as_ref())) {
        return Err(wrong(vlan.span(), format!("port {port}: vlan: found {}, expected 1 to 4094", vlan.as_ref())));
    }
    Ok(VirtualPortSpec {
        vlan: item.vlan.map(Spanned::into_inner),
        number: item.number.as_ref().map_or(Ok(port), |number| port_number(source, number))?,
        port,
        rate_in,
        rate_out,
        ceiling: item.ceiling.map(Spanned::into_inner),
        quantum: size(source, "quantum", item.quantum.as_ref(), default, MIN_QUANTUM..=MAX_QUANTUM)?,
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
    let red = *item.as_ref();
    let is_share = |value: Option<f64>| value.is_none_or(|value| value > 0.0 && value <= 1.0);
    if !is_share(red.probability) || !is_share(red.weight) {
        return Err(wrong("expected probability and weight above 0 and at most 1"));
    }
    if let (Some(min), Some(max)) = (red.min, red.max)
        && min >= max
    {
        return Err(wrong("expected min below max"));
    }
    Ok(red)
}

/// Returns the selectors of a virtual switch; by default one for each of its ports.
fn select(
    source: &SourceFile<'_>,
    name: &str,
    items: Vec<Spanned<document::SelectorToml>>,
    ports: &[VirtualPortSpec],
    fabric: &FabricSpec,
) -> ScenarioResult<Vec<PacketSelector>> {
    if items.is_empty() {
        return Ok(ports.iter().map(VirtualPortSpec::selector).collect());
    }
    let mut select = Vec::new();
    for item in items {
        let span = item.span();
        let wrong = |problem: String| source.error(span.clone(), format!("virtual switch {name}: select: {problem}"));
        let item = item.into_inner();
        let plain = |value: Option<Spanned<u32>>| value.map(Spanned::into_inner);
        let mut selector = PacketSelector {
            port: plain(item.port),
            vlan: item.vlan.map(Spanned::into_inner),
            eth_src: item.eth_src,
            eth_dst: item.eth_dst,
            ip_src: item.ip_src,
            ip_dst: item.ip_dst,
            mpls: plain(item.mpls),
            tunnel: item.tunnel,
        };
        if selector == PacketSelector::default() {
            return Err(wrong("found nothing in it, expected for example { port = 1, vlan = 10 }".into()));
        }
        if let (Some(src), Some(dst)) = (selector.ip_src, selector.ip_dst)
            && src.addr.is_ipv4() != dst.addr.is_ipv4()
        {
            return Err(wrong("found ip_src and ip_dst of two versions of IP, expected one".into()));
        }
        if selector.mpls.is_some() && selector.ip_src.or(selector.ip_dst).is_some() {
            return Err(wrong(
                "found mpls and an IP address, expected one of them: nothing behind MPLS is looked at".into(),
            ));
        }
        if let Some(port) = selector.port.filter(|port| fabric.ports.iter().all(|known| known.port != *port)) {
            return Err(wrong(format!(
                "port: found {port}, expected one of the switch's {} ports",
                fabric.ports.len()
            )));
        }
        if let Some(vlan) = selector.vlan.filter(|vlan| *vlan > 4094) {
            return Err(wrong(format!("vlan: found {vlan}, expected 0 (no tag) to 4094")));
        }
        if let Some(label) = selector.mpls.filter(|label| *label > MAX_LABEL) {
            return Err(wrong(format!("mpls: found {label}, expected at most {MAX_LABEL}")));
        }
        if let Some(own) = ports.iter().find(|port| Some(port.port) == selector.port).and_then(|port| port.vlan) {
            if let Some(vlan) = selector.vlan.filter(|vlan| *vlan != own) {
                return Err(wrong(format!("vlan: found {vlan}, expected the port's vlan = {own}, or none")));
            }
            selector.vlan = Some(own);
        }
        select.push(selector);
    }
    Ok(select)
}
