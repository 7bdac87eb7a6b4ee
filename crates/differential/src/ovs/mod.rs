//! Runs cases on a separate instance of Open vSwitch: dummy ports, no kernel interface, a clock that advances only in
//! pauses.
//!
//! An instance has many bridges (*lanes*), each of which runs a case, all at the same time. All steps of a case are
//! sent without waiting for answers. A frame is sent to a bridge as a packet-out to its tables, with its input port.
//! A marker frame follows each frame to every port and to the controller, so that the effects of each frame can be
//! told apart.
mod bridge;
mod control;
mod instance;
mod pcap;

pub use instance::OvsInstance;
