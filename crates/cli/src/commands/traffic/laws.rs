//! Parses the traffic laws of the command line.
use std::path::{Path, PathBuf};
use std::str::FromStr;
use weir_model::Law;
use weir_port::PortSpec;
use weir_traffic::{
    ArrivalProcess, BimodalSizes, EmpiricalSizes, OnOff, PacketSizeLaw, ParetoOnOff, TrafficTrace, TwoStateMmpp,
};
use weir_units::{Bps, TimeSpan};

/// Maximum size in bytes of a file of sizes or times.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Arrival times of packets.
#[derive(Debug, Clone)]
pub(super) enum GapLawArg {
    Law(ArrivalProcess),
    /// Times from a file.
    Trace(PathBuf),
}

const GAPS: &str = "constant, poisson, pareto:SHAPE, on-off:ON,OFF, mmpp:HIGH,LOW,TIME, pareto-on-off:ON,OFF,SHAPE, gamma:SCV, h2:SCV, \
                    uniform:LOW,HIGH, law:JSON or trace:FILE";

impl FromStr for GapLawArg {
    type Err = String;

    fn from_str(text: &str) -> Result<GapLawArg, String> {
        let wrong = |problem: &str| format!("found `{text}`, {problem}; expected {GAPS}");
        let (kind, rest) = text.split_once(':').unwrap_or((text, ""));
        let parts: Vec<&str> = rest.split(',').map(str::trim).collect();
        let number = |at: usize| -> Result<f64, String> {
            parts.get(at).and_then(|part| part.parse().ok()).ok_or_else(|| wrong("a number is missing"))
        };
        let seconds = |at: usize| -> Result<f64, String> {
            let span: Option<TimeSpan> = parts.get(at).and_then(|part| part.parse().ok());
            span.map(|span| span.0.as_secs_f64()).ok_or_else(|| wrong("a time such as 10ms is missing"))
        };
        let law = |law: Result<Law, weir_model::ModelError>| {
            law.map(ArrivalProcess::Renewal).map_err(|error| wrong(&error.to_string()))
        };
        let count =
            |count: usize| if parts.len() == count { Ok(()) } else { Err(wrong("that many values do not fit")) };
        Ok(GapLawArg::Law(match kind {
            "constant" if rest.is_empty() => ArrivalProcess::Constant,
            "poisson" if rest.is_empty() => ArrivalProcess::Poisson,
            "pareto" => count(1).and_then(|()| number(0)).map(ArrivalProcess::Pareto)?,
            "on-off" => {
                count(2)?;
                ArrivalProcess::OnOff(OnOff { on_s: seconds(0)?, off_s: seconds(1)? })
            }
            "mmpp" => {
                count(3)?;
                ArrivalProcess::TwoState(TwoStateMmpp { high: number(0)?, low: number(1)?, high_s: seconds(2)? })
            }
            "pareto-on-off" => {
                count(3)?;
                ArrivalProcess::ParetoOnOff(ParetoOnOff { on_s: seconds(0)?, off_s: seconds(1)?, shape: number(2)? })
            }
            "gamma" => count(1).and_then(|()| law(Law::gamma(1.0, number(0)?)))?,
            "h2" => count(1).and_then(|()| law(Law::balanced(1.0, number(0)?)))?,
            "uniform" => count(2).and_then(|()| law(Law::uniform(number(0)?, number(1)?)))?,
            "law" => ArrivalProcess::Renewal(serde_json::from_str(rest).map_err(|error| wrong(&error.to_string()))?),
            "trace" if !rest.is_empty() => return Ok(GapLawArg::Trace(rest.into())),
            _ => return Err(wrong("which is none of them")),
        }))
    }
}

/// Lengths of packets.
#[derive(Debug, Clone)]
pub(super) enum SizeLawArg {
    Law(PacketSizeLaw),
    /// Distribution from a file of sizes and weights.
    File(PathBuf),
}

impl FromStr for SizeLawArg {
    type Err = String;

    fn from_str(text: &str) -> Result<SizeLawArg, String> {
        let wrong = || format!("found `{text}`, expected bytes such as 100, or bimodal, imix, exp:MEAN or file:FILE");
        Ok(SizeLawArg::Law(match text.split_once(':') {
            None if text == "bimodal" => PacketSizeLaw::Bimodal(BimodalSizes::default()),
            None if text == "imix" => PacketSizeLaw::Imix,
            None => PacketSizeLaw::Fixed(text.parse().map_err(|_| wrong())?),
            Some(("exp", mean)) => PacketSizeLaw::Exponential(mean.parse().map_err(|_| wrong())?),
            Some(("file", file)) if !file.is_empty() => return Ok(SizeLawArg::File(file.into())),
            Some(_) => return Err(wrong()),
        }))
    }
}

impl SizeLawArg {
    /// Returns the distribution of lengths; a file is read.
    pub(super) fn law(&self) -> anyhow::Result<PacketSizeLaw> {
        Ok(match self {
            SizeLawArg::Law(law) => law.clone(),
            SizeLawArg::File(file) => {
                let sizes = EmpiricalSizes::parse(&read(file)?);
                PacketSizeLaw::Empirical(sizes.map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))?)
            }
        })
    }
}

/// Reads a file of times and lengths.
pub(super) fn trace(file: &Path) -> anyhow::Result<TrafficTrace> {
    TrafficTrace::parse(&read(file)?).map_err(|error| anyhow::anyhow!("{}: {error}", file.display()))
}

fn read(file: &Path) -> anyhow::Result<String> {
    let unreadable = |error| anyhow::anyhow!("cannot read {}: {error}", file.display());
    let bytes = std::fs::metadata(file).map_err(unreadable)?.len();
    anyhow::ensure!(
        bytes <= MAX_FILE_BYTES,
        "{}: found {bytes} bytes, expected at most {MAX_FILE_BYTES}",
        file.display()
    );
    weir_units::read_text(file).map_err(unreadable)
}

/// Amount of traffic: packets per second or bits per second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum TrafficRateArg {
    Packets(f64),
    Bits(Bps),
}

impl TrafficRateArg {
    /// Returns packets per second, for packets of `mean_bytes` bytes on average.
    pub(super) fn per_second(self, mean_bytes: f64) -> f64 {
        match self {
            TrafficRateArg::Packets(rate) => rate,
            TrafficRateArg::Bits(Bps(rate)) => rate as f64 / 8.0 / mean_bytes.max(1.0),
        }
    }
}

impl FromStr for TrafficRateArg {
    type Err = String;

    fn from_str(text: &str) -> Result<TrafficRateArg, String> {
        let wrong = || {
            format!("found `{text}`, expected packets a second such as 1000, 10k or 1.5M, or a rate such as 100Mbit/s")
        };
        if let Ok(rate) = text.parse() {
            return Ok(TrafficRateArg::Bits(rate));
        }
        let (number, factor) = match text.strip_suffix('k') {
            Some(number) => (number, 1e3),
            None => text.strip_suffix('M').map_or((text, 1.0), |number| (number, 1e6)),
        };
        let rate = number.parse::<f64>().map_err(|_| wrong())? * factor;
        if rate.is_finite() && rate > 0.0 { Ok(TrafficRateArg::Packets(rate)) } else { Err(wrong()) }
    }
}

/// A tap, `NAME=PORT`.
#[derive(Debug, Clone)]
pub(super) struct TapArg {
    pub(super) name: String,
    pub(super) port: PortSpec,
}

impl FromStr for TapArg {
    type Err = String;

    fn from_str(text: &str) -> Result<TapArg, String> {
        let wrong = || format!("found `{text}`, expected NAME=PORT such as control=af_packet:lo");
        let (name, port) = text.split_once('=').filter(|(name, _)| !name.is_empty()).ok_or_else(wrong)?;
        let port = port.parse().map_err(|error: weir_port::PortError| error.to_string())?;
        Ok(TapArg { name: name.to_owned(), port })
    }
}

/// Report file of a run, and the number of times that its packets passed the device: `N=FILE`.
#[derive(Debug, Clone)]
pub(super) struct VisitReportArg {
    pub(super) visits: f64,
    pub(super) file: PathBuf,
}

impl FromStr for VisitReportArg {
    type Err = String;

    fn from_str(text: &str) -> Result<VisitReportArg, String> {
        let wrong = || format!("found `{text}`, expected N=FILE such as 2=two.json");
        let (visits, file) = text.split_once('=').filter(|(_, file)| !file.is_empty()).ok_or_else(wrong)?;
        let visits: u32 = visits.parse().map_err(|_| wrong())?;
        Ok(VisitReportArg { visits: visits.into(), file: file.into() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_law_has_a_text() {
        for text in [
            "constant",
            "poisson",
            "pareto:1.5",
            "on-off:10ms,90ms",
            "mmpp:3,0.5,500us",
            "pareto-on-off:10ms,30ms,1.5",
            "gamma:0.3",
            "h2:4",
            "uniform:1,3",
            "law:[\"exp\", 1]",
        ] {
            assert!(matches!(text.parse(), Ok(GapLawArg::Law(_))), "{text}: {:?}", text.parse::<GapLawArg>());
        }
        assert!(matches!("trace:/a:b".parse(), Ok(GapLawArg::Trace(file)) if file.as_os_str() == "/a:b"));
        for text in [
            "",
            "Poisson",
            "poisson:1",
            "pareto",
            "pareto:a",
            "pareto:1,2",
            "on-off:1,2",
            "gamma:-1",
            "law:x",
            "trace:",
        ] {
            let error = text.parse::<GapLawArg>().unwrap_err();
            assert!(error.contains("expected constant, poisson"), "{text}: {error}");
        }
    }

    #[test]
    fn sizes_and_rates_have_texts() {
        for text in ["100", "bimodal", "imix", "exp:500", "file:x"] {
            assert!(text.parse::<SizeLawArg>().is_ok(), "{text}");
        }
        for text in ["", "-1", "file:", "ex:5"] {
            assert!(text.parse::<SizeLawArg>().is_err(), "{text}");
        }
        assert_eq!("1.5k".parse(), Ok(TrafficRateArg::Packets(1500.0)));
        assert_eq!("8Mbit/s".parse::<TrafficRateArg>().unwrap().per_second(100.0), 10_000.0);
        for text in ["", "0", "-1k", "nan", "fast"] {
            assert!(text.parse::<TrafficRateArg>().is_err(), "{text}");
        }
    }
}
