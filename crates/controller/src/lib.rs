//! Controller: applications without I/O, and the server that connects switches to them.
//!
//! An [`ControllerApp`] receives messages of switches and returns messages for them. [`ControllerHub`] holds the
//! sessions and the application, still without I/O. [`Controller`] adds sockets, a clock and a thread, for `weir
//! controller` and for programs that embed it.
//!
//! ```no_run
//! use weir_controller::apps::learning::{Learning, LearningConfig};
//! use weir_controller::{Controller, ControllerConfig};
//!
//! let app = Learning::new(LearningConfig::default());
//! let config = ControllerConfig { listen: vec!["tcp:127.0.0.1:6653".parse()?], ..ControllerConfig::default() };
//! let controller = Controller::start(Box::new(app), config)?;
//! // Switches connect to the address, or in this process to the other end of a stream:
//! let _stream = controller.connect();
//! let summary = controller.stop();
//! println!("{} switches were there at the end", summary.switches.len());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
pub mod apps;
pub mod hub;
mod listen;
mod server;

pub use hub::{ControllerHub, ControllerSnapshot, Mastership, SwitchEvent, SwitchInfo};
pub use listen::ListenAddress;
pub use server::{Controller, ControllerConfig};

use weir_openflow::model::FeaturesReply;
use weir_openflow::{Message, Version};
use weir_units::Instant;

/// Identifier of a connection. Applications know a switch by it; a switch that connects again gets a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// Messages for switches. The hub sets their `xid`.
pub type ControllerOutbox = Vec<(ConnectionId, Message)>;

/// Application of the controller, without I/O. Methods append messages for switches to `out`.
pub trait ControllerApp: Send {
    /// Handles a switch that has come up.
    fn handle_switch_up(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    );

    /// Handles a switch that has come under this controller's control (roles) and may hold another controller's
    /// entries. Differs from [`ControllerApp::handle_switch_up`] in that existing forwarding has to continue.
    fn take_over(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut ControllerOutbox,
    ) {
        self.handle_switch_up(now, switch, version, features, out);
    }

    /// Handles a message from a switch.
    fn handle_message(&mut self, now: Instant, switch: ConnectionId, message: Message, out: &mut ControllerOutbox);

    /// Handles a switch that has disconnected, or whose control another controller has taken.
    fn handle_switch_down(&mut self, now: Instant, switch: ConnectionId);

    /// Returns the application's counters by name, among them drops by reason.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
