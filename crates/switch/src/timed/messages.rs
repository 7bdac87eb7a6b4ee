//! What controllers say.
use super::{Held, MAX_MESSAGE_BYTES, Pending, Said, Timed};
use weir_datapath::{ChannelId, Datapath, Output, Subject};
use weir_openflow::model::bundle::{BundleCommand, BundleControl, BundleFlags};
use weir_openflow::model::error::FlowModFailed;
use weir_openflow::model::nicira::NxMessage;
use weir_openflow::{Body, Message, Version, codec};
use weir_packet::FramePool;
use weir_timing::{Part, Work};
use weir_units::Instant;

/// Messages of a bundle that are looked at to know what it takes; those behind them take as long in the mean. All are looked at in one go, while packets
/// wait: some milliseconds.
const MAX_LOOKED_AT: usize = 1024;

/// What a message is to the stage.
enum Kind {
    Command,
    /// A command that takes as long as the bundle's messages.
    Commit,
    Barrier,
    PacketOut(u32),
    /// It takes no time itself, but is not to overtake commands.
    Follows,
    AtOnce,
}

fn kind(body: &Body) -> Kind {
    match body {
        Body::FlowMod(_) => Kind::Command,
        Body::Nx(message) if matches!(**message, NxMessage::FlowMod(_)) => Kind::Command,
        Body::BarrierRequest => Kind::Barrier,
        Body::PacketOut(packet) => Kind::PacketOut(u32::try_from(packet.data.0.len()).unwrap_or(u32::MAX)),
        Body::GroupMod(_) | Body::MeterMod(_) | Body::TableMod(_) => Kind::Follows,
        Body::BundleControl(control) if control.command == BundleCommand::CommitRequest => {
            // One with a time of its own is carried out when it says.
            if control.flags.contains(BundleFlags::TIME) { Kind::Follows } else { Kind::Commit }
        }
        _ => Kind::AtOnce,
    }
}

/// The length of the packet in a packet-in; none: it is another message.
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

/// What a command is about, as the tables are.
pub(super) fn work(datapath: &mut Datapath, held: &Held) -> Work {
    let Held::Message(Said { channel, message, .. }) = held else { return Work::Nothing };
    match &message.body {
        Body::BundleControl(commit) => bundle_work(datapath, *channel, commit),
        body => of_subject(datapath.subject(*channel, body)),
    }
}

fn bundle_work(datapath: &mut Datapath, channel: ChannelId, commit: &BundleControl) -> Work {
    let Some((subjects, more)) = datapath.bundle_subjects(channel, commit, MAX_LOOKED_AT) else { return Work::Nothing };
    Work::Bundle { members: subjects.into_iter().map(of_subject).collect(), more }
}

fn of_subject(subject: Subject) -> Work {
    match subject {
        Subject::Add { priority } => Work::Add { priority },
        Subject::Modify(entries) => Work::Modify { entries },
        Subject::Delete(entries) => Work::Delete { entries },
        Subject::Nothing => Work::Nothing,
    }
}

impl Timed {
    /// A channel says something, which came at `came`, or now. It is given back if it takes no time and nothing before it is waited for: it is to be carried out now.
    pub fn message(
        &mut self,
        (now, came): (Instant, Instant),
        (channel, message): (ChannelId, Message),
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut Output,
    ) -> Option<Message> {
        // Of what channels said, nothing counts from before what was taken up before it.
        let came = self.said_at.max(came);
        self.said_at = came;
        match kind(&message.body) {
            Kind::Command => self.command(came, channel, message),
            Kind::Commit => {
                if let Body::BundleControl(commit) = &message.body {
                    datapath.hold_bundle(channel, commit);
                }
                self.pending.entry(channel).or_default().commits += 1;
                self.command(came, channel, message);
            }
            Kind::Follows if !self.stage.is_idle() => self.command(came, channel, message),
            Kind::Barrier => {
                self.pending.entry(channel).or_default().barriers += 1;
                self.stage.barrier(came, Held::Message(Said { channel, message, bytes: 0 }));
            }
            Kind::PacketOut(bytes) => {
                if self.message_bytes >= MAX_MESSAGE_BYTES {
                    self.lost.beyond += 1;
                    return None;
                }
                let said = Said { channel, message, bytes: bytes.into() };
                match self.stage.packet_out(came, bytes, Held::Message(said)) {
                    Ok(Some(Held::Message(said))) => self.carry_out((now, came), said, datapath, pool, out),
                    Ok(None) => {
                        self.message_bytes += u64::from(bytes);
                        self.pending.entry(channel).or_default().packet_outs += 1;
                    }
                    // One without room is lost, and counted; packets' outcomes are not what came.
                    Err(_) | Ok(Some(Held::Outcome(_))) => {}
                }
            }
            Kind::Follows | Kind::AtOnce => return Some(message),
        }
        None
    }

    fn command(&mut self, now: Instant, channel: ChannelId, message: Message) {
        self.pending.entry(channel).or_default().commands += 1;
        // What decoded also encodes; how long it is counts only for what is held at most.
        self.encoded.clear();
        let _ = codec::encode(&message, Version::V13, &mut self.encoded);
        let bytes = self.encoded.len() as u64;
        self.message_bytes += bytes;
        self.stage.command(now, Held::Message(Said { channel, message, bytes }));
    }

    /// The time of a message has come.
    pub(super) fn release_message(
        &mut self,
        (now, due): (Instant, Instant),
        part: Part,
        said: Said,
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut Output,
    ) {
        self.message_bytes = self.message_bytes.saturating_sub(said.bytes);
        let channel = said.channel;
        let is_commit = matches!(said.message.body, Body::BundleControl(_));
        match part {
            Part::Command => {
                datapath.handle(now, channel, said.message, pool, &mut self.scratch);
                self.follow(datapath);
                let outcome = self.sort(out);
                // A packet that it released: the work of who carries out packet-outs.
                self.packet_out(due, (channel, outcome), pool, out);
                self.settle_command(due, channel, is_commit);
            }
            Part::Refused => {
                datapath.refuse_message(channel, &said.message, FlowModFailed::TableFull.into(), out);
                self.settle_command(due, channel, is_commit);
            }
            Part::RefusedBundle(member) => {
                datapath.refuse_bundle(channel, &said.message, member, FlowModFailed::TableFull.into(), out);
                self.settle_command(due, channel, is_commit);
            }
            // Its channel's packet-outs are still to be carried out: all came before it, since the channel waits for its answer.
            Part::Barrier if self.waits && self.carries_out(channel) => self.behind.push(said),
            Part::Barrier => self.answer((now, due), said, datapath, pool, out),
            Part::PacketIn => out.messages.push((channel, said.message)),
            Part::PacketOut => {
                self.carry_out((now, due), said, datapath, pool, out);
                self.settle(channel, |pending| &mut pending.packet_outs);
                self.answer_behind((now, due), channel, datapath, pool, out);
            }
            // Messages do not take the data path.
            Part::Data | Part::Lost => {}
        }
    }

    /// Whether any packet-out of a channel is yet to be carried out.
    fn carries_out(&self, channel: ChannelId) -> bool {
        self.pending.get(&channel).is_some_and(|pending| pending.packet_outs > 0)
    }

    /// Answers a barrier.
    fn answer(
        &mut self,
        (now, due): (Instant, Instant),
        said: Said,
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut Output,
    ) {
        let channel = said.channel;
        datapath.handle(now, channel, said.message, pool, out);
        self.has_answered(due);
        self.settle(channel, |pending| &mut pending.barriers);
    }

    /// Answers the barriers that only waited for a channel's packet-outs, if all are carried out.
    pub(super) fn answer_behind(
        &mut self,
        times: (Instant, Instant),
        channel: ChannelId,
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut Output,
    ) {
        if self.behind.is_empty() || self.carries_out(channel) {
            return;
        }
        let (answered, behind) = std::mem::take(&mut self.behind).into_iter().partition(|said| said.channel == channel);
        self.behind = behind;
        let answered: Vec<Said> = answered;
        answered.into_iter().for_each(|said| self.answer(times, said, datapath, pool, out));
    }

    /// Who waited for an answer says nothing that counts from before it.
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

    /// Something that a channel asked for is done.
    pub(super) fn settle(&mut self, channel: ChannelId, count: impl FnOnce(&mut Pending) -> &mut u64) {
        let Some(pending) = self.pending.get_mut(&channel) else { return };
        let left = count(pending);
        *left = left.saturating_sub(1);
        if *pending == Pending::default() {
            self.pending.remove(&channel);
        }
    }

    /// Carries out a packet-out.
    fn carry_out(
        &mut self,
        (now, at): (Instant, Instant),
        said: Said,
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut Output,
    ) {
        datapath.handle(now, said.channel, said.message, pool, &mut self.scratch);
        self.follow(datapath);
        let outcome = self.sort(out);
        self.came_back(at, outcome, pool, out);
    }
}
