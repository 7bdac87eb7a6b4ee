//! Reads and writes actions (OpenFlow 1.3.5, 7.2.5).
//!
//! 1.0's actions are encoded as the set-fields that Open vSwitch sends for them. Ports become TCP's, unless the match
//! is on UDP or SCTP; the type-of-service byte becomes its DSCP bits. The effect differs on packets that lack the
//! field: 1.0 pushes a VLAN tag or leaves the packet alone, a 1.3 switch may refuse such a flow entry. `enqueue`
//! becomes set-queue and output, and the queue stays set for later outputs.
use super::oxm;
use crate::model::action::{Action, ActionType};
use crate::model::error::BadAction;
use crate::model::{GroupId, MatchField, MeterId, NxAction, PortNo, Version};
use crate::nicira;
use crate::v15::action as v15;
use crate::wire::action::{ActionArgument, byte, element, encode_experimenter, head, long, padded, short};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, port};
use weir_packet::Field;
use weir_packet::field::{VLAN_PRESENT, ip_proto};

/// Type of the actions of experimenters, `OFPAT_EXPERIMENTER`.
const EXPERIMENTER: ActionType = ActionType::Unknown(0xffff);

/// Reads one action.
pub(crate) fn decode(reader: &mut WireReader<'_>) -> Decoded<Action> {
    let at = reader.at();
    let (kind, mut action) = element(reader)?;
    let decoded = match ActionType::from_number(kind) {
        ActionType::SetField => return decode_set_field(&mut action),
        ActionType::CopyField if action.version() >= Version::V15 => return v15::decode_copy(&mut action),
        EXPERIMENTER => {
            let id = action.read_u32()?;
            nicira::action::decode(id, &mut action, decode)?
        }
        ActionType::Output => {
            let port = port::output(&mut action, |action| action.read_u32().map(PortNo))?;
            let output = Action::Output { port, max_len: action.read_u16()? };
            action.skip(6)?;
            output
        }
        kind => {
            let argument = ActionArgument::decode(&mut action)?;
            small(kind, argument, action.version()).ok_or_else(|| {
                let reason =
                    format!("found action type {}, which {} does not have", kind.number(), action.version().name());
                action.error_at(at, BadAction::BadType, reason)
            })?
        }
    };
    action.finish()?;
    Ok(decoded)
}

/// Returns an eight-byte action, given its type and argument; `None` if the version has no such type.
fn small(kind: ActionType, ActionArgument { byte, short, long }: ActionArgument, version: Version) -> Option<Action> {
    Some(match kind {
        ActionType::CopyTtlOut => Action::CopyTtlOut,
        ActionType::CopyTtlIn => Action::CopyTtlIn,
        ActionType::SetMplsTtl => Action::SetMplsTtl(byte),
        ActionType::DecMplsTtl => Action::DecMplsTtl,
        ActionType::PushVlan => Action::PushVlan(short),
        ActionType::PopVlan => Action::PopVlan,
        ActionType::PushMpls => Action::PushMpls(short),
        ActionType::PopMpls => Action::PopMpls(short),
        ActionType::SetQueue => Action::SetQueue(long),
        ActionType::Group => Action::Group(GroupId(long)),
        ActionType::SetNwTtl => Action::SetNwTtl(byte),
        ActionType::DecNwTtl => Action::DecNwTtl,
        ActionType::PushPbb => Action::PushPbb(short),
        ActionType::PopPbb => Action::PopPbb,
        ActionType::Meter if version >= Version::V15 => Action::Meter(MeterId(long)),
        _ => return None,
    })
}

/// Reads a set-field. A field that weir does not know stays uninterpreted, for the switch to refuse.
fn decode_set_field(action: &mut WireReader<'_>) -> Decoded<Action> {
    action.rename("set-field");
    let at = action.at();
    let entry = oxm::decode_entry(action, BadAction::BadSetLen.into())?;
    let left = action.left();
    if left >= 8 {
        return Err(action.error(BadAction::BadSetLen, format_args!("found {left} bytes of padding, expected below 8")));
    }
    match entry {
        MatchField::Known { field, value, mask: None } if value <= field.all_ones() => {
            Ok(Action::SetField { field, value })
        }
        MatchField::Known { field, value, mask: None } => {
            let reason = format!("found {value:#x} for {field}, which has {} bits", field.bits());
            Err(action.error_at(at, BadAction::BadSetArgument, reason))
        }
        MatchField::Known { field, value, mask: Some(mask) } if action.version() >= Version::V15 => {
            Ok(Action::SetFieldMasked { field, value, mask })
        }
        MatchField::Known { field, mask: Some(mask), .. } => {
            let reason =
                format!("found a mask {mask:#x} for {field}, which {} does not allow", action.version().name());
            Err(action.error_at(at, BadAction::BadSetType, reason))
        }
        MatchField::Raw(raw) => Ok(Action::SetFieldRaw(raw)),
    }
}

/// Writes a list of actions. `proto` is the `ip_proto` that the flow entry matches, if any.
pub(crate) fn encode_list(actions: &[Action], proto: Option<u8>, writer: &mut WireWriter<'_>) -> Encoded {
    actions.iter().try_for_each(|action| encode(action, proto, writer))
}

fn encode(action: &Action, proto: Option<u8>, writer: &mut WireWriter<'_>) -> Encoded {
    match *action {
        Action::Output { port, max_len } => output(port, max_len, writer),
        Action::Meter(meter) if writer.version() >= Version::V15 => long(ActionType::Meter, meter.0, writer),
        Action::Meter(_) => return Err(writer.cannot("the meter action")),
        Action::Group(group) => long(ActionType::Group, group.0, writer),
        Action::SetQueue(queue) => long(ActionType::SetQueue, queue, writer),
        Action::CopyTtlOut => long(ActionType::CopyTtlOut, 0, writer),
        Action::CopyTtlIn => long(ActionType::CopyTtlIn, 0, writer),
        Action::SetMplsTtl(ttl) => byte(ActionType::SetMplsTtl, ttl, writer),
        Action::DecMplsTtl => long(ActionType::DecMplsTtl, 0, writer),
        Action::SetNwTtl(ttl) => byte(ActionType::SetNwTtl, ttl, writer),
        Action::DecNwTtl => long(ActionType::DecNwTtl, 0, writer),
        Action::PushVlan(eth_type) => short(ActionType::PushVlan, eth_type, writer),
        Action::PopVlan => long(ActionType::PopVlan, 0, writer),
        Action::PushMpls(eth_type) => short(ActionType::PushMpls, eth_type, writer),
        Action::PopMpls(eth_type) => short(ActionType::PopMpls, eth_type, writer),
        Action::PushPbb(eth_type) => short(ActionType::PushPbb, eth_type, writer),
        Action::PopPbb => long(ActionType::PopPbb, 0, writer),
        Action::SetField { field, value } => return set_field(field, value, writer),
        Action::SetVlanVid(vid) => return set_field(Field::VlanVid, vid | VLAN_PRESENT, writer),
        Action::SetVlanPcp(pcp) => return set_field(Field::VlanPcp, pcp, writer),
        Action::SetNwSrc(address) => return set_field(Field::Ipv4Src, address, writer),
        Action::SetNwDst(address) => return set_field(Field::Ipv4Dst, address, writer),
        Action::SetNwTos(tos) => return set_field(Field::IpDscp, tos >> 2, writer),
        Action::SetTpSrc(port) => return set_field(source_port(proto), port, writer),
        Action::SetTpDst(port) => return set_field(destination_port(proto), port, writer),
        Action::Enqueue { port, queue } => {
            long(ActionType::SetQueue, queue, writer);
            output(port, 0, writer);
        }
        Action::Experimenter { id, ref data } => {
            return encode_experimenter(EXPERIMENTER, "an experimenter", id, &data.0, writer);
        }
        ref extension @ (Action::Encap(_) | Action::Decap(_) | Action::DecNshTtl) => {
            return nicira::encode_action(extension, writer);
        }
        Action::SetFieldMasked { field, value, mask } if writer.version() >= Version::V15 => {
            return padded(ActionType::SetField, writer, |writer| oxm::encode_field(field, value, Some(mask), writer));
        }
        Action::Move { src, dst } if writer.version() >= Version::V15 => return v15::encode_copy(src, dst, writer),
        Action::SetFieldMasked { field, value, mask } => {
            return nicira::action::encode_load2(field, value, Some(mask), writer);
        }
        Action::Move { src, dst } => return nicira::action::encode_move(src, dst, writer),
        Action::Nx(ref nx) => return encode_nicira(nx, proto, writer),
        Action::SetFieldRaw(ref raw) => {
            return padded(ActionType::SetField, writer, |writer| oxm::encode_raw(raw, writer));
        }
    }
    Ok(())
}

/// Writes a Nicira action, or the standard action that Open vSwitch sends for it.
fn encode_nicira(nx: &NxAction, proto: Option<u8>, writer: &mut WireWriter<'_>) -> Encoded {
    match *nx {
        NxAction::SetTunnel { id, .. } => set_field(Field::TunnelId, id, writer),
        ref nx => nicira::action::encode(nx, writer, &|actions, writer| encode_list(actions, proto, writer)),
    }
}

const fn source_port(proto: Option<u8>) -> Field {
    match proto {
        Some(ip_proto::UDP) => Field::UdpSrc,
        Some(ip_proto::SCTP) => Field::SctpSrc,
        _ => Field::TcpSrc,
    }
}

const fn destination_port(proto: Option<u8>) -> Field {
    match proto {
        Some(ip_proto::UDP) => Field::UdpDst,
        Some(ip_proto::SCTP) => Field::SctpDst,
        _ => Field::TcpDst,
    }
}

fn output(port: PortNo, max_len: u16, writer: &mut WireWriter<'_>) {
    head(ActionType::Output, 16, writer);
    writer.write_u32(port.0);
    writer.write_u16(max_len);
    writer.write_zeros(6);
}

fn set_field(field: Field, value: impl Into<u128>, writer: &mut WireWriter<'_>) -> Encoded {
    let value = value.into();
    if value > field.all_ones() {
        return Err(writer.cannot(format!("{value:#x} in {field}, which has {} bits", field.bits())));
    }
    padded(ActionType::SetField, writer, |writer| oxm::encode_field(field, value, None, writer))
}
