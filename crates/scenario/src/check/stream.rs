//! Packets by rule, and how they are simulated.
use super::{Checked, MAX_DURATION, Source, duration, find};
use crate::document::{self, ArrivalLaw, SizeLaw};
use crate::{Fabric, PacketStream, Simulate, Switch};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use toml::Spanned;
use weir_traffic::{
    Arrival, Arrivals, Bimodal, Empirical, Mmpp, Offered, ParetoOnOff, Size, Sizes, Stream, Trace, TwoState,
};
use weir_units::{Bps, ByteSize};

/// Most replications.
const MAX_REPLICATIONS: u32 = 10_000;
const DEFAULT_REPLICATIONS: u32 = 10;
/// What a file of packets or sizes may have, before it is read.
const MAX_FILE_BYTES: u64 = 1 << 30;

pub(super) fn simulate(
    source: &Source<'_>,
    item: Option<Spanned<document::Simulate>>,
    default: Duration,
) -> Checked<Simulate> {
    let item = item.map(Spanned::into_inner).unwrap_or_default();
    if let Some(wrong) = item.replications.as_ref().filter(|count| !(1..=MAX_REPLICATIONS).contains(count.as_ref())) {
        let problem = format!("replications: found {}, expected 1 to {MAX_REPLICATIONS}", wrong.as_ref());
        return Err(source.error(wrong.span(), problem));
    }
    if let Some(wrong) = item.until.as_ref().filter(|share| !(*share.as_ref() > 0.0 && *share.as_ref() < 1.0)) {
        let problem =
            format!("until: found {}, expected a share of the mean between 0 and 1, such as 0.01", wrong.as_ref());
        return Err(source.error(wrong.span(), problem));
    }
    let warm_up = match &item.warm_up {
        Some(time) if time.as_ref().0 > MAX_DURATION => duration(source, "warm_up", time)?,
        Some(time) => time.as_ref().0,
        None => Duration::ZERO,
    };
    Ok(Simulate {
        warm_up,
        duration: item.duration.map_or(Ok(default), |time| duration(source, "duration", &time))?,
        replications: item.replications.map_or(DEFAULT_REPLICATIONS, Spanned::into_inner),
        until: item.until.map(Spanned::into_inner),
    })
}

pub(super) fn stream(
    source: &Source<'_>,
    item: Spanned<document::Stream>,
    switches: &[Switch],
) -> Checked<PacketStream> {
    let span = item.span();
    let item = item.into_inner();
    let known = switches.iter().map(|switch| switch.name.as_str()).collect();
    let index = find(source, "stream: switch", &item.switch, known)?;
    let Some(fabric) = &switches[index].fabric else {
        let problem = format!(
            "stream: found switch {} without [switch.fabric], expected one: it has the ports",
            switches[index].name
        );
        return Err(source.error(item.switch.span(), problem));
    };
    let virtuals = &switches[index].virtual_switches;
    let names = || virtuals.iter().map(|cut| cut.name.as_str()).collect();
    let virtual_switch =
        item.r#virtual.as_ref().map(|name| find(source, "stream: virtual", name, names())).transpose()?;
    let inputs = inputs(source, &item.inputs, fabric)?;
    let output = *item.output.as_ref();
    let Some(port) = fabric.ports.iter().find(|port| port.port == output) else {
        let problem =
            format!("stream: output: found {output}, expected one of the switch's {} ports", fabric.ports.len());
        return Err(source.error(item.output.span(), problem));
    };
    if let Some(cut) = virtual_switch.map(|index| &virtuals[index]) {
        let missing = inputs.iter().chain([&output]).find(|number| cut.ports.iter().all(|port| port.port != **number));
        if let Some(missing) = missing {
            let problem = format!("stream: found port {missing}, expected only ports of virtual switch {}", cut.name);
            return Err(source.error(span, problem));
        }
    }
    let made = made(source, &span, &item, inputs.len(), port.rate)?;
    Ok(PacketStream {
        name: item.name.or(item.r#virtual.map(Spanned::into_inner)).unwrap_or_else(|| "stream".to_owned()),
        switch: index,
        virtual_switch,
        inputs,
        output,
        source: made,
        class: item.class.unwrap_or(0),
        start: item.start.map_or(Ok(Duration::ZERO), |start| duration(source, "start", &start))?,
        duration: item.duration.map(|time| duration(source, "duration", &time)).transpose()?,
    })
}

/// Ports as numbers and ranges: `1-32` or `1,3,5-8`.
fn inputs(source: &Source<'_>, text: &Spanned<String>, fabric: &Fabric) -> Checked<Vec<u32>> {
    let wrong = |found: &str| {
        let problem = format!("stream: inputs: found `{found}`, expected ports of the switch such as `1-4` or `1,3`");
        source.error(text.span(), problem)
    };
    let mut ports = BTreeSet::new();
    for part in text.as_ref().split(',').map(str::trim) {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (u32, u32) =
            from.trim().parse().and_then(|from| Ok((from, to.trim().parse()?))).map_err(|_| wrong(part))?;
        let mut known = fabric.ports.iter().map(|port| port.port).filter(|port| (from..=to).contains(port)).peekable();
        if known.peek().is_none() || u64::from(to) - u64::from(from) + 1 != known.clone().count() as u64 {
            return Err(wrong(part));
        }
        ports.extend(known);
    }
    Ok(ports.into_iter().collect())
}

/// What each source of a stream makes.
fn made(
    source: &Source<'_>,
    span: &std::ops::Range<usize>,
    item: &document::Stream,
    inputs: usize,
    capacity: Bps,
) -> Checked<Offered> {
    let arrival = match &item.arrival {
        None => Arrival::Poisson,
        Some(arrival) => match arrival_law(source, arrival)? {
            Law::Rule(arrival) => arrival,
            Law::Trace(trace) => return trace_alone(source, item, trace),
        },
    };
    let size = size(source, item.sizes.as_ref())?;
    let place = item.sizes.as_ref().map_or(span.clone(), Spanned::span);
    let mean = Sizes::new(&size).map_err(|error| source.error(place, format!("stream: {error}")))?.mean();
    let bps = match (&item.rate, &item.load) {
        (Some(rate), None) => rate.as_ref().0 as f64,
        (None, Some(load)) if *load.as_ref() > 0.0 && *load.as_ref() <= 100.0 => {
            load.as_ref() * capacity.0 as f64 / inputs as f64
        }
        (None, Some(load)) => {
            let problem = format!(
                "stream: load: found {}, expected a share of the output's capacity above 0, at most 100",
                load.as_ref()
            );
            return Err(source.error(load.span(), problem));
        }
        _ => {
            let problem = "stream: expected either `rate` (of each input) or `load` (of all, as a share of the output's capacity)";
            return Err(source.error(span.clone(), problem.to_owned()));
        }
    };
    let per_second = bps / 8.0 / mean;
    let place = item.arrival.as_ref().map_or(span.clone(), Spanned::span);
    Arrivals::new(&arrival, per_second, &mut Stream::new(0, 0, 0))
        .map_err(|error| source.error(place, format!("stream: arrival: {error}")))?;
    Ok(Offered::Rule { arrival, per_second, size })
}

fn trace_alone(source: &Source<'_>, item: &document::Stream, trace: Trace) -> Checked<Offered> {
    let extra = [
        item.rate.as_ref().map(Spanned::span),
        item.load.as_ref().map(Spanned::span),
        item.sizes.as_ref().map(Spanned::span),
    ];
    match extra.into_iter().flatten().next() {
        Some(span) => Err(source.error(
            span,
            "stream: found it beside a trace, expected neither rate, load nor sizes: the trace has them".into(),
        )),
        None => Ok(Offered::Trace(trace)),
    }
}

enum Law {
    Rule(Arrival),
    Trace(Trace),
}

fn arrival_law(source: &Source<'_>, item: &Spanned<document::Arrival>) -> Checked<Law> {
    let wrong = |problem: String| source.error(item.span(), format!("stream: arrival: {problem}"));
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
                let text = read(source, file).map_err(wrong)?;
                return Trace::parse(&text).map(Law::Trace).map_err(|error| wrong(format!("{file}: {error}")));
            }
        },
    }))
}

fn size(source: &Source<'_>, item: Option<&Spanned<document::Size>>) -> Checked<Size> {
    let Some(item) = item else { return Ok(Size::Bimodal(Bimodal::default())) };
    let wrong = |problem: String| source.error(item.span(), format!("stream: sizes: {problem}"));
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
            let text = read(source, file).map_err(wrong)?;
            Size::Empirical(Empirical::parse(&text).map_err(|error| wrong(format!("{file}: {error}")))?)
        }
    })
}

/// A file that the scenario names: its path is from the scenario's own.
fn read(source: &Source<'_>, file: &str) -> Result<String, String> {
    let path = Path::new(source.file).parent().unwrap_or(Path::new("")).join(file);
    let unreadable = |error: std::io::Error| format!("cannot read {}: {error}", path.display());
    let bytes = std::fs::metadata(&path).map_err(unreadable)?.len();
    if bytes > MAX_FILE_BYTES {
        return Err(format!("{}: found {bytes} bytes, expected at most {MAX_FILE_BYTES}", path.display()));
    }
    std::fs::read_to_string(&path).map_err(unreadable)
}
