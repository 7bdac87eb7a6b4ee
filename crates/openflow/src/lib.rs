//! OpenFlow: one version-free model, a codec for each wire version, the text form people write, and sessions without I/O.
//!
//! The rest of weir knows only [`model`]; versions stop at the codec (`v10`, `v13`).
pub mod model;
