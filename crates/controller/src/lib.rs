//! The controller: applications without I/O, and the server that brings switches to them.
//!
//! An [`App`] is told what switches say and returns what to say to them. [`Hub`] holds the sessions and the application,
//! still without I/O; [`Controller`] gives it sockets, a clock and a thread, for `weir controller` and for programs that embed it.
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

pub use hub::{Hub, Mastership, Snapshot, SwitchEvent, SwitchInfo};
pub use listen::Listen;
pub use server::{Controller, ControllerConfig};

use weir_openflow::model::FeaturesReply;
use weir_openflow::{Message, Version};
use weir_units::Instant;

/// One switch that is connected, as applications know it. A switch that comes back gets a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// Messages for switches. The hub numbers them: their `xid` is not looked at.
pub type Outbox = Vec<(ConnectionId, Message)>;

/// An application of the controller, without I/O.
pub trait App: Send {
    /// A switch came up; messages to send to it go to `out`.
    fn switch_up(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut Outbox,
    );

    /// A switch that may hold another controller's entries came under this one's control (roles): as [`App::switch_up`], but
    /// what forwards is to go on forwarding.
    fn take_over(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        version: Version,
        features: &FeaturesReply,
        out: &mut Outbox,
    ) {
        self.switch_up(now, switch, version, features, out);
    }

    /// A message from a switch.
    fn message(&mut self, now: Instant, switch: ConnectionId, message: Message, out: &mut Outbox);

    /// A switch went away, or another controller's master took it.
    fn switch_down(&mut self, now: Instant, switch: ConnectionId);

    /// What the application counted, by name; drops are there with their reason.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
