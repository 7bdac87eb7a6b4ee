//! Tables: configuration, statistics, features (OpenFlow 1.3.5, 7.3.4.1, 7.3.5.4, 7.3.5.5).
use super::oxm;
use crate::model::TableId;
use crate::model::config::TableMod;
use crate::model::error::TableFeaturesFailed;
use crate::model::multipart::{TableFeatures, TableProperty, TableStats, TypeId};
use crate::wire::{Decoded, Encoded, Reader, Writer};

const NAME_BYTES: usize = 32;

/// Properties, of which all but the match and the wildcards have a second number for the table-miss entry.
const INSTRUCTIONS: u16 = 0;
const NEXT_TABLES: u16 = 2;
const WRITE_ACTIONS: u16 = 4;
const APPLY_ACTIONS: u16 = 6;
const MATCH: u16 = 8;
const WILDCARDS: u16 = 10;
const WRITE_SETFIELD: u16 = 12;
const APPLY_SETFIELD: u16 = 14;
const EXPERIMENTER: u16 = 0xfffe;
/// Type number of an experimenter's instruction or action.
const EXPERIMENTER_ID: u16 = 0xffff;

pub(crate) fn decode_mod(reader: &mut Reader<'_>) -> Decoded<TableMod> {
    let table = TableId(reader.u8()?);
    reader.skip(3)?;
    Ok(TableMod::new(table, reader.u32()?))
}

pub(crate) fn encode_mod(table: &TableMod, writer: &mut Writer<'_>) {
    writer.u8(table.table.0);
    writer.zeros(3);
    writer.u32(table.config);
}

pub(crate) fn decode_stats(reader: &mut Reader<'_>) -> Decoded<TableStats> {
    let table = TableId(reader.u8()?);
    reader.skip(3)?;
    Ok(TableStats {
        table,
        name: String::new(),
        wildcards: 0,
        max_entries: 0,
        active_count: reader.u32()?,
        lookup_count: reader.u64()?,
        matched_count: reader.u64()?,
    })
}

pub(crate) fn encode_stats(stats: &TableStats, writer: &mut Writer<'_>) {
    writer.u8(stats.table.0);
    writer.zeros(3);
    writer.u32(stats.active_count);
    writer.u64(stats.lookup_count);
    writer.u64(stats.matched_count);
}

pub(crate) fn decode_features(reader: &mut Reader<'_>) -> Decoded<TableFeatures> {
    let mut part = reader.element("table features", 0, 64, TableFeaturesFailed::BadLen)?;
    part.skip(2)?;
    let table = TableId(part.u8()?);
    part.skip(5)?;
    Ok(TableFeatures {
        table,
        command: 0,
        features: 0,
        name: part.text(NAME_BYTES)?,
        metadata_match: part.u64()?,
        metadata_write: part.u64()?,
        config: part.u32()?,
        max_entries: part.u32()?,
        properties: part.list(decode_property)?,
    })
}

pub(crate) fn encode_features(features: &TableFeatures, writer: &mut Writer<'_>) -> Encoded {
    let start = writer.at();
    writer.u16(0);
    writer.u8(features.table.0);
    writer.zeros(5);
    writer.text(&features.name, NAME_BYTES);
    writer.u64(features.metadata_match);
    writer.u64(features.metadata_write);
    writer.u32(features.config);
    writer.u32(features.max_entries);
    features.properties.iter().try_for_each(|property| encode_property(property, writer))?;
    writer.set_length(start, start)
}

fn decode_property(reader: &mut Reader<'_>) -> Decoded<TableProperty> {
    let mut part = reader.element("table property", 2, 4, TableFeaturesFailed::BadLen)?;
    let length = part.left();
    let kind = part.u16()?;
    part.skip(2)?;
    let miss = kind & 1 != 0;
    let property = match kind & !1 {
        INSTRUCTIONS => TableProperty::Instructions { miss, ids: part.list(decode_id)? },
        NEXT_TABLES => TableProperty::NextTables { miss, tables: part.rest().0.into_iter().map(TableId).collect() },
        WRITE_ACTIONS => TableProperty::WriteActions { miss, ids: part.list(decode_id)? },
        APPLY_ACTIONS => TableProperty::ApplyActions { miss, ids: part.list(decode_id)? },
        MATCH if !miss => TableProperty::Match(part.list(oxm::decode_id)?),
        WILDCARDS if !miss => TableProperty::Wildcards(part.list(oxm::decode_id)?),
        WRITE_SETFIELD => TableProperty::WriteSetField { miss, fields: part.list(oxm::decode_id)? },
        APPLY_SETFIELD => TableProperty::ApplySetField { miss, fields: part.list(oxm::decode_id)? },
        EXPERIMENTER => TableProperty::Experimenter { miss, id: part.u32()?, kind: part.u32()?, data: part.rest() },
        _ => TableProperty::Unknown { kind, data: part.rest() },
    };
    reader.skip(length.next_multiple_of(8) - length)?;
    Ok(property)
}

fn encode_property(property: &TableProperty, writer: &mut Writer<'_>) -> Encoded {
    let start = writer.at();
    writer.u16(match property {
        TableProperty::Instructions { miss, .. } => INSTRUCTIONS | u16::from(*miss),
        TableProperty::NextTables { miss, .. } => NEXT_TABLES | u16::from(*miss),
        TableProperty::WriteActions { miss, .. } => WRITE_ACTIONS | u16::from(*miss),
        TableProperty::ApplyActions { miss, .. } => APPLY_ACTIONS | u16::from(*miss),
        TableProperty::Match(_) => MATCH,
        TableProperty::Wildcards(_) => WILDCARDS,
        TableProperty::WriteSetField { miss, .. } => WRITE_SETFIELD | u16::from(*miss),
        TableProperty::ApplySetField { miss, .. } => APPLY_SETFIELD | u16::from(*miss),
        TableProperty::TableSyncFrom(_)
        | TableProperty::WriteCopyField { .. }
        | TableProperty::ApplyCopyField { .. }
        | TableProperty::PacketTypes(_) => return Err(writer.cannot("this table property")),
        TableProperty::Experimenter { miss, .. } => EXPERIMENTER | u16::from(*miss),
        TableProperty::Unknown { kind, .. } => *kind,
    });
    writer.u16(0);
    match property {
        TableProperty::Instructions { ids, .. }
        | TableProperty::WriteActions { ids, .. }
        | TableProperty::ApplyActions { ids, .. } => ids.iter().try_for_each(|id| encode_id(id, writer))?,
        TableProperty::NextTables { tables, .. } => tables.iter().for_each(|table| writer.u8(table.0)),
        TableProperty::Match(fields)
        | TableProperty::Wildcards(fields)
        | TableProperty::WriteSetField { fields, .. }
        | TableProperty::ApplySetField { fields, .. } => {
            fields.iter().try_for_each(|field| oxm::encode_id(field, writer))?;
        }
        TableProperty::Experimenter { id, kind, data, .. } => {
            writer.u32(*id);
            writer.u32(*kind);
            writer.bytes(&data.0);
        }
        TableProperty::Unknown { data, .. } => writer.bytes(&data.0),
        _ => (),
    }
    writer.set_length(start + 2, start)?;
    writer.pad_from(start);
    Ok(())
}

/// The type of an instruction or action: its header, without the padding that an action has elsewhere.
fn decode_id(reader: &mut Reader<'_>) -> Decoded<TypeId> {
    let mut part = reader.element("type id", 2, 4, TableFeaturesFailed::BadLen)?;
    let kind = part.u16()?;
    part.skip(2)?;
    if kind == EXPERIMENTER_ID {
        return Ok(TypeId::Experimenter { id: part.u32()?, data: part.rest() });
    }
    part.finish()?;
    Ok(TypeId::Standard(kind))
}

fn encode_id(id: &TypeId, writer: &mut Writer<'_>) -> Encoded {
    let start = writer.at();
    match id {
        TypeId::Standard(kind) => {
            writer.u16(*kind);
            writer.u16(0);
        }
        TypeId::Experimenter { id, data } => {
            writer.u16(EXPERIMENTER_ID);
            writer.u16(0);
            writer.u32(*id);
            writer.bytes(&data.0);
        }
    }
    writer.set_length(start + 2, start)
}
