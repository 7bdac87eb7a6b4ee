//! What controllers say.
use super::{Done, Held, Timed};
use weir_datapath::{ChannelId, Datapath, Output, Subject};
use weir_openflow::model::bundle::BundleCommand;
use weir_openflow::model::error::FlowModFailed;
use weir_openflow::model::nicira::NxMessage;
use weir_openflow::{Body, Message};
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
    let Held::Message(channel, message) = held else { return Work::Nothing };
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
                self.stage.barrier(now, Held::Message(channel, message));
            }
            Kind::PacketOut(bytes) => match self.stage.packet_out(now, bytes, Held::Message(channel, message)) {
                Ok(Some(Held::Message(channel, message))) => self.carry_out(now, channel, message, datapath, pool, out),
                // There is no agent and it was carried out, or it waits, or found no room.
                _ => {}
            },
            Kind::Follows | Kind::AtOnce => return Some(message),
        }
        None
    }

    fn command(&mut self, now: Instant, channel: ChannelId, message: Message) {
        self.pending.entry(channel).or_default().commands += 1;
        self.stage.command(now, Held::Message(channel, message));
    }

    /// The time of a message has come.
    #[expect(clippy::too_many_arguments, reason = "what is released, and where to")]
    pub(super) fn release_message(
        &mut self,
        now: Instant,
        due: Instant,
        part: Part,
        (channel, message): (ChannelId, Message),
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut Output,
    ) -> Done {
        match part {
            Part::Command => {
                datapath.handle(now, channel, message, pool, &mut self.scratch);
                self.follow(datapath);
                let outcome = self.sort(out);
                // A packet that it released: the work of who carries out packet-outs.
                self.packet_out(due, outcome, pool, out);
            }
            Part::Refused => datapath.refuse_message(channel, &message, FlowModFailed::TableFull.into(), out),
            Part::Barrier => datapath.handle(now, channel, message, pool, out),
            Part::PacketIn => out.messages.push((channel, message)),
            Part::PacketOut => self.carry_out(due, channel, message, datapath, pool, out),
            // Messages do not take the data path.
            Part::Data | Part::Lost => {}
        }
        let Some(pending) = self.pending.get_mut(&channel) else { return Done::Other };
        match part {
            Part::Command | Part::Refused => pending.commands = pending.commands.saturating_sub(1),
            Part::Barrier => pending.barriers = pending.barriers.saturating_sub(1),
            _ => return Done::Other,
        }
        if pending.commands == 0 && pending.barriers == 0 {
            self.pending.remove(&channel);
        }
        Done::Of(channel)
    }

    /// Carries out a packet-out.
    fn carry_out(
        &mut self,
        at: Instant,
        channel: ChannelId,
        message: Message,
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut Output,
    ) {
        datapath.handle(at, channel, message, pool, &mut self.scratch);
        self.follow(datapath);
        let outcome = self.sort(out);
        self.came_back(at, outcome, pool, out);
    }
}
