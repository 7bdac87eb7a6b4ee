//! Metrics of a controller: switches, connections, messages, drops, and the counters of its application.
use crate::family::{FamilyList, MetricFamily};
use weir_controller::ControllerSnapshot;

/// Returns the metrics of a controller.
pub fn families(controller: &ControllerSnapshot) -> Vec<MetricFamily> {
    let mut list = FamilyList::new(Vec::new());
    list.info("weir_controller", "The controller", &[("version", env!("CARGO_PKG_VERSION"))]);
    list.gauge("weir_controller_switches", "Switches that are up", &[], controller.switches.len() as u64);
    for switch in &controller.switches {
        let dpid = format!("{:016x}", switch.dpid);
        let labels = [("dpid", dpid.as_str()), ("peer", &switch.peer), ("openflow", switch.version.name())];
        list.gauge("weir_controller_switch_up", "1 for each switch that is up", &labels, true);
    }
    let c = &controller.counters;
    list.counter("weir_controller_connections", "Connections accepted or refused", &[], c.connections);
    list.counter("weir_controller_refused_connections", "Connections that ended before they were up", &[], c.refused);
    let half_open = "Connections ended because others needed their place";
    list.counter("weir_controller_half_open_ended_connections", half_open, &[], c.half_open_ended);
    for load in &controller.loads {
        let dpid = format!("{:016x}", load.dpid);
        let labels = [("dpid", dpid.as_str())];
        list.gauge("weir_controller_waiting_messages", "Messages not handled yet", &labels, load.waiting as u64);
        list.gauge("weir_controller_waiting_bytes", "Bytes of these messages", &labels, load.waiting_bytes as u64);
    }
    let packet_ins = "Packet-ins dropped before they were handled";
    for (reason, count) in [("overload", c.dropped_overload), ("port down", c.dropped_port_down)] {
        list.counter("weir_controller_dropped_packet_ins", packet_ins, &[("reason", reason)], count);
    }
    let received = "Messages received from switches";
    list.counter("weir_controller_received_messages", received, &[("message", "packet-in")], c.packet_ins);
    list.counter("weir_controller_received_messages", received, &[("message", "error")], c.errors);
    let sent = "Messages sent to switches";
    list.counter("weir_controller_sent_messages", sent, &[("message", "flow-mod")], c.flow_mods);
    list.counter("weir_controller_sent_messages", sent, &[("message", "packet-out")], c.packet_outs);
    let reasons = [
        ("switch does not read", c.dropped_full),
        ("switch gone", c.dropped_gone),
        ("not in its OpenFlow version", c.dropped_unencodable),
    ];
    for (reason, count) in reasons {
        list.counter("weir_controller_dropped_messages", "Messages not sent", &[("reason", reason)], count);
    }
    for (name, count) in &controller.app {
        let help = "Events counted by the application: packets, stations and their drops";
        list.counter("weir_application_events", help, &[("event", name)], *count);
    }
    list.done()
}
