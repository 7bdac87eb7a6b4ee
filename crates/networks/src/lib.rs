//! Manages virtual networks: users request them, a store keeps them, and switches are made to have them.
//!
//! Start with:
//!
//! - [`manager::NetworkManager`]: states of networks, owners, quotas, stages and events. Without I/O and clock.
//! - [`plan::plan`]: the ordered steps from what switches have to what they should have. A pure function.
//! - [`store::NetworkStore`]: the file that keeps all of it. Each change is written before it is carried out.
//! - [`switches::SwitchAccess`]: what is needed of switches. [`switches::LiveSwitches`] are weir's, over their control
//!   sockets.
//! - [`service::NetworkService`]: all of these together. Killed at any moment and started again, it goes on.
//!
//! Not in this crate: the decision on requests (`weir-vnet`), and virtual switches themselves (`weir-slicing`).
pub mod manager;
pub mod plan;
pub mod service;
pub mod store;
pub mod switches;
