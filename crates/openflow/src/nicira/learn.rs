//! Reads and writes the learn action, which adds flow entries (Open vSwitch's `NXAST_LEARN`).
use super::nxm;
use crate::model::error::BadAction;
use crate::model::nicira::{LearnAction, LearnDst, LearnSpec, LearnSrc};
use crate::model::{Subfield, TableId};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

/// Fields of a part's header: width in bits, kind of destination, kind of source.
const BITS: u16 = 0x3ff;
const DST_SHIFT: u16 = 11;
const DST: u16 = 3;
const SRC_VALUE: u16 = 1 << 13;
/// Bits without meaning, which must be zero.
const UNUSED: u16 = 0xc400;

const DST_MATCH: u16 = 0;
const DST_LOAD: u16 = 1;
const DST_OUTPUT: u16 = 2;

pub(super) fn decode(action: &mut WireReader<'_>) -> Decoded<LearnAction> {
    let (idle_timeout, hard_timeout, priority) = (action.read_u16()?, action.read_u16()?, action.read_u16()?);
    let (cookie, flags, table) = (action.read_u64()?, action.read_u16()?, TableId(action.read_u8()?));
    action.skip(1)?;
    let (fin_idle_timeout, fin_hard_timeout) = (action.read_u16()?, action.read_u16()?);
    let mut specs = Vec::new();
    while action.left() >= 2 {
        let head = action.read_u16()?;
        // A zero header ends the list; the rest is padding.
        if head == 0 {
            break;
        }
        specs.push(decode_spec(head, action)?);
    }
    action.read_rest();
    Ok(LearnAction {
        idle_timeout,
        hard_timeout,
        priority,
        cookie,
        flags,
        table,
        fin_idle_timeout,
        fin_hard_timeout,
        specs,
    })
}

fn decode_spec(head: u16, action: &mut WireReader<'_>) -> Decoded<LearnSpec> {
    let (at, bits, kind) = (action.at(), head & BITS, head >> DST_SHIFT & DST);
    if head & UNUSED != 0 || bits == 0 || bits > 128 || kind > DST_OUTPUT {
        let reason = format!("found a part of header {head:#06x}");
        return Err(action.error_at(at, BadAction::BadArgument, reason));
    }
    let src = if head & SRC_VALUE == 0 {
        LearnSrc::Field(decode_part(bits, action)?)
    } else {
        let bytes = usize::from(bits.div_ceil(16)) * 2;
        let value = action.take(bytes)?.iter().fold(0_u128, |value, byte| value << 8 | u128::from(*byte));
        LearnSrc::Value(value & u128::MAX >> (128 - u32::from(bits)))
    };
    let dst = match kind {
        DST_MATCH => LearnDst::Match(decode_part(bits, action)?),
        DST_LOAD => LearnDst::Load(decode_part(bits, action)?),
        _ => LearnDst::Output,
    };
    Ok(LearnSpec { src, dst, bits })
}

/// Reads bits of a field: the field's header, then the offset. `bits` is the width.
fn decode_part(bits: u16, action: &mut WireReader<'_>) -> Decoded<Subfield> {
    let mut behind = action.clone();
    nxm::decode_header(&mut behind)?;
    let offset = behind.read_u16()?;
    let part = nxm::decode_subfield(action, offset, bits)?;
    action.skip(2)?;
    Ok(part)
}

pub(super) fn encode(learn: &LearnAction, writer: &mut WireWriter<'_>) -> Encoded {
    writer.write_u16(learn.idle_timeout);
    writer.write_u16(learn.hard_timeout);
    writer.write_u16(learn.priority);
    writer.write_u64(learn.cookie);
    writer.write_u16(learn.flags);
    writer.write_u8(learn.table.0);
    writer.write_zeros(1);
    writer.write_u16(learn.fin_idle_timeout);
    writer.write_u16(learn.fin_hard_timeout);
    learn.specs.iter().try_for_each(|spec| encode_spec(spec, writer))
}

fn encode_spec(spec: &LearnSpec, writer: &mut WireWriter<'_>) -> Encoded {
    let (kind, dst) = match spec.dst {
        LearnDst::Match(part) => (DST_MATCH, Some(part)),
        LearnDst::Load(part) => (DST_LOAD, Some(part)),
        LearnDst::Output => (DST_OUTPUT, None),
    };
    if spec.bits == 0 || spec.bits > 128 {
        return Err(writer.cannot(format!("a learned part of {} bits", spec.bits)));
    }
    let from_value = matches!(spec.src, LearnSrc::Value(_));
    writer.write_u16(spec.bits | kind << DST_SHIFT | if from_value { SRC_VALUE } else { 0 });
    match spec.src {
        LearnSrc::Field(part) => encode_part(part, writer)?,
        LearnSrc::Value(value) => {
            let bytes = usize::from(spec.bits.div_ceil(16)) * 2;
            writer.write_bytes(&value.to_be_bytes()[16 - bytes..]);
        }
    }
    dst.map_or(Ok(()), |part| encode_part(part, writer))
}

fn encode_part(part: Subfield, writer: &mut WireWriter<'_>) -> Encoded {
    nxm::encode_header(part, writer)?;
    writer.write_u16(part.offset);
    Ok(())
}
