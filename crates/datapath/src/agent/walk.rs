//! Statistics over tables of any size, a bounded number of flow entries or groups at a time.
//!
//! A walk goes through the places of entries in order, and an entry keeps its place as long as it is there: one that is
//! there from the walk's start to its end is met exactly once, whatever changes in between. Groups have places as well.
use crate::flow_mod::Filter;
use crate::group::GroupWalk;
use crate::shape::EntryId;
use crate::table::FlowEntry;
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
        Ok(FlowWalk { filter: self.filter(asked)?, table: 0, place: 0 })
    }

    /// Goes on with a walk over at most `most` places of entries; what is found goes to `found`. Whether there is more.
    pub fn walk_flows(&self, now: Instant, walk: &mut FlowWalk, most: usize, found: &mut Vec<FlowStats>) -> bool {
        let tables = &self.tables;
        self.walk(walk, most, |table, id, entry| {
            found.push(entry.stats(now, table, tables[usize::from(table)].counter_of(id)))
        })
    }

    /// The answer to a channel's message if it is one that may be long; it is then to be given by [`Datapath::reply_on`]
    /// until that is done, and the channel's later messages are to wait. Any other message is for [`Datapath::handle`].
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
        let asked = match body {
            RequestBody::Flow(asked) | RequestBody::NxFlow(asked) => self.flow_walk(asked).map(Asked::Flows),
            RequestBody::Aggregate(asked) | RequestBody::NxAggregate(asked) => {
                self.flow_walk(asked).map(|walk| Asked::Sum(walk, AggregateStats::default()))
            }
            RequestBody::FlowCounters(asked) => self.flow_walk(asked).map(Asked::Counters),
            RequestBody::Group(wanted) => Ok(Asked::GroupStats(GroupWalk::new(*wanted))),
            RequestBody::GroupDesc(wanted) => Ok(Asked::GroupDescs(GroupWalk::new(*wanted))),
            _ => return None,
        };
        Some(asked.map(|asked| LongReply { channel, version, xid, asked, is_nicira }))
    }

    /// Goes on with an answer over at most `most` places of entries, or about as many buckets of groups. Whether there is more.
    pub fn reply_on(&self, now: Instant, reply: &mut LongReply, most: usize, out: &mut Output) -> bool {
        let (part, more) = self.part(now, &mut reply.asked, most);
        // The last part ends the reply, empty or not.
        if more && is_empty(&part) {
            return true;
        }
        let part = match part {
            ReplyBody::Flow(entries) if reply.is_nicira => ReplyBody::NxFlow(entries),
            ReplyBody::Aggregate(sum) if reply.is_nicira => ReplyBody::NxAggregate(sum),
            part => part,
        };
        for part in codec::split_reply(part, reply.version) {
            reply.tell(MultipartReply { more: part.more || more, ..part }, out);
        }
        more
    }

    /// The next part of an answer, and whether there is more.
    fn part(&self, now: Instant, asked: &mut Asked, most: usize) -> (ReplyBody, bool) {
        match asked {
            Asked::Flows(walk) => {
                let mut found = Vec::with_capacity(most);
                let more = self.walk_flows(now, walk, most, &mut found);
                (ReplyBody::Flow(found), more)
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
                (if more { ReplyBody::Flow(Vec::new()) } else { ReplyBody::Aggregate(*sum) }, more)
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
                let end = table.n_places().min(walk.place + left);
                left -= end - walk.place;
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

impl Datapath {
    fn filter(&self, asked: &FlowRequest) -> Result<Filter, ErrorType> {
        if asked.table != TableId::ALL && !self.has_table(asked.table) {
            return Err(BadRequest::BadTableId.into());
        }
        Filter::of_request(asked)
    }
}

fn is_empty(part: &ReplyBody) -> bool {
    match part {
        ReplyBody::Flow(entries) => entries.is_empty(),
        ReplyBody::FlowCounters(entries) => entries.is_empty(),
        ReplyBody::Group(groups) => groups.is_empty(),
        ReplyBody::GroupDesc(groups) => groups.is_empty(),
        _ => false,
    }
}

impl LongReply {
    /// The version that its parts are to be encoded in.
    pub fn version(&self) -> Version {
        self.version
    }

    fn tell(&self, part: MultipartReply, out: &mut Output) {
        out.messages.push((self.channel, Message { xid: self.xid, body: Body::MultipartReply(part) }));
    }
}
