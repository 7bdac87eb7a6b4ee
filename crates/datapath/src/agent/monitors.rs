//! Flow monitor requests, and what monitors are told (OpenFlow 1.4.1, 7.3.5.17). See [`crate::monitor`].
use super::Request;
use crate::flow_mod::{Filter, select};
use crate::monitor::{Monitor, Monitors};
use crate::{ChannelId, Datapath, Output};
use weir_openflow::codec;
use weir_openflow::model::error::FlowMonitorFailed;
use weir_openflow::model::monitor::{FlowEvent, FlowMonitor, FlowUpdate, MonitorCommand};
use weir_openflow::model::multipart::{FlowRequest, ReplyBody};
use weir_openflow::model::{Body, ErrorType, Message, TableId};

/// `OFPFMF_*` that there are.
const FLAGS: u16 = 0x7f;

impl Datapath {
    /// Adds, changes and removes monitors, and tells of the entries there are to those that ask for them.
    ///
    /// # Errors
    /// [`FlowMonitorFailed`], or the match is wrong. What came before in the request is done.
    pub(super) fn flow_monitors(&mut self, asked: &[FlowMonitor], request: &mut Request<'_>) -> Result<(), ErrorType> {
        let channel = self.main_of(request.channel);
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

    fn monitor(&self, channel: ChannelId, asked: &FlowMonitor) -> Result<Monitor, ErrorType> {
        if asked.flags.0 & !FLAGS != 0 {
            return Err(FlowMonitorFailed::BadFlags.into());
        }
        if asked.table != TableId::ALL && !self.has_table(asked.table) {
            return Err(FlowMonitorFailed::BadTableId.into());
        }
        let filter = Filter::of_request(&FlowRequest {
            table: asked.table,
            out_port: asked.out_port,
            out_group: asked.out_group,
            matching: asked.matching.clone(),
            ..FlowRequest::all()
        })?;
        Ok(Monitor::new(channel, asked, filter))
    }

    /// The entries there are, for a monitor that wants them.
    fn initial(&self, channel: ChannelId, id: u32) -> Vec<FlowUpdate> {
        let Some(monitor) = self.monitors.get(channel, id).filter(|monitor| monitor.wants_initial()) else {
            return Vec::new();
        };
        let entries = select(&self.tables, &monitor.filter);
        entries.map(|(table, _, entry)| monitor.full(FlowEvent::Initial, None, table, entry)).collect()
    }

    /// Tells monitors of what changed since they were told last.
    pub(crate) fn tell_monitors(&mut self, out: &mut Output) {
        for (channel, updates) in self.monitors.updates(&self.journal.take_changes()) {
            self.send_updates(channel, updates, out);
        }
    }

    /// Leaves updates out for a channel that does not read them, until [`Datapath::resume_monitors`]; it is told so. Entries that
    /// go are told all the same.
    pub fn pause_monitors(&mut self, channel: ChannelId, out: &mut Output) {
        let since = self.timers.stamp();
        if self.monitors.pause(channel, since) {
            self.send_updates(channel, vec![FlowUpdate::Paused], out);
        }
    }

    /// Ends a pause: the channel is told of entries that came or changed meanwhile, as they are now.
    pub fn resume_monitors(&mut self, channel: ChannelId, out: &mut Output) {
        let Some(since) = self.monitors.resume(channel) else { return };
        let mut updates = self.missed(&self.monitors, channel, since);
        updates.push(FlowUpdate::Resumed);
        self.send_updates(channel, updates, out);
    }

    fn missed(&self, monitors: &Monitors, channel: ChannelId, since: u64) -> Vec<FlowUpdate> {
        let mut updates = Vec::new();
        for monitor in monitors.of(channel) {
            for (table, _, entry) in select(&self.tables, &monitor.filter).filter(|(.., e)| e.changed > since) {
                let event = if entry.stamp > since { FlowEvent::Added } else { FlowEvent::Modified };
                updates.push(monitor.full(event, None, table, entry));
            }
        }
        updates
    }

    fn send_updates(&self, channel: ChannelId, updates: Vec<FlowUpdate>, out: &mut Output) {
        let Some(version) = self.plane.channels.version(channel) else { return };
        for part in codec::split_reply(ReplyBody::FlowMonitor(updates), version) {
            out.messages.push((channel, Message { xid: 0, body: Body::MultipartReply(part) }));
        }
    }
}
