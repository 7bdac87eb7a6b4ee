//! Tests of queues in virtual time: the scheduler's guarantees on random traffic, and each guarantee by example.
use super::scheduler::{BURST_BYTES, MAX_FRAMES};
use super::*;
use crate::link::{LinkEmulator, LinkShape};
use crate::memory::{self, MemoryPort};
use proptest::prelude::*;
use std::time::Duration;
use weir_units::ByteSize;

const MBIT: u64 = 1_000_000;
const RATE: Bps = Bps(10 * MBIT);
const LONGEST: u64 = 1500;

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

fn config(text: &str) -> PortQueueConfig {
    text.parse().unwrap()
}

fn line(rate: Option<Bps>, configs: &[&str]) -> QueueScheduler<u64> {
    let mut line = QueueScheduler::new(rate);
    configs.iter().for_each(|text| line.set(Instant::ZERO, config(text)).unwrap());
    line
}

/// Runs a line whose queues never run empty. Returns the bytes that each queue sent.
fn saturate(line: &mut QueueScheduler<u64>, frames: &[(u32, u64)], time: Duration) -> Vec<u64> {
    let end = Instant::ZERO + time;
    let mut got = vec![0; frames.len()];
    for (queue, bytes) in frames {
        (0..2).for_each(|_| line.push(Instant::ZERO, *queue, *bytes, *bytes, u64::from(*queue)).unwrap());
    }
    while let Some(begin) = line.next_begin().filter(|begin| *begin < end) {
        let QueueDeparture { item, .. } = line.pop(begin).unwrap();
        let place = frames.iter().position(|(queue, _)| u64::from(*queue) == item).unwrap();
        let (queue, bytes) = frames[place];
        got[place] += bytes;
        line.push(begin, queue, bytes, bytes, item).unwrap();
    }
    got
}

/// Returns the share of each queue in the line during ten seconds, in thousandths of `RATE`.
fn shares(configs: &[&str], frames: &[(u32, u64)]) -> Vec<u64> {
    let got = saturate(&mut line(Some(RATE), configs), frames, Duration::from_secs(10));
    got.iter().map(|bytes| (bytes * 8 * 1000 + RATE.0 * 5) / (RATE.0 * 10)).collect()
}

#[test]
fn minima_come_first_and_the_rest_is_shared() {
    let both = [(1, 1500), (2, 1500)];
    assert_eq!(shares(&["1:min=6Mbit/s", "2"], &both), [800, 200]);
    assert_eq!(shares(&["1:min=6Mbit/s", "2:min=4Mbit/s"], &both), [600, 400]);
    assert_eq!(shares(&["1", "2"], &[(1, 100), (2, 1500)]), [500, 500], "by bytes, not by frames");
    assert_eq!(shares(&["1:min=6Mbit/s"], &[(2, 1000)]), [1000], "what nobody wants is not kept");
}

#[test]
fn nothing_goes_beyond_its_maximum() {
    let both = [(1, 1000), (2, 1000)];
    assert_eq!(shares(&["1:max=1Mbit/s", "2"], &both), [100, 900]);
    assert_eq!(shares(&["1:max=1Mbit/s", "2:max=2Mbit/s"], &both), [100, 200]);
    assert_eq!(shares(&["1:min=3Mbit/s:max=3Mbit/s", "2"], &both), [300, 700]);
    let mut unlimited = line(None, &["1:max=1Mbit/s"]);
    assert_eq!(saturate(&mut unlimited, &[(1, 1250)], Duration::from_secs(1))[0], 125_000);
}

#[test]
fn priorities_share_what_minima_leave() {
    let both = [(1, 1000), (2, 1000), (3, 1000)];
    assert_eq!(shares(&["1:priority=1", "2:min=2Mbit/s", "3"], &both), [800, 200, 0]);
    assert_eq!(shares(&["1:priority=1:max=4Mbit/s", "2:min=2Mbit/s", "3"], &both), [400, 400, 200]);
}

#[test]
fn a_slower_line_scales_minima_down() {
    let mut line = line(Some(RATE), &["1:min=6Mbit/s", "2:min=3Mbit/s"]);
    line.set_rate(Some(Bps(RATE.0 / 2)));
    let got = saturate(&mut line, &[(0, 1000), (1, 1000), (2, 1000)], Duration::from_secs(10));
    let percent = got.iter().map(|bytes| bytes * 8 * 100 / (RATE.0 / 2 * 10));
    assert_eq!(percent.map(|share| (share + 1) / 3).collect::<Vec<_>>(), [0, 22, 11]);
    line.set_rate(Some(RATE));
    assert_eq!(line.rate(), Some(RATE));
}

#[test]
fn too_much_is_refused_by_name() {
    let mut line = line(Some(RATE), &["1:min=6Mbit/s"]);
    let problem = line.set(Instant::ZERO, config("2:min=5Mbit/s")).unwrap_err();
    assert_eq!(
        problem,
        "queue 2: found min=5Mbit/s, expected at most 4Mbit/s: what others leave of the port's 10Mbit/s"
    );
    line.set(Instant::ZERO, config("1:min=10Mbit/s")).unwrap();
    let wrong = PortQueueConfig { priority: 9, ..config("2") };
    assert_eq!(line.set(Instant::ZERO, wrong), Err("queue 2: found priority=9, expected 0 to 7".into()));
    let many = u32::try_from(MAX_QUEUES).unwrap();
    (2..many).for_each(|id| line.set(Instant::ZERO, PortQueueConfig::new(id)).unwrap());
    let problem = line.set(Instant::ZERO, PortQueueConfig::new(many)).unwrap_err();
    assert!(problem.starts_with("queue 256: there are 256 queues already"), "{problem}");
}

#[test]
fn buffers_drop_the_tail() {
    let mut line = line(Some(RATE), &["1:buffer=3000B"]);
    let push = |line: &mut QueueScheduler<u64>, bytes| line.push(Instant::ZERO, 1, bytes, bytes, 0);
    push(&mut line, 9000).unwrap();
    assert!(line.pop(Instant::ZERO).is_some(), "an idle line takes a frame of any length");
    push(&mut line, 2000).unwrap();
    assert_eq!(push(&mut line, 1001), Err(0));
    push(&mut line, 1000).unwrap();
    assert_eq!(push(&mut line, 60), Err(0));
    let state = line.queues().nth(1).unwrap();
    assert_eq!(state.counters, QueueCounters { tx_packets: 1, tx_bytes: 9000, tx_full: 2 });
    assert_eq!(state.waiting_bytes, 3000);
    let mut line = self::line(Some(RATE), &["1:buffer=64MB"]);
    let refused = (0..MAX_FRAMES + 10).filter(|_| push(&mut line, 60).is_err()).count();
    assert_eq!(refused, 10);
}

#[test]
fn removing_the_default_queue_takes_its_settings() {
    let mut line = line(Some(RATE), &["0:max=1Mbit/s", "7"]);
    line.push(Instant::ZERO, 7, 60, 60, 70).unwrap();
    line.push(Instant::ZERO, 9, 60, 60, 0).unwrap();
    assert_eq!(line.remove(7), Some(vec![70]));
    assert_eq!(line.remove(7), None);
    assert_eq!(line.remove(0), Some(vec![]));
    let states: Vec<_> = line.queues().map(|state| (state.config, state.waiting_bytes)).collect();
    assert_eq!(states, [(PortQueueConfig::default(), 60)]);
}

/// An arrival of random traffic: after a pause, a frame for a queue.
#[derive(Debug, Clone)]
struct Arrival {
    pause_ns: u64,
    queue: u32,
    bytes: u64,
}

#[derive(Debug, Clone)]
struct Traffic {
    configs: Vec<PortQueueConfig>,
    arrivals: Vec<Arrival>,
}

/// Generates up to four queues whose minima fit the line, and arrivals that overload it for a while.
fn traffic() -> impl Strategy<Value = Traffic> {
    let limits = (proptest::option::of(1..=RATE.0 / 4), proptest::option::of(1..=RATE.0), 0..3_u8, 3000..20_000_u64);
    let arrival = (prop_oneof![Just(0), 0..2_000_000_u64], 0..6_u32, 60..=LONGEST);
    let arrivals = proptest::collection::vec(arrival, 1..200);
    (proptest::collection::vec(limits, 1..=4), arrivals).prop_map(|(limits, arrivals)| Traffic {
        configs: limits
            .into_iter()
            .zip(0..)
            .map(|((min, max, priority, buffer), id)| PortQueueConfig {
                id,
                min: min.map(Bps),
                max: max.map(|max| Bps(max.max(min.unwrap_or(1)).max(50_000))),
                buffer: ByteSize(buffer),
                priority,
            })
            .collect(),
        arrivals: arrivals.into_iter().map(|(pause_ns, queue, bytes)| Arrival { pause_ns, queue, bytes }).collect(),
    })
}

/// A frame that left the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Sent {
    queue: u32,
    serial: usize,
    bytes: u64,
    arrived: u64,
    begins: u64,
    ends: u64,
}

/// Runs traffic through a line. Returns the frames that left and the number of dropped frames. Also takes due frames
/// every `look_ns`.
fn run(traffic: &Traffic, look_ns: u64) -> (Vec<Sent>, usize) {
    let mut line: QueueScheduler<Sent> = QueueScheduler::new(Some(RATE));
    traffic.configs.iter().for_each(|config| line.set(Instant::ZERO, *config).unwrap());
    let (mut now, mut sent, mut dropped) = (0, Vec::new(), 0);
    let take = |line: &mut QueueScheduler<Sent>, now: u64, sent: &mut Vec<Sent>| {
        while let Some(QueueDeparture { item, begins, ends }) = line.pop(at(now)) {
            sent.push(Sent { begins: begins.as_nanos(), ends: ends.as_nanos(), ..item });
        }
    };
    for (serial, Arrival { pause_ns, queue, bytes }) in traffic.arrivals.iter().enumerate() {
        let next = now + pause_ns;
        while now.saturating_add(look_ns) < next {
            now += look_ns;
            take(&mut line, now, &mut sent);
        }
        now = next;
        take(&mut line, now, &mut sent);
        let queue = if line.has(*queue) { *queue } else { 0 };
        let item = Sent { queue, serial, bytes: *bytes, arrived: now, begins: 0, ends: 0 };
        dropped += usize::from(line.push(at(now), queue, *bytes, *bytes, item).is_err());
        let states: Vec<QueueState> = line.queues().collect();
        assert!(states.iter().all(|state| state.waiting_bytes <= state.config.buffer.0.max(LONGEST)));
    }
    take(&mut line, u64::MAX, &mut sent);
    let counted: u64 = line.queues().map(|state| state.counters.tx_full).sum();
    assert_eq!((usize::try_from(counted), line.next_begin()), (Ok(dropped), None));
    (sent, dropped)
}

/// Returns the bytes that a rate allows in a time, rounded down.
fn bytes_in(rate: Bps, ns: u64) -> u64 {
    u64::try_from(u128::from(rate.0) * u128::from(ns) / 8_000_000_000).unwrap()
}

proptest! {
    #[test]
    fn nothing_is_lost_and_queues_keep_their_order(traffic in traffic()) {
        let (sent, dropped) = run(&traffic, u64::MAX);
        prop_assert_eq!(sent.len() + dropped, traffic.arrivals.len());
        for queue in 0..4 {
            let serials: Vec<usize> = sent.iter().filter(|s| s.queue == queue).map(|s| s.serial).collect();
            prop_assert!(serials.is_sorted());
        }
    }

    #[test]
    fn frames_follow_one_another_on_the_line(traffic in traffic()) {
        let (sent, _) = run(&traffic, u64::MAX);
        for pair in sent.windows(2) {
            prop_assert!(pair[1].begins >= pair[0].ends);
        }
        for s in &sent {
            prop_assert!(s.begins >= s.arrived);
            prop_assert!(bytes_in(RATE, s.ends - s.begins + 1) >= s.bytes);
        }
    }

    #[test]
    fn when_somebody_looks_changes_nothing(traffic in traffic(), look_ns in 10_000..3_000_000_u64) {
        prop_assert_eq!(run(&traffic, u64::MAX), run(&traffic, look_ns));
    }

    #[test]
    fn no_queue_goes_beyond_its_maximum(traffic in traffic()) {
        let (sent, _) = run(&traffic, u64::MAX);
        for config in &traffic.configs {
            let Some(max) = config.max else { continue };
            let ours: Vec<&Sent> = sent.iter().filter(|s| s.queue == config.id).collect();
            for (first, start) in ours.iter().enumerate() {
                let mut bytes = 0;
                for end in &ours[first..] {
                    bytes += end.bytes;
                    let allowed = bytes_in(max, end.begins - start.begins) + BURST_BYTES + LONGEST;
                    prop_assert!(bytes <= allowed, "{config}: {bytes} of {allowed}");
                }
            }
        }
    }

    #[test]
    fn the_line_works_while_somebody_may_send(traffic in traffic()) {
        let (sent, _) = run(&traffic, u64::MAX);
        let unlimited = |queue: u32| traffic.configs.iter().any(|c| c.id == queue && c.max.is_none());
        for s in sent.iter().filter(|s| unlimited(s.queue)) {
            let between = |other: &Sent| other.ends.min(s.begins).saturating_sub(other.begins.max(s.arrived));
            let busy: u64 = sent.iter().map(between).sum();
            // Each end and begin is rounded up to a nanosecond.
            prop_assert!(busy + sent.len() as u64 >= s.begins - s.arrived, "idle before {s:?}");
        }
    }

    #[test]
    fn a_queue_that_always_wants_gets_its_minimum(
        mut traffic in traffic(),
        min in 100_000..=RATE.0 / 4,
        lengths in proptest::collection::vec(60..=LONGEST, 1..8),
    ) {
        // Queue 9 always has a frame, whatever the others do.
        traffic.configs.truncate(3);
        let mut line: QueueScheduler<u32> = QueueScheduler::new(Some(RATE));
        traffic.configs.iter().for_each(|config| line.set(Instant::ZERO, *config).unwrap());
        line.set(Instant::ZERO, PortQueueConfig { min: Some(Bps(min)), ..PortQueueConfig::new(9) }).unwrap();
        let mut lengths = lengths.into_iter().cycle();
        let mut next = || lengths.next().unwrap();
        let (mut now, mut got) = (0, 0);
        let first = next();
        line.push(at(0), 9, first, first, 9).unwrap();
        let second = next();
        line.push(at(0), 9, second, second, 9).unwrap();
        let mut waiting = std::collections::VecDeque::from([first, second]);
        for Arrival { pause_ns, queue, bytes } in traffic.arrivals {
            now += pause_ns;
            while let Some(begin) = line.next_begin().filter(|begin| begin.as_nanos() <= now) {
                let QueueDeparture { item, ends, .. } = line.pop(begin).unwrap();
                if item == 9 {
                    got += waiting.pop_front().unwrap();
                    let more = next();
                    waiting.push_back(more);
                    line.push(begin, 9, more, more, 9).unwrap();
                }
                // One frame may be due soon, one may wait for its turn, and one may be on the line.
                let owed = bytes_in(Bps(min), ends.as_nanos()).saturating_sub(3 * LONGEST);
                prop_assert!(got >= owed, "{got} of {owed} bytes after {ends:?}");
            }
            let _ = line.push(at(now), queue, bytes, bytes, queue);
        }
    }
}

/// Returns queues in front of a link around one end of a memory pair, and the other end.
fn queued(shape: LinkShape, configs: &[&str]) -> (Box<dyn Port>, MemoryPort) {
    let (near, far) = memory::pair(64).unwrap();
    let link = LinkEmulator::new(Box::new(near), shape, LinkShape::default());
    (super::queued(Box::new(link), configs.iter().map(|text| config(text)).collect()).unwrap(), far)
}

fn frames(list: &[(u32, u8)]) -> Vec<Frame> {
    let frame = |(queue, byte): &(u32, u8)| {
        let mut frame = Frame::from_bytes(&[*byte; 1000]);
        frame.queue = *queue;
        frame
    };
    list.iter().map(frame).collect()
}

fn arrived(port: &mut dyn Port, far: &mut MemoryPort, now: Duration) -> Vec<u8> {
    let (mut pool, mut batch) = (FramePool::default(), Vec::new());
    port.receive(Instant::ZERO + now, &mut pool, &mut Vec::new(), 8).unwrap();
    far.receive(Instant::ZERO, &mut pool, &mut batch, 100).unwrap();
    assert!(batch.iter().all(|frame| frame.queue == DEFAULT_QUEUE), "queues end with the port");
    batch.iter().map(|frame| frame.bytes()[0]).collect()
}

/// 8 Mbit/s: a frame of 1000 bytes takes one millisecond.
const SLOW: LinkShape = LinkShape {
    rate: Some(Bps(8 * MBIT)),
    delay: Duration::from_millis(5),
    buffer: Some(ByteSize(3000)),
    jitter: None,
    loss: None,
};
const MS: Duration = Duration::from_millis(1);

#[test]
fn a_link_keeps_its_rate_delay_and_buffer() {
    let (mut port, mut far) = queued(SLOW, &["1:priority=1"]);
    assert_eq!(port.link().speed, SLOW.rate);
    let mut batch = frames(&[(0, 1), (0, 2), (0, 3), (0, 4), (0, 5), (1, 6)]);
    port.transmit(Instant::ZERO, &mut FramePool::default(), &mut batch).unwrap();
    assert!(batch.is_empty());
    assert_eq!(port.counters().tx_full, 1, "one is on the line, three wait");
    assert_eq!(port.next_wake(), Some(Instant::ZERO + MS));
    // Even if the engine runs too late, the first frame left after one millisecond.
    assert_eq!(arrived(&mut *port, &mut far, MS * 6 - Duration::from_nanos(1)), [] as [u8; 0]);
    for millisecond in 6..=10 {
        let expected: &[u8] = match millisecond {
            6 => &[1],
            7 => &[6],
            8 => &[2],
            9 => &[3],
            10 => &[4],
            _ => &[],
        };
        assert_eq!(arrived(&mut *port, &mut far, MS * millisecond), expected, "after {millisecond} ms");
    }
    assert_eq!((port.next_wake(), port.counters().tx_packets), (None, 5));
}

#[test]
fn a_port_without_link_gets_the_first_frame_at_once() {
    let (near, mut far) = memory::pair(64).unwrap();
    let mut port = super::queued(Box::new(near), vec![config("1:max=8Mbit/s")]).unwrap();
    let now = Instant::ZERO + MS * 100;
    let mut batch = frames(&[(1, 1); 9]);
    batch.extend(frames(&[(5, 2)]));
    port.transmit(now, &mut FramePool::default(), &mut batch).unwrap();
    assert_eq!(
        arrived(&mut *port, &mut far, MS * 100),
        [1, 1, 1, 1, 1, 1, 1, 2],
        "the burst, then one, and another queue's"
    );
    assert_eq!(arrived(&mut *port, &mut far, MS * 102), [1, 1]);
    assert_eq!(port.queues(TransmitQueues::strays).unwrap(), 1);
}

#[test]
fn frames_of_a_removed_queue_go_to_the_default_one() {
    let (mut port, mut far) = queued(LinkShape { delay: Duration::ZERO, ..SLOW }, &["1"]);
    let mut pool = FramePool::default();
    let mut batch = frames(&[(1, 1), (1, 2), (1, 3), (1, 4), (1, 5), (1, 6), (0, 7)]);
    port.transmit(Instant::ZERO, &mut pool, &mut batch).unwrap();
    let mut remove = |id| port.queues_mut(|queues| queues.remove(Instant::ZERO, id, &mut pool)).unwrap();
    assert!(!remove(9));
    assert!(remove(1));
    assert_eq!(port.counters().tx_full, 3, "the default queue holds three frames, one of its own");
    assert_eq!(arrived(&mut *port, &mut far, MS * 20), [1, 7, 2, 3]);
}
