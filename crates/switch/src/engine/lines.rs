//! What the engine knows of each channel, and replies that are too long for one round.
//!
//! Such a reply is given in parts, round by round, as fast as the controller reads. The channel's later messages wait behind
//! it, so that replies keep their order; nothing more is read from the channel meanwhile, so no more waits than was on its way.
//!
//! A channel whose message changes many entries waits in the same way when that is done: the messages of other
//! channels, and one of each other that waits, come before its next one. So a message waits for one such change of
//! each other channel at most, however many they have sent.
use super::Engine;
use super::inbox::FromChannel;
#[cfg(any(test, feature = "schedules"))]
use super::inbox::{BATCH, MAX_BATCHES};
use crate::control::backlog::{Outbox, PART_BYTES, Part};
use crate::timed::Timed;
use foldhash::HashMap;
use std::collections::VecDeque;
use weir_datapath::{ChannelId, Datapath, LongReply};
use weir_openflow::Message;
use weir_units::{Clock, Instant};

/// Flow entries looked at in one step of a reply: some ten microseconds.
pub(super) const PART_ENTRIES: usize = 32;

/// Messages that wait behind a barrier from which on nothing more is read from their channel.
const MAX_BEHIND_BARRIER: usize = 1024;

/// All channels that are up.
#[derive(Default)]
pub(super) struct Lines {
    by_channel: HashMap<ChannelId, Line>,
    /// Those that hold messages back, each once, in turn.
    held: VecDeque<ChannelId>,
}

/// One channel.
struct Line {
    outbox: Outbox,
    is_held: bool,
    has_ended: bool,
    reply: Option<LongReply>,
    /// What was made of it and is not sent yet.
    part: Part,
    waiting: VecDeque<FromChannel>,
}

/// How far a channel that holds messages back got.
enum Step {
    Moved,
    /// The controller is to read first.
    Stuck,
    Done,
}

impl Lines {
    pub(super) fn add(&mut self, channel: ChannelId, outbox: Outbox) {
        let line = Line {
            outbox,
            is_held: false,
            has_ended: false,
            reply: None,
            part: Part::default(),
            waiting: VecDeque::new(),
        };
        self.by_channel.insert(channel, line);
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, channel: ChannelId) -> bool {
        self.by_channel.remove(&channel).is_some()
    }

    /// The channels that are up.
    pub(super) fn channels(&self) -> impl Iterator<Item = ChannelId> {
        self.by_channel.keys().copied()
    }

    /// What channels say of how long it took until messages were written: when these were given to them, and when they were written.
    pub(super) fn written(&self) -> impl Iterator<Item = (Instant, Instant)> {
        self.by_channel.values().filter_map(|line| line.outbox.written())
    }

    /// Checks that no more messages wait in either direction than may.
    ///
    /// # Errors
    /// What waits beyond its bound.
    #[cfg(any(test, feature = "schedules"))]
    pub(super) fn check_bounds(&self) -> Result<(), String> {
        // What was on its way when the channel was told to pause comes, too: a piece that was read, and all batches.
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

    /// Keeps messages for later if others of their channel wait; otherwise gives them back.
    pub(super) fn hold(&mut self, message: FromChannel) -> Option<FromChannel> {
        let (FromChannel::Up(channel, ..)
        | FromChannel::AuxiliaryUp(channel, ..)
        | FromChannel::Messages(channel, ..)
        | FromChannel::Down(channel)) = message;
        let Some(line) = self.by_channel.get_mut(&channel).filter(|line| line.is_held) else { return Some(message) };
        if matches!(message, FromChannel::Down(_)) {
            // Nobody reads the rest of the reply; what was sent before the end still counts.
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

    /// Whether messages of a channel wait.
    pub(super) fn is_held(&self, channel: ChannelId) -> bool {
        self.by_channel.get(&channel).is_some_and(|line| line.is_held)
    }

    /// Begins a long reply.
    pub(super) fn begin(&mut self, channel: ChannelId, reply: LongReply) {
        let Some(line) = self.by_channel.get_mut(&channel).filter(|line| !line.has_ended) else { return };
        line.reply = Some(reply);
        if !line.is_held {
            line.is_held = true;
            line.outbox.pause();
            self.held.push_back(channel);
        }
    }

    /// Has a channel's messages wait: for what its timing holds back, or until other channels' messages have had their
    /// turn. It is still read, so that echo requests are answered.
    pub(super) fn wait(&mut self, channel: ChannelId) {
        let Some(line) = self.by_channel.get_mut(&channel) else { return };
        if !std::mem::replace(&mut line.is_held, true) {
            self.held.push_back(channel);
        }
    }

    /// Whether messages of any channel wait.
    pub(super) fn holds(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether a channel that holds messages back could go on.
    pub(super) fn can_move(&self, timed: Option<&Timed>) -> bool {
        let held = self.held.iter().filter_map(|channel| Some((*channel, self.by_channel.get(channel)?)));
        held.into_iter().any(|(channel, line)| match line.reply {
            Some(_) => line.outbox.has_room(),
            None => !timed.is_some_and(|timed| line.waits_for(channel, timed)),
        })
    }
}

impl Line {
    /// Whether its next message waits for what its switch's timing holds back.
    fn waits_for(&self, channel: ChannelId, timed: &Timed) -> bool {
        // What a channel said before it ended counts.
        let ends = matches!(self.waiting.front(), Some(FromChannel::Down(_)));
        timed.awaits_answer(channel) || !timed.has_room() || ends && timed.owes(channel)
    }
}

impl Line {
    /// Makes some more of its reply; `datapath` knows how. It is encoded here, since what makes a message's hundreds of small pieces of memory
    /// is to give them back, too, and sent when it is a piece of some size: handing over may mean waking the channel's thread.
    fn reply_on(&mut self, now: Instant, datapath: &Datapath) {
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

impl Engine {
    /// Goes on with long replies and with what waits behind them, one step at least and none that would end after `until` if it took as long
    /// as the one before. Whether there was anything to do.
    pub(super) fn go_on(&mut self, now: Instant, until: Instant) -> bool {
        let (mut worked, mut stuck, mut began) = (false, 0, self.clock.now());
        while stuck < self.logical.lines.held.len()
            && let Some(channel) = self.logical.lines.held.pop_front()
        {
            match self.step(now, channel) {
                Step::Moved => (worked, stuck) = (true, 0),
                Step::Stuck => stuck += 1,
                Step::Done => continue,
            }
            self.logical.lines.held.push_back(channel);
            let ended = self.clock.now();
            if self.logical.is_busy || ended + ended.since(began) >= until {
                break;
            }
            began = ended;
        }
        worked
    }

    fn step(&mut self, now: Instant, channel: ChannelId) -> Step {
        let timed = self.logical.timed.as_deref();
        let Some(line) = self.logical.lines.by_channel.get_mut(&channel) else { return Step::Done };
        if line.reply.is_some() {
            if !line.outbox.has_room() {
                return Step::Stuck;
            }
            line.reply_on(now, self.logical.datapath.get());
            return Step::Moved;
        }
        if timed.is_some_and(|timed| line.waits_for(channel, timed)) {
            return Step::Stuck;
        }
        let Some(message) = line.waiting.pop_front() else {
            line.is_held = false;
            line.outbox.resume();
            return Step::Done;
        };
        self.carry_out(now, message);
        Step::Moved
    }

    /// Begins the reply to a message if it may be long; otherwise gives the message back.
    pub(super) fn begin_long_reply(&mut self, channel: ChannelId, message: Message) -> Option<Message> {
        match self.logical.datapath.get().long_reply(channel, &message) {
            Some(reply) => self.logical.lines.begin(channel, reply),
            None => return Some(message),
        }
        None
    }
}

#[cfg(test)]
mod tests;
