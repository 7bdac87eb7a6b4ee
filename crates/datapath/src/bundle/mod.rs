//! Bundles: messages that a controller collects and that take effect together (OpenFlow 1.4.1, 6.8 and 7.3.9; in 1.3
//! by the Open Networking Foundation's extension 230).
//!
//! Every bundle is ordered, requested or not. If one of its messages fails, nothing has changed, because `commit`
//! undoes the changes recorded in the journal. Nothing else changes the switch during a commit: controller requests,
//! time-outs and learning wait. Forwarding continues, and packets see the messages take effect one after the other.
//! During an atomic bundle they see the flow entries as they were, until all messages have succeeded
//! ([`FlowTable::hold`](crate::table::FlowTable::hold)). An atomic bundle that also changes ports, groups, meters or
//! tables is committed between two bursts of packets, however long that takes.
mod schedule;

pub(crate) use schedule::BundleSchedule;

use crate::ChannelId;
use crate::chunked_queue::ChunkedQueue;
use std::time::Duration;
use weir_openflow::model::bundle::{BundleAdd, BundleFlags, BundleId};
use weir_openflow::model::error::BundleFailed;
use weir_openflow::model::{Action, Body, FlowMod, Instruction, MatchField, Message};
use weir_openflow::{Version, codec};
use weir_units::Instant;

/// Maximum number of bundles per channel.
pub(crate) const MAX_BUNDLES: usize = 64;
/// Maximum number of messages per bundle.
pub(crate) const MAX_MESSAGES: usize = 1 << 20;
/// Maximum size of all messages in bundles, in bytes as encoded: a few hundred thousand flow-mods. Decoded they need
/// several times as much memory.
pub(crate) const MAX_BYTES: usize = 32 << 20;
/// Maximum time between two messages about a bundle.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The bundles of all channels, in the order they were opened.
#[derive(Debug, Default)]
pub(crate) struct PendingBundles {
    list: Vec<PendingBundle>,
    /// Size of the messages of all bundles, in bytes as encoded.
    bytes: usize,
}

/// A bundle that is not committed yet.
#[derive(Debug)]
pub(crate) struct PendingBundle {
    pub(crate) channel: ChannelId,
    pub(crate) id: BundleId,
    pub(crate) flags: BundleFlags,
    is_closed: bool,
    /// The messages, each still in the memory it was decoded into, because freeing large blocks makes the allocator
    /// do costly cleanup.
    pub(crate) messages: ChunkedQueue<Box<Message>>,
    bytes: usize,
    /// True if there are messages that change more than flow entries.
    pub(crate) has_others: bool,
    end: BundleDeadline,
}

/// Event that ends a bundle if its controller stays silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BundleDeadline {
    /// The bundle is discarded at this time.
    GiveUp(Instant),
    /// The bundle is committed at this time, in answer to the message with this transaction id.
    Commit(Instant, u32),
    /// No event: the commit request has arrived and is delayed.
    Held,
}

/// A bundle that is due.
#[derive(Debug)]
pub(crate) enum DueBundle {
    /// To be committed; with the transaction id of the commit request.
    Commit(PendingBundle, u32),
    /// Discarded because its controller was silent for too long.
    GiveUp(ChannelId, BundleId),
}

impl PendingBundles {
    /// Opens a bundle.
    ///
    /// # Errors
    /// [`BundleFailed`]: the channel already has this bundle, or too many.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        channel: ChannelId,
        id: BundleId,
        flags: BundleFlags,
    ) -> Result<(), BundleFailed> {
        if self.position(channel, id).is_ok() {
            return Err(BundleFailed::BundleExist);
        }
        if self.list.iter().filter(|bundle| bundle.channel == channel).count() >= MAX_BUNDLES {
            return Err(BundleFailed::OutOfBundles);
        }
        let end = BundleDeadline::GiveUp(now + PATIENCE);
        self.list.push(PendingBundle {
            channel,
            id,
            flags,
            is_closed: false,
            messages: ChunkedQueue::default(),
            bytes: 0,
            has_others: false,
            end,
        });
        Ok(())
    }

    /// Checks that a message may be added to a bundle; [`PendingBundles::keep`] then adds it. Opens the bundle if it
    /// does not exist.
    ///
    /// # Errors
    /// [`BundleFailed`]: the bundle is closed or has other flags, the message may not be in a bundle, or there are
    /// too many messages.
    pub(crate) fn may_add(
        &mut self,
        now: Instant,
        channel: ChannelId,
        (id, flags): (BundleId, BundleFlags),
        message: &Message,
        version: Version,
    ) -> Result<(), BundleFailed> {
        if !can_be_in(&message.body) {
            return Err(BundleFailed::MsgUnsup);
        }
        if self.position(channel, id).is_err() {
            self.open(now, channel, id, flags)?;
        }
        let free = MAX_BYTES - self.bytes;
        let bundle = self.of(now, channel, id, flags)?;
        if bundle.is_closed {
            return Err(BundleFailed::BundleClosed);
        }
        let bytes = size(message, version);
        if bundle.messages.len() >= MAX_MESSAGES || bytes > free {
            return Err(BundleFailed::MsgTooMany);
        }
        bundle.bytes += bytes;
        self.bytes += bytes;
        Ok(())
    }

    /// Adds a message that [`PendingBundles::may_add`] allowed.
    pub(crate) fn keep(&mut self, channel: ChannelId, add: BundleAdd) {
        if let Ok(at) = self.position(channel, add.bundle) {
            let bundle = &mut self.list[at];
            bundle.has_others |= !matches!(add.message.body, Body::FlowMod(_) | Body::PacketOut(_));
            bundle.messages.push(add.message);
        }
    }

    /// Closes a bundle: no more messages can be added.
    ///
    /// # Errors
    /// [`BundleFailed`]: the bundle does not exist, is already closed, or has other flags.
    pub(crate) fn close(
        &mut self,
        now: Instant,
        channel: ChannelId,
        id: BundleId,
        flags: BundleFlags,
    ) -> Result<(), BundleFailed> {
        let bundle = self.of(now, channel, id, flags)?;
        if std::mem::replace(&mut bundle.is_closed, true) { Err(BundleFailed::BundleClosed) } else { Ok(()) }
    }

    /// Keeps a bundle without time limit, because its commit has arrived but is delayed.
    pub(crate) fn hold(&mut self, channel: ChannelId, id: BundleId, flags: BundleFlags) {
        let Ok(at) = self.position(channel, id) else { return };
        let bundle = &mut self.list[at];
        if bundle.flags == flags && matches!(bundle.end, BundleDeadline::GiveUp(_)) {
            bundle.end = BundleDeadline::Held;
        }
    }

    /// Moves a bundle's messages out, until [`PendingBundles::put_back`]. Returns `None` if the bundle does not exist.
    pub(crate) fn lend(&mut self, channel: ChannelId, id: BundleId) -> Option<ChunkedQueue<Box<Message>>> {
        let at = self.position(channel, id).ok()?;
        Some(std::mem::take(&mut self.list[at].messages))
    }

    /// Returns messages that were moved out by [`PendingBundles::lend`].
    pub(crate) fn put_back(&mut self, channel: ChannelId, id: BundleId, messages: ChunkedQueue<Box<Message>>) {
        if let Ok(at) = self.position(channel, id) {
            self.list[at].messages = messages;
        }
    }

    /// Removes a bundle to commit it.
    ///
    /// # Errors
    /// [`BundleFailed`]: the bundle does not exist or has other flags.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        channel: ChannelId,
        id: BundleId,
        flags: BundleFlags,
    ) -> Result<PendingBundle, BundleFailed> {
        self.of(now, channel, id, flags)?;
        self.discard(channel, id)
    }

    /// Schedules a bundle's commit, in answer to the message `xid`.
    ///
    /// # Errors
    /// [`BundleFailed`]: the bundle does not exist or has other flags.
    pub(crate) fn schedule(
        &mut self,
        at: Instant,
        channel: ChannelId,
        (id, flags): (BundleId, BundleFlags),
        xid: u32,
    ) -> Result<(), BundleFailed> {
        let bundle = self.of(at, channel, id, flags)?;
        bundle.is_closed = true;
        bundle.end = BundleDeadline::Commit(at, xid);
        Ok(())
    }

    /// Removes a bundle to discard it.
    ///
    /// # Errors
    /// [`BundleFailed`]: the bundle does not exist.
    pub(crate) fn discard(&mut self, channel: ChannelId, id: BundleId) -> Result<PendingBundle, BundleFailed> {
        let at = self.position(channel, id)?;
        Ok(self.remove(at))
    }

    /// Discards a channel's bundles.
    pub(crate) fn forget(&mut self, channel: ChannelId) {
        while let Some(at) = self.list.iter().position(|bundle| bundle.channel == channel) {
            self.remove(at);
        }
    }

    /// Removes a bundle that is due, the earliest first.
    pub(crate) fn due(&mut self, now: Instant) -> Option<DueBundle> {
        let due = (0..self.list.len()).filter(|at| self.list[*at].end.at() <= now);
        let at = due.min_by_key(|at| self.list[*at].end.at())?;
        let bundle = self.remove(at);
        Some(match bundle.end {
            BundleDeadline::Commit(_, xid) => DueBundle::Commit(bundle, xid),
            BundleDeadline::GiveUp(_) | BundleDeadline::Held => DueBundle::GiveUp(bundle.channel, bundle.id),
        })
    }

    /// Returns the time when the next bundle is due.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.list.iter().map(|bundle| bundle.end.at()).filter(|at| *at != Instant::FAR).min()
    }

    fn position(&self, channel: ChannelId, id: BundleId) -> Result<usize, BundleFailed> {
        let found = self.list.iter().position(|bundle| (bundle.channel, bundle.id) == (channel, id));
        found.ok_or(BundleFailed::BadId)
    }

    /// Returns the bundle that a message with these flags names, and restarts its time limit.
    fn of(
        &mut self,
        now: Instant,
        channel: ChannelId,
        id: BundleId,
        flags: BundleFlags,
    ) -> Result<&mut PendingBundle, BundleFailed> {
        let at = self.position(channel, id)?;
        let bundle = &mut self.list[at];
        if bundle.flags != flags {
            return Err(BundleFailed::BadFlags);
        }
        match &mut bundle.end {
            BundleDeadline::GiveUp(at) => *at = now + PATIENCE,
            // A scheduled bundle can only be discarded.
            BundleDeadline::Commit(..) => return Err(BundleFailed::BundleInProgress),
            BundleDeadline::Held => {}
        }
        Ok(bundle)
    }

    fn remove(&mut self, at: usize) -> PendingBundle {
        let bundle = self.list.remove(at);
        self.bytes -= bundle.bytes;
        bundle
    }
}

impl BundleDeadline {
    fn at(self) -> Instant {
        match self {
            BundleDeadline::GiveUp(at) | BundleDeadline::Commit(at, _) => at,
            BundleDeadline::Held => Instant::FAR,
        }
    }
}

/// Returns true for messages that are allowed in a bundle: those that do nothing but change the switch, and
/// packet-outs.
fn can_be_in(body: &Body) -> bool {
    matches!(
        body,
        Body::FlowMod(_)
            | Body::GroupMod(_)
            | Body::MeterMod(_)
            | Body::PortMod(_)
            | Body::TableMod(_)
            | Body::PacketOut(_)
    )
}

/// Returns the encoded size of a message in bytes, or a slightly larger number.
fn size(message: &Message, version: Version) -> usize {
    if let Body::FlowMod(flow) = &message.body
        && let Some(bytes) = size_of_plain(flow)
    {
        return bytes;
    }
    let mut bytes = Vec::new();
    // A decoded message can be encoded again. If encoding fails, the largest size is assumed.
    codec::encode(message, version, &mut bytes).map_or(usize::from(u16::MAX), |()| bytes.len())
}

/// Estimates the size like [`size`], without encoding, for flow-mods with only common parts, which arrive by the
/// hundred thousand. Returns `None` for others.
fn size_of_plain(flow: &FlowMod) -> Option<usize> {
    const FIXED: usize = 64;
    const ACTION: usize = 16;
    const SET_FIELD: usize = 40;
    let mut bytes = FIXED + flow.instructions.len() * 24;
    for field in &flow.matching.fields {
        let MatchField::Known { field, mask, .. } = field else { return None };
        bytes += 10 + field.bytes() * if mask.is_some() { 2 } else { 1 };
    }
    for instruction in &flow.instructions {
        match instruction {
            Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => {
                for action in actions {
                    bytes += match action {
                        Action::SetField { .. } | Action::SetFieldMasked { .. } => SET_FIELD,
                        Action::Output { .. } | Action::Group(_) | Action::PushVlan(_) | Action::PopVlan => ACTION,
                        _ => return None,
                    }
                }
            }
            Instruction::GotoTable(_)
            | Instruction::WriteMetadata { .. }
            | Instruction::ClearActions
            | Instruction::Meter(_) => {}
            _ => return None,
        }
    }
    Some(bytes)
}
