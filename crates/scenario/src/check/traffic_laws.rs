//! Parses laws of arrivals and sizes of sources, for streams and for traffic between hosts.
use super::{ScenarioResult, SourceFile, capture};
use crate::document::{self, ArrivalLawToml, SizeLawToml};
use crate::error;
use serde::de::DeserializeOwned;
use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use toml::Spanned;
use weir_traffic::{
    ArrivalProcess, ArrivalSampler, BimodalSizes, EmpiricalSizes, Mmpp, OfferedPackets, PacketSizeLaw, ParetoOnOff,
    RandomStream, TrafficTrace, TwoStateMmpp,
};
use weir_units::ByteSize;

/// Largest file of packets or sizes, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Arrivals of packets: by a rule, or listed in a trace or a capture.
pub(super) enum RuleOrTrace {
    Rule(ArrivalProcess),
    Trace(TrafficTrace),
}

/// Parser of laws; `what` names the section in errors.
pub(super) struct TrafficLawParser<'a> {
    pub(super) source: &'a SourceFile<'a>,
    pub(super) what: &'static str,
}

impl TrafficLawParser<'_> {
    /// Returns the packets of a trace. `others` are keys that say what the trace says, with their places if they are
    /// given: an error names the first of these.
    pub(super) fn trace(
        &self,
        trace: TrafficTrace,
        others: [(&str, Option<Range<usize>>); 3],
    ) -> ScenarioResult<OfferedPackets> {
        let [first, second, third] = others.each_ref().map(|(key, _)| *key);
        let expected = format!("expected neither {first}, {second} nor {third}: the file has them");
        match others.into_iter().find_map(|(key, place)| Some((key, place?))) {
            Some((key, place)) => {
                let problem = format!("{}: found {key} beside a trace or a capture, {expected}", self.what);
                Err(self.source.error(place, problem))
            }
            None => Ok(OfferedPackets::Trace(trace)),
        }
    }

    /// Returns the law of arrivals. `lengths` are those of the frames that can be sent, in bytes.
    pub(super) fn arrival(
        &self,
        item: &Spanned<document::ArrivalToml>,
        lengths: RangeInclusive<u32>,
    ) -> ScenarioResult<RuleOrTrace> {
        let wrong = |problem: String| self.source.error(item.span(), format!("{}: arrival: {problem}", self.what));
        Ok(RuleOrTrace::Rule(match item.as_ref() {
            document::ArrivalToml::Named(name) => match name.as_str() {
                "constant" => ArrivalProcess::Constant,
                "poisson" => ArrivalProcess::Poisson,
                _ => return Err(wrong(format!("found `{name}`, expected constant, poisson, or a table with `kind`"))),
            },
            document::ArrivalToml::Law(law) => match parameters(law).map_err(wrong)? {
                ArrivalLawToml::Mmpp { high, low, time } => {
                    ArrivalProcess::TwoState(TwoStateMmpp { high, low, high_s: time.0.as_secs_f64() })
                }
                ArrivalLawToml::MmppGeneral { rates, transitions } => ArrivalProcess::Mmpp(Mmpp { rates, transitions }),
                ArrivalLawToml::ParetoOnOff { on, off, shape } => {
                    let (on_s, off_s) = (on.0.as_secs_f64(), off.0.as_secs_f64());
                    ArrivalProcess::ParetoOnOff(ParetoOnOff { on_s, off_s, shape })
                }
                ArrivalLawToml::Capture(item) => {
                    return capture::read(self.source, &item, lengths).map(RuleOrTrace::Trace).map_err(wrong);
                }
                ArrivalLawToml::Trace { file } => {
                    let text = read(self.source, &file).map_err(wrong)?;
                    return TrafficTrace::parse(&text)
                        .map(RuleOrTrace::Trace)
                        .map_err(|error| wrong(format!("{file}: {error}")));
                }
            },
        }))
    }

    /// Returns the law of sizes.
    pub(super) fn size(&self, item: &Spanned<document::SizeToml>) -> ScenarioResult<PacketSizeLaw> {
        let wrong = |problem: String| self.source.error(item.span(), format!("{}: sizes: {problem}", self.what));
        Ok(match item.as_ref() {
            document::SizeToml::Named(name) => match name.as_str() {
                "bimodal" => PacketSizeLaw::Bimodal(BimodalSizes::default()),
                "imix" => PacketSizeLaw::Imix,
                _ => {
                    let size: Option<ByteSize> = name.parse().ok();
                    let bytes = size.and_then(|size| u32::try_from(size.0).ok());
                    let expected = "expected bimodal, imix, a size such as 1500B, or a table with `kind`";
                    PacketSizeLaw::Fixed(bytes.ok_or_else(|| wrong(format!("found `{name}`, {expected}")))?)
                }
            },
            document::SizeToml::Law(law) => match parameters(law).map_err(wrong)? {
                SizeLawToml::Bimodal { short, short_bytes, long_bytes } => {
                    let default = BimodalSizes::default();
                    PacketSizeLaw::Bimodal(BimodalSizes {
                        short: short.unwrap_or(default.short),
                        short_bytes: short_bytes.unwrap_or(default.short_bytes),
                        long_bytes: long_bytes.unwrap_or(default.long_bytes),
                    })
                }
                SizeLawToml::Exponential { mean } => PacketSizeLaw::Exponential(mean.0 as f64),
                SizeLawToml::Empirical { file } => {
                    let text = read(self.source, &file).map_err(wrong)?;
                    PacketSizeLaw::Empirical(
                        EmpiricalSizes::parse(&text).map_err(|error| wrong(format!("{file}: {error}")))?,
                    )
                }
            },
        })
    }

    /// Returns packets by rule if the rule is possible. `place` is the place of the arrivals in the file, for errors.
    pub(super) fn rule(
        &self,
        place: Range<usize>,
        arrival: ArrivalProcess,
        per_second: f64,
        size: PacketSizeLaw,
    ) -> ScenarioResult<OfferedPackets> {
        ArrivalSampler::new(&arrival, per_second, &mut RandomStream::new(0, 0, 0))
            .map_err(|error| self.source.error(place, format!("{}: arrival: {error}", self.what)))?;
        Ok(OfferedPackets::Rule { arrival, per_second, size })
    }
}

/// Reads the parameters of a law from its table. An error names the key whose value is wrong.
fn parameters<T: DeserializeOwned>(law: &toml::Table) -> Result<T, String> {
    let problem = |law: toml::Table| T::deserialize(law).err().map(|error: toml::de::Error| error.message().to_owned());
    T::deserialize(law.clone()).map_err(|error: toml::de::Error| {
        // The reader does not tell the key. Without it, another error comes first, or none.
        let wrong = error.message().starts_with("invalid ").then(|| {
            law.keys().filter(|key| *key != "kind").find(|key| {
                let rest =
                    law.iter().filter(|(other, _)| other != key).map(|(key, value)| (key.clone(), value.clone()));
                problem(rest.collect()).as_deref() != Some(error.message())
            })
        });
        let said = error::said_of_law(&error, law.get("kind").and_then(toml::Value::as_str));
        wrong.flatten().map_or(said.clone(), |key| format!("{key}: {said}"))
    })
}

/// Reads a file that the scenario names, relative to the scenario's own folder.
fn read(source: &SourceFile<'_>, file: &str) -> Result<String, String> {
    let path = beside(source, file);
    expect_size(&path)?;
    weir_units::read_text(&path).map_err(|error| unreadable(&path, &error))
}

/// Returns the path of a file that the scenario names, relative to the scenario's own folder.
pub(super) fn beside(source: &SourceFile<'_>, file: &str) -> PathBuf {
    Path::new(source.file).parent().unwrap_or(Path::new("")).join(file)
}

/// Refuses a file that is too long to be read into memory.
pub(super) fn expect_size(path: &Path) -> Result<(), String> {
    let bytes = std::fs::metadata(path).map_err(|error| unreadable(path, &error))?.len();
    if bytes > MAX_FILE_BYTES {
        return Err(format!("{}: found {bytes} bytes, expected at most {MAX_FILE_BYTES}", path.display()));
    }
    Ok(())
}

fn unreadable(path: &Path, error: &std::io::Error) -> String {
    format!("cannot read {}: {error}", path.display())
}
