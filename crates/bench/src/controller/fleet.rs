//! All emulated switches of a measurement, without sockets and clock: which of them to wake, which have output.
use super::engine::ServedChannels;
use super::switch::{EmulatedSettings, EmulatedStage, EmulatedSwitch};
use super::tally::Tally;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use weir_openflow::EncodeError;
use weir_units::Instant;

/// Reason of a channel that its switch left.
pub(super) const LEFT: &str = "the switch left";

/// Emulated switches by number.
#[derive(Default)]
pub(super) struct SwitchFleet {
    pub(super) switches: Vec<EmulatedSwitch>,
    pub(super) tally: Tally,
    /// Times at which switches want to be woken; outdated ones stay until they are due.
    wakes: BinaryHeap<Reverse<(Instant, usize)>>,
    /// Earliest time in `wakes` of each switch.
    planned: Vec<Instant>,
    /// Switches that may have output, each once.
    touched: Vec<usize>,
    is_touched: Vec<bool>,
}

impl SwitchFleet {
    /// Adds a switch that has just connected.
    ///
    /// # Errors
    /// The version cannot carry the requests.
    pub(super) fn connect(&mut self, settings: EmulatedSettings, now: Instant) -> Result<(), EncodeError> {
        self.switches.push(EmulatedSwitch::new(settings, now)?);
        self.planned.push(Instant::FAR);
        self.is_touched.push(false);
        self.touch(self.switches.len() - 1);
        Ok(())
    }

    /// Adds the switches of another fleet, whose time is over, and what they measured. They have no sockets here.
    pub(super) fn absorb(&mut self, other: SwitchFleet) {
        for switch in other.switches {
            self.switches.push(switch);
            self.planned.push(Instant::FAR);
            self.is_touched.push(false);
        }
        for (own, added) in [
            (&mut self.tally.special, &other.tally.special),
            (&mut self.tally.echo, &other.tally.echo),
            (&mut self.tally.handshakes, &other.tally.handshakes),
        ] {
            own.merge(added);
        }
    }

    /// Starts the requests of a switch.
    pub(super) fn start(&mut self, number: usize, now: Instant) {
        self.switches[number].start(now, &mut self.tally);
        self.touch(number);
    }

    /// Ends the requests of all switches.
    pub(super) fn stop(&mut self) {
        self.switches.iter_mut().for_each(EmulatedSwitch::stop);
    }

    /// Returns the number of switches in a stage.
    pub(super) fn count(&self, is_wanted: impl Fn(EmulatedStage) -> bool) -> usize {
        self.switches.iter().filter(|switch| is_wanted(switch.stage())).count()
    }

    /// Returns true if all channels have ended.
    pub(super) fn has_ended(&self) -> bool {
        self.switches.iter().all(|switch| switch.stage() == EmulatedStage::Closed)
    }

    /// Returns the reasons of the channels that ended, except those that a switch left.
    pub(super) fn ends(&self) -> impl Iterator<Item = &str> {
        let ended = self.switches.iter().filter(|switch| switch.stage() == EmulatedStage::Closed);
        ended.map(EmulatedSwitch::reason).filter(|reason| *reason != LEFT)
    }

    fn touch(&mut self, number: usize) {
        if !std::mem::replace(&mut self.is_touched[number], true) {
            self.touched.push(number);
        }
        self.plan(number);
    }

    fn plan(&mut self, number: usize) {
        let Some(at) = self.switches[number].deadline() else { return };
        if at < self.planned[number] {
            self.planned[number] = at;
            self.wakes.push(Reverse((at, number)));
        }
    }
}

impl ServedChannels for SwitchFleet {
    fn receive(&mut self, number: usize, now: Instant, bytes: &[u8]) {
        self.switches[number].receive(now, bytes, &mut self.tally);
        self.touch(number);
    }

    fn close(&mut self, number: usize, _now: Instant, reason: &str) {
        self.switches[number].close(reason);
        self.touch(number);
    }

    fn refill(&mut self, number: usize, now: Instant) {
        self.switches[number].wake(now, &mut self.tally);
        self.plan(number);
    }

    fn step(&mut self, now: Instant) {
        while let Some(Reverse((at, number))) = self.wakes.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            self.wakes.pop();
            if self.planned[number] == at {
                self.planned[number] = Instant::FAR;
                self.switches[number].wake(now, &mut self.tally);
                self.touch(number);
            }
        }
    }

    fn next_wake(&self) -> Option<Instant> {
        self.wakes.peek().map(|Reverse((at, _))| *at)
    }

    fn take_touched(&mut self) -> Vec<usize> {
        let touched = std::mem::take(&mut self.touched);
        touched.iter().for_each(|number| self.is_touched[*number] = false);
        touched
    }

    fn output(&mut self, number: usize) -> &mut Vec<u8> {
        self.switches[number].output()
    }

    fn is_ended(&self, number: usize) -> bool {
        self.switches[number].stage() == EmulatedStage::Closed
    }
}
