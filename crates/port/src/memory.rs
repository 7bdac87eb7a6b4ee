//! Ports joined in memory: each end receives what the other transmits, without the kernel and without copying.
//!
//! Each direction is a lock-free ring with one writer and one reader, so two threads may drive the two ends. A full
//! ring drops and counts frames (`tx_full`), like any queue. An end whose peer was dropped has no link. A wake-up
//! costs a system call only if the reader announced ([`Port::arm`]) that it is about to sleep.
use crate::event::EventFd;
use crate::spec::synthetic_mac;
use crate::{FrameCounters, LinkState, Port, PortInfo, PortResult, ReceiveReadiness};
use rtrb::{Consumer, Producer, PushError, RingBuffer};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::sync::{Arc, Mutex};
use weir_packet::frame::{DEFAULT_QUEUE, MAX_FRAME};
use weir_packet::{Frame, FramePool, Tunnel};
use weir_units::{Epoch, Instant, SystemClock};

/// Default capacity of a ring in frames: some milliseconds of small frames.
pub const DEFAULT_CAPACITY: usize = 4096;
/// Maximum capacity of a ring in frames.
pub const MAX_CAPACITY: usize = 1 << 20;

/// Creates two joined ends. Each direction holds at most `capacity` unread frames (clamped to 1 ..=
/// [`MAX_CAPACITY`]). The ends are called `memory:a` and `memory:b`; see [`MemoryPort::named`].
///
/// # Errors
/// The process has no descriptor left.
pub fn pair(capacity: usize) -> io::Result<(MemoryPort, MemoryPort)> {
    let capacity = capacity.clamp(1, MAX_CAPACITY);
    let (to_b, from_a) = RingBuffer::new(capacity);
    let (to_a, from_b) = RingBuffer::new(capacity);
    let (wake_a, wake_b) = (Arc::new(ReaderWakeState::new()?), Arc::new(ReaderWakeState::new()?));
    let a = MemoryPort::new("a", (to_b, from_b), (wake_a.clone(), wake_b.clone()));
    let b = MemoryPort::new("b", (to_a, from_a), (wake_b, wake_a));
    Ok((a, b))
}

/// Port that is an end of a [`pair`].
#[derive(Debug)]
pub struct MemoryPort {
    info: PortInfo,
    to_peer: Producer<Frame>,
    from_peer: Consumer<Frame>,
    wake: Arc<ReaderWakeState>,
    peer_wake: Arc<ReaderWakeState>,
    counters: FrameCounters,
    /// Start of the reader's clock in boot time (ns), subtracted from arrival times; `None` if arrivals are not
    /// stamped.
    stamps_offset_ns: Option<u64>,
    /// True if this end keeps a schedule: its frames count as sent at the scheduled time, if the peer keeps one too.
    keeps_schedule: bool,
}

/// State by which the writer of a ring wakes its reader.
#[derive(Debug)]
struct ReaderWakeState {
    asleep: AtomicBool,
    event: EventFd,
    /// True if the reader's end was taken out of service.
    is_down: AtomicBool,
    /// True if the reader needs the sending times of frames.
    wants_times: AtomicBool,
    /// True if the reader keeps a schedule; frames from a writer with a schedule then carry their scheduled time.
    keeps_schedule: AtomicBool,
}

impl ReaderWakeState {
    fn new() -> io::Result<ReaderWakeState> {
        Ok(ReaderWakeState {
            asleep: AtomicBool::new(false),
            event: EventFd::new()?,
            is_down: AtomicBool::new(false),
            wants_times: AtomicBool::new(false),
            keeps_schedule: AtomicBool::new(false),
        })
    }

    /// Wakes the reader if it sleeps. Called after the frames are in the ring. The fence orders them before the read
    /// of the flag; [`MemoryPort::arm`] does the reverse, so at least one side sees the other's write.
    fn notify(&self) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::AcqRel) {
            self.event.signal();
        }
    }
}

impl MemoryPort {
    fn new(
        name: &str,
        rings: (Producer<Frame>, Consumer<Frame>),
        wakes: (Arc<ReaderWakeState>, Arc<ReaderWakeState>),
    ) -> Self {
        let info = PortInfo { spec: String::new(), name: String::new(), mac: Default::default(), mtu: MTU };
        let (to_peer, from_peer) = rings;
        let (wake, peer_wake) = wakes;
        let counters = FrameCounters::default();
        MemoryPort {
            info,
            to_peer,
            from_peer,
            wake,
            peer_wake,
            counters,
            stamps_offset_ns: None,
            keeps_schedule: false,
        }
        .named(name)
    }

    /// Renames this end; its Ethernet address is derived from the name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.info.spec = format!("memory:{name}");
        self.info.name = name.to_owned();
        self.info.mac = synthetic_mac(&self.info.spec);
        self
    }

    /// Returns true if the other end was dropped.
    fn is_cut(&self) -> bool {
        self.to_peer.is_abandoned()
    }

    /// Sets the sending time of frames in boot time (ns), because the two ends may have different clocks. Uses `now`,
    /// the scheduled time, if both ends keep a schedule, else the current time.
    #[cold]
    fn stamp(&self, now: Instant, frames: &mut [Frame]) {
        let scheduled_ns =
            self.stamps_offset_ns.filter(|_| self.is_scheduled()).map(|offset_ns| now.as_nanos() + offset_ns);
        let sent_ns = scheduled_ns.unwrap_or_else(|| Epoch::Boot.now_ns());
        frames.iter_mut().for_each(|frame| frame.set_arrived(sent_ns));
    }

    /// Returns true if frames can pass: both ends exist and are in service.
    fn has_link(&self) -> bool {
        let is_down = |wake: &ReaderWakeState| wake.is_down.load(Ordering::Relaxed);
        !self.is_cut() && !is_down(&self.wake) && !is_down(&self.peer_wake)
    }
}

/// MTU in bytes: the longest frame without its Ethernet header.
#[expect(clippy::cast_possible_truncation, reason = "a constant that fits")]
const MTU: u32 = (MAX_FRAME - 14) as u32;

impl Port for MemoryPort {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn receive(&mut self, _now: Instant, _pool: &mut FramePool, batch: &mut Vec<Frame>, max: usize) -> PortResult {
        let count = self.from_peer.slots().min(max);
        let Ok(chunk) = self.from_peer.read_chunk(count) else { return Ok(()) };
        let before = batch.len();
        batch.extend(chunk);
        self.counters.rx_packets += count as u64;
        self.counters.rx_bytes += bytes_of(&batch[before..]);
        if let Some(offset_ns) = self.stamps_offset_ns {
            for frame in &mut batch[before..] {
                let sent_ns = frame.arrived();
                frame.set_arrived(sent_ns.saturating_sub(offset_ns));
            }
        }
        Ok(())
    }

    fn stamp_arrivals(&mut self, clock: SystemClock) -> bool {
        self.stamps_offset_ns = Some(clock.start_boot_ns());
        self.wake.wants_times.store(true, Ordering::Relaxed);
        true
    }

    fn keep_schedule(&mut self) {
        self.keeps_schedule = true;
        self.wake.keeps_schedule.store(true, Ordering::Relaxed);
    }

    fn is_scheduled(&self) -> bool {
        self.keeps_schedule && self.peer_wake.keeps_schedule.load(Ordering::Relaxed)
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        if frames.is_empty() {
            return Ok(());
        }
        let has_link = self.has_link();
        if self.peer_wake.wants_times.load(Ordering::Relaxed) {
            self.stamp(now, frames);
        }
        for mut frame in frames.drain(..) {
            // Queue and tunnel are metadata of the sender's switch.
            frame.queue = DEFAULT_QUEUE;
            frame.tunnel = Tunnel::NONE;
            let bytes = frame.len() as u64;
            match if has_link { self.to_peer.push(frame) } else { Err(PushError::Full(frame)) } {
                Ok(()) => {
                    self.counters.tx_packets += 1;
                    self.counters.tx_bytes += bytes;
                }
                Err(PushError::Full(frame)) => {
                    *(if has_link { &mut self.counters.tx_full } else { &mut self.counters.tx_errors }) += 1;
                    pool.give(frame);
                }
            }
        }
        self.peer_wake.notify();
        Ok(())
    }

    fn arm(&mut self) -> ReceiveReadiness {
        self.wake.event.drain();
        self.wake.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.from_peer.is_empty() {
            return ReceiveReadiness::OnDescriptor;
        }
        self.wake.asleep.store(false, Ordering::Relaxed);
        ReceiveReadiness::Now
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.wake.event.as_fd())
    }

    fn link(&mut self) -> LinkState {
        LinkState { up: self.has_link(), speed: None }
    }

    fn counters(&self) -> FrameCounters {
        self.counters
    }

    /// Records the state and wakes the peer, whose link goes up or down with this end's.
    fn set_admin(&mut self, up: bool) -> io::Result<()> {
        self.wake.is_down.store(!up, Ordering::Relaxed);
        self.peer_wake.event.signal();
        Ok(())
    }
}

impl Drop for MemoryPort {
    /// Wakes the peer so that it sees its link go down.
    fn drop(&mut self) {
        self.peer_wake.event.signal();
    }
}

fn bytes_of(frames: &[Frame]) -> u64 {
    frames.iter().map(|frame| frame.len() as u64).sum()
}

/// Registry of ends that wait for their peer, by name: `memory:NAME` opened twice in one process makes a pair.
#[derive(Debug, Default)]
pub struct MemoryPortRegistry {
    waiting: Mutex<HashMap<String, MemoryPort>>,
}

/// Maximum number of names waiting in a hub.
const MAX_WAITING: usize = 4096;

impl MemoryPortRegistry {
    /// Returns the first end of `name` at the first call, the second end at the second call, and the first end of a
    /// new pair at the third. An end whose peer was dropped in the meantime is discarded.
    ///
    /// # Errors
    /// The process has no descriptor left, or too many names wait.
    pub fn open(&self, name: &str, capacity: usize) -> io::Result<MemoryPort> {
        let mut waiting = self.waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        waiting.retain(|_, end| !end.is_cut());
        if let Some(second) = waiting.remove(name) {
            return Ok(second);
        }
        if waiting.len() >= MAX_WAITING {
            return Err(io::Error::other(format!("{MAX_WAITING} memory ports wait for their other end")));
        }
        let (first, second) = pair(capacity)?;
        waiting.insert(name.to_owned(), second.named(&format!("{name}-2")));
        Ok(first.named(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::Clock as _;

    fn frames(count: usize) -> Vec<Frame> {
        (0..count).map(|i| Frame::from_bytes(&[u8::try_from(i % 256).unwrap(); 60])).collect()
    }

    fn receive(port: &mut MemoryPort, max: usize) -> Vec<Frame> {
        let mut batch = Vec::new();
        port.receive(Instant::ZERO, &mut FramePool::default(), &mut batch, max).unwrap();
        batch
    }

    fn send(port: &mut MemoryPort, count: usize) {
        port.transmit(Instant::ZERO, &mut FramePool::default(), &mut frames(count)).unwrap();
    }

    #[test]
    fn frames_arrive_in_order_without_a_copy() {
        let (mut a, mut b) = pair(8).unwrap();
        let mut sent = frames(3);
        let places: Vec<_> = sent.iter().map(|frame| frame.bytes().as_ptr()).collect();
        a.transmit(Instant::ZERO, &mut FramePool::default(), &mut sent).unwrap();
        assert!(sent.is_empty());
        let mut got = receive(&mut b, 2);
        got.extend(receive(&mut b, 2));
        assert_eq!(got.iter().map(|frame| frame.bytes().as_ptr()).collect::<Vec<_>>(), places);
        assert_eq!((a.counters().tx_packets, a.counters().tx_bytes), (3, 180));
        assert_eq!((b.counters().rx_packets, b.counters().rx_bytes), (3, 180));
        assert!(receive(&mut a, 8).is_empty());
    }

    #[test]
    fn frames_say_when_they_were_sent_by_the_readers_clock() {
        let (mut a, mut b) = pair(8).unwrap();
        let clock = SystemClock::start();
        assert!(b.stamp_arrivals(clock));
        let before = clock.now().as_nanos();
        send(&mut a, 2);
        let after = clock.now().as_nanos();
        // The frames wait in the ring for a while before they are read.
        while clock.now().as_nanos() < after + 5_000_000 {
            std::thread::yield_now();
        }
        for frame in receive(&mut b, 8) {
            let came = frame.arrived();
            // The two readings of the clock may differ by up to 100 microseconds.
            assert!(came + 100_000 > before && came < after + 100_000, "{came}, sent from {before} to {after}");
        }
    }

    #[test]
    fn between_schedules_frames_came_when_they_were_due() {
        let (mut a, mut b) = pair(8).unwrap();
        let [of_a, of_b] = [SystemClock::start(), SystemClock::start()];
        assert!(a.stamp_arrivals(of_a) && b.stamp_arrivals(of_b));
        // One hour after the clocks started.
        let due = Instant::ZERO + std::time::Duration::from_secs(3600);
        let came = |a: &mut MemoryPort, b: &mut MemoryPort| {
            a.transmit(due, &mut FramePool::default(), &mut frames(1)).unwrap();
            receive(b, 8)[0].arrived()
        };
        a.keep_schedule();
        assert!(!a.is_scheduled() && !b.is_scheduled());
        assert!(came(&mut a, &mut b) < due.as_nanos() / 2, "who does not keep one is told when it was sent");
        b.keep_schedule();
        assert!(a.is_scheduled() && b.is_scheduled());
        let expected = due.as_nanos() + of_a.start_boot_ns() - of_b.start_boot_ns();
        assert_eq!(came(&mut a, &mut b), expected);
    }

    #[test]
    fn a_full_ring_drops_and_counts() {
        let (mut a, mut b) = pair(4).unwrap();
        send(&mut a, 6);
        assert_eq!((a.counters().tx_packets, a.counters().tx_full), (4, 2));
        assert_eq!(receive(&mut b, 100).len(), 4);
        send(&mut a, 1);
        assert_eq!(receive(&mut b, 100).len(), 1);
    }

    #[test]
    fn a_dropped_peer_takes_the_link_down_and_wakes() {
        let (mut a, mut b) = pair(4).unwrap();
        send(&mut a, 1);
        assert_eq!(b.arm(), ReceiveReadiness::Now);
        assert_eq!(receive(&mut b, 9).len(), 1);
        assert_eq!(b.arm(), ReceiveReadiness::OnDescriptor);
        send(&mut a, 1);
        drop(a);
        assert!(b.wake.event.drain());
        assert_eq!(receive(&mut b, 9).len(), 1, "what was sent before still arrives");
        assert!(!b.link().up);
        send(&mut b, 2);
        assert_eq!(b.counters().tx_errors, 2);
        assert_eq!(b.arm(), ReceiveReadiness::OnDescriptor, "a cut link must not keep its engine awake");
    }

    #[test]
    fn an_end_out_of_service_has_no_link_nor_has_the_other() {
        let (mut a, mut b) = pair(4).unwrap();
        a.set_admin(false).unwrap();
        assert!(b.wake.event.drain(), "the other end's engine is to see it");
        assert!(!a.link().up && !b.link().up);
        send(&mut b, 2);
        assert_eq!((b.counters().tx_errors, receive(&mut a, 9).len()), (2, 0));
        a.set_admin(true).unwrap();
        assert!(a.link().up && b.link().up);
        send(&mut b, 2);
        assert_eq!(receive(&mut a, 9).len(), 2);
    }

    #[test]
    fn only_a_sleeper_is_woken() {
        let (mut a, mut b) = pair(4).unwrap();
        send(&mut a, 1);
        assert!(!b.wake.event.drain(), "nobody slept");
        receive(&mut b, 9);
        assert_eq!(b.arm(), ReceiveReadiness::OnDescriptor);
        send(&mut a, 1);
        send(&mut a, 1);
        assert!(b.wake.event.drain());
    }

    /// A reader that sleeps whenever possible, against a writer in another thread: a lost wake-up would time out.
    #[test]
    fn no_wake_up_is_lost() {
        const FRAMES: u64 = 20_000;
        let (mut a, mut b) = pair(16).unwrap();
        let writer = std::thread::spawn(move || {
            while a.counters().tx_packets < FRAMES {
                send(&mut a, 1);
                if a.counters().tx_packets.is_multiple_of(64) {
                    std::thread::yield_now();
                }
            }
            a
        });
        while b.counters().rx_packets < FRAMES {
            if receive(&mut b, 4).is_empty() && b.arm() == ReceiveReadiness::OnDescriptor {
                let limit = Some(std::time::Duration::from_secs(10));
                assert!(crate::event::wait_any(&[b.fd().unwrap()], limit), "woken within ten seconds");
            }
        }
        writer.join().unwrap();
    }

    #[test]
    fn a_name_written_twice_is_a_pair() {
        let hub = MemoryPortRegistry::default();
        let mut first = hub.open("patch", 4).unwrap();
        let mut second = hub.open("patch", 4).unwrap();
        send(&mut first, 1);
        assert_eq!(receive(&mut second, 9).len(), 1);
        assert_ne!(first.info().mac, second.info().mac);
        let third = hub.open("patch", 4).unwrap();
        drop(third);
        let mut fresh = hub.open("patch", 4).unwrap();
        assert!(fresh.link().up, "the end left behind by `third` is not given out");
    }
}
