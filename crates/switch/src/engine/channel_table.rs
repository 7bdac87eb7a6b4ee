//! Keeps the engine's state of each channel, and sends replies that are too long for one round.
//!
//! A long reply is sent in parts, round by round, as fast as the controller reads. The channel's later messages wait
//! behind it, so that replies keep their order. The channel is not read meanwhile, so only messages already under way
//! can wait.
//!
//! A channel whose message changed many flow entries also waits afterwards: messages of other channels, and one
//! message of each other waiting channel, come before its next one. A message therefore waits for at most one such
//! change of each other channel, however many they have sent.
use super::inbox::FromChannel;
#[cfg(any(test, feature = "schedules"))]
use super::inbox::{BATCH, MAX_BATCHES};
use super::served::ServedSwitch;
use crate::control::backlog::{Outbox, PART_BYTES, ReplyPart};
use foldhash::HashMap;
use std::collections::VecDeque;
use weir_datapath::{ChannelId, Datapath, LongReply};
use weir_device::DelayedDatapath;
use weir_units::Instant;

/// Flow entries visited in one step of a reply; a step takes some ten microseconds.
pub(super) const PART_ENTRIES: usize = 32;

/// Number of messages waiting behind a barrier at which their channel is no longer read.
const MAX_BEHIND_BARRIER: usize = 1024;

/// State of all channels that are up.
#[derive(Default)]
pub(super) struct ChannelTable {
    by_channel: HashMap<ChannelId, ChannelEntry>,
    /// Channels with waiting messages, each once, in the order of their turns.
    held: VecDeque<ChannelId>,
}

/// State of one channel.
struct ChannelEntry {
    outbox: Outbox,
    is_held: bool,
    has_ended: bool,
    reply: Option<LongReply>,
    /// Encoded part of `reply` that is not sent yet.
    part: ReplyPart,
    waiting: VecDeque<FromChannel>,
}

/// Outcome of one step of a channel with waiting messages.
enum ChannelStep {
    Moved,
    /// The channel cannot continue yet, for example because the controller must read first.
    Stuck,
    Done,
}

impl ChannelTable {
    pub(super) fn add(&mut self, channel: ChannelId, outbox: Outbox) {
        let line = ChannelEntry {
            outbox,
            is_held: false,
            has_ended: false,
            reply: None,
            part: ReplyPart::default(),
            waiting: VecDeque::new(),
        };
        self.by_channel.insert(channel, line);
    }

    /// Removes a channel. Returns true if it was present.
    pub(super) fn remove(&mut self, channel: ChannelId) -> bool {
        self.by_channel.remove(&channel).is_some()
    }

    /// Returns the channels that are up.
    pub(super) fn channels(&self) -> impl Iterator<Item = ChannelId> {
        self.by_channel.keys().copied()
    }

    /// Returns, for channels that have measured it, the times at which a message was handed over and at which it was
    /// written.
    pub(super) fn written(&self) -> impl Iterator<Item = (Instant, Instant)> {
        self.by_channel.values().filter_map(|line| line.outbox.written())
    }

    /// Checks that the numbers of waiting messages are within their bounds, in both directions.
    ///
    /// # Errors
    /// Describes the bound that is exceeded.
    #[cfg(any(test, feature = "schedules"))]
    pub(super) fn check_bounds(&self) -> Result<(), String> {
        // Messages under way when the channel was told to pause still arrive: one block read from the stream, and all
        // batches.
        const ON_THEIR_WAY: usize = 64 * 1024 / 8 + BATCH * MAX_BATCHES;
        for line in self.by_channel.values() {
            line.outbox.check_bounds()?;
            if line.waiting.len() > MAX_BEHIND_BARRIER + ON_THEIR_WAY {
                return Err(format!("{} messages of a channel wait in the engine", line.waiting.len()));
            }
        }
        Ok(())
    }

    pub(super) fn outbox(&self, channel: ChannelId) -> Option<&Outbox> {
        self.by_channel.get(&channel).map(|line| &line.outbox)
    }

    /// Keeps `message` for later if messages of its channel wait; otherwise returns it.
    pub(super) fn hold(&mut self, message: FromChannel) -> Option<FromChannel> {
        let (FromChannel::Up(channel, ..)
        | FromChannel::AuxiliaryUp(channel, ..)
        | FromChannel::Messages(channel, ..)
        | FromChannel::Down(channel)) = message;
        let Some(line) = self.by_channel.get_mut(&channel).filter(|line| line.is_held) else { return Some(message) };
        if matches!(message, FromChannel::Down(_)) {
            // The rest of the reply has no reader. Messages sent before the end still take effect.
            line.has_ended = true;
            line.reply = None;
        }
        match message {
            FromChannel::Messages(_, came, batch) => {
                let one = |message| FromChannel::Messages(channel, came, vec![message]);
                line.waiting.extend(batch.into_iter().map(one));
                if line.waiting.len() >= MAX_BEHIND_BARRIER {
                    line.outbox.pause();
                }
            }
            other => line.waiting.push_back(other),
        }
        None
    }

    /// Returns true if messages of `channel` wait.
    pub(super) fn is_held(&self, channel: ChannelId) -> bool {
        self.by_channel.get(&channel).is_some_and(|line| line.is_held)
    }

    /// Begins a long reply on `channel`.
    pub(super) fn begin(&mut self, channel: ChannelId, reply: LongReply) {
        let Some(line) = self.by_channel.get_mut(&channel).filter(|line| !line.has_ended) else { return };
        line.reply = Some(reply);
        if !line.is_held {
            line.is_held = true;
            line.outbox.pause();
            self.held.push_back(channel);
        }
    }

    /// Makes the messages of `channel` wait: for messages delayed by its timing, or until other channels had their
    /// turn. The channel is still read, so that echo requests are answered.
    pub(super) fn wait(&mut self, channel: ChannelId) {
        let Some(line) = self.by_channel.get_mut(&channel) else { return };
        if !std::mem::replace(&mut line.is_held, true) {
            self.held.push_back(channel);
        }
    }

    /// Returns true if messages of any channel wait.
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Returns true if a channel with waiting messages can continue.
    pub(super) fn can_move(&self, timed: Option<&DelayedDatapath>) -> bool {
        let held = self.held.iter().filter_map(|channel| Some((*channel, self.by_channel.get(channel)?)));
        held.into_iter().any(|(channel, line)| match line.reply {
            Some(_) => line.outbox.has_room(),
            None => !timed.is_some_and(|timed| line.waits_for(channel, timed)),
        })
    }
}

impl ChannelEntry {
    /// Returns true if the channel's next message must wait for messages that the switch's timing delays.
    fn waits_for(&self, channel: ChannelId, timed: &DelayedDatapath) -> bool {
        // Messages sent before the channel ended still take effect.
        let ends = matches!(self.waiting.front(), Some(FromChannel::Down(_)));
        timed.awaits_answer(channel) || !timed.has_room() || ends && timed.owes(channel)
    }
}

impl ChannelEntry {
    /// Encodes the next part of the reply and sends it once it has some size, because handing over may wake the
    /// channel's thread. Encoding happens here, because the thread that allocates a message's hundreds of small
    /// blocks should also free them.
    fn encode_reply_part(&mut self, now: Instant, datapath: &Datapath) {
        let Some(reply) = &mut self.reply else { return };
        if self.part.bytes.capacity() == 0 {
            self.part = self.outbox.spare();
        }
        let made = datapath.encode_on(now, reply, PART_ENTRIES, &mut self.part.bytes);
        self.part.messages += made.messages;
        if !made.more {
            self.reply = None;
        }
        if !made.more || self.part.bytes.len() >= PART_BYTES {
            self.outbox.send_part(std::mem::take(&mut self.part), !made.more);
        }
    }
}

impl ServedSwitch<'_> {
    /// Continues long replies and the messages that wait behind them. Runs at least one step, and no step that would
    /// end after `until` if it took as long as the one before. Ends earlier if the engine must handle an event of a
    /// port first. Returns true if there was any work.
    pub(super) fn advance_channels(&mut self, now: Instant, until: Instant) -> bool {
        let (mut worked, mut stuck, mut began) = (false, 0, self.io.now());
        while stuck < self.logical.channels.held.len()
            && let Some(channel) = self.logical.channels.held.pop_front()
        {
            match self.step(now, channel) {
                ChannelStep::Moved => (worked, stuck) = (true, 0),
                ChannelStep::Stuck => stuck += 1,
                ChannelStep::Done => continue,
            }
            self.logical.channels.held.push_back(channel);
            let ended = self.io.now();
            if self.logical.is_busy || self.io.has_events() || ended + ended.since(began) >= until {
                break;
            }
            began = ended;
        }
        worked
    }

    fn step(&mut self, now: Instant, channel: ChannelId) -> ChannelStep {
        let timed = self.logical.timed.as_deref();
        let Some(line) = self.logical.channels.by_channel.get_mut(&channel) else { return ChannelStep::Done };
        if line.reply.is_some() {
            if !line.outbox.has_room() {
                return ChannelStep::Stuck;
            }
            line.encode_reply_part(now, self.logical.datapath.get());
            return ChannelStep::Moved;
        }
        if timed.is_some_and(|timed| line.waits_for(channel, timed)) {
            return ChannelStep::Stuck;
        }
        let Some(message) = line.waiting.pop_front() else {
            line.is_held = false;
            line.outbox.resume();
            return ChannelStep::Done;
        };
        self.carry_out(now, message);
        ChannelStep::Moved
    }
}

#[cfg(test)]
mod tests;
