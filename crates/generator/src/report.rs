//! What a run gives.
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use weir_port::Counters;
use weir_traffic::recorder::{PathReport, Recorded};
use weir_traffic::{Delay, GapQuality};

/// What a run gives. Times are in the unit that their name ends with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Whether it was stopped before its end: figures cover what was done until then.
    pub partial: bool,
    /// What was sent, and how well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<SentReport>,
    /// What came.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub received: Option<Recorded>,
    /// What it met on its way.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathReport>,
    /// What the device alone took: the rig's own delay taken off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub net: Option<Net>,
    /// Frames that came without the run's header.
    pub others: u64,
    /// Counters of the ports, by what the user wrote.
    pub ports: BTreeMap<String, Counters>,
}

/// What was sent, and how well. Packets sent while warming up are in none of the figures.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SentReport {
    /// Packets that were due by the end.
    pub offered: u64,
    /// Packets sent.
    pub sent: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Packets sent that had no room for a header: nothing is told of what became of them.
    #[serde(default)]
    pub without_header: u64,
    /// Packets, warming up included, that the port refused: its queue was full, they were too long, the device was down.
    pub refused: u64,
    /// Packets sent that began a flow.
    pub new_flows: u64,
    /// Flows that did not begin since too many were sending.
    pub refused_flows: u64,
    /// How long was sent.
    pub duration_s: f64,
    /// Packets a second, as the law has them.
    pub offered_pps: f64,
    /// Packets a second.
    pub sent_pps: f64,
    /// How much later than planned packets were sent.
    pub late: Option<Delay>,
    /// The share of packets sent more than 10 us late.
    pub late_share: Option<f64>,
    /// Times between packets, against plan and law.
    pub gaps: Option<GapQuality>,
    /// What random numbers came from.
    pub seed: u64,
    /// The run's number, in the header of its packets.
    pub run: u16,
}

/// What the device alone took, if the rig's delay adds to it whatever it is.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Net {
    /// The rig's own mean delay.
    pub rig_mean_us: f64,
    /// The rig's own median.
    pub rig_p50_us: f64,
    /// Mean, the rig's taken off.
    pub mean_us: f64,
    /// What holds the true mean 19 times in 20, as far as packets' delays are independent: the mean give or take this.
    pub mean_within_us: f64,
    /// Median, the rig's taken off.
    pub p50_us: f64,
    /// What 99 % do not exceed, the rig's median taken off: the rig's own spread is still in it.
    pub p99_us: f64,
}

impl Net {
    /// What is left of `all` without the rig's delay.
    pub fn of(all: &Delay, rig: &Delay) -> Net {
        let square = |delay: &Delay| delay.sd_us.powi(2) / delay.samples.max(1) as f64;
        Net {
            rig_mean_us: rig.mean_us,
            rig_p50_us: rig.p50_us,
            mean_us: all.mean_us - rig.mean_us,
            mean_within_us: 1.96 * (square(all) + square(rig)).sqrt(),
            p50_us: all.p50_us - rig.p50_us,
            p99_us: all.p99_us - rig.p50_us,
        }
    }
}

impl Report {
    /// Takes the delays of `rig`, measured without the device, off.
    ///
    /// # Errors
    /// One of the two has no delays.
    pub fn take_off(&mut self, rig: &Report) -> Result<(), crate::GeneratorError> {
        let delay = |report: &Report| report.received.as_ref().and_then(|received| received.delay);
        let missing = |what| crate::GeneratorError::wrong(what, "no delays", "those of at least one packet");
        let own = delay(rig).ok_or_else(|| missing("the rig's report"))?;
        let all = delay(self).ok_or_else(|| missing("this run"))?;
        self.net = Some(Net::of(&all, &own));
        Ok(())
    }
}
