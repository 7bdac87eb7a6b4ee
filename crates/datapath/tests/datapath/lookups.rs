//! Adaptive lookup finds the same entries as linear lookup.
#![allow(clippy::cast_possible_truncation, reason = "the numbers drawn are small")]
use crate::bench::*;
use std::net::Ipv4Addr;
use weir_datapath::{DatapathConfig, LookupMethod};
use weir_openflow::model::{FlowMod, Match, PortNo};
use weir_packet::Field;
use weir_packet::craft::FrameBuilder;
use weir_packet::field::eth_type;
use weir_testing::rules::SeededRng;

/// Returns two benches with the same entries, one for each lookup method.
fn both(entries: &[FlowMod]) -> [Bench; 2] {
    [LookupMethod::Adaptive, LookupMethod::Linear].map(|lookup| {
        let mut bench = Bench::with(DatapathConfig { lookup, ..DatapathConfig::default() });
        for flow in entries {
            bench.flow_mod(flow).unwrap();
        }
        bench
    })
}

/// Generates entries on prefixes of both addresses and on a port, of any kind up to the richest of `kinds`. Most
/// prefixes are a few bits long so that many overlap. With `kinds` of 1 the entries are routes.
fn entries(draw: &mut SeededRng, kinds: usize, count: usize) -> Vec<FlowMod> {
    let prefix = |draw: &mut SeededRng| {
        let length = draw.below(13);
        let mask = u32::MAX.checked_shl(32 - length as u32).unwrap_or(0);
        (address(draw) & mask, mask)
    };
    (0..count)
        .map(|_| {
            let kind = draw.below(kinds);
            let ipv4 = Match::any().with(Field::EthType, eth_type::IPV4);
            let (value, mask) = prefix(draw);
            let mut matching = ipv4.with_masked(Field::Ipv4Dst, value, mask);
            if kind > 0 {
                let (value, mask) = prefix(draw);
                matching = matching.with_masked(Field::Ipv4Src, value, mask);
            }
            if kind > 1 {
                matching = matching.with(Field::IpProto, 17_u8).with(Field::UdpDst, draw.below(4) as u16);
            }
            // With equal priorities either entry may win. So priorities of routes differ by length, others by chance.
            let priority = if kinds == 1 { mask.count_ones() as u16 } else { draw.below(60_000) as u16 };
            FlowMod::add(priority, matching, apply(output(2 + draw.below(3) as u32)))
        })
        .collect()
}

/// Draws from few values, so that packets match entries.
fn address(draw: &mut SeededRng) -> u32 {
    (draw.below(16) as u32) << 28 | (draw.below(256) as u32) << 20 | draw.below(4) as u32
}

fn agree(kinds: usize, counts: &[usize]) {
    let mut draw = SeededRng(0x5eed + kinds as u64);
    for count in counts {
        let mut entries = entries(&mut draw, kinds, *count);
        let mut seen = std::collections::HashSet::new();
        entries.retain(|flow| kinds == 1 || seen.insert(flow.priority));
        let [mut fast, mut reference] = both(&entries);
        for round in 0..2 {
            for _ in 0..300 {
                let [source, destination] = [address(&mut draw), address(&mut draw)].map(Ipv4Addr::from_bits);
                let frame = FrameBuilder::ethernet(mac(2), mac(1)).ipv4(source, destination);
                let frame = frame.udp(7, draw.below(5) as u16).payload(&[0; 18]).build();
                let found: [Vec<(PortNo, Vec<u8>)>; 2] =
                    [&mut fast, &mut reference].map(|bench| bench.receive(1, &frame));
                assert_eq!(found[0], found[1], "{count} entries, round {round}: {source} to {destination}");
            }
            // The comparison also runs with a third of the entries removed.
            for flow in entries.iter().step_by(3) {
                let delete = FlowMod { command: weir_openflow::model::FlowCommand::DeleteStrict, ..flow.clone() };
                fast.flow_mod(&delete).unwrap();
                reference.flow_mod(&delete).unwrap();
            }
        }
    }
}

#[test]
fn routes_agree() {
    agree(1, &[3, 40, 600]);
}

#[test]
fn two_prefixes_agree() {
    agree(2, &[5, 40, 600]);
}

#[test]
fn prefixes_and_ports_agree() {
    agree(3, &[5, 40, 600]);
}
