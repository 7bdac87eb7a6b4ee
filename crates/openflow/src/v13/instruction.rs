//! Reads and writes instructions (OpenFlow 1.3.5, 7.2.4).
use super::action;
use crate::model::action::{Instruction, InstructionType};
use crate::model::error::{BadAction, BadInstruction};
use crate::model::{MeterId, TableId, Version};
use crate::v15::instruction as v15;
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};

/// Type of the instructions of experimenters, `OFPIT_EXPERIMENTER`.
const EXPERIMENTER: InstructionType = InstructionType::Unknown(0xffff);

/// Reads one instruction.
pub(crate) fn decode(reader: &mut WireReader<'_>) -> Decoded<Instruction> {
    let at = reader.at();
    let mut part = reader.take_element("instruction", 2, 8, BadInstruction::BadLen)?;
    let length = part.left();
    if !length.is_multiple_of(8) {
        return Err(part.error(BadInstruction::BadLen, format_args!("found length {length}, expected a multiple of 8")));
    }
    let kind = InstructionType::from_number(part.read_u16()?);
    part.skip(2)?;
    let decoded = match kind {
        InstructionType::GotoTable => {
            let table = TableId(part.read_u8()?);
            part.skip(3)?;
            Instruction::GotoTable(table)
        }
        InstructionType::WriteMetadata => {
            part.skip(4)?;
            Instruction::WriteMetadata { metadata: part.read_u64()?, mask: part.read_u64()? }
        }
        InstructionType::WriteActions => Instruction::WriteActions(actions(&mut part)?),
        InstructionType::ApplyActions => Instruction::ApplyActions(actions(&mut part)?),
        InstructionType::ClearActions => {
            part.skip(4)?;
            Instruction::ClearActions
        }
        InstructionType::Meter if part.version() < Version::V15 => Instruction::Meter(MeterId(part.read_u32()?)),
        InstructionType::StatTrigger if part.version() >= Version::V15 => v15::decode_trigger(&mut part)?,
        EXPERIMENTER => Instruction::Experimenter { id: part.read_u32()?, data: part.read_rest() },
        kind => {
            let (kind, version) = (kind.number(), part.version().name());
            let reason = format!("found instruction type {kind}, which {version} does not have");
            return Err(part.error_at(at, BadInstruction::UnknownInst, reason));
        }
    };
    part.finish()?;
    Ok(decoded)
}

fn actions(part: &mut WireReader<'_>) -> Decoded<Vec<crate::model::Action>> {
    part.skip(4)?;
    let left = part.left();
    part.take_part(left, "actions", BadAction::BadLen)?.read_list(action::decode)
}

/// Writes a list of instructions. `proto` is the `ip_proto` that the flow entry matches, if any.
pub(crate) fn encode_list(instructions: &[Instruction], proto: Option<u8>, writer: &mut WireWriter<'_>) -> Encoded {
    let instructions = match writer.version() {
        Version::V15 => v15::metered_by_action(instructions),
        _ => v15::metered_by_instruction(instructions),
    };
    instructions.iter().try_for_each(|instruction| encode(instruction, proto, writer))
}

fn encode(instruction: &Instruction, proto: Option<u8>, writer: &mut WireWriter<'_>) -> Encoded {
    let start = writer.at();
    if matches!(instruction, Instruction::StatTrigger { .. }) && writer.version() < Version::V15 {
        return Err(writer.cannot("statistics triggers"));
    }
    writer.write_u16(instruction.kind().unwrap_or(EXPERIMENTER).number());
    writer.write_u16(0);
    match instruction {
        Instruction::GotoTable(table) => {
            writer.write_u8(table.0);
            writer.write_zeros(3);
        }
        Instruction::WriteMetadata { metadata, mask } => {
            writer.write_zeros(4);
            writer.write_u64(*metadata);
            writer.write_u64(*mask);
        }
        Instruction::WriteActions(actions) | Instruction::ApplyActions(actions) => {
            writer.write_zeros(4);
            action::encode_list(actions, proto, writer)?;
        }
        Instruction::ClearActions => writer.write_zeros(4),
        Instruction::StatTrigger { flags, thresholds } => v15::encode_trigger(*flags, thresholds, writer)?,
        Instruction::Meter(meter) => writer.write_u32(meter.0),
        Instruction::Experimenter { id, data } => {
            writer.write_u32(*id);
            writer.write_bytes(&data.0);
        }
    }
    if !(writer.at() - start).is_multiple_of(8) {
        return Err(writer.cannot("an experimenter instruction whose length is not a multiple of 8"));
    }
    writer.set_length(start + 2, start)
}
