//! Reads and writes table configuration, statistics and features (OpenFlow 1.3.5, 7.3.3, 7.3.5.4, 7.3.5.5).
use super::oxm;
use crate::model::config::TableMod;
use crate::model::error::{BadProperty, TableFeaturesFailed};
use crate::model::multipart::{FeatureTypeId, TableFeatures, TableFeaturesCommand, TableProperty, TableStats};
use crate::model::{ErrorType, TableId, Version};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

const NAME_BYTES: usize = 32;

/// Property types. All except match, wildcards, table-sync-from and packet types have a second number, one higher,
/// for the table-miss entry.
const INSTRUCTIONS: u16 = 0;
const NEXT_TABLES: u16 = 2;
const WRITE_ACTIONS: u16 = 4;
const APPLY_ACTIONS: u16 = 6;
const MATCH: u16 = 8;
const WILDCARDS: u16 = 10;
const WRITE_SETFIELD: u16 = 12;
const APPLY_SETFIELD: u16 = 14;
/// Property type since 1.4.
const TABLE_SYNC_FROM: u16 = 16;
/// Property type since 1.5, like the next two.
const WRITE_COPYFIELD: u16 = 18;
const APPLY_COPYFIELD: u16 = 20;
const PACKET_TYPES: u16 = 22;
const EXPERIMENTER: u16 = 0xfffe;
/// Type number that marks an experimenter's instruction or action.
const EXPERIMENTER_ID: u16 = 0xffff;

pub(crate) fn decode_mod(reader: &mut WireReader<'_>) -> Decoded<TableMod> {
    let table = TableId(reader.read_u8()?);
    reader.skip(3)?;
    Ok(TableMod::new(table, reader.read_u32()?))
}

pub(crate) fn encode_mod(table: &TableMod, writer: &mut WireWriter<'_>) {
    writer.write_u8(table.table.0);
    writer.write_zeros(3);
    writer.write_u32(table.config);
}

pub(crate) fn decode_stats(reader: &mut WireReader<'_>) -> Decoded<TableStats> {
    let table = TableId(reader.read_u8()?);
    reader.skip(3)?;
    Ok(TableStats {
        table,
        name: String::new(),
        wildcards: 0,
        max_entries: 0,
        active_count: reader.read_u32()?,
        lookup_count: reader.read_u64()?,
        matched_count: reader.read_u64()?,
    })
}

pub(crate) fn encode_stats(stats: &TableStats, writer: &mut WireWriter<'_>) {
    writer.write_u8(stats.table.0);
    writer.write_zeros(3);
    writer.write_u32(stats.active_count);
    writer.write_u64(stats.lookup_count);
    writer.write_u64(stats.matched_count);
}

pub(crate) fn decode_features(reader: &mut WireReader<'_>) -> Decoded<TableFeatures> {
    let mut part = reader.take_element("table features", 0, 64, bad_length(reader.version()))?;
    part.skip(2)?;
    let table = TableId(part.read_u8()?);
    let (command, features) = (TableFeaturesCommand::from_number(part.read_u8()?), part.read_u32()?);
    let is_new = part.version() >= Version::V15;
    let (command, features) = if is_new { (command, features) } else { (TableFeaturesCommand::Replace, 0) };
    Ok(TableFeatures {
        table,
        command,
        features,
        name: part.read_text(NAME_BYTES)?,
        metadata_match: part.read_u64()?,
        metadata_write: part.read_u64()?,
        config: part.read_u32()?,
        max_entries: part.read_u32()?,
        properties: part.read_list(decode_property)?,
    })
}

pub(crate) fn encode_features(features: &TableFeatures, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u16(0);
    writer.write_u8(features.table.0);
    if writer.version() >= Version::V15 {
        writer.write_u8(features.command.number());
        writer.write_u32(features.features);
    } else {
        writer.write_zeros(5);
    }
    writer.write_text(&features.name, NAME_BYTES);
    writer.write_u64(features.metadata_match);
    writer.write_u64(features.metadata_write);
    writer.write_u32(features.config);
    writer.write_u32(features.max_entries);
    features.properties.iter().try_for_each(|property| encode_property(property, writer))?;
    writer.set_length(start, start)
}

fn decode_property(reader: &mut WireReader<'_>) -> Decoded<TableProperty> {
    let mut part = reader.take_element("table property", 2, 4, bad_length(reader.version()))?;
    let version = part.version();
    let length = part.left();
    let kind = part.read_u16()?;
    part.skip(2)?;
    let miss = kind & 1 != 0;
    let property = match kind & !1 {
        INSTRUCTIONS => TableProperty::Instructions { miss, ids: part.read_list(decode_id)? },
        NEXT_TABLES => TableProperty::NextTables { miss, tables: decode_tables(&mut part) },
        WRITE_ACTIONS => TableProperty::WriteActions { miss, ids: part.read_list(decode_id)? },
        APPLY_ACTIONS => TableProperty::ApplyActions { miss, ids: part.read_list(decode_id)? },
        MATCH if !miss => TableProperty::Match(part.read_list(oxm::decode_id)?),
        WILDCARDS if !miss => TableProperty::Wildcards(part.read_list(oxm::decode_id)?),
        WRITE_SETFIELD => TableProperty::WriteSetField { miss, fields: part.read_list(oxm::decode_id)? },
        APPLY_SETFIELD => TableProperty::ApplySetField { miss, fields: part.read_list(oxm::decode_id)? },
        TABLE_SYNC_FROM if !miss && version >= Version::V14 => TableProperty::TableSyncFrom(decode_tables(&mut part)),
        WRITE_COPYFIELD if version >= Version::V15 => {
            TableProperty::WriteCopyField { miss, fields: part.read_list(oxm::decode_id)? }
        }
        APPLY_COPYFIELD if version >= Version::V15 => {
            TableProperty::ApplyCopyField { miss, fields: part.read_list(oxm::decode_id)? }
        }
        PACKET_TYPES if !miss && version >= Version::V15 => {
            TableProperty::PacketTypes(part.read_list(|part| oxm::decode_entry(part, BadProperty::BadLen.into()))?)
        }
        EXPERIMENTER => {
            TableProperty::Experimenter { miss, id: part.read_u32()?, kind: part.read_u32()?, data: part.read_rest() }
        }
        _ => TableProperty::Unknown { kind, data: part.read_rest() },
    };
    reader.skip(length.next_multiple_of(8) - length)?;
    Ok(property)
}

fn decode_tables(part: &mut WireReader<'_>) -> Vec<TableId> {
    part.read_rest().0.into_iter().map(TableId).collect()
}

/// Returns the error for a wrong length. Since 1.4, there are errors for properties of any kind.
fn bad_length(version: Version) -> ErrorType {
    if version >= Version::V14 { BadProperty::BadLen.into() } else { TableFeaturesFailed::BadLen.into() }
}

/// Returns the first version that has this property.
fn since(property: &TableProperty) -> Version {
    match property {
        TableProperty::TableSyncFrom(_) => Version::V14,
        TableProperty::WriteCopyField { .. } | TableProperty::ApplyCopyField { .. } | TableProperty::PacketTypes(_) => {
            Version::V15
        }
        _ => Version::V13,
    }
}

/// Writes a property. Leaves out properties that the version lacks, because incomplete features are more useful than
/// none.
fn encode_property(property: &TableProperty, writer: &mut WireWriter<'_>) -> Encoded {
    if writer.version() < since(property) {
        return Ok(());
    }
    let start = writer.at();
    writer.write_u16(match property {
        TableProperty::Instructions { miss, .. } => INSTRUCTIONS | u16::from(*miss),
        TableProperty::NextTables { miss, .. } => NEXT_TABLES | u16::from(*miss),
        TableProperty::WriteActions { miss, .. } => WRITE_ACTIONS | u16::from(*miss),
        TableProperty::ApplyActions { miss, .. } => APPLY_ACTIONS | u16::from(*miss),
        TableProperty::Match(_) => MATCH,
        TableProperty::Wildcards(_) => WILDCARDS,
        TableProperty::WriteSetField { miss, .. } => WRITE_SETFIELD | u16::from(*miss),
        TableProperty::ApplySetField { miss, .. } => APPLY_SETFIELD | u16::from(*miss),
        TableProperty::TableSyncFrom(_) => TABLE_SYNC_FROM,
        TableProperty::WriteCopyField { miss, .. } => WRITE_COPYFIELD | u16::from(*miss),
        TableProperty::ApplyCopyField { miss, .. } => APPLY_COPYFIELD | u16::from(*miss),
        TableProperty::PacketTypes(_) => PACKET_TYPES,
        TableProperty::Experimenter { miss, .. } => EXPERIMENTER | u16::from(*miss),
        TableProperty::Unknown { kind, .. } => *kind,
    });
    writer.write_u16(0);
    match property {
        TableProperty::Instructions { ids, .. } => ids.iter().try_for_each(|id| encode_id(id, writer))?,
        TableProperty::WriteActions { ids, .. } | TableProperty::ApplyActions { ids, .. } => {
            ids.iter().try_for_each(|id| encode_id(id, writer))?;
        }
        TableProperty::PacketTypes(types) => types.iter().try_for_each(|one| oxm::encode_entry(one, writer))?,
        TableProperty::NextTables { tables, .. } | TableProperty::TableSyncFrom(tables) => {
            tables.iter().for_each(|table| writer.write_u8(table.0))
        }
        TableProperty::Match(fields)
        | TableProperty::Wildcards(fields)
        | TableProperty::WriteSetField { fields, .. }
        | TableProperty::ApplySetField { fields, .. }
        | TableProperty::WriteCopyField { fields, .. }
        | TableProperty::ApplyCopyField { fields, .. } => {
            fields.iter().try_for_each(|field| oxm::encode_id(field, writer))?;
        }
        TableProperty::Experimenter { id, kind, data, .. } => {
            writer.write_u32(*id);
            writer.write_u32(*kind);
            writer.write_bytes(&data.0);
        }
        TableProperty::Unknown { data, .. } => writer.write_bytes(&data.0),
    }
    writer.set_length(start + 2, start)?;
    writer.pad_from(start);
    Ok(())
}

/// Reads the type of an instruction or action: its header, without the padding that actions have elsewhere.
fn decode_id<T: From<u16>>(reader: &mut WireReader<'_>) -> Decoded<FeatureTypeId<T>> {
    let mut part = reader.take_element("type id", 2, 4, bad_length(reader.version()))?;
    let kind = part.read_u16()?;
    part.skip(2)?;
    if kind == EXPERIMENTER_ID {
        return Ok(FeatureTypeId::Experimenter { id: part.read_u32()?, data: part.read_rest() });
    }
    part.finish()?;
    Ok(FeatureTypeId::Standard(kind.into()))
}

fn encode_id<T: Copy + Into<u16>>(id: &FeatureTypeId<T>, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    match id {
        FeatureTypeId::Standard(kind) => {
            writer.write_u16((*kind).into());
            writer.write_u16(0);
        }
        FeatureTypeId::Experimenter { id, data } => {
            writer.write_u16(EXPERIMENTER_ID);
            writer.write_u16(0);
            writer.write_u32(*id);
            writer.write_bytes(&data.0);
        }
    }
    writer.set_length(start + 2, start)
}
