//! Frames of streams: such that the first lookup finds the virtual switch that they are for.
use super::stamp;
use crate::LabError;
use std::net::IpAddr;
use weir_packet::craft::Craft;
use weir_packet::field::eth_type;
use weir_packet::{Frame, MacAddr};
use weir_scenario::{PacketStream, Scenario, Selector, StreamSource};
use weir_traffic::Sizes;

/// An IP protocol number for experiments (RFC 3692, 2.1): nobody takes the packets for something else.
const EXPERIMENT: u8 = 253;
const TO: MacAddr = MacAddr([2, 0, 0, 0, 0xff, 2]);
const FROM: MacAddr = MacAddr([2, 0, 0, 0, 0xff, 1]);

/// Headers of a stream's packets from one input.
#[derive(Debug, Clone)]
pub(super) struct Template {
    headers: Craft,
    bytes: usize,
}

impl Template {
    /// Headers that have all that a selector says.
    fn new(selector: &Selector) -> Template {
        let mut craft = Craft::ethernet(selector.eth_dst.unwrap_or(TO), selector.eth_src.unwrap_or(FROM));
        if let Some(vlan) = selector.vlan.filter(|vlan| *vlan > 0) {
            craft = craft.vlan(eth_type::VLAN, vlan, 0);
        }
        if let Some(label) = selector.mpls {
            craft = craft.mpls(label, 0, 64);
        }
        let v4 = |net: Option<weir_scenario::IpNet>, other: [u8; 4]| match net.map(|net| net.addr) {
            Some(IpAddr::V4(addr)) => addr,
            _ => other.into(),
        };
        let v6 = |net: Option<weir_scenario::IpNet>, other: u16| match net.map(|net| net.addr) {
            Some(IpAddr::V6(addr)) => addr,
            _ => [0xfd00, 0, 0, 0, 0, 0, 0, other].into(),
        };
        let is_v6 = |net: Option<weir_scenario::IpNet>| net.is_some_and(|net| net.addr.is_ipv6());
        let craft = if is_v6(selector.ip_src) || is_v6(selector.ip_dst) {
            craft.ipv6(v6(selector.ip_src, 1), v6(selector.ip_dst, 2))
        } else {
            craft.ipv4(v4(selector.ip_src, [198, 18, 0, 1]), v4(selector.ip_dst, [198, 18, 0, 2]))
        };
        let headers = craft.ip_proto(EXPERIMENT);
        let bytes = headers.build().len();
        Template { headers, bytes }
    }

    /// Length of the shortest frame.
    fn least(&self) -> usize {
        self.bytes + stamp::BYTES
    }

    /// A frame of this length, which is at least [`Template::least`].
    pub(super) fn frame(&self, bytes: u32) -> Frame {
        let payload = (bytes as usize).saturating_sub(self.bytes);
        self.headers.clone().payload(&[0; 65_536][..payload.min(65_536)]).frame()
    }
}

/// The headers of a stream's packets that come in by a port.
///
/// # Errors
/// No selector of its virtual switch is for this port.
pub(super) fn template(scenario: &Scenario, stream: &PacketStream, port: u32) -> Result<Template, LabError> {
    let switch = &scenario.switches[stream.switch];
    let Some(cut) = stream.virtual_switch.map(|index| &switch.virtual_switches[index]) else {
        return Ok(Template::new(&Selector::default()));
    };
    let wrong =
        |problem: &str| LabError::Scenario(format!("stream {}: virtual switch {}: {problem}", stream.name, cut.name));
    let fits = |selector: &&Selector| selector.port.is_none_or(|own| own == port);
    let selector = cut.select.iter().find(fits);
    let selector = selector.ok_or_else(|| wrong(&format!("select: found nothing for packets of port {port}")))?;
    if selector.tunnel.is_some() {
        return Err(wrong("select: found tunnel; streams do not come through tunnels"));
    }
    Ok(Template::new(selector))
}

/// Refuses streams that cannot be sent.
///
/// # Errors
/// The first that cannot: what it has and what would do.
pub(crate) fn check(scenario: &Scenario) -> Result<(), LabError> {
    for stream in &scenario.streams {
        let switch = &scenario.switches[stream.switch];
        let wrong = |problem: String| Err(LabError::Scenario(format!("stream {}: {problem}", stream.name)));
        let ports = || stream.inputs.iter().chain([&stream.output]);
        let host =
            scenario.hosts.iter().find(|host| host.switch == stream.switch && ports().any(|port| *port == host.port));
        if let Some(host) = host {
            return wrong(format!(
                "found port {} of {}, which host {} has; expected a port of its own",
                host.port, switch.name, host.name
            ));
        }
        let ends = scenario.links.iter().flat_map(|link| link.ends);
        if let Some(end) =
            ends.filter(|end| end.switch == stream.switch).find(|end| ports().any(|port| *port == end.port))
        {
            return wrong(format!(
                "found port {} of {}, which a link has; expected a port of its own",
                end.port, switch.name
            ));
        }
        let shortest = shortest(&stream.source);
        for port in &stream.inputs {
            let least = template(scenario, stream, *port)?.least();
            if (shortest as usize) < least {
                return wrong(format!(
                    "sizes: found packets of {shortest} bytes, expected at least {least}: real ones have headers"
                ));
            }
        }
    }
    Ok(())
}

/// The shortest packet that a source may send, in bytes.
fn shortest(source: &StreamSource) -> u32 {
    match source {
        StreamSource::Trace(trace) => trace.0.iter().map(|packet| packet.bytes).min().unwrap_or(u32::MAX),
        // It was checked when the scenario was read.
        StreamSource::Rule { size, .. } => Sizes::new(size).map_or(0, |sizes| sizes.shortest()),
    }
}
