//! Numbers of error types (OpenFlow 1.3.5, 7.4.4). The codes' numbers are the model's own.
use crate::model::ErrorType;
use crate::model::error::{
    AsyncConfigFailed, BadAction, BadInstruction, BadMatch, BadProperty, BadRequest, BundleFailed, FlowModFailed,
    FlowMonitorFailed, GroupModFailed, HelloFailed, MeterModFailed, PortModFailed, QueueOpFailed, RoleRequestFailed,
    SwitchConfigFailed, TableFeaturesFailed, TableModFailed,
};

/// The error of a type and a code; kept as they came when there is none.
pub(crate) fn from_numbers(kind: u16, code: u16) -> ErrorType {
    let known = match kind {
        0 => HelloFailed::from_number(code).map(ErrorType::from),
        1 => BadRequest::from_number(code).map(ErrorType::from),
        2 => BadAction::from_number(code).map(ErrorType::from),
        3 => BadInstruction::from_number(code).map(ErrorType::from),
        4 => BadMatch::from_number(code).map(ErrorType::from),
        5 => FlowModFailed::from_number(code).map(ErrorType::from),
        6 => GroupModFailed::from_number(code).map(ErrorType::from),
        7 => PortModFailed::from_number(code).map(ErrorType::from),
        8 => TableModFailed::from_number(code).map(ErrorType::from),
        9 => QueueOpFailed::from_number(code).map(ErrorType::from),
        10 => SwitchConfigFailed::from_number(code).map(ErrorType::from),
        11 => RoleRequestFailed::from_number(code).map(ErrorType::from),
        12 => MeterModFailed::from_number(code).map(ErrorType::from),
        13 => TableFeaturesFailed::from_number(code).map(ErrorType::from),
        14 => BadProperty::from_number(code).map(ErrorType::from),
        15 => AsyncConfigFailed::from_number(code).map(ErrorType::from),
        16 => FlowMonitorFailed::from_number(code).map(ErrorType::from),
        17 => BundleFailed::from_number(code).map(ErrorType::from),
        _ => None,
    };
    known.unwrap_or(ErrorType::Unknown { kind, code })
}

/// The type and code of an error. An experimenter's has no code: its own type stands there.
pub(crate) fn numbers(error: ErrorType) -> (u16, u16) {
    match error {
        ErrorType::HelloFailed(code) => (0, code.number()),
        ErrorType::BadRequest(code) => (1, code.number()),
        ErrorType::BadAction(code) => (2, code.number()),
        ErrorType::BadInstruction(code) => (3, code.number()),
        ErrorType::BadMatch(code) => (4, code.number()),
        ErrorType::FlowModFailed(code) => (5, code.number()),
        ErrorType::GroupModFailed(code) => (6, code.number()),
        ErrorType::PortModFailed(code) => (7, code.number()),
        ErrorType::TableModFailed(code) => (8, code.number()),
        ErrorType::QueueOpFailed(code) => (9, code.number()),
        ErrorType::SwitchConfigFailed(code) => (10, code.number()),
        ErrorType::RoleRequestFailed(code) => (11, code.number()),
        ErrorType::MeterModFailed(code) => (12, code.number()),
        ErrorType::TableFeaturesFailed(code) => (13, code.number()),
        ErrorType::BadProperty(code) => (14, code.number()),
        ErrorType::AsyncConfigFailed(code) => (15, code.number()),
        ErrorType::FlowMonitorFailed(code) => (16, code.number()),
        ErrorType::BundleFailed(code) => (17, code.number()),
        ErrorType::Experimenter { kind, .. } => (0xffff, kind),
        ErrorType::Unknown { kind, code } => (kind, code),
    }
}
