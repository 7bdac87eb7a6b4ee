//! What port messages share: the counters, what happened to a port, and which ports take packets.
use super::{Decoded, Reader, Writer};
use crate::model::PortNo;
use crate::model::error::{BadAction, BadRequest};
use crate::model::port::{PortStats, PortStatusReason};

pub(crate) fn decode_reason(reader: &mut Reader<'_>) -> Decoded<PortStatusReason> {
    Ok(match reader.u8()? {
        0 => PortStatusReason::Add,
        1 => PortStatusReason::Delete,
        2 => PortStatusReason::Modify,
        other => return Err(reader.error(BadRequest::BadType, format_args!("found reason {other}, expected 0 to 2"))),
    })
}

/// Checks that packets can be sent to a port of this number: an ordinary one or one with a meaning.
pub(crate) fn check_output(port: PortNo, reader: &Reader<'_>) -> Decoded<PortNo> {
    if port.is_ordinary() || (PortNo::IN_PORT..=PortNo::LOCAL).contains(&port) {
        return Ok(port);
    }
    Err(reader.error(BadAction::BadOutPort, format_args!("found output to port {port}, which is none")))
}

/// The twelve counters of port statistics (OpenFlow 1.3.5, 7.3.5.6; OpenFlow 1.0.0, 5.3.5).
pub(crate) fn decode_counters(reader: &mut Reader<'_>, port_no: PortNo) -> Decoded<PortStats> {
    Ok(PortStats {
        port_no,
        rx_packets: reader.u64()?,
        tx_packets: reader.u64()?,
        rx_bytes: reader.u64()?,
        tx_bytes: reader.u64()?,
        rx_dropped: reader.u64()?,
        tx_dropped: reader.u64()?,
        rx_errors: reader.u64()?,
        tx_errors: reader.u64()?,
        rx_frame_err: reader.u64()?,
        rx_over_err: reader.u64()?,
        rx_crc_err: reader.u64()?,
        collisions: reader.u64()?,
        duration_sec: 0,
        duration_nsec: 0,
    })
}

pub(crate) fn encode_counters(stats: &PortStats, writer: &mut Writer<'_>) {
    for counter in [
        stats.rx_packets,
        stats.tx_packets,
        stats.rx_bytes,
        stats.tx_bytes,
        stats.rx_dropped,
        stats.tx_dropped,
        stats.rx_errors,
        stats.tx_errors,
        stats.rx_frame_err,
        stats.rx_over_err,
        stats.rx_crc_err,
        stats.collisions,
    ] {
        writer.u64(counter);
    }
}
