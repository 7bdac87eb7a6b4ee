//! Replies with statistics over tables of any size, in parts of a bounded number of flow entries or groups.
//!
//! [`FlowWalk`] and [`GroupWalk`] say what a reply misses and what not if entries change in between.
use crate::FlowWalk;
use crate::group::GroupWalk;
use crate::table::EthTypeReading;
use crate::{ChannelId, Datapath, DatapathOutput};
use weir_openflow::model::multipart::{AggregateStats, FlowRequest, FlowStats, MultipartReply, ReplyBody, RequestBody};
use weir_openflow::model::{Body, ErrorType, Message};
use weir_openflow::{Version, codec};
use weir_units::Instant;

/// Position of a reply with flow entries or groups that is sent in parts; see [`Datapath::long_reply`].
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
}

/// Progress made by [`Datapath::encode_on`].
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

impl Datapath {
    /// Begins a walk over the flow entries that a request selects.
    ///
    /// # Errors
    /// The error to reply with: the table does not exist, or the match is invalid.
    pub fn flow_walk(&self, asked: &FlowRequest) -> Result<FlowWalk, ErrorType> {
        self.tables.flow_walk(asked, EthTypeReading::BehindAllTags)
    }

    /// Continues a walk over at most `most` places and appends the entries found to `found`. Returns true if places
    /// remain.
    pub fn walk_flows(&self, now: Instant, walk: &mut FlowWalk, most: usize, found: &mut Vec<FlowStats>) -> bool {
        self.tables.flow_stats(now, Version::V13, walk, most, found)
    }

    /// Begins the reply to a channel's message if the reply may be long; returns `None` for any other message. The
    /// caller must then call [`Datapath::reply_on`] or [`Datapath::encode_on`] until the reply is complete, and keep
    /// the channel's later messages waiting. Other messages go to [`Datapath::handle`].
    pub fn long_reply(&self, channel: ChannelId, message: &Message) -> Option<LongReply> {
        let version = self.plane.channels.version(channel)?;
        let Body::MultipartRequest(request) = &message.body else { return None };
        self.begin_reply(channel, version, message.xid, &request.body)?.ok()
    }

    /// Begins a reply like [`Datapath::long_reply`] for a decoded request. Returns `None` for requests whose reply is
    /// short.
    pub(super) fn begin_reply(
        &self,
        channel: ChannelId,
        version: Version,
        xid: u32,
        body: &RequestBody,
    ) -> Option<Result<LongReply, ErrorType>> {
        let is_nicira = matches!(body, RequestBody::NxFlow(_) | RequestBody::NxAggregate(_));
        let walk = |asked| self.tables.flow_walk(asked, EthTypeReading::of(version, is_nicira));
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
        Some(asked.map(|asked| LongReply { channel, version, xid, asked, is_nicira, found: Vec::new() }))
    }

    /// Continues a reply over at most `most` places of entries, or about as many buckets of groups, and appends its
    /// messages to `out`. Returns true if parts remain.
    pub fn reply_on(&self, now: Instant, reply: &mut LongReply, most: usize, out: &mut DatapathOutput) -> bool {
        let (part, more) = self.part(now, reply, most);
        // The last part ends the reply, even if it is empty.
        if more && is_empty(&part) {
            return true;
        }
        for part in codec::split_reply(part, reply.version) {
            let message = reply.message(MultipartReply { more: part.more || more, ..part });
            out.messages.push((reply.channel, message));
        }
        more
    }

    /// Continues a reply like [`Datapath::reply_on`], but appends the encoded messages to `bytes`.
    pub fn encode_on(&self, now: Instant, reply: &mut LongReply, most: usize, bytes: &mut Vec<u8>) -> ReplyProgress {
        let (part, more) = self.part(now, reply, most);
        if more && is_empty(&part) {
            return ReplyProgress { messages: 0, more };
        }
        // A part of few entries mostly fits into one message. The sizes of its entries are computed only if it does
        // not.
        let whole = reply.message(MultipartReply { more, body: part });
        let is_encoded = codec::encode(&whole, reply.version, bytes).is_ok();
        let Body::MultipartReply(MultipartReply { body, .. }) = whole.body else {
            return ReplyProgress { messages: 0, more };
        };
        if is_encoded {
            reply.reuse(body);
            return ReplyProgress { messages: 1, more };
        }
        let parts = codec::split_reply(body, reply.version).into_iter();
        let messages = parts.map(|part| reply.message(MultipartReply { more: part.more || more, ..part }));
        // A part that the version cannot encode is left out. That happens only for a reply the version does not have
        // at all.
        let encoded = messages.filter(|message| codec::encode(message, reply.version, bytes).is_ok());
        ReplyProgress { messages: encoded.count(), more }
    }

    /// Returns the next part of a reply, and true if parts remain.
    fn part(&self, now: Instant, reply: &mut LongReply, most: usize) -> (ReplyBody, bool) {
        let is_nicira = reply.is_nicira;
        match &mut reply.asked {
            MultipartWalk::Flows(walk) => {
                let mut found = std::mem::take(&mut reply.found);
                let more = self.tables.flow_stats(now, reply.version, walk, most, &mut found);
                (if is_nicira { ReplyBody::NxFlow(found) } else { ReplyBody::Flow(found) }, more)
            }
            MultipartWalk::Counters(walk) => {
                let (found, more) = self.tables.flow_counters(now, walk, most);
                (ReplyBody::FlowCounters(found), more)
            }
            MultipartWalk::Sum(walk, sum) => {
                let more = self.tables.sum_flows(walk, most, sum);
                // The sum is sent in one message at the end.
                let whole = if is_nicira { ReplyBody::NxAggregate(*sum) } else { ReplyBody::Aggregate(*sum) };
                (if more { ReplyBody::Flow(Vec::new()) } else { whole }, more)
            }
            MultipartWalk::GroupStats(walk) => {
                let entries = |group| self.tables.entries_of_group(group);
                let (groups, more) = self.groups.stats(now, walk, most, &self.plane.groups, entries);
                (ReplyBody::Group(groups), more)
            }
            MultipartWalk::GroupDescs(walk) => {
                let (groups, more) = self.groups.descs(walk, most);
                (ReplyBody::GroupDesc(groups), more)
            }
        }
    }
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

impl LongReply {
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
