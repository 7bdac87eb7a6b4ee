//! Effects of the pipeline outside a packet, as a trait. The live switch performs them and a trace records them, so
//! both run the same pipeline.
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

/// Origin of a packet that is punted to the controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Origin {
    /// Table of the entry.
    pub(crate) table: u8,
    /// Cookie of the entry, or [`NO_COOKIE`] if no single entry punts the packet.
    pub(crate) cookie: u64,
    /// Reason of the packet-in that an output to the controller causes.
    pub(crate) reason: PacketInReason,
}

/// Cookie of a packet-in that no single entry causes (OpenFlow 1.3.5, 7.4.1).
pub(crate) const NO_COOKIE: u64 = u64::MAX;

/// Effects for callers that forward whole bursts.
pub(crate) trait Forwarder: Effects {
    /// Drops a frame that could not become a packet.
    fn refuse(&mut self, frame: &mut Frame, reason: DropReason);
    /// Sends frames that entries output unchanged to an ordinary port.
    fn send_straight(&mut self, in_port: PortNo, port: PortNo, frames: &mut [Frame]);
}

/// Access to the switch outside a packet, for the pipeline and its actions.
pub(crate) trait Effects {
    /// Returns the ports of the datapath.
    fn ports(&self) -> &Ports;
    /// Returns the first egress table, if there is one.
    fn first_egress(&self) -> Option<u8>;
    /// Runs a packet that is output to a port through the egress tables.
    fn egress(&mut self, first: u8, port: PortNo, packet: &mut Packet);
    /// Called before each lookup of a packet in a table.
    fn looking_up(&mut self) {}
    /// Called after each lookup of a packet of `bytes` in a table, with the entry found.
    fn looked_up(&mut self, table: u8, found: Option<(EntryId, &FlowEntry)>, bytes: usize);
    /// Moves the count of a packet of `bytes` from one entry of a table to another, or to none.
    fn recount(&mut self, _table: u8, _from: EntryId, _to: Option<EntryId>, _bytes: usize) {}
    /// Measures a packet with a meter.
    fn meter(&mut self, meter: MeterId, size: WireSize) -> Verdict;
    /// Called before each action.
    fn acting(&mut self, _action: &Action) {}
    /// Sends a copy of a frame to a port.
    fn send_copy(&mut self, port: PortNo, frame: &Frame);
    /// Sends a frame to a port.
    fn send(&mut self, port: PortNo, frame: Frame);
    /// Takes back the buffer of a frame that is not needed any more.
    fn recycle(&mut self, frame: Frame);
    /// Punts a packet to controllers, with at most `max_len` bytes of it.
    ///
    /// # Errors
    /// No controller takes the packet; the reason is returned.
    fn punt(&mut self, packet: &Packet, origin: Origin, max_len: u16) -> Result<(), DropReason>;
    /// Punts a packet that matched no entry of a table to the controllers that take table misses.
    ///
    /// # Errors
    /// No controller takes the packet; the reason is returned.
    fn punt_miss(&mut self, packet: &Packet, table: u8) -> Result<(), DropReason>;
    /// Learns a packet's source and returns its destination for output NORMAL.
    fn normal(&mut self, packet: &mut Packet) -> Forward;
    /// Runs a copy of the packet through the pipeline from its start (output TABLE).
    fn resubmit(&mut self, packet: &mut Packet);
    /// Looks a packet up in a table as if it had arrived on `port`, and runs the entry found. `set` is the packet's
    /// action set.
    fn resubmit_to(&mut self, table: u8, port: PortNo, packet: &mut Packet, set: &mut ActionSet) -> ControlFlow<()>;
    /// Punts a packet to the controllers that an action names.
    ///
    /// # Errors
    /// No controller takes the packet; the reason is returned.
    fn punt_to(&mut self, packet: &Packet, origin: Origin, action: &ControllerAction) -> Result<(), DropReason>;
    /// Sends only the first `bytes` of a frame to a port.
    fn send_start(&mut self, port: PortNo, frame: &Frame, bytes: usize);
    /// Adds a flow entry that a packet's `learn` action made.
    fn learn(&mut self, flow: FlowMod);
    /// Runs a group on the packet, which itself stays unchanged.
    fn group(&mut self, group: GroupId, packet: &mut Packet, origin: Origin);
    /// Runs a bucket on a packet that belongs to the bucket alone.
    fn run_bucket(&mut self, bucket: BucketAt, packet: &mut Packet, origin: Origin);
    /// Counts a packet of `bytes` at the group with index `slot`.
    fn grouped(&mut self, slot: usize, bytes: usize);
    /// Counts a packet of `bytes` at a bucket.
    fn bucket_taken(&mut self, group: &Group, bucket: BucketAt, bytes: usize);
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

/// Returns the first `bytes` of each wire frame that a frame with offloads stands for. The offloads are finished
/// first, because a device could not finish a truncated frame. Returns `None` if they cannot be finished.
#[cold]
pub(crate) fn starts(pool: &mut FramePool, frame: &Frame, bytes: usize) -> Option<Vec<Frame>> {
    let mut finished = Vec::new();
    let copy = pool.copy(frame);
    offload::finish(copy, pool, &mut finished).then(|| {
        finished.iter_mut().for_each(|frame| frame.truncate(bytes));
        finished
    })
}
