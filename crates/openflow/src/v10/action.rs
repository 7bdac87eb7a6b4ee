//! Reads and writes actions (OpenFlow 1.0.0, 5.2.4).
//!
//! A set-field is encoded as 1.0's action for the field, if there is one, as Open vSwitch does. The effect differs on
//! packets that lack the field: 1.0 leaves them alone, or pushes a VLAN tag.
use super::port;
use crate::model::action::Action;
use crate::model::error::BadAction;
use crate::nicira;
use crate::wire::action::{ActionArgument, byte, element, encode_experimenter, head, long, short};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter, port::output};
use weir_packet::field::VLAN_PRESENT;
use weir_packet::{Field, MacAddr};

const OUTPUT: u16 = 0;
const SET_VLAN_VID: u16 = 1;
const SET_VLAN_PCP: u16 = 2;
const STRIP_VLAN: u16 = 3;
const SET_DL_SRC: u16 = 4;
const SET_DL_DST: u16 = 5;
const SET_NW_SRC: u16 = 6;
const SET_NW_DST: u16 = 7;
const SET_NW_TOS: u16 = 8;
const SET_TP_SRC: u16 = 9;
const SET_TP_DST: u16 = 10;
const ENQUEUE: u16 = 11;
const VENDOR: u16 = 0xffff;

/// Highest VLAN id and priority.
const VID_MAX: u16 = 0x0fff;
const PCP_MAX: u8 = 7;

/// Reads one action.
pub(crate) fn decode(reader: &mut WireReader<'_>) -> Decoded<Action> {
    let at = reader.at();
    let (kind, mut action) = element(reader)?;
    let decoded = match kind {
        OUTPUT => {
            let port = output(&mut action, port::decode_no)?;
            Action::Output { port, max_len: action.read_u16()? }
        }
        SET_DL_SRC => set_mac(Field::EthSrc, &mut action)?,
        SET_DL_DST => set_mac(Field::EthDst, &mut action)?,
        ENQUEUE => {
            let port = output(&mut action, port::decode_no)?;
            action.skip(6)?;
            Action::Enqueue { port, queue: action.read_u32()? }
        }
        VENDOR => {
            let id = action.read_u32()?;
            nicira::action::decode(id, &mut action, decode)?
        }
        kind => {
            let argument = ActionArgument::decode(&mut action)?;
            small(kind, argument).map_err(|(error, reason)| action.error_at(at, error, reason))?
        }
    };
    action.finish()?;
    Ok(decoded)
}

fn set_mac(field: Field, action: &mut WireReader<'_>) -> Decoded<Action> {
    let mac = action.read_mac()?;
    action.skip(6)?;
    Ok(Action::set_mac(field, mac))
}

/// Returns an eight-byte action, given its type and argument.
fn small(kind: u16, ActionArgument { byte, short, long }: ActionArgument) -> Result<Action, (BadAction, String)> {
    let too_large = |what, value: u16, most: u16| {
        Err((BadAction::BadArgument, format!("found {what} {value}, expected at most {most}")))
    };
    match kind {
        SET_VLAN_VID if short > VID_MAX => too_large("VLAN id", short, VID_MAX),
        SET_VLAN_PCP if byte > PCP_MAX => too_large("VLAN priority", byte.into(), PCP_MAX.into()),
        SET_VLAN_VID => Ok(Action::SetVlanVid(short)),
        SET_VLAN_PCP => Ok(Action::SetVlanPcp(byte)),
        STRIP_VLAN => Ok(Action::PopVlan),
        SET_NW_SRC => Ok(Action::SetNwSrc(long)),
        SET_NW_DST => Ok(Action::SetNwDst(long)),
        SET_NW_TOS => Ok(Action::SetNwTos(byte)),
        SET_TP_SRC => Ok(Action::SetTpSrc(short)),
        SET_TP_DST => Ok(Action::SetTpDst(short)),
        kind => Err((BadAction::BadType, format!("found action type {kind}, which 1.0 does not have"))),
    }
}

/// Writes a list of actions.
pub(crate) fn encode_list(actions: &[Action], writer: &mut WireWriter<'_>) -> Encoded {
    actions.iter().try_for_each(|action| encode(action, writer))
}

fn encode(action: &Action, writer: &mut WireWriter<'_>) -> Encoded {
    match *action {
        Action::Output { port, max_len } => {
            head(OUTPUT, 8, writer);
            port::encode_no(port, writer)?;
            writer.write_u16(max_len);
        }
        Action::SetVlanVid(vid) => short(SET_VLAN_VID, vid, writer),
        Action::SetVlanPcp(pcp) => byte(SET_VLAN_PCP, pcp, writer),
        Action::PopVlan => long(STRIP_VLAN, 0, writer),
        Action::SetNwSrc(address) => long(SET_NW_SRC, address, writer),
        Action::SetNwDst(address) => long(SET_NW_DST, address, writer),
        Action::SetNwTos(tos) => byte(SET_NW_TOS, tos, writer),
        Action::SetTpSrc(port) => short(SET_TP_SRC, port, writer),
        Action::SetTpDst(port) => short(SET_TP_DST, port, writer),
        Action::Enqueue { port, queue } => {
            head(ENQUEUE, 16, writer);
            port::encode_no(port, writer)?;
            writer.write_zeros(6);
            writer.write_u32(queue);
        }
        Action::SetField { field, value } => return encode_set_field(field, value, writer),
        Action::Experimenter { id, ref data } => {
            return encode_experimenter(VENDOR, "a vendor", id, &data.0, writer);
        }
        ref extension @ (Action::Encap(_) | Action::Decap(_) | Action::DecNshTtl) => {
            return nicira::encode_action(extension, writer);
        }
        ref other => {
            let cannot = writer.cannot(format!("the action {other:?}"));
            return nicira::action::encode_for_v10(other, writer).unwrap_or(Err(cannot));
        }
    }
    Ok(())
}

/// Writes a set-field as 1.0's action that sets the field.
#[expect(clippy::cast_possible_truncation, reason = "the value is checked against the field's width")]
fn encode_set_field(field: Field, value: u128, writer: &mut WireWriter<'_>) -> Encoded {
    if value > field.all_ones() {
        return Err(writer.cannot(format!("{value:#x} in {field}, which has {} bits", field.bits())));
    }
    match field {
        Field::EthSrc => mac(SET_DL_SRC, MacAddr::from_bits(value as u64), writer),
        Field::EthDst => mac(SET_DL_DST, MacAddr::from_bits(value as u64), writer),
        Field::VlanVid if value as u16 & VLAN_PRESENT != 0 => {
            short(SET_VLAN_VID, value as u16 & VID_MAX, writer);
        }
        Field::VlanPcp => byte(SET_VLAN_PCP, value as u8, writer),
        Field::Ipv4Src => long(SET_NW_SRC, value as u32, writer),
        Field::Ipv4Dst => long(SET_NW_DST, value as u32, writer),
        Field::IpDscp => byte(SET_NW_TOS, (value as u8) << 2, writer),
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc => short(SET_TP_SRC, value as u16, writer),
        Field::TcpDst | Field::UdpDst | Field::SctpDst => short(SET_TP_DST, value as u16, writer),
        // Nicira's extensions can set fields that 1.0 has no action for.
        _ => {
            let cannot = writer.cannot(format!("setting {field} to {value:#x}"));
            let set = Action::SetField { field, value };
            return nicira::action::encode_for_v10(&set, writer).unwrap_or(Err(cannot));
        }
    }
    Ok(())
}

fn mac(kind: u16, address: MacAddr, writer: &mut WireWriter<'_>) {
    head(kind, 16, writer);
    writer.write_mac(address);
    writer.write_zeros(6);
}
