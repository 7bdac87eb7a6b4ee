//! What flow entries' messages share: numbers of commands and of reasons.
use super::{Decoded, Reader};
use crate::model::error::{BadRequest, FlowModFailed};
use crate::model::flow::{FlowCommand, FlowRemovedReason};

/// Commands in order of their numbers.
const COMMANDS: [FlowCommand; 5] =
    [FlowCommand::Add, FlowCommand::Modify, FlowCommand::ModifyStrict, FlowCommand::Delete, FlowCommand::DeleteStrict];

/// The command of a number.
pub(crate) fn command(number: u16, reader: &Reader<'_>) -> Decoded<FlowCommand> {
    COMMANDS
        .get(usize::from(number))
        .copied()
        .ok_or_else(|| reader.error(FlowModFailed::BadCommand, format_args!("found command {number}, expected 0 to 4")))
}

/// Why an entry went. (1.0 has no groups, so it never says that one took the entry along.)
pub(crate) fn decode_reason(reader: &mut Reader<'_>) -> Decoded<FlowRemovedReason> {
    Ok(match reader.u8()? {
        0 => FlowRemovedReason::IdleTimeout,
        1 => FlowRemovedReason::HardTimeout,
        2 => FlowRemovedReason::Delete,
        3 => FlowRemovedReason::GroupDelete,
        other => return Err(reader.error(BadRequest::BadType, format_args!("found reason {other}, expected 0 to 3"))),
    })
}
