//! Prints error messages.
use super::{PrintContext, shape};
use crate::model::{ErrorMessage, ErrorType};

/// Returns the specification's name of an error, such as `OFPBAC_BAD_OUT_PORT`.
pub fn name(error: ErrorType) -> String {
    let name = match error {
        ErrorType::HelloFailed(code) => code.name(),
        ErrorType::BadRequest(code) => code.name(),
        ErrorType::BadAction(code) => code.name(),
        ErrorType::BadInstruction(code) => code.name(),
        ErrorType::BadMatch(code) => code.name(),
        ErrorType::FlowModFailed(code) => code.name(),
        ErrorType::GroupModFailed(code) => code.name(),
        ErrorType::PortModFailed(code) => code.name(),
        ErrorType::TableModFailed(code) => code.name(),
        ErrorType::QueueOpFailed(code) => code.name(),
        ErrorType::SwitchConfigFailed(code) => code.name(),
        ErrorType::RoleRequestFailed(code) => code.name(),
        ErrorType::MeterModFailed(code) => code.name(),
        ErrorType::TableFeaturesFailed(code) => code.name(),
        ErrorType::BadProperty(code) => code.name(),
        ErrorType::AsyncConfigFailed(code) => code.name(),
        ErrorType::FlowMonitorFailed(code) => code.name(),
        ErrorType::BundleFailed(code) => code.name(),
        ErrorType::Experimenter { kind, id } => return format!("experimenter {id:#x} type {kind}"),
        ErrorType::Unknown { kind, code } => return format!("type {kind} code {code}"),
    };
    name.to_owned()
}

pub(super) fn message(message: &ErrorMessage, show: PrintContext) -> String {
    let data = &message.data.0;
    let inside = match message.error {
        ErrorType::HelloFailed(_) => shape::safe(&String::from_utf8_lossy(data)),
        ErrorType::Experimenter { .. } => shape::hex_dump(data),
        _ if show.depth == 0 => shape::hex_dump(data),
        _ => super::print_bytes_nested(data, show.detail.min(super::PrintDetail::Packets), show.depth - 1),
    };
    format!(" {}\n{inside}", name(message.error))
}
