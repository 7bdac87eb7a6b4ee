use super::*;
use proptest::prelude::*;
use weir_units::Instant;

fn probe(sequence: u32, sent_ns: u64) -> ProbeHeader {
    ProbeHeader { run: 1, sequence, sent_ns, is_new_flow: false, counts: true, is_wall: false }
}

/// Records packets (number, sent, received), in order of arrival.
fn recorded(packets: &[(u32, u64, u64)]) -> ProbeRecorder {
    let mut recorder = ProbeRecorder::default();
    for (number, sent, came) in packets {
        recorder.record(*came, &probe(*number, *sent), 100);
    }
    recorder
}

#[test]
fn loss_and_duplicates_are_counted() {
    let recorder = recorded(&[(0, 0, 10), (1, 5, 15), (1, 5, 16), (4, 20, 31)]);
    let report = recorder.report(Some(6), None, None);
    assert_eq!((report.sent, report.received, report.lost, report.duplicates), (6, 3, 3, 1));
    assert_eq!((report.loss, report.bytes), (Some(0.5), 300));
    let report = recorder.report(None, None, None);
    assert_eq!((report.sent, report.lost), (5, 2), "as the numbers say");
}

#[test]
fn reordering_is_as_rfc_4737_has_it() {
    // The RFC's example 7.2 (appendix): 1 2 3 4 5 6 8 7 9 10: one reordered packet with extent 1.
    let order = [1, 2, 3, 4, 5, 6, 8, 7, 9, 10];
    let packets: Vec<_> = order.iter().zip(1..).map(|(number, at)| (*number, 0, at * 68_000)).collect();
    let report = recorded(&packets).report(None, None, None);
    let found = report.reordering;
    assert_eq!((found.reordered, found.ratio), (1, Some(0.1)));
    assert_eq!((found.extent_mean, found.extent_max), (Some(1.0), Some(1.0)));
    assert!((found.late.unwrap().mean_us - 68.0).abs() < 0.1);
    // The RFC's example with a block: 1 2 3 6 7 8 4 5 9: two reordered packets, with extents 3 and 4.
    let order = [1, 2, 3, 6, 7, 8, 4, 5, 9];
    let packets: Vec<_> = order.iter().zip(1..).map(|(number, at)| (*number, 0, at * 1000)).collect();
    let found = recorded(&packets).report(None, None, None).reordering;
    assert_eq!((found.reordered, found.extent_mean, found.extent_max), (2, Some(3.5), Some(4.0)));
}

#[test]
fn jitter_follows_its_formula() {
    // Delays of 10, 26, 10, ... us: each differs by 16 us from the last, so J rises by (16 - J) / 16 each time.
    let packets: Vec<_> = (0..100_u32)
        .map(|n| {
            let sent = u64::from(n) * 100_000;
            (n, sent, sent + if n % 2 == 0 { 10_000 } else { 26_000 })
        })
        .collect();
    let report = recorded(&packets).report(None, None, None);
    let expected = 16.0 * (1.0 - (15.0_f64 / 16.0).powi(99));
    assert!((report.jitter.rfc3550_us - expected).abs() < 1e-6, "{:?}", report.jitter);
    let successors = report.jitter.between_successors.unwrap();
    assert_eq!(successors.samples, 99);
    assert!((successors.mean_us - 16.0).abs() < 0.02);
    assert!((report.jitter.above_least_p99_us.unwrap() - 16.0).abs() < 0.05);
}

#[test]
fn only_successors_have_gaps_and_variations() {
    let report =
        recorded(&[(0, 0, 10), (1, 100, 120), (3, 300, 310), (2, 200, 320), (4, 400, 430)]).report(None, None, None);
    assert_eq!(report.gaps.unwrap().gaps, 1, "0 to 1 alone came one after the other");
    // The pairs are 0-1 and 3-4; packet 2 arrived after packet 3.
    assert_eq!(report.jitter.between_successors.unwrap().samples, 2);
}

#[test]
fn classes_and_threshold_part_the_delays() {
    let mut recorder = ProbeRecorder::default();
    for n in 0..100_u32 {
        let is_new_flow = n % 10 == 0;
        let sent = u64::from(n) * 1000;
        let delay = if n % 5 == 0 { 9_000_000 } else { 5_000 };
        recorder.record(sent + delay, &ProbeHeader { is_new_flow, ..probe(n, sent) }, 100);
    }
    let report = recorder.report(None, None, Some(Duration::from_millis(1)));
    assert_eq!(report.new_flows.unwrap().samples, 10);
    assert_eq!(report.known_flows.unwrap().samples, 90);
    assert!((report.effective_new.unwrap() - 0.2).abs() < 1e-9);
}

#[test]
fn what_does_not_count_or_came_too_early_is_in_no_delay() {
    let mut recorder = recorded(&[(0, 100, 90)]);
    assert_eq!(recorder.record(50, &ProbeHeader { counts: false, ..probe(9, 1) }, 64), ReceptionKind::WarmUp);
    let report = recorder.report(None, None, None);
    assert_eq!((report.before_sent, report.warm_up, report.received), (1, 1, 1));
    assert!(report.delay.is_none());
}

#[test]
fn numbers_begin_again_after_32_bits() {
    let packets: Vec<_> = (0..10_u32).map(|n| (n.wrapping_sub(5), 0, u64::from(n))).collect();
    let report = recorded(&packets).report(None, None, None);
    assert_eq!((report.sent, report.received, report.reordering.reordered, report.duplicates), (10, 10, 0, 0));
}

#[test]
fn what_is_older_than_the_window_is_too_late() {
    let window = u32::try_from(order::WINDOW).unwrap();
    let report = recorded(&[(0, 0, 1), (window + 5, 0, 2), (0, 0, 3), (10, 0, 4), (10, 0, 5)]).report(None, None, None);
    assert_eq!((report.too_late, report.duplicates, report.received), (1, 1, 4));
}

#[test]
fn intervals_follow_each_other() {
    let at = Instant::from_nanos;
    let mut series = IntervalSeries::new(Duration::from_millis(1), at(500));
    series.sent();
    series.came(ReceptionKind::Fresh(Some(Duration::from_micros(7))), 100);
    assert_eq!(series.next_over(at(1_000_499)), None);
    let first = series.next_over(at(3_000_500)).unwrap();
    assert_eq!((first.time_s, first.sent, first.received, first.bytes), (0.0, 1, 1, 100));
    let second = series.next_over(at(3_000_500)).unwrap();
    assert_eq!((second.time_s, second.received, second.delay), (0.001, 0, None));
    assert!(series.next_over(at(3_000_500)).is_some() && series.next_over(at(3_000_500)).is_none());
    series.came(ReceptionKind::Duplicate, 1);
    assert_eq!(series.rest().duplicates, 1);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Compares with a direct computation on sets of numbers.
    #[test]
    fn counts_are_right_in_any_order(numbers in prop::collection::vec(0_u32..300, 1..400)) {
        let mut recorder = ProbeRecorder::default();
        let (mut seen, mut duplicates, mut reordered, mut highest) = (std::collections::HashSet::new(), 0, 0, None);
        for (at, number) in (0_u64..).zip(&numbers) {
            recorder.record(at, &probe(*number, 0), 60);
            if !seen.insert(*number) {
                duplicates += 1;
                continue;
            }
            reordered += u64::from(highest.is_some_and(|highest| *number < highest));
            highest = highest.max(Some(*number));
        }
        let report = recorder.report(None, None, None);
        prop_assert_eq!(report.received, seen.len() as u64);
        prop_assert_eq!(report.duplicates, duplicates);
        prop_assert_eq!(report.reordering.reordered, reordered);
        let span = u64::from(numbers.iter().max().unwrap() - numbers.iter().min().unwrap()) + 1;
        prop_assert_eq!(report.sent, span);
    }

    #[test]
    fn any_header_is_taken(packets in prop::collection::vec((any::<u64>(), any::<u32>(), any::<u64>(), any::<[bool; 2]>()), 0..60)) {
        let mut recorder = ProbeRecorder::default();
        for (now, sequence, sent_ns, [is_new_flow, counts]) in packets {
            recorder.record(now, &ProbeHeader { run: 0, sequence, sent_ns, is_new_flow, counts, is_wall: false }, 60);
        }
        let report = recorder.report(None, None, Some(Duration::from_micros(1)));
        prop_assert!(report.received <= report.sent);
    }
}
