//! Kinds of differences in which Open vSwitch refuses messages that weir accepts, or refuses for another reason.
use super::super::DeviatingSwitch::{Free, Theirs};
use super::super::DifferenceKind;
use super::super::features::is_beyond_16_bits;
use weir_openflow::model::error::{
    BadAction, BadMatch, BadRequest, BundleFailed, FlowModFailed, GroupModFailed, MeterModFailed,
};
use weir_openflow::model::group::{GroupCommand, GroupKind};
use weir_openflow::model::meter::BandKind;
use weir_openflow::model::{Action, ErrorType, FlowCommand, FlowFlags, FlowMod, NxAction, PortNo};
use weir_openflow::{Body, Version};
use weir_packet::Field;

use super::*;

/// Reasons for Open vSwitch to refuse messages that weir accepts, or refuses for another reason.
pub(in crate::kinds) const THEIRS: &[DifferenceKind] = &[
    DifferenceKind {
        name: "optional_match_field",
        whose: Free,
        clause: "1.3.5, 7.2.3.7: which fields are required",
        why: "Open vSwitch has no in_phy_port, pbb_isid, pbb_uca and ipv6_exthdr, which are optional",
        is: |seen| {
            let parts = seen.parts();
            seen.they_refuse(&[FIELD])
                && (parts.has_field(is_optional_field) || parts.sets(|field, _| is_optional_field(field)))
        },
    },
    DifferenceKind {
        name: "optional_set_field",
        whose: Free,
        clause: "1.3.5, 5.12: set-field is optional",
        why: "Open vSwitch does not set pbb_isid, pbb_uca, mpls_bos, eth_type, ip_proto and the kind of a service \
              header",
        is: |seen| {
            seen.they_refuse(&[SET_TYPE, SET_LEN, SET_ARGUMENT, TYPE])
                && seen.parts().sets(|field, _| {
                    is_optional_field(field)
                        || field.is_nsh()
                        || matches!(field, Field::MplsBos | Field::EthType | Field::IpProto | Field::IpFrag)
                })
        },
    },
    DifferenceKind {
        name: "optional_action",
        whose: Free,
        clause: "1.3.5, 5.12: push, pop and change-TTL are optional",
        why: "Open vSwitch has no PBB and copies no TTL",
        is: |seen| {
            seen.they_refuse(&[TYPE])
                && seen.parts().has_action(|action| {
                    matches!(action, Action::PushPbb(_) | Action::PopPbb | Action::CopyTtlIn | Action::CopyTtlOut)
                })
        },
    },
    DifferenceKind {
        name: "port_number_beyond_16_bits",
        whose: Theirs,
        clause: "1.3.5, 7.2.1: port numbers have 32 bits, up to OFPP_MAX",
        why: "Open vSwitch refuses port numbers from 0xff00 to 0xffffff00",
        is: |seen| {
            let parts = seen.parts();
            seen.they_refuse(&[OUT_PORT, VALUE])
                && (parts.outputs(is_beyond_16_bits)
                    || parts.fields().any(|(field, value, _)| {
                        matches!(field, Field::InPort | Field::ActsetOutput)
                            && u32::try_from(value).is_ok_and(|port| is_beyond_16_bits(PortNo(port)))
                    }))
        },
    },
    DifferenceKind {
        name: "arp_operation_beyond_8_bits",
        whose: Theirs,
        clause: "1.3.5, 7.2.3.8: OXM_OF_ARP_OP has 16 bits",
        why: "Open vSwitch keeps eight bits of it and refuses others",
        is: |seen| {
            let parts = seen.parts();
            let is_wide = |field, value| field == Field::ArpOp && value > 0xff;
            seen.they_refuse(&[VALUE, SET_ARGUMENT])
                && (parts.fields().any(|(field, value, _)| is_wide(field, value)) || parts.sets(is_wide))
        },
    },
    DifferenceKind {
        name: "flags_of_later_fragments",
        whose: Free,
        clause: "1.3.5, 7.2.3: experimenter fields are not specified",
        why: "tcp_flags of later fragments, matched by an extension: Open vSwitch refuses it",
        is: |seen| seen.they_refuse(&[PREREQ]) && seen.parts().has_field(|field| field == Field::IpFrag),
    },
    DifferenceKind {
        name: "number_of_pbb_uca",
        whose: Free,
        clause: "1.3.5, 7.2.3.7: which fields are required",
        why: "the number of pbb_uca under a mask is not known to Open vSwitch, which refuses its bits",
        is: |seen| {
            let wildcards = ErrorType::BadMatch(BadMatch::BadWildcards);
            seen.they_refuse(&[wildcards]) && seen.parts().has_field(is_optional_field)
        },
    },
    DifferenceKind {
        name: "packet_type_among_other_fields",
        whose: Free,
        clause: "1.5.1, 7.2.3.11: packet type match field",
        why: "Open vSwitch takes packet_type only in front of the other fields, and only types that it knows",
        is: |seen| {
            seen.they_refuse(&[DUP_FIELD, PREREQ, INCONSISTENT, VALUE])
                && seen.parts().has_field(|field| field == Field::PacketType)
        },
    },
    DifferenceKind {
        name: "mask_of_a_field_without_masks",
        whose: Free,
        clause: "1.3.5, 7.2.3.5: a mask of all ones is as no mask",
        why: "a mask of all the bits of a field that has fewer than its bytes: weir takes it, Open vSwitch wants all \
              bits of the bytes",
        is: |seen| {
            seen.they_refuse(&[MASK])
                && seen.parts().fields().any(|(field, _, mask)| !field.is_maskable() && mask == Some(field.all_ones()))
        },
    },
    DifferenceKind {
        name: "service_header_fields",
        whose: Free,
        clause: "1.3.5, 7.2.3: experimenter fields are not specified",
        why: "masks and values of NSH fields are checked by Open vSwitch in another order and to other limits",
        is: |seen| seen.they_refuse(&[MASK, VALUE]) && seen.parts().has_field(Field::is_nsh),
    },
    DifferenceKind {
        name: "cookie_zero_finds_hidden_entries",
        whose: Theirs,
        clause: "1.3.5, 6.4: deletes and modifies are about entries that match",
        why: "with a cookie of 0 under a full mask Open vSwitch comes upon entries of its own in a hidden table, and \
              refuses",
        is: |seen| {
            seen.they_refuse(&[ErrorType::BadRequest(BadRequest::Eperm)])
                && seen.parts().flow.is_some_and(|flow| flow.cookie == 0 && flow.cookie_mask == u64::MAX)
        },
    },
    DifferenceKind {
        name: "hidden_table",
        whose: Theirs,
        clause: "1.3.5, 6.4: OFPFMFC_BAD_TABLE_ID",
        why: "table 254 is one of Open vSwitch's own: entries for it are refused with EPERM, and gotos to it taken",
        is: |seen| {
            seen.they_refuse(&[ErrorType::BadRequest(BadRequest::Eperm)])
                && seen.parts().flow.is_some_and(|flow| flow.table.0 == 254)
        },
    },
    DifferenceKind {
        name: "error_in_a_wrapper",
        whose: Free,
        clause: "1.0.0, 5.4.4: ofp_error_type",
        why: "an action of a later version in 1.0: Open vSwitch answers with an error of its own, since 1.0 has none",
        is: |seen| seen.case.version == Version::V10 && is_wrapped(seen),
    },
    DifferenceKind {
        name: "code_of_neighbour_discovery",
        whose: Theirs,
        clause: "1.3.5, 7.2.3, table 12: nd_target, nd_sll and nd_tll need an ICMPv6 type",
        why: "Open vSwitch has the fields of ICMPv6 code 0 only",
        is: |seen| {
            let parts = seen.parts();
            let is_discovery =
                |field: Field| matches!(field, Field::Ipv6NdTarget | Field::Ipv6NdSll | Field::Ipv6NdTll);
            let has_code = parts.fields().any(|(field, code, _)| field == Field::Icmpv6Code && code != 0);
            seen.they_refuse(&[PREREQ]) && names_discovery(parts.matching)
                || seen.they_refuse(&[INCONSISTENT]) && has_code && parts.sets(|field, _| is_discovery(field))
        },
    },
    DifferenceKind {
        name: "part_of_a_vlan_id",
        whose: Free,
        clause: "1.5.1, 7.2.6.7: set-field under a mask and copy-field are optional for each field",
        why: "Open vSwitch does not write parts of vlan_vid, nor copies all its bits",
        is: |seen| {
            let is_part = |action: &Action| match action {
                Action::SetFieldMasked { field, .. } => *field == Field::VlanVid,
                Action::Move { src, dst } => [src.field, dst.field].contains(&Field::VlanVid),
                _ => false,
            };
            seen.they_refuse(&[SET_ARGUMENT, SET_LEN, INCONSISTENT]) && seen.parts().has_action(is_part)
        },
    },
    DifferenceKind {
        name: "ports_of_later_fragments",
        whose: Free,
        clause: "1.3.5, 7.2.3: experimenter fields are not specified",
        why: "set-field of ports with a match on later fragments by an extension: Open vSwitch refuses it",
        is: |seen| seen.they_refuse(&[INCONSISTENT]) && seen.parts().has_field(|field| field == Field::IpFrag),
    },
    DifferenceKind {
        name: "overlap_with_another_packet_type",
        whose: Theirs,
        clause: "1.5.1, 7.2.3.11: a match without packet_type is about Ethernet packets",
        why: "for Open vSwitch a match without packet_type overlaps matches on types other than Ethernet",
        is: |seen| {
            let is_other = |flow: &FlowMod| flow.matching.get(Field::PacketType).is_some_and(|(value, _)| value != 0);
            seen.they_refuse(&[ErrorType::FlowModFailed(FlowModFailed::Overlap)])
                && (seen.has_flow(is_other) || seen.parts().flow.is_some_and(is_other))
        },
    },
    DifferenceKind {
        name: "overlapping_fields",
        whose: Free,
        clause: "1.3.5, 7.2.3: experimenter fields are not specified",
        why: "a register and a wider one that includes it, or a tag and its id, in one match: Open vSwitch refuses \
              it, weir if they contradict",
        is: |seen| {
            let is_register = |field: Field| {
                field == Field::VlanTci
                    || field == Field::VlanVid
                    || (Field::Reg0 as u8..=Field::Xxreg3 as u8).contains(&(field as u8))
            };
            seen.they_refuse(&[DUP_FIELD])
                && seen.parts().fields().filter(|(field, ..)| is_register(*field)).count() > 1
        },
    },
    DifferenceKind {
        name: "tag_on_a_tag",
        whose: Theirs,
        clause: "1.3.5, 5.12: push-VLAN pushes a new header onto the packet",
        why: "Open vSwitch refuses some lists that push a second tag with BAD_TAG",
        is: |seen| {
            let is_push = |action: &&Action| matches!(action, Action::PushVlan(_));
            seen.they_refuse(&[ErrorType::BadAction(BadAction::BadTag)])
                && seen.parts().all_actions().filter(is_push).count() > 0
        },
    },
    DifferenceKind {
        name: "extension_action_of_other_versions",
        whose: Free,
        clause: "1.3.5, 7.2.5: experimenter actions are not specified",
        why: "Open vSwitch takes some of Nicira's actions in some versions only",
        is: |seen| {
            seen.they_refuse(&[EXP_TYPE])
                && seen
                    .parts()
                    .has_action(|action| matches!(action, Action::Nx(_) | Action::Encap(_) | Action::Decap(_)))
        },
    },
    DifferenceKind {
        name: "meter_in_an_action_set",
        whose: Free,
        clause: "1.5.1, 5.8: the meter action is optional",
        why: "Open vSwitch takes meters in action lists only",
        is: |seen| {
            seen.they_refuse(&[TYPE]) && seen.parts().set.iter().any(|action| matches!(action, Action::Meter(_)))
        },
    },
    DifferenceKind {
        name: "watch_in_other_groups",
        whose: Free,
        clause: "1.3.5, 7.4.4: OFPGMFC_WATCH_UNSUPPORTED",
        why: "Open vSwitch watches ports and groups in fast-failover groups only",
        is: |seen| seen.they_refuse(&[ErrorType::GroupModFailed(GroupModFailed::WatchUnsupported)]),
    },
    DifferenceKind {
        name: "unwatched_bucket_of_a_failover_group",
        whose: Theirs,
        clause: "1.3.5, 7.4.4: OFPGMFC_BAD_WATCH",
        why: "a fast-failover bucket that watches nothing: weir says BAD_WATCH, Open vSwitch INVALID_GROUP",
        is: |seen| {
            seen.they_refuse(&[INVALID_GROUP])
                && matches!(seen.body(), Some(body) if group_of(body).is_some_and(|group| group.kind == GroupKind::FastFailover))
        },
    },
    DifferenceKind {
        name: "meter_bands",
        whose: Free,
        clause: "1.3.5, 5.7.1: band types are optional",
        why: "Open vSwitch has no DSCP remark bands, and wants exactly one band",
        is: |seen| {
            let codes = [MeterModFailed::BadBand, MeterModFailed::OutOfBands].map(ErrorType::MeterModFailed);
            let is_unusual = |bands: &[weir_openflow::model::meter::Band]| {
                bands.len() != 1 || bands.iter().any(|band| band.kind != BandKind::Drop)
            };
            seen.they_refuse(&codes) && matches!(seen.body(), Some(Body::MeterMod(meter)) if is_unusual(&meter.bands))
        },
    },
    DifferenceKind {
        name: "meter_without_unit",
        whose: Theirs,
        clause: "1.3.5, 7.3.4.4: rates are in kilobit per second unless OFPMF_PKTPS is set",
        why: "Open vSwitch refuses meters with neither flag",
        is: |seen| {
            seen.they_refuse(&[ErrorType::MeterModFailed(MeterModFailed::BadFlags)])
                && matches!(seen.body(), Some(Body::MeterMod(meter)) if meter.flags & 3 != 3)
        },
    },
    DifferenceKind {
        name: "entries_without_statistics_request_of_1_5",
        whose: Theirs,
        clause: "1.5.1, 7.3.5.3: OFPMP_FLOW_STATS",
        why: "Open vSwitch has flow descriptions only",
        is: |seen| seen.they_refuse(&[ErrorType::BadRequest(BadRequest::BadMultipart)]),
    },
    DifferenceKind {
        name: "open_of_an_open_bundle",
        whose: Theirs,
        clause: "1.4.1, 7.3.9: OFPBFC_BUNDLE_EXIST",
        why: "Open vSwitch discards the bundle and answers BAD_ID; after a wrong close there is none for it any more",
        is: |seen| {
            let exists = ErrorType::BundleFailed(BundleFailed::BundleExist);
            seen.only_we_refuse(&[exists])
                || seen.both_refuse(&[exists], &[ErrorType::BundleFailed(BundleFailed::BadId)])
        },
    },
    DifferenceKind {
        name: "overlap_check_of_a_delete",
        whose: Free,
        clause: "1.3.5, 6.4: OFPFF_CHECK_OVERLAP is about adds",
        why: "a modify or delete with the flag: weir ignores it, Open vSwitch refuses the combination",
        is: |seen| {
            let has_flag =
                |flow: &FlowMod| flow.command != FlowCommand::Add && flow.flags.contains(FlowFlags::CHECK_OVERLAP);
            seen.they_refuse(&[BAD_FLAGS]) && seen.parts().flow.is_some_and(has_flag)
        },
    },
    DifferenceKind {
        name: "actions_of_a_delete",
        whose: Free,
        clause: "1.3.5, 6.4: deletes ignore instructions",
        why: "a delete with wrong actions: Open vSwitch refuses it",
        is: |seen| {
            let is_delete = |flow: &FlowMod| matches!(flow.command, FlowCommand::Delete | FlowCommand::DeleteStrict);
            seen.is_in(crate::compare::StepAnswerPart::Replies)
                && matches!(
                    seen.errors(),
                    (None, Some(ErrorType::BadAction(_) | ErrorType::BadInstruction(_) | ErrorType::MeterModFailed(_)))
                )
                && seen.parts().flow.is_some_and(is_delete)
        },
    },
    DifferenceKind {
        name: "inconsistent_behind_a_list",
        whose: Free,
        clause: "1.3.5, 6.4: a switch may refuse actions that do not fit the match",
        why: "Open vSwitch compares action sets with the packet that the action list leaves, in the order as \
              written; behind a popped tag or a resubmit weir takes a tag for possible",
        is: |seen| {
            let parts = seen.parts();
            seen.they_refuse(&[INCONSISTENT])
                && seen.errors().0.is_none()
                && (parts.set.len() > 1
                    || !parts.set.is_empty() && !parts.actions.is_empty()
                    || parts.has_action(|action| *action == Action::PopVlan)
                    || parts.has_action(
                        |action| matches!(action, Action::Nx(nx) if matches!(**nx, NxAction::Resubmit { .. })),
                    ))
        },
    },
    DifferenceKind {
        name: "bundle_members_checked_when_added",
        whose: Free,
        clause: "1.4.1, 7.3.9: what is checked when a message is added is the switch's choice",
        why: "weir checks a member's actions and match when the bundle is committed; Open vSwitch when it is added",
        is: |seen| {
            let is_message = |error: ErrorType| {
                let table = ErrorType::FlowModFailed(FlowModFailed::BadTableId);
                matches!(error, ErrorType::BadMatch(_) | ErrorType::BadAction(_) | ErrorType::BadInstruction(_))
                    || [table, BAD_FLAGS, INVALID_GROUP].contains(&error)
            };
            matches!(seen.body(), Some(Body::BundleAdd(_)))
                && seen.is_in(crate::compare::StepAnswerPart::Replies)
                && seen.errors().0.is_none()
                && seen.errors().1.is_some_and(is_message)
        },
    },
    DifferenceKind {
        name: "remove_from_the_other_type",
        whose: Free,
        clause: "1.5.1, 6.7: a remove names the group, not its type",
        why: "buckets removed in a message that says another type: weir ignores the type, Open vSwitch refuses it",
        is: |seen| {
            let removes = |body| group_of(body).is_some_and(|group| group.command == GroupCommand::RemoveBucket);
            seen.they_refuse(&[INVALID_GROUP]) && seen.errors().0.is_none() && seen.body().is_some_and(removes)
        },
    },
];
