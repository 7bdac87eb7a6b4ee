//! Describes links with queues and what is asked of them, and checks both.
use super::bound::Multiplexing;
use super::{MAX_DELAY, MAX_PACKET, PromiseError};
use crate::allocation::MAX_CAPACITY;
use std::time::Duration;
use weir_units::{Bps, ByteSize};

/// A link of the substrate, in one direction, with the switch and the queue before it.
///
/// A new one has no delays, a buffer without a limit, no other traffic, and serves first in, first out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueuedLink {
    /// Name of the link, unique among substrate links.
    pub name: String,
    /// Rate of the line, overhead of frames included, 1 bit/s to [`MAX_CAPACITY`].
    pub capacity: Bps,
    /// Constant time from the end of sending to the end of receiving, at most [`MAX_DELAY`].
    pub propagation: Duration,
    /// Longest time from the arrival of a packet until the queue has it, at most [`MAX_DELAY`].
    pub switch_latency: Duration,
    /// Bytes of frames that the switch can hold for the link, the one that is being sent included.
    pub buffer: ByteSize,
    /// Longest packet of traffic without a promise, which waits for all virtual links; 0 if there is no such traffic.
    /// A packet of it that is being sent is not interrupted.
    pub other_packet: ByteSize,
    /// Order in which packets of different virtual links are sent.
    pub multiplexing: Multiplexing,
}

impl QueuedLink {
    /// Returns a link with this capacity.
    pub fn new(name: impl Into<String>, capacity: Bps) -> QueuedLink {
        QueuedLink {
            name: name.into(),
            capacity,
            propagation: Duration::ZERO,
            switch_latency: Duration::ZERO,
            buffer: ByteSize(u64::MAX),
            other_packet: ByteSize(0),
            multiplexing: Multiplexing::Fifo,
        }
    }

    pub(super) fn check(&self) -> Result<(), PromiseError> {
        let malformed = |what| Err(PromiseError::MalformedLink { link: self.name.clone(), what });
        if !(1..=MAX_CAPACITY.0).contains(&self.capacity.0) {
            return malformed("a capacity outside 1bit/s to 100Tbit/s");
        }
        if self.propagation > MAX_DELAY || self.switch_latency > MAX_DELAY {
            return malformed("a delay above 1000s");
        }
        if self.other_packet > MAX_PACKET {
            return malformed("a packet above 16MB");
        }
        Ok(())
    }
}

/// A virtual link that is asked for, in one direction: a promise of rate, and of delay if it is given.
///
/// Promises hold for packets that keep to the rate and the burst: what enters must be limited to them by a meter or a
/// shaper. Bytes and rates are those of frames without overhead, as everywhere in weir.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkDemand {
    /// Name of the virtual link, unique among virtual links.
    pub name: String,
    /// Names of the substrate links that carry it, in their order, each once.
    pub path: Vec<String>,
    /// Guaranteed rate, above zero.
    pub rate: Bps,
    /// Bytes that may come at once, at least the longest packet and at most 1 TB.
    pub burst: ByteSize,
    /// Shortest packet. The overhead of frames is counted as if all packets had this length.
    pub shortest_packet: ByteSize,
    /// Longest packet.
    pub longest_packet: ByteSize,
    /// Longest delay that is promised, from the arrival of a packet's last bit at the first switch to the arrival of
    /// the last bit behind the last link. `None` for no promise.
    pub promised_delay: Option<Duration>,
}

impl LinkDemand {
    /// Returns a virtual link over these substrate links without a promise of delay. Packets have 60 to 1514 bytes, and
    /// one may come at once.
    pub fn new<L: Into<String>>(name: impl Into<String>, path: impl IntoIterator<Item = L>, rate: Bps) -> LinkDemand {
        LinkDemand {
            name: name.into(),
            path: path.into_iter().map(Into::into).collect(),
            rate,
            burst: ByteSize(1514),
            shortest_packet: ByteSize(60),
            longest_packet: ByteSize(1514),
            promised_delay: None,
        }
    }

    /// Sets the bytes that may come at once.
    #[must_use]
    pub fn with_burst(mut self, burst: ByteSize) -> LinkDemand {
        self.burst = burst;
        self
    }

    /// Sets the lengths of the shortest and the longest packet.
    #[must_use]
    pub fn with_packets(mut self, shortest: ByteSize, longest: ByteSize) -> LinkDemand {
        (self.shortest_packet, self.longest_packet) = (shortest, longest);
        self
    }

    /// Sets the longest delay that is promised.
    #[must_use]
    pub fn within(mut self, delay: Duration) -> LinkDemand {
        self.promised_delay = Some(delay);
        self
    }

    /// Checks all but the existence of the substrate links.
    pub(super) fn check(&self) -> Result<(), PromiseError> {
        let malformed = |what| Err(PromiseError::MalformedDemand { name: self.name.clone(), what });
        let repeats = |(place, link): (usize, &String)| self.path[..place].contains(link);
        if self.path.is_empty() {
            return malformed("an empty path");
        }
        if self.path.iter().enumerate().any(repeats) {
            return malformed("a link twice in its path");
        }
        self.check_terms()
    }

    /// Checks all but the path.
    pub(crate) fn check_terms(&self) -> Result<(), PromiseError> {
        let malformed = |what| Err(PromiseError::MalformedDemand { name: self.name.clone(), what });
        if !(1..=MAX_CAPACITY.0).contains(&self.rate.0) {
            return malformed("a rate outside 1bit/s to 100Tbit/s");
        }
        if self.shortest_packet == ByteSize(0) || self.shortest_packet > self.longest_packet {
            return malformed("a shortest packet of no byte, or longer than the longest");
        }
        if self.longest_packet > MAX_PACKET {
            return malformed("a packet above 16MB");
        }
        if self.burst < self.longest_packet || self.burst.0 > 1_000_000_000_000 {
            return malformed("a burst below the longest packet or above 1TB");
        }
        if self.promised_delay.is_some_and(|delay| delay == Duration::ZERO || delay > MAX_DELAY) {
            return malformed("a promised delay of zero or above 1000s");
        }
        Ok(())
    }
}
