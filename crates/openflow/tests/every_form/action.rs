//! Generates actions and instructions of every kind.
use crate::matching::{bits, raw_field};
use proptest::collection::vec;
use proptest::prelude::*;
use weir_openflow::model::action::NO_BUFFER;
use weir_openflow::model::nicira::{
    BundleAction, ControllerAction, HashFields, LearnAction, LearnDst, LearnSpec, LearnSrc, MultipathAction,
    MultipathAlgorithm, RequestedReason,
};
use weir_openflow::model::stats::{OxsStats, RawStat};
use weir_openflow::model::{
    Action, EncapHeader, GroupId, Instruction, MeterId, NshHeader, NshTlv, NxAction, PortNo, Subfield, TableId,
};
use weir_packet::{Field, PacketType};

/// Generates any port number, often a reserved one.
pub(crate) fn port() -> impl Strategy<Value = PortNo> {
    prop_oneof![
        3 => (1_u32..0xff00).prop_map(PortNo),
        1 => (0xffff_fff8_u32..=u32::MAX).prop_map(PortNo),
        1 => any::<u32>().prop_map(PortNo),
    ]
}

/// Generates a port with a 16-bit number, as Nicira's actions and 1.0 have.
fn short_port() -> impl Strategy<Value = PortNo> {
    prop_oneof![3 => 0_u32..=0xff00, 1 => 0xffff_fff8_u32..u32::MAX].prop_map(PortNo)
}

/// Generates a port that packets can be sent to.
fn output_port() -> impl Strategy<Value = PortNo> {
    port().prop_filter("nothing goes to any port", |port| *port != PortNo::ANY)
}

fn bytes(most: usize) -> impl Strategy<Value = Vec<u8>> {
    vec(any::<u8>(), 0..=most)
}

/// Generates `first` bytes, followed by a multiple of eight bytes.
fn eights(first: usize) -> impl Strategy<Value = Vec<u8>> {
    (0_usize..3).prop_flat_map(move |count| vec(any::<u8>(), first + 8 * count))
}

pub(crate) fn any_field() -> impl Strategy<Value = Field> {
    prop::sample::select(Field::ALL.to_vec())
}

/// Generates a range of at most `most` bits of a field.
fn part_of(field: Field, most: u32) -> impl Strategy<Value = Subfield> {
    let bits = field.bits();
    (1..=bits.min(most)).prop_flat_map(move |count| {
        (0..=bits - count).prop_map(move |offset| Subfield {
            field,
            offset: u16::try_from(offset).unwrap(),
            bits: u16::try_from(count).unwrap(),
        })
    })
}

fn part(most: u32) -> impl Strategy<Value = Subfield> {
    any_field().prop_flat_map(move |field| prop_oneof![part_of(field, most), part_of(field, field.bits().min(most))])
}

/// Generates two ranges with the same width.
fn parts() -> impl Strategy<Value = (Subfield, Subfield)> {
    (part(128), part(128)).prop_map(|(a, b)| {
        let bits = a.bits.min(b.bits);
        (Subfield { bits, ..a }, Subfield { bits, ..b })
    })
}

fn simple() -> impl Strategy<Value = Action> {
    prop::sample::select(vec![
        Action::CopyTtlOut,
        Action::CopyTtlIn,
        Action::DecMplsTtl,
        Action::DecNwTtl,
        Action::PopVlan,
        Action::PopPbb,
        Action::DecNshTtl,
        Action::Encap(EncapHeader::Ethernet),
        NxAction::PopQueue.into_action(),
        NxAction::Exit.into_action(),
    ])
}

fn set_field() -> impl Strategy<Value = Action> {
    any_field().prop_flat_map(|field| bits(field).prop_map(move |value| Action::SetField { field, value }))
}

fn set_masked() -> impl Strategy<Value = Action> {
    let maskable = Field::ALL.into_iter().filter(|field| field.is_maskable()).collect::<Vec<_>>();
    prop::sample::select(maskable).prop_flat_map(|field| {
        (bits(field), bits(field)).prop_map(move |(value, mask)| match mask {
            mask if mask == field.all_ones() => Action::SetField { field, value },
            mask => Action::SetFieldMasked { field, value: value & mask, mask },
        })
    })
}

fn nsh() -> impl Strategy<Value = Action> {
    let tlv = (any::<u16>(), any::<u8>(), bytes(20)).prop_map(|(class, kind, value)| NshTlv {
        class,
        kind,
        value: value.into(),
    });
    let header = prop_oneof![
        Just(NshHeader::default()),
        Just(NshHeader { md_type: Some(1), tlvs: Vec::new() }),
        vec(tlv, 0..3).prop_map(|tlvs| NshHeader { md_type: Some(2), tlvs }),
    ];
    header.prop_map(|header| Action::Encap(EncapHeader::Nsh(header)))
}

/// Generates actions that every version has in some form.
fn standard() -> impl Strategy<Value = Action> {
    prop_oneof![
        (output_port(), any::<u16>()).prop_map(|(port, max_len)| Action::Output { port, max_len }),
        any::<u16>().prop_map(|max_len| Action::Output { port: PortNo::CONTROLLER, max_len }),
        any::<u32>().prop_map(|group| Action::Group(GroupId(group))),
        any::<u32>().prop_map(Action::SetQueue),
        any::<u8>().prop_map(Action::SetMplsTtl),
        any::<u8>().prop_map(Action::SetNwTtl),
        any::<u16>().prop_map(Action::PushVlan),
        any::<u16>().prop_map(Action::PushMpls),
        any::<u16>().prop_map(Action::PopMpls),
        any::<u16>().prop_map(Action::PushPbb),
        (any::<u32>(), eights(0)).prop_map(|(id, data)| Action::Experimenter { id: id | 1, data: data.into() }),
        raw_field().prop_map(Action::SetFieldRaw),
        parts().prop_map(|(src, dst)| Action::Move { src, dst }),
        any::<u32>().prop_map(|bits| Action::Decap(PacketType::from_bits(bits))),
        nsh(),
    ]
}

/// Generates actions that only 1.0 has in this form.
fn of_v10() -> impl Strategy<Value = Action> {
    prop_oneof![
        (0_u16..4096).prop_map(Action::SetVlanVid),
        (0_u8..8).prop_map(Action::SetVlanPcp),
        any::<u32>().prop_map(Action::SetNwSrc),
        any::<u32>().prop_map(Action::SetNwDst),
        (0_u8..64).prop_map(|dscp| Action::SetNwTos(dscp << 2)),
        any::<u16>().prop_map(Action::SetTpSrc),
        any::<u16>().prop_map(Action::SetTpDst),
        (output_port(), any::<u32>()).prop_map(|(port, queue)| Action::Enqueue { port, queue }),
    ]
}

fn hash() -> impl Strategy<Value = HashFields> {
    use HashFields::{EthSrc, NwDst, NwSrc, SymmetricL3, SymmetricL3L4, SymmetricL3L4Udp, SymmetricL4};
    prop::sample::select(vec![EthSrc, SymmetricL4, SymmetricL3L4, SymmetricL3L4Udp, NwSrc, NwDst, SymmetricL3])
}

fn multipath() -> impl Strategy<Value = NxAction> {
    use MultipathAlgorithm::{HashThreshold, Hrw, IterHash, ModuloN};
    let algorithm = prop::sample::select(vec![ModuloN, HashThreshold, Hrw, IterHash]);
    (hash(), any::<u16>(), algorithm, any::<u16>(), any::<u32>(), part(64)).prop_map(
        |(fields, basis, algorithm, links, arg, dst)| {
            // The number of the highest link must fit the destination.
            let max_link = if dst.bits < 16 { links & ((1 << dst.bits) - 1) } else { links };
            NxAction::Multipath(MultipathAction { fields, basis, algorithm, max_link, arg, dst })
        },
    )
}

fn bundle() -> impl Strategy<Value = NxAction> {
    let wide = part(64).prop_filter_map("a port needs 16 bits", |dst| (dst.bits >= 16).then_some(dst));
    (any::<bool>(), hash(), any::<u16>(), vec(short_port(), 0..4), prop::option::of(wide)).prop_map(
        |(is_hrw, fields, basis, members, dst)| NxAction::Bundle(BundleAction { is_hrw, fields, basis, members, dst }),
    )
}

fn spec() -> impl Strategy<Value = LearnSpec> {
    let value = |bits: u16, value: u128| LearnSrc::Value(value & u128::MAX >> (128 - u32::from(bits)));
    prop_oneof![
        parts().prop_map(|(src, dst)| (LearnSrc::Field(src), LearnDst::Match(dst), dst.bits)),
        part(128).prop_map(|both| (LearnSrc::Field(both), LearnDst::Match(both), both.bits)),
        parts().prop_map(|(src, dst)| (LearnSrc::Field(src), LearnDst::Load(dst), dst.bits)),
        (part(128), any::<u128>()).prop_map(move |(dst, src)| (value(dst.bits, src), LearnDst::Match(dst), dst.bits)),
        (part(128), any::<u128>()).prop_map(move |(dst, src)| (value(dst.bits, src), LearnDst::Load(dst), dst.bits)),
        part(128).prop_map(|src| (LearnSrc::Field(src), LearnDst::Output, src.bits)),
    ]
    .prop_map(|(src, dst, bits)| LearnSpec { src, dst, bits })
}

fn learn() -> impl Strategy<Value = NxAction> {
    (any::<[u16; 5]>(), any::<u64>(), 0_u16..4, 0_u8..255, vec(spec(), 0..4)).prop_map(
        |(numbers, cookie, flags, table, specs)| {
            let [idle_timeout, hard_timeout, priority, fin_idle_timeout, fin_hard_timeout] = numbers;
            let table = TableId(table);
            let fins = (fin_idle_timeout, fin_hard_timeout);
            NxAction::Learn(LearnAction {
                idle_timeout,
                hard_timeout,
                priority,
                cookie,
                flags,
                table,
                fin_idle_timeout: fins.0,
                fin_hard_timeout: fins.1,
                specs,
            })
        },
    )
}

fn controller() -> impl Strategy<Value = NxAction> {
    (any::<u16>(), any::<u16>(), 0_u8..8, bytes(12), any::<bool>()).prop_map(|(max_len, id, reason, data, pause)| {
        let (reason, userdata) = (RequestedReason::from_number(reason), data.into());
        NxAction::Controller(ControllerAction { max_len, id, reason, userdata, pause })
    })
}

/// Generates Nicira actions that contain no other actions.
fn nicira() -> impl Strategy<Value = Action> {
    let load = (part(64), any::<u64>())
        .prop_map(|(dst, value)| NxAction::Load { dst, value: value & u64::MAX >> (64 - dst.bits) });
    prop_oneof![
        (short_port(), prop::option::of((0_u8..255).prop_map(TableId)))
            .prop_map(|(port, table)| NxAction::Resubmit { port, table }),
        load,
        (any::<u64>(), any::<bool>())
            .prop_map(|(id, wide)| NxAction::SetTunnel { id: id >> 20, wide: wide || id >> 52 != 0 }),
        eights(6).prop_map(|note| NxAction::Note(note.into())),
        vec(any::<u16>(), 1..4).prop_map(NxAction::DecTtl),
        multipath(),
        bundle(),
        (part(64), any::<u16>()).prop_map(|(src, max_len)| NxAction::OutputReg { src, max_len }),
        learn(),
        (any::<u16>(), any::<u16>()).prop_map(|(idle, hard)| NxAction::FinTimeout { idle, hard }),
        controller(),
        part(128).prop_map(NxAction::Push),
        part(128).prop_map(NxAction::Pop),
        (short_port(), any::<u32>()).prop_map(|(port, max_len)| NxAction::OutputTrunc { port, max_len }),
        (any::<u16>(), part(1)).prop_map(|(length, dst)| NxAction::CheckLarger { length, dst }),
        (any::<u64>(), any::<u64>()).prop_map(|(metadata, mask)| NxAction::WriteMetadata { metadata, mask }),
    ]
    .prop_map(NxAction::into_action)
}

/// Generates any action, including clones with actions.
pub(crate) fn action() -> impl Strategy<Value = Action> {
    let meter = any::<u32>().prop_map(|meter| Action::Meter(MeterId(meter)));
    let one = prop_oneof![
        2 => simple(),
        6 => standard(),
        3 => set_field(),
        3 => set_masked(),
        3 => of_v10(),
        6 => nicira(),
        1 => meter,
    ];
    let clone = |inner| vec(inner, 0..3).prop_map(|actions| NxAction::Clone(actions).into_action()).boxed();
    let one = one.boxed();
    let within = prop_oneof![9 => one.clone(), 1 => clone(one.clone())].boxed();
    prop_oneof![9 => one, 1 => clone(within)]
}

pub(crate) fn stats() -> impl Strategy<Value = OxsStats> {
    let pair = || prop::option::of(any::<(u32, u32)>());
    let raw = (any::<u8>(), bytes(8)).prop_map(|(number, payload)| RawStat {
        class: 0x7001,
        number,
        payload: payload.into(),
    });
    (pair(), pair(), any::<Option<u32>>(), any::<[Option<u64>; 2]>(), vec(raw, 0..2)).prop_map(
        |(duration, idle_time, flow_count, [packet_count, byte_count], others)| OxsStats {
            duration,
            idle_time,
            flow_count,
            packet_count,
            byte_count,
            others,
        },
    )
}

/// Generates each instruction at most once, in any order.
pub(crate) fn instructions() -> impl Strategy<Value = Vec<Instruction>> {
    let maybe = |one: BoxedStrategy<Instruction>| prop_oneof![2 => Just(None), 1 => one.prop_map(Some)];
    let metadata = any::<(u64, u64)>().prop_map(|(metadata, mask)| Instruction::WriteMetadata { metadata, mask });
    let trigger =
        (any::<u32>(), stats()).prop_map(|(flags, thresholds)| Instruction::StatTrigger { flags, thresholds });
    let experimenter =
        (any::<u32>(), eights(0)).prop_map(|(id, data)| Instruction::Experimenter { id, data: data.into() });
    (
        maybe(any::<u32>().prop_map(|meter| Instruction::Meter(MeterId(meter))).boxed()),
        prop::option::weighted(0.8, vec(action(), 1..5).prop_map(Instruction::ApplyActions)),
        maybe(Just(Instruction::ClearActions).boxed()),
        maybe(vec(action(), 0..4).prop_map(Instruction::WriteActions).boxed()),
        maybe(metadata.boxed()),
        prop::option::weighted(0.1, trigger),
        maybe(any::<u8>().prop_map(|table| Instruction::GotoTable(TableId(table))).boxed()),
        prop::option::weighted(0.1, experimenter),
    )
        .prop_map(|(a, b, c, d, e, f, g, h)| [a, b, c, d, e, f, g, h].into_iter().flatten().collect::<Vec<_>>())
        .prop_shuffle()
}

/// Replaces every action, including those inside clones, by the actions that `one` returns.
pub(crate) fn change(actions: &[Action], one: &impl Fn(&Action) -> Vec<Action>) -> Vec<Action> {
    let changed = actions.iter().map(|action| match action {
        Action::Nx(nx) => match &**nx {
            NxAction::Clone(inner) => vec![NxAction::Clone(change(inner, one)).into_action()],
            _ => one(action),
        },
        _ => one(action),
    });
    changed.flatten().collect()
}

/// Length that the text syntax implies for an output to the port in a field.
pub(crate) const ANY_LENGTH: u16 = NO_BUFFER;
