//! Tests the attacks of the literature on a network's map and hosts against a running controller and switches: two
//! attackers at raw sockets make link probes up, keep them, pass them on and send them back, imitate hosts, take their
//! ports down, and take the place of a host that is away. The controller says what it has refused, and its map and the
//! hosts' places stay right.
use crate::bed::{ping, ready, stderr, weir};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;
use weir_packet::craft::FrameBuilder;
use weir_packet::{Frame, FramePool, MacAddr, parse_ethernet};
use weir_port::Port;
use weir_testing::{Namespace, TestProcess, run, wait_until};
use weir_units::{Clock as _, SystemClock};

const PATIENCE: Duration = Duration::from_secs(60);
const LLDP: u16 = 0x88cc;

/// Switch and port of each host.
const HOSTS: [(usize, u32); 6] = [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)];
const VICTIM: usize = 0;
const ATTACKER: usize = 1;
const PROBED: usize = 2;
const SERVER: usize = 3;
const COLLUDER: usize = 4;
const FORGETFUL: usize = 5;

/// A raw socket at an interface.
struct Wire {
    port: Box<dyn Port>,
    pool: FramePool,
    clock: SystemClock,
}

impl Wire {
    fn open(namespace: &Namespace, interface: &str) -> Wire {
        let spec = format!("af_packet:{interface}").parse().expect("a port");
        let port = namespace.within(|| weir_port::open(&spec).expect("a raw socket"));
        Wire { port, pool: FramePool::new(0, 0), clock: SystemClock::start() }
    }

    /// Sends a frame. It is lost if the interface is down.
    fn send(&mut self, bytes: &[u8]) {
        let _ = self.port.transmit(self.clock.now(), &mut self.pool, &mut vec![Frame::from_bytes(bytes)]);
    }

    /// Takes the frames that have come.
    fn take(&mut self) -> Vec<Frame> {
        let mut batch = Vec::new();
        let _ = self.port.receive(self.clock.now(), &mut self.pool, &mut batch, 1024);
        batch
    }

    /// Returns the next link probe that comes.
    fn probe(&mut self) -> Vec<u8> {
        self.take();
        let mut found = None;
        let is_probe = |frame: &Frame| parse_ethernet(frame.bytes()).is_some_and(|header| header.eth_type == LLDP);
        assert!(wait_until(PATIENCE, || {
            found = self.take().iter().rfind(|frame| is_probe(frame)).map(|frame| frame.bytes().to_vec());
            found.is_some()
        }));
        found.expect("a probe")
    }
}

/// Two switches with a link between them, hosts, and a controller.
struct AttackLab {
    folder: tempfile::TempDir,
    switches: Namespace,
    hosts: Vec<Namespace>,
    _processes: Vec<TestProcess>,
}

impl AttackLab {
    fn start() -> AttackLab {
        let (folder, switches) = (tempfile::tempdir().expect("a folder"), Namespace::new());
        switches.join("t1", &switches, "t2");
        let hosts = HOSTS.iter().enumerate().map(|(number, (dpid, port))| {
            let host = Namespace::new();
            host.join("eth0", &switches, &format!("h{dpid}-{port}"));
            host.ip(&format!("link set eth0 address {}", mac(number)));
            host.ip(&format!("addr add {}/24 dev eth0", ip(number)));
            host
        });
        let mut lab = AttackLab { hosts: hosts.collect(), folder, switches, _processes: Vec::new() };
        let mut command = lab.switches.command(weir());
        command.args(["controller", "--app", "forwarding", "--control-socket", &lab.path("c.controller")]);
        lab._processes.push(ready(command));
        for dpid in [1, 2] {
            let of_switch = HOSTS.iter().filter(|(of, _)| *of == dpid);
            let ports = of_switch.map(|(dpid, port)| format!("{port}=af_packet:h{dpid}-{port}"));
            let mut command = lab.switches.command(weir());
            command.args(["switch", "--controller", "tcp:127.0.0.1:6653", "--dpid", &dpid.to_string()]);
            command.args(["--control-socket", &lab.path(&format!("s{dpid}"))]);
            for port in ports.chain([format!("9=af_packet:t{dpid}")]) {
                command.args(["--port", &port]);
            }
            lab._processes.push(ready(command));
        }
        lab
    }

    fn path(&self, name: &str) -> String {
        self.folder.path().join(name).display().to_string()
    }

    fn net(&self, arguments: &[&str]) -> Vec<u8> {
        let socket = format!("unix:{}", self.path("c.api"));
        let output = Command::new(weir()).args(["net", "--api", &socket]).args(arguments).output().expect("weir");
        assert!(output.status.success(), "{}", stderr(&output));
        output.stdout
    }

    fn state(&self) -> Value {
        serde_json::from_slice(&self.net(&["show", "--json"])).expect("JSON")
    }

    fn count(&self, name: &str) -> u64 {
        self.state()["counters"][name].as_u64().unwrap_or_else(|| panic!("no counter {name}"))
    }

    /// Takes a host's interface down, and waits until its switch's end has no carrier.
    fn take_down(&self, host: usize) {
        self.hosts[host].ip("link set eth0 down");
        let (dpid, port) = HOSTS[host];
        let show = || run(self.switches.command("ip").args(["link", "show", &format!("h{dpid}-{port}")]));
        assert!(wait_until(PATIENCE, || show().contains("NO-CARRIER")));
    }

    /// Waits until a counter is above a former value.
    fn wait_for_count(&self, name: &str, before: u64) {
        assert!(wait_until(PATIENCE, || self.count(name) > before), "{name} stays {before}: {:#}", self.state());
    }

    /// Waits until the controller has worked for so long.
    fn wait_for_time(&self, seconds: f64) {
        assert!(wait_until(PATIENCE, || self.state()["time_s"].as_f64() > Some(seconds)));
    }

    /// Returns the kinds of the alarms so far, in their order.
    fn alarms(&self) -> Vec<String> {
        let last = self.state()["last_event"].to_string();
        let lines = self.net(&["watch", "--after", "0", "--count", &last, "--json"]);
        let events = String::from_utf8(lines).expect("text");
        let events = events.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
        let alarms = events.filter(|event| event["alarm"] == true);
        alarms.map(|event| event["kind"].as_str().expect("a kind").to_owned()).collect()
    }

    fn wait_for_alarm(&self, kind: &str) {
        let is_told = || self.alarms().iter().any(|told| told == kind);
        assert!(wait_until(PATIENCE, is_told), "no {kind}: {:?}, {:#}", self.alarms(), self.state());
    }

    /// Returns the port at which the controller knows a host.
    fn place(&self, host: usize) -> Option<String> {
        let state = self.state();
        let hosts = state["hosts"].as_array().expect("hosts");
        let known = hosts.iter().find(|known| known["mac"] == mac(host).to_string())?;
        known["at"].as_str().map(str::to_owned)
    }

    /// Checks that the map has the one link, and the hosts are where they are.
    fn check(&self, hosts: &[usize]) {
        let links = self.state()["links"].clone();
        let ends: Vec<_> = links.as_array().into_iter().flatten().map(|link| (&link["from"], &link["to"])).collect();
        assert_eq!(ends, [(&Value::from("1:9"), &Value::from("2:9"))]);
        for host in hosts {
            let (dpid, port) = HOSTS[*host];
            assert_eq!(self.place(*host), Some(format!("{dpid}:{port}")), "host {host}: {:#}", self.state());
        }
        assert!(ping(&self.hosts[VICTIM], &ip(SERVER), 1));
    }
}

fn mac(host: usize) -> MacAddr {
    MacAddr::from_bits(0x0200_0000_0001 + host as u64)
}

fn ip(host: usize) -> String {
    format!("10.9.0.{}", host + 1)
}

/// Returns a packet of a host that says nothing but its source.
fn packet_of(host: usize) -> Vec<u8> {
    FrameBuilder::ethernet(mac(SERVER), mac(host)).ether_type(0x88b5).payload(&[0; 50]).build()
}

/// Returns an announcement that a host has an address.
fn announcement(host: usize, of: usize) -> Vec<u8> {
    let own = (mac(host), ip(of).parse().expect("an address"));
    FrameBuilder::ethernet(MacAddr::BROADCAST, own.0).arp(1, own, (MacAddr::default(), own.1)).build()
}

#[test]
fn attacks_are_told_and_change_neither_the_map_nor_places() {
    if !weir_testing::root() || !weir_testing::programs(&["ip", "ping"]) {
        return;
    }
    let lab = AttackLab::start();
    assert!(wait_until(PATIENCE, || lab.state()["links"].as_array().is_some_and(|links| links.len() == 1)));
    let mut wires = [ATTACKER, COLLUDER, FORGETFUL].map(|host| Wire::open(&lab.hosts[host], "eth0"));
    let [attacker, colluder, forgetful] = &mut wires;
    for host in (0..HOSTS.len()).filter(|host| *host != SERVER) {
        assert!(ping(&lab.hosts[host], &ip(SERVER), 1), "host {host}");
    }
    let joined_s = lab.state()["time_s"].as_f64().expect("a time");
    lab.check(&[VICTIM, ATTACKER, PROBED, SERVER, COLLUDER, FORGETFUL]);

    // Port probing (Skowyra et al. 2018): the attacker takes the identity of a host whose port is down. That cannot be
    // told from a move; the alarm comes when the host is back, see below.
    lab.take_down(PROBED);
    lab.hosts[ATTACKER].ip(&format!("link set eth0 address {}", mac(PROBED)));
    lab.hosts[ATTACKER].ip(&format!("addr add {}/24 dev eth0", ip(PROBED)));
    assert!(wait_until(PATIENCE, || {
        attacker.send(&packet_of(PROBED));
        lab.place(PROBED).as_deref() == Some("1:2")
    }));
    lab.hosts[PROBED].ip("link set eth0 up");

    // Reverse loop (Marin et al. 2019): a probe goes back to the port from which it came. The controller has seen it
    // when it has counted the next one from this port, which is made up.
    let kept = attacker.probe();
    let forged = lab.count("discovery_forged");
    attacker.send(&kept);

    // Injected probes (Hong et al. 2015): the code of a probe cannot be made.
    let mut made_up = kept.clone();
    // The code is what comes last, besides zeros.
    let code = made_up.iter().rposition(|byte| *byte != 0).expect("a code");
    made_up[code] ^= 1;
    attacker.send(&made_up);
    lab.wait_for_count("discovery_forged", forged);

    lab.check(&[VICTIM, SERVER, COLLUDER]);

    // Topology freezing (Marin et al. 2019): a device on the cable between switches lets probes of another port in.
    let contradicted = lab.count("discovery_contradicted");
    let mut cable = Wire::open(&lab.switches, "t1");
    assert!(wait_until(PATIENCE, || {
        cable.send(&attacker.probe());
        lab.count("discovery_contradicted") > contradicted
    }));
    drop(cable);

    // Host location hijacking and ARP spoofing (Hong et al. 2015): the colluder imitates the victim, the attacker
    // claims the server's address. Both alarms wait until the ports have been up for ten seconds.
    colluder.send(&packet_of(VICTIM));
    attacker.send(&announcement(ATTACKER, SERVER));
    lab.wait_for_alarm("host-hijack");
    lab.wait_for_alarm("ip-hijack");
    lab.check(&[VICTIM, ATTACKER, SERVER, COLLUDER]);

    // Relayed probes: a link between ports at which hosts are is not believed.
    lab.wait_for_time(joined_s + 11.0);
    assert!(wait_until(PATIENCE, || {
        colluder.send(&attacker.probe());
        lab.alarms().iter().any(|kind| kind == "link-at-host-port")
    }));

    // Replayed probes: one that was kept for a while is none.
    let replayed = lab.count("discovery_replayed");
    colluder.send(&kept);
    lab.wait_for_count("discovery_replayed", replayed);

    // Port amnesia (Skowyra et al. 2018): a port goes down and up, so that its past is forgotten.
    lab.take_down(FORGETFUL);
    lab.hosts[FORGETFUL].ip("link set eth0 up");
    assert!(wait_until(PATIENCE, || {
        forgetful.send(&attacker.probe());
        lab.alarms().iter().any(|kind| kind == "port-amnesia")
    }));
    lab.check(&[VICTIM, ATTACKER, SERVER, COLLUDER]);

    // The host whose place was taken is back: both use one address. Without the attacker it has its place again.
    assert!(wait_until(PATIENCE, || {
        ping_once(&lab.hosts[PROBED]);
        lab.alarms().iter().any(|kind| kind == "host-conflict")
    }));
    lab.take_down(ATTACKER);
    assert!(wait_until(PATIENCE, || {
        ping_once(&lab.hosts[PROBED]);
        lab.place(PROBED).as_deref() == Some("1:3")
    }));
    lab.check(&[VICTIM, PROBED, SERVER, COLLUDER]);
    let mut kinds = lab.alarms();
    kinds.sort_unstable();
    kinds.dedup();
    let expected = ["host-conflict", "host-hijack", "ip-hijack", "link-at-host-port", "port-amnesia"];
    assert_eq!(kinds, expected);
}

/// Lets a host send a request, whether it is answered or not.
fn ping_once(host: &Namespace) {
    crate::bed::ping_train(host, &ip(SERVER), 1);
}
