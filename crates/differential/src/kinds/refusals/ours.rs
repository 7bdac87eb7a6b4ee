//! Kinds of differences in which weir refuses messages that Open vSwitch accepts.
use super::super::DeviatingSwitch::{Free, Theirs};
use super::super::DifferenceKind;
use weir_openflow::model::error::{BadAction, BadInstruction, FlowModFailed, GroupModFailed};
use weir_openflow::model::group::GroupCommand;
use weir_openflow::model::{Action, ErrorType, Instruction, NxAction, PortNo};
use weir_packet::Field;

use super::*;

/// Reasons for weir to refuse messages that Open vSwitch accepts.
pub(in crate::kinds) const OURS: &[DifferenceKind] = &[
    DifferenceKind {
        name: "modify_of_nothing",
        whose: Free,
        clause: "1.3.5, 6.4: a modify without a matching entry records no error",
        why: "weir refuses wrong actions of modifies; Open vSwitch looks at them only if there is an entry to modify",
        is: |seen| {
            is_modify(seen)
                && seen.only_we_refuse(&[METER, OUT_GROUP, OUT_PORT, UNKNOWN_METER, INCONSISTENT, INVALID_METER, TABLE])
        },
    },
    DifferenceKind {
        name: "port_zero",
        whose: Theirs,
        clause: "1.3.5, 4.2 and 7.2.1: ordinary ports are numbered from 1 on",
        why: "weir refuses outputs to port 0 and to no port; Open vSwitch takes them",
        is: |seen| seen.only_we_refuse(&[OUT_PORT]) && seen.parts().outputs(|port| port == PortNo(0)),
    },
    DifferenceKind {
        name: "extension_in_an_action_set",
        whose: Free,
        clause: "1.3.5, 5.10: the order of experimenter actions is the switch's",
        why: "weir refuses Nicira's actions in action sets, and extension fields where their order could not be kept",
        is: |seen| {
            let order = ErrorType::BadAction(BadAction::UnsupportedOrder);
            (seen.only_we_refuse(&[order, SET_TYPE]) || seen.both_refuse(&[order], &[TYPE]))
                && seen
                    .parts()
                    .all_actions()
                    .any(|action| matches!(action, Action::Nx(_) | Action::SetField { field: Field::VlanTci, .. }))
        },
    },
    DifferenceKind {
        name: "empty_mask_of_a_field_without_masks",
        whose: Free,
        clause: "1.3.5, 7.2.3.5: a mask of zeros is as no field",
        why: "weir refuses the mask, Open vSwitch ignores the field",
        is: |seen| {
            let is_it = |(field, _, mask): (Field, u128, Option<u128>)| mask == Some(0) && !field.is_maskable();
            seen.only_we_refuse(&[MASK]) && seen.parts().fields().any(is_it)
        },
    },
    DifferenceKind {
        name: "values_of_service_headers",
        whose: Free,
        clause: "1.3.5, 7.2.3: experimenter fields are not specified",
        why: "weir refuses values that NSH fields cannot have; Open vSwitch takes them in groups",
        is: |seen| {
            let is_ours = seen.only_we_refuse(&[SET_ARGUMENT]) || seen.both_refuse(&[SET_ARGUMENT], &[INCONSISTENT]);
            is_ours && seen.parts().sets(|field, _| field.is_nsh())
        },
    },
    DifferenceKind {
        name: "hidden_table_in_a_delete",
        whose: Theirs,
        clause: "1.3.5, 6.4: OFPFMFC_BAD_TABLE_ID",
        why: "a delete in table 254, which features do not tell: Open vSwitch takes it",
        is: |seen| {
            seen.only_we_refuse(&[ErrorType::FlowModFailed(FlowModFailed::BadTableId)])
                && seen.parts().flow.is_some_and(|flow| flow.table.0 == 254)
        },
    },
    DifferenceKind {
        name: "watched_group_deleted",
        whose: Free,
        clause: "1.3.5, 7.3.4.2: deletes of groups that others lead to; OFPGMFC_CHAINED_GROUP",
        why: "weir refuses to delete a group that another one leads to or watches",
        is: |seen| seen.only_we_refuse(&[ErrorType::GroupModFailed(GroupModFailed::ChainedGroup)]),
    },
    DifferenceKind {
        name: "set_metadata",
        whose: Theirs,
        clause: "1.3.5, 7.2.5: OXM_OF_METADATA and the input port are not set",
        why: "Open vSwitch sets metadata by set-field",
        is: |seen| seen.only_we_refuse(&[SET_TYPE]) && seen.parts().sets(|field, _| field == Field::Metadata),
    },
    DifferenceKind {
        name: "inconsistent_action_set",
        whose: Free,
        clause: "1.3.5, 6.4: a switch may refuse actions that do not fit the match",
        why: "Open vSwitch does not compare TTL actions of action sets with the match, nor with an ICMPv6 type that \
              was set before",
        is: |seen| {
            let is_encap = |action: &Action| matches!(action, Action::Encap(_));
            let parts = seen.parts();
            let sets_type = parts.sets(|field, _| field == Field::Icmpv6Type);
            seen.only_we_refuse(&[INCONSISTENT]) && (!parts.set.is_empty() || parts.has_action(is_encap) || sets_type)
        },
    },
    DifferenceKind {
        name: "goto_the_hidden_table",
        whose: Theirs,
        clause: "1.3.5, 5.9: OFPBIC_BAD_TABLE_ID",
        why: "table 254 is one of Open vSwitch's own, beyond those that its features tell; gotos to it, and to 255, \
              are taken",
        is: |seen| {
            let is_it =
                |instruction: &&Instruction| matches!(instruction, Instruction::GotoTable(table) if table.0 >= 254);
            seen.only_we_refuse(&[ErrorType::BadInstruction(BadInstruction::BadTableId)])
                && seen.parts().instructions.iter().any(is_it)
        },
    },
    DifferenceKind {
        name: "vlan_id_without_present_bit",
        whose: Theirs,
        clause: "1.3.5, 7.2.3, table 13: a VLAN id goes with OFPVID_PRESENT",
        why: "Open vSwitch takes VLAN ids without the bit",
        is: |seen| {
            let is_it = |(field, value, _): (Field, u128, Option<u128>)| {
                field == Field::VlanVid && value & 0x1000 == 0 && value != 0
            };
            seen.is_in(crate::compare::StepAnswerPart::Replies)
                && seen.errors().0 == Some(VALUE)
                && matches!(seen.errors().1, None | Some(PREREQ))
                && seen.parts().fields().any(is_it)
        },
    },
    DifferenceKind {
        name: "overlap_with_the_same_entry",
        whose: Theirs,
        clause: "1.3.5, 6.4: with OFPFF_CHECK_OVERLAP any overlapping entry of the priority is a conflict",
        why: "an entry of the same match and priority: weir refuses, Open vSwitch replaces it",
        is: |seen| seen.only_we_refuse(&[ErrorType::FlowModFailed(FlowModFailed::Overlap)]),
    },
    DifferenceKind {
        name: "output_to_table",
        whose: Theirs,
        clause: "1.3.5, 4.5: OFPP_TABLE is valid in packet-outs only",
        why: "Open vSwitch takes outputs to TABLE in groups",
        is: |seen| seen.only_we_refuse(&[OUT_PORT]) && seen.parts().outputs(|port| port == PortNo::TABLE),
    },
    DifferenceKind {
        name: "resubmit_in_a_group",
        whose: Free,
        clause: "1.3.5, 7.2.5: experimenter actions are not specified",
        why: "weir has no resubmits in group buckets",
        is: |seen| {
            let is_it = |action: &Action| matches!(action, Action::Nx(nx) if matches!(**nx, NxAction::Resubmit { .. }));
            seen.only_we_refuse(&[ARGUMENT]) && seen.parts().has_action(is_it)
        },
    },
    DifferenceKind {
        name: "meter_in_a_group",
        whose: Free,
        clause: "1.5.1, 5.8: the meter action is optional",
        why: "weir has no meters in group buckets",
        is: |seen| {
            let is_group = seen.body().is_some_and(|body| group_of(body).is_some());
            seen.only_we_refuse(&[TYPE]) && is_group && seen.parts().has_meter()
        },
    },
    DifferenceKind {
        name: "group_of_a_group_not_there",
        whose: Free,
        clause: "1.3.5, 7.3.4.2: support of chaining is a switch's choice",
        why: "weir refuses buckets that lead to groups or watch groups that are not there; Open vSwitch takes them",
        is: |seen| {
            seen.only_we_refuse(&[OUT_GROUP, BAD_WATCH]) && seen.body().is_some_and(|body| group_of(body).is_some())
        },
    },
    DifferenceKind {
        name: "inserted_bucket_of_another_type",
        whose: Free,
        clause: "1.5.1, 6.7: an insert names the group, not its type",
        why: "a bucket that its group's type does not allow, such as one that watches nothing: Open vSwitch takes it",
        is: |seen| {
            let inserts = |body| group_of(body).is_some_and(|group| group.command == GroupCommand::InsertBucket);
            seen.only_we_refuse(&[INVALID_GROUP, BAD_WATCH]) && seen.body().is_some_and(inserts)
        },
    },
    DifferenceKind {
        name: "group_loop",
        whose: Free,
        clause: "1.3.5, 7.4.4: OFPGMFC_LOOP",
        why: "weir refuses groups that lead to themselves; Open vSwitch takes them and ends the packet's way",
        is: |seen| seen.only_we_refuse(&[ErrorType::GroupModFailed(GroupModFailed::Loop)]),
    },
];
