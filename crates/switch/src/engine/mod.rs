//! Runs the packet path on one thread, which is the only owner of the datapath. The thread takes frames from ports,
//! runs them through the flow tables and transmits them (run to completion), carries out controllers' messages in
//! between, and sleeps when there is no work.
//!
//! Each round does a bounded amount of each kind of work, so that no port, controller or timer starves another: one
//! burst per port, then control messages and expired flow entries for about [`CONTROL_TIME`]. While frames keep
//! arriving, forwarding then gets as much time as control work took.
mod arrivals;
mod channel_table;
mod groups;
pub(crate) mod idle;
pub(crate) mod inbox;
mod links;
mod logical;
mod meters;
mod monitors;
pub(crate) mod perf;
pub(crate) mod ports;
mod queues;
mod requests;
mod stage;
mod stall_detector;
pub(crate) mod virtuals;
pub(crate) mod wake;
mod workers;

use crate::clock::{SwitchClock, time_of_day};
use crate::config::{PortConfig, PortReopener};
use crate::control::AbsentPorts;
use crate::control::backlog::is_flow_update;
use crate::handle::SwitchError;
use crate::spin::{Spin, SpinDecision, SpinState};
use crate::turns::{AnnouncedSleep, ThreadWork, TurnOutcome};
use arrivals::FrameArrivalQueue;
use idle::IdlePorts;
use inbox::{EngineInbox, FromChannel};
use links::LinkStateWatcher;
use logical::LogicalSwitch;
use perf::TscCalibration;
use ports::{PortSlot, PortSlots};
pub(crate) use requests::EngineSnapshot;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use virtuals::EngineVirtualSwitches;
use weir_datapath::perf::{Stopwatch, ThreadStage};
use weir_datapath::{ChannelId, Datapath, FailMode, MAX_PORTS};
use weir_openflow::model::PortNo;
use weir_openflow::model::multipart::RequestBody;
use weir_openflow::{Body, Message};
use weir_packet::{Frame, FramePool};
use weir_port::{Port, PortError};
use weir_units::{Clock, Instant};
use workers::EngineWorkers;

/// Default number of frames taken from a port at once: enough to share the cost of a round, few enough to stay in the
/// first-level cache.
const BURST: usize = 32;
/// Time after which a round begins no further control message. Forwarding waits slightly longer, until the last
/// message's step, a part of a long reply and a few expired flow entries are done.
const CONTROL_TIME: Duration = Duration::from_micros(30);

/// A switch's engine: owns the datapath and the ports, and runs on its own thread.
pub(crate) struct Engine {
    clock: SwitchClock,
    /// The logical switch that is currently served: the physical switch's own, or the virtual switch named by
    /// `serving`.
    logical: Box<LogicalSwitch>,
    /// State of the virtual switches; `None` while there are none.
    virtuals: Option<Box<EngineVirtualSwitches>>,
    /// Fabric index of the virtual switch that is currently served; `None` while the physical switch is.
    serving: Option<u16>,
    /// Maximum duration of control work while a virtual switch is served.
    virtual_control_limit: Duration,
    /// Fabric that virtual switches are cut from, if one was configured.
    fabric: Option<weir_slicing::FabricSpec>,
    workers: EngineWorkers,
    calibration: TscCalibration,
    /// Measures where the engine's time is spent; active while `watchers` is above 0.
    watch: Stopwatch,
    watchers: u32,
    ports: PortSlots,
    inbox: EngineInbox,
    spinner: SpinState,
    absent: Arc<AbsentPorts>,
    links: LinkStateWatcher,
    idle: IdlePorts,
    pool: FramePool,
    batch: Vec<Frame>,
    /// Frames received by a switch with a profile that have not been looked up yet.
    arrivals: FrameArrivalQueue,
    /// Maximum number of frames taken from a port at once.
    burst: usize,
    stopping: bool,
    /// Record of the times at which other threads or the host held the processor, if recording is on.
    stalls: Option<Box<stall_detector::StallDetector>>,
}

impl Engine {
    /// Returns an engine without ports. The engine keeps `absent` at the number of ports whose device is missing.
    pub(crate) fn new(
        datapath: Datapath,
        fail_mode: FailMode,
        spin: Spin,
        clock: SwitchClock,
        inbox: EngineInbox,
        messages: mpsc::Receiver<FromChannel>,
        absent: Arc<AbsentPorts>,
    ) -> Engine {
        Engine {
            clock,
            logical: Box::new(LogicalSwitch::new(datapath, fail_mode, messages)),
            virtuals: None,
            serving: None,
            virtual_control_limit: Duration::ZERO,
            fabric: None,
            workers: EngineWorkers::default(),
            calibration: TscCalibration::start(clock),
            watch: Stopwatch::default(),
            watchers: 0,
            ports: PortSlots::default(),
            inbox,
            spinner: SpinState::new(spin, clock.now()),
            absent,
            links: LinkStateWatcher::default(),
            idle: IdlePorts::default(),
            pool: FramePool::default(),
            batch: Vec::with_capacity(BURST),
            arrivals: FrameArrivalQueue::default(),
            burst: BURST,
            stopping: false,
            stalls: None,
        }
    }

    /// Runs rounds until [`Engine::stop`] is called.
    pub(crate) fn run(mut self) {
        self.pin_engine_thread();
        ThreadWork::run(&mut self);
    }

    /// Runs one round that begins at `now`. Returns true if there was any work.
    #[inline]
    fn round(&mut self, now: Instant) -> bool {
        self.stalls.iter_mut().for_each(|stopped| stopped.begins(now));
        let is_timed = self.logical.timed.is_some();
        // With a profile, messages are timed before packets are looked up, so that packets that arrived later see
        // their effect.
        let mut controlled = is_timed && self.control(now, false);
        if controlled {
            self.watch.lap(ThreadStage::Control, 0);
        }
        let mut worked = if is_timed { self.forward_in_order(now) } else { self.forward(now) };
        worked |= self.poll_workers(now);
        let forwards = worked;
        self.watch.lap(if worked { ThreadStage::Transmit } else { ThreadStage::Idle }, 0);
        controlled |= !is_timed && self.control(now, forwards);
        controlled |= self.keep_virtuals(now, forwards);
        worked |= controlled;
        self.keep_time(now);
        self.share_tables();
        self.watch.lap(if controlled { ThreadStage::Control } else { ThreadStage::Idle }, 0);
        worked
    }

    /// Decides what follows a round without work that began at `now`: look again, yield the processor, or sleep.
    fn look_or_sleep(&mut self, now: Instant) -> TurnOutcome {
        if self.holds_frames() {
            std::hint::spin_loop();
            return TurnOutcome::Turn;
        }
        if self.wait_if_ports_busy() {
            return TurnOutcome::Turn;
        }
        match self.spinner.wait(now) {
            _ if self.awaits_release(now) => std::hint::spin_loop(),
            SpinDecision::Sleep if self.spinner.awaits_frames(now, self.frames_due()) => std::hint::spin_loop(),
            SpinDecision::Look => std::hint::spin_loop(),
            SpinDecision::GiveWay => {
                let from = self.clock.now();
                rustix::thread::sched_yield();
                self.spinner.gave_way(from, self.clock.now());
            }
            SpinDecision::Sleep if self.spinner.is_near(now, self.due()) => std::hint::spin_loop(),
            SpinDecision::Sleep => {
                self.workers.rest(now);
                return TurnOutcome::Sleep;
            }
        }
        TurnOutcome::Turn
    }

    /// Checks between two rounds that the frames and messages waiting in the engine are within their bounds.
    ///
    /// # Errors
    /// Describes the bound that is exceeded.
    #[cfg(any(test, feature = "schedules"))]
    pub(crate) fn check_bounds(&self) -> Result<(), String> {
        let unsent: usize = self.logical.out.frames.iter().map(|(_, frames)| frames.len()).sum();
        if unsent + self.logical.out.messages.len() + self.batch.len() > 0 {
            return Err("the engine ended its round with frames or messages that it did not hand out".to_owned());
        }
        self.logical.channels.check_bounds()
    }

    /// Ends [`Engine::run`] after the current round.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
    }

    /// Receives and forwards one burst from each port. Returns true if any frame was received.
    fn forward(&mut self, now: Instant) -> bool {
        if self.workers.are_draining() {
            return true;
        }
        let mut worked = false;
        self.idle.look(&mut self.ports);
        // A port whose device is gone is removed during this loop. The port that moves to its index is handled in the
        // next round.
        let mut place = 0;
        while place < self.ports.len() {
            if !self.idle.may_pass_over(self.ports.at(place), now) {
                worked |= self.forward_from(place, now);
            }
            place += 1;
        }
        worked
    }

    fn forward_from(&mut self, place: usize, now: Instant) -> bool {
        let slot = self.ports.at(place);
        let Some(port) = slot.port.as_mut() else { return false };
        let number = slot.number;
        // A virtual switch with a full waiting queue gets no more packets.
        let is_held = self.virtuals.as_mut().is_some_and(|virtuals| virtuals.holds(number, self.burst));
        let mut result = if is_held { Ok(()) } else { port.receive(now, &mut self.pool, &mut self.batch, self.burst) };
        if result.is_ok() && port.next_wake().is_some_and(|at| at <= now) {
            // A port that delays frames transmits those that are due.
            result = port.transmit(now, &mut self.pool, &mut Vec::new());
        }
        let received = !self.batch.is_empty();
        if !is_held {
            self.idle.asked(slot, received);
        }
        let packets = self.batch.len();
        self.watch.lap(if received { ThreadStage::Receive } else { ThreadStage::Idle }, packets);
        if received {
            // Some frames arrived after the round began. The delay of a link must not count from before their
            // arrival.
            let now = self.clock.now();
            self.dispatch_batch(now, number);
        }
        if let Err(error) = result {
            self.lose_port(now, number, &error);
        }
        received
    }

    /// Hands out the datapath's output: frames to ports, messages to channels.
    fn deliver(&mut self, now: Instant) {
        if self.virtuals.is_some() {
            self.divert(now);
        }
        let mut gone: Option<(PortNo, PortError)> = None;
        for (number, frames) in self.logical.out.frames.iter_mut().filter(|(_, frames)| !frames.is_empty()) {
            let port = self.ports.place(*number).and_then(|place| self.ports.at(place).port.as_mut());
            match port {
                Some(port) => {
                    if let Err(error) = port.transmit(now, &mut self.pool, frames) {
                        gone = Some((*number, error));
                    }
                }
                // The port was removed in this round.
                None => self.workers.gone.drop_frames(frames, &mut self.pool),
            }
        }
        let mut crowded = Vec::new();
        for (channel, message) in self.logical.out.messages.drain(..) {
            let Some(outbox) = self.logical.channels.outbox(channel) else { continue };
            if is_flow_update(&message) && outbox.is_crowded() {
                crowded.push(channel);
            }
            outbox.send(message);
        }
        if !crowded.is_empty() {
            self.pause_monitors(now, crowded);
        }
        for (channel, packet_ins) in self.logical.out.limited.drain(..) {
            if let Some(outbox) = self.logical.channels.outbox(channel) {
                outbox.limited(packet_ins);
            }
        }
        for (number, up) in std::mem::take(&mut self.logical.out.port_admin) {
            // A port that a virtual switch sets down is down for that virtual switch only.
            if self.serving.is_none() {
                self.set_admin(now, number, up);
            }
        }
        if let Some((number, error)) = gone {
            self.lose_port(now, number, &error);
        }
    }

    /// Runs waiting calls, then control messages and flow expiry for a bounded time. Returns true if there was any
    /// work.
    fn control(&mut self, now: Instant, forwards: bool) -> bool {
        let mut worked = false;
        while !self.logical.is_busy
            && let Ok(call) = self.inbox.calls.try_recv()
        {
            call(self);
            worked = true;
        }
        if !self.may_control(now, forwards) || !(worked || self.is_asked(now)) {
            return worked;
        }
        let began = self.clock.now();
        worked = self.run_control(now, began, worked);
        self.workers.has_controlled(began, self.clock.now());
        worked
    }

    /// Carries out controllers' messages and due work of the served logical switch until about `began` plus the
    /// control time. `worked`: true if calls have already changed it in this round. Returns true if there was any
    /// work.
    fn run_control(&mut self, now: Instant, began: Instant, mut worked: bool) -> bool {
        let until = began + self.control_time();
        while self.control_once(now) {
            worked = true;
            if self.clock.now() >= until {
                break;
            }
        }
        worked |= !self.logical.is_busy && self.advance_channels(now, until);
        if worked {
            // New flow entries may expire earlier than the known deadline.
            self.logical.expire_at = now;
        }
        self.expire(now);
        worked
    }

    /// Returns true if [`Engine::control`] has messages or due work.
    fn is_asked(&self, now: Instant) -> bool {
        let waits = self.logical.is_busy || self.logical.unfinished_batch.is_some() || self.logical.channels.holds();
        waits || now >= self.logical.expire_at || !self.logical.messages.is_empty()
    }

    /// Carries out one step of control work: part of a long change, or the next message. Returns true if there was
    /// one.
    fn control_once(&mut self, now: Instant) -> bool {
        if self.logical.is_busy {
            let datapath = self.logical.datapath.get();
            datapath.go_on(now, &mut self.pool, &mut self.logical.out);
            self.logical.is_busy = datapath.is_busy();
            self.deliver(now);
            return true;
        }
        if self.logical.is_full() {
            return false;
        }
        if let Some((channel, came, rest)) = &mut self.logical.unfinished_batch {
            let (channel, came) = (*channel, *came);
            if let Some(message) = rest.next() {
                self.message((now, came), channel, message);
                self.deliver(now);
                if self.logical.is_busy {
                    // After a change of many flow entries, other channels' messages come before this channel's next
                    // one.
                    self.logical.channels.wait(channel);
                }
                if self.logical.channels.is_held(channel)
                    && let Some((_, _, rest)) = self.logical.unfinished_batch.take()
                {
                    self.logical.channels.hold(FromChannel::Messages(channel, came, rest.collect()));
                }
                return true;
            }
            self.logical.unfinished_batch = None;
        }
        let Ok(message) = self.logical.messages.try_recv() else { return false };
        match self.logical.channels.hold(message) {
            Some(FromChannel::Messages(channel, came, batch)) => {
                self.logical.unfinished_batch = Some((channel, came, batch.into_iter()));
            }
            Some(message) => self.carry_out(now, message),
            None => {}
        }
        true
    }

    fn carry_out(&mut self, now: Instant, message: FromChannel) {
        match message {
            FromChannel::Up(channel, version, outbox) => {
                self.logical.channels.add(channel, outbox);
                self.logical.datapath.get().channel_up(now, channel, version);
                self.logical.datapath.get().tell_channel(channel, true, &mut self.logical.out);
            }
            FromChannel::AuxiliaryUp(channel, main, number, outbox) => {
                if self.logical.datapath.get().auxiliary_up(now, channel, main, number) {
                    self.logical.channels.add(channel, outbox);
                } else {
                    outbox.close("its main connection ended");
                }
            }
            FromChannel::Down(channel) if self.logical.timed.as_ref().is_some_and(|timed| timed.owes(channel)) => {
                self.logical.channels.wait(channel);
                self.logical.channels.hold(FromChannel::Down(channel));
            }
            FromChannel::Down(channel) => {
                if self.logical.channels.remove(channel) {
                    self.logical.datapath.get().tell_channel(channel, false, &mut self.logical.out);
                    self.logical.datapath.get().channel_down(now, channel);
                }
            }
            FromChannel::Messages(channel, came, batch) => {
                batch.into_iter().for_each(|message| self.message((now, came), channel, message));
            }
        }
        self.deliver(now);
    }

    /// Carries out a message of `channel` that arrived at `came`.
    fn message(&mut self, (now, came): (Instant, Instant), channel: ChannelId, message: Message) {
        let Some(outbox) = self.logical.channels.outbox(channel) else { return };
        if outbox.is_overrun() {
            outbox.close("it does not read its replies");
            self.logical.channels.remove(channel);
            self.logical.datapath.get().tell_channel(channel, false, &mut self.logical.out);
            self.logical.datapath.get().channel_down(now, channel);
            return;
        }
        if let Body::MultipartRequest(request) = &message.body
            && matches!(request.body, RequestBody::PortStats(_))
        {
            self.count_ports();
        }
        if asks_for_time(&message.body) {
            // A clock before 1970 counts as having no time of day.
            let today = time_of_day(self.clock);
            self.logical.datapath.get().set_time_of_day(self.clock.now(), today);
        }
        self.tell_queues_for(&message.body);
        let Some(message) = self.defer_message(came, channel, message) else { return };
        if let Some(message) = self.begin_long_reply(channel, message) {
            let datapath = self.logical.datapath.get();
            datapath.begin(now, channel, message, &mut self.pool, &mut self.logical.out);
            self.logical.is_busy = datapath.is_busy();
        }
    }

    /// Copies the ports' counters into the datapath.
    fn count_ports(&mut self) {
        if self.serving.is_some() {
            return self.count_virtual_ports();
        }
        for slot in self.ports.iter() {
            self.logical.datapath.get().set_port_counters(slot.number, slot.counters());
        }
    }

    /// Removes expired flow entries and does other due work of the datapath, if its deadline has passed.
    fn expire(&mut self, now: Instant) {
        if now >= self.logical.expire_at {
            let datapath = self.logical.datapath.get();
            self.logical.expire_at = datapath.expire(now, &mut self.logical.out).unwrap_or(Instant::FAR);
            self.logical.is_busy = datapath.is_busy();
            self.deliver(now);
        }
    }

    /// Resumes paused flow monitors and checks links, where due.
    fn keep_time(&mut self, now: Instant) {
        if !self.logical.is_busy {
            self.resume_monitors(now);
        }
        self.watch_links(now);
    }

    /// Time at which the engine has work at the latest.
    fn due(&self) -> Instant {
        let first = self.logical.due().min(self.links.due()).min(self.virtuals_due());
        first.min(self.frames_due())
    }

    /// Earliest time at which a port has delayed frames to release.
    fn frames_due(&self) -> Instant {
        self.ports.open().filter_map(Port::next_wake).fold(Instant::FAR, Instant::min)
    }

    /// Closes a port whose device is gone. The other ports continue.
    fn lose_port(&mut self, now: Instant, number: PortNo, error: &PortError) {
        let Some(place) = self.ports.place(number) else { return };
        let slot = self.ports.at(place);
        slot.lose();
        if slot.reopen.is_some() {
            tracing::warn!("{error}; port {number} is waited for");
            self.absent.add();
        } else {
            tracing::warn!("{error}; port {number} is removed");
            self.ports.remove(number);
        }
        self.logical.datapath.get().remove_port(now, number, &mut self.logical.out);
        self.forget_frames(number);
        self.deliver(now);
        self.follow_links(now);
    }
}

impl ThreadWork for Engine {
    fn is_over(&self) -> bool {
        self.stopping
    }

    #[inline]
    fn turn(&mut self) -> TurnOutcome {
        let now = self.clock.now();
        if !self.round(now) {
            return self.look_or_sleep(now);
        }
        self.stalls.iter_mut().for_each(|stopped| stopped.worked());
        self.spinner.found(now);
        TurnOutcome::Turn
    }

    fn fall_asleep(&mut self) -> Option<AnnouncedSleep> {
        self.inbox.waker.about_to_sleep();
        // Frames and messages queued before the ports and senders knew of the sleep are found here.
        let is_idle = self.logical.is_quiet()
            && self.are_virtuals_quiet()
            && self.inbox.calls.is_empty()
            && self.are_workers_done()
            && !self.ports.arm();
        if !is_idle {
            return None;
        }
        let from = self.clock.now();
        let release = self.wakes_for_release().min(self.spinner.wakes_for_frames(from, self.frames_due()));
        let timeout = self.due().min(release).since(from);
        self.stalls.iter_mut().for_each(|stopped| stopped.sleeps(from + timeout));
        Some(AnnouncedSleep { from, timeout, release })
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        let slept = self.inbox.waker.sleep(self.ports.open(), self.links.monitor(), timeout);
        if slept.has_news {
            self.links.look_now();
        }
        slept.is_called
    }

    fn wake_up(&mut self, slept: Option<AnnouncedSleep>) {
        if let Some(AnnouncedSleep { timeout, release, .. }) = slept {
            let clock = self.clock;
            self.stalls.iter_mut().for_each(|stopped| stopped.woke(clock.now()));
            if release != Instant::FAR && !timeout.is_zero() {
                self.note_wake_up(release);
            }
        }
        self.inbox.waker.awake();
        self.watch.lap(ThreadStage::Sleep, 0);
    }
}

/// Returns true if the reply to a message, or its effect, may depend on the time of day: bundles can be scheduled for
/// one.
fn asks_for_time(body: &Body) -> bool {
    match body {
        Body::BundleControl(_) => true,
        Body::MultipartRequest(request) => matches!(request.body, RequestBody::BundleFeatures(_)),
        _ => false,
    }
}

/// Adds and removes ports.
impl Engine {
    /// Adds a port and returns its number.
    ///
    /// # Errors
    /// Fails if the number is taken or is not an ordinary port's, if there are too many ports, or if there are too
    /// many queues.
    pub(crate) fn add_port(&mut self, config: PortConfig) -> Result<PortNo, SwitchError> {
        let number = config.number.unwrap_or_else(|| self.ports.free_number());
        let refused = |problem: String| SwitchError::PortNumber { number, problem };
        if let Some(place) = self.ports.place(number) {
            return Err(refused(format!("the number is taken by {}", self.ports.at(place).spec())));
        }
        // Ports with a missing device count, because the datapath must have room when they return.
        if self.ports.len() >= MAX_PORTS {
            return Err(refused(format!("there are {MAX_PORTS} ports already, the most a switch has")));
        }
        self.check_queues(&*config.port).map_err(refused)?;
        if ports::is_interface(config.port.info()) {
            // Listening starts before the port is asked for its link, so that no change in between is missed.
            self.links.listen();
        }
        let port = self.workers.share(number, config.port);
        let mut slot = PortSlot::new(number, port, config.reopen);
        if self.logical.timed.is_some() {
            slot.stamps_arrivals(self.clock);
        }
        self.logical.datapath.get().add_port(self.clock.now(), slot.desc(), &mut self.logical.out).map_err(refused)?;
        self.logical.datapath.get().take_any_packet_type(number, slot.takes_any_packet_type());
        tracing::info!("port {number}: {}", slot.spec());
        self.ports.insert(slot);
        self.deliver(self.clock.now());
        self.follow_links(self.clock.now());
        Ok(number)
    }

    /// Removes a port and returns its slot. The caller closes the device, because closing takes time.
    pub(crate) fn remove_port(&mut self, number: PortNo) -> Option<PortSlot> {
        let slot = self.ports.remove(number)?;
        if slot.port.is_none() {
            self.absent.remove();
        }
        let now = self.clock.now();
        self.logical.datapath.get().remove_port(now, number, &mut self.logical.out);
        self.forget_frames(number);
        self.deliver(now);
        self.follow_links(now);
        tracing::info!("port {number}: removed");
        Some(slot)
    }

    /// Returns how to open each port whose device is missing. The caller must return each with [`Engine::put_back`].
    pub(crate) fn absent_ports(&mut self) -> Vec<(PortNo, PortReopener)> {
        let absent = self.ports.iter_mut().filter(|slot| slot.port.is_none());
        absent.filter_map(|slot| Some((slot.number, slot.reopen.take()?))).collect()
    }

    /// Ends an attempt to reopen a port; `port` is the opened port, or `None` if the attempt failed.
    pub(crate) fn put_back(&mut self, number: PortNo, port: Option<Box<dyn Port>>, reopen: PortReopener) {
        // The port was removed during the attempt: the reopened device is closed.
        let Some(place) = self.ports.place(number) else { return };
        let slot = self.ports.at(place);
        if slot.port.is_some() {
            return;
        }
        let Some(port) = port else {
            slot.reopen = Some(reopen);
            return;
        };
        let port = self.workers.share(number, port);
        let slot = self.ports.at(place);
        slot.put_back(port, reopen);
        slot.restore_queues(self.clock.now(), &mut self.pool);
        self.absent.remove();
        tracing::info!("port {number}: {} is back", slot.spec());
        let now = self.clock.now();
        if let Err(problem) = self.logical.datapath.get().add_port(now, slot.desc(), &mut self.logical.out) {
            tracing::error!("port {number}: {problem}");
        }
        self.logical.datapath.get().take_any_packet_type(number, slot.takes_any_packet_type());
        self.deliver(now);
        self.follow_links(now);
    }
}
