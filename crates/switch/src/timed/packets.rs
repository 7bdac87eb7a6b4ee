//! Delays the outcomes of packets by the time of the data path.
use super::messages::packet_in_bytes;
use super::{Held, MAX_HELD_BYTES, MAX_MESSAGE_BYTES, Outcome, Said, Timed};
use weir_datapath::{ChannelId, Datapath, Output};
use weir_packet::PortNo;
use weir_packet::{Frame, FramePool, offload};
use weir_profile::MatchKind;
use weir_timing::{Part, Passing};
use weir_units::Instant;

impl Timed {
    /// Looks up a frame that arrived on `in_port` at `came`, and holds its outcome. A super-frame is split into the
    /// packets that it represents on the line.
    pub fn packet(
        &mut self,
        now: Instant,
        came: Instant,
        (in_port, frame): (PortNo, Frame),
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut Output,
    ) {
        if frame.offload.segmentation.is_none() {
            return self.one((now, came), (in_port, frame), datapath, pool, out);
        }
        let mut segments = std::mem::take(&mut self.segments);
        if !offload::finish(frame, pool, &mut segments) {
            self.lost.bad_offload += 1;
        }
        segments.drain(..).for_each(|frame| self.one((now, came), (in_port, frame), datapath, pool, out));
        self.segments = segments;
    }

    fn one(
        &mut self,
        (now, came): (Instant, Instant),
        (in_port, frame): (PortNo, Frame),
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut Output,
    ) {
        self.follow(datapath);
        let bytes = frame.bytes_len();
        self.met.clear();
        datapath.process_one(now, in_port, frame, pool, &mut self.scratch, &mut self.met);
        let passing = self.passing(bytes);
        let outcome = self.sort(out);
        self.pass(came, passing, outcome, pool);
    }

    /// Returns how the data path handles a packet, from its matched flow entries: in the slowest of their levels,
    /// with all the fields that they match. A packet without matched entries has passed through all levels.
    fn passing(&mut self, bytes: u32) -> Passing {
        let last = self.levels.len().saturating_sub(1);
        let Some(tables) = self.stage.tables() else { return Passing { level: last, kind: MatchKind::L2, bytes } };
        let (mut level, mut ethernet, mut ip) = (None, false, false);
        for entry in &self.met {
            level = level.max(tables.level_of(*entry));
            let kind = self.kinds.get(entry).copied();
            ethernet |= matches!(kind, Some(MatchKind::L2 | MatchKind::L2L3));
            ip |= matches!(kind, Some(MatchKind::L3 | MatchKind::L2L3));
            tables.matched(*entry, bytes);
        }
        Passing { level: level.unwrap_or(last), kind: MatchKind::of(ethernet, ip), bytes }
    }

    /// Holds a packet's outcome for the time of the data path.
    fn pass(&mut self, now: Instant, passing: Passing, outcome: Outcome, pool: &mut FramePool) {
        let bytes = outcome.bytes;
        if !self.has_place(&outcome) {
            return outcome.give_back(pool);
        }
        match self.stage.packet(now, passing, Held::Outcome(outcome)) {
            Ok(()) => self.held_bytes += bytes,
            Err(Held::Outcome(outcome)) => outcome.give_back(pool),
            Err(Held::Message(_)) => {}
        }
    }

    fn has_place(&mut self, outcome: &Outcome) -> bool {
        let has_place = self.held_bytes + outcome.bytes <= MAX_HELD_BYTES;
        self.lost.beyond += u64::from(!has_place);
        has_place
    }

    /// Continues a packet's outcome at its due time: drops it, carries it out, or lets it leave.
    pub(super) fn release_packet(
        &mut self,
        due: Instant,
        part: Part,
        outcome: Outcome,
        pool: &mut FramePool,
        out: &mut Output,
    ) {
        self.held_bytes = self.held_bytes.saturating_sub(outcome.bytes);
        match part {
            Part::Lost => outcome.give_back(pool),
            Part::PacketOut => self.came_back(due, outcome, pool, out),
            _ => self.leave(due, outcome, out),
        }
    }

    /// Outputs the frames, and passes the packet-ins to their agent.
    fn leave(&mut self, at: Instant, outcome: Outcome, out: &mut Output) {
        outcome.frames.into_iter().for_each(|(port, frame)| out.add_frame(port, frame));
        for (channel, message) in outcome.packet_ins {
            let bytes = packet_in_bytes(&message).unwrap_or(0);
            if self.message_bytes >= MAX_MESSAGE_BYTES {
                self.lost.beyond += 1;
                continue;
            }
            let said = Said { channel, message, bytes: bytes.into() };
            match self.stage.packet_in(at, bytes, Held::Message(said)) {
                Ok(Some(Held::Message(said))) => out.messages.push((said.channel, said.message)),
                Ok(None) => self.message_bytes += u64::from(bytes),
                // A packet-in without room is dropped and counted. The stage returns no packet outcome here.
                Err(_) | Ok(Some(Held::Outcome(_))) => {}
            }
        }
    }

    /// Passes a packet released by a flow-mod of channel `by` through the agent for packet-outs.
    pub(super) fn packet_out(
        &mut self,
        at: Instant,
        (by, mut outcome): (ChannelId, Outcome),
        pool: &mut FramePool,
        out: &mut Output,
    ) {
        if outcome.is_empty() || !self.has_place(&outcome) {
            return outcome.give_back(pool);
        }
        let bytes = outcome.bytes;
        outcome.by = Some(by);
        match self.stage.packet_out(at, u32::try_from(bytes).unwrap_or(u32::MAX), Held::Outcome(outcome)) {
            Ok(Some(Held::Outcome(outcome))) => self.came_back(at, Outcome { by: None, ..outcome }, pool, out),
            Err(Held::Outcome(outcome)) => outcome.give_back(pool),
            Ok(None) => {
                self.held_bytes += bytes;
                self.pending.entry(by).or_default().packet_outs += 1;
            }
            Ok(Some(Held::Message(_))) | Err(Held::Message(_)) => {}
        }
    }

    /// Continues a packet from a controller: it leaves, or passes through the data path again if the profile says so.
    pub(super) fn came_back(&mut self, at: Instant, outcome: Outcome, pool: &mut FramePool, out: &mut Output) {
        if !self.stage.passes_again() {
            return self.leave(at, outcome, out);
        }
        if !outcome.is_empty() {
            let bytes = outcome.frames.first().map_or(0, |(_, frame)| frame.bytes_len());
            self.pass(at, Passing { level: 0, kind: MatchKind::L2, bytes }, outcome, pool);
        }
    }
}

impl Outcome {
    fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.packet_ins.is_empty()
    }

    fn give_back(self, pool: &mut FramePool) {
        self.frames.into_iter().for_each(|(_, frame)| pool.give(frame));
    }
}
