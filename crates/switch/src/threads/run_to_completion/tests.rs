//! Tests how a thread's frames are sent while another thread has the port.
use super::super::removed_ports::RemovedPortDrops;
use super::port::SharedPort;
use super::port_contention::PortContention;
use super::sender::{MAX_KEPT, SharedPortSender};
use crate::engine::wake::ThreadWaker;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use weir_openflow::model::PortNo;
use weir_packet::{Frame, FramePool};
use weir_port::{FrameCounters, LinkState, Port, PortInfo, PortResult};
use weir_units::Instant;

/// A port that blocks its user while it is held, and records the frames sent.
struct Held {
    info: PortInfo,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_held: AtomicBool,
    is_entered: AtomicBool,
    sent: Mutex<Vec<u32>>,
    times: Mutex<Vec<Instant>>,
}

impl Port for Held {
    fn info(&self) -> &PortInfo {
        &self.info
    }

    fn receive(&mut self, _now: Instant, _pool: &mut FramePool, _batch: &mut Vec<Frame>, _max: usize) -> PortResult {
        Ok(())
    }

    fn transmit(&mut self, now: Instant, pool: &mut FramePool, frames: &mut Vec<Frame>) -> PortResult {
        self.state.is_entered.store(true, Ordering::SeqCst);
        while self.state.is_held.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        self.state.times.lock().unwrap().push(now);
        for frame in frames.drain(..) {
            self.state.sent.lock().unwrap().push(u32::from_be_bytes(frame.bytes().try_into().unwrap()));
            pool.give(frame);
        }
        Ok(())
    }

    fn link(&mut self) -> LinkState {
        LinkState { up: true, speed: None }
    }

    fn counters(&self) -> FrameCounters {
        FrameCounters::default()
    }
}

fn port() -> (Arc<SharedPort>, Arc<State>) {
    let state = Arc::<State>::default();
    let spec = "memory:held".to_owned();
    let info = PortInfo { name: spec.clone(), spec, mac: weir_packet::MacAddr([2; 6]), mtu: 1500 };
    let held = Box::new(Held { info, state: Arc::clone(&state) });
    let waker = Arc::new(ThreadWaker::new().unwrap());
    (Arc::new(SharedPort::new(PortNo(1), held, 0, (Arc::clone(&waker), waker), RemovedPortDrops::default())), state)
}

fn frames(numbers: std::ops::Range<u32>) -> Vec<Frame> {
    numbers.map(|number| Frame::from_bytes(&number.to_be_bytes())).collect()
}

/// Makes another thread send a frame numbered 0, and returns when the frame is at the port. The thread keeps the port
/// until it is released.
fn hold<'s>(scope: &'s std::thread::Scope<'s, '_>, common: &Arc<SharedPort>, state: &State) {
    state.is_held.store(true, Ordering::SeqCst);
    state.is_entered.store(false, Ordering::SeqCst);
    let common = Arc::clone(common);
    scope.spawn(move || common.transmit(Instant::from_nanos(70), &mut FramePool::default(), &mut frames(0..1)));
    while !state.is_entered.load(Ordering::SeqCst) {
        std::thread::yield_now();
    }
}

#[test]
fn frames_wait_in_order_for_a_port_that_is_in_use() {
    let (common, state) = port();
    let hindered = Arc::<PortContention>::default();
    let mut sender = SharedPortSender::new(Arc::clone(&common), Arc::clone(&hindered));
    let (mut pool, mut rounds) = (FramePool::default(), 0);
    std::thread::scope(|scope| {
        hold(scope, &common, &state);
        for first in [1, 33] {
            let mut burst = frames(first..first + 32);
            sender.send(Instant::from_nanos(50), &mut pool, &mut burst);
            assert!(burst.is_empty() && sender.holds(), "it did not wait");
        }
        assert!(hindered.wait(&mut rounds), "nor is it to sleep");
        assert!(!hindered.wait(&mut rounds), "once for each time");
        state.is_held.store(false, Ordering::SeqCst);
    });
    sender.send(Instant::from_nanos(60), &mut pool, &mut frames(65..70));
    assert!(!sender.holds() && !hindered.wait(&mut rounds));
    assert_eq!(*state.sent.lock().unwrap(), (0..70).collect::<Vec<u32>>());
    let times = state.times.lock().unwrap().clone();
    assert_eq!(times, [Instant::from_nanos(70); 2], "time does not run back for the port");
}

#[test]
fn too_many_frames_are_waited_with() {
    let (common, state) = port();
    let mut sender = SharedPortSender::new(Arc::clone(&common), Arc::default());
    let most = u32::try_from(MAX_KEPT).unwrap();
    std::thread::scope(|scope| {
        hold(scope, &common, &state);
        sender.send(Instant::ZERO, &mut FramePool::default(), &mut frames(1..most + 1));
        assert!(sender.holds(), "so many are kept");
        let is_done = AtomicBool::new(false);
        std::thread::scope(|inner| {
            inner.spawn(|| {
                sender.send(Instant::ZERO, &mut FramePool::default(), &mut frames(most + 1..most + 5));
                is_done.store(true, Ordering::SeqCst);
            });
            (0..1000).for_each(|_| std::thread::yield_now());
            assert!(!is_done.load(Ordering::SeqCst), "the port is still in use");
            state.is_held.store(false, Ordering::SeqCst);
        });
        assert!(!sender.holds());
    });
    assert_eq!(*state.sent.lock().unwrap(), (0..most + 5).collect::<Vec<u32>>());
}

#[test]
fn what_waits_for_a_port_that_went_gives_its_buffers_back() {
    let (common, state) = port();
    let mut sender = SharedPortSender::new(Arc::clone(&common), Arc::default());
    let mut pool = FramePool::default();
    std::thread::scope(|scope| {
        hold(scope, &common, &state);
        let mut burst = Vec::new();
        pool.take_burst(60, 8, &mut burst);
        sender.send(Instant::ZERO, &mut pool, &mut burst);
        state.is_held.store(false, Ordering::SeqCst);
    });
    sender.end(&mut pool);
    assert_eq!(pool.kept(), 8);
    assert_eq!(*state.sent.lock().unwrap(), [0]);
}
