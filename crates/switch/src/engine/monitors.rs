//! Pauses the flow monitors of controllers that do not read. Their updates share a queue with other notices, and the
//! pause comes before notices would be dropped (OpenFlow 1.4.1, 7.3.5.17).
use super::logical::LogicalSwitch;
use super::served::ServedSwitch;
use std::time::Duration;
use weir_datapath::ChannelId;
use weir_units::Instant;

/// Interval of the checks for paused controllers that read again.
const LOOK: Duration = Duration::from_millis(100);

/// Channels whose monitors are paused.
#[derive(Debug, Default)]
pub(super) struct PausedMonitors {
    channels: Vec<ChannelId>,
    look_at: Option<Instant>,
}

impl PausedMonitors {
    /// Time of the next check; [`Instant::FAR`] if no channel is paused.
    pub(super) fn due(&self) -> Instant {
        self.look_at.unwrap_or(Instant::FAR)
    }
}

impl LogicalSwitch {
    /// Pauses the monitors of channels with too many waiting messages. The channels are sent a notice of the pause.
    pub(super) fn pause_monitors(&mut self, now: Instant, crowded: Vec<ChannelId>) {
        for channel in crowded {
            if !self.paused_monitors.channels.contains(&channel) {
                self.paused_monitors.channels.push(channel);
                self.paused_monitors.look_at.get_or_insert(now + LOOK);
                self.datapath.get().pause_monitors(channel, &mut self.out);
            }
        }
    }

    /// Resumes the monitors of channels that have read enough, if a check is due. Returns true if it was.
    fn resume_monitors(&mut self, now: Instant) -> bool {
        if now < self.paused_monitors.due() {
            return false;
        }
        let paused = std::mem::take(&mut self.paused_monitors.channels);
        for channel in paused {
            match self.channels.outbox(channel).map(|outbox| outbox.is_notice_room()) {
                Some(true) => self.datapath.get().resume_monitors(channel, &mut self.out),
                Some(false) => self.paused_monitors.channels.push(channel),
                // The channel ended.
                None => {}
            }
        }
        self.paused_monitors.look_at = (!self.paused_monitors.channels.is_empty()).then_some(now + LOOK);
        true
    }
}

impl ServedSwitch<'_> {
    /// Resumes the monitors of channels that have read enough, if a check is due and no change is under way.
    pub(super) fn resume_monitors(&mut self, now: Instant) {
        if !self.logical.is_busy && self.logical.resume_monitors(now) {
            self.deliver(now);
        }
    }
}
