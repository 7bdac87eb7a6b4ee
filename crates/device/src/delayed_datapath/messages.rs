//! Delays messages from controllers: commands, barriers and packet-outs.
use super::{ChannelMessage, DelayedDatapath, DelayedItem, MAX_MESSAGE_BYTES, PendingMessageCounts};
use crate::{ReleaseKind, TableEffect};
use weir_datapath::{ChannelId, Datapath, DatapathOutput, FlowModEffect};
use weir_openflow::model::bundle::{BundleCommand, BundleControl, BundleFlags};
use weir_openflow::model::error::FlowModFailed;
use weir_openflow::model::nicira::NxMessage;
use weir_openflow::{Body, Message, Version, codec};
use weir_packet::FramePool;
use weir_units::Instant;

/// Maximum number of a bundle's messages examined for its duration. The rest count with the mean duration. The
/// messages are examined in one step of some milliseconds, during which packets wait.
const MAX_LOOKED_AT: usize = 1024;

/// Class of a message in the stage.
enum MessageTimingClass {
    Command,
    /// A command with the duration of the bundle's messages.
    Commit,
    Barrier,
    PacketOut(u32),
    /// A message without duration that must not overtake commands.
    Follows,
    AtOnce,
}

fn kind(body: &Body) -> MessageTimingClass {
    match body {
        Body::FlowMod(_) => MessageTimingClass::Command,
        Body::Nx(message) if matches!(**message, NxMessage::FlowMod(_)) => MessageTimingClass::Command,
        Body::BarrierRequest => MessageTimingClass::Barrier,
        Body::PacketOut(packet) => {
            MessageTimingClass::PacketOut(u32::try_from(packet.data.0.len()).unwrap_or(u32::MAX))
        }
        Body::GroupMod(_) | Body::MeterMod(_) | Body::TableMod(_) => MessageTimingClass::Follows,
        Body::BundleControl(control) if control.command == BundleCommand::CommitRequest => {
            // A bundle with a scheduled time is carried out at that time.
            if control.flags.contains(BundleFlags::TIME) {
                MessageTimingClass::Follows
            } else {
                MessageTimingClass::Commit
            }
        }
        _ => MessageTimingClass::AtOnce,
    }
}

/// Returns the length in bytes of the packet in a packet-in, or `None` for another message.
pub(super) fn packet_in_bytes(message: &Message) -> Option<u32> {
    let packet = match &message.body {
        Body::PacketIn(packet) => packet,
        Body::Nx(message) => match &**message {
            NxMessage::PacketIn(packet) => packet,
            NxMessage::PacketIn2(packet) => &packet.packet,
            _ => return None,
        },
        _ => return None,
    };
    Some(packet.total_len.into())
}

/// Returns the work that a held command causes in the current tables.
pub(super) fn work(datapath: &mut Datapath, held: &DelayedItem) -> TableEffect {
    let DelayedItem::Message(ChannelMessage { channel, message, .. }) = held else { return TableEffect::Nothing };
    match &message.body {
        Body::BundleControl(commit) => bundle_work(datapath, *channel, commit),
        body => of_subject(datapath.subject(*channel, body)),
    }
}

fn bundle_work(datapath: &mut Datapath, channel: ChannelId, commit: &BundleControl) -> TableEffect {
    let Some((subjects, more)) = datapath.bundle_subjects(channel, commit, MAX_LOOKED_AT) else {
        return TableEffect::Nothing;
    };
    TableEffect::Bundle { members: subjects.into_iter().map(of_subject).collect(), more }
}

fn of_subject(subject: FlowModEffect) -> TableEffect {
    match subject {
        FlowModEffect::Add { priority } => TableEffect::Add { priority },
        FlowModEffect::Modify(entries) => TableEffect::Modify { entries },
        FlowModEffect::Delete(entries) => TableEffect::Delete { entries },
        FlowModEffect::Nothing => TableEffect::Nothing,
    }
}

impl DelayedDatapath {
    /// Takes a message that arrived on `channel` at `came`. Returns the message if it takes no time and waits for no
    /// earlier one; the caller must then carry it out now. Returns `None` if the message is held, carried out or
    /// dropped.
    pub fn message(
        &mut self,
        (now, came): (Instant, Instant),
        (channel, message): (ChannelId, Message),
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) -> Option<Message> {
        // A message does not start before an earlier one did.
        let came = self.said_at.max(came);
        self.said_at = came;
        match kind(&message.body) {
            MessageTimingClass::Command => self.command(came, channel, message),
            MessageTimingClass::Commit => {
                if let Body::BundleControl(commit) = &message.body {
                    datapath.hold_bundle(channel, commit);
                }
                self.pending.entry(channel).or_default().commits += 1;
                self.command(came, channel, message);
            }
            MessageTimingClass::Follows if !self.stage.is_idle() => self.command(came, channel, message),
            MessageTimingClass::Barrier => {
                self.pending.entry(channel).or_default().barriers += 1;
                self.stage.barrier(came, DelayedItem::Message(ChannelMessage { channel, message, bytes: 0 }));
            }
            MessageTimingClass::PacketOut(bytes) => {
                if self.message_bytes >= MAX_MESSAGE_BYTES {
                    self.lost.beyond += 1;
                    return None;
                }
                let said = ChannelMessage { channel, message, bytes: bytes.into() };
                match self.stage.packet_out(came, bytes, DelayedItem::Message(said)) {
                    Ok(Some(DelayedItem::Message(said))) => self.carry_out((now, came), said, datapath, pool, out),
                    Ok(None) => {
                        self.message_bytes += u64::from(bytes);
                        self.pending.entry(channel).or_default().packet_outs += 1;
                    }
                    // A packet-out without room is dropped and counted. The stage returns no packet outcome here.
                    Err(_) | Ok(Some(DelayedItem::Outcome(_))) => {}
                }
            }
            MessageTimingClass::Follows | MessageTimingClass::AtOnce => return Some(message),
        }
        None
    }

    fn command(&mut self, now: Instant, channel: ChannelId, message: Message) {
        self.pending.entry(channel).or_default().commands += 1;
        // A decoded message can be encoded again. The length only counts towards the limit on held bytes.
        self.encoded.clear();
        let _ = codec::encode(&message, Version::V13, &mut self.encoded);
        let bytes = self.encoded.len() as u64;
        self.message_bytes += bytes;
        self.stage.command(now, DelayedItem::Message(ChannelMessage { channel, message, bytes }));
    }

    /// Carries out, refuses or answers a message at its due time.
    pub(super) fn release_message(
        &mut self,
        (now, due): (Instant, Instant),
        part: ReleaseKind,
        said: ChannelMessage,
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        self.message_bytes = self.message_bytes.saturating_sub(said.bytes);
        let channel = said.channel;
        let is_commit = matches!(said.message.body, Body::BundleControl(_));
        match part {
            ReleaseKind::Command => {
                datapath.handle(now, channel, said.message, pool, &mut self.scratch);
                self.follow(datapath);
                let outcome = self.sort(out);
                // A packet released by a flow-mod passes through the agent for packet-outs.
                self.packet_out(due, (channel, outcome), pool, out);
                self.settle_command(due, channel, is_commit);
            }
            ReleaseKind::Refused => {
                datapath.refuse_message(channel, &said.message, FlowModFailed::TableFull.into(), out);
                self.settle_command(due, channel, is_commit);
            }
            ReleaseKind::RefusedBundle(member) => {
                datapath.refuse_bundle(channel, &said.message, member, FlowModFailed::TableFull.into(), out);
                self.settle_command(due, channel, is_commit);
            }
            // Packet-outs of the channel are not carried out yet. All of them precede the barrier, because the
            // channel waits for its answer.
            ReleaseKind::Barrier if self.waits && self.carries_out(channel) => self.behind.push(said),
            ReleaseKind::Barrier => self.answer((now, due), said, datapath, pool, out),
            ReleaseKind::PacketIn => out.messages.push((channel, said.message)),
            ReleaseKind::PacketOut => {
                self.carry_out((now, due), said, datapath, pool, out);
                self.settle(channel, |pending| &mut pending.packet_outs);
                self.answer_behind((now, due), channel, datapath, pool, out);
            }
            // Messages do not pass through the data path.
            ReleaseKind::Data | ReleaseKind::Lost => {}
        }
    }

    /// Returns true if a packet-out of `channel` is not carried out yet.
    fn carries_out(&self, channel: ChannelId) -> bool {
        self.pending.get(&channel).is_some_and(|pending| pending.packet_outs > 0)
    }

    /// Answers a barrier.
    fn answer(
        &mut self,
        (now, due): (Instant, Instant),
        said: ChannelMessage,
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        let channel = said.channel;
        datapath.handle(now, channel, said.message, pool, out);
        self.has_answered(due);
        self.settle(channel, |pending| &mut pending.barriers);
    }

    /// Answers the barriers of `channel` that waited only for packet-outs, once all are carried out.
    pub(super) fn answer_behind(
        &mut self,
        times: (Instant, Instant),
        channel: ChannelId,
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        if self.behind.is_empty() || self.carries_out(channel) {
            return;
        }
        let (answered, behind) = std::mem::take(&mut self.behind).into_iter().partition(|said| said.channel == channel);
        self.behind = behind;
        let answered: Vec<ChannelMessage> = answered;
        answered.into_iter().for_each(|said| self.answer(times, said, datapath, pool, out));
    }

    /// Records that an answer was due at `due`. Messages that arrive later then count as arrived at `due` at the
    /// earliest.
    fn has_answered(&mut self, due: Instant) {
        self.said_at = self.said_at.max(due);
    }

    fn settle_command(&mut self, due: Instant, channel: ChannelId, is_commit: bool) {
        self.settle(channel, |pending| &mut pending.commands);
        if is_commit {
            self.has_answered(due);
            self.settle(channel, |pending| &mut pending.commits);
        }
    }

    /// Counts one pending message of `channel` as done; `count` selects the counter.
    pub(super) fn settle(&mut self, channel: ChannelId, count: impl FnOnce(&mut PendingMessageCounts) -> &mut u64) {
        let Some(pending) = self.pending.get_mut(&channel) else { return };
        let left = count(pending);
        *left = left.saturating_sub(1);
        if *pending == PendingMessageCounts::default() {
            self.pending.remove(&channel);
        }
    }

    /// Carries out a packet-out.
    fn carry_out(
        &mut self,
        (now, at): (Instant, Instant),
        said: ChannelMessage,
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        datapath.handle(now, said.channel, said.message, pool, &mut self.scratch);
        self.follow(datapath);
        let outcome = self.sort(out);
        self.came_back(at, outcome, pool, out);
    }
}
