//! A flow entry, and its statistics in messages.
use crate::program::EntryProgram;
use crate::table::{FlowCounter, PackedMatch};
use crate::timeouts::TimerId;
use crate::types::duration;
use std::sync::Arc;
use std::time::Duration;
use weir_openflow::Version;
use weir_openflow::model::flow::FlowFlags;
use weir_openflow::model::multipart::{FlowCounters, FlowCountersReason, FlowStats};
use weir_openflow::model::stats::{OxsExtraStats, OxsStats};
use weir_openflow::model::{FlowRemoved, FlowRemovedReason, TableId};
use weir_units::Instant;

/// A flow entry (OpenFlow 1.3.5, 5.2).
#[derive(Debug, Clone)]
pub(crate) struct FlowEntry {
    /// Match as the controller wrote it, for statistics. The classifier has the form that tables compare.
    pub(crate) matching: PackedMatch,
    /// Priority for lookups and strict commands.
    pub(crate) priority: u16,
    /// Priority in the flow-mod. Differs from `priority` for an entry of OpenFlow 1.0 without wildcards.
    pub(crate) asked_priority: u16,
    pub(crate) cookie: u64,
    /// Importance for eviction; the lowest is evicted first.
    pub(crate) importance: u16,
    pub(crate) flags: FlowFlags,
    pub(crate) idle_timeout: u16,
    pub(crate) hard_timeout: u16,
    /// Time at which the entry was added.
    pub(crate) created: Instant,
    /// Number that distinguishes this entry from earlier and later ones at its place, and orders entries by age.
    pub(crate) stamp: u64,
    /// Timer for its time-outs.
    pub(crate) timer: TimerId,
    /// Value of the stamp counter at the last change.
    pub(crate) changed: u64,
    pub(crate) program: Arc<EntryProgram>,
}

// Together with its row for lookups and counters, well below the limit of 300 bytes per connection entry.
const _: () = assert!(size_of::<FlowEntry>() == 88);

/// The flow-removed message of an entry, for channels of any version.
#[derive(Debug)]
pub(crate) struct FlowRemovedNotice {
    message: FlowRemoved,
    asked_priority: u16,
}

impl FlowRemovedNotice {
    /// Returns the reason for the removal (`OFPRR_*`).
    pub(crate) fn reason(&self) -> FlowRemovedReason {
        self.message.reason
    }

    /// Returns the message for a channel of a version; see [`FlowEntry::told_priority`].
    pub(crate) fn message(&self, version: Version) -> FlowRemoved {
        let priority = if version == Version::V10 { self.asked_priority } else { self.message.priority };
        FlowRemoved { priority, ..self.message.clone() }
    }
}

impl FlowEntry {
    /// Returns true if this is the table-miss entry of its table (OpenFlow 1.3.5, 5.4).
    pub(crate) fn is_table_miss(&self) -> bool {
        self.priority == 0 && self.matching.is_any()
    }

    /// Returns the time of the hard time-out, if there is one.
    pub(crate) fn hard_end(&self) -> Option<Instant> {
        (self.hard_timeout != 0).then(|| self.created + Duration::from_secs(self.hard_timeout.into()))
    }

    /// Returns the time of the next time-out and its reason, given the time of last use.
    pub(crate) fn deadline(&self, used: Instant) -> Option<(Instant, FlowRemovedReason)> {
        let hard = self.hard_end().map(|at| (at, FlowRemovedReason::HardTimeout));
        let idle_timeout = Duration::from_secs(self.idle_timeout.into());
        let idle = (self.idle_timeout != 0).then(|| (used + idle_timeout, FlowRemovedReason::IdleTimeout));
        match (hard, idle) {
            (Some(hard), Some(idle)) => Some(if idle.0 < hard.0 { idle } else { hard }),
            (hard, idle) => hard.or(idle),
        }
    }

    /// Returns the packet and byte counts for messages: all ones if the entry is not to be counted (OpenFlow 1.3.5,
    /// 7.3.5.2).
    pub(crate) fn reported(&self, counter: FlowCounter) -> (u64, u64) {
        let shown = |count, flag| if self.flags.contains(flag) { u64::MAX } else { count };
        (shown(counter.packets, FlowFlags::NO_PKT_COUNTS), shown(counter.bytes, FlowFlags::NO_BYT_COUNTS))
    }

    /// Returns the priority for messages to channels of a version: for 1.0 that of the flow-mod (OpenFlow 1.0.0,
    /// 5.4.3), for others the one that strict commands use.
    pub(crate) fn told_priority(&self, version: Version) -> u16 {
        if version == Version::V10 { self.asked_priority } else { self.priority }
    }

    /// Returns the flow-removed message.
    pub(crate) fn removed(
        &self,
        now: Instant,
        table: u8,
        reason: FlowRemovedReason,
        counter: FlowCounter,
    ) -> FlowRemovedNotice {
        let (packet_count, byte_count) = self.reported(counter);
        let (duration_sec, duration_nsec) = duration(now, self.created);
        let message = FlowRemoved {
            cookie: self.cookie,
            priority: self.priority,
            reason,
            table: TableId(table),
            duration_sec,
            duration_nsec,
            idle_timeout: self.idle_timeout,
            hard_timeout: self.hard_timeout,
            packet_count,
            byte_count,
            more: OxsExtraStats::default(),
            matching: self.matching.to_match(),
        };
        FlowRemovedNotice { message, asked_priority: self.asked_priority }
    }

    /// Returns the statistics without instructions (OpenFlow 1.5.1, 7.3.5.3). Counters that the entry does not keep
    /// are omitted.
    pub(crate) fn counters(&self, now: Instant, table: u8, counter: FlowCounter) -> FlowCounters {
        let kept = |count, flag| (!self.flags.contains(flag)).then_some(count);
        let stats = OxsStats {
            duration: Some(duration(now, self.created)),
            idle_time: Some(duration(now, counter.used)),
            packet_count: kept(counter.packets, FlowFlags::NO_PKT_COUNTS),
            byte_count: kept(counter.bytes, FlowFlags::NO_BYT_COUNTS),
            ..OxsStats::default()
        };
        let (priority, matching, reason) = (self.priority, self.matching.to_match(), FlowCountersReason::Request);
        FlowCounters { table: TableId(table), reason, priority, matching, stats }
    }

    /// Returns the statistics for channels of a version.
    pub(crate) fn stats(&self, now: Instant, version: Version, table: u8, counter: FlowCounter) -> FlowStats {
        let (packet_count, byte_count) = self.reported(counter);
        let (duration_sec, duration_nsec) = duration(now, self.created);
        FlowStats {
            table: TableId(table),
            duration_sec,
            duration_nsec,
            priority: self.told_priority(version),
            idle_timeout: self.idle_timeout,
            hard_timeout: self.hard_timeout,
            flags: self.flags,
            importance: self.importance,
            cookie: self.cookie,
            packet_count,
            byte_count,
            more: OxsExtraStats::default(),
            matching: self.matching.to_match(),
            instructions: self.program.instructions(),
        }
    }
}
