//! Shares the engine's time for packets among virtual switches by weight, when the packets need more than all of the
//! time.
//!
//! Rounds give each port a burst, which is fair while packets cost the same. A tenant with costly packets (a long
//! pipeline, or lookups made slow on purpose) would get nearly all of the time. Therefore:
//! 1. While no port fills a burst, the engine keeps up, and nothing is measured.
//! 2. Otherwise the time for each virtual switch's packets is added up ([`CpuShares::charge`]). Nothing else changes
//!    until, in a [`WINDOW`], a virtual switch that wants more has had less than its share while another has had
//!    more.
//! 3. Then packets wait in one queue per virtual switch (*taking turns*). The virtual switch with the least time by
//!    its weight is served next: start-time fair queuing (Goyal, Vin and Cheng, 1996) of time instead of bytes.
//!    Packets are sorted as they are received, and received first, as in lazy receiver processing (Druschel and
//!    Banga, 1996). Receiving is guaranteed a [`RECEIVING`]th of the time, so that packets of a switch that is served
//!    at once do not wait behind those of a switch that is not.
//! 4. Receiving is charged as well. Packets that find [`MOST`] waiting are dropped and counted. A port that only this
//!    virtual switch uses is not read meanwhile, so the excess stays with the device.
//! 5. After [`CALM`] windows in which no packet had to wait, rule 2 applies again.
//!
//! All time goes to virtual switches that have packets, so none is lost. This module has no clock: the caller reports
//! durations in counts, the unit of a time counter of its choice (the engine uses the processor's time stamp counter).
use std::collections::VecDeque;
use std::time::Duration;
use weir_units::Instant;

/// Maximum number of waiting packets of a virtual switch.
const MOST: usize = 256;
/// Length of a window, over which the virtual switches' used time is compared with their shares.
const WINDOW: Duration = Duration::from_micros(500);
/// Maximum tolerated difference of a virtual switch's fraction of the used time from its share.
const TOLERANCE: f64 = 0.03;
/// Number of windows without waiting packets after which taking turns ends.
const CALM: u32 = 20;
/// Divisor of the time guaranteed to receiving while ports have more frames: 1/5.
const RECEIVING: u64 = 5;
/// Maximum time for serving waiting packets between two reads of the ports, if no port filled its burst.
const LONGEST: Duration = Duration::from_micros(20);
/// Maximum number of packets served at once.
const CHUNK: usize = 32;

/// Accounts of the virtual switches' packet time, and queues of their waiting packets. `T` is a waiting packet.
#[derive(Debug)]
pub struct CpuShares<T> {
    /// Tenants by fabric index.
    tenants: Vec<Option<CpuShareAccount<T>>>,
    /// True if time is measured, because a port filled a burst lately.
    is_pressed: bool,
    takes_turns: bool,
    /// Virtual time (counts divided by weight) of the tenant served last, when its turn began.
    virtual_time: f64,
    /// Number of waiting packets of all tenants.
    waiting: usize,
    window: CpuShareWindow,
    round: CpuShareRound,
}

/// The current window.
#[derive(Debug, Default)]
struct CpuShareWindow {
    from: Instant,
    /// Value of the caller's time counter at the start of the window.
    count: u64,
    /// Number of counts in [`LONGEST`], estimated from the previous window; `None` until the first window has ended.
    longest: Option<u64>,
    is_full: bool,
    has_waited: bool,
    calm: u32,
}

/// State since the ports were last read.
#[derive(Debug, Default)]
struct CpuShareRound {
    /// Counts spent on receiving.
    received: u64,
    /// True if a port has more frames.
    is_full: bool,
    /// Counts by which previous rounds exceeded their budget.
    debt: u64,
}

/// Account of one virtual switch.
#[derive(Debug)]
struct CpuShareAccount<T> {
    weight: f64,
    virtual_time: f64,
    /// Waiting packets, each with the number of its input port.
    queue: VecDeque<(u32, T)>,
    /// Counts spent in this window.
    used: u64,
    /// True if a full burst in this window contained packets of this switch.
    wants_more: bool,
    /// Recent mean of counts per packet.
    each: u64,
    /// Counts spent since the switch was added.
    total: u64,
    dropped: u64,
}

/// Time and packets of a virtual switch, for reports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuShareUsage {
    /// Weight of the virtual switch when the time is divided.
    pub weight: f64,
    /// Share of the time measured for all present virtual switches, 0 to 1.
    pub part: f64,
    /// Counts spent since the switch was added.
    pub total: u64,
    /// Number of waiting packets.
    pub waiting: usize,
    /// Number of packets dropped: no room to wait, or their port was lost.
    pub dropped: u64,
}

impl<T> Default for CpuShares<T> {
    fn default() -> Self {
        CpuShares {
            tenants: Vec::new(),
            is_pressed: false,
            takes_turns: false,
            virtual_time: 0.0,
            waiting: 0,
            window: CpuShareWindow::default(),
            round: CpuShareRound::default(),
        }
    }
}

/// Adding, changing and removing virtual switches.
impl<T> CpuShares<T> {
    /// Adds a virtual switch with fabric index `place`.
    pub fn add(&mut self, place: u16, weight: u64) {
        let place = usize::from(place);
        if self.tenants.len() <= place {
            self.tenants.resize_with(place + 1, || None);
        }
        self.tenants[place] = Some(CpuShareAccount {
            weight: weight.max(1) as f64,
            virtual_time: self.virtual_time,
            queue: VecDeque::new(),
            used: 0,
            wants_more: false,
            each: 0,
            total: 0,
            dropped: 0,
        });
    }

    /// Changes the weight of a virtual switch from now on.
    pub fn reweigh(&mut self, place: u16, weight: u64) {
        if let Some(tenant) = self.tenant(place) {
            tenant.weight = weight.max(1) as f64;
        }
    }

    /// Removes a virtual switch and returns its waiting packets.
    pub fn remove(&mut self, place: u16) -> impl Iterator<Item = T> + use<T> {
        let gone = self.tenants.get_mut(usize::from(place)).and_then(Option::take);
        let queue = gone.map(|tenant| tenant.queue).unwrap_or_default();
        self.waiting -= queue.len();
        queue.into_iter().map(|(_, packet)| packet)
    }

    /// Returns the account of a virtual switch, if it exists.
    pub fn had(&self, place: u16) -> Option<CpuShareUsage> {
        let tenant = self.tenants.get(usize::from(place))?.as_ref()?;
        let all: u64 = self.tenants.iter().flatten().map(|tenant| tenant.total).sum();
        let part = tenant.total as f64 / all.max(1) as f64;
        let (total, waiting, dropped) = (tenant.total, tenant.queue.len(), tenant.dropped);
        Some(CpuShareUsage { weight: tenant.weight, part, total, waiting, dropped })
    }

    fn tenant(&mut self, place: u16) -> Option<&mut CpuShareAccount<T>> {
        self.tenants.get_mut(usize::from(place))?.as_mut()
    }
}

/// Receiving and charging packets.
impl<T> CpuShares<T> {
    /// Returns true if the caller must measure and report durations.
    #[inline]
    pub fn is_pressed(&self) -> bool {
        self.is_pressed
    }

    /// Returns true if packets must wait for their virtual switch's turn.
    #[inline]
    pub fn takes_turns(&self) -> bool {
        self.takes_turns
    }

    /// Returns true if packets wait.
    #[inline]
    pub fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Returns true if a port used by one virtual switch only must not be read, because a burst would not fit its
    /// queue.
    #[inline]
    pub fn is_full(&self, place: u16, burst: usize) -> bool {
        let tenant = self.tenants.get(usize::from(place)).and_then(Option::as_ref);
        tenant.is_some_and(|tenant| !tenant.queue.is_empty() && tenant.queue.len() + burst > MOST)
    }

    /// Records that a port filled its burst, so that it probably has more frames. Starts measuring if it was off.
    /// `count` is the current value of the caller's time counter.
    #[cold]
    pub fn gave_all(&mut self, now: Instant, count: u64) {
        if !self.is_pressed {
            self.is_pressed = true;
            self.begin_window(now, count);
        }
        (self.window.is_full, self.round.is_full) = (true, true);
    }

    /// Records that a full burst contained packets of a virtual switch, so that it probably has more packets.
    #[inline]
    pub fn wants_more(&mut self, place: u16) {
        if let Some(tenant) = self.tenant(place) {
            tenant.wants_more = true;
        }
    }

    /// Adds the counts that receiving a burst took.
    #[inline]
    pub fn received(&mut self, counts: u64) {
        self.round.received += counts;
    }

    /// Queues packets for the turn of their virtual switch. `refused` receives those that do not fit.
    pub fn put(&mut self, place: u16, port: u32, packets: &mut Vec<T>, refused: impl FnMut(T)) {
        let virtual_time = self.virtual_time;
        let Some(tenant) = self.tenant(place) else { return packets.drain(..).for_each(refused) };
        if tenant.queue.is_empty() {
            // A virtual switch does not save time that it did not want.
            tenant.virtual_time = tenant.virtual_time.max(virtual_time);
        }
        let fit = packets.len().min(MOST - tenant.queue.len());
        tenant.queue.extend(packets.drain(..fit).map(|packet| (port, packet)));
        tenant.dropped += packets.len() as u64;
        self.waiting += fit;
        packets.drain(..).for_each(refused);
    }

    /// Counts packets that waited but cannot be served any more as dropped.
    pub fn lost(&mut self, place: u16, packets: usize) {
        if let Some(tenant) = self.tenant(place) {
            tenant.dropped += packets as u64;
        }
    }

    /// Charges `counts` to a virtual switch. `packets` is the number of packets that this completed, or 0.
    #[inline]
    pub fn charge(&mut self, place: u16, counts: u64, packets: usize) {
        let takes_turns = self.takes_turns;
        let Some(tenant) = self.tenant(place) else { return };
        tenant.used += counts;
        tenant.total += counts;
        if takes_turns {
            tenant.virtual_time += counts as f64 / tenant.weight;
        }
        if let Some(each) = counts.checked_div(packets as u64) {
            tenant.each = (tenant.each * 3 + each) / 4;
        }
    }
}

/// Serving waiting packets in turns.
impl<T> CpuShares<T> {
    /// Returns the number of counts that may be spent on waiting packets before the ports are read again.
    pub fn budget(&self) -> u64 {
        match (self.round.is_full, self.window.longest) {
            (true, _) => (self.round.received * (RECEIVING - 1)).saturating_sub(self.round.debt),
            (false, Some(longest)) => longest,
            (false, None) => 0,
        }
    }

    /// Moves some packets of the virtual switch whose turn it is to `into`, all of one input port. Returns the
    /// switch's fabric index and the port's number.
    pub fn take(&mut self, into: &mut Vec<T>) -> Option<(u16, u32)> {
        let waits = |(place, tenant): (u16, &Option<CpuShareAccount<T>>)| {
            let tenant = tenant.as_ref().filter(|tenant| !tenant.queue.is_empty())?;
            Some((place, tenant.virtual_time))
        };
        let first = (0..).zip(&self.tenants).filter_map(waits).min_by(|one, other| one.1.total_cmp(&other.1));
        let (place, virtual_time) = first?;
        self.virtual_time = self.virtual_time.max(virtual_time);
        // A turn may delay the next read of the ports by half its interval at most.
        let counts = self.window.longest.unwrap_or(0) / 2;
        let tenant = self.tenant(place)?;
        let most = counts.checked_div(tenant.each).map_or(CHUNK, |most| usize::try_from(most).unwrap_or(CHUNK));
        let port = tenant.queue.front()?.0;
        let of_port = tenant.queue.iter().take(most.clamp(1, CHUNK)).take_while(|(from, _)| *from == port).count();
        into.extend(tenant.queue.drain(..of_port).map(|(_, packet)| packet));
        self.waiting -= of_port;
        Some((place, port))
    }

    /// Ends a round before the ports are read again. `spent` is the number of counts used for waiting packets, of the
    /// `budget` that [`CpuShares::budget`] returned. `count` is the current value of the caller's time counter.
    pub fn end_round(&mut self, now: Instant, count: u64, budget: u64, spent: u64) {
        self.window.has_waited |= self.waiting > 0;
        let is_full = std::mem::take(&mut self.round.is_full);
        let received = std::mem::take(&mut self.round.received);
        // Without more frames to receive, the debt to receiving is void.
        let owed = if is_full { self.round.debt.saturating_sub(received * (RECEIVING - 1)) } else { 0 };
        self.round.debt = if is_full { owed + spent.saturating_sub(budget) } else { 0 };
        if now.since(self.window.from) >= WINDOW {
            self.end_window(now, count);
        }
    }

    fn begin_window(&mut self, now: Instant, count: u64) {
        let CpuShareWindow { longest, calm, .. } = self.window;
        self.window = CpuShareWindow { from: now, count, longest, calm, is_full: false, has_waited: false };
        for tenant in self.tenants.iter_mut().flatten() {
            (tenant.used, tenant.wants_more) = (0, false);
        }
    }

    fn end_window(&mut self, now: Instant, count: u64) {
        let (passed, counts) = (now.since(self.window.from), count.saturating_sub(self.window.count));
        let longest = u128::from(counts) * LONGEST.as_nanos() / passed.as_nanos().max(1);
        self.window.longest = u64::try_from(longest).ok();
        if self.takes_turns {
            self.window.calm = if self.window.has_waited { 0 } else { self.window.calm + 1 };
            self.takes_turns = self.window.calm < CALM;
        } else if self.is_unfair() {
            (self.takes_turns, self.window.calm) = (true, 0);
            (self.virtual_time, self.round) = (0.0, CpuShareRound::default());
            self.tenants.iter_mut().flatten().for_each(|tenant| tenant.virtual_time = 0.0);
        }
        self.is_pressed = self.takes_turns || self.window.is_full;
        self.begin_window(now, count);
    }

    /// Returns true if, in this window, one virtual switch used more than its share of the time while another one used
    /// less and had more packets.
    fn is_unfair(&self) -> bool {
        let active = || self.tenants.iter().flatten().filter(|tenant| tenant.used > 0);
        let used: u64 = active().map(|tenant| tenant.used).sum();
        let weights: f64 = active().map(|tenant| tenant.weight).sum();
        let beyond = |tenant: &CpuShareAccount<T>| tenant.used as f64 / used.max(1) as f64 - tenant.weight / weights;
        let is_short = active().any(|tenant| tenant.wants_more && beyond(tenant) < -TOLERANCE);
        is_short && active().any(|tenant| beyond(tenant) > TOLERANCE)
    }
}

#[cfg(test)]
mod tests;
