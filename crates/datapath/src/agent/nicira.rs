//! Handles Nicira's messages: settings of a channel, and equivalents of standard messages.
use super::{AgentRequest, RestOfSweep, settings};
use crate::version_semantics::FlowModSemantics;
use crate::{Datapath, DatapathOutput};
use weir_openflow::Version;
use weir_openflow::model::ErrorType;
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::nicira::{FlowFormat, NxMessage, PacketInFormat};
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
            NxMessage::RoleRequest(asked) => settings::nicira_role(&mut self.plane.channels, *asked, request)?,
            NxMessage::SetAsync(config) => {
                self.plane.channels.set_async_config(request.channel, config);
            }
            // The session uses this setting to decode later flow-mods.
            NxMessage::FlowModTableId(_) => {}
            NxMessage::SetFlowFormat(format) => {
                let has_nxm = match format {
                    FlowFormat::OpenFlow10 => false,
                    FlowFormat::Nxm => true,
                    FlowFormat::Unknown(_) => return Err(BadRequest::Eperm.into()),
                };
                self.plane.channels.change_nicira(request.channel, |nicira| nicira.has_nxm = has_nxm);
            }
            NxMessage::SetPacketInFormat(PacketInFormat::Unknown(_)) => return Err(BadRequest::Eperm.into()),
            NxMessage::SetPacketInFormat(format) => {
                self.plane.channels.change_nicira(request.channel, |nicira| nicira.packet_ins = *format)
            }
            NxMessage::SetControllerId(id) => {
                self.plane.channels.change_nicira(request.channel, |nicira| nicira.id = *id)
            }
            NxMessage::FlowMonitorCancel(id) => {
                let main = self.plane.channels.main_of(request.channel);
                self.monitors.cancel(main, *id, &mut self.journal)?;
            }
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
        self.plane.channels.tell_removed(gone, out);
    }
}
