//! Keeps the state of a server with its queue during a run.
use super::plan::{JobServiceTime, StationPlan, StationQueues, StationRole};
use super::tally::{CountingWindow, StationTally};
use std::collections::VecDeque;
use std::time::Duration;
use weir_model::switch::forward::PacketConditions;
use weir_scenario::MatchLayers;
use weir_traffic::RandomStream;
use weir_units::Instant;

/// Most packets that wait in one queue of a station, in addition to the scenario's limits. Further packets are lost
/// and counted.
pub const MAX_WAITING: usize = 1 << 20;

/// Packet on its way.
#[derive(Debug, Clone, Copy)]
pub(super) struct StationPacket {
    /// Time at which its host sent it.
    pub(super) sent: Instant,
    /// Arrival time at its current switch.
    pub(super) at_switch: Instant,
    /// Arrival time at its current station.
    pub(super) since: Instant,
    pub(super) flow: u32,
    pub(super) bytes: u32,
    /// Index of its current stage on the flow's path.
    pub(super) stage: u16,
    /// Addresses that its entries match at its current switch.
    pub(super) kind: MatchLayers,
    /// Time since the packet before at its current station, in seconds.
    pub(super) gap_s: f64,
    /// Time that it takes more than others at its current switch, in nanoseconds: its flow is not in the cache.
    pub(super) more_ns: f64,
    /// True if it had to wait at its current station.
    pub(super) waited: bool,
    /// Slot of its flow among the concurrent flows, and number of the flow in that slot, if the plan has flows.
    pub(super) place: u16,
    pub(super) number: u32,
    /// True if the packet begins a flow.
    pub(super) begins: bool,
    /// True if the packet asks the controller at its current switch.
    pub(super) asks: bool,
    /// True if the packet is back from the controller.
    pub(super) returned: bool,
    /// True if the packet asked at this switch or an earlier one.
    pub(super) asked: bool,
    /// True if the packet was sent in the counting window.
    pub(super) counts: bool,
}

impl JobServiceTime {
    /// Returns the service time of a packet, in nanoseconds.
    #[inline]
    fn draw_ns(&self, item: &StationPacket, random: &mut RandomStream) -> f64 {
        let Some(level) = &self.level else {
            return self.services.draw_ns(random) + self.per_byte_ns * f64::from(item.bytes);
        };
        if let Some(busy_ns) = level.busy_ns.filter(|_| item.waited) {
            return busy_ns + item.more_ns;
        }
        let at = PacketConditions { gap_s: item.gap_s, entries: level.entries, bytes: item.bytes.into() };
        // Laws of checked profiles have a value everywhere.
        level.laws[item.kind as usize].forward(at).map_or(0.0, |delay| delay.delay_s * 1e9) + item.more_ns
    }
}

/// Server with its queue. Its only event is the end of the current service.
pub(super) struct SimulatedStation {
    pub(super) role: StationRole,
    jobs: [JobServiceTime; 2],
    room: StationQueues,
    queues: [VecDeque<StationPacket>; 2],
    waiting_bytes: u64,
    current: Option<StationPacket>,
    /// End of the current service.
    ends: Instant,
    /// Time until which the server is seized.
    seized: Instant,
    /// Fraction of a nanosecond carried over to the next service, so that times are exact in the mean.
    rest_ns: f64,
    random: RandomStream,
    /// Arrival time of the previous packet.
    last: Option<Instant>,
    window: CountingWindow,
    /// Time up to which busy time and queue length are accounted for.
    accounted: Instant,
    pub(super) tally: StationTally,
}

/// Outcome of a packet's arrival at a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArrivalOutcome {
    /// Service has begun and ends at this time.
    Served(Instant),
    Waits,
    Lost,
}

impl SimulatedStation {
    pub(super) fn new(plan: &StationPlan, window: CountingWindow, random: RandomStream) -> SimulatedStation {
        SimulatedStation {
            role: plan.role,
            jobs: plan.jobs.clone(),
            room: plan.room,
            queues: Default::default(),
            waiting_bytes: 0,
            current: None,
            ends: Instant::FAR,
            seized: Instant::ZERO,
            rest_ns: 0.0,
            random,
            last: None,
            window,
            accounted: Instant::ZERO,
            tally: StationTally::default(),
        }
    }

    /// Handles the arrival of a packet: begins its service, queues it, or loses it.
    #[inline]
    pub(super) fn accept_packet(&mut self, mut item: StationPacket, now: Instant) -> ArrivalOutcome {
        self.tally.arrived_packets += u64::from(item.counts);
        item.since = now;
        item.waited = self.current.is_some();
        item.gap_s = self.last.replace(now).map_or(f64::MAX, |last| (now - last).as_secs_f64());
        self.account(now);
        if self.current.is_none() {
            return ArrivalOutcome::Served(self.begin(item, now));
        }
        let queue = usize::from(matches!(self.room, StationQueues::Priority(_)) && item.returned);
        if !self.has_room(queue, item.bytes) {
            self.tally.lost += u64::from(item.counts);
            return ArrivalOutcome::Lost;
        }
        self.waiting_bytes += u64::from(item.bytes);
        self.queues[queue].push_back(item);
        ArrivalOutcome::Waits
    }

    fn has_room(&self, queue: usize, bytes: u32) -> bool {
        let waiting = self.queues[queue].len();
        // The packet in service takes one place of the limit.
        let fits = |limit: Option<u32>| limit.is_none_or(|limit| waiting as u64 + 1 < u64::from(limit));
        waiting < MAX_WAITING
            && match self.room {
                StationQueues::Fifo(limit) => fits(limit),
                StationQueues::Priority(limits) => fits(limits[queue]),
                StationQueues::Bytes(limit) => self.waiting_bytes + u64::from(bytes) <= limit,
            }
    }

    /// Begins the service of a packet. Returns its end.
    #[inline]
    fn begin(&mut self, item: StationPacket, now: Instant) -> Instant {
        let exact = self.jobs[usize::from(item.returned)].draw_ns(&item, &mut self.random) + self.rest_ns;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
        let whole = exact as u64;
        self.rest_ns = exact - whole as f64;
        self.current = Some(item);
        self.ends = now.max(self.seized) + Duration::from_nanos(whole);
        self.ends
    }

    /// Ends the current service and begins the next. Returns the served packet and the end of the next service.
    #[inline]
    pub(super) fn finish(&mut self, now: Instant) -> (Option<StationPacket>, Instant) {
        self.account(now);
        let done = self.current.take();
        if let Some(item) = done.filter(|item| item.counts) {
            self.tally.served += 1;
            self.tally.stay_ns += (now - item.since).as_nanos();
        }
        // Packets that returned from the controller have priority if there are two queues.
        let next = self.queues[1].pop_front().or_else(|| self.queues[0].pop_front());
        let ends = next.map_or(Instant::FAR, |item| {
            self.waiting_bytes -= u64::from(item.bytes);
            self.begin(item, now)
        });
        (done, ends)
    }

    /// Seizes the server for `time`; the current service is interrupted and resumes afterwards. Returns the new end
    /// of the current service, [`Instant::FAR`] if there is none.
    pub(super) fn seize(&mut self, now: Instant, time: Duration) -> Instant {
        self.account(now);
        self.seized = self.seized.max(now) + time;
        if self.current.is_none() {
            return Instant::FAR;
        }
        self.ends += time;
        self.ends
    }

    /// Adds the busy time and the packets in the station up to `now`, within the window.
    #[inline]
    pub(super) fn account(&mut self, now: Instant) {
        let (from, to) = (self.accounted.max(self.window.begin), now.min(self.window.end));
        self.accounted = now;
        if to <= from {
            return;
        }
        let there = (to - from).as_nanos();
        let number = self.queues[0].len() + self.queues[1].len() + usize::from(self.current.is_some());
        self.tally.number_ns += there * number as u128;
        let busy = if self.current.is_some() { there } else { (self.seized.min(to) - from).as_nanos() };
        self.tally.busy_ns += busy;
    }
}
