//! Flow monitors of controllers that do not read: their updates wait with other notices, and are paused before those would be
//! dropped (OpenFlow 1.4.1, 7.3.5.17).
use super::Engine;
use std::time::Duration;
use weir_datapath::ChannelId;
use weir_units::Instant;

/// How often it is looked whether a paused controller reads again.
const LOOK: Duration = Duration::from_millis(100);

/// The channels that are paused.
#[derive(Debug, Default)]
pub(super) struct PausedMonitors {
    channels: Vec<ChannelId>,
    look_at: Option<Instant>,
}

impl PausedMonitors {
    /// When to look again.
    pub(super) fn due(&self) -> Instant {
        self.look_at.unwrap_or(Instant::FAR)
    }
}

impl Engine {
    /// Pauses the monitors of channels for which too much waits; the pause is told them.
    pub(super) fn pause_monitors(&mut self, now: Instant, crowded: Vec<ChannelId>) {
        for channel in crowded {
            if !self.paused_monitors.channels.contains(&channel) {
                self.paused_monitors.channels.push(channel);
                self.paused_monitors.look_at.get_or_insert(now + LOOK);
                self.datapath.get().pause_monitors(channel, &mut self.out);
            }
        }
    }

    /// Ends the pause of channels that have read; when it is time to look.
    pub(super) fn resume_monitors(&mut self, now: Instant) {
        if now < self.paused_monitors.due() {
            return;
        }
        let paused = std::mem::take(&mut self.paused_monitors.channels);
        for channel in paused {
            match self.lines.outbox(channel).map(|outbox| outbox.is_notice_room()) {
                Some(true) => self.datapath.get().resume_monitors(channel, &mut self.out),
                Some(false) => self.paused_monitors.channels.push(channel),
                // It ended.
                None => {}
            }
        }
        self.paused_monitors.look_at = (!self.paused_monitors.channels.is_empty()).then_some(now + LOOK);
        self.deliver(now);
    }
}
