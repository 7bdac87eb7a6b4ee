//! A server with its queue, in the middle of a run.
use super::plan::{Job, Role, Room, StationPlan};
use super::tally::{StationTally, Window};
use std::collections::VecDeque;
use std::time::Duration;
use weir_traffic::Stream;
use weir_units::Instant;

/// Most packets that wait where the scenario has no limit; more are lost, and counted.
pub const MAX_WAITING: usize = 1 << 20;

/// A packet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    /// When its host sent it.
    pub(super) sent: Instant,
    /// When it came to the switch that it is at.
    pub(super) at_switch: Instant,
    /// When it came to the station that it is at.
    pub(super) since: Instant,
    pub(super) flow: u32,
    pub(super) bytes: u32,
    /// Its place on the flow's way.
    pub(super) stage: u16,
    /// Its flow's place among those of its time, and number in that place, where the plan has flows.
    pub(super) place: u16,
    pub(super) number: u32,
    /// It begins a flow.
    pub(super) begins: bool,
    /// It asks the controller at this switch.
    pub(super) asks: bool,
    /// It is back from there.
    pub(super) returned: bool,
    /// It asked at this switch or one before.
    pub(super) asked: bool,
    /// It was sent while packets count.
    pub(super) counts: bool,
}

/// A server with its queue. It has one event: the end of the service under way.
pub(super) struct Station {
    pub(super) role: Role,
    jobs: [Job; 2],
    room: Room,
    queues: [VecDeque<Item>; 2],
    waiting_bytes: u64,
    current: Option<Item>,
    /// When the service under way ends.
    ends: Instant,
    /// Until when it is seized.
    seized: Instant,
    /// What is left over of a nanosecond: times are exact in the mean.
    rest_ns: f64,
    random: Stream,
    window: Window,
    /// Until when its state is accounted for.
    accounted: Instant,
    pub(super) tally: StationTally,
}

/// What became of a packet that came to a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Came {
    /// Its service ends then.
    Served(Instant),
    Waits,
    Lost,
}

impl Station {
    pub(super) fn new(plan: &StationPlan, window: Window, random: Stream) -> Station {
        Station {
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
            window,
            accounted: Instant::ZERO,
            tally: StationTally::default(),
        }
    }

    /// A packet comes.
    #[inline]
    pub(super) fn come(&mut self, mut item: Item, now: Instant) -> Came {
        self.tally.came += u64::from(item.counts);
        item.since = now;
        self.account(now);
        if self.current.is_none() {
            return Came::Served(self.begin(item, now));
        }
        let queue = usize::from(matches!(self.room, Room::Priority(_)) && item.returned);
        if !self.has_room(queue, item.bytes) {
            self.tally.lost += u64::from(item.counts);
            return Came::Lost;
        }
        self.waiting_bytes += u64::from(item.bytes);
        self.queues[queue].push_back(item);
        Came::Waits
    }

    fn has_room(&self, queue: usize, bytes: u32) -> bool {
        let waiting = self.queues[queue].len();
        // The one in service has a place of the limit.
        let fits = |limit: Option<u32>| limit.is_none_or(|limit| waiting as u64 + 1 < u64::from(limit));
        waiting < MAX_WAITING
            && match self.room {
                Room::Fifo(limit) => fits(limit),
                Room::Priority(limits) => fits(limits[queue]),
                Room::Bytes(limit) => self.waiting_bytes + u64::from(bytes) <= limit,
            }
    }

    /// Begins a packet's service; when it ends.
    #[inline]
    fn begin(&mut self, item: Item, now: Instant) -> Instant {
        let Job { services, per_byte_ns } = &self.jobs[usize::from(item.returned)];
        let exact = services.draw_ns(&mut self.random) + per_byte_ns * f64::from(item.bytes) + self.rest_ns;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
        let whole = exact as u64;
        self.rest_ns = exact - whole as f64;
        self.current = Some(item);
        self.ends = now.max(self.seized) + Duration::from_nanos(whole);
        self.ends
    }

    /// The service under way ends: whose it was, and when the next one's does.
    #[inline]
    pub(super) fn finish(&mut self, now: Instant) -> (Option<Item>, Instant) {
        self.account(now);
        let done = self.current.take();
        if let Some(item) = done.filter(|item| item.counts) {
            self.tally.served += 1;
            self.tally.stay_ns += (now - item.since).as_nanos();
        }
        // Those that came back are first where there are two queues.
        let next = self.queues[1].pop_front().or_else(|| self.queues[0].pop_front());
        let ends = next.map_or(Instant::FAR, |item| {
            self.waiting_bytes -= u64::from(item.bytes);
            self.begin(item, now)
        });
        (done, ends)
    }

    /// Something else has the server for a while; who is served goes on afterwards. When the service under way ends then.
    pub(super) fn seize(&mut self, now: Instant, time: Duration) -> Instant {
        self.account(now);
        self.seized = self.seized.max(now) + time;
        if self.current.is_none() {
            return Instant::FAR;
        }
        self.ends += time;
        self.ends
    }

    /// Adds up how long it was busy and how many were there, up to now.
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
