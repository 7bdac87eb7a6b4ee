//! In-band control over IPv6, and in a VLAN.
use super::{AddressPlan, InBandSwitch, Network, can_run};
use std::time::Duration;

#[test]
fn a_ring_comes_up_over_ipv6_and_survives_the_loss_of_a_link() {
    if !can_run() {
        return;
    }
    let mut network = Network::new(AddressPlan::Ipv6, 3, &[[1, 2], [2, 3], [3, 1]]);
    network.start_controller();
    network.switches.iter_mut().for_each(InBandSwitch::start);
    network.all_come_up(&[1; 3]);
    let show = network.switches[1].ctl(&["show"]);
    assert!(show.contains("tcp6,ipv6_dst=fd09::100,tp_dst=6653") && !show.contains("arp,"), "{show}");
    network.set_link(1, 2, "down");
    // Sessions without a way end within four seconds.
    network.switches[0].wait(Duration::from_secs(5));
    network.all_come_up(&[1; 3]);
    let connects: Vec<u64> = network.switches.iter().map(InBandSwitch::connects).collect();
    assert_eq!(connects, [1; 3], "no session ended");
    network.restart_controller();
}

#[test]
fn a_chain_comes_up_in_a_vlan() {
    if !can_run() {
        return;
    }
    let mut network = Network::new(AddressPlan::Tagged, 2, &[[1, 2]]);
    network.switches.iter_mut().for_each(InBandSwitch::start);
    network.start_controller();
    network.all_come_up(&[1, 1]);
    let show = network.switches[1].ctl(&["show"]);
    assert!(show.contains("dl_vlan=20,tcp,nw_dst=10.9.0.100,tp_dst=6653"), "{show}");
    network.restart_controller();
}
