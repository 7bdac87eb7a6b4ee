//! Runs sessions and the application without I/O: takes and returns the bytes of every connection.
//!
//! Each switch has one main connection. A second main connection with the datapath id of a connected switch is
//! refused because it would take over that switch's traffic. A switch whose old connection was lost unnoticed can
//! connect again once the old connection's echo request has timed out.
//!
//! Auxiliary connections (OpenFlow 1.3.5, 6.3.7) join the main connection of their datapath id and end with it. A
//! packet-out that answers a packet-in uses the connection on which the packet-in arrived, as the specification
//! suggests. All other messages use the main connection, which keeps them in order.
mod role;
mod types;

use crate::{ConnectionId, ControllerApp, ControllerOutbox};
use role::RoleNegotiation;
use std::collections::BTreeMap;
use weir_openflow::model::{Body, FeaturesReply};
use weir_openflow::session::{SendError, Session, SessionConfig, SessionEvent};
use weir_openflow::{Message, Version};
use weir_units::Instant;

pub use role::Mastership;
pub use types::{ControllerCounters, ControllerSnapshot, SwitchEvent, SwitchInfo};

/// Callback for events of switches. It is called while the hub is locked, so it must be quick and must not call the
/// hub.
pub type Observer = Box<dyn FnMut(&SwitchEvent) + Send>;
/// Callback called when a connection gets output while another connection is handled, or is ended by the hub.
pub type WakeCallback = Box<dyn Fn() + Send>;

/// Sessions of all connections, and the application.
pub struct ControllerHub {
    app: Box<dyn ControllerApp>,
    session: SessionConfig,
    max_connections: usize,
    observer: Observer,
    connections: BTreeMap<ConnectionId, SwitchConnection>,
    last_id: u64,
    counters: ControllerCounters,
    outbox: ControllerOutbox,
    mastership: Mastership,
}

struct SwitchConnection {
    session: Session,
    peer: String,
    /// Description of the switch, if this is a main connection that is up.
    info: Option<SwitchInfo>,
    /// Features reply of the switch.
    features: FeaturesReply,
    /// Id of the main connection and own auxiliary id, if this is an auxiliary connection that is up.
    auxiliary: Option<(ConnectionId, u8)>,
    role_negotiation: RoleNegotiation,
    /// True if the switch was announced to the application.
    is_served: bool,
    /// Reason for closing the connection, once it has ended.
    ended: Option<String>,
    wake: WakeCallback,
}

/// Error: the hub has as many connections as allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are {0} connections already, the most allowed")]
pub struct TooManyConnections(pub usize);

impl ControllerHub {
    /// Returns a hub without connections.
    pub fn new(
        app: Box<dyn ControllerApp>,
        session: SessionConfig,
        max_connections: usize,
        observer: Observer,
    ) -> ControllerHub {
        ControllerHub {
            app,
            session,
            max_connections,
            observer,
            connections: BTreeMap::new(),
            last_id: 0,
            counters: ControllerCounters::default(),
            outbox: ControllerOutbox::new(),
            mastership: Mastership::default(),
        }
    }

    /// Adds a connection of a switch from `peer`. The connection has output at once: the hello message. See
    /// [`WakeCallback`] for `wake`.
    ///
    /// # Errors
    /// [`TooManyConnections`]; the caller has to close the connection.
    pub fn connect(
        &mut self,
        now: Instant,
        peer: String,
        wake: WakeCallback,
    ) -> Result<ConnectionId, TooManyConnections> {
        self.counters.connections += 1;
        if self.connections.len() >= self.max_connections {
            let full = TooManyConnections(self.max_connections);
            self.counters.refused += 1;
            (self.observer)(&SwitchEvent::Refused { peer, reason: full.to_string() });
            return Err(full);
        }
        self.last_id += 1;
        let session = Session::controller(self.session.clone(), now);
        let connection = SwitchConnection {
            session,
            peer,
            info: None,
            features: FeaturesReply::default(),
            auxiliary: None,
            role_negotiation: RoleNegotiation::default(),
            is_served: false,
            ended: None,
            wake,
        };
        self.connections.insert(ConnectionId(self.last_id), connection);
        Ok(ConnectionId(self.last_id))
    }

    /// Handles bytes received from a switch.
    pub fn receive(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        if let Some(connection) = self.find_open(id) {
            connection.session.receive(now, bytes);
            self.process_events(now, id);
        }
    }

    /// Handles time-outs of a connection. Call it at the time that [`ControllerHub::deadline`] returns.
    pub fn poll(&mut self, now: Instant, id: ConnectionId) {
        if let Some(connection) = self.find_open(id) {
            connection.session.poll(now);
            self.process_events(now, id);
        }
    }

    /// Returns the time at which to call [`ControllerHub::poll`] for this connection.
    pub fn deadline(&self, id: ConnectionId) -> Option<Instant> {
        self.connections.get(&id)?.session.deadline()
    }

    /// Returns the bytes to write to a switch. The caller removes the bytes written from the front. `None` if the
    /// connection does not exist.
    pub fn output(&mut self, id: ConnectionId) -> Option<&mut Vec<u8>> {
        self.connections.get_mut(&id).map(|connection| connection.session.output())
    }

    /// Returns true if the connection has to be closed once its output is written.
    pub fn is_ended(&self, id: ConnectionId) -> bool {
        self.connections.get(&id).is_none_or(|connection| connection.ended.is_some())
    }

    /// Removes a closed connection. `reason` is reported if the hub has not ended the connection itself.
    pub fn disconnect(&mut self, now: Instant, id: ConnectionId, reason: &str) {
        self.end(now, id, reason.to_owned());
        self.connections.remove(&id);
    }

    /// Returns the connected switches and all counters.
    pub fn snapshot(&self) -> ControllerSnapshot {
        let up = self.connections.values().filter_map(|connection| connection.info.clone());
        ControllerSnapshot {
            switches: up.collect(),
            counters: self.counters.clone(),
            app: self.app.counters().into_iter().collect(),
        }
    }

    fn find_open(&mut self, id: ConnectionId) -> Option<&mut SwitchConnection> {
        self.connections.get_mut(&id).filter(|connection| connection.ended.is_none())
    }

    /// Handles all events of a session in order, and sends the application's answers.
    fn process_events(&mut self, now: Instant, id: ConnectionId) {
        while let Some(event) = self.find_open(id).and_then(|connection| connection.session.take_event()) {
            match event {
                SessionEvent::Up { version, features } => {
                    self.handle_up(now, id, version, features.unwrap_or_default())
                }
                SessionEvent::Message(message) => {
                    self.count_received(&message);
                    self.handle_message(now, id, message);
                }
                SessionEvent::Closed { reason } => self.end(now, id, reason),
            }
            self.dispatch(id);
        }
    }

    /// Passes a message to the application, as a message of the switch's main connection.
    fn handle_message(&mut self, now: Instant, id: ConnectionId, message: Message) {
        let auxiliary = self.connections.get(&id).and_then(|connection| connection.auxiliary);
        let main = auxiliary.map_or(id, |(main, _)| main);
        if let Some(message) = self.handle_role_message(now, main, message) {
            self.app.handle_message(now, main, message, &mut self.outbox);
        }
    }

    fn handle_up(&mut self, now: Instant, id: ConnectionId, version: Version, features: FeaturesReply) {
        if features.auxiliary_id != 0 {
            return self.join_auxiliary(now, id, version, &features);
        }
        if let Some(reason) = self.refusal(version, &features) {
            return self.end(now, id, reason);
        }
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let info = SwitchInfo { dpid: features.datapath_id, version, peer: connection.peer.clone() };
        connection.info = Some(info.clone());
        connection.features = features;
        (self.observer)(&SwitchEvent::Up(info));
        self.request_initial_role(id);
        self.serve(now, id);
    }

    fn refusal(&self, version: Version, features: &FeaturesReply) -> Option<String> {
        if version == Version::V10 && self.mastership != Mastership::Equal {
            return Some("it speaks OpenFlow 1.0, which knows no roles".to_owned());
        }
        let dpid = features.datapath_id;
        let (_, same) = self.main_of(dpid)?;
        Some(format!("datapath id {dpid:016x} is connected already, from {}", same.peer))
    }

    /// Returns the main connection of a switch.
    fn main_of(&self, dpid: u64) -> Option<(ConnectionId, &SwitchInfo)> {
        let mut up = self.connections.iter().filter_map(|(id, found)| Some((*id, found.info.as_ref()?)));
        up.find(|(_, info)| info.dpid == dpid)
    }

    /// Joins an auxiliary connection to its main connection. A new connection with an existing number replaces that
    /// connection, because the switch has opened it again.
    fn join_auxiliary(&mut self, now: Instant, id: ConnectionId, version: Version, features: &FeaturesReply) {
        let (dpid, number) = (features.datapath_id, features.auxiliary_id);
        let refused = match self.main_of(dpid) {
            None => Err(format!("it is auxiliary connection {number} of {dpid:016x}, whose main one is not up")),
            Some((_, info)) if info.version != version => Err(format!(
                "it is auxiliary connection {number} in OpenFlow {}, the main one is in {}",
                version.name(),
                info.version.name()
            )),
            Some((main, info)) => Ok((main, info.clone())),
        };
        let (main, switch) = match refused {
            Ok(found) => found,
            Err(reason) => return self.end(now, id, reason),
        };
        let same = |found: &SwitchConnection| found.auxiliary == Some((main, number));
        let former = self.connections.iter().find(|(_, found)| same(found)).map(|(id, _)| *id);
        if let Some(former) = former {
            self.end(now, former, "the switch opened it anew".to_owned());
        }
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.auxiliary = Some((main, number));
            (self.observer)(&SwitchEvent::Auxiliary { switch, number });
        }
    }

    /// Ends a connection once, and reports the end to the application and the observer.
    fn end(&mut self, now: Instant, id: ConnectionId, reason: String) {
        let Some(connection) = self.connections.get_mut(&id).filter(|connection| connection.ended.is_none()) else {
            return;
        };
        connection.ended = Some(reason.clone());
        (connection.wake)();
        let event = match (connection.info.take(), connection.auxiliary.take()) {
            (Some(switch), _) => {
                if std::mem::take(&mut connection.is_served) {
                    self.app.handle_switch_down(now, id);
                }
                self.end_auxiliaries(now, id);
                SwitchEvent::Down { switch, reason }
            }
            (None, Some((_, number))) => {
                return tracing::info!("{}: auxiliary connection {number} ended: {reason}", connection.peer);
            }
            (None, None) => {
                self.counters.refused += 1;
                SwitchEvent::Refused { peer: connection.peer.clone(), reason }
            }
        };
        (self.observer)(&event);
    }

    fn end_auxiliaries(&mut self, now: Instant, main: ConnectionId) {
        let of_main = |found: &SwitchConnection| found.auxiliary.is_some_and(|(of, _)| of == main);
        let auxiliaries: Vec<_> =
            self.connections.iter().filter(|(_, found)| of_main(found)).map(|(id, _)| *id).collect();
        for id in auxiliaries {
            self.end(now, id, "its main connection ended".to_owned());
        }
    }

    /// Sends the application's messages. Calls [`WakeCallback`] for each connection with a message except `current`,
    /// because the caller looks for output of `current` anyway.
    fn dispatch(&mut self, current: ConnectionId) {
        let auxiliary_of = self.connections.get(&current).and_then(|connection| connection.auxiliary);
        for (main, mut message) in std::mem::take(&mut self.outbox) {
            let answers = auxiliary_of.is_some_and(|(of, _)| of == main) && matches!(message.body, Body::PacketOut(_));
            let id = if answers { current } else { main };
            let up = self.connections.get_mut(&id).filter(|found| found.info.is_some() || found.auxiliary.is_some());
            let Some(connection) = up else {
                self.counters.dropped_gone += 1;
                continue;
            };
            message.xid = connection.session.allocate_xid();
            match connection.session.send(&message) {
                Ok(()) => self.counters.count_sent(&message),
                Err(SendError::Full(_)) => self.counters.dropped_full += 1,
                Err(SendError::NotUp) => self.counters.dropped_gone += 1,
                Err(SendError::Encode(error)) => {
                    tracing::warn!(peer = connection.peer, "not sent: {error}");
                    self.counters.dropped_unencodable += 1;
                }
            }
            if id != current {
                (connection.wake)();
            }
        }
    }

    fn count_received(&mut self, message: &Message) {
        match &message.body {
            Body::PacketIn(_) => self.counters.packet_ins += 1,
            Body::Error(error) => {
                tracing::debug!("error from a switch: {:?}", error.error);
                self.counters.errors += 1;
            }
            _ => {}
        }
    }
}
