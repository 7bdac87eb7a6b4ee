//! Handles bundle messages (OpenFlow 1.4.1, 7.3.9; OpenFlow 1.5.1, 7.3.9.8 for scheduled bundles). See
//! [`crate::bundle`].
use super::commit::{BundleCommit, BundleFailure, CommitProgress};
use super::{AgentRequest, UnfinishedWork};
use crate::bundle::{DueBundle, PendingBundles};
use crate::channels::{DatapathChannels, refusal};
use crate::{ChannelId, Datapath, DatapathOutput};
use weir_openflow::Version;
use weir_openflow::model::bundle::{BundleAdd, BundleCommand, BundleControl, BundleFlags, BundleId};
use weir_openflow::model::error::BundleFailed;
use weir_openflow::model::{Body, ErrorType, Message};
use weir_packet::FramePool;
use weir_units::Instant;

impl Datapath {
    /// Handles a bundle control message. A commit only begins here, or is scheduled.
    ///
    /// # Errors
    /// [`BundleFailed`]. The error of a message that failed is sent before that of the commit.
    pub(super) fn bundle_control(
        &mut self,
        control: &BundleControl,
        request: &mut AgentRequest<'_>,
    ) -> Result<(), ErrorType> {
        let (now, channel, id, flags) = (request.now, request.channel, control.bundle, control.flags);
        let reply = match control.command {
            BundleCommand::OpenRequest => {
                check_flags(flags, request.version)?;
                self.bundles.open(now, channel, id, flags)?;
                BundleCommand::OpenReply
            }
            BundleCommand::CloseRequest => {
                self.bundles.close(now, channel, id, flags)?;
                BundleCommand::CloseReply
            }
            BundleCommand::CommitRequest => {
                if let Some(at) = self.schedule.time_of(control, now)? {
                    // The answer follows when the bundle is committed.
                    return Ok(self.bundles.schedule(at, channel, (id, flags), request.xid)?);
                }
                let bundle = self.bundles.take(now, channel, id, flags)?;
                self.work = UnfinishedWork::commit(bundle, request.version, request.xid, &self.journal);
                return Ok(());
            }
            BundleCommand::DiscardRequest => {
                self.bundles.discard(channel, id)?;
                BundleCommand::DiscardReply
            }
            _ => return Err(BundleFailed::BadType.into()),
        };
        reply_with(reply, id, flags, request);
        Ok(())
    }

    /// Begins scheduled commits that are due, one at a time, and discards bundles whose controller has been silent
    /// for too long. Returns the time of the next call.
    pub(crate) fn expire_bundles(&mut self, now: Instant, out: &mut DatapathOutput) -> Option<Instant> {
        while !self.is_busy()
            && let Some(due) = self.bundles.due(now)
        {
            match due {
                DueBundle::Commit(bundle, xid) => {
                    if let Some(version) = self.plane.channels.version(bundle.channel) {
                        self.work = UnfinishedWork::commit(bundle, version, xid, &self.journal);
                    }
                }
                DueBundle::GiveUp(channel, id) => {
                    refuse(&self.plane.channels, channel, (id, BundleFlags::default()), 0, BundleFailed::Timeout, out);
                }
            }
        }
        if self.is_busy() { Some(now) } else { self.bundles.next() }
    }
}

impl BundleCommit {
    /// Continues to commit a bundle.
    pub(super) fn go_on(
        mut self: Box<Self>,
        datapath: &mut Datapath,
        now: Instant,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        let step = loop {
            let step = self.step(datapath, now, pool, out);
            if !(matches!(step, CommitProgress::More) && self.is_in_one()) {
                break step;
            }
        };
        match step {
            CommitProgress::More => return datapath.work = UnfinishedWork::Commit(self),
            CommitProgress::Done => {
                let mut request = AgentRequest::new(now, self.channel, self.version, self.xid, pool, out);
                reply_with(BundleCommand::CommitReply, self.id, self.flags, &mut request);
            }
            CommitProgress::Failed(failure) => {
                let BundleFailure { message, error } = *failure;
                out.messages.push((self.channel, refusal(&message, self.version, error)));
                let (id, flags) = (self.id, self.flags);
                refuse(&datapath.plane.channels, self.channel, (id, flags), self.xid, BundleFailed::MsgFailed, out);
            }
        }
        datapath.settle(now, out);
    }
}

/// Checks that a message may be added to a bundle; [`PendingBundles::keep`] adds it.
///
/// # Errors
/// [`BundleFailed`]; the bundle is unchanged.
pub(super) fn bundle_add(
    bundles: &mut PendingBundles,
    add: &BundleAdd,
    request: &AgentRequest<'_>,
) -> Result<(), ErrorType> {
    check_flags(add.flags, request.version)?;
    if add.message.xid != request.xid {
        return Err(BundleFailed::MsgBadXid.into());
    }
    let key = (add.bundle, add.flags);
    Ok(bundles.may_add(request.now, request.channel, key, &add.message, request.version)?)
}

/// Sends the error of a failed bundle, quoting a commit request that identifies the bundle.
fn refuse(
    channels: &DatapathChannels,
    channel: ChannelId,
    (bundle, flags): (BundleId, BundleFlags),
    xid: u32,
    error: BundleFailed,
    out: &mut DatapathOutput,
) {
    let command = BundleCommand::CommitRequest;
    let control = BundleControl { bundle, command, flags, properties: Vec::new() };
    let commit = Message { xid, body: Body::BundleControl(control) };
    channels.refuse(channel, &commit, error.into(), out);
}

fn reply_with(command: BundleCommand, bundle: BundleId, flags: BundleFlags, request: &mut AgentRequest<'_>) {
    request.reply(Body::BundleControl(BundleControl { bundle, command, flags, properties: Vec::new() }));
}

fn check_flags(flags: BundleFlags, version: Version) -> Result<(), BundleFailed> {
    let times = if version >= Version::V15 { BundleFlags::TIME.0 } else { 0 };
    let known = BundleFlags::ATOMIC.0 | BundleFlags::ORDERED.0 | times;
    if flags.0 & !known != 0 { Err(BundleFailed::BadFlags) } else { Ok(()) }
}
