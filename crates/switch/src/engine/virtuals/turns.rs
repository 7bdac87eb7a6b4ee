//! Gives virtual switches' controllers turns at the engine's time: a small guaranteed share each, and more while
//! forwarding leaves time. Flow-mods of one virtual switch, however many, therefore cost the others' packets almost
//! no time.
use crate::engine::Engine;
use std::time::Duration;
use weir_units::{Clock, Instant};

/// Divisor of the engine's time for each virtual switch's control work while packets want all of it: 1/256.
const SHARE: u32 = 256;
/// Maximum time that a virtual switch may save for its next message.
const SAVED: Duration = Duration::from_micros(200);
/// Maximum length of a turn. Packets that arrive meanwhile wait this long.
const LONGEST: Duration = Duration::from_micros(20);
/// Minimum length of a turn; shorter ones are not worth beginning.
const SHORTEST: Duration = Duration::from_micros(2);
/// Interval of turns while packets keep the engine busy.
const EVERY: Duration = Duration::from_micros(20);

/// Account of a virtual switch's control time.
#[derive(Debug, Default)]
pub(super) struct Turn {
    saved: Duration,
    /// Time used beyond the saved amount.
    owed: Duration,
}

impl Turn {
    /// Credits the share of `passed` time.
    fn earn(&mut self, passed: Duration) {
        let mut earned = passed / SHARE;
        let paid = earned.min(self.owed);
        self.owed -= paid;
        earned -= paid;
        self.saved = (self.saved + earned).min(SAVED);
    }

    /// Returns the maximum length of the next turn, or zero for no turn. `is_spare` is true if forwarding does not
    /// want the time.
    fn length(&self, is_spare: bool) -> Duration {
        match is_spare {
            true => LONGEST,
            false if self.saved < SHORTEST => Duration::ZERO,
            false => self.saved.min(LONGEST),
        }
    }

    /// Charges a turn of length `took`. Spare time costs nothing.
    fn spend(&mut self, took: Duration, is_spare: bool) {
        if is_spare {
            return;
        }
        let paid = took.min(self.saved);
        self.saved -= paid;
        self.owed += took - paid;
    }
}

impl Engine {
    /// Gives turns to virtual switches with messages or due work. Returns true if there was any.
    pub(super) fn take_turns(&mut self, now: Instant, forwarded: bool) -> bool {
        let Some(virtuals) = &mut self.virtuals else { return false };
        let passed = now.since(virtuals.turned_at);
        if forwarded && passed < EVERY {
            return false;
        }
        virtuals.turned_at = now;
        let count = virtuals.order.len();
        // The first switch rotates, because the first turn delays the packets behind it.
        virtuals.first = if count == 0 { 0 } else { (virtuals.first + 1) % count };
        let mut worked = false;
        for turn in 0..count {
            let Some(virtuals) = &mut self.virtuals else { break };
            let place = virtuals.order[(virtuals.first + turn) % count];
            let Some(cut) = virtuals.cut(place) else { continue };
            cut.turn.earn(passed);
            if cut.logical.is_quiet() && cut.logical.due() > now {
                continue;
            }
            let length = cut.turn.length(!forwarded);
            if length.is_zero() {
                continue;
            }
            worked |= self.take_turn(place, length, !forwarded);
        }
        worked
    }

    fn take_turn(&mut self, place: u16, length: Duration, is_spare: bool) -> bool {
        let began = self.clock.now();
        self.turn = length;
        let worked = self.serve_at(place, |engine| {
            let worked = engine.obey(began, began, false);
            if !engine.logical.is_busy {
                engine.resume_monitors(began);
            }
            worked
        });
        let took = self.clock.now().since(began);
        if let Some(cut) = self.virtuals.as_mut().and_then(|virtuals| virtuals.cut(place)) {
            cut.turn.spend(took, is_spare);
        }
        worked.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_switch_gets_its_share_of_a_busy_engine_and_more_of_an_idle_one() {
        let mut turn = Turn::default();
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
