//! Bundles: messages that a controller gathers and that take effect together (OpenFlow 1.4.1, 6.8 and 7.3.9; in 1.3 by the Open
//! Networking Foundation's extension 230).
//!
//! Every bundle is ordered, asked for or not, and if one of its messages fails nothing has changed: `commit` takes changes back by
//! the journal. Nothing else changes the switch meanwhile: what controllers ask for, time-outs and what packets teach waits. Packets are
//! forwarded meanwhile and see its messages take effect one after the other, unless it is to be atomic: then they see the flow entries as they were
//! until all messages have succeeded ([`FlowTable::hold`](crate::table::FlowTable::hold)). Only an atomic bundle that changes ports, groups,
//! meters or tables as well is carried out between two bursts of packets, however long they have to wait.
mod commit;
mod schedule;
mod timed;

pub(crate) use commit::{Commit, Failure, Step};
pub(crate) use schedule::Schedule;

use crate::ChannelId;
use crate::chunks::Chunks;
use std::time::Duration;
use weir_openflow::model::bundle::{BundleAdd, BundleFlags, BundleId};
use weir_openflow::model::error::BundleFailed;
use weir_openflow::model::{Action, Body, FlowMod, Instruction, MatchField, Message};
use weir_openflow::{Version, codec};
use weir_units::Instant;

/// Bundles of a channel at most.
pub(crate) const MAX_BUNDLES: usize = 64;
/// Messages of a bundle at most.
pub(crate) const MAX_MESSAGES: usize = 1 << 20;
/// Bytes of all messages in bundles, as they came, at most: a few hundred thousand flow-mods. Decoded they take several times that.
pub(crate) const MAX_BYTES: usize = 32 << 20;
/// How long the next message about a bundle is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// The bundles of all channels, in the order they were opened.
#[derive(Debug, Default)]
pub(crate) struct Bundles {
    list: Vec<Bundle>,
    /// Bytes of all their messages.
    bytes: usize,
}

/// A bundle that is not carried out yet.
#[derive(Debug)]
pub(crate) struct Bundle {
    pub(crate) channel: ChannelId,
    pub(crate) id: BundleId,
    flags: BundleFlags,
    is_closed: bool,
    /// Each in the memory it came in: large pieces that are freed have the allocator tidy up.
    messages: Chunks<Box<Message>>,
    bytes: usize,
    /// Whether it has messages that change more than flow entries.
    has_others: bool,
    end: End,
}

/// What ends a bundle if its controller is silent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// It is given up.
    GiveUp(Instant),
    /// It is carried out, in answer to the message with this transaction id.
    Commit(Instant, u32),
    /// Nothing: its commit came and takes its time.
    Held,
}

/// A bundle whose time has come.
#[derive(Debug)]
pub(crate) enum Due {
    /// To be carried out: the transaction id of the commit, and the messages.
    Commit(Bundle, u32),
    /// Nothing came for too long.
    GiveUp(ChannelId, BundleId),
}

impl Bundles {
    /// Opens a bundle.
    ///
    /// # Errors
    /// [`BundleFailed`]: the channel has it, or too many.
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
        let end = End::GiveUp(now + PATIENCE);
        self.list.push(Bundle {
            channel,
            id,
            flags,
            is_closed: false,
            messages: Chunks::default(),
            bytes: 0,
            has_others: false,
            end,
        });
        Ok(())
    }

    /// Whether a message may be added, which [`Bundles::keep`] does then; a bundle that is not there is opened.
    ///
    /// # Errors
    /// [`BundleFailed`]: it is closed, its flags are others, or there are too many messages.
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

    /// Adds a message that may be.
    pub(crate) fn keep(&mut self, channel: ChannelId, add: BundleAdd) {
        if let Ok(at) = self.position(channel, add.bundle) {
            let bundle = &mut self.list[at];
            bundle.has_others |= !matches!(add.message.body, Body::FlowMod(_) | Body::PacketOut(_));
            bundle.messages.push(add.message);
        }
    }

    /// Closes a bundle: no message can be added any more.
    ///
    /// # Errors
    /// [`BundleFailed`]: it is not there, closed, or has other flags.
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

    /// Waits for a bundle's commit, which has come, as long as it takes.
    pub(crate) fn hold(&mut self, channel: ChannelId, id: BundleId, flags: BundleFlags) {
        let Ok(at) = self.position(channel, id) else { return };
        let bundle = &mut self.list[at];
        if bundle.flags == flags && matches!(bundle.end, End::GiveUp(_)) {
            bundle.end = End::Held;
        }
    }

    /// Lends out a bundle's messages, for [`Bundles::put_back`]; none if it is not there.
    pub(crate) fn lend(&mut self, channel: ChannelId, id: BundleId) -> Option<Chunks<Box<Message>>> {
        let at = self.position(channel, id).ok()?;
        Some(std::mem::take(&mut self.list[at].messages))
    }

    /// Takes back what was lent.
    pub(crate) fn put_back(&mut self, channel: ChannelId, id: BundleId, messages: Chunks<Box<Message>>) {
        if let Ok(at) = self.position(channel, id) {
            self.list[at].messages = messages;
        }
    }

    /// Takes a bundle out, to carry it out.
    ///
    /// # Errors
    /// [`BundleFailed`]: it is not there or has other flags.
    pub(crate) fn take(
        &mut self,
        now: Instant,
        channel: ChannelId,
        id: BundleId,
        flags: BundleFlags,
    ) -> Result<Bundle, BundleFailed> {
        self.of(now, channel, id, flags)?;
        self.discard(channel, id)
    }

    /// Has a bundle carried out at a time, in answer to `xid`.
    ///
    /// # Errors
    /// [`BundleFailed`]: it is not there or has other flags.
    pub(crate) fn schedule(
        &mut self,
        at: Instant,
        channel: ChannelId,
        (id, flags): (BundleId, BundleFlags),
        xid: u32,
    ) -> Result<(), BundleFailed> {
        let bundle = self.of(at, channel, id, flags)?;
        bundle.is_closed = true;
        bundle.end = End::Commit(at, xid);
        Ok(())
    }

    /// Takes a bundle out, to forget it.
    ///
    /// # Errors
    /// [`BundleFailed`]: it is not there.
    pub(crate) fn discard(&mut self, channel: ChannelId, id: BundleId) -> Result<Bundle, BundleFailed> {
        let at = self.position(channel, id)?;
        Ok(self.remove(at))
    }

    /// Forgets a channel's bundles.
    pub(crate) fn forget(&mut self, channel: ChannelId) {
        while let Some(at) = self.list.iter().position(|bundle| bundle.channel == channel) {
            self.remove(at);
        }
    }

    /// Takes out a bundle whose time has come, the earliest first.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Due> {
        let due = (0..self.list.len()).filter(|at| self.list[*at].end.at() <= now);
        let at = due.min_by_key(|at| self.list[*at].end.at())?;
        let bundle = self.remove(at);
        Some(match bundle.end {
            End::Commit(_, xid) => Due::Commit(bundle, xid),
            End::GiveUp(_) | End::Held => Due::GiveUp(bundle.channel, bundle.id),
        })
    }

    /// When the next bundle's time comes.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.list.iter().map(|bundle| bundle.end.at()).filter(|at| *at != Instant::FAR).min()
    }

    fn position(&self, channel: ChannelId, id: BundleId) -> Result<usize, BundleFailed> {
        let found = self.list.iter().position(|bundle| (bundle.channel, bundle.id) == (channel, id));
        found.ok_or(BundleFailed::BadId)
    }

    /// A bundle that a message with these flags is about; it is waited for anew.
    fn of(
        &mut self,
        now: Instant,
        channel: ChannelId,
        id: BundleId,
        flags: BundleFlags,
    ) -> Result<&mut Bundle, BundleFailed> {
        let at = self.position(channel, id)?;
        let bundle = &mut self.list[at];
        if bundle.flags != flags {
            return Err(BundleFailed::BadFlags);
        }
        match &mut bundle.end {
            End::GiveUp(at) => *at = now + PATIENCE,
            // Only discarding it is possible now.
            End::Commit(..) => return Err(BundleFailed::BundleInProgress),
            End::Held => {}
        }
        Ok(bundle)
    }

    fn remove(&mut self, at: usize) -> Bundle {
        let bundle = self.list.remove(at);
        self.bytes -= bundle.bytes;
        bundle
    }
}

impl End {
    fn at(self) -> Instant {
        match self {
            End::GiveUp(at) | End::Commit(at, _) => at,
            End::Held => Instant::FAR,
        }
    }
}

/// Messages that change the switch and nothing else: those can be in a bundle.
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

/// Bytes of a message as it came, or not much more.
fn size(message: &Message, version: Version) -> usize {
    if let Body::FlowMod(flow) = &message.body
        && let Some(bytes) = size_of_plain(flow)
    {
        return bytes;
    }
    let mut bytes = Vec::new();
    // What was decoded also encodes; what does not is no less than the largest.
    codec::encode(message, version, &mut bytes).map_or(usize::from(u16::MAX), |()| bytes.len())
}

/// The same for flow-mods that have only what most have: they come by the hundred thousand.
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
