//! Drives the stages of a pipeline in virtual time, without threads.
use super::batch::FlushRule;
use super::pipeline_worker::FlushTiming;
use super::policy::{ReceivePolicy, Steering};
use super::ring_writer::BurstRingWriter;
use super::rx::RxStage;
use super::tx::TxStage;
use super::worker::WorkerStage;
use super::{BurstSizes, RingFrame};
use crate::engine::wake::ThreadWaker;
use rtrb::RingBuffer;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use weir_openflow::model::PortNo;
use weir_packet::craft::FrameBuilder;
use weir_packet::{Frame, FramePool, MacAddr};
use weir_units::Instant;

/// All stages of a pipeline that sends the frames of every port to port 9.
struct Bench {
    bursts: BurstSizes,
    rx: RxStage,
    workers: Vec<WorkerStage>,
    tx: TxStage,
    pool: FramePool,
    now: Instant,
    /// Numbers of frames dropped in front of the workers and behind them.
    full: [Arc<AtomicU64>; 2],
    /// Sent frames as (flow, number within the flow, time).
    sent: Vec<(u16, u32, Instant)>,
    /// Sizes of the bursts sent.
    bursts_sent: Vec<usize>,
}

#[derive(Clone, Copy)]
struct Settings {
    workers: usize,
    ring: usize,
    bursts: BurstSizes,
    loops: u32,
    flush: Duration,
}

const SETTINGS: Settings =
    Settings { workers: 3, ring: 256, bursts: BurstSizes::all(8), loops: 100, flush: Duration::from_micros(10) };

const OUT: PortNo = PortNo(9);

impl Bench {
    fn new(settings: Settings) -> Bench {
        let Settings { workers, ring, bursts, loops, flush } = settings;
        let waker = Arc::new(ThreadWaker::new().unwrap());
        let full = [Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0))];
        let rule = |burst| FlushRule { burst, turns: loops, time: flush };
        let (mut outlets, mut stages, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..workers {
            let ((to_worker, from_rx), (to_tx, from_worker)) = (RingBuffer::new(ring), RingBuffer::new(ring));
            outlets.push(BurstRingWriter::new(rule(bursts.rx_write), to_worker, waker.clone(), full[0].clone()));
            let outlet = BurstRingWriter::new(rule(bursts.worker_write), to_tx, waker.clone(), full[1].clone());
            stages.push(WorkerStage::new(bursts.worker_read, from_rx, outlet));
            ends.push(from_worker);
        }
        Bench {
            bursts,
            rx: RxStage::new(Steering::new(ReceivePolicy::FiveTuple, Vec::new(), workers), outlets),
            workers: stages,
            tx: TxStage::new(rule(bursts.tx_write), bursts.tx_read, ends),
            pool: FramePool::default(),
            now: Instant::from_nanos(1_000_000),
            full,
            sent: Vec::new(),
            bursts_sent: Vec::new(),
        }
    }

    fn receive(&mut self, frames: Vec<Frame>) {
        for mut burst in chunks(frames, self.bursts.rx_read) {
            self.rx.receive(self.now, PortNo(1), &mut burst, &mut self.pool);
        }
        self.rx.turn(self.now, &mut self.pool);
    }

    fn work(&mut self, worker: usize) {
        let stage = &mut self.workers[worker];
        stage.read();
        stage.process(&mut self.pool, |_, frames, _, out| {
            if out.frames.is_empty() {
                out.frames.push((OUT, Vec::new()));
            }
            out.frames[0].1.append(frames);
        });
        stage.write(self.now, &mut self.pool, FlushTiming::WhenDue);
    }

    fn send(&mut self) {
        let (sent, sizes, now) = (&mut self.sent, &mut self.bursts_sent, self.now);
        self.tx.turn(now, &mut |port, frames: &mut Vec<Frame>| {
            assert_eq!(port, OUT);
            sizes.push(frames.len());
            sent.extend(frames.drain(..).map(|frame| {
                let (flow, number) = tag(&frame);
                (flow, number, now)
            }));
        });
    }

    /// Runs one turn of every loop, `step` later.
    fn turn(&mut self, step: Duration) {
        self.now += step;
        self.rx.turn(self.now, &mut self.pool);
        (0..self.workers.len()).for_each(|worker| self.work(worker));
        self.send();
    }

    fn is_empty(&self) -> bool {
        self.rx.is_empty() && self.tx.is_empty() && self.workers.iter().all(WorkerStage::is_idle)
    }

    fn dropped(&self) -> [u64; 2] {
        [0, 1].map(|place: usize| self.full[place].load(Ordering::Relaxed))
    }
}

fn chunks(frames: Vec<Frame>, size: usize) -> Vec<Vec<Frame>> {
    let mut chunks: Vec<Vec<Frame>> = Vec::new();
    for frame in frames {
        match chunks.last_mut() {
            Some(last) if last.len() < size => last.push(frame),
            _ => chunks.push(vec![frame]),
        }
    }
    chunks
}

/// Returns a frame of `flow` that carries its number within the flow.
fn frame(flow: u16, number: u32) -> Frame {
    let link =
        FrameBuilder::ethernet(MacAddr([2; 6]), MacAddr([4; 6])).ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    link.udp(flow, 53).payload(&number.to_be_bytes()).frame()
}

fn tag(frame: &Frame) -> (u16, u32) {
    let bytes = frame.bytes();
    (u16::from_be_bytes([bytes[34], bytes[35]]), u32::from_be_bytes(bytes[42..46].try_into().unwrap()))
}

#[test]
fn nothing_is_lost_and_flows_keep_their_order() {
    for (workers, bursts) in [(1, "8"), (3, "8"), (5, "1"), (2, "7,3,5,2,9,4"), (16, "32")] {
        let mut bench = Bench::new(Settings { workers, ring: 4096, bursts: bursts.parse().unwrap(), ..SETTINGS });
        let (mut dice, mut next) = (1u64, HashMap::<u16, u32>::new());
        for _ in 0..200 {
            let mut burst = Vec::new();
            for _ in 0..dice % 23 {
                dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let flow = u16::try_from(dice >> 59).unwrap();
                let number = next.entry(flow).or_default();
                burst.push(frame(flow, *number));
                *number += 1;
            }
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407) >> 1;
            bench.receive(burst);
            // Each thread runs at its own pace.
            match dice % 4 {
                0 => (0..workers).rev().for_each(|worker| bench.work(worker)),
                1 => bench.send(),
                _ => bench.turn(Duration::from_nanos(700)),
            }
        }
        (0..3000).for_each(|_| bench.turn(Duration::from_micros(1)));
        assert!(bench.is_empty());
        assert_eq!(bench.dropped(), [0, 0]);
        let mut seen = HashMap::<u16, u32>::new();
        for (flow, number, _) in &bench.sent {
            let expected = seen.entry(*flow).or_default();
            assert_eq!(number, expected, "flow {flow} with {workers} workers, bursts {bursts}");
            *expected += 1;
        }
        assert_eq!(seen, next);
    }
}

#[test]
fn full_rings_drop_and_count_where_it_happens() {
    let mut bench = Bench::new(Settings { workers: 1, ring: 32, ..SETTINGS });
    bench.receive((0..50).map(|number| frame(1, number)).collect());
    assert_eq!(bench.dropped(), [16, 0], "six bursts of eight came, four had room; two frames wait for a seventh");
    (0..10).for_each(|_| bench.work(0));
    bench.receive((0..32).map(|number| frame(1, 100 + number)).collect());
    (0..10).for_each(|_| bench.work(0));
    assert_eq!(bench.dropped(), [16, 32], "nobody transmits");
    (0..200).for_each(|_| bench.turn(Duration::from_micros(1)));
    assert!(bench.is_empty());
    let sent = bench.sent.len() as u64;
    assert_eq!(sent + bench.dropped().iter().sum::<u64>(), 82);
}

#[test]
fn no_frame_waits_longer_than_the_flush_time_in_each_stage() {
    let step = Duration::from_nanos(250);
    let mut bench = Bench::new(Settings { loops: u32::MAX, ..SETTINGS });
    for number in 0..20 {
        let came = bench.now;
        bench.receive(vec![frame(1, number)]);
        while bench.sent.len() <= number as usize {
            bench.turn(step);
            assert!(bench.now.since(came) <= 3 * (SETTINGS.flush + step), "frame {number} waits");
        }
        let waited = bench.sent[number as usize].2.since(came);
        assert!(waited >= 3 * SETTINGS.flush - step, "with such a loop count time decides: {waited:?}");
    }
}

#[test]
fn the_loop_count_sends_earlier() {
    let turns = |loops| {
        let mut bench = Bench::new(Settings { loops, flush: Duration::from_secs(1), ..SETTINGS });
        bench.receive(vec![frame(1, 0)]);
        (0..1000).find(|_| {
            bench.turn(Duration::from_nanos(100));
            !bench.sent.is_empty()
        })
    };
    assert_eq!(turns(1), Some(0));
    let (few, many) = (turns(10).unwrap(), turns(100).unwrap());
    assert!((25..=30).contains(&few), "{few} turns");
    assert!((290..=300).contains(&many), "{many} turns");
}

#[test]
fn bursts_fill_when_there_is_much() {
    let mut bench = Bench::new(Settings { workers: 2, ring: 4096, ..SETTINGS });
    bench.receive((0..2000).map(|number| frame(u16::try_from(number % 16).unwrap(), number)).collect());
    (0..400).for_each(|_| bench.turn(Duration::from_nanos(100)));
    let full = bench.bursts_sent.iter().filter(|size| **size == SETTINGS.bursts.tx_write).count();
    assert!(
        full >= 240 && bench.bursts_sent.iter().all(|size| *size <= SETTINGS.bursts.tx_write),
        "{full} full bursts"
    );
}

#[test]
fn transmitting_is_fair_to_many_rings() {
    const RINGS: usize = 40;
    let rule = FlushRule { burst: 32, turns: 1, time: Duration::ZERO };
    let (mut writers, readers): (Vec<_>, Vec<_>) = (0..RINGS).map(|_| RingBuffer::<RingFrame>::new(1024)).unzip();
    let mut tx = TxStage::new(rule, 16, readers);
    let mut sent = [0usize; RINGS];
    for _ in 0..100 {
        for (worker, ring) in writers.iter_mut().enumerate() {
            // The first two workers are flooded; the others get one frame per turn.
            for _ in 0..if worker < 2 { 1024 } else { 1 } {
                let _ = ring.push(RingFrame { port: OUT, frame: frame(u16::try_from(worker).unwrap(), 0) });
            }
        }
        tx.turn(Instant::ZERO, &mut |_, frames: &mut Vec<Frame>| {
            frames.drain(..).for_each(|frame| sent[usize::from(tag(&frame).0)] += 1)
        });
    }
    assert!(sent[2..].iter().all(|count| *count == 100), "none waits for those that flood: {sent:?}");
    assert_eq!(sent[0], sent[1]);
    assert_eq!(sent[0], 100 * 16 * 4, "who has much is visited again, a bounded number of times");
}

#[test]
fn each_ring_gets_its_turn_when_all_flood() {
    let rule = FlushRule { burst: 1, turns: 1, time: Duration::ZERO };
    let (mut writers, readers): (Vec<_>, Vec<_>) = (0..3).map(|_| RingBuffer::<RingFrame>::new(64)).unzip();
    let mut tx = TxStage::new(rule, 4, readers);
    let mut first = Vec::new();
    for _ in 0..3 {
        for (worker, ring) in writers.iter_mut().enumerate() {
            (0..4).for_each(|_| {
                drop(ring.push(RingFrame { port: OUT, frame: frame(u16::try_from(worker).unwrap(), 0) }))
            });
        }
        let mut order = Vec::new();
        tx.turn(Instant::ZERO, &mut |_, frames: &mut Vec<Frame>| {
            order.extend(frames.drain(..).map(|frame| tag(&frame).0))
        });
        first.push(order[0]);
    }
    first.sort_unstable();
    assert_eq!(first, [0, 1, 2]);
}

#[test]
fn frames_for_a_port_that_is_gone_are_dropped() {
    let mut bench = Bench::new(Settings { workers: 1, ..SETTINGS });
    bench.receive((0..3).map(|number| frame(1, number)).collect());
    while bench.tx.is_empty() {
        bench.now += Duration::from_micros(1);
        bench.rx.turn(bench.now, &mut bench.pool);
        bench.work(0);
    }
    bench.send();
    assert!(bench.sent.is_empty() && !bench.tx.is_empty());
    assert_eq!(bench.tx.forget(OUT).len(), 3);
    assert!(bench.tx.is_empty());
}
