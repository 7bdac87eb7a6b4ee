//! The loop of one thread: reads from its switches, lets the hub work, writes once to each switch that has output.
//!
//! A turn takes at most about [`TURN_BUDGET`] for work, so that what is urgent does not wait longer. Sockets are read
//! in every turn, as far as the hub allows ([`ControllerHub::read_limit`]): what waits is bounded and sorted in the
//! hub, and only what the hub could not keep waits in the sockets.
use super::Handover;
use super::link::SwitchStream;
use super::listener::ControllerListener;
use super::load::ThreadLoad;
use super::poller::{Interest, Poller, PollerWaker, Ready};
use crate::ConnectionId;
use crate::hub::table::ConnectionTable;
use crate::hub::{ControllerHub, ControllerSnapshot, Mastership, SwitchConnection};
use crate::status::{ControllerOverview, ThreadStatus};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;
use weir_tls::Credentials;
use weir_units::{Clock, Instant, SystemClock};

/// Bytes read at once from a switch.
const READ_BYTES: usize = 64 << 10;
/// Time for the hub's work in one turn.
const TURN_BUDGET: Duration = Duration::from_micros(200);
/// Most switches accepted at once from one listener.
const ACCEPTS_AT_ONCE: usize = 64;
/// Most switches looked at in a turn of those that are not read from.
const RESUMED_AT_ONCE: usize = 64;
/// Longest sleep while switches are not read from.
const PAUSED_SLEEP: Duration = Duration::from_millis(1);
/// Pause after a failed accept, which is most likely due to a lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// Tokens of the poller that are no connections.
const WAKE_TOKEN: u64 = u64::MAX;
const FIRST_LISTENER_TOKEN: u64 = u64::MAX / 2;

/// Order from another thread.
pub(super) enum ShardOrder {
    /// Serve a switch that has connected.
    Serve(SwitchStream, String),
    /// Go on serving an auxiliary connection, whose main connection is here.
    Adopt(SwitchStream, Box<SwitchConnection>),
    Mastership(Mastership),
    Snapshot(Sender<ControllerSnapshot>),
    Status(Sender<ControllerOverview>),
    Command(String, Sender<Option<String>>),
    Stop,
}

/// Part of a controller on one thread.
pub(super) struct Shard {
    pub(super) number: usize,
    pub(super) hub: ControllerHub,
    pub(super) orders: Receiver<ShardOrder>,
    pub(super) waker: PollerWaker,
    pub(super) handover: Arc<Handover>,
    /// Listeners, of the first thread only.
    pub(super) listeners: Vec<ControllerListener>,
    pub(super) credentials: Option<Credentials>,
    pub(super) clock: SystemClock,
    /// Time for which the thread polls after the last event, instead of sleeping.
    pub(super) spin: Duration,
    pub(super) links: ConnectionTable<Link>,
    pub(super) load: ThreadLoad,
    pub(super) buffers: ShardBuffers,
}

/// Memory that is used again in each turn.
#[derive(Default)]
pub(super) struct ShardBuffers {
    input: Vec<u8>,
    ready: Vec<Ready>,
    changed: Vec<ConnectionId>,
    /// Connections that are not read from at present.
    paused: VecDeque<ConnectionId>,
    /// Time at which listeners are listened to again after a failed accept.
    accept_again: Option<Instant>,
}

/// Connection of a switch.
pub(super) struct Link {
    stream: SwitchStream,
    interest: Interest,
}

/// End of a shard's loop.
pub(super) struct ShardStopped;

impl Shard {
    /// Runs until the order to stop.
    ///
    /// # Errors
    /// The system refuses to wait for sockets.
    pub(super) fn run(&mut self) -> io::Result<ShardStopped> {
        let mut poller = Poller::new()?;
        poller.add(self.waker.source(), WAKE_TOKEN, Interest { read: true, write: false })?;
        for (token, listener) in (FIRST_LISTENER_TOKEN..).zip(&self.listeners) {
            poller.add(listener, token, Interest { read: true, write: false })?;
        }
        self.buffers.input.resize(READ_BYTES, 0);
        let (mut has_more, mut last_event) = (false, self.clock.now());
        let mut worked_from = None;
        loop {
            let now = self.clock.now();
            if let Some(from) = worked_from.take() {
                self.load.count_turn(from, now);
            }
            let spins = self.spin > now.since(last_event);
            let timeout = if has_more || spins { Some(Duration::ZERO) } else { self.until_next(now) };
            let mut ready = std::mem::take(&mut self.buffers.ready);
            poller.wait(timeout, &mut ready)?;
            let now = self.clock.now();
            if !ready.is_empty() {
                last_event = now;
            }
            let is_due = self.hub.next_wake().is_some_and(|at| at <= now);
            worked_from = (has_more || is_due || !ready.is_empty()).then_some(now);
            let mut stops = false;
            for event in ready.drain(..) {
                stops |= self.handle(&poller, now, event);
            }
            self.buffers.ready = ready;
            if self.hub.next_wake().is_some_and(|at| at <= now) {
                self.hub.advance(now);
            }
            has_more = self.hub.work(now, TURN_BUDGET);
            self.write_changed(&poller, now);
            self.resume(&poller, now);
            if stops {
                self.close_all(self.clock.now());
                return Ok(ShardStopped);
            }
        }
    }

    fn until_next(&self, now: Instant) -> Option<Duration> {
        let paused = (!self.buffers.paused.is_empty()).then_some(now + PAUSED_SLEEP);
        let wake = [self.hub.next_wake(), self.buffers.accept_again, paused].into_iter().flatten().min();
        wake.map(|at| at.since(now))
    }

    /// Handles what is ready. Returns true at the order to stop.
    fn handle(&mut self, poller: &Poller, now: Instant, event: Ready) -> bool {
        match event.token {
            WAKE_TOKEN => return self.take_orders(poller, now),
            token if token >= FIRST_LISTENER_TOKEN => {
                self.accept(poller, now, usize::try_from(token - FIRST_LISTENER_TOKEN).unwrap_or(usize::MAX));
            }
            token => {
                let id = ConnectionId(token);
                if event.write {
                    self.write(poller, now, id);
                }
                if event.read {
                    self.read(poller, now, id);
                }
            }
        }
        false
    }

    fn take_orders(&mut self, poller: &Poller, now: Instant) -> bool {
        self.waker.acknowledge();
        let mut stops = false;
        while let Ok(order) = self.orders.try_recv() {
            match order {
                ShardOrder::Serve(stream, peer) => self.serve(poller, now, stream, peer),
                ShardOrder::Adopt(stream, connection) => match self.hub.adopt(now, *connection) {
                    Ok(id) => self.add(poller, now, id, stream),
                    Err(_) => self.handover.count_end(self.number),
                },
                ShardOrder::Mastership(wanted) => self.hub.set_mastership(now, wanted),
                // The other end may have gone.
                ShardOrder::Snapshot(to) => _ = to.send(self.hub.snapshot()),
                ShardOrder::Status(to) => _ = to.send(self.status(now)),
                ShardOrder::Command(command, to) => _ = to.send(self.hub.command(now, &command)),
                ShardOrder::Stop => stops = true,
            }
        }
        stops
    }

    fn status(&self, now: Instant) -> ControllerOverview {
        let status = self.hub.status(now);
        let shares = self.load.shares(now);
        let thread = ThreadStatus {
            thread: self.number,
            switches: status.switches.len(),
            connections: self.links.len(),
            busy: shares.recent,
            busy_since_start: shares.since_start,
            turns: shares.turns,
        };
        ControllerOverview { threads: vec![thread], ..status }
    }

    fn accept(&mut self, poller: &Poller, now: Instant, number: usize) {
        for _ in 0..ACCEPTS_AT_ONCE {
            let Some(listener) = self.listeners.get(number) else { return };
            match listener.accept(self.credentials.as_ref()) {
                Ok((stream, peer)) => match self.handover.choose() {
                    shard if shard == self.number => self.serve(poller, now, stream, peer),
                    shard => self.handover.order(shard, ShardOrder::Serve(stream, peer)),
                },
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) => {
                    tracing::warn!("a switch could not connect: {error}");
                    self.buffers.accept_again = Some(now + ACCEPT_PAUSE);
                    self.listeners.iter().for_each(|listener| poller.remove(listener));
                    return;
                }
            }
        }
    }

    /// Adds a switch that has connected to the hub.
    fn serve(&mut self, poller: &Poller, now: Instant, stream: SwitchStream, peer: String) {
        match self.hub.connect(now, peer) {
            Ok(id) => self.add(poller, now, id, stream),
            Err(_) => self.handover.count_end(self.number),
        }
    }

    fn add(&mut self, poller: &Poller, now: Instant, id: ConnectionId, stream: SwitchStream) {
        let interest = Interest { read: true, write: false };
        if let Err(error) = poller.add(&stream, id.0, interest) {
            self.handover.count_end(self.number);
            return self.hub.disconnect(now, id, &format!("the system cannot wait for it: {error}"));
        }
        self.links.insert_as(id, Link { stream, interest });
    }

    fn read(&mut self, poller: &Poller, now: Instant, id: ConnectionId) {
        let Some(link) = self.links.get_mut(id) else { return };
        let most = self.hub.read_limit(now, id);
        if most == 0 {
            // A broken connection is reported whether it is read from or not.
            if link.interest.read {
                self.buffers.paused.push_back(id);
            }
            return link.set(poller, id, Interest { read: false, ..link.interest });
        }
        let room = most.max(link.stream.least_room()).min(READ_BYTES);
        match link.stream.read(&mut self.buffers.input[..room]) {
            Ok(Some(length)) => self.hub.enqueue(now, id, &self.buffers.input[..length]),
            Ok(None) => self.close(now, id, "the switch closed the connection"),
            Err(error) => self.close(now, id, &weir_tls::explain(&error)),
        }
    }

    /// Writes to all switches that have output, and closes connections that the hub has ended.
    fn write_changed(&mut self, poller: &Poller, now: Instant) {
        let mut changed = std::mem::take(&mut self.buffers.changed);
        self.hub.take_changed(&mut changed);
        for id in changed.drain(..) {
            match self.hub.moves_to(id) {
                Some(shard) => self.hand_over(poller, id, shard),
                None => self.write(poller, now, id),
            }
        }
        self.buffers.changed = changed;
    }

    /// Writes a switch's output once. What the system does not take is written when it can be.
    fn write(&mut self, poller: &Poller, now: Instant, id: ConnectionId) {
        let Some(link) = self.links.get_mut(id) else { return };
        let Some(output) = self.hub.output(id) else { return };
        let wrote = if output.is_empty() { Ok(0) } else { link.stream.write(output) };
        let waits = wrote.and_then(|length| {
            output.drain(..length);
            Ok(link.stream.write_waiting()? || !output.is_empty())
        });
        match waits {
            Ok(waits) if !self.hub.is_ended(id) => {
                link.set(poller, id, Interest { write: waits, ..link.interest });
                self.hub.written(id);
            }
            Ok(_) => self.close(now, id, "ended"),
            Err(error) => self.close(now, id, &weir_tls::explain(&error)),
        }
    }

    /// Reads again from switches that were not read from, and listens again after a pause.
    fn resume(&mut self, poller: &Poller, now: Instant) {
        for _ in 0..self.buffers.paused.len().min(RESUMED_AT_ONCE) {
            let Some(id) = self.buffers.paused.pop_front() else { break };
            let Some(link) = self.links.get_mut(id) else { continue };
            if self.hub.read_limit(now, id) > 0 {
                link.set(poller, id, Interest { read: true, ..link.interest });
            } else {
                self.buffers.paused.push_back(id);
            }
        }
        if self.buffers.accept_again.is_some_and(|at| at <= now) {
            self.buffers.accept_again = None;
            for (token, listener) in (FIRST_LISTENER_TOKEN..).zip(&self.listeners) {
                // A listener that cannot be waited for stays silent; the system is out of memory then.
                let _ = poller.add(listener, token, Interest { read: true, write: false });
            }
        }
    }

    /// Gives an auxiliary connection to the thread that has its main connection.
    fn hand_over(&mut self, poller: &Poller, id: ConnectionId, shard: usize) {
        let Some((link, connection)) = self.links.remove(id).zip(self.hub.release(id)) else { return };
        poller.remove(&link.stream);
        self.handover.count_move(self.number, shard);
        self.handover.order(shard, ShardOrder::Adopt(link.stream, Box::new(connection)));
    }

    fn close(&mut self, now: Instant, id: ConnectionId, reason: &str) {
        self.hub.disconnect(now, id, reason);
        if let Some(mut link) = self.links.remove(id) {
            link.stream.finish();
            self.handover.count_end(self.number);
        }
    }

    fn close_all(&mut self, now: Instant) {
        for id in self.links.ids() {
            self.close(now, id, "the controller stops");
        }
    }

    /// Closes all connections after the application has panicked: neither it nor the hub is called any more, except
    /// for the names of the switches.
    pub(super) fn abandon(&mut self, reason: &str) {
        self.hub.abandon(reason);
        for id in self.links.ids() {
            if let Some(mut link) = self.links.remove(id) {
                link.stream.finish();
                self.handover.count_end(self.number);
            }
        }
        self.buffers = ShardBuffers::default();
    }
}

impl Link {
    fn set(&mut self, poller: &Poller, id: ConnectionId, interest: Interest) {
        if interest != self.interest {
            self.interest = interest;
            // Fails only for a socket that is not there; its end is noticed at the next read.
            let _ = poller.change(&self.stream, id.0, interest);
        }
    }
}
