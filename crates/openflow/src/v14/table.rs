//! Reads and writes table configuration and description (OpenFlow 1.4.1, 7.3.4.1 and 7.3.5.15).
use crate::model::TableId;
use crate::model::config::{TableMod, VacancyThresholds};
use crate::model::error::BadRequest;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, property};

const EVICTION: u16 = 2;
const VACANCY: u16 = 3;

pub(crate) fn decode_mod(reader: &mut WireReader<'_>) -> Decoded<TableMod> {
    let table = TableId(reader.read_u8()?);
    reader.skip(3)?;
    decode_rest(table, reader)
}

pub(crate) fn encode_mod(table: &TableMod, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u8(table.table.0);
    writer.write_zeros(3);
    encode_rest(table, writer)
}

pub(crate) fn decode_desc(reader: &mut WireReader<'_>) -> Decoded<TableMod> {
    let mut part = reader.take_element("table description", 0, 8, BadRequest::BadLen)?;
    part.skip(2)?;
    let table = TableId(part.read_u8()?);
    part.skip(1)?;
    decode_rest(table, &mut part)
}

pub(crate) fn encode_desc(table: &TableMod, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u16(0);
    writer.write_u8(table.table.0);
    writer.write_zeros(1);
    encode_rest(table, writer)?;
    writer.set_length(start, start)
}

fn decode_rest(table: TableId, reader: &mut WireReader<'_>) -> Decoded<TableMod> {
    let mut change = TableMod::new(table, reader.read_u32()?);
    property::each(reader, |kind, part| {
        match kind {
            EVICTION => change.eviction = Some(part.read_u32()?),
            VACANCY => {
                change.vacancy =
                    Some(VacancyThresholds { down: part.read_u8()?, up: part.read_u8()?, now: part.read_u8()? });
                part.skip(1)?;
            }
            kind => change.properties.push(property::raw(kind, part)),
        }
        Ok(())
    })?;
    Ok(change)
}

fn encode_rest(change: &TableMod, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u32(change.config);
    if let Some(flags) = change.eviction {
        property::write_words(EVICTION, &[flags], writer)?;
    }
    if let Some(VacancyThresholds { down, up, now }) = change.vacancy {
        property::write_words(VACANCY, &[u32::from_be_bytes([down, up, now, 0])], writer)?;
    }
    property::encode_list(&change.properties, writer)
}
