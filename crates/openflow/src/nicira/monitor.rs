//! Reads and writes the flow monitors of 1.0, an extension of Open vSwitch (`NXST_FLOW_MONITOR`), and of 1.3, an
//! extension of the Open Networking Foundation (`ONFMP_FLOW_MONITOR`). Both have the same layout, except for ports,
//! matches and instructions, which have the layout of their version.
use super::nxm;
use crate::model::error::{BadAction, FlowMonitorFailed};
use crate::model::monitor::{FlowEvent, FlowMonitor, FlowUpdate, FlowUpdateFull, MonitorCommand, MonitorFlags};
use crate::model::{GroupId, Match, PortNo, TableId, Version};
use crate::v10::{flow as v10_flow, port};
use crate::v13::{flow::proto, instruction, oxm};
use crate::wire::monitor::{self, EventNumbers};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

/// All defined flags, `NXFMF_*`. They equal 1.4's, which has one more.
const FLAGS: u16 = 0x3f;
/// Events, `NXFME_*`. Entries that exist at the beginning are reported as added.
const EVENTS: EventNumbers =
    EventNumbers { full: &[FlowEvent::Added, FlowEvent::Removed, FlowEvent::Modified], abbrev: 3, has_pauses: false };

pub(crate) fn decode_request(reader: &mut WireReader<'_>) -> Decoded<FlowMonitor> {
    let id = reader.read_u32()?;
    let at = reader.at();
    let flags = reader.read_u16()?;
    if flags & !FLAGS != 0 {
        let reason = format!("found flags {flags:#x}, expected at most {FLAGS:#x}");
        return Err(reader.error_at(at, FlowMonitorFailed::BadFlags, reason));
    }
    let is_v10 = reader.version() == Version::V10;
    let (out_port, length, table) = if is_v10 {
        let (out_port, length, table) = (port::decode_no(reader)?, reader.read_u16()?, reader.read_u8()?);
        reader.skip(5)?;
        (out_port, length, table)
    } else {
        let (length, out_port, table) = (reader.read_u16()?, PortNo(reader.read_u32()?), reader.read_u8()?);
        reader.skip(3)?;
        (out_port, length, table)
    };
    let (out_group, command) = (GroupId::ANY, MonitorCommand::Add);
    let (flags, table, matching) = (MonitorFlags(flags), TableId(table), decode_match(reader, length)?);
    Ok(FlowMonitor { id, out_port, out_group, flags, table, command, matching })
}

pub(crate) fn encode_request(monitor: &FlowMonitor, writer: &mut WireWriter<'_>) -> Encoded {
    let is_plain = monitor.command == MonitorCommand::Add && monitor.out_group == GroupId::ANY;
    if !is_plain || monitor.flags.0 & !FLAGS != 0 {
        return Err(writer.cannot("a monitor that only 1.4 and later have"));
    }
    writer.write_u32(monitor.id);
    writer.write_u16(monitor.flags.0);
    let place = if writer.version() == Version::V10 {
        port::encode_no(monitor.out_port, writer)?;
        let place = writer.at();
        writer.write_u16(0);
        writer.write_u8(monitor.table.0);
        writer.write_zeros(5);
        place
    } else {
        let place = writer.at();
        writer.write_u16(0);
        writer.write_u32(monitor.out_port.0);
        writer.write_u8(monitor.table.0);
        writer.write_zeros(3);
        place
    };
    encode_match(&monitor.matching, place, writer)
}

/// Reads a match whose length (`length`) precedes it. In 1.3, Open vSwitch sends the match with its own header,
/// os-ken without.
fn decode_match(reader: &mut WireReader<'_>, length: u16) -> Decoded<Match> {
    match reader.version() {
        Version::V10 => Ok(nxm::decode_match(reader, length)?.0),
        _ if length != 0 && reader.fork().read_u16()? == oxm::MATCH_OXM => oxm::decode_match(reader),
        _ => Ok(nxm::decode_match(reader, length)?.0),
    }
}

/// Writes a match, and its length into the 16 bits at offset `place`.
fn encode_match(matching: &Match, place: usize, writer: &mut WireWriter<'_>) -> Encoded {
    if writer.version() == Version::V10 {
        return nxm::encode_match(matching, None, place, writer);
    }
    let start = writer.at();
    oxm::encode_unpadded(matching, writer)?;
    writer.set_length(place, start)?;
    writer.pad_from(start);
    Ok(())
}

pub(crate) fn decode_update(reader: &mut WireReader<'_>) -> Decoded<FlowUpdate> {
    EVENTS.decode_update(reader, decode_full)
}

fn decode_full(event: FlowEvent, part: &mut WireReader<'_>) -> Decoded<FlowUpdateFull> {
    // High byte of the reason.
    part.skip(1)?;
    let reason = monitor::decode_reason(event, part)?;
    let (priority, idle_timeout, hard_timeout) = (part.read_u16()?, part.read_u16()?, part.read_u16()?);
    let (length, table) = (part.read_u16()?, TableId(part.read_u8()?));
    part.skip(1)?;
    let (cookie, matching) = (part.read_u64()?, decode_match(part, length)?);
    let instructions = if part.version() == Version::V10 {
        v10_flow::decode_actions(part)?
    } else {
        let left = part.left();
        part.take_part(left, "instructions", BadAction::BadLen)?.read_list(instruction::decode)?
    };
    Ok(FlowUpdateFull { event, reason, table, idle_timeout, hard_timeout, priority, cookie, matching, instructions })
}

pub(crate) fn encode_update(update: &FlowUpdate, writer: &mut WireWriter<'_>) -> Encoded {
    EVENTS.encode_update(update, writer, encode_full)
}

fn encode_full(full: &FlowUpdateFull, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u16(match full.event {
        FlowEvent::Initial | FlowEvent::Added => 0,
        FlowEvent::Removed => 1,
        FlowEvent::Modified => 2,
    });
    writer.write_u16(full.reason.map_or(0, |reason| reason as u16));
    writer.write_u16(full.priority);
    writer.write_u16(full.idle_timeout);
    writer.write_u16(full.hard_timeout);
    let place = writer.at();
    writer.write_u16(0);
    writer.write_u8(full.table.0);
    writer.write_zeros(1);
    writer.write_u64(full.cookie);
    encode_match(&full.matching, place, writer)?;
    if writer.version() == Version::V10 {
        return v10_flow::encode_actions(&full.instructions, writer);
    }
    instruction::encode_list(&full.instructions, proto(&full.matching), writer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec;
    use crate::model::flow::FlowRemovedReason;
    use crate::model::multipart::{MultipartReply, MultipartRequest, ReplyBody, RequestBody};
    use crate::model::nicira::NxMessage;
    use crate::model::{Action, Body, Instruction, Message};
    use weir_packet::Field;

    fn bytes(hex: &str) -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    fn encoded(body: Body, version: Version) -> Result<Vec<u8>, String> {
        let mut out = Vec::new();
        codec::encode(&Message { xid: 6, body }, version, &mut out).map_err(|error| format!("{error:?}"))?;
        Ok(out)
    }

    fn request(monitors: Vec<FlowMonitor>) -> Body {
        Body::MultipartRequest(MultipartRequest { more: false, body: RequestBody::FlowMonitor(monitors) })
    }

    /// Requests as `ovs-ofctl monitor` of Open vSwitch 3.1 sends them for `watch:` and
    /// `watch:table=1,out_port=2,!initial,ip`.
    const SENT: [(Version, &str, &str); 2] = [
        (
            Version::V10,
            "01100028 00000006 ffff0000 00002320 00000002 00000000 00000000003fffff0000ff0000000000",
            "01100030 00000006 ffff0000 00002320 00000002 00000000 00000000003e00020006010000000000 00000602 08000000",
        ),
        (
            Version::V13,
            "04120030 00000006 ffff0000 00000000 4f4e4600 0000074e 00000000003f0004ffffffffff000000 0001000400000000",
            "04120038 00000006 ffff0000 00000000 4f4e4600 0000074e 00000000003e000a0000000201000000 0001000a 80000a02 08000000 00000000",
        ),
    ];

    fn all() -> FlowMonitor {
        FlowMonitor {
            id: 0,
            out_port: PortNo::ANY,
            out_group: GroupId::ANY,
            flags: MonitorFlags(0x3f),
            table: TableId::ALL,
            command: MonitorCommand::Add,
            matching: Match::any(),
        }
    }

    fn ip() -> FlowMonitor {
        let matching = Match::any().with(Field::EthType, 0x800u16);
        FlowMonitor { out_port: PortNo(2), flags: MonitorFlags(0x3e), table: TableId(1), matching, ..all() }
    }

    #[test]
    fn requests_of_open_vswitch_both_ways() {
        for (version, every, some) in SENT {
            for (hex, monitor) in [(every, all()), (some, ip())] {
                let decoded = codec::decode(&bytes(hex)).unwrap();
                assert_eq!(decoded, Message { xid: 6, body: request(vec![monitor]) }, "{version:?}");
                assert_eq!(encoded(decoded.body, version).unwrap(), bytes(hex));
            }
        }
    }

    /// The requests of os-ken contain only the list of fields, without a match header.
    #[test]
    fn a_match_without_a_head_is_read() {
        let hex =
            "04120030 00000006 ffff0000 00000000 4f4e4600 0000074e 00000000003e000600000002 01000000 80000a0208000000";
        assert_eq!(codec::decode(&bytes(hex)).unwrap().body, request(vec![ip()]));
        let hex = "04120028 00000006 ffff0000 00000000 4f4e4600 0000074e 00000000003f0000ffffffff ff000000";
        assert_eq!(codec::decode(&bytes(hex)).unwrap().body, request(vec![all()]));
    }

    #[test]
    fn updates_come_back() {
        let added = FlowUpdateFull {
            event: FlowEvent::Added,
            reason: None,
            table: TableId(1),
            idle_timeout: 2,
            hard_timeout: 3,
            priority: 4,
            cookie: 5,
            matching: Match::any().with(Field::InPort, 6u32),
            instructions: vec![Instruction::ApplyActions(vec![Action::Output { port: PortNo(7), max_len: 0 }])],
        };
        let (event, reason) = (FlowEvent::Removed, Some(FlowRemovedReason::GroupDelete));
        let removed = FlowUpdateFull { event, reason, instructions: Vec::new(), ..added.clone() };
        let modified = FlowUpdateFull { event: FlowEvent::Modified, ..added.clone() };
        let abbrev = FlowUpdate::Abbrev { xid: 9 };
        let updates = [added, removed, modified].map(FlowUpdate::Full).into_iter().chain([abbrev]).collect();
        let body = Body::MultipartReply(MultipartReply { more: false, body: ReplyBody::FlowMonitor(updates) });
        for version in [Version::V10, Version::V13] {
            let good = encoded(body.clone(), version).unwrap();
            assert_eq!(codec::decode(&good).unwrap().body, body, "{version:?}");
            for length in 8..good.len() {
                let mut cut = good[..length].to_vec();
                cut[2..4].copy_from_slice(&u16::try_from(length).unwrap().to_be_bytes());
                assert_ne!(codec::decode(&cut).ok().map(|message| message.body), Some(body.clone()), "{length}");
            }
        }
    }

    #[test]
    fn the_end_of_monitors_and_pauses_come_back() {
        let sent = [
            (NxMessage::FlowMonitorCancel(5), "00002320 00000015 00000005", "4f4e4600 0000074e 00000005"),
            (NxMessage::FlowMonitorPaused, "00002320 00000016", "4f4e4600 0000074f"),
            (NxMessage::FlowMonitorResumed, "00002320 00000017", "4f4e4600 00000750"),
        ];
        for (message, of_10, of_13) in sent {
            let body = Body::Nx(Box::new(message));
            for (version, hex) in [(Version::V10, of_10), (Version::V13, of_13)] {
                let out = encoded(body.clone(), version).unwrap();
                assert_eq!(out[8..], bytes(hex)[..]);
                assert_eq!(codec::decode(&out).unwrap().body, body);
            }
            assert!(encoded(body, Version::V14).is_err());
        }
    }

    #[test]
    fn what_only_later_versions_have_is_refused() {
        let (only_own, command) = (MonitorFlags::ONLY_OWN, MonitorCommand::Delete);
        for version in [Version::V10, Version::V13] {
            assert!(encoded(request(vec![FlowMonitor { flags: only_own, ..all() }]), version).is_err());
            assert!(encoded(request(vec![FlowMonitor { command, ..all() }]), version).is_err());
            assert!(encoded(request(vec![FlowMonitor { out_group: GroupId(1), ..all() }]), version).is_err());
        }
        let mut flagged = bytes(SENT[1].1);
        flagged[29] = 0x40;
        assert_eq!(codec::decode(&flagged).unwrap_err().error, FlowMonitorFailed::BadFlags.into());
    }
}
