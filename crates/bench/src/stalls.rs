//! Separates the machine's stops from a switch's own errors: a thread that reads the clock continuously notices when
//! it was stopped.
//!
//! Two threads are watched on different processors: the switch's engine, while it only waits
//! ([`weir_switch::SwitchHandle::stops`]), and the measuring thread, which only reads the clock. A packet is
//! *touched* if one of them was stopped while the packet was in transit. Work of the switch itself is no stop,
//! however long it takes.
use serde::Serialize;
use std::time::Duration;
use weir_emulator::StealTimeSampler;
use weir_switch::SwitchHandle;
use weir_units::{Instant, StallLog, StallTotals};

/// Longest interval between two looks of the measuring thread, unless it was stopped.
const MIN_STALL: Duration = Duration::from_micros(20);
/// Upper bound of the time to send a packet and to wake its receiver.
const MAX_SEND_TIME: Duration = Duration::from_micros(100);

/// Watches the measuring thread.
pub(super) struct StallWatch {
    stops: StallLog,
    began: Instant,
    stolen: StealTimeSampler,
}

/// Stops of both threads during a measurement.
pub(super) struct StallRecord {
    engine: StallLog,
    rig: StallLog,
    length: Duration,
    stolen_share: Option<f64>,
}

/// Stops of both threads, summed up.
#[derive(Debug, Serialize)]
pub(super) struct StallSummary {
    /// Stops of the switch's engine, without its own work.
    engine: ThreadStalls,
    /// Stops of the measuring thread, as a control: it only read the clock.
    rig: ThreadStalls,
    /// Share of all processors' time that the hypervisor gave to other machines, from the kernel's ticks; `None` if
    /// Linux does not report it.
    stolen_share: Option<f64>,
}

/// Stops of one thread.
#[derive(Debug, Serialize)]
struct ThreadStalls {
    stops: u64,
    /// Share of the time, `0.0..=1.0`.
    share: f64,
    longest_us: f64,
}

impl StallWatch {
    pub(super) fn start(now: Instant) -> StallWatch {
        StallWatch { stops: StallLog::default(), began: now, stolen: StealTimeSampler::start() }
    }

    /// Records a look at the clock; the thread did nothing else since the previous look.
    pub(super) fn look(&mut self, now: Instant) {
        self.stops.look(now, MIN_STALL);
    }

    /// Records that the thread did other work since the last look.
    pub(super) fn note_work(&mut self) {
        self.stops.look_away();
    }

    /// Records that the thread sent a packet, stamped `from`, and finished at `until`.
    pub(super) fn note_send(&mut self, from: Instant, until: Instant) {
        if until.since(from) >= MAX_SEND_TIME {
            self.stops.note(from, until);
        }
        self.note_work();
    }

    /// Ends the measurement, and adds the stops noted by the switch, which uses the same clock.
    pub(super) fn end(self, now: Instant, switch: &SwitchHandle) -> anyhow::Result<StallRecord> {
        let engine = switch.stops()?.unwrap_or_default();
        let stolen_share = self.stolen.share();
        Ok(StallRecord { engine, rig: self.stops, length: now.since(self.began), stolen_share })
    }
}

/// Returns the lateness of an arrival in seconds, negative if it was early.
pub(super) fn lateness_s(came: Instant, due: Instant) -> f64 {
    if came >= due { came.since(due).as_secs_f64() } else { -due.since(came).as_secs_f64() }
}

impl StallRecord {
    /// Returns true if a thread was stopped while the packet was in transit.
    pub(super) fn stalled_during(&self, sent: Instant, came: Instant) -> bool {
        self.engine.touch(sent, came) || self.rig.touch(sent, came)
    }

    pub(super) fn sum(&self) -> StallSummary {
        let share = |stops: &StallLog| {
            let StallTotals { count, time, longest } = stops.sum();
            let share = time.as_secs_f64() / self.length.as_secs_f64().max(1e-9);
            ThreadStalls { stops: count, share, longest_us: longest.as_secs_f64() * 1e6 }
        };
        StallSummary { engine: share(&self.engine), rig: share(&self.rig), stolen_share: self.stolen_share }
    }
}

impl StallSummary {
    /// Formats the stops as a line.
    pub(super) fn line(&self) -> String {
        let part = |ThreadStalls { stops, share, longest_us }: &ThreadStalls| {
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
        let mut watch = StallWatch::start(us(0));
        [0, 10, 500].into_iter().for_each(|at| watch.look(us(at)));
        watch.note_send(us(500), us(510));
        watch.look(us(700));
        watch.note_send(us(700), us(900));
        let mut engine = StallLog::default();
        engine.note(us(2000), us(3000));
        let watched =
            StallRecord { engine, rig: watch.stops, length: Duration::from_millis(10), stolen_share: Some(0.01) };
        let touched = [(0, 10), (0, 11), (500, 690), (650, 750), (1000, 2000), (1000, 2001)];
        assert_eq!(
            touched.map(|(sent, came)| watched.stalled_during(us(sent), us(came))),
            [false, true, false, true, false, true]
        );
        let line = watched.sum().line();
        assert_eq!(
            line,
            "the machine stopped the switch for 10.00 % of the time (1 times, 1000 us at most), this thread for 6.90 % of the time (2 times, 490 us at most); its host gave 1.0 % of the processors' time to others\n"
        );
    }
}
