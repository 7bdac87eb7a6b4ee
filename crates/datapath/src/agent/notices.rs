//! Sends notices about one controller to the others (OpenFlow 1.4.1, 7.4.4 and 7.4.6; OpenFlow 1.5.1, 7.4.7).
use super::AgentRequest;
use crate::{ChannelId, Datapath, DatapathOutput};
use weir_openflow::model::role::{Role, RoleMessage};
use weir_openflow::model::status::{ControllerReason, ControllerStatus, RoleReason, RoleStatus};
use weir_openflow::model::{Body, Message};

/// Kind of a forwarded request (`OFPRFR_*`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum RequestForwardReason {
    GroupMod = 0,
    MeterMod = 1,
}

impl Datapath {
    /// Forwards a successful group-mod or meter-mod to the other controllers that asked for such requests.
    pub(super) fn forward_request(&self, kind: RequestForwardReason, body: &Body, request: &mut AgentRequest<'_>) {
        let main = self.main_of(request.channel);
        let others = self.plane.channels.that(|other| other.id != main && other.wants_requests(kind as u32));
        let forwarded = Body::RequestForward(Box::new(Message { xid: request.xid, body: body.clone() }));
        Self::tell(others, &forwarded, request.out);
    }

    /// Sends role-status messages to channels that lost the master role to another channel.
    pub(super) fn tell_displaced(&self, displaced: &[ChannelId], now: RoleMessage, out: &mut DatapathOutput) {
        let reason = RoleReason::MasterRequest;
        let generation_id = now.generation_id;
        let status = RoleStatus { role: Role::Slave, reason, generation_id, properties: Vec::new() };
        let channels =
            self.plane.channels.that(|channel| displaced.contains(&channel.id) && channel.wants_role_status(reason));
        Self::tell(channels, &Body::RoleStatus(status), out);
    }

    /// Sends controllers the status of a controller's channel.
    pub(crate) fn tell_controller_status(&self, of: ChannelId, reason: ControllerReason, out: &mut DatapathOutput) {
        let Some(status) = self.controller_status(of, reason) else { return };
        let channels = self.plane.channels.that(|channel| channel.wants_controller_status(reason));
        Self::tell(channels, &Body::ControllerStatus(status), out);
    }

    /// Sends the other controllers the status of a channel that came up or is about to go down. Must be called right
    /// after [`Datapath::channel_up`] and right before [`Datapath::channel_down`]. Does nothing for auxiliary
    /// connections.
    pub fn tell_channel(&self, of: ChannelId, is_up: bool, out: &mut DatapathOutput) {
        let reason = ControllerReason::ChannelStatus;
        if self.main_of(of) != of {
            return;
        }
        let Some(status) = self.controller_status(of, reason) else { return };
        let others = self.plane.channels.that(|other| other.id != of && other.wants_controller_status(reason));
        Self::tell(others, &Body::ControllerStatus(ControllerStatus { is_up, ..status }), out);
    }

    /// Returns the status of every controller's channel. The address is empty, because the datapath does not know it.
    pub(super) fn controller_statuses(&self) -> Vec<ControllerStatus> {
        let ids: Vec<ChannelId> = self.plane.channels.that(|_| true).map(|channel| channel.id).collect();
        ids.into_iter().filter_map(|id| self.controller_status(id, ControllerReason::Request)).collect()
    }

    fn controller_status(&self, of: ChannelId, reason: ControllerReason) -> Option<ControllerStatus> {
        let channel = self.plane.channels.get(of)?;
        let (short_id, role) = (channel.short_id, channel.role);
        Some(ControllerStatus { short_id, role, reason, is_up: true, uri: String::new(), properties: Vec::new() })
    }
}
