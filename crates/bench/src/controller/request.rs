//! Packet-ins of emulated switches: which hosts talk in each, and its bytes, from a template patched in place.
//!
//! The serial number of a request says everything about it. The first requests announce the hosts, one each, to all.
//! Each later one is a frame from one host to another. So nothing is stored, and a reply that names only addresses is
//! traced back to the latest request with them.
use std::net::Ipv4Addr;
use weir_openflow::model::{BufferId, Bytes, Match, PacketIn, PacketInReason, TableId};
use weir_openflow::{Body, EncodeError, Message, Version, codec};
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;
use weir_packet::{Field, MacAddr, checksum};

/// Most hosts of a switch: a features reply of 1.0 has room for so many ports.
pub(super) const MAX_HOSTS: u32 = 1000;
/// First byte of the address of a host that was announced.
const ANNOUNCED: u8 = 0x02;
/// First byte of an address that sends only once.
const ONCE: u8 = 0x06;
/// Number of different addresses that send only once.
const ONCE_COUNT: u32 = 1 << 24;
/// Length of the frames without frame check sequence.
const FRAME_BYTES: usize = 60;
/// Position of the serial number in a frame that only switches by address.
const SERIAL_IN_L2: usize = 14;
/// Position of the serial number behind an ARP packet, and behind headers of IPv4 and UDP.
const SERIAL_BEHIND_HEADERS: usize = 42;
/// Mark in place of the input port while the template's bytes are searched.
const PORT_MARK: u16 = 0x5a5a;

/// Frames that the emulated switches ask about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AskedFrames {
    /// Ethernet frames of an experimental type
    L2,
    /// ARP requests to one host
    Arp,
    /// UDP over IPv4
    Ip,
}

/// Choice of the hosts that send.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum AskedSources {
    /// Pairs of announced hosts in turn
    Known,
    /// A new source address for each packet-in
    New,
    /// Addresses as cbench makes them: a new source for each packet-in, and the switch's number, modulo 256, as last
    /// byte of both addresses, so that they repeat from 256 switches on
    #[value(skip)]
    Cbench,
}

/// Description of all requests of a switch.
#[derive(Debug, Clone, Copy)]
pub(super) struct RequestPlan {
    pub(super) version: Version,
    pub(super) frames: AskedFrames,
    pub(super) sources: AskedSources,
    /// Hosts of each switch, each at a port of its own, from port 1 on.
    pub(super) hosts: u32,
    /// Number of the switch.
    pub(super) switch: u16,
}

/// Addresses and input port of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct AskedFlow {
    pub(super) src: MacAddr,
    pub(super) dst: MacAddr,
    pub(super) in_port: u16,
}

impl RequestPlan {
    /// Returns the number of requests after which pairs of hosts repeat.
    pub(super) fn period(&self) -> u32 {
        match self.sources {
            AskedSources::Known => self.hosts * (self.hosts - 1),
            AskedSources::New | AskedSources::Cbench => ONCE_COUNT,
        }
    }

    /// Returns the number of requests that announce hosts. In cbench's way, it is the destination alone.
    pub(super) fn announcements(&self) -> u32 {
        if self.sources == AskedSources::Cbench { 1 } else { self.hosts }
    }

    /// Returns the flow of a request.
    pub(super) fn flow(&self, serial: u32) -> AskedFlow {
        let hosts = self.hosts;
        if self.sources == AskedSources::Cbench {
            return self.cbench_flow(serial);
        }
        let Some(number) = serial.checked_sub(hosts) else {
            return AskedFlow { src: self.host(serial), dst: MacAddr::BROADCAST, in_port: port(serial) };
        };
        match self.sources {
            AskedSources::Known => {
                let (from, apart) = (number % hosts, 1 + number / hosts % (hosts - 1));
                AskedFlow { src: self.host(from), dst: self.host((from + apart) % hosts), in_port: port(from) }
            }
            AskedSources::New | AskedSources::Cbench => AskedFlow {
                src: self.address(ONCE, number % ONCE_COUNT),
                dst: self.host(0),
                in_port: port(1 + number % (hosts - 1)),
            },
        }
    }

    /// Returns the latest request up to `last` with this source and, if it is given, this destination.
    pub(super) fn latest(&self, src: MacAddr, dst: Option<MacAddr>, last: u32) -> Option<u32> {
        let hosts = self.hosts;
        if dst == Some(MacAddr::BROADCAST) {
            return self.announced(src).filter(|serial| *serial <= last);
        }
        let most = last.checked_sub(hosts)?;
        let (first, step) = match (self.sources, dst) {
            (AskedSources::Known, Some(dst)) => {
                let (from, to) = (self.announced(src)?, self.announced(dst)?);
                let apart = (to + hosts - from) % hosts;
                (apart.checked_sub(1)? * hosts + from, self.period())
            }
            (AskedSources::Known, None) => (self.announced(src)?, hosts),
            (AskedSources::New, _) => (self.number(ONCE, src)?, ONCE_COUNT),
            (AskedSources::Cbench, _) => return None,
        };
        let serial = hosts + first + most.checked_sub(first)? / step * step;
        dst.is_none_or(|dst| self.flow(serial).dst == dst).then_some(serial)
    }

    fn cbench_flow(&self, serial: u32) -> AskedFlow {
        let last = self.switch.to_be_bytes()[1];
        let dst = MacAddr([0, 0, 0, 0, 0, last]);
        if serial == 0 {
            return AskedFlow { src: dst, dst: MacAddr::BROADCAST, in_port: 2 };
        }
        let [a, b, c, d] = serial.to_le_bytes();
        AskedFlow { src: MacAddr([0, a, b, c, d, last]), dst, in_port: 1 }
    }

    /// Returns the number of a host that was announced; `None` for other addresses.
    fn announced(&self, mac: MacAddr) -> Option<u32> {
        self.number(ANNOUNCED, mac).filter(|host| *host < self.hosts)
    }

    fn host(&self, number: u32) -> MacAddr {
        self.address(ANNOUNCED, number)
    }

    fn address(&self, kind: u8, number: u32) -> MacAddr {
        let ([high, low], [_, a, b, c]) = (self.switch.to_be_bytes(), number.to_be_bytes());
        MacAddr([kind, high, low, a, b, c])
    }

    fn number(&self, kind: u8, mac: MacAddr) -> Option<u32> {
        let [first, high, low, a, b, c] = mac.0;
        (first == kind && [high, low] == self.switch.to_be_bytes()).then(|| u32::from_be_bytes([0, a, b, c]))
    }

    /// Returns the IPv4 address of a host: announced ones are in 10.0.0.0/8, others in 11.0.0.0/8.
    fn ip(&self, mac: MacAddr) -> [u8; 4] {
        let [kind, high, low, a, b, c] = mac.0;
        let number = u32::from_be_bytes([0, a, b, c]);
        let switch = u32::from(u16::from_be_bytes([high, low]));
        let number = if kind == ONCE { number } else { switch * self.hosts + number + 1 };
        let [_, a, b, c] = number.to_be_bytes();
        [if kind == ONCE { 11 } else { 10 }, a, b, c]
    }
}

/// Returns the port of a host.
#[expect(clippy::cast_possible_truncation, reason = "there are at most MAX_HOSTS hosts")]
fn port(host: u32) -> u16 {
    host as u16 + 1
}

/// An encoded packet-in, in which only what differs between requests is written again.
#[derive(Debug, Clone)]
pub(super) struct RequestTemplate {
    plan: RequestPlan,
    bytes: Vec<u8>,
    frame_at: usize,
    port_at: usize,
}

impl RequestTemplate {
    /// Encodes the template.
    ///
    /// # Errors
    /// The version cannot carry a packet-in; none of weir's versions is such.
    pub(super) fn new(plan: RequestPlan) -> Result<RequestTemplate, EncodeError> {
        let [src, dst] = [plan.host(0), plan.host(1)];
        let ip = |mac| Ipv4Addr::from(plan.ip(mac));
        let frame = FrameBuilder::ethernet(dst, src);
        let mut frame = match plan.frames {
            AskedFrames::L2 => frame.ether_type(eth_type::LOCAL_EXPERIMENT).payload(&[0; 4]).build(),
            AskedFrames::Arp => frame.arp(1, (src, ip(src)), (dst, ip(dst))).build(),
            AskedFrames::Ip => frame.ipv4(ip(src), ip(dst)).udp(40_000, 40_000).payload(&[0; 18]).build(),
        };
        frame.resize(FRAME_BYTES, 0);
        if plan.frames == AskedFrames::Ip {
            // No checksum of UDP (RFC 768): the payload differs in each frame.
            frame[40..42].fill(0);
        }
        let body = Body::PacketIn(PacketIn {
            buffer_id: Some(BufferId(0)),
            total_len: 60,
            reason: PacketInReason::NoMatch,
            table: TableId(0),
            cookie: if plan.version == Version::V10 { u64::MAX } else { 0 },
            matching: Match::any().with(Field::InPort, PORT_MARK),
            data: Bytes(frame),
        });
        let mut bytes = Vec::new();
        codec::encode(&Message { xid: 0, body }, plan.version, &mut bytes)?;
        let frame_at = bytes.len() - FRAME_BYTES;
        let is_port = |at: &usize| bytes[*at..*at + 2] == PORT_MARK.to_be_bytes();
        let port_at = (12..frame_at).find(is_port).expect("the codec writes the input port");
        Ok(RequestTemplate { plan, bytes, frame_at, port_at })
    }

    /// Returns the bytes of a request.
    pub(super) fn patched(&mut self, serial: u32) -> &[u8] {
        let flow = self.plan.flow(serial);
        self.bytes[8..12].copy_from_slice(&serial.to_be_bytes());
        self.bytes[self.port_at..self.port_at + 2].copy_from_slice(&flow.in_port.to_be_bytes());
        let frame = &mut self.bytes[self.frame_at..];
        frame[..6].copy_from_slice(&flow.dst.0);
        frame[6..12].copy_from_slice(&flow.src.0);
        let [source, destination] = [self.plan.ip(flow.src), self.plan.ip(flow.dst)];
        match self.plan.frames {
            AskedFrames::L2 => {}
            AskedFrames::Arp => {
                frame[22..28].copy_from_slice(&flow.src.0);
                frame[28..32].copy_from_slice(&source);
                frame[32..38].copy_from_slice(&flow.dst.0);
                frame[38..42].copy_from_slice(&destination);
            }
            AskedFrames::Ip => {
                frame[24..26].fill(0);
                frame[26..30].copy_from_slice(&source);
                frame[30..34].copy_from_slice(&destination);
                let sum = checksum::internet(&[&frame[14..34]]);
                frame[24..26].copy_from_slice(&sum.to_be_bytes());
            }
        }
        let at = serial_at(self.plan.frames);
        frame[at..at + 4].copy_from_slice(&serial.to_be_bytes());
        &self.bytes
    }
}

const fn serial_at(frames: AskedFrames) -> usize {
    match frames {
        AskedFrames::L2 => SERIAL_IN_L2,
        AskedFrames::Arp | AskedFrames::Ip => SERIAL_BEHIND_HEADERS,
    }
}

/// Returns the serial number in a frame, if the frame is whole enough to have one and has the addresses of this
/// request.
pub(super) fn serial_of(frame: &[u8], plan: &RequestPlan) -> Option<u32> {
    let at = serial_at(plan.frames);
    let serial = u32::from_be_bytes(frame.get(at..at + 4)?.try_into().ok()?);
    let flow = plan.flow(serial);
    (frame[..6] == flow.dst.0 && frame[6..12] == flow.src.0).then_some(serial)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(version: Version, frames: AskedFrames, sources: AskedSources) -> RequestPlan {
        RequestPlan { version, frames, sources, hosts: 5, switch: 300 }
    }

    #[test]
    fn a_template_is_what_the_codec_would_write() {
        for version in [Version::V10, Version::V13, Version::V14] {
            for frames in [AskedFrames::L2, AskedFrames::Arp, AskedFrames::Ip] {
                let plan = plan(version, frames, AskedSources::Known);
                let mut template = RequestTemplate::new(plan).unwrap();
                for serial in [0, 3, 5, 17, 1000] {
                    let message = codec::decode(template.patched(serial)).unwrap();
                    let Body::PacketIn(packet) = message.body else { panic!("another message") };
                    let flow = plan.flow(serial);
                    assert_eq!(packet.buffer_id, Some(BufferId(serial)));
                    assert_eq!(packet.in_port().unwrap().0, u32::from(flow.in_port));
                    assert_eq!(serial_of(&packet.data.0, &plan), Some(serial));
                    checksum::verify(&packet.data.0).unwrap();
                    let parsed = weir_packet::parse(&packet.data.0, packet.in_port().unwrap()).unwrap();
                    assert_eq!(parsed.key.get(Field::EthSrc), u128::from(flow.src.to_bits()));
                    assert_eq!(parsed.key.get(Field::EthDst), u128::from(flow.dst.to_bits()));
                }
            }
        }
    }

    #[test]
    fn addresses_lead_back_to_the_latest_request() {
        for sources in [AskedSources::Known, AskedSources::New] {
            let plan = plan(Version::V13, AskedFrames::L2, sources);
            for last in 0..200 {
                for serial in 0..=last {
                    let flow = plan.flow(serial);
                    let latest = (0..=last).rfind(|later| plan.flow(*later) == flow);
                    assert_eq!(plan.latest(flow.src, Some(flow.dst), last), latest, "{serial} of {last}");
                    assert_ne!(flow.src, flow.dst);
                }
            }
        }
        let plan = plan(Version::V13, AskedFrames::L2, AskedSources::Known);
        assert_eq!(plan.latest(plan.host(2), None, 30), Some(27));
        assert_eq!(plan.latest(MacAddr([0x02, 0, 1, 0, 0, 2]), None, 30), None, "a host of another switch");
        assert_eq!(plan.latest(plan.host(2), Some(plan.host(2)), 30), None);
    }
}
