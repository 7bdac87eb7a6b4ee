//! Combines a datapath with its channels: the switch that controllers see (OpenFlow calls it a logical switch). An
//! engine has one for the physical switch, and one for each virtual switch.
use super::channel_table::ChannelTable;
use super::inbox::FromChannel;
use super::monitors::PausedMonitors;
use crate::threads::sharded_lock::ShardWriter;
use tokio::sync::mpsc;
use weir_datapath::{ChannelId, Datapath, DatapathOutput, FailMode};
use weir_device::DelayedDatapath;
use weir_openflow::Message;
use weir_units::Instant;

/// A datapath with its channels and the state of their messages.
pub(super) struct LogicalSwitch {
    pub(super) datapath: ShardWriter<Datapath>,
    /// Receiver of the channels' messages.
    pub(super) messages: mpsc::Receiver<FromChannel>,
    /// Rest of a batch from a channel that one round could not finish: the channel, the arrival time and the
    /// messages.
    pub(super) unfinished_batch: Option<(ChannelId, Instant, std::vec::IntoIter<Message>)>,
    /// True while the datapath carries out a bundle or a change of many flow entries in steps; no other message is
    /// carried out then.
    pub(super) is_busy: bool,
    pub(super) channels: ChannelTable,
    pub(super) paused_monitors: PausedMonitors,
    /// Timing of the profile's device, if the switch has a profile.
    pub(super) timed: Option<Box<DelayedDatapath>>,
    /// True if in-band control is on.
    pub(super) is_in_band: bool,
    pub(super) out: DatapathOutput,
    pub(super) expire_at: Instant,
}

impl LogicalSwitch {
    /// Returns a logical switch without ports or channels.
    pub(super) fn new(
        mut datapath: Datapath,
        fail_mode: FailMode,
        messages: mpsc::Receiver<FromChannel>,
    ) -> LogicalSwitch {
        datapath.set_fail_mode(fail_mode);
        LogicalSwitch {
            datapath: ShardWriter::new(datapath),
            messages,
            unfinished_batch: None,
            is_busy: false,
            channels: ChannelTable::default(),
            paused_monitors: PausedMonitors::default(),
            timed: None,
            is_in_band: false,
            out: DatapathOutput::default(),
            expire_at: Instant::ZERO,
        }
    }

    /// Ends a channel, if it is up.
    pub(super) fn channel_down(&mut self, now: Instant, channel: ChannelId) {
        if self.channels.remove(channel) {
            self.datapath.get().tell_channel(channel, false, &mut self.out);
            self.datapath.get().channel_down(now, channel);
        }
    }

    /// Returns true if there are messages or other control work at `now`.
    pub(super) fn has_control_work(&self, now: Instant) -> bool {
        let waits = self.is_busy || self.unfinished_batch.is_some() || self.channels.holds();
        waits || now >= self.expire_at || !self.messages.is_empty()
    }

    /// Returns true if no message can be carried out now.
    pub(super) fn is_quiet(&self) -> bool {
        let is_heard = self.is_full() || self.unfinished_batch.is_none() && self.messages.is_empty();
        is_heard && !self.is_busy && !self.channels.can_move(self.timed.as_deref())
    }

    /// Returns true if no further message can be taken before delayed ones have been carried out.
    pub(super) fn is_full(&self) -> bool {
        self.timed.as_ref().is_some_and(|timed| !timed.has_room())
    }

    /// Time at which flow expiry or paused monitors have work.
    pub(super) fn due(&self) -> Instant {
        self.expire_at.min(self.paused_monitors.due())
    }
}
