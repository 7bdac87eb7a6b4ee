//! What was measured, in words and for programs; the profile beside it has the parameters.
use crate::Measurement;
use crate::throughput::Throughput;
use serde::Serialize;
use std::fmt::Write as _;
use weir_model::fit::order::Middle;
use weir_openflow::Version;
use weir_units::Seconds;

/// Half of the values are below the first number, 95 of 100 below the second, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The median.
    pub p50_s: f64,
    /// The 95th percentile.
    pub p95_s: f64,
    /// How many.
    pub samples: usize,
}

impl Spread {
    fn of(mut values: Vec<f64>) -> Option<Spread> {
        values.sort_by(f64::total_cmp);
        let at =
            |percent: usize| values.get((values.len() * percent / 100).min(values.len().saturating_sub(1))).copied();
        Some(Spread { p50_s: at(50)?, p95_s: at(95)?, samples: values.len() })
    }

    fn text(&self) -> String {
        format!("{} (95 %: {}), {} samples", Seconds(self.p50_s), Seconds(self.p95_s), self.samples)
    }
}

/// Messages of a kind and size.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MessageTimes {
    /// Its kind.
    pub message: String,
    /// Bytes of the packet, or entries.
    pub size: u32,
    /// How long they took.
    pub times: Spread,
    /// How many did not come.
    pub lost: usize,
}

/// How well the fit meets what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Quality {
    /// Share of the variance of bursts' times that it explains: none if all take the same time, however well it is met.
    pub r2: f64,
    /// Median of how far it is off, as a share.
    pub error: f64,
    /// Median of how far it is from the medians of cases' runs, as a share: what chance does to single runs is not in it.
    pub case_error: f64,
    /// Share of the variance that is chance: runs of the same case are so far apart.
    pub chance: f64,
    /// Bursts.
    pub samples: usize,
}

/// What bursts take beside their commands.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EffectTimes {
    /// From when commands were carried out until packets met what they changed.
    pub times: Spread,
    /// By how much Schwarz's criterion is lower than if commands alone cost anything.
    pub criterion: f64,
}

/// A measurement in short.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// What the switch says it is.
    pub device: String,
    /// The version that its channel speaks.
    pub version: Option<Version>,
    /// Its ports behind the interfaces.
    pub ports: Vec<u32>,
    /// Entries that were added to look for levels, and whether the switch said that it is full.
    pub entries: Option<(u64, bool)>,
    /// Bursts of commands that were timed.
    pub bursts: usize,
    /// How well costs fit.
    pub fit: Option<Quality>,
    /// What bursts take beside that; none if it is not certain.
    pub effect: Option<EffectTimes>,
    /// Messages.
    pub messages: Vec<MessageTimes>,
    /// How much later barriers were answered than packets showed that commands were done; below 0: before.
    pub barrier_lag_s: Option<f64>,
    /// The highest rates without loss.
    pub throughput: Vec<Throughput>,
    /// The rig's own delay, which is not in the delays of packets at these rates nor in the profile; nothing if it is not known.
    pub rig: Option<RigTimes>,
    /// What to know about it.
    pub notes: Vec<String>,
}

/// What the rig takes itself, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RigTimes {
    /// How it is known.
    pub how: String,
    /// A packet of 128 bytes, 100 us after the one before.
    pub packet_s: f64,
    /// A message of 128 bytes, with the packet that it is about.
    pub message_s: f64,
}

impl Measurement {
    /// The measurement in short.
    pub fn summary(&self) -> Summary {
        let mut messages: Vec<MessageTimes> = Vec::new();
        let mut kinds: Vec<(&str, u32)> = self.messages.iter().map(|row| (row.message.as_str(), row.size)).collect();
        kinds.dedup();
        for (message, size) in kinds {
            let rows = || self.messages.iter().filter(|row| row.message == message && row.size == size);
            if let Some(times) = Spread::of(rows().filter_map(|row| row.delay_s).collect()) {
                let lost = rows().filter(|row| row.delay_s.is_none()).count();
                messages.push(MessageTimes { message: message.to_owned(), size, times, lost });
            }
        }
        let lags: Vec<f64> = self.timed.iter().map(crate::control::Timed::lag_s).collect();
        Summary {
            device: self.device.clone(),
            version: self.version,
            ports: self.ports.iter().map(|port| port.0).collect(),
            entries: self.sizes.as_ref().map(|sizes| (sizes.entries, sizes.is_full)),
            bursts: self.timed.len(),
            fit: self.costs.as_ref().map(|costs| Quality {
                r2: costs.fitted.r2,
                error: costs.fitted.error,
                case_error: costs.fitted.case_error,
                chance: costs.fitted.chance,
                samples: costs.fitted.samples,
            }),
            effect: self.costs.as_ref().and_then(|costs| costs.effect.as_ref()).and_then(|effect| {
                Some(EffectTimes { times: Spread::of(effect.samples_s.clone())?, criterion: effect.criterion })
            }),
            messages,
            barrier_lag_s: Middle::of(&lags).ok().map(|middle| middle.median),
            throughput: self.throughput.iter().map(|found| self.without_rig(found)).collect(),
            rig: self.rig.is_known().then(|| RigTimes {
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

impl Summary {
    /// In words, a line for each thing.
    pub fn text(&self) -> String {
        let mut text = String::new();
        let ports = self.ports.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let _ = match self.version.map(Version::name) {
            Some(version) => writeln!(text, "{} (OpenFlow {version}), interfaces lead to ports {ports}", self.device),
            None => writeln!(text, "{}: its data plane alone", self.device),
        };
        if let Some(RigTimes { how, packet_s, message_s }) = &self.rig {
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
        if let Some(Quality { r2, error, case_error, chance, samples }) = self.fit {
            let _ = writeln!(
                text,
                "commands       {samples} bursts fitted: half of them are met to {:.1} %, medians of their cases to {:.1} %; R2 {r2:.4}, {chance:.4} of the variance is chance",
                error * 100.0,
                case_error * 100.0
            );
        }
        if let Some(EffectTimes { times, criterion }) = &self.effect {
            let _ = writeln!(
                text,
                "effect         packets meet changes {} after commands were carried out, however many: {criterion:.0} less of Schwarz's criterion than with costs alone",
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
