//! Virtual switches: how a switch is divided into tenants with guaranteed shares of ports, buffers and time.
//!
//! A [`VirtualSwitch`] describes one tenant's switch, and a [`FabricSpec`] the capacities that all of a switch's
//! virtual switches are cut from. Both become configurations of `weir_fabric`, which admits them.
//!
//! Received frames are sorted by virtual switch ([`TenantClassifier`]), and their edge tags are removed ([`edge`]).
//! After the virtual switch's datapath they cross the fabric ([`FabricIngress`]) to the line of an output
//! ([`FabricEgressLine`]). [`CpuShares`] divides the time of an engine that has more packets than it can process.
//!
//! No part has a thread, clock or socket, so that the live switch and networks in virtual time use the same code.
//!
//! Left out: queues, disciplines and admission (`weir_fabric`), the form of virtual switches in files
//! (`weir_scenario`, which a [`VirtualSwitchReader`] brings to running switches), and the channels and requests of
//! running virtual switches (`weir_switch`).
//!
//! Reading order: `virtual_switch`, `fabric_spec` and `packet_selector` (what is said of virtual switches),
//! `first_lookup` (which one a packet belongs to), `fabric_ingress` and `fabric_egress` (the way to the output).
mod cpu_shares;
mod datapath_config;
pub mod edge;
mod fabric_config;
mod fabric_egress;
mod fabric_ingress;
mod fabric_spec;
mod first_lookup;
mod packet_selector;
mod reader;
mod tenant_classifier;
mod virtual_port;
mod virtual_switch;

pub use cpu_shares::{CpuShareUsage, CpuShares};
pub use fabric_egress::FabricEgressLine;
pub use fabric_ingress::{FabricIngress, FabricIngressSource};
pub use fabric_spec::{FabricPort, FabricSpec};
pub use first_lookup::{FirstLookup, PortFirstLookup, SelectorTuple, VirtualInputPort};
pub use packet_selector::PacketSelector;
pub use reader::VirtualSwitchReader;
pub use tenant_classifier::TenantClassifier;
pub use virtual_port::VirtualPortState;
pub use virtual_switch::{
    CrosspointBuffer, MAX_QUANTUM, MAX_TIME_WEIGHT, MIN_QUANTUM, QueueManager, RedSpec, VirtualPortSpec, VirtualSwitch,
};
