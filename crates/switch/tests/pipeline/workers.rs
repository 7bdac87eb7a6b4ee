//! Tests of workers: order, nothing lost, limits, control meanwhile, no thread left behind.
use crate::bed::{Controller, Host, PATIENCE, forward, port, punt, until};
use std::collections::HashMap;
use std::time::Duration;
use weir_openflow::Body;
use weir_openflow::model::flow::FlowMod;
use weir_openflow::model::{Action, Instruction, Match, PortNo};
use weir_packet::Field;
use weir_switch::threads::{
    BurstSizes, CpuList, HandOver, MachineResources, ReceivePolicy, ThreadsConfig, TrafficClass,
};
use weir_switch::{PortConfig, SoftwareSwitch, SoftwareSwitchConfig, SwitchHandle};

/// Starts a switch with the given threads.
fn switch(hosts: u32, name: &str, threads: ThreadsConfig) -> (SwitchHandle, Vec<Host>) {
    let (ports, hosts): (Vec<PortConfig>, Vec<_>) = (1..=hosts).map(port).unzip();
    let mut config = SoftwareSwitchConfig { ports, threads, ..SoftwareSwitchConfig::default() };
    config.datapath.name = name.to_owned();
    (SoftwareSwitch::start(config).unwrap(), hosts)
}

/// Starts a switch with two hosts that forwards frames from the first to the second.
fn one_way(name: &str, threads: ThreadsConfig) -> (SwitchHandle, Host, Host) {
    let (switch, hosts) = switch(2, name, threads);
    switch.flow_mod(forward(1, 2)).unwrap();
    let [a, b]: [Host; 2] = hosts.try_into().unwrap_or_else(|_| unreachable!());
    (switch, a, b)
}

/// Sends frames of `flows` flows in turn, and checks that all arrive, each flow in its order.
fn all_arrive_in_order(a: &mut Host, b: &mut Host, frames: u64, flows: u64) {
    let mut expected = HashMap::<u64, u64>::new();
    let mut sent = 0;
    for received in 0..frames {
        // At most as many frames in transit as a port's ring holds.
        while sent < frames && sent < received + 1000 {
            a.send_flow(b, u16::try_from(sent % flows).unwrap(), sent);
            sent += 1;
        }
        let tag = b.tag();
        let last = expected.insert(tag % flows, tag);
        assert_eq!(last.map_or(tag % flows, |last| last + flows), tag, "flow {}", tag % flows);
    }
}

#[test]
fn flows_keep_their_order_whatever_the_policy_and_bursts() {
    let base = crate::threads();
    let cases = [
        base.clone(),
        ThreadsConfig { policy: ReceivePolicy::Port, ..base.clone() },
        ThreadsConfig { policy: ReceivePolicy::Mac, bursts: "1,2,3,4,5,6".parse().unwrap(), ..base.clone() },
        ThreadsConfig { bursts: BurstSizes::all(1), io_loop_count: 1, worker_loop_count: 1, ..base.clone() },
        ThreadsConfig { io_loop_count: 10_000, worker_loop_count: 10_000, ..base },
    ];
    for threads in cases {
        let (switch, mut a, mut b) = one_way("order", threads.clone());
        all_arrive_in_order(&mut a, &mut b, 6000, 50);
        let workers = switch.snapshot().unwrap().workers;
        assert_eq!(workers.iter().map(|worker| worker.frames).sum::<u64>(), 6000, "{threads:?}");
        let idle = workers.iter().filter(|worker| worker.frames == 0).count();
        assert_eq!(idle, if threads.policy == ReceivePolicy::FiveTuple { 0 } else { workers.len() - 1 }, "{threads:?}");
    }
}

#[test]
fn flows_keep_their_order_when_the_engine_takes_turns_with_workers() {
    // Bursts of one frame are always full, so both sides are tried again and again.
    let bursts = BurstSizes { rx_read: 1, ..BurstSizes::all(16) };
    let threads = ThreadsConfig { hand_over: HandOver::Auto, bursts, ..crate::threads() };
    let (switch, mut a, mut b) = one_way("turns", threads);
    let mut by_workers = 0;
    for _ in 0..20 {
        all_arrive_in_order(&mut a, &mut b, 20_000, 50);
        by_workers = switch.snapshot().unwrap().workers.iter().map(|worker| worker.frames).sum::<u64>();
        if MachineResources::here().cpus.len() < 2 || (1..100_000).contains(&by_workers) {
            return;
        }
    }
    panic!("{by_workers} of 400000 frames went to workers: the engine never took turns with them");
}

#[test]
fn an_engine_that_keeps_up_wakes_nobody() {
    let threads = ThreadsConfig { hand_over: HandOver::Auto, ..crate::threads() };
    let (switch, mut a, mut b) = one_way("calm", threads);
    for tag in 0..200 {
        a.send(&b, tag);
        assert_eq!(b.tag(), tag);
    }
    assert!(switch.snapshot().unwrap().workers.iter().all(|worker| worker.frames == 0));
}

/// Counts threads whose name starts with `start`. The kernel truncates names to 15 bytes.
fn threads_named(start: &str) -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.starts_with(start)).count()
}

#[test]
fn no_thread_stays_behind() {
    let threads = crate::threads();
    // The engine has a core of its own.
    let workers = threads.workers.min(MachineResources::here().cpus.len().max(2) - 1);
    let (switch, mut a, mut b) = one_way("leaves", threads);
    all_arrive_in_order(&mut a, &mut b, 100, 3);
    // A thread names itself when it first runs, which may be after the engine has forwarded.
    assert!(weir_testing::wait_until(PATIENCE, || threads_named("leaves-worker") == workers));
    for tag in 0..500 {
        a.send(&b, tag);
    }
    switch.stop();
    assert_eq!(threads_named("leaves-"), 0);
}

#[test]
fn threads_stay_on_their_cpus() {
    let cpus: Vec<usize> = weir_switch::threads::MachineResources::here().cpus.into_iter().take(2).collect();
    let &[first, second] = &cpus[..] else { return };
    let threads = ThreadsConfig { cpus: CpuList(vec![second, first]), workers: 1, ..crate::threads() };
    let (_switch, mut a, mut b) = one_way("pinned", threads);
    all_arrive_in_order(&mut a, &mut b, 100, 3);
    // A thread names itself and moves to its CPU when it first runs, which may be after the engine has forwarded.
    for (thread, cpu) in [("pinned-engine", second), ("pinned-worker0", first)] {
        let is_there = || weir_testing::cpus_of_thread(thread).is_some_and(|cpus| cpus == cpu.to_string());
        assert!(weir_testing::wait_until(PATIENCE, is_there), "{thread} is not on CPU {cpu}");
    }
}

#[test]
fn a_class_has_its_worker() {
    let threads = crate::threads();
    if threads.workers < 2 {
        weir_testing::skip("needs two processors, for two workers");
        return;
    }
    let classes: Vec<TrafficClass> = vec!["udp,tp_dst=7=>1".parse().unwrap()];
    let (switch, mut a, mut b) = one_way("class", ThreadsConfig { classes, ..threads });
    for tag in 0..300 {
        a.send_flow(&b, u16::try_from(if tag % 3 == 0 { 7 } else { 1000 + tag }).unwrap(), tag);
    }
    (0..300).for_each(|_| {
        b.tag();
    });
    let frames: Vec<u64> = switch.snapshot().unwrap().workers.iter().map(|worker| worker.frames).collect();
    assert_eq!(frames, [200, 100]);
}

#[test]
fn frames_that_rings_cannot_hold_are_counted() {
    const SENT: u64 = 40_000;
    // Rings are smaller than what a port receives in a round, and are read one frame at a time.
    let bursts = BurstSizes { rx_read: 64, worker_read: 1, ..BurstSizes::all(8) };
    let threads = ThreadsConfig { workers: 1, bursts, ring_size: 16, ..crate::threads() };
    let (switch, mut a, mut b) = one_way("full", threads);
    let mut arrived = 0;
    for tag in 0..SENT {
        a.send(&b, tag);
        if tag % 64 == 0 {
            while b.next(Duration::ZERO).is_some() {
                arrived += 1;
            }
        }
    }
    while b.next(Duration::from_millis(200)).is_some() {
        arrived += 1;
    }
    let snapshot = switch.snapshot().unwrap();
    let (worker, ports) = (&snapshot.workers[0], &snapshot.ports);
    let dropped = worker.ring_full + worker.transmit_ring_full;
    assert_eq!(ports[0].counters.rx_packets, arrived + dropped + ports[1].counters.tx_full, "{worker:?}");
    assert!(dropped > 0, "{worker:?}");
    let told: u64 = snapshot.drops.iter().filter(|(reason, _)| reason.ends_with("ring_full")).map(|(_, n)| n).sum();
    assert_eq!(told, dropped);
}

/// Each frame is handled by the entries before the change or by those after it; after the barrier, only by the
/// latter.
#[tokio::test]
async fn a_barrier_is_honest() {
    let (switch, mut hosts) = switch(3, "barrier", crate::threads());
    let mut controller = Controller::embedded(&switch, 1 << 16).await;
    let [a, b, c] = &mut hosts[..] else { unreachable!() };
    for round in 0..100 {
        let (to, other) = if round % 2 == 0 { (&mut *b, &mut *c) } else { (&mut *c, &mut *b) };
        for tag in 0..20 {
            a.send_flow(to, tag, 1_000_000);
        }
        controller.send(Body::FlowMod(forward(1, to.number))).await;
        controller.barrier().await;
        for tag in 0..20 {
            a.send_flow(to, tag, round);
        }
        for _ in 0..20 {
            while to.tag() != round {}
        }
        while let Some(frame) = other.next(Duration::ZERO) {
            let tag = u64::from_be_bytes(frame.bytes()[42..50].try_into().unwrap());
            assert_eq!(tag, 1_000_000, "a frame of after the barrier met the entry of before it");
        }
    }
}

#[tokio::test]
async fn controllers_change_entries_while_frames_flow() {
    const ENTRIES: u32 = 20_000;
    let (switch, mut a, mut b) = one_way("changes", crate::threads());
    let mut controller = Controller::embedded(&switch, 1 << 20).await;
    let sender = std::thread::spawn(move || {
        all_arrive_in_order(&mut a, &mut b, 30_000, 20);
        (a, b)
    });
    for number in 0..ENTRIES {
        let matching = Match::any().with(Field::EthType, 0x0800u16).with(Field::Ipv4Dst, number);
        let mut flow = FlowMod::add(5, matching, vec![Instruction::ApplyActions(vec![Action::output(PortNo(1))])]);
        flow.table = weir_openflow::model::TableId(1);
        controller.send(Body::FlowMod(flow)).await;
    }
    controller.barrier().await;
    let (mut a, mut b) = sender.join().unwrap();
    let snapshot = switch.snapshot().unwrap();
    assert_eq!(snapshot.entries(), u64::from(ENTRIES) + 1);
    assert_eq!(snapshot.drops, []);
    all_arrive_in_order(&mut a, &mut b, 100, 2);
}

#[tokio::test]
async fn packet_ins_of_workers_reach_the_controller() {
    let (switch, mut hosts) = switch(2, "punts", crate::threads());
    let mut controller = Controller::embedded(&switch, 1 << 20).await;
    controller.send(Body::FlowMod(punt())).await;
    controller.barrier().await;
    let [a, b] = &mut hosts[..] else { unreachable!() };
    for tag in 0..200 {
        a.send_flow(b, u16::try_from(tag).unwrap(), tag);
    }
    let mut tags = Vec::new();
    while tags.len() < 200 {
        tags.push(
            controller
                .expect(|message| match message.body {
                    Body::PacketIn(packet) => Some(u64::from_be_bytes(packet.data.0[42..50].try_into().unwrap())),
                    _ => None,
                })
                .await,
        );
    }
    tags.sort_unstable();
    assert_eq!(tags, (0..200).collect::<Vec<u64>>());
}

#[tokio::test]
async fn ports_come_and_go_while_frames_flow() {
    let (switch, mut hosts) = switch(1, "ports", crate::threads());
    switch.flow_mod(forward(1, 2)).unwrap();
    for round in 0..50 {
        let (config, mut b) = port(2);
        switch.add_port(config).unwrap();
        let a = &mut hosts[0];
        for tag in 0..100 {
            a.send_flow(&b, u16::try_from(tag).unwrap(), 1000 * round + tag);
        }
        assert!(b.next(PATIENCE).is_some());
        for tag in 0..100 {
            a.send_flow(&b, u16::try_from(tag).unwrap(), 1000 * round + tag);
        }
        switch.remove_port(PortNo(2)).unwrap();
    }
    // No frame of the port stays in transit.
    until(|| switch.snapshot().unwrap().workers.iter().all(|worker| worker.waiting + worker.waiting_to_leave == 0))
        .await;
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let threads = ThreadsConfig { ring_size: 1000, ..crate::threads() };
    let config = SoftwareSwitchConfig { threads, ..SoftwareSwitchConfig::default() };
    let error = SoftwareSwitch::start(config).err().unwrap().to_string();
    assert_eq!(error, "ring-size: found 1000, expected a power of two up to 1048576; try 1024");
}
