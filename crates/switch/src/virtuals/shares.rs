//! The engine's time, shared among virtual switches by weight where packets want more than all of it.
//!
//! Rounds give each port a burst, which is fair while packets cost the same. A tenant whose packets are dear (a long pipeline, lookups made
//! to be slow) would have nearly all of the time, though. So:
//! 1. As long as no port gives a full burst, the engine keeps up, and nothing is measured.
//! 2. Otherwise what each virtual switch's lists of packets took is added up ([`Shares::charge`]). Nothing else changes as long as nobody who wants
//!    more has had less than its part in a [`WINDOW`], and somebody else more.
//! 3. Then packets wait in a queue for each virtual switch (*taking turns*), and the one that has had least by its weight is served next:
//!    start-time fair queuing (Goyal, Vin and Cheng, 1996) of time instead of bytes. Packets are sorted as they are received, and received first, as in
//!    lazy receiver processing (Druschel and Banga, 1996): for a [`RECEIVING`]th of the time for certain, so that those of one who is served at once
//!    need not wait behind those of one who is not.
//! 4. Receiving is charged as well. What finds [`MOST`] waiting is dropped and counted; a port that only this virtual switch has is not
//!    asked meanwhile, so what is too much stays with the device.
//! 5. Once nobody has had to wait for [`CALM`] windows, 2 applies again.
//!
//! Time goes to whoever has packets, so none is lost. Here is no clock: the caller says what things took, in counts of its choice.
use std::collections::VecDeque;
use std::time::Duration;
use weir_units::Instant;

/// Packets of a virtual switch that wait at most.
pub(crate) const MOST: usize = 256;
/// Time over which parts are compared.
const WINDOW: Duration = Duration::from_micros(500);
/// By how much of the time parts may differ from what they should be.
const TOLERANCE: f64 = 0.03;
/// Windows without anybody waiting, until turns are given up.
const CALM: u32 = 20;
/// One part in so many of the time is for receiving while ports have more.
const RECEIVING: u64 = 5;
/// Time between two looks at the ports while these have no more than they gave.
const LONGEST: Duration = Duration::from_micros(20);
/// Packets served at once at most.
const CHUNK: usize = 32;

/// See the module's page. `T`: a packet that waits.
#[derive(Debug)]
pub(crate) struct Shares<T> {
    /// By place.
    tenants: Vec<Option<Tenant<T>>>,
    /// Whether somebody wants more time than there is: it is measured who has how much.
    is_pressed: bool,
    takes_turns: bool,
    /// What the one served last had had when its turn came, by its weight.
    virtual_time: f64,
    /// Packets that wait.
    waiting: usize,
    window: Window,
    round: Round,
}

/// Since when parts are compared.
#[derive(Debug, Default)]
struct Window {
    from: Instant,
    /// The counter then.
    count: u64,
    /// Counts in [`LONGEST`]; none as long as that is not known.
    longest: Option<u64>,
    is_full: bool,
    has_waited: bool,
    calm: u32,
}

/// What happened since the ports were last asked.
#[derive(Debug, Default)]
struct Round {
    /// Counts that receiving took.
    received: u64,
    /// Whether a port has more.
    is_full: bool,
    /// Counts that the rounds before took too many.
    debt: u64,
}

/// What one virtual switch has.
#[derive(Debug)]
struct Tenant<T> {
    weight: f64,
    virtual_time: f64,
    /// With the number of the port that they came in by.
    queue: VecDeque<(u32, T)>,
    /// Counts in this window.
    used: u64,
    /// Whether packets of it were in a full burst in this window.
    wants_more: bool,
    /// Counts for a packet, lately.
    each: u64,
    /// Counts since it came.
    total: u64,
    dropped: u64,
}

/// What a virtual switch has had.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Had {
    pub(crate) weight: f64,
    /// Its part of what was measured for all that are there, 0 to 1.
    pub(crate) part: f64,
    /// Counts.
    pub(crate) total: u64,
    /// Packets that wait.
    pub(crate) waiting: usize,
    /// Packets that found no room to wait.
    pub(crate) dropped: u64,
}

impl<T> Default for Shares<T> {
    fn default() -> Self {
        Shares {
            tenants: Vec::new(),
            is_pressed: false,
            takes_turns: false,
            virtual_time: 0.0,
            waiting: 0,
            window: Window::default(),
            round: Round::default(),
        }
    }
}

/// Who shares.
impl<T> Shares<T> {
    /// A virtual switch came.
    pub(crate) fn add(&mut self, place: u16, weight: u64) {
        let place = usize::from(place);
        if self.tenants.len() <= place {
            self.tenants.resize_with(place + 1, || None);
        }
        self.tenants[place] = Some(Tenant {
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

    /// One has another weight from now on.
    pub(crate) fn reweigh(&mut self, place: u16, weight: u64) {
        if let Some(tenant) = self.tenant(place) {
            tenant.weight = weight.max(1) as f64;
        }
    }

    /// One goes; the packets of it that waited.
    pub(crate) fn remove(&mut self, place: u16) -> impl Iterator<Item = T> + use<T> {
        let gone = self.tenants.get_mut(usize::from(place)).and_then(Option::take);
        let queue = gone.map(|tenant| tenant.queue).unwrap_or_default();
        self.waiting -= queue.len();
        queue.into_iter().map(|(_, packet)| packet)
    }

    /// What one has had, if it is there.
    pub(crate) fn had(&self, place: u16) -> Option<Had> {
        let tenant = self.tenants.get(usize::from(place))?.as_ref()?;
        let all: u64 = self.tenants.iter().flatten().map(|tenant| tenant.total).sum();
        let part = tenant.total as f64 / all.max(1) as f64;
        let (total, waiting, dropped) = (tenant.total, tenant.queue.len(), tenant.dropped);
        Some(Had { weight: tenant.weight, part, total, waiting, dropped })
    }

    fn tenant(&mut self, place: u16) -> Option<&mut Tenant<T>> {
        self.tenants.get_mut(usize::from(place))?.as_mut()
    }
}

/// As packets come.
impl<T> Shares<T> {
    /// Whether it is to be said what things take.
    #[inline]
    pub(crate) fn is_pressed(&self) -> bool {
        self.is_pressed
    }

    /// Whether packets are to wait for their turns.
    #[inline]
    pub(crate) fn takes_turns(&self) -> bool {
        self.takes_turns
    }

    /// Whether packets wait.
    #[inline]
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting > 0
    }

    /// Whether a port that only one has is to be left alone: a burst of so many would not find room.
    #[inline]
    pub(crate) fn is_full(&self, place: u16, burst: usize) -> bool {
        let tenant = self.tenants.get(usize::from(place)).and_then(Option::as_ref);
        tenant.is_some_and(|tenant| !tenant.queue.is_empty() && tenant.queue.len() + burst > MOST)
    }

    /// A port gave as many packets as were asked for: it has more. `count`: the caller's counter.
    #[cold]
    pub(crate) fn gave_all(&mut self, now: Instant, count: u64) {
        if !self.is_pressed {
            self.is_pressed = true;
            self.begin_window(now, count);
        }
        (self.window.is_full, self.round.is_full) = (true, true);
    }

    /// Packets of one were among those of a port that has more.
    #[inline]
    pub(crate) fn wants_more(&mut self, place: u16) {
        if let Some(tenant) = self.tenant(place) {
            tenant.wants_more = true;
        }
    }

    /// Receiving a burst took so long.
    #[inline]
    pub(crate) fn received(&mut self, counts: u64) {
        self.round.received += counts;
    }

    /// Packets wait for the turn of their virtual switch; `refused` gets those that find no room.
    pub(crate) fn put(&mut self, place: u16, port: u32, packets: &mut Vec<T>, refused: impl FnMut(T)) {
        let virtual_time = self.virtual_time;
        let Some(tenant) = self.tenant(place) else { return packets.drain(..).for_each(refused) };
        if tenant.queue.is_empty() {
            // Who did not want its time has not saved it.
            tenant.virtual_time = tenant.virtual_time.max(virtual_time);
        }
        let fit = packets.len().min(MOST - tenant.queue.len());
        tenant.queue.extend(packets.drain(..fit).map(|packet| (port, packet)));
        tenant.dropped += packets.len() as u64;
        self.waiting += fit;
        packets.drain(..).for_each(refused);
    }

    /// Packets of one that waited are of no use any more.
    pub(crate) fn lost(&mut self, place: u16, packets: usize) {
        if let Some(tenant) = self.tenant(place) {
            tenant.dropped += packets as u64;
        }
    }

    /// What was done for packets of one, whose number is `packets` if it was all that is to be done for them, took so long.
    #[inline]
    pub(crate) fn charge(&mut self, place: u16, counts: u64, packets: usize) {
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

/// Turns.
impl<T> Shares<T> {
    /// Counts that may be spent on waiting packets until ports are asked again.
    pub(crate) fn budget(&self) -> u64 {
        match (self.round.is_full, self.window.longest) {
            (true, _) => (self.round.received * (RECEIVING - 1)).saturating_sub(self.round.debt),
            (false, Some(longest)) => longest,
            (false, None) => 0,
        }
    }

    /// Takes some packets of the one whose turn it is, all of one port; its place, and the port's number.
    pub(crate) fn take(&mut self, into: &mut Vec<T>) -> Option<(u16, u32)> {
        let waits = |(place, tenant): (u16, &Option<Tenant<T>>)| {
            let tenant = tenant.as_ref().filter(|tenant| !tenant.queue.is_empty())?;
            Some((place, tenant.virtual_time))
        };
        let first = (0..).zip(&self.tenants).filter_map(waits).min_by(|one, other| one.1.total_cmp(&other.1));
        let (place, virtual_time) = first?;
        self.virtual_time = self.virtual_time.max(virtual_time);
        // No more than a look at the ports may be late.
        let counts = self.window.longest.unwrap_or(0) / 2;
        let tenant = self.tenant(place)?;
        let most = counts.checked_div(tenant.each).map_or(CHUNK, |most| usize::try_from(most).unwrap_or(CHUNK));
        let port = tenant.queue.front()?.0;
        let of_port = tenant.queue.iter().take(most.clamp(1, CHUNK)).take_while(|(from, _)| *from == port).count();
        into.extend(tenant.queue.drain(..of_port).map(|(_, packet)| packet));
        self.waiting -= of_port;
        Some((place, port))
    }

    /// Ports are going to be asked again: so much was spent of a budget. `count`: the caller's counter.
    pub(crate) fn end_round(&mut self, now: Instant, count: u64, budget: u64, spent: u64) {
        self.window.has_waited |= self.waiting > 0;
        let is_full = std::mem::take(&mut self.round.is_full);
        let received = std::mem::take(&mut self.round.received);
        // Without more to receive nobody is owed.
        let owed = if is_full { self.round.debt.saturating_sub(received * (RECEIVING - 1)) } else { 0 };
        self.round.debt = if is_full { owed + spent.saturating_sub(budget) } else { 0 };
        if now.since(self.window.from) >= WINDOW {
            self.end_window(now, count);
        }
    }

    fn begin_window(&mut self, now: Instant, count: u64) {
        let Window { longest, calm, .. } = self.window;
        self.window = Window { from: now, count, longest, calm, is_full: false, has_waited: false };
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
            tracing::debug!("virtual switches take turns");
            (self.takes_turns, self.window.calm) = (true, 0);
            (self.virtual_time, self.round) = (0.0, Round::default());
            self.tenants.iter_mut().flatten().for_each(|tenant| tenant.virtual_time = 0.0);
        }
        self.is_pressed = self.takes_turns || self.window.is_full;
        self.begin_window(now, count);
    }

    /// Whether somebody had more than its part of the window while another had less and wanted more.
    fn is_unfair(&self) -> bool {
        let active = || self.tenants.iter().flatten().filter(|tenant| tenant.used > 0);
        let used: u64 = active().map(|tenant| tenant.used).sum();
        let weights: f64 = active().map(|tenant| tenant.weight).sum();
        let beyond = |tenant: &Tenant<T>| tenant.used as f64 / used.max(1) as f64 - tenant.weight / weights;
        let is_short = active().any(|tenant| tenant.wants_more && beyond(tenant) < -TOLERANCE);
        is_short && active().any(|tenant| beyond(tenant) > TOLERANCE)
    }
}

#[cfg(test)]
mod tests;
