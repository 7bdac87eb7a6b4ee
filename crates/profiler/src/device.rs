//! What is measured, as the measuring sees it: messages and frames go in and come out, and time passes.
use crate::ProfilerError;
use weir_openflow::{Message, Version};
use weir_units::Instant;

/// A switch under test: its control channel, the interfaces that lead to its ports, and the time. All times are of one clock.
pub trait Device {
    /// Now.
    fn now(&self) -> Instant;

    /// How many interfaces lead to its ports.
    fn interfaces(&self) -> usize;

    /// The version that its control channel speaks; none if it has no channel: then its data plane alone can be measured.
    fn version(&self) -> Option<Version>;

    /// Sends messages at once, in one piece.
    ///
    /// # Errors
    /// The channel has ended, or a message cannot be said in its version.
    fn send(&mut self, messages: &[Message]) -> Result<(), ProfilerError>;

    /// Sends a frame by an interface, numbered from 0. One that finds no room is lost. When it left, if the interface says so.
    ///
    /// # Errors
    /// The interface is gone.
    fn transmit(&mut self, interface: usize, frame: &[u8]) -> Result<Option<Instant>, ProfilerError>;

    /// Lets time pass until something comes, at most until `until`.
    ///
    /// # Errors
    /// The channel has ended, or an interface is gone.
    fn wait(&mut self, until: Instant) -> Result<Option<Seen>, ProfilerError>;
}

/// Something that came.
#[derive(Debug, Clone, PartialEq)]
pub enum Seen {
    /// A message from the switch.
    Message {
        /// When.
        at: Instant,
        /// What it says.
        message: Message,
    },
    /// A frame from one of its ports.
    Frame {
        /// When.
        at: Instant,
        /// By which interface, from 0.
        interface: usize,
        /// Its bytes.
        bytes: Vec<u8>,
    },
}
