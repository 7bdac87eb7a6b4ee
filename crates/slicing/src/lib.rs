//! Virtual switches: how a switch is divided into tenants with guaranteed shares of ports, buffers and time.
//!
//! For switches and simulators whose ports several tenants share. Received frames are sorted by virtual switch, and
//! their edge tags are removed ([`edge`]). After the virtual switch's datapath they cross the fabric to the line of an
//! output. No part has a thread, clock or socket, so that the live switch and networks in virtual time use the same
//! code.
//!
//! Start with:
//!
//! - [`VirtualSwitch`] and [`FabricSpec`]: one tenant's switch, and the capacities that all virtual switches of a
//!   switch are cut from. Both become configurations of `weir-fabric`, which admits them.
//! - [`TenantClassifier`]: the first lookup, which sorts frames by virtual switch.
//! - [`FabricIngress`] and [`FabricEgressLine`]: the way of frames into the fabric and out of it.
//! - [`CpuShares`]: divides the time of an engine that has more packets than it can process.
//!
//! Reading order: `virtual_switch`, `fabric_spec` and `packet_selector` (what is said of virtual switches),
//! `first_lookup` (which one a packet belongs to), `fabric_ingress` and `fabric_egress` (the way to the output).
//!
//! Not in this crate: queues, disciplines and admission (`weir-fabric`), flow tables (`weir-datapath`), the form of
//! virtual switches in files (`weir-scenario`, which a [`VirtualSwitchReader`] brings to running switches), channels
//! and requests of running virtual switches.
//!
//! ```
//! use std::time::Duration;
//! use weir_fabric::Fabric;
//! use weir_openflow::model::PortNo;
//! use weir_packet::craft::FrameBuilder;
//! use weir_packet::{Frame, MacAddr};
//! use weir_slicing::{FabricPort, FabricSpec, TenantClassifier, VirtualPortSpec, VirtualSwitch};
//! use weir_units::{Bps, ByteSize, Instant};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // Two tenants share a port: their packets have VLAN 10 and 20 outside the switch.
//! let port = FabricPort { port: 1, rate: Bps(1_000_000_000) };
//! let spec = FabricSpec { ports: vec![port], ..FabricSpec::default() };
//! let share = VirtualPortSpec::new(&port, Bps(400_000_000), Bps(400_000_000));
//! let tenants = [10_u16, 20].map(|vlan| {
//!     let ports = vec![VirtualPortSpec { vlan: Some(vlan), ..share }];
//!     VirtualSwitch::new(&format!("tenant{vlan}"), vlan.into(), ports, ByteSize(96_000), &spec)
//! });
//!
//! // The fabric admits both; a third one with as much is refused.
//! let mut fabric = Fabric::<Frame>::new(spec.config(Duration::ZERO, 1))?;
//! for tenant in &tenants {
//!     fabric.add(Instant::ZERO, tenant.config(&spec, Instant::ZERO))?;
//! }
//! assert!(fabric.add(Instant::ZERO, tenants[0].config(&spec, Instant::ZERO)).is_err());
//!
//! // The first lookup sorts the frames of a burst. A frame of neither tenant stays in the batch.
//! let mut classifier = TenantClassifier::default();
//! classifier.compile((0..).zip(&tenants));
//! let frame = |vlan| {
//!     let bytes = FrameBuilder::ethernet(MacAddr([2; 6]), MacAddr([4; 6])).vlan(0x8100, vlan, 0).payload(b"x").build();
//!     Frame::from_bytes(&bytes)
//! };
//! let mut batch = vec![frame(20), frame(30), frame(10), frame(20)];
//! let count = classifier.sort(PortNo(1), &mut batch);
//! let sorted: Vec<(u16, usize)> =
//!     classifier.lists[..count].iter().map(|(target, frames)| (target.switch, frames.len())).collect();
//! assert_eq!((sorted, batch.len()), (vec![(1, 2), (0, 1)], 1));
//! # Ok(())
//! # }
//! ```
mod app;
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

pub use app::VirtualSwitchApp;
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
    CrosspointBuffer, MAX_CEILING_BURST, MAX_QUANTUM, MAX_TIME_WEIGHT, MIN_QUANTUM, QueueManager, RedSpec,
    VirtualPortSpec, VirtualSwitch,
};
