//! Runs the packet path on one thread, which is the only owner of the datapath. The thread takes frames from ports,
//! runs them through the flow tables and transmits them (run to completion), carries out controllers' messages in
//! between, and sleeps when there is no work.
//!
//! Each round does a bounded amount of each kind of work, so that no port, controller or timer starves another: one
//! burst per port, then control messages and expired flow entries for about [`CONTROL_TIME`]. While frames keep
//! arriving, forwarding then gets as much time as control work took.
//!
//! An engine has these parts, each with the state that it owns:
//!
//! | part | owns | methods in |
//! |---|---|---|
//! | [`EngineIo`] | clock, frame buffers, ports, links, queues | `io`, `ports`, `links`, `queues`, `idle` |
//! | [`LogicalSwitch`] | a datapath, its channels, its timing | `logical`, `channel_table`, `monitors` |
//! | [`ServedSwitch`] | nothing: a logical switch with the ports it may use | `served`, `control`, `requests` |
//! | [`EngineVirtualSwitches`] | fabric, first lookup, virtual switches and their shares of time | `virtuals` |
//! | [`EngineWorkers`] | threads that look up packets, time of control work | `workers` |
//! | [`FrameArrivalQueue`] | frames of a switch with a profile, by arrival time | `arrivals`, `stage` |
//! | [`EnginePerf`], [`StallDetector`] | measurements of the engine's thread | `perf`, `stall_detector` |
//! | [`EngineInbox`] | calls of other threads, the wake-up | `inbox`, `wake` |
//!
//! The engine itself connects them: `forwarding` moves frames, `port_changes` adds ports and tells datapaths of them,
//! `snapshot` reports. A part that cannot handle a port's event leaves it in [`EngineIo`]; [`Engine::settle`] handles
//! it before the next control message.
mod arrivals;
mod channel_table;
mod control;
mod forwarding;
pub(crate) mod idle;
mod in_band;
pub(crate) mod inbox;
mod io;
mod links;
mod logical;
mod monitors;
pub(crate) mod perf;
mod port_changes;
pub(crate) mod ports;
mod queues;
mod requests;
mod served;
mod snapshot;
mod stage;
mod stall_detector;
pub(crate) mod virtuals;
pub(crate) mod wake;
mod workers;

use crate::clock::SwitchClock;
use crate::control::AbsentPorts;
use crate::spin::{Spin, SpinDecision, SpinState};
use crate::turns::{AnnouncedSleep, ThreadWork, TurnOutcome};
use arrivals::FrameArrivalQueue;
use inbox::{EngineInbox, FromChannel};
use io::EngineIo;
use logical::LogicalSwitch;
use perf::EnginePerf;
use served::ServedPorts;
pub(crate) use served::ServedSwitch;
pub(crate) use snapshot::EngineSnapshot;
use stall_detector::StallDetector;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use virtuals::{EngineVirtualSwitches, VirtualId};
use weir_datapath::perf::ThreadStage;
use weir_datapath::{Datapath, FailMode};
use weir_device::ProfileConfig;
use weir_units::{Clock, Instant};
use workers::EngineWorkers;

/// Time after which a round begins no further control message. Forwarding waits slightly longer, until the last
/// message's step, a part of a long reply and a few expired flow entries are done.
const CONTROL_TIME: Duration = Duration::from_micros(30);

/// A switch's engine: owns the datapath and the ports, and runs on its own thread.
pub(crate) struct Engine {
    io: EngineIo,
    physical: LogicalSwitch,
    /// State of the virtual switches; `None` while there are none.
    virtuals: Option<Box<EngineVirtualSwitches>>,
    /// Fabric that virtual switches are cut from, if one was configured.
    fabric: Option<weir_slicing::FabricSpec>,
    /// Profile whose times virtual switches take that are added; `None` without a profile that takes time.
    profile: Option<ProfileConfig>,
    workers: EngineWorkers,
    /// Frames received by a switch with a profile that have not been looked up yet.
    arrivals: FrameArrivalQueue,
    perf: EnginePerf,
    /// Record of the times at which other threads or the host held the processor, if recording is on.
    stalls: Option<Box<StallDetector>>,
    inbox: EngineInbox,
    spinner: SpinState,
    stopping: bool,
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
            io: EngineIo::new(clock, absent),
            physical: LogicalSwitch::new(datapath, fail_mode, messages),
            virtuals: None,
            fabric: None,
            profile: None,
            workers: EngineWorkers::default(),
            arrivals: FrameArrivalQueue::default(),
            perf: EnginePerf::default(),
            stalls: None,
            inbox,
            spinner: SpinState::new(spin, clock.now()),
            stopping: false,
        }
    }

    /// Runs rounds until [`Engine::stop`] is called.
    pub(crate) fn run(mut self) {
        self.workers.pin_engine_thread();
        ThreadWork::run(&mut self);
    }

    /// Ends [`Engine::run`] after the current round.
    pub(crate) fn stop(&mut self) {
        self.stopping = true;
    }

    /// Changes the behaviour of the physical switch without a controller.
    pub(crate) fn set_fail_mode(&mut self, mode: FailMode) {
        self.physical.datapath.get().set_fail_mode(mode);
    }

    /// Returns the physical switch with all ports of the engine.
    #[inline]
    pub(crate) fn physical(&mut self) -> ServedSwitch<'_> {
        let fabric = self.virtuals.as_mut().map(|virtuals| &mut virtuals.fabric);
        ServedSwitch { logical: &mut self.physical, io: &mut self.io, ports: ServedPorts::Physical(fabric) }
    }

    /// Returns the physical switch, or the virtual switch `of`; `None` if that does not exist.
    pub(crate) fn served(&mut self, of: Option<VirtualId>) -> Option<ServedSwitch<'_>> {
        match of {
            None => Some(self.physical()),
            Some(id) => self.virtuals.as_mut()?.served(id, &mut self.io),
        }
    }

    /// Runs one round that begins at `now`. Returns true if there was any work.
    #[inline]
    fn round(&mut self, now: Instant) -> bool {
        self.stalls.iter_mut().for_each(|stopped| stopped.begins(now));
        let is_timed = self.physical.timed.is_some();
        // With a profile, messages are timed before packets are looked up, so that packets that arrived later see
        // their effect.
        let mut controlled = is_timed && (self.control(now, false) | self.keep_virtuals(now, false));
        if controlled {
            self.perf.watch.lap(ThreadStage::Control, 0);
        }
        let mut worked = if is_timed { self.forward_in_order(now) } else { self.forward(now) };
        worked |= self.poll_workers(now);
        let forwards = worked;
        self.perf.lap(ThreadStage::Transmit, worked, 0);
        controlled |= !is_timed && self.control(now, forwards);
        controlled |= self.keep_virtuals(now, forwards);
        worked |= controlled;
        self.physical().resume_monitors(now);
        self.io.watch_links(now);
        self.settle(now);
        self.workers.share_tables(self.io.clock, &mut self.physical.datapath);
        self.perf.lap(ThreadStage::Control, controlled, 0);
        worked
    }

    /// Runs waiting calls, then control messages and flow expiry for a bounded time. Returns true if there was any
    /// work.
    fn control(&mut self, now: Instant, forwards: bool) -> bool {
        let mut worked = false;
        while !self.physical.is_busy
            && let Ok(call) = self.inbox.calls.try_recv()
        {
            call(self);
            self.settle(now);
            worked = true;
        }
        let may_control = self.workers.may_control(self.io.clock, now, forwards, &self.physical.datapath);
        if !may_control || !(worked || self.physical.has_control_work(now)) {
            return worked;
        }
        let began = self.io.now();
        let until = began + self.workers.control_time();
        worked = self.physical().run_control(now, until, worked);
        self.settle(now);
        self.workers.has_controlled(began, self.io.now());
        worked
    }

    /// Decides what follows a round without work that began at `now`: look again, yield the processor, or sleep.
    fn look_or_sleep(&mut self, now: Instant) -> TurnOutcome {
        if self.workers.hold_frames() || !self.arrivals.is_empty() {
            std::hint::spin_loop();
            return TurnOutcome::Turn;
        }
        if self.workers.wait_if_ports_busy() {
            return TurnOutcome::Turn;
        }
        match self.spinner.wait(now) {
            _ if self.awaits_release(now) => std::hint::spin_loop(),
            SpinDecision::Sleep if self.spinner.awaits_frames(now, self.io.frames_due()) => std::hint::spin_loop(),
            SpinDecision::Look => std::hint::spin_loop(),
            SpinDecision::GiveWay => {
                let from = self.io.now();
                rustix::thread::sched_yield();
                self.spinner.gave_way(from, self.io.now());
            }
            SpinDecision::Sleep if self.spinner.is_near(now, self.due()) => std::hint::spin_loop(),
            SpinDecision::Sleep => {
                self.workers.rest(now);
                return TurnOutcome::Sleep;
            }
        }
        TurnOutcome::Turn
    }

    /// Time at which the engine has work at the latest.
    fn due(&self) -> Instant {
        let virtuals = self.virtuals.as_ref().map_or(Instant::FAR, |virtuals| virtuals.due());
        self.physical.due().min(self.io.links.due()).min(virtuals).min(self.io.frames_due())
    }

    /// Checks between two rounds that the frames and messages waiting in the engine are within their bounds.
    ///
    /// # Errors
    /// Describes the bound that is exceeded.
    #[cfg(any(test, feature = "schedules"))]
    pub(crate) fn check_bounds(&self) -> Result<(), String> {
        let unsent: usize = self.physical.out.frames.iter().map(|(_, frames)| frames.len()).sum();
        if unsent + self.physical.out.messages.len() + self.io.batch.len() > 0 {
            return Err("the engine ended its round with frames or messages that it did not hand out".to_owned());
        }
        self.physical.channels.check_bounds()
    }
}

impl ThreadWork for Engine {
    fn is_over(&self) -> bool {
        self.stopping
    }

    #[inline]
    fn turn(&mut self) -> TurnOutcome {
        let now = self.io.now();
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
        let is_idle = self.physical.is_quiet()
            && self.virtuals.as_ref().is_none_or(|virtuals| virtuals.are_quiet())
            && self.inbox.calls.is_empty()
            && self.workers.are_done()
            && !self.io.ports.arm();
        if !is_idle {
            return None;
        }
        let from = self.io.now();
        let release = self.wakes_for_release().min(self.spinner.wakes_for_frames(from, self.io.frames_due()));
        let timeout = self.due().min(release).since(from);
        self.stalls.iter_mut().for_each(|stopped| stopped.sleeps(from + timeout));
        Some(AnnouncedSleep { from, timeout, release })
    }

    fn wait(&mut self, timeout: Duration) -> bool {
        let slept = self.inbox.waker.sleep(self.io.ports.open(), self.io.links.monitor(), timeout);
        if slept.has_news {
            self.io.links.look_now();
        }
        slept.is_called
    }

    fn wake_up(&mut self, slept: Option<AnnouncedSleep>) {
        if let Some(AnnouncedSleep { timeout, release, .. }) = slept {
            let clock = self.io.clock;
            self.stalls.iter_mut().for_each(|stopped| stopped.woke(clock.now()));
            if release != Instant::FAR && !timeout.is_zero() {
                self.note_wake_up(release);
            }
        }
        self.inbox.waker.awake();
        self.perf.watch.lap(ThreadStage::Sleep, 0);
    }
}
