//! A datapath that takes the time of a profile's device: what controllers say and what packets come to is held back by
//! [`weir_timing::Stage`] until its time has come. Without thread, clock or sockets, so that networks in virtual time have the same
//! (`weir_sim::network`).
//!
//! 1. Flow-mods, commits of bundles and barriers wait in the stage, group-mods and the like behind flow-mods that came before them. Who sent a barrier or a
//!    commit waits for its answer ([`Timed::awaits_answer`]); all else is answered at once. A bundle takes as long as its messages one after the other, and
//!    takes effect when that time is over; one with a time of its own (OpenFlow 1.5) takes effect then.
//! 2. A packet goes through the tables when it comes. What that comes to (frames for ports, packet-ins) is held as long as the data path takes, by the
//!    level and the kind of the entries it met; packet-ins then go through the agent.
//! 3. Packet-outs, and packets that flow-mods release, go through the agent that carries them out; barriers behind them are not answered before that (OpenFlow
//!    1.3.5, 6.2). What they send then waits in the data path like any other packet, which a barrier does not wait for.
//!
//! What the owner's own calls do (the control socket, entries from configuration) takes no time.
mod messages;
mod packets;
mod snapshot;

pub use snapshot::{LatenessSnapshot, LevelSnapshot, TimingSnapshot};

use std::collections::HashMap;
use weir_datapath::{ChannelId, Datapath, EntryChange, Output};
use weir_openflow::Message;
use weir_packet::PortNo;
use weir_packet::{Frame, FramePool};
use weir_profile::{MatchKind, Profile};
use weir_timing::{Released, Stage, TimingError, Took};
use weir_units::Instant;

/// Bytes of frames that are held at most; packets beyond are lost, and counted.
pub const MAX_HELD_BYTES: u64 = 128 << 20;
/// Bytes of messages that are held at most; channels have to wait then, and packets on their way to and from controllers are lost, and counted.
pub const MAX_MESSAGE_BYTES: u64 = 128 << 20;

/// What is held back.
#[derive(Debug)]
enum Held {
    /// What a channel said, or is to be told.
    Message(Said),
    /// What a packet came to.
    Outcome(Outcome),
}

/// A message with its channel.
#[derive(Debug)]
struct Said {
    channel: ChannelId,
    message: Message,
    /// About its length.
    bytes: u64,
}

/// What a packet came to.
#[derive(Debug, Default)]
struct Outcome {
    frames: Vec<(PortNo, Frame)>,
    packet_ins: Vec<(ChannelId, Message)>,
    /// Bytes of frames and packet-ins.
    bytes: u64,
    /// Whose flow-mod released it, as long as it is yet to be carried out.
    by: Option<ChannelId>,
}

/// What a channel has under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Pending {
    commands: u64,
    /// Those of the commands that end bundles.
    commits: u64,
    barriers: u64,
    packet_outs: u64,
}

/// See the module's page.
#[derive(Debug)]
pub struct Timed {
    stage: Stage<Held>,
    profile: String,
    /// Names and sizes of the tables' levels.
    levels: Vec<(String, Option<u64>)>,
    /// What entries look at.
    kinds: HashMap<u64, MatchKind>,
    pending: HashMap<ChannelId, Pending>,
    /// Whether barriers wait for what came before them.
    waits: bool,
    /// When the last thing came that a channel said.
    said_at: Instant,
    /// Barriers whose time has come, behind packet-outs that are yet to be carried out.
    behind: Vec<Said>,
    held_bytes: u64,
    message_bytes: u64,
    lost: Lost,
    /// The datapath's generation when its changes were last looked at.
    generation: Option<u64>,
    /// What a message or packet came to, until it is sorted; empty otherwise.
    scratch: Output,
    /// Lists that are used again.
    changes: Vec<EntryChange>,
    met: Vec<u64>,
    segments: Vec<Frame>,
    encoded: Vec<u8>,
}

/// Packets that were lost here.
#[derive(Debug, Clone, Copy, Default)]
struct Lost {
    /// More bytes would have been held than [`MAX_HELD_BYTES`] or [`MAX_MESSAGE_BYTES`].
    beyond: u64,
    /// A super-frame that cannot be cut.
    bad_offload: u64,
}

impl Timed {
    /// What a datapath with this profile needs; none if it takes no time of its own. The same seed gives the same times.
    ///
    /// # Errors
    /// The profile has parts that only formulas and simulations of stations know what to do with, named.
    pub fn new(profile: &Profile, seed: u64, datapath: &mut Datapath) -> Result<Option<Timed>, TimingError> {
        let Some(mut stage) = Stage::new(profile, seed)? else { return Ok(None) };
        if stage.tables().is_some() {
            datapath.watch_entries();
        }
        let sizes = profile.tables.iter().flat_map(|tables| tables.levels.iter().map(|level| level.size));
        let mut timed = Timed {
            stage,
            profile: profile.name.clone(),
            levels: profile.levels.iter().cloned().zip(sizes).collect(),
            kinds: HashMap::new(),
            pending: HashMap::new(),
            waits: profile.barrier.waits,
            said_at: Instant::ZERO,
            behind: Vec::new(),
            held_bytes: 0,
            message_bytes: 0,
            lost: Lost::default(),
            generation: None,
            scratch: Output::default(),
            changes: Vec::new(),
            met: Vec::new(),
            segments: Vec::new(),
            encoded: Vec::new(),
        };
        timed.follow(datapath);
        Ok(Some(timed))
    }

    /// When there is something to release; [`Instant::FAR`] if nothing waits.
    pub fn due(&self) -> Instant {
        self.stage.due()
    }

    /// When the time of the next thing comes ([`Stage::next`]).
    pub fn next(&self) -> Instant {
        self.stage.next()
    }

    /// Handing a frame to its port took so long, until it left ([`Stage::handed_out`]).
    pub fn handed_out(&mut self, left: Instant, took: Took) {
        self.stage.handed_out(left, took);
    }

    /// Writing a message to its channel took so long, until then ([`Stage::said`]).
    pub fn said(&mut self, until: Instant, took: std::time::Duration) {
        self.stage.said(until, took);
    }

    /// Whether another message of a channel may come; if not, channels have to wait.
    pub fn has_room(&self) -> bool {
        self.stage.has_room() && self.message_bytes < MAX_MESSAGE_BYTES
    }

    /// Whether a channel waits for a barrier or a commit: none of its later messages is to be carried out before that is answered.
    pub fn awaits_answer(&self, channel: ChannelId) -> bool {
        self.pending.get(&channel).is_some_and(|pending| pending.barriers + pending.commits > 0)
    }

    /// Whether something that a channel asked for is yet to be carried out.
    pub fn owes(&self, channel: ChannelId) -> bool {
        self.pending.contains_key(&channel)
    }

    /// Takes over what happened to the datapath's entries since the last time.
    pub fn follow(&mut self, datapath: &mut Datapath) {
        let generation = Some(datapath.generation());
        if self.generation == generation {
            return;
        }
        self.generation = generation;
        let Some(tables) = self.stage.tables() else { return };
        datapath.entry_changes(&mut self.changes);
        // Those modified one after the other were so by one command.
        let mut modified = Vec::new();
        for change in self.changes.drain(..) {
            if let EntryChange::Modified { entry } = change {
                modified.push(entry);
                continue;
            }
            if !modified.is_empty() {
                tables.modified(&std::mem::take(&mut modified));
            }
            match change {
                EntryChange::Added { entry, priority, ethernet, ip } => {
                    self.kinds.insert(entry, MatchKind::of(ethernet, ip));
                    tables.added(entry, priority);
                }
                EntryChange::Removed { entry } => {
                    self.kinds.remove(&entry);
                    tables.removed(entry);
                }
                EntryChange::Modified { .. } => {}
            }
        }
        if !modified.is_empty() {
            tables.modified(&modified);
        }
    }

    /// Sorts what is in `scratch`: packets are given back, all else goes to `out`.
    fn sort(&mut self, out: &mut Output) -> Outcome {
        let mut outcome = Outcome::default();
        for (port, frames) in &mut self.scratch.frames {
            for frame in frames.drain(..) {
                outcome.bytes += u64::from(frame.bytes_len());
                outcome.frames.push((*port, frame));
            }
        }
        for (channel, message) in self.scratch.messages.drain(..) {
            match messages::packet_in_bytes(&message) {
                Some(bytes) => {
                    outcome.bytes += u64::from(bytes);
                    outcome.packet_ins.push((channel, message));
                }
                None => out.messages.push((channel, message)),
            }
        }
        out.limited.append(&mut self.scratch.limited);
        out.port_admin.append(&mut self.scratch.port_admin);
        outcome
    }

    /// Releases the next thing whose time had come at `until`, which is not after `now`, the earliest first, into `out`. When its time came; none: look again at
    /// [`Timed::due`].
    pub fn release(
        &mut self,
        now: Instant,
        until: Instant,
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut Output,
    ) -> Option<Instant> {
        self.follow(datapath);
        let Released { part, due, item } =
            self.stage.release_until(now, until, &mut |held| messages::work(datapath, held))?;
        match item {
            Held::Message(said) => self.release_message((now, due), part, said, datapath, pool, out),
            Held::Outcome(mut outcome) => {
                let by = outcome.by.take();
                self.release_packet(due, part, outcome, pool, out);
                if let Some(channel) = by {
                    self.settle(channel, |pending| &mut pending.packet_outs);
                    self.answer_behind((now, due), channel, datapath, pool, out);
                }
            }
        }
        Some(due)
    }
}
