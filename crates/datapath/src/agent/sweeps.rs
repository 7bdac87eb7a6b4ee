//! Runs messages about many entries in steps ([`crate::flow_mod::EntrySweep`]) and answers them when they are done.
use super::{AgentRequest, UnfinishedWork, released};
use crate::channels::refusal;
use crate::flow_mod::{EntrySweep, STEP};
use crate::{ChannelId, Datapath, DatapathOutput};
use weir_openflow::Version;
use weir_openflow::model::{Body, BufferId, ErrorType, Message, NxMessage};
use weir_packet::FramePool;
use weir_units::Instant;

/// Remaining part of a change of many flow entries that a message began.
pub(crate) type RestOfSweep = Box<EntrySweep<'static>>;

/// A message that is not finished yet.
#[derive(Debug)]
pub(crate) struct SweepJob {
    channel: ChannelId,
    version: Version,
    message: Message,
    sweep: RestOfSweep,
}

impl SweepJob {
    pub(super) fn new(channel: ChannelId, version: Version, message: Message, sweep: RestOfSweep) -> SweepJob {
        SweepJob { channel, version, message, sweep }
    }

    /// Continues an unfinished message.
    pub(super) fn go_on(
        mut self: Box<Self>,
        datapath: &mut Datapath,
        now: Instant,
        pool: &mut FramePool,
        out: &mut DatapathOutput,
    ) {
        let by = (self.channel, self.message.xid);
        let swept = datapath.sweep_on(now, by, &mut self.sweep, &mut { STEP }, out);
        if swept == Ok(false) {
            datapath.work = UnfinishedWork::Job(self);
            return datapath.settle(now, out);
        }
        let mut request = AgentRequest::new(now, self.channel, self.version, self.message.xid, pool, out);
        let released =
            swept.and_then(|_| self.buffer().map_or(Ok(()), |buffer| datapath.release(buffer, &mut request)));
        if let Err(error) = released {
            request.out.messages.push((self.channel, refusal(&self.message, self.version, error)));
        }
        datapath.settle(now, out);
    }

    /// Returns the buffered packet to release when the change is done.
    fn buffer(&self) -> Option<BufferId> {
        match &self.message.body {
            Body::FlowMod(flow) => released(flow),
            Body::Nx(message) => match &**message {
                NxMessage::FlowMod(flow) => released(flow),
                _ => None,
            },
            _ => None,
        }
    }
}

impl Datapath {
    /// Begins to remove entries as a message causes it. Returns the rest of the work if many entries are concerned.
    pub(crate) fn sweep(
        &mut self,
        now: Instant,
        sweep: EntrySweep<'static>,
        out: &mut DatapathOutput,
    ) -> Option<RestOfSweep> {
        let mut gone = Vec::new();
        // A sweep that only removes entries cannot fail.
        let rest = self.edit_tables().begin(now, sweep, &mut gone).unwrap_or_default();
        self.plane.channels.tell_removed(gone, out);
        rest.map(Box::new)
    }

    /// Finishes the sweep that [`Datapath::sweep`] began.
    pub(crate) fn finish_sweep(&mut self, now: Instant, rest: Option<RestOfSweep>, out: &mut DatapathOutput) {
        let mut gone = Vec::new();
        // A sweep that only removes entries cannot fail.
        let _ = self.edit_tables().finish(now, rest.map(|sweep| *sweep), &mut gone);
        self.plane.channels.tell_removed(gone, out);
    }

    /// Continues a sweep for a channel's message until its cost reaches `most`. Returns true if it is done.
    ///
    /// # Errors
    /// The error to reply with; nothing has changed.
    pub(crate) fn sweep_on(
        &mut self,
        now: Instant,
        by: (ChannelId, u32),
        sweep: &mut EntrySweep<'_>,
        most: &mut usize,
        out: &mut DatapathOutput,
    ) -> Result<bool, ErrorType> {
        self.journal.by = Some((self.plane.channels.main_of(by.0), by.1));
        let mut gone: Vec<_> = Vec::new();
        let is_done = self.edit_tables().go_on(now, sweep, most, &mut gone);
        self.plane.channels.tell_removed(gone, out);
        is_done
    }
}
