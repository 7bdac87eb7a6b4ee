//! An OpenFlow controller: applications without I/O, and the server that connects switches to them.
//!
//! For programs that control switches, inside or outside of their process. An application receives messages of switches
//! and returns messages for them; the library does the rest: handshake, versions, roles, echo requests, limits, TLS.
//!
//! Start with:
//!
//! - [`ControllerApp`]: the trait of applications. [`apps::learning`] is one: a learning switch that keeps tenants
//!   apart.
//! - [`ControllerHub`]: sessions and application, without I/O, for virtual time and for a program's own loop.
//! - [`Controller`]: the hub with sockets, a clock and a thread.
//!
//! Not in this crate: messages and their codecs (`weir-openflow`), the switch's end (`weir-datapath`, `weir-switch`),
//! graphs of networks (`weir-topology`).
//!
//! ```
//! use weir_controller::apps::learning::{LearningConfig, LearningSwitch};
//! use weir_controller::{Controller, ControllerConfig};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let app = LearningSwitch::new(LearningConfig::default());
//! let config = ControllerConfig { listen: vec!["tcp:127.0.0.1:0".parse()?], ..ControllerConfig::default() };
//! let controller = Controller::start(Box::new(app), config)?;
//! // Switches connect to the address, or in this process to the other end of a stream:
//! println!("listening on {}", controller.addresses()[0]);
//! let _stream = controller.connect();
//! let summary = controller.stop();
//! assert!(summary.switches.is_empty());
//! # Ok(())
//! # }
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
