//! Reads and writes table statistics (OpenFlow 1.0.0, 5.3.5).
use crate::model::TableId;
use crate::model::multipart::TableStats;
use crate::wire::{Decoded, WireReader, WireWriter};

const NAME_BYTES: usize = 32;

pub(crate) fn decode_stats(reader: &mut WireReader<'_>) -> Decoded<TableStats> {
    let table = TableId(reader.read_u8()?);
    reader.skip(3)?;
    Ok(TableStats {
        table,
        name: reader.read_text(NAME_BYTES)?,
        wildcards: reader.read_u32()?,
        max_entries: reader.read_u32()?,
        active_count: reader.read_u32()?,
        lookup_count: reader.read_u64()?,
        matched_count: reader.read_u64()?,
    })
}

pub(crate) fn encode_stats(stats: &TableStats, writer: &mut WireWriter<'_>) {
    writer.write_u8(stats.table.0);
    writer.write_zeros(3);
    writer.write_text(&stats.name, NAME_BYTES);
    writer.write_u32(stats.wildcards);
    writer.write_u32(stats.max_entries);
    writer.write_u32(stats.active_count);
    writer.write_u64(stats.lookup_count);
    writer.write_u64(stats.matched_count);
}
