//! Prints actions and instructions in the spelling of `ovs-ofctl`.
use super::{encap, field_value, nicira, raw};
use crate::model::stats::OxsStats;
use crate::model::{Action, Instruction, NxAction, PortNo, Version};
use std::fmt::Write as _;
use std::net::Ipv4Addr;
use weir_packet::{Field, MacAddr};

/// Prints an action list; `drop` if it is empty.
pub(super) fn write_actions(actions: &[Action], version: Version) -> String {
    if actions.is_empty() {
        return "drop".into();
    }
    let texts: Vec<String> = actions.iter().map(|action| write_action(action, version)).collect();
    texts.join(",")
}

/// Prints instructions in the order of their execution; `drop` if they do nothing.
pub(super) fn write_instructions(instructions: &[Instruction], version: Version) -> String {
    let mut ordered: Vec<&Instruction> = instructions.iter().collect();
    ordered.sort_by_key(|instruction| instruction.execution_order());
    let write = |one: &Instruction| match one {
        Instruction::ApplyActions(actions) if reads_otherwise(actions, instructions) => {
            Some(format!("apply_actions({})", write_actions(actions, version)))
        }
        one => write_instruction(one, version),
    };
    let texts: Vec<String> = ordered.into_iter().filter_map(write).collect();
    if texts.is_empty() { "drop".into() } else { texts.join(",") }
}

/// Returns true if the actions, printed without `apply_actions(...)`, would be parsed as something else: outside an
/// action list, `meter` and `write_metadata` are instructions, which run before and after all actions, each once.
fn reads_otherwise(actions: &[Action], instructions: &[Instruction]) -> bool {
    let has_meter = instructions.iter().any(|one| matches!(one, Instruction::Meter(_)));
    let has_metadata = instructions.iter().any(|one| matches!(one, Instruction::WriteMetadata { .. }));
    let last = actions.len().saturating_sub(1);
    actions.iter().enumerate().any(|(at, action)| match action {
        Action::Meter(_) => at > 0 || has_meter,
        Action::Nx(nx) if matches!(**nx, NxAction::WriteMetadata { .. }) => at < last || has_metadata,
        _ => false,
    })
}

fn write_instruction(instruction: &Instruction, version: Version) -> Option<String> {
    Some(match instruction {
        Instruction::GotoTable(table) => format!("goto_table:{}", table.0),
        Instruction::WriteMetadata { metadata, mask: u64::MAX } => format!("write_metadata:{metadata:#x}"),
        Instruction::WriteMetadata { metadata, mask } => format!("write_metadata:{metadata:#x}/{mask:#x}"),
        Instruction::WriteActions(actions) => format!("write_actions({})", write_actions(actions, version)),
        Instruction::ApplyActions(actions) if actions.is_empty() => return None,
        Instruction::ApplyActions(actions) => write_actions(actions, version),
        Instruction::ClearActions => "clear_actions".into(),
        Instruction::Meter(meter) => format!("meter:{}", meter.0),
        Instruction::StatTrigger { flags, thresholds } => stat_trigger(*flags, thresholds),
        Instruction::Experimenter { id, data } => format!("experimenter_instruction({id:#x},{})", raw::hex(&data.0)),
    })
}

/// Prints `stat_trigger(flags=0x1,packet_count=100)`, weir's own syntax, because no tool has one.
fn stat_trigger(flags: u32, thresholds: &OxsStats) -> String {
    let mut text = format!("stat_trigger(flags={flags:#x}");
    let time = |name, time: Option<(u32, u32)>| time.map(|(sec, nsec)| format!(",{name}={sec}.{nsec:09}s"));
    let count = |name, count: Option<u64>| count.map(|count| format!(",{name}={count}"));
    let known = [
        time("duration", thresholds.duration),
        time("idle_time", thresholds.idle_time),
        count("flow_count", thresholds.flow_count.map(u64::from)),
        count("packet_count", thresholds.packet_count),
        count("byte_count", thresholds.byte_count),
    ];
    text.extend(known.into_iter().flatten());
    for other in &thresholds.others {
        let _ = write!(text, ",stat:{}:{}={}", other.class, other.number, raw::hex(&other.payload.0));
    }
    text + ")"
}

/// Prints one action.
#[expect(clippy::cast_possible_truncation, reason = "an Ethernet address has 48 bits")]
fn write_action(action: &Action, version: Version) -> String {
    match action {
        Action::Output { port: PortNo::CONTROLLER, max_len } => format!("CONTROLLER:{max_len}"),
        Action::Output { port, .. } => output_text(*port),
        Action::Group(group) => format!("group:{}", group.0),
        Action::Meter(meter) => format!("meter:{}", meter.0),
        Action::SetQueue(queue) => format!("set_queue:{queue}"),
        Action::CopyTtlOut => "copy_ttl_out".into(),
        Action::CopyTtlIn => "copy_ttl_in".into(),
        Action::SetMplsTtl(ttl) => format!("set_mpls_ttl({ttl})"),
        Action::DecMplsTtl => "dec_mpls_ttl".into(),
        Action::SetNwTtl(ttl) => format!("mod_nw_ttl:{ttl}"),
        Action::DecNwTtl => "dec_ttl".into(),
        Action::PushVlan(eth_type) => format!("push_vlan:0x{eth_type:04x}"),
        Action::PopVlan if version == Version::V10 => "strip_vlan".into(),
        Action::PopVlan => "pop_vlan".into(),
        Action::PushMpls(eth_type) => format!("push_mpls:0x{eth_type:04x}"),
        Action::PopMpls(eth_type) => format!("pop_mpls:0x{eth_type:04x}"),
        Action::PushPbb(eth_type) => format!("push_pbb:0x{eth_type:04x}"),
        Action::PopPbb => "pop_pbb".into(),
        Action::SetField { field: Field::EthSrc, value } if version == Version::V10 => {
            format!("mod_dl_src:{}", MacAddr::from_bits(*value as u64))
        }
        Action::SetField { field: Field::EthDst, value } if version == Version::V10 => {
            format!("mod_dl_dst:{}", MacAddr::from_bits(*value as u64))
        }
        Action::SetField { field: Field::MplsLabel, value } if version == Version::V10 => {
            format!("set_mpls_label({value})")
        }
        Action::SetField { field: Field::MplsTc, value } if version == Version::V10 => format!("set_mpls_tc({value})"),
        Action::SetField { field, value } => {
            format!("set_field:{}->{}", field_value::set_text(*field, *value), field_value::set_name(*field))
        }
        Action::SetFieldMasked { field, value, mask } => {
            let value = field_value::match_text(*field, *value, Some(*mask));
            format!("set_field:{value}->{}", field_value::set_name(*field))
        }
        Action::Move { src, dst } => format!("move:{}->{}", nicira::part(*src), nicira::part(*dst)),
        Action::Nx(nx) => nicira::write(nx, version),
        Action::DecNshTtl => "dec_nsh_ttl".into(),
        Action::Encap(header) => encap::write(header),
        Action::Decap(wanted) => encap::write_decap(*wanted),
        Action::SetVlanVid(vid) => format!("mod_vlan_vid:{vid}"),
        Action::SetVlanPcp(pcp) => format!("mod_vlan_pcp:{pcp}"),
        Action::SetNwSrc(address) => format!("mod_nw_src:{}", Ipv4Addr::from_bits(*address)),
        Action::SetNwDst(address) => format!("mod_nw_dst:{}", Ipv4Addr::from_bits(*address)),
        Action::SetNwTos(tos) => format!("mod_nw_tos:{tos}"),
        Action::SetTpSrc(port) => format!("mod_tp_src:{port}"),
        Action::SetTpDst(port) => format!("mod_tp_dst:{port}"),
        Action::Enqueue { port, queue } => format!("enqueue:{port}:{queue}"),
        Action::Experimenter { id, data } => format!("experimenter({id:#x},{})", raw::hex(&data.0)),
        Action::SetFieldRaw(field) => format!("set_field:{}->{}", raw::hex(&field.payload.0), raw::name(field)),
    }
}

/// Prints an output to a port. A reserved port is printed as its name alone. `ANY` is not a port to output to, so it
/// keeps the prefix `output:`.
fn output_text(port: PortNo) -> String {
    match port {
        PortNo::ANY => "output:ANY".into(),
        port if port > PortNo::MAX && port >= PortNo::IN_PORT => port.to_string(),
        port => {
            let mut text = String::from("output:");
            let _ = write!(text, "{port}");
            text
        }
    }
}
