//! Packets with chains of VLAN tags, MPLS labels, PBB and IPv6 extension headers through random entries: compares the
//! pipeline with the plain reference.
use crate::bench::*;
use crate::reference::{self, Expired};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use weir_openflow::model::{Action, FlowMod, Match, MatchField, PortNo};
use weir_packet::Field;
use weir_packet::craft::{FrameBuilder, TcpHeader};

/// Extension headers that can follow an IPv6 header, by number, in the order that RFC 8200 recommends: hop-by-hop,
/// destination options, routing (no segments left), fragment (the only one).
const EXTENSIONS: [u8; 4] = [0, 60, 43, 44];

fn ipv6_with(extensions: Vec<bool>, craft: FrameBuilder) -> Vec<u8> {
    let mut frame = craft.build();
    let at = 14;
    let mut proto = frame[at + 6];
    let chosen: Vec<u8> = EXTENSIONS.into_iter().zip(extensions).filter(|(_, is)| *is).map(|(n, _)| n).collect();
    for number in chosen.into_iter().rev() {
        frame.splice(at + 40..at + 40, [proto, 0, 0, 0, 0, 0, 0, 0]);
        proto = number;
        let length = u16::from_be_bytes([frame[at + 4], frame[at + 5]]) + 8;
        frame[at + 4..at + 6].copy_from_slice(&length.to_be_bytes());
    }
    frame[at + 6] = proto;
    frame
}

/// Generates a frame without tags: IPv4, IPv6 or ARP.
fn core() -> impl Strategy<Value = Vec<u8>> {
    let address = || 1..4_u8;
    let ports = || (1..4_u16, 1..4_u16);
    let ip = (
        any::<bool>(),
        address(),
        address(),
        ports(),
        select(vec![1_u8, 2, 3, 64]),
        any::<u8>(),
        vec(any::<u8>(), 0..40),
    );
    let ip = (ip, vec(any::<bool>(), 4), any::<bool>()).prop_map(|(ip, extensions, is_v6)| {
        let (is_tcp, source, destination, (from, to), ttl, class, payload) = ip;
        let craft = FrameBuilder::ethernet(mac(2), mac(1)).ttl(ttl).traffic_class(class).payload(&payload);
        let craft = if is_tcp {
            craft.tcp(TcpHeader { source: from, destination: to, flags: 16, ..TcpHeader::default() })
        } else {
            craft.udp(from, to)
        };
        if is_v6 {
            let address = |last: u8| std::net::Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last.into());
            ipv6_with(extensions, craft.ipv6(address(source), address(destination)))
        } else {
            craft.ipv4([10, 0, 0, source].into(), [10, 0, 0, destination].into()).build()
        }
    });
    let arp = (1..3_u16, address()).prop_map(|(operation, last)| {
        let end = |number| (mac(number), [10, 0, 0, last].into());
        FrameBuilder::ethernet(mac(2), mac(1)).arp(operation, end(1), end(2)).build()
    });
    prop_oneof![6 => ip, 1 => arp]
}

/// Generates a frame with labels, PBB and tags around a frame of [`core`].
fn packet() -> impl Strategy<Value = Vec<u8>> {
    let labels = vec((0..3_u32, 0..8_u32, select(vec![1_u32, 2, 64])), 0..4);
    let tags = || vec((select(vec![0x8100_u16, 0x88a8]), 0..3_u16, 0..8_u16), 0..3);
    (core(), labels, tags(), proptest::option::weighted(0.2, 0..3_u32), tags()).prop_map(
        |(mut frame, labels, inner, service, outer)| {
            for (depth, (label, class, ttl)) in labels.into_iter().enumerate() {
                let entry = label << 12 | class << 9 | u32::from(depth == 0) << 8 | ttl;
                frame[12..14].copy_from_slice(&[0x88, 0x47]);
                frame.splice(14..14, entry.to_be_bytes());
            }
            tag(&mut frame, inner);
            if let Some(service) = service {
                let front = [&frame[..12], &[0x88, 0xe7], &service.to_be_bytes()].concat();
                frame.splice(0..0, front);
                tag(&mut frame, outer);
            }
            frame
        },
    )
}

fn tag(frame: &mut Vec<u8>, tags: Vec<(u16, u16, u16)>) {
    for (tpid, vid, pcp) in tags {
        frame.splice(12..12, [tpid.to_be_bytes(), (pcp << 13 | vid).to_be_bytes()].concat());
    }
}

/// Generates a match on one kind of packet, so that actions on its headers are allowed.
fn matching() -> impl Strategy<Value = Match> {
    let ip = |eth_type: u16, proto: u8| Match::any().with(Field::EthType, eth_type).with(Field::IpProto, proto);
    let udp4 = proptest::option::of(1..4_u16).prop_map(move |port| {
        let matching = ip(0x0800, 17);
        port.map_or(matching.clone(), |port| matching.with(Field::UdpDst, port))
    });
    let tcp6 = (0..3_u16, select(vec![0_u16, 1 << 6, 1 << 5, 1 << 4, 1 << 3])).prop_map(move |(flags, bit)| {
        let matching = ip(0x86dd, 6);
        if bit == 0 { matching } else { matching.with_masked(Field::Ipv6Exthdr, bit * (flags & 1), bit) }
    });
    let labelled = proptest::option::of((0..3_u32, 0..2_u8)).prop_map(|fields| {
        let matching = Match::any().with(Field::EthType, 0x8847_u16);
        fields.map_or(matching.clone(), |(label, bottom)| {
            matching.with(Field::MplsLabel, label).with(Field::MplsBos, bottom)
        })
    });
    let tagged = (0..3_u16).prop_map(|vid| Match::any().with(Field::VlanVid, vid | 0x1000));
    let others = select(vec![
        Match::any(),
        Match::any().with(Field::VlanVid, 0_u16),
        Match::any().with_masked(Field::VlanVid, 0x1000_u16, 0x1000_u16),
        ip(0x0800, 6),
        ip(0x86dd, 17),
        Match::any().with(Field::EthType, 0x88e7_u16).with(Field::PbbIsid, 1_u32),
        Match::any().with(Field::EthType, 0x0806_u16).with(Field::ArpOp, 1_u16),
    ]);
    prop_oneof![2 => udp4, 2 => tcp6, 2 => labelled, 1 => tagged, 3 => others]
}

fn action() -> impl Strategy<Value = Action> {
    let set = |field, value: u128| Action::SetField { field, value };
    let plain = select(vec![
        Action::PushVlan(0x8100),
        Action::PushVlan(0x88a8),
        Action::PopVlan,
        Action::PushMpls(0x8847),
        Action::PopMpls(0x8847),
        Action::PopMpls(0x0800),
        Action::PopMpls(0x86dd),
        Action::PushPbb(0x88e7),
        Action::PopPbb,
        Action::SetMplsTtl(9),
        Action::DecMplsTtl,
        Action::SetNwTtl(7),
        Action::DecNwTtl,
        Action::CopyTtlOut,
        Action::CopyTtlIn,
        Action::output(PortNo(3)),
    ]);
    let sets = (any::<u128>(), 0..14_usize).prop_map(move |(value, which)| {
        let fields = [
            Field::EthDst,
            Field::EthSrc,
            Field::VlanPcp,
            Field::MplsLabel,
            Field::MplsTc,
            Field::PbbIsid,
            Field::Ipv4Src,
            Field::Ipv4Dst,
            Field::Ipv6Src,
            Field::Ipv6Dst,
            Field::Ipv6Flabel,
            Field::IpDscp,
            Field::UdpSrc,
            Field::TcpDst,
        ];
        set(fields[which], value & fields[which].all_ones())
    });
    let vid = (0..0x1000_u128).prop_map(move |vid| set(Field::VlanVid, vid | 0x1000));
    prop_oneof![3 => plain, 2 => sets, 1 => vid]
}

/// Returns the frames that the reference sends for a frame, in order.
fn expected(entries: &[FlowMod], frame: &[u8]) -> Vec<(PortNo, Vec<u8>)> {
    let key = reference::key(frame, PortNo(1));
    let matches = |entry: &&FlowMod| {
        entry.matching.fields.iter().all(|field| {
            let MatchField::Known { field, value, mask } = field else { unreachable!("not generated") };
            key.get(*field) & mask.unwrap_or(u128::MAX) == *value
        })
    };
    let Some(entry) = entries.iter().filter(matches).max_by_key(|entry| entry.priority) else { return Vec::new() };
    let (mut frame, mut sent) = (frame.to_vec(), Vec::new());
    for action in entry.instructions.iter().flat_map(|instruction| match instruction {
        weir_openflow::model::Instruction::ApplyActions(actions) => actions.clone(),
        _ => unreachable!("not generated"),
    }) {
        match action {
            Action::Output { port, .. } => sent.push((port, frame.clone())),
            other => {
                if let Err(Expired) = reference::edit(&other, &mut frame) {
                    return sent;
                }
            }
        }
    }
    sent
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1024, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn chains_of_headers_are_edited_as_the_reference_does(
        entries in vec((matching(), vec(action(), 1..7)), 1..12),
        packets in vec(packet(), 1..12),
    ) {
        let (mut bench, mut accepted) = (Bench::new(), Vec::new());
        for (priority, (matching, mut actions)) in (1..).zip(entries) {
            actions.push(Action::output(PortNo(2)));
            let flow = FlowMod::add(priority, matching, apply(actions));
            // Actions that the match does not allow are refused, which another test covers.
            if bench.flow_mod(&flow).is_ok() {
                accepted.push(flow);
            }
        }
        for frame in packets {
            let sent = bench.receive(1, &frame);
            let mut found: Vec<_> = sent.into_iter().collect();
            let mut wanted = expected(&accepted, &frame);
            // The order of frames matters only within each port.
            found.sort_by_key(|(port, _)| *port);
            wanted.sort_by_key(|(port, _)| *port);
            prop_assert_eq!(found, wanted, "from {:02x?}", frame);
        }
    }
}
