//! Open vSwitch's own extensions, whose experimenter number is Nicira's (`include/openflow/nicira-ext.h`).
pub(crate) mod encap;

use crate::model::Action;
use crate::wire::{Decoded, Encoded, Reader, Writer, action::padded};

/// Nicira's experimenter number.
pub(crate) const NICIRA: u32 = 0x0000_2320;
/// The action type of experimenters, in every version.
const EXPERIMENTER: u16 = 0xffff;

const ENCAP: u16 = 46;
const DECAP: u16 = 47;
const DEC_NSH_TTL: u16 = 48;

/// An experimenter's action behind its number `id`; what weir does not know stays as it came.
pub(crate) fn decode_action(id: u32, action: &mut Reader<'_>) -> Decoded<Action> {
    let mut inside = action.fork();
    if id == NICIRA
        && let Some(known) = decode_known(&mut inside)?
    {
        action.rest();
        return Ok(known);
    }
    Ok(Action::Experimenter { id, data: action.rest() })
}

/// An action of Nicira's, if weir knows its subtype.
fn decode_known(action: &mut Reader<'_>) -> Decoded<Option<Action>> {
    let subtype = action.u16()?;
    Ok(Some(match subtype {
        ENCAP => encap::decode(action)?,
        DECAP => encap::decode_decap(action)?,
        DEC_NSH_TTL => {
            action.skip(6)?;
            action.finish()?;
            Action::DecNshTtl
        }
        _ => return Ok(None),
    }))
}

/// Writes an action of Nicira's.
pub(crate) fn encode_action(action: &Action, writer: &mut Writer<'_>) -> Encoded {
    match action {
        Action::Encap(header) => extension(ENCAP, writer, |writer| encap::encode(header, writer)),
        Action::Decap(wanted) => extension(DECAP, writer, |writer| {
            encap::encode_decap(*wanted, writer);
            Ok(())
        }),
        Action::DecNshTtl => extension(DEC_NSH_TTL, writer, |writer| {
            writer.zeros(6);
            Ok(())
        }),
        other => Err(writer.cannot(format!("the action {other:?}"))),
    }
}

/// An action of Nicira's: `body` writes what follows the subtype.
fn extension(subtype: u16, writer: &mut Writer<'_>, body: impl FnOnce(&mut Writer<'_>) -> Encoded) -> Encoded {
    padded(EXPERIMENTER, writer, |writer| {
        writer.u32(NICIRA);
        writer.u16(subtype);
        body(writer)
    })
}
