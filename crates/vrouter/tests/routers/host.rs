//! A host: it answers ARP, neighbour solicitations and echo requests, and keeps what it receives.
use crate::bed::End;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use weir_packet::answer::{IpPacket, question};
use weir_packet::craft::FrameBuilder;
use weir_packet::field::{VLAN_PRESENT, eth_type, icmpv6_type};
use weir_packet::{Field, IpNet, MacAddr, PortNo, parse};

#[derive(Debug, Clone)]
pub(crate) struct BedHost {
    pub(crate) mac: MacAddr,
    pub(crate) at: End,
    vlan: Option<u16>,
    addresses: Vec<IpNet>,
    gateways: Vec<IpAddr>,
    pub(crate) known: BTreeMap<IpAddr, MacAddr>,
    /// IP packets to the host, as frames without tag.
    pub(crate) received: Vec<Vec<u8>>,
    /// Addresses for which the host was asked.
    pub(crate) asked: u64,
    pub(crate) is_silent: bool,
}

impl BedHost {
    pub(crate) fn new(number: u8, at: End, vlan: Option<u16>, addresses: &[&str], gateways: &[&str]) -> BedHost {
        BedHost {
            mac: MacAddr([2, 0, 0, 0, 0xaa, number]),
            at,
            vlan,
            addresses: addresses.iter().map(|net| net.parse().unwrap()).collect(),
            gateways: gateways.iter().map(|addr| addr.parse().unwrap()).collect(),
            known: BTreeMap::new(),
            received: Vec::new(),
            asked: 0,
            is_silent: false,
        }
    }

    pub(crate) fn is_own(&self, addr: IpAddr) -> bool {
        self.addresses.iter().any(|net| net.addr == addr)
    }

    fn own(&self, is_ipv4: bool) -> IpAddr {
        self.addresses.iter().find(|net| net.addr.is_ipv4() == is_ipv4).expect("an address of the version").addr
    }

    /// Returns the neighbour to which packets to an address go.
    fn neighbour_for(&self, to: IpAddr) -> IpAddr {
        let is_near = self.addresses.iter().any(|net| net.contains(to));
        let gateway = self.gateways.iter().find(|gateway| gateway.is_ipv4() == to.is_ipv4());
        if is_near { to } else { *gateway.expect("a gateway of the version") }
    }

    pub(crate) fn next_hop(&self, to: IpAddr) -> Option<MacAddr> {
        self.known.get(&self.neighbour_for(to)).copied()
    }

    pub(crate) fn question_for(&self, to: IpAddr) -> Vec<u8> {
        question(self.mac, self.own(to.is_ipv4()), self.neighbour_for(to)).unwrap()
    }

    pub(crate) fn packet_to(&self, gateway: MacAddr, to: IpAddr) -> FrameBuilder {
        let frame = FrameBuilder::ethernet(gateway, self.mac);
        match (self.own(to.is_ipv4()), to) {
            (IpAddr::V4(own), IpAddr::V4(to)) => frame.ipv4(own, to),
            (IpAddr::V6(own), IpAddr::V6(to)) => frame.ipv6(own, to),
            mixed => panic!("{mixed:?}"),
        }
    }

    pub(crate) fn tagged(&self, frame: &[u8]) -> Vec<u8> {
        let mut frame = frame.to_vec();
        if let Some(vlan) = self.vlan {
            frame.splice(12..12, [eth_type::VLAN.to_be_bytes(), vlan.to_be_bytes()].concat());
        }
        frame
    }

    /// Takes a frame. Returns what the host answers.
    pub(crate) fn receive(&mut self, frame: &[u8]) -> Vec<Vec<u8>> {
        let parsed = parse(frame, PortNo::ANY).unwrap();
        let vlan = u16::try_from(parsed.key.get(Field::VlanVid)).unwrap();
        if vlan != self.vlan.map_or(0, |vlan| VLAN_PRESENT | vlan) || self.is_silent {
            return Vec::new();
        }
        let mut frame = frame.to_vec();
        if self.vlan.is_some() {
            frame.drain(12..16);
        }
        let answer = if parsed.key.get(Field::EthType) == eth_type::ARP.into() {
            self.receive_arp(&frame)
        } else {
            IpPacket::of(&frame).and_then(|packet| self.receive_ip(&packet))
        };
        answer.map(|answer| self.tagged(&answer)).into_iter().collect()
    }

    fn receive_arp(&mut self, frame: &[u8]) -> Option<Vec<u8>> {
        let parsed = parse(frame, PortNo::ANY).unwrap();
        let ip = |field| Ipv4Addr::from_bits(u32::try_from(parsed.key.get(field)).unwrap());
        let mac = |field| MacAddr::from_bits(u64::try_from(parsed.key.get(field)).unwrap());
        let (sender, target) = ((mac(Field::ArpSha), ip(Field::ArpSpa)), ip(Field::ArpTpa));
        if !self.is_own(target.into()) {
            return None;
        }
        self.known.insert(sender.1.into(), sender.0);
        let is_request = parsed.key.get(Field::ArpOp) == 1;
        self.asked += u64::from(is_request);
        let reply = FrameBuilder::ethernet(sender.0, self.mac).arp(2, (self.mac, target), sender);
        is_request.then(|| reply.build())
    }

    fn receive_ip(&mut self, packet: &IpPacket<'_>) -> Option<Vec<u8>> {
        let key = &packet.parsed.key;
        let option = |field| MacAddr::from_bits(u64::try_from(key.get(field)).unwrap());
        if let Some(target) = packet.solicited() {
            if !self.is_own(target.into()) {
                return None;
            }
            self.asked += 1;
            self.known.insert(packet.source, option(Field::Ipv6NdSll));
            return packet.advertisement(self.mac, target);
        }
        if packet.eth_destination != self.mac {
            return None;
        }
        if key.get(Field::Icmpv6Type) == icmpv6_type::NEIGHBOUR_ADVERTISEMENT.into() && packet.source.is_ipv6() {
            let target = std::net::Ipv6Addr::from_bits(key.get(Field::Ipv6NdTarget));
            self.known.insert(target.into(), option(Field::Ipv6NdTll));
            return None;
        }
        self.received.push(packet.data.to_vec());
        if self.is_own(packet.destination) { packet.echo_reply(self.mac) } else { None }
    }

    /// Returns sender, type and code of the packets of ICMP that were received.
    pub(crate) fn icmp(&self) -> Vec<(IpAddr, u8, u8)> {
        let read = |frame: &Vec<u8>| {
            let packet = IpPacket::of(frame)?;
            let low = |field| u8::try_from(packet.parsed.key.get(field)).unwrap();
            let (protocol, kind, code) = match packet.source.is_ipv4() {
                true => (1, Field::Icmpv4Type, Field::Icmpv4Code),
                false => (58, Field::Icmpv6Type, Field::Icmpv6Code),
            };
            (low(Field::IpProto) == protocol).then(|| (packet.source, low(kind), low(code)))
        };
        self.received.iter().filter_map(read).collect()
    }
}
