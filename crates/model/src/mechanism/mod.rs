//! Models effects that simple queues omit: writes that seize the data path, packets that arrive before their entry,
//! batches of packets, release at regular times, and TCP from its start.
mod batching;
mod before_entry;
mod bulk;
mod interference;
mod tick;

pub use batching::{BATCH_MAX, BatchStage, BatchState, Polling, PollingDelay};
pub use before_entry::{BeforeEntry, Flows, SetUp};
pub use bulk::{Bulk, Transfer};
pub use interference::{Interference, InterferenceState, effective_share, write_length_s};
pub use tick::{TICK_PACKETS_MAX, tick_s};

pub(crate) use interference::Preempted;
