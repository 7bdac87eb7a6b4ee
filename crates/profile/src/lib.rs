//! Profiles: how a device behaves in time, in a file. Each parameter has its unit and, if it was measured, its
//! interval, the share of the variance that the fit explains, and the number of samples. The profile says who measured
//! it, or that it was not measured.
//!
//! For formulas, simulations and emulations that need the times of a real switch. One description serves all:
//! formulas, simulated stations, and the stage of emulated switches. [`Profile::without_effect`] names what one of them
//! cannot use.
//!
//! Start with:
//!
//! - [`Profile`]: [`find`](Profile::find) a shipped one or [`read`](Profile::read) a file; [`SHIPPED`] lists the
//!   former.
//! - [`SwitchTiming`]: service times of the data path and of the path to the controller.
//! - [`Profile::parameters`]: every figure with its unit and [`Evidence`]. [`differences()`] compares two profiles.
//!
//! Not in this crate: measuring a device (`weir-profiler`), the formulas that use the figures (`weir-model`), a
//! datapath that takes these times (`weir-device`).
//!
//! ```
//! # fn main() -> Result<(), weir_profile::ProfileError> {
//! let profile = weir_profile::Profile::find("ovs-kernel", std::path::Path::new("."))?;
//! let data = profile.timing.as_ref().and_then(|timing| timing.data.as_ref());
//! assert!(data.is_some_and(|data| data.mean_s(64.0) < 7e-6));
//! # Ok(())
//! # }
//! ```
mod cache;
pub mod check;
mod difference;
mod error;
mod evidence;
mod figures;
mod forwarding;
mod honoured;
mod number;
mod parameters;
mod profile;
mod shipped;
mod slowed;
mod timing;
mod to_toml;
pub mod written;

pub use cache::{FirstPackets, FlowCacheTiming, MAX_CACHED_FLOWS};
pub use check::SpannedProblem;
pub use difference::{ParameterDifference, differences};
pub use error::ProfileError;
pub use evidence::Evidence;
pub use figures::{figures, in_a_line};
pub use forwarding::{LevelForwarding, MatchLayers};
pub use honoured::ProfileUse;
pub use parameters::{ParameterValue, ProfileParameter};
pub use profile::{BarrierTiming, MAX_LEVELS, MAX_TEXT, Profile, ProfileOrigin};
pub use shipped::SHIPPED;
pub use timing::{ControlPathTiming, ReleaseGate, ReturnDiscipline, ServiceTime, SwitchTiming};
