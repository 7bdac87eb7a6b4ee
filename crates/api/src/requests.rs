//! Counts of the interface's requests.
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Requests to an interface since its start.
#[derive(Debug, Default)]
pub struct RequestCounts {
    by_status: Mutex<BTreeMap<u16, u64>>,
}

impl RequestCounts {
    /// Returns the number of requests that were answered with each HTTP status, those refused and streams included.
    pub fn by_status(&self) -> BTreeMap<u16, u64> {
        self.by_status.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Counts a request that is answered with this status.
    pub(crate) fn count(&self, status: u16) {
        *self.by_status.lock().unwrap_or_else(PoisonError::into_inner).entry(status).or_default() += 1;
    }
}
