//! Divides the engine's time for control work (messages of controllers, timeouts) among virtual switches. Each virtual
//! switch gets a small guaranteed share, and more while there is little to forward. A turn is a piece of this time for
//! one virtual switch. Flow-mods of one virtual switch, however many, therefore cost the packets of the others almost
//! no time.
use super::EngineVirtualSwitches;
use crate::engine::io::EngineIo;
use std::time::Duration;
use weir_units::Instant;

/// Guaranteed share of the engine's time for the control work of one virtual switch while packets need all of it: one
/// part in this many.
const SHARE: u32 = 256;
/// Maximum unused time of its share that a virtual switch may save for later turns.
const SAVED: Duration = Duration::from_micros(200);
/// Maximum length of a turn, and so of the wait that it causes to arriving packets. Only the last message of a turn may
/// exceed it.
const LONGEST: Duration = Duration::from_micros(20);
/// Minimum length of a turn. A virtual switch that has saved less gets no turn.
const SHORTEST: Duration = Duration::from_micros(2);
/// Minimum time between two rounds of turns while packets keep the engine busy.
const EVERY: Duration = Duration::from_micros(20);

/// Account of the time that a virtual switch may use for control work.
#[derive(Debug, Default)]
pub(super) struct ControlTimeAccount {
    /// Time available for the next turn.
    saved: Duration,
    /// Time used beyond the saved amount, which later shares pay first.
    owed: Duration,
}

impl ControlTimeAccount {
    /// Credits the guaranteed share of the time `passed`.
    fn earn(&mut self, passed: Duration) {
        let mut earned = passed / SHARE;
        let paid = earned.min(self.owed);
        self.owed -= paid;
        earned -= paid;
        self.saved = (self.saved + earned).min(SAVED);
    }

    /// Returns the maximum length of the next turn, or zero for no turn. `is_spare` is true if the engine has no
    /// packets to forward.
    fn length(&self, is_spare: bool) -> Duration {
        match is_spare {
            true => LONGEST,
            false if self.saved < SHORTEST => Duration::ZERO,
            false => self.saved.min(LONGEST),
        }
    }

    /// Charges a turn of length `took` to the account, unless the engine had no packets to forward (`is_spare`).
    fn spend(&mut self, took: Duration, is_spare: bool) {
        if is_spare {
            return;
        }
        let paid = took.min(self.saved);
        self.saved -= paid;
        self.owed += took - paid;
    }
}

impl EngineVirtualSwitches {
    /// Gives a turn to each virtual switch that has messages or due work. `forwarded` is true if the engine forwarded
    /// packets in this round. Returns true if any turn did work.
    pub(super) fn take_turns(&mut self, now: Instant, io: &mut EngineIo, forwarded: bool) -> bool {
        let passed = now.since(self.turned_at);
        if forwarded && passed < EVERY {
            return false;
        }
        self.turned_at = now;
        let count = self.order.len();
        // Each round begins with another virtual switch, because a turn delays all packets behind it.
        self.first = if count == 0 { 0 } else { (self.first + 1) % count };
        let mut worked = false;
        for turn in 0..count {
            let place = self.order[(self.first + turn) % count];
            let Some(switch) = self.switch(place) else { continue };
            switch.turn.earn(passed);
            if switch.logical.is_quiet() && switch.logical.due() > now {
                continue;
            }
            let length = switch.turn.length(!forwarded);
            if length.is_zero() {
                continue;
            }
            worked |= self.take_turn(place, io, length, !forwarded);
        }
        worked
    }

    fn take_turn(&mut self, place: u16, io: &mut EngineIo, length: Duration, is_spare: bool) -> bool {
        let began = io.now();
        let Some(mut served) = self.served_at(place, io) else { return false };
        let worked = served.run_control(began, began + length, false);
        served.resume_monitors(began);
        let took = io.now().since(began);
        if let Some(switch) = self.switch(place) {
            switch.turn.spend(took, is_spare);
        }
        worked
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_gets_its_share_of_a_busy_engine_and_more_of_an_idle_one() {
        let mut turn = ControlTimeAccount::default();
        let (mut got, mut now) = (Duration::ZERO, Duration::ZERO);
        while now < Duration::from_millis(100) {
            now += EVERY;
            turn.earn(EVERY);
            let length = turn.length(false);
            if !length.is_zero() {
                // The turn exceeds its limit, because its last message is a long one.
                let took = length + Duration::from_micros(30);
                got += took;
                turn.spend(took, false);
            }
        }
        assert!(got <= now / SHARE + Duration::from_micros(50), "{got:?}");
        assert!(got >= now / SHARE / 2, "{got:?}");
        assert_eq!(turn.length(true), LONGEST);
        turn.spend(LONGEST, true);
        assert!(turn.saved <= SAVED);
    }
}
