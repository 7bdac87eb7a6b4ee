//! Certificates of how far the times that a lab measured can be trusted.
use serde::Serialize;
use std::fmt::{self, Display, Formatter};
use weir_traffic::TimeStatistics;
use weir_units::counted;

/// Verdict on how far the times that a lab measured are those of the scenario, undisturbed by the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FidelityVerdict {
    /// Measured times can be trusted: few releases were late, and the machine was not overloaded.
    Faithful,
    /// Some measured times may be wrong.
    Doubtful,
    /// Measured times cannot be trusted.
    NotFaithful,
}

/// Certificate of how far the times that a lab measured can be trusted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Certificate {
    /// Overall verdict: the gravest of the findings.
    pub verdict: FidelityVerdict,
    /// Findings that lowered the verdict, gravest first.
    pub reasons: Vec<String>,
    /// Changes that make a run faithful, for the gravest finding first; empty for a faithful run.
    pub advice: Vec<String>,
    /// Factor by which everything ran slower than the scenario says (dilation). Latenesses of links and devices in this
    /// certificate are divided by it.
    pub dilation: f64,
    /// Duration of the certified run, in seconds.
    pub duration_s: f64,
    /// Lateness of frames on links that have a rate or a delay; `None` without such frames.
    pub links: Option<LinkLatenessSummary>,
    /// Lateness of the commands and packets that switches with a profile delayed; `None` without such delays.
    pub devices: Option<DeviceLatenessSummary>,
    /// How far senders fell behind; `None` without traffic that counts what it sends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub senders: Option<SenderSummary>,
    /// Frames lost where links have no rate, so that only the machine can be too slow for them; `None` without frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overflows: Option<OverflowSummary>,
    /// Flows that the machine disturbed, and by what.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowDisturbance>,
    /// Load of the machine.
    pub machine: MachineLoad,
}

/// Effects of the machine on an item of traffic.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FlowDisturbance {
    /// Index of the item in the scenario's traffic.
    pub item: usize,
    /// Kind and ends of the item, such as `udp a > b`.
    pub flow: String,
    /// Packets that the sender had to send.
    pub asked: u64,
    /// Packets of these that were not sent.
    pub not_sent: u64,
    /// Packets lost beyond those that the scenario loses by the formulas.
    pub lost: u64,
    /// 99th percentile of how late packets were sent, in microseconds; `None` if nothing measured it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub late_p99_us: Option<f64>,
    /// Delays measured.
    pub delays: u64,
    /// Delays of these whose packets were sent or received in a stop of the machine.
    pub in_stops: u64,
    /// True if `weir compare` sets these delays aside; false if they are too many for that.
    pub set_aside: bool,
}

/// How far senders fell behind what the scenario asks for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SenderSummary {
    /// Packets that senders had to send.
    pub asked: u64,
    /// Packets of these that were sent.
    pub sent: u64,
    /// 99th percentile of the lateness of the stream with the largest one, in microseconds; `None` without streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub streams_p99_us: Option<f64>,
    /// 99th percentile of the datagrams of hosts in this process, of the worst item; `None` without such.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub datagrams_p99_us: Option<f64>,
}

/// Frames lost at ports whose links have no rate and no queues.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OverflowSummary {
    /// Frames that all switches received or sent.
    pub frames: u64,
    /// Frames lost at such ports because the receiver did not take them in time.
    pub lost: u64,
    /// Port with the most of these losses; empty without losses.
    pub worst: String,
}

/// Lateness of frames that links delayed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LinkLatenessSummary {
    /// Distribution of the lateness.
    pub by: TimeStatistics,
    /// Share of frames that were more than 20 us late, `0.0..=1.0`.
    pub share_over_20us: f64,
    /// Share of frames that were more than 50 us late, `0.0..=1.0`.
    pub share_over_50us: f64,
    /// Share of frames that were later than the bound of their link: 50 us, or a twentieth of its delay if that is
    /// longer.
    pub share_late: f64,
    /// 99th percentile of the lateness, in bounds of the link.
    pub p99_in_bounds: f64,
}

/// Lateness of releases (of commands and packets) by switches with a profile.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct DeviceLatenessSummary {
    /// Number of releases.
    pub samples: u64,
    /// Median lateness of the switch with the largest median, in microseconds.
    pub worst_p50_us: f64,
    /// 99th percentile of the lateness of the switch with the largest one, in microseconds.
    pub worst_p99_us: f64,
    /// Maximum lateness of all releases, in microseconds.
    pub max_us: f64,
    /// Share of releases that were more than 20 us late, `0.0..=1.0`. Unlike the others, this value is not divided by
    /// the dilation.
    pub share_over_20us: f64,
}

/// Load of the machine. Shares are of all processors' time, `0.0..=1.0`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MachineLoad {
    /// Number of processors.
    pub processors: usize,
    /// Share of the time in which processors were busy, including time that the hypervisor gave to other machines.
    pub busy_share: f64,
    /// Share of the time in which processors ran this process, or programs in hosts that have ended.
    pub own_share: f64,
    /// Share of the run in which all processors were busy at once.
    pub saturated_share: f64,
    /// Share of the time that the hypervisor gave to other machines.
    pub stolen_share: f64,
    /// Mean time in microseconds that threads of this process, ready to run, waited for a processor each time; `None`
    /// if Linux does not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_wait_us: Option<f64>,
    /// Time for which this process was not allowed to run, in seconds.
    pub throttled_s: f64,
    /// Number of stops: times at which a thread that only sleeps and wakes up woke a millisecond or more too late,
    /// although no other thread had its processor.
    pub stops: u64,
    /// Share of the run that these stops took.
    pub stopped_share: f64,
    /// Longest of these stops, in seconds.
    pub longest_stop_s: f64,
    /// Share of the run for which the same thread was as late because other threads had the processor.
    pub preempted_share: f64,
}

/// Maximum number of disturbed flows in the text of a certificate.
const MOST_FLOWS: usize = 8;

impl Display for FlowDisturbance {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let FlowDisturbance { item: _, flow, asked, not_sent, lost, late_p99_us, delays, in_stops, set_aside } = self;
        let mut parts = Vec::new();
        if *lost > 0 {
            parts.push(format!("the machine lost {lost} of {asked} packets"));
        }
        if *not_sent > 0 {
            parts.push(format!("{not_sent} of {asked} packets were not sent in time"));
        }
        if let Some(us) = late_p99_us {
            parts.push(format!("1 % of packets were sent {us:.0} us or more late"));
        }
        if *in_stops > 0 {
            let aside = if *set_aside { "set aside by weir compare" } else { "too many to set aside" };
            parts.push(format!("{in_stops} of {delays} delays were in stops ({aside})"));
        }
        write!(f, "{flow}: {}", parts.join("; "))
    }
}

impl Display for FidelityVerdict {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            FidelityVerdict::Faithful => "faithful",
            FidelityVerdict::Doubtful => "doubtful",
            FidelityVerdict::NotFaithful => "not faithful",
        })
    }
}

impl Display for Certificate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| format!("{:.1} %", share * 100.0);
        writeln!(f, "Fidelity: {}", self.verdict)?;
        self.reasons.iter().try_for_each(|reason| writeln!(f, "  since {reason}"))?;
        self.advice.iter().try_for_each(|advice| writeln!(f, "  advice: {advice}"))?;
        if let Some(LinkLatenessSummary { by, share_over_20us, share_over_50us, .. }) = self.links {
            let [over_20, over_50] = [share_over_20us, share_over_50us].map(percent);
            writeln!(
                f,
                "  links: {} frames delayed, late by {:.0} us (p50), {:.0} us (p99), {:.0} us at most; {over_20} by more than 20 us, {over_50} by more than 50 us",
                by.samples, by.p50_us, by.p99_us, by.max_us,
            )?;
        }
        if let Some(late) = self.devices {
            writeln!(
                f,
                "  switches with a profile: {} releases, of the worst late by {:.0} us (p50), {:.0} us (p99); of all {:.0} us at most, {} by more than 20 us",
                late.samples,
                late.worst_p50_us,
                late.worst_p99_us,
                late.max_us,
                percent(late.share_over_20us),
            )?;
        }
        if self.links.is_none() && self.devices.is_none() {
            writeln!(f, "  no frame was to be delayed")?;
        }
        if let Some(SenderSummary { asked, sent, streams_p99_us, datagrams_p99_us }) = self.senders {
            write!(f, "  senders: {sent} of {asked} packets sent")?;
            streams_p99_us.map_or(Ok(()), |us| write!(f, ", of streams late by {us:.0} us (p99)"))?;
            datagrams_p99_us.map_or(Ok(()), |us| write!(f, ", datagrams late by {us:.0} us (p99)"))?;
            writeln!(f)?;
        }
        if let Some(OverflowSummary { frames, lost, worst }) = self.overflows.as_ref().filter(|full| full.lost > 0) {
            writeln!(f, "  links without a rate: {lost} of {frames} frames lost, most at {worst}")?;
        }
        self.flows.iter().take(MOST_FLOWS).try_for_each(|flow| writeln!(f, "  disturbed: {flow}"))?;
        if self.flows.len() > MOST_FLOWS {
            writeln!(f, "  disturbed: {} flows more (--json has all)", self.flows.len() - MOST_FLOWS)?;
        }
        let machine = &self.machine;
        if machine.processors == 0 {
            write!(f, "  processors: load not known, without /proc, in {:.1} s", self.duration_s)?;
        } else {
            write!(
                f,
                "  processors: {} of {} busy, {} by the lab; all busy at once for {} of {:.1} s",
                percent(machine.busy_share),
                machine.processors,
                percent(machine.own_share),
                percent(machine.saturated_share),
                self.duration_s
            )?;
        }
        if machine.stolen_share > 0.0 {
            write!(f, "; {} stolen", percent(machine.stolen_share))?;
        }
        if machine.stops > 0 {
            let (share, longest) = (percent(machine.stopped_share), machine.longest_stop_s * 1e3);
            let times = counted(machine.stops, "time", "times");
            write!(f, "; stopped {times}, {share} of the time, {longest:.1} ms at most")?;
        }
        if machine.preempted_share > 0.0 {
            write!(f, "; none free for a waking thread for {} of the time", percent(machine.preempted_share))?;
        }
        if let Some(us) = machine.thread_wait_us {
            write!(f, "; ready threads waited {us:.0} us for one")?;
        }
        if machine.throttled_s > 0.0 {
            write!(f, "; throttled for {:.2} s", machine.throttled_s)?;
        }
        writeln!(f)?;
        if self.dilation > 1.0 {
            writeln!(
                f,
                "  everything ran {} times slower than the scenario says; times here are the scenario's",
                self.dilation
            )?;
        }
        Ok(())
    }
}
