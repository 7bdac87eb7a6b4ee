//! Statistics over tables of any size, a bounded number of flow entries or groups at a time.
//!
//! A walk goes through the places of entries in order, and an entry keeps its place as long as it is there: one that is
//! there from the walk's start to its end is met exactly once, whatever changes in between. Groups have places as well.
use crate::flow_mod::Filter;
use crate::group::GroupWalk;
use crate::shape::EntryId;
use crate::table::{FlowEntry, TypeReading};
use crate::{ChannelId, Datapath, Output};
use weir_openflow::model::error::BadRequest;
use weir_openflow::model::multipart::{AggregateStats, FlowRequest, FlowStats, MultipartReply, ReplyBody, RequestBody};
use weir_openflow::model::{Body, ErrorType, Message, TableId};
use weir_openflow::{Version, codec};
use weir_units::Instant;

/// A way through the flow entries that a request is about; see [`Datapath::walk_flows`].
#[derive(Debug)]
pub struct FlowWalk {
    filter: Filter,
    table: usize,
    place: usize,
}

/// The answer to a request about flow entries or groups, given in parts; see [`Datapath::long_reply`].
#[derive(Debug)]
pub struct LongReply {
    channel: ChannelId,
    version: Version,
    xid: u32,
    asked: Asked,
    /// Whether it is one of Nicira's.
    is_nicira: bool,
    /// Where the entries of a part are gathered; empty in between.
    found: Vec<FlowStats>,
}

/// What [`Datapath::encode_on`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyProgress {
    /// Messages that it encoded.
    pub messages: usize,
    /// Whether there is more.
    pub more: bool,
}

/// What was asked for, and how far the answer is.
#[derive(Debug)]
enum Asked {
    Flows(FlowWalk),
    /// Without instructions, as 1.5 asks.
    Counters(FlowWalk),
    /// With the sum so far.
    Sum(FlowWalk, AggregateStats),
    GroupStats(GroupWalk),
    GroupDescs(GroupWalk),
}

impl Datapath {
    /// A walk through the flow entries that a request is about, at its start.
    ///
    /// # Errors
    /// As the agent answers: no such table, a wrong match.
    pub fn flow_walk(&self, asked: &FlowRequest) -> Result<FlowWalk, ErrorType> {
        self.walk_of(asked, TypeReading::BehindAllTags)
    }

    /// Begins a walk for a request whose match has the reading of the message that it came in.
    fn walk_of(&self, asked: &FlowRequest, reading: TypeReading) -> Result<FlowWalk, ErrorType> {
        if asked.table != TableId::ALL && !self.has_table(asked.table) {
            return Err(BadRequest::BadTableId.into());
        }
        Ok(FlowWalk { filter: Filter::of_request(asked, reading)?, table: 0, place: 0 })
    }

    /// Goes on with a walk over at most `most` places of entries; what is found goes to `found`. Whether there is more.
    pub fn walk_flows(&self, now: Instant, walk: &mut FlowWalk, most: usize, found: &mut Vec<FlowStats>) -> bool {
        self.flow_stats(now, Version::V13, walk, most, found)
    }

    /// The same, as channels of a version are told.
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

    /// The answer to a channel's message if it is one that may be long; it is then to be given by [`Datapath::reply_on`] or
    /// [`Datapath::encode_on`] until that is done, and the channel's later messages are to wait. Any other message is for [`Datapath::handle`].
    pub fn long_reply(&self, channel: ChannelId, message: &Message) -> Option<LongReply> {
        let version = self.plane.channels.version(channel)?;
        let Body::MultipartRequest(request) = &message.body else { return None };
        self.begin_reply(channel, version, message.xid, &request.body)?.ok()
    }

    /// The same, as the agent knows the message; none for other requests.
    pub(super) fn begin_reply(
        &self,
        channel: ChannelId,
        version: Version,
        xid: u32,
        body: &RequestBody,
    ) -> Option<Result<LongReply, ErrorType>> {
        let is_nicira = matches!(body, RequestBody::NxFlow(_) | RequestBody::NxAggregate(_));
        let walk = |asked| self.walk_of(asked, TypeReading::of(version, is_nicira));
        let asked = match body {
            RequestBody::Flow(asked) | RequestBody::NxFlow(asked) => walk(asked).map(Asked::Flows),
            RequestBody::Aggregate(asked) | RequestBody::NxAggregate(asked) => {
                walk(asked).map(|walk| Asked::Sum(walk, AggregateStats::default()))
            }
            RequestBody::FlowCounters(asked) => walk(asked).map(Asked::Counters),
            RequestBody::Group(wanted) => Ok(Asked::GroupStats(GroupWalk::new(*wanted))),
            RequestBody::GroupDesc(wanted) => Ok(Asked::GroupDescs(GroupWalk::new(*wanted))),
            _ => return None,
        };
        Some(asked.map(|asked| LongReply { channel, version, xid, asked, is_nicira, found: Vec::new() }))
    }

    /// Goes on with an answer over at most `most` places of entries, or about as many buckets of groups. Whether there is more.
    pub fn reply_on(&self, now: Instant, reply: &mut LongReply, most: usize, out: &mut Output) -> bool {
        let (part, more) = self.part(now, reply, most);
        // The last part ends the reply, empty or not.
        if more && is_empty(&part) {
            return true;
        }
        for part in codec::split_reply(part, reply.version) {
            let message = reply.message(MultipartReply { more: part.more || more, ..part });
            out.messages.push((reply.channel, message));
        }
        more
    }

    /// The same, encoded behind what `bytes` holds; says how many messages that are, too.
    pub fn encode_on(&self, now: Instant, reply: &mut LongReply, most: usize, bytes: &mut Vec<u8>) -> ReplyProgress {
        let (part, more) = self.part(now, reply, most);
        if more && is_empty(&part) {
            return ReplyProgress { messages: 0, more };
        }
        // A part of few entries mostly fits into a message: what each of them takes is asked only if not.
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
        // Of what the version cannot carry nothing is left, except of a reply that it does not have at all.
        let encoded = messages.filter(|message| codec::encode(message, reply.version, bytes).is_ok());
        ReplyProgress { messages: encoded.count(), more }
    }

    /// The next part of an answer, and whether there is more.
    fn part(&self, now: Instant, reply: &mut LongReply, most: usize) -> (ReplyBody, bool) {
        let is_nicira = reply.is_nicira;
        match &mut reply.asked {
            Asked::Flows(walk) => {
                let mut found = std::mem::take(&mut reply.found);
                let more = self.flow_stats(now, reply.version, walk, most, &mut found);
                (if is_nicira { ReplyBody::NxFlow(found) } else { ReplyBody::Flow(found) }, more)
            }
            Asked::Counters(walk) => {
                let (mut found, tables) = (Vec::with_capacity(most), &self.tables);
                let more = self.walk(walk, most, |table, id, entry| {
                    found.push(entry.counters(now, table, tables[usize::from(table)].counter_of(id)));
                });
                (ReplyBody::FlowCounters(found), more)
            }
            Asked::Sum(walk, sum) => {
                let tables = &self.tables;
                let more = self.walk(walk, most, |table, id, _| {
                    let counter = tables[usize::from(table)].counter_of(id);
                    sum.packet_count += counter.packets;
                    sum.byte_count += counter.bytes;
                    sum.flow_count += 1;
                });
                // One message has all of it, at the end.
                let whole = if is_nicira { ReplyBody::NxAggregate(*sum) } else { ReplyBody::Aggregate(*sum) };
                (if more { ReplyBody::Flow(Vec::new()) } else { whole }, more)
            }
            Asked::GroupStats(walk) => {
                let (groups, more) = self.group_stats(now, walk, most);
                (ReplyBody::Group(groups), more)
            }
            Asked::GroupDescs(walk) => {
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
                // Places may have gone since the last part.
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

    /// Keeps the memory of a part that has been encoded for the next one.
    fn reuse(&mut self, part: ReplyBody) {
        if let ReplyBody::Flow(mut found) | ReplyBody::NxFlow(mut found) = part {
            found.clear();
            self.found = found;
        }
    }
}
