//! Bounds the delay and the backlog of virtual links that a scheduler serves by guaranteed shares, whatever others
//! send.
//!
//! Each port serves its virtual links by deficit round robin (Shreedhar and Varghese, 1995). A *round* is the sum of
//! all quanta, in bytes. A virtual link with the quantum `Q` of a round `F` at a line of rate `C` gets at least the
//! rate
//! `Q / F C`, after a latency of
//!
//! `((N - 1) l + (F - Q) (1 + p / Q)) / C`
//!
//! where `N` is the most virtual links at the port, `l` the longest packet of others, and `p` its own longest packet
//! (Boyer, Stea and Sofack, "Deficit round robin with network calculus", 2012, theorem 2). The bound depends on limits
//! that are fixed, and not on the virtual links that are there: admitting one takes nothing from others.
//!
//! A limit of the rate (token bucket) that is at least the guaranteed rate, and as deep as the largest backlog, never
//! holds packets in profile back: what leaves the port has a burst of at most the backlog (Le Boudec and Thiran, 2001,
//! theorem 1.4.3).
//!
//! Rates round up to whole bytes of a round, so that no share is below what was asked for.
use crate::admission::bound::{ArrivalCurve, PS_PER_S, ServiceCurve};
use std::time::Duration;
use weir_units::{Bps, ByteSize};

/// Scheduler of ports: how they share their lines among virtual links.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShareSettings {
    /// Bytes of a round, which all quanta of a port share.
    pub round: ByteSize,
    /// Smallest quantum.
    pub least_quantum: ByteSize,
    /// Most virtual links at a port.
    pub most_shares: u32,
    /// Longest packet without the tag between switches.
    pub longest_packet: ByteSize,
    /// Shortest packet without the tag between switches, of which the overhead is counted.
    pub shortest_packet: ByteSize,
    /// Bytes that a frame takes on a line in addition to those that are counted: 24 on Ethernet
    /// ([`ETHERNET_OVERHEAD`](crate::admission::ETHERNET_OVERHEAD)), 0 on lines that count frames only.
    pub overhead: ByteSize,
    /// Longest time from the arrival of a packet at a switch until it waits at its port.
    pub switch_latency: Duration,
    /// Time for which a switch may stop without losing packets in profile: buffers hold what comes meanwhile. Delays
    /// are promised without such stops.
    pub longest_stop: Duration,
}

impl Default for ShareSettings {
    /// Returns the settings of weir's virtual switches on lines without overhead: rounds of 16 packets, at most 32
    /// virtual links at a port, buffers for stops of 10 ms. Longer rounds would have longer bounds, shorter ones
    /// coarser shares.
    fn default() -> ShareSettings {
        ShareSettings {
            round: ByteSize(16 * 1518),
            least_quantum: ByteSize(60),
            most_shares: 32,
            longest_packet: ByteSize(1514),
            shortest_packet: ByteSize(60),
            overhead: ByteSize(0),
            switch_latency: Duration::ZERO,
            longest_stop: Duration::from_millis(10),
        }
    }
}

/// Bytes of the tag that tells virtual links apart between switches (IEEE 802.1Q).
pub const TAG: ByteSize = ByteSize(4);

/// Port on the way of a virtual link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SchedulerPort {
    pub(super) capacity: Bps,
    pub(super) propagation: Duration,
    /// True if packets carry the tag of the virtual link on this line.
    pub(super) is_tagged: bool,
}

/// Bounds of a virtual link in one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuaranteedBound {
    /// Longest delay of a packet in profile, propagation included, rounded up to a nanosecond.
    pub delay: Duration,
    /// Largest backlog at each port on the way, in bytes of frames as they are there, the packet that is sent included,
    /// and what comes in [`ShareSettings::longest_stop`].
    pub backlogs: Vec<ByteSize>,
}

impl ShareSettings {
    /// Returns the quantum of a rate of frames at a port: its share of the round, rounded up. Rates above that of the
    /// line have a quantum above the round.
    pub(super) fn quantum(&self, rate: Bps, port: SchedulerPort) -> u64 {
        let bits = u128::from(self.round.0) * self.on_line(rate.0.into(), port);
        let quantum = u64::try_from(bits.div_ceil(port.capacity.0.into())).unwrap_or(u64::MAX);
        quantum.max(self.least_quantum.0)
    }

    /// Returns the largest rate of frames whose quantum at a port is at most this.
    pub(super) fn rate_of(&self, quantum: u64, port: SchedulerPort) -> Bps {
        if quantum < self.least_quantum.0 {
            return Bps(0);
        }
        let line = u128::from(quantum) * u128::from(port.capacity.0) / u128::from(self.round.0);
        let shortest = u128::from(self.shortest_packet.0);
        let frames = line * shortest / (shortest + u128::from(self.added(port)));
        Bps(u64::try_from(frames).unwrap_or(u64::MAX))
    }

    /// Returns the bounds of a virtual link with this rate and burst over these ports, and no more than `most` bytes of
    /// a round at any of them. A port that serves nothing else limits a link to its line.
    pub(super) fn bound(&self, rate: Bps, burst: ByteSize, way: &[SchedulerPort]) -> GuaranteedBound {
        let mut backlogs = Vec::with_capacity(way.len());
        let mut whole: Option<ServiceCurve> = None;
        // Bits of frames without tag and overhead; servers are slower by the largest share of these.
        let packet = 8 * u128::from(self.longest_packet.0);
        let mut arrivals = ArrivalCurve { rate: rate.0.into(), burst: 8 * u128::from(burst.0) };
        let asked = arrivals;
        let mut propagation = Duration::ZERO;
        for (place, port) in way.iter().enumerate() {
            let server = self.server(rate, *port);
            let in_stop = arrivals.rate * self.longest_stop.as_nanos() / 1_000_000_000;
            let backlog = server.backlog(arrivals).unwrap_or(u128::MAX).saturating_add(packet + in_stop);
            let tagged = backlog.div_ceil(8).saturating_mul(u128::from(self.shortest_packet.0 + tag(*port)))
                / u128::from(self.shortest_packet.0);
            backlogs.push(ByteSize(u64::try_from(tagged).unwrap_or(u64::MAX)));
            let hop = server.delay_ps(arrivals).unwrap_or(u128::MAX);
            let least = packet_time(self.shortest_packet.0 + self.added(*port), port.capacity);
            // Theorem 1.4.3 with a packetiser (1.7.1), or the longest less the shortest delay (Cruz): both hold.
            let sent = arrivals.after_jitter(server.latency_ps).burst.saturating_add(packet);
            arrivals = arrivals.after_jitter(hop.saturating_sub(least));
            arrivals.burst = arrivals.burst.min(sent);
            let server = if place + 1 < way.len() { server.packetised(packet) } else { server };
            whole = Some(whole.map_or(server, |before| before.then(server)));
            propagation += port.propagation;
        }
        let queued = whole.map_or(0, |server| server.delay_ps(asked).unwrap_or(u128::MAX));
        let queued = Duration::from_nanos(u64::try_from(queued.div_ceil(1000)).unwrap_or(u64::MAX / 4));
        GuaranteedBound { delay: queued + propagation, backlogs }
    }

    /// Returns the server of a virtual link with this rate at a port, for bits of frames without tag and overhead.
    fn server(&self, rate: Bps, port: SchedulerPort) -> ServiceCurve {
        let quantum = u128::from(self.quantum(rate, port));
        let (round, packet) = (u128::from(self.round.0), u128::from(self.longest_packet.0 + self.added(port)));
        let others = u128::from(self.most_shares.saturating_sub(1)) * packet;
        let behind = (round.saturating_sub(quantum) * (quantum + packet)).div_ceil(quantum);
        let bits = 8 * (others + behind);
        let latency_ps = (bits * PS_PER_S).div_ceil(port.capacity.0.into());
        // What the quantum guarantees is at least the rate on the line, of which frames have this share.
        let line = quantum * u128::from(port.capacity.0) / round;
        let shortest = u128::from(self.shortest_packet.0);
        let frames = line * shortest / (shortest + u128::from(self.added(port)));
        ServiceCurve {
            rate: frames.max(rate.0.into()).max(1),
            latency_ps: latency_ps + self.switch_latency.as_nanos() * (PS_PER_S / 1_000_000_000),
        }
    }

    /// Returns the bits on the line of bits of frames, if all frames are as short as possible.
    fn on_line(&self, bits: u128, port: SchedulerPort) -> u128 {
        let shortest = u128::from(self.shortest_packet.0);
        (bits * (shortest + u128::from(self.added(port)))).div_ceil(shortest)
    }

    /// Returns the bytes that are added to each frame on a line.
    fn added(&self, port: SchedulerPort) -> u64 {
        self.overhead.0 + tag(port)
    }
}

fn tag(port: SchedulerPort) -> u64 {
    if port.is_tagged { TAG.0 } else { 0 }
}

fn packet_time(bytes: u64, rate: Bps) -> u128 {
    8 * u128::from(bytes) * PS_PER_S / u128::from(rate.0)
}
