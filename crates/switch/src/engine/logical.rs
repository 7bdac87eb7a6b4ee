//! A datapath with its channels: what controllers take for a switch (OpenFlow calls it a logical switch). The engine drives one at a
//! time; what it does for controllers it does for the one in [`Engine::logical`](super::Engine).
use super::inbox::FromChannel;
use super::lines::Lines;
use super::monitors::PausedMonitors;
use crate::threads::seats::Owner;
use crate::timed::Timed;
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
    pub(super) begun: Option<(ChannelId, Instant, std::vec::IntoIter<Message>)>,
    /// Whether the datapath is carrying a bundle out, before which nothing else is done.
    pub(super) is_busy: bool,
    pub(super) lines: Lines,
    pub(super) paused_monitors: PausedMonitors,
    /// What lets it take the time of a profile's device, if it has one.
    pub(super) timed: Option<Box<Timed>>,
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
            timed: None,
            out: Output::default(),
            expire_at: Instant::ZERO,
        }
    }

    /// Whether its controllers have left the engine nothing to do.
    pub(super) fn is_quiet(&self) -> bool {
        let is_heard = self.is_full() || self.begun.is_none() && self.messages.is_empty();
        is_heard && !self.is_busy && !self.lines.can_move(self.timed.as_deref())
    }

    /// Whether no message of a channel can be taken before others have been carried out.
    pub(super) fn is_full(&self) -> bool {
        self.timed.as_ref().is_some_and(|timed| !timed.has_room())
    }

    /// When something of it is due.
    pub(super) fn due(&self) -> Instant {
        self.expire_at.min(self.paused_monitors.due())
    }
}
