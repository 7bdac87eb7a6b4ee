//! Measures how a switch behaves in time, and fits a profile to it.
//!
//! The switch is reached by its OpenFlow channel and by interfaces connected to its ports. Both are behind one trait
//! ([`DeviceUnderTest`]), so the same code measures a live switch and one in virtual time whose profile is known
//! ([`VirtualTimeSwitch`]). A device without a channel is measured by packets alone.
//!
//! Reading order: [`DeviceUnderTest`], [`rules`] (entries and the packets that match them), `bench` (state of the
//! switch, and packets that show when commands were carried out), [`terms`] (cost terms of a burst of commands),
//! [`levels`], [`policy`], [`batching`], [`control`], `messages`, `data` (the parts of a measurement),
//! [`RigDelayTable`] (delay of the measuring machine), [`fit`] (from measurements to parameters), [`measure`] (a whole
//! measurement), [`validation`] (how well a profile predicts the switch).
pub mod batching;
mod bench;
pub mod control;
mod data;
mod device;
mod error;
pub mod fit;
pub mod flow_cache;
pub mod levels;
mod live;
mod measurement;
mod messages;
pub mod policy;
mod progress;
pub mod report;
mod rig;
pub mod rules;
mod settings;
pub mod single_commands;
mod store;
pub mod terms;
mod throughput;
pub mod validation;
mod virtual_time_switch;

pub use device::{DeviceEvent, DeviceUnderTest};
pub use error::ProfilerError;
pub use fit::build::{BarrierBehaviour, ProfileMetadata};
pub use live::LiveDevice;
pub use measurement::{Measurement, MeasurementOptions, MeasurementParts, measure};
pub use progress::{MeasurementProgress, ProgressReporter};
pub use rig::{RigDelayTable, RigSource};
pub use settings::{MeasurementGrid, MeasurementSettings, PriorityOrder};
pub use store::{MessageRow, PacketDelayRow, RawDataStore, TrialRow};
pub use throughput::Throughput;
pub use virtual_time_switch::{SwitchFaults, VirtualTimeSwitch};
pub use weir_client::SwitchAddress;
