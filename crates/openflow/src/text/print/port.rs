//! Prints the messages about ports.
use super::PrintContext;
use super::shape::{self, counter, duration};
use crate::model::port::{PortMod, PortStats, PortStatus, PortStatusReason};
use crate::model::{PortDesc, Version};
use std::fmt::Write as _;

const CONFIG: shape::BitNames = &[
    (1 << 0, "PORT_DOWN"),
    (1 << 1, "NO_STP"),
    (1 << 2, "NO_RECV"),
    (1 << 3, "NO_RECV_STP"),
    (1 << 4, "NO_FLOOD"),
    (1 << 5, "NO_FWD"),
    (1 << 6, "NO_PACKET_IN"),
];

const STATE: shape::BitNames = &[(1 << 0, "LINK_DOWN"), (1 << 1, "BLOCKED"), (1 << 2, "LIVE")];

/// Names of 1.0's spanning-tree states, two bits (OpenFlow 1.0.0, 5.2.1).
const STP: [&str; 4] = ["", "STP_LEARN", "STP_FORWARD", "STP_BLOCK"];

const FEATURES: shape::BitNames = &[
    (1 << 0, "10MB-HD"),
    (1 << 1, "10MB-FD"),
    (1 << 2, "100MB-HD"),
    (1 << 3, "100MB-FD"),
    (1 << 4, "1GB-HD"),
    (1 << 5, "1GB-FD"),
    (1 << 6, "10GB-FD"),
    (1 << 7, "40GB-FD"),
    (1 << 8, "100GB-FD"),
    (1 << 9, "1TB-FD"),
    (1 << 10, "OTHER"),
    (1 << 11, "COPPER"),
    (1 << 12, "FIBER"),
    (1 << 13, "AUTO_NEG"),
    (1 << 14, "AUTO_PAUSE"),
    (1 << 15, "AUTO_PAUSE_ASYM"),
];

/// Prints ports in the order of their numbers.
pub(super) fn descs(ports: &[PortDesc], show: PrintContext) -> String {
    let mut ordered: Vec<&PortDesc> = ports.iter().collect();
    ordered.sort_by_key(|port| port.port_no);
    ordered.into_iter().map(|port| desc(port, show)).collect()
}

fn desc(port: &PortDesc, show: PrintContext) -> String {
    let mut text = format!(" {}({}): addr:{}\n", port.port_no, shape::safe(&port.name), port.hw_addr);
    let _ = writeln!(text, "     config:     {}", shape::bits(port.config, CONFIG));
    let _ = writeln!(text, "     state:      {}", state(port.state));
    let features = [
        ("current:    ", port.curr),
        ("advertised: ", port.advertised),
        ("supported:  ", port.supported),
        ("peer:       ", port.peer),
    ];
    for (name, bits) in features.into_iter().filter(|(_, bits)| *bits != 0) {
        let _ = writeln!(text, "     {name}{}", shape::bits(bits, FEATURES));
    }
    let (now, max) = match show.version {
        Version::V10 => (feature_mbps(port.curr), feature_mbps(port.supported)),
        _ => (port.curr_speed / 1000, port.max_speed / 1000),
    };
    let _ = writeln!(text, "     speed: {now} Mbps now, {max} Mbps max");
    text
}

/// Returns the highest rate among the features, in Mbit/s. 1.0 carries no other speed of a port.
fn feature_mbps(features: u32) -> u32 {
    const RATES: [(u32, u32); 7] = [
        (1 << 9, 1_000_000),
        (1 << 8, 100_000),
        (1 << 7, 40_000),
        (1 << 6, 10_000),
        (3 << 4, 1000),
        (3 << 2, 100),
        (3, 10),
    ];
    RATES.into_iter().find(|(bits, _)| features & bits != 0).map_or(0, |(_, mbps)| mbps)
}

fn state(state: u32) -> String {
    let stp = STP[(state >> 8 & 3) as usize];
    let rest = state & !(3 << 8);
    match (stp, rest) {
        ("", _) => shape::bits(rest, STATE),
        (_, 0) => stp.into(),
        _ => format!("{stp} {}", shape::bits(rest, STATE)),
    }
}

pub(super) fn status(status: &PortStatus, show: PrintContext) -> String {
    let reason = match status.reason {
        PortStatusReason::Add => "ADD",
        PortStatusReason::Delete => "DEL",
        PortStatusReason::Modify => "MOD",
    };
    format!(" {reason}:{}", desc(&status.desc, show))
}

pub(super) fn port_mod(port_mod: &PortMod) -> String {
    let advertise = match port_mod.advertise {
        0 => "UNCHANGED".into(),
        bits => shape::bits(bits, FEATURES),
    };
    format!(
        " port: {}: addr:{}\n     config: {}\n     mask:   {}\n     advertise: {advertise}\n",
        port_mod.port_no,
        port_mod.hw_addr,
        shape::bits(port_mod.config, CONFIG),
        shape::bits(port_mod.mask, CONFIG),
    )
}

pub(super) fn stats(ports: &[PortStats], show: PrintContext) -> String {
    let head = format!(" {} ports\n", ports.len());
    ports.iter().fold(head, |text, port| text + &one_stats(port, show))
}

fn one_stats(port: &PortStats, show: PrintContext) -> String {
    let mut text = format!("  port {:>2}: rx ", port.port_no);
    let rx = [
        ("pkts", port.rx_packets),
        ("bytes", port.rx_bytes),
        ("drop", port.rx_dropped),
        ("errs", port.rx_errors),
        ("frame", port.rx_frame_err),
        ("over", port.rx_over_err),
        ("crc", port.rx_crc_err),
    ];
    let tx = [
        ("pkts", port.tx_packets),
        ("bytes", port.tx_bytes),
        ("drop", port.tx_dropped),
        ("errs", port.tx_errors),
        ("coll", port.collisions),
    ];
    let list = |counters: &[(&str, u64)]| {
        let parts: Vec<String> = counters.iter().map(|(name, value)| format!("{name}={}", counter(*value))).collect();
        parts.join(", ")
    };
    let _ = writeln!(text, "{}\n           tx {}", list(&rx), list(&tx));
    // 1.0 does not carry the duration, and all ones mean that it is unknown.
    if show.version != Version::V10 && (port.duration_sec, port.duration_nsec) != (u32::MAX, u32::MAX) {
        let _ = writeln!(text, "           duration={}", duration(port.duration_sec, port.duration_nsec));
    }
    text
}
