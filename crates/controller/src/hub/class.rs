//! Sorts the messages of switches into classes by a look at their bytes, and estimates what each costs.
//!
//! Classes are served by urgency. What keeps a switch under control comes first, what can be asked again comes last.
use serde::{Deserialize, Serialize};
use weir_openflow::codec::MessageHeader;
use weir_openflow::{Version, peek_packet};
use weir_packet::field::{eth_type, icmpv6_type};

/// Class of a message from a switch, the most urgent first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageClass {
    /// Everything that is neither a packet nor statistics: echo, barrier, role, errors, ports, removed entries.
    Control,
    /// Packet-in of LLDP (IEEE 802.1AB) or its broadcast form, by which links are found.
    Discovery,
    /// Packet-in of ARP (RFC 826) or neighbour discovery (RFC 4861).
    Resolution,
    /// Packet-in of another packet, most often the first of a flow.
    Packet,
    /// Reply with counters.
    Statistics,
}

/// Types of messages that are classified by more than their type; the same in all versions, except the last.
const PACKET_IN: u8 = 10;
const MULTIPART_REPLY: u8 = 19;
const STATS_REPLY_V10: u8 = 17;
/// Multipart types with counters (OpenFlow 1.3.5, 7.3.5; 1.5.1, 7.3.5): flow, aggregate, table, port, queue, group,
/// meter; in 1.5 flow statistics are 17. Those of 1.0 up to queue are the same.
const COUNTERS: [u16; 8] = [1, 2, 3, 4, 5, 6, 9, 17];

/// Most VLAN tags looked behind.
const MAX_TAGS: usize = 2;
/// Offset of an IPv6 header's next header, its length, and what neighbour discovery has there: ICMPv6 of types 133 to
/// 137 (RFC 4861, 4).
const IPV6_NEXT_HEADER: usize = 6;
const IPV6_BYTES: usize = 40;
const ICMPV6: u8 = 58;
const NEIGHBOUR_DISCOVERY: std::ops::RangeInclusive<u8> = icmpv6_type::ROUTER_SOLICITATION..=icmpv6_type::REDIRECT;

impl MessageClass {
    /// All classes, the most urgent first.
    pub const ALL: [MessageClass; 5] = [
        MessageClass::Control,
        MessageClass::Discovery,
        MessageClass::Resolution,
        MessageClass::Packet,
        MessageClass::Statistics,
    ];

    /// Returns the class of a whole message.
    pub fn of(header: MessageHeader, message: &[u8]) -> MessageClass {
        let is_v10 = header.version == Version::V10 as u8;
        match header.kind {
            PACKET_IN => peek_packet(message).map_or(MessageClass::Packet, of_packet),
            MULTIPART_REPLY if !is_v10 => of_multipart(message),
            STATS_REPLY_V10 if is_v10 => of_multipart(message),
            _ => MessageClass::Control,
        }
    }

    /// Returns true for packet-ins. They may be dropped: switches send them without being asked, and hosts send again.
    pub fn may_drop(self) -> bool {
        !matches!(self, MessageClass::Control | MessageClass::Statistics)
    }

    /// Returns the part of a switch's turn that the class gets while others wait, in hundredths. Less urgent classes
    /// have a share, too, so that none starves.
    pub(super) fn share(self) -> i64 {
        match self {
            MessageClass::Control => 40,
            MessageClass::Discovery => 20,
            MessageClass::Resolution => 15,
            MessageClass::Packet => 15,
            MessageClass::Statistics => 10,
        }
    }

    /// Returns what a message of this class and length costs to handle, in nanoseconds of a processor of 3 GHz. Only
    /// the ratios matter: they say how many messages of one kind are worth one of another.
    pub(super) fn cost_ns(self, bytes: usize) -> i64 {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX / 8);
        match self {
            MessageClass::Control => 150 + bytes,
            MessageClass::Statistics => 300 + 4 * bytes,
            _ => 400 + bytes / 4,
        }
    }
}

/// Returns the number of a class in [`MessageClass::ALL`].
pub(super) fn number(class: MessageClass) -> usize {
    class as usize
}

fn of_multipart(message: &[u8]) -> MessageClass {
    match message.get(8..).and_then(<[u8]>::first_chunk) {
        Some(kind) if COUNTERS.contains(&u16::from_be_bytes(*kind)) => MessageClass::Statistics,
        _ => MessageClass::Control,
    }
}

fn of_packet(packet: &[u8]) -> MessageClass {
    let u16_at = |at: usize| packet.get(at..)?.first_chunk().map(|two| u16::from_be_bytes(*two));
    let mut at = 12;
    for _ in 0..MAX_TAGS {
        if !matches!(u16_at(at), Some(eth_type::VLAN | eth_type::QINQ)) {
            break;
        }
        at += 4;
    }
    match u16_at(at) {
        Some(eth_type::LLDP | eth_type::BROADCAST_DISCOVERY) => MessageClass::Discovery,
        Some(eth_type::ARP) => MessageClass::Resolution,
        Some(eth_type::IPV6) if is_neighbour_discovery(&packet[at + 2..]) => MessageClass::Resolution,
        _ => MessageClass::Packet,
    }
}

fn is_neighbour_discovery(header: &[u8]) -> bool {
    let kind = header.get(IPV6_BYTES);
    header.get(IPV6_NEXT_HEADER) == Some(&ICMPV6) && kind.is_some_and(|kind| NEIGHBOUR_DISCOVERY.contains(kind))
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_openflow::model::multipart::{MultipartReply, ReplyBody};
    use weir_openflow::model::{Body, Bytes, Match, Message, PacketIn, PacketInReason, TableId};
    use weir_packet::Field;

    fn class(body: Body, version: Version) -> MessageClass {
        let mut bytes = Vec::new();
        weir_openflow::encode(&Message { xid: 1, body }, version, &mut bytes).unwrap();
        MessageClass::of(MessageHeader::read(&bytes).unwrap(), &bytes)
    }

    fn packet_in(after_addresses: &[u8]) -> Body {
        let data = [[2; 12].as_slice(), after_addresses, &[0; 60]].concat();
        let matching = Match::any().with(Field::InPort, 1_u32);
        let (total_len, reason) = (200, PacketInReason::NoMatch);
        Body::PacketIn(PacketIn {
            buffer_id: None,
            total_len,
            reason,
            table: TableId(0),
            cookie: 0,
            matching,
            data: Bytes(data),
        })
    }

    #[test]
    fn packets_are_told_apart_in_every_version() {
        let ipv6 = |next, kind| {
            let mut packet = vec![0x86, 0xdd];
            packet.resize(2 + IPV6_BYTES, 0);
            packet[2 + IPV6_NEXT_HEADER] = next;
            packet.push(kind);
            packet
        };
        for version in Version::ALL {
            for (packet, expected) in [
                (vec![0x88, 0xcc], MessageClass::Discovery),
                (vec![0x89, 0x42], MessageClass::Discovery),
                (vec![0x08, 0x06], MessageClass::Resolution),
                (vec![0x81, 0, 0, 7, 0x08, 0x06], MessageClass::Resolution),
                (vec![0x88, 0xa8, 0, 7, 0x81, 0, 0, 7, 0x88, 0xcc], MessageClass::Discovery),
                (vec![0x08, 0x00], MessageClass::Packet),
                (ipv6(58, 135), MessageClass::Resolution),
                (ipv6(58, 128), MessageClass::Packet),
                (ipv6(17, 135), MessageClass::Packet),
            ] {
                assert_eq!(class(packet_in(&packet), version), expected, "{packet:x?} {version:?}");
            }
        }
    }

    #[test]
    fn counters_are_less_urgent_than_descriptions() {
        let reply = |body| Body::MultipartReply(MultipartReply { more: false, body });
        for version in Version::ALL {
            assert_eq!(class(reply(ReplyBody::Flow(Vec::new())), version), MessageClass::Statistics, "{version:?}");
            assert_eq!(class(Body::BarrierReply, version), MessageClass::Control);
            assert_eq!(class(Body::EchoRequest(Bytes::default()), version), MessageClass::Control);
        }
        assert_eq!(class(reply(ReplyBody::PortDesc(Vec::new())), Version::V13), MessageClass::Control);
    }

    #[test]
    fn short_messages_have_a_class() {
        for length in 0..60 {
            let message = [&[4, 10, 0, 60, 0, 0, 0, 1][..], &[0xff; 60]].concat();
            if let Some(header) = MessageHeader::read(&message[..length]) {
                assert_eq!(MessageClass::of(header, &message[..length]), MessageClass::Packet);
            }
        }
    }
}
