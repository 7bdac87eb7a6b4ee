//! Flow statistics over tables of any size, a bounded number of entries at a time.
//!
//! A walk goes through the places of entries in order, and an entry keeps its place as long as it is there: one that is
//! there from the walk's start to its end is met exactly once, whatever changes in between.
use crate::flow_mod::Filter;
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

/// The answer to a request for flow or aggregate statistics, given in parts; see [`Datapath::long_reply`].
#[derive(Debug)]
pub struct LongReply {
    channel: ChannelId,
    version: Version,
    xid: u32,
    walk: FlowWalk,
    /// The sum so far, if that is what was asked for.
    sum: Option<AggregateStats>,
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
        let counters = &self.plane.counters;
        self.walk(walk, most, |table, id, entry| {
            found.push(entry.stats(now, table, counters[usize::from(table)].of(id)))
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
        let (asked, sum) = match body {
            RequestBody::Flow(asked) => (asked, None),
            RequestBody::Aggregate(asked) => (asked, Some(AggregateStats::default())),
            _ => return None,
        };
        Some(self.flow_walk(asked).map(|walk| LongReply { channel, version, xid, walk, sum }))
    }

    /// Goes on with an answer over at most `most` places of entries. Whether there is more.
    pub fn reply_on(&self, now: Instant, reply: &mut LongReply, most: usize, out: &mut Output) -> bool {
        let more = match &mut reply.sum {
            None => return self.flow_part(now, reply, most, out),
            Some(sum) => {
                let counters = &self.plane.counters;
                self.walk(&mut reply.walk, most, |table, id, _| {
                    let counter = counters[usize::from(table)].of(id);
                    sum.packet_count += counter.packets;
                    sum.byte_count += counter.bytes;
                    sum.flow_count += 1;
                })
            }
        };
        if let (false, Some(sum)) = (more, reply.sum) {
            reply.tell(MultipartReply { more: false, body: ReplyBody::Aggregate(sum) }, out);
        }
        more
    }

    fn flow_part(&self, now: Instant, reply: &mut LongReply, most: usize, out: &mut Output) -> bool {
        let mut found = Vec::new();
        let more = self.walk_flows(now, &mut reply.walk, most, &mut found);
        // The last part ends the reply, empty or not.
        if more && found.is_empty() {
            return true;
        }
        for part in codec::split_reply(ReplyBody::Flow(found), reply.version) {
            reply.tell(MultipartReply { more: part.more || more, ..part }, out);
        }
        more
    }

    fn walk(&self, walk: &mut FlowWalk, most: usize, mut meet: impl FnMut(u8, EntryId, &FlowEntry)) -> bool {
        let mut left = most;
        for (number, table) in (0_u8..).zip(&self.tables).skip(walk.table) {
            if walk.filter.is_about(number) {
                let places = table.places(walk.place, left);
                for (id, entry) in places.filter(|(_, entry)| walk.filter.lets(entry)) {
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

impl LongReply {
    fn tell(&self, part: MultipartReply, out: &mut Output) {
        out.messages.push((self.channel, Message { xid: self.xid, body: Body::MultipartReply(part) }));
    }
}
