//! Implements an end of a tester as a port of a switch.
use super::results::TesterResults;
use super::source::BulkFlowSource;
use super::template::{self, TesterFrameKind, TesterFrameTemplate};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_packet::{Frame, FramePool, MacAddr};
use weir_port::{FrameCounters, LinkState, Port, PortInfo, PortResult};
use weir_units::{Clock, Instant, SystemClock};

/// Maximum number of echo replies waiting to be sent; pings are few.
const MAX_REPLIES: usize = 1024;

/// Port that generates due frames on receive and measures frames on transmit.
pub(super) struct TesterPort {
    info: PortInfo,
    clock: SystemClock,
    source: Option<BulkFlowSource>,
    ping: Option<TesterPings>,
    seen: Arc<Mutex<TesterResults>>,
    /// Bulk frames that arrived here; the other end's source reads it.
    arrived: Arc<AtomicU64>,
    counters: FrameCounters,
    /// Time of the last receive.
    asked: Instant,
}

/// Pings of an end.
struct TesterPings {
    template: TesterFrameTemplate,
    /// Due time of the next request, if this end sends requests.
    next: Option<Instant>,
    interval: Duration,
    until: Instant,
    /// Due times of the requests to answer.
    replies: VecDeque<Instant>,
}

impl TesterPort {
    pub(super) fn new(
        end: usize,
        source: Option<BulkFlowSource>,
        ping: Option<(Duration, TesterFrameTemplate)>,
        clock: SystemClock,
        seen: Arc<Mutex<TesterResults>>,
        arrived: Arc<AtomicU64>,
    ) -> TesterPort {
        let name = format!("tester{end}");
        let mac = MacAddr([2, 0, 0, 0, 0xff, u8::try_from(end).unwrap_or(0)]);
        let info = PortInfo { spec: format!("memory:{name}"), name, mac, mtu: 9000 };
        let window = lock(&seen).window();
        let ping = ping.map(|(interval, template)| TesterPings {
            template,
            next: (end == 0).then_some(window.begin),
            interval,
            until: window.until,
            replies: VecDeque::new(),
        });
        let (counters, asked) = (FrameCounters::default(), Instant::ZERO);
        TesterPort { info, clock, source, ping, seen, arrived, counters, asked }
    }
}

fn lock(seen: &Mutex<TesterResults>) -> std::sync::MutexGuard<'_, TesterResults> {
    seen.lock().unwrap_or_else(PoisonError::into_inner)
}

impl TesterPings {
    /// Appends due requests and replies to `batch`.
    fn give(
        &mut self,
        now: Instant,
        pool: &mut FramePool,
        batch: &mut Vec<Frame>,
        max: usize,
        seen: &mut TesterResults,
    ) {
        while let Some(due) = self.next.filter(|due| *due <= now && *due < self.until && batch.len() < max) {
            seen.pings += u64::from(seen.window().counts(due));
            batch.push(self.frame(TesterFrameKind::Request, due, pool));
            self.next = Some(due + self.interval);
        }
        while batch.len() < max
            && let Some(due) = self.replies.pop_front()
        {
            batch.push(self.frame(TesterFrameKind::Reply, due, pool));
        }
    }

    fn frame(&self, kind: TesterFrameKind, due: Instant, pool: &mut FramePool) -> Frame {
        let mut frame = pool.take(self.template.bytes());
        self.template.write(&mut frame, 0, kind, due);
        frame
    }

    fn next_wake(&self) -> Option<Instant> {
        if !self.replies.is_empty() {
            return Some(Instant::ZERO);
        }
        self.next.filter(|due| *due < self.until)
    }
}

impl Port for TesterPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn receive(&mut self, now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        self.asked = now;
        let mut seen = lock(&self.seen);
        seen.receives(now);
        let before = batch.len();
        if let Some(ping) = &mut self.ping {
            ping.give(now, pool, batch, max, &mut seen);
        }
        if let Some(source) = &mut self.source {
            let room = max.saturating_sub(batch.len() - before);
            source.give(now, pool, batch, room, &mut seen);
        }
        self.counters.rx_packets += (batch.len() - before) as u64;
        self.counters.rx_bytes += batch[before..].iter().map(|frame| frame.len() as u64).sum::<u64>();
        self.counters.rx_missed = seen.missed;
        Ok(())
    }

    fn transmit(&mut self, _now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        if frames.is_empty() {
            return Ok(());
        }
        // Read now, so that the time of preceding transmissions counts.
        let now = self.clock.now();
        let mut seen = lock(&self.seen);
        let (mut bulk, mut first) = (0, true);
        for frame in frames.drain(..) {
            self.counters.tx_packets += 1;
            self.counters.tx_bytes += frame.len() as u64;
            if let Some((kind, due)) = template::read(frame.bytes()) {
                seen.arrives(kind, due, now, first);
                match (kind, &mut self.ping) {
                    (TesterFrameKind::Request, Some(ping)) if ping.replies.len() < MAX_REPLIES => {
                        ping.replies.push_back(due)
                    }
                    (TesterFrameKind::Bulk, _) => (bulk, first) = (bulk + 1, false),
                    _ => {}
                }
            }
            pool.give(frame);
        }
        self.arrived.fetch_add(bulk, Ordering::Relaxed);
        Ok(())
    }

    fn next_wake(&self) -> Option<Instant> {
        let source = self.source.as_ref().and_then(|source| source.next(self.asked));
        let ping = self.ping.as_ref().and_then(TesterPings::next_wake);
        source.into_iter().chain(ping).min()
    }

    fn link(&mut self) -> LinkState {
        LinkState { up: true, speed: None }
    }

    fn counters(&self) -> FrameCounters {
        self.counters
    }
}
