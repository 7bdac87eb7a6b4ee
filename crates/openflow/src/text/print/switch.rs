//! Prints the messages about the switch: hello, features, configuration, description and roles.
use super::{PrintContext, port, shape};
use crate::model::multipart::SwitchDesc;
use crate::model::role::{AsyncConfig, Role, RoleMessage};
use crate::model::{Experimenter, FeaturesReply, Hello, SwitchConfig, Version};
use std::fmt::Write as _;

/// Prints a hello. Without a bitmap, it stands for the header's version and all below.
pub(super) fn hello(hello: &Hello, version: u8) -> String {
    let versions = hello.versions.clone().unwrap_or_else(|| (1..=version).collect());
    let versions: Vec<String> = versions.iter().map(|version| format!("0x{version:02x}")).collect();
    format!("\n version bitmap: {}", versions.join(", "))
}

pub(super) fn experimenter(message: &Experimenter) -> String {
    let kind = message.kind.map(|kind| format!(" type={kind}")).unwrap_or_default();
    let data = &message.data.0;
    format!(" experimenter={:#x}{kind} {} bytes of data\n{}", message.id, data.len(), shape::hex_dump(data))
}

const CAPABILITIES: shape::BitNames = &[
    (1 << 0, "FLOW_STATS"),
    (1 << 1, "TABLE_STATS"),
    (1 << 2, "PORT_STATS"),
    (1 << 3, "GROUP_STATS"),
    (1 << 5, "IP_REASM"),
    (1 << 6, "QUEUE_STATS"),
    (1 << 8, "PORT_BLOCKED"),
    (1 << 9, "BUNDLES"),
    (1 << 10, "FLOW_MONITORING"),
];

const CAPABILITIES_10: shape::BitNames = &[
    (1 << 0, "FLOW_STATS"),
    (1 << 1, "TABLE_STATS"),
    (1 << 2, "PORT_STATS"),
    (1 << 3, "STP"),
    (1 << 5, "IP_REASM"),
    (1 << 6, "QUEUE_STATS"),
    (1 << 7, "ARP_MATCH_IP"),
];

/// Names of 1.0's actions, in the order of `ovs-ofctl`.
const ACTIONS_10: shape::BitNames = &[
    (1 << 0, "output"),
    (1 << 11, "enqueue"),
    (1 << 1, "set_vlan_vid"),
    (1 << 2, "set_vlan_pcp"),
    (1 << 3, "strip_vlan"),
    (1 << 4, "mod_dl_src"),
    (1 << 5, "mod_dl_dst"),
    (1 << 6, "mod_nw_src"),
    (1 << 7, "mod_nw_dst"),
    (1 << 8, "mod_nw_tos"),
    (1 << 9, "mod_tp_src"),
    (1 << 10, "mod_tp_dst"),
];

pub(super) fn features(features: &FeaturesReply, show: PrintContext) -> String {
    let is_10 = show.version == Version::V10;
    let mut text = format!(
        " dpid:{:016x}\nn_tables:{}, n_buffers:{}",
        features.datapath_id, features.n_tables, features.n_buffers
    );
    if features.auxiliary_id != 0 {
        let _ = write!(text, ", auxiliary_id:{}", features.auxiliary_id);
    }
    let names = if is_10 { CAPABILITIES_10 } else { CAPABILITIES };
    let _ = writeln!(text, "\ncapabilities: {}", shape::bits(features.capabilities, names));
    if is_10 {
        let _ = writeln!(text, "actions: {}", shape::bits(features.actions, ACTIONS_10));
        text.push_str(&port::descs(&features.ports, show));
    }
    text
}

pub(super) fn config(config: &SwitchConfig) -> String {
    let fragments = ["normal", "drop", "reassemble", "<error>"][usize::from(config.flags & 3)];
    let ttl = if config.flags & 4 != 0 { " invalid_ttl_to_controller" } else { "" };
    let unknown = match config.flags & !7 {
        0 => String::new(),
        flags => format!(" ***unknown flags 0x{flags:04x}***"),
    };
    format!(" frags={fragments}{ttl}{unknown} miss_send_len={}", config.miss_send_len)
}

pub(super) fn desc(desc: &SwitchDesc) -> String {
    let lines = [
        ("Manufacturer", &desc.mfr_desc),
        ("Hardware", &desc.hw_desc),
        ("Software", &desc.sw_desc),
        ("Serial Num", &desc.serial_num),
        ("DP Description", &desc.dp_desc),
    ];
    lines.iter().fold("\n".to_owned(), |text, (name, value)| text + &format!("{name}: {}\n", shape::safe(value)))
}

pub(super) fn role_name(role: Role) -> String {
    match role {
        Role::NoChange => "nochange".to_owned(),
        Role::Equal => "equal".into(),
        Role::Master => "primary".into(),
        Role::Slave => "secondary".into(),
        Role::Unknown(number) => number.to_string(),
    }
}

pub(super) fn role(message: &RoleMessage) -> String {
    let role = role_name(message.role);
    // All ones mean no election. For the roles no-change and equal, 0 does not count as one either.
    let generation = match (message.role, message.generation_id) {
        (_, u64::MAX) | (Role::NoChange | Role::Equal, 0) => String::new(),
        (_, generation) => format!(" generation_id={generation}"),
    };
    format!(" role={role}{generation}")
}

/// Message kinds and the names of their reasons, in the order of [`AsyncConfig::kinds`].
const KINDS: [(&str, shape::BitNames); AsyncConfig::KINDS] = [
    (
        "PACKET_IN",
        &[(1, "no_match"), (2, "action"), (4, "invalid_ttl"), (8, "action_set"), (16, "group"), (32, "packet_out")],
    ),
    ("PORT_STATUS", &[(1, "add"), (2, "delete"), (4, "modify")]),
    (
        "FLOW_REMOVED",
        &[(1, "idle"), (2, "hard"), (4, "delete"), (8, "group_delete"), (16, "meter_delete"), (32, "eviction")],
    ),
    ("ROLE_STATUS", &[(1, "primary_request"), (2, "configuration_changed"), (4, "experimenter_data_changed")]),
    ("TABLE_STATUS", &[(8, "vacancy_down"), (16, "vacancy_up")]),
    ("REQUESTFORWARD", &[(1, "group_mod_request"), (2, "meter_mod_request")]),
    ("FLOW_STATS", &[(1, "stats_request"), (2, "stat_trigger")]),
    (
        "CONTROLLER_STATUS",
        &[
            (1, "request"),
            (2, "channel_status"),
            (4, "role"),
            (8, "controller_added"),
            (16, "controller_removed"),
            (32, "short_id"),
            (64, "experimenter"),
        ],
    ),
];
/// Number of leading kinds that are always printed: before 1.4, and from 1.4 on.
const KINDS_13: usize = 3;
const KINDS_14: usize = 6;

pub(super) fn async_config(config: &AsyncConfig, show: PrintContext) -> String {
    let always = if show.version < Version::V14 { KINDS_13 } else { KINDS_14 };
    let mut text = String::new();
    for (role, at) in [("primary", 0), ("secondary", 1)] {
        let _ = write!(text, "\n {role}:");
        for (number, ((kind, names), reasons)) in KINDS.iter().zip(config.kinds()).enumerate() {
            if number < always || reasons[at].is_some() {
                let reasons = match reasons[at].unwrap_or(0) {
                    0 => "(off)".into(),
                    bits => shape::bits(bits, names),
                };
                let _ = write!(text, "\n{kind:>16}: {reasons}");
            }
        }
    }
    text
}
