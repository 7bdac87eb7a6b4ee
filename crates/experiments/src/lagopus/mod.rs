//! R. Rahimi, M. Veeraraghavan, Y. Nakajima, H. Takahashi, Y. Nakajima, S. Okamoto, N. Yamanaka: A High-Performance OpenFlow Software
//! Switch, IEEE HPSR 2016. It measured Lagopus, a switch of receive, worker and transmit threads with rings between them.
pub(crate) mod loop_count;
mod network;
pub(crate) mod table_size;
pub(crate) mod workers;

use weir_emulator::result::Machine;

/// Workers that a case asks for, as far as the machine has processors: more would wait for each other.
fn workers_here(published: usize) -> usize {
    published.min(Machine::this().cores).max(1)
}
