//! Provides the names of instructions, actions and fields in table features.
use super::group::ACTIONS;
use super::table::{EXACT, MASK, WILDCARD};
use crate::model::multipart::{FeatureTypeId, OxmId, TableProperty};
use crate::model::{ActionType, InstructionType, OxmClass};
use crate::text::field_value::set_name;
use weir_packet::Field;

/// Types and names of instructions, in the order of their execution.
const INSTRUCTIONS: [(InstructionType, &str); 6] = [
    (InstructionType::Meter, "meter"),
    (InstructionType::ApplyActions, "apply_actions"),
    (InstructionType::ClearActions, "clear_actions"),
    (InstructionType::WriteActions, "write_actions"),
    (InstructionType::WriteMetadata, "write_metadata"),
    (InstructionType::GotoTable, "goto_table"),
];

pub(super) fn instruction_names(ids: &[FeatureTypeId<InstructionType>]) -> Vec<String> {
    let has = |kind| ids.contains(&FeatureTypeId::Standard(kind));
    let known = INSTRUCTIONS.iter().filter(|(kind, _)| has(*kind)).map(|(_, name)| (*name).to_owned());
    let unknown = ids.iter().filter(|id| !INSTRUCTIONS.iter().any(|(kind, _)| **id == FeatureTypeId::Standard(*kind)));
    known.chain(unknown.map(type_text)).collect()
}

pub(super) fn action_names(ids: &[FeatureTypeId<ActionType>]) -> Vec<String> {
    let number = |id: &FeatureTypeId<ActionType>| match id {
        FeatureTypeId::Standard(kind) if kind.number() < 32 => 1_u32 << kind.number(),
        _ => 0,
    };
    let set = ids.iter().fold(0, |set, id| set | number(id));
    let known = ACTIONS.iter().filter(|(bit, _)| set & bit != 0).map(|(_, name)| (*name).to_owned());
    let is_known = |id: &&FeatureTypeId<ActionType>| ACTIONS.iter().any(|(bit, _)| number(id) == *bit);
    known.chain(ids.iter().filter(|id| !is_known(id)).map(type_text)).collect()
}

fn type_text<T: Copy + Into<u16>>(id: &FeatureTypeId<T>) -> String {
    match id {
        FeatureTypeId::Standard(kind) => (*kind).into().to_string(),
        FeatureTypeId::Experimenter { id, .. } => format!("experimenter({id:#x})"),
    }
}

pub(super) fn field_names(fields: &[OxmId]) -> Vec<String> {
    let mut ordered: Vec<&OxmId> = fields.iter().collect();
    ordered.sort_by_key(|field| field_rank(field));
    ordered.into_iter().map(field_name).collect()
}

fn field_name(id: &OxmId) -> String {
    match known(id) {
        Some(field) => set_name(field).to_owned(),
        None => format!("raw_{:#06x}_{}", id.class.number(), id.number),
    }
}

/// Returns the field for a header of the basic class.
fn known(id: &OxmId) -> Option<Field> {
    Field::from_oxm(id.number).filter(|_| id.class == OxmClass::OpenflowBasic)
}

/// Returns the position of a field in the lists of `ovs-ofctl`.
fn field_rank(id: &OxmId) -> usize {
    use Field::*;
    const ORDER: [Field; 42] = [
        TunnelId,
        Metadata,
        InPort,
        InPhyPort,
        EthSrc,
        EthDst,
        EthType,
        VlanVid,
        VlanPcp,
        MplsLabel,
        MplsTc,
        MplsBos,
        PbbIsid,
        PbbUca,
        Ipv4Src,
        Ipv4Dst,
        Ipv6Src,
        Ipv6Dst,
        Ipv6Flabel,
        IpProto,
        IpDscp,
        IpEcn,
        IpFrag,
        ArpOp,
        ArpSpa,
        ArpTpa,
        ArpSha,
        ArpTha,
        TcpSrc,
        TcpDst,
        TcpFlags,
        UdpSrc,
        UdpDst,
        SctpSrc,
        SctpDst,
        Icmpv4Type,
        Icmpv4Code,
        Icmpv6Type,
        Icmpv6Code,
        Ipv6NdTarget,
        Ipv6NdSll,
        Ipv6NdTll,
    ];
    known(id).and_then(|field| ORDER.iter().position(|at| *at == field)).unwrap_or(ORDER.len())
}

pub(super) fn matching(properties: &[TableProperty]) -> Vec<(String, &'static str)> {
    let mut wildcards = Vec::new();
    let mut matched: Vec<OxmId> = Vec::new();
    for property in properties {
        match property {
            TableProperty::Match(fields) => matched.extend(fields),
            TableProperty::Wildcards(fields) => wildcards.extend(fields.iter().map(|id| (id.class, id.number))),
            _ => {}
        }
    }
    matched.sort_by_key(field_rank);
    let how = |id: &OxmId| match (id.has_mask, wildcards.contains(&(id.class, id.number))) {
        (true, _) => MASK,
        (false, true) => WILDCARD,
        (false, false) => EXACT,
    };
    matched.iter().map(|id| (field_name(id), how(id))).collect()
}
