//! Says when datagrams are due, how long they are and which flow each belongs to, and stamps them. For hosts in this
//! process and for hosts in namespaces.
use std::time::Duration;
use weir_scenario::{Scenario, TrafficItem, TrafficKind, udp_headers};
use weir_traffic::{ArrivalProcess, ConcurrentFlows, OfferedPackets, PacketSampler, PacketSizeLaw, RandomStream};
use weir_units::Instant;

/// Maximum payload in bytes, equal to the limit that scenarios have.
pub const MAX_PAYLOAD: usize = 1472;
/// Time after the end of an item during which a sender that is late may still send the item's datagrams.
pub const CATCH_UP: Duration = Duration::from_millis(100);
/// Tolerances for rounding errors when datagrams are counted (as a share of the count) and when due times are computed
/// (in ns): without them, a result just above an integer would be rounded up to the next one.
const ROUNDING: f64 = 1e-12;
const ROUNDING_NS: f64 = 1e-3;

/// Source ports for flows that begin during an item, used in turn. They are above the ports assigned to items.
const FLOW_PORTS: std::ops::RangeInclusive<u16> = 42_000..=u16::MAX;

/// Plan of a sender of datagrams: when they are due, how long they are, and their source ports.
pub struct DatagramPlan {
    /// Due times and lengths.
    pub schedule: DatagramSchedule,
    /// Source ports.
    pub ports: FlowPorts,
    /// End of the item.
    pub end: Instant,
}

impl DatagramPlan {
    /// Returns the plan of item number `item` of a scenario's traffic, which begins at `begin`; `None` if it is not
    /// about datagrams. Datagrams of the item's own flow have the source port `own`. The random numbers depend on the
    /// scenario's seed and the item's number, so that all hosts send alike.
    pub fn of(scenario: &Scenario, item: usize, begin: Instant, own: u16) -> Option<DatagramPlan> {
        let TrafficItem { kind: TrafficKind::Udp { duration, offered, new_flows, flows }, address, .. } =
            scenario.traffic.get(item)?
        else {
            return None;
        };
        let [packets, of_flows] = [0, 1].map(|part| RandomStream::new(scenario.seed, item as u64, part));
        Some(DatagramPlan {
            schedule: DatagramSchedule::new(offered, begin, *duration, udp_headers(address.is_ipv6()), packets),
            ports: FlowPorts::new(ConcurrentFlows::new(*new_flows, *flows), of_flows, own),
            end: begin + *duration,
        })
    }
}

/// Assignment of source ports to datagrams, by flow.
pub struct FlowPorts {
    flows: ConcurrentFlows,
    random: RandomStream,
    /// Port by slot among the concurrent flows; the item's own port until a flow begins in the slot.
    of_place: Vec<u16>,
    /// Port of the flow that begins next.
    unused: u16,
    /// Port of the next datagram.
    pub next: u16,
    /// Port to which the sender is bound.
    pub bound: u16,
}

impl FlowPorts {
    fn new(flows: ConcurrentFlows, random: RandomStream, own: u16) -> FlowPorts {
        let of_place = vec![own; flows.places()];
        let mut ports = FlowPorts { flows, random, of_place, unused: *FLOW_PORTS.start(), next: own, bound: own };
        ports.draw();
        ports
    }

    /// Draws the flow of the next datagram, and sets `next` to its port.
    pub fn draw(&mut self) {
        let drawn = self.flows.draw(&mut self.random);
        if drawn.begins {
            self.of_place[drawn.place] = self.unused;
            self.unused = self.unused.checked_add(1).unwrap_or(*FLOW_PORTS.start());
        }
        self.next = self.of_place[drawn.place];
    }
}

/// Schedule of datagrams: due times and lengths. Due times do not depend on how late earlier datagrams were sent.
pub struct DatagramSchedule {
    law: DatagramPattern,
    begin: Instant,
    end: Instant,
    /// Length of the headers in front of the payload, in bytes.
    headers: u32,
    /// Due time and payload bytes of the next datagram; `None` after the last.
    pub next: Option<(Instant, usize)>,
    /// Number of datagrams drawn so far, including the next one.
    drawn: u64,
}

/// Rule for the due times and lengths of datagrams.
enum DatagramPattern {
    /// Frames of `bytes` bytes each, the first at the start, then one every 1 / `per_second` seconds.
    Paced { per_second: f64, bytes: u32 },
    /// Times and lengths drawn at random or read from a trace.
    Drawn(Box<PacketSampler>),
    /// No datagrams.
    Nothing,
}

impl DatagramSchedule {
    fn new(
        offered: &OfferedPackets,
        begin: Instant,
        duration: Duration,
        headers: u32,
        random: RandomStream,
    ) -> DatagramSchedule {
        let law = match offered {
            OfferedPackets::Rule {
                arrival: ArrivalProcess::Constant,
                per_second,
                size: PacketSizeLaw::Fixed(bytes),
            } => DatagramPattern::Paced { per_second: *per_second, bytes: *bytes },
            // Cannot fail: laws were checked when the scenario was parsed.
            other => PacketSampler::new(other, begin, random)
                .map_or(DatagramPattern::Nothing, |made| DatagramPattern::Drawn(Box::new(made))),
        };
        let mut schedule = DatagramSchedule { law, begin, end: begin + duration, headers, next: None, drawn: 0 };
        schedule.advance();
        schedule
    }

    /// Moves on to the following datagram.
    pub fn advance(&mut self) {
        let last = self.next.map_or(self.begin, |(due, _)| due);
        let (due, bytes) = match &mut self.law {
            DatagramPattern::Paced { per_second, bytes } => (self.begin + nth(self.drawn, *per_second), *bytes),
            DatagramPattern::Drawn(generator) => {
                let due = generator.next_after(last);
                (due, if due < self.end { generator.bytes() } else { 0 })
            }
            DatagramPattern::Nothing => (Instant::FAR, 0),
        };
        self.next = (due < self.end).then(|| (due, usize::try_from(bytes.saturating_sub(self.headers)).unwrap_or(0)));
        self.drawn += u64::from(self.next.is_some());
    }

    /// Returns the number of datagrams due until the end; for random times, the number drawn so far.
    pub fn asked(&self) -> u64 {
        match self.law {
            DatagramPattern::Paced { per_second, .. } => count_by(self.end - self.begin, per_second),
            _ => self.drawn,
        }
    }
}

/// Returns the time from the start until datagram `number` (from 0) is due. It is rounded up, so that the rate is not
/// exceeded.
fn nth(number: u64, per_second: f64) -> Duration {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
    let ns = (number as f64 * 1e9 / per_second - ROUNDING_NS).ceil() as u64;
    Duration::from_nanos(ns)
}

/// Returns the number of datagrams due in `duration`; the first is due at its start.
fn count_by(duration: Duration, per_second: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
    let count = (duration.as_secs_f64() * per_second * (1.0 - ROUNDING)).ceil() as u64;
    count
}

/// Writes send time (8 bytes) and number (8 bytes) at the start of a payload of `bytes` bytes, at least 16, and returns
/// it.
pub fn stamped(payload: &mut [u8], bytes: usize, sent: Instant, number: u64) -> &[u8] {
    let payload = &mut payload[..bytes.clamp(16, MAX_PAYLOAD)];
    payload[..8].copy_from_slice(&sent.as_nanos().to_be_bytes());
    payload[8..16].copy_from_slice(&number.to_be_bytes());
    payload
}

/// Reads send time and number from the start of a payload; `None` if it is too short.
pub fn stamp(payload: &[u8]) -> Option<(Instant, u64)> {
    let (time, rest) = payload.split_first_chunk::<8>()?;
    let number = rest.first_chunk::<8>()?;
    Some((Instant::from_nanos(u64::from_be_bytes(*time)), u64::from_be_bytes(*number)))
}
