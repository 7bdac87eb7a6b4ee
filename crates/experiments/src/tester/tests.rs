use super::*;
use std::sync::PoisonError;
use weir_packet::{Frame, FramePool, MacAddr, craft::FrameBuilder};
use weir_units::{Clock, SystemClock};

fn at(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

const WINDOW: TesterWindow =
    TesterWindow { begin: Instant::ZERO, from: Instant::from_nanos(1_000_000), until: Instant::from_nanos(3_000_000) };

fn template(vary: VaryingHeaderField) -> TesterFrameTemplate {
    let frame = FrameBuilder::ethernet(MacAddr([2; 6]), MacAddr([4; 6]))
        .mpls(0, 0, 64)
        .ipv4([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
    TesterFrameTemplate::new(&frame.udp(1, 2).payload(&[0; 40]).frame(), 100, vary)
}

fn paced(rate: f64) -> TesterLoad {
    TesterLoad {
        bulk: [
            Some(BulkFlow { rate: BulkFlowRate::PerSecond(rate), template: template(VaryingHeaderField::Nothing) }),
            None,
        ],
        ping: None,
    }
}

fn receive(port: &mut dyn Port, now: Instant, max: usize) -> Vec<Frame> {
    let mut batch = Vec::new();
    port.receive(now, &mut FramePool::default(), &mut batch, max).unwrap();
    batch
}

fn taken(end: &Arc<Mutex<TesterResults>>) -> TesterResults {
    std::mem::take(&mut *end.lock().unwrap_or_else(PoisonError::into_inner))
}

#[test]
fn frames_are_due_at_their_rate_whenever_they_are_asked_for() {
    // A frame each microsecond.
    let ([mut first, _], [seen, _]) = tester(&paced(1e6), WINDOW, SystemClock::start(), 1);
    assert_eq!(receive(&mut *first, at(10), 64).len(), 10);
    assert_eq!(first.next_wake(), Some(at(10)));
    assert_eq!(receive(&mut *first, at(500), 64).len(), 64, "at most what is asked for");
    assert_eq!(receive(&mut *first, at(2000), 4000).len(), 2000 - 74);
    assert_eq!(receive(&mut *first, at(9000), 4000).len(), 1000, "none is due after the end");
    assert_eq!(first.next_wake(), None);
    let seen = taken(&seen);
    assert_eq!((seen.due, seen.missed), (2000, 0), "the first millisecond does not count");
}

#[test]
fn a_full_ring_misses_frames_and_counts_them() {
    let ([mut first, _], [seen, _]) = tester(&paced(1e7), WINDOW, SystemClock::start(), 1);
    assert!(receive(&mut *first, at(1000), 0).is_empty());
    // 10000 frames are due meanwhile, 4096 fit into the ring.
    assert_eq!(receive(&mut *first, at(2000), 10_000).len(), 4096);
    let seen = taken(&seen);
    assert_eq!((seen.due, seen.missed), (10_000, 10_000 - 4096));
}

#[test]
fn what_arrives_is_counted_by_when_it_was_due() {
    let clock = SystemClock::start();
    let now = clock.now();
    let millis = std::time::Duration::from_millis;
    let window = TesterWindow { begin: now, from: now + millis(1), until: now + millis(3) };
    let ([mut first, mut second], [sent, seen]) = tester(&paced(1e6), window, clock, 1);
    let mut frames = receive(&mut *first, now + millis(5), 4000);
    assert_eq!(frames.len(), 3000);
    let mut pool = FramePool::default();
    frames.push(Frame::from_bytes(&[0; 100]));
    second.transmit(now, &mut pool, &mut frames).unwrap();
    let (sent, seen) = (taken(&sent), taken(&seen));
    assert_eq!((sent.due, seen.arrived), (2000, 2000), "neither the warm-up nor what no tester made");
}

#[test]
fn as_much_as_possible_is_what_comes_back() {
    let load = TesterLoad {
        bulk: [Some(BulkFlow { rate: BulkFlowRate::Most, template: template(VaryingHeaderField::Nothing) }), None],
        ping: None,
    };
    let ([mut first, mut second], _) = tester(&load, WINDOW, SystemClock::start(), 1);
    let mut frames = receive(&mut *first, at(10), 4000);
    let window = frames.len();
    assert!(window > 0 && receive(&mut *first, at(20), 4000).is_empty(), "until some have arrived");
    frames.truncate(7);
    second.transmit(at(20), &mut FramePool::default(), &mut frames).unwrap();
    assert_eq!(receive(&mut *first, at(30), 4000).len(), 7);
    assert!(receive(&mut *first, at(40), 4000).is_empty());
    let later = receive(&mut *first, WINDOW.until - std::time::Duration::from_nanos(1), 4000);
    assert!(later.is_empty(), "what is under way is not lost that soon");
}

#[test]
fn labels_are_spread_over_all() {
    let load = TesterLoad {
        bulk: [
            Some(BulkFlow { rate: BulkFlowRate::PerSecond(1e6), template: template(VaryingHeaderField::MplsLabel(8)) }),
            None,
        ],
        ping: None,
    };
    let ([mut first, _], _) = tester(&load, WINDOW, SystemClock::start(), 1);
    let frames = receive(&mut *first, at(1000), 1000);
    let mut counts = [0; 8];
    for frame in &frames {
        let parsed = weir_packet::parse(frame.bytes(), weir_packet::PortNo(1)).unwrap();
        counts[usize::try_from(parsed.key.get(weir_packet::Field::MplsLabel)).unwrap()] += 1;
    }
    assert!(counts.iter().all(|count| (75..175).contains(count)), "{counts:?}");
}

#[test]
fn pings_are_answered_and_timed_from_when_they_were_due() {
    let clock = SystemClock::start();
    let now = clock.now();
    let millis = std::time::Duration::from_millis;
    let window = TesterWindow { begin: now, from: now, until: now + millis(10) };
    let ping = (millis(1), [template(VaryingHeaderField::Nothing), template(VaryingHeaderField::Nothing)]);
    let ([mut first, mut second], [seen, _]) =
        tester(&TesterLoad { bulk: [None, None], ping: Some(ping) }, window, clock, 1);
    let mut pool = FramePool::default();
    let mut requests = receive(&mut *first, now + millis(2), 64);
    assert_eq!((requests.len(), second.next_wake()), (3, None));
    second.transmit(now, &mut pool, &mut requests).unwrap();
    assert!(second.next_wake().is_some_and(|at| at <= now), "answers wait");
    let mut replies = receive(&mut *second, now + millis(2), 64);
    first.transmit(now, &mut pool, &mut replies).unwrap();
    assert!(receive(&mut *first, now + millis(2), 64).is_empty(), "replies are not answered");
    let seen = taken(&seen);
    assert_eq!((seen.pings, seen.round_trips.len()), (3, 3));
}
