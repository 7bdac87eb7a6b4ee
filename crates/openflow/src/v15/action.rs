//! Reads and writes 1.5's copy-field action (OpenFlow 1.5.1, 7.2.6.8).
use crate::model::action::{Action, ActionType, Subfield};
use crate::model::error::BadAction;
use crate::v13::oxm;
use crate::wire::action::padded;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

/// Reads a copy-field after its type and length. Fails if weir does not know one of the fields.
pub(crate) fn decode_copy(action: &mut WireReader<'_>) -> Decoded<Action> {
    action.rename("copy-field");
    let (bits, src_offset, dst_offset) = (action.read_u16()?, action.read_u16()?, action.read_u16()?);
    action.skip(2)?;
    let mut part = |offset| {
        let at = action.at();
        let id = oxm::decode_id(action)?;
        let field = id.field().ok_or_else(|| {
            let reason =
                format!("found field {} of class {:#06x}, which weir does not know", id.number, id.class.number());
            action.error_at(at, BadAction::BadSetType, reason)
        })?;
        Ok(Subfield { field, offset, bits })
    };
    let (src, dst) = (part(src_offset)?, part(dst_offset)?);
    let left = action.left();
    if left >= 8 {
        return Err(action.error(BadAction::BadLen, format_args!("found {left} bytes of padding, expected below 8")));
    }
    Ok(Action::Move { src, dst })
}

pub(crate) fn encode_copy(src: Subfield, dst: Subfield, writer: &mut WireWriter<'_>) -> Encoded {
    if src.bits != dst.bits {
        return Err(writer.cannot(format!("copying {} bits to {}", src.bits, dst.bits)));
    }
    padded(ActionType::CopyField, writer, |writer| {
        writer.write_u16(src.bits);
        writer.write_u16(src.offset);
        writer.write_u16(dst.offset);
        writer.write_zeros(2);
        [src, dst].into_iter().try_for_each(|part| oxm::encode_field_id(part.field, writer))
    })
}
