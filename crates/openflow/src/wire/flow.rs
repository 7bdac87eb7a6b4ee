//! Reads and writes the numbers of flow-mod commands and flow-removed reasons.
use super::{Decoded, WireReader};
use crate::model::error::{BadRequest, FlowModFailed};
use crate::model::flow::{FlowCommand, FlowRemovedReason};

/// Commands in the order of their numbers.
const COMMANDS: [FlowCommand; 5] =
    [FlowCommand::Add, FlowCommand::Modify, FlowCommand::ModifyStrict, FlowCommand::Delete, FlowCommand::DeleteStrict];

const REASONS: [FlowRemovedReason; 6] = [
    FlowRemovedReason::IdleTimeout,
    FlowRemovedReason::HardTimeout,
    FlowRemovedReason::Delete,
    FlowRemovedReason::GroupDelete,
    FlowRemovedReason::MeterDelete,
    FlowRemovedReason::Eviction,
];

/// Reads a flow-mod command. `read` reads its number, whose width depends on the version.
pub(crate) fn command<'a>(
    reader: &mut WireReader<'a>,
    read: impl FnOnce(&mut WireReader<'a>) -> Decoded<u16>,
) -> Decoded<FlowCommand> {
    let at = reader.at();
    let number = read(reader)?;
    COMMANDS.get(usize::from(number)).copied().ok_or_else(|| {
        reader.error_at(at, FlowModFailed::BadCommand, format_args!("found command {number}, expected 0 to 4"))
    })
}

/// Reads the reason of a flow entry's removal. `last` is the last reason that the version defines.
pub(crate) fn decode_reason(reader: &mut WireReader<'_>, last: FlowRemovedReason) -> Decoded<FlowRemovedReason> {
    let at = reader.at();
    let number = reader.read_u8()?;
    let known = REASONS.into_iter().find(|reason| *reason as u8 == number && number <= last as u8);
    known.ok_or_else(|| {
        let reason = format!("found reason {number}, expected 0 to {}", last as u8);
        reader.error_at(at, BadRequest::BadType, reason)
    })
}

/// Returns the number of a reason; the number of `Delete` if the version, whose last reason is `last`, does not
/// define it.
pub(crate) fn reason(reason: FlowRemovedReason, last: FlowRemovedReason) -> u8 {
    if reason as u8 > last as u8 { FlowRemovedReason::Delete as u8 } else { reason as u8 }
}
