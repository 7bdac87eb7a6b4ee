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
            if !self.logical.paused_monitors.channels.contains(&channel) {
                self.logical.paused_monitors.channels.push(channel);
                self.logical.paused_monitors.look_at.get_or_insert(now + LOOK);
                self.logical.datapath.get().pause_monitors(channel, &mut self.logical.out);
            }
        }
    }

    /// Ends the pause of channels that have read; when it is time to look.
    pub(super) fn resume_monitors(&mut self, now: Instant) {
        if now < self.logical.paused_monitors.due() {
            return;
        }
        let paused = std::mem::take(&mut self.logical.paused_monitors.channels);
        for channel in paused {
            match self.logical.lines.outbox(channel).map(|outbox| outbox.is_notice_room()) {
                Some(true) => self.logical.datapath.get().resume_monitors(channel, &mut self.logical.out),
                Some(false) => self.logical.paused_monitors.channels.push(channel),
                // It ended.
                None => {}
            }
        }
        self.logical.paused_monitors.look_at =
            (!self.logical.paused_monitors.channels.is_empty()).then_some(now + LOOK);
        self.deliver(now);
    }
}
