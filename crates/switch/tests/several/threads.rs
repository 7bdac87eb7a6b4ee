//! Tests of threads among which ports are distributed: each flow keeps its order whichever thread's port it leaves
//! by, nothing is lost or counted twice, changes take effect at once for all, ports are added and removed, no thread
//! is left behind.
use crate::bed::{Controller, Host, PATIENCE, forward, port, punt, until};
use crate::held::{Held, Hold};
use std::collections::HashMap;
use std::sync::Arc;
use weir_openflow::Body;
use weir_openflow::model::multipart::FlowRequest;
use weir_openflow::model::{FlowMod, Match, PortNo};
use weir_packet::Field;
use weir_switch::threads::{CpuList, MachineResources, ThreadsConfig};
use weir_switch::{PortConfig, SoftwareSwitch, SoftwareSwitchConfig, SwitchHandle};

fn switch(hosts: u32, name: &str, threads: ThreadsConfig) -> (SwitchHandle, Vec<Host>) {
    let (ports, hosts): (Vec<PortConfig>, Vec<_>) = (1..=hosts).map(port).unzip();
    let mut config = SoftwareSwitchConfig { ports, threads, ..SoftwareSwitchConfig::default() };
    config.datapath.name = name.to_owned();
    (SoftwareSwitch::start(config).unwrap(), hosts)
}

/// Returns true if there is only one thread on this machine.
fn is_one() -> bool {
    crate::threads().workers < 2
}

/// Returns a flow-mod that forwards frames of one host to another.
fn between(from: u32, to: u32) -> FlowMod {
    let mut flow = forward(from, to);
    flow.matching = Match::any().with(Field::InPort, from).with(Field::EthDst, 0x0200_0000_0000_u64 | u64::from(to));
    flow
}

#[test]
fn every_thread_s_ports_reach_all_others_in_order() {
    const HOSTS: u32 = 4;
    const FRAMES: u64 = 3000;
    let (switch, mut hosts) = switch(HOSTS, "mesh", crate::threads());
    for (from, to) in (1..=HOSTS).flat_map(|from| (1..=HOSTS).map(move |to| (from, to))).filter(|(a, b)| a != b) {
        switch.flow_mod(between(from, to)).unwrap();
    }
    let mut expected = HashMap::<(usize, u64), u64>::new();
    let n = HOSTS as usize;
    // A tag holds the sender, the receiver and the number within that flow.
    for number in 0..FRAMES {
        for from in 0..n {
            let to = (from + 1 + usize::try_from(number).unwrap() % (n - 1)) % n;
            let (sender, receiver) = pair_of(&mut hosts, from, to);
            let flow = (from as u64) << 8 | to as u64;
            sender.send(receiver, flow << 32 | number);
        }
        if number % 64 == 63 || number + 1 == FRAMES {
            let due = if number % 64 == 63 { 64 } else { FRAMES % 64 };
            take(&mut hosts, due, &mut expected);
        }
    }
    let snapshot = switch.snapshot().unwrap();
    assert_eq!(snapshot.drops, []);
    if is_one() {
        return;
    }
    let dealt: Vec<_> = snapshot.workers.iter().map(|thread| thread.ports.clone()).collect();
    assert_eq!(dealt, [vec![PortNo(1), PortNo(3)], vec![PortNo(2), PortNo(4)]], "in turn");
    let frames: Vec<u64> = snapshot.workers.iter().map(|thread| thread.frames).collect();
    assert_eq!(frames, [2 * FRAMES; 2], "each does what comes in by its ports");
    let counted: u64 = switch.flows(FlowRequest::all()).unwrap().iter().map(|flow| flow.packet_count).sum();
    assert_eq!(counted, FRAMES * u64::from(HOSTS));
}

/// Returns two hosts of a list: the sender and the receiver.
fn pair_of(hosts: &mut [Host], from: usize, to: usize) -> (&mut Host, &Host) {
    if from < to {
        let (left, right) = hosts.split_at_mut(to);
        (&mut left[from], &right[0])
    } else {
        let (left, right) = hosts.split_at_mut(from);
        (&mut right[0], &left[to])
    }
}

/// Receives what was sent to each host in `rounds` rounds, and checks the order of each flow.
fn take(hosts: &mut [Host], rounds: u64, seen: &mut HashMap<(usize, u64), u64>) {
    let n = hosts.len() as u64;
    for _ in 0..rounds * n {
        let mut tag = None;
        while tag.is_none() {
            for (at, host) in hosts.iter_mut().enumerate() {
                if let Some(frame) = host.next(std::time::Duration::ZERO) {
                    tag = Some((at, u64::from_be_bytes(frame.bytes()[42..50].try_into().unwrap())));
                    break;
                }
            }
        }
        let Some((at, tag)) = tag else { return };
        let (flow, number) = (tag >> 32, tag & 0xffff_ffff);
        assert_eq!(flow & 0xff, at as u64, "it came to who it was for");
        let last = seen.insert((at, flow), number);
        assert!(last.is_none_or(|last| last < number), "flow {flow:x}: {number} behind {last:?}");
    }
}

#[test]
fn ports_are_dealt_as_asked() {
    if is_one() {
        return;
    }
    let threads = ThreadsConfig { deal: "1=1,2=1".parse().unwrap(), ..crate::threads() };
    let (switch, mut hosts) = switch(3, "dealt", threads);
    switch.flow_mod(forward(1, 2)).unwrap();
    switch.flow_mod(forward(3, 2)).unwrap();
    let [a, b, c] = &mut hosts[..] else { unreachable!() };
    for tag in 0..100 {
        a.send(b, tag);
        c.send(b, tag);
        (0..2).for_each(|_| assert_eq!(b.tag(), tag));
    }
    let workers = switch.snapshot().unwrap().workers;
    assert_eq!([&workers[0].ports[..], &workers[1].ports[..]], [&[PortNo(3)][..], &[PortNo(1), PortNo(2)]]);
    assert_eq!([workers[0].frames, workers[1].frames], [100, 100]);
}

/// Each frame is handled by the entries before the change or by those after it; after the barrier, only by the
/// latter.
#[tokio::test]
async fn a_barrier_is_honest() {
    let (switch, mut hosts) = switch(4, "barrier", crate::threads());
    let mut controller = Controller::embedded(&switch, 1 << 16).await;
    let [a, b, c, d] = &mut hosts[..] else { unreachable!() };
    for round in 0..100 {
        let (to, other) = if round % 2 == 0 { (&mut *c, &mut *d) } else { (&mut *d, &mut *c) };
        for from in [&mut *a, &mut *b] {
            (0..20).for_each(|port| from.send_flow(to, port, 1_000_000));
        }
        for from in 1..=2 {
            controller.send(Body::FlowMod(forward(from, to.number))).await;
        }
        controller.barrier().await;
        for from in [&mut *a, &mut *b] {
            (0..20).for_each(|port| from.send_flow(to, port, round));
        }
        for _ in 0..40 {
            while to.tag() != round {}
        }
        while let Some(frame) = other.next(std::time::Duration::ZERO) {
            let tag = u64::from_be_bytes(frame.bytes()[42..50].try_into().unwrap());
            assert_eq!(tag, 1_000_000, "a frame of after the barrier met the entry of before it");
        }
    }
}

#[tokio::test]
async fn packet_ins_of_all_threads_reach_the_controller() {
    let (switch, mut hosts) = switch(2, "punts", crate::threads());
    let mut controller = Controller::embedded(&switch, 1 << 20).await;
    controller.send(Body::FlowMod(punt())).await;
    controller.barrier().await;
    let [a, b] = &mut hosts[..] else { unreachable!() };
    for tag in 0..100 {
        a.send(b, tag);
        b.send(a, 1000 + tag);
    }
    let mut tags = Vec::new();
    while tags.len() < 200 {
        let tag = controller.expect(|message| match message.body {
            Body::PacketIn(packet) => Some(u64::from_be_bytes(packet.data.0[42..50].try_into().unwrap())),
            _ => None,
        });
        tags.push(tag.await);
    }
    for thread in [0, 1000] {
        let of_one: Vec<u64> = tags.iter().copied().filter(|tag| tag / 1000 * 1000 == thread).collect();
        assert_eq!(of_one, (thread..thread + 100).collect::<Vec<u64>>(), "in order");
    }
}

#[tokio::test]
async fn ports_come_and_go_while_frames_flow() {
    let (switch, mut hosts) = switch(1, "ports", crate::threads());
    switch.flow_mod(forward(1, 2)).unwrap();
    switch.flow_mod(forward(2, 1)).unwrap();
    for round in 0..50 {
        let (config, mut b) = port(2);
        switch.add_port(config).unwrap();
        let a = &mut hosts[0];
        for tag in 0..100 {
            a.send(&b, 1000 * round + tag);
            b.send(a, 1000 * round + tag);
        }
        assert!(b.next(PATIENCE).is_some());
        assert!(a.next(PATIENCE).is_some());
        switch.remove_port(PortNo(2)).unwrap();
        assert!(!b.is_connected(), "it is closed when the call returns");
        while a.next(std::time::Duration::ZERO).is_some() {}
    }
    until(|| switch.snapshot().unwrap().workers.iter().map(|thread| thread.ports.len()).sum::<usize>() <= 1).await;
}

#[test]
fn no_thread_stays_behind_and_each_is_on_its_cpu() {
    let cpus: Vec<usize> = MachineResources::here().cpus.into_iter().take(2).collect();
    let &[first, second] = &cpus[..] else { return };
    let threads = ThreadsConfig { cpus: CpuList(vec![second, first]), ..crate::threads() };
    let (switch, mut hosts) = switch(2, "leaves", threads);
    switch.flow_mod(forward(1, 2)).unwrap();
    let [a, b] = &mut hosts[..] else { unreachable!() };
    for tag in 0..100 {
        a.send(b, tag);
        assert_eq!(b.tag(), tag);
    }
    // A thread names itself and moves to its CPU when it first runs, which may be after others have forwarded.
    for (thread, cpu) in [("leaves-engine", second), ("leaves-thread1", first)] {
        let is_there = || weir_testing::cpus_of_thread(thread).is_some_and(|cpus| cpus == cpu.to_string());
        assert!(weir_testing::wait_until(PATIENCE, is_there), "{thread} is not on CPU {cpu}");
    }
    switch.stop();
    assert_eq!(weir_testing::cpus_of_thread("leaves-thread1"), None);
}

/// A thread that stays in a port delays neither other threads nor frames to other ports.
#[test]
fn a_port_that_is_in_use_is_not_waited_for() {
    if is_one() {
        return;
    }
    let hold = Arc::<Hold>::default();
    let (ports, mut hosts): (Vec<PortConfig>, Vec<Host>) = (1..=3).map(port).unzip();
    let held = |config: PortConfig| match config.number {
        Some(PortNo(2)) => PortConfig { port: Box::new(Held::new(config.port, Arc::clone(&hold))), ..config },
        _ => config,
    };
    let threads = ThreadsConfig { deal: "1=0,2=1,3=0".parse().unwrap(), ..crate::threads() };
    let config = SoftwareSwitchConfig {
        ports: ports.into_iter().map(held).collect(),
        threads,
        ..SoftwareSwitchConfig::default()
    };
    let switch = SoftwareSwitch::start(config).unwrap();
    switch.flow_mod(between(1, 2)).unwrap();
    switch.flow_mod(between(1, 3)).unwrap();
    switch.flow_mod(between(2, 1)).unwrap();
    let [a, b, c] = &mut hosts[..] else { unreachable!() };
    for round in 0..20 {
        hold.begin();
        b.send(a, round);
        hold.wait();
        for tag in 10 * round..10 * (round + 1) {
            a.send(b, tag);
            a.send(c, tag);
            assert_eq!(c.tag(), tag, "it passes, and the engine does not wait for the other port");
        }
        assert!(b.next(std::time::Duration::ZERO).is_none(), "its port is in use");
        // Flow-mods are carried out meanwhile.
        switch.flow_mod(between(3, 1)).unwrap();
        hold.end();
        assert_eq!(a.tag(), round);
        (10 * round..10 * (round + 1)).for_each(|tag| assert_eq!(b.tag(), tag));
    }
    assert_eq!(switch.snapshot().unwrap().drops, []);
}

/// Threads may lose their core at any moment while they use ports.
#[test]
fn nothing_is_lost_or_overtaken_whoever_is_scheduled() {
    const HOSTS: u32 = 4;
    const ROUNDS: u64 = 40;
    let (ports, mut hosts): (Vec<PortConfig>, Vec<Host>) = (1..=HOSTS).map(port).unzip();
    let lazy = |config: PortConfig| {
        let seed = u64::from(config.number.unwrap().0);
        PortConfig { port: Box::new(Held::lazy(config.port, seed)), ..config }
    };
    let ports = ports.into_iter().map(lazy).collect();
    let config = SoftwareSwitchConfig { ports, threads: crate::threads(), ..SoftwareSwitchConfig::default() };
    let switch = SoftwareSwitch::start(config).unwrap();
    for (from, to) in (1..=HOSTS).flat_map(|from| (1..=HOSTS).map(move |to| (from, to))).filter(|(a, b)| a != b) {
        switch.flow_mod(between(from, to)).unwrap();
    }
    let (n, mut seen) = (HOSTS as usize, HashMap::new());
    for round in 0..ROUNDS {
        for number in 64 * round..64 * (round + 1) {
            for from in 0..n {
                let to = (from + 1 + usize::try_from(number).unwrap() % (n - 1)) % n;
                let (sender, receiver) = pair_of(&mut hosts, from, to);
                sender.send(receiver, ((from as u64) << 8 | to as u64) << 32 | number);
            }
        }
        take(&mut hosts, 64, &mut seen);
    }
    let snapshot = switch.snapshot().unwrap();
    assert_eq!(snapshot.drops, []);
    assert!(snapshot.ports.iter().all(|port| port.counters.tx_packets == 64 * ROUNDS));
}
