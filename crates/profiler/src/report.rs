//! Summarises a measurement for people and programs; the parameters are in the profile.
use crate::Measurement;
use crate::throughput::Throughput;
use serde::Serialize;
use std::fmt::Write as _;
use weir_model::fit::quantiles::MedianAndSpread;
use weir_openflow::Version;
use weir_units::Seconds;

/// Median and 95th percentile of times, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TimePercentiles {
    /// Median, in seconds.
    pub p50_s: f64,
    /// 95th percentile, in seconds.
    pub p95_s: f64,
    /// Number of values.
    pub samples: usize,
}

impl TimePercentiles {
    fn of(mut values: Vec<f64>) -> Option<TimePercentiles> {
        values.sort_by(f64::total_cmp);
        let at =
            |percent: usize| values.get((values.len() * percent / 100).min(values.len().saturating_sub(1))).copied();
        Some(TimePercentiles { p50_s: at(50)?, p95_s: at(95)?, samples: values.len() })
    }

    fn text(&self) -> String {
        format!("{} (95 %: {}), {} samples", Seconds(self.p50_s), Seconds(self.p95_s), self.samples)
    }
}

/// Times of messages of one kind and size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MessageTimes {
    /// Kind of the messages.
    pub message: String,
    /// Length of the packet in bytes, or number of entries.
    pub size: u32,
    /// Times from request to answer.
    pub times: TimePercentiles,
    /// Number of messages without an answer.
    pub lost: usize,
}

/// Quality of the fit of the costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CostFitQuality {
    /// Share of the variance of the bursts' times that the fit explains. It is 0 if all take the same time, however
    /// good the fit is.
    pub r2: f64,
    /// Median relative deviation of the times.
    pub error: f64,
    /// Median relative deviation of the cases' medians, without chance of single runs.
    pub case_error: f64,
    /// Share of the variance due to chance, by the spread between repetitions of a case.
    pub chance: f64,
    /// Number of bursts.
    pub samples: usize,
}

/// Time of bursts beside that of their commands.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EffectTimes {
    /// Time from when commands were carried out until packets are treated accordingly.
    pub times: TimePercentiles,
    /// Decrease of Schwarz's criterion against a fit with costs of commands alone.
    pub criterion: f64,
}

/// Summary of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MeasurementSummary {
    /// Description that the switch gives of itself.
    pub device: String,
    /// OpenFlow version of the channel; none without a channel.
    pub version: Option<Version>,
    /// Port numbers of the switch behind the interfaces.
    pub ports: Vec<u32>,
    /// Number of entries added to find levels, and true if the switch reported a full table.
    pub entries: Option<(u64, bool)>,
    /// Number of timed bursts.
    pub bursts: usize,
    /// Quality of the fit of the costs.
    pub fit: Option<CostFitQuality>,
    /// Time of bursts beside that of their commands; none if it is not certain.
    pub effect: Option<EffectTimes>,
    /// Times of messages by kind and size.
    pub messages: Vec<MessageTimes>,
    /// Median time from when packets showed a burst done to the barrier's reply, in seconds; negative if the reply
    /// came first.
    pub barrier_lag_s: Option<f64>,
    /// Highest rates without loss.
    pub throughput: Vec<Throughput>,
    /// Delay of the rig itself, subtracted from the packet delays at these rates and in the profile; none if unknown.
    pub rig: Option<RigDelaySummary>,
    /// Remarks for the user.
    pub notes: Vec<String>,
}

/// Delay of the rig itself, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RigDelaySummary {
    /// Source of the values.
    pub how: String,
    /// Delay of a packet of 128 bytes, sent 100 us after the previous one, in seconds.
    pub packet_s: f64,
    /// Delay of a message of 128 bytes including the packet it carries, in seconds.
    pub message_s: f64,
}

impl Measurement {
    /// Returns the summary of the measurement.
    pub fn summary(&self) -> MeasurementSummary {
        let mut messages: Vec<MessageTimes> = Vec::new();
        let mut kinds: Vec<(&str, u32)> = self.messages.iter().map(|row| (row.message.as_str(), row.size)).collect();
        kinds.dedup();
        for (message, size) in kinds {
            let rows = || self.messages.iter().filter(|row| row.message == message && row.size == size);
            if let Some(times) = TimePercentiles::of(rows().filter_map(|row| row.delay_s).collect()) {
                let lost = rows().filter(|row| row.delay_s.is_none()).count();
                messages.push(MessageTimes { message: message.to_owned(), size, times, lost });
            }
        }
        let lags: Vec<f64> = self.timed.iter().map(crate::control::MeasuredBurst::lag_s).collect();
        MeasurementSummary {
            device: self.device.clone(),
            version: self.version,
            ports: self.ports.iter().map(|port| port.0).collect(),
            entries: self.sizes.as_ref().map(|sizes| (sizes.entries, sizes.is_full)),
            bursts: self.timed.len(),
            fit: self.costs.as_ref().map(|costs| CostFitQuality {
                r2: costs.fitted.r2,
                error: costs.fitted.error,
                case_error: costs.fitted.case_error,
                chance: costs.fitted.chance,
                samples: costs.fitted.samples,
            }),
            effect: self.costs.as_ref().and_then(|costs| costs.effect.as_ref()).and_then(|effect| {
                Some(EffectTimes { times: TimePercentiles::of(effect.samples_s.clone())?, criterion: effect.criterion })
            }),
            messages,
            barrier_lag_s: MedianAndSpread::of(&lags).ok().map(|middle| middle.median),
            throughput: self.throughput.iter().map(|found| self.without_rig(found)).collect(),
            rig: self.rig.is_known().then(|| RigDelaySummary {
                how: self.rig.how.clone(),
                packet_s: self.rig.packet_s(128, 100),
                message_s: self.rig.message_s(128),
            }),
            notes: self.notes(),
        }
    }
}

impl Measurement {
    fn without_rig(&self, found: &Throughput) -> Throughput {
        let off = |(share, s): &(f64, f64)| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 0 and a few thousand")]
            let gap_us = (1e6 / (found.pps * share).max(1.0)) as u32;
            (*share, self.rig.off(*s, found.bytes, gap_us))
        };
        Throughput { delays_s: found.delays_s.iter().map(off).collect(), ..found.clone() }
    }
}

impl MeasurementSummary {
    /// Returns the summary as text, with a line for each item.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let ports = self.ports.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let _ = match self.version.map(Version::name) {
            Some(version) => writeln!(text, "{} (OpenFlow {version}), interfaces lead to ports {ports}", self.device),
            None => writeln!(text, "{}: its data plane alone", self.device),
        };
        if let Some(RigDelaySummary { how, packet_s, message_s }) = &self.rig {
            let (packet, message) = (Seconds(*packet_s), Seconds(*message_s));
            let _ = writeln!(
                text,
                "rig            {packet} of its own for packets of 128 bytes, {message} for packet-ins and packet-outs ({how}): taken off"
            );
        }
        if let Some((entries, is_full)) = self.entries {
            let end = if is_full { "then it was full" } else { "no end was found" };
            let _ = writeln!(text, "entries        {entries} were taken, {end}");
        }
        if let Some(CostFitQuality { r2, error, case_error, chance, samples }) = self.fit {
            let _ = writeln!(
                text,
                "commands       {samples} bursts fitted: half of them are met to {:.1} %, medians of their cases to {:.1} %; R2 {r2:.4}, {chance:.4} of the variance is chance",
                error * 100.0,
                case_error * 100.0
            );
        }
        if let Some(EffectTimes { times, criterion }) = &self.effect {
            let why = if *criterion > 0.0 {
                format!("{criterion:.0} less of Schwarz's criterion than with costs alone")
            } else {
                "of single commands; bursts do not show it".to_owned()
            };
            let _ = writeln!(
                text,
                "effect         packets meet changes {} after commands were carried out, however many: {why}",
                times.text()
            );
        }
        if let Some(lag) = self.barrier_lag_s {
            let (size, when) = (Seconds(lag.abs()), if lag < 0.0 { "before" } else { "after" });
            let _ = writeln!(
                text,
                "barriers       answered {size} {when} packets show that commands are done, in the median"
            );
        }
        for MessageTimes { message, size, times, lost } in &self.messages {
            let of = match message.as_str() {
                "echo" => String::new(),
                "statistics" => format!(" of {size} entries"),
                _ => format!(" of {size} bytes"),
            };
            let lost = if *lost > 0 { format!(", {lost} lost") } else { String::new() };
            let _ = writeln!(text, "{:14} {}{lost}", format!("{message}{of}"), times.text());
        }
        for Throughput { bytes, pps, sender_bound, packets, loss_below, delays_s } in &self.throughput {
            let bound = if *sender_bound { " (more could not be sent)" } else { "" };
            let delays = delays_s.iter().map(|(share, s)| format!("{} at {:.0} %", Seconds(*s), share * 100.0));
            let delays = delays.collect::<Vec<_>>().join(", ");
            let trust = if *loss_below < 1.0 {
                format!("{packets} sent, less than {loss_below:.1e} lost, 19 times in 20")
            } else {
                "not confirmed, some were lost whenever it was repeated".to_owned()
            };
            let _ = writeln!(
                text,
                "throughput     {pps:.0} packets of {bytes} bytes a second without loss{bound}: {trust}; delay {delays}"
            );
        }
        for note in &self.notes {
            let _ = writeln!(text, "note: {note}");
        }
        text
    }
}
