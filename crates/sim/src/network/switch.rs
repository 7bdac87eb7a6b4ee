//! Simulates a switch in virtual time: the datapath between its ports, and its end of the control channel.
use super::control::DelayedByteQueue;
use super::virtual_switches::{self, VirtualSwitchSet};
use super::{Peers, SimulatedNode};
use std::collections::VecDeque;
use weir_datapath::{ChannelId, Datapath, DatapathOutput};
use weir_device::DelayedDatapath;
use weir_network::NetworkError;
use weir_network::datapath;
use weir_network::result::{DropCount, SwitchResult, port_drops};
use weir_openflow::Message;
use weir_openflow::model::multipart::{MultipartRequest, ReplyBody, RequestBody, TableStats};
use weir_openflow::model::port::bits;
use weir_openflow::model::{Body, PortDesc};
use weir_openflow::session::{Session, SessionConfig, SessionEvent};
use weir_packet::{Frame, FramePool, PortNo};
use weir_port::{FrameCounters, LinkState, Port};
use weir_scenario::Scenario;
use weir_units::Instant;

/// Identifier of the channel to the controller.
const CHANNEL: ChannelId = ChannelId(1);
/// Frames taken from a port at once; equals the live burst.
const BURST: usize = 32;
/// Frames that the pool keeps.
const POOL_FRAMES: usize = 4096;

/// Switch with its ports and its end of the control channel.
pub(super) struct SimulatedSwitch {
    name: String,
    dpid: u64,
    datapath: Datapath,
    /// Virtual switches; `None` if the switch is not cut.
    cuts: Option<VirtualSwitchSet>,
    /// Delays of the profiled device; `None` if the switch has no profile.
    delayed: Option<DelayedDatapath>,
    /// Messages received from the controller after a barrier that is not answered yet.
    pending_messages: VecDeque<Message>,
    ports: Vec<WiredPort>,
    peers: Peers,
    pool: FramePool,
    out: DatapathOutput,
    batch: Vec<Frame>,
    session: Option<Session>,
    from_controller: DelayedByteQueue,
    is_up: bool,
    expire_at: Instant,
    /// True if a port may have more frames than were taken.
    more: bool,
}

struct WiredPort {
    number: PortNo,
    port: Box<dyn Port>,
    peer: SimulatedNode,
}

impl SimulatedSwitch {
    /// Returns a switch without ports.
    ///
    /// # Errors
    /// The switch's virtual switches or its profile cannot be simulated.
    pub(super) fn new(
        scenario: &Scenario,
        spec: &weir_scenario::ScenarioSwitch,
    ) -> Result<SimulatedSwitch, NetworkError> {
        let (config, fail_mode) = datapath::config(spec);
        let mut datapath = Datapath::new(config);
        datapath.set_fail_mode(fail_mode);
        let timed = timed(scenario, spec, &mut datapath)?;
        Ok(SimulatedSwitch {
            name: spec.name.clone(),
            dpid: spec.dpid,
            datapath,
            cuts: virtual_switches::of(spec)?,
            delayed: timed,
            pending_messages: VecDeque::new(),
            ports: Vec::new(),
            peers: Peers::new(),
            pool: FramePool::new(POOL_FRAMES, BURST),
            out: DatapathOutput::default(),
            batch: Vec::new(),
            session: None,
            from_controller: DelayedByteQueue::default(),
            is_up: false,
            expire_at: Instant::ZERO,
            more: false,
        })
    }

    /// Adds the flow entries of the scenario.
    ///
    /// # Errors
    /// An entry cannot be parsed, or is refused.
    pub(super) fn add_entries(&mut self, entries: &[String]) -> Result<(), NetworkError> {
        let name = &self.name;
        let wrong = |problem| NetworkError::Scenario(format!("switch {name}: {problem}"));
        self.datapath.add_entries(Instant::ZERO, entries).map_err(wrong)
    }

    /// Adds a port, with the device and the name at its other end.
    pub(super) fn add_port(
        &mut self,
        number: PortNo,
        mut port: Box<dyn Port>,
        peer: SimulatedNode,
        peer_name: &str,
    ) -> Result<(), NetworkError> {
        let (info, speed) = (port.info().clone(), speed_kbps(port.link()));
        let desc = PortDesc {
            state: bits::LIVE,
            curr_speed: speed,
            max_speed: speed,
            ..PortDesc::new(number, info.mac, info.name)
        };
        let refused = |problem: String| NetworkError::Scenario(format!("switch {}: {problem}", self.name));
        if let Some(cuts) = &mut self.cuts {
            cuts.add_port(&desc).map_err(refused)?;
        }
        self.datapath.add_port(Instant::ZERO, desc, &mut self.out).map_err(refused)?;
        self.peers.insert(number, format!("to {peer_name}"));
        self.ports.push(WiredPort { number, port, peer });
        Ok(())
    }

    /// Tells the datapath whether a port's link is up.
    pub(super) fn look_at_link(&mut self, now: Instant, number: PortNo) {
        let Some(wired) = self.ports.iter_mut().find(|wired| wired.number == number) else { return };
        let link = wired.port.link();
        self.datapath.set_link(now, number, link.up, speed_kbps(link), &mut self.out);
        self.deliver(now);
    }

    /// Begins the control channel.
    pub(super) fn connect(&mut self, session: SessionConfig) {
        self.session = Some(Session::switch(session, Instant::ZERO));
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

    pub(super) fn has_more(&self) -> bool {
        self.more
    }

    /// Handles all work due at `now`. Returns the devices that have received frames.
    pub(super) fn run(&mut self, now: Instant) -> Vec<SimulatedNode> {
        let sent = |wired: &WiredPort| wired.port.counters().tx_packets;
        let before: Vec<u64> = self.ports.iter().map(sent).collect();
        self.receive_control_bytes(now);
        self.release(now);
        self.more = false;
        self.run_cuts(now);
        for place in 0..self.ports.len() {
            self.forward_from(place, now);
        }
        if now >= self.expire_at {
            self.expire_at = self.datapath.expire(now, &mut self.out).unwrap_or(Instant::FAR);
            self.deliver(now);
        }
        self.release(now);
        self.run_cuts(now);
        let reached = self.ports.iter().zip(before).filter(|(wired, before)| sent(wired) != *before);
        reached.map(|(wired, _)| wired.peer).collect()
    }

    fn forward_from(&mut self, place: usize, now: Instant) {
        let WiredPort { number, port, .. } = &mut self.ports[place];
        let number = *number;
        // Receiving from a memory port does not fail.
        let _ = port.receive(now, &mut self.pool, &mut self.batch, BURST);
        if port.next_wake().is_some_and(|at| at <= now) {
            let _ = port.transmit(now, &mut self.pool, &mut Vec::new());
        }
        self.more |= self.batch.len() >= BURST;
        if let Some(cuts) = &mut self.cuts {
            cuts.take(now, number, &mut self.batch, &mut self.pool);
        }
        if let Some(timed) = &mut self.delayed {
            for frame in self.batch.drain(..) {
                timed.packet(now, now, (number, frame), &mut self.datapath, &mut self.pool, &mut self.out);
            }
            return self.deliver(now);
        }
        if !self.batch.is_empty() {
            self.datapath.process(now, number, &mut self.batch, &mut self.pool, &mut self.out);
            self.deliver(now);
        }
    }

    /// Sends the frames of virtual switches that are due.
    fn run_cuts(&mut self, now: Instant) {
        let Some(cuts) = &mut self.cuts else { return };
        let ports = &mut self.ports;
        cuts.run(now, &mut self.pool, |number, frames, pool| {
            match ports.iter_mut().find(|wired| wired.number == number) {
                // Sending to a memory port does not fail.
                Some(wired) => drop(wired.port.transmit(now, pool, frames)),
                None => frames.drain(..).for_each(|frame| pool.give(frame)),
            }
        });
    }

    /// Handles bytes that have arrived from the controller, and the session's due work.
    fn receive_control_bytes(&mut self, now: Instant) {
        let Some(mut session) = self.session.take() else { return };
        while let Some(bytes) = self.from_controller.arrived(now) {
            session.receive(now, &bytes);
            while let Some(event) = session.take_event() {
                self.take_event(now, event, &mut session);
            }
        }
        session.poll(now);
        while let Some(event) = session.take_event() {
            self.take_event(now, event, &mut session);
        }
        self.session = Some(session);
    }

    fn take_event(&mut self, now: Instant, event: SessionEvent, session: &mut Session) {
        match event {
            SessionEvent::Up { version, .. } => {
                self.is_up = true;
                self.datapath.channel_up(now, CHANNEL, version);
            }
            SessionEvent::Message(message) => {
                self.pending_messages.push_back(message);
                self.handle_pending(now);
            }
            SessionEvent::Closed { .. } => {
                if std::mem::take(&mut self.is_up) {
                    self.datapath.channel_down(now, CHANNEL);
                }
            }
        }
        self.deliver_with(now, Some(session));
    }

    fn deliver(&mut self, now: Instant) {
        let mut session = self.session.take();
        self.deliver_with(now, session.as_mut());
        self.session = session;
    }

    /// Passes the datapath's output on: frames to ports, messages to the channel, port states to ports.
    fn deliver_with(&mut self, now: Instant, session: Option<&mut Session>) {
        for (number, frames) in self.out.frames.iter_mut().filter(|(_, frames)| !frames.is_empty()) {
            if let Some(cuts) = &mut self.cuts {
                cuts.take_own(now, *number, frames, &mut self.pool);
            }
            match self.ports.iter_mut().find(|wired| wired.number == *number) {
                Some(wired) => drop(wired.port.transmit(now, &mut self.pool, frames)),
                None => frames.drain(..).for_each(|frame| self.pool.give(frame)),
            }
        }
        let messages = self.out.messages.drain(..).filter(|(channel, _)| *channel == CHANNEL);
        if let Some(session) = session {
            // A channel that is not up, or whose output is full, drops messages as the live switch does. The embedded
            // controller reads at once.
            messages.for_each(|(_, message)| drop(session.send(&message)));
        } else {
            messages.for_each(drop);
        }
        self.out.limited.clear();
        for (number, up) in std::mem::take(&mut self.out.port_admin) {
            if let Some(wired) = self.ports.iter_mut().find(|wired| wired.number == number) {
                let _ = wired.port.set_admin(up);
            }
        }
    }

    /// Handles pending messages of the controller, or hands them to the profile's delays. Stops at a barrier that is
    /// not answered yet.
    fn handle_pending(&mut self, now: Instant) {
        while self.delayed.as_ref().is_none_or(|timed| timed.has_room() && !timed.awaits_answer(CHANNEL))
            && let Some(message) = self.pending_messages.pop_front()
        {
            let (datapath, pool, out) = (&mut self.datapath, &mut self.pool, &mut self.out);
            let message = match &mut self.delayed {
                Some(timed) => timed.message((now, now), (CHANNEL, message), datapath, pool, out),
                None => Some(message),
            };
            if let Some(message) = message {
                datapath.handle(now, CHANNEL, message, pool, out);
            }
            // The message may have added flow entries that end before the known ones.
            self.expire_at = self.expire_at.min(now);
        }
    }

    /// Releases delayed messages and packets that are due.
    fn release(&mut self, now: Instant) {
        while let Some(timed) = &mut self.delayed
            && timed.release(now, now, &mut self.datapath, &mut self.pool, &mut self.out).is_some()
        {
            self.expire_at = self.expire_at.min(now);
            self.handle_pending(now);
            self.deliver(now);
        }
    }

    /// Returns the time at which to call [`SimulatedSwitch::run`] next if nothing arrives before.
    pub(super) fn next_wake(&self) -> Instant {
        let ports = self.ports.iter().filter_map(|wired| wired.port.next_wake());
        let session = self.session.as_ref().and_then(Session::deadline);
        let cuts = self.cuts.as_ref().map(VirtualSwitchSet::due);
        ports
            .chain(session)
            .chain(cuts)
            .chain(self.delayed.as_ref().map(DelayedDatapath::due))
            .chain([self.expire_at, self.from_controller.next()])
            .min()
            .unwrap_or(Instant::FAR)
    }

    /// Returns the number of flow entries in all tables.
    pub(super) fn entries(&mut self, now: Instant) -> u64 {
        self.tables(now).iter().map(|table| u64::from(table.active_count)).sum()
    }

    /// Returns the statistics of all tables by a table statistics request, as a controller would send it.
    fn tables(&mut self, now: Instant) -> Vec<TableStats> {
        let body = MultipartRequest { more: false, body: RequestBody::Table };
        let request = Message { xid: 0, body: Body::MultipartRequest(body) };
        self.datapath.handle(now, ChannelId::LOCAL, request, &mut self.pool, &mut self.out);
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

    /// Returns the counters of the switch, and appends its drops to `drops`.
    pub(super) fn result(&mut self, now: Instant, drops: &mut Vec<DropCount>) -> SwitchResult {
        for wired in &self.ports {
            let peer = self.peers.get(&wired.number).map_or("", String::as_str);
            let place = format!("{} port {} {peer}", self.name, wired.number);
            port_drops(&place, &wired.port.counters(), drops);
        }
        for (reason, packets) in self.datapath.drops().counted() {
            drops.push(DropCount { place: self.name.clone(), reason: name_of(reason), packets });
        }
        let lost = self.delayed.iter().flat_map(DelayedDatapath::drops).filter(|(_, packets)| *packets > 0);
        drops.extend(lost.map(|(reason, packets)| {
            let reason = reason.replace('_', " ");
            DropCount { place: self.name.clone(), reason, packets }
        }));
        if let Some(cuts) = &self.cuts {
            cuts.drops(&self.name, drops);
        }
        let tables = self.tables(now);
        let sum = |what: fn(&FrameCounters) -> u64| self.ports.iter().map(|wired| what(&wired.port.counters())).sum();
        SwitchResult {
            name: self.name.clone(),
            dpid: self.dpid,
            channels_up: usize::from(self.is_up),
            entries: tables.iter().map(|table| u64::from(table.active_count)).sum(),
            packets: tables.iter().find(|table| table.table.0 == 0).map_or(0, |table| table.lookup_count),
            rx_packets: sum(|counters| counters.rx_packets),
            tx_packets: sum(|counters| counters.tx_packets),
        }
    }
}

/// Returns a link's speed as a port's description has it, in kbit/s; 0 if it is not known.
fn speed_kbps(link: LinkState) -> u32 {
    link.speed.map_or(0, |rate| u32::try_from(rate.0 / 1000).unwrap_or(u32::MAX))
}

/// Returns the delays of the switch's profile; `None` if it has no profile.
fn timed(
    scenario: &Scenario,
    spec: &weir_scenario::ScenarioSwitch,
    datapath: &mut Datapath,
) -> Result<Option<DelayedDatapath>, NetworkError> {
    let Some((profile, seed)) = datapath::profile(scenario, spec) else { return Ok(None) };
    let wrong = |problem: String| NetworkError::Scenario(format!("switch {}: {problem}", spec.name));
    if !spec.virtual_switches.is_empty() {
        return Err(wrong(
            "found virtual switches with a profile, expected one of them: a profile is of one switch".into(),
        ));
    }
    DelayedDatapath::new(&profile, seed, datapath).map_err(|error| wrong(error.to_string()))
}

/// Returns a drop reason as labs name it: the counter's name in words.
pub(super) fn name_of(reason: weir_datapath::DropReason) -> String {
    let name = serde_json::to_value(reason).ok();
    name.as_ref()
        .and_then(serde_json::Value::as_str)
        .map_or_else(|| reason.text().to_owned(), |name| name.replace('_', " "))
}
