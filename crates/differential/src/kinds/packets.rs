//! Kinds of differences in packets: forwarded differently or changed differently.
use super::DeviatingSwitch::{Free, Theirs};
use super::DifferenceKind;
use crate::compare::StepAnswerPart;
use weir_openflow::Version;
use weir_openflow::model::nicira::NxAction;
use weir_openflow::model::{Action, Instruction, PortNo, TableId};
use weir_packet::Field;
use weir_packet::parse::TransportProtocol;
use weir_packet::{FlowKey, parse};

/// Returns the flow key of a frame.
fn key_of(frame: &[u8]) -> Option<FlowKey> {
    parse(frame, PortNo(1)).ok().map(|parsed| parsed.key)
}

/// Returns true if the frame is a fragment of an IP packet.
pub(super) fn is_fragment(frame: &[u8]) -> bool {
    key_of(frame).is_some_and(|key| key.get(Field::IpFrag) != 0)
}

/// Returns true if the IP length exceeds the frame, or a header after IP is cut short.
pub(super) fn is_malformed(frame: &[u8]) -> bool {
    let at = 14 + 4 * tags(frame);
    let packet = frame.get(at..).unwrap_or_default();
    let length = |at: usize| packet.get(at..at + 2).map(|bytes| usize::from(u16::from_be_bytes([bytes[0], bytes[1]])));
    match frame.get(at - 2..at) {
        Some([0x08, 0x00]) => {
            let header = packet.first().map_or(0, |byte| usize::from(byte & 15) * 4);
            let is_version = packet.first().is_some_and(|byte| byte >> 4 == 4);
            !is_version
                || header < 20
                || length(2)
                    .is_none_or(|length| length > packet.len() || length < header + least(packet.get(9).copied()))
                || packet.get(9) == Some(&6) && is_bad_tcp(packet.get(header..).unwrap_or_default())
        }
        Some([0x86, 0xdd]) => {
            let is_version = packet.first().is_some_and(|byte| byte >> 4 == 6);
            let is_cut = key_of(frame).is_none_or(|key| matches!(key.get(Field::IpProto), 0 | 43 | 44 | 51 | 60));
            !is_version
                || is_cut
                || length(4).is_none_or(|length| length + 40 > packet.len())
                || packet.get(6) == Some(&58) && is_bad_discovery(packet.get(40..).unwrap_or_default())
                || tcp_of(frame).is_some_and(is_bad_tcp)
        }
        Some([0x08, 0x06] | [0x80, 0x35]) => packet.len() < 28,
        _ => packet.len() < 4,
    }
}

/// Returns true if the length of TCP's header is larger than the segment, or smaller than the minimum.
fn is_bad_tcp(segment: &[u8]) -> bool {
    segment.get(12).is_none_or(|byte| !(20..=segment.len()).contains(&(usize::from(byte >> 4) * 4)))
}

/// Returns the minimum header size of an IP protocol, or 0 if switches do not parse its header.
fn least(protocol: Option<u8>) -> usize {
    match protocol {
        Some(1 | 17) => 8,
        Some(6) => 20,
        Some(132) => 12,
        _ => 0,
    }
}

/// Returns the TCP segment of a frame, after any extension headers.
fn tcp_of(frame: &[u8]) -> Option<&[u8]> {
    match parse(frame, PortNo(1)).ok()?.layers.transport? {
        (TransportProtocol::Tcp, at) => frame.get(usize::from(at)..),
        _ => None,
    }
}

/// Returns true if an option of neighbour discovery (RFC 4861, 4.6) has length zero, or exceeds the message.
fn is_bad_discovery(message: &[u8]) -> bool {
    let mut options = message.get(24..).unwrap_or_default();
    while matches!(message.first(), Some(135 | 136)) && !options.is_empty() {
        let length = options.get(1).map_or(0, |length| usize::from(*length) * 8);
        match options.get(length..).filter(|_| length > 0) {
            Some(rest) => options = rest,
            None => return true,
        }
    }
    false
}

/// Returns the number of VLAN tags.
fn tags(frame: &[u8]) -> usize {
    (0..).take_while(|tag| matches!(frame.get(12 + 4 * tag..14 + 4 * tag), Some([0x81, 0] | [0x88, 0xa8]))).count()
}

/// Returns true if the frame has a second tag.
pub(super) fn has_second_tag(frame: &[u8]) -> bool {
    tags(frame) > 1
}

fn pushes_vlan(action: &&Action) -> bool {
    matches!(action, Action::PushVlan(_))
}

pub(super) const KINDS: &[DifferenceKind] = &[
    DifferenceKind {
        name: "translation_fails",
        whose: Theirs,
        clause: "1.3.5, 5.12: actions of an accepted entry are executed",
        why: "an entry that Open vSwitch took has actions that it cannot carry out for this packet, such as \
              encap(ethernet) of one with a header",
        is: |seen| seen.frame().is_some() && seen.is_in(StepAnswerPart::Replies) && seen.errors().1.is_some(),
    },
    DifferenceKind {
        name: "action_set_after_a_miss",
        whose: Theirs,
        clause: "1.3.5, 5.4: a packet that no entry of a table matches is dropped unless there is a table-miss entry",
        why: "of a packet that misses in a later table Open vSwitch executes the action set",
        is: |seen| {
            let writes_and_goes = |flow: &weir_openflow::model::FlowMod| {
                flow.instructions.iter().any(|one| matches!(one, Instruction::GotoTable(_)))
            };
            let writes = |flow: &weir_openflow::model::FlowMod| {
                flow.instructions.iter().any(|one| matches!(one, Instruction::WriteActions(_)))
            };
            let (ours, theirs) = (&seen.difference.ours, &seen.difference.theirs);
            let is_more = ours.frames.len() < theirs.frames.len() || ours.packets_in.len() < theirs.packets_in.len();
            seen.is_of_packets() && is_more && seen.has_flow(writes_and_goes) && seen.has_flow(writes)
        },
    },
    DifferenceKind {
        name: "pushed_tag",
        whose: Theirs,
        clause: "1.3.5, 5.12.1: a pushed tag copies id and priority of the outermost one",
        why: "Open vSwitch pushes tags of id and priority 0, and keeps two tags at most",
        is: |seen| {
            let pushes =
                seen.causes().map(|body| super::features::parts(body).all_actions().filter(pushes_vlan).count());
            let is_tagged = seen.frame().is_some_and(|frame| tags(frame) > 0);
            seen.is_of_packets() && seen.acts(|action| pushes_vlan(&action)) && (is_tagged || pushes.sum::<usize>() > 1)
        },
    },
    DifferenceKind {
        name: "pushed_label",
        whose: Theirs,
        clause: "1.3.5, 5.12.1: of a first label, the traffic class is 0, the TTL IP's or 0",
        why: "Open vSwitch takes the traffic class from IP's precedence, and a TTL of 64 where there is no IP",
        is: |seen| seen.is_of_packets() && seen.acts(|action| matches!(action, Action::PushMpls(_))),
    },
    DifferenceKind {
        name: "edits_of_fragments",
        whose: Free,
        clause: "1.3.5, 7.3.2: handling of fragments",
        why: "Open vSwitch does not edit addresses, DSCP and ports of some fragments",
        is: |seen| seen.is_of_packets() && seen.frame().is_some_and(is_fragment),
    },
    DifferenceKind {
        name: "icmp_has_no_ports",
        whose: Theirs,
        clause: "1.0.0, 5.2.4: OFPAT_SET_TP_SRC replaces TCP's or UDP's port",
        why: "Open vSwitch writes type and code of ICMP by 1.0's actions for ports",
        is: |seen| {
            let is_port = |field: Field| (Field::TcpSrc..=Field::SctpDst).contains(&field);
            let sets_port = |action: &Action| match action {
                Action::SetTpSrc(_) | Action::SetTpDst(_) => true,
                Action::SetField { field, .. } => is_port(*field),
                _ => false,
            };
            let is_icmp = seen.frame().and_then(key_of).is_some_and(|key| matches!(key.get(Field::IpProto), 1 | 58));
            seen.case.version == Version::V10 && seen.is_of_packets() && is_icmp && seen.acts(sets_port)
        },
    },
    DifferenceKind {
        name: "edits_of_malformed_packets",
        whose: Free,
        clause: "1.3.5, 5.12: actions on headers that a packet does not have",
        why: "headers cut short, of wrong length or with a wrong checksum are edited by one switch and left alone by \
              the other",
        is: |seen| seen.is_of_packets() && seen.frame().is_some_and(is_malformed),
    },
    DifferenceKind {
        name: "set_fields_of_an_action_set",
        whose: Theirs,
        clause: "1.5.1, 5.6: a later set-field of a field overwrites an earlier one; copy-field is not ordered",
        why: "of several set-fields of one field, some under masks, in an action set weir executes the last, Open \
              vSwitch all",
        is: |seen| {
            let is_set = |action: &&Action| {
                matches!(action, Action::SetField { .. } | Action::SetFieldMasked { .. } | Action::Move { .. })
            };
            let is_partial = |action: &&Action| matches!(action, Action::SetFieldMasked { .. } | Action::Move { .. });
            // A bucket's actions are an action set, too.
            let sets = seen.case.messages_before(seen.difference.step).map(super::features::parts);
            let sets = sets.map(|parts| if parts.flow.is_some() { parts.set } else { parts.actions });
            let all: Vec<&Action> = sets.flatten().filter(is_set).collect();
            seen.case.version == Version::V15 && seen.is_of_packets() && all.len() > 1 && all.iter().any(is_partial)
        },
    },
    DifferenceKind {
        name: "mpls_ttl_without_label",
        whose: Free,
        clause: "1.0.0, 3.3: there is no MPLS in 1.0",
        why: "dec_mpls_ttl of a packet without label: weir leaves it alone, Open vSwitch executes no further action",
        is: |seen| {
            let is_mpls =
                seen.frame().and_then(key_of).is_some_and(|key| matches!(key.get(Field::EthType), 0x8847 | 0x8848));
            seen.is_of_packets() && !is_mpls && seen.acts(|action| *action == Action::DecMplsTtl)
        },
    },
    DifferenceKind {
        name: "expired_behind_a_resubmit",
        whose: Free,
        clause: "1.3.5, 5.12: a packet with an invalid TTL goes no further; no version has resubmit",
        why: "where the TTL runs out in what a resubmit leads to, weir drops the packet, and Open vSwitch goes on behind \
              the resubmit",
        is: |seen| {
            let (ours, theirs) = (&seen.difference.ours, &seen.difference.theirs);
            let is_less = ours.frames.len() < theirs.frames.len() || ours.packets_in.len() < theirs.packets_in.len();
            let resubmits =
                |action: &Action| matches!(action, Action::Nx(nx) if matches!(**nx, NxAction::Resubmit { .. }));
            let decrements = |action: &Action| matches!(action, Action::DecNwTtl | Action::DecMplsTtl);
            seen.is_of_packets() && is_less && seen.acts(resubmits) && seen.acts(decrements)
        },
    },
    DifferenceKind {
        name: "packet_in_of_an_action_set",
        whose: Free,
        clause: "1.3.5, 7.4.1: the cookie is -1 where it cannot be associated with an entry",
        why: "packet-ins by an action set have cookie -1 and the last table in weir, in Open vSwitch the first table and \
              behind a group the entry's cookie",
        is: |seen| {
            let without = |answer: &crate::StepAnswer| {
                let mut packets = answer.packets_in.clone();
                packets.iter_mut().for_each(|packet| (packet.table, packet.cookie) = (TableId(0), 0));
                packets
            };
            let is_unknown = seen.difference.ours.packets_in.iter().any(|packet| packet.cookie == u64::MAX);
            seen.is_in(StepAnswerPart::PacketsIn)
                && is_unknown
                && without(&seen.difference.ours) == without(&seen.difference.theirs)
        },
    },
    DifferenceKind {
        name: "arp_of_other_operations",
        whose: Theirs,
        clause: "1.3.5, 7.2.3.8: OXM_OF_ARP_OP has 16 bits",
        why: "Open vSwitch does not edit RARP packets and ARP packets of operations 0 and above 255, nor writes a 0",
        is: |seen| {
            let is_arp = |key: FlowKey| matches!(key.get(Field::EthType), 0x0806 | 0x8035);
            let is_other = |key: FlowKey| {
                is_arp(key) && (key.get(Field::EthType) == 0x8035 || !(1..=255).contains(&key.get(Field::ArpOp)))
            };
            let sets_none = |action: &Action| match action {
                Action::SetField { field, value } => *field == Field::ArpOp && *value == 0,
                Action::SetFieldMasked { field, .. } => *field == Field::ArpOp,
                Action::Move { dst, .. } => dst.field == Field::ArpOp,
                _ => false,
            };
            let key = seen.frame().and_then(key_of);
            seen.is_of_packets() && (key.is_some_and(is_other) || key.is_some_and(is_arp) && seen.acts(sets_none))
        },
    },
    DifferenceKind {
        name: "drop_eligible_bit_of_a_tag",
        whose: Theirs,
        clause: "1.0.0, 5.2.4 and 1.3.5, 7.2.3.8: id and priority of a tag are set, no other bit",
        why: "Open vSwitch clears the bit between priority and id of a tag that it writes",
        is: |seen| {
            let is_set = |frame: &[u8]| tags(frame) > 0 && frame[14] & 0x10 != 0;
            seen.is_of_packets() && seen.frame().is_some_and(is_set)
        },
    },
    DifferenceKind {
        name: "service_headers",
        whose: Free,
        clause: "1.3.5, 7.2.3: experimenter fields are not specified",
        why: "what is set in a frame of NSH's EtherType that has no whole service header",
        is: |seen| {
            seen.is_of_packets() && seen.frame().and_then(key_of).is_some_and(|key| key.get(Field::EthType) == 0x894f)
        },
    },
    DifferenceKind {
        name: "link_layer_options",
        whose: Theirs,
        clause: "1.3.5, 5.12: set-field writes the value that it carries",
        why: "Open vSwitch does not write an address of zeros into an option of neighbour discovery, nor one into an \
              option behind another",
        is: |seen| {
            let is_it =
                |action: &Action| matches!(action, Action::SetField { field: Field::Ipv6NdSll | Field::Ipv6NdTll, .. });
            seen.is_of_packets() && seen.acts(is_it)
        },
    },
    DifferenceKind {
        name: "tag_set_where_there_is_none",
        whose: Free,
        clause: "1.3.5, 5.12: set-field of a header that a packet does not have",
        why: "id or priority of a tag that is not there, in a group or behind a pop: Open vSwitch pushes one",
        is: |seen| {
            let sets =
                |action: &Action| matches!(action, Action::SetField { field: Field::VlanVid | Field::VlanPcp, .. });
            let is_bare = seen.frame().is_some_and(|frame| tags(frame) == 0);
            seen.is_of_packets() && (is_bare || seen.acts(|action| *action == Action::PopVlan)) && seen.acts(sets)
        },
    },
    DifferenceKind {
        name: "extension_in_a_bucket",
        whose: Free,
        clause: "1.3.5, 5.10: the order of experimenter actions is the switch's",
        why: "weir executes Nicira's actions of a bucket in their order behind its set-fields and copies; Open vSwitch \
              executes loads, set-fields and copies in their order, and none of the others",
        is: |seen| {
            // Notes and `exit` do nothing in a bucket of either switch, and loads alone do the same in both.
            let is_load = |action: &Action| matches!(action, Action::Nx(nx) if matches!(**nx, NxAction::Load { .. }));
            let is_other = |action: &Action| {
                let is_idle = |nx: &NxAction| matches!(nx, NxAction::Note(_) | NxAction::Exit);
                matches!(action, Action::Nx(nx) if !is_idle(nx)) && !is_load(action)
            };
            let sets = |action: &Action| {
                matches!(action, Action::SetField { .. } | Action::SetFieldMasked { .. } | Action::Move { .. })
            };
            let in_bucket = seen.causes().map(super::features::parts).any(|parts| {
                let of_two_kinds = parts.has_action(is_load) && parts.has_action(sets);
                parts.flow.is_none() && (parts.has_action(is_other) || of_two_kinds)
            });
            seen.is_of_packets() && in_bucket
        },
    },
    DifferenceKind {
        name: "ip_protocol_zero",
        whose: Theirs,
        clause: "1.3.5, 5.12: set-field writes the value that it carries",
        why: "Open vSwitch does not edit IP packets of protocol 0",
        is: |seen| {
            let is_it =
                |key: FlowKey| matches!(key.get(Field::EthType), 0x0800 | 0x86dd) && key.get(Field::IpProto) == 0;
            seen.is_of_packets() && seen.frame().and_then(key_of).is_some_and(is_it)
        },
    },
    DifferenceKind {
        name: "popped_label",
        whose: Theirs,
        clause: "1.3.5, 5.12: pop-MPLS removes the outermost label stack entry",
        why: "Open vSwitch removes all labels where the packet's new type is not MPLS",
        is: |seen| seen.is_of_packets() && seen.acts(|action| matches!(action, Action::PopMpls(_))),
    },
];
