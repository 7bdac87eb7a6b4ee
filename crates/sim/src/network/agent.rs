//! Simulates the agent of a switch or virtual switch: its datapath behind its end of the control channel, with the
//! delays of a profile.
use super::control::DelayedByteQueue;
use std::collections::VecDeque;
use weir_datapath::{ChannelId, Datapath, DatapathOutput};
use weir_device::DelayedDatapath;
use weir_openflow::Message;
use weir_openflow::model::Body;
use weir_openflow::model::multipart::{MultipartRequest, ReplyBody, RequestBody, TableStats};
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_packet::{Frame, FramePool, PortNo};
use weir_units::Instant;

/// Identifier of the channel to the controller.
const CHANNEL: ChannelId = ChannelId(1);

/// Takes frames and port states from the datapath's output. The agent itself passes messages on to its channel.
pub(super) type TakeOutput<'a> = dyn FnMut(Instant, &mut DatapathOutput, &mut FramePool) + 'a;

/// Datapath with its end of the control channel.
pub(super) struct SimulatedAgent {
    pub(super) datapath: Datapath,
    /// Output of the datapath that is not passed on yet.
    pub(super) out: DatapathOutput,
    /// Delays of the profiled device; `None` without a profile.
    delayed: Option<DelayedDatapath>,
    /// Messages received from the controller after a barrier that is not answered yet.
    pending_messages: VecDeque<Message>,
    session: Option<Session>,
    from_controller: DelayedByteQueue,
    is_up: bool,
    expire_at: Instant,
}

impl SimulatedAgent {
    /// Returns an agent without a control channel.
    pub(super) fn new(datapath: Datapath, delayed: Option<DelayedDatapath>) -> SimulatedAgent {
        SimulatedAgent {
            datapath,
            out: DatapathOutput::default(),
            delayed,
            pending_messages: VecDeque::new(),
            session: None,
            from_controller: DelayedByteQueue::default(),
            is_up: false,
            expire_at: Instant::ZERO,
        }
    }

    /// Begins the control channel.
    pub(super) fn connect(&mut self, session: SessionConfig) {
        self.session = Some(Session::switch(session, Instant::ZERO));
    }

    /// Ends the control channel for good.
    pub(super) fn disconnect(&mut self) {
        (self.session, self.is_up) = (None, false);
        self.from_controller = DelayedByteQueue::default();
    }

    /// Returns true if the agent has a control channel, whether or not it is up.
    pub(super) fn has_channel(&self) -> bool {
        self.session.is_some()
    }

    pub(super) fn session_output(&mut self) -> Option<&mut Vec<u8>> {
        self.session.as_mut().map(Session::output)
    }

    /// Queues bytes from the controller, which arrive at time `arrive`.
    pub(super) fn queue_control_bytes(&mut self, arrive: Instant, bytes: &mut Vec<u8>) {
        self.from_controller.send(arrive, bytes);
    }

    pub(super) fn next_control_arrival(&self) -> Instant {
        self.from_controller.next()
    }

    pub(super) fn is_up(&self) -> bool {
        self.is_up
    }

    /// Returns true if all messages that have arrived are carried out.
    pub(super) fn is_settled(&self) -> bool {
        self.pending_messages.is_empty() && self.delayed.as_ref().is_none_or(|delayed| !delayed.owes(CHANNEL))
    }

    pub(super) fn delays(&self) -> Option<&DelayedDatapath> {
        self.delayed.as_ref()
    }

    /// Runs frames received on a port through the datapath.
    pub(super) fn forward(
        &mut self,
        now: Instant,
        number: PortNo,
        frames: &mut Vec<Frame>,
        pool: &mut FramePool,
        take: &mut TakeOutput<'_>,
    ) {
        if frames.is_empty() {
            return;
        }
        if let Some(delayed) = &mut self.delayed {
            for frame in frames.drain(..) {
                delayed.packet(now, now, (number, frame), &mut self.datapath, pool, &mut self.out);
            }
        } else {
            self.datapath.process(now, number, frames, pool, &mut self.out);
        }
        self.deliver(now, pool, take);
    }

    /// Makes the next call of [`SimulatedAgent::expire`] look for ended flow entries. Packets that a learning bridge
    /// forwards may have added entries that end before the known ones.
    pub(super) fn expect_expiry(&mut self, now: Instant) {
        self.expire_at = self.expire_at.min(now);
    }

    /// Removes flow entries whose time is over.
    pub(super) fn expire(&mut self, now: Instant, pool: &mut FramePool, take: &mut TakeOutput<'_>) {
        if now >= self.expire_at {
            self.expire_at = self.datapath.expire(now, &mut self.out).unwrap_or(Instant::FAR);
            self.deliver(now, pool, take);
        }
    }

    /// Handles bytes that have arrived from the controller, and the session's due work.
    pub(super) fn receive_control_bytes(&mut self, now: Instant, pool: &mut FramePool, take: &mut TakeOutput<'_>) {
        let Some(mut session) = self.session.take() else { return };
        while let Some(bytes) = self.from_controller.arrived(now) {
            session.receive(now, &bytes);
            while let Some(event) = session.take_event() {
                self.take_event(now, event, &mut session, pool, take);
            }
        }
        session.poll(now);
        while let Some(event) = session.take_event() {
            self.take_event(now, event, &mut session, pool, take);
        }
        self.session = Some(session);
    }

    fn take_event(
        &mut self,
        now: Instant,
        event: SessionEvent,
        session: &mut Session,
        pool: &mut FramePool,
        take: &mut TakeOutput<'_>,
    ) {
        match event {
            SessionEvent::Up { version, .. } => {
                self.is_up = true;
                self.datapath.channel_up(now, CHANNEL, version);
            }
            SessionEvent::Message(message) => {
                self.pending_messages.push_back(message);
                self.handle_pending(now, pool);
            }
            SessionEvent::Closed { .. } => {
                if std::mem::take(&mut self.is_up) {
                    self.datapath.channel_down(now, CHANNEL);
                }
            }
        }
        self.deliver_with(now, Some(session), pool, take);
    }

    /// Passes the datapath's output on: frames and port states to `take`, messages to the channel.
    pub(super) fn deliver(&mut self, now: Instant, pool: &mut FramePool, take: &mut TakeOutput<'_>) {
        let mut session = self.session.take();
        self.deliver_with(now, session.as_mut(), pool, take);
        self.session = session;
    }

    fn deliver_with(
        &mut self,
        now: Instant,
        session: Option<&mut Session>,
        pool: &mut FramePool,
        take: &mut TakeOutput<'_>,
    ) {
        take(now, &mut self.out, pool);
        let messages = self.out.messages.drain(..).filter(|(channel, _)| *channel == CHANNEL);
        if let Some(session) = session {
            // A channel that is not up, or whose output is full, drops messages as the live switch does. The embedded
            // controller reads at once.
            messages.for_each(|(_, message)| drop(session.send(&message)));
        } else {
            messages.for_each(drop);
        }
        self.out.limited.clear();
    }

    /// Handles pending messages of the controller, or hands them to the profile's delays. Stops at a barrier that is
    /// not answered yet.
    fn handle_pending(&mut self, now: Instant, pool: &mut FramePool) {
        while self.delayed.as_ref().is_none_or(|delayed| delayed.has_room() && !delayed.awaits_answer(CHANNEL))
            && let Some(message) = self.pending_messages.pop_front()
        {
            let (datapath, out) = (&mut self.datapath, &mut self.out);
            let message = match &mut self.delayed {
                Some(delayed) => delayed.message((now, now), (CHANNEL, message), datapath, pool, out),
                None => Some(message),
            };
            if let Some(message) = message {
                datapath.handle(now, CHANNEL, message, pool, out);
            }
            // The message may have added flow entries that end before the known ones.
            self.expect_expiry(now);
        }
    }

    /// Releases delayed messages and packets that are due.
    pub(super) fn release(&mut self, now: Instant, pool: &mut FramePool, take: &mut TakeOutput<'_>) {
        while let Some(delayed) = &mut self.delayed
            && delayed.release(now, now, &mut self.datapath, pool, &mut self.out).is_some()
        {
            self.expect_expiry(now);
            self.handle_pending(now, pool);
            self.deliver(now, pool, take);
        }
    }

    /// Returns the time of its next due work if nothing arrives before.
    pub(super) fn next_wake(&self) -> Instant {
        let session = self.session.as_ref().and_then(Session::deadline);
        let delayed = self.delayed.as_ref().map(DelayedDatapath::due);
        let wakes = session.into_iter().chain(delayed).chain([self.from_controller.next()]);
        wakes.fold(self.expire_at, Instant::min)
    }

    /// Returns the number of flow entries in all tables.
    pub(super) fn entries(&mut self, now: Instant, pool: &mut FramePool) -> u64 {
        self.tables(now, pool).iter().map(|table| u64::from(table.active_count)).sum()
    }

    /// Returns the statistics of all tables by a table statistics request, as a controller would send it.
    pub(super) fn tables(&mut self, now: Instant, pool: &mut FramePool) -> Vec<TableStats> {
        let body = MultipartRequest { more: false, body: RequestBody::Table };
        let request = Message { xid: 0, body: Body::MultipartRequest(body) };
        self.datapath.handle(now, ChannelId::LOCAL, request, pool, &mut self.out);
        let mut tables = Vec::new();
        self.out.messages.retain(|(channel, message)| {
            if let (ChannelId::LOCAL, Body::MultipartReply(reply)) = (*channel, &message.body)
                && let ReplyBody::Table(part) = &reply.body
            {
                tables.extend(part.iter().cloned());
            }
            *channel != ChannelId::LOCAL
        });
        tables
    }
}
