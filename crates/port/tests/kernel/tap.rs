//! Tests of TAP ports.
use crate::testbed::{Bed, SOON, details, frame, open, pass_both_ways, send};
use std::process::Command;
use weir_packet::FramePool;
use weir_testing::{Namespace, root, run, wait_until};
use weir_units::Instant;

#[test]
fn the_machine_talks_through() {
    for options in ["", ",offload=off"] {
        let Some(bed) = Bed::new() else { return };
        let forwarder = bed.forward(&format!("tap:t0{options}"), &format!("af_packet:s1{options}"));
        bed.switch.ip("addr add 10.77.0.1/24 dev t0");
        run(bed.switch.command("ping").args(["-c", "3", "-i", "0.05", "-W", "2", "10.77.0.2"]));
        bed.tcp_from(&bed.switch, "10.77.0.2", 20_000_000);
        let outcome = forwarder.stop();
        outcome.result.unwrap();
        let [tap, other] = outcome.counters;
        assert!(tap.rx_bytes > 20_000_000 && tap.tx_bytes > 20_000_000, "{tap:?}");
        assert_eq!((tap.tx_dropped(), tap.rx_errors, other.tx_errors, other.tx_too_long), (0, 0, 0, 0));
    }
}

#[test]
fn the_interface_goes_with_the_port() {
    if !root() {
        return;
    }
    let namespace = Namespace::new();
    let mut port = open(&namespace, "tap:t0").unwrap();
    assert!(port.link().up);
    assert!(details(&namespace, "t0").contains(&port.info().mac.to_string()));
    drop(port);
    assert!(wait_until(SOON, || !run(namespace.command("ip").args(["link"])).contains("t0")));
}

#[test]
fn a_persistent_interface_stays_as_it_was() {
    if !root() {
        return;
    }
    let namespace = Namespace::new();
    namespace.ip("tuntap add t0 mode tap");
    let before = details(&namespace, "t0");
    let mut port = open(&namespace, "tap:t0").unwrap();
    assert!(wait_until(SOON, || port.link().up));
    drop(port);
    let flags = |text: &str| text.split('>').next().map(|text| text.contains("UP"));
    assert!(wait_until(SOON, || flags(&details(&namespace, "t0")) == flags(&before)));
    // It can be opened again, and the machine's own frames carry complete checksums for the next program.
    drop(open(&namespace, "tap:t0").unwrap());
    let features = crate::testbed::features(&namespace, "t0");
    assert!(features.contains("tx-checksumming: off"), "{features}");
}

#[test]
fn counters_and_lost_frames() {
    if !root() {
        return;
    }
    let namespace = Namespace::new();
    let mut pool = FramePool::default();
    let mut port = open(&namespace, "tap:t0").unwrap();
    let mut host = open(&namespace, "af_packet:t0").unwrap();
    // To the machine, and from it.
    let sent = frame(&[0x88, 0xb5], 5, 100);
    pass_both_ways(&mut *port, &mut *host, &mut pool, &sent);
    send(&mut *port, &mut pool, &frame(&[0x88, 0xb5], 5, 2000));
    // More frames than the interface's queue holds.
    for _ in 0..3000 {
        send(&mut *host, &mut pool, &sent);
    }
    let mut batch = Vec::new();
    port.receive(Instant::ZERO, &mut pool, &mut batch, 5000).unwrap();
    let counters = port.counters();
    assert_eq!((counters.tx_packets, counters.tx_bytes, counters.tx_too_long), (1, 114, 1));
    assert_eq!((counters.rx_packets, counters.rx_bytes), (1 + batch.len() as u64, 114 * counters.rx_packets));
    assert!(batch.len() >= 500, "{}", batch.len());
    // The sender sees the drop and retries each frame; the full queue drops each retry.
    let refused = host.counters().tx_full;
    assert_eq!(counters.rx_packets + refused, 3001);
    assert!(refused > 0 && counters.rx_missed >= refused, "{counters:?}");
    namespace.ip("link set t0 down");
    assert!(!port.link().up);
    send(&mut *port, &mut pool, &sent);
    assert_eq!(port.counters().tx_errors, 1);
}

#[test]
fn a_vanished_device_is_noticed() {
    let Some(bed) = Bed::new() else { return };
    let forwarder = bed.forward("tap:t0", "af_packet:s1");
    bed.switch.ip("link del t0");
    forwarder.lose();
}

#[test]
fn errors_say_what_to_do() {
    let Some(bed) = Bed::new() else { return };
    let message = |spec: &str| open(&bed.switch, spec).err().expect("refused").to_string();
    assert!(message("tap:s0").contains("s0 is no single-queue TAP interface"), "{}", message("tap:s0"));
    assert!(message("tap:").contains("expected tap:NAME"));
    assert!(message("tap:a-name-too-long-for-linux").contains("1 to 15 characters"));
    let _first = open(&bed.switch, "tap:t0").unwrap();
    assert!(message("tap:t0").contains("another program is attached to t0"), "{}", message("tap:t0"));
    let listed = run(Command::new("ip").args(["-n", bed.switch.name(), "-br", "link"]));
    assert_eq!(listed.lines().filter(|line| line.starts_with('t')).count(), 1, "{listed}");
}
