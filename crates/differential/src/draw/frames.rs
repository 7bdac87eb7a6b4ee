//! Draws frames: tags, labels, IPv4 and IPv6 with fragments and extension headers, ARP, neighbour discovery, PBB, and
//! others.
use super::rng::CaseRng;
use std::net::{Ipv4Addr, Ipv6Addr};
use weir_packet::craft::{FrameBuilder, TcpHeader};
use weir_packet::{FlowKey, MacAddr, PortNo, parse};

/// A frame of a case, its input port, and its flow key.
#[derive(Debug, Clone)]
pub(super) struct SampleFrame {
    pub(super) port: u32,
    pub(super) bytes: Vec<u8>,
    pub(super) key: FlowKey,
}

pub(super) fn sample(dice: &mut CaseRng) -> SampleFrame {
    let (port, bytes) = (dice.between(1, 4), whole(dice));
    let key = parse(&bytes, PortNo(port)).expect("frames are drawn with whole Ethernet headers").key;
    SampleFrame { port, bytes, key }
}

/// Truncates one frame in twenty, and changes a byte of about one in twenty.
pub(super) fn damaged(dice: &mut CaseRng, mut bytes: Vec<u8>) -> Vec<u8> {
    if dice.one_in(20) {
        bytes.truncate(14 + dice.index(bytes.len() - 13));
    } else if dice.one_in(20) {
        // The EtherType stays, because it could become that of a marker.
        let at = 14 + dice.index(bytes.len() - 13);
        if let Some(byte) = bytes.get_mut(at) {
            *byte = dice.byte();
        }
    }
    bytes
}

fn mac(dice: &mut CaseRng) -> MacAddr {
    let kind =
        *dice.pick(&[0x0200_0000_0000_u64, 0x0200_0000_0000, 0x0200_0000_0000, 0x0100_5e00_0000, 0x0a01_0203_0400]);
    MacAddr::from_bits(kind | u64::from(dice.between(1, 4)))
}

fn ipv4(dice: &mut CaseRng) -> Ipv4Addr {
    Ipv4Addr::new(10, 0, *dice.pick(&[0, 0, 0, 128]), u8::try_from(dice.between(1, 4)).unwrap_or(1))
}

fn ipv6(dice: &mut CaseRng) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00, 0, 0, *dice.pick(&[0, 0, 0x8000]), 0, 0, 0, u16::try_from(dice.between(1, 4)).unwrap_or(1))
}

fn whole(dice: &mut CaseRng) -> Vec<u8> {
    let mut craft = FrameBuilder::ethernet(mac(dice), mac(dice));
    for _ in 0..[0, 0, 0, 0, 1, 1, 1, 2][dice.index(8)] {
        let tpid = if dice.one_in(4) { 0x88a8 } else { 0x8100 };
        let vid = u16::try_from(dice.between(1, 6)).unwrap_or(1);
        craft = craft.vlan(tpid, if dice.one_in(8) { 0 } else { vid }, dice.byte() & 7);
    }
    let (tos, ttl) = (if dice.one_in(2) { 0 } else { dice.byte() }, *dice.pick(&[64, 64, 64, 255, 2, 1, 0]));
    craft = craft.ttl(ttl).traffic_class(tos);
    let size = dice.index(40);
    craft = craft.payload(&dice.bytes(size));
    if dice.one_in(8) {
        for _ in 0..dice.between(1, 3) {
            craft = craft.mpls(dice.word() & 0xf_ffff, dice.byte() & 7, *dice.pick(&[64, 1, 0, 255]));
        }
    }
    match dice.between(0, 15) {
        0..=5 => {
            let (source, destination) = (ipv4(dice), ipv4(dice));
            transport(dice, craft.ipv4(source, destination), false)
        }
        6..=9 => {
            let (source, destination) = (ipv6(dice), ipv6(dice));
            transport(dice, craft.ipv6(source, destination), true)
        }
        10..=11 => arp(dice, craft),
        12 => neighbour(dice, craft),
        13 => backbone(dice, craft),
        _ => craft.ether_type(*dice.pick(&[0x88cc, 0x9000, 0x05dc, 0x0600, 0x8847, 0x8035, 0x894f])).build(),
    }
}

fn port(dice: &mut CaseRng) -> u16 {
    *dice.pick(&[1, 2, 53, 80, 443, 0xffff])
}

fn transport(dice: &mut CaseRng, craft: FrameBuilder, is_v6: bool) -> Vec<u8> {
    let (source, destination) = (port(dice), port(dice));
    let flags = *dice.pick(&[0, 1, 2, 4, 16, 18, 24, 0xff]);
    let craft = match dice.between(0, 9) {
        0..=2 => craft.udp(source, destination),
        3..=5 => craft.tcp(TcpHeader { source, destination, flags, ..TcpHeader::default() }),
        6 => craft.sctp(source, destination),
        7 | 8 => craft.icmp(*dice.pick(&[0, 3, 8, 128, 129]), dice.byte() & 3, [0, 1, 0, 2]),
        _ => craft.ip_proto(*dice.pick(&[2, 47, 50, 89, 255])),
    };
    let mut bytes = craft.build();
    if dice.one_in(6) {
        fragmented(dice, &mut bytes, is_v6);
    } else if is_v6 && dice.one_in(4) {
        extended(dice, &mut bytes);
    }
    bytes
}

/// Returns the offset of the network header, if only tags precede it.
fn network(bytes: &[u8]) -> Option<usize> {
    let mut at = 12;
    loop {
        let kind = u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]);
        match kind {
            0x8100 | 0x88a8 => at += 4,
            0x0800 | 0x86dd => return Some(at + 2),
            _ => return None,
        }
    }
}

/// Turns an IPv4 packet into a fragment; inserts a fragment header into an IPv6 packet.
fn fragmented(dice: &mut CaseRng, bytes: &mut Vec<u8>, is_v6: bool) {
    let Some(at) = network(bytes) else { return };
    let (offset, more) = *dice.pick(&[(0_u16, 1_u16), (3, 1), (3, 0)]);
    if is_v6 {
        let word = (offset << 3 | more).to_be_bytes();
        insert(bytes, at, 44, &[0, 0, word[0], word[1], 0, 0, 0, 9]);
    } else {
        let word = (offset | more << 13).to_be_bytes();
        bytes[at + 6..at + 8].copy_from_slice(&word);
        bytes[at + 10..at + 12].fill(0);
        let sum = weir_packet::checksum::internet(&[&bytes[at..at + 20]]);
        bytes[at + 10..at + 12].copy_from_slice(&sum.to_be_bytes());
    }
}

/// Inserts extension headers into an IPv6 packet.
fn extended(dice: &mut CaseRng, bytes: &mut Vec<u8>) {
    let Some(at) = network(bytes) else { return };
    for _ in 0..dice.between(1, 3) {
        // Hop by hop, routing, destination options, authentication: eight bytes each, except for the last.
        let (number, header): (u8, &[u8]) = *dice.pick::<(u8, &[u8])>(&[
            (0, &[0, 0, 1, 4, 0, 0, 0, 0]),
            (43, &[0, 0, 0, 0, 0, 0, 0, 0]),
            (60, &[0, 0, 1, 4, 0, 0, 0, 0]),
            (51, &[0, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2]),
        ]);
        insert(bytes, at, number, header);
    }
}

/// Inserts an extension header after the IPv6 header at `at`. The new header's first byte is set to the number of the
/// next.
fn insert(bytes: &mut Vec<u8>, at: usize, number: u8, header: &[u8]) {
    let follows = std::mem::replace(&mut bytes[at + 6], number);
    bytes.splice(at + 40..at + 40, header.iter().copied());
    bytes[at + 40] = follows;
    let length = u16::from_be_bytes([bytes[at + 4], bytes[at + 5]]);
    let length = length + u16::try_from(header.len()).unwrap_or(0);
    bytes[at + 4..at + 6].copy_from_slice(&length.to_be_bytes());
}

fn arp(dice: &mut CaseRng, craft: FrameBuilder) -> Vec<u8> {
    let operation = *dice.pick(&[1, 2, 1, 2, 3, 255, 256]);
    let (sender, target) = ((mac(dice), ipv4(dice)), (mac(dice), ipv4(dice)));
    let craft = craft.arp(operation, sender, target);
    if dice.one_in(8) { craft.ether_type(0x8035).build() } else { craft.build() }
}

/// Draws a neighbour solicitation or advertisement with options (RFC 4861, 4.3 and 4.4).
fn neighbour(dice: &mut CaseRng, craft: FrameBuilder) -> Vec<u8> {
    let mut payload = ipv6(dice).octets().to_vec();
    // No option is repeated, because the specification does not say which one applies.
    for option in *dice.pick::<&[u8]>(&[&[], &[1], &[2], &[1, 2], &[2, 1], &[5, 1]]) {
        payload.extend([*option, 1]);
        payload.extend(mac(dice).0);
    }
    let ttl = if dice.one_in(5) { 64 } else { 255 };
    let craft = craft.ttl(ttl).ipv6(ipv6(dice), ipv6(dice)).payload(&payload);
    craft.icmp(*dice.pick(&[135, 136]), u8::from(dice.one_in(9)), [0; 4]).build()
}

/// Draws a frame inside a backbone frame (IEEE 802.1ah): I-TAG, then the customer's frame.
fn backbone(dice: &mut CaseRng, craft: FrameBuilder) -> Vec<u8> {
    let inner = FrameBuilder::ethernet(mac(dice), mac(dice)).payload(&dice.bytes(20)).ether_type(0x9000).build();
    let mut payload = (dice.word() & 0x08ff_ffff).to_be_bytes().to_vec();
    payload.extend(inner);
    craft.payload(&payload).ether_type(0x88e7).build()
}
