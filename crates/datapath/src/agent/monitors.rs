//! Changes flow monitors as requested and sends updates to monitors (OpenFlow 1.4.1, 7.3.5.17). Before 1.4, Nicira's
//! messages and an extension of 1.3 serve for this. The monitors are in [`crate::monitor`].
use crate::channels::DatapathChannels;
use crate::entry_filter::{EntryFilter, select};
use crate::flow_tables::FlowTables;
use crate::journal::Journal;
use crate::monitor::{FlowMonitors, MonitorSubscription};
use crate::table::EthTypeReading;
use crate::{ChannelId, DatapathOutput};
use std::collections::BTreeSet;
use weir_openflow::model::error::FlowMonitorFailed;
use weir_openflow::model::monitor::{FlowEvent, FlowMonitor, FlowUpdate, MonitorCommand};
use weir_openflow::model::multipart::FlowRequest;
use weir_openflow::model::{ErrorType, TableId};

/// All flags `OFPFMF_*` that exist.
const FLAGS: u16 = 0x7f;

impl FlowMonitors {
    /// Carries out a request of a channel that adds, changes and removes monitors. Returns the present entries that
    /// match, for the monitors that ask for them.
    ///
    /// # Errors
    /// [`FlowMonitorFailed`], or the match is invalid. Parts of the request before the invalid one stay in force.
    pub(super) fn change(
        &mut self,
        channel: ChannelId,
        asked: &[FlowMonitor],
        tables: &FlowTables,
        journal: &mut Journal,
    ) -> Result<Vec<FlowUpdate>, ErrorType> {
        let mut updates = Vec::new();
        for monitor in asked {
            self.change_one(channel, monitor, tables)?;
            updates.extend(self.initial(tables, channel, monitor.id));
        }
        journal.watch(!self.is_empty());
        Ok(updates)
    }

    /// Removes a monitor, in versions that have a separate message for this.
    ///
    /// # Errors
    /// [`FlowMonitorFailed`]: the monitor does not exist.
    pub(super) fn cancel(&mut self, channel: ChannelId, id: u32, journal: &mut Journal) -> Result<(), ErrorType> {
        self.remove(channel, id)?;
        journal.watch(!self.is_empty());
        Ok(())
    }

    fn change_one(&mut self, channel: ChannelId, asked: &FlowMonitor, tables: &FlowTables) -> Result<(), ErrorType> {
        match asked.command {
            MonitorCommand::Add => {
                let monitor = subscription(channel, asked, tables)?;
                Ok(self.add(monitor)?)
            }
            MonitorCommand::Modify => {
                let monitor = subscription(channel, asked, tables)?;
                self.remove(channel, asked.id)?;
                Ok(self.add(monitor)?)
            }
            MonitorCommand::Delete => Ok(self.remove(channel, asked.id).map(drop)?),
            MonitorCommand::Unknown(_) => Err(FlowMonitorFailed::BadCommand.into()),
        }
    }

    /// Returns the present entries for a monitor that asks for them.
    fn initial(&self, tables: &FlowTables, channel: ChannelId, id: u32) -> Vec<FlowUpdate> {
        let Some(monitor) = self.get(channel, id).filter(|monitor| monitor.wants_initial()) else {
            return Vec::new();
        };
        let entries = select(tables.all(), &monitor.filter);
        entries.map(|(table, _, entry)| monitor.full(FlowEvent::Initial, None, table, entry)).collect()
    }

    /// Sends updates to all monitors for the changes of flow entries since the last call.
    pub(crate) fn tell(&self, journal: &mut Journal, channels: &DatapathChannels, out: &mut DatapathOutput) {
        for (channel, updates) in self.updates(&journal.take_changes()) {
            channels.send_updates(channel, updates, out);
        }
    }

    /// Returns updates for the entries that match the channel's monitors and were added or changed after the stamp
    /// `since`, in their present state.
    pub(crate) fn missed(&self, tables: &FlowTables, channel: ChannelId, since: u64) -> Vec<FlowUpdate> {
        let (mut updates, mut reported) = (Vec::new(), BTreeSet::new());
        for monitor in self.of(channel) {
            for (table, id, entry) in select(tables.all(), &monitor.filter).filter(|(.., e)| e.changed > since) {
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
}

/// Returns the monitor that a channel asks for.
///
/// # Errors
/// [`FlowMonitorFailed`], or the match is invalid.
fn subscription(
    channel: ChannelId,
    asked: &FlowMonitor,
    tables: &FlowTables,
) -> Result<MonitorSubscription, ErrorType> {
    if asked.flags.0 & !FLAGS != 0 {
        return Err(FlowMonitorFailed::BadFlags.into());
    }
    if asked.table != TableId::ALL && !tables.has_table(asked.table) {
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
