//! Compares entries that edit and output, which bursts run as compiled edits, with equivalent entries in two tables,
//! which take the general path.
use crate::bench::*;
use crate::frames::frame;
use proptest::prelude::*;
use weir_datapath::{Datapath, DatapathOutput};
use weir_openflow::model::{Action, FlowMod, Instruction, Match, PortNo, TableId};
use weir_packet::{Field, Frame, FramePool, MacAddr};

fn edits() -> impl Strategy<Value = Vec<Action>> {
    let set = |field, value| Action::SetField { field, value };
    let edit = prop_oneof![
        Just(Action::set_mac(Field::EthSrc, mac(9))),
        Just(Action::set_mac(Field::EthDst, MacAddr([0xff; 6]))),
        Just(Action::DecNwTtl),
        Just(Action::PopVlan),
        Just(Action::SetQueue(3)),
        prop::sample::select(vec![0x8100, 0x88a8]).prop_map(Action::PushVlan),
    ];
    // Edits that need a tag or an IPv4 header follow a push, or a match on that header.
    let tagged = prop_oneof![Just(set(Field::VlanVid, 0x1007)), Just(set(Field::VlanPcp, 5)), Just(Action::PopVlan)];
    let ipv4 =
        prop_oneof![Just(set(Field::Ipv4Dst, 0x0a00_0063)), Just(set(Field::IpDscp, 46)), Just(Action::DecNwTtl)];
    let after_push = proptest::collection::vec(tagged, 0..2).prop_map(|mut list| {
        list.insert(0, Action::PushVlan(0x8100));
        list
    });
    (proptest::collection::vec(edit, 0..4), after_push, proptest::collection::vec(ipv4, 0..3), any::<[bool; 2]>())
        .prop_map(|(mut list, tagged, ipv4, with)| {
            list.extend(tagged.into_iter().filter(|_| with[0]));
            list.splice(0..0, ipv4.into_iter().filter(|_| with[1]));
            list
        })
}

fn packets() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let tags = prop::sample::select(vec!["", "vlan 5 pcp 1 / ", "vlan 5 / vlan 6 / "]);
    let many = "vlan 1 / ".repeat(7);
    let network = prop::sample::select(vec![
        "ipv4 10.0.0.1>10.0.0.2 / udp 1>2".to_owned(),
        "ipv4 10.0.0.1>10.0.0.2 ttl 1 / udp 1>2".to_owned(),
        "ipv4 10.0.0.1>10.0.0.2 ttl 2 / tcp 1>2".to_owned(),
        "ipv6 fd00::1>fd00::2 ttl 1 / udp 1>2".to_owned(),
        "ipv6 fd00::1>fd00::2 / tcp 1>2".to_owned(),
        "type 88b5".to_owned(),
        format!("{many}ipv4 10.0.0.1>10.0.0.2 / udp 1>2"),
    ]);
    let packet = (1..3, tags, network).prop_map(|(to, tags, network)| frame(&format!("eth 7>{to} / {tags}{network}")));
    proptest::collection::vec(packet, 1..70)
}

/// Bytes of a frame, and its queue.
type Sent = (Vec<u8>, u32);

/// Returns the frames that left, in order for each port.
fn left(out: &mut DatapathOutput) -> Vec<(PortNo, Vec<Sent>)> {
    let lists = out.frames.drain(..).filter(|(_, frames)| !frames.is_empty());
    let told = |frames: Vec<Frame>| frames.iter().map(|frame| (frame.bytes().to_vec(), frame.queue)).collect();
    let mut left: Vec<_> = lists.map(|(port, frames)| (port, told(frames))).collect();
    left.sort_by_key(|(port, _)| *port);
    left
}

/// Adds entries by destination that edit and output, in one table or in two.
fn fill(datapath: &mut Datapath, now: weir_units::Instant, lists: &[Vec<Action>; 2], in_two: bool) {
    for (number, list) in (1..).zip(lists) {
        let output = Action::output(PortNo(u32::try_from(number).unwrap() + 1));
        let needs_ipv4 = list.iter().any(|action| {
            matches!(action, Action::SetField { field: Field::Ipv4Dst | Field::IpDscp, .. } | Action::DecNwTtl)
        });
        let to = Match::any().with(Field::EthDst, mac(number).to_bits());
        let kinds: &[u16] = if needs_ipv4 { &[0x0800, 0x86dd] } else { &[0] };
        for kind in kinds {
            let matching = if *kind == 0 { to.clone() } else { to.clone().with(Field::EthType, *kind) };
            let has_tag = list.iter().any(|action| matches!(action, Action::PopVlan));
            let matching =
                if has_tag { matching.with_masked(Field::VlanVid, 0x1000_u16, 0x1000_u16) } else { matching };
            let instructions = if in_two {
                let apply = Instruction::ApplyActions(list.clone());
                let write = Instruction::WriteMetadata { metadata: number, mask: 3 };
                vec![apply, write, Instruction::GotoTable(TableId(1))]
            } else {
                vec![Instruction::ApplyActions([&list[..], std::slice::from_ref(&output)].concat())]
            };
            // Lists that do not fit every packet are refused; then both benches lack the entry.
            let _ = datapath.flow_mod(now, &FlowMod::add(5, matching, instructions));
        }
        let next = Match::any().with(Field::Metadata, number);
        let second = FlowMod::add(5, next, vec![Instruction::ApplyActions(vec![output])]);
        datapath.flow_mod(now, &FlowMod { table: TableId(1), ..second }).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edits_in_short_do_what_they_do_at_length(first in edits(), second in edits(), packets in packets(), in_port in 1..4_u32) {
        let lists = [first, second];
        let (mut short, mut long, mut shared) = (Bench::new(), Bench::new(), Bench::new());
        for (bench, in_two) in [(&mut short, false), (&mut long, true), (&mut shared, false)] {
            fill(&mut bench.datapath, bench.now, &lists, in_two);
        }
        let frames: Vec<Frame> = packets.iter().map(|bytes| Frame::from_bytes(bytes)).collect();
        for bench in [&mut short, &mut long] {
            bench.datapath.process(bench.now, PortNo(in_port), &mut frames.clone(), &mut bench.pool, &mut bench.out);
        }
        let mut worker = shared.datapath.add_worker();
        for burst in frames.chunks(64) {
            let (burst, pool) = (&mut burst.to_vec(), &mut shared.pool);
            if !shared.datapath.forward(&mut worker, shared.now, PortNo(in_port), burst, pool, &mut shared.out) {
                shared.datapath.process_for(&mut worker, shared.now, PortNo(in_port), burst, pool, &mut shared.out);
            }
            prop_assert!(burst.is_empty());
        }
        let expected = left(&mut long.out);
        prop_assert_eq!(&left(&mut short.out), &expected);
        prop_assert_eq!(&left(&mut shared.out), &expected);
        let mut dropped = shared.datapath.drops();
        worker.drops().counted().into_iter().for_each(|(reason, count)| dropped.count(reason, count));
        prop_assert_eq!(short.datapath.drops(), long.datapath.drops());
        prop_assert_eq!(dropped, long.datapath.drops());
    }
}

#[test]
fn a_worker_edits_without_the_datapath_for_itself() {
    let mut bench = Bench::new();
    let ipv4 = Match::any().with(Field::EthType, 0x0800_u16);
    let routed = vec![Action::set_mac(Field::EthDst, mac(3)), Action::DecNwTtl, Action::output(PortNo(2))];
    bench.add(1, ipv4, routed);
    let mut worker = bench.datapath.add_worker();
    let burst = |ttl: [u8; 3]| -> Vec<Frame> {
        ttl.map(|ttl| Frame::from_bytes(&frame(&format!("eth 1>2 / ipv4 10.0.0.1>10.0.0.2 ttl {ttl} / udp 1>2"))))
            .into()
    };
    let (pool, out) = (&mut FramePool::default(), &mut DatapathOutput::default());
    assert!(bench.datapath.forward(&mut worker, bench.now, PortNo(1), &mut burst([64, 2, 3]), pool, out));
    let sent = left(out);
    assert_eq!(sent[0].1.iter().map(|(bytes, _)| bytes[22]).collect::<Vec<_>>(), [63, 1, 2]);
    // A packet with an expired TTL is punted: the others leave, and it is deferred until `process_for` has exclusive
    // access.
    let mut frames = burst([64, 1, 3]);
    assert!(!bench.datapath.forward(&mut worker, bench.now, PortNo(1), &mut frames, pool, out));
    assert!(frames.is_empty());
    assert_eq!(left(out)[0].1.iter().map(|(bytes, _)| bytes[22]).collect::<Vec<_>>(), [63, 2]);
    assert_eq!(bench.datapath.drops().ttl_expired, 0);
    bench.datapath.process_for(&mut worker, bench.now, PortNo(1), &mut frames, pool, out);
    assert_eq!(bench.datapath.drops().ttl_expired, 1);
}
