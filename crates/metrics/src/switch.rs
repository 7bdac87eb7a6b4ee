//! Metrics of a switch: ports and their queues, tables, control channels, virtual switches, threads, drops.
use crate::family::{FamilyList, MetricFamily};
use weir_switch::{
    ChannelSnapshot, ChannelState, PortSnapshot, QueueSnapshot, SwitchSnapshot, VirtualSwitchSnapshot, WorkerSnapshot,
};

/// Returns the metrics of a switch. Each has the label `switch`, its name.
pub fn families(switch: &SwitchSnapshot) -> Vec<MetricFamily> {
    let mut list = FamilyList::new(vec![("switch", switch.name.clone())]);
    let dpid = format!("{:016x}", switch.datapath_id);
    list.info("weir_switch", "The switch", &[("dpid", &dpid), ("version", env!("CARGO_PKG_VERSION"))]);
    list.gauge("weir_switch_uptime_seconds", "Time since the start", &[], switch.uptime_s);
    switch.ports.iter().for_each(|port| add_port(&mut list, port));
    for table in &switch.tables {
        let number = table.table.to_string();
        let labels = [("table", number.as_str())];
        list.gauge("weir_table_entries", "Flow entries", &labels, u64::from(table.entries));
        list.counter("weir_table_lookups", "Packets looked up", &labels, table.lookups);
        list.counter("weir_table_matches", "Packets that matched a flow entry", &labels, table.matches);
    }
    switch.workers.iter().for_each(|worker| add_worker(&mut list, worker));
    switch.channels.iter().for_each(|channel| add_channel(&mut list, channel));
    for (reason, count) in switch.drops_by_reason() {
        list.counter("weir_switch_dropped_packets", "Packets dropped, by reason", &[("reason", reason)], count);
    }
    let packet_ins = "Packet-ins to all controllers, also to those that are gone";
    for (outcome, count) in [
        ("accepted", switch.packet_ins),
        ("queue full", switch.packet_ins_dropped),
        ("over limit", switch.packet_ins_limited),
    ] {
        list.counter("weir_switch_packet_ins", packet_ins, &[("outcome", outcome)], count);
    }
    switch.virtual_switches.iter().for_each(|tenant| add_virtual(&mut list, tenant));
    list.done()
}

fn add_port(list: &mut FamilyList, port: &PortSnapshot) {
    let number = port.number.to_string();
    let labels = [("port", number.as_str()), ("name", port.name.as_str())];
    list.gauge("weir_port_present", "1 if the port's device exists", &labels, port.present);
    list.gauge("weir_port_up", "1 if the port's link is up", &labels, port.link_up);
    if let Some(bps) = port.speed_bps {
        list.gauge("weir_port_rate_bits_per_second", "Rate of the port", &labels, bps);
    }
    let c = &port.counters;
    list.counter("weir_port_received_packets", "Packets received", &labels, c.rx_packets);
    list.counter("weir_port_received_bytes", "Bytes received", &labels, c.rx_bytes);
    list.counter("weir_port_sent_packets", "Packets sent", &labels, c.tx_packets);
    list.counter("weir_port_sent_bytes", "Bytes sent", &labels, c.tx_bytes);
    let reasons = [
        ("received", "missed", c.rx_missed),
        ("received", "error", c.rx_errors),
        ("received", "lost on the link", c.rx_lost),
        ("sent", "full", c.tx_full),
        ("sent", "too long", c.tx_too_long),
        ("sent", "error", c.tx_errors),
        ("sent", "lost on the link", c.tx_lost),
    ];
    for (direction, reason, count) in reasons {
        let labels = [labels[0], labels[1], ("direction", direction), ("reason", reason)];
        list.counter("weir_port_dropped_packets", "Packets that a port dropped", &labels, count);
    }
    list.counter(
        "weir_port_stray_packets",
        "Packets for a queue that does not exist, which took the default queue",
        &labels,
        port.stray_packets,
    );
    port.queues.iter().for_each(|queue| add_queue(list, &number, queue));
}

fn add_queue(list: &mut FamilyList, port: &str, queue: &QueueSnapshot) {
    let number = queue.queue.to_string();
    let labels = [("port", port), ("queue", number.as_str())];
    list.gauge("weir_queue_waiting_bytes", "Bytes in the queue", &labels, queue.waiting_bytes);
    list.gauge("weir_queue_buffer_bytes", "Bytes that the queue holds at most", &labels, queue.buffer_bytes);
    list.counter("weir_queue_sent_packets", "Packets sent from the queue", &labels, queue.counters.tx_packets);
    list.counter("weir_queue_sent_bytes", "Bytes sent from the queue", &labels, queue.counters.tx_bytes);
    list.counter("weir_queue_dropped_packets", "Packets for which the queue was full", &labels, queue.counters.tx_full);
}

fn add_worker(list: &mut FamilyList, worker: &WorkerSnapshot) {
    let number = worker.worker.to_string();
    let labels = [("worker", number.as_str())];
    list.counter("weir_worker_packets", "Packets that a thread ran through the tables", &labels, worker.frames);
    list.counter("weir_worker_bursts", "Bursts in which these packets came", &labels, worker.bursts);
    list.gauge("weir_worker_waiting_packets", "Packets that wait for the thread", &labels, worker.waiting as u64);
    let reasons = [
        ("ring full", worker.ring_full),
        ("transmit ring full", worker.transmit_ring_full),
        ("packet-ins waiting", worker.packet_ins_dropped),
    ];
    for (reason, count) in reasons {
        let labels = [labels[0], ("reason", reason)];
        list.counter("weir_worker_dropped_packets", "Packets dropped at a thread's queues", &labels, count);
    }
}

fn add_channel(list: &mut FamilyList, channel: &ChannelSnapshot) {
    let labels = [("peer", channel.target.as_str())];
    let is_up = matches!(channel.state, ChannelState::Up { .. });
    list.gauge("weir_channel_up", "1 if the control channel is up", &labels, is_up);
    list.counter("weir_channel_connects", "Times that the channel came up", &labels, channel.connects);
    list.counter("weir_channel_received_messages", "Messages from the controller", &labels, channel.received);
    list.counter("weir_channel_sent_messages", "Messages to the controller", &labels, channel.sent);
    let reasons = [
        ("packet-in", "queue full", channel.packet_ins_dropped),
        ("packet-in", "over limit", channel.packet_ins_limited),
        ("other", "queue full", channel.notices_dropped),
    ];
    for (message, reason, count) in reasons {
        let labels = [labels[0], ("message", message), ("reason", reason)];
        list.counter("weir_channel_dropped_messages", "Messages not sent to the controller", &labels, count);
    }
}

fn add_virtual(list: &mut FamilyList, tenant: &VirtualSwitchSnapshot) {
    let labels = [("virtual", tenant.name.as_str())];
    list.gauge("weir_virtual_time_share", "Part of the engine's time that was used", &labels, tenant.time.part);
    list.counter(
        "weir_virtual_waiting_dropped_packets",
        "Packets dropped because too many waited for the engine",
        &labels,
        tenant.time.dropped,
    );
    for (reason, count) in tenant.drops_by_reason() {
        let labels = [labels[0], ("reason", reason)];
        list.counter("weir_virtual_dropped_packets", "Packets dropped by tables and actions", &labels, count);
    }
    for port in &tenant.ports {
        let (number, of) = (port.number.to_string(), port.port.to_string());
        let labels = [labels[0], ("port", number.as_str()), ("physical_port", of.as_str())];
        list.counter("weir_virtual_port_received_packets", "Packets received", &labels, port.rx_packets);
        list.counter("weir_virtual_port_received_bytes", "Bytes received", &labels, port.rx_bytes);
        list.counter("weir_virtual_port_sent_packets", "Packets sent", &labels, port.tx_packets);
        list.counter("weir_virtual_port_sent_bytes", "Bytes sent", &labels, port.tx_bytes);
        list.counter(
            "weir_virtual_port_dropped_packets",
            "Packets for which no buffer was left",
            &labels,
            port.dropped,
        );
        list.gauge("weir_virtual_port_waiting_bytes", "Bytes that wait at the output", &labels, port.queued_bytes);
    }
    for crosspoint in &tenant.crosspoints {
        let (from, to) = (crosspoint.from.to_string(), crosspoint.to.to_string());
        for (reason, count) in &crosspoint.dropped {
            let labels = [labels[0], ("from", &*from), ("to", &*to), ("reason", reason.as_str())];
            list.counter("weir_crosspoint_dropped_packets", "Packets dropped between two ports", &labels, *count);
        }
    }
}
