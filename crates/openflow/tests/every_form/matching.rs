//! Generates matches: every field of the model, where its prerequisites allow it, over its whole width.
use proptest::collection::vec;
use proptest::prelude::*;
use weir_openflow::model::matching::RawField;
use weir_openflow::model::{Match, MatchField};
use weir_packet::Field;
use weir_packet::field::{VLAN_PRESENT, eth_type, ip_proto};

/// Returns combinations of fields that are prerequisites of others.
fn companies() -> Vec<Match> {
    let eth = |kind: u16| Match::any().with(Field::EthType, kind);
    let ip = |kind: u16, proto: u8| eth(kind).with(Field::IpProto, proto);
    let typed = |kind: u32| Match::any().with(Field::PacketType, kind);
    let nd = |kind: u8| ip(eth_type::IPV6, ip_proto::ICMPV6).with(Field::Icmpv6Type, kind);
    let mut companies = vec![
        Match::any(),
        Match::any().with(Field::InPort, 7_u32),
        Match::any().with_masked(Field::VlanVid, VLAN_PRESENT, VLAN_PRESENT),
        Match::any().with(Field::VlanVid, 5 | VLAN_PRESENT),
        ip(eth_type::IPV4, ip_proto::ICMP),
        ip(eth_type::IPV6, ip_proto::ICMPV6),
        nd(135),
        nd(136),
        typed(0),
        typed(0x1_0800),
        typed(0x1_0800).with(Field::IpProto, ip_proto::TCP),
        typed(0x1_86dd),
        typed(0x1_894f),
    ];
    for kind in [eth_type::IPV4, eth_type::IPV6] {
        companies.push(eth(kind));
        companies.extend([ip_proto::TCP, ip_proto::UDP, ip_proto::SCTP].map(|proto| ip(kind, proto)));
    }
    let others =
        [eth_type::ARP, eth_type::RARP, eth_type::MPLS, eth_type::MPLS_MULTICAST, eth_type::PBB, eth_type::NSH];
    companies.extend(others.map(eth));
    companies
}

/// Returns true if a switch accepts the match. Fields that weir does not know are ignored.
fn is_valid(fields: &[MatchField]) -> bool {
    let known = fields.iter().filter(|entry| matches!(entry, MatchField::Known { .. })).cloned().collect();
    Match { fields: known }.key_and_mask().is_ok()
}

/// Generates a value of a field's width, often at its limits.
pub(crate) fn bits(field: Field) -> impl Strategy<Value = u128> {
    let ones = field.all_ones();
    prop_oneof![
        4 => any::<u128>().prop_map(move |value| value & ones),
        1 => Just(ones),
        1 => Just(0),
        1 => (0..field.bits()).prop_map(|bit| 1 << bit),
    ]
}

/// Generates a field with a value and, if it is maskable, sometimes a mask. No value bit is outside the mask.
fn entry(field: Field) -> impl Strategy<Value = MatchField> {
    let mask = if field.is_maskable() { prop::option::of(bits(field)).boxed() } else { Just(None).boxed() };
    (bits(field), mask).prop_map(move |(value, mask)| {
        let mask = mask.filter(|mask| *mask != 0 && *mask != field.all_ones());
        MatchField::Known { field, value: value & mask.unwrap_or(field.all_ones()), mask }
    })
}

pub(crate) fn raw_field() -> impl Strategy<Value = RawField> {
    // A class that does not exist.
    (0_u8..128, any::<bool>(), vec(any::<u8>(), 1..20)).prop_map(|(number, has_mask, bytes)| RawField {
        class: 0x7001,
        number,
        has_mask,
        payload: bytes.into(),
    })
}

/// Generates a combination of prerequisites, other fields that it allows, and fields that weir does not know.
pub(crate) fn matching() -> impl Strategy<Value = Match> {
    let drawn = prop::sample::select(companies()).prop_flat_map(|company| {
        let allowed: Vec<Field> =
            Field::ALL.into_iter().filter(|field| is_valid(&company.clone().with(*field, 0_u8).fields)).collect();
        let count = 0..=allowed.len().min(10);
        let others = prop::sample::subsequence(allowed, count).prop_shuffle();
        (Just(company), others.prop_flat_map(|fields| fields.into_iter().map(entry).collect::<Vec<_>>()))
    });
    (drawn, prop_oneof![4 => Just(vec![]), 1 => vec(raw_field(), 1..3)]).prop_map(|((company, others), raw)| {
        let mut fields = company.fields;
        for one in others {
            fields.push(one);
            // Invalid: bits already matched under another name, or a VLAN id without meaning.
            if !is_valid(&fields) {
                fields.pop();
            }
        }
        fields.extend(raw.into_iter().map(MatchField::Raw));
        Match { fields }
    })
}

/// Normalises a match: removes masks of all ones and fields without effect, and sorts the fields.
pub(crate) fn plain(matching: &Match) -> Match {
    let mut fields = matching.fields.clone();
    for one in &mut fields {
        if let MatchField::Known { field, mask, .. } = one {
            *mask = mask.filter(|mask| *mask != field.all_ones());
        }
    }
    fields.retain(|one| !matches!(one, MatchField::Known { mask: Some(0), .. }));
    fields.sort_by_key(|one| match one {
        MatchField::Known { field, .. } => (0, Some(*field)),
        MatchField::Raw(_) => (1, None),
    });
    Match { fields }
}

/// Replaces the fields for parts of the VLAN tag by one field for the whole tag.
pub(crate) fn by_whole_tag(matching: &Match) -> Match {
    let mut matching = plain(matching);
    let parts = [(Field::VlanTci, 0), (Field::VlanVid, 0), (Field::VlanPcp, 13)];
    let said = parts.into_iter().filter_map(|(field, shift)| {
        let (value, mask) = matching.get(field)?;
        Some((value << shift, mask << shift))
    });
    let (value, mut mask) = said.fold((0, 0), |(value, mask), (more, bits)| (value | more, mask | bits));
    // Packets without tag have no priority to match.
    if value == 0 && mask & u128::from(VLAN_PRESENT) != 0 {
        mask &= 0x1fff;
    }
    let is_part = |one: &MatchField| matches!(one, MatchField::Known { field, .. } if parts.iter().any(|(part, _)| part == field));
    matching.fields.retain(|one| !is_part(one));
    plain(&matching.with_masked(Field::VlanTci, value, mask))
}
