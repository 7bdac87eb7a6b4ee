//! Replies with statistics over tables of any size, in parts of a bounded number of flow entries or groups.
//!
//! A walk visits the places of entries in order, and an entry keeps its place as long as it exists. So an entry that
//! exists from the walk's start to its end is visited exactly once, whatever changes in between. Groups have places,
//! too.
use crate::entry_filter::EntryFilter;
use crate::group::GroupWalk;
use crate::shape::EntryId;
use crate::table::{EthTypeReading, FlowEntry};
use crate::{ChannelId, Datapath, DatapathOutput};
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::multipart::{AggregateStats, FlowRequest, FlowStats, MultipartReply, ReplyBody, RequestBody};
use weir_openflow::model::{Body, ErrorType, Message, TableId};
use weir_openflow::{Version, codec};
use weir_units::Instant;

/// Position of a walk over the flow entries that a request selects; see [`Datapath::walk_flows`].
#[derive(Debug)]
pub struct FlowWalk {
    filter: EntryFilter,
    table: usize,
    place: usize,
}

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
        self.walk_of(asked, EthTypeReading::BehindAllTags)
    }

    /// Begins a walk; `reading` is how the request's message reads a match on the EtherType.
    fn walk_of(&self, asked: &FlowRequest, reading: EthTypeReading) -> Result<FlowWalk, ErrorType> {
        if asked.table != TableId::ALL && !self.has_table(asked.table) {
            return Err(BadRequest::BadTableId.into());
        }
        Ok(FlowWalk { filter: EntryFilter::of_request(asked, reading)?, table: 0, place: 0 })
    }

    /// Continues a walk over at most `most` places and appends the entries found to `found`. Returns true if places
    /// remain.
    pub fn walk_flows(&self, now: Instant, walk: &mut FlowWalk, most: usize, found: &mut Vec<FlowStats>) -> bool {
        self.flow_stats(now, Version::V13, walk, most, found)
    }

    /// Continues a walk like [`Datapath::walk_flows`], with the entries described as channels of `version` see them.
    fn flow_stats(
        &self,
        now: Instant,
        version: Version,
        walk: &mut FlowWalk,
        most: usize,
        found: &mut Vec<FlowStats>,
    ) -> bool {
        let tables = &self.tables;
        self.walk(walk, most, |table, id, entry| {
            found.push(entry.stats(now, version, table, tables[usize::from(table)].counter_of(id)))
        })
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
        let walk = |asked| self.walk_of(asked, EthTypeReading::of(version, is_nicira));
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
                let more = self.flow_stats(now, reply.version, walk, most, &mut found);
                (if is_nicira { ReplyBody::NxFlow(found) } else { ReplyBody::Flow(found) }, more)
            }
            MultipartWalk::Counters(walk) => {
                let (mut found, tables) = (Vec::with_capacity(most), &self.tables);
                let more = self.walk(walk, most, |table, id, entry| {
                    found.push(entry.counters(now, table, tables[usize::from(table)].counter_of(id)));
                });
                (ReplyBody::FlowCounters(found), more)
            }
            MultipartWalk::Sum(walk, sum) => {
                let tables = &self.tables;
                let more = self.walk(walk, most, |table, id, _| {
                    let counter = tables[usize::from(table)].counter_of(id);
                    sum.packet_count += counter.packets;
                    sum.byte_count += counter.bytes;
                    sum.flow_count += 1;
                });
                // The sum is sent in one message at the end.
                let whole = if is_nicira { ReplyBody::NxAggregate(*sum) } else { ReplyBody::Aggregate(*sum) };
                (if more { ReplyBody::Flow(Vec::new()) } else { whole }, more)
            }
            MultipartWalk::GroupStats(walk) => {
                let (groups, more) = self.group_stats(now, walk, most);
                (ReplyBody::Group(groups), more)
            }
            MultipartWalk::GroupDescs(walk) => {
                let (groups, more) = self.groups.descs(walk, most);
                (ReplyBody::GroupDesc(groups), more)
            }
        }
    }

    fn walk(&self, walk: &mut FlowWalk, most: usize, mut meet: impl FnMut(u8, EntryId, &FlowEntry)) -> bool {
        let mut left = most;
        for (number, table) in (0_u8..).zip(&self.tables).skip(walk.table) {
            if walk.filter.is_about(number) {
                let places = table.places(walk.place, left);
                let lets = |id, entry| walk.filter.lets(entry, || table.words_of(id, entry));
                for (id, entry) in places.filter(|(id, entry)| lets(*id, entry)) {
                    meet(number, id, entry);
                }
                // The table may have shrunk since the last part.
                let end = table.n_places().min(walk.place + left);
                left -= end.saturating_sub(walk.place);
                walk.place = end;
                if end < table.n_places() {
                    return true;
                }
            }
            (walk.table, walk.place) = (walk.table + 1, 0);
        }
        false
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
