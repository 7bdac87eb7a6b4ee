//! Closed forms of the literature, with exact values.
use super::*;
use weir_vnet::admission::BoundMethod::{PayBurstsOnce, SumOfHops};
use weir_vnet::admission::ETHERNET_OVERHEAD;
use weir_vnet::admission::bound::{ArrivalCurve, MAX_PS, PS_PER_S, ServiceCurve};

const MS: u128 = PS_PER_S / 1000;

/// Le Boudec and Thiran (2001), section 1.4: one rate-latency server, then two in a row.
#[test]
fn three_bounds_and_two_servers_in_a_row() {
    let arrivals = ArrivalCurve { rate: 1_000_000, burst: 20_000 };
    let first = ServiceCurve { rate: 4_000_000, latency_ps: 2 * MS };
    let second = ServiceCurve { rate: 2_000_000, latency_ps: 3 * MS };
    assert_eq!(first.delay_ps(arrivals), Some(7 * MS), "T + b/R");
    assert_eq!(first.backlog(arrivals), Some(22_000), "b + r T");
    let between = first.output(arrivals).unwrap();
    assert_eq!(between, ArrivalCurve { rate: 1_000_000, burst: 22_000 });
    assert_eq!(second.delay_ps(between), Some(14 * MS), "the burst is paid again, and it is larger");
    assert_eq!(first.then(second), ServiceCurve { rate: 2_000_000, latency_ps: 5 * MS });
    assert_eq!(first.then(second).delay_ps(arrivals), Some(15 * MS), "b / min(R) + T1 + T2, less than 7 + 14");
    assert_eq!(first.packetised(12_000).latency_ps, 5 * MS, "T + l/R");
}

#[test]
fn what_others_leave() {
    let server = ServiceCurve { rate: 10_000_000, latency_ps: MS };
    let others = ArrivalCurve { rate: 6_000_000, burst: 10_000 };
    let blind = server.left_over(others, Multiplexing::Arbitrary).unwrap();
    assert_eq!(blind, ServiceCurve { rate: 4_000_000, latency_ps: 5 * MS }, "T + (b + r T) / (C - r)");
    let fifo = server.left_over(others, Multiplexing::Fifo).unwrap();
    assert_eq!(fifo, ServiceCurve { rate: 4_000_000, latency_ps: 2 * MS }, "T + b / C");
    let full = ArrivalCurve { rate: 10_000_000, burst: 0 };
    assert_eq!(server.left_over(full, Multiplexing::Fifo), None);
    assert_eq!(fifo.delay_ps(full), None);
    let enormous = ArrivalCurve { rate: 1, burst: u128::MAX };
    assert_eq!(server.delay_ps(enormous.plus(enormous)), Some(MAX_PS));
    assert_eq!(ServiceCurve { rate: 3, latency_ps: 0 }.delay_ps(ArrivalCurve { rate: 0, burst: 1 }).unwrap() % 10, 4);
}

/// A virtual link over two links of 10 Mbit/s, and another one on each of them, at 4 Mbit/s with bursts of 24 kbit.
#[test]
fn two_links_with_others_on_each() {
    let request = |multiplexing| {
        let mut admission = admission(&["a", "b"], multiplexing);
        admission.request(demand("on a", &["a"], mbps(4), 2)).unwrap();
        admission.request(demand("on b", &["b"], mbps(4), 2)).unwrap();
        admission.request(demand("over both", &["a", "b"], mbps(1), 1)).unwrap()
    };
    // Of each link 6 Mbit/s are left after 24/6 = 4 ms. The packet takes 2 ms, at the first one as a packet and at the
    // second one as the burst.
    let blind = request(Multiplexing::Arbitrary);
    assert_eq!((blind.delay, blind.method), (12_000 * US, PayBurstsOnce));
    // Jitter of 6 - 1.2 ms makes the burst 16.8 kbit.
    assert_eq!(blind.hops, [6000 * US, 6800 * US]);
    // (12 + 24) / 10 ms; then jitter of 3.6 - 1.2 ms makes the burst 14.4 kbit.
    let fifo = request(Multiplexing::Fifo);
    assert_eq!((fifo.delay, fifo.method), (7440 * US, SumOfHops));
    assert_eq!(fifo.hops, [3600 * US, 3840 * US]);
}

/// A burst of many packets is paid once, even by FIFO multiplexing.
#[test]
fn large_bursts_are_paid_once() {
    for multiplexing in [Multiplexing::Fifo, Multiplexing::Arbitrary] {
        let mut admission = admission(&["a", "b", "c"], multiplexing);
        let bound = admission.request(demand("alone", &["a", "b", "c"], mbps(1), 10)).unwrap();
        assert_eq!((bound.delay, bound.method), (14_400 * US, PayBurstsOnce), "10 packets, and 1 for each more hop");
        // A hop's jitter is 10.8 ms at the first one.
        assert_eq!(bound.hops[..2], [12_000 * US, 13_080 * US]);
    }
}

#[test]
fn each_part_of_a_hop_counts() {
    let link = QueuedLink {
        propagation: 500 * US,
        switch_latency: 10 * US,
        other_packet: ByteSize(976),
        ..QueuedLink::new("a", mbps(100))
    };
    let mut admission = LinkAdmission::new(ETHERNET_OVERHEAD, [link]).unwrap();
    let packet = ByteSize(226);
    let one = LinkDemand::new("one", ["a"], mbps(10)).with_packets(packet, packet).with_burst(ByteSize(452));
    // Two packets of 250 bytes and one of 1000 on the line: 40 and 80 us.
    assert_eq!(admission.request(one.clone()).unwrap().delay, (500 + 10 + 80 + 40) * US);
    // If packets can be shorter, there may be more of them: 500 x (113 + 24) / 113 / (250 / 226).
    admission.release("one").unwrap();
    let shorter = one.with_packets(ByteSize(113), packet);
    let bound = admission.request(shorter).unwrap().delay;
    assert_eq!(bound, Duration::from_nanos(500_000 + 10_000 + 80_000 + 43_840));
}
