//! Finds the attributes in which listed entries and notices of two switches differ.
use crate::outcome::DecodedBody;
use std::collections::BTreeSet;
use weir_openflow::Body;
use weir_openflow::model::FlowRemoved;
use weir_openflow::model::multipart::FlowStats;

/// Returns the attributes in which two lists of entries differ; `entries` if they list different entries.
pub fn of_entries(ours: &[FlowStats], theirs: &[FlowStats]) -> BTreeSet<&'static str> {
    if ours.len() != theirs.len() {
        return BTreeSet::from(["entries"]);
    }
    ours.iter().zip(theirs).flat_map(|(ours, theirs)| of_entry(ours, theirs)).collect()
}

fn of_entry(ours: &FlowStats, theirs: &FlowStats) -> impl Iterator<Item = &'static str> {
    let compared = [
        ("entries", (ours.table, ours.priority) != (theirs.table, theirs.priority)),
        ("match", ours.matching != theirs.matching),
        ("instructions", ours.instructions != theirs.instructions),
        ("packets", ours.packet_count != theirs.packet_count),
        ("bytes", ours.byte_count != theirs.byte_count),
        ("flags", ours.flags != theirs.flags),
        ("cookie", ours.cookie != theirs.cookie),
        ("timeouts", (ours.idle_timeout, ours.hard_timeout) != (theirs.idle_timeout, theirs.hard_timeout)),
        ("importance", ours.importance != theirs.importance),
        ("duration", (ours.duration_sec, ours.duration_nsec) != (theirs.duration_sec, theirs.duration_nsec)),
        ("more", ours.more != theirs.more),
    ];
    compared.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name)
}

/// Returns the attributes in which two lists of notices differ; `notices` if they are about different entries or
/// anything else.
pub fn of_notices(ours: &[DecodedBody], theirs: &[DecodedBody]) -> BTreeSet<&'static str> {
    let of = |told: &[DecodedBody]| {
        let mut all: Vec<FlowRemoved> = told.iter().filter_map(removed).cloned().collect();
        all.sort_by_cached_key(|one| {
            (one.table, one.priority, one.cookie, format!("{:?}", one.matching), one.packet_count)
        });
        all
    };
    let (ours_removed, theirs_removed) = (of(ours), of(theirs));
    let is_whole = ours_removed.len() == ours.len() && theirs_removed.len() == theirs.len();
    if !is_whole || ours.len() != theirs.len() {
        return BTreeSet::from(["notices"]);
    }
    ours_removed.iter().zip(&theirs_removed).flat_map(|(ours, theirs)| of_notice(ours, theirs)).collect()
}

fn removed(told: &DecodedBody) -> Option<&FlowRemoved> {
    match told {
        Ok(Body::FlowRemoved(removed)) => Some(removed),
        _ => None,
    }
}

fn of_notice(ours: &FlowRemoved, theirs: &FlowRemoved) -> impl Iterator<Item = &'static str> {
    let compared = [
        ("notices", (ours.table, ours.priority, ours.cookie) != (theirs.table, theirs.priority, theirs.cookie)),
        ("match", ours.matching != theirs.matching),
        ("packets", ours.packet_count != theirs.packet_count),
        ("bytes", ours.byte_count != theirs.byte_count),
        ("reason", ours.reason != theirs.reason),
        ("timeouts", (ours.idle_timeout, ours.hard_timeout) != (theirs.idle_timeout, theirs.hard_timeout)),
        ("duration", (ours.duration_sec, ours.duration_nsec) != (theirs.duration_sec, theirs.duration_nsec)),
        ("more", ours.more != theirs.more),
    ];
    compared.into_iter().filter(|(_, differs)| *differs).map(|(name, _)| name)
}
