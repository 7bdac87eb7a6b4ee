//! Reads and writes Nicira's statistics (Open vSwitch's `NXST_*`), which 1.0 uses for flow entries that its own
//! statistics cannot express.
use super::{monitor, nxm};
use crate::model::error::BadRequest;
use crate::model::flow::FlowFlags;
use crate::model::multipart::{FlowRequest, FlowStats, ReplyBody, RequestBody};
use crate::model::nicira::NICIRA;
use crate::model::stats::OxsExtraStats;
use crate::model::{GroupId, TableId, Version};
use crate::v10::{flow, port};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, multipart, opaque};

const FLOW: u32 = 0;
const AGGREGATE: u32 = 1;
const FLOW_MONITOR: u32 = 2;

/// Reads the head of a Nicira statistics message and returns its type; reads nothing and returns `None` for other
/// messages.
fn known(reader: &mut WireReader<'_>) -> Decoded<Option<u32>> {
    let mut head = reader.clone();
    if head.left() < 12 || head.read_u32()? != NICIRA {
        return Ok(None);
    }
    let kind = head.read_u32()?;
    if !matches!(kind, FLOW | AGGREGATE | FLOW_MONITOR) {
        return Ok(None);
    }
    head.skip(4)?;
    head.rename("Nicira statistics");
    *reader = head;
    Ok(Some(kind))
}

/// Reads an experimenter's request. An unknown one stays uninterpreted.
pub(crate) fn decode_request(reader: &mut WireReader<'_>) -> Decoded<RequestBody> {
    Ok(match known(reader)? {
        Some(FLOW) => RequestBody::NxFlow(decode_flow_request(reader)?),
        Some(FLOW_MONITOR) => RequestBody::FlowMonitor(reader.read_list(monitor::decode_request)?),
        Some(_) => RequestBody::NxAggregate(decode_flow_request(reader)?),
        None => RequestBody::Experimenter(opaque::decode(reader, Version::V10)?),
    })
}

/// Reads an experimenter's reply. An unknown one stays uninterpreted.
pub(crate) fn decode_reply(reader: &mut WireReader<'_>) -> Decoded<ReplyBody> {
    Ok(match known(reader)? {
        Some(FLOW) => ReplyBody::NxFlow(reader.read_list(decode_stats)?),
        Some(FLOW_MONITOR) => ReplyBody::FlowMonitor(reader.read_list(monitor::decode_update)?),
        Some(_) => ReplyBody::NxAggregate(multipart::decode_aggregate(reader)?),
        None => ReplyBody::Experimenter(opaque::decode(reader, Version::V10)?),
    })
}

fn head(kind: u32, writer: &mut WireWriter<'_>) {
    writer.write_u32(NICIRA);
    writer.write_u32(kind);
    writer.write_zeros(4);
}

/// Writes a Nicira request.
pub(crate) fn encode_request(body: &RequestBody, writer: &mut WireWriter<'_>) -> Encoded {
    match body {
        RequestBody::NxFlow(request) => {
            head(FLOW, writer);
            encode_flow_request(request, writer)
        }
        RequestBody::NxAggregate(request) => {
            head(AGGREGATE, writer);
            encode_flow_request(request, writer)
        }
        RequestBody::FlowMonitor(monitors) => {
            head(FLOW_MONITOR, writer);
            monitors.iter().try_for_each(|monitor| monitor::encode_request(monitor, writer))
        }
        _ => Ok(()),
    }
}

/// Writes a Nicira reply.
pub(crate) fn encode_reply(body: &ReplyBody, writer: &mut WireWriter<'_>) -> Encoded {
    match body {
        ReplyBody::NxFlow(entries) => {
            head(FLOW, writer);
            entries.iter().try_for_each(|stats| encode_stats(stats, writer))
        }
        ReplyBody::NxAggregate(stats) => {
            head(AGGREGATE, writer);
            multipart::encode_aggregate(stats, writer);
            Ok(())
        }
        ReplyBody::FlowMonitor(updates) => {
            head(FLOW_MONITOR, writer);
            updates.iter().try_for_each(|update| monitor::encode_update(update, writer))
        }
        _ => Ok(()),
    }
}

fn decode_flow_request(reader: &mut WireReader<'_>) -> Decoded<FlowRequest> {
    let (out_port, length, table) = (port::decode_no(reader)?, reader.read_u16()?, TableId(reader.read_u8()?));
    reader.skip(3)?;
    let (matching, cookie) = nxm::decode_match(reader, length)?;
    let (cookie, cookie_mask) = cookie.unwrap_or_default();
    Ok(FlowRequest { table, out_port, out_group: GroupId::ANY, cookie, cookie_mask, matching })
}

fn encode_flow_request(request: &FlowRequest, writer: &mut WireWriter<'_>) -> Encoded {
    if request.out_group != GroupId::ANY {
        return Err(writer.cannot("a request for the entries with a group"));
    }
    port::encode_no(request.out_port, writer)?;
    let place = writer.at();
    writer.write_u16(0);
    writer.write_u8(request.table.0);
    writer.write_zeros(3);
    let cookie = (request.cookie_mask != 0).then_some((request.cookie, request.cookie_mask));
    nxm::encode_match(&request.matching, cookie, place, writer)
}

fn decode_stats(reader: &mut WireReader<'_>) -> Decoded<FlowStats> {
    let mut entry = reader.take_element("flow statistics", 0, 48, BadRequest::BadLen)?;
    entry.skip(2)?;
    let table = TableId(entry.read_u8()?);
    entry.skip(1)?;
    let (duration_sec, duration_nsec) = (entry.read_u32()?, entry.read_u32()?);
    let (priority, idle_timeout, hard_timeout) = (entry.read_u16()?, entry.read_u16()?, entry.read_u16()?);
    let length = entry.read_u16()?;
    // Seconds since the last packet and the last change, plus one. The model does not have them.
    entry.skip(4)?;
    let (cookie, packet_count, byte_count) = (entry.read_u64()?, entry.read_u64()?, entry.read_u64()?);
    Ok(FlowStats {
        table,
        duration_sec,
        duration_nsec,
        priority,
        idle_timeout,
        hard_timeout,
        flags: FlowFlags::default(),
        importance: 0,
        cookie,
        packet_count,
        byte_count,
        more: OxsExtraStats::default(),
        matching: nxm::decode_match(&mut entry, length)?.0,
        instructions: flow::decode_actions(&mut entry)?,
    })
}

fn encode_stats(stats: &FlowStats, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u16(0);
    writer.write_u8(stats.table.0);
    writer.write_zeros(1);
    writer.write_u32(stats.duration_sec);
    writer.write_u32(stats.duration_nsec);
    writer.write_u16(stats.priority);
    writer.write_u16(stats.idle_timeout);
    writer.write_u16(stats.hard_timeout);
    let place = writer.at();
    writer.write_u16(0);
    // The ages are unknown.
    writer.write_zeros(4);
    writer.write_u64(stats.cookie);
    writer.write_u64(stats.packet_count);
    writer.write_u64(stats.byte_count);
    nxm::encode_match(&stats.matching, None, place, writer)?;
    flow::encode_actions(&stats.instructions, writer)?;
    writer.set_length(start, start)
}
