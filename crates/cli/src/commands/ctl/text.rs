//! `weir ctl`: formats a switch's state as text: ports, tables, channels, drops, flow entries.
use super::{present, profile, queues, virtuals};
use std::fmt::Write as _;
use weir_switch::ctl::FlowDump;
use weir_switch::{ChannelSnapshot, ChannelState, InBandSnapshot, PortSnapshot, SwitchSnapshot, WorkerSnapshot};
use weir_terminal::table::ReportTable;

pub(super) fn show(switch: &SwitchSnapshot) -> String {
    let mut text = format!(
        "switch {}, dpid {:#018x}, up {:.1} s, {}\n",
        switch.name,
        switch.datapath_id,
        switch.uptime_s,
        weir_units::counted(switch.entries(), "flow entry", "flow entries")
    );
    let header = ["port", "name", "kind", "address", "link", "rate"];
    let mut ports = ReportTable::new(header).keys(2).numbers(0..1);
    for port in &switch.ports {
        let link = match (port.present, port.link_up) {
            (false, _) => "gone, waited for",
            (true, true) => "up",
            (true, false) => "down",
        };
        let renamed = port.renamed.as_ref().map(|name| format!(", now called {name}")).unwrap_or_default();
        let link = format!("{link}{renamed}");
        // A device that is gone has none, whatever it had.
        let rate = port.speed_bps.filter(|_| port.present);
        let rate = rate.map_or_else(|| "-".to_owned(), |bps| weir_units::Bps(bps).to_string());
        ports.row([&port.number.to_string(), &port.name, &port.spec, &port.mac, &link, &rate]);
    }
    let _ = writeln!(text, "\n{ports}");
    if !switch.tables.is_empty() {
        let mut tables = ReportTable::new(["table", "entries", "lookups", "matches"]).numbers(0..4);
        for row in &switch.tables {
            tables
                .row([row.table.into(), u64::from(row.entries), row.lookups, row.matches].map(|n: u64| n.to_string()));
        }
        let _ = writeln!(text, "\n{tables}");
    }
    if !switch.workers.is_empty() {
        let _ = writeln!(text, "\n{}", workers(&switch.workers));
    }
    text += &virtuals::list(switch);
    let _ = write!(text, "\n{}", channels(&switch.channels));
    text += &switch.in_band.as_ref().map(in_band).unwrap_or_default();
    text += &switch.timing.as_ref().map(|timing| format!("\n{}", profile::line(timing))).unwrap_or_default();
    text + &drops(switch)
}

/// Table of a pipeline's workers: frames forwarded, and frames that wait at each worker now.
fn workers(workers: &[WorkerSnapshot]) -> String {
    let header = ["worker", "frames", "per burst", "waiting", "to transmit", "ring full", "transmit ring full"];
    let mut rows = ReportTable::new(header).numbers(0..7);
    for row in workers {
        let per_burst = row.frames as f64 / row.bursts.max(1) as f64;
        rows.row([
            row.worker.to_string(),
            row.frames.to_string(),
            format!("{per_burst:.1}"),
            row.waiting.to_string(),
            row.waiting_to_leave.to_string(),
            row.ring_full.to_string(),
            row.transmit_ring_full.to_string(),
        ]);
    }
    rows.to_string()
}

fn channels(channels: &[ChannelSnapshot]) -> String {
    if channels.is_empty() {
        return "no control channels\n".to_owned();
    }
    let header = ["channel", "state", "received", "sent", "packet-ins", "dropped", "over limit", "last error"];
    let mut rows = ReportTable::new(header).numbers(2..7);
    for channel in channels {
        let state = match &channel.state {
            state @ ChannelState::Up { .. } => match channel.role.as_deref() {
                None | Some("equal") => state.to_string(),
                Some(role) => format!("{state}, {role}"),
            },
            state => state.to_string(),
        };
        rows.row([
            &channel.target,
            &state,
            &channel.received.to_string(),
            &channel.sent.to_string(),
            &channel.packet_ins.to_string(),
            &channel.packet_ins_dropped.to_string(),
            &channel.packet_ins_limited.to_string(),
            channel.last_error.as_deref().unwrap_or("-"),
        ]);
    }
    format!("{rows}\n")
}

/// Tables of in-band control: hidden entries, and the ports of the stations.
fn in_band(in_band: &InBandSnapshot) -> String {
    let mut entries = ReportTable::new(["in-band control", "packets", "bytes"]).numbers(1..3);
    for entry in &in_band.entries {
        entries.row([&entry.entry, &entry.packets.to_string(), &entry.bytes.to_string()]);
    }
    let mut stations = ReportTable::new(["station of control traffic", "port"]).numbers(1..2);
    for station in &in_band.stations {
        stations.row([&station.address, &station.port.to_string()]);
    }
    let InBandSnapshot { flooded, copies, excess, silences, .. } = in_band;
    let counts = format!(
        "{flooded} frames flooded, {copies} copies dropped, {excess} dropped beyond the limits, \
         {silences} times no answer on a known path"
    );
    let stations = if in_band.stations.is_empty() { String::new() } else { format!("\n{stations}\n") };
    format!("\n{entries}\n{stations}\n{counts}\n")
}

fn drops(switch: &SwitchSnapshot) -> String {
    let mut reasons: Vec<_> =
        switch.drops.iter().map(|(reason, count)| format!("{} {count}", reason.replace('_', " "))).collect();
    if switch.packet_ins_dropped > 0 {
        reasons.push(format!("packet-ins no controller took {}", switch.packet_ins_dropped));
    }
    if switch.packet_ins_limited > 0 {
        reasons.push(format!("packet-ins over a controller's limit {}", switch.packet_ins_limited));
    }
    reasons.extend(queues::drops(switch));
    reasons.extend(virtuals::drops(switch));
    if reasons.is_empty() { "\nno drops\n".to_owned() } else { format!("\ndropped: {}\n", reasons.join(", ")) }
}

pub(super) fn port_counters(ports: &[&PortSnapshot]) -> String {
    let header = [
        "port",
        "name",
        "rx packets",
        "rx bytes",
        "missed",
        "errors",
        "tx packets",
        "tx bytes",
        "full",
        "too long",
        "errors",
    ];
    let mut rows = ReportTable::new(header).keys(2).groups([6]).numbers(0..1).numbers(2..11);
    for port in ports {
        let c = &port.counters;
        let counted = [
            c.rx_packets,
            c.rx_bytes,
            c.rx_missed,
            c.rx_errors,
            c.tx_packets,
            c.tx_bytes,
            c.tx_full,
            c.tx_too_long,
            c.tx_errors,
        ];
        let names = [port.number.to_string(), port.name.clone()];
        rows.row(names.into_iter().chain(counted.map(|count| count.to_string())));
    }
    format!("{rows}\n")
}

pub(super) fn counters(switch: &SwitchSnapshot) -> String {
    format!("{}\n{}{}", port_counters(&present(switch)), channels(&switch.channels), drops(switch))
}

pub(super) fn flows(found: &FlowDump) -> String {
    let mut text: String = found.flows.iter().map(|flow| format!("{}\n", flow.text)).collect();
    if found.left_out > 0 {
        let _ = writeln!(text, "... and {} more; say which you want to see", found.left_out);
    }
    text
}
