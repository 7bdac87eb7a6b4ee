//! A datapath with its channels: what controllers take for a switch (OpenFlow calls it a logical switch). The engine drives one at a
//! time; what it does for controllers it does for the one in [`Engine::logical`](super::Engine).
use super::inbox::FromChannel;
use super::lines::Lines;
use super::monitors::PausedMonitors;
use crate::threads::seats::Owner;
use tokio::sync::mpsc;
use weir_datapath::{ChannelId, Datapath, FailMode, Output};
use weir_openflow::Message;
use weir_units::Instant;

/// See the module's page.
pub(super) struct LogicalSwitch {
    pub(super) datapath: Owner<Datapath>,
    /// What channels say.
    pub(super) messages: mpsc::Receiver<FromChannel>,
    /// The rest of a batch from the channels that was too much for one round.
    pub(super) begun: Option<(ChannelId, std::vec::IntoIter<Message>)>,
    /// Whether the datapath is carrying a bundle out, before which nothing else is done.
    pub(super) is_busy: bool,
    pub(super) lines: Lines,
    pub(super) paused_monitors: PausedMonitors,
    pub(super) out: Output,
    pub(super) expire_at: Instant,
}

impl LogicalSwitch {
    /// One without ports or channels.
    pub(super) fn new(
        mut datapath: Datapath,
        fail_mode: FailMode,
        messages: mpsc::Receiver<FromChannel>,
    ) -> LogicalSwitch {
        datapath.set_fail_mode(fail_mode);
        LogicalSwitch {
            datapath: Owner::new(datapath),
            messages,
            begun: None,
            is_busy: false,
            lines: Lines::default(),
            paused_monitors: PausedMonitors::default(),
            out: Output::default(),
            expire_at: Instant::ZERO,
        }
    }

    /// Whether its controllers have left the engine nothing to do.
    pub(super) fn is_quiet(&self) -> bool {
        self.begun.is_none() && !self.is_busy && self.messages.is_empty() && !self.lines.can_move()
    }

    /// When something of it is due.
    pub(super) fn due(&self) -> Instant {
        self.expire_at.min(self.paused_monitors.due())
    }
}
