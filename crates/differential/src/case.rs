//! A program for a switch: messages, frames and pauses in order.
use weir_openflow::{Body, Message, Version, encode};

/// Number of ordinary ports of a switch under test, numbered from 1.
pub const PORTS: u32 = 4;

/// Number of flow tables of a switch under test (that of Open vSwitch).
pub const TABLES: u8 = 254;

/// Length of every pause in milliseconds. It is equal in all cases, so that cases can run at the same time on bridges
/// that share a clock.
pub const PAUSE_MS: u64 = 1600;

/// A step of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseStep {
    /// A message of the controller.
    Message(Body),
    /// A frame that a port receives.
    Frame {
        /// Number of the port.
        port: u32,
        /// The whole frame, without frame check sequence.
        bytes: Vec<u8>,
    },
    /// A pause of [`PAUSE_MS`] milliseconds.
    Pause,
}

/// A program for a switch, and the OpenFlow version that it uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DifferentialCase {
    /// Seed that the case was drawn from.
    pub seed: u64,
    /// OpenFlow version of the channel.
    pub version: Version,
    /// Steps in order.
    pub steps: Vec<CaseStep>,
}

impl DifferentialCase {
    /// Returns true if the case contains a pause.
    pub fn has_pauses(&self) -> bool {
        self.steps.contains(&CaseStep::Pause)
    }

    /// Returns the case without step number `step`.
    #[must_use]
    pub fn without(&self, step: usize) -> DifferentialCase {
        let mut case = self.clone();
        case.steps.remove(step);
        case
    }

    /// Returns the messages before step number `step`.
    pub fn messages_before(&self, step: usize) -> impl Iterator<Item = &Body> {
        self.steps[..step].iter().filter_map(|step| match step {
            CaseStep::Message(body) => Some(body),
            _ => None,
        })
    }
}

/// Encodes a message with this transaction id. Returns `None` if the version cannot carry it.
pub fn bytes_of(body: &Body, xid: u32, version: Version) -> Option<Vec<u8>> {
    let mut body = body.clone();
    // A bundle's member has the transaction id of the message that adds it (OpenFlow 1.4.1, 7.3.9.6).
    if let Body::BundleAdd(add) = &mut body {
        add.message.xid = xid;
    }
    let mut bytes = Vec::new();
    encode(&Message { xid, body }, version, &mut bytes).ok()?;
    Some(bytes)
}
