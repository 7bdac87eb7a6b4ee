//! AF_XDP sockets.
use crate::bed::{Bed, SOON, details, features, frame, open, receive, send};
use std::process::Command;
use weir_packet::FramePool;
use weir_port::{Port, PortError};
use weir_testing::{Namespace, root, run, wait_until};

#[test]
fn frames_pass_unchanged_each_way() {
    if !root() {
        return;
    }
    for mode in ["native", "generic"] {
        let bed = Bed::new();
        let mut pool = FramePool::default();
        let mut host = open(&bed.a, "af_packet:a0").unwrap();
        let mut port = open(&bed.switch, &format!("af_xdp:s0,mode={mode}")).unwrap();
        let tag = [0x81, 0, 0x20, 5, 0x88, 0xb5];
        for (mark, ethertype, payload) in [(1, &tag[4..], 46), (2, &tag[4..], 1), (3, &tag, 1500), (4, &tag, 46)] {
            let sent = frame(ethertype, mark, payload);
            send(&mut *host, &mut pool, &sent);
            let got = receive(&mut *port, &mut pool, |got| got.bytes().last() == Some(&mark)).expect("arrives");
            assert_eq!(got.bytes(), sent);
            assert!(got.offload.is_none());
            send(&mut *port, &mut pool, &sent);
            let got = receive(&mut *host, &mut pool, |got| got.bytes().last() == Some(&mark)).expect("arrives");
            assert_eq!(got.bytes(), sent);
        }
        let counted = port.counters();
        assert_eq!((counted.tx_packets, counted.tx_bytes), (4, 2 * 14 + 2 * 18 + 46 + 1 + 1500 + 46));
        assert!(counted.rx_packets >= 4);
        assert_eq!(counted.tx_dropped() + counted.rx_errors + counted.rx_missed, 0);
    }
}

#[test]
fn hosts_with_default_offloads_talk_through() {
    if !root() {
        return;
    }
    for mode in ["native", "generic"] {
        let bed = Bed::new();
        let forwarder = bed.forward(&format!("af_xdp:s0,mode={mode}"), &format!("af_xdp:s1,mode={mode}"));
        bed.ping();
        bed.tcp("10.77.0.2", 20_000_000);
        bed.tcp("fd77::2", 20_000_000);
        let outcome = forwarder.stop();
        outcome.result.unwrap();
        let [first, second] = outcome.counters;
        assert!(first.rx_bytes > 40_000_000, "{first:?}");
        assert_eq!((first.tx_errors, first.tx_too_long, first.rx_errors), (0, 0, 0), "{mode} {first:?}");
        assert_eq!((second.tx_errors, second.tx_too_long, second.rx_errors), (0, 0, 0), "{mode} {second:?}");
    }
}

#[test]
fn kinds_mix() {
    if !root() {
        return;
    }
    let bed = Bed::new();
    let forwarder = bed.forward("af_xdp:s0,mode=native", "af_packet:s1");
    bed.ping();
    bed.tcp("10.77.0.2", 20_000_000);
    bed.tcp("fd77::2", 20_000_000);
    forwarder.stop().result.unwrap();
}

#[test]
fn every_queue_is_served() {
    if !root() {
        return;
    }
    let (near, far) = (Namespace::new(), Namespace::new());
    near.ip(&format!(
        "link add s0 numtxqueues 4 numrxqueues 4 type veth peer name a0 netns {} numtxqueues 4 numrxqueues 4",
        far.name()
    ));
    near.ip("link set s0 up");
    far.ip("link set a0 up");
    let mut pool = FramePool::default();
    let mut port = open(&near, "af_xdp:s0").unwrap();
    let mut host = open(&far, "af_packet:a0").unwrap();
    let queues = run(near.command("ethtool").args(["-l", "s0"]));
    assert!(queues.lines().filter(|line| line.starts_with("RX:")).all(|line| line.ends_with('4')), "{queues}");
    // The sender's queue follows from its processor or the flow: many flows reach several queues, and none may be lost.
    for flow in 0..200u8 {
        let mut bytes = udp(flow);
        bytes.resize(60, 0);
        send(&mut *host, &mut pool, &bytes);
    }
    let mut got = 0;
    wait_until(SOON, || {
        let mut batch = Vec::new();
        port.receive(weir_units::Instant::ZERO, &mut pool, &mut batch, 64).unwrap();
        got += batch.len();
        got >= 200
    });
    assert_eq!(got, 200);
}

fn udp(flow: u8) -> Vec<u8> {
    let mut bytes = frame(&[8, 0], 0, 0);
    bytes.extend([0x45, 0, 0, 29, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, flow, 10, 0, 0, 2]);
    bytes.extend([flow, 1, 0, 9, 0, 9, 0, 0, flow]);
    bytes
}

#[test]
fn a_vanished_device_is_noticed() {
    if !root() {
        return;
    }
    let bed = Bed::new();
    let forwarder = bed.forward("af_xdp:s0", "af_xdp:s1");
    bed.ping();
    bed.switch.ip("link del s0");
    assert!(wait_until(SOON, || forwarder.ended()));
    let error = forwarder.stop().result.expect_err("the port is gone");
    assert!(matches!(error, PortError::Gone { .. }), "{error}");
}

#[test]
fn a_link_that_went_down_works_again() {
    if !root() {
        return;
    }
    let bed = Bed::new();
    let forwarder = bed.forward("af_xdp:s0", "af_xdp:s1");
    bed.ping();
    bed.switch.ip("link set s0 down");
    bed.switch.ip("link set s0 up");
    let ping = || bed.a.command("ping").args(["-c", "1", "-W", "1", "10.77.0.2"]).output().unwrap().status.success();
    assert!(wait_until(SOON, ping));
    forwarder.stop().result.unwrap();
}

#[test]
fn sending_while_down_is_counted() {
    if !root() {
        return;
    }
    let bed = Bed::new();
    let mut pool = FramePool::default();
    let mut port = open(&bed.switch, "af_xdp:s0").unwrap();
    send(&mut *port, &mut pool, &frame(&[0x88, 0xb5], 1, 3000));
    assert_eq!(port.counters().tx_too_long, 1);
    bed.switch.ip("link set s0 down");
    assert!(!port.link().up);
    for _ in 0..100 {
        send(&mut *port, &mut pool, &frame(&[0x88, 0xb5], 1, 46));
    }
    let counters = port.counters();
    assert!(counters.tx_errors >= 98 && counters.tx_packets + counters.tx_dropped() == 101, "{counters:?}");
}

#[test]
fn settings_come_back_and_ports_reopen_at_once() {
    if !root() {
        return;
    }
    let bed = Bed::new();
    let state = || {
        let all = [(&bed.switch, "s0"), (&bed.a, "a0")];
        all.map(|(namespace, device)| (features(namespace, device), details(namespace, device)))
    };
    let before = state();
    for mode in ["native", "generic", "native", "native"] {
        let port = open(&bed.switch, &format!("af_xdp:s0,mode={mode}")).unwrap();
        assert!(details(&bed.switch, "s0").contains("prog/xdp"), "{}", details(&bed.switch, "s0"));
        assert!(features(&bed.switch, "s0").contains("rx-vlan-offload: off"));
        drop(port);
    }
    assert!(wait_until(SOON, || state() == before), "{before:?}\n{:?}", state());
}

#[test]
fn errors_say_what_to_do() {
    if !root() {
        return;
    }
    let bed = Bed::new();
    let message = |spec: &str| open(&bed.switch, spec).err().expect("refused").to_string();
    assert!(message("af_xdp:s7").contains("no interface `s7` in this network namespace; there are lo, s"));
    assert!(message("af_xdp:s0,mode=fast").contains("found `fast`, expected native, generic or auto"));
    let _first = open(&bed.switch, "af_xdp:s0").unwrap();
    let second = message("af_xdp:s0");
    assert!(second.contains("another program is attached to s0") && second.contains("xdp off"), "{second}");
    let loopback = message("af_xdp:lo,mode=native");
    assert!(loopback.contains("try mode=generic, or --port N=af_packet:lo"), "{loopback}");
}

#[test]
fn missing_capabilities_are_named() {
    if !root() {
        return;
    }
    // The test's own program, as a user without rights: prints the errors.
    let program = std::env::current_exe().unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"])
        .arg(&program)
        .args(["--ignored", "--exact", "af_xdp::print_errors", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for needed in ["cap_net_raw+ep", "it needs CAP_NET_RAW", "sudo setcap"] {
        assert!(text.contains(needed), "{text}{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
#[ignore = "run by another test, as a user without rights"]
fn print_errors() {
    for spec in ["af_packet:lo", "af_xdp:lo"] {
        let opened: Result<Box<dyn Port>, PortError> = spec.parse().and_then(|spec| weir_port::open(&spec));
        println!("{}", opened.err().expect("refused"));
    }
}
