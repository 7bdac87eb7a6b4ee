//! Handles bundle messages (OpenFlow 1.4.1, 7.3.9; OpenFlow 1.5.1, 7.3.9.8 for scheduled bundles). See
//! [`crate::bundle`].
use super::commit::{BundleCommit, BundleFailure, CommitProgress};
use super::{AgentRequest, UnfinishedWork};
use crate::bundle::{DueBundle, PendingBundle};
use crate::channels::refusal;
use crate::{ChannelId, Datapath, DatapathOutput};
use weir_openflow::Version;
use weir_openflow::model::bundle::{
    BundleAdd, BundleCommand, BundleControl, BundleFeatures, BundleFeaturesProperty, BundleFeaturesRequest,
    BundleFlags, BundleId, BundleProperty,
};
use weir_openflow::model::error::BundleFailed;
use weir_openflow::model::{Body, ErrorType, Message};
use weir_packet::FramePool;
use weir_units::Instant;

/// `OFPBF_TIME_SET_SCHED` of a bundle features request: the request sets tolerances.
const SETS_SCHEDULE: u32 = 1 << 1;

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
                if let Some(at) = self.time_of(control, now)? {
                    // The answer follows when the bundle is committed.
                    return Ok(self.bundles.schedule(at, channel, (id, flags), request.xid)?);
                }
                let bundle = self.bundles.take(now, channel, id, flags)?;
                self.begin_commit(bundle, request.version, request.xid);
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

    /// Checks that a message may be added to a bundle; [`Bundles::keep`](crate::bundle::PendingBundles::keep) adds it.
    ///
    /// # Errors
    /// [`BundleFailed`]; the bundle is unchanged.
    pub(super) fn bundle_add(&mut self, add: &BundleAdd, request: &mut AgentRequest<'_>) -> Result<(), ErrorType> {
        check_flags(add.flags, request.version)?;
        if add.message.xid != request.xid {
            return Err(BundleFailed::MsgBadXid.into());
        }
        let key = (add.bundle, add.flags);
        Ok(self.bundles.may_add(request.now, request.channel, key, &add.message, request.version)?)
    }

    fn begin_commit(&mut self, bundle: PendingBundle, version: Version, xid: u32) {
        self.work = UnfinishedWork::Commit(Box::new(BundleCommit::new(bundle, version, xid, &self.journal)));
    }

    /// Continues to commit a bundle.
    pub(super) fn go_on_with_commit(
        &mut self,
        mut commit: Box<BundleCommit>,
        now: Instant,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        let step = loop {
            let step = commit.step(self, now, pool, out);
            if !(matches!(step, CommitProgress::More) && commit.is_in_one()) {
                break step;
            }
        };
        match step {
            CommitProgress::More => return self.work = UnfinishedWork::Commit(commit),
            CommitProgress::Done => {
                let mut request = AgentRequest::new(now, commit.channel, commit.version, commit.xid, pool, out);
                reply_with(BundleCommand::CommitReply, commit.id, commit.flags, &mut request);
            }
            CommitProgress::Failed(failure) => {
                let BundleFailure { message, error } = *failure;
                out.messages.push((commit.channel, refusal(&message, commit.version, error)));
                let (id, flags) = (commit.id, commit.flags);
                self.refuse(commit.channel, (id, flags), commit.xid, BundleFailed::MsgFailed, out);
            }
        }
        self.settle(now, out);
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
                        self.begin_commit(bundle, version, xid);
                    }
                }
                DueBundle::GiveUp(channel, id) => {
                    self.refuse(channel, (id, BundleFlags::default()), 0, BundleFailed::Timeout, out);
                }
            }
        }
        if self.is_busy() { Some(now) } else { self.bundles.next() }
    }

    /// Sends the error of a failed bundle, quoting a commit request that identifies the bundle.
    fn refuse(
        &self,
        channel: ChannelId,
        (bundle, flags): (BundleId, BundleFlags),
        xid: u32,
        error: BundleFailed,
        out: &mut DatapathOutput,
    ) {
        let command = BundleCommand::CommitRequest;
        let control = BundleControl { bundle, command, flags, properties: Vec::new() };
        let commit = Message { xid, body: Body::BundleControl(control) };
        self.plane.channels.refuse(channel, &commit, error.into(), out);
    }

    /// Returns the features of bundles (OpenFlow 1.5.1, 7.3.5.20). A request may set the tolerances of scheduled
    /// bundles.
    pub(super) fn bundle_features(&mut self, now: Instant, asked: &BundleFeaturesRequest) -> BundleFeatures {
        for property in &asked.properties {
            if let BundleFeaturesProperty::Time { max_future, max_past, .. } = property
                && asked.flags & SETS_SCHEDULE != 0
            {
                self.schedule.set_tolerances(*max_future, *max_past);
            }
        }
        let time = self.schedule.features(now);
        let timed = if time.is_some() { BundleFlags::TIME.0 } else { 0 };
        let capabilities = BundleFlags(BundleFlags::ATOMIC.0 | BundleFlags::ORDERED.0 | timed);
        BundleFeatures { capabilities, properties: time.into_iter().collect() }
    }

    /// Returns the time of a scheduled commit, or `None` if it is to happen at once.
    fn time_of(&self, control: &BundleControl, now: Instant) -> Result<Option<Instant>, BundleFailed> {
        if !control.flags.contains(BundleFlags::TIME) {
            return Ok(None);
        }
        let time = control.properties.iter().find_map(|property| match property {
            BundleProperty::Time(time) => Some(*time),
            BundleProperty::Other(_) => None,
        });
        match time {
            Some(time) => self.schedule.instant_of(time, now).map(|at| (at > now).then_some(at)),
            None => Ok(None),
        }
    }
}

fn reply_with(command: BundleCommand, bundle: BundleId, flags: BundleFlags, request: &mut AgentRequest<'_>) {
    request.reply(Body::BundleControl(BundleControl { bundle, command, flags, properties: Vec::new() }));
}

fn check_flags(flags: BundleFlags, version: Version) -> Result<(), BundleFailed> {
    let times = if version >= Version::V15 { BundleFlags::TIME.0 } else { 0 };
    let known = BundleFlags::ATOMIC.0 | BundleFlags::ORDERED.0 | times;
    if flags.0 & !known != 0 { Err(BundleFailed::BadFlags) } else { Ok(()) }
}
