//! Prints the messages that 1.4 and 1.5 added: bundles, flow monitors, and the status of tables, roles and
//! controllers. Open vSwitch prints no bundle features, controller status or flow statistics of 1.5; their format is
//! weir's own.
use super::shape::{self, duration};
use super::{PrintContext, group, meter, print_nested, switch};
use crate::model::bundle::{
    BundleAdd, BundleCommand, BundleControl, BundleFeatures, BundleFeaturesProperty, BundleFeaturesRequest,
    BundleFlags, BundleProperty, BundleTime,
};
use crate::model::monitor::{FlowEvent, FlowMonitor, FlowUpdate, FlowUpdateFull, MonitorCommand, MonitorFlags};
use crate::model::multipart::{FlowCounters, FlowCountersReason};
use crate::model::stats::OxsStats;
use crate::model::status::{ControllerReason, ControllerStatus, RoleReason, RoleStatus, TableReason, TableStatus};
use crate::model::{Body, GroupId, Message, PortNo, TableId};
use crate::text::action_text::write_instructions;
use crate::text::flow::{group_text, match_and_priority};
use crate::text::{match_text, raw};
use std::fmt::Write as _;

pub(super) fn role_status(status: &RoleStatus) -> String {
    let reason = match status.reason {
        RoleReason::MasterRequest => "primary_request",
        RoleReason::Config => "configuration_changed",
        RoleReason::Experimenter => "experimenter_data_changed",
    };
    let generation = match status.generation_id {
        u64::MAX => String::new(),
        generation => format!(" generation_id={generation}"),
    };
    format!(" role={}{generation} reason={reason}", switch::role_name(status.role))
}

pub(super) fn table_status(status: &TableStatus) -> String {
    let reason = match status.reason {
        TableReason::VacancyDown => "VACANCY_DOWN",
        TableReason::VacancyUp => "VACANCY_UP",
    };
    format!(" reason={reason}\ntable_desc:-{}", super::table::desc(&status.table))
}

pub(super) fn forwarded(request: &Message, show: PrintContext) -> String {
    match &request.body {
        Body::GroupMod(change) => format!(" reason=group_mod{}", group::group_mod(change, show)),
        Body::MeterMod(change) => format!(" reason=meter_mod{}", meter::meter_mod(change)),
        other => format!(" {}", super::names::of_body(other, show.version)),
    }
}

fn bundle_flags(flags: BundleFlags) -> String {
    shape::bits(flags.0.into(), &[(1, "atomic"), (2, "ordered"), (4, "time")])
}

pub(super) fn bundle_control(control: &BundleControl) -> String {
    let command = match control.command {
        BundleCommand::OpenRequest => "OPEN_REQUEST",
        BundleCommand::OpenReply => "OPEN_REPLY",
        BundleCommand::CloseRequest => "CLOSE_REQUEST",
        BundleCommand::CloseReply => "CLOSE_REPLY",
        BundleCommand::CommitRequest => "COMMIT_REQUEST",
        BundleCommand::CommitReply => "COMMIT_REPLY",
        BundleCommand::DiscardRequest => "DISCARD_REQUEST",
        BundleCommand::DiscardReply => "DISCARD_REPLY",
    };
    let flags = bundle_flags(control.flags);
    let mut text = format!("\n bundle_id={:#x} type={command} flags={flags}", control.bundle.0);
    for property in &control.properties {
        if let BundleProperty::Time(time) = property {
            let _ = write!(text, " time={}", self::time(*time));
        }
    }
    text
}

/// Prints seconds and nanoseconds.
fn time(time: BundleTime) -> String {
    format!("{}.{:09}", time.seconds, time.nanoseconds)
}

pub(super) fn bundle_add(add: &BundleAdd, show: PrintContext) -> String {
    let head = format!("\n bundle_id={:#x} flags={}\n", add.bundle.0, bundle_flags(add.flags));
    head + &print_nested(&add.message, show.number, show.detail, show.depth.saturating_sub(1))
}

pub(super) fn bundle_features_request(request: &BundleFeaturesRequest) -> String {
    let flags = shape::bits(request.flags, &[(1, "timestamp"), (2, "time_set_sched")]);
    format!(" flags={flags}{}", bundle_times(&request.properties))
}

pub(super) fn bundle_features(features: &BundleFeatures) -> String {
    format!(" capabilities={}{}", bundle_flags(features.capabilities), bundle_times(&features.properties))
}

fn bundle_times(properties: &[BundleFeaturesProperty]) -> String {
    properties.iter().fold(String::new(), |text, property| match property {
        BundleFeaturesProperty::Time { accuracy, max_future, max_past, timestamp } => {
            let times = [accuracy, max_future, max_past, timestamp].map(|one| time(*one));
            let [accuracy, future, past, now] = times;
            text + &format!("\n accuracy={accuracy} max_future={future} max_past={past} timestamp={now}")
        }
        BundleFeaturesProperty::Other(_) => text,
    })
}

/// Names of flow monitor flags.
const MONITOR_FLAGS: [(MonitorFlags, &str); 7] = [
    (MonitorFlags::INITIAL, "initial"),
    (MonitorFlags::ADD, "add"),
    (MonitorFlags::REMOVED, "delete"),
    (MonitorFlags::MODIFY, "modify"),
    (MonitorFlags::INSTRUCTIONS, "instructions"),
    (MonitorFlags::NO_ABBREV, "no_abbrev"),
    (MonitorFlags::ONLY_OWN, "only_own"),
];

pub(super) fn monitor(monitor: &FlowMonitor, show: PrintContext) -> String {
    let mut text = format!(" id={}", monitor.id);
    match monitor.command {
        MonitorCommand::Add => {}
        MonitorCommand::Modify => text.push_str(" command=modify"),
        MonitorCommand::Delete => return text + " command=delete",
        MonitorCommand::Unknown(number) => {
            let _ = write!(text, " command={number}");
        }
    }
    let flags = MONITOR_FLAGS.iter().filter(|(flag, _)| monitor.flags.contains(*flag));
    let flags: Vec<&str> = flags.map(|(_, name)| *name).collect();
    let _ = write!(text, " flags={}", flags.join(","));
    if monitor.out_port != PortNo::ANY {
        let _ = write!(text, " out_port={}", monitor.out_port);
    }
    if monitor.out_group != GroupId::ANY {
        let _ = write!(text, " out_group={}", group_text(monitor.out_group));
    }
    if monitor.table != TableId::ALL {
        let _ = write!(text, " table={}", monitor.table.0);
    }
    text + " " + &match_text::write(&monitor.matching, show.version)
}

pub(super) fn flow_update(update: &FlowUpdate, show: PrintContext) -> String {
    match update {
        FlowUpdate::Full(full) => flow_update_full(full, show),
        FlowUpdate::Abbrev { xid } => format!(" event=ABBREV xid={xid:#x}"),
        FlowUpdate::Paused => " event=PAUSED".into(),
        FlowUpdate::Resumed => " event=RESUMED".into(),
    }
}

fn flow_update_full(full: &FlowUpdateFull, show: PrintContext) -> String {
    let event = match full.event {
        FlowEvent::Initial => "INITIAL",
        FlowEvent::Added => "ADDED",
        FlowEvent::Removed => "DELETED",
        FlowEvent::Modified => "MODIFIED",
    };
    let mut text = format!(" event={event}");
    if let Some(reason) = full.reason {
        let _ = write!(text, " reason={}", super::flow::reason_name(reason));
    }
    let _ = write!(text, " table={}", full.table.0);
    for (name, seconds) in [("idle_timeout", full.idle_timeout), ("hard_timeout", full.hard_timeout)] {
        if seconds != 0 {
            let _ = write!(text, " {name}={seconds}");
        }
    }
    let cookie = if full.cookie == 0 { "0".to_owned() } else { format!("{:#x}", full.cookie) };
    let _ = write!(text, " cookie={cookie}");
    let matching = match_text::write(&full.matching, show.version);
    let _ = write!(text, "{}{matching}", if matching.is_empty() { "" } else { " " });
    if !full.instructions.is_empty() {
        let _ = write!(text, " actions={}", write_instructions(&full.instructions, show.version));
    }
    text
}

pub(super) fn flow_counters(entry: &FlowCounters, show: PrintContext) -> String {
    let reason = match entry.reason {
        FlowCountersReason::Request => "stats_request",
        FlowCountersReason::Trigger => "stat_trigger",
    };
    let matching = match_and_priority(&entry.matching, entry.priority, show.version);
    format!(" table={}, reason={reason}, {}{matching}", entry.table.0, stats(&entry.stats))
}

fn stats(stats: &OxsStats) -> String {
    let time = |name, time: Option<(u32, u32)>| time.map(|(sec, nsec)| format!("{name}={}, ", duration(sec, nsec)));
    let count = |name, count: Option<u64>| count.map(|count| format!("{name}={count}, "));
    let known = [
        time("duration", stats.duration),
        time("idle", stats.idle_time),
        count("n_flows", stats.flow_count.map(u64::from)),
        count("n_packets", stats.packet_count),
        count("n_bytes", stats.byte_count),
    ];
    let others = stats.others.iter();
    let others = others.map(|one| format!("stat:{}:{}={}, ", one.class, one.number, raw::hex(&one.payload.0)));
    known.into_iter().flatten().chain(others).collect()
}

pub(super) fn controller_status(status: &ControllerStatus) -> String {
    let reason = match status.reason {
        ControllerReason::Request => "request",
        ControllerReason::ChannelStatus => "channel_status",
        ControllerReason::Role => "role",
        ControllerReason::ControllerAdded => "controller_added",
        ControllerReason::ControllerRemoved => "controller_removed",
        ControllerReason::ShortId => "short_id",
        ControllerReason::Experimenter => "experimenter",
    };
    let channel = if status.is_up { "up" } else { "down" };
    let role = switch::role_name(status.role);
    let uri = shape::safe(&status.uri);
    format!(" short_id={} role={role} reason={reason} channel={channel} uri={uri}", status.short_id)
}
