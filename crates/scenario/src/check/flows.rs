//! Checks flows of datagrams: share of datagrams that begin one, packets of each, and concurrent flows.
use super::{ScenarioResult, SourceFile};
use crate::document;
use std::ops::Range;
use weir_traffic::MAX_FLOWS;

/// Largest mean number of packets of a flow.
const MAX_PACKETS: f64 = 1e9;
/// Tolerance between `new_flows` and `flow_packets`, for numbers rounded in the file.
const ROUNDING: f64 = 1e-3;

/// Returns the share of datagrams that begin a flow, and the number of concurrent flows, if the file limits it.
pub(super) fn flows(source: &SourceFile<'_>, item: &document::TrafficToml) -> ScenarioResult<(f64, Option<u32>)> {
    let wrong = |span: Range<usize>, problem: String| Err(source.error(span, problem));
    let share = new_flows(source, item)?;
    let packets = flow_packets(source, item)?;
    if let (Some(given), Some(share), Some(packets)) = (&item.new_flows, share, packets)
        && (share * packets - 1.0).abs() > ROUNDING
    {
        let expected = 1.0 / packets;
        return wrong(
            given.span(),
            format!("new_flows: found {share} beside flow_packets = {packets}, expected one of them, or {expected}"),
        );
    }
    let Some(flows) = &item.flows else {
        return match &item.flow_packets {
            None => Ok((share.unwrap_or(0.0), None)),
            Some(given) => wrong(
                given.span(),
                format!(
                    "flow_packets: found it without `flows`, expected how many flows there are at a time, 1 to {MAX_FLOWS}"
                ),
            ),
        };
    };
    let number = *flows.as_ref();
    if !(1..=MAX_FLOWS).contains(&number) {
        return wrong(flows.span(), format!("flows: found {number}, expected 1 to {MAX_FLOWS} flows at a time"));
    }
    match packets.map(|packets| 1.0 / packets).or(share.filter(|share| *share > 0.0)) {
        Some(share) => Ok((share, Some(number))),
        None => wrong(
            flows.span(),
            "flows: found it without `flow_packets`, expected the mean number of packets of a flow, 1 or more".into(),
        ),
    }
}

fn new_flows(source: &SourceFile<'_>, item: &document::TrafficToml) -> ScenarioResult<Option<f64>> {
    match &item.new_flows {
        Some(share) if !(0.0..=1.0).contains(share.as_ref()) => {
            let problem = format!("new_flows: found {}, expected a share of the packets, 0 to 1", share.as_ref());
            Err(source.error(share.span(), problem))
        }
        share => Ok(share.as_ref().map(|share| *share.as_ref())),
    }
}

fn flow_packets(source: &SourceFile<'_>, item: &document::TrafficToml) -> ScenarioResult<Option<f64>> {
    match &item.flow_packets {
        Some(packets) if !(1.0..=MAX_PACKETS).contains(packets.as_ref()) => {
            let problem =
                format!("flow_packets: found {}, expected the mean of a flow's packets, 1 to 1e9", packets.as_ref());
            Err(source.error(packets.span(), problem))
        }
        packets => Ok(packets.as_ref().map(|packets| *packets.as_ref())),
    }
}

/// Returns the key by which the item begins flows, and its place in the file; `None` if no flows begin.
pub(super) fn new_flow_key(item: &document::TrafficToml) -> Option<(&'static str, Range<usize>)> {
    let share = item.new_flows.as_ref().filter(|share| *share.as_ref() > 0.0);
    let packets = item.flow_packets.as_ref();
    share.map(|share| ("new_flows", share.span())).or(packets.map(|packets| ("flow_packets", packets.span())))
}
