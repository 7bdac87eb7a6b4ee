//! Reads and writes flow-removed and the multipart messages about flow entries (OpenFlow 1.5.1, 7.4.2, 7.3.5.2 to
//! 7.3.5.4).
use super::stats::{self, BaseFlowStats};
use crate::model::TableId;
use crate::model::error::BadRequest;
use crate::model::flow::{FlowFlags, FlowRemoved};
use crate::model::multipart::{AggregateStats, FlowCounters, FlowCountersReason, FlowStats};
use crate::model::stats::OxsStats;
use crate::v13::flow::{decode_instructions, last_reason, proto};
use crate::v13::{instruction, oxm};
use crate::v14::status;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, flow};

pub(crate) fn decode_removed(reader: &mut WireReader<'_>) -> Decoded<FlowRemoved> {
    let table = TableId(reader.read_u8()?);
    let reason = flow::decode_reason(reader, last_reason(reader.version()))?;
    let (priority, idle_timeout, hard_timeout) = (reader.read_u16()?, reader.read_u16()?, reader.read_u16()?);
    let (cookie, matching) = (reader.read_u64()?, oxm::decode_match(reader)?);
    let (BaseFlowStats { duration, packet_count, byte_count }, more) = stats::split(stats::decode(reader)?);
    Ok(FlowRemoved {
        cookie,
        priority,
        reason,
        table,
        duration_sec: duration.0,
        duration_nsec: duration.1,
        idle_timeout,
        hard_timeout,
        packet_count,
        byte_count,
        more,
        matching,
    })
}

pub(crate) fn encode_removed(removed: &FlowRemoved, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u8(removed.table.0);
    writer.write_u8(removed.reason as u8);
    writer.write_u16(removed.priority);
    writer.write_u16(removed.idle_timeout);
    writer.write_u16(removed.hard_timeout);
    writer.write_u64(removed.cookie);
    oxm::encode_match(&removed.matching, writer)?;
    let common = BaseFlowStats {
        duration: (removed.duration_sec, removed.duration_nsec),
        packet_count: removed.packet_count,
        byte_count: removed.byte_count,
    };
    stats::encode(&stats::join(&common, &removed.more), writer)
}

/// Reads `ofp_flow_desc`, called flow statistics in earlier versions.
pub(crate) fn decode_desc(reader: &mut WireReader<'_>) -> Decoded<FlowStats> {
    let mut entry = reader.take_element("flow description", 0, 32, BadRequest::BadLen)?;
    entry.skip(4)?;
    let table = TableId(entry.read_u8()?);
    entry.skip(1)?;
    let (priority, idle_timeout, hard_timeout) = (entry.read_u16()?, entry.read_u16()?, entry.read_u16()?);
    let (flags, importance, cookie) = (FlowFlags(entry.read_u16()?), entry.read_u16()?, entry.read_u64()?);
    let matching = oxm::decode_match(&mut entry)?;
    let (BaseFlowStats { duration, packet_count, byte_count }, more) = stats::split(stats::decode(&mut entry)?);
    Ok(FlowStats {
        table,
        duration_sec: duration.0,
        duration_nsec: duration.1,
        priority,
        idle_timeout,
        hard_timeout,
        flags,
        importance,
        cookie,
        packet_count,
        byte_count,
        more,
        matching,
        instructions: decode_instructions(&mut entry)?,
    })
}

pub(crate) fn encode_desc(entry: &FlowStats, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_zeros(4);
    writer.write_u8(entry.table.0);
    writer.write_zeros(1);
    for number in [entry.priority, entry.idle_timeout, entry.hard_timeout, entry.flags.0, entry.importance] {
        writer.write_u16(number);
    }
    writer.write_u64(entry.cookie);
    oxm::encode_match(&entry.matching, writer)?;
    let common = BaseFlowStats {
        duration: (entry.duration_sec, entry.duration_nsec),
        packet_count: entry.packet_count,
        byte_count: entry.byte_count,
    };
    stats::encode(&stats::join(&common, &entry.more), writer)?;
    instruction::encode_list(&entry.instructions, proto(&entry.matching), writer)?;
    writer.set_length(start, start)
}

/// Reads `ofp_flow_stats`: statistics without instructions.
pub(crate) fn decode_counters(reader: &mut WireReader<'_>) -> Decoded<FlowCounters> {
    let mut entry = reader.take_element("flow statistics", 0, 24, BadRequest::BadLen)?;
    entry.skip(4)?;
    let table = TableId(entry.read_u8()?);
    let reason = status::reason(&mut entry, &[(0, FlowCountersReason::Request), (1, FlowCountersReason::Trigger)])?;
    let (priority, matching) = (entry.read_u16()?, oxm::decode_match(&mut entry)?);
    let counters = FlowCounters { table, reason, priority, matching, stats: stats::decode(&mut entry)? };
    entry.finish()?;
    Ok(counters)
}

pub(crate) fn encode_counters(entry: &FlowCounters, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_zeros(4);
    writer.write_u8(entry.table.0);
    writer.write_u8(entry.reason as u8);
    writer.write_u16(entry.priority);
    oxm::encode_match(&entry.matching, writer)?;
    stats::encode(&entry.stats, writer)?;
    writer.set_length(start, start)
}

/// Reads aggregate statistics. Ignores statistics that are not sums.
pub(crate) fn decode_aggregate(reader: &mut WireReader<'_>) -> Decoded<AggregateStats> {
    let stats = stats::decode(reader)?;
    Ok(AggregateStats {
        packet_count: stats.packet_count.unwrap_or(u64::MAX),
        byte_count: stats.byte_count.unwrap_or(u64::MAX),
        flow_count: stats.flow_count.unwrap_or(u32::MAX),
    })
}

pub(crate) fn encode_aggregate(aggregate: &AggregateStats, writer: &mut WireWriter<'_>) -> Encoded {
    let stats = OxsStats {
        flow_count: Some(aggregate.flow_count).filter(|count| *count != u32::MAX),
        packet_count: Some(aggregate.packet_count).filter(|count| *count != u64::MAX),
        byte_count: Some(aggregate.byte_count).filter(|count| *count != u64::MAX),
        ..OxsStats::default()
    };
    stats::encode(&stats, writer)
}
