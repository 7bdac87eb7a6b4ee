//! Checks streams and the settings of their simulation.
use super::traffic_laws::{RuleOrTrace, TrafficLawParser};
use super::{MAX_DURATION, ScenarioResult, SourceFile, duration, find};
use crate::document;
use crate::error::line_of;
use crate::{PacketStream, ScenarioSwitch, SimulationSettings};
use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::time::Duration;
use toml::Spanned;
use weir_slicing::{FabricSpec, VirtualPortSpec, VirtualSwitch};
use weir_traffic::{ArrivalProcess, BimodalSizes, MAX_BYTES, OfferedPackets, PacketSizeLaw, PacketSizeSampler};
use weir_units::Bps;

/// Largest number of replications.
const MAX_REPLICATIONS: u32 = 10_000;
const DEFAULT_REPLICATIONS: u32 = 10;
/// Least length of a frame of a stream, in bytes: Ethernet and IPv4 headers, and the stamp of live runs.
const LEAST_FRAME: u32 = 14 + 20 + 12;

pub(super) fn simulate(
    source: &SourceFile<'_>,
    item: Option<Spanned<document::SimulateToml>>,
    default: Duration,
) -> ScenarioResult<SimulationSettings> {
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
    Ok(SimulationSettings {
        warm_up,
        duration: item.duration.map_or(Ok(default), |time| duration(source, "duration", &time))?,
        replications: item.replications.map_or(DEFAULT_REPLICATIONS, Spanned::into_inner),
        until: item.until.map(Spanned::into_inner),
    })
}

pub(super) fn stream(
    source: &SourceFile<'_>,
    item: Spanned<document::StreamToml>,
    switches: &[ScenarioSwitch],
) -> ScenarioResult<PacketStream> {
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
        passes(cut, &inputs, output).map_err(|problem| source.error(span.clone(), format!("stream: {problem}")))?;
    }
    let most = u32::try_from(fabric.max_packet.0).unwrap_or(u32::MAX).min(MAX_BYTES);
    let made = source_traffic(source, (&span, &item), inputs.len(), port.rate, LEAST_FRAME..=most)?;
    if let Some(longest) = longest(&made).filter(|longest| u64::from(*longest) > fabric.max_packet.0) {
        let place = item.sizes.as_ref().map(Spanned::span).or(item.arrival.as_ref().map(Spanned::span));
        let problem = format!(
            "stream: sizes: found packets of up to {longest} bytes, expected at most `max_packet` of [switch.fabric], {}: \
             make it larger, and buffers at least as large",
            fabric.max_packet
        );
        return Err(source.error(place.unwrap_or(span), problem));
    }
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
        line: Some(line_of(source.text, &span)),
    })
}

/// Checks that a virtual switch has the ports of a stream, and passes packets in the stream's direction.
fn passes(cut: &VirtualSwitch, inputs: &[u32], output: u32) -> Result<(), String> {
    let share = |number: u32| cut.ports.iter().find(|port| port.port == number);
    if let Some(missing) = inputs.iter().chain([&output]).find(|number| share(**number).is_none()) {
        return Err(format!("found port {missing}, expected only ports of virtual switch {}", cut.name));
    }
    let has = |number: u32, rate: fn(&VirtualPortSpec) -> Bps| share(number).is_some_and(|port| rate(port).0 > 0);
    if let Some(closed) = inputs.iter().find(|number| !has(**number, |port| port.rate_in)) {
        return Err(format!(
            "inputs: found port {closed}, for which virtual switch {} has no `rate_in`, expected one: nothing gets in",
            cut.name
        ));
    }
    if !has(output, |port| port.rate_out) {
        return Err(format!(
            "output: found port {output}, for which virtual switch {} has no `rate_out`, expected one: all packets would \
             be lost",
            cut.name
        ));
    }
    Ok(())
}

/// Returns the length of a stream's longest packet; `None` if lengths have no limit.
fn longest(offered: &OfferedPackets) -> Option<u32> {
    match offered {
        // Lengths of formulas, without a limit; they are cut off nowhere.
        OfferedPackets::Rule { size: PacketSizeLaw::Exponential(_), .. } => None,
        OfferedPackets::Rule { size, .. } => PacketSizeSampler::new(size).ok().map(|sizes| sizes.longest()),
        OfferedPackets::Trace(trace) => trace.packets().iter().map(|packet| packet.bytes).max(),
    }
}

/// Parses ports as numbers and ranges: `1-32` or `1,3,5-8`.
fn inputs(source: &SourceFile<'_>, text: &Spanned<String>, fabric: &FabricSpec) -> ScenarioResult<Vec<u32>> {
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

/// Returns the traffic of each of a stream's sources. `captured` are the lengths that frames of a capture may have.
fn source_traffic(
    source: &SourceFile<'_>,
    (span, item): (&std::ops::Range<usize>, &document::StreamToml),
    inputs: usize,
    capacity: Bps,
    captured: RangeInclusive<u32>,
) -> ScenarioResult<OfferedPackets> {
    let reader = TrafficLawParser { source, what: "stream" };
    let arrival = match &item.arrival {
        None => ArrivalProcess::Poisson,
        Some(arrival) => match reader.arrival(arrival, captured)? {
            RuleOrTrace::Rule(arrival) => arrival,
            RuleOrTrace::Trace(trace) => {
                let others = [
                    ("rate", item.rate.as_ref().map(Spanned::span)),
                    ("load", item.load.as_ref().map(Spanned::span)),
                    ("sizes", item.sizes.as_ref().map(Spanned::span)),
                ];
                return reader.trace(trace, others);
            }
        },
    };
    let size =
        item.sizes.as_ref().map_or(Ok(PacketSizeLaw::Bimodal(BimodalSizes::default())), |sizes| reader.size(sizes))?;
    let place = item.sizes.as_ref().map_or(span.clone(), Spanned::span);
    let mean = PacketSizeSampler::new(&size).map_err(|error| source.error(place, format!("stream: {error}")))?.mean();
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
    let place = item.arrival.as_ref().map_or(span.clone(), Spanned::span);
    reader.rule(place, arrival, bps / 8.0 / mean, size)
}
