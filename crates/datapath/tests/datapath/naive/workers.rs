//! Compares two concurrent workers with the engine's own thread: random entries, groups and meters, including entries
//! that punt, learn or resubmit. Each burst must give the same frames and messages, and all counters must be equal at
//! the end.
use super::generate::*;
use crate::bench::*;
use proptest::prelude::*;
use weir_datapath::{DatapathOutput, Worker};
use weir_openflow::model::group::{GroupCommand, GroupKind, GroupMod};
use weir_openflow::model::meter::{Band, BandKind, MeterCommand, MeterMod, flags};
use weir_openflow::model::multipart::{FlowRequest, ReplyBody, RequestBody};
use weir_openflow::model::{Action, FlowMod, GroupId, Instruction, MeterId, PortNo};
use weir_openflow::{Body, Version};
use weir_packet::Frame;

/// Generates entries of all kinds, some with actions that the plain interpreter does not have.
fn entries() -> impl Strategy<Value = Vec<FlowMod>> {
    let more = prop_oneof![
        6 => Just(None),
        1 => Just(Some(Action::output(PortNo::CONTROLLER))),
        1 => Just(Some(Action::output(PortNo::NORMAL))),
        1 => Just(Some(Action::output(PortNo::ALL))),
        1 => Just(Some(Action::output(PortNo::IN_PORT))),
        1 => Just(Some(Action::Meter(MeterId(1)))),
    ];
    let meter = proptest::option::weighted(0.3, (1..3_u32).prop_map(|meter| Instruction::Meter(MeterId(meter))));
    let entry = (flow_mod(), more, meter).prop_map(|(mut flow, more, meter)| {
        for instruction in &mut flow.instructions {
            if let Instruction::ApplyActions(actions) = instruction {
                actions.extend(more.clone());
            }
        }
        flow.instructions.extend(meter);
        flow
    });
    proptest::collection::vec(entry, 1..20)
}

fn bench(groups: &[GroupMod], entries: &[FlowMod], has_old: bool) -> Bench {
    let mut bench = Bench::controlled();
    if has_old {
        bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
    }
    for (meter, rate) in [(1, 3), (2, 20)] {
        let bands = vec![Band { rate, burst_size: rate, kind: BandKind::Drop }];
        let meter =
            MeterMod { command: MeterCommand::Add, flags: flags::PKTPS | flags::BURST, meter: MeterId(meter), bands };
        assert_eq!(bench.error_of(CONTROLLER, Body::MeterMod(meter)), None);
    }
    for group in groups {
        bench.datapath.group_mod(bench.now, group, &mut bench.out).unwrap();
    }
    for entry in entries {
        // Both benches refuse the same few entries.
        let _ = bench.flow_mod(entry);
    }
    bench.out.messages.clear();
    bench
}

/// Returns the output of a burst: frames by port in no order, because punted packets may leave later, and messages in
/// order.
fn gave(out: &mut DatapathOutput) -> (Vec<(PortNo, Vec<u8>)>, String) {
    let lists = out.frames.drain(..);
    let mut frames: Vec<(PortNo, Vec<u8>)> =
        lists.flat_map(|(port, frames)| frames.into_iter().map(move |frame| (port, frame.bytes().to_vec()))).collect();
    frames.sort();
    (frames, format!("{:?}", std::mem::take(&mut out.messages)))
}

/// Returns all counters.
fn counted(bench: &mut Bench, workers: &[Worker]) -> (Vec<ReplyBody>, weir_datapath::Drops) {
    let asked = [
        RequestBody::Flow(FlowRequest::all()),
        RequestBody::Group(GroupId::ALL),
        RequestBody::Meter(MeterId::ALL),
        RequestBody::Table,
    ];
    let told = asked.into_iter().flat_map(|body| bench.multipart(CONTROLLER, body).unwrap()).collect();
    let mut drops = bench.datapath.drops();
    for worker in workers {
        worker.drops().counted().into_iter().for_each(|(reason, count)| drops.count(reason, count));
    }
    (told, drops)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn workers_agree_with_one_thread(
        groups in groups(),
        first in to_group(),
        mut entries in entries(),
        has_old in any::<bool>(),
        bursts in proptest::collection::vec((1..=PORTS, proptest::collection::vec(packet(), 1..65)), 1..6),
    ) {
        entries.push(first);
        let [mut alone, mut shared] = [(); 2].map(|()| bench(&groups, &entries, has_old));
        let mut workers = [shared.datapath.add_worker(), shared.datapath.add_worker()];
        for (number, (in_port, packets)) in bursts.iter().enumerate() {
            let mut frames: Vec<Frame> = packets.iter().map(|(_, bytes)| Frame::from_bytes(bytes)).collect();
            let (mut burst, in_port) = (frames.clone(), PortNo(*in_port));
            alone.datapath.process(alone.now, in_port, &mut frames, &mut alone.pool, &mut alone.out);
            let (worker, now) = (&mut workers[number % 2], shared.now);
            if !shared.datapath.forward(worker, now, in_port, &mut burst, &mut shared.pool, &mut shared.out) {
                shared.datapath.process_for(worker, now, in_port, &mut burst, &mut shared.pool, &mut shared.out);
            }
            prop_assert!(burst.is_empty());
            prop_assert_eq!(gave(&mut shared.out), gave(&mut alone.out));
        }
        prop_assert_eq!(counted(&mut shared, &workers), counted(&mut alone, &[]));
    }
}

/// Covers what workers do with shared access to the tables.
#[test]
fn groups_meters_and_copies_need_nothing_alone() {
    let group = |number, kind: GroupKind, buckets: &[Vec<Action>]| {
        use weir_openflow::model::group::{Bucket, BucketId};
        let bucket = |actions: &Vec<Action>| Bucket {
            weight: kind.default_weight(),
            watch_port: if kind == GroupKind::FastFailover { PortNo(2) } else { PortNo::ANY },
            ..Bucket::new(BucketId(0), actions.clone())
        };
        let buckets = (0..).zip(buckets).map(|(id, actions)| Bucket { id: BucketId(id), ..bucket(actions) }).collect();
        let (id, command_bucket) = (GroupId(number), BucketId::ALL);
        GroupMod { command: GroupCommand::Add, kind, group: id, command_bucket, buckets, properties: vec![] }
    };
    let both = [output(2), output(3)];
    let groups = [
        group(1, GroupKind::All, &both),
        group(2, GroupKind::Select, &both),
        group(3, GroupKind::Indirect, &both[..1]),
        group(4, GroupKind::FastFailover, &both),
    ];
    let to = |number| vec![Action::Group(GroupId(number))];
    for (actions, sent) in [
        (to(1), 64),
        (to(2), 32),
        (to(3), 32),
        (to(4), 32),
        (vec![Action::Meter(MeterId(2)), Action::output(PortNo(2))], 20),
        ([output(2), vec![Action::PushVlan(0x8100)], output(3), output(4)].concat(), 96),
    ] {
        let entry = FlowMod::add(1, weir_openflow::model::Match::any(), apply(actions));
        let mut bench = bench(&groups, std::slice::from_ref(&entry), false);
        let mut worker = bench.datapath.add_worker();
        let mut burst: Vec<Frame> = (0..32).map(|_| Frame::from_bytes(&frame())).collect();
        let Bench { datapath, pool, out, now } = &mut bench;
        assert!(datapath.forward(&mut worker, *now, PortNo(1), &mut burst, pool, out), "{entry:?}");
        assert_eq!(bench.sent().len(), sent, "{entry:?}");
    }
}
