//! A packet in the pipeline: the frame, its flow key, and a pending output.
mod parked;

pub(crate) use parked::ParkedPacket;

use crate::DropReason;
use crate::effects::{BucketRef, Effects, PuntOrigin};
use crate::packet_limits::{MAX_BUCKETS_OF_PACKET, MAX_DEPTH, MAX_RESUBMITS, MAX_STACK};
use weir_openflow::model::{PortNo, Subfield};
use weir_packet::edit::{self, EditEffect, EditError};
use weir_packet::field::{VLAN_PRESENT, eth_type};
use weir_packet::{Field, FlowKey, Frame, Layers, ParsedHeaders, parse_frame};

/// A packet in the pipeline: see the [module](self). Borrows its large parts, because moving them costs more than
/// most actions.
#[derive(Debug)]
pub(crate) struct PipelinePacket<'a> {
    pub(crate) frame: &'a mut Frame,
    /// Parse result of the frame; up to date unless `stale` is set.
    parsed: &'a mut ParsedHeaders,
    pub(crate) in_port: PortNo,
    /// True if headers were added or removed since the frame was parsed.
    stale: bool,
    /// Pending output of the packet in its present state. The copy is made only if another action follows, so that
    /// the very last output moves the frame.
    waiting: Option<PendingOutput>,
    /// Queue for the pending output. The frame has the queue for later outputs.
    waiting_queue: u32,
    /// Number of buckets that the packet may still run through.
    buckets_left: u16,
    /// True if the packet was sent, given to a controller, or dropped for a reason.
    settled: bool,
    /// Nesting depth of resubmits.
    depth: u8,
    /// Number of resubmits left for the packet and its copies.
    resubmits_left: u16,
    /// Values from Nicira's `push` action.
    stack: Vec<u128>,
    /// True while the packet is in egress tables, where outputs leave the switch.
    is_leaving: bool,
}

/// Destination of a pending output.
#[derive(Debug, Clone, Copy)]
enum PendingOutput {
    Port(PortNo),
    Bucket(BucketRef, PuntOrigin),
}

impl<'a> PipelinePacket<'a> {
    /// Creates a packet received on `in_port`.
    #[inline]
    pub(crate) fn new(frame: &'a mut Frame, parsed: &'a mut ParsedHeaders, in_port: PortNo) -> PipelinePacket<'a> {
        let (waiting, waiting_queue, buckets_left) = (None, 0, MAX_BUCKETS_OF_PACKET);
        PipelinePacket {
            frame,
            parsed,
            in_port,
            stale: false,
            waiting,
            waiting_queue,
            buckets_left,
            settled: false,
            depth: 0,
            resubmits_left: MAX_RESUBMITS,
            stack: Vec::new(),
            is_leaving: false,
        }
    }

    /// Returns the flow key of the packet in its present state.
    #[inline]
    pub(crate) fn key(&mut self) -> &FlowKey {
        self.refresh();
        &self.parsed.key
    }

    /// Returns the header offsets of the packet in its present state.
    pub(crate) fn layers(&mut self) -> Layers {
        self.refresh();
        self.parsed.layers
    }

    /// Returns a pipeline field, which is not part of the frame. Up to date without parsing.
    pub(crate) fn pipeline_field(&self, field: Field) -> u128 {
        self.parsed.key.get(field)
    }

    /// Replaces the metadata bits in `mask`.
    pub(crate) fn write_metadata(&mut self, value: u64, mask: u64, fx: &mut impl Effects) {
        self.flush_bucket(fx);
        let word = &mut self.parsed.key.words[Field::Metadata.key_position().word];
        *word = *word & !mask | value & mask;
    }

    /// Outputs the packet in its present state to a port, which must be allowed as output.
    #[inline]
    pub(crate) fn send_to(&mut self, port: PortNo, fx: &mut impl Effects) {
        self.flush(fx);
        if let Some(first) = fx.tables().first_egress().filter(|_| !self.is_leaving) {
            return self.go_out(first, port, fx);
        }
        if !self.frame.packet_type().is_ethernet() && !fx.ports().takes_any_packet_type(port) {
            return self.dropped(DropReason::NotEthernet, fx);
        }
        self.waiting = Some(PendingOutput::Port(port));
        self.waiting_queue = self.frame.queue;
        self.settled = true;
    }

    /// Gives the packet in its present state to a bucket of a group. The bucket accounts for it.
    pub(crate) fn wait_for(&mut self, bucket: BucketRef, origin: PuntOrigin, fx: &mut impl Effects) {
        self.flush(fx);
        self.waiting = Some(PendingOutput::Bucket(bucket, origin));
        self.waiting_queue = self.frame.queue;
        self.settled = true;
        if !fx.defers() {
            self.flush(fx);
        }
    }

    /// Counts that the packet enters a bucket. Returns false if it must not.
    pub(crate) fn enters_bucket(&mut self) -> bool {
        let left = self.buckets_left.checked_sub(1);
        self.buckets_left = left.unwrap_or(0);
        left.is_some()
    }

    /// Sets the queue for later outputs; [`weir_packet::frame::DEFAULT_QUEUE`] resets it. Returns the former queue.
    pub(crate) fn set_queue(&mut self, queue: u32) -> u32 {
        std::mem::replace(&mut self.frame.queue, queue)
    }

    /// Records that the packet, or one of its copies, was dropped.
    pub(crate) fn dropped(&mut self, reason: DropReason, fx: &mut impl Effects) {
        self.settled = true;
        fx.dropped(reason);
    }

    /// Records that the packet was given to a controller.
    pub(crate) fn punted(&mut self) {
        self.settled = true;
    }

    /// Sets the field `actset_output` to the output port of the action set (OpenFlow 1.5.1, 7.2.3.8).
    #[inline]
    pub(crate) fn note_output(&mut self, port: Option<PortNo>) {
        let port = port.unwrap_or(PortNo::UNSET);
        let word = &mut self.parsed.key.words[Field::ActsetOutput.key_position().word];
        *word = *word & u64::from(u32::MAX) | u64::from(port.0) << 32;
    }

    /// Runs a copy of the packet in its present state through the egress tables, for output to a port.
    #[cold]
    fn go_out<E: Effects>(&mut self, first: u8, port: PortNo, fx: &mut E) {
        self.on_copy(fx, |copy, fx| {
            copy.is_leaving = true;
            fx.egress(first, port, copy);
        });
    }

    /// Ends the packet's processing: moves the frame to the pending output, or returns it to the pool.
    #[inline]
    pub(crate) fn finish(&mut self, fx: &mut impl Effects) {
        match self.waiting {
            Some(PendingOutput::Port(port)) => self.leave(port, fx),
            _ => self.finish_otherwise(fx),
        }
    }

    /// Outputs the frame itself to a port.
    #[inline]
    fn leave(&mut self, port: PortNo, fx: &mut impl Effects) {
        // Written only if different, because moving just written data stalls the processor.
        if self.frame.queue != self.waiting_queue {
            self.frame.queue = self.waiting_queue;
        }
        fx.send(port, std::mem::take(self.frame));
    }

    /// Ends the processing of a packet without a pending output to a port; runs a pending bucket first.
    #[inline(never)]
    fn finish_otherwise(&mut self, fx: &mut impl Effects) {
        self.finish_buckets(fx);
        if let Some(PendingOutput::Port(port)) = self.waiting {
            return self.leave(port, fx);
        }
        if !self.settled {
            fx.dropped(DropReason::NoAction);
        }
        fx.recycle(std::mem::take(self.frame));
    }

    /// Sets a field of the packet; does nothing if the packet has no such header.
    pub(crate) fn set(&mut self, field: Field, value: u128, fx: &mut impl Effects) {
        if field.is_pipeline() {
            self.flush_bucket(fx);
            if field == Field::InPort {
                self.in_port = port_of(value);
            }
            self.parsed.key.set(field, value);
            return self.note_tunnel(field, value, fx);
        }
        if field == Field::VlanTci {
            return self.set_tag(value, fx);
        }
        let edited = self.edit(fx, |frame, layers| edit::set_field(frame, layers, field, value));
        if edited == EditEffect::InPlace {
            self.parsed.key.set(field, value);
        }
    }

    /// Copies a tunnel field to the frame, because tunnel ports see only frames.
    #[expect(clippy::cast_possible_truncation, reason = "of an id the low 32 bits count, an address has no more")]
    fn note_tunnel(&mut self, field: Field, value: u128, fx: &mut impl Effects) {
        if !matches!(field, Field::TunnelId | Field::TunSrc | Field::TunDst) {
            return;
        }
        // A pending output has the packet's former state.
        self.flush(fx);
        match field {
            Field::TunnelId => self.frame.tunnel.id = value as u32,
            Field::TunSrc => self.frame.tunnel.src = value as u32,
            _ => self.frame.tunnel.dst = value as u32,
        }
    }

    /// Sets the whole VLAN tag: pushes a missing tag if the value has one, and pops the tag if it has none.
    #[cold]
    fn set_tag(&mut self, value: u128, fx: &mut impl Effects) {
        let (is_tagged, wants) = (self.layers().vlan_tags > 0, value & u128::from(VLAN_PRESENT) != 0);
        match (is_tagged, wants) {
            (false, false) => return,
            (true, false) => {
                self.edit(fx, edit::pop_vlan);
                return;
            }
            (false, true) => {
                // If the frame is too long for a tag, it stays without.
                let pushed = self.try_edit(fx, |frame, layers| edit::push_vlan(frame, layers, eth_type::VLAN));
                if pushed.is_err() {
                    return self.dropped(DropReason::TooLong, fx);
                }
            }
            (true, true) => {}
        }
        self.set(Field::VlanVid, value & 0x1fff, fx);
        self.set(Field::VlanPcp, value >> 13 & 7, fx);
    }

    /// Counts the start of a resubmit. Returns false if it must not run.
    pub(crate) fn enters_resubmit(&mut self) -> bool {
        let may = self.depth < MAX_DEPTH && self.resubmits_left > 0;
        if may {
            self.depth += 1;
            self.resubmits_left -= 1;
        }
        may
    }

    /// Records the end of the latest resubmit.
    pub(crate) fn leaves_resubmit(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// Pushes a value onto the stack. Returns false if the stack is full.
    pub(crate) fn push(&mut self, value: u128, fx: &mut impl Effects) -> bool {
        self.flush_bucket(fx);
        let has_room = self.stack.len() < MAX_STACK;
        if has_room {
            self.stack.push(value);
        }
        has_room
    }

    /// Removes and returns the latest value of the stack.
    pub(crate) fn pop(&mut self, fx: &mut impl Effects) -> Option<u128> {
        self.flush_bucket(fx);
        self.stack.pop()
    }

    /// Sends the first bytes of the packet in its present state.
    pub(crate) fn send_start(&mut self, port: PortNo, bytes: usize, fx: &mut impl Effects) {
        self.flush(fx);
        self.settled = true;
        fx.send_start(port, self.frame, bytes);
    }

    /// Calls `act` with a copy of the packet in its present state, and ends the copy's processing.
    #[cold]
    pub(crate) fn on_copy<E: Effects>(&mut self, fx: &mut E, act: impl FnOnce(&mut PipelinePacket, &mut E)) {
        let (mut frame, mut parsed) = (fx.copy(self.frame), *self.parsed);
        let mut copy = PipelinePacket {
            stale: self.stale,
            buckets_left: self.buckets_left,
            depth: self.depth,
            resubmits_left: self.resubmits_left,
            stack: self.stack.clone(),
            is_leaving: self.is_leaving,
            ..PipelinePacket::new(&mut frame, &mut parsed, self.in_port)
        };
        act(&mut copy, fx);
        copy.finish(fx);
        (self.buckets_left, self.resubmits_left) = (copy.buckets_left, copy.resubmits_left);
        self.settled = true;
    }

    /// Sets the bits of a field that are in `mask`.
    pub(crate) fn set_masked(&mut self, field: Field, value: u128, mask: u128, fx: &mut impl Effects) {
        let old = self.key().get(field);
        self.set(field, old & !mask | value & mask, fx);
    }

    /// Copies bits from one field to another. Both parts must lie within their fields and have the same length.
    pub(crate) fn copy_bits(&mut self, src: Subfield, dst: Subfield, fx: &mut impl Effects) {
        let bits = (self.key().get(src.field) & src.mask()) >> src.offset;
        self.set_masked(dst.field, bits << dst.offset, dst.mask(), fx);
    }

    /// Edits the frame.
    pub(crate) fn edit(
        &mut self,
        fx: &mut impl Effects,
        edit: impl FnOnce(&mut Frame, &Layers) -> EditEffect,
    ) -> EditEffect {
        self.flush(fx);
        self.refresh();
        let edited = edit(self.frame, &self.parsed.layers);
        self.stale |= edited == EditEffect::Moved;
        edited
    }

    /// Edits the frame, if possible.
    pub(crate) fn try_edit(
        &mut self,
        fx: &mut impl Effects,
        edit: impl FnOnce(&mut Frame, &Layers) -> Result<EditEffect, EditError>,
    ) -> Result<EditEffect, EditError> {
        self.flush(fx);
        self.refresh();
        let edited = edit(self.frame, &self.parsed.layers)?;
        self.stale |= edited == EditEffect::Moved;
        Ok(edited)
    }

    /// Sends a copy to the pending output before the packet changes.
    #[inline]
    fn flush(&mut self, fx: &mut impl Effects) {
        if let Some(waiting) = self.waiting.take() {
            self.send_waiting(waiting, fx);
        }
    }

    #[inline(never)]
    fn send_waiting(&mut self, waiting: PendingOutput, fx: &mut impl Effects) {
        let later = self.set_queue(self.waiting_queue);
        match waiting {
            PendingOutput::Port(port) => fx.send_copy(port, self.frame),
            PendingOutput::Bucket(bucket, origin) => self.run_copy(bucket, origin, fx),
        }
        self.set_queue(later);
    }

    /// Runs a pending bucket on a copy, before a pipeline field or the stack changes or a controller receives the
    /// packet. The bucket's actions come first (OpenFlow 1.3.5, 5.11).
    pub(crate) fn flush_bucket(&mut self, fx: &mut impl Effects) {
        if let Some(PendingOutput::Bucket(..)) = self.waiting {
            self.flush(fx);
        }
    }

    /// Runs a bucket on a copy of the packet, which counts towards the limits of the packet.
    #[cold]
    fn run_copy(&mut self, bucket: BucketRef, origin: PuntOrigin, fx: &mut impl Effects) {
        self.on_copy(fx, |copy, fx| fx.run_bucket(bucket, copy, origin));
    }

    /// Runs the pending bucket, and any bucket that follows from it, on the packet itself, because no other action
    /// follows.
    fn finish_buckets(&mut self, fx: &mut impl Effects) {
        while let Some(PendingOutput::Bucket(bucket, origin)) = self.waiting {
            self.waiting = None;
            // Only other copies of the packet were settled so far.
            self.settled = false;
            self.set_queue(self.waiting_queue);
            fx.run_bucket(bucket, self, origin);
        }
    }

    #[inline]
    fn refresh(&mut self) {
        if self.stale {
            self.parse_again();
        }
    }

    #[cold]
    fn parse_again(&mut self) {
        self.stale = false;
        let before = self.parsed.key;
        // The result is ignored, because an edit leaves at least the Ethernet header if it leaves a frame.
        let _ = parse_frame(self.frame, self.in_port, self.parsed);
        self.parsed.key.carry_pipeline_fields(&before);
        // The only pipeline field that describes the bytes.
        self.parsed.key.set(Field::PacketType, self.frame.packet_type().to_bits().into());
    }
}

/// Converts a field's value to a port number. Values of 16 bits encode reserved ports as in 1.0.
pub(crate) fn port_of(value: u128) -> PortNo {
    match u32::try_from(value) {
        Ok(number @ 0xff01..=0xffff) => PortNo(0xffff_0000 | number),
        Ok(number) => PortNo(number),
        Err(_) => PortNo::ANY,
    }
}
