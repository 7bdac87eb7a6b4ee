//! Reads and writes the messages about ports (OpenFlow 1.3.5, 7.2.1, 7.4.3, 7.3.4.3, 7.3.5.6).
use crate::model::port::{PortMod, PortStats, PortStatus};
use crate::model::{PortDesc, PortNo};
use crate::wire::{Decoded, WireReader, WireWriter, port};

const NAME_BYTES: usize = 16;

pub(crate) fn decode_desc(reader: &mut WireReader<'_>) -> Decoded<PortDesc> {
    let port_no = PortNo(reader.read_u32()?);
    reader.skip(4)?;
    let hw_addr = reader.read_mac()?;
    reader.skip(2)?;
    Ok(PortDesc {
        port_no,
        hw_addr,
        name: reader.read_text(NAME_BYTES)?,
        config: reader.read_u32()?,
        state: reader.read_u32()?,
        curr: reader.read_u32()?,
        advertised: reader.read_u32()?,
        supported: reader.read_u32()?,
        peer: reader.read_u32()?,
        curr_speed: reader.read_u32()?,
        max_speed: reader.read_u32()?,
        properties: Vec::new(),
    })
}

pub(crate) fn encode_desc(desc: &PortDesc, writer: &mut WireWriter<'_>) {
    writer.write_u32(desc.port_no.0);
    writer.write_zeros(4);
    writer.write_mac(desc.hw_addr);
    writer.write_zeros(2);
    writer.write_text(&desc.name, NAME_BYTES);
    for word in [desc.config, desc.state, desc.curr, desc.advertised, desc.supported, desc.peer] {
        writer.write_u32(word);
    }
    writer.write_u32(desc.curr_speed);
    writer.write_u32(desc.max_speed);
}

pub(crate) fn decode_status(reader: &mut WireReader<'_>) -> Decoded<PortStatus> {
    port::decode_status(reader, decode_desc)
}

pub(crate) fn encode_status(status: &PortStatus, writer: &mut WireWriter<'_>) {
    port::encode_status_head(status, writer);
    encode_desc(&status.desc, writer);
}

pub(crate) fn decode_mod(reader: &mut WireReader<'_>) -> Decoded<PortMod> {
    let port_no = PortNo(reader.read_u32()?);
    reader.skip(4)?;
    let hw_addr = reader.read_mac()?;
    reader.skip(2)?;
    let (config, mask, advertise) = (reader.read_u32()?, reader.read_u32()?, reader.read_u32()?);
    reader.skip(4)?;
    Ok(PortMod { port_no, hw_addr, config, mask, advertise, properties: Vec::new() })
}

pub(crate) fn encode_mod(port: &PortMod, writer: &mut WireWriter<'_>) {
    writer.write_u32(port.port_no.0);
    writer.write_zeros(4);
    writer.write_mac(port.hw_addr);
    writer.write_zeros(2);
    writer.write_u32(port.config);
    writer.write_u32(port.mask);
    writer.write_u32(port.advertise);
    writer.write_zeros(4);
}

pub(crate) fn decode_stats(reader: &mut WireReader<'_>) -> Decoded<PortStats> {
    let port_no = PortNo(reader.read_u32()?);
    reader.skip(4)?;
    let counters = port::decode_counters(reader, port_no)?;
    Ok(PortStats { duration_sec: reader.read_u32()?, duration_nsec: reader.read_u32()?, ..counters })
}

pub(crate) fn encode_stats(stats: &PortStats, writer: &mut WireWriter<'_>) {
    writer.write_u32(stats.port_no.0);
    writer.write_zeros(4);
    port::encode_counters(stats, writer);
    writer.write_u32(stats.duration_sec);
    writer.write_u32(stats.duration_nsec);
}
