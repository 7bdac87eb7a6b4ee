//! Kinds of differences in replies: statistics, descriptions, bundles.
use super::DeviatingSwitch::{Free, Theirs};
use super::{DifferenceKind, ObservedDifference, features, packets, refusals};
use crate::attributes;
use crate::compare::StepAnswerPart;
use std::collections::BTreeSet;
use weir_openflow::model::bundle::{BundleCommand, BundleControl};
use weir_openflow::model::error::BundleFailed;
use weir_openflow::model::group::{GroupCommand, GroupStats};
use weir_openflow::model::meter::{MeterCommand, MeterStats};
use weir_openflow::model::multipart::{FlowRequest, MultipartReply, ReplyBody, RequestBody};
use weir_openflow::model::{Action, ErrorType, FlowCommand, FlowFlags, FlowMod, Instruction, Match, MatchField};
use weir_openflow::{Body, Version};
use weir_packet::Field;

/// Flags `OFPFF_NO_PKT_COUNTS` and `OFPFF_NO_BYT_COUNTS`.
const COUNTS: u16 = FlowFlags::NO_PKT_COUNTS.0 | FlowFlags::NO_BYT_COUNTS.0;

/// Returns true if only the allowed attributes differ.
fn only(found: &BTreeSet<&str>, allowed: &[&str]) -> bool {
    found.iter().all(|attribute| allowed.contains(attribute))
}

/// Returns the bodies of both switches' first replies.
fn bodies<'a>(seen: &ObservedDifference<'a>) -> Option<(&'a ReplyBody, &'a ReplyBody)> {
    let body = |replies: &'a [crate::outcome::DecodedBody]| match replies {
        [Ok(Body::MultipartReply(MultipartReply { body, .. }))] => Some(body),
        _ => None,
    };
    seen.is_in(StepAnswerPart::Replies).then_some(())?;
    Some((body(&seen.difference.ours.replies)?, body(&seen.difference.theirs.replies)?))
}

/// Returns true if lists, sums or notices of entries differ only in these counts.
fn only_counts(seen: &ObservedDifference<'_>, counts: &[&str]) -> bool {
    match (bodies(seen), seen.difference.part) {
        (Some((ReplyBody::Flow(ours), ReplyBody::Flow(theirs))), _) => {
            only(&attributes::of_entries(ours, theirs), counts)
        }
        (Some((ReplyBody::Group(ours), ReplyBody::Group(theirs))), _) => {
            let without = |groups: &[GroupStats]| {
                let mut groups = groups.to_vec();
                for group in &mut groups {
                    group.byte_count = 0;
                    group.buckets.iter_mut().for_each(|(_, bytes)| *bytes = 0);
                    if counts.contains(&"packets") {
                        group.packet_count = 0;
                        group.buckets.iter_mut().for_each(|(packets, _)| *packets = 0);
                    }
                }
                groups
            };
            without(ours) == without(theirs)
        }
        (Some((ReplyBody::Meter(ours), ReplyBody::Meter(theirs))), _) => {
            let without = |meters: &[MeterStats]| {
                let mut meters = meters.to_vec();
                for meter in &mut meters {
                    meter.byte_in_count = 0;
                    if counts.contains(&"packets") {
                        meter.packet_in_count = 0;
                    }
                }
                meters
            };
            without(ours) == without(theirs)
        }
        (Some((ReplyBody::Aggregate(ours), ReplyBody::Aggregate(theirs))), _) => ours.flow_count == theirs.flow_count,
        (None, StepAnswerPart::Told) => {
            only(&attributes::of_notices(&seen.difference.told.0, &seen.difference.told.1), counts)
        }
        _ => false,
    }
}

fn request<'a>(seen: &ObservedDifference<'a>) -> Option<&'a FlowRequest> {
    match seen.body() {
        Some(Body::MultipartRequest(request)) => match &request.body {
            RequestBody::Flow(request) | RequestBody::Aggregate(request) => Some(request),
            _ => None,
        },
        _ => None,
    }
}

fn same_bundle(ours: &BundleControl, theirs: &BundleControl) -> bool {
    (ours.bundle, ours.command) == (theirs.bundle, theirs.command)
}

pub(super) const KINDS: &[DifferenceKind] = &[
    DifferenceKind {
        name: "open_vswitch_ends",
        whose: Theirs,
        clause: "1.3.5, 6.2: a switch answers every message, with an error if it cannot carry it out",
        why: "Open vSwitch ends with a failed assertion, such as when a controller is sent a packet behind a long \
              action set, or hangs",
        is: |seen| seen.is_in(StepAnswerPart::Ended),
    },
    DifferenceKind {
        name: "statistics_of_hidden_entries",
        whose: Theirs,
        clause: "1.3.5, 7.3.5.2: entries whose cookie is the one asked for",
        why: "asked for a cookie of 0 under a full mask, Open vSwitch counts entries of its own in a hidden table",
        is: |seen| {
            let is_zero = |request: &FlowRequest| request.cookie == 0 && request.cookie_mask == u64::MAX;
            bodies(seen).is_some() && request(seen).is_some_and(is_zero)
        },
    },
    DifferenceKind {
        name: "counts_not_kept",
        whose: Theirs,
        clause: "1.3.5, 7.3.5: counters that are not available are all ones",
        why: "of entries with NO_PKT_COUNTS or NO_BYT_COUNTS Open vSwitch tells counts, or 0",
        is: |seen| match (bodies(seen), seen.difference.part) {
            (Some((ReplyBody::Flow(ours), ReplyBody::Flow(theirs))), _) => {
                let is_unkept = ours.iter().any(|entry| entry.packet_count == u64::MAX || entry.byte_count == u64::MAX);
                is_unkept && only(&attributes::of_entries(ours, theirs), &["packets", "bytes"])
            }
            (None, StepAnswerPart::Told) => {
                let (ours, theirs) = &seen.difference.told;
                let has_flag = |flow: &FlowMod| flow.flags.0 & COUNTS != 0;
                // The duration may be of a later time, too.
                seen.has_flow(has_flag)
                    && only(&attributes::of_notices(ours, theirs), &["packets", "bytes", "duration"])
            }
            _ => false,
        },
    },
    DifferenceKind {
        name: "part_of_a_priority",
        whose: Theirs,
        clause: "1.3.5, 7.2.3, table 12: vlan_pcp has no mask",
        why: "a match on bits of a tag's priority by an extension: weir lists the extension's field, Open vSwitch \
              the whole priority",
        is: |seen| match bodies(seen) {
            Some((ReplyBody::Flow(ours), ReplyBody::Flow(theirs))) => {
                seen.has_flow(|flow| flow.matching.get(Field::VlanTci).is_some())
                    && only(&attributes::of_entries(ours, theirs), &["match", "packets", "bytes"])
            }
            _ => {
                seen.is_in(StepAnswerPart::Told)
                    && seen.has_flow(|flow| flow.matching.get(Field::VlanTci).is_some())
                    && only(
                        &attributes::of_notices(&seen.difference.told.0, &seen.difference.told.1),
                        &["match", "packets", "bytes"],
                    )
            }
        },
    },
    DifferenceKind {
        name: "counters_of_a_group_without_buckets",
        whose: Theirs,
        clause: "1.3.5, 7.3.5.9: packets processed by the group",
        why: "packets that come to a group with no bucket alive are counted by weir only",
        is: |seen| match bodies(seen) {
            Some((ReplyBody::Group(ours), ReplyBody::Group(theirs))) => {
                ours.len() == theirs.len()
                    && ours.iter().zip(theirs).all(|(our, their)| {
                        our == their || our.packet_count > their.packet_count && our.buckets == their.buckets
                    })
            }
            _ => false,
        },
    },
    DifferenceKind {
        name: "meter_action_counts_no_entry",
        whose: Theirs,
        clause: "1.3.5, 7.3.5.12: flow_count, entries that use the meter",
        why: "entries that use a meter by the meter action are counted by weir only",
        is: |seen| match bodies(seen) {
            Some((ReplyBody::Meter(ours), ReplyBody::Meter(theirs))) => {
                let flowless = |meters: &[MeterStats]| {
                    let mut meters = meters.to_vec();
                    // If a tag is pushed before the meter, the bytes differ as well.
                    meters.iter_mut().for_each(|meter| (meter.flow_count, meter.byte_in_count) = (0, 0));
                    meters
                };
                flowless(ours) == flowless(theirs)
            }
            _ => false,
        },
    },
    DifferenceKind {
        name: "commit_of_refused_members",
        whose: Free,
        clause: "1.4.1, 7.3.9: what is checked when a message is added is the switch's choice",
        why: "a bundle with a member that one switch refuses as another kind of difference has it: its commit fails \
              there only",
        is: |seen| {
            let failed = Some(ErrorType::BundleFailed(BundleFailed::MsgFailed));
            let commits = |control: &BundleControl| control.command == BundleCommand::CommitRequest;
            let is_commit = matches!(seen.body(), Some(Body::BundleControl(control)) if commits(control));
            let (ours, theirs) = seen.errors();
            seen.is_in(StepAnswerPart::Replies) && is_commit && (ours == failed) != (theirs == failed)
        },
    },
    DifferenceKind {
        name: "code_in_a_bundle",
        whose: Free,
        clause: "1.3.5, 7.4.4: a code for each fault",
        why: "the error of a bundle's member, where both refuse it with codes that another kind explains",
        is: |seen| {
            let is_error = |told: &crate::outcome::DecodedBody| matches!(told, Ok(Body::Error(_)));
            let (ours, theirs) = &seen.difference.told;
            seen.is_in(StepAnswerPart::Told)
                && !ours.is_empty()
                && ours.len() == theirs.len()
                && ours.iter().chain(theirs).all(is_error)
        },
    },
    DifferenceKind {
        name: "flags_of_other_requests",
        whose: Theirs,
        clause: "1.4.1, 7.3.9: OFPBFC_BAD_FLAGS",
        why: "a bundle's message with other flags than those before it: Open vSwitch discards the bundle, and begins \
              another",
        is: |seen| {
            let flags = ErrorType::BundleFailed(BundleFailed::BadFlags);
            let id = ErrorType::BundleFailed(BundleFailed::BadId);
            seen.only_we_refuse(&[flags]) || seen.they_refuse(&[id]) && seen.errors().0.is_none()
        },
    },
    DifferenceKind {
        name: "listed_neighbour_discovery",
        whose: Theirs,
        clause: "1.3.5, 7.2.3, table 12: nd_target, nd_sll and nd_tll need an ICMPv6 type",
        why: "Open vSwitch forgets the fields of a match on another ICMPv6 code than 0",
        is: |seen| {
            let is_it = |flow: &FlowMod| refusals::names_discovery(Some(&flow.matching));
            let attributes = match (bodies(seen), seen.difference.part) {
                (Some((ReplyBody::Flow(ours), ReplyBody::Flow(theirs))), _) => attributes::of_entries(ours, theirs),
                (None, StepAnswerPart::Told) => {
                    attributes::of_notices(&seen.difference.told.0, &seen.difference.told.1)
                }
                _ => return false,
            };
            seen.has_flow(is_it) && only(&attributes, &["match"])
        },
    },
    DifferenceKind {
        name: "field_under_an_empty_mask",
        whose: Theirs,
        clause: "1.3.5, 7.2.3.5: a mask of zeros is as no field",
        why: "of a match on a field under a mask of zeros Open vSwitch lists packet_type=(0,0)",
        is: |seen| {
            let is_empty = |entry: &MatchField| matches!(entry, MatchField::Known { mask: Some(0), .. });
            let attributes = match (bodies(seen), seen.difference.part) {
                (Some((ReplyBody::Flow(ours), ReplyBody::Flow(theirs))), _) => attributes::of_entries(ours, theirs),
                (None, StepAnswerPart::Told) => {
                    attributes::of_notices(&seen.difference.told.0, &seen.difference.told.1)
                }
                _ => return false,
            };
            seen.has_flow(|flow| flow.matching.fields.iter().any(is_empty)) && only(&attributes, &["match"])
        },
    },
    DifferenceKind {
        name: "request_for_tcp_flags",
        whose: Theirs,
        clause: "1.5.1, 7.2.3.8: OXM_OF_TCP_FLAGS has 12 bits",
        why: "asked for tcp_flags without mask, Open vSwitch leaves out an entry whose mask has the field's 12 bits",
        is: |seen| {
            let is_exact = |request: &FlowRequest| {
                let flags = request.matching.get(Field::TcpFlags);
                flags.is_some_and(|(_, mask)| mask == Field::TcpFlags.all_ones())
            };
            bodies(seen).is_some() && request(seen).is_some_and(is_exact)
        },
    },
    DifferenceKind {
        name: "notice_of_a_deleted_meter",
        whose: Theirs,
        clause: "1.3.5, 5.5: an entry with OFPFF_SEND_FLOW_REM that is removed is told of",
        why: "Open vSwitch does not tell of entries that go with their meter",
        is: |seen| {
            let (ours, theirs) = &seen.difference.told;
            let deletes = |body: &Body| matches!(body, Body::MeterMod(meter) if meter.command == MeterCommand::Delete);
            let is_removed = |told: &crate::outcome::DecodedBody| matches!(told, Ok(Body::FlowRemoved(_)));
            let last = seen.difference.step + 1;
            seen.is_in(StepAnswerPart::Told)
                && theirs.is_empty()
                && ours.iter().any(is_removed)
                && seen.case.messages_before(last).any(deletes)
        },
    },
    DifferenceKind {
        name: "entries_of_a_deleted_meter",
        whose: Theirs,
        clause: "1.3.5, 7.3.4.4: with a meter, the flow entries that use it are removed",
        why: "Open vSwitch leaves entries that use the meter by the meter action",
        is: |seen| {
            let deletes = |body: &Body| matches!(body, Body::MeterMod(meter) if meter.command == MeterCommand::Delete);
            let last = seen.case.steps.len();
            let mut bodies = seen.case.messages_before(last);
            bodies.any(deletes)
                && seen
                    .case
                    .messages_before(last)
                    .any(|body| features::parts(body).has_action(|action| matches!(action, Action::Meter(_))))
        },
    },
    DifferenceKind {
        name: "meter_of_dropped_packets",
        whose: Theirs,
        clause: "1.3.5, 5.7: a meter measures the packets that are assigned to it",
        why: "Open vSwitch does not meter packets that nothing is done with behind the meter",
        is: |seen| match bodies(seen) {
            Some((ReplyBody::Meter(ours), ReplyBody::Meter(theirs))) => {
                ours.len() == theirs.len()
                    && ours
                        .iter()
                        .zip(theirs)
                        .all(|(our, their)| our.meter == their.meter && our.packet_in_count >= their.packet_in_count)
            }
            _ => false,
        },
    },
    DifferenceKind {
        name: "counters_of_a_modified_group",
        whose: Theirs,
        clause: "1.3.5, 7.3.4.2: a modify replaces a group's configuration, and its counters go on",
        why: "Open vSwitch sets the counters of a group that is modified to 0",
        is: |seen| {
            let modifies = |body: &Body| matches!(body, Body::GroupMod(group) if group.command == GroupCommand::Modify);
            matches!(bodies(seen), Some((ReplyBody::Group(_), ReplyBody::Group(_)))) && seen.causes().any(modifies)
        },
    },
    DifferenceKind {
        name: "counters_of_a_modified_meter",
        whose: Theirs,
        clause: "1.3.5, 7.3.4.4: a modify changes a meter's configuration",
        why: "Open vSwitch sets the counters of a meter that is modified to 0",
        is: |seen| {
            let modifies = |body: &Body| matches!(body, Body::MeterMod(meter) if meter.command == MeterCommand::Modify);
            matches!(bodies(seen), Some((ReplyBody::Meter(_), ReplyBody::Meter(_)))) && seen.causes().any(modifies)
        },
    },
    DifferenceKind {
        name: "second_notice_of_a_modified_entry",
        whose: Theirs,
        clause: "1.3.5, 5.5: an entry with OFPFF_SEND_FLOW_REM that is removed is told of",
        why: "of an entry that was modified Open vSwitch tells twice now and then",
        is: |seen| {
            let modifies = |flow: &FlowMod| matches!(flow.command, FlowCommand::Modify | FlowCommand::ModifyStrict);
            let (ours, theirs) = &seen.difference.told;
            seen.is_in(StepAnswerPart::Told)
                && ours.is_empty()
                && matches!(theirs.as_slice(), [Ok(Body::FlowRemoved(_))])
                && seen.has_flow(modifies)
        },
    },
    DifferenceKind {
        name: "both_time_outs_up",
        whose: Free,
        clause: "1.3.5, 5.5: an entry is removed when either time-out is up",
        why: "both of an entry's time-outs were up when the switch looked: weir tells the one that ended first, Open \
              vSwitch the hard one",
        is: |seen| {
            let has_both = |flow: &FlowMod| flow.idle_timeout != 0 && flow.hard_timeout != 0;
            let (ours, theirs) = &seen.difference.told;
            seen.is_in(StepAnswerPart::Told)
                && seen
                    .case
                    .messages_before(seen.case.steps.len())
                    .any(|body| features::parts(body).flow.is_some_and(has_both))
                && only(&attributes::of_notices(ours, theirs), &["reason", "packets", "bytes"])
        },
    },
    DifferenceKind {
        name: "listed_packet_type_of_ethernet",
        whose: Free,
        clause: "1.5.1, 7.2.3.11: a match without packet_type is about Ethernet packets",
        why: "of a match on packet_type=(0,0) and fields of Ethernet packets Open vSwitch lists only these fields; weir \
              lists what was asked for",
        is: |seen| {
            let attributes = match (bodies(seen), seen.difference.part) {
                (Some((ReplyBody::Flow(ours), ReplyBody::Flow(theirs))), _) => attributes::of_entries(ours, theirs),
                (None, StepAnswerPart::Told) => {
                    attributes::of_notices(&seen.difference.told.0, &seen.difference.told.1)
                }
                _ => return false,
            };
            let is_named = |flow: &FlowMod| flow.matching.get(Field::PacketType).is_some();
            seen.has_flow(is_named) && only(&attributes, &["match", "packets", "bytes"])
        },
    },
    DifferenceKind {
        name: "packet_type_of_ethernet",
        whose: Theirs,
        clause: "1.5.1, 7.2.3.11: a match without packet_type is about Ethernet packets",
        why: "for Open vSwitch packet_type=(0,0) is another match than one without packet_type: entries of the one are \
              not found, replaced or removed by messages with the other",
        is: |seen| {
            let is_named = |matching: &Match| matching.get(Field::PacketType).is_some_and(|(value, _)| value == 0);
            let is_any = request(seen).is_some_and(|request| is_named(&request.matching))
                || seen.has_flow(|flow| is_named(&flow.matching));
            is_any && (bodies(seen).is_some() || seen.is_in(StepAnswerPart::Told) || seen.is_of_packets())
        },
    },
    DifferenceKind {
        name: "bytes_behind_pushes",
        whose: Theirs,
        clause: "1.3.5, 7.3.5.2: byte_count, bytes of packets that match the entry",
        why: "an entry that packets come to after a push or pop: weir counts what they have then, Open vSwitch what \
              came in",
        is: |seen| {
            let is_header = |action: &Action| {
                matches!(action, Action::PushVlan(_) | Action::PopVlan | Action::PushMpls(_) | Action::PopMpls(_))
            };
            seen.acts(is_header) && only_counts(seen, &["bytes"])
        },
    },
    DifferenceKind {
        name: "type_behind_two_tags",
        whose: Theirs,
        clause: "1.0.0, 3.4, figure 4: the type behind one tag is dl_type",
        why: "of frames with two tags Open vSwitch compares dl_type with the type behind both, and looks into IP and \
              ARP there",
        is: |seen| {
            let is_one = seen.frame().is_some_and(packets::has_second_tag) && seen.is_of_packets();
            let is_count = seen.has_frame(packets::has_second_tag)
                && (seen.case.has_pauses() || only_counts(seen, &["packets", "bytes"]));
            seen.case.version == Version::V10
                && seen.has_flow(|flow| flow.matching.get(Field::EthType).is_some())
                && (is_one || is_count)
        },
    },
    DifferenceKind {
        name: "counts_of_fragments_and_malformed_packets",
        whose: Free,
        clause: "1.3.5, 7.3.2: handling of fragments; headers cut short are not specified",
        why: "Open vSwitch matches the ports of first fragments as 0, and of packets cut short no network header",
        is: |seen| {
            seen.has_frame(|frame| packets::is_fragment(frame) || packets::is_malformed(frame))
                // With pauses, the last time that an entry counted a packet determines its expiry.
                && (seen.case.has_pauses() || only_counts(seen, &["packets", "bytes"]))
        },
    },
    DifferenceKind {
        name: "references_of_groups",
        whose: Theirs,
        clause: "1.3.5, 7.3.5.9: ref_count, flows or groups that directly forward to the group",
        why: "Open vSwitch does not count groups that lead to a group",
        is: |seen| match bodies(seen) {
            Some((ReplyBody::Group(ours), ReplyBody::Group(theirs))) => {
                let without = |groups: &[GroupStats]| {
                    let mut groups = groups.to_vec();
                    groups.iter_mut().for_each(|group| group.ref_count = 0);
                    // Differences that another kind explains may occur, too.
                    groups.iter_mut().filter(|group| group.buckets.iter().all(|counts| *counts == (0, 0))).for_each(
                        |group| {
                            (group.packet_count, group.byte_count) = (0, 0);
                        },
                    );
                    groups
                };
                without(ours) == without(theirs)
            }
            _ => false,
        },
    },
    DifferenceKind {
        name: "group_after_a_miss",
        whose: Theirs,
        clause: "1.3.5, 5.4: a packet that no entry of a table matches is dropped unless there is a table-miss entry",
        why: "of a packet that misses in a later table Open vSwitch executes the action set, whose group counts it",
        is: |seen| match bodies(seen) {
            Some((ReplyBody::Group(ours), ReplyBody::Group(theirs))) => {
                let goes_on =
                    |flow: &FlowMod| flow.instructions.iter().any(|one| matches!(one, Instruction::GotoTable(_)));
                ours.len() == theirs.len()
                    && seen.has_flow(goes_on)
                    && ours
                        .iter()
                        .zip(theirs)
                        .all(|(our, their)| our.group == their.group && our.packet_count <= their.packet_count)
            }
            _ => false,
        },
    },
    DifferenceKind {
        name: "duration_of_a_late_notice",
        whose: Theirs,
        clause: "1.3.5, 7.4.2: duration, the time that the entry was alive",
        why: "Open vSwitch takes the duration when it sends the notice, which is later",
        is: |seen| {
            let (ours, theirs) = &seen.difference.told;
            seen.is_in(StepAnswerPart::Told)
                && seen.case.has_pauses()
                && only(&attributes::of_notices(ours, theirs), &["duration"])
        },
    },
    DifferenceKind {
        name: "flags_of_a_bundles_reply",
        whose: Free,
        clause: "1.4.1, 7.3.9: flags are the request's",
        why: "weir repeats the bundle's flags in replies; Open vSwitch sends none",
        is: |seen| match (seen.difference.ours.replies.as_slice(), seen.difference.theirs.replies.as_slice()) {
            ([Ok(Body::BundleControl(ours))], [Ok(Body::BundleControl(theirs))]) => same_bundle(ours, theirs),
            _ => false,
        },
    },
];
