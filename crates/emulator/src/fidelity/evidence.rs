//! Sums up the measurements of a run that tell whether the machine was fast enough for the scenario.
use super::{LINK_BOUND, LINK_BOUND_SHARE};
use crate::dilate::Dilation;
use std::collections::HashSet;
use std::time::Duration;
use weir_device::LatenessSnapshot;
use weir_network::certificate::{
    DeviceLatenessSummary, FlowDisturbance, LinkLatenessSummary, OverflowSummary, SenderSummary,
};
use weir_network::result::{DropCount, QUEUE_FULL, StreamResult, SwitchResult, TrafficResult};
use weir_port::link::LinkControl;
use weir_scenario::{Scenario, TrafficExpectation};
use weir_traffic::TimeHistogram;

/// Measurements of a run that tell whether the machine was fast enough, beside the machine's load.
#[derive(Debug, Clone, Default)]
pub(crate) struct LabEvidence {
    /// Lateness of frames on links.
    pub(crate) links: Option<LinkLatenessSummary>,
    /// Lateness of switches with a profile.
    pub(crate) devices: Option<DeviceLatenessSummary>,
    /// Packets that senders sent, of those that they had to send.
    pub(crate) senders: Option<SenderSummary>,
    /// Losses that only the machine explains.
    pub(crate) overflows: Option<OverflowSummary>,
    /// Flows that the machine disturbed.
    pub(crate) flows: Vec<FlowDisturbance>,
    /// Number of switches. From as many as processors on, they do not poll: each release waits for a thread to wake.
    pub(crate) switches: usize,
    /// How the run can be slowed down, which is part of the advice.
    pub(crate) way: SlowingWay,
}

/// Way to run a scenario slower than it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum SlowingWay {
    /// None: streams are sent at the machine's pace.
    #[default]
    None,
    /// The option `--dilate` of the command that runs.
    Option,
    /// The option `--dilate` of `weir emulate`, which is another command.
    Emulation,
}

/// Sums up what senders did; `None` if nothing counts what it sends. Items that are stopped early, fail, or are
/// expected to be isolated say nothing about the machine.
pub(crate) fn of_senders(
    traffic: &[TrafficResult],
    streams: &[StreamResult],
    dilation: Dilation,
) -> Option<SenderSummary> {
    let is_counted = |item: &&TrafficResult| item.reached && !item.partial && item.expect == TrafficExpectation::Reach;
    let counts = traffic.iter().filter(is_counted).filter_map(|item| Some([item.asked?, item.sent?]));
    let [asked, sent] = counts.fold([0, 0], |[asked, sent], [a, s]| [asked + a, sent + s.min(a)]);
    let late = streams.iter().filter_map(|stream| stream.late).map(|late| late.p99_us / dilation.factor());
    let streams_p99_us = late.reduce(f64::max);
    let late = traffic.iter().filter_map(|item| item.late).map(|late| late.p99_us / dilation.factor());
    let datagrams_p99_us = late.reduce(f64::max);
    let is_any = asked > 0 || streams_p99_us.is_some();
    is_any.then_some(SenderSummary { asked, sent, streams_p99_us, datagrams_p99_us })
}

/// Sums up the frames that were lost at ports whose links have neither a rate nor queues: only the receiver's thread
/// can be too slow for them. `None` if no switch moved a frame.
pub(crate) fn of_overflows(
    scenario: &Scenario,
    switches: &[SwitchResult],
    drops: &[DropCount],
) -> Option<OverflowSummary> {
    let mut places = HashSet::new();
    let switch_name = |index: usize| scenario.switches[index].name.as_str();
    for host in scenario.hosts.iter().filter(|host| host.link.rate.is_none() && host.queues.is_empty()) {
        places.insert(host.name.clone());
        places.insert(format!("{} port {} to {}", switch_name(host.switch), host.port, host.name));
    }
    for link in scenario.links.iter().filter(|link| link.spec.rate.is_none() && link.queues.is_empty()) {
        for (end, peer) in link.ends.iter().zip([&link.ends[1], &link.ends[0]]) {
            places.insert(format!("{} port {} to {}", switch_name(end.switch), end.port, switch_name(peer.switch)));
        }
    }
    let is_own = |drop: &&DropCount| drop.reason.ends_with(QUEUE_FULL) && places.contains(&drop.place);
    let worst = drops.iter().filter(is_own).max_by_key(|drop| drop.packets);
    let frames = switches.iter().map(|switch| switch.rx_packets + switch.tx_packets).sum();
    (frames > 0).then(|| OverflowSummary {
        frames,
        lost: drops.iter().filter(is_own).map(|drop| drop.packets).sum(),
        worst: worst.map_or_else(String::new, |drop| drop.place.clone()),
    })
}

/// Summarises the latenesses of links; `None` without frames.
pub(crate) fn of_links<'a>(
    links: impl Iterator<Item = &'a LinkControl>,
    dilation: Dilation,
) -> Option<LinkLatenessSummary> {
    // An end of a link between switches delays only what it sends.
    let delay = |link: &LinkControl| link.wanted().egress.delay.max(link.wanted().ingress.delay);
    of_latenesses(links.map(|link| (delay(link), link.lateness().counts())), dilation)
}

/// Summarises latenesses of links. Each link has its delay, and pairs of lateness in ns and number of frames with it,
/// all in this machine's time. `None` without frames.
pub(crate) fn of_latenesses<C: Iterator<Item = (u64, u64)>>(
    links: impl Iterator<Item = (Duration, C)>,
    dilation: Dilation,
) -> Option<LinkLatenessSummary> {
    /// Parts of a bound in which latenesses are counted.
    const PARTS: f64 = 1000.0;
    let mut late = TimeHistogram::default();
    // Latenesses in thousandths of the link's bound, in the histogram's unit.
    let mut in_bounds = TimeHistogram::default();
    for (delay, counts) in links {
        let bound = LINK_BOUND.max(dilation.told(delay).mul_f64(LINK_BOUND_SHARE));
        for (ns, count) in counts {
            let told_ns = dilation.told_ns(ns);
            late.record_many_ns(told_ns, count);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates; never negative")]
            in_bounds.record_many_ns((told_ns as f64 / bound.as_nanos() as f64 * PARTS).ceil() as u64, count);
        }
    }
    let over = |us| late.share_above(Duration::from_micros(us)).unwrap_or_default();
    late.summary().map(|by| LinkLatenessSummary {
        by,
        share_over_20us: over(20),
        share_over_50us: over(50),
        share_late: in_bounds.share_above(Duration::from_nanos(1000)).unwrap_or_default(),
        p99_in_bounds: in_bounds.quantile_us(0.99).unwrap_or_default(),
    })
}

/// Summarises the latenesses of switches, measured in this machine's time; `None` if there were no releases.
pub(crate) fn of_devices(switches: &[LatenessSnapshot], dilation: Dilation) -> Option<DeviceLatenessSummary> {
    let worst =
        |time: fn(&LatenessSnapshot) -> f64| switches.iter().map(time).fold(0.0, f64::max) * 1e6 / dilation.factor();
    let samples: u64 = switches.iter().map(|switch| switch.count).sum();
    let late: u64 = switches.iter().map(|switch| switch.late).sum();
    (samples > 0).then(|| DeviceLatenessSummary {
        samples,
        worst_p50_us: worst(|switch| switch.p50_s),
        worst_p99_us: worst(|switch| switch.p99_s),
        max_us: worst(|switch| switch.max_s),
        share_over_20us: late as f64 / samples as f64,
    })
}

/// Returns the flows of a run's items of traffic that the machine disturbed. Losses are the machine's as far as they
/// exceed what the scenario itself loses, by the formulas.
pub(crate) fn of_flows(
    scenario: &Scenario,
    traffic: &[TrafficResult],
    drops: &[DropCount],
    dilation: Dilation,
) -> Vec<FlowDisturbance> {
    let expected = if lost_at_all(traffic) { super::expected::expected_losses(scenario) } else { Vec::new() };
    disturbances(traffic, &expected, drops, dilation)
}

/// Returns what the machine did to each item, without those that it left alone. `expected` are the shares of packets
/// that the scenario itself loses, by item; `None` if that is not known.
pub(crate) fn disturbances(
    traffic: &[TrafficResult],
    expected: &[Option<f64>],
    drops: &[DropCount],
    dilation: Dilation,
) -> Vec<FlowDisturbance> {
    let losses: Vec<u64> = (0..traffic.len())
        .map(|place| expected.get(place).copied().flatten().map_or(0, |share| lost_by_machine(&traffic[place], share)))
        .collect();
    // Packets that a table, a meter or a link's own losses took, which formulas may not know.
    let explained: u64 = drops.iter().filter(|drop| !drop.reason.ends_with(QUEUE_FULL)).map(|drop| drop.packets).sum();
    let is_machines = explained < losses.iter().sum::<u64>() / 2;
    let of_item = |(place, (item, lost)): (usize, (&TrafficResult, u64))| {
        let (asked, sent) = (item.asked.unwrap_or_default(), item.sent.unwrap_or_default());
        let is_whole = !item.partial && item.reached && item.expect == TrafficExpectation::Reach;
        let late = item.late.map(|late| late.p99_us / dilation.factor());
        let delays = item.rtt_after_first.or(item.rtt).or(item.delay).map_or(0, |delay| delay.samples);
        let flow = FlowDisturbance {
            item: place,
            flow: format!("{} {} > {}", item.kind, item.from, item.to),
            asked,
            not_sent: if is_whole { asked.saturating_sub(sent) } else { 0 },
            lost: if is_whole && is_machines { lost } else { 0 },
            late_p99_us: late.filter(|us| *us > super::DATAGRAMS_LATE_US[0]),
            delays,
            in_stops: item.in_stops,
            set_aside: item.undisturbed.is_some(),
        };
        let is_disturbed = flow.not_sent + flow.lost + flow.in_stops > 0 || flow.late_p99_us.is_some();
        is_disturbed.then_some(flow)
    };
    traffic.iter().zip(losses).enumerate().filter_map(of_item).collect()
}

/// Returns how many of an item's packets are lost beyond the share that the scenario loses; 0 if the formulas may be
/// that far off.
fn lost_by_machine(item: &TrafficResult, expected: f64) -> u64 {
    /// Factor by which formulas of losses may be too low.
    const FACTOR: f64 = 2.0;
    /// Share of packets by which they may be too low besides, and packets that may be lost at a start.
    const SHARE: f64 = 0.001;
    const PACKETS: f64 = 2.0;
    let sent = item.sent.unwrap_or_default();
    let lost = sent.saturating_sub(item.received) as f64;
    if item.kind == "tcp" || lost <= (FACTOR * expected + SHARE) * sent as f64 + PACKETS {
        return 0;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "fewer than were sent")]
    let by_machine = (lost - expected * sent as f64) as u64;
    by_machine
}

fn lost_at_all(traffic: &[TrafficResult]) -> bool {
    traffic.iter().any(|item| item.loss.is_some_and(|loss| loss > 0.0))
}
