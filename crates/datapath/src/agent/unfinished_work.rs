//! Continues work that a message began and that takes several steps, between which packets are forwarded.
use super::{BundleCommit, SweepJob};
use crate::bundle::PendingBundle;
use crate::journal::Journal;
use crate::{Datapath, DatapathOutput};
use weir_openflow::Version;
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

impl UnfinishedWork {
    /// Returns the commit of a bundle, as the message `xid` of its channel requests.
    pub(super) fn commit(bundle: PendingBundle, version: Version, xid: u32, journal: &Journal) -> UnfinishedWork {
        UnfinishedWork::Commit(Box::new(BundleCommit::new(bundle, version, xid, journal)))
    }

    /// Returns true if work is left.
    pub(crate) fn is_some(&self) -> bool {
        match self {
            UnfinishedWork::None => false,
            UnfinishedWork::Commit(_) | UnfinishedWork::Job(_) => true,
        }
    }

    /// Runs the next step, which leaves the rest of the work in the datapath.
    pub(crate) fn go_on(self, datapath: &mut Datapath, now: Instant, pool: &mut FramePool, out: &mut DatapathOutput) {
        match self {
            UnfinishedWork::None => {}
            UnfinishedWork::Commit(commit) => commit.go_on(datapath, now, pool, out),
            UnfinishedWork::Job(job) => job.go_on(datapath, now, pool, out),
        }
    }
}
