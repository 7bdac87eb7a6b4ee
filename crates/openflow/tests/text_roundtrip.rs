//! What is written is read back as the same flow-mod, for any flow-mod in canonical form; and no text makes the parser panic.
use proptest::collection::vec;
use proptest::prelude::*;
use weir_openflow::model::matching::RawField;
use weir_openflow::model::{
    Action, BufferId, FlowCommand, FlowFlags, FlowMod, GroupId, Instruction, Match, MatchField, MeterId, TableId,
};
use weir_openflow::{Version, text};
use weir_packet::field::{VLAN_PRESENT, eth_type, ip_proto};
use weir_packet::{Field, PortNo};

/// A set of protocols with the fields they allow; the fields of the first list always go with it.
fn protocol() -> impl Strategy<Value = (Vec<(Field, u128)>, Vec<Field>)> {
    let fields = |eth: u16, more: &[(Field, u8)], allowed: &[Field]| {
        let mut set = vec![(Field::EthType, u128::from(eth))];
        set.extend(more.iter().map(|(field, value)| (*field, u128::from(*value))));
        (set, allowed.to_vec())
    };
    let (v4, v6) = (eth_type::IPV4, eth_type::IPV6);
    let (proto, icmp) = (Field::IpProto, Field::Icmpv6Type);
    let ip = [Field::IpDscp, Field::IpEcn, Field::IpFrag];
    let ipv4 = [&ip[..], &[Field::Ipv4Src, Field::Ipv4Dst]].concat();
    let ipv6 = [&ip[..], &[Field::Ipv6Src, Field::Ipv6Dst, Field::Ipv6Flabel, Field::Ipv6Exthdr]].concat();
    let with = |base: &[Field], more: &[Field]| [base, more].concat();
    let arp = [Field::ArpOp, Field::ArpSpa, Field::ArpTpa, Field::ArpSha, Field::ArpTha];
    let mpls = [Field::MplsLabel, Field::MplsTc, Field::MplsBos];
    let tcp = [Field::TcpSrc, Field::TcpDst, Field::TcpFlags];
    prop::sample::select(vec![
        (vec![], vec![]),
        (vec![], vec![Field::EthType]),
        fields(v4, &[], &with(&ipv4, &[Field::IpProto])),
        fields(v6, &[], &with(&ipv6, &[Field::IpProto])),
        fields(v4, &[(proto, ip_proto::TCP)], &with(&ipv4, &tcp)),
        fields(v6, &[(proto, ip_proto::TCP)], &with(&ipv6, &tcp)),
        fields(v4, &[(proto, ip_proto::UDP)], &with(&ipv4, &[Field::UdpSrc, Field::UdpDst])),
        fields(v6, &[(proto, ip_proto::UDP)], &with(&ipv6, &[Field::UdpSrc, Field::UdpDst])),
        fields(v4, &[(proto, ip_proto::SCTP)], &with(&ipv4, &[Field::SctpSrc, Field::SctpDst])),
        fields(v4, &[(proto, ip_proto::ICMP)], &with(&ipv4, &[Field::Icmpv4Type, Field::Icmpv4Code])),
        fields(v6, &[(proto, ip_proto::ICMPV6)], &with(&ipv6, &[Field::Icmpv6Type, Field::Icmpv6Code])),
        fields(v6, &[(proto, ip_proto::ICMPV6), (icmp, 135)], &with(&ipv6, &[Field::Ipv6NdTarget, Field::Ipv6NdSll])),
        fields(v6, &[(proto, ip_proto::ICMPV6), (icmp, 136)], &with(&ipv6, &[Field::Ipv6NdTarget, Field::Ipv6NdTll])),
        fields(eth_type::ARP, &[], &arp),
        fields(eth_type::RARP, &[], &arp),
        fields(eth_type::MPLS, &[], &mpls),
        fields(eth_type::MPLS_MULTICAST, &[], &mpls),
        fields(eth_type::PBB, &[], &[Field::PbbIsid, Field::PbbUca]),
    ])
}

/// A field with a value, and a mask where it may have one: no value bit outside the mask, no mask of all ones or none.
fn entry(field: Field) -> impl Strategy<Value = MatchField> {
    let mask = if field.is_maskable() { prop::option::of(any::<u128>()).boxed() } else { Just(None).boxed() };
    (any::<u128>(), mask).prop_map(move |(value, mask)| {
        let mask = mask.map(|mask| mask & field.all_ones()).filter(|mask| *mask != 0 && *mask != field.all_ones());
        MatchField::Known { field, value: value & mask.unwrap_or(field.all_ones()), mask }
    })
}

/// A tag: none matched, untagged, any tag, an id, some bits of an id; the priority where a tag is sure.
fn vlan() -> impl Strategy<Value = Vec<MatchField>> {
    let known = |field, value: u16, mask: Option<u16>| MatchField::Known {
        field,
        value: u128::from(value),
        mask: mask.map(u128::from),
    };
    let vid = move |value, mask| known(Field::VlanVid, value, mask);
    let pcp = prop::option::of((0_u16..8).prop_map(move |pcp| known(Field::VlanPcp, pcp, None)));
    let tagged = prop_oneof![
        Just(vid(VLAN_PRESENT, Some(VLAN_PRESENT))),
        (0_u16..4096).prop_map(move |id| vid(id | VLAN_PRESENT, None)),
        (1_u16..4095, any::<u16>())
            .prop_map(move |(mask, id)| vid(id & mask | VLAN_PRESENT, Some(mask | VLAN_PRESENT))),
    ];
    prop_oneof![
        Just(vec![]),
        Just(vec![vid(0, None)]),
        (1_u16..4096, any::<u16>()).prop_map(move |(mask, id)| vec![vid(id & mask, Some(mask))]),
        (tagged, pcp).prop_map(|(vid, pcp)| [Some(vid), pcp].into_iter().flatten().collect()),
    ]
}

fn raw_field() -> impl Strategy<Value = RawField> {
    (any::<u16>(), 0_u8..128, any::<bool>(), vec(any::<u8>(), 1..20))
        .prop_map(|(class, number, has_mask, bytes)| RawField { class, number, has_mask, payload: bytes.into() })
}

fn matching() -> impl Strategy<Value = Match> {
    let anywhere = [Field::InPort, Field::Metadata, Field::EthSrc, Field::EthDst, Field::TunnelId];
    let fields = protocol().prop_flat_map(move |(set, allowed)| {
        let set: Vec<_> =
            set.into_iter().map(|(field, value)| MatchField::Known { field, value, mask: None }).collect();
        let optional: Vec<_> =
            allowed.into_iter().chain(anywhere).map(|field| prop::option::of(entry(field))).collect();
        (Just(set), optional)
    });
    (fields, vlan(), vec(raw_field(), 0..2)).prop_map(|((mut fields, optional), vlan, raw)| {
        fields.extend(optional.into_iter().flatten());
        fields.extend(vlan);
        // The order in which the parser puts them: each behind its prerequisites.
        fields.sort_by_key(|entry| match entry {
            MatchField::Known { field, .. } => *field,
            MatchField::Raw(_) => unreachable!("raw fields are added below"),
        });
        fields.extend(raw.into_iter().map(MatchField::Raw));
        Match { fields }
    })
}

fn set_field() -> impl Strategy<Value = Action> {
    (prop::sample::select(Field::ALL.to_vec()), any::<u128>())
        .prop_map(|(field, value)| Action::SetField { field, value: value & field.all_ones() })
}

fn action() -> impl Strategy<Value = Action> {
    let simple = vec![
        Action::CopyTtlOut,
        Action::CopyTtlIn,
        Action::DecMplsTtl,
        Action::DecNwTtl,
        Action::PopVlan,
        Action::PopPbb,
    ];
    prop_oneof![
        prop::sample::select(simple),
        any::<u32>().prop_filter_map("a length counts only for the controller", |port| {
            (PortNo(port) != PortNo::CONTROLLER).then_some(Action::output(PortNo(port)))
        }),
        any::<u16>().prop_map(|max_len| Action::Output { port: PortNo::CONTROLLER, max_len }),
        any::<u32>().prop_map(|group| Action::Group(GroupId(group))),
        any::<u32>().prop_map(Action::SetQueue),
        any::<u8>().prop_map(Action::SetMplsTtl),
        any::<u8>().prop_map(Action::SetNwTtl),
        any::<u16>().prop_map(Action::PushVlan),
        any::<u16>().prop_map(Action::PushMpls),
        any::<u16>().prop_map(Action::PopMpls),
        any::<u16>().prop_map(Action::PushPbb),
        set_field(),
        raw_field().prop_map(Action::SetFieldRaw),
        (0_u16..4096).prop_map(Action::SetVlanVid),
        (0_u8..8).prop_map(Action::SetVlanPcp),
        any::<u32>().prop_map(Action::SetNwSrc),
        any::<u32>().prop_map(Action::SetNwDst),
        any::<u8>().prop_map(|tos| Action::SetNwTos(tos & 0xfc)),
        any::<u16>().prop_map(Action::SetTpSrc),
        any::<u16>().prop_map(Action::SetTpDst),
        (any::<u32>(), any::<u32>()).prop_map(|(port, queue)| Action::Enqueue { port: PortNo(port), queue }),
        (any::<u32>(), vec(any::<u8>(), 0..20)).prop_map(|(id, data)| Action::Experimenter { id, data: data.into() }),
    ]
}

/// Each instruction at most once, in the order of execution; no empty apply-actions, which is the same as none.
fn instructions() -> impl Strategy<Value = Vec<Instruction>> {
    let metadata =
        (any::<u64>(), any::<u64>()).prop_map(|(metadata, mask)| Instruction::WriteMetadata { metadata, mask });
    let experimenter = (any::<u32>(), vec(any::<u8>(), 0..20));
    (
        prop::option::of(any::<u32>().prop_map(|meter| Instruction::Meter(MeterId(meter)))),
        prop::option::of(vec(action(), 1..5).prop_map(Instruction::ApplyActions)),
        prop::option::of(Just(Instruction::ClearActions)),
        prop::option::of(vec(action(), 0..5).prop_map(Instruction::WriteActions)),
        prop::option::of(metadata),
        prop::option::of(any::<u8>().prop_map(|table| Instruction::GotoTable(TableId(table)))),
        prop::option::of(experimenter.prop_map(|(id, data)| Instruction::Experimenter { id, data: data.into() })),
    )
        .prop_map(|(a, b, c, d, e, f, g)| [a, b, c, d, e, f, g].into_iter().flatten().collect())
}

fn flow() -> impl Strategy<Value = FlowMod> {
    use FlowCommand::{Add, Delete, DeleteStrict, Modify, ModifyStrict};
    let command = prop::sample::select(vec![Add, Modify, ModifyStrict, Delete, DeleteStrict]);
    let numbers = (any::<u64>(), any::<u64>(), 0_u8..255, any::<[u16; 4]>(), 0_u16..32);
    let filters = (prop::option::of(any::<u32>()), any::<u32>(), any::<u32>());
    (command, numbers, filters, matching(), instructions()).prop_map(
        |(command, (cookie, mask, table, halves, flags), (buffer, port, group), matching, instructions)| {
            let is_delete = matches!(command, Delete | DeleteStrict);
            let cookie_mask = if command == Add { 0 } else { mask };
            FlowMod {
                cookie: if is_delete && cookie_mask == 0 { 0 } else { cookie },
                cookie_mask,
                table: TableId(table),
                command,
                idle_timeout: halves[0],
                hard_timeout: halves[1],
                priority: halves[2],
                buffer_id: buffer.map(BufferId),
                out_port: PortNo(port),
                out_group: GroupId(group),
                flags: FlowFlags(flags),
                importance: halves[3],
                matching,
                instructions: if is_delete { Vec::new() } else { instructions },
            }
        },
    )
}

/// The number that means any port elsewhere is a value of a match field like others.
#[test]
fn a_port_of_all_ones_is_matched() {
    for field in [Field::InPort, Field::InPhyPort] {
        let matching = Match::any().with(Field::InPort, 0xffff_ffff_u32);
        let matching = if field == Field::InPort { matching } else { matching.with(field, 0xffff_ffff_u32) };
        let flow = FlowMod::add(1, matching, Vec::new());
        let written = text::format_flow(&flow, Version::V13);
        assert_eq!(text::parse_flow(&written, FlowCommand::Add).unwrap(), flow, "{written}");
    }
}

proptest! {
    #[test]
    fn a_flow_written_is_read_back(flow in flow(), v10 in any::<bool>()) {
        let version = if v10 { Version::V10 } else { Version::V13 };
        let written = text::format_flow(&flow, version);
        prop_assert_eq!(text::parse_flow(&written, flow.command), Ok(flow), "{}", written);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,80}") {
        let _ = text::parse_flow(&text, FlowCommand::Add);
    }

    #[test]
    fn a_changed_text_is_read_or_refused(flow in flow(), at in any::<prop::sample::Index>(), with in "\\PC{0,3}") {
        let written = text::format_flow(&flow, Version::V13);
        let at = at.index(written.len() + 1);
        let changed = format!("{}{with}{}", &written[..at], written.get(at + 1..).unwrap_or_default());
        if let Err(error) = text::parse_flow(&changed, flow.command) {
            prop_assert!(error.position <= changed.len(), "{} in {}", error, changed);
        }
    }
}
