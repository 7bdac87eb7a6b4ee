//! Queues: the choice of a packet's queue, and replies to controllers about queues.
use crate::bench::*;
use weir_datapath::{PortQueue, PortQueues};
use weir_openflow::model::error::{BadAction, QueueOpFailed};
use weir_openflow::model::multipart::{ReplyBody, RequestBody};
use weir_openflow::model::nicira::NxAction;
use weir_openflow::model::queue::{ALL_QUEUES, QueueConfig, QueueProperty, QueueStats};
use weir_openflow::model::{Action, ErrorType, FlowMod, Instruction, Match, PacketOut, PortNo};
use weir_openflow::{Body, Message, Version};
use weir_packet::{Field, Frame};
use weir_units::{Bps, Instant};

/// Returns the ports and queues that a packet received on port 1 leaves by, ordered by port.
fn queues_of(bench: &mut Bench) -> Vec<(u32, u32)> {
    let mut frames = vec![Frame::from_bytes(&frame())];
    bench.datapath.process(bench.now, PortNo(1), &mut frames, &mut bench.pool, &mut bench.out);
    left(bench)
}

fn left(bench: &mut Bench) -> Vec<(u32, u32)> {
    let lists = bench.out.frames.drain(..);
    let mut left: Vec<_> =
        lists.flat_map(|(port, frames)| frames.into_iter().map(move |f| (port.0, f.queue))).collect();
    left.sort_unstable();
    left
}

fn enqueue(port: u32, queue: u32) -> Action {
    Action::Enqueue { port: PortNo(port), queue }
}

#[test]
fn a_queue_is_chosen_until_another_is() {
    let mut bench = Bench::new();
    let set = Action::set_mac(Field::EthDst, mac(9));
    let actions =
        [output(2), vec![Action::SetQueue(5)], output(3), vec![set], output(4), vec![Action::SetQueue(6)]].concat();
    bench.add(1, Match::any(), actions);
    assert_eq!(queues_of(&mut bench), [(2, 0), (3, 5), (4, 5)]);
    bench.add(1, Match::any(), vec![Action::SetQueue(7), Action::output(PortNo::FLOOD)]);
    assert_eq!(queues_of(&mut bench), [(2, 7), (3, 7), (4, 7)]);
    let pop = NxAction::PopQueue.into_action();
    bench.add(1, Match::any(), [vec![Action::SetQueue(5)], output(2), vec![pop], output(3)].concat());
    assert_eq!(queues_of(&mut bench), [(2, 5), (3, 0)]);
}

#[test]
fn enqueue_is_for_one_output() {
    let mut bench = Bench::controlled_v10();
    bench.add(1, Match::any(), [vec![enqueue(2, 1), enqueue(3, 2)], output(4)].concat());
    assert_eq!(queues_of(&mut bench), [(2, 1), (3, 2), (4, 0)]);
    bench.add(1, Match::any(), vec![enqueue(2, 9)]);
    assert_eq!(queues_of(&mut bench), [(2, 9)]);
}

#[test]
fn the_action_set_chooses_before_it_outputs() {
    let mut bench = Bench::new();
    let write = |queue| Instruction::WriteActions([output(2), vec![Action::SetQueue(queue)]].concat());
    bench.flow_mod(&FlowMod::add(1, Match::any(), vec![write(3)])).unwrap();
    assert_eq!(queues_of(&mut bench), [(2, 3)]);
}

#[test]
fn a_packet_that_was_kept_begins_anew() {
    let mut bench = Bench::controlled();
    let punt = Action::Output { port: PortNo::CONTROLLER, max_len: 64 };
    bench.add(1, Match::any(), vec![Action::SetQueue(5), punt]);
    assert_eq!(queues_of(&mut bench), []);
    let buffer_id = bench.packet_ins(CONTROLLER)[0].buffer_id;
    let out = PacketOut {
        buffer_id,
        in_port: PortNo(1),
        matching: Match::any(),
        actions: output(2),
        data: Vec::new().into(),
    };
    let message = Message { xid: 1, body: Body::PacketOut(out) };
    bench.datapath.handle(bench.now, CONTROLLER, message, &mut bench.pool, &mut bench.out);
    assert_eq!(left(&mut bench), [(2, 0)]);
}

#[test]
fn wrong_queues_are_refused() {
    let mut bench = Bench::controlled();
    bench.datapath.channel_up(bench.now, OLD_CONTROLLER, Version::V10);
    for action in [Action::SetQueue(ALL_QUEUES), enqueue(2, ALL_QUEUES)] {
        let error = bench.flow_mod(&FlowMod::add(1, Match::any(), apply(vec![action])));
        assert_eq!(error, Err(ErrorType::BadAction(BadAction::BadQueue)));
    }
    let flood = vec![Action::Enqueue { port: PortNo::FLOOD, queue: 1 }];
    let error = bench.error_of(OLD_CONTROLLER, Body::FlowMod(FlowMod::add(1, Match::any(), apply(flood))));
    assert_eq!(error, Some(ErrorType::BadAction(BadAction::BadOutPort)));
}

#[test]
fn a_trace_names_the_queue() {
    let mut bench = Bench::new();
    bench.add(1, Match::any(), [vec![Action::SetQueue(5)], output(2)].concat());
    let trace = bench.datapath.trace(bench.now, PortNo(1), &frame()).to_string();
    assert!(trace.contains("-> port 2 queue 5: "), "{trace}");
}

const MBIT: u64 = 1_000_000;

/// Sets queues: port 2 with 100 Mbit/s has queues 0, 1 and 7; port 3, without a rate, has queues 0 and 1.
fn with_queues(bench: &mut Bench) {
    let queue = |id, min: Option<u64>, max: Option<u64>| PortQueue {
        id,
        min: min.map(Bps),
        max: max.map(Bps),
        tx_packets: u64::from(id) + 10,
        tx_bytes: u64::from(id) + 1000,
        tx_dropped: u64::from(id),
        since: Instant::from_nanos(u64::from(id) * 1_500_000_000),
    };
    let some =
        vec![queue(0, None, None), queue(1, Some(10 * MBIT), Some(25_560_000)), queue(7, Some(1), Some(1000 * MBIT))];
    let queues = [
        (2, PortQueues { rate: Some(Bps(100 * MBIT)), queues: some.clone() }),
        (3, PortQueues { rate: None, queues: some[..2].to_vec() }),
    ];
    for (port, queues) in queues {
        bench.datapath.set_port_queues(PortNo(port), queues);
    }
    bench.now = Instant::from_nanos(20_000_000_000);
}

/// Returns the queues in a channel's configuration reply.
fn configured(bench: &mut Bench, port: u32) -> Vec<QueueConfig> {
    let [Body::QueueGetConfigReply(reply)] = &bench.ask(CONTROLLER, Body::QueueGetConfigRequest(PortNo(port)))[..]
    else {
        panic!()
    };
    assert_eq!(reply.port, PortNo(port));
    reply.queues.clone()
}

#[test]
fn rates_are_told_in_tenths_of_a_percent() {
    let mut bench = Bench::controlled();
    with_queues(&mut bench);
    let told = configured(&mut bench, 2);
    assert!(told.iter().all(|queue| queue.port == PortNo(2)));
    let told: Vec<(u32, &[QueueProperty])> = told.iter().map(|queue| (queue.queue, &queue.properties[..])).collect();
    let (min, max) = (QueueProperty::MinRate, QueueProperty::MaxRate);
    // A rate too low to express is reported as the smallest value, a maximum above the port's rate as the port's
    // rate.
    assert_eq!(told, [(0, &[][..]), (1, &[min(100), max(256)]), (7, &[min(1), max(1000)])]);
    assert_eq!(configured(&mut bench, 1), []);
    assert!(configured(&mut bench, 3).iter().all(|queue| queue.properties.is_empty()), "parts of an unknown rate");
    let all: Vec<(u32, u32)> = configured(&mut bench, PortNo::ANY.0).iter().map(|q| (q.port.0, q.queue)).collect();
    assert_eq!(all, [(2, 0), (2, 1), (2, 7), (3, 0), (3, 1)]);
}

#[test]
fn queues_are_described() {
    let mut bench = Bench::controlled();
    with_queues(&mut bench);
    let mut ask = |port, queue| {
        let parts = bench.multipart(CONTROLLER, RequestBody::QueueDesc { port: PortNo(port), queue })?;
        let queues =
            parts.into_iter().flat_map(|p| if let ReplyBody::QueueDesc(queues) = p { queues } else { panic!() });
        Ok(queues.map(|queue| (queue.port.0, queue.queue)).collect::<Vec<_>>())
    };
    assert_eq!(ask(2, ALL_QUEUES), Ok(vec![(2, 0), (2, 1), (2, 7)]));
    assert_eq!(ask(PortNo::ANY.0, 1), Ok(vec![(2, 1), (3, 1)]));
    assert_eq!(ask(9, ALL_QUEUES), Err(ErrorType::QueueOpFailed(QueueOpFailed::BadPort)));
    assert_eq!(ask(3, 7), Err(ErrorType::QueueOpFailed(QueueOpFailed::BadQueue)));
}

#[test]
fn queues_have_counters() {
    let mut bench = Bench::controlled();
    with_queues(&mut bench);
    let mut ask = |port, queue| {
        bench.multipart(CONTROLLER, RequestBody::Queue { port: PortNo(port), queue }).map(|parts| {
            let stats =
                parts.into_iter().flat_map(|part| if let ReplyBody::Queue(stats) = part { stats } else { panic!() });
            stats.collect::<Vec<QueueStats>>()
        })
    };
    let one = QueueStats {
        port: PortNo(2),
        queue: 7,
        tx_bytes: 1007,
        tx_packets: 17,
        tx_errors: 7,
        duration_sec: 9,
        duration_nsec: 500_000_000,
        properties: Vec::new(),
    };
    assert_eq!(ask(2, 7), Ok(vec![one]));
    // The port was added after one second, so none of its queues is older.
    assert_eq!(ask(2, 0).unwrap()[0].duration_sec, 19);
    let mut places = |port, queue| -> Result<Vec<(u32, u32)>, ErrorType> {
        Ok(ask(port, queue)?.iter().map(|stats| (stats.port.0, stats.queue)).collect())
    };
    let any = PortNo::ANY.0;
    assert_eq!(places(any, ALL_QUEUES).unwrap(), [(2, 0), (2, 1), (2, 7), (3, 0), (3, 1)]);
    assert_eq!(places(any, 1).unwrap(), [(2, 1), (3, 1)]);
    assert_eq!(places(2, ALL_QUEUES).unwrap(), [(2, 0), (2, 1), (2, 7)]);
    assert_eq!(places(1, ALL_QUEUES).unwrap(), []);
    for (port, queue, code) in [
        (9, ALL_QUEUES, QueueOpFailed::BadPort),
        (9, 1, QueueOpFailed::BadPort),
        (3, 7, QueueOpFailed::BadQueue),
        (any, 8, QueueOpFailed::BadQueue),
    ] {
        assert_eq!(places(port, queue), Err(ErrorType::QueueOpFailed(code)));
    }
}

#[test]
fn v10_asks_for_the_queues_of_one_port() {
    let mut bench = Bench::controlled_v10();
    with_queues(&mut bench);
    let error = bench.error_of(OLD_CONTROLLER, Body::QueueGetConfigRequest(PortNo::ANY));
    assert_eq!(error, Some(ErrorType::QueueOpFailed(QueueOpFailed::BadPort)));
    let [Body::QueueGetConfigReply(reply)] = &bench.ask(OLD_CONTROLLER, Body::QueueGetConfigRequest(PortNo(2)))[..]
    else {
        panic!()
    };
    let told: Vec<&[QueueProperty]> = reply.queues.iter().map(|queue| &queue.properties[..]).collect();
    assert_eq!(told, [&[][..], &[QueueProperty::MinRate(100)], &[QueueProperty::MinRate(1)]], "no maximum in 1.0");
}
