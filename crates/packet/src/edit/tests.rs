use super::*;
use crate::checksum::{BadChecksum, verify, verify_as};
use crate::craft::{FrameBuilder, TcpHeader};
use crate::frame::{MAX_FRAME, PartialChecksum};
use crate::parse::{NetworkProtocol, ParsedHeaders, parse_frame};
use crate::test_support::{any_craft, applies};
use crate::{Field, Frame, MacAddr, PacketType, PortNo, nsh};
use proptest::prelude::*;

fn ethernet() -> FrameBuilder {
    FrameBuilder::ethernet(MacAddr([0x22; 6]), MacAddr([0x12, 0x11, 0x11, 0x11, 0x11, 0x11]))
}

fn ipv4(craft: FrameBuilder) -> FrameBuilder {
    craft.ipv4([192, 168, 10, 10].into(), [192, 168, 20, 20].into())
}

fn tcp(craft: FrameBuilder) -> FrameBuilder {
    craft.tcp(TcpHeader { source: 11111, destination: 2222, ..TcpHeader::default() }).payload(b"payload")
}

fn parsed(frame: &Frame) -> ParsedHeaders {
    let mut parsed = ParsedHeaders::default();
    parse_frame(frame, PortNo(1), &mut parsed).unwrap();
    parsed
}

/// Checks a frame's checksums, for any type of packet.
fn verified(frame: &Frame) -> Result<(), BadChecksum> {
    verify_as(frame.bytes(), frame.packet_type())
}

/// Returns the bytes after an edit of the crafted frame. The edit must have an effect.
fn edited(craft: &FrameBuilder, edit: impl FnOnce(&mut Frame, &crate::Layers) -> EditEffect) -> Vec<u8> {
    let mut frame = craft.frame();
    let layers = parsed(&frame).layers;
    assert_ne!(edit(&mut frame, &layers), EditEffect::Nothing);
    assert_eq!(verify(frame.bytes()), Ok(()));
    frame.bytes().to_vec()
}

#[test]
fn vlan_push_copies_and_pop_undoes() {
    let tag = |craft: FrameBuilder, tpid, vid, pcp| tcp(ipv4(craft.vlan(tpid, vid, pcp)));
    let untagged = tcp(ipv4(ethernet()));
    let once = edited(&untagged, |frame, layers| push_vlan(frame, layers, 0x8100).unwrap());
    assert_eq!(once, tag(ethernet(), 0x8100, 0, 0).build());
    let tagged = tag(ethernet(), 0x8100, 100, 3);
    let twice = edited(&tagged, |frame, layers| push_vlan(frame, layers, 0x88a8).unwrap());
    assert_eq!(twice, tag(ethernet().vlan(0x88a8, 100, 3), 0x8100, 100, 3).build());
    assert_eq!(edited(&tagged, pop_vlan), untagged.build());
    let mut frame = untagged.frame();
    let layers = parsed(&frame).layers;
    assert_eq!(pop_vlan(&mut frame, &layers), EditEffect::Nothing);
    assert_eq!(set_field(&mut frame, &layers, Field::VlanVid, 5), EditEffect::Nothing);
}

#[test]
fn mpls_push_copies_and_pop_undoes() {
    let ip = |craft: FrameBuilder| tcp(ipv4(craft));
    let bare = ip(ethernet().vlan(0x8100, 5, 0)).ttl(17);
    let pushed = ip(ethernet().vlan(0x8100, 5, 0).mpls(0, 0, 17)).ttl(17);
    assert_eq!(edited(&bare, |frame, layers| push_mpls(frame, layers, 0x8847).unwrap()), pushed.build());
    let one = ip(ethernet().mpls(100, 3, 64));
    let two = ip(ethernet().mpls(100, 3, 64).mpls(100, 3, 64));
    assert_eq!(edited(&one, |frame, layers| push_mpls(frame, layers, 0x8847).unwrap()), two.build());
    assert_eq!(edited(&two, |frame, layers| pop_mpls(frame, layers, 0x8847)), one.build());
    assert_eq!(edited(&one, |frame, layers| pop_mpls(frame, layers, 0x0800)), ip(ethernet()).build());
    let here = (MacAddr([2; 6]), [10, 0, 0, 1].into());
    let arp = ethernet().arp(1, here, here);
    let pushed = edited(&arp, |frame, layers| push_mpls(frame, layers, 0x8847).unwrap());
    assert_eq!(pushed[14..18], [0, 0, 1, 0], "no TTL to copy");
}

#[test]
fn mpls_in_snap_keeps_the_length() {
    let snap = [&[0x02; 12][..], &[0, 28, 0xaa, 0xaa, 3, 0, 0, 0, 8, 0, 0x45], &[0; 19]].concat();
    let mut frame = Frame::from_bytes(&snap);
    let layers = parsed(&frame).layers;
    push_mpls(&mut frame, &layers, 0x8847).unwrap();
    assert_eq!(frame.bytes()[12..28], [0, 32, 0xaa, 0xaa, 3, 0, 0, 0, 0x88, 0x47, 0, 0, 1, 0, 0x45, 0]);
    let layers = parsed(&frame).layers;
    assert_eq!(layers.mpls, Some(22));
    pop_mpls(&mut frame, &layers, 0x0800);
    assert_eq!(frame.bytes(), snap);
}

#[test]
fn pbb_push_copies_and_pop_undoes() {
    let customer = tcp(ipv4(ethernet().vlan(0x8100, 100, 3)));
    let mut frame = customer.frame();
    let layers = parsed(&frame).layers;
    push_pbb(&mut frame, &layers, 0x88e7).unwrap();
    assert_eq!(frame.bytes()[..12], customer.build()[..12]);
    assert_eq!(frame.bytes()[12..18], [0x88, 0xe7, 0x60, 0, 0, 0]);
    assert_eq!(frame.bytes()[18..], customer.build());
    assert_eq!(verify(frame.bytes()), Ok(()));

    let layers = parsed(&frame).layers;
    assert_eq!(set_field(&mut frame, &layers, Field::PbbIsid, 0xcb), EditEffect::InPlace);
    assert_eq!(set_field(&mut frame, &layers, Field::PbbUca, 1), EditEffect::InPlace);
    assert_eq!(frame.bytes()[14..18], [0x68, 0, 0, 0xcb]);
    push_vlan(&mut frame, &layers, 0x88a8).unwrap();
    let layers = parsed(&frame).layers;
    assert_eq!(pop_pbb(&mut frame, &layers), EditEffect::Moved);
    assert_eq!(frame.bytes(), tcp(ipv4(ethernet().vlan(0x88a8, 0, 0).vlan(0x8100, 100, 3))).build());
}

#[test]
fn nsh_over_ethernet_there_and_back() {
    let packet = tcp(ipv4(ethernet()));
    let mut frame = packet.frame();
    assert_eq!(encap_nsh(&mut frame, 1, [].into_iter()), Ok(EditEffect::Moved));
    assert_eq!(frame.packet_type(), PacketType::NSH);
    let key = parsed(&frame).key;
    let fields =
        [Field::NshTtl, Field::NshMdtype, Field::NshNp, Field::NshSpi, Field::NshSi].map(|field| key.get(field));
    assert_eq!(fields, [63, 1, 3, 0, 255]);
    assert_eq!((key.get(Field::PacketType), key.get(Field::EthType)), (0x1_894f, 0));
    let layers = parsed(&frame).layers;
    assert_eq!(set_field(&mut frame, &layers, Field::NshSpi, 0x12_3456), EditEffect::InPlace);
    assert_eq!(set_field(&mut frame, &layers, Field::NshC4, 0xffff_ffff), EditEffect::InPlace);
    assert_eq!(encap_ethernet(&mut frame), Ok(EditEffect::Moved));
    let service = ethernet().nsh(0x1234_56ff, [0, 0, 0, u32::MAX], PacketType::ETHERNET).payload(&packet.build());
    assert_eq!(frame.bytes()[12..], service.build()[12..]);
    assert_eq!(frame.bytes()[..12], [0; 12]);
    assert_eq!(encap_ethernet(&mut frame), Err(EditError::PacketType));
    for _ in 0..2 {
        let layers = parsed(&frame).layers;
        assert_eq!(decap(&mut frame, &layers, PacketType::NEXT_PROTOCOL), Ok(EditEffect::Moved));
    }
    assert_eq!((frame.packet_type(), frame.bytes()), (PacketType::ETHERNET, &packet.build()[..]));
}

#[test]
fn nsh_carries_ip_and_itself() {
    let packet = tcp(ipv4(ethernet()));
    let mut frame = packet.frame();
    let layers = parsed(&frame).layers;
    let ip = PacketType::of_eth_type(0x0800);
    assert_eq!(decap(&mut frame, &layers, PacketType::NSH), Err(EditError::PacketType), "it is IPv4");
    assert_eq!(decap(&mut frame, &layers, ip), Ok(EditEffect::Moved));
    let bare = parsed(&frame);
    assert_eq!((bare.layers.network, bare.key.get(Field::EthDst)), (Some((NetworkProtocol::Ipv4, 0)), 0));
    assert_eq!(bare.key.get(Field::TcpDst), 2222);
    assert_eq!(set_field(&mut frame, &bare.layers, Field::EthDst, 5), EditEffect::Nothing);
    assert_eq!(push_vlan(&mut frame, &bare.layers, 0x8100), Ok(EditEffect::Nothing));
    assert_eq!(dec_nw_ttl(&mut frame, &bare.layers), Ok(EditEffect::InPlace));
    let tlv = nsh::NshTlvRef { class: 0x1000, kind: 10, value: &[1, 2, 3] };
    encap_nsh(&mut frame, 2, [tlv].into_iter()).unwrap();
    assert_eq!(frame.bytes()[..16], [0x0f, 0xc4, 2, 1, 0, 0, 0, 255, 0x10, 0, 10, 3, 1, 2, 3, 0]);
    let layers = parsed(&frame).layers;
    assert_eq!(set_field(&mut frame, &layers, Field::NshC1, 5), EditEffect::Nothing, "no context");
    encap_nsh(&mut frame, 1, [].into_iter()).unwrap();
    assert_eq!(parsed(&frame).key.get(Field::NshNp), 4);
    assert_eq!(verified(&frame), Ok(()));
    for under in [PacketType::NSH, ip] {
        let layers = parsed(&frame).layers;
        assert_eq!(decap(&mut frame, &layers, under), Ok(EditEffect::Moved));
    }
    assert_eq!(frame.bytes(), &packet.ttl(63).build()[14..]);
}

#[test]
fn decap_that_cannot_be() {
    let refuse = |frame: &mut Frame| {
        let (layers, before) = (parsed(frame).layers, frame.bytes().to_vec());
        assert_eq!(decap(frame, &layers, PacketType::NEXT_PROTOCOL), Err(EditError::PacketType));
        assert_eq!(frame.bytes(), before);
    };
    refuse(&mut tcp(ipv4(ethernet().vlan(0x8100, 5, 0))).frame());
    refuse(&mut ethernet().ether_type(28).payload(&[0x42, 0x42, 3]).frame());
    let mut ip = Frame::from_bytes(&tcp(ipv4(ethernet())).build()[14..]);
    ip.set_packet_type(PacketType::of_eth_type(0x0800));
    refuse(&mut ip);
    let service = |next: u8, length: usize| {
        let header = nsh::build(1, next, []).unwrap();
        let mut frame = Frame::from_bytes(&[header, vec![0; length]].concat());
        frame.set_packet_type(PacketType::NSH);
        frame
    };
    refuse(&mut service(9, 40));
    refuse(&mut service(3, 13));
    let mut cut = service(3, 14);
    cut.truncate(23);
    refuse(&mut cut);
}

#[test]
fn nsh_ttl_and_flags() {
    let service = ethernet().nsh(5, [0; 4], PacketType::ETHERNET).payload(&[0; 60]);
    let mut frame = service.frame();
    let layers = parsed(&frame).layers;
    assert_eq!(dec_nsh_ttl(&mut frame, &layers), Ok(EditEffect::Moved));
    assert_eq!(set_field(&mut frame, &layers, Field::NshFlags, 3), EditEffect::Moved);
    assert_eq!(frame.bytes()[14..16], [0x3f, 0x86], "TTL 62 behind both flags, six words");
    for ttl in [1, 0] {
        set_field(&mut frame, &layers, Field::NshTtl, ttl);
        assert_eq!(dec_nsh_ttl(&mut frame, &layers), Err(EditError::TtlExpired));
    }
    let mut other = tcp(ipv4(ethernet())).frame();
    let layers = parsed(&other).layers;
    assert_eq!(dec_nsh_ttl(&mut other, &layers), Ok(EditEffect::Nothing));
}

#[test]
fn mpls_without_ethernet() {
    let mut frame = tcp(ipv4(ethernet())).ttl(9).frame();
    let edit = |frame: &mut Frame, edit: fn(&mut Frame, &crate::Layers) -> EditEffect| {
        let layers = parsed(frame).layers;
        assert_eq!(edit(frame, &layers), EditEffect::Moved);
    };
    edit(&mut frame, |frame, layers| decap(frame, layers, PacketType::NEXT_PROTOCOL).unwrap());
    let bare = frame.bytes().to_vec();
    edit(&mut frame, |frame, layers| push_mpls(frame, layers, 0x8847).unwrap());
    assert_eq!((frame.packet_type().to_bits(), &frame.bytes()[..4]), (0x1_8847, &[0, 0, 1, 9][..]));
    assert_eq!(verified(&frame), Ok(()));
    edit(&mut frame, |frame, layers| pop_mpls(frame, layers, 0x0800));
    assert_eq!((frame.packet_type().to_bits(), frame.bytes()), (0x1_0800, &bare[..]));
}

#[test]
fn ttl_actions() {
    let labelled = |outer, inner, ip| tcp(ipv4(ethernet().mpls(1, 0, outer).mpls(2, 0, inner))).ttl(ip);
    assert_eq!(edited(&labelled(9, 5, 3), copy_ttl_in), labelled(9, 9, 3).build());
    assert_eq!(edited(&labelled(9, 5, 3), copy_ttl_out), labelled(5, 5, 3).build());
    let one = |mpls, ip| tcp(ipv4(ethernet().mpls(1, 0, mpls))).ttl(ip);
    assert_eq!(edited(&one(64, 32), copy_ttl_in), one(64, 64).build());
    assert_eq!(edited(&one(64, 32), copy_ttl_out), one(32, 32).build());
    let six = |mpls, ip| tcp(ethernet().mpls(1, 0, mpls).ipv6(1.into(), 2.into())).ttl(ip);
    assert_eq!(edited(&six(64, 32), copy_ttl_in), six(64, 64).build());
    assert_eq!(edited(&one(64, 32), |frame, layers| set_mpls_ttl(frame, layers, 127)), one(127, 32).build());
    assert_eq!(edited(&one(64, 32), |frame, layers| dec_mpls_ttl(frame, layers).unwrap()), one(63, 32).build());
    let ip = |ttl| tcp(ipv4(ethernet())).ttl(ttl);
    assert_eq!(edited(&ip(64), |frame, layers| set_nw_ttl(frame, layers, 32)), ip(32).build());
    assert_eq!(edited(&ip(64), |frame, layers| dec_nw_ttl(frame, layers).unwrap()), ip(63).build());
    for ttl in [0, 1] {
        let (mut frame, mut mpls) = (ip(ttl).frame(), one(ttl, 64).frame());
        let (layers, mpls_layers) = (parsed(&frame).layers, parsed(&mpls).layers);
        assert_eq!(dec_nw_ttl(&mut frame, &layers), Err(EditError::TtlExpired));
        assert_eq!(dec_mpls_ttl(&mut mpls, &mpls_layers), Err(EditError::TtlExpired));
        assert_eq!((frame.bytes(), mpls.bytes()), (&ip(ttl).build()[..], &one(ttl, 64).build()[..]));
        assert_eq!(dec_nw_ttl(&mut mpls, &mpls_layers), Ok(EditEffect::Nothing), "IP behind MPLS is not touched");
        assert_eq!(copy_ttl_in(&mut frame, &layers), EditEffect::Nothing);
    }
}

#[test]
fn udp_checksum_zero() {
    let udp = ipv4(ethernet()).udp(1, 2).payload(b"x");
    let mut frame = udp.frame();
    let layers = parsed(&frame).layers;
    frame.bytes_mut()[40..42].fill(0);
    set_field(&mut frame, &layers, Field::UdpDst, 7);
    set_field(&mut frame, &layers, Field::Ipv4Src, 7);
    assert_eq!(frame.bytes()[40..42], [0, 0], "no checksum stays none");

    let mut frame = udp.frame();
    let sum = u128::from(u16::from_be_bytes([frame.bytes()[40], frame.bytes()[41]]));
    assert_eq!(set_field(&mut frame, &layers, Field::UdpDst, 2 + sum), EditEffect::InPlace);
    assert_eq!(frame.bytes()[40..42], [0xff, 0xff], "a computed zero has its other form");
    assert_eq!(verify(frame.bytes()), Ok(()));
}

#[test]
fn proto_change_adjusts_the_checksum_that_was_there() {
    let mut frame = tcp(ipv4(ethernet())).frame();
    let layers = parsed(&frame).layers;
    let before = frame.clone();
    assert_eq!(set_field(&mut frame, &layers, Field::IpProto, 17), EditEffect::Moved);
    let difference = |at| {
        u16::from_be_bytes([before.bytes()[at], before.bytes()[at + 1]])
            .wrapping_sub(u16::from_be_bytes([frame.bytes()[at], frame.bytes()[at + 1]]))
    };
    assert_eq!(frame.bytes()[23], 17);
    assert_eq!((difference(50), difference(24)), (11, 11), "TCP's and IPv4's, both less by 17 - 6");
}

#[test]
fn fragments() {
    let mut first = ipv4(ethernet()).udp(1, 2).payload(&[7; 24]).frame();
    let layers = parsed(&first).layers;
    let checksum = first.bytes()[40..42].to_vec();
    let write = |frame: &mut Frame, field: [u8; 2]| {
        let bytes = frame.bytes_mut();
        let sum = crate::checksum::updated(u16::from_be_bytes([bytes[24], bytes[25]]), &[0x40, 0], &field);
        bytes[20..22].copy_from_slice(&field);
        bytes[24..26].copy_from_slice(&sum.to_be_bytes());
    };
    write(&mut first, [0x20, 0]);
    assert_eq!(parsed(&first).layers, layers);
    set_field(&mut first, &layers, Field::Ipv4Dst, 0x0a00_0001);
    assert_ne!(first.bytes()[40..42], checksum, "lies in the first fragment");

    let mut later = ipv4(ethernet()).udp(1, 2).payload(&[7; 24]).frame();
    write(&mut later, [0x20, 9]);
    let layers = parsed(&later).layers;
    let payload = later.bytes()[34..].to_vec();
    assert_eq!(set_field(&mut later, &layers, Field::Ipv4Dst, 0x0a00_0001), EditEffect::InPlace);
    assert_eq!(set_field(&mut later, &layers, Field::UdpDst, 1), EditEffect::Nothing);
    assert_eq!(later.bytes()[34..], payload, "nothing but payload in a later one");
    assert_eq!(verify(later.bytes()), Ok(()));
}

#[test]
fn destination_under_a_routing_header() {
    // Routing type 0 with one segment left: the pseudo header holds its only address, ::9.
    let last = |segments_left: u8| [&[6, 2, 0, segments_left, 0, 0, 0, 0][..], &[0; 15], &[9]].concat();
    let segment = tcp(ethernet().ipv6(1.into(), 9.into())).build()[54..].to_vec();
    let routed = ethernet().ipv6(1.into(), 2.into()).ip_proto(43).payload(&[last(1), segment].concat());
    assert_eq!(verify(&routed.build()), Ok(()));
    let bytes = edited(&routed, |frame, layers| set_field(frame, layers, Field::Ipv6Dst, 77));
    assert_eq!(bytes[38..54], 77u128.to_be_bytes());
    edited(&routed, |frame, layers| set_field(frame, layers, Field::Ipv6Src, 78));
    edited(&routed, |frame, layers| set_field(frame, layers, Field::TcpDst, 79));
}

#[test]
fn sctp_that_was_wrong_stays_wrong() {
    let mut frame = ipv4(ethernet()).sctp(1, 2).payload(b"chunks").frame();
    let layers = parsed(&frame).layers;
    frame.bytes_mut()[42] ^= 1;
    set_field(&mut frame, &layers, Field::SctpSrc, 99);
    assert!(verify(frame.bytes()).is_err());
    frame.bytes_mut()[42] ^= 1;
    assert_eq!(verify(frame.bytes()), Ok(()));
}

#[test]
fn too_long() {
    let mut frame = Frame::from_bytes(&tcp(ipv4(ethernet())).payload(&vec![0; MAX_FRAME]).build());
    let layers = parsed(&frame).layers;
    let before = frame.bytes().to_vec();
    assert_eq!(push_vlan(&mut frame, &layers, 0x8100), Err(EditError::TooLong));
    assert_eq!(push_mpls(&mut frame, &layers, 0x8847), Err(EditError::TooLong));
    assert_eq!(push_pbb(&mut frame, &layers, 0x88e7), Err(EditError::TooLong));
    assert_eq!(frame.bytes(), before);
}

/// Applies the edit with number `which`.
fn edit(frame: &mut Frame, layers: &crate::Layers, which: u8, value: u128) -> EditEffect {
    let ttl = value.to_be_bytes()[15];
    match which {
        0..43 => set_field(frame, layers, Field::ALL[usize::from(which)], value),
        43 => push_vlan(frame, layers, if ttl & 1 == 0 { 0x8100 } else { 0x88a8 }).unwrap(),
        44 => pop_vlan(frame, layers),
        45 => push_mpls(frame, layers, 0x8847).unwrap(),
        46 => pop_mpls(frame, layers, under_label(frame, layers)),
        47 => push_pbb(frame, layers, 0x88e7).unwrap(),
        48 => pop_pbb(frame, layers),
        49 => copy_ttl_in(frame, layers),
        50 => copy_ttl_out(frame, layers),
        51 => set_nw_ttl(frame, layers, ttl),
        52 => set_mpls_ttl(frame, layers, ttl),
        53 => dec_nw_ttl(frame, layers).unwrap_or(EditEffect::Nothing),
        55 => encap_nsh(frame, 1 + ttl % 2, [].into_iter()).unwrap_or(EditEffect::Nothing),
        56 => encap_ethernet(frame).unwrap_or(EditEffect::Nothing),
        57 => decap(frame, layers, PacketType::NEXT_PROTOCOL).unwrap_or(EditEffect::Nothing),
        58 => dec_nsh_ttl(frame, layers).unwrap_or(EditEffect::Nothing),
        59..69 => set_field(frame, layers, NSH_FIELDS[usize::from(which) - 59], value),
        _ => dec_mpls_ttl(frame, layers).unwrap_or(EditEffect::Nothing),
    }
}

const EDITS: u8 = 69;

/// NSH's fields, whose numbers are above those of the basic class.
const NSH_FIELDS: [Field; 10] = {
    use Field::*;
    [NshFlags, NshTtl, NshMdtype, NshNp, NshSpi, NshSi, NshC1, NshC2, NshC3, NshC4]
};

/// Returns the type that a controller that knows the packet gives in pop_mpls.
fn under_label(frame: &Frame, layers: &crate::Layers) -> u16 {
    let at = usize::from(layers.mpls.unwrap_or(0));
    match frame.bytes().get(at + 2..at + 5) {
        Some([bottom, ..]) if bottom & 1 == 0 => 0x8847,
        Some([_, _, version]) if version >> 4 == 4 => 0x0800,
        Some([_, _, version]) if version >> 4 == 6 => 0x86dd,
        _ => 0x0806,
    }
}

/// Fields whose change gives other bytes of the packet another meaning, so that checksums become wrong.
const REINTERPRETING: [Field; 3] = [Field::EthType, Field::IpProto, Field::MplsBos];

proptest! {
    #[test]
    fn checksums_stay_right(craft in any_craft(), edits in proptest::collection::vec((0u8..EDITS, any::<u128>()), 1..12)) {
        let mut frame = craft.frame();
        prop_assert_eq!(verified(&frame), Ok(()));
        for (which, value) in edits {
            if Field::ALL.get(usize::from(which)).is_some_and(|field| REINTERPRETING.contains(field)) {
                continue;
            }
            let before = parsed(&frame);
            let bytes = frame.bytes().to_vec();
            let result = edit(&mut frame, &before.layers, which, value);
            let after = parsed(&frame);
            prop_assert_eq!(verified(&frame), Ok(()), "edit {} with {:x}", which, value);
            match result {
                EditEffect::Nothing => prop_assert_eq!(frame.bytes(), bytes),
                EditEffect::InPlace => prop_assert_eq!(after.layers, before.layers),
                EditEffect::Moved => {}
            }
        }
    }

    #[test]
    fn set_field_sets_what_parse_reads(craft in any_craft(), field in 0usize..53, value in any::<u128>()) {
        let field = if field < 43 { Field::ALL[field] } else { NSH_FIELDS[field - 43] };
        let mut frame = craft.frame();
        let before = parsed(&frame);
        let value = value & field.all_ones();
        match set_field(&mut frame, &before.layers, field, value) {
            EditEffect::Nothing => prop_assert!(
                !field.is_settable() || field == Field::TunnelId || !applies(field, &before.key) || before.key.get(field) == 0
            ),
            EditEffect::Moved => {}
            EditEffect::InPlace => {
                let mut expected = before;
                expected.key.set(field, value | if field == Field::VlanVid { 0x1000 } else { 0 });
                prop_assert_eq!(parsed(&frame), expected);
            }
        }
    }

    #[test]
    fn edits_of_anything_do_not_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..120), craft in any_craft(), which in 0u8..EDITS, value in any::<u128>(),
        checksum in proptest::option::of((any::<u16>(), any::<u16>())), eth_type in proptest::option::of(any::<u16>())
    ) {
        // Layers of one frame with the bytes of another are worse than any single frame.
        let layers = parsed(&craft.frame()).layers;
        let mut frame = Frame::from_bytes(&bytes);
        eth_type.into_iter().for_each(|kind| frame.set_packet_type(PacketType::of_eth_type(kind)));
        frame.offload.checksum = checksum.map(|(start, offset)| PartialChecksum { start, offset });
        edit(&mut frame, &layers, which, value);
    }
}
