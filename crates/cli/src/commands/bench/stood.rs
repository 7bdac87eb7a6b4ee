//! What of a switch's errors is the machine's: who looks at the clock all the time sees when it was stopped.
//!
//! Two threads are watched: the switch's engine, while it has nothing to do but to wait ([`weir_switch::SwitchHandle::stops`]), and the one that measures, which does
//! nothing but look, on another processor. A packet was *touched* if one of them was stopped while it was on its way. What the switch does itself, however
//! long it takes, is no stop.
use serde::Serialize;
use std::time::Duration;
use weir_emulator::Stolen;
use weir_switch::SwitchHandle;
use weir_units::{Instant, StopSum, Stops};

/// Looks of the thread that measures are closer together, unless it was stopped.
const LEAST: Duration = Duration::from_micros(20);
/// Sending a packet, and waking whoever it is for, takes less.
const SENDS: Duration = Duration::from_micros(100);

/// Watches the thread that measures.
pub(super) struct Watch {
    stops: Stops,
    began: Instant,
    stolen: Stolen,
}

/// When threads were stopped.
pub(super) struct Watched {
    engine: Stops,
    rig: Stops,
    length: Duration,
    stolen_share: Option<f64>,
}

/// In sum.
#[derive(Debug, Serialize)]
pub(super) struct Stood {
    /// The switch's engine; what it did itself not counted.
    engine: Share,
    /// The thread that measured, a control: it did nothing but look.
    rig: Share,
    /// Share of all processors' time that the machine's host gave to other machines, in ticks of the kernel; none where Linux does not say.
    stolen_share: Option<f64>,
}

/// How much of the time a thread was stopped.
#[derive(Debug, Serialize)]
struct Share {
    stops: u64,
    /// Of the time, `0.0..=1.0`.
    share: f64,
    longest_us: f64,
}

impl Watch {
    pub(super) fn start(now: Instant) -> Watch {
        Watch { stops: Stops::default(), began: now, stolen: Stolen::start() }
    }

    /// The thread looks at the clock, and did nothing else since it last did.
    pub(super) fn look(&mut self, now: Instant) {
        self.stops.look(now, LEAST);
    }

    /// It did something else.
    pub(super) fn worked(&mut self) {
        self.stops.look_away();
    }

    /// It sent a packet, which said that it was sent at `from`.
    pub(super) fn sent(&mut self, from: Instant, until: Instant) {
        if until.since(from) >= SENDS {
            self.stops.note(from, until);
        }
        self.worked();
    }

    /// It is over: together with what the switch, which has the same clock, noted.
    pub(super) fn end(self, now: Instant, switch: &SwitchHandle) -> anyhow::Result<Watched> {
        let engine = switch.stops()?.unwrap_or_default();
        let stolen_share = self.stolen.share();
        Ok(Watched { engine, rig: self.stops, length: now.since(self.began), stolen_share })
    }
}

/// How long after `due` something came, in seconds; negative: before.
pub(super) fn after(came: Instant, due: Instant) -> f64 {
    if came >= due { came.since(due).as_secs_f64() } else { -due.since(came).as_secs_f64() }
}

impl Watched {
    /// Whether a packet was on its way when a thread stood.
    pub(super) fn touch(&self, sent: Instant, came: Instant) -> bool {
        self.engine.touch(sent, came) || self.rig.touch(sent, came)
    }

    pub(super) fn sum(&self) -> Stood {
        let share = |stops: &Stops| {
            let StopSum { count, time, longest } = stops.sum();
            let share = time.as_secs_f64() / self.length.as_secs_f64().max(1e-9);
            Share { stops: count, share, longest_us: longest.as_secs_f64() * 1e6 }
        };
        Stood { engine: share(&self.engine), rig: share(&self.rig), stolen_share: self.stolen_share }
    }
}

impl Stood {
    /// As a line.
    pub(super) fn line(&self) -> String {
        let part = |Share { stops, share, longest_us }: &Share| {
            format!("{:.2} % of the time ({stops} times, {longest_us:.0} us at most)", share * 100.0)
        };
        let stolen = self.stolen_share.map_or_else(String::new, |share| {
            format!("; its host gave {:.1} % of the processors' time to others", share * 100.0)
        });
        format!(
            "the machine stopped the switch for {}, this thread for {}{stolen}\n",
            part(&self.engine),
            part(&self.rig)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_under_way_during_a_stop_are_touched() {
        let us = |us: u64| Instant::from_nanos(us * 1000);
        let mut watch = Watch::start(us(0));
        [0, 10, 500].into_iter().for_each(|at| watch.look(us(at)));
        watch.sent(us(500), us(510));
        watch.look(us(700));
        watch.sent(us(700), us(900));
        let mut engine = Stops::default();
        engine.note(us(2000), us(3000));
        let watched = Watched { engine, rig: watch.stops, length: Duration::from_millis(10), stolen_share: Some(0.01) };
        let touched = [(0, 10), (0, 11), (500, 690), (650, 750), (1000, 2000), (1000, 2001)];
        assert_eq!(
            touched.map(|(sent, came)| watched.touch(us(sent), us(came))),
            [false, true, false, true, false, true]
        );
        let line = watched.sum().line();
        assert_eq!(
            line,
            "the machine stopped the switch for 10.00 % of the time (1 times, 1000 us at most), this thread for 6.90 % of the time (2 times, 490 us at most); its host gave 1.0 % of the processors' time to others\n"
        );
    }
}
