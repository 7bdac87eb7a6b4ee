//! Judges how far the times that a lab measured can be trusted. The verdict depends on how late delayed frames and
//! commands were released, and on the load of the machine.
use crate::dilate::Dilation;
use crate::load_monitor::MeasuredLoad;
use std::time::Duration;
use weir_device::LatenessSnapshot;
use weir_network::certificate::{
    Certificate, DeviceLatenessSummary, FidelityVerdict, LinkLatenessSummary, MachineLoad,
};
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
    links: Option<LinkLatenessSummary>,
    devices: Option<DeviceLatenessSummary>,
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
    };
    let throttled = machine.throttled_s / duration.as_secs_f64().max(1e-3);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let slower = "use fewer or idler nodes, more processors, or --dilate";
    let findings = [
        links.and_then(|late| {
            let by = [late.by.p99_us, late.by.max_us];
            off("frames left links", late.by.samples, late.share_over_50us, by, BOUND, slower)
        }),
        devices.and_then(|late| {
            let by = [late.worst_p99_us, late.max_us];
            off(
                "releases of switches with a profile were",
                late.samples,
                late.share_over_20us,
                by,
                DEVICE_BOUND,
                slower,
            )
        }),
        exceeds(machine.saturated_share, SATURATED).map(|verdict| {
            let what = format!("all processors were busy for {} of the time", percent(machine.saturated_share));
            (verdict, format!("{what}: {slower}"))
        }),
        exceeds(machine.stolen_share, STOLEN).map(|verdict| {
            let what = format!(
                "{} of the processors' time went to other machines on the same hardware",
                percent(machine.stolen_share)
            );
            (verdict, format!("{what}: run where nobody else does"))
        }),
        exceeds(throttled, THROTTLED).map(|verdict| {
            let what = format!(
                "the process was not allowed to run for {:.2} s, its control group's quota being used up",
                machine.throttled_s
            );
            (verdict, format!("{what}: raise the quota, or --dilate"))
        }),
    ];
    let mut findings: Vec<(FidelityVerdict, String)> = findings.into_iter().flatten().collect();
    findings.sort_by_key(|(verdict, _)| std::cmp::Reverse(*verdict));
    Certificate {
        verdict: findings.first().map_or(FidelityVerdict::Faithful, |(verdict, _)| *verdict),
        reasons: findings.into_iter().map(|(_, reason)| reason).collect(),
        dilation: dilation.factor(),
        duration_s: duration.as_secs_f64(),
        links,
        devices,
        machine,
    }
}

/// Returns a finding if too large a `share` of the `samples` releases was later than `bound`; otherwise `None`. `by`:
/// 99th percentile and maximum of the lateness, in microseconds.
fn off(
    what: &str,
    samples: u64,
    share: f64,
    by: [f64; 2],
    bound: Duration,
    advice: &str,
) -> Option<(FidelityVerdict, String)> {
    let found = exceeds(share, [FAITHFUL_OFF, DOUBTFUL_OFF])?;
    let verdict = if samples < FEW { FidelityVerdict::Doubtful } else { found };
    let ([p99, most], percent) = (by, share * 100.0);
    let off =
        format!("{percent:.1} % of {samples} {what} more than {bound:?} late (p99 {p99:.0} us, at most {most:.0} us)");
    Some((verdict, format!("{off}: {advice}")))
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

    const SECOND: Duration = Duration::from_secs(1);

    fn idle() -> MeasuredLoad {
        MeasuredLoad { processors: 2, looks: 100, busy: 0.2, own: 0.1, ..MeasuredLoad::default() }
    }

    fn late(counts: &[(u64, u64)], factor: f64) -> Option<LinkLatenessSummary> {
        of_links(counts.iter().copied(), Dilation::new(factor).unwrap())
    }

    fn certificate(links: Option<LinkLatenessSummary>, taken: &MeasuredLoad) -> Certificate {
        judge(links, None, taken, SECOND, Dilation::default())
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
        let slowed = judge(late(&counts, 10.0), None, &idle(), SECOND, Dilation::new(10.0).unwrap());
        assert_eq!(slowed.verdict, FidelityVerdict::Faithful);
        assert!(slowed.to_string().contains("10 times slower"), "{slowed}");
    }
}
