//! Reads and writes the instructions that differ in 1.5 (OpenFlow 1.5.1, 7.2.5): 1.5 adds a statistics trigger, and
//! replaces the meter instruction by an action.
use super::stats;
use crate::model::action::{Action, Instruction};
use crate::wire::{Decoded, Encoded, WireReader, WireWriter};
use std::borrow::Cow;

/// Reads a statistics trigger after its type and length.
pub(crate) fn decode_trigger(part: &mut WireReader<'_>) -> Decoded<Instruction> {
    Ok(Instruction::StatTrigger { flags: part.read_u32()?, thresholds: stats::decode(part)? })
}

pub(crate) fn encode_trigger(
    flags: u32,
    thresholds: &crate::model::stats::OxsStats,
    writer: &mut WireWriter<'_>,
) -> Encoded {
    writer.write_u32(flags);
    stats::encode(thresholds, writer)
}

/// Returns the instructions in 1.5's form: the meter is the first action of apply-actions.
pub(crate) fn metered_by_action(list: &[Instruction]) -> Cow<'_, [Instruction]> {
    let Some(at) = list.iter().position(|one| matches!(one, Instruction::Meter(_))) else { return list.into() };
    let mut list = list.to_vec();
    if let Instruction::Meter(meter) = list.remove(at) {
        let applied = list.iter_mut().find_map(|one| match one {
            Instruction::ApplyActions(actions) => Some(actions),
            _ => None,
        });
        match applied {
            Some(actions) => actions.insert(0, Action::Meter(meter)),
            None => list.insert(0, Instruction::ApplyActions(vec![Action::Meter(meter)])),
        }
    }
    list.into()
}

/// Returns the instructions in the form of earlier versions: a meter action at the start of apply-actions becomes an
/// instruction.
pub(crate) fn metered_by_instruction(list: &[Instruction]) -> Cow<'_, [Instruction]> {
    let meter = |one: &Instruction| match one {
        Instruction::ApplyActions(actions) => match actions.first() {
            Some(Action::Meter(meter)) => Some(*meter),
            _ => None,
        },
        _ => None,
    };
    let Some((at, meter)) = list.iter().enumerate().find_map(|(at, one)| Some((at, meter(one)?))) else {
        return list.into();
    };
    let mut list = list.to_vec();
    if let Some(Instruction::ApplyActions(actions)) = list.get_mut(at) {
        actions.remove(0);
        if actions.is_empty() {
            list.remove(at);
        }
    }
    list.insert(0, Instruction::Meter(meter));
    list.into()
}
