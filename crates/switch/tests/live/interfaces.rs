//! Ports on the kernel's interfaces, whose links change and whose devices vanish and return. Needs root.
use crate::bed::{Controller, until};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use std::os::fd::AsFd;
use std::time::Duration;
use tokio::io::DuplexStream;
use weir_openflow::Body;
use weir_openflow::model::port::{PortStatusReason, bits};
use weir_openflow::session::SessionConfig;
use weir_switch::{PortConfig, SoftwareSwitch, SoftwareSwitchConfig, SwitchHandle};
use weir_testing::{Namespace, root};
use weir_units::{Clock, SystemClock};

/// Time within which a change that the kernel reports is mostly known. Polling would find it after half a second or a
/// second on average.
const AT_ONCE: Duration = Duration::from_millis(200);

/// Starts a switch in a namespace, with the interface `s0` as its only port.
fn switch(namespace: &Namespace, kind: &str) -> SwitchHandle {
    let file = std::fs::File::open(format!("/run/netns/{}", namespace.name())).unwrap();
    let port = format!("1={kind}:s0");
    let start = move || {
        move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network)).unwrap();
        let ports = vec![PortConfig::open(port.parse().unwrap()).unwrap()];
        // A controller of these tests is silent while commands change interfaces, which may take long.
        let session = SessionConfig { echo_interval: Duration::ZERO, ..SessionConfig::default() };
        let threads = crate::threads();
        SoftwareSwitch::start(SoftwareSwitchConfig { ports, threads, session, ..SoftwareSwitchConfig::default() })
            .unwrap()
    };
    std::thread::spawn(start).join().unwrap()
}

/// Returns a switch on one end of a veth, with the namespaces of that end, `s0`, and of the other, `h0`.
fn on_a_veth(kind: &str) -> (Namespace, Namespace, SwitchHandle) {
    let [inside, outside] = [Namespace::new(), Namespace::new()];
    inside.join("s0", &outside, "h0");
    let switch = switch(&inside, kind);
    (inside, outside, switch)
}

async fn status(controller: &mut Controller<DuplexStream>) -> (PortStatusReason, bool) {
    let told = controller.expect(|message| match message.body {
        Body::PortStatus(status) => Some((status.reason, status.desc.state & bits::LINK_DOWN == 0)),
        _ => None,
    });
    told.await
}

/// Checks that most changes were known at once; a busy machine may have delayed a few.
fn at_once(what: &str, mut times: Vec<Duration>) {
    times.sort();
    assert!(times[times.len() / 2] < AT_ONCE, "{what}: known after {times:?}");
}

#[tokio::test]
async fn a_link_that_changes_is_told_at_once() {
    if !root() {
        return;
    }
    let [inside, outside] = [Namespace::new(), Namespace::new()];
    // The kernel itself delays changes of a veth whose ends have equal indices by up to a second.
    outside.ip("link add pad type veth peer name pad-end");
    inside.join("s0", &outside, "h0");
    let switch = switch(&inside, "af_packet");
    let mut controller = Controller::embedded(&switch, 64 * 1024).await;
    controller.barrier().await;
    let clock = SystemClock::start();
    let mut times = Vec::new();
    for _ in 0..4 {
        for (to, up) in [("down", false), ("up", true)] {
            outside.ip(&format!("link set h0 {to}"));
            let changed = clock.now();
            // A veth that goes up may be reported in two steps.
            while status(&mut controller).await != (PortStatusReason::Modify, up) {}
            times.push(clock.now().since(changed));
        }
    }
    at_once("a link", times);
}

#[tokio::test]
async fn a_device_that_comes_back_is_opened_at_once() {
    if !root() {
        return;
    }
    for kind in ["af_packet", "af_xdp"] {
        let (inside, outside, switch) = on_a_veth(kind);
        let mut controller = Controller::embedded(&switch, 64 * 1024).await;
        controller.barrier().await;
        let clock = SystemClock::start();
        let (mut gone, mut opened) = (Vec::new(), Vec::new());
        for _ in 0..5 {
            inside.ip("link del s0");
            let deleted = clock.now();
            while status(&mut controller).await.0 != PortStatusReason::Delete {}
            gone.push(clock.now().since(deleted));
            inside.join("s0", &outside, "h0");
            let joined = clock.now();
            while status(&mut controller).await.0 != PortStatusReason::Add {}
            opened.push(clock.now().since(joined));
        }
        at_once(&format!("{kind}: gone"), gone);
        at_once(&format!("{kind}: there again"), opened);
    }
}

/// A port stays on its interface after a rename, and reports the new name.
#[tokio::test]
async fn a_renamed_device_is_followed_and_named() {
    if !root() {
        return;
    }
    for kind in ["af_packet", "af_xdp"] {
        let (inside, _outside, switch) = on_a_veth(kind);
        let rename = |from: &str, to: &str| {
            inside.ip(&format!("link set {from} down"));
            inside.ip(&format!("link set {from} name {to}"));
            inside.ip(&format!("link set {to} up"));
        };
        let port = || switch.snapshot().unwrap().ports.remove(0);
        rename("s0", "t0");
        until(|| port().renamed.as_deref() == Some("t0") && port().link_up).await;
        assert_eq!(port().name, "s0", "controllers know it by its first name");
        // Another interface with the old name does not become the port's.
        inside.ip("link add s0 type veth peer name s1");
        inside.ip("link del s0");
        assert!(port().present && port().renamed.as_deref() == Some("t0"), "{kind}: {:?}", port());
        rename("t0", "s0");
        until(|| port().renamed.is_none() && port().link_up).await;
    }
}
