//! Continues work that a message began and that takes several steps, between which packets are forwarded.
use super::{BundleCommit, SweepJob};
use crate::{Datapath, DatapathOutput};
use weir_packet::FramePool;
use weir_units::Instant;

/// The work in progress. There is at most one, because messages take effect in order.
#[derive(Debug, Default)]
pub(crate) enum UnfinishedWork {
    #[default]
    None,
    /// A bundle is being committed.
    Commit(Box<BundleCommit>),
    /// A message changes many entries.
    Job(Box<SweepJob>),
}

impl Datapath {
    /// Returns true while a bundle is being committed or a message about many entries is unfinished. Then the caller
    /// must call [`Datapath::go_on`] until it is done, and pass no other controller requests to the datapath.
    pub fn is_busy(&self) -> bool {
        match self.work {
            UnfinishedWork::None => false,
            UnfinishedWork::Commit(_) | UnfinishedWork::Job(_) => true,
        }
    }

    /// Continues the unfinished bundle or message for about ten microseconds. An atomic bundle that changes more than
    /// flow entries is committed in a single call.
    pub fn go_on(&mut self, now: Instant, pool: &mut FramePool, out: &mut DatapathOutput) {
        self.tables.start_generation();
        match std::mem::take(&mut self.work) {
            UnfinishedWork::None => {}
            UnfinishedWork::Commit(commit) => self.go_on_with_commit(commit, now, pool, out),
            UnfinishedWork::Job(job) => self.go_on_with_job(job, now, pool, out),
        }
    }

    /// Finishes the unfinished bundle or message.
    pub(crate) fn finish_work(&mut self, now: Instant, pool: &mut FramePool, out: &mut DatapathOutput) {
        while self.is_busy() {
            self.go_on(now, pool, out);
        }
    }
}
