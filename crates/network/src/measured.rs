//! Measurements of the ends of an item of traffic.
use std::time::Duration;
use weir_traffic::TimeHistogram;

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
    /// Description of a failure, for display.
    pub problem: Option<String>,
}

impl TrafficMeasurement {
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
