//! Defines the pipeline's effects beyond the packet itself (sending, punting, counting, learning) as a trait. The live
//! switch performs the effects and a trace records them, so both run the same pipeline.
use crate::action_set::ActionSet;
use crate::flow_tables::FlowTables;
use crate::group::{self, GroupTable};
use crate::normal::NormalDestination;
use crate::packet::PipelinePacket;
use crate::ports::Ports;
use crate::shape::EntryId;
use crate::table::FlowEntry;
use crate::{DropReason, pipeline};
use std::fmt;
use std::ops::{ControlFlow, Deref};
use weir_openflow::model::nicira::ControllerAction;
use weir_openflow::model::{Action, FlowMod, GroupId, MeterId, PacketInReason, PortNo};
use weir_packet::offload::WireSize;
use weir_packet::{Frame, FramePool, offload};

/// Origin of a packet that is punted to the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PuntOrigin {
    /// Table of the entry that punts the packet.
    pub(crate) table: u8,
    /// Cookie of the entry, or [`NO_COOKIE`] if no single entry punts the packet.
    pub(crate) cookie: u64,
    /// Reason of the packet-in that an output to the controller causes.
    pub(crate) reason: PacketInReason,
}

/// Cookie of a packet-in that no single entry causes (OpenFlow 1.3.5, 7.4.1).
pub(crate) const NO_COOKIE: u64 = u64::MAX;

/// Location of a bucket, valid until the next group-mod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BucketRef {
    slot: u32,
    bucket: u32,
}

impl BucketRef {
    #[expect(clippy::cast_possible_truncation, reason = "limits of groups and buckets have 32 bits")]
    pub(crate) fn new(slot: usize, bucket: usize) -> BucketRef {
        BucketRef { slot: slot as u32, bucket: bucket as u32 }
    }

    /// Returns the slot of the group.
    pub(crate) fn slot(self) -> usize {
        self.slot as usize
    }

    /// Returns the index of the bucket in its group.
    pub(crate) fn bucket(self) -> usize {
        self.bucket as usize
    }
}

/// A meter's decision about a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MeterVerdict {
    /// The packet passes unchanged.
    Pass,
    /// The packet's drop precedence is raised by this many steps.
    Remark(u8),
    /// The packet is dropped.
    Drop,
}

impl fmt::Display for MeterVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeterVerdict::Pass => f.write_str("passes"),
            MeterVerdict::Remark(steps) => write!(f, "raises the drop precedence by {steps}"),
            MeterVerdict::Drop => f.write_str("drops it"),
        }
    }
}

/// [`Effects`] for callers that forward whole bursts.
pub(crate) trait BurstEffects: Effects {
    /// Returns the pool of frames.
    fn pool(&mut self) -> &mut FramePool;
    /// Drops a frame that could not be parsed as a packet, and counts it with this reason.
    fn refuse(&mut self, frame: &mut Frame, reason: DropReason) {
        self.dropped(reason);
        self.recycle(std::mem::take(frame));
    }
    /// Sends frames that entries output unchanged to an ordinary port.
    fn send_directly(&mut self, in_port: PortNo, port: PortNo, frames: &mut [Frame]);
}

/// Access of the pipeline and its actions to the rest of the switch.
pub(crate) trait Effects: Sized {
    /// Reference to the flow tables. Packets run through them while these effects change.
    type Tables: Deref<Target = FlowTables> + Copy;
    /// Reference to the groups, likewise.
    type Groups: Deref<Target = GroupTable> + Copy;

    /// Returns the flow tables.
    fn tables(&self) -> Self::Tables;
    /// Returns the groups.
    fn groups(&self) -> Self::Groups;
    /// Returns the ports of the datapath.
    fn ports(&self) -> &Ports;
    /// Notice that a packet is about to run through the egress tables, to be output to a port.
    fn leaving(&mut self, _port: PortNo) {}
    /// Runs a packet that is output to a port through the egress tables.
    fn egress(&mut self, first: u8, port: PortNo, packet: &mut PipelinePacket) {
        self.leaving(port);
        pipeline::egress(self.tables().all(), first, port, packet, self);
    }
    /// Notice that a packet is about to be looked up in a table.
    fn looking_up(&mut self) {}
    /// Counts a lookup of a packet of `bytes` in a table, and the packet at the entry found, if there is one.
    fn looked_up(&mut self, table: u8, found: Option<(EntryId, &FlowEntry)>, bytes: usize);
    /// Moves the count of a packet of `bytes` from one entry of a table to another, or to none.
    fn recount(&mut self, _table: u8, _from: EntryId, _to: Option<EntryId>, _bytes: usize) {}
    /// Measures a packet with a meter.
    fn meter(&mut self, meter: MeterId, size: WireSize) -> MeterVerdict;
    /// Notice that an action is about to be executed.
    fn acting(&mut self, _action: &Action) {}
    /// Sends a copy of a frame to a port.
    fn send_copy(&mut self, port: PortNo, frame: &Frame) {
        let copy = self.copy(frame);
        self.send(port, copy);
    }
    /// Sends a frame to a port.
    fn send(&mut self, port: PortNo, frame: Frame);
    /// Returns the buffer of a frame to the pool.
    fn recycle(&mut self, frame: Frame);
    /// Punts a packet to controllers, with at most `max_len` bytes of it.
    ///
    /// # Errors
    /// No controller takes the packet; the reason is returned.
    fn punt(&mut self, packet: &PipelinePacket, origin: PuntOrigin, max_len: u16) -> Result<(), DropReason>;
    /// Punts a packet that matched no entry of a table to the controllers that take table misses.
    ///
    /// # Errors
    /// No controller takes the packet; the reason is returned.
    fn punt_miss(&mut self, packet: &PipelinePacket, table: u8) -> Result<(), DropReason>;
    /// Learns a packet's source and returns its destination for output NORMAL.
    fn normal(&mut self, packet: &mut PipelinePacket) -> NormalDestination;
    /// Runs a copy of the packet through the pipeline from its start (output TABLE).
    fn resubmit(&mut self, packet: &mut PipelinePacket);
    /// Looks a packet up in a table as if it had arrived on `port`, and runs the entry found. `set` is the packet's
    /// action set.
    fn resubmit_to(
        &mut self,
        table: u8,
        port: PortNo,
        packet: &mut PipelinePacket,
        set: &mut ActionSet,
    ) -> ControlFlow<()> {
        pipeline::resubmit(self.tables().all(), table, port, packet, set, self)
    }
    /// Punts a packet to the controllers that an action names.
    ///
    /// # Errors
    /// No controller takes the packet; the reason is returned.
    fn punt_to(
        &mut self,
        packet: &PipelinePacket,
        origin: PuntOrigin,
        action: &ControllerAction,
    ) -> Result<(), DropReason>;
    /// Sends only the first `bytes` of a frame to a port.
    fn send_start(&mut self, port: PortNo, frame: &Frame, bytes: usize);
    /// Adds a flow entry that a `learn` action created from a packet.
    fn learn(&mut self, flow: FlowMod);
    /// Runs a group on the packet, which itself stays unchanged.
    fn group(&mut self, group: GroupId, packet: &mut PipelinePacket, origin: PuntOrigin) {
        group::run(&self.groups(), group, packet, origin, self);
    }
    /// Runs a bucket on a packet. The bucket may change the packet, because it is a copy or is not used afterwards.
    fn run_bucket(&mut self, bucket: BucketRef, packet: &mut PipelinePacket, origin: PuntOrigin) {
        group::run_bucket(&self.groups(), bucket, packet, origin, self);
    }
    /// Counts a packet of `bytes` at the group with index `slot`.
    fn grouped(&mut self, slot: usize, bytes: usize);
    /// Counts a packet of `bytes` at a bucket of a group.
    fn bucket_taken(&mut self, group: GroupId, bucket: BucketRef, bytes: usize);
    /// Returns true if running a bucket may be deferred until it is known whether the packet is needed afterwards,
    /// which can save a copy.
    fn defers(&self) -> bool {
        true
    }
    /// Returns a copy of a frame.
    fn copy(&mut self, frame: &Frame) -> Frame;
    /// Counts a packet, or one of its copies, as dropped.
    fn dropped(&mut self, reason: DropReason);
}

/// Carries out a frame's pending offloads (segmentation and checksums) and sends the resulting frames to a port, each
/// truncated to its first `bytes` bytes. The offloads come first because a device could not carry them out on a
/// truncated frame. Drops the frame if they cannot be carried out.
#[cold]
pub(crate) fn send_start(fx: &mut impl BurstEffects, port: PortNo, frame: &Frame, bytes: usize) {
    let (mut finished, pool) = (Vec::new(), fx.pool());
    let copy = pool.copy(frame);
    if !offload::finish(copy, pool, &mut finished) {
        return fx.dropped(DropReason::BadOffload);
    }
    for mut start in finished {
        start.truncate(bytes);
        fx.send(port, start);
    }
}
