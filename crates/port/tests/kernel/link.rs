//! Tests of the link monitor.
use crate::testbed::within;
use std::time::Duration;
use weir_port::event::wait_readable;
use weir_port::netlink::{self, LinkEvent, LinkMonitor};
use weir_testing::{Namespace, root};

/// Waits for an event that `wanted` accepts; skips others.
fn wait_for(monitor: &mut LinkMonitor, wanted: impl Fn(&LinkEvent) -> bool) -> LinkEvent {
    use std::os::fd::AsFd as _;
    for _ in 0..100 {
        while let Some(event) = monitor.next_event().unwrap() {
            if wanted(&event) {
                return event;
            }
        }
        wait_readable(monitor.as_fd(), 100);
    }
    panic!("no such event in {:?}", Duration::from_secs(10));
}

#[test]
fn links_come_change_and_go() {
    if !root() {
        return;
    }
    let namespace = Namespace::new();
    let mut monitor = within(&namespace, || LinkMonitor::new().unwrap()).join().unwrap();
    assert_eq!(monitor.next_event().unwrap(), None);
    namespace.ip("link add v0 type veth peer name v1");
    let made = wait_for(&mut monitor, |event| matches!(event, LinkEvent::Changed { name, .. } if name == "v0"));
    let LinkEvent::Changed { index: v0, up: false, .. } = made else { panic!("{made:?}") };
    namespace.ip("link set v0 up");
    namespace.ip("link set v1 up");
    let up = |event: &LinkEvent| matches!(event, LinkEvent::Changed { index, up: true, .. } if *index == v0);
    wait_for(&mut monitor, up);
    namespace.ip("link set v1 down");
    wait_for(&mut monitor, |event| matches!(event, LinkEvent::Changed { index, up: false, .. } if *index == v0));
    namespace.ip("link del v0");
    let gone = wait_for(&mut monitor, |event| matches!(event, LinkEvent::Removed { .. }));
    assert!(matches!(gone, LinkEvent::Removed { ref name, .. } if name == "v0" || name == "v1"), "{gone:?}");
}

#[test]
fn what_was_missed_is_said() {
    if !root() {
        return;
    }
    let namespace = Namespace::new();
    let mut monitor = within(&namespace, || LinkMonitor::new().unwrap()).join().unwrap();
    // Far more changes than a socket's buffer holds.
    let changes: String = (0..600).map(|mtu| format!("link set lo mtu {}\n", 1000 + mtu)).collect();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), changes).unwrap();
    namespace.ip(&format!("-batch {}", file.path().display()));
    wait_for(&mut monitor, |event| *event == LinkEvent::Missed);
}

#[test]
fn the_router_to_an_address_is_found() {
    if !root() {
        return;
    }
    let (here, other) = (Namespace::new(), Namespace::new());
    here.join("eth0", &other, "eth0");
    here.ip("addr add 10.9.0.1/24 dev eth0");
    weir_testing::run(here.command("sysctl").args(["-qw", "net.ipv6.conf.eth0.disable_ipv6=0"]));
    here.ip("addr add fd09::1/64 dev eth0 nodad");
    let next_hop = |address: &str| {
        let address = address.parse().expect("an address");
        here.within(|| netlink::next_hop(address).expect("netlink")).map(|router| router.to_string())
    };
    assert_eq!([next_hop("192.0.2.1"), next_hop("2001:db8::1")], [None, None], "no route");
    here.ip("route add default via 10.9.0.254");
    here.ip("route add default via fe80::fe dev eth0");
    assert_eq!(next_hop("192.0.2.1").as_deref(), Some("10.9.0.254"));
    assert_eq!(next_hop("2001:db8::1").as_deref(), Some("fe80::fe"));
    assert_eq!([next_hop("10.9.0.7"), next_hop("fd09::7")], [None, None], "a neighbour");
    assert_eq!([next_hop("10.9.0.1"), next_hop("fd09::1")], [None, None], "the machine itself");
}
