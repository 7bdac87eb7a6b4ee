//! Reads and writes what the port messages of all versions share: counters, status reasons, and output ports.
use super::{Decoded, WireReader, WireWriter};
use crate::model::error::{BadAction, BadRequest};
use crate::model::port::{PortStats, PortStatus, PortStatusReason};
use crate::model::{PortDesc, PortNo};

/// Reads a port status. `decode_desc` reads the port's description.
pub(crate) fn decode_status<'a>(
    reader: &mut WireReader<'a>,
    decode_desc: impl FnOnce(&mut WireReader<'a>) -> Decoded<PortDesc>,
) -> Decoded<PortStatus> {
    let reason = decode_reason(reader)?;
    reader.skip(7)?;
    Ok(PortStatus { reason, desc: decode_desc(reader)? })
}

/// Writes a port status up to the port's description.
pub(crate) fn encode_status_head(status: &PortStatus, writer: &mut WireWriter<'_>) {
    writer.write_u8(status.reason as u8);
    writer.write_zeros(7);
}

fn decode_reason(reader: &mut WireReader<'_>) -> Decoded<PortStatusReason> {
    let at = reader.at();
    Ok(match reader.read_u8()? {
        0 => PortStatusReason::Add,
        1 => PortStatusReason::Delete,
        2 => PortStatusReason::Modify,
        other => {
            return Err(reader.error_at(
                at,
                BadRequest::BadType,
                format_args!("found reason {other}, expected 0 to 2"),
            ));
        }
    })
}

/// Reads the number of an output port: an ordinary port, or a reserved one that accepts packets. Fails for others.
pub(crate) fn output<'a>(
    reader: &mut WireReader<'a>,
    read: impl FnOnce(&mut WireReader<'a>) -> Decoded<PortNo>,
) -> Decoded<PortNo> {
    let at = reader.at();
    let port = read(reader)?;
    if port.is_ordinary() || (PortNo::IN_PORT..=PortNo::LOCAL).contains(&port) {
        return Ok(port);
    }
    Err(reader.error_at(at, BadAction::BadOutPort, format_args!("found output to port {port}, which takes no packets")))
}

/// Reads the twelve counters of port statistics (OpenFlow 1.3.5, 7.3.5.6; OpenFlow 1.0.0, 5.3.5).
pub(crate) fn decode_counters(reader: &mut WireReader<'_>, port_no: PortNo) -> Decoded<PortStats> {
    let mut stats = decode_first_counters(reader, port_no)?;
    decode_ethernet_counters(reader, &mut stats)?;
    Ok(stats)
}

/// Reads the counters that all kinds of ports have, and marks the Ethernet counters as not kept (`u64::MAX`).
pub(crate) fn decode_first_counters(reader: &mut WireReader<'_>, port_no: PortNo) -> Decoded<PortStats> {
    Ok(PortStats {
        port_no,
        rx_packets: reader.read_u64()?,
        tx_packets: reader.read_u64()?,
        rx_bytes: reader.read_u64()?,
        tx_bytes: reader.read_u64()?,
        rx_dropped: reader.read_u64()?,
        tx_dropped: reader.read_u64()?,
        rx_errors: reader.read_u64()?,
        tx_errors: reader.read_u64()?,
        rx_frame_err: u64::MAX,
        rx_over_err: u64::MAX,
        rx_crc_err: u64::MAX,
        collisions: u64::MAX,
        duration_sec: 0,
        duration_nsec: 0,
        properties: Vec::new(),
    })
}

/// Reads the counters that only Ethernet ports have into `stats`.
pub(crate) fn decode_ethernet_counters(reader: &mut WireReader<'_>, stats: &mut PortStats) -> Decoded<()> {
    let PortStats { rx_frame_err, rx_over_err, rx_crc_err, collisions, .. } = stats;
    for counter in [rx_frame_err, rx_over_err, rx_crc_err, collisions] {
        *counter = reader.read_u64()?;
    }
    Ok(())
}

pub(crate) const fn ethernet_counters(stats: &PortStats) -> [u64; 4] {
    [stats.rx_frame_err, stats.rx_over_err, stats.rx_crc_err, stats.collisions]
}

pub(crate) fn encode_counters(stats: &PortStats, writer: &mut WireWriter<'_>) {
    encode_first_counters(stats, writer);
    ethernet_counters(stats).into_iter().for_each(|counter| writer.write_u64(counter));
}

pub(crate) fn encode_first_counters(stats: &PortStats, writer: &mut WireWriter<'_>) {
    for counter in [
        stats.rx_packets,
        stats.tx_packets,
        stats.rx_bytes,
        stats.tx_bytes,
        stats.rx_dropped,
        stats.tx_dropped,
        stats.rx_errors,
        stats.tx_errors,
    ] {
        writer.write_u64(counter);
    }
}
