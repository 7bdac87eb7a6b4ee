//! Bounds of delay, backlog and burstiness by deterministic network calculus, in whole numbers.
//!
//! An [`ArrivalCurve`] limits what arrives, a [`ServiceCurve`] is what a server sends at least. Amounts are bits, times
//! are picoseconds. Results that are no whole numbers are rounded up, so that bounds stay bounds, and that a larger
//! rate or burst never has a smaller bound. Times end at [`MAX_PS`], which stands for all longer ones.
//!
//! Sections of Le Boudec and Thiran ("Network Calculus", 2001) are named beside each result.

/// Picoseconds of a second.
pub const PS_PER_S: u128 = 1_000_000_000_000;
/// Longest time, in picoseconds: 10^6 s. A bound of this time is no bound.
pub const MAX_PS: u128 = 1_000_000 * PS_PER_S;

/// Order in which a link sends packets of different virtual links. Packets of one virtual link always keep their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Multiplexing {
    /// First in, first out over all virtual links.
    Fifo,
    /// Any order, also the worst one, as long as the link is never idle while packets wait. Bounds hold for priorities,
    /// round robin and all other disciplines.
    Arbitrary,
}

/// Token bucket: at most `burst` bits, and `rate` bits more with each second (section 1.2).
///
/// Packets arrive as a whole, with their last bit. A burst is thus at least the longest packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ArrivalCurve {
    /// Rate in bit/s.
    pub rate: u128,
    /// Burst in bits.
    pub burst: u128,
}

impl ArrivalCurve {
    /// Returns the curve of both arrivals together.
    #[must_use]
    pub fn plus(self, other: ArrivalCurve) -> ArrivalCurve {
        ArrivalCurve { rate: self.rate + other.rate, burst: self.burst.saturating_add(other.burst) }
    }

    /// Returns the curve without arrivals that are a part of it.
    pub(super) fn minus(self, part: ArrivalCurve) -> ArrivalCurve {
        ArrivalCurve { rate: self.rate - part.rate, burst: self.burst.saturating_sub(part.burst) }
    }

    /// Returns the curve of these arrivals behind a system in which delays differ by at most this time.
    ///
    /// Bits that leave in an interval have arrived in one that is longer by this time (Cruz, "A calculus for network
    /// delay", part I, 1991). The system may send packets as a whole: no packet is added.
    #[must_use]
    pub fn after_jitter(self, jitter_ps: u128) -> ArrivalCurve {
        let more = divided(self.rate.saturating_mul(jitter_ps), PS_PER_S);
        ArrivalCurve { rate: self.rate, burst: self.burst.saturating_add(more) }
    }
}

/// Rate-latency curve: nothing for the latency, then at least `rate` bits in each second (section 1.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ServiceCurve {
    /// Rate in bit/s, above zero.
    pub rate: u128,
    /// Latency in picoseconds.
    pub latency_ps: u128,
}

impl ServiceCurve {
    /// Returns the longest delay in picoseconds: the largest horizontal distance of the curves (theorem 1.4.2), `T +
    /// b/R`. `None` if more arrives than is served.
    ///
    /// Arrivals of a virtual link must be served in their order. For an aggregate this is the bound of FIFO
    /// multiplexing.
    pub fn delay_ps(self, arrivals: ArrivalCurve) -> Option<u128> {
        let is_served = arrivals.rate <= self.rate;
        is_served.then(|| self.latency_ps.saturating_add(self.time_of(arrivals.burst)).min(MAX_PS))
    }

    /// Returns the largest backlog in bits: the largest vertical distance (theorem 1.4.1), `b + r T`. `None` if more
    /// arrives than is served.
    pub fn backlog(self, arrivals: ArrivalCurve) -> Option<u128> {
        self.output(arrivals).map(|output| output.burst)
    }

    /// Returns the curve of what is sent (theorem 1.4.3): the burst is `b + r T`. `None` if more arrives than is
    /// served. Sent bits count here, and not packets.
    pub fn output(self, arrivals: ArrivalCurve) -> Option<ArrivalCurve> {
        (arrivals.rate <= self.rate).then(|| arrivals.after_jitter(self.latency_ps))
    }

    /// Returns the curve of this server and the next one (theorem 1.4.6): the smaller rate and both latencies. Bursts
    /// are paid once (section 1.4.3).
    #[must_use]
    pub fn then(self, next: ServiceCurve) -> ServiceCurve {
        let latency_ps = self.latency_ps.saturating_add(next.latency_ps).min(MAX_PS);
        ServiceCurve { rate: self.rate.min(next.rate), latency_ps }
    }

    /// Returns the curve of a server that hands on packets of at most this length as a whole: `l/R` is added to the
    /// latency (theorem 1.7.1). The last server of a path does not need it: the last bit of a packet is not late.
    #[must_use]
    pub fn packetised(self, longest: u128) -> ServiceCurve {
        let latency_ps = self.latency_ps.saturating_add(self.time_of(longest)).min(MAX_PS);
        ServiceCurve { latency_ps, ..self }
    }

    /// Returns what is left of the service when other arrivals are served too. `None` if nothing is left.
    ///
    /// - FIFO (section 6.2, FIFO minimum service curves, with the parameter `T + b/C`): rate `C - r`, latency
    ///   `T + b/C`.
    /// - Arbitrary, also called blind (section 6.2): rate `C - r`, latency `T + (b + r T) / (C - r)`. The curve must
    ///   then be strict, or a strict one behind a delay of at most `T`.
    pub fn left_over(self, others: ArrivalCurve, multiplexing: Multiplexing) -> Option<ServiceCurve> {
        let rate = self.rate.checked_sub(others.rate).filter(|rate| *rate > 0)?;
        let left = ServiceCurve { rate, ..self };
        let waiting = match multiplexing {
            Multiplexing::Fifo => self.time_of(others.burst),
            Multiplexing::Arbitrary => left.time_of(others.after_jitter(self.latency_ps).burst),
        };
        Some(ServiceCurve { rate, latency_ps: self.latency_ps.saturating_add(waiting).min(MAX_PS) })
    }

    /// Returns the longest delay of arrivals at one link that serves others too, in picoseconds: that of all together
    /// if it is FIFO, else that of what the others leave. `None` if more arrives than is served.
    pub fn shared_delay_ps(self, own: ArrivalCurve, others: ArrivalCurve, multiplexing: Multiplexing) -> Option<u128> {
        match multiplexing {
            Multiplexing::Fifo => self.delay_ps(own.plus(others)),
            Multiplexing::Arbitrary => self.left_over(others, multiplexing)?.delay_ps(own),
        }
    }

    /// Returns the time in which the rate sends this, in picoseconds, rounded up.
    fn time_of(self, bits: u128) -> u128 {
        // A product too large for the type is far above `MAX_PS`, whatever the rate.
        divided(bits.saturating_mul(PS_PER_S), self.rate).min(MAX_PS)
    }
}

/// Returns a quotient, rounded up. Most numbers are small, and then divided several times faster.
fn divided(number: u128, by: u128) -> u128 {
    match (u64::try_from(number), u64::try_from(by)) {
        (Ok(number), Ok(by)) => number.div_ceil(by).into(),
        _ => number.div_ceil(by),
    }
}
