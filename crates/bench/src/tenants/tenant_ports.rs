//! Ports of the benchmark: loads that generate frames at a rate, and a sink that measures frames that leave. Both run
//! on the switch's own thread, so that no other thread disturbs it.
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use weir_packet::{Frame, FramePool, MacAddr, craft::FrameBuilder};
use weir_port::{FrameCounters, LinkState, Port, PortInfo, PortResult, ReceiveReadiness};
use weir_units::{Bps, Instant};

/// Offsets in a frame of its due time and of its tenant's number.
const STAMP: usize = 44;
const TENANT: usize = 42;
/// Size of the smallest frame in bytes, without frame check sequence.
pub(super) const SMALLEST: usize = 60;
/// Size of the largest frame in bytes, without tags.
pub(super) const LARGEST: usize = 1514;
/// Backlog that a load keeps while the switch is late; older frames are dropped before the switch.
const MAX_BACKLOG: Duration = Duration::from_millis(20);
/// Maximum number of recorded delays.
const MAX_DELAYS: usize = 1 << 22;

/// Port that generates a tenant's frames at a rate.
pub(super) struct TenantSourcePort {
    info: PortInfo,
    template: Frame,
    gap_ns: f64,
    /// Due time of the next frame, in nanoseconds.
    next_ns: f64,
    /// State of the generator of addresses and ports; 0 if all frames are alike.
    random: u64,
    counters: FrameCounters,
}

impl TenantSourcePort {
    /// Creates a load of frames of `size` bytes at a rate of `rate` on the wire. With `is_varied`, every frame
    /// belongs to a different flow.
    pub(super) fn new(tenant: u16, size: usize, rate: Bps, is_varied: bool) -> TenantSourcePort {
        let size = size.clamp(SMALLEST, LARGEST);
        let mut payload = vec![0; size - TENANT];
        payload[..2].copy_from_slice(&tenant.to_be_bytes());
        let source = MacAddr([2, 0, 0, 0, 0, 1]);
        let [high, low] = tenant.to_be_bytes();
        let template = FrameBuilder::ethernet(MacAddr([2, 0, 0, 0, 0, 2]), source)
            .ipv4([10, high, low, 1].into(), [10, high, low, 2].into())
            .udp(1000, 2000)
            .payload(&payload)
            .frame();
        let name = format!("load{tenant}");
        TenantSourcePort {
            info: PortInfo { spec: format!("null:{name}"), name, mac: source, mtu: 1500 },
            gap_ns: size as f64 * 8e9 / rate.0.max(1) as f64,
            next_ns: 0.0,
            template,
            random: if is_varied { 0x9e37_79b9_7f4a_7c15 | u64::from(tenant) } else { 0 },
            counters: FrameCounters::default(),
        }
    }

    fn frame(&mut self, pool: &mut FramePool) -> Frame {
        let mut frame = pool.copy(&self.template);
        let bytes = frame.bytes_mut();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "nanoseconds since the start")]
        bytes[STAMP..STAMP + 8].copy_from_slice(&(self.next_ns as u64).to_be_bytes());
        if self.random != 0 {
            // xorshift64 fills addresses and ports; their checksums are not verified on the way.
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            bytes[26..34].copy_from_slice(&self.random.to_be_bytes());
            bytes[34..38].copy_from_slice(&self.random.to_le_bytes()[..4]);
        }
        self.counters.rx_packets += 1;
        self.counters.rx_bytes += frame.len() as u64;
        frame
    }
}

impl Port for TenantSourcePort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn receive(&mut self, now: Instant, pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        let now_ns = now.as_nanos() as f64;
        let oldest = now_ns - MAX_BACKLOG.as_nanos() as f64;
        if self.next_ns < oldest {
            let lost = ((oldest - self.next_ns) / self.gap_ns).ceil();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
            (self.counters.rx_missed += lost as u64);
            self.next_ns += lost * self.gap_ns;
        }
        for _ in 0..max {
            if self.next_ns > now_ns {
                break;
            }
            let frame = self.frame(pool);
            batch.push(frame);
            self.next_ns += self.gap_ns;
        }
        Ok(())
    }

    fn transmit(&mut self, _: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        frames.drain(..).for_each(|frame| pool.give(frame));
        Ok(())
    }

    fn arm(&mut self) -> ReceiveReadiness {
        ReceiveReadiness::Now
    }

    fn link(&mut self) -> LinkState {
        LinkState { up: true, speed: None }
    }

    fn counters(&self) -> FrameCounters {
        self.counters
    }
}

/// Counters of frames that left, by tenant.
#[derive(Debug, Default)]
pub(super) struct TenantSinkCounters {
    pub(super) bytes: Vec<u64>,
    pub(super) packets: Vec<u64>,
    /// Tenant whose delays are recorded in `delays`, in nanoseconds.
    pub(super) watched: u16,
    pub(super) delays: Vec<u32>,
}

/// Output port of all tenants.
pub(super) struct TenantSinkPort {
    info: PortInfo,
    clock: weir_units::SystemClock,
    seen: Arc<Mutex<TenantSinkCounters>>,
    counters: FrameCounters,
}

impl TenantSinkPort {
    pub(super) fn new(
        tenants: usize,
        clock: weir_units::SystemClock,
    ) -> (TenantSinkPort, Arc<Mutex<TenantSinkCounters>>) {
        let seen =
            TenantSinkCounters { bytes: vec![0; tenants], packets: vec![0; tenants], ..TenantSinkCounters::default() };
        let seen = Arc::new(Mutex::new(seen));
        let mac = MacAddr([2, 0, 0, 0, 0, 9]);
        let info = PortInfo { spec: "null:sink".to_owned(), name: "sink".to_owned(), mac, mtu: 1500 };
        (TenantSinkPort { info, clock, seen: Arc::clone(&seen), counters: FrameCounters::default() }, seen)
    }
}

impl Port for TenantSinkPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn receive(&mut self, _: Instant, _: &mut FramePool, _: &mut Vec<Frame>, _: usize) -> PortResult {
        Ok(())
    }

    fn transmit(&mut self, _: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        let now = weir_units::Clock::now(&self.clock).as_nanos();
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        for frame in frames.drain(..) {
            let bytes = frame.bytes();
            if let (Some(&[high, low]), Some(stamp)) = (bytes.get(TENANT..STAMP), bytes.get(STAMP..STAMP + 8)) {
                let tenant = u16::from_be_bytes([high, low]);
                if let Some(count) = seen.bytes.get_mut(usize::from(tenant)) {
                    *count += bytes.len() as u64;
                    seen.packets[usize::from(tenant)] += 1;
                }
                if tenant == seen.watched && seen.delays.len() < MAX_DELAYS {
                    let due = stamp.try_into().map_or(now, u64::from_be_bytes);
                    seen.delays.push(u32::try_from(now.saturating_sub(due)).unwrap_or(u32::MAX));
                }
            }
            self.counters.tx_packets += 1;
            pool.give(frame);
        }
        Ok(())
    }

    fn link(&mut self) -> LinkState {
        LinkState { up: true, speed: None }
    }

    fn counters(&self) -> FrameCounters {
        self.counters
    }
}
