//! Reads and writes the messages about meters (OpenFlow 1.3.5, 7.3.4.4, 7.3.5.12 to 7.3.5.14).
use super::group::{decode_counters, encode_counters};
use crate::model::error::{BadRequest, MeterModFailed};
use crate::model::meter::{Band, BandKind, MeterCommand, MeterConfig, MeterFeatures, MeterMod, MeterStats};
use crate::model::{MeterId, Version};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

const DROP: u16 = 1;
const DSCP_REMARK: u16 = 2;
const EXPERIMENTER: u16 = 0xffff;

pub(crate) fn decode_mod(reader: &mut WireReader<'_>) -> Decoded<MeterMod> {
    Ok(MeterMod {
        command: MeterCommand::from_number(reader.read_u16()?),
        flags: reader.read_u16()?,
        meter: MeterId(reader.read_u32()?),
        bands: reader.read_list(decode_band)?,
    })
}

pub(crate) fn encode_mod(meter: &MeterMod, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u16(meter.command.number());
    writer.write_u16(meter.flags);
    writer.write_u32(meter.meter.0);
    meter.bands.iter().try_for_each(|band| encode_band(band, writer))
}

fn decode_band(reader: &mut WireReader<'_>) -> Decoded<Band> {
    let mut part = reader.take_element("meter band", 2, 12, MeterModFailed::BadBand)?;
    let kind = part.read_u16()?;
    part.skip(2)?;
    let (rate, burst_size) = (part.read_u32()?, part.read_u32()?);
    let kind = match kind {
        DROP => {
            part.skip(4)?;
            BandKind::Drop
        }
        DSCP_REMARK => {
            let prec_level = part.read_u8()?;
            part.skip(3)?;
            BandKind::DscpRemark { prec_level }
        }
        EXPERIMENTER => BandKind::Experimenter { id: part.read_u32()?, data: part.read_rest() },
        kind => BandKind::Unknown { kind, data: part.read_rest() },
    };
    part.finish()?;
    Ok(Band { rate, burst_size, kind })
}

fn encode_band(band: &Band, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u16(match band.kind {
        BandKind::Drop => DROP,
        BandKind::DscpRemark { .. } => DSCP_REMARK,
        BandKind::Experimenter { .. } => EXPERIMENTER,
        BandKind::Unknown { kind, .. } => kind,
    });
    writer.write_u16(0);
    writer.write_u32(band.rate);
    writer.write_u32(band.burst_size);
    match &band.kind {
        BandKind::Drop => writer.write_zeros(4),
        BandKind::DscpRemark { prec_level } => {
            writer.write_u8(*prec_level);
            writer.write_zeros(3);
        }
        BandKind::Experimenter { id, data } => {
            writer.write_u32(*id);
            writer.write_bytes(&data.0);
        }
        BandKind::Unknown { data, .. } => writer.write_bytes(&data.0),
    }
    writer.set_length(start + 2, start)
}

/// Reads the meter number of a multipart request.
pub(crate) fn decode_request(reader: &mut WireReader<'_>) -> Decoded<MeterId> {
    let meter = MeterId(reader.read_u32()?);
    reader.skip(4)?;
    Ok(meter)
}

pub(crate) fn decode_stats(reader: &mut WireReader<'_>) -> Decoded<MeterStats> {
    let mut part = reader.take_element("meter statistics", 4, 40, BadRequest::BadLen)?;
    let meter = MeterId(part.read_u32()?);
    part.skip(8)?;
    Ok(MeterStats {
        meter,
        flow_count: part.read_u32()?,
        packet_in_count: part.read_u64()?,
        byte_in_count: part.read_u64()?,
        duration_sec: part.read_u32()?,
        duration_nsec: part.read_u32()?,
        bands: part.read_list(decode_counters)?,
    })
}

pub(crate) fn encode_stats(stats: &MeterStats, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u32(stats.meter.0);
    writer.write_zeros(8);
    writer.write_u32(stats.flow_count);
    writer.write_u64(stats.packet_in_count);
    writer.write_u64(stats.byte_in_count);
    writer.write_u32(stats.duration_sec);
    writer.write_u32(stats.duration_nsec);
    encode_counters(&stats.bands, writer);
    writer.set_length(start + 4, start)
}

pub(crate) fn decode_config(reader: &mut WireReader<'_>) -> Decoded<MeterConfig> {
    let mut part = reader.take_element("meter configuration", 0, 8, BadRequest::BadLen)?;
    part.skip(2)?;
    Ok(MeterConfig { flags: part.read_u16()?, meter: MeterId(part.read_u32()?), bands: part.read_list(decode_band)? })
}

pub(crate) fn encode_config(config: &MeterConfig, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u16(0);
    writer.write_u16(config.flags);
    writer.write_u32(config.meter.0);
    config.bands.iter().try_for_each(|band| encode_band(band, writer))?;
    writer.set_length(start, start)
}

pub(crate) fn decode_features(reader: &mut WireReader<'_>) -> Decoded<MeterFeatures> {
    let mut features = MeterFeatures {
        max_meter: reader.read_u32()?,
        band_types: reader.read_u32()?,
        capabilities: reader.read_u32()?,
        max_bands: reader.read_u8()?,
        max_color: reader.read_u8()?,
        features: 0,
    };
    reader.skip(2)?;
    if reader.version() >= Version::V15 {
        features.features = reader.read_u32()?;
        reader.skip(4)?;
    }
    Ok(features)
}

pub(crate) fn encode_features(features: &MeterFeatures, writer: &mut WireWriter<'_>) {
    writer.write_u32(features.max_meter);
    writer.write_u32(features.band_types);
    writer.write_u32(features.capabilities);
    writer.write_u8(features.max_bands);
    writer.write_u8(features.max_color);
    writer.write_zeros(2);
    if writer.version() >= Version::V15 {
        writer.write_u32(features.features);
        writer.write_zeros(4);
    }
}
