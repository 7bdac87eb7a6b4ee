//! Tests that messages of every version carry what they are given, in the version's form, or that encoding fails with
//! a reason.
use crate::action::change;
use crate::entries::{flow, flow_stats, group, group_desc, meter, meter_config, removed, update};
use crate::matching::plain;
use proptest::prelude::*;
use weir_openflow::model::flow::FlowRemoved;
use weir_openflow::model::group::{Bucket, BucketId, GroupCommand, GroupDesc, GroupMod};
use weir_openflow::model::monitor::{FlowEvent, FlowUpdate, FlowUpdateFull};
use weir_openflow::model::multipart::{FlowStats, MultipartReply, ReplyBody};
use weir_openflow::model::stats::OxsExtraStats;
use weir_openflow::model::{
    Action, Body, FlowCommand, FlowFlags, FlowMod, FlowRemovedReason, GroupId, Instruction, Match, MatchField, Message,
    NxAction, NxMessage, PortNo, TableId, Version,
};
use weir_openflow::{decode, encode};
use weir_packet::Field;
use weir_packet::field::{VLAN_PRESENT, ip_proto};

/// Encodes and decodes a body. Returns what the peer decodes, or why the version cannot carry it.
fn sent(body: Body, version: Version) -> Result<Body, String> {
    let mut bytes = Vec::new();
    let message = Message { xid: 0x0102_0304, body };
    encode(&message, version, &mut bytes).map_err(|error| error.to_string())?;
    let read = decode(&bytes).map_err(|error| format!("DECODING FAILED: {error} of {message:?}"));
    let read = read.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(read.xid, message.xid);
    Ok(read.body)
}

fn reply(body: ReplyBody) -> Body {
    Body::MultipartReply(MultipartReply { more: false, body })
}

/// Returns the actions by which versions from 1.3 on encode an action. `proto` is the IP protocol that the entry
/// matches.
fn of_v13(action: &Action, proto: Option<u8>) -> Vec<Action> {
    let set = |field, value: u128| vec![Action::SetField { field, value }];
    let ports = match proto {
        Some(ip_proto::UDP) => [Field::UdpSrc, Field::UdpDst],
        Some(ip_proto::SCTP) => [Field::SctpSrc, Field::SctpDst],
        _ => [Field::TcpSrc, Field::TcpDst],
    };
    match *action {
        Action::SetVlanVid(vid) => set(Field::VlanVid, (vid | VLAN_PRESENT).into()),
        Action::SetVlanPcp(pcp) => set(Field::VlanPcp, pcp.into()),
        Action::SetNwSrc(address) => set(Field::Ipv4Src, address.into()),
        Action::SetNwDst(address) => set(Field::Ipv4Dst, address.into()),
        Action::SetNwTos(tos) => set(Field::IpDscp, (tos >> 2).into()),
        Action::SetTpSrc(port) => set(ports[0], port.into()),
        Action::SetTpDst(port) => set(ports[1], port.into()),
        Action::Enqueue { port, queue } => vec![Action::SetQueue(queue), Action::output(port)],
        Action::Nx(ref nx) => match **nx {
            NxAction::SetTunnel { id, .. } => set(Field::TunnelId, id.into()),
            _ => loaded(action),
        },
        _ => vec![action.clone()],
    }
}

/// Returns the set-field that replaces a load of a field with an eight-byte header; other actions are returned
/// unchanged.
fn loaded(action: &Action) -> Vec<Action> {
    let Action::Nx(nx) = action else { return vec![action.clone()] };
    let NxAction::Load { dst, value } = **nx else { return vec![action.clone()] };
    if !has_long_header(dst.field) {
        return vec![action.clone()];
    }
    let (field, value, mask) = (dst.field, u128::from(value) << dst.offset, dst.mask());
    vec![if mask == field.all_ones() {
        Action::SetField { field, value }
    } else {
        Action::SetFieldMasked { field, value, mask }
    }]
}

/// Returns true for fields that 1.3 encodes with an experimenter header, and for which there is no Nicira header.
fn has_long_header(field: Field) -> bool {
    use Field::*;
    matches!(field, ActsetOutput | NshFlags | NshTtl | NshMdtype | NshNp | NshSpi | NshSi)
        || matches!(field, NshC1 | NshC2 | NshC3 | NshC4)
}

/// Returns the action by which 1.0 encodes an action.
fn of_v10(action: &Action) -> Vec<Action> {
    let Action::SetField { field, value } = *action else {
        return vec![match action {
            Action::Nx(nx) => match **nx {
                NxAction::SetTunnel { id, wide } => {
                    NxAction::SetTunnel { id, wide: wide || id > u64::from(u32::MAX) }.into_action()
                }
                _ => return loaded(action),
            },
            _ => action.clone(),
        }];
    };
    // A value is no wider than its field.
    let [.., a, b, c, d] = value.to_be_bytes();
    let (byte, short, long) = (d, u16::from_be_bytes([c, d]), u32::from_be_bytes([a, b, c, d]));
    vec![match field {
        Field::VlanVid if short & VLAN_PRESENT != 0 => Action::SetVlanVid(short & 0xfff),
        Field::VlanPcp => Action::SetVlanPcp(byte),
        Field::Ipv4Src => Action::SetNwSrc(long),
        Field::Ipv4Dst => Action::SetNwDst(long),
        Field::IpDscp => Action::SetNwTos(byte << 2),
        Field::TcpSrc | Field::UdpSrc | Field::SctpSrc => Action::SetTpSrc(short),
        Field::TcpDst | Field::UdpDst | Field::SctpDst => Action::SetTpDst(short),
        _ => action.clone(),
    }]
}

fn is_metered(actions: &[Action]) -> bool {
    matches!(actions.first(), Some(Action::Meter(_)))
}

/// Returns instructions in a version's form. In 1.5, the meter is the first action; in earlier versions it is an
/// instruction. In 1.0, there are only actions; at their end, Nicira's actions replace write-metadata and goto-table.
fn instructions_of(version: Version, matching: &Match, list: &[Instruction]) -> Vec<Instruction> {
    let proto = matching.get(Field::IpProto).and_then(|(value, _)| u8::try_from(value).ok());
    let actions = |actions: &[Action]| match version {
        Version::V10 => change(actions, &of_v10),
        _ => change(actions, &|action| of_v13(action, proto)),
    };
    let mut list: Vec<_> = list
        .iter()
        .map(|one| match one {
            Instruction::ApplyActions(list) => Instruction::ApplyActions(actions(list)),
            Instruction::WriteActions(list) => Instruction::WriteActions(actions(list)),
            other => other.clone(),
        })
        .collect();
    match version {
        Version::V10 => {
            let mut all = Vec::new();
            for rank in 0..3 {
                for one in &list {
                    match (rank, one) {
                        (0, Instruction::ApplyActions(actions)) => all.extend(actions.iter().cloned()),
                        (1, Instruction::WriteMetadata { metadata, mask }) => {
                            all.push(NxAction::WriteMetadata { metadata: *metadata, mask: *mask }.into_action());
                        }
                        (2, Instruction::GotoTable(table)) => {
                            // As a Nicira action, the number of all tables means the current table.
                            let table = Some(*table).filter(|table| *table != TableId::ALL);
                            all.push(NxAction::Resubmit { port: PortNo::IN_PORT, table }.into_action());
                        }
                        _ => {}
                    }
                }
            }
            list = if all.is_empty() { Vec::new() } else { vec![Instruction::ApplyActions(all)] };
        }
        Version::V13 | Version::V14 => {
            let at = list.iter().position(|one| matches!(one, Instruction::ApplyActions(a) if is_metered(a)));
            if let Some(at) = at
                && let Instruction::ApplyActions(mut actions) = list.remove(at)
            {
                let Action::Meter(meter) = actions.remove(0) else { unreachable!("the first is a meter") };
                if !actions.is_empty() {
                    list.insert(at, Instruction::ApplyActions(actions));
                }
                list.insert(0, Instruction::Meter(meter));
            }
        }
        Version::V15 => {
            let at = list.iter().position(|one| matches!(one, Instruction::Meter(_)));
            if let Some(at) = at
                && let Instruction::Meter(meter) = list.remove(at)
            {
                let applied = list.iter_mut().find_map(|one| match one {
                    Instruction::ApplyActions(actions) => Some(actions),
                    _ => None,
                });
                match applied {
                    Some(actions) => actions.insert(0, Action::Meter(meter)),
                    None => list.insert(0, Instruction::ApplyActions(vec![Action::Meter(meter)])),
                }
            }
        }
    }
    list
}

/// Returns the match as decoded from a version. 1.0 leaves out an address whose bits are all wildcards, and orders
/// fields by its layout.
fn match_of(version: Version, matching: &Match) -> Match {
    if version == Version::V10 { plain(matching) } else { matching.clone() }
}

/// Returns true if `is_it` holds for an action in the list, including actions inside clones.
fn has_actions(list: &[Instruction], is_it: &dyn Fn(&Action) -> bool) -> bool {
    fn any(actions: &[Action], is_it: &dyn Fn(&Action) -> bool) -> bool {
        actions.iter().any(|action| match action {
            Action::Nx(nx) => match &**nx {
                NxAction::Clone(inner) => any(inner, is_it),
                _ => is_it(action),
            },
            _ => is_it(action),
        })
    }
    list.iter().any(|one| match one {
        Instruction::ApplyActions(actions) | Instruction::WriteActions(actions) => any(actions, is_it),
        _ => false,
    })
}

/// Returns true if a version from 1.3 on may refuse the entry: because of meter actions other than the first action,
/// statistics triggers before 1.5, or headers that it has no place for. Nicira's actions have 16-bit ports in 1.3,
/// too; the generators only make such ports.
fn may_refuse(version: Version, matching: &Match, list: &[Instruction]) -> bool {
    let list = instructions_of(version, matching, list);
    let meters = list.iter().filter(|one| matches!(one, Instruction::Meter(_))).count();
    let triggers = list.iter().any(|one| matches!(one, Instruction::StatTrigger { .. }));
    let old = version < Version::V15;
    old && (triggers || meters > 1 || has_actions(&list, &|action| matches!(action, Action::Meter(_))))
        || has_actions(&list, &has_no_place_for_header)
}

/// Returns true if an action names `pbb_uca` by its header, which 1.3 does not have, or writes a number to a field
/// whose header is too long for the action.
fn has_no_place_for_header(action: &Action) -> bool {
    let is_too_long = match action {
        Action::Nx(nx) => match &**nx {
            NxAction::Multipath(multipath) => has_long_header(multipath.dst.field),
            NxAction::Bundle(bundle) => bundle.dst.is_some_and(|dst| has_long_header(dst.field)),
            _ => false,
        },
        _ => false,
    };
    is_too_long || !matches!(action, Action::SetField { .. }) && format!("{action:?}").contains("field: PbbUca")
}

fn all_versions() -> impl Strategy<Value = Version> {
    prop::sample::select(Version::ALL.to_vec())
}

fn since_v13() -> impl Strategy<Value = Version> {
    prop::sample::select(vec![Version::V13, Version::V14, Version::V15])
}

/// Returns true if 1.0's match has the field.
fn is_of_v10(field: Field) -> bool {
    use Field::*;
    matches!(field, InPort | EthDst | EthSrc | EthType | VlanVid | VlanPcp | IpDscp | IpProto | Ipv4Src | Ipv4Dst)
        || matches!(field, ArpOp | ArpSpa | ArpTpa | TcpSrc | TcpDst | UdpSrc | UdpDst | SctpSrc | SctpDst)
        || matches!(field, Icmpv4Type | Icmpv4Code | Icmpv6Type | Icmpv6Code)
}

/// Reduces a match to the fields that 1.0 has, so that most flow-mods can be encoded.
fn cut_to_v10(mut flow: FlowMod) -> FlowMod {
    flow.matching.fields.retain(|one| match one {
        MatchField::Known { field, mask, .. } => {
            is_of_v10(*field) && (mask.is_none() || matches!(field, Field::VlanVid))
        }
        MatchField::Raw(_) => false,
    });
    flow.instructions.retain(|one| matches!(one, Instruction::ApplyActions(_) | Instruction::GotoTable(_)));
    let is_delete = matches!(flow.command, FlowCommand::Delete | FlowCommand::DeleteStrict);
    FlowMod {
        cookie_mask: 0,
        table: if is_delete { TableId::ALL } else { TableId(0) },
        out_group: GroupId::ANY,
        importance: 0,
        flags: FlowFlags(flow.flags.0 & (3 | FlowFlags::EMERG.0)),
        ..flow
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_flow_mod_comes_back(flow in flow(), version in since_v13()) {
        let expected = FlowMod {
            instructions: instructions_of(version, &flow.matching, &flow.instructions),
            ..flow.clone()
        };
        match sent(Body::FlowMod(flow.clone()), version) {
            Ok(read) => prop_assert_eq!(read, Body::FlowMod(expected)),
            Err(error) => {
                let is_emergency = flow.flags.contains(FlowFlags::EMERG);
                let has_importance = flow.importance != 0 && version < Version::V14;
                let refused = may_refuse(version, &flow.matching, &flow.instructions);
                prop_assert!(is_emergency || has_importance || refused, "{}", error);
            }
        }
    }

    #[test]
    fn a_flow_mod_of_1_0_comes_back_or_is_refused(flow in flow(), cut in any::<bool>()) {
        let flow = if cut { cut_to_v10(flow) } else { flow };
        let is_delete = matches!(flow.command, FlowCommand::Delete | FlowCommand::DeleteStrict);
        let is_add = flow.command == FlowCommand::Add;
        if let Ok(read) = sent(Body::FlowMod(flow.clone()), Version::V10) {
            let Body::FlowMod(read) = read else { panic!("another message") };
            // Parts without effect in the command are not carried.
            let expected = FlowMod {
                table: if is_delete { TableId::ALL } else { flow.table },
                cookie_mask: if is_add { 0 } else { flow.cookie_mask },
                out_group: if is_delete { flow.out_group } else { GroupId::ANY },
                matching: match_of(Version::V10, &flow.matching),
                instructions: instructions_of(Version::V10, &flow.matching, &flow.instructions),
                ..flow.clone()
            };
            prop_assert_eq!(FlowMod { matching: plain(&read.matching), ..read }, expected);
        }
    }

    /// Nicira's flow-mod has a list of fields as match, so it can carry more than 1.0's.
    #[test]
    fn a_flow_mod_of_nicira_comes_back_or_is_refused(flow in flow()) {
        let is_delete = matches!(flow.command, FlowCommand::Delete | FlowCommand::DeleteStrict);
        let table = if is_delete { TableId::ALL } else { TableId(0) };
        let flow = FlowMod { table, flags: FlowFlags(flow.flags.0 & 3), ..flow };
        let nicira = |flow| Body::Nx(Box::new(NxMessage::FlowMod(flow)));
        if let Ok(read) = sent(nicira(flow.clone()), Version::V10) {
            let Body::Nx(read) = read else { panic!("another message") };
            let NxMessage::FlowMod(read) = *read else { panic!("another message") };
            let expected = FlowMod {
                out_group: if is_delete { flow.out_group } else { GroupId::ANY },
                matching: plain(&flow.matching),
                instructions: instructions_of(Version::V10, &flow.matching, &flow.instructions),
                ..flow.clone()
            };
            prop_assert_eq!(FlowMod { matching: plain(&read.matching), ..read }, expected);
        }
    }

    /// Flow statistics carry what the version can express; what it leaves out is listed here.
    #[test]
    fn flow_statistics_come_back(stats in flow_stats(), version in all_versions()) {
        let body = reply(ReplyBody::Flow(vec![stats.clone(), stats.clone()]));
        let Ok(read) = sent(body, version) else {
            let refused = may_refuse(version, &stats.matching, &stats.instructions);
            prop_assert!(version == Version::V10 || refused);
            return Ok(());
        };
        let instructions = instructions_of(version, &stats.matching, &stats.instructions);
        let expected = FlowStats {
            flags: if version == Version::V10 { FlowFlags::default() } else { stats.flags },
            importance: if version >= Version::V14 { stats.importance } else { 0 },
            more: if version >= Version::V15 { stats.more.clone() } else { OxsExtraStats::default() },
            matching: match_of(version, &stats.matching),
            instructions,
            ..stats
        };
        let Body::MultipartReply(MultipartReply { body: ReplyBody::Flow(read), more: false }) = read else {
            panic!("another message: {read:?}")
        };
        let read: Vec<_> =
            read.into_iter().map(|one| FlowStats { matching: match_of(version, &one.matching), ..one }).collect();
        prop_assert_eq!(read, vec![expected.clone(), expected]);
    }

    #[test]
    fn a_flow_removed_comes_back(removed in removed(), version in all_versions()) {
        let Ok(read) = sent(Body::FlowRemoved(removed.clone()), version) else {
            prop_assert_eq!(version, Version::V10);
            return Ok(());
        };
        let Body::FlowRemoved(read) = read else { panic!("another message") };
        let is_v10 = version == Version::V10;
        let last = match version {
            Version::V10 => FlowRemovedReason::Delete,
            Version::V13 => FlowRemovedReason::GroupDelete,
            _ => FlowRemovedReason::Eviction,
        };
        let known = removed.reason as u8 <= last as u8;
        let expected = FlowRemoved {
            reason: if known { removed.reason } else { FlowRemovedReason::Delete },
            table: if is_v10 { TableId(0) } else { removed.table },
            hard_timeout: if is_v10 { 0 } else { removed.hard_timeout },
            more: if version >= Version::V15 { removed.more.clone() } else { OxsExtraStats::default() },
            matching: match_of(version, &removed.matching),
            ..removed
        };
        prop_assert_eq!(FlowRemoved { matching: match_of(version, &read.matching), ..read }, expected);
    }

    /// 1.0 and 1.3 have Nicira's updates, which report entries that exist at the beginning as added.
    #[test]
    fn a_monitors_update_comes_back(update in update(), version in all_versions()) {
        let body = reply(ReplyBody::FlowMonitor(vec![FlowUpdate::Full(update.clone())]));
        let Ok(read) = sent(body, version) else {
            let refused = may_refuse(version, &update.matching, &update.instructions);
            prop_assert!(version == Version::V10 || refused);
            return Ok(());
        };
        let is_initial = update.event == FlowEvent::Initial && version < Version::V14;
        let expected = FlowUpdateFull {
            event: if is_initial { FlowEvent::Added } else { update.event },
            matching: match_of(version, &update.matching),
            instructions: instructions_of(version, &update.matching, &update.instructions),
            ..update
        };
        let read = match read {
            Body::MultipartReply(MultipartReply { body: ReplyBody::FlowMonitor(mut read), .. }) => read.pop(),
            _ => None,
        };
        let Some(FlowUpdate::Full(read)) = read else { panic!("another message") };
        prop_assert_eq!(FlowUpdateFull { matching: match_of(version, &read.matching), ..read }, expected);
    }

    /// Before 1.5, buckets are numbered by their index, and there are no properties.
    #[test]
    fn a_group_mod_comes_back(group in group(), version in all_versions()) {
        let buckets: Vec<_> = group.buckets.iter().map(|bucket| bucket_of(version, bucket)).collect();
        let by_place = (0..).zip(&group.buckets).all(|(place, bucket)| bucket.id == BucketId(place));
        let names = group.command_bucket != BucketId::ALL
            || matches!(group.command, GroupCommand::InsertBucket | GroupCommand::RemoveBucket);
        let has_properties = has_properties(&group.properties, &group.buckets);
        match sent(Body::GroupMod(group.clone()), version) {
            Ok(read) => prop_assert_eq!(read, Body::GroupMod(GroupMod { buckets, ..group })),
            Err(error) => {
                let is_newer = version < Version::V15 && (!by_place || names || has_properties || is_metering(&group.buckets));
                prop_assert!(version == Version::V10 || is_newer || has_no_place_in(&group.buckets), "{}", error);
            }
        }
    }

    /// A group description in a version before 1.5 lacks what that version does not have.
    #[test]
    fn a_group_description_comes_back(desc in group_desc(), version in all_versions()) {
        let Ok(read) = sent(reply(ReplyBody::GroupDesc(vec![desc.clone()])), version) else {
            let is_newer = version < Version::V15 && is_metering(&desc.buckets);
            prop_assert!(version == Version::V10 || is_newer || has_no_place_in(&desc.buckets));
            return Ok(());
        };
        let mut buckets: Vec<_> = desc.buckets.iter().map(|bucket| bucket_of(version, bucket)).collect();
        let mut properties = desc.properties.clone();
        if version < Version::V15 {
            properties.clear();
            for (place, bucket) in (0..).zip(&mut buckets) {
                bucket.id = BucketId(place);
                bucket.properties.clear();
            }
        }
        prop_assert_eq!(read, reply(ReplyBody::GroupDesc(vec![GroupDesc { buckets, properties, ..desc }])));
    }

    #[test]
    fn a_meter_comes_back(meter in meter(), config in meter_config(), version in all_versions()) {
        for body in [Body::MeterMod(meter), reply(ReplyBody::MeterConfig(vec![config.clone(), config]))] {
            match sent(body.clone(), version) {
                Ok(read) => prop_assert_eq!(read, body),
                Err(error) => prop_assert_eq!(version, Version::V10, "{}", error),
            }
        }
    }
}

fn bucket_of(version: Version, bucket: &Bucket) -> Bucket {
    let actions = match version {
        Version::V10 => bucket.actions.clone(),
        _ => change(&bucket.actions, &|action| of_v13(action, None)),
    };
    Bucket { actions, ..bucket.clone() }
}

fn has_properties(own: &[weir_openflow::model::property::RawProperty], buckets: &[Bucket]) -> bool {
    !own.is_empty() || buckets.iter().any(|bucket| !bucket.properties.is_empty())
}

fn in_buckets(buckets: &[Bucket], is_it: &dyn Fn(&Action) -> bool) -> bool {
    buckets.iter().any(|bucket| has_actions(&[Instruction::ApplyActions(bucket.actions.clone())], is_it))
}

fn is_metering(buckets: &[Bucket]) -> bool {
    in_buckets(buckets, &|action| matches!(action, Action::Meter(_)))
}

fn has_no_place_in(buckets: &[Bucket]) -> bool {
    in_buckets(buckets, &has_no_place_for_header)
}
