//! Prints the messages about flow entries.
use super::PrintContext;
use super::shape::duration;
use crate::model::multipart::{AggregateStats, FlowRequest, FlowStats};
use crate::model::{
    FlowCommand, FlowFlags, FlowMod, FlowRemoved, FlowRemovedReason, GroupId, PortNo, TableId, Version,
};
use crate::text::action_text::write_instructions;
use crate::text::flow::{FLAGS, group_text, match_and_priority};
use crate::text::match_text;
use std::fmt::Write as _;

const NS_PER_MS: u32 = 1_000_000;

pub(super) fn flow_mod(flow: &FlowMod, show: PrintContext) -> String {
    let command = match flow.command {
        FlowCommand::Add => "ADD",
        FlowCommand::Modify => "MOD",
        FlowCommand::ModifyStrict => "MOD_STRICT",
        FlowCommand::Delete => "DEL",
        FlowCommand::DeleteStrict => "DEL_STRICT",
    };
    let mut text = format!(" {command}");
    // 1.0's flow-mods carry no table.
    if flow.table != TableId(0) && show.version != Version::V10 {
        let _ = write!(text, " table:{}", flow.table.0);
    }
    let matching = match_and_priority(&flow.matching, flow.priority, show.version);
    let _ = write!(text, " {matching}{}", if matching.is_empty() { "" } else { " " });
    text.push_str(&settings(flow));
    let _ = write!(text, "actions={}", write_instructions(&flow.instructions, show.version));
    text
}

/// Prints each setting that differs from its default, followed by a space.
fn settings(flow: &FlowMod) -> String {
    let mut text = String::new();
    match (flow.cookie, flow.cookie_mask) {
        (0 | u64::MAX, 0) => {}
        // An add sets the cookie regardless of the mask.
        (cookie, mask) if mask == 0 || flow.command == FlowCommand::Add => text = format!("cookie:{cookie:#x} "),
        (cookie, mask) => text = format!("cookie:{cookie:#x}/{mask:#x} "),
    }
    for (name, value) in [("idle", flow.idle_timeout), ("hard", flow.hard_timeout)] {
        if value != 0 {
            let _ = write!(text, "{name}:{value} ");
        }
    }
    if flow.importance != 0 {
        let _ = write!(text, "importance:{} ", flow.importance);
    }
    if let Some(buffer) = flow.buffer_id {
        let _ = write!(text, "buf:{:#x} ", buffer.0);
    }
    if flow.out_port != PortNo::ANY {
        let _ = write!(text, "out_port:{} ", flow.out_port);
    }
    if flow.out_group != GroupId::ANY {
        let _ = write!(text, "out_group:{} ", group_text(flow.out_group));
    }
    text + &flags(flow.flags)
}

fn flags(flags: FlowFlags) -> String {
    let set = FLAGS.into_iter().filter(|(_, flag)| flags.contains(*flag));
    set.fold(String::new(), |text, (word, _)| text + word + " ")
}

pub(super) const fn reason_name(reason: FlowRemovedReason) -> &'static str {
    match reason {
        FlowRemovedReason::IdleTimeout => "idle",
        FlowRemovedReason::HardTimeout => "hard",
        FlowRemovedReason::Delete => "delete",
        FlowRemovedReason::GroupDelete => "group_delete",
        FlowRemovedReason::MeterDelete => "meter_delete",
        FlowRemovedReason::Eviction => "eviction",
    }
}

pub(super) fn removed(removed: &FlowRemoved, show: PrintContext) -> String {
    let reason = reason_name(removed.reason);
    let mut text =
        format!(" {} reason={reason}", match_and_priority(&removed.matching, removed.priority, show.version));
    if removed.table != TableId::ALL && show.version != Version::V10 {
        let _ = write!(text, " table_id={}", removed.table.0);
    }
    if removed.cookie != 0 {
        let _ = write!(text, " cookie:{:#x}", removed.cookie);
    }
    let lived = duration(removed.duration_sec, removed.duration_nsec);
    let _ = write!(text, " duration{lived} idle{}", removed.idle_timeout);
    if removed.hard_timeout != 0 {
        let _ = write!(text, " hard{}", removed.hard_timeout);
    }
    let _ = write!(text, " pkts{} bytes{}", removed.packet_count, removed.byte_count);
    text
}

pub(super) fn request(request: &FlowRequest, show: PrintContext) -> String {
    let mut text = String::new();
    if request.table != TableId::ALL {
        let _ = write!(text, " table={}", request.table.0);
    }
    if request.out_port != PortNo::ANY {
        let _ = write!(text, " out_port={}", request.out_port);
    }
    if request.out_group != GroupId::ANY {
        let _ = write!(text, " out_group={}", group_text(request.out_group));
    }
    if request.cookie_mask != 0 {
        let _ = write!(text, " cookie={:#x}/{:#x}", request.cookie, request.cookie_mask);
    }
    let _ = write!(text, " {}", match_text::write(&request.matching, show.version));
    text
}

/// Prints one line of flow statistics, as `ovs-ofctl dump-flows` does.
pub(super) fn stats(stats: &FlowStats, show: PrintContext) -> String {
    format!(" {}", entry(stats, stats.duration_nsec, show.version))
}

/// Prints a flow entry and its counters on one line, as `ovs-ofctl dump-flows` does, without the leading space. Times
/// are in whole milliseconds, as those of Open vSwitch are: more digits tell people nothing.
pub fn format_stats(stats: &FlowStats, version: Version) -> String {
    entry(stats, stats.duration_nsec / NS_PER_MS * NS_PER_MS, version)
}

fn entry(stats: &FlowStats, duration_nsec: u32, version: Version) -> String {
    let lived = duration(stats.duration_sec, duration_nsec);
    let mut text = format!("cookie={:#x}, duration={lived}, table={}, ", stats.cookie, stats.table.0);
    let _ = write!(text, "n_packets={}, n_bytes={}, ", stats.packet_count, stats.byte_count);
    for (name, value) in [("idle_timeout", stats.idle_timeout), ("hard_timeout", stats.hard_timeout)] {
        if value != 0 {
            let _ = write!(text, "{name}={value}, ");
        }
    }
    text.push_str(&flags(stats.flags));
    if stats.importance != 0 {
        let _ = write!(text, "importance={}, ", stats.importance);
    }
    let matching = match_and_priority(&stats.matching, stats.priority, version);
    let _ = write!(text, "{matching}{}", if matching.is_empty() { "" } else { " " });
    let _ = write!(text, "actions={}", write_instructions(&stats.instructions, version));
    text
}

pub(super) fn aggregate(stats: &AggregateStats) -> String {
    format!(" packet_count={} byte_count={} flow_count={}", stats.packet_count, stats.byte_count, stats.flow_count)
}
