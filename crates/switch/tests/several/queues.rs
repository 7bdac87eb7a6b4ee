//! Queues of ports to which several threads transmit.
use crate::bed::{forward, switch};
use weir_openflow::model::{Action, FlowMod, Instruction, PortNo};
use weir_switch::ctl::{CtlClient, CtlRequest};
use weir_switch::{PortConfig, SocketFile, SoftwareSwitchConfig};

/// Queues apply whichever thread transmits; the thread that receives from the port releases deferred frames.
#[test]
fn queues_serve_all_threads() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.sock");
    let control_socket = Some(SocketFile::bind(&path).unwrap());
    let (switch, mut hosts) = switch(3, SoftwareSwitchConfig { control_socket, ..SoftwareSwitchConfig::default() });
    let mut client = CtlClient::connect(&path).unwrap();
    for (from, queue) in [(1, 1), (2, 2)] {
        let actions = vec![Action::SetQueue(queue), Action::output(PortNo(3))];
        let flow = FlowMod { instructions: vec![Instruction::ApplyActions(actions)], ..forward(from, 3) };
        switch.flow_mod(flow).unwrap();
    }
    // Some 6000 bytes leave at once, the other frames one in a tenth of a millisecond.
    for queue in ["1:max=4Mbit/s", "2:max=4Mbit/s"] {
        client.ask(&CtlRequest::SetQueue { port: "3".into(), queue: queue.into() }).unwrap();
    }
    let [a, b, c] = &mut hosts[..] else { unreachable!() };
    for round in 0..5 {
        for tag in 0..200 {
            a.send(c, 1000 * round + tag);
            b.send(c, 1_000_000 + 1000 * round + tag);
        }
        let tags: Vec<u64> = (0..400).map(|_| c.tag()).collect();
        for first in [1000 * round, 1_000_000 + 1000 * round] {
            let of_one: Vec<u64> = tags.iter().copied().filter(|tag| (first..first + 1000).contains(tag)).collect();
            assert_eq!(of_one, (first..first + 200).collect::<Vec<u64>>(), "in order");
        }
    }
    let sent = || -> Vec<(u32, u64)> {
        let port = switch.snapshot().unwrap().ports.swap_remove(2);
        port.queues.iter().map(|queue| (queue.queue, queue.counters.tx_packets)).collect()
    };
    assert_eq!(sent(), [(0, 0), (1, 1000), (2, 1000)]);
    client.ask(&CtlRequest::DelQueue { port: "3".into(), queue: 2 }).unwrap();
    b.send(c, 7);
    assert_eq!(c.tag(), 7);
    assert_eq!(sent(), [(0, 1), (1, 1000)], "it waited in the default one");
}

/// Ports bring queues along, and take them away.
#[test]
fn ports_with_queues_come_and_go() {
    let queued = |number| {
        let spec = "null:q,rate=8Mbit/s,queue=1:min=1Mbit/s".parse().unwrap();
        PortConfig::new(PortNo(number), weir_port::open(&spec).unwrap())
    };
    let (switch, _hosts) = switch(1, SoftwareSwitchConfig::default());
    let queues = |number| -> Vec<u32> {
        let ports = switch.snapshot().unwrap().ports;
        let port = ports.iter().find(|port| port.number == PortNo(number));
        port.into_iter().flat_map(|port| &port.queues).map(|queue| queue.queue).collect()
    };
    for number in [7, 8] {
        switch.add_port(queued(number)).unwrap();
        assert_eq!(queues(number), [0, 1]);
    }
    switch.remove_port(PortNo(7)).unwrap();
    assert_eq!((queues(7), queues(8)), (vec![], vec![0, 1]));
}
