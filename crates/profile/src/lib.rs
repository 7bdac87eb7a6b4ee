//! Profiles: how a device behaves in time, as it was measured, in a file. Each parameter has its unit and, if it was measured, the interval it lies in, how
//! much of the variance the fit explains and from how many samples it comes; the profile says who measured, or that nobody did.
//!
//! One description serves all: formulas and simulated stations read [`Profile::timing`], the timing stage of switches that are emulated the whole.
//!
//! ```
//! # fn main() -> Result<(), weir_profile::ProfileError> {
//! let profile = weir_profile::Profile::find("ovs-kernel", std::path::Path::new("."))?;
//! let data = profile.timing.as_ref().and_then(|timing| timing.data.as_ref());
//! assert!(data.is_some_and(|data| data.mean_s(64.0) < 7e-6));
//! # Ok(())
//! # }
//! ```
pub mod check;
mod difference;
mod error;
mod evidence;
mod figures;
mod forwarding;
mod number;
mod parameters;
mod profile;
mod shipped;
mod slowed;
mod timing;
mod to_toml;
pub mod written;

pub use check::Problem;
pub use difference::{Difference, differences};
pub use error::ProfileError;
pub use evidence::Evidence;
pub use figures::figures;
pub use forwarding::{LevelForwarding, MatchKind};
pub use parameters::{Parameter, Value};
pub use profile::{Barrier, MAX_LEVELS, MAX_TEXT, Origin, Profile};
pub use shipped::SHIPPED;
pub use timing::{ControlPath, Gate, Returns, ServiceTime, SwitchTiming};
