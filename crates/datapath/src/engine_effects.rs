//! Performs the effects of packets in the live switch: counters, frames to send, messages to controllers.
use crate::buffers::{BufferedPacket, PacketInBuffers};
use crate::channels::{Channel, DatapathChannels};
use crate::counting::WorkerNo;
use crate::direct_output::DirectOutput;
use crate::effects::BucketRef;
use crate::effects::MeterVerdict;
use crate::effects::{self, BurstEffects, Effects, NO_COOKIE, PuntOrigin};
use crate::flow_tables::FlowTables;
use crate::group::{GroupCounters, GroupTable};
use crate::meter::{self, MeterTable};
use crate::normal::{FilteringDatabase, NormalDestination};
use crate::packet::PipelinePacket;
use crate::ports::Ports;
use crate::shape::EntryId;
use crate::table::FlowEntry;
use crate::{ChannelId, DatapathOutput, DropReason, Drops, pipeline};
use weir_openflow::Version;
use weir_openflow::model::action::NO_BUFFER;
use weir_openflow::model::nicira::{ControllerAction, NxMessage, PacketIn2, PacketInFormat};
use weir_openflow::model::{
    Body, BufferId, ErrorType, FlowMod, GroupId, Match, Message, MeterId, PacketIn, PacketInReason, PortNo, TableId,
};
use weir_packet::frame::DEFAULT_QUEUE;
use weir_packet::offload::WireSize;
use weir_packet::{Field, Frame, FramePool, offload};
use weir_units::Instant;

/// State that packets change: everything except the tables.
#[derive(Debug)]
pub(crate) struct PipelineState {
    pub(crate) ports: Ports,
    /// Counters of the groups.
    pub(crate) groups: GroupCounters,
    pub(crate) drops: Drops,
    pub(crate) learned: FilteringDatabase,
    pub(crate) buffers: PacketInBuffers,
    pub(crate) channels: DatapathChannels,
    /// Flow entries made by `learn` actions, added after the batch.
    pub(crate) to_learn: Vec<FlowMod>,
    /// Number of learned flow entries that could not be added.
    pub(crate) learn_failures: u64,
    pub(crate) meters: MeterTable,
}

impl PipelineState {
    /// Removes a packet from a channel's buffer and returns it.
    ///
    /// # Errors
    /// There is no packet with that buffer id.
    pub(crate) fn take_buffered(&mut self, channel: ChannelId, buffer: BufferId) -> Result<BufferedPacket, ErrorType> {
        self.buffers.take(self.channels.main_of(channel), buffer)
    }
}

/// Access to the live switch while it handles a batch or a message.
pub(crate) struct EngineEffects<'a> {
    pub(crate) now: Instant,
    pub(crate) tables: &'a FlowTables,
    pub(crate) groups: &'a GroupTable,
    pub(crate) plane: &'a mut PipelineState,
    pub(crate) pool: &'a mut FramePool,
    pub(crate) out: &'a mut DatapathOutput,
    /// Index in `out.frames` of the last output's port, because packets of a batch often leave by the same port.
    last: usize,
    /// Receives the stamps of the entries that packets match, if the caller asked for them.
    met: Option<&'a mut Vec<u64>>,
}

impl<'a> EngineEffects<'a> {
    pub(crate) fn new(
        now: Instant,
        tables: &'a FlowTables,
        groups: &'a GroupTable,
        plane: &'a mut PipelineState,
        pool: &'a mut FramePool,
        out: &'a mut DatapathOutput,
    ) -> EngineEffects<'a> {
        EngineEffects { now, tables, groups, plane, pool, out, last: 0, met: None }
    }

    /// Returns `self` with a list that records the stamps of the entries that packets match.
    pub(crate) fn noting(self, met: &'a mut Vec<u64>) -> EngineEffects<'a> {
        EngineEffects { met: Some(met), ..self }
    }

    /// Offers a packet to the channels for which `wants` returns a number: the maximum number of bytes to send.
    fn offer_to(
        &mut self,
        packet: &PipelinePacket,
        origin: PuntOrigin,
        userdata: &[u8],
        wants: impl Fn(&Channel) -> Option<u16>,
    ) -> Result<(), DropReason> {
        if self.plane.ports.get(packet.in_port).is_some_and(|port| !port.allows_packet_in()) {
            return Err(DropReason::NoPacketIn);
        }
        let is_wanted = |channel: &Channel| channel.wants_packet_in(origin.reason) && wants(channel).is_some();
        let takers: Vec<(ChannelId, u16)> =
            self.plane.channels.that(is_wanted).map(|c| (c.id, wants(c).unwrap_or(0))).collect();
        if takers.is_empty() {
            return Err(DropReason::NoController);
        }
        let raised = self.plane.meters.measure_punt(self.now, WireSize::of(packet.frame))?;
        if packet.frame.offload.is_none() && raised == 0 {
            return self.offer(packet, packet.frame, origin, userdata, &takers);
        }
        let mut copy = self.pool.copy(packet.frame);
        meter::remark_frame(&mut copy, raised);
        // Offloads are finished first, because a controller cannot finish what the sender left to the port.
        let mut finished = Vec::new();
        if !offload::finish(copy, self.pool, &mut finished) {
            return Err(DropReason::BadOffload);
        }
        let mut result = Err(DropReason::PacketInRate);
        for frame in finished {
            result = result.or(self.offer(packet, &frame, origin, userdata, &takers));
            self.pool.give(frame);
        }
        result
    }

    /// Sends a packet-in to each channel that is within its rate limit. Returns an error if there is none.
    fn offer(
        &mut self,
        packet: &PipelinePacket,
        frame: &Frame,
        origin: PuntOrigin,
        userdata: &[u8],
        takers: &[(ChannelId, u16)],
    ) -> Result<(), DropReason> {
        let mut result = Err(DropReason::PacketInRate);
        for taker in takers {
            if self.plane.channels.admits_packet_in(self.now, taker.0) {
                self.packet_in(packet, frame, origin, userdata, *taker);
                result = Ok(());
            } else {
                self.out.limited(taker.0);
            }
        }
        result
    }

    /// Sends one packet-in. The packet is buffered unless the channel asked for all of it.
    fn packet_in(
        &mut self,
        packet: &PipelinePacket,
        frame: &Frame,
        origin: PuntOrigin,
        userdata: &[u8],
        (channel, max_len): (ChannelId, u16),
    ) {
        let buffer_id = if max_len == NO_BUFFER {
            None
        } else {
            let mut copy = self.pool.copy(frame);
            // The controller's later actions start with the default queue.
            copy.queue = DEFAULT_QUEUE;
            self.plane.buffers.keep(self.now, channel, packet.in_port, copy, self.pool)
        };
        let sent = if buffer_id.is_some() { usize::from(max_len) } else { MAX_PACKET_IN }.min(frame.len());
        let packet_in = PacketIn {
            buffer_id,
            total_len: u16::try_from(frame.len()).unwrap_or(u16::MAX),
            reason: self.reason(channel, origin),
            table: TableId(origin.table),
            cookie: origin.cookie,
            matching: pipeline_fields(packet),
            data: frame.bytes()[..sent].to_vec().into(),
        };
        let format = self.plane.channels.get(channel).map_or(PacketInFormat::Standard, |c| c.nicira.packet_ins);
        let body = match format {
            PacketInFormat::Nxt => Body::Nx(Box::new(NxMessage::PacketIn(packet_in))),
            PacketInFormat::Nxt2 => {
                let packet = PacketIn2 { packet: packet_in, userdata: userdata.to_vec().into() };
                Body::Nx(Box::new(NxMessage::PacketIn2(packet)))
            }
            PacketInFormat::Standard | PacketInFormat::Unknown(_) => Body::PacketIn(packet_in),
        };
        let carrier = self.plane.channels.auxiliaries().carrier(channel, packet);
        self.out.messages.push((carrier, Message { xid: 0, body }));
    }
}

impl EngineEffects<'_> {
    /// Returns the reason of a packet-in as the channel's version defines it. Version 1.0 has no table-miss entries:
    /// any entry that sends a packet to the controller means "explicitly output to controller" (OpenFlow 1.0.0,
    /// 5.4.1). A packet without an entry has no cookie.
    fn reason(&self, channel: ChannelId, origin: PuntOrigin) -> PacketInReason {
        let is_v10 = self.plane.channels.get(channel).is_some_and(|channel| channel.version == Version::V10);
        let has_entry = origin.cookie != NO_COOKIE;
        if is_v10 && has_entry && origin.reason == PacketInReason::NoMatch {
            PacketInReason::Action
        } else {
            origin.reason
        }
    }
}

/// Maximum number of flow entries that the packets of one batch may learn.
pub(crate) const MAX_TO_LEARN: usize = 1024;

/// Maximum number of bytes of a packet in a packet-in, because a message has at most 64 KiB including header and
/// match.
const MAX_PACKET_IN: usize = 65_535 - 128;

/// Pipeline fields left out of a packet-in: the input port is added separately, the others are not for controllers.
const UNTOLD: [Field; 3] = [Field::InPort, Field::InPhyPort, Field::ActsetOutput];

/// Returns the packet's pipeline fields for a packet-in (OpenFlow 1.3.5, 7.4.1). Fields that are zero are left out.
fn pipeline_fields(packet: &PipelinePacket) -> Match {
    let in_port = Match::any().with(Field::InPort, packet.in_port.0);
    let wanted = |field: &Field| field.is_pipeline() && !field.is_alias() && !UNTOLD.contains(field);
    Field::ALL.into_iter().filter(wanted).fold(in_port, |fields, field| match packet.pipeline_field(field) {
        0 => fields,
        value => fields.with(field, value),
    })
}

impl BurstEffects for EngineEffects<'_> {
    fn pool(&mut self) -> &mut FramePool {
        self.pool
    }

    #[inline(always)]
    fn send_directly(&mut self, in_port: PortNo, port: PortNo, frames: &mut [Frame]) {
        let ports = &self.plane.ports;
        let mut straight = DirectOutput { ports, drops: &mut self.plane.drops, pool: self.pool, out: self.out };
        self.last = straight.send(in_port, port, frames, self.last);
    }
}

impl<'a> Effects for EngineEffects<'a> {
    type Groups = &'a GroupTable;
    type Tables = &'a FlowTables;

    #[inline]
    fn tables(&self) -> &'a FlowTables {
        self.tables
    }

    fn groups(&self) -> &'a GroupTable {
        self.groups
    }

    fn ports(&self) -> &Ports {
        &self.plane.ports
    }

    #[inline]
    fn looked_up(&mut self, table: u8, found: Option<(EntryId, &FlowEntry)>, bytes: usize) {
        let Some(table) = self.tables.all().get(usize::from(table)) else { return };
        table.met(WorkerNo::ENGINE, self.now, found.map(|(id, _)| id), bytes);
        if let (Some(met), Some((_, entry))) = (&mut self.met, found) {
            met.push(entry.stamp);
        }
    }

    #[cold]
    fn recount(&mut self, table: u8, from: EntryId, to: Option<EntryId>, bytes: usize) {
        let Some(table) = self.tables.all().get(usize::from(table)) else { return };
        table.recount(WorkerNo::ENGINE, self.now, from, to, bytes);
    }

    fn meter(&mut self, meter: MeterId, size: WireSize) -> MeterVerdict {
        self.plane.meters.measure(self.now, meter, size)
    }

    #[inline]
    fn send(&mut self, port: PortNo, frame: Frame) {
        self.last = self.out.send(port, frame, self.last);
    }

    fn recycle(&mut self, frame: Frame) {
        self.pool.give(frame);
    }

    #[cold]
    fn punt(&mut self, packet: &PipelinePacket, origin: PuntOrigin, max_len: u16) -> Result<(), DropReason> {
        self.offer_to(packet, origin, &[], |channel| (channel.nicira.id == 0).then_some(max_len))
    }

    /// Punts a table miss. Only version 1.0 sends packets without an entry to the controller; version 1.3 needs a
    /// table-miss entry. With channels of both versions only those of 1.0 get the packet, as in Open vSwitch.
    #[cold]
    fn punt_miss(&mut self, packet: &PipelinePacket, table: u8) -> Result<(), DropReason> {
        let origin = PuntOrigin { table, cookie: NO_COOKIE, reason: PacketInReason::NoMatch };
        let taken = self.offer_to(packet, origin, &[], |c| c.takes_misses().then_some(c.miss_send_len));
        taken.map_err(|reason| if reason == DropReason::NoController { DropReason::TableMiss } else { reason })
    }

    fn normal(&mut self, packet: &mut PipelinePacket) -> NormalDestination {
        let in_port = packet.in_port;
        let key = packet.key();
        self.plane.learned.learn(self.now, in_port, key);
        self.plane.learned.forward(self.now, key)
    }

    fn resubmit(&mut self, packet: &mut PipelinePacket) {
        pipeline::again(self.tables.all(), packet, self);
    }

    #[cold]
    fn punt_to(
        &mut self,
        packet: &PipelinePacket,
        origin: PuntOrigin,
        action: &ControllerAction,
    ) -> Result<(), DropReason> {
        let taken = |channel: &Channel| (channel.nicira.id == action.id).then_some(action.max_len);
        self.offer_to(packet, origin, &action.userdata.0, taken)
    }

    #[cold]
    fn send_start(&mut self, port: PortNo, frame: &Frame, bytes: usize) {
        effects::send_start(self, port, frame, bytes);
    }

    #[cold]
    fn learn(&mut self, flow: FlowMod) {
        if self.plane.to_learn.len() < MAX_TO_LEARN {
            self.plane.to_learn.push(flow);
        } else {
            self.dropped(DropReason::LearnedTooMuch);
        }
    }

    fn grouped(&mut self, slot: usize, bytes: usize) {
        self.plane.groups.count(WorkerNo::ENGINE, slot, bytes);
    }

    fn bucket_taken(&mut self, _group: GroupId, bucket: BucketRef, bytes: usize) {
        self.plane.groups.count_bucket(WorkerNo::ENGINE, bucket, bytes);
    }

    fn copy(&mut self, frame: &Frame) -> Frame {
        self.pool.copy(frame)
    }

    fn dropped(&mut self, reason: DropReason) {
        self.plane.drops.count(reason, 1);
    }
}
