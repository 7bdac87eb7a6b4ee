//! Judges how far the times that a lab measured can be trusted. The verdict depends on how late delayed frames and
//! commands were released, and on the load of the machine.
use crate::dilate::Dilation;
use crate::load_monitor::MeasuredLoad;
use std::collections::HashSet;
use std::time::Duration;
use weir_device::LatenessSnapshot;
use weir_network::certificate::{
    Certificate, DeviceLatenessSummary, FidelityVerdict, LinkLatenessSummary, MachineLoad, OverflowSummary,
    SenderSummary,
};
use weir_network::result::{DropCount, QUEUE_FULL, StreamResult, SwitchResult, TrafficResult};
use weir_scenario::{Scenario, TrafficExpectation};
use weir_traffic::TimeHistogram;

/// Lateness above which a frame on a link with a rate or a delay counts as late. Links promise to keep this bound for
/// 99 of 100 packets.
const BOUND: Duration = Duration::from_micros(50);
/// Lateness above which a release by a switch with a profile counts as late.
const DEVICE_BOUND: Duration = Duration::from_micros(20);
/// Maximum share of late releases in a faithful run.
const FAITHFUL_OFF: f64 = 0.01;
/// Maximum share of late releases in a doubtful run; above it, the run is not faithful.
const DOUBTFUL_OFF: f64 = 0.10;
/// Minimum number of releases for the verdict "not faithful" by their lateness. With fewer, the verdict is at most
/// "doubtful".
const FEW: u64 = 100;
/// Shares of the time in which all processors are busy: above the first a run is doubtful, above the second not
/// faithful.
const SATURATED: [f64; 2] = [0.05, 0.30];
/// Shares of the processors' time that the hypervisor gave to other machines: above the first a run is doubtful, above
/// the second not faithful.
const STOLEN: [f64; 2] = [0.02, 0.10];
/// Shares of the time in which the operating system did not allow the process to run (throttling): above the first a
/// run is doubtful, above the second not faithful.
const THROTTLED: [f64; 2] = [0.01, 0.05];

/// Shares of the run in which the machine was stopped: above the first a run is doubtful, above the second not
/// faithful.
const STOPPED: [f64; 2] = [0.01, 0.05];
/// Shares of packets that senders did not send: above the first a run is doubtful, above the second not faithful.
const NOT_SENT: [f64; 2] = [0.001, 0.01];
/// Latenesses of the packets of streams (99th percentile), in microseconds: above the first a run is doubtful, above
/// the second not faithful.
const STREAMS_LATE_US: [f64; 2] = [100.0, 1000.0];
/// Shares of frames lost where links have no rate: above the first a run is doubtful, above the second not faithful.
const OVERFLOWED: [f64; 2] = [0.0001, 0.01];

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
    /// Number of switches. From as many as processors on, they do not poll: each release waits for a thread to wake.
    pub(crate) switches: usize,
    /// True if the run can be slowed down (`--dilate`), which is then part of the advice.
    pub(crate) can_dilate: bool,
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
    (asked > 0 || streams_p99_us.is_some()).then_some(SenderSummary { asked, sent, streams_p99_us })
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

/// Summarises latenesses of links, given as pairs: lateness in ns of this machine's time, and number of frames with
/// it. `None` without frames.
pub(crate) fn of_links(counts: impl Iterator<Item = (u64, u64)>, dilation: Dilation) -> Option<LinkLatenessSummary> {
    let mut late = TimeHistogram::default();
    counts.for_each(|(ns, count)| late.record_many_ns(dilation.told_ns(ns), count));
    let over = |us| late.share_above(Duration::from_micros(us)).unwrap_or_default();
    late.summary().map(|by| LinkLatenessSummary { by, share_over_20us: over(20), share_over_50us: over(50) })
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

/// Creates the certificate of a run of length `duration`. `taken` is the measured load of the machine.
pub(crate) fn judge(
    evidence: LabEvidence,
    taken: &MeasuredLoad,
    duration: Duration,
    dilation: Dilation,
) -> Certificate {
    let machine = MachineLoad {
        processors: taken.processors,
        busy_share: taken.busy,
        own_share: taken.own,
        saturated_share: if taken.looks == 0 { 0.0 } else { taken.saturated as f64 / taken.looks as f64 },
        stolen_share: taken.stolen,
        throttled_s: taken.throttled.as_secs_f64(),
        stops: taken.stops.count,
        stopped_share: (taken.stops.time.as_secs_f64() / duration.as_secs_f64().max(1e-3)).min(1.0),
        longest_stop_s: taken.stops.longest.as_secs_f64(),
    };
    let LabEvidence { links, devices, senders, overflows, switches, can_dilate } = evidence;
    let throttled = machine.throttled_s / duration.as_secs_f64().max(1e-3);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let slower = if can_dilate {
        "use fewer or idler nodes, more processors, or --dilate"
    } else {
        "use fewer switches and hosts, lower rates of traffic, more processors, or weir emulate --dilate"
    };
    let awake = format!(
        "use fewer switches than the {} processors: with as many or more, switches sleep, and wake too late for frames",
        taken.processors
    );
    // Without /proc the number of processors is not known.
    let sleeps = taken.processors > 0 && switches >= taken.processors;
    let sooner = if sleeps { vec![awake.as_str(), slower] } else { vec![slower] };
    let rates = "lower the rates of traffic";
    let findings = [
        links.and_then(|late| {
            let by = [late.by.p99_us, late.by.max_us];
            off("frames left links", late.by.samples, late.share_over_50us, by, BOUND, &sooner)
        }),
        devices.and_then(|late| {
            let by = [late.worst_p99_us, late.max_us];
            let what = "releases of switches with a profile were";
            off(what, late.samples, late.share_over_20us, by, DEVICE_BOUND, &sooner)
        }),
        finding(machine.saturated_share, SATURATED, &[slower], || {
            format!("all processors were busy for {} of the time", percent(machine.saturated_share))
        }),
        finding(machine.stolen_share, STOLEN, &["run where no other machine uses the hardware"], || {
            let share = percent(machine.stolen_share);
            format!("{share} of the processors' time went to other machines on the same hardware")
        }),
        finding(throttled, THROTTLED, &["raise the quota of the control group", slower], || {
            let time = machine.throttled_s;
            format!("the process was not allowed to run for {time:.2} s, its control group's quota being used up")
        }),
        finding(machine.stopped_share, STOPPED, &["judge by medians, which contain few of the stops", slower], || {
            let (stops, share) = (machine.stops, percent(machine.stopped_share));
            let longest = machine.longest_stop_s * 1e3;
            format!("the machine stopped threads {stops} times, for {share} of the time, {longest:.1} ms at most")
        }),
        senders.and_then(|senders| {
            let share = senders.asked.saturating_sub(senders.sent) as f64 / senders.asked.max(1) as f64;
            let what = || format!("senders sent {} of {} packets", senders.sent, senders.asked);
            finding(share, NOT_SENT, &[rates, slower], what)
        }),
        senders.and_then(|senders| senders.streams_p99_us).and_then(|us| {
            let what = || format!("of a stream's packets, 1 % were sent {us:.0} us or more late");
            finding(us, STREAMS_LATE_US, &[slower], what)
        }),
        overflows.as_ref().and_then(|full| {
            let share = full.lost as f64 / full.frames.max(1) as f64;
            let OverflowSummary { frames, lost, worst } = full;
            let what = || format!("{lost} of {frames} frames were lost at links without a rate, most at {worst}");
            finding(share, OVERFLOWED, &["give these links a rate", rates, slower], what)
        }),
    ];
    let mut findings: Vec<Finding> = findings.into_iter().flatten().collect();
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.verdict));
    let mut advice: Vec<String> = Vec::new();
    for one in findings.iter().flat_map(|finding| &finding.advice) {
        if !advice.contains(one) {
            advice.push(one.clone());
        }
    }
    Certificate {
        verdict: findings.first().map_or(FidelityVerdict::Faithful, |finding| finding.verdict),
        reasons: findings.into_iter().map(|finding| finding.what).collect(),
        advice,
        dilation: dilation.factor(),
        duration_s: duration.as_secs_f64(),
        links,
        devices,
        senders,
        overflows,
        machine,
    }
}

/// Measurement that lowers the verdict.
struct Finding {
    verdict: FidelityVerdict,
    what: String,
    advice: Vec<String>,
}

/// Returns a finding if a share exceeds its limits; `what` says it in words.
fn finding(share: f64, limits: [f64; 2], advice: &[&str], what: impl FnOnce() -> String) -> Option<Finding> {
    let advice = advice.iter().map(|one| (*one).to_owned()).collect();
    Some(Finding { verdict: exceeds(share, limits)?, what: what(), advice })
}

/// Returns a finding if too large a `share` of the `samples` releases was later than `bound`; otherwise `None`. `by`:
/// 99th percentile and maximum of the lateness, in microseconds.
fn off(what: &str, samples: u64, share: f64, by: [f64; 2], bound: Duration, advice: &[&str]) -> Option<Finding> {
    let ([p99, most], percent) = (by, share * 100.0);
    let found = finding(share, [FAITHFUL_OFF, DOUBTFUL_OFF], advice, || {
        format!("{percent:.1} % of {samples} {what} more than {bound:?} late (p99 {p99:.0} us, at most {most:.0} us)")
    })?;
    let verdict = if samples < FEW { FidelityVerdict::Doubtful } else { found.verdict };
    Some(Finding { verdict, ..found })
}

/// Returns the verdict on a share: doubtful above the first limit, not faithful above the second, `None` below both.
fn exceeds(share: f64, [faithful, doubtful]: [f64; 2]) -> Option<FidelityVerdict> {
    match share {
        _ if share > doubtful => Some(FidelityVerdict::NotFaithful),
        _ if share > faithful => Some(FidelityVerdict::Doubtful),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_units::StallTotals;

    const SECOND: Duration = Duration::from_secs(1);

    fn idle() -> MeasuredLoad {
        MeasuredLoad { processors: 2, looks: 100, busy: 0.2, own: 0.1, ..MeasuredLoad::default() }
    }

    fn late(counts: &[(u64, u64)], factor: f64) -> Option<LinkLatenessSummary> {
        of_links(counts.iter().copied(), Dilation::new(factor).unwrap())
    }

    fn certificate(links: Option<LinkLatenessSummary>, taken: &MeasuredLoad) -> Certificate {
        judge(evidence(links), taken, SECOND, Dilation::default())
    }

    fn evidence(links: Option<LinkLatenessSummary>) -> LabEvidence {
        LabEvidence { links, can_dilate: true, ..LabEvidence::default() }
    }

    #[test]
    fn stops_senders_and_lost_frames_are_reasons() {
        let stops = StallTotals { count: 3, time: SECOND / 50, longest: SECOND / 100 };
        let stopped = certificate(None, &MeasuredLoad { stops, ..idle() });
        assert_eq!(stopped.verdict, FidelityVerdict::Doubtful);
        assert!(stopped.reasons[0].starts_with("the machine stopped threads 3 times, for 2.0 % of the time, 10.0 ms"));
        let judged = |evidence| judge(evidence, &idle(), SECOND, Dilation::default());
        let senders = |sent, streams_p99_us| LabEvidence {
            senders: Some(SenderSummary { asked: 10_000, sent, streams_p99_us }),
            ..LabEvidence::default()
        };
        assert_eq!(judged(senders(9_999, Some(50.0))).verdict, FidelityVerdict::Faithful);
        let behind = judged(senders(9_000, Some(500.0)));
        assert_eq!((behind.verdict, behind.reasons.len()), (FidelityVerdict::NotFaithful, 2), "{behind}");
        assert!(
            behind.reasons[0] == "senders sent 9000 of 10000 packets"
                && behind.advice[0] == "lower the rates of traffic",
            "{behind}"
        );
        let overflows = |lost| {
            let overflows = Some(OverflowSummary { frames: 1_000, lost, worst: "s1 port 1 to a".into() });
            judged(LabEvidence { overflows, ..LabEvidence::default() })
        };
        let verdicts = [0, 5, 50].map(|lost| overflows(lost).verdict);
        assert_eq!(verdicts, [FidelityVerdict::Faithful, FidelityVerdict::Doubtful, FidelityVerdict::NotFaithful]);
    }

    #[test]
    fn only_losses_at_links_without_a_rate_are_the_machines() {
        let host = |name: &str, more: &str| {
            format!("[[host]]\nname = \"{name}\"\nswitch = \"s1\"\nip = \"10.0.0.{}/24\"\n{more}\n", name.len())
        };
        let text = format!("[[switch]]\nname = \"s1\"\n{}{}", host("a", ""), host("bb", "rate = \"1Mbit/s\""));
        let scenario = Scenario::parse(&text, "made up").unwrap();
        let drop = |place: String, reason: &str, packets| DropCount { place, reason: reason.to_owned(), packets };
        let port = |host: usize| format!("s1 port {} to {}", scenario.hosts[host].port, scenario.hosts[host].name);
        let drops = [
            drop("a".into(), "sending: queue full", 3),
            drop(port(0), "sending: queue full", 4),
            drop(port(0), "sending: too long", 100),
            drop(port(1), "sending: queue full", 100),
        ];
        let switch = SwitchResult {
            name: "s1".into(),
            dpid: 1,
            channels_up: 0,
            entries: 0,
            packets: 0,
            rx_packets: 600,
            tx_packets: 400,
        };
        let found = of_overflows(&scenario, &[switch], &drops).unwrap();
        assert_eq!((found.frames, found.lost, found.worst), (1000, 7, port(0)));
        assert_eq!(of_overflows(&scenario, &[], &drops), None);
    }

    #[test]
    fn a_run_in_time_is_faithful() {
        let good = certificate(late(&[(5_000, 995), (60_000, 5)], 1.0), &idle());
        assert_eq!((good.verdict, good.reasons.len()), (FidelityVerdict::Faithful, 0));
        assert!((good.links.unwrap().share_over_50us - 0.005).abs() < 1e-9);
        assert!(
            good.to_string().contains("links: 1000 frames delayed, late by 5 us (p50), 5 us (p99), 60 us at most"),
            "{good}"
        );
        let nothing = certificate(late(&[], 1.0), &idle());
        assert_eq!(nothing.verdict, FidelityVerdict::Faithful);
        assert!(nothing.to_string().contains("no frame was to be delayed"), "{nothing}");
    }

    #[test]
    fn late_frames_and_a_full_machine_are_reasons() {
        let doubtful = certificate(late(&[(5_000, 95), (60_000, 5)], 1.0), &idle());
        assert_eq!(doubtful.verdict, FidelityVerdict::Doubtful);
        assert!(doubtful.reasons[0].starts_with("5.0 % of 100 frames left links more than 50µs late"), "{doubtful:?}");
        assert!(!doubtful.advice.iter().any(|advice| advice.contains("sleep")), "{doubtful:?}");
        let many = LabEvidence { switches: 2, ..evidence(late(&[(60_000, 100)], 1.0)) };
        let many = judge(many, &idle(), SECOND, Dilation::default());
        assert!(many.advice[0].contains("fewer switches than the 2 processors"), "{many:?}");
        let unseen = MeasuredLoad { processors: 0, ..idle() };
        let unseen = certificate(late(&[(60_000, 100)], 1.0), &unseen);
        assert!(unseen.advice.iter().all(|advice| !advice.contains("0 processors")), "{unseen:?}");
        assert!(unseen.to_string().contains("processors: load not known, without /proc"), "{unseen}");
        assert_eq!(
            certificate(late(&[(60_000, 99)], 1.0), &idle()).verdict,
            FidelityVerdict::Doubtful,
            "too few to tell"
        );
        assert_eq!(certificate(late(&[(60_000, 100)], 1.0), &idle()).verdict, FidelityVerdict::NotFaithful);
        let bad = certificate(late(&[(5_000, 95), (60_000, 5)], 1.0), &MeasuredLoad { saturated: 50, ..idle() });
        assert_eq!((bad.verdict, bad.reasons.len()), (FidelityVerdict::NotFaithful, 2));
        assert!(
            bad.reasons[0].starts_with("all processors were busy for 50.0 % of the time"),
            "the gravest first: {bad:?}"
        );
        for (taken, said) in [
            (MeasuredLoad { stolen: 0.05, ..idle() }, "5.0 % of the processors' time went to other machines"),
            (MeasuredLoad { throttled: SECOND / 50, ..idle() }, "not allowed to run for 0.02 s"),
        ] {
            let found = certificate(None, &taken);
            assert_eq!(found.verdict, FidelityVerdict::Doubtful);
            assert!(found.reasons[0].contains(said), "{found:?}");
        }
    }

    #[test]
    fn a_slowed_run_is_judged_in_the_scenarios_time() {
        let counts = [(5_000, 50), (400_000, 50)];
        assert_eq!(certificate(late(&counts, 1.0), &idle()).verdict, FidelityVerdict::NotFaithful);
        let slowed = judge(evidence(late(&counts, 10.0)), &idle(), SECOND, Dilation::new(10.0).unwrap());
        assert_eq!(slowed.verdict, FidelityVerdict::Faithful);
        assert!(slowed.to_string().contains("10 times slower"), "{slowed}");
    }
}
