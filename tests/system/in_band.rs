//! Tests in-band control: switches in namespaces of their own, which reach their controller over the links between them
//! and nothing else.
mod addresses;
mod open_vswitch;
mod queue;

use crate::bed::{ready, weir};
use std::path::PathBuf;
use std::time::Duration;
use weir_testing::{Namespace, TestProcess, wait_until};

/// Time for sessions to come up or to come back.
const PATIENCE: Duration = Duration::from_secs(60);
/// Number of the controller in addresses.
const CONTROLLER_NUMBER: usize = 100;
/// VLAN of tagged control traffic.
const VLAN: u16 = 20;

/// Addresses of the controller and the switches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AddressPlan {
    Ipv4,
    Ipv6,
    /// IPv4, in a VLAN whose tag all stations send.
    Tagged,
}

impl AddressPlan {
    /// Returns the controller's target, which is also the address on which it listens.
    fn controller(self) -> &'static str {
        match self {
            AddressPlan::Ipv4 | AddressPlan::Tagged => "tcp:10.9.0.100:6653",
            AddressPlan::Ipv6 => "tcp:[fd09::100]:6653",
        }
    }

    /// Gives an interface the address of the station with this number.
    fn address(self, namespace: &Namespace, device: &str, number: usize) {
        match self {
            AddressPlan::Ipv4 => namespace.ip(&format!("addr add 10.9.0.{number}/24 dev {device}")),
            AddressPlan::Ipv6 => {
                let on = format!("net.ipv6.conf.{device}.disable_ipv6=0");
                weir_testing::run(namespace.command("sysctl").args(["-qw", &on]));
                // The controller listens at once; switches find out first that no other station has their address.
                let check = if number == CONTROLLER_NUMBER { "nodad" } else { "" };
                namespace.ip(&format!("addr add fd09::{number}/64 dev {device} {check}"));
            }
            AddressPlan::Tagged => namespace.ip(&format!("addr add 10.9.0.{number}/24 dev stack")),
        }
    }

    /// Returns the local port of a switch.
    fn local_port(self) -> &'static str {
        if self == AddressPlan::Tagged { "LOCAL=af_packet:local" } else { "LOCAL=tap:weir0" }
    }
}

/// Starts what tags the frames of a namespace's network stack, because not every kernel has VLAN interfaces: a switch
/// between the interface `stack` and another one.
fn tagger(namespace: &Namespace, interface: &str, socket: PathBuf) -> TestProcess {
    namespace.join("stack", namespace, "inner");
    let mut command = namespace.command(weir());
    command.args(["switch", "--port", "1=af_packet:inner", "--port", &format!("2=af_packet:{interface}")]);
    let tag = format!("in_port=1,actions=push_vlan:0x8100,set_field:{}->vlan_vid,output:2", 0x1000 | VLAN);
    let untag = format!("in_port=2,dl_vlan={VLAN},actions=pop_vlan,output:1");
    command.args(["--entry", &tag, "--entry", &untag, "--control-socket"]);
    command.arg(socket);
    ready(command)
}

/// A switch in its own namespace. Its session ends after four seconds without a message.
struct InBandSwitch {
    namespace: Namespace,
    /// Interfaces to neighbours.
    ports: Vec<String>,
    socket: PathBuf,
    number: usize,
    plan: AddressPlan,
    process: Option<TestProcess>,
}

/// Switches that are joined by links, and a controller at the first one.
struct Network {
    switches: Vec<InBandSwitch>,
    host: Namespace,
    controller: Option<TestProcess>,
    /// Taggers of the switches and of the host, if control traffic is tagged.
    _taggers: Vec<TestProcess>,
    folder: tempfile::TempDir,
}

impl InBandSwitch {
    fn start(&mut self) {
        self.start_with(&[]);
    }

    fn start_with(&mut self, arguments: &[&str]) {
        let mut command = self.namespace.command(weir());
        command.args(["switch", "--in-band", "--echo-interval", "2s", "--controller", self.plan.controller()]);
        if self.plan == AddressPlan::Tagged {
            command.args(["--in-band-vlan", &VLAN.to_string()]);
        }
        command.args(arguments);
        command.args(["--dpid", &self.number.to_string(), "--port", self.plan.local_port(), "--control-socket"]);
        command.arg(&self.socket);
        for port in &self.ports {
            command.args(["--port", &format!("af_packet:{port}")]);
        }
        self.process = Some(ready(command));
        self.plan.address(&self.namespace, "weir0", self.number);
    }

    /// Runs `weir ctl` on the switch.
    fn ctl(&self, arguments: &[&str]) -> String {
        let mut command = self.namespace.command(weir());
        weir_testing::run(command.arg("ctl").arg("--socket").arg(&self.socket).args(arguments))
    }

    fn snapshot(&self) -> serde_json::Value {
        serde_json::from_str(&self.ctl(&["show", "--json"])).expect("JSON")
    }

    /// Returns true if the session with the controller is up, and has come up at least so often.
    fn is_up(&self, connects: u64) -> bool {
        let channel = &self.snapshot()["channels"][0];
        channel["state"]["up"].is_object() && channel["connects"].as_u64() >= Some(connects)
    }

    /// Returns how often the session came up.
    fn connects(&self) -> u64 {
        self.snapshot()["channels"][0]["connects"].as_u64().expect("a number")
    }

    /// Waits until this much time has passed for the switch.
    fn wait(&self, time: Duration) {
        let uptime = || self.snapshot()["uptime_s"].as_f64().expect("a time");
        let end = uptime() + time.as_secs_f64();
        assert!(wait_until(PATIENCE, || uptime() > end), "the switch's time stands still");
    }
}

impl Network {
    /// Makes `count` switches with links between the given ones. Nothing runs yet.
    fn new(plan: AddressPlan, count: usize, links: &[[usize; 2]]) -> Network {
        let folder = tempfile::tempdir().expect("a folder");
        let switch = |number: usize| InBandSwitch {
            namespace: Namespace::new(),
            ports: Vec::new(),
            socket: folder.path().join(format!("s{number}.sock")),
            number,
            plan,
            process: None,
        };
        let mut switches: Vec<InBandSwitch> = (1..=count).map(switch).collect();
        for switch in &switches {
            // The kernel would answer for the local port's address on the other interfaces, too.
            let quiet = ["-qw", "net.ipv4.conf.all.arp_ignore=1"];
            weir_testing::run(switch.namespace.command("sysctl").args(quiet));
        }
        let host = Namespace::new();
        host.join("eth0", &switches[0].namespace, "host");
        let mut taggers = Vec::new();
        if plan == AddressPlan::Tagged {
            let socket = |number: usize| folder.path().join(format!("tagger{number}.sock"));
            taggers.push(tagger(&host, "eth0", socket(CONTROLLER_NUMBER)));
            for switch in &switches {
                switch.namespace.join("outer", &switch.namespace, "local");
                taggers.push(tagger(&switch.namespace, "outer", socket(switch.number)));
            }
        }
        plan.address(&host, "eth0", CONTROLLER_NUMBER);
        switches[0].ports.push("host".to_owned());
        for [one, other] in links {
            let (here, there) = (format!("to{other}"), format!("to{one}"));
            switches[one - 1].namespace.join(&here, &switches[other - 1].namespace, &there);
            switches[one - 1].ports.push(here);
            switches[other - 1].ports.push(there);
        }
        Network { switches, host, controller: None, _taggers: taggers, folder }
    }

    fn start_controller(&mut self) {
        let mut command = self.host.command(weir());
        command.args(["controller", "--listen", self.switches[0].plan.controller(), "--control-socket"]);
        command.arg(self.folder.path().join("controller.sock"));
        self.controller = Some(ready(command));
    }

    fn all_come_up(&self, connects: &[u64]) {
        for (switch, connects) in self.switches.iter().zip(connects) {
            let is_up = wait_until(PATIENCE, || switch.is_up(*connects));
            assert!(is_up, "switch {} has no session: {}", switch.number, switch.ctl(&["show"]));
        }
    }

    /// Stops the controller and starts it again. All sessions have to come back.
    fn restart_controller(&mut self) {
        let before: Vec<u64> = self.switches.iter().map(InBandSwitch::connects).collect();
        self.controller.take().expect("it runs").stop();
        self.start_controller();
        self.all_come_up(&before.iter().map(|connects| connects + 1).collect::<Vec<_>>());
    }

    /// Sets the link between two switches up or down at the first one. Its end at the other one loses its carrier.
    fn set_link(&self, one: usize, other: usize, state: &str) {
        self.switches[one - 1].namespace.ip(&format!("link set to{other} {state}"));
    }
}

fn can_run() -> bool {
    weir_testing::root() && weir_testing::programs(&["ip"])
}

#[test]
fn a_chain_of_switches_comes_up_over_its_own_links() {
    if !can_run() {
        return;
    }
    let mut network = Network::new(AddressPlan::Ipv4, 3, &[[1, 2], [2, 3]]);
    // The last switch is the first one that looks for the controller.
    network.switches.iter_mut().rev().for_each(InBandSwitch::start);
    network.start_controller();
    network.all_come_up(&[1, 1, 1]);
    let middle = &network.switches[1];
    let show = middle.ctl(&["show"]);
    assert!(show.contains("tcp,nw_dst=10.9.0.100,tp_dst=6653"), "{show}");
    let trace = middle.ctl(&["trace", "to3", "arp,arp_spa=10.9.0.3,arp_tpa=10.9.0.100"]);
    assert!(trace.contains("in-band control: arp,arp_tpa=10.9.0.100"), "{trace}");
    assert!(!middle.ctl(&["dump-flows"]).contains("10.9.0.100"));
    // No entry of the highest priority, and no lack of entries, cuts off the switches behind.
    middle.ctl(&["del-flows"]);
    middle.ctl(&["add-flow", "priority=65535,actions=drop"]);
    let last = &mut network.switches[2];
    last.process.take().expect("it runs").stop();
    last.start();
    network.all_come_up(&[1, 1, 1]);
    let entries = network.switches[1].ctl(&["dump-flows"]);
    assert!(entries.contains("priority=65535"), "{entries}");
    // Sessions come back after the controller was gone.
    network.restart_controller();
}

#[test]
fn sessions_in_a_ring_survive_the_loss_of_a_link() {
    if !can_run() {
        return;
    }
    let mut network = Network::new(AddressPlan::Ipv4, 4, &[[1, 2], [2, 3], [3, 4], [4, 1]]);
    network.start_controller();
    network.switches.iter_mut().for_each(InBandSwitch::start);
    network.all_come_up(&[1; 4]);
    // No frame circles: the switches send much fewer than a ring could carry.
    let sent = |network: &Network| -> u64 {
        let ports = network.switches.iter().flat_map(|switch| {
            let snapshot = switch.snapshot();
            snapshot["ports"].as_array().cloned().unwrap_or_default()
        });
        ports.map(|port| port["counters"]["tx_packets"].as_u64().unwrap_or(0)).sum()
    };
    let before = sent(&network);
    network.switches[0].wait(Duration::from_secs(2));
    let circling = sent(&network) - before;
    assert!(circling < 1000, "{circling} frames within two seconds in a ring at rest");
    for [one, other] in [[1, 2], [3, 4]] {
        network.set_link(one, other, "down");
        // Sessions without a way end within four seconds.
        network.switches[0].wait(Duration::from_secs(5));
        network.all_come_up(&[1; 4]);
        network.set_link(one, other, "up");
        network.switches[0].wait(Duration::from_secs(1));
    }
    let connects: Vec<u64> = network.switches.iter().map(InBandSwitch::connects).collect();
    assert_eq!(connects, [1; 4], "no session ended");
    // New connections find their way with a link cut, too.
    network.set_link(4, 1, "down");
    network.restart_controller();
}
