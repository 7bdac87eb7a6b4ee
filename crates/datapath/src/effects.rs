//! What the pipeline does to the world outside a packet. The live switch does it; a trace writes it down. So both run the same pipeline.
use crate::DropReason;
use crate::action_set::ActionSet;
use crate::group::{BucketAt, Group};
use crate::meter::Verdict;
use crate::normal::Forward;
use crate::packet::Packet;
use crate::ports::Ports;
use crate::shape::EntryId;
use crate::table::FlowEntry;
use std::ops::ControlFlow;
use weir_openflow::model::nicira::ControllerAction;
use weir_openflow::model::{Action, FlowMod, GroupId, MeterId, PacketInReason, PortNo};
use weir_packet::offload::WireSize;
use weir_packet::{Frame, FramePool, offload};

/// Why and from where a packet goes to the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Table of the entry.
    pub(crate) table: u8,
    /// The entry's cookie; all ones when no entry in particular sends it.
    pub(crate) cookie: u64,
    /// Why an output to the controller is one.
    pub(crate) reason: PacketInReason,
}

/// The cookie that says "no entry in particular" (OpenFlow 1.3.5, 7.4.1).
pub(crate) const NO_COOKIE: u64 = u64::MAX;

/// Those of whoever forwards whole bursts.
pub(crate) trait Forwarder: Effects {
    /// Drops a frame before it was a packet.
    fn refuse(&mut self, frame: &mut Frame, reason: DropReason);
    /// Sends frames that entries output to an ordinary port, as they are.
    fn send_straight(&mut self, in_port: PortNo, port: PortNo, frames: &mut [Frame]);
}

/// See the module's page.
pub(crate) trait Effects {
    /// The ports there are.
    fn ports(&self) -> &Ports;
    /// The first table for egress, if there is one.
    fn first_egress(&self) -> Option<u8>;
    /// A packet on its way to a port goes through the egress tables.
    fn egress(&mut self, first: u8, port: PortNo, packet: &mut Packet);
    /// A packet is about to be looked up in a table.
    fn looking_up(&mut self) {}
    /// A packet of `bytes` was looked up in a table.
    fn looked_up(&mut self, table: u8, found: Option<(EntryId, &FlowEntry)>, bytes: usize);
    /// A packet of `bytes` that was counted at one entry of a table is to be counted at another, or at none.
    fn recount(&mut self, _table: u8, _from: EntryId, _to: Option<EntryId>, _bytes: usize) {}
    /// A meter measures a packet.
    fn meter(&mut self, meter: MeterId, size: WireSize) -> Verdict;
    /// An action is about to be run.
    fn acting(&mut self, _action: &Action) {}
    /// A copy of a frame leaves.
    fn send_copy(&mut self, port: PortNo, frame: &Frame);
    /// A frame leaves.
    fn send(&mut self, port: PortNo, frame: Frame);
    /// A frame's buffer is free.
    fn recycle(&mut self, frame: Frame);
    /// A packet goes to controllers, with at most `max_len` bytes.
    ///
    /// # Errors
    /// Nobody takes it.
    fn punt(&mut self, packet: &Packet, origin: Origin, max_len: u16) -> Result<(), DropReason>;
    /// A packet matched no entry of a table; some controllers take those.
    ///
    /// # Errors
    /// Nobody takes it.
    fn punt_miss(&mut self, packet: &Packet, table: u8) -> Result<(), DropReason>;
    /// Output NORMAL: where to; learns on the way.
    fn normal(&mut self, packet: &mut Packet) -> Forward;
    /// Output TABLE: a copy of the packet runs through the pipeline from its start.
    fn resubmit(&mut self, packet: &mut Packet);
    /// Looks a packet up in a table as if it had come in on a port, and runs what is found; `set` is its action set.
    fn resubmit_to(&mut self, table: u8, port: PortNo, packet: &mut Packet, set: &mut ActionSet) -> ControlFlow<()>;
    /// A packet goes to the controllers that an action names.
    ///
    /// # Errors
    /// Nobody takes it.
    fn punt_to(&mut self, packet: &Packet, origin: Origin, action: &ControllerAction) -> Result<(), DropReason>;
    /// The first bytes of a frame leave.
    fn send_start(&mut self, port: PortNo, frame: &Frame, bytes: usize);
    /// A packet made a flow entry.
    fn learn(&mut self, flow: FlowMod);
    /// A group gets the packet, which itself goes on unchanged.
    fn group(&mut self, group: GroupId, packet: &mut Packet, origin: Origin);
    /// Runs a bucket on a packet that is the bucket's own.
    fn run_bucket(&mut self, bucket: BucketAt, packet: &mut Packet, origin: Origin);
    /// A packet of `bytes` came to the group at a place.
    fn grouped(&mut self, slot: usize, bytes: usize);
    /// A packet of `bytes` takes a bucket.
    fn bucket_taken(&mut self, group: &Group, bucket: BucketAt, bytes: usize);
    /// Whether a bucket may wait until it is known if the packet is still needed behind it.
    fn defers(&self) -> bool {
        true
    }
    /// A copy of a frame.
    fn copy(&mut self, frame: &Frame) -> Frame;
    /// A packet, or one of its copies, was dropped.
    fn dropped(&mut self, reason: DropReason);
}

/// The first bytes of the frames that a frame is on a line. A device could not finish what is cut off, so that is done before; none if it
/// cannot be.
#[cold]
pub(crate) fn starts(pool: &mut FramePool, frame: &Frame, bytes: usize) -> Option<Vec<Frame>> {
    let mut finished = Vec::new();
    let copy = pool.copy(frame);
    offload::finish(copy, pool, &mut finished).then(|| {
        finished.iter_mut().for_each(|frame| frame.truncate(bytes));
        finished
    })
}
