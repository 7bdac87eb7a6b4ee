//! Tests long histories: genuine moves and flaps without an alarm, and with attackers that never succeed.
use super::bed::{Bed, SECOND, announcement, data, ip, mac, port};
use crate::hosts::{HostChange, HostConfig, HostVerdict};
use fastrand::Rng;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_millis(200);
/// Hosts, each at the port of its number at first.
const HOSTS: u8 = 8;
/// Ports of hosts; attackers are at the ports after them.
const PORTS: u32 = 24;
const ATTACKERS: u8 = 3;
const STEPS: usize = 4000;

/// Returns hosts at their ports, for which the network has been up for long.
fn bed(config: HostConfig) -> Bed {
    let mut bed = Bed::new(config);
    (1..=HOSTS).for_each(|number| assert_eq!(bed.join(number, number.into()), HostVerdict::Accepted));
    bed.pass(SECOND * 20);
    bed.said();
    bed
}

/// Moves a host to a free port. Its old port goes down if `is_seen` says so. Returns the new port.
fn move_host(bed: &mut Bed, number: u8, to: u32, is_seen: bool) {
    let from = bed.stations[&number].at.port.0;
    bed.stations.remove(&number);
    if is_seen {
        bed.set_down(from);
    }
    bed.place(number, to);
    if bed.down.contains(&port(to)) {
        bed.set_up(to);
    }
}

/// Lets a host send until it is accepted. Fails if that takes longer than the patience and one more packet.
fn reach(bed: &mut Bed, number: u8) {
    let at = bed.stations[&number].at;
    if bed.send(at.port.0, &announcement(mac(number), ip(number))) == HostVerdict::Accepted {
        return;
    }
    bed.pass(PATIENCE);
    assert_eq!(bed.send(at.port.0, &data(mac(number))), HostVerdict::Accepted, "host {number} at {at}");
    assert_eq!(bed.place_of(number), Some(at));
}

fn free_port(bed: &Bed, rng: &mut Rng) -> u32 {
    loop {
        let to = rng.u32(1..=PORTS);
        if !bed.stations.values().any(|station| station.at == port(to)) {
            return to;
        }
    }
}

#[test]
fn a_thousand_moves_and_flaps_raise_no_alarm() {
    for is_seen in [true, false] {
        let mut bed = bed(HostConfig::default());
        let mut rng = Rng::with_seed(1);
        for step in 0..1000 {
            let number = rng.u8(1..=HOSTS);
            let at = bed.stations[&number].at.port.0;
            bed.set_down(at);
            bed.pass(Duration::from_millis(rng.u64(0..2000)));
            bed.set_up(at);
            reach(&mut bed, number);
            let to = free_port(&bed, &mut rng);
            move_host(&mut bed, number, to, is_seen);
            bed.pass(Duration::from_millis(rng.u64(0..2000)));
            reach(&mut bed, number);
            assert_eq!(bed.alarms(), [""; 0], "step {step}, port-down {is_seen}");
        }
        assert_eq!((bed.count("hosts_moved"), bed.count("hosts_alarms")), (1000, 0));
        assert_eq!(bed.count("hosts_added"), u64::from(HOSTS));
    }
}

/// Takes a random step of an attacker: it claims the place or the IP address of a host that answers.
fn attack(bed: &mut Bed, rng: &mut Rng) {
    let attacker = rng.u8(1..=ATTACKERS);
    let (from, victim) = (PORTS + u32::from(attacker), rng.u8(1..=HOSTS));
    let own = mac(100 + attacker);
    let verdict = match rng.u8(0..4) {
        0 => bed.send(from, &data(mac(victim))),
        1 => bed.send(from, &announcement(mac(victim), ip(victim))),
        2 => bed.send(from, &announcement(own, ip(victim))),
        _ => {
            bed.set_down(from);
            bed.set_up(from);
            bed.send(from, &announcement(mac(victim), ip(100 + attacker)))
        }
    };
    assert_ne!(verdict, HostVerdict::Accepted, "attacker {attacker} against host {victim}");
    assert!(verdict == HostVerdict::Waiting || verdict == HostVerdict::Refused);
}

/// Fails if the tracker has a host elsewhere than it is, or gave its address to another.
fn check_hosts(bed: &Bed, seed: u64, step: usize) {
    for (number, station) in &bed.stations {
        let host = bed.tracker.host(station.mac).unwrap_or_else(|| panic!("host {number}, seed {seed}, step {step}"));
        assert!(host.ips.contains(&ip(*number).into()), "host {number}, seed {seed}, step {step}");
        assert_eq!(host.at, station.at, "host {number}, seed {seed}, step {step}");
    }
}

/// Hosts move and flap while attackers claim their addresses. No attacker gets any, each host is reached in time, and
/// each alarm is about an attacker's port.
#[test]
fn no_attacker_takes_what_a_host_that_answers_has() {
    for seed in 1..=5 {
        println!("seed {seed}");
        let mut rng = Rng::with_seed(seed);
        let mut bed = bed(HostConfig { block_time: SECOND, max_block_time: SECOND * 8, ..HostConfig::default() });
        for step in 0..STEPS {
            let number = rng.u8(1..=HOSTS);
            match rng.u8(0..10) {
                0 => {
                    // What attackers claim is decided first: a host that moves does not answer where it was.
                    bed.pass(PATIENCE);
                    let to = free_port(&bed, &mut rng);
                    move_host(&mut bed, number, to, rng.bool());
                    reach(&mut bed, number);
                }
                1 => {
                    bed.pass(PATIENCE);
                    let at = bed.stations[&number].at.port.0;
                    bed.set_down(at);
                    bed.pass(Duration::from_millis(rng.u64(0..500)));
                    bed.set_up(at);
                    reach(&mut bed, number);
                }
                2..=5 => reach(&mut bed, number),
                _ => attack(&mut bed, &mut rng),
            }
            bed.pass(Duration::from_millis(rng.u64(0..300)));
            check_hosts(&bed, seed, step);
            for change in bed.said() {
                let text = format!("{change:?}");
                match change {
                    HostChange::Block { at, .. } => assert!(at.port.0 > PORTS, "seed {seed}, step {step}: {text}"),
                    HostChange::Alarm { text, .. } => {
                        let attackers = (1..=ATTACKERS).map(|attacker| port(PORTS + u32::from(attacker)).to_string());
                        assert!(attackers.into_iter().any(|at| text.contains(&at)), "seed {seed}, step {step}: {text}");
                    }
                    _ => {}
                }
            }
        }
        assert!(bed.count("hosts_alarms") > 20 && bed.count("hosts_moved") > 100, "seed {seed}: little happened");
    }
}

/// Packets of any content and events in any order: nothing panics, and the limits hold.
#[test]
fn limits_hold_whatever_comes() {
    let config = HostConfig {
        max_hosts: 20,
        max_hosts_per_port: 6,
        max_ips_per_host: 3,
        max_ports: 12,
        max_checks: 5,
        max_checks_per_port: 2,
        max_blocks: 4,
        max_age: SECOND * 5,
        settle_time: SECOND,
        ..HostConfig::default()
    };
    let full = ["hosts_drop_port_full", "hosts_drop_checks_full", "hosts_ips_replaced"];
    let mut counts = [0; 3];
    for seed in 1..=5 {
        println!("seed {seed}");
        let mut rng = Rng::with_seed(seed);
        let mut bed = Bed::new(config.clone());
        for _ in 0..STEPS {
            let (at, number) = (rng.u32(1..=14), rng.u8(1..=30));
            match rng.u8(0..12) {
                0 => bed.set_down(at),
                1 => bed.set_up(at),
                2 => _ = bed.find_link(at, rng.u32(1..=14)),
                3 => bed.tracker.handle_edge(bed.now, port(at)),
                4 => {
                    let mut bytes: Vec<u8> = announcement(mac(number), ip(rng.u8(1..=60)));
                    let place = rng.usize(0..bytes.len());
                    bytes[place] = rng.u8(..);
                    bytes.truncate(rng.usize(0..=bytes.len()));
                    bed.send(at, &bytes);
                }
                5 => bed.place(number, at),
                6 => _ = bed.stations.remove(&number),
                _ => _ = bed.send(at, &announcement(mac(number), ip(rng.u8(1..=60)))),
            }
            bed.pass(Duration::from_millis(if rng.u8(0..50) == 0 { 2000 } else { rng.u64(0..20) }));
            assert!(bed.tracker.n_hosts() <= config.max_hosts);
            for number in 1..=30 {
                let ips = bed.tracker.host(mac(number)).map_or(0, |host| host.ips.len());
                assert!(ips <= config.max_ips_per_host);
            }
        }
        for (count, name) in counts.iter_mut().zip(full) {
            *count += bed.count(name);
        }
    }
    assert!(counts.iter().all(|count| *count > 0), "{full:?} are not reached: {counts:?}");
}
