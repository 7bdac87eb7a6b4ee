//! Prints Nicira's actions in the spelling of `ovs-ofctl`. [`super::nicira_parse`] parses them.
use super::action_text;
use crate::model::action::NO_BUFFER;
use crate::model::nicira::{
    BundleAction, ControllerAction, HashFields, LearnAction, LearnDst, LearnSpec, LearnSrc, MultipathAction,
    MultipathAlgorithm, NxAction, RequestedReason,
};
use crate::model::{PortNo, Subfield, Version};
use crate::nicira::nxm;
use weir_packet::Field;

/// Names of the fields that a hash covers.
pub(super) const HASHES: [(&str, HashFields); 7] = [
    ("eth_src", HashFields::EthSrc),
    ("symmetric_l4", HashFields::SymmetricL4),
    ("symmetric_l3l4", HashFields::SymmetricL3L4),
    ("symmetric_l3l4+udp", HashFields::SymmetricL3L4Udp),
    ("nw_src", HashFields::NwSrc),
    ("nw_dst", HashFields::NwDst),
    ("symmetric_l3", HashFields::SymmetricL3),
];

/// Names of multipath's algorithms.
pub(super) const ALGORITHMS: [(&str, MultipathAlgorithm); 4] = [
    ("modulo_n", MultipathAlgorithm::ModuloN),
    ("hash_threshold", MultipathAlgorithm::HashThreshold),
    ("hrw", MultipathAlgorithm::Hrw),
    ("iter_hash", MultipathAlgorithm::IterHash),
];

/// Names of the flags of `learn`.
pub(super) const LEARN_FLAGS: [(&str, u16); 2] = [("send_flow_rem", 1), ("delete_learned", 2)];

/// Default priority of a learned flow entry.
pub(super) const LEARN_PRIORITY: u16 = 0x8000;

fn name_of<T: PartialEq + Copy>(names: &[(&'static str, T)], value: T) -> &'static str {
    names.iter().find(|(_, known)| *known == value).map_or("", |(name, _)| name)
}

/// Returns the name of a field in an action: `NXM_NX_REG0`, `OXM_OF_METADATA`, ...
pub(super) fn field_name(field: Field) -> String {
    let own = nxm::all().find(|nxm| nxm.field == field && field != Field::IpDscp);
    let upper = || field.name().to_ascii_uppercase();
    match (own, field) {
        (Some(nxm), _) => nxm.name.into(),
        (None, Field::ActsetOutput) => "ONFOXM_ET_ACTSET_OUTPUT".into(),
        (None, field) if field.is_wide_register() => format!("OXM_OF_PKT_REG{}", field as u8 - Field::Xreg0 as u8),
        (None, field) if field.is_nsh() => format!("NXOXM_{}", upper()),
        (None, _) => format!("OXM_OF_{}", upper()),
    }
}

/// Returns the number of bits that a field name without range stands for, as in Open vSwitch: 16 for the port (unless
/// the name is that of the 32-bit port field), and 12 for the VLAN id, without its present bit.
pub(super) fn all_bits(field: Field, is_wide_port: bool) -> u16 {
    match field {
        Field::InPort if !is_wide_port => 16,
        Field::VlanVid => 12,
        field => Subfield::all(field).bits,
    }
}

/// Prints bits of a field: `NXM_NX_REG0[0..15]`, or `NXM_NX_REG0[]` for the whole field.
pub(super) fn part(part: Subfield) -> String {
    // The 32-bit port field has another name than the 16-bit one.
    let is_wide_port = part.field == Field::InPort && part.offset.saturating_add(part.bits) > 16;
    let name = if is_wide_port { "OXM_OF_IN_PORT".into() } else { field_name(part.field) };
    let all = all_bits(part.field, is_wide_port);
    match (part.offset, part.bits) {
        (0, bits) if bits == all => format!("{name}[]"),
        (offset, 1) => format!("{name}[{offset}]"),
        (offset, bits) => format!("{name}[{offset}..{}]", offset.saturating_add(bits).saturating_sub(1)),
    }
}

/// Prints bytes in the form of `note` and `userdata`: `01.02`.
pub(super) fn dotted(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(".")
}

/// Prints an action.
pub(super) fn write(action: &NxAction, version: Version) -> String {
    match action {
        NxAction::Resubmit { port, table: None } => format!("resubmit:{port}"),
        NxAction::Resubmit { port: PortNo::IN_PORT, table: Some(table) } => format!("resubmit(,{})", table.0),
        NxAction::Resubmit { port, table: Some(table) } => format!("resubmit({port},{})", table.0),
        NxAction::Load { dst, value } => format!("load:{}->{}", hex(u128::from(*value)), part(*dst)),
        NxAction::SetTunnel { id, wide } if *wide || *id > u64::from(u32::MAX) => format!("set_tunnel64:{id:#x}"),
        NxAction::SetTunnel { id, .. } => format!("set_tunnel:{id:#x}"),
        NxAction::PopQueue => "pop_queue".into(),
        NxAction::Note(note) => format!("note:{}", dotted(&note.0)),
        NxAction::Exit => "exit".into(),
        NxAction::DecTtl(ids) => {
            format!("dec_ttl({})", ids.iter().map(u16::to_string).collect::<Vec<_>>().join(","))
        }
        NxAction::Multipath(multipath) => multipath_text(multipath),
        NxAction::Bundle(bundle) => bundle_text(bundle),
        NxAction::OutputReg { src, .. } => format!("output:{}", part(*src)),
        NxAction::Learn(learn) => learn_text(learn),
        NxAction::FinTimeout { idle, hard } => {
            list("fin_timeout", &[nonzero("idle_timeout", *idle), nonzero("hard_timeout", *hard)])
        }
        NxAction::Controller(controller) => controller_text(controller),
        NxAction::WriteMetadata { metadata, mask: u64::MAX } => format!("write_metadata:{metadata:#x}"),
        NxAction::WriteMetadata { metadata, mask } => format!("write_metadata:{metadata:#x}/{mask:#x}"),
        NxAction::Push(src) => format!("push:{}", part(*src)),
        NxAction::Pop(dst) => format!("pop:{}", part(*dst)),
        NxAction::OutputTrunc { port, max_len } => format!("output(port={port},max_len={max_len})"),
        NxAction::Clone(actions) if actions.is_empty() => "clone()".into(),
        NxAction::Clone(actions) => format!("clone({})", action_text::write_actions(actions, version)),
        NxAction::CheckLarger { length, dst } => format!("check_pkt_larger({length})->{}", part(*dst)),
    }
}

/// Prints a hexadecimal number with `0x`; zero without.
fn hex(value: u128) -> String {
    if value == 0 { "0".into() } else { format!("{value:#x}") }
}

fn nonzero(key: &str, value: u16) -> Option<String> {
    (value != 0).then(|| format!("{key}={value}"))
}

fn list(name: &str, parts: &[Option<String>]) -> String {
    let there: Vec<&str> = parts.iter().filter_map(|part| part.as_deref()).collect();
    format!("{name}({})", there.join(","))
}

fn multipath_text(multipath: &MultipathAction) -> String {
    format!(
        "multipath({},{},{},{},{},{})",
        name_of(&HASHES, multipath.fields),
        multipath.basis,
        name_of(&ALGORITHMS, multipath.algorithm),
        u32::from(multipath.max_link) + 1,
        multipath.arg,
        part(multipath.dst)
    )
}

fn bundle_text(bundle: &BundleAction) -> String {
    let members: Vec<String> = bundle.members.iter().map(ToString::to_string).collect();
    let hash = format!("{},{}", name_of(&HASHES, bundle.fields), bundle.basis);
    let algorithm = if bundle.is_hrw { "hrw" } else { "active_backup" };
    match bundle.dst {
        None => format!("bundle({hash},{algorithm},ofport,members:{})", members.join(",")),
        Some(dst) => format!("bundle_load({hash},{algorithm},ofport,{},members:{})", part(dst), members.join(",")),
    }
}

/// Prints `controller(...)`. Without parameters it would be parsed as an output to the controller, so `id=0` is then
/// added.
fn controller_text(controller: &ControllerAction) -> String {
    let has_reason = controller.reason != RequestedReason::DEFAULT;
    let is_plain = controller.userdata.0.is_empty() && !controller.pause && controller.id == 0 && !has_reason;
    let parts = [
        has_reason.then(|| format!("reason={}", controller.reason)),
        (controller.max_len != NO_BUFFER).then(|| format!("max_len={}", controller.max_len)),
        (controller.id != 0 || is_plain).then(|| format!("id={}", controller.id)),
        (!controller.userdata.0.is_empty()).then(|| format!("userdata={}", dotted(&controller.userdata.0))),
        controller.pause.then(|| "pause".into()),
    ];
    list("controller", &parts)
}

fn learn_text(learn: &LearnAction) -> String {
    let mut parts = vec![
        Some(format!("table={}", learn.table.0)),
        nonzero("idle_timeout", learn.idle_timeout),
        nonzero("hard_timeout", learn.hard_timeout),
        nonzero("fin_idle_timeout", learn.fin_idle_timeout),
        nonzero("fin_hard_timeout", learn.fin_hard_timeout),
        (learn.priority != LEARN_PRIORITY).then(|| format!("priority={}", learn.priority)),
    ];
    parts.extend(LEARN_FLAGS.into_iter().map(|(name, bit)| (learn.flags & bit != 0).then(|| name.into())));
    parts.push((learn.cookie != 0).then(|| format!("cookie={:#x}", learn.cookie)));
    parts.extend(learn.specs.iter().map(|spec| Some(spec_text(spec))));
    list("learn", &parts)
}

fn spec_text(spec: &LearnSpec) -> String {
    match (spec.src, spec.dst) {
        (LearnSrc::Field(src), LearnDst::Match(dst)) if src == dst => part(dst),
        (LearnSrc::Field(src), LearnDst::Match(dst)) => format!("{}={}", part(dst), part(src)),
        (LearnSrc::Value(value), LearnDst::Match(dst)) => format!("{}={}", part(dst), hex(value)),
        (LearnSrc::Field(src), LearnDst::Load(dst)) => format!("load:{}->{}", part(src), part(dst)),
        (LearnSrc::Value(value), LearnDst::Load(dst)) => format!("load:{}->{}", hex(value), part(dst)),
        (LearnSrc::Field(src), LearnDst::Output) => format!("output:{}", part(src)),
        (LearnSrc::Value(value), LearnDst::Output) => format!("output:{value}"),
    }
}
