//! Models a TCP connection that sends as much as it can from its first segment on: slow start, losses and time-outs.
use crate::ModelError;
use crate::check::{domain, not_negative, positive};

/// Maximum number of round trips followed one by one. The rest of the connection has the mean rate of their second
/// half.
const ROUNDS_MAX: u32 = 20_000;
/// Number of parts into which the buffer is divided. The result states for how long the buffer was filled up to each
/// part.
const PARTS: usize = 12;
/// Largest loss that fast recovery repairs without selective acknowledgements, in frames. Losses are fractions here; a
/// loss up to this value counts as a single frame.
const MENDED: f64 = 1.5;
/// Minimum number of segments in flight for three duplicate acknowledgements.
const DUPLICATES: f64 = 4.0;
/// Number of segments that one acknowledgement confirms.
const PER_ACKNOWLEDGEMENT: f64 = 2.0;
/// Difference between the bytes sent and served in a round, relative to the bytes sent, below which the queue counts as
/// constant.
const REST: f64 = 1e-6;

/// Connection over one line that is its bottleneck. Bytes of payload and bytes of frames are distinguished.
///
/// The model is weir's own: round by round like the slow start of Cardwell, Savage and Anderson (Modeling TCP
/// latency, 2000), but losses follow from the buffer instead of a given share. The part of the window beyond the
/// line's capacity fills the buffer, and so do slow start's bursts, half again as fast as the line. Frames that do
/// not fit are lost, and noticed a round trip later. One lost frame halves the window (Jacobson 1988); more than one
/// cause a time-out, as without selective acknowledgements.
///
/// Compared with 198 connections in virtual time (10 to 200 Mbit/s, 2 to 80 ms, buffers of 16 to 256 kB, half a
/// second to a minute, alone and beside three quarters of the line), the rate is 11 % off in the median, and 95 in
/// 100 are within a factor of two. Buffers of ten frames at round trips of 2 ms are the worst.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpBulkTransfer {
    /// Capacity that the line has left for the connection, in bytes of frames a second.
    pub share: f64,
    /// Rate of the line for all traffic, at which its buffer empties, in bytes a second.
    pub line: f64,
    /// Round-trip time without queueing, in seconds.
    pub round_trip_s: f64,
    /// Size of the line's buffer, in bytes of frames.
    pub buffer_bytes: f64,
    /// Receiver's window, in bytes of payload.
    pub window_bytes: f64,
    /// Initial congestion window, in bytes of payload.
    pub first_bytes: f64,
    /// Payload of a segment, in bytes.
    pub segment_bytes: f64,
    /// Frame of a segment, in bytes.
    pub frame_bytes: f64,
    /// Shortest time after which unacknowledged segments are sent again, in seconds.
    pub timeout_s: f64,
    /// Duration of the connection, in seconds. Until its end the sender's buffer, as large as the window, is kept
    /// full.
    pub duration_s: f64,
    /// Time after `duration_s` during which the sender may still send the rest of its buffer, in seconds.
    pub patience_s: f64,
}

/// Result of a connection.
#[derive(Debug, Clone, PartialEq)]
pub struct TcpBulkResult {
    /// Payload that arrived, in bytes.
    pub payload_bytes: f64,
    /// Mean rate of payload from the first byte's arrival on, in bytes a second.
    pub payload_rate: f64,
    /// Number of time-outs.
    pub timeouts: u32,
    /// Number of frames lost.
    pub lost: f64,
    /// Queue that the connection adds at the line: pairs of share of the time and waiting time in seconds.
    pub queue: Vec<(f64, f64)>,
}

impl TcpBulkResult {
    /// Returns the mean queue, in seconds.
    pub fn queue_s(&self) -> f64 {
        self.queue.iter().map(|(share, seconds)| share * seconds).sum()
    }
}

impl TcpBulkTransfer {
    /// Follows the connection round by round and returns its result.
    ///
    /// # Errors
    /// `DOMAIN` for invalid numbers, frames smaller than their payload, and shares larger than the line.
    pub fn solve(&self) -> Result<TcpBulkResult, ModelError> {
        positive("share", self.share)?;
        if positive("line", self.line)? < self.share {
            return Err(domain("line", self.line, format!("the share, which is {}, or more", self.share)));
        }
        positive("segment", self.segment_bytes)?;
        if positive("frame", self.frame_bytes)? < self.segment_bytes {
            return Err(domain("frame", self.frame_bytes, format!("its payload, {}, or more", self.segment_bytes)));
        }
        positive("rtt", self.round_trip_s)?;
        positive("window", self.window_bytes)?;
        positive("first", self.first_bytes)?;
        not_negative("timeout", self.timeout_s)?;
        not_negative("duration", self.duration_s)?;
        not_negative("patience", self.patience_s)?;
        // An infinite buffer is valid: no limit.
        if self.buffer_bytes.is_nan() || self.buffer_bytes < 0.0 {
            return Err(domain("buffer", self.buffer_bytes, "0 or more"));
        }
        Ok(TcpBulkState::new(self).run())
    }
}

/// State of a connection in progress.
struct TcpBulkState<'a> {
    of: &'a TcpBulkTransfer,
    now: f64,
    /// Time of the last arrival, in seconds.
    arrived: f64,
    window: f64,
    /// Window at which slow start ends.
    threshold: f64,
    /// Bytes of frames waiting for the line.
    waiting: f64,
    /// Bytes of frames lost in the previous round; the sender notices the loss in the current one.
    missed: f64,
    /// After the end: bytes of payload left in the sender's buffer.
    unsent: Option<f64>,
    delivered: f64,
    lost: f64,
    timeouts: u32,
    /// Time, and time multiplied by the waiting time, for each part of the buffer; the first element is for an empty
    /// queue.
    parts: [(f64, f64); PARTS + 1],
}

impl<'a> TcpBulkState<'a> {
    /// Creates the state after the handshake's round trip.
    fn new(of: &'a TcpBulkTransfer) -> TcpBulkState<'a> {
        TcpBulkState {
            of,
            now: of.round_trip_s,
            arrived: of.round_trip_s,
            window: of.first_bytes.min(of.window_bytes),
            threshold: f64::INFINITY,
            waiting: 0.0,
            missed: 0.0,
            unsent: None,
            delivered: 0.0,
            lost: 0.0,
            timeouts: 0,
            parts: [(0.0, 0.0); PARTS + 1],
        }
    }

    fn run(mut self) -> TcpBulkResult {
        if self.now < self.of.duration_s {
            self.send();
            self.rest();
        }
        self.transfer()
    }

    /// Sends until the end of the connection: round by round as long as something changes.
    fn send(&mut self) {
        let mut half = (self.now, self.delivered);
        for round in 0..ROUNDS_MAX {
            if self.now >= self.of.duration_s {
                return;
            }
            if self.rests() {
                break;
            }
            self.round(self.of.duration_s);
            if round == ROUNDS_MAX / 2 {
                half = (self.now, self.delivered);
            }
        }
        let left = self.of.duration_s - self.now;
        let per_second = if self.rests() {
            self.of.share.min(self.window_frames() / self.round_s()) / self.per_payload()
        } else {
            (self.delivered - half.1) / (self.now - half.0)
        };
        self.delivered += per_second * left;
        self.wait(left, self.waiting);
        self.now = self.of.duration_s;
        self.arrived = self.now;
    }

    /// Sends the rest of the sender's buffer after the end.
    fn rest(&mut self) {
        // After a time-out beyond the end everything is unsent, otherwise the part that is not in flight.
        let under_way = if self.now > self.of.duration_s { 0.0 } else { self.window };
        self.unsent = Some((self.of.window_bytes - under_way).max(0.0));
        let end = self.of.duration_s + self.of.patience_s;
        for _ in 0..ROUNDS_MAX {
            let is_through = self.waiting < 1.0 && self.unsent.is_none_or(|unsent| unsent < 1.0);
            if self.now >= end || is_through {
                break;
            }
            self.round(end);
        }
    }

    /// Returns true if nothing will change: the receiver's window is in flight, and the queue is constant.
    fn rests(&self) -> bool {
        let full = self.window >= self.of.window_bytes && self.missed == 0.0;
        let (frames, served) = (self.window_frames(), self.of.share * self.round_s());
        full && ((frames - served).abs() < REST * frames || frames < served && self.waiting == 0.0)
    }

    fn per_payload(&self) -> f64 {
        self.of.frame_bytes / self.of.segment_bytes
    }

    fn window_frames(&self) -> f64 {
        self.window * self.per_payload()
    }

    fn round_s(&self) -> f64 {
        self.of.round_trip_s + self.waiting / self.of.line
    }

    /// Sends a window, as far as there is time before `end`.
    fn round(&mut self, end: f64) {
        let whole = self.round_s();
        let seconds = whole.min(end - self.now);
        let sent = self.window.min(self.unsent.unwrap_or(f64::INFINITY)) * self.per_payload() * seconds / whole;
        self.unsent = self.unsent.map(|unsent| (unsent - sent / self.per_payload()).max(0.0));
        let queue = self.waiting + sent - (self.waiting + sent).min(self.of.share * seconds);
        let missed = (queue.max(self.burst(sent)) - self.of.buffer_bytes).clamp(0.0, sent);
        let served = (self.waiting + sent - missed).min(self.of.share * seconds);
        self.wait(seconds, self.waiting);
        self.waiting = (self.waiting + sent - missed - served).clamp(0.0, self.of.buffer_bytes);
        self.now += seconds;
        self.lost += missed;
        let arrived = self.arrive(served, self.now);
        match self.missed {
            // Losses of the previous round are noticed now.
            before if before > 0.0 => self.notice(before + missed, end),
            _ => {
                self.missed = missed;
                self.grow(arrived);
            }
        }
    }

    /// Returns the largest queue within a round of slow start, in bytes of frames; 0 if the window does not grow this
    /// way. Two segments leave the line at its full rate, and their acknowledgement releases three more. Packets of
    /// others use the line in addition.
    fn burst(&self, sent: f64) -> f64 {
        let grows = self.window < self.threshold && self.window < self.of.window_bytes;
        let faster = self.of.line / PER_ACKNOWLEDGEMENT;
        if grows { sent * faster / (faster + self.of.share) } else { 0.0 }
    }

    /// Records the arrival of `frames` bytes of frames. Returns their payload.
    fn arrive(&mut self, frames: f64, at: f64) -> f64 {
        let payload = frames / self.per_payload();
        self.delivered += payload;
        if payload > 0.0 {
            self.arrived = at;
        }
        payload
    }

    /// Grows the window: by a segment for each acknowledgement in slow start, afterwards by one for each window.
    fn grow(&mut self, arrived: f64) {
        let segment = self.of.segment_bytes;
        // A single segment is acknowledged, too.
        let least = if self.window < PER_ACKNOWLEDGEMENT * segment { 1.0 } else { 0.0 };
        let acknowledgements = (arrived / (PER_ACKNOWLEDGEMENT * segment)).max(least);
        let each = if self.window < self.threshold { segment } else { segment * segment / self.window };
        self.window = (self.window + acknowledgements * each).min(self.of.window_bytes);
    }

    fn notice(&mut self, missed: f64, end: f64) {
        let segment = self.of.segment_bytes;
        self.missed = 0.0;
        self.threshold = (self.window / 2.0).max(2.0 * segment);
        if missed <= MENDED * self.of.frame_bytes && self.window >= DUPLICATES * segment {
            self.window = self.threshold;
            return;
        }
        self.timeouts += 1;
        self.window = segment;
        let last = self.of.duration_s + self.of.patience_s;
        let seconds = self.of.timeout_s.max(self.round_s()).min((last.max(end) - self.now).max(0.0));
        let served = self.waiting.min(self.of.share * seconds);
        let emptying = served / self.of.share;
        self.wait(emptying, self.waiting - served / 2.0);
        self.wait(seconds - emptying, self.waiting - served);
        self.waiting -= served;
        self.arrive(served, self.now + emptying);
        self.now += seconds;
    }

    /// Records that `waiting` bytes waited for `seconds`.
    fn wait(&mut self, seconds: f64, waiting: f64) {
        let most = self.of.buffer_bytes.min(self.of.window_bytes * self.per_payload());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a part")]
        let part = match waiting < 1.0 {
            true => 0,
            false => (waiting / most * PARTS as f64).ceil().clamp(1.0, PARTS as f64) as usize,
        };
        self.parts[part].0 += seconds;
        self.parts[part].1 += seconds * waiting / self.of.line;
    }

    fn transfer(self) -> TcpBulkResult {
        let seconds: f64 = self.parts.iter().map(|(seconds, _)| seconds).sum();
        let filled = self.parts.iter().filter(|(seconds, _)| *seconds > 0.0);
        let mut queue: Vec<_> = filled.map(|(own, waited)| (own / seconds, waited / own)).collect();
        if queue.is_empty() {
            // A transfer that ends before its first segment never fills the queue.
            queue.push((1.0, 0.0));
        }
        let arriving = self.arrived - self.of.round_trip_s;
        TcpBulkResult {
            payload_bytes: self.delivered,
            payload_rate: if arriving > 0.0 { self.delivered / arriving } else { 0.0 },
            timeouts: self.timeouts,
            lost: self.lost / self.of.frame_bytes,
            queue,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of 20 Mbit/s with a round trip of 20 ms.
    fn bulk() -> TcpBulkTransfer {
        TcpBulkTransfer {
            share: 2.5e6,
            line: 2.5e6,
            round_trip_s: 0.02,
            buffer_bytes: 1e6,
            window_bytes: 98_304.0,
            first_bytes: 2048.0,
            segment_bytes: 1460.0,
            frame_bytes: 1514.0,
            timeout_s: 1.0,
            duration_s: 100.0,
            patience_s: 0.0,
        }
    }

    #[test]
    fn a_window_that_the_buffer_takes_keeps_the_line_full() {
        let transfer = bulk().solve().unwrap();
        assert_eq!((transfer.timeouts, transfer.lost), (0, 0.0));
        // The line's whole payload rate, except for the start.
        let most = 2.5e6 * 1460.0 / 1514.0;
        assert!(transfer.payload_rate < most && transfer.payload_rate > 0.99 * most, "{transfer:?}");
        // The part of the window that is not in flight waits.
        let waits = (98_304.0 * 1514.0 / 1460.0 - 0.02 * 2.5e6) / 2.5e6;
        assert!((transfer.queue.last().unwrap().1 / waits - 1.0).abs() < 0.05, "{transfer:?}, {waits}");
    }

    #[test]
    fn a_small_window_bounds_the_rate() {
        let transfer = TcpBulkTransfer { window_bytes: 29_200.0, ..bulk() }.solve().unwrap();
        assert!((transfer.payload_rate / (29_200.0 / 0.02) - 1.0).abs() < 0.01, "{transfer:?}");
        assert!(transfer.queue_s() < 1e-4);
    }

    #[test]
    fn slow_start_grows_by_half_a_round() {
        // Cardwell and others, equation 10: d (g - 1) / w + 1 segments in log_g rounds, g = 1.5.
        for rounds in [4.0, 8.0, 12.0f64] {
            let short = TcpBulkTransfer {
                line: 1e9,
                share: 1e9,
                window_bytes: 1e9,
                duration_s: 0.02 * (rounds + 1.0),
                ..bulk()
            };
            let found = short.solve().unwrap().payload_bytes;
            let expected = 2048.0 * (1.5f64.powf(rounds) - 1.0) / 0.5;
            assert!((found / expected - 1.0).abs() < 0.25, "{rounds}: {found}, {expected}");
        }
    }

    #[test]
    fn what_overflows_the_buffer_costs_a_timeout() {
        let short = TcpBulkTransfer { share: 0.625e6, buffer_bytes: 64_000.0, duration_s: 2.0, ..bulk() };
        let transfer = short.solve().unwrap();
        assert!(transfer.timeouts >= 1 && transfer.lost > 2.0, "{transfer:?}");
        assert!(transfer.payload_rate < 0.5 * 0.625e6, "{transfer:?}");
        // Later, losses of a frame or two repeat, and two cause a time-out again: virtual time gives 0.66 of the
        // capacity.
        let long = TcpBulkTransfer { duration_s: 600.0, ..short }.solve().unwrap();
        let part = long.payload_rate / (0.625e6 * 1460.0 / 1514.0);
        assert!((0.4..0.7).contains(&part) && long.lost / f64::from(long.timeouts) < 5.0, "{part}: {long:?}");
    }

    #[test]
    fn what_the_sender_holds_at_the_end_is_sent_yet() {
        let short = TcpBulkTransfer { duration_s: 0.1, ..bulk() };
        let (cut, whole) = (short.solve().unwrap(), TcpBulkTransfer { patience_s: 1.0, ..short }.solve().unwrap());
        assert!(whole.payload_bytes > cut.payload_bytes + 60_000.0, "{cut:?}, {whole:?}");
        assert!(whole.payload_bytes < cut.payload_bytes + 98_304.0, "{cut:?}, {whole:?}");
    }

    #[test]
    fn a_transfer_shorter_than_its_start_fills_no_queue() {
        for duration_s in [0.0, 0.001, 0.02] {
            let transfer = TcpBulkTransfer { duration_s, ..bulk() }.solve().unwrap();
            assert_eq!((transfer.payload_bytes, &transfer.queue[..]), (0.0, &[(1.0, 0.0)][..]), "{duration_s} s");
        }
    }

    #[test]
    fn any_numbers_have_an_answer_or_an_error() {
        for share in [1.0, 1e4, 1e9] {
            for buffer_bytes in [0.0, 1e3, 1e6, f64::INFINITY] {
                for round_trip_s in [1e-6, 1e-2, 10.0] {
                    for duration_s in [0.0, 1e-3, 10.0, 1e6] {
                        let patience_s = if duration_s > 1.0 { 1.0 } else { 0.0 };
                        let times = TcpBulkTransfer { round_trip_s, duration_s, patience_s, ..bulk() };
                        let bulk = TcpBulkTransfer { share, line: 2.0 * share, buffer_bytes, ..times };
                        let found = bulk.solve().unwrap();
                        let numbers = [found.payload_bytes, found.payload_rate, found.lost, found.queue_s()];
                        assert!(
                            numbers.iter().all(|number| number.is_finite() && *number >= 0.0),
                            "{bulk:?}: {found:?}"
                        );
                        assert!(found.payload_rate <= share * (1.0 + 1e-9), "{bulk:?}: {found:?}");
                    }
                }
            }
        }
        for wrong in [
            TcpBulkTransfer { share: 0.0, ..bulk() },
            TcpBulkTransfer { share: 1e9, ..bulk() },
            TcpBulkTransfer { frame_bytes: 1.0, ..bulk() },
            TcpBulkTransfer { buffer_bytes: f64::NAN, ..bulk() },
        ] {
            assert_eq!(wrong.solve().unwrap_err().kind(), "DOMAIN", "{wrong:?}");
        }
    }
}
