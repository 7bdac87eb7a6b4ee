//! Writes messages of 1.0 in os-ken's JSON format, for the types in the vectors.
use serde_json::{Value, json};
use std::net::Ipv4Addr;
use weir_openflow::model::flow::FlowMod;
use weir_openflow::model::{Action, Body, FlowFlags, Instruction, Match, MatchField, PortNo};
use weir_packet::{Field, MacAddr};

pub(super) fn message(body: &Body) -> Value {
    match body {
        Body::FeaturesRequest => json!({"OFPFeaturesRequest": {}}),
        Body::FlowMod(flow) => flow_mod(flow),
        Body::PacketIn(packet) => json!({"OFPPacketIn": {
            "buffer_id": packet.buffer_id.map_or(u32::MAX, |id| id.0),
            "data": super::base64(&packet.data),
            "in_port": port(packet.in_port().unwrap()),
            "reason": packet.reason as u8,
            "total_len": packet.total_len,
        }}),
        other => panic!("no vector has {other:?}"),
    }
}

fn port(port: PortNo) -> u32 {
    port.0 & 0xffff
}

fn flow_mod(flow: &FlowMod) -> Value {
    assert!(flow.flags == FlowFlags::default(), "no vector has flags");
    let actions = match &flow.instructions[..] {
        [] => &[][..],
        [Instruction::ApplyActions(actions)] => actions,
        other => panic!("{other:?}"),
    };
    json!({"OFPFlowMod": {
        "actions": actions.iter().map(action).collect::<Vec<_>>(),
        "buffer_id": flow.buffer_id.map_or(u32::MAX, |id| id.0),
        "command": flow.command as u16,
        "cookie": flow.cookie,
        "flags": 0,
        "hard_timeout": flow.hard_timeout,
        "idle_timeout": flow.idle_timeout,
        "match": matching(&flow.matching),
        "out_port": port(flow.out_port),
        "priority": flow.priority,
    }})
}

fn action(action: &Action) -> Value {
    match action {
        Action::Output { port: to, max_len } => json!({"OFPActionOutput": {"port": port(*to), "max_len": max_len}}),
        other => super::experimenter_action(other).unwrap_or_else(|| panic!("no vector has {other:?}")),
    }
}

/// Writes a match. The vectors only use `dl_dst` and `dl_type`.
#[expect(clippy::cast_possible_truncation, reason = "by the fields' widths")]
fn matching(matching: &Match) -> Value {
    let (mut dl_dst, mut dl_type, mut wildcards) = (MacAddr::default(), 0, (1_u32 << 22) - 1);
    for field in &matching.fields {
        match field {
            MatchField::Known { field: Field::EthDst, value, mask: None } => {
                dl_dst = MacAddr::from_bits(*value as u64);
                wildcards &= !(1 << 3);
            }
            MatchField::Known { field: Field::EthType, value, mask: None } => {
                dl_type = *value;
                // With `dl_type`, Open vSwitch marks 32 bits of each address as wildcards; without, os-ken marks 63.
                wildcards &= !(1 << 4 | 0x1f << 8 | 0x1f << 14);
            }
            other => panic!("no vector has {other:?}"),
        }
    }
    json!({"OFPMatch": {
        "dl_dst": dl_dst, "dl_src": MacAddr::default(), "dl_type": dl_type as u16, "dl_vlan": 0, "dl_vlan_pcp": 0,
        "in_port": 0, "nw_dst": Ipv4Addr::UNSPECIFIED, "nw_src": Ipv4Addr::UNSPECIFIED, "nw_proto": 0, "nw_tos": 0,
        "tp_src": 0, "tp_dst": 0, "wildcards": wildcards,
    }})
}
