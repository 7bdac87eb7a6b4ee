//! What flow entries' messages share: numbers of commands and of reasons.
use super::{Decoded, Reader};
use crate::model::error::{BadRequest, FlowModFailed};
use crate::model::flow::{FlowCommand, FlowRemovedReason};

/// Commands in order of their numbers.
const COMMANDS: [FlowCommand; 5] =
    [FlowCommand::Add, FlowCommand::Modify, FlowCommand::ModifyStrict, FlowCommand::Delete, FlowCommand::DeleteStrict];

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

/// Why an entry went. (1.0 has no groups, so it never says that one took the entry along.)
pub(crate) fn decode_reason(reader: &mut Reader<'_>) -> Decoded<FlowRemovedReason> {
    let at = reader.at();
    Ok(match reader.u8()? {
        0 => FlowRemovedReason::IdleTimeout,
        1 => FlowRemovedReason::HardTimeout,
        2 => FlowRemovedReason::Delete,
        3 => FlowRemovedReason::GroupDelete,
        other => {
            return Err(reader.error_at(
                at,
                BadRequest::BadType,
                format_args!("found reason {other}, expected 0 to 3"),
            ));
        }
    })
}
