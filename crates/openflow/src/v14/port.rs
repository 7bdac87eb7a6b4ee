//! Reads and writes the messages about ports (OpenFlow 1.4.1, 7.2.1, 7.4.3, 7.3.4.4, 7.3.5.6; additions of 1.5:
//! OpenFlow 1.5.1, 7.2.2.1).
//!
//! Fields that 1.3 has at fixed places are in the Ethernet property. Port-mods and statistics leave it out if it
//! would carry no information.
use crate::model::error::BadRequest;
use crate::model::port::{
    OpticalPort, OpticalStats, PortMod, PortModProperty, PortProperty, PortStats, PortStatsProperty, PortStatus,
};
use crate::model::{PortDesc, PortNo, Version};
use crate::v13::oxm;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, port, property};

const NAME_BYTES: usize = 16;
const ETHERNET: u16 = 0;
const OPTICAL: u16 = 1;
const PIPELINE_INPUT: u16 = 2;
const PIPELINE_OUTPUT: u16 = 3;
const RECIRCULATE: u16 = 4;

pub(crate) fn decode_desc(reader: &mut WireReader<'_>) -> Decoded<PortDesc> {
    let mut part = reader.take_element("port", 4, 40, BadRequest::BadLen)?;
    let port_no = PortNo(part.read_u32()?);
    part.skip(4)?;
    let hw_addr = part.read_mac()?;
    part.skip(2)?;
    let mut desc = PortDesc::new(port_no, hw_addr, part.read_text(NAME_BYTES)?);
    (desc.config, desc.state) = (part.read_u32()?, part.read_u32()?);
    let version = part.version();
    property::each(&mut part, |kind, part| decode_property(kind, version, part, &mut desc))?;
    Ok(desc)
}

fn decode_property(kind: u16, version: Version, part: &mut WireReader<'_>, desc: &mut PortDesc) -> Decoded<()> {
    let property = match kind {
        ETHERNET => {
            part.skip(4)?;
            let PortDesc { curr, advertised, supported, peer, curr_speed, max_speed, .. } = desc;
            for word in [curr, advertised, supported, peer, curr_speed, max_speed] {
                *word = part.read_u32()?;
            }
            return Ok(());
        }
        OPTICAL => PortProperty::Optical(decode_optical(part)?),
        PIPELINE_INPUT if version >= Version::V15 => PortProperty::PipelineInput(part.read_list(oxm::decode_id)?),
        PIPELINE_OUTPUT if version >= Version::V15 => PortProperty::PipelineOutput(part.read_list(oxm::decode_id)?),
        RECIRCULATE if version >= Version::V15 => {
            PortProperty::Recirculate(part.read_list(|part| part.read_u32().map(PortNo))?)
        }
        kind => PortProperty::Other(property::raw(kind, part)),
    };
    desc.properties.push(property);
    Ok(())
}

fn decode_optical(part: &mut WireReader<'_>) -> Decoded<OpticalPort> {
    part.skip(4)?;
    Ok(OpticalPort {
        supported: part.read_u32()?,
        tx_min_freq_lmda: part.read_u32()?,
        tx_max_freq_lmda: part.read_u32()?,
        tx_grid_freq_lmda: part.read_u32()?,
        rx_min_freq_lmda: part.read_u32()?,
        rx_max_freq_lmda: part.read_u32()?,
        rx_grid_freq_lmda: part.read_u32()?,
        tx_pwr_min: part.read_u16()?,
        tx_pwr_max: part.read_u16()?,
    })
}

/// Writes a port description. Leaves out 1.5's properties in 1.4, because an incomplete description is more useful
/// than none.
pub(crate) fn encode_desc(desc: &PortDesc, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_u32(desc.port_no.0);
    writer.write_zeros(4);
    writer.write_mac(desc.hw_addr);
    writer.write_zeros(2);
    writer.write_text(&desc.name, NAME_BYTES);
    writer.write_u32(desc.config);
    writer.write_u32(desc.state);
    let words = [0, desc.curr, desc.advertised, desc.supported, desc.peer, desc.curr_speed, desc.max_speed];
    property::write_words(ETHERNET, &words, writer)?;
    let is_15 = writer.version() >= Version::V15;
    for one in &desc.properties {
        match one {
            PortProperty::Optical(optical) => encode_optical(optical, writer)?,
            PortProperty::PipelineInput(ids) if is_15 => encode_ids(PIPELINE_INPUT, ids, writer)?,
            PortProperty::PipelineOutput(ids) if is_15 => encode_ids(PIPELINE_OUTPUT, ids, writer)?,
            PortProperty::Recirculate(ports) if is_15 => {
                let ports: Vec<u32> = ports.iter().map(|port| port.0).collect();
                property::write_words(RECIRCULATE, &ports, writer)?;
            }
            PortProperty::Other(other) => property::encode_raw(other, writer)?,
            _ => (),
        }
    }
    writer.set_length(start + 4, start)
}

fn encode_ids(kind: u16, ids: &[crate::model::multipart::OxmId], writer: &mut WireWriter<'_>) -> Encoded {
    property::write(kind, writer, |writer| ids.iter().try_for_each(|id| oxm::encode_id(id, writer)))
}

fn encode_optical(optical: &OpticalPort, writer: &mut WireWriter<'_>) -> Encoded {
    let powers = u32::from(optical.tx_pwr_min) << 16 | u32::from(optical.tx_pwr_max);
    let words = [
        0,
        optical.supported,
        optical.tx_min_freq_lmda,
        optical.tx_max_freq_lmda,
        optical.tx_grid_freq_lmda,
        optical.rx_min_freq_lmda,
        optical.rx_max_freq_lmda,
        optical.rx_grid_freq_lmda,
        powers,
    ];
    property::write_words(OPTICAL, &words, writer)
}

pub(crate) fn decode_status(reader: &mut WireReader<'_>) -> Decoded<PortStatus> {
    port::decode_status(reader, decode_desc)
}

pub(crate) fn encode_status(status: &PortStatus, writer: &mut WireWriter<'_>) -> Encoded {
    port::encode_status_head(status, writer);
    encode_desc(&status.desc, writer)
}

pub(crate) fn decode_mod(reader: &mut WireReader<'_>) -> Decoded<PortMod> {
    let port_no = PortNo(reader.read_u32()?);
    reader.skip(4)?;
    let hw_addr = reader.read_mac()?;
    reader.skip(2)?;
    let (config, mask) = (reader.read_u32()?, reader.read_u32()?);
    let (mut advertise, mut properties) = (0, Vec::new());
    property::each(reader, |kind, part| {
        match kind {
            ETHERNET => advertise = part.read_u32()?,
            OPTICAL => properties.push(PortModProperty::Optical {
                configure: part.read_u32()?,
                freq_lmda: part.read_u32()?,
                fl_offset: part.read_u32()?,
                grid_span: part.read_u32()?,
                tx_pwr: part.read_u32()?,
            }),
            kind => properties.push(PortModProperty::Other(property::raw(kind, part))),
        }
        Ok(())
    })?;
    Ok(PortMod { port_no, hw_addr, config, mask, advertise, properties })
}

pub(crate) fn encode_mod(port: &PortMod, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u32(port.port_no.0);
    writer.write_zeros(4);
    writer.write_mac(port.hw_addr);
    writer.write_zeros(2);
    writer.write_u32(port.config);
    writer.write_u32(port.mask);
    if port.advertise != 0 {
        property::write_words(ETHERNET, &[port.advertise], writer)?;
    }
    port.properties.iter().try_for_each(|one| match one {
        PortModProperty::Optical { configure, freq_lmda, fl_offset, grid_span, tx_pwr } => {
            property::write_words(OPTICAL, &[*configure, *freq_lmda, *fl_offset, *grid_span, *tx_pwr], writer)
        }
        PortModProperty::Other(other) => property::encode_raw(other, writer),
    })
}

pub(crate) fn decode_stats(reader: &mut WireReader<'_>) -> Decoded<PortStats> {
    let mut part = reader.take_element("port statistics", 0, 80, BadRequest::BadLen)?;
    part.skip(4)?;
    let port_no = PortNo(part.read_u32()?);
    let (duration_sec, duration_nsec) = (part.read_u32()?, part.read_u32()?);
    let mut stats = PortStats { duration_sec, duration_nsec, ..port::decode_first_counters(&mut part, port_no)? };
    property::each(&mut part, |kind, part| {
        match kind {
            ETHERNET => {
                part.skip(4)?;
                port::decode_ethernet_counters(part, &mut stats)?;
            }
            OPTICAL => stats.properties.push(PortStatsProperty::Optical(decode_optical_stats(part)?)),
            kind => stats.properties.push(PortStatsProperty::Other(property::raw(kind, part))),
        }
        Ok(())
    })?;
    Ok(stats)
}

fn decode_optical_stats(part: &mut WireReader<'_>) -> Decoded<OpticalStats> {
    part.skip(4)?;
    Ok(OpticalStats {
        flags: part.read_u32()?,
        tx_freq_lmda: part.read_u32()?,
        tx_offset: part.read_u32()?,
        tx_grid_span: part.read_u32()?,
        rx_freq_lmda: part.read_u32()?,
        rx_offset: part.read_u32()?,
        rx_grid_span: part.read_u32()?,
        tx_pwr: part.read_u16()?,
        rx_pwr: part.read_u16()?,
        bias_current: part.read_u16()?,
        temperature: part.read_u16()?,
    })
}

pub(crate) fn encode_stats(stats: &PortStats, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    writer.write_zeros(4);
    writer.write_u32(stats.port_no.0);
    writer.write_u32(stats.duration_sec);
    writer.write_u32(stats.duration_nsec);
    port::encode_first_counters(stats, writer);
    if port::ethernet_counters(stats) != [u64::MAX; 4] {
        property::write(ETHERNET, writer, |writer| {
            writer.write_zeros(4);
            port::ethernet_counters(stats).into_iter().for_each(|counter| writer.write_u64(counter));
            Ok(())
        })?;
    }
    stats.properties.iter().try_for_each(|one| match one {
        PortStatsProperty::Optical(optical) => encode_optical_stats(optical, writer),
        PortStatsProperty::Other(other) => property::encode_raw(other, writer),
    })?;
    writer.set_length(start, start)
}

fn encode_optical_stats(stats: &OpticalStats, writer: &mut WireWriter<'_>) -> Encoded {
    let pair = |first: u16, second: u16| u32::from(first) << 16 | u32::from(second);
    let words = [
        0,
        stats.flags,
        stats.tx_freq_lmda,
        stats.tx_offset,
        stats.tx_grid_span,
        stats.rx_freq_lmda,
        stats.rx_offset,
        stats.rx_grid_span,
        pair(stats.tx_pwr, stats.rx_pwr),
        pair(stats.bias_current, stats.temperature),
    ];
    property::write_words(OPTICAL, &words, writer)
}
