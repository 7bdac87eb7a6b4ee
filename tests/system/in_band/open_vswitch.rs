//! Chains in which switches of weir and of Open vSwitch alternate, all with in-band control.
use super::{AddressPlan, InBandSwitch, Network, PATIENCE, can_run};
use crate::open_vswitch::OpenVswitch;
use weir_testing::wait_until;

/// A chain of four switches. Those of Open vSwitch are at even places, or at odd ones.
struct MixedChain {
    network: Network,
    /// Open vSwitch's switches, by their place in the network.
    others: Vec<(usize, OpenVswitch)>,
}

impl MixedChain {
    fn start(first_other: usize) -> MixedChain {
        let mut network = Network::new(AddressPlan::Ipv4, 4, &[[1, 2], [2, 3], [3, 4]]);
        let mut others = Vec::new();
        let host = (&network.host, "eth0");
        let ports = |switch: &InBandSwitch| switch.ports.clone();
        // Open vSwitch in user space passes frames on as they come, without the checksums that a veth leaves out.
        weir_testing::run(host.0.command("ethtool").args(["-K", host.1, "tx", "off"]));
        for switch in &network.switches {
            for port in ports(switch) {
                weir_testing::run(switch.namespace.command("ethtool").args(["-K", &port, "tx", "off"]));
            }
        }
        for place in (0..4).rev() {
            if place % 2 == first_other {
                let folder = network.folder.path().join(format!("ovs{place}"));
                std::fs::create_dir(&folder).expect("a folder");
                others.push((place, start_other(&network.switches[place], &folder)));
            } else {
                network.switches[place].start();
            }
        }
        network.start_controller();
        MixedChain { network, others }
    }

    /// Waits until all switches have a session; weir's have to have had so many.
    fn all_come_up(&self, connects: u64) {
        for (place, other) in &self.others {
            let connected = || other.vsctl(&["--bare", "--columns=is_connected", "list", "controller"]);
            let is_up = wait_until(PATIENCE, || connected().trim() == "true");
            assert!(is_up, "Open vSwitch at {} has no session: {}", place + 1, other.vsctl(&["list", "controller"]));
        }
        for switch in self.network.switches.iter().filter(|switch| switch.process.is_some()) {
            let is_up = wait_until(PATIENCE, || switch.is_up(connects));
            assert!(is_up, "switch {} has no session: {}", switch.number, switch.ctl(&["show"]));
        }
    }

    fn restart_controller(&mut self) {
        self.network.controller.take().expect("it runs").stop();
        for (_, other) in &self.others {
            let connected = || other.vsctl(&["--bare", "--columns=is_connected", "list", "controller"]);
            assert!(wait_until(PATIENCE, || connected().trim() == "false"), "the session outlives its controller");
        }
        self.network.start_controller();
    }
}

/// Starts Open vSwitch with in-band control in place of a switch.
fn start_other(switch: &InBandSwitch, folder: &std::path::Path) -> OpenVswitch {
    let other = OpenVswitch::start(&switch.namespace, folder);
    // By default the bridge has the Ethernet address of a port, whose interface then takes the bridge's packets, too.
    let address = format!("other-config:hwaddr=02:00:00:00:09:{:02x}", switch.number);
    let datapath_id = format!("other-config:datapath-id={:016x}", switch.number);
    let ports: Vec<&str> = switch.ports.iter().map(String::as_str).collect();
    other.add_bridge("br0", &["fail_mode=secure", "protocols=OpenFlow13", &address, &datapath_id], &ports);
    switch.plan.address(&switch.namespace, "br0", switch.number);
    switch.namespace.ip("link set br0 up");
    other.vsctl(&["set-controller", "br0", switch.plan.controller()]);
    other.vsctl(&["set", "controller", "br0", "connection_mode=in-band", "max_backoff=1000", "inactivity_probe=2000"]);
    other
}

/// Checks that a mixed chain comes up, and comes back after its controller was gone, also past entries that drop all.
fn comes_up_and_back(first_other: usize) {
    if !can_run() || !weir_testing::programs(&[&OpenVswitch::PROGRAMS[..], &["ethtool"]].concat()) {
        return;
    }
    let mut chain = MixedChain::start(first_other);
    chain.all_come_up(1);
    for switch in chain.network.switches.iter().filter(|switch| switch.process.is_some()) {
        switch.ctl(&["add-flow", "priority=65535,actions=drop"]);
    }
    chain.restart_controller();
    chain.all_come_up(2);
}

#[test]
fn open_vswitch_behind_weir_comes_up() {
    comes_up_and_back(1);
}

#[test]
fn weir_behind_open_vswitch_comes_up() {
    comes_up_and_back(0);
}
