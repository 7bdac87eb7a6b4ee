//! Converts error types and codes to numbers and back (OpenFlow 1.3.5, 7.4.4; OpenFlow 1.4.1, 7.5.4; OpenFlow 1.5.1,
//! 7.5.4). The model has the same numbers; the versions differ in how many types and codes they have.
use super::onf::ONF;
use crate::model::error::{
    AsyncConfigFailed, BadAction, BadInstruction, BadMatch, BadProperty, BadRequest, BundleFailed, FlowModFailed,
    FlowMonitorFailed, GroupModFailed, HelloFailed, MeterModFailed, PortModFailed, QueueOpFailed, RoleRequestFailed,
    SwitchConfigFailed, TableFeaturesFailed, TableModFailed,
};
use crate::model::{ErrorType, Version};

/// Number of codes in 1.3, 1.4 and 1.5, indexed by error type.
const N_CODES: [[u16; 3]; 18] = [
    [2, 2, 2],
    [14, 16, 19],
    [16, 16, 18],
    [9, 10, 10],
    [12, 12, 12],
    [8, 10, 11],
    [15, 15, 17],
    [5, 5, 5],
    [3, 3, 3],
    [3, 3, 3],
    [3, 3, 3],
    [3, 3, 5],
    [12, 12, 12],
    [6, 6, 11],
    [0, 9, 9],
    [0, 3, 3],
    [0, 8, 8],
    [0, 16, 19],
];
/// `OFPET_TABLE_FEATURES_FAILED`. 1.4 removed three of its codes, because property errors replace them.
const TABLE_FEATURES_FAILED: u16 = 13;
const PROPERTY_CODES: std::ops::RangeInclusive<u16> = 2..=4;
/// Number of code 0 of `OFPBFC_*` in 1.3, where bundle errors are experimenter errors of the Open Networking
/// Foundation (extension 230).
const ONF_BUNDLE_FAILED: u16 = 2300;
const N_ONF_BUNDLE_CODES: u16 = 16;

/// Returns true if the version has this error type and code.
fn has(kind: u16, code: u16, version: Version) -> bool {
    let place = match version {
        Version::V10 | Version::V13 => 0,
        Version::V14 => 1,
        Version::V15 => 2,
    };
    let gone = version >= Version::V14 && kind == TABLE_FEATURES_FAILED && PROPERTY_CODES.contains(&code);
    !gone && N_CODES.get(usize::from(kind)).is_some_and(|n_codes| code < n_codes[place])
}

/// Returns an experimenter's error; in 1.3 this may be a bundle error.
pub(crate) fn from_experimenter(kind: u16, id: u32, version: Version) -> ErrorType {
    let code = kind.checked_sub(ONF_BUNDLE_FAILED).filter(|code| *code < N_ONF_BUNDLE_CODES);
    match code.and_then(BundleFailed::from_number) {
        Some(code) if id == ONF && version == Version::V13 => code.into(),
        _ => ErrorType::Experimenter { kind, id },
    }
}

/// Returns the experimenter's error type and number by which the version carries an error; `None` if it does not use
/// them.
pub(crate) fn experimenter(error: ErrorType, version: Version) -> Option<(u16, u32)> {
    match error {
        ErrorType::Experimenter { kind, id } => Some((kind, id)),
        ErrorType::BundleFailed(code) if version == Version::V13 && code.number() < N_ONF_BUNDLE_CODES => {
            Some((ONF_BUNDLE_FAILED + code.number(), ONF))
        }
        _ => None,
    }
}

/// Returns the error for a type and a code. Unknown numbers are kept as received.
pub(crate) fn from_numbers(kind: u16, code: u16, version: Version) -> ErrorType {
    if !has(kind, code, version) {
        return ErrorType::Unknown { kind, code };
    }
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

/// Returns type and code of an error, or those of the nearest error that the version has.
pub(crate) fn numbers(error: ErrorType, version: Version) -> (u16, u16) {
    let (kind, code) = all_numbers(error);
    if matches!(error, ErrorType::Unknown { .. }) || has(kind, code, version) {
        return (kind, code);
    }
    all_numbers(nearest(error, version))
}

/// Returns the nearest error that the version has, for one that only earlier or later versions have.
fn nearest(error: ErrorType, version: Version) -> ErrorType {
    match error {
        ErrorType::BadAction(BadAction::BadSetMask) => BadAction::BadSetArgument.into(),
        ErrorType::BadAction(_) => BadAction::BadArgument.into(),
        ErrorType::BadInstruction(_) => BadInstruction::UnsupInst.into(),
        ErrorType::FlowModFailed(_) => FlowModFailed::Unknown.into(),
        ErrorType::GroupModFailed(_) => GroupModFailed::BadBucket.into(),
        ErrorType::RoleRequestFailed(_) => RoleRequestFailed::Unsup.into(),
        ErrorType::TableFeaturesFailed(code) if version >= Version::V14 => match code {
            TableFeaturesFailed::BadType => BadProperty::BadType.into(),
            TableFeaturesFailed::BadLen => BadProperty::BadLen.into(),
            TableFeaturesFailed::BadArgument => BadProperty::BadValue.into(),
            _ => TableFeaturesFailed::Eperm.into(),
        },
        ErrorType::TableFeaturesFailed(_) => TableFeaturesFailed::Eperm.into(),
        ErrorType::BadProperty(BadProperty::BadLen) => BadRequest::BadLen.into(),
        ErrorType::BundleFailed(_) if version >= Version::V14 => BundleFailed::BadFlags.into(),
        // Errors about messages and properties that the version does not have.
        ErrorType::BadProperty(_)
        | ErrorType::AsyncConfigFailed(_)
        | ErrorType::FlowMonitorFailed(_)
        | ErrorType::BundleFailed(_) => BadRequest::BadType.into(),
        _ => BadRequest::Eperm.into(),
    }
}

/// Returns type and code of an error in the latest version. For an experimenter's error, its own type takes the place
/// of the code.
fn all_numbers(error: ErrorType) -> (u16, u16) {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_as_far_as_the_version_has_them() {
        for version in [Version::V13, Version::V14, Version::V15] {
            for (kind, code) in (0..20).flat_map(|kind| (0..20).map(move |code| (kind, code))) {
                let error = from_numbers(kind, code, version);
                assert_eq!(matches!(error, ErrorType::Unknown { .. }), !has(kind, code, version), "{kind} {code}");
                assert_eq!(numbers(error, version), (kind, code));
            }
        }
    }

    #[test]
    fn errors_that_a_version_lacks_become_ones_that_it_has() {
        for (kind, code) in (0..18).flat_map(|kind| (0..20).map(move |code| (kind, code))) {
            let error = from_numbers(kind, code, Version::V15);
            if matches!(error, ErrorType::Unknown { .. }) {
                continue;
            }
            for version in [Version::V13, Version::V14] {
                let (kind, code) = numbers(error, version);
                assert!(has(kind, code, version), "{error:?} {version:?}");
            }
        }
        assert_eq!(numbers(TableFeaturesFailed::BadLen.into(), Version::V14), (14, 1));
        assert_eq!(numbers(BadAction::BadSetMask.into(), Version::V13), (2, 15));
    }

    #[test]
    fn bundles_fail_in_1_3_by_the_foundations_numbers() {
        let error = ErrorType::from(BundleFailed::MsgFailed);
        assert_eq!(experimenter(error, Version::V13), Some((2313, ONF)));
        assert_eq!(experimenter(error, Version::V14), None);
        assert_eq!(from_experimenter(2313, ONF, Version::V13), error);
        let other = ErrorType::Experimenter { kind: 2316, id: ONF };
        assert_eq!(from_experimenter(2316, ONF, Version::V13), other);
    }
}
