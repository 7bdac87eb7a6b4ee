//! Defines which side of a channel, switch or controller, may send which message (OpenFlow 1.3.5, 6.1 and 7.1).
use crate::model::{Body, NxMessage};

/// Side of a channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SessionSide {
    Switch,
    Controller,
}

impl SessionSide {
    /// Returns true if the peer of this side may send `body`. A packet-in received by a switch, or a flow-mod
    /// received by a controller, indicates a confused or hostile peer.
    pub(super) fn expects(self, body: &Body) -> bool {
        sender(body).is_none_or(|sender| sender != self)
    }
}

fn nicira(message: &NxMessage) -> Option<SessionSide> {
    match message {
        NxMessage::SetFlowFormat(_)
        | NxMessage::FlowModTableId(_)
        | NxMessage::FlowMod(_)
        | NxMessage::RoleRequest(_)
        | NxMessage::SetPacketInFormat(_)
        | NxMessage::SetAsync(_)
        | NxMessage::SetControllerId(_)
        | NxMessage::FlowMonitorCancel(_) => Some(SessionSide::Controller),
        NxMessage::FlowRemoved(_)
        | NxMessage::RoleReply(_)
        | NxMessage::PacketIn(_)
        | NxMessage::PacketIn2(_)
        | NxMessage::FlowMonitorPaused
        | NxMessage::FlowMonitorResumed => Some(SessionSide::Switch),
    }
}

/// Returns the side that sends this message; `None` if both sides may send it.
fn sender(body: &Body) -> Option<SessionSide> {
    match body {
        Body::Hello(_)
        | Body::Error(_)
        | Body::EchoRequest(_)
        | Body::EchoReply(_)
        | Body::Experimenter(_)
        | Body::BundleControl(_) => None,
        Body::Nx(message) => nicira(message),
        Body::FeaturesRequest
        | Body::GetConfigRequest
        | Body::SetConfig(_)
        | Body::PacketOut(_)
        | Body::FlowMod(_)
        | Body::GroupMod(_)
        | Body::PortMod(_)
        | Body::TableMod(_)
        | Body::MultipartRequest(_)
        | Body::BarrierRequest
        | Body::QueueGetConfigRequest(_)
        | Body::RoleRequest(_)
        | Body::GetAsyncRequest
        | Body::SetAsync(_)
        | Body::MeterMod(_)
        | Body::BundleAdd(_) => Some(SessionSide::Controller),
        Body::FeaturesReply(_)
        | Body::GetConfigReply(_)
        | Body::PacketIn(_)
        | Body::FlowRemoved(_)
        | Body::PortStatus(_)
        | Body::MultipartReply(_)
        | Body::BarrierReply
        | Body::QueueGetConfigReply(_)
        | Body::RoleReply(_)
        | Body::GetAsyncReply(_)
        | Body::RoleStatus(_)
        | Body::TableStatus(_)
        | Body::RequestForward(_)
        | Body::ControllerStatus(_) => Some(SessionSide::Switch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_go_one_way_replies_the_other_echoes_both() {
        let expected = |body: &Body| (SessionSide::Switch.expects(body), SessionSide::Controller.expects(body));
        assert_eq!(expected(&Body::BarrierRequest), (true, false));
        assert_eq!(expected(&Body::BarrierReply), (false, true));
        assert_eq!(expected(&Body::EchoRequest(Default::default())), (true, true));
    }
}
