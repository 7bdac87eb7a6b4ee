//! Checks UDP traffic: arrival times and lengths of datagrams.
use super::traffic_laws::{RuleOrTrace, TrafficLawParser};
use super::{ScenarioResult, SourceFile};
use crate::document::{self, RateToml};
use crate::udp_headers;
use std::ops::RangeInclusive;
use toml::Spanned;
use weir_traffic::{ArrivalProcess, OfferedPackets, PacketSizeLaw, PacketSizeSampler};
use weir_units::{Bps, ByteSize};

const DEFAULT_RATE: Bps = Bps(10_000_000);
const DEFAULT_PAYLOAD: ByteSize = ByteSize(1000);
/// Least payload in bytes: room for the send time and the number of the datagram, 8 bytes each.
const LEAST_PAYLOAD: u32 = 16;
/// Allowed payload lengths in bytes. The maximum fits in an IPv4 packet in an Ethernet frame of 1514 bytes.
const PAYLOAD: RangeInclusive<u64> = LEAST_PAYLOAD as u64..=1472;
/// Maximum length of a frame in bytes, without FCS.
const MAX_FRAME: u32 = 1514;
/// Maximum rate in datagrams per second.
const MAX_PACKETS: f64 = 1e9;

/// Returns arrival times and lengths of the frames that a traffic item sends. By default all frames have one length and
/// arrive at a constant rate.
pub(super) fn offered(source: &SourceFile<'_>, item: &document::TrafficToml) -> ScenarioResult<OfferedPackets> {
    let reader = TrafficLawParser { source, what: "traffic" };
    let headers = udp_headers(item.ipv6.as_ref().is_some_and(|ipv6| *ipv6.as_ref()));
    let frames = headers + LEAST_PAYLOAD..=MAX_FRAME;
    let law = item
        .arrival
        .as_ref()
        .map_or(Ok(RuleOrTrace::Rule(ArrivalProcess::Constant)), |arrival| reader.arrival(arrival, frames.clone()))?;
    let offered = match law {
        RuleOrTrace::Trace(trace) => reader.trace(
            trace,
            [
                ("rate", item.rate.as_ref().map(Spanned::span)),
                ("payload", item.payload.as_ref().map(Spanned::span)),
                ("sizes", item.sizes.as_ref().map(Spanned::span)),
            ],
        )?,
        RuleOrTrace::Rule(arrival) => {
            let size = match (&item.sizes, &item.payload) {
                (Some(sizes), None) => reader.size(sizes)?,
                (None, payload) => PacketSizeLaw::Fixed(payload_bytes(source, payload.as_ref())? + headers),
                (Some(_), Some(payload)) => {
                    let problem = "traffic: found payload and sizes, expected one of them";
                    return Err(source.error(payload.span(), problem.into()));
                }
            };
            let place = place_of_sizes(item);
            let mean =
                PacketSizeSampler::new(&size).map_err(|error| source.error(place, format!("traffic: {error}")))?.mean();
            let per_second = per_second(source, item.rate.as_ref(), mean)?;
            let place = item.arrival.as_ref().map_or_else(|| item.kind.span(), Spanned::span);
            reader.rule(place, arrival, per_second, size)?
        }
    };
    check_frames(source, item, &offered, frames)?;
    Ok(offered)
}

fn place_of_sizes(item: &document::TrafficToml) -> std::ops::Range<usize> {
    let given = [
        item.sizes.as_ref().map(Spanned::span),
        item.payload.as_ref().map(Spanned::span),
        item.arrival.as_ref().map(Spanned::span),
    ];
    given.into_iter().flatten().next().unwrap_or_else(|| item.kind.span())
}

/// Checks that all frames have lengths that can be sent.
fn check_frames(
    source: &SourceFile<'_>,
    item: &document::TrafficToml,
    offered: &OfferedPackets,
    frames: RangeInclusive<u32>,
) -> ScenarioResult<()> {
    let (least, most) = frames.into_inner();
    let place = place_of_sizes(item);
    let wrong = |problem: String| source.error(place.clone(), format!("traffic: {problem}"));
    let shortest = offered.shortest().map_err(|error| wrong(error.to_string()))?.unwrap_or(least);
    let longest = offered.longest().map_err(|error| wrong(error.to_string()))?.unwrap_or(least);
    if shortest < least || longest > most {
        return Err(wrong(format!("found frames of {shortest} to {longest} bytes, expected {least} to {most}")));
    }
    Ok(())
}

/// Returns the rate in datagrams per second. A rate in bit/s counts whole frames, which have a mean length of
/// `frame_bytes`.
fn per_second(source: &SourceFile<'_>, rate: Option<&Spanned<RateToml>>, frame_bytes: f64) -> ScenarioResult<f64> {
    let Some(rate) = rate else { return Ok(DEFAULT_RATE.0 as f64 / 8.0 / frame_bytes) };
    let expected = "expected a rate of bits such as \"10Mbit/s\", or a number of packets a second";
    match rate.as_ref() {
        RateToml::Packets(number) if *number > 0.0 && *number <= MAX_PACKETS => Ok(*number),
        RateToml::Packets(number) => Err(source.error(rate.span(), format!("rate: found {number}, {expected}"))),
        RateToml::Bits(text) => match text.parse::<Bps>() {
            Ok(bits) => Ok(bits.0 as f64 / 8.0 / frame_bytes),
            Err(_) => Err(source.error(rate.span(), format!("rate: found `{text}`, {expected}"))),
        },
    }
}

fn payload_bytes(source: &SourceFile<'_>, payload: Option<&Spanned<ByteSize>>) -> ScenarioResult<u32> {
    let bytes = payload.map_or(DEFAULT_PAYLOAD, |payload| *payload.as_ref()).0;
    match u32::try_from(bytes) {
        Ok(found) if PAYLOAD.contains(&bytes) => Ok(found),
        _ => {
            let span = payload.map_or(0..0, Spanned::span);
            Err(source.error(span, format!("payload: found {bytes}B, expected 16B to 1472B")))
        }
    }
}
