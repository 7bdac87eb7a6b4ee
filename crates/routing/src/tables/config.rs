//! Settings of the keeping of tables.
use std::time::Duration;

/// Settings of the keeping of tables.
#[derive(Debug, Clone)]
pub struct TableConfig {
    /// Time for packets on a former way to arrive, before its entries are deleted. Default: 100 ms.
    pub drain: Duration,
    /// Longest time that packets need from one switch to the next, besides the delay of the link: they wait in queues.
    /// Default: 5 ms.
    pub transit: Duration,
    /// Time after a switch has answered a barrier until its entries are in effect: some switches answer too early
    /// (`barrier_lag` of a profile). Default: none.
    pub barrier_lag: Duration,
    /// Time after which entries of applications and routes between hosts that a switch has refused are asked for again:
    /// its table may have been full. Default: 10 s.
    pub retry_after: Duration,
}

impl Default for TableConfig {
    fn default() -> Self {
        TableConfig {
            drain: Duration::from_millis(100),
            transit: Duration::from_millis(5),
            barrier_lag: Duration::ZERO,
            retry_after: Duration::from_secs(10),
        }
    }
}
