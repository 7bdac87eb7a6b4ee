//! What flow entries' messages share: numbers of commands and of reasons.
use super::{Decoded, Reader};
use crate::model::error::{BadRequest, FlowModFailed};
use crate::model::flow::{FlowCommand, FlowRemovedReason};

/// Commands in order of their numbers.
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

/// The command of a number, which `read` reads: it has as many bits as the version gives it.
pub(crate) fn command<'a>(
    reader: &mut Reader<'a>,
    read: impl FnOnce(&mut Reader<'a>) -> Decoded<u16>,
) -> Decoded<FlowCommand> {
    let at = reader.at();
    let number = read(reader)?;
    COMMANDS.get(usize::from(number)).copied().ok_or_else(|| {
        reader.error_at(at, FlowModFailed::BadCommand, format_args!("found command {number}, expected 0 to 4"))
    })
}

/// Why an entry went; `last` is the last reason that the version has: 1.0 has no groups that could take entries along.
pub(crate) fn decode_reason(reader: &mut Reader<'_>, last: FlowRemovedReason) -> Decoded<FlowRemovedReason> {
    let at = reader.at();
    let number = reader.u8()?;
    let known = REASONS.into_iter().find(|reason| *reason as u8 == number && number <= last as u8);
    known.ok_or_else(|| {
        let reason = format!("found reason {number}, expected 0 to {}", last as u8);
        reader.error_at(at, BadRequest::BadType, reason)
    })
}

/// The number of a reason, or a delete's where the version's `last` reason comes before it.
pub(crate) fn reason(reason: FlowRemovedReason, last: FlowRemovedReason) -> u8 {
    if reason as u8 > last as u8 { FlowRemovedReason::Delete as u8 } else { reason as u8 }
}
