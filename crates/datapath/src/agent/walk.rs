//! Replies with statistics over tables of any size, in parts of a bounded number of flow entries or groups.
//!
//! [`FlowWalk`] and [`GroupWalk`] say what a reply misses and what not if entries change in between.
use crate::FlowWalk;
use crate::flow_tables::FlowTables;
use crate::group::{GroupCounters, GroupTable, GroupWalk};
use crate::table::EthTypeReading;
use crate::{ChannelId, DatapathOutput};
use weir_openflow::model::multipart::{AggregateStats, FlowStats, MultipartReply, ReplyBody, RequestBody};
use weir_openflow::model::{Body, ErrorType, Message};
use weir_openflow::{Version, codec};
use weir_units::Instant;

/// Position of a reply with flow entries or groups that is sent in parts; see [`crate::Datapath::long_reply`].
#[derive(Debug)]
pub struct LongReply {
    channel: ChannelId,
    version: Version,
    xid: u32,
    asked: MultipartWalk,
    /// True for replies to Nicira's requests.
    is_nicira: bool,
    /// Memory for the entries of a part, empty between parts.
    found: Vec<FlowStats>,
    /// Part that is sent when it is known whether another follows.
    held: Option<ReplyBody>,
    /// True if the held part is the last.
    has_ended: bool,
}

/// Progress made by [`crate::Datapath::encode_on`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyProgress {
    /// Number of messages encoded.
    pub messages: usize,
    /// True if parts remain.
    pub more: bool,
}

/// The kind of request, and the walk's position.
#[derive(Debug)]
enum MultipartWalk {
    Flows(FlowWalk),
    /// Flow entries without instructions, as 1.5 requests them.
    Counters(FlowWalk),
    /// Aggregate statistics, with the sum so far.
    Sum(FlowWalk, AggregateStats),
    GroupStats(GroupWalk),
    GroupDescs(GroupWalk),
}

fn is_empty(part: &ReplyBody) -> bool {
    match part {
        ReplyBody::Flow(entries) | ReplyBody::NxFlow(entries) => entries.is_empty(),
        ReplyBody::FlowCounters(entries) => entries.is_empty(),
        ReplyBody::Group(groups) => groups.is_empty(),
        ReplyBody::GroupDesc(groups) => groups.is_empty(),
        _ => false,
    }
}

/// The parts of a datapath that long replies describe.
#[derive(Clone, Copy)]
pub(crate) struct ReplySource<'a> {
    pub(crate) tables: &'a FlowTables,
    pub(crate) groups: &'a GroupTable,
    pub(crate) counters: &'a GroupCounters,
}

impl LongReply {
    /// Begins a reply. Returns `None` for requests whose reply is short.
    pub(crate) fn begin(
        tables: &FlowTables,
        channel: ChannelId,
        version: Version,
        xid: u32,
        body: &RequestBody,
    ) -> Option<Result<LongReply, ErrorType>> {
        let is_nicira = matches!(body, RequestBody::NxFlow(_) | RequestBody::NxAggregate(_));
        let walk = |asked| tables.flow_walk(asked, EthTypeReading::of(version, is_nicira));
        let asked = match body {
            RequestBody::Flow(asked) | RequestBody::NxFlow(asked) => walk(asked).map(MultipartWalk::Flows),
            RequestBody::Aggregate(asked) | RequestBody::NxAggregate(asked) => {
                walk(asked).map(|walk| MultipartWalk::Sum(walk, AggregateStats::default()))
            }
            RequestBody::FlowCounters(asked) => walk(asked).map(MultipartWalk::Counters),
            RequestBody::Group(wanted) => Ok(MultipartWalk::GroupStats(GroupWalk::new(*wanted))),
            RequestBody::GroupDesc(wanted) => Ok(MultipartWalk::GroupDescs(GroupWalk::new(*wanted))),
            _ => return None,
        };
        Some(asked.map(|asked| LongReply {
            channel,
            version,
            xid,
            asked,
            is_nicira,
            found: Vec::new(),
            held: None,
            has_ended: false,
        }))
    }

    /// Continues the reply over at most `most` places of entries, or about as many buckets of groups, and appends its
    /// messages to `out`. Returns true if parts remain.
    pub(crate) fn go_on(
        &mut self,
        source: ReplySource<'_>,
        now: Instant,
        most: usize,
        out: &mut DatapathOutput,
    ) -> bool {
        let (Some(part), more) = self.next(source, now, most) else { return true };
        for part in codec::split_reply(part, self.version) {
            let message = self.message(MultipartReply { more: part.more || more, ..part });
            out.messages.push((self.channel, message));
        }
        more
    }

    /// Continues the reply like [`LongReply::go_on`], but appends the encoded messages to `bytes`.
    pub(crate) fn encode(
        &mut self,
        source: ReplySource<'_>,
        now: Instant,
        most: usize,
        bytes: &mut Vec<u8>,
    ) -> ReplyProgress {
        let (Some(part), more) = self.next(source, now, most) else {
            return ReplyProgress { messages: 0, more: true };
        };
        // A part of few entries mostly fits into one message. The sizes of its entries are computed only if it does
        // not.
        let whole = self.message(MultipartReply { more, body: part });
        let is_encoded = codec::encode(&whole, self.version, bytes).is_ok();
        let Body::MultipartReply(MultipartReply { body, .. }) = whole.body else {
            return ReplyProgress { messages: 0, more };
        };
        if is_encoded {
            self.reuse(body);
            return ReplyProgress { messages: 1, more };
        }
        let parts = codec::split_reply(body, self.version).into_iter();
        let messages = parts.map(|part| self.message(MultipartReply { more: part.more || more, ..part }));
        // A part that the version cannot encode is left out. That happens only for a reply the version does not have
        // at all.
        let encoded = messages.filter(|message| codec::encode(message, self.version, bytes).is_ok());
        ReplyProgress { messages: encoded.count(), more }
    }

    /// Returns the next part to send, if it is known, and true if parts remain. A part waits until entries behind it
    /// are found or the walk ends: places may be empty, and the last part with entries must say that it is the last.
    /// Only a reply without entries is empty.
    fn next(&mut self, source: ReplySource<'_>, now: Instant, most: usize) -> (Option<ReplyBody>, bool) {
        if self.has_ended {
            return (self.held.take(), false);
        }
        let (part, more) = self.part(source, now, most);
        match (is_empty(&part), more) {
            (true, true) => {
                self.reuse(part);
                (None, true)
            }
            (true, false) => (Some(self.held.take().unwrap_or(part)), false),
            (false, false) if self.held.is_none() => (Some(part), false),
            (false, _) => {
                self.has_ended = !more;
                (self.held.replace(part), true)
            }
        }
    }

    /// Continues the walk. Returns what it found, and true if places remain.
    fn part(&mut self, source: ReplySource<'_>, now: Instant, most: usize) -> (ReplyBody, bool) {
        let is_nicira = self.is_nicira;
        match &mut self.asked {
            MultipartWalk::Flows(walk) => {
                let mut found = std::mem::take(&mut self.found);
                let more = source.tables.flow_stats(now, self.version, walk, most, &mut found);
                (if is_nicira { ReplyBody::NxFlow(found) } else { ReplyBody::Flow(found) }, more)
            }
            MultipartWalk::Counters(walk) => {
                let (found, more) = source.tables.flow_counters(now, walk, most);
                (ReplyBody::FlowCounters(found), more)
            }
            MultipartWalk::Sum(walk, sum) => {
                let more = source.tables.sum_flows(walk, most, sum);
                // The sum is sent in one message at the end.
                let whole = if is_nicira { ReplyBody::NxAggregate(*sum) } else { ReplyBody::Aggregate(*sum) };
                (if more { ReplyBody::Flow(Vec::new()) } else { whole }, more)
            }
            MultipartWalk::GroupStats(walk) => {
                let entries = |group| source.tables.entries_of_group(group);
                let (groups, more) = source.groups.stats(now, walk, most, source.counters, entries);
                (ReplyBody::Group(groups), more)
            }
            MultipartWalk::GroupDescs(walk) => {
                let (groups, more) = source.groups.descs(walk, most);
                (ReplyBody::GroupDesc(groups), more)
            }
        }
    }

    fn message(&self, part: MultipartReply) -> Message {
        Message { xid: self.xid, body: Body::MultipartReply(part) }
    }

    /// Reuses the memory of an encoded part for the next one.
    fn reuse(&mut self, part: ReplyBody) {
        if let ReplyBody::Flow(mut found) | ReplyBody::NxFlow(mut found) = part {
            found.clear();
            self.found = found;
        }
    }
}
