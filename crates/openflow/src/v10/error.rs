//! Converts error types and codes to 1.0's numbers and back (OpenFlow 1.0.0, 5.4.4).
//!
//! An error that 1.0 lacks is encoded as the nearest one that it has, because an approximate answer tells a
//! controller more than none.
use crate::model::ErrorType;
use crate::model::error::{BadAction, BadRequest, FlowModFailed, HelloFailed, PortModFailed, QueueOpFailed};

const HELLO_FAILED: u16 = 0;
const BAD_REQUEST: u16 = 1;
const BAD_ACTION: u16 = 2;
const FLOW_MOD_FAILED: u16 = 3;
const PORT_MOD_FAILED: u16 = 4;
const QUEUE_OP_FAILED: u16 = 5;
/// `OFPFMFC_UNSUPPORTED`: "cannot process in the order specified", which is `OFPBAC_UNSUPPORTED_ORDER` in 1.3.
const UNSUPPORTED: u16 = 5;

/// Codes of `OFPET_FLOW_MOD_FAILED`, the only type whose codes have other numbers in 1.3.
const FLOW_MOD_CODES: [(u16, ErrorType); 6] = [
    (0, ErrorType::FlowModFailed(FlowModFailed::TableFull)),
    (1, ErrorType::FlowModFailed(FlowModFailed::Overlap)),
    (2, ErrorType::FlowModFailed(FlowModFailed::Eperm)),
    (3, ErrorType::FlowModFailed(FlowModFailed::BadTimeout)),
    (4, ErrorType::FlowModFailed(FlowModFailed::BadCommand)),
    (UNSUPPORTED, ErrorType::BadAction(BadAction::UnsupportedOrder)),
];

/// Highest code in 1.0, for each type whose codes have the same numbers in 1.3.
const HIGHEST_REQUEST: u16 = 8;
const HIGHEST_ACTION: u16 = 8;
const HIGHEST_PORT_MOD: u16 = 1;

/// Returns the error for a type and a code. Unknown numbers are kept as received.
pub(crate) fn from_numbers(kind: u16, code: u16) -> ErrorType {
    let known = match kind {
        HELLO_FAILED => HelloFailed::from_number(code).map(ErrorType::from),
        BAD_REQUEST if code <= HIGHEST_REQUEST => BadRequest::from_number(code).map(ErrorType::from),
        BAD_ACTION if code <= HIGHEST_ACTION => BadAction::from_number(code).map(ErrorType::from),
        FLOW_MOD_FAILED => FLOW_MOD_CODES.iter().find(|(number, _)| *number == code).map(|(_, error)| *error),
        PORT_MOD_FAILED if code <= HIGHEST_PORT_MOD => PortModFailed::from_number(code).map(ErrorType::from),
        QUEUE_OP_FAILED => QueueOpFailed::from_number(code).map(ErrorType::from),
        _ => None,
    };
    known.unwrap_or(ErrorType::Unknown { kind, code })
}

/// Returns type and code of an error, or those of the nearest error that 1.0 has.
pub(crate) fn numbers(error: ErrorType) -> (u16, u16) {
    if let Some((code, _)) = FLOW_MOD_CODES.iter().find(|(_, known)| *known == error) {
        return (FLOW_MOD_FAILED, *code);
    }
    let nearest = nearest(error);
    match nearest {
        ErrorType::HelloFailed(code) => (HELLO_FAILED, code.number()),
        ErrorType::BadRequest(code) => (BAD_REQUEST, code.number()),
        ErrorType::BadAction(code) => (BAD_ACTION, code.number()),
        ErrorType::PortModFailed(code) => (PORT_MOD_FAILED, code.number()),
        ErrorType::QueueOpFailed(code) => (QUEUE_OP_FAILED, code.number()),
        ErrorType::Unknown { kind, code } => (kind, code),
        _ => (FLOW_MOD_FAILED, UNSUPPORTED),
    }
}

/// Returns the nearest error of a type that has the same numbers in both versions. Errors without one are returned
/// unchanged; they are encoded as an unsupported flow-mod.
fn nearest(error: ErrorType) -> ErrorType {
    match error {
        ErrorType::BadRequest(code) if code.number() > HIGHEST_REQUEST => BadRequest::Eperm.into(),
        ErrorType::BadAction(code) if code.number() > HIGHEST_ACTION => BadAction::BadArgument.into(),
        ErrorType::PortModFailed(code) if code.number() > HIGHEST_PORT_MOD => BadRequest::Eperm.into(),
        ErrorType::SwitchConfigFailed(_) => BadRequest::Eperm.into(),
        // Errors about messages that 1.0 does not have.
        ErrorType::GroupModFailed(_)
        | ErrorType::TableModFailed(_)
        | ErrorType::RoleRequestFailed(_)
        | ErrorType::MeterModFailed(_)
        | ErrorType::TableFeaturesFailed(_)
        | ErrorType::BadProperty(_)
        | ErrorType::AsyncConfigFailed(_)
        | ErrorType::FlowMonitorFailed(_)
        | ErrorType::BundleFailed(_) => BadRequest::BadType.into(),
        ErrorType::Experimenter { .. } => BadRequest::BadExperimenter.into(),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::error::BadMatch;

    #[test]
    fn numbers_that_1_0_has_come_back() {
        for (kind, codes) in [(0, 2), (1, 9), (2, 9), (3, 6), (4, 2), (5, 3)] {
            for code in 0..codes {
                let error = from_numbers(kind, code);
                assert!(!matches!(error, ErrorType::Unknown { .. }), "{kind} {code}");
                assert_eq!(numbers(error), (kind, code));
            }
            assert_eq!(from_numbers(kind, codes), ErrorType::Unknown { kind, code: codes });
        }
    }

    #[test]
    fn errors_it_lacks_become_the_nearest() {
        assert_eq!(numbers(FlowModFailed::TableFull.into()), (FLOW_MOD_FAILED, 0));
        assert_eq!(numbers(FlowModFailed::BadTableId.into()), (FLOW_MOD_FAILED, UNSUPPORTED));
        assert_eq!(numbers(BadMatch::BadPrereq.into()), (FLOW_MOD_FAILED, UNSUPPORTED));
        assert_eq!(numbers(BadRequest::BadPort.into()), (BAD_REQUEST, 5));
        assert_eq!(numbers(BadAction::BadSetType.into()), (BAD_ACTION, 5));
    }
}
