//! Delays the outcomes of packets by the time of the data path.
use super::messages::packet_in_bytes;
use super::{ChannelMessage, DelayedDatapath, DelayedItem, LookupOutput, MAX_HELD_BYTES, MAX_MESSAGE_BYTES};
use crate::{DataPathPacket, ReleaseKind, flow_of};
use weir_datapath::{ChannelId, Datapath, DatapathOutput};
use weir_packet::PortNo;
use weir_packet::frame::DEFAULT_QUEUE;
use weir_packet::{Frame, FramePool, offload};
use weir_profile::MatchLayers;
use weir_units::Instant;

impl DelayedDatapath {
    /// Looks up a frame that arrived on `in_port` at `came`, and holds its outcome. A super-frame is split into the
    /// packets that it represents on the line.
    pub fn packet(
        &mut self,
        now: Instant,
        came: Instant,
        (in_port, frame): (PortNo, Frame),
        datapath: &mut Datapath,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
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
        out: &mut DatapathOutput,
    ) {
        self.follow(datapath);
        let bytes = frame.bytes_len();
        self.met.clear();
        let flow = if self.stage.tells_flows() { flow_of(frame.bytes()) } else { 0 };
        datapath.process_one(now, in_port, frame, pool, &mut self.scratch, &mut self.met);
        if self.marks_inputs {
            let frames = self.scratch.frames.iter_mut().flat_map(|(_, frames)| frames);
            frames.filter(|frame| frame.queue == DEFAULT_QUEUE).for_each(|frame| frame.queue = in_port.0);
        }
        let passing = DataPathPacket { flow, ..self.passing(&self.met, bytes) };
        if let Some(tables) = self.stage.tables() {
            self.met.iter().for_each(|entry| tables.matched(*entry, bytes));
        }
        let outcome = self.sort(out);
        self.pass(came, passing, outcome, pool);
    }

    /// Returns how the data path handles a packet, from its matched flow entries: in the slowest of their levels,
    /// with all the fields that they match. A packet without matched entries has passed through all levels.
    pub(super) fn passing(&self, met: &[u64], bytes: u32) -> DataPathPacket {
        let last = self.levels.len().saturating_sub(1);
        let Some(tables) = self.stage.present_tables() else {
            return DataPathPacket { level: last, kind: MatchLayers::L2, bytes, flow: 0 };
        };
        let (mut level, mut ethernet, mut ip) = (None, false, false);
        for entry in met {
            level = level.max(tables.level_of(*entry));
            let kind = self.kinds.get(entry).copied();
            ethernet |= matches!(kind, Some(MatchLayers::L2 | MatchLayers::L2L3));
            ip |= matches!(kind, Some(MatchLayers::L3 | MatchLayers::L2L3));
        }
        DataPathPacket { level: level.unwrap_or(last), kind: MatchLayers::of(ethernet, ip), bytes, flow: 0 }
    }

    /// Holds a packet's outcome for the time of the data path.
    fn pass(&mut self, now: Instant, passing: DataPathPacket, outcome: LookupOutput, pool: &mut FramePool) {
        let bytes = outcome.bytes;
        if !self.has_place(&outcome) {
            return outcome.give_back(pool);
        }
        match self.stage.packet(now, passing, DelayedItem::Outcome(outcome)) {
            Ok(()) => self.held_bytes += bytes,
            Err(DelayedItem::Outcome(outcome)) => outcome.give_back(pool),
            Err(DelayedItem::Message(_)) => {}
        }
    }

    fn has_place(&mut self, outcome: &LookupOutput) -> bool {
        let has_place = self.held_bytes + outcome.bytes <= MAX_HELD_BYTES;
        self.lost.beyond += u64::from(!has_place);
        has_place
    }

    /// Continues a packet's outcome at its due time: drops it, carries it out, or lets it leave.
    pub(super) fn release_packet(
        &mut self,
        due: Instant,
        part: ReleaseKind,
        outcome: LookupOutput,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        self.held_bytes = self.held_bytes.saturating_sub(outcome.bytes);
        match part {
            ReleaseKind::Lost => outcome.give_back(pool),
            ReleaseKind::PacketOut => self.came_back(due, outcome, pool, out),
            _ => self.leave(due, outcome, out),
        }
    }

    /// Outputs the frames, and passes the packet-ins to their agent.
    fn leave(&mut self, at: Instant, outcome: LookupOutput, out: &mut DatapathOutput) {
        outcome.frames.into_iter().for_each(|(port, frame)| out.add_frame(port, frame));
        for (channel, message) in outcome.packet_ins {
            let bytes = packet_in_bytes(&message).unwrap_or(0);
            if self.message_bytes >= MAX_MESSAGE_BYTES {
                self.lost.beyond += 1;
                continue;
            }
            let said = ChannelMessage { channel, message, bytes: bytes.into() };
            match self.stage.packet_in(at, bytes, DelayedItem::Message(said)) {
                Ok(Some(DelayedItem::Message(said))) => out.messages.push((said.channel, said.message)),
                Ok(None) => self.message_bytes += u64::from(bytes),
                // A packet-in without room is dropped and counted. The stage returns no packet outcome here.
                Err(_) | Ok(Some(DelayedItem::Outcome(_))) => {}
            }
        }
    }

    /// Passes a packet released by a flow-mod of channel `by` through the agent for packet-outs.
    pub(super) fn packet_out(
        &mut self,
        at: Instant,
        (by, mut outcome): (ChannelId, LookupOutput),
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        if outcome.is_empty() || !self.has_place(&outcome) {
            return outcome.give_back(pool);
        }
        let bytes = outcome.bytes;
        outcome.by = Some(by);
        match self.stage.packet_out(at, u32::try_from(bytes).unwrap_or(u32::MAX), DelayedItem::Outcome(outcome)) {
            Ok(Some(DelayedItem::Outcome(outcome))) => {
                self.came_back(at, LookupOutput { by: None, ..outcome }, pool, out)
            }
            Err(DelayedItem::Outcome(outcome)) => outcome.give_back(pool),
            Ok(None) => {
                self.held_bytes += bytes;
                self.pending.entry(by).or_default().packet_outs += 1;
            }
            Ok(Some(DelayedItem::Message(_))) | Err(DelayedItem::Message(_)) => {}
        }
    }

    /// Continues a packet from a controller: it leaves, or passes through the data path again if the profile says so.
    pub(super) fn came_back(
        &mut self,
        at: Instant,
        outcome: LookupOutput,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        if !self.stage.passes_again() {
            return self.leave(at, outcome, out);
        }
        if !outcome.is_empty() {
            let first = outcome.frames.first().map(|(_, frame)| frame);
            let (bytes, flow) = first.map_or((0, 0), |frame| (frame.bytes_len(), flow_of(frame.bytes())));
            self.pass(at, DataPathPacket { level: 0, kind: MatchLayers::L2, bytes, flow }, outcome, pool);
        }
    }
}

impl LookupOutput {
    fn is_empty(&self) -> bool {
        self.frames.is_empty() && self.packet_ins.is_empty()
    }

    fn give_back(self, pool: &mut FramePool) {
        self.frames.into_iter().for_each(|(_, frame)| pool.give(frame));
    }
}
