//! Parses laws of arrivals and sizes of sources, for streams and for traffic between hosts.
use super::{Checked, Source};
use crate::document::{self, ArrivalLaw, SizeLaw};
use std::ops::Range;
use std::path::Path;
use toml::Spanned;
use weir_traffic::{Arrival, Arrivals, Bimodal, Empirical, Mmpp, Offered, ParetoOnOff, Size, Stream, Trace, TwoState};
use weir_units::ByteSize;

/// Largest file of packets or sizes, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// Arrivals of packets: by a rule, or listed in a trace.
pub(super) enum Law {
    Rule(Arrival),
    Trace(Trace),
}

/// Parser of laws; `what` names the section in errors.
pub(super) struct Reader<'a> {
    pub(super) source: &'a Source<'a>,
    pub(super) what: &'static str,
}

impl Reader<'_> {
    /// Returns the law of arrivals.
    pub(super) fn arrival(&self, item: &Spanned<document::Arrival>) -> Checked<Law> {
        let wrong = |problem: String| self.source.error(item.span(), format!("{}: arrival: {problem}", self.what));
        Ok(Law::Rule(match item.as_ref() {
            document::Arrival::Named(name) => match name.as_str() {
                "constant" => Arrival::Constant,
                "poisson" => Arrival::Poisson,
                _ => return Err(wrong(format!("found `{name}`, expected constant, poisson, or a table with `kind`"))),
            },
            document::Arrival::Law(law) => match law {
                ArrivalLaw::Mmpp { high, low, time } => {
                    Arrival::TwoState(TwoState { high: *high, low: *low, high_s: time.0.as_secs_f64() })
                }
                ArrivalLaw::MmppGeneral { rates, transitions } => {
                    Arrival::Mmpp(Mmpp { rates: rates.clone(), transitions: transitions.clone() })
                }
                ArrivalLaw::ParetoOnOff { on, off, shape } => {
                    let (on_s, off_s) = (on.0.as_secs_f64(), off.0.as_secs_f64());
                    Arrival::ParetoOnOff(ParetoOnOff { on_s, off_s, shape: *shape })
                }
                ArrivalLaw::Trace { file } => {
                    let text = read(self.source, file).map_err(wrong)?;
                    return Trace::parse(&text).map(Law::Trace).map_err(|error| wrong(format!("{file}: {error}")));
                }
            },
        }))
    }

    /// Returns the law of sizes.
    pub(super) fn size(&self, item: &Spanned<document::Size>) -> Checked<Size> {
        let wrong = |problem: String| self.source.error(item.span(), format!("{}: sizes: {problem}", self.what));
        Ok(match item.as_ref() {
            document::Size::Named(name) => match name.as_str() {
                "bimodal" => Size::Bimodal(Bimodal::default()),
                "imix" => Size::Imix,
                _ => {
                    let size: Option<ByteSize> = name.parse().ok();
                    let bytes = size.and_then(|size| u32::try_from(size.0).ok());
                    let expected = "expected bimodal, imix, a size such as 1500B, or a table with `kind`";
                    Size::Fixed(bytes.ok_or_else(|| wrong(format!("found `{name}`, {expected}")))?)
                }
            },
            document::Size::Law(SizeLaw::Bimodal { short, short_bytes, long_bytes }) => {
                let default = Bimodal::default();
                Size::Bimodal(Bimodal {
                    short: short.unwrap_or(default.short),
                    short_bytes: short_bytes.unwrap_or(default.short_bytes),
                    long_bytes: long_bytes.unwrap_or(default.long_bytes),
                })
            }
            document::Size::Law(SizeLaw::Exponential { mean }) => Size::Exponential(mean.0 as f64),
            document::Size::Law(SizeLaw::Empirical { file }) => {
                let text = read(self.source, file).map_err(wrong)?;
                Size::Empirical(Empirical::parse(&text).map_err(|error| wrong(format!("{file}: {error}")))?)
            }
        })
    }

    /// Returns packets by rule if the rule is possible. `place` is the place of the arrivals in the file, for errors.
    pub(super) fn rule(&self, place: Range<usize>, arrival: Arrival, per_second: f64, size: Size) -> Checked<Offered> {
        Arrivals::new(&arrival, per_second, &mut Stream::new(0, 0, 0))
            .map_err(|error| self.source.error(place, format!("{}: arrival: {error}", self.what)))?;
        Ok(Offered::Rule { arrival, per_second, size })
    }
}

/// Reads a file that the scenario names, relative to the scenario's own folder.
fn read(source: &Source<'_>, file: &str) -> Result<String, String> {
    let path = Path::new(source.file).parent().unwrap_or(Path::new("")).join(file);
    let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let bytes = std::fs::metadata(&path).map_err(unreadable)?.len();
    if bytes > MAX_FILE_BYTES {
        return Err(format!("{}: found {bytes} bytes, expected at most {MAX_FILE_BYTES}", path.display()));
    }
    weir_units::read_text(&path).map_err(unreadable)
}
