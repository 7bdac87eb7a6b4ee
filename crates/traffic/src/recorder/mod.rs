//! Computes delay, jitter, loss, reordering and duplication of packets from the headers that they carry
//! ([`crate::probe`]).
//!
//! The recorder has no clock: callers pass the arrival time of each packet, by the clock that the sender read.
mod order;
mod path;
mod report;
mod series;

pub use path::{MAX_EVENTS, PathRecorder, PathReport, PathSection};
pub use report::{JitterStatistics, ReceptionReport, Reordering};
pub use series::{IntervalSeries, IntervalStatistics};

use crate::{GapLaw, GapRecorder, ProbeHeader, TimeHistogram};
use order::{ArrivalClass, SequenceTracker};
use std::time::Duration;

/// Measures the received packets of one run.
#[derive(Debug, Clone, Default)]
pub struct ProbeRecorder {
    order: SequenceTracker,
    bytes: u64,
    warm_up: u64,
    /// Packets that arrived before they were sent, because sender and receiver have different clocks.
    before_sent: u64,
    /// Delays of all packets, of known flows, and of new flows.
    delays: [TimeHistogram; 3],
    /// Interarrival jitter in nanoseconds (RFC 3550, 6.4.1).
    rfc3550_ns: f64,
    /// Delay of the last recorded packet, in order of arrival.
    last_delay_ns: Option<i128>,
    /// Number and delay of the packet with the highest number so far.
    highest: Option<(u64, i128)>,
    variation: TimeHistogram,
    gaps: GapRecorder,
    first_ns: Option<u64>,
    last_ns: u64,
}

/// Index of the delays of all packets in [`ProbeRecorder::delays`]; behind them come those of known and of new flows.
const ALL: usize = 0;
const KNOWN: usize = 1;
const NEW: usize = 2;

/// Classification of a recorded packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceptionKind {
    /// First arrival of the packet, with its delay; `None` if it arrived before it was sent.
    Fresh(Option<Duration>),
    /// Further copy of a packet.
    Duplicate,
    /// Not counted: the packet was sent during the warm-up.
    WarmUp,
}

impl ProbeRecorder {
    /// Records a packet of `bytes` that arrived at `now_ns` of the sender's clock.
    pub fn record(&mut self, now_ns: u64, probe: &ProbeHeader, bytes: u32) -> ReceptionKind {
        if !probe.counts {
            self.warm_up += 1;
            return ReceptionKind::WarmUp;
        }
        let number = self.order.extend(probe.sequence);
        let arrived = self.order.arrive(number, now_ns);
        if arrived == ArrivalClass::Duplicate {
            return ReceptionKind::Duplicate;
        }
        self.bytes += u64::from(bytes);
        self.first_ns.get_or_insert(now_ns);
        self.last_ns = self.last_ns.max(now_ns);
        let delay_ns = i128::from(now_ns) - i128::from(probe.sent_ns);
        self.vary(number, delay_ns);
        self.follow(number, now_ns, probe.sent_ns);
        let Ok(delay_ns) = u64::try_from(delay_ns) else {
            self.before_sent += 1;
            return ReceptionKind::Fresh(None);
        };
        self.delays[ALL].record_ns(delay_ns);
        self.delays[if probe.is_new_flow { NEW } else { KNOWN }].record_ns(delay_ns);
        ReceptionKind::Fresh(Some(Duration::from_nanos(delay_ns)))
    }

    /// Updates the delay variation: between packets in order of arrival (RFC 3550), and between packets sent in
    /// sequence (RFC 3393).
    fn vary(&mut self, number: u64, delay_ns: i128) {
        if let Some(last) = self.last_delay_ns.replace(delay_ns) {
            self.rfc3550_ns += ((delay_ns - last).unsigned_abs() as f64 - self.rfc3550_ns) / 16.0;
        }
        if let Some((before, delay_before)) = self.highest
            && before + 1 == number
        {
            self.variation.record_ns(u64::try_from((delay_ns - delay_before).unsigned_abs()).unwrap_or(u64::MAX));
        }
        if self.highest.is_none_or(|(highest, _)| number > highest) {
            self.highest = Some((number, delay_ns));
        }
    }

    /// Records the time between a packet and the previous one, if it follows that one in sequence.
    fn follow(&mut self, number: u64, now_ns: u64, sent_ns: u64) {
        if !self.order.is_next_of_last(number) {
            self.gaps.interrupt();
        }
        self.gaps.record(sent_ns, now_ns);
    }

    /// Returns the number of packets received, each counted once.
    pub fn received(&self) -> u64 {
        self.order.received
    }

    /// Returns the results. `sent` is the number of packets sent; `None`: derived from their numbers. Times between
    /// packets are compared with those at the sender, and with `law` if given. Packets with a delay above `threshold`
    /// count as having gone through the controller.
    pub fn report(&self, sent: Option<u64>, law: Option<&GapLaw>, threshold: Option<Duration>) -> ReceptionReport {
        let span_s = self.first_ns.map_or(0.0, |first| self.last_ns.saturating_sub(first) as f64 / 1e9);
        let received = self.order.received;
        let sent = sent.unwrap_or(self.order.span());
        let lost = sent.saturating_sub(received);
        let share = |part: u64, of: u64| (of > 0).then(|| part as f64 / of as f64);
        let [delay, known_flows, new_flows] = [ALL, KNOWN, NEW].map(|at| self.delays[at].summary());
        ReceptionReport {
            sent,
            received,
            bytes: self.bytes,
            span_s,
            rate_pps: (span_s > 0.0).then(|| received.saturating_sub(1) as f64 / span_s),
            lost,
            loss: share(lost, sent),
            duplicates: self.order.duplicates,
            too_late: self.order.too_late,
            warm_up: self.warm_up,
            before_sent: self.before_sent,
            delay,
            known_flows: new_flows.and(known_flows),
            new_flows,
            threshold_us: threshold.map(|limit| limit.as_secs_f64() * 1e6),
            effective_new: threshold.and_then(|limit| self.delays[ALL].share_above(limit)),
            jitter: JitterStatistics {
                rfc3550_us: self.rfc3550_ns / 1e3,
                between_successors: self.variation.summary(),
                above_least_p99_us: delay.map(|delay| delay.p99_us - delay.min_us),
            },
            reordering: self.order.report(),
            gaps: self.gaps.quality(law),
            quantiles_us: self.delays[ALL].quantiles_us(),
        }
    }
}

#[cfg(test)]
mod tests;
