//! Handles Nicira's messages: settings of a channel, and equivalents of standard messages.
use super::{AgentRequest, RestOfSweep};
use crate::version_semantics::FlowModSemantics;
use crate::{Datapath, DatapathOutput};
use weir_openflow::Version;
use weir_openflow::model::error::{BadRequest, RoleRequestFailed};
use weir_openflow::model::nicira::{FlowFormat, NxMessage, PacketInFormat};
use weir_openflow::model::role::{Role, RoleMessage};
use weir_openflow::model::{Body, ErrorType};
use weir_units::Instant;

impl Datapath {
    /// Handles a message of Nicira. Returns the rest of the work if the message changes many entries.
    pub(super) fn nicira(
        &mut self,
        message: &NxMessage,
        request: &mut AgentRequest<'_>,
    ) -> Result<Option<RestOfSweep>, ErrorType> {
        match message {
            NxMessage::FlowMod(flow) => {
                return self.handle_flow_mod(flow, FlowModSemantics::of_nicira(flow, request.version), request);
            }
            NxMessage::RoleRequest(asked) => self.nicira_role(*asked, request)?,
            NxMessage::SetAsync(config) => {
                self.set_async_config(request.channel, config);
            }
            // The session uses this setting to decode later flow-mods.
            NxMessage::FlowModTableId(_) => {}
            NxMessage::SetFlowFormat(format) => {
                let has_nxm = match format {
                    FlowFormat::OpenFlow10 => false,
                    FlowFormat::Nxm => true,
                    FlowFormat::Unknown(_) => return Err(BadRequest::Eperm.into()),
                };
                self.change_nicira(request, |nicira| nicira.has_nxm = has_nxm);
            }
            NxMessage::SetPacketInFormat(PacketInFormat::Unknown(_)) => return Err(BadRequest::Eperm.into()),
            NxMessage::SetPacketInFormat(format) => self.change_nicira(request, |nicira| nicira.packet_ins = *format),
            NxMessage::SetControllerId(id) => self.change_nicira(request, |nicira| nicira.id = *id),
            NxMessage::FlowMonitorCancel(id) => self.cancel_monitor(*id, request)?,
            // Only switches send the other messages. A session refuses them before they get here.
            NxMessage::FlowRemoved(_)
            | NxMessage::RoleReply(_)
            | NxMessage::PacketIn(_)
            | NxMessage::PacketIn2(_)
            | NxMessage::FlowMonitorPaused
            | NxMessage::FlowMonitorResumed => {
                return Err(BadRequest::BadExpType.into());
            }
        }
        Ok(None)
    }

    fn change_nicira(&mut self, request: &AgentRequest<'_>, change: impl FnOnce(&mut crate::channels::NiciraSettings)) {
        if let Some(channel) = self.plane.channels.get_mut(request.channel) {
            change(&mut channel.nicira);
        }
    }

    /// Handles Nicira's role request. Unlike the request of 1.3 it has no election: the latest request wins.
    fn nicira_role(&mut self, asked: RoleMessage, request: &mut AgentRequest<'_>) -> Result<(), ErrorType> {
        if matches!(asked.role, Role::Unknown(_)) {
            return Err(RoleRequestFailed::BadRole.into());
        }
        let displaced = self.plane.channels.give_role(request.channel, asked.role);
        request.reply(Body::Nx(Box::new(NxMessage::RoleReply(asked))));
        self.tell_displaced(&displaced, asked, request.out);
        Ok(())
    }

    /// Adds the flow entries that `learn` actions made.
    #[cold]
    pub(crate) fn learn(&mut self, now: Instant, out: &mut DatapathOutput) {
        let mut gone = Vec::new();
        for flow in std::mem::take(&mut self.plane.to_learn) {
            let applied =
                self.edit_tables().apply_whole(now, &flow, FlowModSemantics::of_nicira(&flow, Version::V13), &mut gone);
            if applied.is_err() {
                self.plane.learn_failures += 1;
            }
        }
        self.tell_removed(gone, out);
    }
}
