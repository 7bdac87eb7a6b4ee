//! Control traffic in a queue of its own, while other traffic floods the port.
use super::{AddressPlan, Network, can_run};
use std::net::UdpSocket;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;
use weir_testing::Namespace;

/// Rate of the slow ports, about a tenth of what is sent.
const SLOW: &str = "rate=10Mbit/s,queue=1:min=1Mbit/s:priority=7";
/// Datagrams sent each millisecond.
const BURST: usize = 10;

/// Sends datagrams to an address until the sender of the channel is dropped.
fn flood(from: &Namespace, to: &str, end: mpsc::Receiver<()>) {
    from.within(move || {
        let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
        while end.recv_timeout(Duration::from_millis(1)) == Err(RecvTimeoutError::Timeout) {
            // The interface's queue may be full.
            (0..BURST).for_each(|_| _ = socket.send_to(&[0; 1200], to));
        }
    });
}

#[test]
fn a_session_outlives_a_flood_through_the_same_port() {
    if !can_run() {
        return;
    }
    let mut network = Network::new(AddressPlan::Ipv4, 2, &[[1, 2]]);
    for switch in &mut network.switches {
        switch.ports.last_mut().expect("a port").push_str(&format!(",{SLOW}"));
        switch.start_with(&["--in-band-queue", "1"]);
    }
    network.start_controller();
    network.all_come_up(&[1, 1]);
    // No station has this address. The first switch sends the datagrams to the second, which drops them.
    network.host.ip("neigh add 10.9.0.200 lladdr 02:00:00:00:09:c8 dev eth0");
    network.switches[0].ctl(&["add-flow", "priority=60000,udp,actions=output:to2"]);
    network.switches[1].ctl(&["add-flow", "priority=60000,udp,actions=drop"]);
    let queues = || -> serde_json::Value {
        let dump = network.switches[0].ctl(&["--json", "dump-queues"]);
        serde_json::from_str(&dump).expect("JSON")
    };
    let counter = |queue: u64, name: &str| {
        let dump = queues();
        let all = dump.as_array().cloned().unwrap_or_default();
        let mut all = all.iter().flat_map(|port| port["queues"].as_array().cloned().unwrap_or_default());
        all.find(|found| found["queue"] == queue)
            .and_then(|found| found["counters"][name].as_u64())
            .unwrap_or_else(|| panic!("{dump}"))
    };
    let before = counter(1, "tx_packets");
    let (run, end) = mpsc::channel();
    std::thread::scope(|scope| {
        let host = &network.host;
        scope.spawn(move || flood(host, "10.9.0.200:9", end));
        // A session in which nothing arrives ends within four seconds.
        network.switches[1].wait(Duration::from_secs(10));
        drop(run);
    });
    assert!(counter(0, "tx_full") > 100, "the port was not flooded: {}", queues());
    assert!(counter(1, "tx_packets") > before, "no control traffic in its queue: {}", queues());
    network.all_come_up(&[1, 1]);
    assert_eq!([0, 1].map(|switch: usize| network.switches[switch].connects()), [1, 1], "no session ended");
}
