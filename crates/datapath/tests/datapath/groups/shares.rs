//! Distribution of flows by select groups.
use super::*;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, Ipv6Addr};
use weir_packet::craft::FrameBuilder;

/// Number of flows in a test.
const FLOWS: u32 = 6000;

/// Returns a packet of flow number `flow`.
fn packet(flow: u32) -> Vec<u8> {
    let [a, b] = [flow, flow.wrapping_mul(7)].map(|n| Ipv4Addr::from_bits(0x0a00_0000 | n & 0xff_ffff));
    FrameBuilder::ethernet(mac(2), mac(1)).ipv4(a, b).udp(1000, 2000).payload(&[1; 18]).build()
}

impl Bench {
    /// Returns a bench with a select group for all packets, with one weight for each port from 2 on.
    fn sharing(weights: &[u16]) -> Bench {
        let mut bench = Bench::controlled();
        bench.add_group(1, Select, shares(weights));
        bench.all_to_group(1);
        bench
    }

    /// Returns the port that each flow leaves by.
    fn ways(&mut self) -> Vec<u32> {
        (0..FLOWS).map(|flow| self.way(&packet(flow))).collect()
    }

    /// Returns the port that a packet leaves by, or 0 if it does not leave.
    fn way(&mut self, packet: &[u8]) -> u32 {
        let ports = self.ports_of(1, packet);
        assert!(ports.len() <= 1, "{ports:?}");
        ports.first().copied().unwrap_or(0)
    }
}

fn shares(weights: &[u16]) -> Vec<Bucket> {
    (2..).zip(weights).map(|(port, weight)| Bucket { weight: *weight, ..watching(port) }).collect()
}

fn count(ways: &[u32]) -> BTreeMap<u32, u32> {
    ways.iter().fold(BTreeMap::new(), |mut counts, port| {
        *counts.entry(*port).or_default() += 1;
        counts
    })
}

/// Returns the minimum and maximum number of flows that a share gets, exceeded in one case in a million: computed
/// from the binomial distribution, summed from its ends.
fn bounds(share: f64) -> (u32, u32) {
    let flows = f64::from(FLOWS);
    // ln of the probability of exactly k, derived from that of k - 1.
    let mut ln_p = flows * (1.0 - share).ln();
    let mut sum = 0.0;
    let (mut least, mut most) = (None, None);
    for k in 0..=FLOWS {
        sum += ln_p.exp();
        if sum >= 0.5e-6 && least.is_none() {
            least = Some(k);
        }
        if sum >= 1.0 - 0.5e-6 && most.is_none() {
            most = Some(k);
        }
        let done = f64::from(k);
        ln_p += ((flows - done) / (done + 1.0)).ln() + (share / (1.0 - share)).ln();
    }
    (least.unwrap_or(0), most.unwrap_or(FLOWS))
}

#[test]
fn the_bounds_are_those_of_the_binomial_distribution() {
    // The values are those of scipy.stats.binom.ppf.
    assert_eq!(bounds(0.5), (2811, 3189));
    assert_eq!(bounds(0.01), (26, 101));
}

#[test]
fn flows_are_shared_out_by_weight() {
    for weights in [&[1_u16, 1, 1][..], &[1, 2], &[1, 2, 3], &[65_535, 1, 6553], &[7, 0, 1], &[5]] {
        let counts = count(&Bench::sharing(weights).ways());
        let sum: u32 = weights.iter().map(|weight| u32::from(*weight)).sum();
        for (port, weight) in (2..).zip(weights) {
            let found = counts.get(&port).copied().unwrap_or(0);
            let (least, most) = match (*weight, sum - u32::from(*weight)) {
                (0, _) => (0, 0),
                (_, 0) => (FLOWS, FLOWS),
                _ => bounds(f64::from(*weight) / f64::from(sum)),
            };
            assert!((least..=most).contains(&found), "{weights:?}: port {port} has {found}, not {least} to {most}");
        }
    }
}

#[test]
fn a_flow_stays_where_it_is() {
    let mut bench = Bench::sharing(&[1, 2, 3]);
    let before = bench.ways();
    assert_eq!(bench.ways(), before);
    // Neither varying header fields of a flow nor the input port count: IP header fields other than addresses and
    // protocol, payload.
    let mut other = packet(5);
    other[15] = 0xb8;
    other[22] = 3;
    let last = other.len() - 1;
    other[last] ^= 0xff;
    let way = bench.way(&packet(5));
    assert_eq!(bench.way(&other), way);
    let elsewhere = if way == 2 { 3 } else { 2 };
    assert_eq!(bench.ports_of(elsewhere, &packet(5)), [way]);
}

#[test]
fn only_the_flows_of_a_bucket_that_dies_move_and_they_come_back() {
    for weights in [[1, 1, 1], [1, 2, 3]] {
        let mut bench = Bench::sharing(&weights);
        let before = bench.ways();
        bench.link(3, false);
        let after = bench.ways();
        assert!(before.iter().zip(&after).all(|(before, after)| before == after || *before == 3));
        assert!(!after.contains(&3) && !after.contains(&0));
        // The flows that moved are distributed by weight, too.
        let moved: Vec<u32> = before.iter().zip(&after).filter(|(b, _)| **b == 3).map(|(_, a)| *a).collect();
        let part = f64::from(weights[0]) / f64::from(weights[0] + weights[2]);
        let found = f64::from(count(&moved)[&2]) / moved.len() as f64;
        let deviation = (part * (1.0 - part) / moved.len() as f64).sqrt();
        assert!((found - part).abs() < 5.0 * deviation, "{found} of {}, not {part}", moved.len());
        bench.link(3, true);
        assert_eq!(bench.ways(), before);
        bench.link(2, false);
        bench.link(3, false);
        bench.link(4, false);
        assert_eq!(count(&bench.ways()), BTreeMap::from([(0, FLOWS)]));
    }
}

#[test]
fn a_group_mod_moves_no_more_flows_than_it_must() {
    let mut bench = Bench::sharing(&[2, 2, 2]);
    let before = bench.ways();
    let moved = |bench: &mut Bench, buckets: Vec<Bucket>| -> Vec<(u32, u32)> {
        assert_eq!(bench.group(Modify, 1, Select, buckets), None);
        before.iter().copied().zip(bench.ways()).filter(|(before, after)| before != after).collect()
    };
    // Buckets in another order.
    assert_eq!(moved(&mut bench, shares(&[2, 2, 2]).into_iter().rev().collect()), []);
    // Without the first bucket.
    let gone = moved(&mut bench, shares(&[2, 2, 2]).split_off(1));
    assert!(gone.iter().all(|(before, _)| *before == 2) && gone.len() > FLOWS as usize / 4);
    // With more weight for one bucket.
    let grown = moved(&mut bench, shares(&[2, 6, 2]));
    assert!(grown.iter().all(|(_, after)| *after == 3) && grown.len() > FLOWS as usize / 6);
}

#[test]
fn equal_buckets_share_too() {
    let mut bench = Bench::controlled();
    bench.add_group(1, Select, vec![weighing(1, output(2)), weighing(1, output(2))]);
    bench.all_to_group(1);
    bench.ways();
    let [stats] = bench.group_stats(GroupId(1)).try_into().unwrap();
    let (least, most) = bounds(0.5);
    assert!(stats.buckets.iter().all(|(packets, _)| (u64::from(least)..=u64::from(most)).contains(packets)));
}

#[test]
fn every_field_that_tells_flows_apart_counts() {
    let link = || FrameBuilder::ethernet(mac(2), mac(1));
    let ipv4 = |last: u8| link().ipv4(Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, last));
    let ipv6 = |last: u16| {
        let [a, b] = [1, last].map(|last| Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, last));
        link().ipv6(a, b)
    };
    let low = |flow: u32| flow.to_be_bytes()[3];
    let short = |flow: u32| u16::try_from(flow).unwrap();
    type Make<'a> = (&'a str, Box<dyn Fn(u32) -> FrameBuilder + 'a>);
    let cases: [Make<'_>; 10] = [
        ("Ethernet source", Box::new(|flow| FrameBuilder::ethernet(mac(2), mac(u64::from(flow))))),
        ("Ethernet destination", Box::new(|flow| FrameBuilder::ethernet(mac(u64::from(flow)), mac(2)))),
        ("EtherType", Box::new(|flow| link().ether_type(0x8900 + short(flow)))),
        ("VLAN", Box::new(|flow| link().vlan(0x8100, short(flow), 0))),
        ("MPLS label", Box::new(|flow| link().mpls(flow, 0, 64))),
        ("IPv4 address", Box::new(|flow| ipv4(low(flow)))),
        ("IPv6 address", Box::new(|flow| ipv6(short(flow)))),
        ("IP protocol", Box::new(|flow| ipv4(9).ip_proto(low(flow)))),
        ("source port", Box::new(|flow| ipv4(9).udp(short(flow), 1))),
        ("destination port", Box::new(|flow| ipv6(9).udp(1, short(flow)))),
    ];
    let mut bench = Bench::sharing(&[1, 1]);
    for (name, make) in cases {
        let ways: Vec<u32> = (1..=200).map(|flow| bench.way(&make(flow).payload(&[0; 46]).build())).collect();
        let twos = ways.iter().filter(|way| **way == 2).count();
        assert!((60..=140).contains(&twos), "{name}: {twos} of 200");
    }
}

#[test]
fn fragments_of_a_datagram_stay_together() {
    let mut bench = Bench::sharing(&[1, 1, 1]);
    for flow in 0..50 {
        let mut first = packet(flow);
        first[20] |= 0x20;
        let mut last = packet(flow);
        (last[20], last[21]) = (0, 3);
        // The last fragment has data where the first has ports.
        last[34..38].copy_from_slice(&flow.wrapping_mul(0x9e37_79b9).to_be_bytes());
        assert_eq!(bench.way(&first), bench.way(&last), "{flow}");
    }
}

#[test]
fn one_choice_is_not_that_of_the_next() {
    // A second group, and a second switch, distribute flows independently of the first.
    let mut bench = Bench::controlled();
    bench.add_group(2, Select, vec![weighing(1, output(2)), weighing(1, output(3))]);
    bench.add_group(1, Select, vec![weighing(1, to_group(2)), weighing(1, output(4))]);
    bench.all_to_group(1);
    let counts = count(&bench.ways());
    let (least, most) = bounds(0.25);
    assert!((least..=most).contains(&counts[&2]) && (least..=most).contains(&counts[&3]), "{counts:?}");
    let config = weir_datapath::DatapathConfig { datapath_id: 2, ..Default::default() };
    let mut next = Bench::with(config);
    next.datapath.channel_up(next.now, CONTROLLER, weir_openflow::Version::V13);
    next.add_group(1, Select, shares(&[1, 1]));
    next.all_to_group(1);
    let here = Bench::sharing(&[1, 1]).ways();
    let same = here.iter().zip(next.ways()).filter(|(here, there)| **here == *there).count();
    let (least, most) = bounds(0.5);
    assert!((least..=most).contains(&u32::try_from(same).unwrap()), "{same}");
}
