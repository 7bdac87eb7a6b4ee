//! Pauses the flow monitors of controllers that do not read. Their updates share a queue with other notices, and the
//! pause comes before notices would be dropped (OpenFlow 1.4.1, 7.3.5.17).
use super::Engine;
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

impl Engine {
    /// Pauses the monitors of channels with too many waiting messages. The channels are sent a notice of the pause.
    pub(super) fn pause_monitors(&mut self, now: Instant, crowded: Vec<ChannelId>) {
        for channel in crowded {
            if !self.logical.paused_monitors.channels.contains(&channel) {
                self.logical.paused_monitors.channels.push(channel);
                self.logical.paused_monitors.look_at.get_or_insert(now + LOOK);
                self.logical.datapath.get().pause_monitors(channel, &mut self.logical.out);
            }
        }
    }

    /// Resumes the monitors of channels that have read enough, if a check is due.
    pub(super) fn resume_monitors(&mut self, now: Instant) {
        if now < self.logical.paused_monitors.due() {
            return;
        }
        let paused = std::mem::take(&mut self.logical.paused_monitors.channels);
        for channel in paused {
            match self.logical.channels.outbox(channel).map(|outbox| outbox.is_notice_room()) {
                Some(true) => self.logical.datapath.get().resume_monitors(channel, &mut self.logical.out),
                Some(false) => self.logical.paused_monitors.channels.push(channel),
                // The channel ended.
                None => {}
            }
        }
        self.logical.paused_monitors.look_at =
            (!self.logical.paused_monitors.channels.is_empty()).then_some(now + LOOK);
        self.deliver(now);
    }
}
