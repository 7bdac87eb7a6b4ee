//! Virtual switches' turns at the engine's time for what their controllers want: a small share of it for certain, and more when
//! forwarding leaves some. So flow-mods of one, however many, cost the others' packets next to nothing.
use crate::engine::Engine;
use std::time::Duration;
use weir_units::{Clock, Instant};

/// The part of the engine's time that each virtual switch's messages get while packets want all of it: a 256th.
const SHARE: u32 = 256;
/// What a switch may save of it, for the next message to come.
const SAVED: Duration = Duration::from_micros(200);
/// A turn at most: what packets that come meanwhile wait.
const LONGEST: Duration = Duration::from_micros(20);
/// A turn at least: shorter ones are not worth beginning.
const SHORTEST: Duration = Duration::from_micros(2);
/// Turns are given this often while packets keep the engine busy.
const EVERY: Duration = Duration::from_micros(20);

/// What a virtual switch has of the engine's time.
#[derive(Debug, Default)]
pub(super) struct Turn {
    saved: Duration,
    /// What it took beyond.
    owed: Duration,
}

impl Turn {
    /// Time has passed.
    fn earn(&mut self, passed: Duration) {
        let mut earned = passed / SHARE;
        let paid = earned.min(self.owed);
        self.owed -= paid;
        earned -= paid;
        self.saved = (self.saved + earned).min(SAVED);
    }

    /// How long the next turn may be; zero for none. `is_spare`: nobody else wants the time.
    fn length(&self, is_spare: bool) -> Duration {
        match is_spare {
            true => LONGEST,
            false if self.saved < SHORTEST => Duration::ZERO,
            false => self.saved.min(LONGEST),
        }
    }

    /// A turn took so long. What was spare costs nothing.
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
    /// Gives virtual switches whose controllers or deadlines want something their turns. Whether there was anything.
    pub(super) fn take_turns(&mut self, now: Instant, forwarded: bool) -> bool {
        let Some(virtuals) = &mut self.virtuals else { return false };
        let passed = now.since(virtuals.turned_at);
        if forwarded && passed < EVERY {
            return false;
        }
        virtuals.turned_at = now;
        let count = virtuals.order.len();
        // Who comes first changes, since the first may take what the packets behind it would wait for.
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
                // It takes more than it may: its last message is a long one.
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
