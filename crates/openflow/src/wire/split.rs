//! Splits a multipart reply into parts that each fit a message.
use crate::codec::encode;
use crate::model::multipart::{MultipartReply, ReplyBody};
use crate::model::{Body, Message, Version};

/// Length of the largest message in bytes.
const MAX_BYTES: usize = 65_535;

/// Splits a multipart reply into as many messages as needed, at least one, in order. All but the last are marked as
/// followed by more.
///
/// Entries that the version cannot carry (in 1.0, a flow entry with a goto-table) are left out, because a partial
/// reply is more useful than none. If the version has no such reply, it is returned unchanged, and encoding then
/// fails.
pub fn split_reply(reply: ReplyBody, version: Version) -> Vec<MultipartReply> {
    match reply {
        ReplyBody::Flow(entries) => split(entries, version, ReplyBody::Flow),
        ReplyBody::NxFlow(entries) => split(entries, version, ReplyBody::NxFlow),
        ReplyBody::Table(entries) => split(entries, version, ReplyBody::Table),
        ReplyBody::PortStats(entries) => split(entries, version, ReplyBody::PortStats),
        ReplyBody::Queue(entries) => split(entries, version, ReplyBody::Queue),
        ReplyBody::Group(entries) => split(entries, version, ReplyBody::Group),
        ReplyBody::GroupDesc(entries) => split(entries, version, ReplyBody::GroupDesc),
        ReplyBody::Meter(entries) => split(entries, version, ReplyBody::Meter),
        ReplyBody::MeterConfig(entries) => split(entries, version, ReplyBody::MeterConfig),
        ReplyBody::TableFeatures(entries) => split(entries, version, ReplyBody::TableFeatures),
        ReplyBody::PortDesc(entries) => split(entries, version, ReplyBody::PortDesc),
        ReplyBody::TableDesc(entries) => split(entries, version, ReplyBody::TableDesc),
        ReplyBody::QueueDesc(entries) => split(entries, version, ReplyBody::QueueDesc),
        ReplyBody::FlowMonitor(entries) => split(entries, version, ReplyBody::FlowMonitor),
        ReplyBody::FlowCounters(entries) => split(entries, version, ReplyBody::FlowCounters),
        ReplyBody::ControllerStatus(entries) => split(entries, version, ReplyBody::ControllerStatus),
        single => vec![MultipartReply { more: false, body: single }],
    }
}

fn split<T: Clone>(entries: Vec<T>, version: Version, body: fn(Vec<T>) -> ReplyBody) -> Vec<MultipartReply> {
    let Some(empty) = size(body(Vec::new()), version) else {
        return vec![MultipartReply { more: false, body: body(entries) }];
    };
    let (mut replies, mut part, mut bytes) = (Vec::new(), Vec::new(), empty);
    for entry in entries {
        let Some(size) = size(body(vec![entry.clone()]), version) else { continue };
        let entry_bytes = size - empty;
        if bytes + entry_bytes > MAX_BYTES {
            replies.push(MultipartReply { more: true, body: body(std::mem::take(&mut part)) });
            bytes = empty;
        }
        bytes += entry_bytes;
        part.push(entry);
    }
    replies.push(MultipartReply { more: false, body: body(part) });
    replies
}

/// Returns the length in bytes of a message with this reply; `None` if the version cannot carry it.
fn size(body: ReplyBody, version: Version) -> Option<usize> {
    let reply = MultipartReply { more: false, body };
    let mut bytes = Vec::new();
    encode(&Message { xid: 0, body: Body::MultipartReply(reply) }, version, &mut bytes).ok()?;
    Some(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::flow::TableId;
    use crate::model::group::{GroupId, GroupStats};
    use crate::model::multipart::TableStats;

    fn table(id: u8) -> TableStats {
        TableStats {
            table: TableId(id),
            name: String::new(),
            wildcards: 0,
            max_entries: 0,
            active_count: 0,
            lookup_count: 0,
            matched_count: 0,
        }
    }

    #[test]
    fn parts_fit_and_keep_the_order() {
        let tables: Vec<_> = (0..=254).cycle().take(5000).map(table).collect();
        let replies = split_reply(ReplyBody::Table(tables.clone()), Version::V13);
        assert_eq!(replies.len(), 2);
        assert_eq!(replies.iter().map(|reply| reply.more).collect::<Vec<_>>(), [true, false]);
        let mut together = Vec::new();
        for reply in replies {
            assert!(size(reply.body.clone(), Version::V13).is_some());
            let ReplyBody::Table(part) = reply.body else { panic!("another kind of reply") };
            together.extend(part);
        }
        assert_eq!(together, tables);
    }

    #[test]
    fn nothing_is_one_part() {
        let replies = split_reply(ReplyBody::Flow(Vec::new()), Version::V10);
        assert_eq!(replies, [MultipartReply { more: false, body: ReplyBody::Flow(Vec::new()) }]);
    }

    #[test]
    fn a_reply_that_the_version_lacks_comes_back() {
        let stats = GroupStats {
            group: GroupId(1),
            ref_count: 0,
            packet_count: 0,
            byte_count: 0,
            duration_sec: 0,
            duration_nsec: 0,
            buckets: Vec::new(),
        };
        let replies = split_reply(ReplyBody::Group(vec![stats.clone()]), Version::V10);
        assert_eq!(replies, [MultipartReply { more: false, body: ReplyBody::Group(vec![stats]) }]);
    }
}
