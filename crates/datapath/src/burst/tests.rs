//! Bursts of every mixture of shapes, one after the other in the same memory: each packet's key equals the result of
//! parsing it alone.
use super::*;
use proptest::prelude::*;
use weir_memory::PortableSimd;
use weir_packet::craft::{FrameBuilder, TcpHeader};
use weir_packet::{MacAddr, PacketType};

/// Returns a frame of one of a few shapes.
fn frame(shape: usize, value: u8) -> Frame {
    let link = || FrameBuilder::ethernet(MacAddr([value; 6]), MacAddr([2; 6]));
    let ipv4 = |craft: FrameBuilder| craft.ipv4([10, 0, 0, value].into(), [10, 0, 1, value].into());
    let ipv6 = |craft: FrameBuilder| craft.ipv6((u128::MAX - u128::from(value)).into(), u128::MAX.into());
    let tcp = TcpHeader { flags: value, ..TcpHeader::default() };
    let here = (MacAddr([value; 6]), [10, 0, 0, value].into());
    let mut frame = match shape {
        0 => ipv4(link()).udp(value.into(), 2).frame(),
        1 => ipv4(link().vlan(0x8100, value.into(), 1)).tcp(tcp).frame(),
        2 => ipv6(link()).udp(value.into(), 2).frame(),
        3 => ipv6(link().vlan(0x8100, value.into(), 1)).tcp(tcp).frame(),
        4 => link().mpls(value.into(), 1, 64).frame(),
        5 => ipv4(link()).icmp(value, 0, [0; 4]).frame(),
        6 => link().arp(1, here, here).frame(),
        7 => ipv6(link()).icmp(135, 0, [0; 4]).payload(&[value; 24]).frame(),
        8 => ipv6(link()).ip_proto(value).frame(),
        9 => Frame::from_bytes(&[value; 13]),
        _ => ipv4(link()).udp(value.into(), 3).frame(),
    };
    match shape {
        10 => frame.tunnel.id = value.into(),
        11 => frame.set_packet_type(PacketType::of_eth_type(0x0800)),
        _ => {}
    }
    frame
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_a_packet_leaves_behind_no_other_finds(
        bursts in proptest::collection::vec(proptest::collection::vec((0..12_usize, any::<u8>(), any::<bool>()), 1..=MAX_BURST), 1..12)
    ) {
        let mut burst = BurstState::new(crate::VerdictCacheMode::Off);
        for shapes in bursts {
            let frames: Vec<Frame> = shapes.iter().map(|(shape, value, _)| frame(*shape, *value)).collect();
            let packets = burst.parse(PortableSimd, &frames, PortNo(7));
            for (lane, frame) in frames.iter().enumerate() {
                let expected = ParsedHeaders::of(frame, PortNo(7)).map(|mut parsed| {
                    parsed.key.set(Field::ActsetOutput, PortNo::UNSET.0.into());
                    parsed
                });
                prop_assert_eq!(packets.has(lane), expected.is_ok());
                if let Ok(expected) = expected {
                    prop_assert_eq!(burst.parsed[lane], expected, "{:?}", frame);
                }
            }
            // Some packets take the general path, where any data may be written.
            for (lane, _) in shapes.iter().enumerate().filter(|(_, shape)| shape.2) {
                burst.parsed[lane].key.words.fill(u64::MAX);
                burst.mark_stale(lane);
            }
        }
    }
}
