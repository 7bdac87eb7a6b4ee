//! Rate limits of packet-ins.
use crate::bench::*;
use std::time::Duration;
use weir_datapath::{DatapathConfig, DropReason, PacketInLimit};
use weir_openflow::Version;
use weir_openflow::model::{Action, Match};

fn limited(per_second: u32, burst: Option<u32>) -> Bench {
    let limit = Some(PacketInLimit { per_second, burst });
    let mut bench = Bench::with(DatapathConfig { packet_in_limit: limit, ..DatapathConfig::default() });
    bench.datapath.channel_up(bench.now, CONTROLLER, Version::V13);
    bench.add(1, Match::any(), vec![Action::to_controller()]);
    bench
}

#[test]
fn a_storm_reaches_a_controller_at_its_rate_and_every_drop_is_counted() {
    let mut bench = limited(100, Some(20));
    let mut told = 0;
    for _ in 0..10_000 {
        bench.receive(1, &frame());
        told += bench.packet_ins(CONTROLLER).len() as u64;
        bench.wait(Duration::from_millis(1));
    }
    // Ten seconds at a hundred per second, and the burst.
    assert!((1020..=1021).contains(&told), "{told}");
    let dropped: u64 = bench
        .out
        .limited
        .drain(..)
        .map(|(channel, count)| {
            assert_eq!(channel, CONTROLLER);
            count
        })
        .sum();
    assert_eq!(told + dropped, 10_000);
    assert_eq!(bench.datapath.drops().counted(), [(DropReason::PacketInRate, dropped)]);
}

#[test]
fn each_channel_has_a_limit_of_its_own() {
    let mut bench = limited(10, Some(3));
    for _ in 0..5 {
        bench.receive(1, &frame());
    }
    bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
    for _ in 0..4 {
        bench.receive(1, &frame());
    }
    assert_eq!((bench.packet_ins(CONTROLLER).len(), bench.packet_ins(OLD_CONTROLLER).len()), (3, 3));
    // A packet that one of the channels got is not dropped.
    assert_eq!(bench.datapath.drops().packet_in_rate, 2 + 1);
    let of = |wanted| bench.out.limited.iter().filter(|(channel, _)| *channel == wanted).map(|(_, n)| n).sum::<u64>();
    assert_eq!((of(CONTROLLER), of(OLD_CONTROLLER)), (6, 1));
}

#[test]
fn without_a_burst_a_second_of_the_rate_is_let_through() {
    let mut bench = limited(5, None);
    (0..100).for_each(|_| drop(bench.receive(1, &frame())));
    assert_eq!(bench.packet_ins(CONTROLLER).len(), 5);
}

#[test]
fn there_is_no_limit_unless_one_is_set() {
    let mut bench = Bench::controlled();
    bench.add(1, Match::any(), vec![Action::to_controller()]);
    (0..5000).for_each(|_| drop(bench.receive(1, &frame())));
    assert_eq!((bench.packet_ins(CONTROLLER).len(), bench.datapath.drops().total()), (5000, 0));
}
