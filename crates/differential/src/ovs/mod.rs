//! Runs cases on an instance of Open vSwitch of its own: dummy ports, no kernel interface, a clock that stands still
//! but for pauses.
//!
//! An instance has many bridges (*lanes*), which run a case each at the same time. All steps of a case are sent without
//! waiting for answers. Frames are given to a bridge as packet-outs to its tables from the port that they come in by;
//! each frame and what it caused is told apart by a marker frame that is sent behind it to every port and to the
//! controller.
mod control;
mod instance;
mod lane;
mod pcap;

pub use instance::Instance;
