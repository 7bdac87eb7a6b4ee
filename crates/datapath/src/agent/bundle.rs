//! Bundle messages (OpenFlow 1.4.1, 7.3.9; OpenFlow 1.5.1, 7.3.9.8 for those with a time). See [`crate::bundle`].
use super::{Request, start_of};
use crate::bundle::{Bundle, Due, Failure};
use crate::{ChannelId, Datapath, Output};
use weir_openflow::Version;
use weir_openflow::model::bundle::{
    BundleAdd, BundleCommand, BundleControl, BundleFeatures, BundleFeaturesProperty, BundleFeaturesRequest,
    BundleFlags, BundleId, BundleProperty,
};
use weir_openflow::model::error::{BundleFailed, ErrorMessage};
use weir_openflow::model::{Body, ErrorType, Message};
use weir_packet::FramePool;
use weir_units::Instant;

/// `OFPBF_TIME_SET_SCHED` of a features request: it sets tolerances.
const SETS_SCHEDULE: u32 = 1 << 1;

impl Datapath {
    /// # Errors
    /// [`BundleFailed`]. The error of a message that failed is sent before that of the commit.
    pub(super) fn bundle_control(
        &mut self,
        control: &BundleControl,
        request: &mut Request<'_>,
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
                    // Answered when it is carried out.
                    return Ok(self.bundles.schedule(at, channel, (id, flags), request.xid)?);
                }
                let bundle = self.bundles.take(now, channel, id, flags)?;
                return self.commit_bundle(bundle, request);
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

    /// # Errors
    /// [`BundleFailed`]; the bundle is as it was.
    pub(super) fn bundle_add(&mut self, add: &BundleAdd, request: &mut Request<'_>) -> Result<(), ErrorType> {
        check_flags(add.flags, request.version)?;
        if add.message.xid != request.xid {
            return Err(BundleFailed::MsgBadXid.into());
        }
        let key = (add.bundle, add.flags);
        Ok(self.bundles.add(request.now, request.channel, key, (*add.message).clone(), request.version)?)
    }

    fn commit_bundle(&mut self, bundle: Bundle, request: &mut Request<'_>) -> Result<(), ErrorType> {
        let (id, flags) = (bundle.id, bundle.flags());
        match self.commit(bundle.into_messages(), request) {
            Ok(()) => reply_with(BundleCommand::CommitReply, id, flags, request),
            Err(failure) => {
                let Failure { message, error } = *failure;
                let data = start_of(&message, request.version).into();
                let body = Body::Error(ErrorMessage { error, data });
                request.out.messages.push((request.channel, Message { xid: message.xid, body }));
                return Err(BundleFailed::MsgFailed.into());
            }
        }
        Ok(())
    }

    /// Carries out bundles whose time has come and gives up those whose controller is silent; says when the next is due.
    pub(crate) fn expire_bundles(&mut self, now: Instant, out: &mut Output) -> Option<Instant> {
        while let Some(due) = self.bundles.due(now) {
            match due {
                Due::Commit(bundle, xid) => self.commit_due(now, bundle, xid, out),
                Due::GiveUp(channel, id) => self.refuse(channel, id, 0, BundleFailed::Timeout, out),
            }
        }
        self.bundles.next()
    }

    fn commit_due(&mut self, now: Instant, bundle: Bundle, xid: u32, out: &mut Output) {
        let (channel, id) = (bundle.channel, bundle.id);
        let Some(version) = self.plane.channels.version(channel) else { return };
        let mut request = Request { now, channel, version, xid, pool: &mut FramePool::default(), out };
        if self.commit_bundle(bundle, &mut request).is_err() {
            self.refuse(channel, id, xid, BundleFailed::MsgFailed, out);
        }
    }

    /// Tells a channel that a bundle of its failed, with a message that says which.
    fn refuse(&self, channel: ChannelId, bundle: BundleId, xid: u32, error: BundleFailed, out: &mut Output) {
        let Some(version) = self.plane.channels.version(channel) else { return };
        let command = BundleCommand::CommitRequest;
        let control = BundleControl { bundle, command, flags: BundleFlags::default(), properties: Vec::new() };
        let data = start_of(&Message { xid, body: Body::BundleControl(control) }, version).into();
        let body = Body::Error(ErrorMessage { error: error.into(), data });
        out.messages.push((channel, Message { xid, body }));
    }

    /// What bundles can do (OpenFlow 1.5.1, 7.3.5.20), with the tolerances of scheduled ones that a controller may set.
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

    /// When a commit is to happen, if not at once.
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

fn reply_with(command: BundleCommand, bundle: BundleId, flags: BundleFlags, request: &mut Request<'_>) {
    request.reply(Body::BundleControl(BundleControl { bundle, command, flags, properties: Vec::new() }));
}

fn check_flags(flags: BundleFlags, version: Version) -> Result<(), BundleFailed> {
    let times = if version >= Version::V15 { BundleFlags::TIME.0 } else { 0 };
    let known = BundleFlags::ATOMIC.0 | BundleFlags::ORDERED.0 | times;
    if flags.0 & !known != 0 { Err(BundleFailed::BadFlags) } else { Ok(()) }
}
