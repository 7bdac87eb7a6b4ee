//! Delays a datapath's messages and packets to match a profiled device ([`TimingStage`]). The live switch
//! (`weir_switch`) and networks in virtual time (`weir_sim::network`) use the same code.
//!
//! 1. Flow-mods, bundle commits and barriers wait in the stage. Group-mods and similar messages wait behind earlier
//!    flow-mods. A channel that sent a barrier or a commit waits for its answer ([`DelayedDatapath::awaits_answer`]);
//!    all other messages are carried out at once. A bundle takes the sum of its messages' times and takes effect at the
//!    end. A bundle with a scheduled time (OpenFlow 1.5) takes effect at that time.
//! 2. A packet is looked up on arrival. Its outcome (frames for ports, packet-ins) is held for the time of the data
//!    path, which depends on the level and kind of the matched flow entries. Packet-ins then pass through the agent.
//! 3. Packet-outs, and packets released by flow-mods, pass through the agent that carries them out. If the profile's
//!    barriers wait, a barrier behind them is not answered before that (OpenFlow 1.3.5, 6.2). Their frames then pass
//!    through the data path like other packets, if the profile says so. Barriers do not wait for that.
//!
//! Calls of the switch's owner (the control socket, configured flow entries) take no time.
mod expected;
mod messages;
mod packets;
mod snapshot;

pub use snapshot::{LatenessSnapshot, LevelSnapshot, TimingSnapshot};

use crate::{ProfileConfig, ReleasedItem, SendDuration, TimingError, TimingStage};
use std::collections::HashMap;
use weir_datapath::{ChannelId, Datapath, DatapathOutput, EntryChange};
use weir_openflow::Message;
use weir_packet::PortNo;
use weir_packet::{Frame, FramePool};
use weir_profile::{MatchLayers, Profile};
use weir_units::Instant;

/// Maximum number of bytes in held frames. Packets beyond it are dropped and counted.
pub const MAX_HELD_BYTES: u64 = 128 << 20;
/// Maximum number of bytes in held messages. Beyond it channels wait, and packets to and from controllers are dropped
/// and counted.
pub const MAX_MESSAGE_BYTES: u64 = 128 << 20;

/// An item held by the stage.
#[derive(Debug)]
enum DelayedItem {
    /// A message from a channel, or a packet-in for it.
    Message(ChannelMessage),
    /// The outcome of a packet's lookup.
    Outcome(LookupOutput),
}

/// A message with its channel.
#[derive(Debug)]
struct ChannelMessage {
    channel: ChannelId,
    message: Message,
    /// Approximate length of the message in bytes.
    bytes: u64,
}

/// Output of a packet's lookup.
#[derive(Debug, Default)]
struct LookupOutput {
    frames: Vec<(PortNo, Frame)>,
    packet_ins: Vec<(ChannelId, Message)>,
    /// Total length in bytes of frames and packet-ins.
    bytes: u64,
    /// Channel whose flow-mod released the packet, until the packet is carried out.
    by: Option<ChannelId>,
}

/// Numbers of a channel's messages that are not carried out yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct PendingMessageCounts {
    commands: u64,
    /// Commands that commit bundles; also counted in `commands`.
    commits: u64,
    barriers: u64,
    packet_outs: u64,
}

/// Holds messages and packets until the time at which the profiled device would finish them.
#[derive(Debug)]
pub struct DelayedDatapath {
    stage: TimingStage<DelayedItem>,
    profile: String,
    /// Name and size of each table level.
    levels: Vec<(String, Option<u64>)>,
    /// Kinds of match fields, by flow entry.
    kinds: HashMap<u64, MatchLayers>,
    pending: HashMap<ChannelId, PendingMessageCounts>,
    /// True if barriers wait for earlier packet-outs of their channel.
    waits: bool,
    /// Earliest start time of the next message of any channel: the start time of the last message, or the due time of
    /// the last answer to a barrier or a commit, if that is later.
    said_at: Instant,
    /// Barriers that are due, but wait for packet-outs of their channel.
    behind: Vec<ChannelMessage>,
    held_bytes: u64,
    message_bytes: u64,
    lost: DelayDropCounts,
    /// True if frames leave with the number of their input port as their queue.
    marks_inputs: bool,
    /// The datapath's generation when its changes were last read.
    generation: Option<u64>,
    /// Output of the current message or packet until it is sorted; empty otherwise.
    scratch: DatapathOutput,
    /// Lists that are reused to save allocations.
    changes: Vec<EntryChange>,
    met: Vec<u64>,
    segments: Vec<Frame>,
    encoded: Vec<u8>,
}

/// Numbers of packets dropped here.
#[derive(Debug, Clone, Copy, Default)]
struct DelayDropCounts {
    /// Packets beyond [`MAX_HELD_BYTES`] or [`MAX_MESSAGE_BYTES`].
    beyond: u64,
    /// Super-frames that cannot be segmented.
    bad_offload: u64,
}

impl DelayedDatapath {
    /// Returns the timing of `profile` for `datapath`, or `None` if the profile adds no delay. Equal seeds give equal
    /// delays.
    ///
    /// # Errors
    /// Fails if the profile has parts that only formulas and simulations of stations support; the error names them.
    pub fn new(profile: &Profile, seed: u64, datapath: &mut Datapath) -> Result<Option<DelayedDatapath>, TimingError> {
        let Some(mut stage) = TimingStage::new(profile, seed)? else { return Ok(None) };
        if stage.tables().is_some() {
            datapath.watch_entries();
        }
        let sizes = profile.tables.iter().flat_map(|tables| tables.levels.iter().map(|level| level.size));
        let mut timed = DelayedDatapath {
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
            lost: DelayDropCounts::default(),
            marks_inputs: false,
            generation: None,
            scratch: DatapathOutput::default(),
            changes: Vec::new(),
            met: Vec::new(),
            segments: Vec::new(),
            encoded: Vec::new(),
        };
        timed.follow(datapath);
        Ok(Some(timed))
    }

    /// Returns the timing of a profile for the datapath of a virtual switch; `None` if the profile adds no delay. Each
    /// virtual switch takes the times of a device of its own, drawn from the seed and its datapath id. Frames for which
    /// no flow entry has chosen a queue leave with the number of their input port as their queue: by then nothing else
    /// tells the fabric at which crosspoint they wait.
    ///
    /// # Errors
    /// As [`DelayedDatapath::new`].
    pub fn of_virtual_switch(
        config: &ProfileConfig,
        dpid: u64,
        datapath: &mut Datapath,
    ) -> Result<Option<DelayedDatapath>, TimingError> {
        let timed = DelayedDatapath::new(&config.profile, config.seed.wrapping_add(dpid), datapath)?;
        Ok(timed.map(|timed| DelayedDatapath { marks_inputs: true, ..timed }))
    }

    /// Time of the next release, which may be slightly before the item's due time; [`Instant::FAR`] if nothing waits.
    pub fn due(&self) -> Instant {
        self.stage.due()
    }

    /// Due time of the next item ([`TimingStage::next`]).
    pub fn next(&self) -> Instant {
        self.stage.next()
    }

    /// Reports that handing a frame to its port took `took`, and that the frame left at `left`
    /// ([`TimingStage::handed_out`]).
    pub fn handed_out(&mut self, left: Instant, took: SendDuration) {
        self.stage.handed_out(left, took);
    }

    /// Reports that writing a message to its channel took `took`, and ended at `until` ([`TimingStage::said`]).
    pub fn said(&mut self, until: Instant, took: std::time::Duration) {
        self.stage.said(until, took);
    }

    /// Returns true if there is room for another message. Otherwise channels must wait.
    pub fn has_room(&self) -> bool {
        self.stage.has_room() && self.message_bytes < MAX_MESSAGE_BYTES
    }

    /// Returns true if a channel waits for a barrier or a commit. None of its later messages may be carried out
    /// before the answer.
    pub fn awaits_answer(&self, channel: ChannelId) -> bool {
        self.pending.get(&channel).is_some_and(|pending| pending.barriers + pending.commits > 0)
    }

    /// Returns true if a message of `channel` is not carried out yet.
    pub fn owes(&self, channel: ChannelId) -> bool {
        self.pending.contains_key(&channel)
    }

    /// Applies the changes of the datapath's flow entries since the last call to the modelled tables.
    pub fn follow(&mut self, datapath: &mut Datapath) {
        let generation = Some(datapath.generation());
        if self.generation == generation {
            return;
        }
        self.generation = generation;
        let Some(tables) = self.stage.tables() else { return };
        datapath.entry_changes(&mut self.changes);
        // Flow entries modified one after the other belong to one command.
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
                    self.kinds.insert(entry, MatchLayers::of(ethernet, ip));
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

    /// Sorts the content of `scratch`: returns frames and packet-ins, and moves everything else to `out`.
    fn sort(&mut self, out: &mut DatapathOutput) -> LookupOutput {
        let mut outcome = LookupOutput::default();
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

    /// Releases the earliest item due by `until` into `out`; `until` is not after `now`. Returns the item's due time,
    /// or `None` if no item is due; then [`DelayedDatapath::due`] is the time of the next call.
    pub fn release(
        &mut self,
        now: Instant,
        until: Instant,
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) -> Option<Instant> {
        self.follow(datapath);
        let ReleasedItem { part, due, item } =
            self.stage.release_until(now, until, &mut |held| messages::work(datapath, held))?;
        match item {
            DelayedItem::Message(said) => self.release_message((now, due), part, said, datapath, pool, out),
            DelayedItem::Outcome(mut outcome) => {
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
