//! Models effects that simple queues omit: writes that seize the data path, packets that arrive before their entry,
//! batches of packets, release at regular times, and TCP from its start.
mod batching;
mod before_entry;
mod interference;
mod tcp_bulk;
mod tick;

pub use batching::{BATCH_MAX, BatchStage, BatchStageState, PollingDelay, PollingSwitch};
pub use before_entry::{FlowSetupLoad, FlowSetupTime, NewFlows};
pub use interference::{WriteInterference, WriteInterferenceState, effective_share, write_length_s};
pub use tcp_bulk::{TcpBulkResult, TcpBulkTransfer};
pub use tick::{TICK_PACKETS_MAX, tick_s};

pub(crate) use interference::PreemptedSojourn;
