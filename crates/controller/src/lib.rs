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
//! - [`Controller`]: hubs with sockets, a clock and threads.
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
mod outbox;
pub mod published;
mod server;
pub mod status;
pub mod waiting;

pub use hub::TooManyConnections;
pub use hub::{ControllerHub, ControllerSnapshot, Mastership, SwitchEvent, SwitchInfo};
pub use listen::ListenAddress;
pub use outbox::{ControllerOutbox, SentKind};
pub use published::AppWaker;
pub use server::{AppFactory, Controller, ControllerConfig, EmbeddedStream, MAX_THREADS, bind_unix};

use status::{ApplicationStatus, LinkStatus};
use weir_openflow::model::{Body, FeaturesReply};
use weir_openflow::{Message, PacketInView, Version};

use weir_units::Instant;

/// Identifier of a connection. Applications know a switch by it; a switch that connects again gets a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// Decision on whether later applications see a packet-in, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PacketDecision {
    /// The application has dealt with the packet; no later one sees it.
    Taken,
    /// The next application sees the packet, whatever this one has done.
    PassedOn,
}

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

    /// Handles a packet-in, read in place. By default it is decoded for [`ControllerApp::handle_message`], and passed
    /// on.
    fn handle_packet_in(
        &mut self,
        now: Instant,
        switch: ConnectionId,
        packet: &PacketInView<'_>,
        out: &mut ControllerOutbox,
    ) -> PacketDecision {
        let message = Message { xid: packet.xid(), body: Body::PacketIn(packet.to_packet_in()) };
        self.handle_message(now, switch, message, out);
        PacketDecision::PassedOn
    }

    /// Handles a message from a switch other than a packet-in.
    fn handle_message(&mut self, now: Instant, switch: ConnectionId, message: Message, out: &mut ControllerOutbox);

    /// Handles a switch that has disconnected, or whose control another controller has taken.
    fn handle_switch_down(&mut self, now: Instant, switch: ConnectionId);

    /// Returns the time of the next call of [`ControllerApp::handle_wake`]; `None` if the application has no timer.
    fn next_wake(&self) -> Option<Instant> {
        None
    }

    /// Handles the application's timers that are due. Called at about the time of [`ControllerApp::next_wake`].
    fn handle_wake(&mut self, _now: Instant, _out: &mut ControllerOutbox) {}

    /// Handles a command from outside the controller. Returns the answer; `None` for a command that the application
    /// does not know.
    fn handle_command(&mut self, _now: Instant, _command: &str, _out: &mut ControllerOutbox) -> Option<String> {
        None
    }

    /// Returns the application's counters by name, among them drops by reason.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// Returns the application's name, for display.
    fn name(&self) -> &'static str {
        "application"
    }

    /// Returns the applications of which this one consists, in their order, with their counters. By default it is one.
    fn applications(&self) -> Vec<ApplicationStatus> {
        vec![ApplicationStatus::new(self.name(), self.counters())]
    }

    /// Returns the links between switches that the application has found; `None` if it does not look for any. With
    /// several threads, each link is found by one of them.
    fn links(&self, _now: Instant) -> Option<Vec<LinkStatus>> {
        None
    }
}
