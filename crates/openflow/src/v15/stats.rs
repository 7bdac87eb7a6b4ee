//! Reads and writes lists of statistics, OXS (OpenFlow 1.5.1, 7.2.4).
use crate::model::error::BadRequest;
use crate::model::stats::{OxsExtraStats, OxsStats, RawStat};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

/// Class number `OFPXSC_OPENFLOW_BASIC`.
const BASIC: u16 = 0x8002;
/// Statistic numbers, `OXS_OF_*`, followed by the reserved bit.
const DURATION: u8 = 0 << 1;
const IDLE_TIME: u8 = 1 << 1;
const FLOW_COUNT: u8 = 3 << 1;
const PACKET_COUNT: u8 = 4 << 1;
const BYTE_COUNT: u8 = 5 << 1;

/// Reads statistics with their header and padding.
pub(crate) fn decode(reader: &mut WireReader<'_>) -> Decoded<OxsStats> {
    let mut part = reader.take_element("statistics", 2, 4, BadRequest::BadLen)?;
    let length = part.left();
    part.skip(4)?;
    let mut stats = OxsStats::default();
    while !part.is_empty() {
        decode_entry(&mut part, &mut stats)?;
    }
    let padding = length.next_multiple_of(8) - length;
    reader.take_part(padding, "statistics padding", BadRequest::BadLen)?;
    Ok(stats)
}

fn decode_entry(part: &mut WireReader<'_>, stats: &mut OxsStats) -> Decoded<()> {
    let (class, number, length) = (part.read_u16()?, part.read_u8()?, part.read_u8()?);
    let mut entry = part.take_part(length.into(), "statistic", BadRequest::BadLen)?;
    let pair = |entry: &mut WireReader<'_>| Ok((entry.read_u32()?, entry.read_u32()?));
    match (class, number) {
        (BASIC, DURATION) => stats.duration = Some(pair(&mut entry)?),
        (BASIC, IDLE_TIME) => stats.idle_time = Some(pair(&mut entry)?),
        (BASIC, FLOW_COUNT) => stats.flow_count = Some(entry.read_u32()?),
        (BASIC, PACKET_COUNT) => stats.packet_count = Some(entry.read_u64()?),
        (BASIC, BYTE_COUNT) => stats.byte_count = Some(entry.read_u64()?),
        (class, number) => stats.others.push(RawStat { class, number, payload: entry.read_rest() }),
    }
    entry.finish()
}

/// Writes statistics with their header and padding, in the order of their numbers.
pub(crate) fn encode(stats: &OxsStats, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_zeros(4);
    for (number, pair) in [(DURATION, stats.duration), (IDLE_TIME, stats.idle_time)] {
        if let Some((seconds, nanoseconds)) = pair {
            head(number, 8, writer);
            writer.write_u32(seconds);
            writer.write_u32(nanoseconds);
        }
    }
    if let Some(count) = stats.flow_count {
        head(FLOW_COUNT, 4, writer);
        writer.write_u32(count);
    }
    for (number, count) in [(PACKET_COUNT, stats.packet_count), (BYTE_COUNT, stats.byte_count)] {
        if let Some(count) = count {
            head(number, 8, writer);
            writer.write_u64(count);
        }
    }
    for RawStat { class, number, payload } in &stats.others {
        let Ok(length) = u8::try_from(payload.0.len()) else {
            return Err(writer.cannot(format!("a statistic of {} bytes, at most 255 fit", payload.0.len())));
        };
        writer.write_u16(*class);
        writer.write_u8(*number);
        writer.write_u8(length);
        writer.write_bytes(&payload.0);
    }
    writer.set_length(start + 2, start)?;
    writer.pad_from(start);
    Ok(())
}

fn head(number: u8, length: u8, writer: &mut WireWriter<'_>) {
    writer.write_u16(BASIC);
    writer.write_u8(number);
    writer.write_u8(length);
}

/// Statistics that every version has: seconds and nanoseconds since the flow entry was added, packets, and bytes.
pub(crate) struct BaseFlowStats {
    pub(crate) duration: (u32, u32),
    pub(crate) packet_count: u64,
    pub(crate) byte_count: u64,
}

/// Value of an absent duration.
const NO_DURATION: (u32, u32) = (u32::MAX, u32::MAX);

/// Splits statistics into those that every version has, with all ones for absent ones, and the rest.
pub(crate) fn split(stats: OxsStats) -> (BaseFlowStats, OxsExtraStats) {
    let common = BaseFlowStats {
        duration: stats.duration.unwrap_or(NO_DURATION),
        packet_count: stats.packet_count.unwrap_or(u64::MAX),
        byte_count: stats.byte_count.unwrap_or(u64::MAX),
    };
    let OxsStats { idle_time, flow_count, others, .. } = stats;
    (common, OxsExtraStats { idle_time, flow_count, others })
}

/// Combines statistics; the inverse of [`split`].
pub(crate) fn join(common: &BaseFlowStats, more: &OxsExtraStats) -> OxsStats {
    let OxsExtraStats { idle_time, flow_count, others } = more.clone();
    OxsStats {
        duration: Some(common.duration).filter(|duration| *duration != NO_DURATION),
        packet_count: Some(common.packet_count).filter(|count| *count != u64::MAX),
        byte_count: Some(common.byte_count).filter(|count| *count != u64::MAX),
        idle_time,
        flow_count,
        others,
    }
}
