//! Ports on the kernel's interfaces, whose links change and whose devices come and go. Needs root.
use crate::bed::Controller;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::io::DuplexStream;
use weir_openflow::Body;
use weir_openflow::model::port::{PortStatusReason, bits};
use weir_switch::{PortConfig, Switch, SwitchConfig, SwitchHandle};
use weir_testing::{Namespace, root};
use weir_units::{Clock, SystemClock};

/// What the kernel tells is known within this time; what is asked for, after a second on average.
const AT_ONCE: Duration = Duration::from_millis(400);

/// A switch in a namespace, with the interface `s0` as its only port.
fn switch(namespace: &Namespace, kind: &str) -> SwitchHandle {
    let file = std::fs::File::open(format!("/run/netns/{}", namespace.name())).unwrap();
    let port = format!("1={kind}:s0");
    let start = move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        let ports = vec![PortConfig::open(port.parse().unwrap()).unwrap()];
        Switch::start(SwitchConfig { ports, threads: crate::threads(), ..SwitchConfig::default() }).unwrap()
    };
    std::thread::spawn(start).join().unwrap()
}

async fn status(controller: &mut Controller<DuplexStream>) -> (PortStatusReason, bool) {
    let told = controller.expect(|message| match message.body {
        Body::PortStatus(status) => Some((status.reason, status.desc.state & bits::LINK_DOWN == 0)),
        _ => None,
    });
    told.await
}

#[tokio::test]
async fn a_link_that_changes_is_told_at_once() {
    if !root() {
        return;
    }
    let [inside, outside] = [Namespace::new(), Namespace::new()];
    // The kernel itself waits up to a second with changes of a veth whose ends have the same index.
    outside.ip("link add pad type veth peer name pad-end");
    inside.join("s0", &outside, "h0");
    let switch = switch(&inside, "af_packet");
    let mut controller = Controller::embedded(&switch, 64 * 1024).await;
    controller.barrier().await;
    let clock = SystemClock::start();
    for _ in 0..4 {
        for (to, up) in [("down", false), ("up", true)] {
            let before = clock.now();
            outside.ip(&format!("link set h0 {to}"));
            // A veth that comes up may be told in two steps.
            while status(&mut controller).await != (PortStatusReason::Modify, up) {}
            let after = clock.now().since(before);
            assert!(after < AT_ONCE, "{to}: told after {after:?}");
        }
    }
}

#[tokio::test]
async fn a_device_that_comes_back_is_opened_at_once() {
    if !root() {
        return;
    }
    for kind in ["af_packet", "af_xdp"] {
        let [inside, outside] = [Namespace::new(), Namespace::new()];
        inside.join("s0", &outside, "h0");
        let switch = switch(&inside, kind);
        let mut controller = Controller::embedded(&switch, 64 * 1024).await;
        controller.barrier().await;
        let clock = SystemClock::start();
        for _ in 0..3 {
            let before = clock.now();
            inside.ip("link del s0");
            while status(&mut controller).await.0 != PortStatusReason::Delete {}
            let gone = clock.now();
            assert!(gone.since(before) < AT_ONCE, "{kind}: gone is told after {:?}", gone.since(before));
            inside.join("s0", &outside, "h0");
            while status(&mut controller).await.0 != PortStatusReason::Add {}
            let after = clock.now().since(gone);
            assert!(after < AT_ONCE, "{kind}: opened again after {after:?}");
        }
    }
}
