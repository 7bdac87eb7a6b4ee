//! The engine of a switch with a profile: messages and packets take the time of the profile's device ([`crate::timed`]).
use super::Engine;
use super::logical::LogicalSwitch;
use crate::config::ProfileConfig;
use crate::ctl::Profiled;
use crate::handle::SwitchError;
use crate::timed::Timed;
use weir_datapath::ChannelId;
use weir_datapath::perf::Stage;
use weir_openflow::Message;
use weir_openflow::model::PortNo;
use weir_timing::CSV_HEAD;
use weir_units::{Clock, Instant};

/// Things that are released before frames and messages are handed out.
const RELEASED_AT_ONCE: usize = 32;

impl Engine {
    /// Gives the switch a profile; it has no virtual switches and no workers.
    ///
    /// # Errors
    /// The profile has parts that a switch cannot keep.
    pub(crate) fn start_profile(&mut self, config: &ProfileConfig) -> Result<(), SwitchError> {
        let timed = Timed::new(&config.profile, config.seed, self.logical.datapath.get())?;
        self.logical.timed = timed.map(Box::new);
        if self.logical.timed.is_some() {
            let clock = self.clock;
            self.ports.iter_mut().for_each(|slot| _ = slot.stamps_arrivals(clock));
        }
        Ok(())
    }

    /// Gives a message to the timing of the switch that is served; gives it back if it is to be carried out now.
    #[inline]
    pub(super) fn hold_back(&mut self, channel: ChannelId, message: Message) -> Option<Message> {
        if self.logical.timed.is_none() { Some(message) } else { self.hold_back_timed(channel, message) }
    }

    #[cold]
    #[inline(never)]
    fn hold_back_timed(&mut self, channel: ChannelId, message: Message) -> Option<Message> {
        let now = self.clock.now();
        let LogicalSwitch { timed, datapath, out, lines, .. } = &mut *self.logical;
        let Some(timed) = timed else { return Some(message) };
        let message = timed.message(now, (channel, message), datapath.get(), &mut self.pool, out);
        if timed.awaits_answer(channel) {
            lines.wait(channel);
        }
        message
    }

    /// Runs what came in on a port through the tables of a switch with a profile.
    #[cold]
    #[inline(never)]
    pub(super) fn pass_to_stage(&mut self, now: Instant, port: PortNo) {
        let packets = self.batch.len();
        let clock = self.clock;
        // Whoever had to be woken looks late: the time of packets counts from when they came.
        let is_stamped = self.ports.place(port).is_some_and(|place| self.ports.at(place).stamps_arrivals(clock));
        let mut batch = std::mem::take(&mut self.batch);
        for frame in batch.drain(..) {
            let came = if is_stamped { Instant::from_nanos(frame.arrived()).min(now) } else { now };
            self.stopped.iter_mut().for_each(|stopped| stopped.found(came));
            let LogicalSwitch { timed, datapath, out, .. } = &mut *self.logical;
            match timed {
                Some(timed) => timed.packet(now, came, (port, frame), datapath.get(), &mut self.pool, out),
                None => self.pool.give(frame),
            }
            // A burst takes longer than what is due may be late.
            self.release();
        }
        self.batch = batch;
        self.watch.start();
        self.deliver(now);
        self.watch.lap(Stage::Transmit, packets);
    }

    /// Releases what is due. Whether there was anything.
    #[cold]
    pub(super) fn release(&mut self) -> bool {
        let mut now = self.clock.now();
        let mut worked = false;
        while self.logical.timed.as_ref().is_some_and(|timed| timed.due() <= now) {
            self.release_some(now);
            // What was carried out may have brought entries with earlier deadlines.
            self.logical.expire_at = self.logical.expire_at.min(now);
            worked = true;
            if self.clock.now().since(now) >= super::CONTROL_TIME {
                break;
            }
            now = self.clock.now();
        }
        if let LogicalSwitch { timed: Some(timed), datapath, .. } = &mut *self.logical {
            timed.follow(datapath.get());
        }
        worked
    }

    /// Releases and hands out a bounded number of things that are due. Frames leave at the time that they were due, which is what counts for a switch with a
    /// profile behind the port ([`weir_port::Port::keep_schedule`]): so what is due at one time is handed out together, and nothing else.
    fn release_some(&mut self, now: Instant) {
        let mut last = now;
        for _ in 0..RELEASED_AT_ONCE {
            let LogicalSwitch { timed, datapath, out, .. } = &mut *self.logical;
            let Some(timed) = timed else { break };
            let Some(due) = timed.release(now, datapath.get(), &mut self.pool, out) else { break };
            last = due;
            if timed.due() > due {
                self.deliver(due);
            }
        }
        self.deliver(last);
    }

    /// How the switch keeps its profile's times, if it has one.
    pub(crate) fn profiled(&mut self, commands: bool) -> Option<Profiled> {
        let timed = self.logical.timed.as_mut()?;
        let commands = commands.then(|| {
            let heading = std::iter::once(CSV_HEAD.to_owned());
            heading.chain(timed.take_records()).collect()
        });
        Some(Profiled { timing: timed.snapshot(), commands })
    }

    /// When the switch's timing releases something.
    fn release_due(&self) -> Instant {
        self.logical.timed.as_ref().map_or(Instant::FAR, |timed| timed.due())
    }

    /// Whether something is to be released so soon that it is waited for awake.
    pub(super) fn awaits_release(&self, now: Instant) -> bool {
        self.logical.timed.is_some() && self.spinner.awaits(now, self.release_due())
    }

    /// It slept, and was to wake up for a release at `wanted` at the latest.
    pub(super) fn note_wake_up(&mut self, wanted: Instant) {
        let now = self.clock.now();
        if now >= wanted {
            self.spinner.overslept(now.since(wanted));
        }
    }

    /// When an engine that sleeps is to wake up for the next release.
    pub(super) fn wakes_for_release(&self) -> Instant {
        match self.release_due() {
            Instant::FAR => Instant::FAR,
            due => self.spinner.wakes_for(due),
        }
    }
}
