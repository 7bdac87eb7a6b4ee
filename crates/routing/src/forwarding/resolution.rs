//! Address resolution: who has an IP address is answered by the controller, or only the host itself is asked.
//!
//! A question for an address that no host of the asker's part of the network has goes to all hosts of this part, and so
//! do announcements, by which other hosts correct what they remember (RFC 5227, 3).
use super::{Forwarding, ForwardingCounter, admission};
use crate::app::HostPacket;
use crate::platform::NetworkCore;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_packet::craft::FrameBuilder;
use weir_packet::field::{eth_type, icmpv6_type, ip_proto};
use weir_packet::parse::{EthernetHeader, parse};
use weir_packet::{Field, MacAddr};

/// Operations of ARP (RFC 826).
const ARP_REQUEST: u128 = 1;
const ARP_REPLY: u16 = 2;

/// Question for the Ethernet address of an IP address.
struct AddressQuestion {
    target: IpAddr,
    /// IP address of the host that asks, if it has one already.
    sender: Option<IpAddr>,
}

impl Forwarding {
    /// Handles a packet of ARP or neighbour discovery. Returns false for others.
    pub(super) fn resolve(&mut self, packet: &HostPacket<'_>, header: &EthernetHeader, core: &mut NetworkCore) -> bool {
        let Ok(parsed) = parse(packet.data, packet.at.port) else { return false };
        let field = |field| parsed.key.get(field);
        let is_ipv6 = header.eth_type == eth_type::IPV6;
        let is_icmpv6 = is_ipv6 && field(Field::IpProto) == u128::from(ip_proto::ICMPV6);
        let is_discovery_type =
            |kind: u128| u8::try_from(kind).is_ok_and(|kind| admission::NEIGHBOUR_DISCOVERY.contains(&kind));
        let is_discovery = is_icmpv6 && is_discovery_type(field(Field::Icmpv6Type));
        if header.eth_type != eth_type::ARP && !is_discovery {
            return false;
        }
        match question(field, header, is_discovery) {
            Some(question) => self.answer(packet, header, &question, core),
            None => self.pass_on(packet, header, core),
        }
        true
    }

    /// Answers a question, or asks the host that has the address.
    fn answer(
        &mut self,
        packet: &HostPacket<'_>,
        header: &EthernetHeader,
        question: &AddressQuestion,
        core: &mut NetworkCore,
    ) {
        let target = question.target;
        let asker = core.map.hosts().get(&header.src).filter(|asker| asker.ips.contains(&target));
        if asker.is_some() {
            // A host that asks for its own address looks for others with the same one; there is none. One that has the
            // address as its sender announces itself.
            if question.sender == Some(target) {
                self.flood(packet, core);
            }
            return;
        }
        let owner = core.map.host_of_ip(target).map(|owner| (owner.mac, owner.at));
        let Some((mac, at)) = owner.filter(|(_, at)| !self.is_apart(packet.at.dpid, at.dpid, core)) else {
            // A host that is known in another part may have come to this one.
            return self.flood(packet, core);
        };
        if at == packet.at {
            // The owner has heard the question: both are behind one port, and broadcasts reach it without this switch.
            return;
        }
        match (question.target, question.sender) {
            (IpAddr::V4(target), Some(IpAddr::V4(sender))) if self.config.answer_arp => {
                self.count(ForwardingCounter::ArpAnswers);
                self.deliver(mac, packet.at, arp_reply((mac, target), (header.src, sender)), core);
            }
            _ => self.deliver(header.src, at, packet.data.to_vec(), core),
        }
    }

    /// Passes an answer or an announcement on.
    fn pass_on(&mut self, packet: &HostPacket<'_>, header: &EthernetHeader, core: &mut NetworkCore) {
        let Some(at) = core.map.hosts().get(&header.dst).map(|host| host.at) else { return self.flood(packet, core) };
        if self.is_apart(packet.at.dpid, at.dpid, core) {
            return self.count(ForwardingCounter::Unreachable);
        }
        self.deliver(header.src, at, packet.data.to_vec(), core);
    }
}

fn question(field: impl Fn(Field) -> u128, header: &EthernetHeader, is_discovery: bool) -> Option<AddressQuestion> {
    if is_discovery {
        let is_question = field(Field::Icmpv6Type) == u128::from(icmpv6_type::NEIGHBOUR_SOLICITATION);
        let target = IpAddr::V6(Ipv6Addr::from(field(Field::Ipv6NdTarget)));
        return is_question.then_some(AddressQuestion { target, sender: None });
    }
    let address = |value: u128| Ipv4Addr::from(u32::try_from(value).unwrap_or_default());
    let (sender, target) = (address(field(Field::ArpSpa)), address(field(Field::ArpTpa)));
    let is_question = field(Field::ArpOp) == ARP_REQUEST && header.vlan.is_none();
    // A probe for an address conflict (RFC 5227) has no sender and is for the host that has the address.
    let sender = (!sender.is_unspecified()).then_some(IpAddr::V4(sender));
    is_question.then_some(AddressQuestion { target: IpAddr::V4(target), sender })
}

/// Returns the reply of ARP by which `owner` says that it has its address.
fn arp_reply(owner: (MacAddr, Ipv4Addr), asker: (MacAddr, Ipv4Addr)) -> Vec<u8> {
    FrameBuilder::ethernet(asker.0, owner.0).arp(ARP_REPLY, owner, asker).build()
}
