//! Defines the interface to a device under test: messages, frames and time.
use crate::ProfilerError;
use weir_openflow::{Message, Version};
use weir_units::Instant;

/// Device under test: its control channel, the interfaces connected to its ports, and a clock. All times are of this
/// clock.
pub trait DeviceUnderTest {
    /// Returns the current time.
    fn now(&self) -> Instant;

    /// Returns the number of interfaces connected to the device's ports.
    fn interfaces(&self) -> usize;

    /// Returns the OpenFlow version of the control channel; none without a channel, so that only the data plane can
    /// be measured.
    fn version(&self) -> Option<Version>;

    /// Returns true if the measuring machine stopped at some time between both: what was measured then is the
    /// machine's time. Not all stops are seen.
    fn was_stopped(&self, _from: Instant, _until: Instant) -> bool {
        false
    }

    /// Sends messages together in one write.
    ///
    /// # Errors
    /// The channel has ended, or a message cannot be expressed in its version.
    fn send(&mut self, messages: &[Message]) -> Result<(), ProfilerError>;

    /// Sends a frame by an interface, numbered from 0. A frame without room is lost. Returns the departure time if
    /// the interface reports it.
    ///
    /// # Errors
    /// The interface is gone.
    fn transmit(&mut self, interface: usize, frame: &[u8]) -> Result<Option<Instant>, ProfilerError>;

    /// Waits until a message or frame arrives, at most until `until`.
    ///
    /// # Errors
    /// The channel has ended, or an interface is gone.
    fn wait(&mut self, until: Instant) -> Result<Option<DeviceEvent>, ProfilerError>;
}

/// Message or frame that arrived.
#[derive(Debug, Clone, PartialEq)]
pub enum DeviceEvent {
    /// Message from the switch.
    Message {
        /// Arrival time on the device's clock.
        at: Instant,
        /// Message with its transaction identifier.
        message: Message,
    },
    /// Frame from a port of the device.
    Frame {
        /// Arrival time on the device's clock.
        at: Instant,
        /// Index of the interface, from 0.
        interface: usize,
        /// Bytes of the frame.
        bytes: Vec<u8>,
    },
}
