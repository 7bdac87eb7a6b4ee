//! Prints Nicira's messages.
use super::{PrintContext, flow, packet, switch};
use crate::model::nicira::{FlowFormat, NxMessage, PacketInFormat};
use crate::text::nicira::dotted;

/// Returns the name of a message.
pub(super) const fn name(message: &NxMessage) -> &'static str {
    match message {
        NxMessage::SetFlowFormat(_) => "NXT_SET_FLOW_FORMAT",
        NxMessage::FlowModTableId(_) => "NXT_FLOW_MOD_TABLE_ID",
        NxMessage::FlowMod(_) => "NXT_FLOW_MOD",
        NxMessage::FlowRemoved(_) => "NXT_FLOW_REMOVED",
        NxMessage::RoleRequest(_) => "NXT_ROLE_REQUEST",
        NxMessage::RoleReply(_) => "NXT_ROLE_REPLY",
        NxMessage::SetPacketInFormat(_) => "NXT_SET_PACKET_IN_FORMAT",
        NxMessage::PacketIn(_) => "NXT_PACKET_IN",
        NxMessage::PacketIn2(_) => "NXT_PACKET_IN2",
        NxMessage::SetAsync(_) => "NXT_SET_ASYNC_CONFIG",
        NxMessage::SetControllerId(_) => "NXT_SET_CONTROLLER_ID",
        NxMessage::FlowMonitorCancel(_) => "NXT_FLOW_MONITOR_CANCEL",
        NxMessage::FlowMonitorPaused => "NXT_FLOW_MONITOR_PAUSED",
        NxMessage::FlowMonitorResumed => "NXT_FLOW_MONITOR_RESUMED",
    }
}

/// Returns true if the message is an extension of the Open Networking Foundation in 1.3.
pub(super) const fn is_foundations(message: &NxMessage) -> bool {
    matches!(message, NxMessage::FlowMonitorCancel(_) | NxMessage::FlowMonitorPaused | NxMessage::FlowMonitorResumed)
}

/// Prints the content of a message, after the colon of the head.
pub(super) fn body(message: &NxMessage, show: PrintContext) -> String {
    match message {
        NxMessage::SetFlowFormat(format) => format!(
            " format={}",
            match format {
                FlowFormat::OpenFlow10 => "OpenFlow10".into(),
                FlowFormat::Nxm => "NXM".into(),
                FlowFormat::Unknown(number) => number.to_string(),
            }
        ),
        NxMessage::FlowModTableId(set) => if *set { " enable" } else { " disable" }.into(),
        NxMessage::FlowMod(flow) => flow::flow_mod(flow, show),
        NxMessage::FlowRemoved(removed) => flow::removed(removed, show),
        NxMessage::RoleRequest(role) | NxMessage::RoleReply(role) => switch::role(role),
        NxMessage::SetPacketInFormat(format) => format!(
            " format={}",
            match format {
                PacketInFormat::Standard => "standard".into(),
                PacketInFormat::Nxt => "nxt_packet_in".into(),
                PacketInFormat::Nxt2 => "nxt_packet_in2".into(),
                PacketInFormat::Unknown(number) => number.to_string(),
            }
        ),
        NxMessage::PacketIn(packet) => packet::packet_in(packet, show),
        NxMessage::PacketIn2(message) => {
            let said = &message.userdata.0;
            let userdata = if said.is_empty() { String::new() } else { format!("\n userdata={}", dotted(said)) };
            packet::packet_in_saying(&message.packet, &userdata, show)
        }
        NxMessage::SetAsync(config) => switch::async_config(config, show),
        NxMessage::SetControllerId(id) => format!(" id={id}"),
        NxMessage::FlowMonitorCancel(id) => format!(" id={id}"),
        NxMessage::FlowMonitorPaused | NxMessage::FlowMonitorResumed => String::new(),
    }
}
