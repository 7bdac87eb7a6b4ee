//! Experiments of R. Rahimi, M. Veeraraghavan, Y. Nakajima, H. Takahashi, Y. Nakajima, S. Okamoto, N. Yamanaka: A
//! High-Performance OpenFlow Software Switch, IEEE HPSR 2016. The paper measured Lagopus, a switch of receive, worker
//! and transmit threads with rings between them.
pub(crate) mod loop_count;
mod network;
pub(crate) mod table_size;
pub(crate) mod workers;

use weir_network::result::LabMachineInfo;

/// Returns the number of workers for a case, limited to the machine's processors: more would wait for each other.
fn workers_here(published: usize) -> usize {
    published.min(LabMachineInfo::this().cores).max(1)
}
