//! Sums up an item of traffic from what its ends measured.
use crate::measured::{TrafficMeasurement, UndisturbedDelays};
use crate::result::TrafficResult;
use std::time::Duration;
use weir_scenario::{Scenario, TrafficExpectation, TrafficItem, TrafficKind};
use weir_traffic::TimeHistogram;
use weir_units::StallLog;

/// Returns how long an item of traffic takes, from its start.
pub fn length(item: &TrafficItem) -> Duration {
    match item.kind {
        TrafficKind::Ping { count, interval } => interval.saturating_mul(count),
        TrafficKind::Tcp { duration } | TrafficKind::Udp { duration, .. } => duration,
    }
}

/// Returns the result of an item of traffic. `measured` are its ends' measurements; `through` is true if the item
/// finished. `stops` are those of the machine meanwhile; `None` in virtual time, or if nothing watched the
/// machine.
pub fn traffic_result(
    scenario: &Scenario,
    item: &TrafficItem,
    measured: TrafficMeasurement,
    through: bool,
    stops: Option<&StallLog>,
) -> TrafficResult {
    let reached = measured.received > 0;
    let tcp = matches!(item.kind, TrafficKind::Tcp { .. });
    let ping = matches!(item.kind, TrafficKind::Ping { .. });
    let packets = |count: u64| (!tcp).then_some(count);
    let lost = measured.sent.saturating_sub(measured.received);
    let seconds = measured.span.as_secs_f64();
    let delays = measured.delays.summary();
    let after_first = measured.after_first.summary();
    let UndisturbedDelays { in_stops, others } =
        stops.map_or_else(UndisturbedDelays::default, |stops| measured.undisturbed(stops));
    let all = if after_first.is_some() { &measured.after_first } else { &measured.delays };
    TrafficResult {
        kind: if tcp {
            "tcp"
        } else if ping {
            "ping"
        } else {
            "udp"
        },
        from: scenario.hosts[item.from].name.clone(),
        to: scenario.hosts[item.to].name.clone(),
        address: item.address,
        expect: item.expect,
        reached,
        ok: reached == (item.expect == TrafficExpectation::Reach),
        partial: !through,
        asked: packets(measured.asked),
        sent: packets(measured.sent),
        received: measured.received,
        loss: packets(measured.sent).filter(|sent| *sent > 0).map(|sent| lost as f64 / sent as f64),
        rtt: delays.filter(|_| ping),
        rtt_after_first: after_first,
        delay: delays.filter(|_| !ping),
        in_stops,
        undisturbed: others.as_ref().and_then(TimeHistogram::summary),
        late: stops.and(measured.late.summary()),
        quantiles_us: others.as_ref().unwrap_or(all).quantiles_us(),
        goodput_bps: (!ping && seconds > 0.0).then(|| measured.payload_bytes as f64 * 8.0 / seconds),
        problem: measured.problem,
    }
}
