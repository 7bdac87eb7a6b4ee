//! Tests of AF_XDP ports.
use crate::testbed::{Bed, SOON, details, features, frame, open, pass_both_ways, send, within};
use std::io::Read as _;
use std::process::{Command, Stdio};
use std::time::Duration;
use weir_packet::FramePool;
use weir_port::{Port, PortError};
use weir_testing::{Namespace, TestProcess, programs, root, run, wait_until};
use weir_units::Instant;

#[test]
fn frames_pass_unchanged_each_way() {
    for mode in ["native", "generic"] {
        let Some(bed) = Bed::new() else { return };
        let (mut pool, mut host, mut port) = bed.host_and_port(&format!("af_xdp:s0,mode={mode}"));
        let tag = [0x81, 0, 0x20, 5, 0x88, 0xb5];
        for (mark, ethertype, payload) in [(1, &tag[4..], 46), (2, &tag[4..], 1), (3, &tag, 1500), (4, &tag, 46)] {
            let sent = frame(ethertype, mark, payload);
            pass_both_ways(&mut *host, &mut *port, &mut pool, &sent);
        }
        let counted = port.counters();
        assert_eq!((counted.tx_packets, counted.tx_bytes), (4, 2 * 14 + 2 * 18 + 46 + 1 + 1500 + 46));
        assert!(counted.rx_packets >= 4);
        assert_eq!(counted.tx_dropped() + counted.rx_errors + counted.rx_missed, 0);
    }
}

#[test]
fn hosts_with_default_offloads_talk_through() {
    for mode in ["native", "generic"] {
        let Some(bed) = Bed::new() else { return };
        let forwarder = bed.forward(&format!("af_xdp:s0,mode={mode}"), &format!("af_xdp:s1,mode={mode}"));
        bed.talk(20_000_000);
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
    let Some(bed) = Bed::new() else { return };
    let forwarder = bed.forward("af_xdp:s0,mode=native", "af_packet:s1");
    bed.talk(20_000_000);
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
    far.ip("addr add 10.77.0.1/24 dev a0");
    far.ip("neigh add 10.77.0.2 lladdr 02:00:00:00:00:0b dev a0");
    let mut pool = FramePool::default();
    let mut port = open(&near, "af_xdp:s0").unwrap();
    // The kernel spreads flows over queues: many flows reach several queues, and none may be lost.
    let sender = within(&far, || {
        for flow in 0..200u8 {
            let socket = std::net::UdpSocket::bind("10.77.0.1:0").unwrap();
            socket.send_to(&[flow; 8], "10.77.0.2:9").unwrap();
        }
    });
    sender.join().unwrap();
    let mut flows = std::collections::BTreeSet::new();
    wait_until(SOON, || {
        let mut batch = Vec::new();
        port.receive(weir_units::Instant::ZERO, &mut pool, &mut batch, 64).unwrap();
        flows.extend(batch.iter().filter(|frame| frame.len() == 50).map(|frame| frame.bytes()[49]));
        flows.len() >= 200
    });
    assert_eq!(flows.len(), 200);
    let statistics = run(near.command("ethtool").args(["-S", "s0"]));
    let used = |line: &&str| line.contains("xdp_redirect:") && !line.ends_with(" 0");
    assert!(statistics.lines().filter(used).count() > 1, "{statistics}");
}

#[test]
fn captures_show_whole_checksums() {
    if !programs(&["tcpdump"]) {
        return;
    }
    for [first, second] in [["af_packet:s0,offload=off", "af_packet:s1,offload=off"], ["af_xdp:s0", "af_xdp:s1"]] {
        let Some(bed) = Bed::new() else { return };
        let forwarder = bed.forward(first, second);
        let mut tcpdump = bed.b.command("tcpdump");
        tcpdump.args(["-i", "b0", "-Q", "in", "-U", "-n", "-v", "-c", "200", "tcp"]);
        let mut capture = TestProcess::start(tcpdump.stdout(Stdio::piped()).stderr(Stdio::null()));
        let mut output = capture.stdout().unwrap();
        // The captured frames depend on when the capture begins: traffic continues until it has enough frames.
        let enough = wait_until(Duration::from_secs(20), || {
            bed.tcp("10.77.0.2", 1_000_000);
            capture.exited().is_some()
        });
        assert!(enough, "200 frames captured");
        let mut text = String::new();
        output.read_to_string(&mut text).unwrap();
        let count = |word: &str| text.matches(word).count();
        assert!(count("(correct)") >= 150 && count("incorrect") == 0, "{first}: {text}");
        forwarder.stop().result.unwrap();
    }
}

#[test]
fn a_vanished_device_is_noticed() {
    crate::testbed::a_vanished_device_is_noticed("af_xdp");
}

#[test]
fn a_link_that_went_down_works_again() {
    let Some(bed) = Bed::new() else { return };
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
    let Some(bed) = Bed::new() else { return };
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
    let Some(bed) = Bed::new() else { return };
    let state = || {
        let all = [(&bed.switch, "s0"), (&bed.a, "a0")];
        all.map(|(namespace, device)| (features(namespace, device), details(namespace, device)))
    };
    let before = state();
    assert!(before[1].0.contains("tx-vlan-offload: on") && before[0].0.contains("rx-vlan-offload: on"));
    for mode in ["native", "generic", "native", "native"] {
        let port = open(&bed.switch, &format!("af_xdp:s0,mode={mode}")).unwrap();
        assert!(details(&bed.switch, "s0").contains("prog/xdp"), "{}", details(&bed.switch, "s0"));
        assert!(features(&bed.switch, "s0").contains("rx-vlan-offload: off"));
        // The host's end is found although it is in another namespace.
        assert!(features(&bed.a, "a0").contains("tx-vlan-offload: off"));
        drop(port);
    }
    assert!(wait_until(SOON, || state() == before), "{before:?}\n{:?}", state());
}

#[test]
fn a_peer_in_the_same_namespace_is_found() {
    if !root() {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("link add s0 type veth peer name a0");
    let port = open(&namespace, "af_xdp:s0").unwrap();
    assert!(features(&namespace, "a0").contains("tx-vlan-offload: off"));
    drop(port);
    assert!(features(&namespace, "a0").contains("tx-vlan-offload: on"));
}

#[test]
fn errors_say_what_to_do() {
    let Some(bed) = Bed::new() else { return };
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
    // The test's own program, run by a user without privileges, prints the errors.
    let program = std::env::current_exe().unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"])
        .arg(&program)
        .args(["--ignored", "--exact", "af_xdp::print_errors", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (packet, xdp) = ("setcap cap_net_raw+ep", "setcap cap_net_admin,cap_net_raw,cap_bpf,cap_ipc_lock+ep");
    for needed in [packet, xdp, "it needs CAP_NET_RAW: run as root"] {
        assert!(text.contains(needed), "{text}{}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_low_limit_of_locked_memory_is_named() {
    if !root() {
        return;
    }
    // The test's own program, run as a root that may not lock more memory than the limit allows.
    let output = Namespace::new()
        .command("setpriv")
        .args(["--bounding-set=-ipc_lock", "--inh-caps=-ipc_lock", "prlimit", "--memlock=65536:65536"])
        .arg(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "af_xdp::print_errors", "--nocapture"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let advice = "give weir CAP_IPC_LOCK, or raise the limit (ulimit -l unlimited)";
    let expected = format!(
        "port af_xdp:lo: open an AF_XDP socket: No buffer space available (os error 105); its frames are locked in memory: {advice}"
    );
    assert!(text.contains(&expected), "{text}{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
#[ignore = "run by another test, as a user without rights"]
fn print_errors() {
    for spec in ["af_packet:lo", "af_xdp:lo"] {
        let opened: Result<Box<dyn Port>, PortError> = spec.parse().and_then(|spec| weir_port::open(&spec));
        println!("{}", opened.err().map_or_else(|| format!("{spec} opened"), |error| error.to_string()));
    }
}

/// A port adopts a raised MTU when it reads its link; if frames exceed its chunks, the port must be opened again.
#[test]
fn a_raised_mtu_is_followed() {
    let Some(bed) = Bed::new() else { return };
    let (mut pool, mut host, mut port) = bed.host_and_port("af_xdp:s0");
    let set = |mtu: u32| {
        bed.a.ip(&format!("link set a0 mtu {mtu}"));
        bed.switch.ip(&format!("link set s0 mtu {mtu}"));
    };
    set(1700);
    port.link();
    let longer = frame(&[0x88, 0xb5], 1, 1650);
    pass_both_ways(&mut *host, &mut *port, &mut pool, &longer);
    assert_eq!((port.info().mtu, port.counters().tx_too_long), (1700, 0));
    set(3000);
    port.link();
    let ended = port.receive(Instant::ZERO, &mut pool, &mut Vec::new(), 32);
    assert!(matches!(ended, Err(PortError::Gone { .. })), "{ended:?}");
    drop(port);
    let mut port = open(&bed.switch, "af_xdp:s0").expect("it opens again");
    let longest = frame(&[0x88, 0xb5], 2, 2900);
    pass_both_ways(&mut *host, &mut *port, &mut pool, &longest);
}
