//! Runs sessions and the application without I/O: takes and returns the bytes of every connection.
//!
//! Each switch has one main connection. A second main connection with the datapath id of a connected switch is
//! refused because it would take over that switch's traffic. A switch whose old connection was lost unnoticed can
//! connect again once the old connection's echo request has timed out.
//!
//! Auxiliary connections (OpenFlow 1.3.5, 6.3.7) join the main connection of their datapath id and end with it. A
//! packet-out that answers a packet-in uses the connection on which the packet-in arrived, as the specification
//! suggests. All other messages use the main connection, which keeps them in order.
//!
//! There are two ways in. [`ControllerHub::receive`] handles all messages at once and in order, as a controller does
//! that is never busy: for virtual time. [`ControllerHub::enqueue`] only sorts them into queues, and
//! [`ControllerHub::work`] handles some, fairly to every switch: for a loop whose switches may send more than it
//! handles. Memory is bounded by [`ControllerHub::connect`]'s maximum of connections, and for each by its queues
//! ([`MOST_QUEUED`], [`MOST_QUEUED_BYTES`]), one message that is not whole yet, and
//! [`SessionConfig::max_output_bytes`].
pub(crate) mod class;
mod dispatch;
mod drop_budget;
mod handshake;
mod input;
mod queue;
pub(crate) mod registry;
mod role;
mod schedule;
mod status;
pub(crate) mod table;
mod types;

use crate::{ConnectionId, ControllerApp, ControllerOutbox};
use drop_budget::DropBudget;
use queue::{QueueLimit, SwitchQueues};
use registry::SwitchRegistry;
use role::RoleNegotiation;
use schedule::{Schedule, SwitchTurn};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use table::ConnectionTable;
use weir_openflow::model::FeaturesReply;
use weir_openflow::session::{Session, SessionConfig};
use weir_units::{Instant, LogThrottle};

pub use class::MessageClass;
pub use queue::{QueueDropReason, QueueDrops};
pub use role::{Mastership, role_name};
pub use types::{ControllerCounters, ControllerSnapshot, SwitchEvent, SwitchInfo, SwitchLoad};

/// Callback for events of switches. It is called while the hub works, so it must be quick and must not call the hub.
pub type Observer = Box<dyn FnMut(&SwitchEvent) + Send>;

/// Packet-ins that wait, in each class, over all switches. They share it equally, but each has [`LEAST_QUEUED`]. At a
/// million a second the oldest has waited some 16 ms.
pub const MOST_QUEUED: usize = 16_384;
/// Bytes that wait, in each class, over all switches. They share it equally, but each has [`LEAST_QUEUED_BYTES`].
pub const MOST_QUEUED_BYTES: usize = 16 << 20;
/// Messages that may wait for each switch in each class, however many switches there are.
pub const LEAST_QUEUED: usize = 64;
/// Bytes that may wait for each switch in each class, however many switches there are; one message may exceed it.
pub const LEAST_QUEUED_BYTES: usize = 64 << 10;
/// Time between two lines of the log about drops.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// Sessions of all connections, and the application.
pub struct ControllerHub {
    app: Box<dyn ControllerApp>,
    session: SessionConfig,
    max_connections: usize,
    observer: Observer,
    connections: ConnectionTable<SwitchConnection>,
    /// Connections made so far, which orders them by age.
    last_serial: u64,
    /// Connections that have not ended.
    n_open: usize,
    counters: ControllerCounters,
    outbox: ControllerOutbox,
    /// Messages of the application that were sent.
    n_sent: u64,
    mastership: Mastership,
    schedule: Schedule,
    /// Connections with urgent messages.
    urgent: VecDeque<ConnectionId>,
    /// Connections with output, or that have ended.
    changed: Vec<ConnectionId>,
    /// Times at which to look at sessions' timers, with outdated ones.
    timers: BinaryHeap<Reverse<(Instant, ConnectionId)>>,
    registry: Arc<SwitchRegistry>,
    /// Number of this hub among those that share the registry.
    shard: usize,
    /// Message that is being handled.
    current: Vec<u8>,
    drop_log: LogThrottle,
    drop_budget: DropBudget,
}

pub(crate) struct SwitchConnection {
    session: Session,
    peer: String,
    serial: u64,
    /// Description of the switch, if this is a main connection that is up.
    info: Option<SwitchInfo>,
    /// Time since which it is up.
    up_at: Instant,
    /// Features reply of the switch.
    features: FeaturesReply,
    /// Id of the main connection and own auxiliary id, if this is an auxiliary connection that is up.
    auxiliary: Option<(ConnectionId, u8)>,
    role_negotiation: RoleNegotiation,
    /// True if the switch was announced to the application.
    is_served: bool,
    /// Reason for closing the connection, once it has ended.
    ended: Option<String>,
    /// Hub that has the main connection of this auxiliary connection.
    moves_to: Option<usize>,
    queues: SwitchQueues,
    turn: SwitchTurn,
    is_urgent: bool,
    is_changed: bool,
    /// Time of this connection's entry in the hub's timers that counts.
    timer: Option<Instant>,
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
            connections: ConnectionTable::default(),
            last_serial: 0,
            n_open: 0,
            counters: ControllerCounters::default(),
            outbox: ControllerOutbox::default(),
            n_sent: 0,
            mastership: Mastership::default(),
            schedule: Schedule::new(),
            urgent: VecDeque::new(),
            changed: Vec::new(),
            timers: BinaryHeap::new(),
            registry: Arc::default(),
            shard: 0,
            current: Vec::new(),
            drop_log: LogThrottle::new(LOG_EVERY),
            drop_budget: DropBudget::default(),
        }
    }

    /// Makes this hub one of several that know each other's switches.
    pub(crate) fn share(&mut self, registry: Arc<SwitchRegistry>, shard: usize) {
        (self.registry, self.shard) = (registry, shard);
    }

    /// Adds a connection of a switch from `peer`. The connection has output at once: the hello message. If there are
    /// as many as allowed, the oldest that has not introduced itself gives way.
    ///
    /// # Errors
    /// [`TooManyConnections`]: all are switches that are up. The caller has to close the connection.
    pub fn connect(&mut self, now: Instant, peer: String) -> Result<ConnectionId, TooManyConnections> {
        self.counters.connections += 1;
        self.make_room(now, &peer)?;
        let session = Session::controller(self.session.clone(), now);
        let id = self.insert(SwitchConnection {
            session,
            peer,
            serial: 0,
            info: None,
            up_at: now,
            features: FeaturesReply::default(),
            auxiliary: None,
            role_negotiation: RoleNegotiation::default(),
            is_served: false,
            ended: None,
            moves_to: None,
            queues: SwitchQueues::default(),
            turn: SwitchTurn::default(),
            is_urgent: false,
            is_changed: false,
            timer: None,
        });
        Ok(id)
    }

    fn insert(&mut self, mut connection: SwitchConnection) -> ConnectionId {
        self.last_serial += 1;
        self.n_open += 1;
        connection.serial = self.last_serial;
        let id = self.connections.insert(connection);
        self.set_timer(id);
        self.note_output(id);
        id
    }

    fn make_room(&mut self, now: Instant, peer: &str) -> Result<(), TooManyConnections> {
        if self.n_open < self.max_connections {
            return Ok(());
        }
        let silent = |found: &SwitchConnection| {
            found.ended.is_none() && found.info.is_none() && found.auxiliary.is_none() && found.moves_to.is_none()
        };
        let half_open = self.connections.iter().filter(|(_, found)| silent(found));
        let oldest = half_open.min_by_key(|(_, found)| found.serial).map(|(id, _)| id);
        match oldest {
            Some(oldest) => {
                let reason = "it had not introduced itself, and another connection needed its place";
                self.counters.half_open_ended += 1;
                self.end(now, oldest, reason.to_owned());
                Ok(())
            }
            None => {
                let full = TooManyConnections(self.max_connections);
                self.counters.refused += 1;
                (self.observer)(&SwitchEvent::Refused { peer: peer.to_owned(), reason: full.to_string() });
                Err(full)
            }
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
        self.connections.get(id)?.session.deadline()
    }

    /// Returns the next time at which to call [`ControllerHub::advance`]. It may be earlier than anything happens.
    pub fn next_wake(&self) -> Option<Instant> {
        let timer = self.timers.peek().map(|Reverse((at, _))| *at);
        [timer, self.app.next_wake()].into_iter().flatten().min()
    }

    /// Handles time-outs of all connections, and the application's timers, that are due.
    pub fn advance(&mut self, now: Instant) {
        while let Some(Reverse((at, id))) = self.timers.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.timers.pop();
            if let Some(connection) = self.connections.get_mut(id).filter(|found| found.timer == Some(at)) {
                connection.timer = None;
                self.poll(now, id);
                self.set_timer(id);
            }
        }
        self.wake_app(now);
    }

    /// Calls the application if the time that it asked for has come ([`ControllerApp::next_wake`]).
    pub fn wake_app(&mut self, now: Instant) {
        if self.app.next_wake().is_some_and(|at| at <= now) {
            self.app.handle_wake(now, &mut self.outbox);
            self.dispatch(None);
        }
    }

    /// Returns the time at which to call [`ControllerHub::wake_app`].
    pub fn app_wake(&self) -> Option<Instant> {
        self.app.next_wake()
    }

    /// Passes a command from outside to the application. Returns its answer; `None` if it knows no such command.
    pub fn command(&mut self, now: Instant, command: &str) -> Option<String> {
        let answer = self.app.handle_command(now, command, &mut self.outbox);
        self.dispatch(None);
        answer
    }

    /// Sets a timer for a session that has none as early as its deadline.
    fn set_timer(&mut self, id: ConnectionId) {
        let Some(connection) = self.find_open(id) else { return };
        let Some(at) = connection.session.deadline() else { return };
        if connection.timer.is_none_or(|timer| at < timer) {
            connection.timer = Some(at);
            self.timers.push(Reverse((at, id)));
        }
    }

    /// Returns the bytes to write to a switch. The caller removes the bytes written from the front, and then calls
    /// [`ControllerHub::written`]. `None` if the connection does not exist.
    pub fn output(&mut self, id: ConnectionId) -> Option<&mut Vec<u8>> {
        self.connections.get_mut(id).map(|connection| connection.session.output())
    }

    /// Notes that output was written. The packet-ins of a switch that read too slowly may be handled again.
    pub fn written(&mut self, id: ConnectionId) {
        self.begin_turn(id);
    }

    /// Moves the connections that have output, have ended or move to another hub since the last call, to `into`.
    pub fn take_changed(&mut self, into: &mut Vec<ConnectionId>) {
        for id in &self.changed {
            if let Some(connection) = self.connections.get_mut(*id) {
                connection.is_changed = false;
            }
        }
        into.append(&mut self.changed);
    }

    /// Returns true if the connection has to be closed once its output is written.
    pub fn is_ended(&self, id: ConnectionId) -> bool {
        self.connections.get(id).is_none_or(|connection| connection.ended.is_some())
    }

    /// Removes a closed connection. `reason` is reported if the hub has not ended the connection itself.
    pub fn disconnect(&mut self, now: Instant, id: ConnectionId, reason: &str) {
        self.handle_last_words(now, id);
        self.end(now, id, reason.to_owned());
        self.connections.remove(id);
    }

    /// Returns the connected switches and all counters.
    pub fn snapshot(&self) -> ControllerSnapshot {
        let up = self.connections.iter().filter_map(|(_, connection)| connection.info.clone());
        ControllerSnapshot {
            switches: up.collect(),
            loads: self.connections.iter().filter_map(|(_, connection)| connection.load()).collect(),
            counters: self.counters.clone(),
            app: self.app.counters().into_iter().collect(),
        }
    }

    /// Returns the counters.
    pub fn counters(&self) -> &ControllerCounters {
        &self.counters
    }

    fn find_open(&mut self, id: ConnectionId) -> Option<&mut SwitchConnection> {
        self.connections.get_mut(id).filter(|connection| connection.ended.is_none() && connection.moves_to.is_none())
    }

    /// Returns each switch's part of the queues.
    fn limit(&self) -> QueueLimit {
        let switches = self.n_open.max(1);
        QueueLimit {
            messages: (MOST_QUEUED / switches).max(LEAST_QUEUED),
            bytes: (MOST_QUEUED_BYTES / switches).max(LEAST_QUEUED_BYTES),
        }
    }

    /// Lists a connection as changed if it has output.
    fn note_output(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(id)
            && !connection.session.output().is_empty()
        {
            self.note_changed(id);
        }
    }

    fn note_changed(&mut self, id: ConnectionId) {
        if let Some(connection) = self.connections.get_mut(id)
            && !std::mem::replace(&mut connection.is_changed, true)
        {
            self.changed.push(id);
        }
    }
}

impl SwitchConnection {
    /// Returns what waits for a switch and what was dropped; `None` if it is not up, or for an auxiliary connection
    /// from which nothing was dropped.
    fn load(&self) -> Option<SwitchLoad> {
        let info = self.info.as_ref()?;
        let (waiting, waiting_bytes) = self.queues.waiting();
        Some(SwitchLoad { dpid: info.dpid, waiting, waiting_bytes, dropped: self.queues.drops() })
    }
}
