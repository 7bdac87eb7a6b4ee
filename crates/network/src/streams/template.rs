//! Makes frames of streams whose headers match the selectors of their virtual switch.
use super::stamp;
use crate::NetworkError;
use std::net::IpAddr;
use weir_packet::checksum::internet;
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;
use weir_packet::{Frame, FramePool, IpNet, MacAddr};
use weir_scenario::{PacketStream, Scenario};
use weir_slicing::PacketSelector;
use weir_traffic::MAX_BYTES;

/// IP protocol number for experiments (RFC 3692, 2.1), so that the packets are not mistaken for another protocol.
const EXPERIMENT: u8 = 253;
/// Length of an IPv4 header without options, in bytes.
const IPV4_BYTES: usize = 20;
const TO: MacAddr = MacAddr([2, 0, 0, 0, 0xff, 2]);
const FROM: MacAddr = MacAddr([2, 0, 0, 0, 0xff, 1]);

/// Frame of the greatest length, of a stream and input. Each packet is its beginning.
#[derive(Debug, Clone)]
pub(super) struct StreamFrameTemplate {
    whole: Vec<u8>,
    /// Length of all headers in bytes.
    headers: usize,
    /// Offset of the IP header.
    ip: usize,
    is_v6: bool,
}

impl StreamFrameTemplate {
    /// Returns a template whose headers match a selector.
    fn new(selector: &PacketSelector) -> StreamFrameTemplate {
        let mut craft = FrameBuilder::ethernet(selector.eth_dst.unwrap_or(TO), selector.eth_src.unwrap_or(FROM));
        if let Some(vlan) = selector.vlan.filter(|vlan| *vlan > 0) {
            craft = craft.vlan(eth_type::VLAN, vlan, 0);
        }
        if let Some(label) = selector.mpls {
            craft = craft.mpls(label, 0, 64);
        }
        let ip = craft.build().len();
        let v4 = |net: Option<IpNet>, other: [u8; 4]| match net.map(|net| net.addr) {
            Some(IpAddr::V4(addr)) => addr,
            _ => other.into(),
        };
        let v6 = |net: Option<IpNet>, other: u16| match net.map(|net| net.addr) {
            Some(IpAddr::V6(addr)) => addr,
            _ => [0xfd00, 0, 0, 0, 0, 0, 0, other].into(),
        };
        let is_v6 = [selector.ip_src, selector.ip_dst].iter().flatten().any(|net| net.addr.is_ipv6());
        let craft = if is_v6 {
            craft.ipv6(v6(selector.ip_src, 1), v6(selector.ip_dst, 2))
        } else {
            craft.ipv4(v4(selector.ip_src, [198, 18, 0, 1]), v4(selector.ip_dst, [198, 18, 0, 2]))
        };
        let mut whole = craft.ip_proto(EXPERIMENT).build();
        let headers = whole.len();
        whole.resize(MAX_BYTES as usize, 0);
        StreamFrameTemplate { whole, headers, ip, is_v6 }
    }

    /// Returns the length of the shortest frame, in bytes.
    fn least(&self) -> usize {
        self.headers + stamp::BYTES
    }

    /// Returns a frame of this length, which must be at least [`StreamFrameTemplate::least`].
    pub(super) fn frame(&self, bytes: u32, pool: &mut FramePool) -> Frame {
        let bytes = (bytes as usize).clamp(self.headers, self.whole.len());
        let mut frame = pool.take(bytes);
        frame.assign(&self.whole[..bytes]);
        let packet = &mut frame.bytes_mut()[self.ip..];
        let length = |from: usize| u16::try_from(bytes - from).unwrap_or(u16::MAX).to_be_bytes();
        if self.is_v6 {
            packet[4..6].copy_from_slice(&length(self.headers));
        } else {
            packet[2..4].copy_from_slice(&length(self.ip));
            packet[10..12].fill(0);
            let checksum = internet(&[&packet[..IPV4_BYTES]]);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
        }
        frame
    }
}

/// Returns the template of a stream's packets that enter by a port.
///
/// # Errors
/// No selector of the stream's virtual switch is for this port, or the selector is for a tunnel.
pub(super) fn template(
    scenario: &Scenario,
    stream: &PacketStream,
    port: u32,
) -> Result<StreamFrameTemplate, NetworkError> {
    let switch = &scenario.switches[stream.switch];
    let Some(cut) = stream.virtual_switch.map(|index| &switch.virtual_switches[index]) else {
        return Ok(StreamFrameTemplate::new(&PacketSelector::default()));
    };
    let wrong = |problem: &str| {
        NetworkError::Scenario(format!("stream {}: virtual switch {}: {problem}", stream.name, cut.name))
    };
    let fits = |selector: &&PacketSelector| selector.port.is_none_or(|own| own == port);
    let selector = cut.select.iter().find(fits);
    let selector = selector.ok_or_else(|| wrong(&format!("select: found nothing for packets of port {port}")))?;
    if selector.tunnel.is_some() {
        return Err(wrong("select: found tunnel; streams do not come through tunnels"));
    }
    Ok(StreamFrameTemplate::new(selector))
}

/// Refuses streams that cannot be sent.
///
/// # Errors
/// The first stream that cannot be sent: what was found and what was expected.
pub fn check(scenario: &Scenario) -> Result<(), NetworkError> {
    for stream in &scenario.streams {
        let switch = &scenario.switches[stream.switch];
        let wrong = |problem: String| Err(NetworkError::Scenario(format!("stream {}: {problem}", stream.name)));
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
        // Cannot fail: sizes were checked when the scenario was parsed. A list without packets has no packet that is
        // too short.
        let shortest = stream.source.shortest().ok().flatten().unwrap_or(u32::MAX);
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

#[cfg(test)]
mod tests {
    use super::*;
    use weir_packet::checksum;

    #[test]
    fn frames_of_any_length_are_right() {
        let net = |text: &str| text.parse::<IpNet>().unwrap();
        let mut pool = FramePool::new(4, 4);
        for selector in [
            PacketSelector::default(),
            PacketSelector { vlan: Some(7), ip_src: Some(net("10.1.0.0/16")), ..PacketSelector::default() },
            PacketSelector { mpls: Some(99), ..PacketSelector::default() },
            PacketSelector { ip_dst: Some(net("fd00::1/64")), ..PacketSelector::default() },
        ] {
            let template = StreamFrameTemplate::new(&selector);
            for bytes in [template.least(), 100, 1500] {
                let frame = template.frame(u32::try_from(bytes).unwrap(), &mut pool);
                assert_eq!(frame.len(), bytes, "{selector}");
                assert_eq!(checksum::verify(frame.bytes()), Ok(()), "{selector}");
                let is_tagged = frame.bytes()[12..14] == [0x81, 0];
                assert_eq!(is_tagged, selector.vlan.is_some());
            }
        }
    }
}
