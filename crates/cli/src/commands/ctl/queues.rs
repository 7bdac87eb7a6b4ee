//! Formats the queues of ports as text and as JSON.
use serde_json::{Value, json};
use weir_switch::{PortSnapshot, QueueSnapshot, SwitchSnapshot};
use weir_terminal::table::ReportTable;
use weir_units::{Bps, ByteSize};

/// Returns all queues, each with its port.
fn all(switch: &SwitchSnapshot) -> impl Iterator<Item = (&PortSnapshot, &QueueSnapshot)> {
    switch.ports.iter().flat_map(|port| port.queues.iter().map(move |queue| (port, queue)))
}

pub(super) fn text(switch: &SwitchSnapshot) -> String {
    if all(switch).next().is_none() {
        return "no port has queues\n".to_owned();
    }
    let header =
        ["port", "name", "queue", "min", "max", "buffer", "priority", "waiting", "tx packets", "tx bytes", "full"];
    let mut rows = ReportTable::new(header).keys(3).groups([8]).numbers(0..1).numbers(2..3).numbers(5..11);
    let rate = |bps: Option<u64>| bps.map_or_else(|| "-".to_owned(), |bps| Bps(bps).to_string());
    for (port, queue) in all(switch) {
        rows.row([
            port.number.to_string(),
            port.name.clone(),
            queue.queue.to_string(),
            rate(queue.min_bps),
            rate(queue.max_bps),
            ByteSize(queue.buffer_bytes).to_string(),
            queue.priority.to_string(),
            ByteSize(queue.waiting_bytes).to_string(),
            queue.counters.tx_packets.to_string(),
            queue.counters.tx_bytes.to_string(),
            queue.counters.tx_full.to_string(),
        ]);
    }
    let strays = switch.ports.iter().filter(|port| port.stray_packets > 0);
    let strays = strays.map(|port| {
        let (number, packets) = (port.number, port.stray_packets);
        format!("port {number}: {packets} packets for queues that it has not were in queue 0\n")
    });
    format!("{rows}\n{}", strays.collect::<String>())
}

pub(super) fn json(switch: &SwitchSnapshot) -> Value {
    let ports = switch.ports.iter().filter(|port| !port.queues.is_empty());
    let ports = ports.map(|port| {
        json!({
            "port": port.number,
            "name": port.name,
            "queues": port.queues,
            "stray_packets": port.stray_packets,
        })
    });
    ports.collect()
}

/// Lists the frames dropped by full queues, one text for each queue.
pub(super) fn drops(switch: &SwitchSnapshot) -> impl Iterator<Item = String> {
    let full = all(switch).filter(|(_, queue)| queue.counters.tx_full > 0);
    full.map(|(port, queue)| format!("port {} queue {} full {}", port.number, queue.queue, queue.counters.tx_full))
}
