//! Tests the switch under schedules drawn from some hundreds of seeds, as continuous integration does. Each defect that
//! a seed found has its own regression test.
//!
//! The checks themselves were tested by defects put into the switch on purpose. Each of these was found within 300
//! seeds:
//! messages that do not wait behind a long reply; a barrier that the control thread answers before the engine has it;
//! a full ring that drops without counting, or without returning the buffers; a lost wake-up; packet-ins of an ended
//! channel missing in the sums; a flow-removed sent twice; a pipeline that is taken back while workers have frames; a
//! round that continues after the last port; a virtual switch that stays in the list when the control thread ends.
use super::frames::frame;
use super::run;
use super::run::ScheduleRun;
use crate::clock::virtual_time::ThreadVirtualTime;
use crate::threads::ThreadingMode;
use std::collections::HashMap;
use weir_openflow::model::{Action, FlowMod, Instruction, Match, PortNo};

/// Number of seeds in one run of the tests.
const SEEDS: u64 = 300;

#[test]
fn seeds_hold() {
    for seed in 0..SEEDS {
        if let Err(failure) = run(seed) {
            panic!("{failure}");
        }
    }
}

#[test]
fn a_seed_gives_the_same_run() {
    for seed in 0..20 {
        assert_eq!(run(seed).unwrap(), run(seed).unwrap(), "seed {seed}");
    }
}

/// Adds a flow entry that outputs all packets to `to`, which is a port or the controllers.
fn forward_all(world: &mut ScheduleRun, to: PortNo) {
    let apply = vec![Instruction::ApplyActions(vec![Action::output(to)])];
    world.parts.engine.physical().flow_mod(&FlowMod::add(1, Match::any(), apply)).unwrap();
}

/// Regression test. Defect: after a port vanished, the round over the ports continued at an index that no longer had a
/// port, and the engine or a forwarding thread panicked.
#[test]
fn a_port_that_vanishes_takes_no_other_along() {
    for (mode, workers) in
        [(ThreadingMode::RunToCompletion, 1), (ThreadingMode::RunToCompletion, 2), (ThreadingMode::Pipeline, 2)]
    {
        // With two threads, each has two ports.
        for gone in [0, 1] {
            let mut world = ScheduleRun::plain(mode, workers);
            world.hosts[gone].end.vanish();
            world.rest();
            let others: Vec<usize> = (0..4).filter(|place| *place != gone).collect();
            others.iter().for_each(|place| assert!(world.hosts[*place].end.send(frame(1, 0))));
            world.rest();
            for place in others {
                assert_eq!(world.hosts[place].end.counters().rx_packets, 1, "{mode:?}: port {} is asked", place + 1);
            }
            ThreadVirtualTime::end();
        }
    }
}

/// Regression test. Defect: frames that workers had forwarded to a port, and that waited for their burst to fill when
/// the port vanished, were dropped without being counted.
#[test]
fn frames_under_way_to_a_port_that_vanishes_are_counted() {
    let mut world = ScheduleRun::plain(ThreadingMode::Pipeline, 1);
    forward_all(&mut world, PortNo(2));
    for number in 0..3 {
        assert!(world.hosts[0].end.send(frame(1, number)));
    }
    while world.hosts[0].end.counters().rx_packets < 3 {
        world.parts.step_engine();
    }
    for _ in 0..20 {
        world.parts.step_worker(0);
    }
    world.hosts[1].end.vanish();
    world.rest();
    let drops: HashMap<String, u64> = world.parts.engine.drops(None).unwrap().into_iter().collect();
    let refused = world.hosts[1].end.counters().tx_dropped();
    assert_eq!(drops.values().sum::<u64>() + refused, 3, "{drops:?}, {refused} refused by the port");
    ThreadVirtualTime::end();
}

/// Regression test. Defect: packet-ins that the engine sent to a channel that had just ended were missing in the sum
/// over all channels.
#[test]
fn packet_ins_for_a_channel_that_has_just_ended_are_counted() {
    let mut world = ScheduleRun::plain(ThreadingMode::RunToCompletion, 1);
    world.rest();
    forward_all(&mut world, PortNo::CONTROLLER);
    world.controllers[0].end(super::memory_connection::DisconnectKind::Closed);
    // The control thread ends the channel before the engine knows.
    world.parts.step_control(50);
    assert!(world.hosts[0].end.send(frame(1, 0)));
    world.rest();
    let (_, sums) = world.parts.control.registry.snapshot(&HashMap::new());
    let drops: u64 = world.parts.engine.drops(None).unwrap().iter().map(|(_, count)| count).sum();
    assert_eq!(sums.taken + sums.dropped + drops, 1);
    ThreadVirtualTime::end();
}
