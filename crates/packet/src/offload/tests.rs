use super::*;
use crate::checksum::{verify, verify_as};
use crate::craft::{FrameBuilder, TcpHeader};
use crate::edit::{decap, encap_ethernet, encap_nsh, push_mpls, push_pbb, push_vlan, set_field};
use crate::frame::{Segmentation, SegmentationKind};
use crate::parse::{ParsedHeaders, parse};
use crate::test_support::any_craft;
use crate::{Field, MacAddr, PacketType, PortNo};
use proptest::prelude::*;

fn ethernet() -> FrameBuilder {
    FrameBuilder::ethernet(MacAddr([2, 0, 0, 0, 0, 2]), MacAddr([2, 0, 0, 0, 0, 1]))
}

fn ipv4() -> FrameBuilder {
    ethernet().ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into())
}

fn ipv6() -> FrameBuilder {
    ethernet().vlan(0x88a8, 1, 0).vlan(0x8100, 2, 0).ipv6(1.into(), 2.into())
}

const TCP: TcpHeader = TcpHeader {
    source: 1,
    destination: 2,
    sequence: u32::MAX - 1000,
    acknowledgment: 7,
    flags: CWR | ACK | PSH | FIN,
    window: 9,
};
const FIN: u8 = 1;
const PSH: u8 = 8;
const ACK: u8 = 16;
const CWR: u8 = 128;

fn parsed(frame: &Frame) -> ParsedHeaders {
    parse(frame.bytes(), PortNo(1)).unwrap()
}

/// Replaces the transport checksum by a partial one, like a sender that leaves it to the port.
fn left_to_port(craft: &FrameBuilder) -> Frame {
    let mut frame = craft.frame();
    let datagram = IpDatagram::innermost(frame.bytes(), frame.packet_type()).unwrap();
    let (kind, at) = datagram.transport.unwrap();
    let offset = match kind {
        TransportProtocol::Tcp => 16,
        TransportProtocol::Udp => 6,
        TransportProtocol::Sctp => 8,
        TransportProtocol::Icmpv4 | TransportProtocol::Icmpv6 => 2,
    };
    let sum = match kind {
        TransportProtocol::Icmpv4 => 0,
        _ => datagram.pseudo_header(frame.bytes(), datagram.end - at).unwrap().fold(),
    };
    let sum = if kind == TransportProtocol::Sctp { vec![0; 4] } else { sum.to_be_bytes().to_vec() };
    frame.bytes_mut()[at + offset..at + offset + sum.len()].copy_from_slice(&sum);
    let start = u16::try_from(at).unwrap();
    frame.offload.checksum = Some(PartialChecksum { start, offset: u16::try_from(offset).unwrap() });
    frame
}

fn finished(frame: Frame) -> Option<Vec<Frame>> {
    let (mut pool, mut out) = (FramePool::default(), vec![Frame::default()]);
    let done = finish(frame, &mut pool, &mut out);
    assert_eq!(out.remove(0).len(), 0, "what was there stays");
    assert!(done || out.is_empty());
    done.then_some(out)
}

fn one(frame: Frame) -> Frame {
    let mut out = finished(frame).unwrap();
    assert_eq!(out.len(), 1);
    out.remove(0)
}

#[test]
fn nothing_to_do() {
    let frame = ipv4().udp(1, 2).frame();
    assert_eq!(one(frame.clone()).bytes(), frame.bytes());
}

#[test]
fn padding_does_not_count() {
    let craft = ipv4().udp(1, 2).payload(b"abc");
    let mut frame = left_to_port(&craft);
    frame.append(&[0xff; 15]).unwrap();
    assert_eq!(one(frame).bytes()[..45], craft.build());
}

#[test]
fn udp_zero_has_its_other_form() {
    let plain = ipv4().udp(1, 2).payload(&[0, 0]).build();
    let balanced = ipv4().udp(1, 2).payload(&plain[40..42]);
    let frame = one(left_to_port(&balanced));
    assert_eq!(frame.bytes()[40..42], [0xff, 0xff]);
}

#[test]
fn checksum_statements_that_do_not_fit() {
    for (start, offset) in [(34, 12), (34, u16::MAX), (u16::MAX, 0), (43, 0), (42, 0)] {
        let mut frame = ipv4().udp(1, 2).frame();
        frame.offload.checksum = Some(PartialChecksum { start, offset });
        assert_eq!(finished(frame).map(|frames| frames.len()), None, "{start} {offset}");
    }
}

#[test]
fn tcp_segments() {
    let payload: Vec<u8> = (0..=255).cycle().take(2500).collect();
    for (craft, kind) in [
        (ipv4().tcp(TCP), SegmentationKind::Tcpv4 { ecn: true }),
        (ipv6().tcp(TCP), SegmentationKind::Tcpv6 { ecn: false }),
    ] {
        let mut frame = left_to_port(&craft.clone().payload(&payload));
        frame.offload.segmentation = Some(Segmentation { kind, segment_bytes: 1000, header_bytes: 0 });
        let segments = finished(frame).unwrap();
        let flags = [CWR | ACK, ACK, ACK | PSH | FIN];
        assert_eq!(segments.len(), 3);
        for (index, segment) in segments.iter().enumerate() {
            let sequence = TCP.sequence.wrapping_add(u32::try_from(index).unwrap() * 1000);
            let header = TcpHeader { sequence, flags: flags[index], ..TCP };
            let chunk = &payload[index * 1000..payload.len().min(index * 1000 + 1000)];
            let mut expected = craft.clone().tcp(header).payload(chunk).build();
            if let SegmentationKind::Tcpv4 { .. } = kind {
                let checksum = u16::from_be_bytes([expected[24], expected[25]]) - u16::try_from(index).unwrap();
                expected[19] = u8::try_from(index).unwrap();
                expected[24..26].copy_from_slice(&checksum.to_be_bytes());
            }
            assert_eq!(segment.bytes(), expected, "segment {index}");
            assert!(segment.offload.is_none());
        }
    }
}

#[test]
fn udp_segments() {
    let craft = ipv4().udp(7, 8).payload(&[1; 250]);
    let kind = SegmentationKind::Udp;
    let segmentation = Some(Segmentation { kind, segment_bytes: 100, header_bytes: 42 });
    let mut frame = left_to_port(&craft);
    frame.offload.segmentation = segmentation;
    let segments = finished(frame).unwrap();
    let lengths: Vec<usize> = segments.iter().map(|segment| segment.len() - 42).collect();
    assert_eq!(lengths, [100, 100, 50]);
    assert_eq!(segments[2].bytes()[38..40], [0, 58]);
    assert!(segments.iter().all(|segment| verify(segment.bytes()).is_ok() && segment.bytes()[40..42] != [0, 0]));

    let mut without = craft.frame();
    without.bytes_mut()[40..42].fill(0);
    without.offload.segmentation = segmentation;
    assert!(finished(without).unwrap().iter().all(|segment| segment.bytes()[40..42] == [0, 0]));
}

#[test]
fn segmentation_statements_that_do_not_fit() {
    let state = |craft: &FrameBuilder, kind, segment_bytes| {
        let mut frame = left_to_port(craft);
        frame.offload.segmentation = Some(Segmentation { kind, segment_bytes, header_bytes: 54 });
        frame
    };
    let tcpv4 = SegmentationKind::Tcpv4 { ecn: false };
    let craft = ipv4().tcp(TCP).payload(&[0; 3000]);
    assert!(finished(state(&craft, tcpv4, 2)).is_none(), "too many segments");
    assert!(finished(state(&craft, tcpv4, 0)).is_none());
    assert!(finished(state(&craft, SegmentationKind::Udp, 1000)).is_none());
    assert!(finished(state(&craft, SegmentationKind::Tcpv6 { ecn: false }, 1000)).is_none());
    let damaged = |at: usize, byte: u8| {
        let mut frame = state(&craft, tcpv4, 1000);
        frame.bytes_mut()[at] = byte;
        frame
    };
    assert!(finished(damaged(46, 0x40)).is_none(), "TCP header shorter than itself");
    assert!(finished(damaged(16, 0xff)).is_none(), "IP longer than the frame");
    assert!(finished(damaged(20, 0x20)).is_none(), "a fragment");
    assert_eq!(finished(state(&craft, tcpv4, 3000)).unwrap().len(), 1);
    assert_eq!(finished(state(&ipv4().tcp(TCP), tcpv4, 10)).unwrap().len(), 1, "nothing to carry");
}

proptest! {
    #[test]
    fn edits_then_completion(craft in any_craft(), edits in proptest::collection::vec((0usize..43, any::<u128>()), 0..6)) {
        if IpDatagram::innermost(&craft.build(), PacketType::ETHERNET).is_none_or(|datagram| datagram.transport.is_none()) {
            return Ok(());
        }
        let mut frame = left_to_port(&craft);
        for (field, value) in edits {
            let field = Field::ALL[field];
            let reinterprets = [Field::EthType, Field::IpProto, Field::MplsBos, Field::Icmpv6Type, Field::Icmpv6Code].contains(&field);
            if !reinterprets {
                let layers = parsed(&frame).layers;
                set_field(&mut frame, &layers, field, value);
            }
        }
        let frame = one(frame);
        prop_assert!(frame.offload.is_none());
        prop_assert_eq!(verify(frame.bytes()), Ok(()));
    }

    #[test]
    fn segments_carry_the_payload(
        payload in proptest::collection::vec(any::<u8>(), 0..4000), segment_bytes in 3u16..1500, shape in 0u8..4, pushed in 0u8..8
    ) {
        let (craft, kind) = match shape {
            0 => (ipv4().tcp(TCP), SegmentationKind::Tcpv4 { ecn: true }),
            1 => (ipv6().tcp(TCP), SegmentationKind::Tcpv6 { ecn: true }),
            2 => (ipv4().udp(1, 2), SegmentationKind::Udp),
            _ => (ipv6().udp(1, 2), SegmentationKind::Udp),
        };
        let mut frame = left_to_port(&craft.payload(&payload));
        frame.offload.segmentation = Some(Segmentation { kind, segment_bytes, header_bytes: 0 });
        let layers = parsed(&frame).layers;
        // Headers pushed on the way must not hide the packet from the port.
        match pushed {
            0 => { push_vlan(&mut frame, &layers, 0x88a8).unwrap(); }
            1 => { push_mpls(&mut frame, &layers, 0x8847).unwrap(); }
            2 => { push_pbb(&mut frame, &layers, 0x88e7).unwrap(); }
            3 => { encap_nsh(&mut frame, 1, [].into_iter()).unwrap(); }
            4 => {
                // Fails for frames with a VLAN tag.
                let _ = decap(&mut frame, &layers, PacketType::NEXT_PROTOCOL);
                encap_nsh(&mut frame, 2, [].into_iter()).unwrap();
                encap_ethernet(&mut frame).unwrap();
            }
            _ => {}
        }
        let size = WireSize::of(&frame);
        let Some(segments) = finished(frame) else {
            prop_assert!(payload.len().div_ceil(segment_bytes.into()) > MAX_SEGMENTS);
            return Ok(());
        };
        let mut carried: Vec<u8> = Vec::new();
        for segment in &segments {
            prop_assert_eq!(verify_as(segment.bytes(), segment.packet_type()), Ok(()));
            let datagram = IpDatagram::innermost(segment.bytes(), segment.packet_type()).unwrap();
            prop_assert!(datagram.whole && datagram.end == segment.len());
            let (transport, at) = datagram.transport.unwrap();
            carried.extend(&segment.bytes()[at + if transport == TransportProtocol::Tcp { 20 } else { 8 }..]);
        }
        prop_assert_eq!(carried, payload);
        prop_assert_eq!(size.packets as usize, segments.len());
        prop_assert_eq!(size.bytes, segments.iter().map(|segment| segment.len() as u64).sum::<u64>());
    }

    #[test]
    fn anything_finishes(
        bytes in proptest::collection::vec(any::<u8>(), 0..200), start in any::<u16>(), offset in any::<u16>(),
        segment_bytes in any::<u16>(), kind in 0u8..4
    ) {
        let mut frame = Frame::from_bytes(&bytes);
        frame.offload.checksum = Some(PartialChecksum { start: start % 256, offset: offset % 64 });
        let kinds = [SegmentationKind::Tcpv4 { ecn: true }, SegmentationKind::Tcpv6 { ecn: true }, SegmentationKind::Udp];
        let kind = kinds.get(usize::from(kind)).copied();
        frame.offload.segmentation = kind.map(|kind| Segmentation { kind, segment_bytes, header_bytes: start });
        prop_assert!(WireSize::of(&frame).bytes >= frame.len() as u64 || frame.offload.segmentation.is_some());
        finished(frame);
    }
}
