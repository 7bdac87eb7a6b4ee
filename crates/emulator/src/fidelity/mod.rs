//! Judges how far the times that a lab measured can be trusted. The verdict depends on how late delayed frames and
//! commands were released, and on the load of the machine.
//!
//! The limits are constants here. `bench/certificate.py` records what they would have to tell apart.
mod advice;
mod evidence;
mod expected;

pub(crate) use evidence::{LabEvidence, SlowingWay, of_devices, of_flows, of_links, of_overflows, of_senders};

use crate::dilate::Dilation;
use crate::load_monitor::MeasuredLoad;
use advice::Remedies;
use std::time::Duration;
use weir_network::certificate::{Certificate, FidelityVerdict, FlowDisturbance, MachineLoad, OverflowSummary};
use weir_units::counted;

/// Lateness above which a frame on a link with a rate or a delay counts as late. Links promise to keep this bound for
/// 99 of 100 packets.
const LINK_BOUND: Duration = Duration::from_micros(50);
/// Share of a link's delay that is its bound instead if that is longer: beside long delays, lateness matters less.
const LINK_BOUND_SHARE: f64 = 0.05;
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
/// Shares of the run in which a thread that woke found no processor free for a millisecond or more: above the first a
/// run is doubtful, above the second not faithful.
const PREEMPTED: [f64; 2] = [0.10, 0.50];
/// Shares of packets that senders did not send: above the first a run is doubtful, above the second not faithful.
const NOT_SENT: [f64; 2] = [0.001, 0.01];
/// Latenesses of the packets of streams (99th percentile), in microseconds: above the first a run is doubtful, above
/// the second not faithful.
const STREAMS_LATE_US: [f64; 2] = [100.0, 1000.0];
/// Latenesses of datagrams of hosts in this process (99th percentile), in microseconds: above the first a run is
/// doubtful, above the second not faithful. Delays count from the real time of sending, so that only the gaps between
/// datagrams suffer.
const DATAGRAMS_LATE_US: [f64; 2] = [1000.0, 10_000.0];
/// Mean waits of ready threads for a processor, in microseconds: above the first a run is doubtful, above the second
/// not faithful.
const THREADS_LATE_US: [f64; 2] = [200.0, 2000.0];
/// Shares of packets lost beyond what the scenario loses: above the first a run is doubtful, above the second not
/// faithful.
const LOST: [f64; 2] = [0.0001, 0.005];
/// Shares of frames lost where links have no rate: above the first a run is doubtful, above the second not faithful.
const OVERFLOWED: [f64; 2] = [0.0001, 0.01];

/// Creates the certificate of a run of length `duration`. `taken` is the measured load of the machine.
pub(crate) fn judge(
    evidence: LabEvidence,
    taken: &MeasuredLoad,
    duration: Duration,
    dilation: Dilation,
) -> Certificate {
    let stops = taken.stops.sum();
    let machine = MachineLoad {
        processors: taken.processors,
        busy_share: taken.busy,
        own_share: taken.own,
        saturated_share: if taken.looks == 0 { 0.0 } else { taken.saturated as f64 / taken.looks as f64 },
        stolen_share: taken.stolen,
        throttled_s: taken.throttled.as_secs_f64(),
        thread_wait_us: (taken.waits.turns > 0)
            .then(|| taken.waits.time.as_secs_f64() * 1e6 / taken.waits.turns as f64),
        stops: stops.count,
        stopped_share: (stops.time.as_secs_f64() / duration.as_secs_f64().max(1e-3)).min(1.0),
        longest_stop_s: stops.longest.as_secs_f64(),
        preempted_share: (taken.preempted.time.as_secs_f64() / duration.as_secs_f64().max(1e-3)).min(1.0),
    };
    let remedies = Remedies::of(&evidence, &machine, duration, dilation);
    let (late_advice, load_advice) = (remedies.for_lateness(), remedies.for_load());
    let LabEvidence { links, devices, senders, overflows, flows, .. } = evidence;
    let throttled = machine.throttled_s / duration.as_secs_f64().max(1e-3);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let findings = [
        links.and_then(|late| {
            let by = [late.by.p99_us, late.by.max_us];
            let bound = format!("more than {LINK_BOUND:?} (or 5 % of the link's delay)");
            off("frames left links", late.by.samples, late.share_late, by, &bound, &late_advice)
        }),
        devices.and_then(|late| {
            let by = [late.worst_p99_us, late.max_us];
            let what = "releases of switches with a profile were";
            off(what, late.samples, late.share_over_20us, by, &format!("more than {DEVICE_BOUND:?}"), &late_advice)
        }),
        finding(machine.saturated_share, SATURATED, &load_advice, || {
            format!("all processors were busy for {} of the time", percent(machine.saturated_share))
        }),
        finding(machine.stolen_share, STOLEN, &["run where no other machine uses the hardware"], || {
            let share = percent(machine.stolen_share);
            format!("{share} of the processors' time went to other machines on the same hardware")
        }),
        finding(throttled, THROTTLED, &with("raise the quota of the control group", &load_advice), || {
            let time = machine.throttled_s;
            format!("the process was not allowed to run for {time:.2} s, its control group's quota being used up")
        }),
        finding(machine.stopped_share, STOPPED, &[JUDGE_BY_MEDIANS, remedies.machine], || {
            let stops = counted(machine.stops, "time", "times");
            let share = percent(machine.stopped_share);
            let longest = machine.longest_stop_s * 1e3;
            format!("the machine stopped threads {stops}, for {share} of the time, {longest:.1} ms at most")
        }),
        finding(machine.preempted_share, PREEMPTED, &load_advice, || {
            let share = percent(machine.preempted_share);
            format!("a thread that woke found no processor free for a millisecond or more, for {share} of the time")
        }),
        finding(machine.thread_wait_us.unwrap_or_default(), THREADS_LATE_US, &load_advice, || {
            let us = machine.thread_wait_us.unwrap_or_default();
            format!("threads that were ready waited {us:.0} us on average until they got a processor")
        }),
        senders.and_then(|senders| {
            let share = senders.asked.saturating_sub(senders.sent) as f64 / senders.asked.max(1) as f64;
            let what = || format!("senders sent {} of {} packets", senders.sent, senders.asked);
            finding(share, NOT_SENT, &load_advice, what)
        }),
        senders.and_then(|senders| senders.streams_p99_us).and_then(|us| {
            let what = || format!("of a stream's packets, 1 % were sent {us:.0} us or more late");
            finding(us, STREAMS_LATE_US, &load_advice, what)
        }),
        senders.and_then(|senders| senders.datagrams_p99_us).and_then(|us| {
            let what = || format!("of a flow's datagrams, 1 % were sent {us:.0} us or more late");
            finding(us, DATAGRAMS_LATE_US, &load_advice, what)
        }),
        lost(&flows, &load_advice),
        overflows.as_ref().and_then(|full| {
            let share = full.lost as f64 / full.frames.max(1) as f64;
            let OverflowSummary { frames, lost, worst } = full;
            let what = || format!("{lost} of {frames} frames were lost at links without a rate, most at {worst}");
            finding(share, OVERFLOWED, &with("give these links a rate", &load_advice), what)
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
        flows,
        machine,
    }
}

/// Advice against stops, which hardly any change of the scenario keeps away.
const JUDGE_BY_MEDIANS: &str = "judge by medians, or by weir compare, which sets aside what stops touched";

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
fn off(what: &str, samples: u64, share: f64, by: [f64; 2], bound: &str, advice: &[&str]) -> Option<Finding> {
    let ([p99, most], percent) = (by, share * 100.0);
    let found = finding(share, [FAITHFUL_OFF, DOUBTFUL_OFF], advice, || {
        format!("{percent:.1} % of {samples} {what} {bound} late (p99 {p99:.0} us, at most {most:.0} us)")
    })?;
    let verdict = if samples < FEW { FidelityVerdict::Doubtful } else { found.verdict };
    Some(Finding { verdict, ..found })
}

/// Returns a finding if flows lost more packets than the scenario loses.
fn lost(flows: &[FlowDisturbance], advice: &[&str]) -> Option<Finding> {
    let losers = || flows.iter().filter(|flow| flow.lost > 0);
    // That of the flow that suffers most: others may have lost nothing.
    let share = |flow: &FlowDisturbance| flow.lost as f64 / flow.asked.max(1) as f64;
    let worst = losers().max_by(|a, b| share(a).total_cmp(&share(b)))?;
    finding(share(worst), LOST, advice, || {
        let lost: u64 = losers().map(|flow| flow.lost).sum();
        let flows = counted(losers().count(), "flow", "flows");
        let FlowDisturbance { flow, asked, lost: most, .. } = worst;
        format!(
            "{lost} packets were lost that the scenario does not lose, of {flows}, most of {flow} ({most} of {asked})"
        )
    })
}

/// Returns the advice `others` with `first` before it.
fn with<'a>(first: &'a str, others: &[&'a str]) -> Vec<&'a str> {
    [first].iter().chain(others).copied().collect()
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
mod tests;
