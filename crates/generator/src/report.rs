//! Report of a run.
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_port::FrameCounters;
use weir_traffic::recorder::{PathReport, ReceptionReport};
use weir_traffic::{GapQuality, TimeStatistics};

/// Results of a run. The unit of a time is the suffix of its name.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrafficRunReport {
    /// True if the run was stopped early; the figures then cover the time until the stop.
    pub partial: bool,
    /// Packets sent, and the accuracy of their times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentReport>,
    /// Results of the received packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<ReceptionReport>,
    /// Delays between the taps of the packets' path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathReport>,
    /// Delay of the device alone, with the rig's own delay subtracted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net: Option<DelayWithoutRig>,
    /// Frames received without this run's header.
    pub others: u64,
    /// Counters of the ports, by the ports' specifications.
    pub ports: BTreeMap<String, FrameCounters>,
}

/// Packets sent, and the accuracy of their times. Packets of the warm-up are not counted, except in `refused`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentReport {
    /// Packets that were due by the end of the run.
    pub offered: u64,
    /// Packets sent on the port.
    pub sent: u64,
    /// Bytes of the sent packets.
    pub bytes: u64,
    /// Sent packets without room for a header, which no recorder recognises.
    #[serde(default)]
    pub without_header: u64,
    /// Packets that the port refused, warm-up included: its queue was full, the packet was too long, or the device
    /// was down.
    pub refused: u64,
    /// Sent packets that began a flow.
    pub new_flows: u64,
    /// Flows that did not begin because too many flows were active.
    pub refused_flows: u64,
    /// Duration of sending, in seconds.
    pub duration_s: f64,
    /// Packets per second according to the traffic description.
    pub offered_pps: f64,
    /// Packets sent per second.
    pub sent_pps: f64,
    /// Delay of sending behind the plan.
    pub late: Option<TimeStatistics>,
    /// Share of packets sent more than 10 us late.
    pub late_share: Option<f64>,
    /// Times between packets, compared with the plan and the law.
    pub gaps: Option<GapQuality>,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Number of the run, in the header of its packets.
    pub run: u16,
}

/// Delay of the device alone, assuming that the rig's delay adds to it independently.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DelayWithoutRig {
    /// Mean delay of the rig itself.
    pub rig_mean_us: f64,
    /// Median delay of the rig itself.
    pub rig_p50_us: f64,
    /// Mean delay minus the rig's mean.
    pub mean_us: f64,
    /// Half width of the mean's 95 % confidence interval, if packets' delays are independent.
    pub mean_within_us: f64,
    /// Median delay minus the rig's median.
    pub p50_us: f64,
    /// Delay that 99 % of the packets do not exceed, minus the rig's median; it still contains the rig's spread.
    pub p99_us: f64,
}

impl DelayWithoutRig {
    /// Subtracts the rig's delay from the total delay.
    pub fn of(all: &TimeStatistics, rig: &TimeStatistics) -> DelayWithoutRig {
        let square = |delay: &TimeStatistics| delay.sd_us.powi(2) / delay.samples.max(1) as f64;
        DelayWithoutRig {
            rig_mean_us: rig.mean_us,
            rig_p50_us: rig.p50_us,
            mean_us: all.mean_us - rig.mean_us,
            mean_within_us: 1.96 * (square(all) + square(rig)).sqrt(),
            p50_us: all.p50_us - rig.p50_us,
            p99_us: all.p99_us - rig.p50_us,
        }
    }
}

impl TrafficRunReport {
    /// Subtracts the delays of `rig`, measured without the device, and stores the result in `net`.
    ///
    /// # Errors
    /// One of the two reports has no delays.
    pub fn take_off(&mut self, rig: &TrafficRunReport) -> Result<(), crate::GeneratorError> {
        let delay = |report: &TrafficRunReport| report.received.as_ref().and_then(|received| received.delay);
        let missing = |what| crate::GeneratorError::wrong(what, "no delays", "those of at least one packet");
        let own = delay(rig).ok_or_else(|| missing("the rig's report"))?;
        let all = delay(self).ok_or_else(|| missing("this run"))?;
        self.net = Some(DelayWithoutRig::of(&all, &own));
        Ok(())
    }
}
