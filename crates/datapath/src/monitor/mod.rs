//! Flow monitors: controllers that are notified of changes of flow entries (OpenFlow 1.4.1, 7.3.5.17).
//!
//! While there are monitors, every change of an entry is recorded ([`MonitoredChange`]). After its message, each
//! monitor gets the changes that its filter selects. A failed bundle causes no notices. A channel that does not read is
//! paused: it gets a pause notice, then only removals. When it reads again, it gets the entries that were added or
//! changed meanwhile, in their present state.
use crate::ChannelId;
use crate::entry_filter::EntryFilter;
use crate::program::EntryProgram;
use crate::table::FlowEntry;
use std::sync::Arc;
use weir_openflow::model::error::FlowMonitorFailed;
use weir_openflow::model::monitor::{FlowEvent, FlowMonitor, FlowUpdate, FlowUpdateFull, MonitorFlags};
use weir_openflow::model::{FlowRemovedReason, TableId};

/// Maximum number of monitors per channel.
pub(crate) const MAX_MONITORS: usize = 64;

/// The monitors of all channels.
#[derive(Debug, Default)]
pub(crate) struct FlowMonitors {
    list: Vec<MonitorSubscription>,
    paused: Vec<PausedChannel>,
}

/// A controller's subscription to changes of the entries that a filter selects.
#[derive(Debug)]
pub(crate) struct MonitorSubscription {
    pub(crate) channel: ChannelId,
    pub(crate) id: u32,
    flags: MonitorFlags,
    pub(crate) filter: EntryFilter,
}

/// A paused channel.
#[derive(Debug, Clone, Copy)]
struct PausedChannel {
    channel: ChannelId,
    /// Stamp of the pause's beginning: entries with a later stamp or change are unknown to the channel.
    since: u64,
}

/// A recorded change of an entry.
#[derive(Debug)]
pub(crate) struct MonitoredChange {
    pub(crate) event: FlowEvent,
    pub(crate) reason: Option<FlowRemovedReason>,
    pub(crate) table: u8,
    /// The entry after the change, or before its removal.
    pub(crate) entry: FlowEntry,
    /// The entry's former program, if it was modified.
    pub(crate) former: Option<Arc<EntryProgram>>,
    /// Channel whose message caused the change, and the message's transaction id.
    pub(crate) by: Option<(ChannelId, u32)>,
}

impl MonitorSubscription {
    pub(crate) fn new(channel: ChannelId, asked: &FlowMonitor, filter: EntryFilter) -> MonitorSubscription {
        MonitorSubscription { channel, id: asked.id, flags: asked.flags, filter }
    }

    /// Returns true if the monitor wants the present entries when it begins.
    pub(crate) fn wants_initial(&self) -> bool {
        self.flags.contains(MonitorFlags::INITIAL)
    }

    /// Returns true if the monitor wants an entry that was added, or else modified, during a pause. An entry that was
    /// added may also have been modified since.
    pub(crate) fn wants_missed(&self, is_added: bool) -> bool {
        self.flags.contains(MonitorFlags::MODIFY) || is_added && self.flags.contains(MonitorFlags::ADD)
    }

    /// Returns the full update for an entry.
    pub(crate) fn full(
        &self,
        event: FlowEvent,
        reason: Option<FlowRemovedReason>,
        table: u8,
        entry: &FlowEntry,
    ) -> FlowUpdate {
        let with_instructions = self.flags.contains(MonitorFlags::INSTRUCTIONS);
        FlowUpdate::Full(FlowUpdateFull {
            event,
            reason,
            table: TableId(table),
            idle_timeout: entry.idle_timeout,
            hard_timeout: entry.hard_timeout,
            priority: entry.priority,
            cookie: entry.cookie,
            matching: entry.matching.to_match(),
            instructions: if with_instructions { entry.program.instructions() } else { Vec::new() },
        })
    }

    /// Returns the update for a change, if the monitor wants one.
    fn update(&self, change: &MonitoredChange) -> Option<FlowUpdate> {
        let wanted = match change.event {
            FlowEvent::Initial => MonitorFlags::INITIAL,
            FlowEvent::Added => MonitorFlags::ADD,
            FlowEvent::Removed => MonitorFlags::REMOVED,
            FlowEvent::Modified => MonitorFlags::MODIFY,
        };
        let own = change.by.filter(|(channel, _)| *channel == self.channel);
        let is_told = self.flags.contains(wanted) && (own.is_some() || !self.flags.contains(MonitorFlags::ONLY_OWN));
        if !is_told || !self.filter.is_about(change.table) || !self.lets(change) {
            return None;
        }
        Some(match own {
            Some((_, xid)) if !self.flags.contains(MonitorFlags::NO_ABBREV) => FlowUpdate::Abbrev { xid },
            _ => self.full(change.event, change.reason, change.table, &change.entry),
        })
    }

    /// Returns true if the monitor's filter selects the entry before or after the change.
    fn lets(&self, change: &MonitoredChange) -> bool {
        // The entry may have left its table, so its words are computed from its match.
        let words = || change.entry.matching.words();
        let was = change.former.as_ref().is_some_and(|former| self.filter.lets_doing(&change.entry, former, words));
        was || self.filter.lets(&change.entry, words)
    }
}

impl FlowMonitors {
    /// Returns true if there are no monitors.
    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// Adds a monitor.
    ///
    /// # Errors
    /// The channel has a monitor with that number, or too many monitors.
    pub(crate) fn add(&mut self, monitor: MonitorSubscription) -> Result<(), FlowMonitorFailed> {
        if self.position(monitor.channel, monitor.id).is_ok() {
            return Err(FlowMonitorFailed::MonitorExists);
        }
        if self.list.iter().filter(|other| other.channel == monitor.channel).count() >= MAX_MONITORS {
            // The specification has no error code for this.
            return Err(FlowMonitorFailed::Unknown);
        }
        self.list.push(monitor);
        Ok(())
    }

    /// Removes a channel's monitor and returns it.
    ///
    /// # Errors
    /// The monitor does not exist.
    pub(crate) fn remove(&mut self, channel: ChannelId, id: u32) -> Result<MonitorSubscription, FlowMonitorFailed> {
        let at = self.position(channel, id)?;
        Ok(self.list.remove(at))
    }

    /// Removes a channel's monitors and its pause.
    pub(crate) fn forget(&mut self, channel: ChannelId) {
        self.list.retain(|monitor| monitor.channel != channel);
        self.paused.retain(|paused| paused.channel != channel);
    }

    /// Returns a channel's monitor.
    pub(crate) fn get(&self, channel: ChannelId, id: u32) -> Option<&MonitorSubscription> {
        self.list.iter().find(|monitor| (monitor.channel, monitor.id) == (channel, id))
    }

    /// Returns a channel's monitors.
    pub(crate) fn of(&self, channel: ChannelId) -> impl Iterator<Item = &MonitorSubscription> {
        self.list.iter().filter(move |monitor| monitor.channel == channel)
    }

    /// Returns the channels that have monitors, each once.
    fn channels(&self) -> Vec<ChannelId> {
        let mut channels: Vec<ChannelId> = self.list.iter().map(|monitor| monitor.channel).collect();
        channels.sort_unstable();
        channels.dedup();
        channels
    }

    /// Returns the updates of each channel for a list of changes, in order.
    pub(crate) fn updates(&self, changes: &[MonitoredChange]) -> Vec<(ChannelId, Vec<FlowUpdate>)> {
        let told = self.channels().into_iter().map(|channel| (channel, self.updates_of(channel, changes)));
        told.filter(|(_, updates)| !updates.is_empty()).collect()
    }

    fn updates_of(&self, channel: ChannelId, changes: &[MonitoredChange]) -> Vec<FlowUpdate> {
        let is_paused = self.paused_since(channel).is_some();
        let mut updates: Vec<FlowUpdate> = Vec::new();
        for change in changes.iter().filter(|change| !is_paused || change.event == FlowEvent::Removed) {
            // An entry selected by several monitors is reported once, and so is an own message that changes many
            // entries.
            let mut told: Vec<FlowUpdate> = self.of(channel).filter_map(|monitor| monitor.update(change)).collect();
            told.dedup();
            let is_new =
                |update: &FlowUpdate| !matches!(update, FlowUpdate::Abbrev { .. }) || updates.last() != Some(update);
            if told.first().is_some_and(is_new) {
                updates.extend(told.into_iter().take(1));
            }
        }
        updates
    }

    /// Pauses a channel. Returns true if it has monitors and was not paused.
    pub(crate) fn pause(&mut self, channel: ChannelId, since: u64) -> bool {
        let is_new = self.of(channel).next().is_some() && self.paused_since(channel).is_none();
        if is_new {
            self.paused.push(PausedChannel { channel, since });
        }
        is_new
    }

    /// Ends a channel's pause. Returns the stamp of the pause's beginning.
    pub(crate) fn resume(&mut self, channel: ChannelId) -> Option<u64> {
        let since = self.paused_since(channel)?;
        self.paused.retain(|paused| paused.channel != channel);
        Some(since)
    }

    fn paused_since(&self, channel: ChannelId) -> Option<u64> {
        self.paused.iter().find(|paused| paused.channel == channel).map(|paused| paused.since)
    }

    fn position(&self, channel: ChannelId, id: u32) -> Result<usize, FlowMonitorFailed> {
        let found = self.list.iter().position(|monitor| (monitor.channel, monitor.id) == (channel, id));
        found.ok_or(FlowMonitorFailed::UnknownMonitor)
    }
}
