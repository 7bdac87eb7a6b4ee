//! Applications that come with weir.
pub mod access_list;
pub mod config;
pub mod dhcp;
pub mod monitor;
pub mod router;
#[cfg(test)]
pub(crate) mod test_bed;

pub use config::{ApplicationTables, ApplicationTablesError, KEY_EXAMPLES, NetworkFile, NetworkFileError};
