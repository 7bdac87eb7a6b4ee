//! Sends asynchronous messages to the channels that want them, and errors to the channels that caused them. Among these
//! are notices about one controller for the others (OpenFlow 1.4.1, 7.4.4 and 7.4.6; OpenFlow 1.5.1, 7.4.7).
use super::{Channel, DatapathChannels};
use crate::table::FlowRemovedNotice;
use crate::{ChannelId, DatapathOutput};
use weir_openflow::model::error::{ERROR_DATA_BYTES, ErrorMessage};
use weir_openflow::model::monitor::FlowUpdate;
use weir_openflow::model::multipart::ReplyBody;
use weir_openflow::model::port::{PortStatus, PortStatusReason};
use weir_openflow::model::role::{Role, RoleMessage};
use weir_openflow::model::status::{ControllerReason, ControllerStatus, RoleReason, RoleStatus};
use weir_openflow::model::{Body, ErrorType, Message, NxMessage, PortDesc};
use weir_openflow::{Version, codec};

/// Kind of a forwarded request (`OFPRFR_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum RequestForwardReason {
    GroupMod = 0,
    MeterMod = 1,
}

impl DatapathChannels {
    /// Sends an asynchronous message to the channels for which `wants` returns true.
    pub(crate) fn tell(&self, wants: impl Fn(&Channel) -> bool, body: &Body, out: &mut DatapathOutput) {
        out.messages.extend(self.that(wants).map(|channel| (channel.id, Message { xid: 0, body: body.clone() })));
    }

    /// Sends port-status messages for a port.
    pub(crate) fn tell_port_status(&self, reason: PortStatusReason, desc: PortDesc, out: &mut DatapathOutput) {
        let wants = |channel: &Channel| channel.wants_port_status(reason as u32);
        self.tell(wants, &Body::PortStatus(PortStatus { reason, desc }), out);
    }

    /// Sends flow-removed messages for entries that asked for them.
    pub(crate) fn tell_removed(&self, gone: Vec<FlowRemovedNotice>, out: &mut DatapathOutput) {
        for removed in gone {
            for channel in self.that(|channel| channel.wants_flow_removed(removed.reason() as u32)) {
                let message = removed.message(channel.version);
                let body = match channel.nicira.has_nxm && channel.version == Version::V10 {
                    true => Body::Nx(Box::new(NxMessage::FlowRemoved(message))),
                    false => Body::FlowRemoved(message),
                };
                out.messages.push((channel.id, Message { xid: 0, body }));
            }
        }
    }

    /// Forwards a successful group-mod or meter-mod to the other controllers that asked for such requests.
    pub(crate) fn forward_request(
        &self,
        kind: RequestForwardReason,
        (channel, xid): (ChannelId, u32),
        body: &Body,
        out: &mut DatapathOutput,
    ) {
        let main = self.main_of(channel);
        let forwarded = Body::RequestForward(Box::new(Message { xid, body: body.clone() }));
        self.tell(|other| other.id != main && other.wants_requests(kind as u32), &forwarded, out);
    }

    /// Sends role-status messages to channels that lost the master role to another channel.
    pub(crate) fn tell_displaced(&self, displaced: &[ChannelId], now: RoleMessage, out: &mut DatapathOutput) {
        let reason = RoleReason::MasterRequest;
        let generation_id = now.generation_id;
        let status = RoleStatus { role: Role::Slave, reason, generation_id, properties: Vec::new() };
        let wants = |channel: &Channel| displaced.contains(&channel.id) && channel.wants_role_status(reason);
        self.tell(wants, &Body::RoleStatus(status), out);
    }

    /// Sends controllers the status of a controller's channel.
    pub(crate) fn tell_controller_status(&self, of: ChannelId, reason: ControllerReason, out: &mut DatapathOutput) {
        let Some(status) = self.controller_status(of, reason) else { return };
        self.tell(|channel| channel.wants_controller_status(reason), &Body::ControllerStatus(status), out);
    }

    /// Sends the other controllers the status of a channel; see [`crate::Datapath::tell_channel`].
    pub(crate) fn tell_channel(&self, of: ChannelId, is_up: bool, out: &mut DatapathOutput) {
        let reason = ControllerReason::ChannelStatus;
        if self.main_of(of) != of {
            return;
        }
        let Some(status) = self.controller_status(of, reason) else { return };
        let wants = |other: &Channel| other.id != of && other.wants_controller_status(reason);
        self.tell(wants, &Body::ControllerStatus(ControllerStatus { is_up, ..status }), out);
    }

    /// Returns the status of every controller's channel. The address is empty, because the datapath does not know it.
    pub(crate) fn controller_statuses(&self) -> Vec<ControllerStatus> {
        let ids: Vec<ChannelId> = self.that(|_| true).map(|channel| channel.id).collect();
        ids.into_iter().filter_map(|id| self.controller_status(id, ControllerReason::Request)).collect()
    }

    fn controller_status(&self, of: ChannelId, reason: ControllerReason) -> Option<ControllerStatus> {
        let channel = self.get(of)?;
        let (short_id, role) = (channel.short_id, channel.role);
        Some(ControllerStatus { short_id, role, reason, is_up: true, uri: String::new(), properties: Vec::new() })
    }

    /// Sends updates of flow monitors to a channel.
    pub(crate) fn send_updates(&self, channel: ChannelId, updates: Vec<FlowUpdate>, out: &mut DatapathOutput) {
        let Some(version) = self.version(channel) else { return };
        let is_message = |update: &FlowUpdate| version < Version::V14 && pause_message(update).is_some();
        let (pauses, updates): (Vec<_>, Vec<_>) = updates.into_iter().partition(is_message);
        let replies = Some(updates).filter(|updates| !updates.is_empty()).map(ReplyBody::FlowMonitor);
        let parts = replies.into_iter().flat_map(|reply| codec::split_reply(reply, version));
        // A notice of a pause is sent without updates. A notice of its end follows the updates.
        let pauses = pauses.iter().filter_map(pause_message).map(|message| Body::Nx(Box::new(message)));
        let bodies = parts.map(Body::MultipartReply).chain(pauses);
        out.messages.extend(bodies.map(|body| (channel, Message { xid: 0, body })));
    }

    /// Answers a channel's message with an error.
    pub(crate) fn refuse(&self, channel: ChannelId, message: &Message, error: ErrorType, out: &mut DatapathOutput) {
        // A channel that is not up (any more) gets no answer.
        let Some(version) = self.version(channel) else { return };
        out.messages.push((channel, refusal(message, version, error)));
    }
}

/// Returns the error that answers a message.
pub(crate) fn refusal(message: &Message, version: Version, error: ErrorType) -> Message {
    let data = start_of(message, version).into();
    Message { xid: message.xid, body: Body::Error(ErrorMessage { error, data }) }
}

/// Returns the first bytes of a message in its encoded form, as error messages quote it.
pub(crate) fn start_of(message: &Message, version: Version) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A decoded message can be encoded again. If encoding failed, the error would still name the problem.
    let _ = codec::encode(message, version, &mut bytes);
    bytes.truncate(ERROR_DATA_BYTES);
    bytes
}

/// Returns the message that notifies of the beginning or the end of a pause in versions before 1.4; `None` for other
/// updates. Since 1.4 these notices are updates themselves.
fn pause_message(update: &FlowUpdate) -> Option<NxMessage> {
    match update {
        FlowUpdate::Paused => Some(NxMessage::FlowMonitorPaused),
        FlowUpdate::Resumed => Some(NxMessage::FlowMonitorResumed),
        FlowUpdate::Full(_) | FlowUpdate::Abbrev { .. } => None,
    }
}
