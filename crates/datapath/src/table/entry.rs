//! A flow entry, and what packets count for it.
use crate::program::Program;
use crate::table::{FlowCounter, Written};
use crate::timeouts::TimerId;
use std::sync::Arc;
use std::time::Duration;
use weir_openflow::Version;
use weir_openflow::model::flow::FlowFlags;
use weir_openflow::model::multipart::{FlowCounters, FlowCountersReason, FlowStats};
use weir_openflow::model::stats::{MoreStats, Stats};
use weir_openflow::model::{FlowRemoved, FlowRemovedReason, TableId};
use weir_units::Instant;

/// A flow entry (OpenFlow 1.3.5, 5.2).
#[derive(Debug, Clone)]
pub(crate) struct FlowEntry {
    /// The match as the controller wrote it, for statistics; how tables compare it, the classifier knows.
    pub(crate) matching: Written,
    /// The priority that lookups and strict commands go by.
    pub(crate) priority: u16,
    /// The priority that its flow-mod had: another than `priority` for an entry of 1.0 without wildcards.
    pub(crate) asked_priority: u16,
    pub(crate) cookie: u64,
    /// What eviction goes by, lowest first.
    pub(crate) importance: u16,
    pub(crate) flags: FlowFlags,
    pub(crate) idle_timeout: u16,
    pub(crate) hard_timeout: u16,
    /// When it was added.
    pub(crate) created: Instant,
    /// Tells this entry from others that were or will be in its place, and which of two is older.
    pub(crate) stamp: u64,
    /// The timer that ends it.
    pub(crate) timer: TimerId,
    /// The stamp at its last change.
    pub(crate) changed: u64,
    pub(crate) program: Arc<Program>,
}

// With what is beside it for lookups and counting, well below the 300 bytes that an entry of a connection may cost.
const _: () = assert!(size_of::<FlowEntry>() == 88);

/// The message that an entry is gone, for channels of every version.
#[derive(Debug)]
pub(crate) struct Gone {
    message: FlowRemoved,
    asked_priority: u16,
}

impl Gone {
    /// `OFPRR_*`.
    pub(crate) fn reason(&self) -> FlowRemovedReason {
        self.message.reason
    }

    /// The message for a channel of a version; see [`FlowEntry::told_priority`].
    pub(crate) fn message(&self, version: Version) -> FlowRemoved {
        let priority = if version == Version::V10 { self.asked_priority } else { self.message.priority };
        FlowRemoved { priority, ..self.message.clone() }
    }
}

impl FlowEntry {
    /// Whether it is its table's table-miss entry (OpenFlow 1.3.5, 5.4).
    pub(crate) fn is_table_miss(&self) -> bool {
        self.priority == 0 && self.matching.is_any()
    }

    /// When it ends whatever packets come.
    pub(crate) fn hard_end(&self) -> Option<Instant> {
        (self.hard_timeout != 0).then(|| self.created + Duration::from_secs(self.hard_timeout.into()))
    }

    /// When it ends if no packet comes, and why.
    pub(crate) fn deadline(&self, used: Instant) -> Option<(Instant, FlowRemovedReason)> {
        let hard = self.hard_end().map(|at| (at, FlowRemovedReason::HardTimeout));
        let idle_timeout = Duration::from_secs(self.idle_timeout.into());
        let idle = (self.idle_timeout != 0).then(|| (used + idle_timeout, FlowRemovedReason::IdleTimeout));
        match (hard, idle) {
            (Some(hard), Some(idle)) => Some(if idle.0 < hard.0 { idle } else { hard }),
            (hard, idle) => hard.or(idle),
        }
    }

    /// Packets and bytes as they are reported: all ones where the entry is not to be counted (OpenFlow 1.3.5, 7.3.5.2).
    pub(crate) fn reported(&self, counter: FlowCounter) -> (u64, u64) {
        let shown = |count, flag| if self.flags.contains(flag) { u64::MAX } else { count };
        (shown(counter.packets, FlowFlags::NO_PKT_COUNTS), shown(counter.bytes, FlowFlags::NO_BYT_COUNTS))
    }

    /// The priority that channels of a version are told: 1.0's the one of the flow-mod (OpenFlow 1.0.0, 5.4.3), others
    /// the one that their strict commands find it by.
    pub(crate) fn told_priority(&self, version: Version) -> u16 {
        if version == Version::V10 { self.asked_priority } else { self.priority }
    }

    /// The message that says it is gone.
    pub(crate) fn removed(&self, now: Instant, table: u8, reason: FlowRemovedReason, counter: FlowCounter) -> Gone {
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
            more: MoreStats::default(),
            matching: self.matching.to_match(),
        };
        Gone { message, asked_priority: self.asked_priority }
    }

    /// Its statistics without what it does (OpenFlow 1.5.1, 7.3.5.3); what is not counted is not told.
    pub(crate) fn counters(&self, now: Instant, table: u8, counter: FlowCounter) -> FlowCounters {
        let kept = |count, flag| (!self.flags.contains(flag)).then_some(count);
        let stats = Stats {
            duration: Some(duration(now, self.created)),
            idle_time: Some(duration(now, counter.used)),
            packet_count: kept(counter.packets, FlowFlags::NO_PKT_COUNTS),
            byte_count: kept(counter.bytes, FlowFlags::NO_BYT_COUNTS),
            ..Stats::default()
        };
        let (priority, matching, reason) = (self.priority, self.matching.to_match(), FlowCountersReason::Request);
        FlowCounters { table: TableId(table), reason, priority, matching, stats }
    }

    /// Its statistics, as channels of a version are told.
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
            more: MoreStats::default(),
            matching: self.matching.to_match(),
            instructions: self.program.instructions(),
        }
    }
}

/// Whole seconds and remaining nanoseconds since `from`, as messages carry them.
pub(crate) fn duration(now: Instant, from: Instant) -> (u32, u32) {
    let span = now.since(from);
    (u32::try_from(span.as_secs()).unwrap_or(u32::MAX), span.subsec_nanos())
}
