//! Kinds of differences in refusals: only one switch refuses a message, or both do for different reasons.
mod ours;
mod theirs;

pub(super) use ours::OURS;
pub(super) use theirs::THEIRS;

use super::DeviatingSwitch::{Free, Theirs};
use super::{DifferenceKind, ObservedDifference};
use weir_openflow::Body;
use weir_openflow::model::error::{BadAction, BadInstruction, BadMatch, FlowModFailed, GroupModFailed, MeterModFailed};
use weir_openflow::model::group::GroupMod;
use weir_openflow::model::{ErrorType, FlowCommand, Match};
use weir_packet::Field;

const OUT_PORT: ErrorType = ErrorType::BadAction(BadAction::BadOutPort);
const OUT_GROUP: ErrorType = ErrorType::BadAction(BadAction::BadOutGroup);
const TYPE: ErrorType = ErrorType::BadAction(BadAction::BadType);
const EXP_TYPE: ErrorType = ErrorType::BadAction(BadAction::BadExpType);
const ARGUMENT: ErrorType = ErrorType::BadAction(BadAction::BadArgument);
const SET_TYPE: ErrorType = ErrorType::BadAction(BadAction::BadSetType);
const SET_LEN: ErrorType = ErrorType::BadAction(BadAction::BadSetLen);
const SET_ARGUMENT: ErrorType = ErrorType::BadAction(BadAction::BadSetArgument);
const INCONSISTENT: ErrorType = ErrorType::BadAction(BadAction::MatchInconsistent);
const METER: ErrorType = ErrorType::BadAction(BadAction::BadMeter);
const FIELD: ErrorType = ErrorType::BadMatch(BadMatch::BadField);
const VALUE: ErrorType = ErrorType::BadMatch(BadMatch::BadValue);
const MASK: ErrorType = ErrorType::BadMatch(BadMatch::BadMask);
const PREREQ: ErrorType = ErrorType::BadMatch(BadMatch::BadPrereq);
const DUP_FIELD: ErrorType = ErrorType::BadMatch(BadMatch::DupField);
const UNKNOWN_METER: ErrorType = ErrorType::MeterModFailed(MeterModFailed::UnknownMeter);
const INVALID_METER: ErrorType = ErrorType::MeterModFailed(MeterModFailed::InvalidMeter);
const TABLE: ErrorType = ErrorType::BadInstruction(BadInstruction::BadTableId);
const BAD_FLAGS: ErrorType = ErrorType::FlowModFailed(FlowModFailed::BadFlags);
const BAD_WATCH: ErrorType = ErrorType::GroupModFailed(GroupModFailed::BadWatch);
const INVALID_GROUP: ErrorType = ErrorType::GroupModFailed(GroupModFailed::InvalidGroup);

/// Returns true if Open vSwitch sends an error without a number in 1.0 inside its own experimenter error.
fn is_wrapped(seen: &ObservedDifference<'_>) -> bool {
    matches!(seen.errors().1, Some(ErrorType::Unknown { kind: 45250, .. }))
}

fn is_optional_field(field: Field) -> bool {
    matches!(field, Field::InPhyPort | Field::PbbIsid | Field::PbbUca | Field::Ipv6Exthdr)
}

fn is_modify(seen: &ObservedDifference<'_>) -> bool {
    let command = seen.parts().flow.map(|flow| flow.command);
    matches!(command, Some(FlowCommand::Modify | FlowCommand::ModifyStrict))
}

/// Returns true if a match has fields of neighbour discovery, and an ICMPv6 code other than 0.
pub(super) fn names_discovery(matching: Option<&Match>) -> bool {
    let Some(matching) = matching else { return false };
    let fields = [Field::Ipv6NdTarget, Field::Ipv6NdSll, Field::Ipv6NdTll];
    fields.iter().any(|field| matching.get(*field).is_some())
        && matching.get(Field::Icmpv6Code).is_some_and(|(code, _)| code != 0)
}

fn group_of(body: &Body) -> Option<&GroupMod> {
    match body {
        Body::GroupMod(group) => Some(group),
        Body::BundleAdd(add) => group_of(&add.message.body),
        _ => None,
    }
}

/// Kinds of differences in which both refuse, with different codes.
pub(super) const BOTH: &[DifferenceKind] = &[
    DifferenceKind {
        name: "code_of_a_missing_meter",
        whose: Theirs,
        clause: "1.3.5, 7.4.4: OFPMMFC_UNKNOWN_METER; 1.5.1, 7.5.4: OFPBAC_BAD_METER",
        why: "an entry that uses a meter that is not there: Open vSwitch says INVALID_METER",
        is: |seen| seen.both_refuse(&[UNKNOWN_METER, METER], &[INVALID_METER]) && seen.parts().has_meter(),
    },
    DifferenceKind {
        name: "code_of_an_unknown_group",
        whose: Theirs,
        clause: "1.5.1, 6.7: OFPGMFC_UNKNOWN_GROUP",
        why: "buckets removed from a group that is not there: Open vSwitch says INVALID_GROUP",
        is: |seen| seen.both_refuse(&[ErrorType::GroupModFailed(GroupModFailed::UnknownGroup)], &[INVALID_GROUP]),
    },
    DifferenceKind {
        name: "code_of_a_field_not_to_be_set",
        whose: Theirs,
        clause: "1.3.5, 7.4.4: OFPBAC_BAD_SET_TYPE",
        why: "set-field of a field that is not to be set: Open vSwitch says BAD_SET_ARGUMENT",
        is: |seen| seen.both_refuse(&[SET_TYPE], &[SET_ARGUMENT]),
    },
    DifferenceKind {
        name: "one_of_several_faults",
        whose: Free,
        clause: "1.3.5, 7.4.4: a code for each fault, and no order of checks",
        why: "a message with several faults: each switch names the one that it comes upon first",
        is: |seen| {
            let (Some(ours), Some(theirs)) = seen.errors() else { return false };
            let (our, their) = (RefusedPart::of(ours), RefusedPart::of(theirs));
            our != their || our.is_some_and(|place| place.has_several(seen))
        },
    },
];

/// Part of a message that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusedPart {
    Match,
    Actions,
    Instructions,
    Message,
}

impl RefusedPart {
    fn of(error: ErrorType) -> Option<RefusedPart> {
        match error {
            ErrorType::BadMatch(_) => Some(RefusedPart::Match),
            ErrorType::BadAction(_) => Some(RefusedPart::Actions),
            ErrorType::BadInstruction(_) | ErrorType::MeterModFailed(_) => Some(RefusedPart::Instructions),
            _ => Some(RefusedPart::Message),
        }
    }

    /// Returns true if the message has more than one part of this kind, each of which may be wrong.
    fn has_several(self, seen: &ObservedDifference<'_>) -> bool {
        let parts = seen.parts();
        match self {
            RefusedPart::Match => parts.fields().count() > 1 || parts.fields().any(|(_, _, mask)| mask.is_some()),
            RefusedPart::Actions => {
                parts.all_actions().count() > 0 && parts.fields().count() + parts.all_actions().count() > 1
            }
            RefusedPart::Instructions => {
                parts.instructions.len() + usize::from(parts.has_meter()) > 1
                    || matches!(seen.body(), Some(Body::MeterMod(_)))
            }
            RefusedPart::Message => true,
        }
    }
}
