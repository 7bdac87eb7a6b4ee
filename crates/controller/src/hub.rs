//! Sessions and the application, without I/O: bytes of any connection in, bytes of any connection out.
//!
//! One switch, one connection: a second main connection that claims the datapath id of one that is up is refused, since it
//! would take over the other's traffic. A switch that lost its connection without the controller noticing gets in again when
//! the old connection's echo goes unanswered. Auxiliary connections are refused.
use crate::{App, ConnectionId, Outbox};
use serde::Serialize;
use std::collections::BTreeMap;
use weir_openflow::model::{Body, FeaturesReply};
use weir_openflow::session::{Event, SendError, Session, SessionConfig};
use weir_openflow::{Message, Version};
use weir_units::Instant;

/// A switch came or went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "event")]
pub enum SwitchEvent {
    /// It shook hands.
    Up(SwitchInfo),
    /// It went away.
    Down {
        /// Which.
        switch: SwitchInfo,
        /// Why, for people.
        reason: String,
    },
    /// It never came up.
    Refused {
        /// Where it connected from.
        peer: String,
        /// Why, for people.
        reason: String,
    },
}

/// A switch that is up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SwitchInfo {
    /// Its datapath id.
    pub dpid: u64,
    /// The version it speaks with us.
    pub version: Version,
    /// Where it connected from.
    pub peer: String,
}

/// What the controller counted since its start.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Connections that came.
    pub connections: u64,
    /// Connections that ended before they were up: no common version, no answer, a datapath id that is there already, ...
    pub refused: u64,
    /// Packet-ins received.
    pub packet_ins: u64,
    /// Flow-mods sent.
    pub flow_mods: u64,
    /// Packet-outs sent.
    pub packet_outs: u64,
    /// Errors received.
    pub errors: u64,
    /// Messages not sent, because the switch does not read.
    pub dropped_full: u64,
    /// Messages not sent, because the switch was gone.
    pub dropped_gone: u64,
    /// Messages not sent, because the switch's version cannot carry them.
    pub dropped_unencodable: u64,
}

/// What there is and what was counted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// Switches that are up.
    pub switches: Vec<SwitchInfo>,
    /// What was counted.
    pub counters: Counters,
    /// What the application counted.
    pub app: BTreeMap<&'static str, u64>,
}

/// Told of switches coming and going, while the hub is locked: to be quick, and not to call back.
pub type Observer = Box<dyn FnMut(&SwitchEvent) + Send>;
/// Told that there is output on a connection whose owner did not ask for it.
pub type Wake = Box<dyn Fn() + Send>;

/// Sessions and the application.
pub struct Hub {
    app: Box<dyn App>,
    session: SessionConfig,
    max_connections: usize,
    observer: Observer,
    connections: BTreeMap<ConnectionId, Connection>,
    last_id: u64,
    counters: Counters,
    outbox: Outbox,
}

struct Connection {
    session: Session,
    peer: String,
    /// Once up.
    info: Option<SwitchInfo>,
    /// Why the connection is to be closed, once it is.
    ended: Option<String>,
    wake: Wake,
}

/// There are as many connections as allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("there are {0} connections already, the most allowed")]
pub struct TooMany(pub usize);

impl Hub {
    /// A hub without connections.
    pub fn new(app: Box<dyn App>, session: SessionConfig, max_connections: usize, observer: Observer) -> Hub {
        Hub {
            app,
            session,
            max_connections,
            observer,
            connections: BTreeMap::new(),
            last_id: 0,
            counters: Counters::default(),
            outbox: Outbox::new(),
        }
    }

    /// A switch connected from `peer`. There is output at once: our hello.
    ///
    /// # Errors
    /// [`TooMany`]; the connection is to be closed.
    pub fn connect(&mut self, now: Instant, peer: String, wake: Wake) -> Result<ConnectionId, TooMany> {
        self.counters.connections += 1;
        if self.connections.len() >= self.max_connections {
            let full = TooMany(self.max_connections);
            self.counters.refused += 1;
            (self.observer)(&SwitchEvent::Refused { peer, reason: full.to_string() });
            return Err(full);
        }
        self.last_id += 1;
        let session = Session::controller(self.session.clone(), now);
        let connection = Connection { session, peer, info: None, ended: None, wake };
        self.connections.insert(ConnectionId(self.last_id), connection);
        Ok(ConnectionId(self.last_id))
    }

    /// Bytes came from a switch.
    pub fn receive(&mut self, now: Instant, id: ConnectionId, bytes: &[u8]) {
        if let Some(connection) = self.open(id) {
            connection.session.receive(now, bytes);
            self.settle(now, id);
        }
    }

    /// Lets time pass on a connection. To be called at the time [`Hub::deadline`] gives.
    pub fn poll(&mut self, now: Instant, id: ConnectionId) {
        if let Some(connection) = self.open(id) {
            connection.session.poll(now);
            self.settle(now, id);
        }
    }

    /// When to call [`Hub::poll`] for this connection.
    pub fn deadline(&self, id: ConnectionId) -> Option<Instant> {
        self.connections.get(&id)?.session.deadline()
    }

    /// Bytes to be written to a switch: to be taken from the front, or all of them. Nothing for a connection that is gone.
    pub fn output(&mut self, id: ConnectionId) -> Option<&mut Vec<u8>> {
        self.connections.get_mut(&id).map(|connection| connection.session.output())
    }

    /// Whether the connection is to be closed, once its output is written.
    pub fn is_ended(&self, id: ConnectionId) -> bool {
        self.connections.get(&id).is_none_or(|connection| connection.ended.is_some())
    }

    /// The connection is closed; `reason` is told if the hub knows none of its own.
    pub fn disconnect(&mut self, now: Instant, id: ConnectionId, reason: &str) {
        self.end(now, id, reason.to_owned());
        self.connections.remove(&id);
    }

    /// What there is and what was counted.
    pub fn snapshot(&self) -> Snapshot {
        let up = self.connections.values().filter_map(|connection| connection.info.clone());
        Snapshot {
            switches: up.collect(),
            counters: self.counters.clone(),
            app: self.app.counters().into_iter().collect(),
        }
    }

    fn open(&mut self, id: ConnectionId) -> Option<&mut Connection> {
        self.connections.get_mut(&id).filter(|connection| connection.ended.is_none())
    }

    /// Hands on what a session has to say, in order, and sends what the application answers.
    fn settle(&mut self, now: Instant, id: ConnectionId) {
        while let Some(event) = self.open(id).and_then(|connection| connection.session.next_event()) {
            match event {
                Event::Up { version, features } => self.up(now, id, version, &features.unwrap_or_default()),
                Event::Message(message) => {
                    self.count_received(&message);
                    self.app.message(now, id, message, &mut self.outbox);
                }
                Event::Closed { reason } => self.end(now, id, reason),
            }
            self.dispatch(id);
        }
    }

    fn up(&mut self, now: Instant, id: ConnectionId, version: Version, features: &FeaturesReply) {
        if let Some(reason) = self.refusal(features) {
            return self.end(now, id, reason);
        }
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        let info = SwitchInfo { dpid: features.datapath_id, version, peer: connection.peer.clone() };
        connection.info = Some(info.clone());
        (self.observer)(&SwitchEvent::Up(info));
        self.app.switch_up(now, id, version, features, &mut self.outbox);
    }

    fn refusal(&self, features: &FeaturesReply) -> Option<String> {
        if features.auxiliary_id != 0 {
            return Some(format!("it is auxiliary connection {}; only main ones are served", features.auxiliary_id));
        }
        let dpid = features.datapath_id;
        let mut up = self.connections.values().filter_map(|connection| connection.info.as_ref());
        let same = up.find(|info| info.dpid == dpid)?;
        Some(format!("datapath id {dpid:016x} is connected already, from {}", same.peer))
    }

    /// Ends a connection, once: the application and the observer hear of it.
    fn end(&mut self, now: Instant, id: ConnectionId, reason: String) {
        let Some(connection) = self.connections.get_mut(&id).filter(|connection| connection.ended.is_none()) else {
            return;
        };
        connection.ended = Some(reason.clone());
        (connection.wake)();
        let event = match connection.info.take() {
            Some(switch) => {
                self.app.switch_down(now, id);
                SwitchEvent::Down { switch, reason }
            }
            None => {
                self.counters.refused += 1;
                SwitchEvent::Refused { peer: connection.peer.clone(), reason }
            }
        };
        (self.observer)(&event);
    }

    /// Sends what the application put out. The owner of `current` will look for output anyway; others are woken.
    fn dispatch(&mut self, current: ConnectionId) {
        for (id, mut message) in std::mem::take(&mut self.outbox) {
            let up = self.connections.get_mut(&id).filter(|connection| connection.info.is_some());
            let Some(connection) = up else {
                self.counters.dropped_gone += 1;
                continue;
            };
            message.xid = connection.session.next_xid();
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

impl Counters {
    fn count_sent(&mut self, message: &Message) {
        match &message.body {
            Body::FlowMod(_) => self.flow_mods += 1,
            Body::PacketOut(_) => self.packet_outs += 1,
            _ => {}
        }
    }
}
