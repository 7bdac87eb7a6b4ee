//! Queues: which one a packet goes to.
use crate::bench::*;
use weir_openflow::model::error::BadAction;
use weir_openflow::model::{Action, ErrorType, FlowMod, Instruction, Match, PacketOut, PortNo};
use weir_openflow::{Body, Message, Version};
use weir_packet::{Field, Frame};

/// Ports and queues that a packet received on port 1 leaves by, in order of the ports.
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
    let all = weir_openflow::model::queue::ALL_QUEUES;
    for action in [Action::SetQueue(all), enqueue(2, all)] {
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
