//! Reads and writes table statistics (OpenFlow 1.0.0, 5.3.5).
use crate::model::TableId;
use crate::model::multipart::TableStats;
use crate::wire::{Decoded, WireReader, WireWriter};

const NAME_BYTES: usize = 32;

pub(crate) fn decode_stats(reader: &mut WireReader<'_>) -> Decoded<TableStats> {
    let table = TableId(reader.u8()?);
    reader.skip(3)?;
    Ok(TableStats {
        table,
        name: reader.text(NAME_BYTES)?,
        wildcards: reader.u32()?,
        max_entries: reader.u32()?,
        active_count: reader.u32()?,
        lookup_count: reader.u64()?,
        matched_count: reader.u64()?,
    })
}

pub(crate) fn encode_stats(stats: &TableStats, writer: &mut WireWriter<'_>) {
    writer.u8(stats.table.0);
    writer.zeros(3);
    writer.text(&stats.name, NAME_BYTES);
    writer.u32(stats.wildcards);
    writer.u32(stats.max_entries);
    writer.u32(stats.active_count);
    writer.u64(stats.lookup_count);
    writer.u64(stats.matched_count);
}
