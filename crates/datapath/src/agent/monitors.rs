//! Handles flow monitor requests and sends updates to monitors (OpenFlow 1.4.1, 7.3.5.17). Before 1.4, Nicira's
//! messages and an extension of 1.3 serve for this. The monitors are in [`crate::monitor`].
use super::AgentRequest;
use crate::entry_filter::{EntryFilter, select};
use crate::monitor::{FlowMonitors, MonitorSubscription};
use crate::table::EthTypeReading;
use crate::{ChannelId, Datapath, DatapathOutput};
use std::collections::BTreeSet;
use weir_openflow::model::error::FlowMonitorFailed;
use weir_openflow::model::monitor::{FlowEvent, FlowMonitor, FlowUpdate, MonitorCommand};
use weir_openflow::model::multipart::{FlowRequest, ReplyBody};
use weir_openflow::model::nicira::NxMessage;
use weir_openflow::model::{Body, ErrorType, Message, TableId};
use weir_openflow::{Version, codec};

/// All flags `OFPFMF_*` that exist.
const FLAGS: u16 = 0x7f;

impl Datapath {
    /// Carries out a request that adds, changes and removes monitors. Replies with the present entries that match, for
    /// the monitors that ask for them.
    ///
    /// # Errors
    /// [`FlowMonitorFailed`], or the match is invalid. Parts of the request before the invalid one stay in force.
    pub(super) fn flow_monitors(
        &mut self,
        asked: &[FlowMonitor],
        request: &mut AgentRequest<'_>,
    ) -> Result<(), ErrorType> {
        let channel = self.plane.channels.main_of(request.channel);
        let mut updates = Vec::new();
        for monitor in asked {
            self.flow_monitor(channel, monitor)?;
            updates.extend(self.initial(channel, monitor.id));
        }
        self.journal.watch(!self.monitors.is_empty());
        for part in codec::split_reply(ReplyBody::FlowMonitor(updates), request.version) {
            request.reply(Body::MultipartReply(part));
        }
        Ok(())
    }

    /// Removes a monitor, in versions that have a separate message for this.
    ///
    /// # Errors
    /// [`FlowMonitorFailed`]: the monitor does not exist.
    pub(super) fn cancel_monitor(&mut self, id: u32, request: &AgentRequest<'_>) -> Result<(), ErrorType> {
        self.monitors.remove(self.plane.channels.main_of(request.channel), id)?;
        self.journal.watch(!self.monitors.is_empty());
        Ok(())
    }

    fn flow_monitor(&mut self, channel: ChannelId, asked: &FlowMonitor) -> Result<(), ErrorType> {
        match asked.command {
            MonitorCommand::Add => {
                let monitor = self.monitor(channel, asked)?;
                Ok(self.monitors.add(monitor)?)
            }
            MonitorCommand::Modify => {
                let monitor = self.monitor(channel, asked)?;
                self.monitors.remove(channel, asked.id)?;
                Ok(self.monitors.add(monitor)?)
            }
            MonitorCommand::Delete => Ok(self.monitors.remove(channel, asked.id).map(drop)?),
            MonitorCommand::Unknown(_) => Err(FlowMonitorFailed::BadCommand.into()),
        }
    }

    fn monitor(&self, channel: ChannelId, asked: &FlowMonitor) -> Result<MonitorSubscription, ErrorType> {
        if asked.flags.0 & !FLAGS != 0 {
            return Err(FlowMonitorFailed::BadFlags.into());
        }
        if asked.table != TableId::ALL && !self.tables.has_table(asked.table) {
            return Err(FlowMonitorFailed::BadTableId.into());
        }
        let request = FlowRequest {
            table: asked.table,
            out_port: asked.out_port,
            out_group: asked.out_group,
            matching: asked.matching.clone(),
            ..FlowRequest::all()
        };
        // This reading of EtherTypes is right for 1.0, too, because monitors of 1.0 are Nicira's extension.
        let filter = EntryFilter::of_request(&request, EthTypeReading::BehindAllTags)?;
        Ok(MonitorSubscription::new(channel, asked, filter))
    }

    /// Returns the present entries for a monitor that asks for them.
    fn initial(&self, channel: ChannelId, id: u32) -> Vec<FlowUpdate> {
        let Some(monitor) = self.monitors.get(channel, id).filter(|monitor| monitor.wants_initial()) else {
            return Vec::new();
        };
        let entries = select(self.tables.all(), &monitor.filter);
        entries.map(|(table, _, entry)| monitor.full(FlowEvent::Initial, None, table, entry)).collect()
    }

    /// Sends updates to all monitors for the changes of flow entries since the last call.
    pub(crate) fn tell_monitors(&mut self, out: &mut DatapathOutput) {
        for (channel, updates) in self.monitors.updates(&self.journal.take_changes()) {
            self.send_updates(channel, updates, out);
        }
    }

    /// Pauses updates for a channel that does not read its messages, until [`Datapath::resume_monitors`], and sends it
    /// a notice of the pause. Updates for removed entries are still sent.
    pub fn pause_monitors(&mut self, channel: ChannelId, out: &mut DatapathOutput) {
        let since = self.tables.stamp();
        if self.monitors.pause(channel, since) {
            self.send_updates(channel, vec![FlowUpdate::Paused], out);
        }
    }

    /// Ends a pause. Sends the channel updates for the entries that were added or changed during the pause, in their
    /// present state, and a notice of the end of the pause.
    pub fn resume_monitors(&mut self, channel: ChannelId, out: &mut DatapathOutput) {
        let Some(since) = self.monitors.resume(channel) else { return };
        let mut updates = self.missed(&self.monitors, channel, since);
        updates.push(FlowUpdate::Resumed);
        self.send_updates(channel, updates, out);
    }

    /// Returns updates for the entries that match the channel's monitors and were added or changed after the stamp
    /// `since`, in their present state.
    fn missed(&self, monitors: &FlowMonitors, channel: ChannelId, since: u64) -> Vec<FlowUpdate> {
        let (mut updates, mut reported) = (Vec::new(), BTreeSet::new());
        for monitor in monitors.of(channel) {
            for (table, id, entry) in select(self.tables.all(), &monitor.filter).filter(|(.., e)| e.changed > since) {
                let is_added = entry.stamp > since;
                // An entry selected by several monitors is reported once, as without a pause.
                if monitor.wants_missed(is_added) && reported.insert((table, id)) {
                    let event = if is_added { FlowEvent::Added } else { FlowEvent::Modified };
                    updates.push(monitor.full(event, None, table, entry));
                }
            }
        }
        updates
    }

    fn send_updates(&self, channel: ChannelId, updates: Vec<FlowUpdate>, out: &mut DatapathOutput) {
        let Some(version) = self.plane.channels.version(channel) else { return };
        let is_message = |update: &FlowUpdate| version < Version::V14 && pause_message(update).is_some();
        let (pauses, updates): (Vec<_>, Vec<_>) = updates.into_iter().partition(is_message);
        let replies = Some(updates).filter(|updates| !updates.is_empty()).map(ReplyBody::FlowMonitor);
        let parts = replies.into_iter().flat_map(|reply| codec::split_reply(reply, version));
        // A notice of a pause is sent without updates. A notice of its end follows the updates.
        let pauses = pauses.iter().filter_map(pause_message).map(|message| Body::Nx(Box::new(message)));
        let bodies = parts.map(Body::MultipartReply).chain(pauses);
        out.messages.extend(bodies.map(|body| (channel, Message { xid: 0, body })));
    }
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
