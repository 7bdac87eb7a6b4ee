//! Measurements of the ends of an item of traffic.
use std::time::Duration;
use weir_traffic::TimeHistogram;
use weir_units::{Instant, StallLog};

/// Maximum number of delays of an end whose times are kept. Later ones are measured, but never set aside.
const MAX_TIMED: usize = 1 << 20;
/// Maximum share of an item's delays that is set aside. What remains of a larger share is chosen too much by the
/// machine to stand for the network.
pub const MAX_SET_ASIDE: f64 = 0.2;

/// Measurements of one end of an item of traffic. [`TrafficMeasurement::merge`] combines both ends.
#[derive(Debug, Clone, Default)]
pub struct TrafficMeasurement {
    /// Packets (TCP: bytes) that the sender had to send.
    pub asked: u64,
    /// Packets (TCP: bytes) sent.
    pub sent: u64,
    /// Answers to pings, datagrams, or bytes of TCP received.
    pub received: u64,
    /// Payload bytes received.
    pub payload_bytes: u64,
    /// Time from the first to the last reception.
    pub span: Duration,
    /// Round trips of pings; one-way times of datagrams.
    pub delays: TimeHistogram,
    /// Round trips of all pings but the first, which also waits for address resolution and the controller.
    pub after_first: TimeHistogram,
    /// Lateness of sending against the schedule, of senders that have one.
    pub late: TimeHistogram,
    /// Times of each delay; `None` if they are not kept.
    pub timed: Option<Vec<TimedDelay>>,
    /// Description of a failure, for display.
    pub problem: Option<String>,
}

/// Times of a packet whose delay was measured.
#[derive(Debug, Clone, Copy)]
pub struct TimedDelay {
    sent: Instant,
    received: Instant,
}

/// Delays of an item of traffic that packets had outside of stops of the machine.
#[derive(Debug, Clone, Default)]
pub struct UndisturbedDelays {
    /// Number of delays whose packets were sent or received in a stop.
    pub in_stops: u64,
    /// All other delays (of pings, without the first); `None` if none is in a stop, or more than [`MAX_SET_ASIDE`].
    pub others: Option<TimeHistogram>,
}

impl TrafficMeasurement {
    /// Returns an empty measurement that keeps the times of each delay if `keeps_times`.
    pub fn keeping_times(keeps_times: bool) -> TrafficMeasurement {
        TrafficMeasurement { timed: keeps_times.then(Vec::new), ..TrafficMeasurement::default() }
    }

    /// Records the delay of a datagram that was `sent` and `received` then, by one clock.
    pub fn delayed(&mut self, sent: Instant, received: Instant) {
        self.delays.record(received - sent);
        self.keep(sent, received);
    }

    /// Records the answer to a ping by its number, from 0, with the times of sending and receiving by one clock.
    pub fn answered_at(&mut self, number: u64, sent: Instant, received: Instant) {
        self.answered(number, received - sent);
        if number > 0 {
            self.keep(sent, received);
        }
    }

    fn keep(&mut self, sent: Instant, received: Instant) {
        if let Some(timed) = self.timed.as_mut().filter(|timed| timed.len() < MAX_TIMED) {
            timed.push(TimedDelay { sent, received });
        }
    }

    /// Returns the delays that packets had outside of the machine's `stops`, each of which counts as twice as long: as
    /// much time again passes until what has waited meanwhile is through.
    pub fn undisturbed(&self, stops: &StallLog) -> UndisturbedDelays {
        let stops = stops.with_aftermath();
        let mut inside = TimeHistogram::default();
        for TimedDelay { sent, received } in self.timed.iter().flatten() {
            if stops.touch(*sent, *received) {
                inside.record(*received - *sent);
            }
        }
        let all = if self.after_first.count() > 0 { &self.after_first } else { &self.delays };
        let in_stops = inside.count();
        let is_little = in_stops as f64 <= MAX_SET_ASIDE * all.count() as f64;
        let others = (in_stops > 0 && is_little).then(|| all.without(&inside));
        UndisturbedDelays { in_stops, others }
    }

    /// Records the answer to a ping by its number, from 0.
    pub fn answered(&mut self, number: u64, round_trip: Duration) {
        self.received += 1;
        self.delays.record(round_trip);
        if number > 0 {
            self.after_first.record(round_trip);
        }
    }

    /// Adds the measurements of the other end.
    pub fn merge(&mut self, other: TrafficMeasurement) {
        self.asked += other.asked;
        self.sent += other.sent;
        self.received += other.received;
        self.payload_bytes += other.payload_bytes;
        self.span = self.span.max(other.span);
        self.delays.merge(&other.delays);
        self.after_first.merge(&other.after_first);
        self.late.merge(&other.late);
        if let Some(timed) = other.timed {
            self.timed.get_or_insert_default().extend(timed);
        }
        self.problem = self.problem.take().or(other.problem);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_ping_is_told_from_the_others() {
        let mut measured = TrafficMeasurement::default();
        for (number, ms) in [(0, 9), (1, 1), (2, 1)] {
            measured.answered(number, Duration::from_millis(ms));
        }
        assert_eq!((measured.received, measured.delays.count(), measured.after_first.count()), (3, 3, 2));
        assert!(measured.after_first.summary().unwrap().max_us < 1100.0);
    }

    #[test]
    fn delays_in_stops_are_set_aside() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut measured = TrafficMeasurement::keeping_times(true);
        // A packet every 10 ms that takes 1 ms; two are touched by the stop or by the time after it.
        (0..20).for_each(|number| measured.delayed(at(10 * number), at(10 * number + 1)));
        let mut stops = StallLog::default();
        stops.note(at(20), at(26));
        let found = measured.undisturbed(&stops);
        assert_eq!((found.in_stops, found.others.unwrap().count()), (2, 18));
        assert_eq!(measured.delays.count(), 20, "all stay in the whole");
        stops.note(at(50), at(90));
        let found = measured.undisturbed(&stops);
        assert!(found.in_stops > 4 && found.others.is_none(), "too many: {found:?}");
        let found = measured.undisturbed(&StallLog::default());
        assert!(found.in_stops == 0 && found.others.is_none());
        let mut unkept = TrafficMeasurement::default();
        unkept.delayed(at(21), at(22));
        assert_eq!(unkept.undisturbed(&stops).in_stops, 0, "without times nothing is known");
    }

    #[test]
    fn the_first_ping_is_never_among_the_undisturbed() {
        let at = |ms| Instant::ZERO + Duration::from_millis(ms);
        let mut measured = TrafficMeasurement::keeping_times(true);
        (0..10).for_each(|number| measured.answered_at(number, at(10 * number), at(10 * number + 1)));
        let mut stops = StallLog::default();
        stops.note(at(0), at(12));
        let found = measured.undisturbed(&stops);
        // The first three are in the stop or the time after it; the first one does not count at all.
        assert_eq!((found.in_stops, found.others.map(|others| others.count())), (2, None), "2 of 9 are too many");
    }

    #[test]
    fn two_ends_make_one_whole() {
        let mut sender = TrafficMeasurement { asked: 10, sent: 9, ..TrafficMeasurement::default() };
        let mut receiver =
            TrafficMeasurement { received: 8, problem: Some("late".into()), ..TrafficMeasurement::default() };
        receiver.delays.record(Duration::from_millis(1));
        sender.merge(receiver);
        assert_eq!((sender.asked, sender.sent, sender.received), (10, 9, 8));
        assert_eq!((sender.delays.summary().unwrap().samples, sender.problem.as_deref()), (1, Some("late")));
    }
}
