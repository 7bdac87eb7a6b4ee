//! What controllers say.
use super::{Held, MAX_MESSAGE_BYTES, Pending, Said, Timed};
use weir_datapath::{ChannelId, Datapath, Output, Subject};
use weir_openflow::model::bundle::BundleCommand;
use weir_openflow::model::error::FlowModFailed;
use weir_openflow::model::nicira::NxMessage;
use weir_openflow::{Body, Message, Version, codec};
use weir_packet::FramePool;
use weir_timing::{Part, Work};
use weir_units::Instant;

/// What a message is to the stage.
enum Kind {
    Command,
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
        Body::BundleControl(control) if control.command == BundleCommand::CommitRequest => Kind::Follows,
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
    match datapath.subject(*channel, &message.body) {
        Subject::Add { priority } => Work::Add { priority },
        Subject::Modify(entries) => Work::Modify { entries },
        Subject::Delete(entries) => Work::Delete { entries },
        Subject::Nothing => Work::Nothing,
    }
}

impl Timed {
    /// A channel says something. It is given back if it takes no time and nothing before it is waited for: it is to be carried out now.
    pub fn message(
        &mut self,
        now: Instant,
        (channel, message): (ChannelId, Message),
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut Output,
    ) -> Option<Message> {
        match kind(&message.body) {
            Kind::Command => self.command(now, channel, message),
            Kind::Follows if !self.stage.is_idle() => self.command(now, channel, message),
            Kind::Barrier => {
                self.pending.entry(channel).or_default().barriers += 1;
                self.stage.barrier(now, Held::Message(Said { channel, message, bytes: 0 }));
            }
            Kind::PacketOut(bytes) => {
                if self.message_bytes >= MAX_MESSAGE_BYTES {
                    self.lost.beyond += 1;
                    return None;
                }
                let said = Said { channel, message, bytes: bytes.into() };
                match self.stage.packet_out(now, bytes, Held::Message(said)) {
                    Ok(Some(Held::Message(said))) => self.carry_out(now, said, datapath, pool, out),
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
        now: Instant,
        part: Part,
        said: Said,
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut Output,
    ) {
        self.message_bytes = self.message_bytes.saturating_sub(said.bytes);
        let channel = said.channel;
        match part {
            Part::Command => {
                datapath.handle(now, channel, said.message, pool, &mut self.scratch);
                self.follow(datapath);
                let outcome = self.sort(out);
                // A packet that it released: the work of who carries out packet-outs.
                self.packet_out(now, outcome, pool, out);
                self.settle(channel, |pending| &mut pending.commands);
            }
            Part::Refused => {
                datapath.refuse_message(channel, &said.message, FlowModFailed::TableFull.into(), out);
                self.settle(channel, |pending| &mut pending.commands);
            }
            Part::Barrier => {
                datapath.handle(now, channel, said.message, pool, out);
                self.settle(channel, |pending| &mut pending.barriers);
            }
            Part::PacketIn => out.messages.push((channel, said.message)),
            Part::PacketOut => {
                self.carry_out(now, said, datapath, pool, out);
                self.settle(channel, |pending| &mut pending.packet_outs);
            }
            // Messages do not take the data path.
            Part::Data | Part::Lost => {}
        }
    }

    /// Something that a channel asked for is done.
    fn settle(&mut self, channel: ChannelId, count: impl FnOnce(&mut Pending) -> &mut u64) {
        let Some(pending) = self.pending.get_mut(&channel) else { return };
        let left = count(pending);
        *left = left.saturating_sub(1);
        if *pending == Pending::default() {
            self.pending.remove(&channel);
        }
    }

    /// Carries out a packet-out.
    fn carry_out(&mut self, at: Instant, said: Said, datapath: &mut Datapath, pool: &mut FramePool, out: &mut Output) {
        datapath.handle(at, said.channel, said.message, pool, &mut self.scratch);
        self.follow(datapath);
        let outcome = self.sort(out);
        self.came_back(at, outcome, pool, out);
    }
}
