//! The controller: applications without I/O, and the server that brings switches to them.
use weir_openflow::model::FeaturesReply;
use weir_openflow::{Message, Version};
use weir_units::Instant;

/// One switch that is connected, as applications know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// An application of the controller, without I/O.
pub trait App: Send {
    /// A switch came up; messages to send to it go to `out`.
    fn switch_up(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut Vec<(ConnectionId, Message)>,
    );
    /// A message from a switch.
    fn message(&mut self, now: Instant, switch: ConnectionId, message: Message, out: &mut Vec<(ConnectionId, Message)>);
    /// A switch went away.
    fn switch_down(&mut self, now: Instant, switch: ConnectionId);
}
