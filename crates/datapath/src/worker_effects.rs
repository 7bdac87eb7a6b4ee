//! Performs the effects of packets on a worker that runs concurrently with other workers. It reads shared state and
//! has its own counters. Meters are shared, each under its own lock.
//!
//! Steps that only one thread at a time can do (sending packet-ins, learning) are deferred in [`DeferredWork`].
//! [`crate::Datapath::process_for`] does them afterwards. Deferred packets keep their order among each other.
use crate::counting::WorkerNo;
use crate::direct_output::DirectOutput;
use crate::effects::BucketRef;
use crate::effects::MeterVerdict;
use crate::effects::{self, BurstEffects, Effects, PuntOrigin};
use crate::engine_effects::{EngineEffects, MAX_TO_LEARN, PipelineState};
use crate::execute;
use crate::flow_tables::FlowTables;
use crate::group::GroupTable;
use crate::normal::NormalDestination;
use crate::packet::{ParkedPacket, PipelinePacket};
use crate::ports::Ports;
use crate::shape::EntryId;
use crate::table::FlowEntry;
use crate::{DatapathOutput, DropReason, Drops, pipeline};
use weir_openflow::Version;
use weir_openflow::model::nicira::ControllerAction;
use weir_openflow::model::{FlowMod, GroupId, MeterId, PacketInReason, PortNo};
use weir_packet::offload::WireSize;
use weir_packet::{Frame, FramePool};
use weir_units::Instant;

/// Maximum number of deferred packets per burst. Packets beyond it are dropped and counted.
const MAX_PARKED: usize = 1024;

/// Steps of a burst that only one thread at a time can do.
#[derive(Debug, Default)]
pub(crate) struct DeferredWork {
    parked: Vec<(ParkedPacket, DeferredStep)>,
    to_learn: Vec<FlowMod>,
}

/// The deferred step of a packet.
#[derive(Debug)]
enum DeferredStep {
    Punt(PuntOrigin, u16),
    PuntTo(PuntOrigin, Box<ControllerAction>),
    /// Table miss in the table with this number.
    Miss(u8),
    Normal,
}

/// State that workers share while they forward.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedTables<'a> {
    tables: &'a FlowTables,
    groups: &'a GroupTable,
    plane: &'a PipelineState,
}

impl<'a> SharedTables<'a> {
    pub(crate) fn new(tables: &'a FlowTables, groups: &'a GroupTable, plane: &'a PipelineState) -> SharedTables<'a> {
        SharedTables { tables, groups, plane }
    }
}

/// A worker's access to the switch during one burst.
pub(crate) struct WorkerEffects<'a> {
    now: Instant,
    worker: WorkerNo,
    common: SharedTables<'a>,
    drops: &'a mut Drops,
    deferred_work: &'a mut DeferredWork,
    pool: &'a mut FramePool,
    out: &'a mut DatapathOutput,
    /// Index in `out.frames` of the last output's port.
    last: usize,
}

impl<'a> WorkerEffects<'a> {
    pub(crate) fn new(
        now: Instant,
        common: SharedTables<'a>,
        (worker, drops, later): (WorkerNo, &'a mut Drops, &'a mut DeferredWork),
        pool: &'a mut FramePool,
        out: &'a mut DatapathOutput,
    ) -> WorkerEffects<'a> {
        WorkerEffects { now, worker, common, drops, deferred_work: later, pool, out, last: 0 }
    }

    /// Defers a step for a copy of the packet as it is now.
    ///
    /// # Errors
    /// The burst already has [`MAX_PARKED`] deferred packets.
    #[cold]
    fn park(&mut self, packet: &PipelinePacket, rest: DeferredStep) -> Result<(), DropReason> {
        if self.deferred_work.parked.len() >= MAX_PARKED {
            return Err(DropReason::TooManyParked);
        }
        let copy = self.pool.copy(packet.frame);
        self.deferred_work.parked.push((packet.park(copy), rest));
        Ok(())
    }
}

impl DeferredWork {
    /// Returns true if no step is deferred.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.parked.is_empty() && self.to_learn.is_empty()
    }

    /// Runs the deferred steps in order.
    #[cold]
    pub(crate) fn run_deferred(&mut self, live: &mut EngineEffects) {
        for (parked, rest) in self.parked.drain(..) {
            parked.resume(live, |packet, live| match rest {
                DeferredStep::Normal => execute::normal(packet, live),
                rest => match rest.offer(packet, live) {
                    Ok(()) => packet.punted(),
                    Err(reason) => packet.dropped(reason, live),
                },
            });
        }
        self.to_learn.drain(..).for_each(|flow| live.learn(flow));
    }
}

impl DeferredStep {
    fn offer(self, packet: &PipelinePacket, live: &mut EngineEffects) -> Result<(), DropReason> {
        match self {
            DeferredStep::Punt(origin, max_len) if origin.reason == PacketInReason::InvalidTtl => {
                live.punt(packet, origin, max_len).map_err(|_| DropReason::TtlExpired)
            }
            DeferredStep::Punt(origin, max_len) => live.punt(packet, origin, max_len),
            DeferredStep::PuntTo(origin, action) => live.punt_to(packet, origin, &action),
            DeferredStep::Miss(table) => live.punt_miss(packet, table),
            DeferredStep::Normal => Ok(()),
        }
    }
}

impl BurstEffects for WorkerEffects<'_> {
    fn pool(&mut self) -> &mut FramePool {
        self.pool
    }

    #[inline(always)]
    fn send_directly(&mut self, in_port: PortNo, port: PortNo, frames: &mut [Frame]) {
        let ports = &self.common.plane.ports;
        let mut straight = DirectOutput { ports, drops: self.drops, pool: self.pool, out: self.out };
        self.last = straight.send(in_port, port, frames, self.last);
    }
}

impl<'a> Effects for WorkerEffects<'a> {
    type Groups = &'a GroupTable;
    type Tables = &'a FlowTables;

    #[inline]
    fn tables(&self) -> &'a FlowTables {
        self.common.tables
    }

    fn groups(&self) -> &'a GroupTable {
        self.common.groups
    }

    fn ports(&self) -> &Ports {
        &self.common.plane.ports
    }

    #[inline]
    fn looked_up(&mut self, table: u8, found: Option<(EntryId, &FlowEntry)>, bytes: usize) {
        let Some(table) = self.common.tables.all().get(usize::from(table)) else { return };
        table.met(self.worker, self.now, found.map(|(id, _)| id), bytes);
    }

    #[cold]
    fn recount(&mut self, table: u8, from: EntryId, to: Option<EntryId>, bytes: usize) {
        let Some(table) = self.common.tables.all().get(usize::from(table)) else { return };
        table.recount(self.worker, self.now, from, to, bytes);
    }

    fn meter(&mut self, meter: MeterId, size: WireSize) -> MeterVerdict {
        self.common.plane.meters.measure_shared(self.now, meter, size)
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
        self.park(packet, DeferredStep::Punt(origin, max_len))
    }

    #[cold]
    fn punt_miss(&mut self, packet: &PipelinePacket, table: u8) -> Result<(), DropReason> {
        let plane = self.common.plane;
        if plane.channels.that(|channel| channel.version == Version::V10).next().is_some() {
            return self.park(packet, DeferredStep::Miss(table));
        }
        // Without a channel of version 1.0 no controller takes a miss, so the drop reason is known at once.
        let keeps = plane.ports.get(packet.in_port).is_some_and(|port| !port.allows_packet_in());
        Err(if keeps { DropReason::NoPacketIn } else { DropReason::TableMiss })
    }

    #[cold]
    fn normal(&mut self, packet: &mut PipelinePacket) -> NormalDestination {
        if let Err(reason) = self.park(packet, DeferredStep::Normal) {
            self.dropped(reason);
        }
        NormalDestination::Later
    }

    fn resubmit(&mut self, packet: &mut PipelinePacket) {
        pipeline::again(self.common.tables.all(), packet, self);
    }

    #[cold]
    fn punt_to(
        &mut self,
        packet: &PipelinePacket,
        origin: PuntOrigin,
        action: &ControllerAction,
    ) -> Result<(), DropReason> {
        self.park(packet, DeferredStep::PuntTo(origin, Box::new(action.clone())))
    }

    #[cold]
    fn send_start(&mut self, port: PortNo, frame: &Frame, bytes: usize) {
        effects::send_start(self, port, frame, bytes);
    }

    #[cold]
    fn learn(&mut self, flow: FlowMod) {
        if self.deferred_work.to_learn.len() < MAX_TO_LEARN {
            self.deferred_work.to_learn.push(flow);
        } else {
            self.dropped(DropReason::LearnedTooMuch);
        }
    }

    fn grouped(&mut self, slot: usize, bytes: usize) {
        self.common.plane.groups.count(self.worker, slot, bytes);
    }

    fn bucket_taken(&mut self, _group: GroupId, bucket: BucketRef, bytes: usize) {
        self.common.plane.groups.count_bucket(self.worker, bucket, bytes);
    }

    fn copy(&mut self, frame: &Frame) -> Frame {
        self.pool.copy(frame)
    }

    fn dropped(&mut self, reason: DropReason) {
        self.drops.count(reason, 1);
    }
}
