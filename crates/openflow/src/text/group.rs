//! Parses group-mods, such as `group_id=1,type=select,bucket=weight:2,actions=output:1,bucket=actions=output:2`.
use super::action::ActionListParser;
use super::scan::{KeyValueItem, KeyValueScanner};
use super::{ParseError, check_length, field_value, flow, number};
use crate::model::group::{Bucket, BucketId, GroupCommand, GroupId, GroupKind, GroupMod};
use crate::model::property::RawProperty;
use std::ops::Range;

/// Keys before the buckets.
const SETTINGS: [&str; 4] = ["group_id", "type", "command_bucket_id", PROPERTY];
/// Key of a 1.5 property of a group or bucket.
const PROPERTY: &str = "property";

/// Parses a group-mod with command `command`.
///
/// The settings come first: `group_id` (a number; in deletes also `all`, which is the default there), `type` (`all`,
/// `select`, `indirect`, `ff`) and, for inserting and removing buckets, `command_bucket_id` (a number, `first`,
/// `last`, `all`). Each bucket follows after `bucket=`: `bucket_id`, `weight` (default 1 in select groups, otherwise
/// 0), `watch_port`, `watch_group`, and actions with or without `actions=`. Groups and buckets may have 1.5
/// properties: `property(TYPE,HEX)`.
///
/// # Errors
/// The position of the first error, what was found there and what was expected.
///
/// ```
/// use weir_openflow::model::group::{GroupCommand, GroupKind};
/// use weir_openflow::text;
/// let group = text::parse_group("group_id=1,type=ff,bucket=watch_port:2,output:2", GroupCommand::Add).unwrap();
/// assert_eq!((group.kind, group.buckets.len()), (GroupKind::FastFailover, 1));
/// let error = text::parse_group("group_id=1,type=selct", GroupCommand::Add).unwrap_err();
/// assert_eq!(error.to_string(), "column 17: found `selct`, expected a type of group; did you mean `select`?");
/// ```
pub fn parse_group(text: &str, command: GroupCommand) -> Result<GroupMod, ParseError> {
    check_length(text)?;
    let starts = bucket_starts(text);
    let head = &text[..starts.first().map_or(text.len(), |start| start.start)];
    let mut group = GroupMod {
        command,
        kind: GroupKind::All,
        group: GroupId::ALL,
        command_bucket: BucketId::ALL,
        buckets: Vec::new(),
        properties: Vec::new(),
    };
    let seen = read_head(head, &mut group)?;
    if command != GroupCommand::Delete && !seen.contains(&"group_id") {
        return Err(ParseError::new(head.len(), "", "group_id=NUMBER"));
    }
    if matches!(command, GroupCommand::Add | GroupCommand::Modify) && !seen.contains(&"type") {
        return Err(ParseError::new(head.len(), "", "type=all, type=select, type=indirect or type=ff"));
    }
    if matches!(command, GroupCommand::Delete | GroupCommand::RemoveBucket)
        && let Some(first) = starts.first()
    {
        return Err(ParseError::new(first.start, "bucket", "no buckets: what goes is named before them"));
    }
    let ends = starts.iter().skip(1).map(|start| start.start).chain([text.len()]);
    for (place, (start, end)) in (0..).zip(starts.iter().zip(ends)) {
        group.buckets.push(read_bucket(&text[start.end..end], start.end, BucketId(place), group.kind)?);
    }
    Ok(group)
}

/// Returns the byte range of each `bucket=` in the text.
fn bucket_starts(text: &str) -> Vec<Range<usize>> {
    const KEY: &str = "bucket";
    let found = text.match_indices(KEY).filter(|(at, _)| {
        let is_start = text[..*at].chars().next_back().is_none_or(|c| c == ',' || c.is_whitespace());
        is_start && text[at + KEY.len()..].starts_with(['=', ':'])
    });
    found.map(|(at, _)| at..at + KEY.len() + 1).collect()
}

/// Parses the settings before the buckets into `group`. Returns the keys found.
fn read_head<'a>(head: &'a str, group: &mut GroupMod) -> Result<Vec<&'a str>, ParseError> {
    let mut scanner = KeyValueScanner::new(head, 0);
    let mut seen = Vec::new();
    while let Some(item) = scanner.next()? {
        if seen.contains(&item.key) && item.key != PROPERTY {
            return Err(ParseError::new(item.at, item.key, "each setting at most once"));
        }
        seen.push(item.key);
        match item.key {
            "group_id" => group.group = group_id(&item, group.command)?,
            "type" => group.kind = kind(&item)?,
            "command_bucket_id" => group.command_bucket = command_bucket(&item)?,
            PROPERTY => group.properties.push(property(&item)?),
            key => {
                let known = SETTINGS.into_iter().chain(["bucket"]);
                return Err(ParseError::unknown(item.at, key, "a setting of a group, or its buckets", known));
            }
        }
    }
    Ok(seen)
}

fn group_id(item: &KeyValueItem<'_>, command: GroupCommand) -> Result<GroupId, ParseError> {
    let expected = format!("a group number from 0 to {}", GroupId::MAX.0);
    let value = item.value(&expected)?;
    if command == GroupCommand::Delete && value.eq_ignore_ascii_case("all") {
        return Ok(GroupId::ALL);
    }
    let number = number::u32(value).ok().map(GroupId).filter(|number| *number <= GroupId::MAX);
    number.ok_or_else(|| item.wrong(expected))
}

/// Parses `(TYPE,HEXADECIMAL DIGITS)`: a property.
fn property(item: &KeyValueItem<'_>) -> Result<RawProperty, ParseError> {
    let expected = "a property's type and content, as in property(0xffff,00ff)";
    let (kind, data) = item.value(expected)?.split_once(',').ok_or_else(|| item.wrong(expected))?;
    let kind = number::u16(kind).map_err(|_| item.wrong(expected))?;
    Ok(RawProperty { kind, data: number::hex_bytes(data).map_err(|_| item.wrong(expected))?.into() })
}

fn kind(item: &KeyValueItem<'_>) -> Result<GroupKind, ParseError> {
    const EXPECTED: &str = "a type of group";
    match item.value(EXPECTED)? {
        "all" => Ok(GroupKind::All),
        "select" => Ok(GroupKind::Select),
        "indirect" => Ok(GroupKind::Indirect),
        "ff" | "fast_failover" => Ok(GroupKind::FastFailover),
        value => Err(ParseError::unknown(item.value_at, value, EXPECTED, ["all", "select", "indirect", "ff"])),
    }
}

fn command_bucket(item: &KeyValueItem<'_>) -> Result<BucketId, ParseError> {
    let expected = "a bucket's number, first, last or all";
    match item.value(expected)? {
        "first" => Ok(BucketId::FIRST),
        "last" => Ok(BucketId::LAST),
        "all" => Ok(BucketId::ALL),
        _ => bucket_id(item, expected),
    }
}

fn bucket_id(item: &KeyValueItem<'_>, expected: &str) -> Result<BucketId, ParseError> {
    let number = number::u32(item.value(expected)?).ok().map(BucketId).filter(|number| *number <= BucketId::MAX);
    number.ok_or_else(|| item.wrong(expected))
}

/// Parses one bucket. `base` is the offset of `text` in the whole text, `place` the bucket's default number, `kind`
/// the type of the group.
fn read_bucket(text: &str, base: usize, place: BucketId, kind: GroupKind) -> Result<Bucket, ParseError> {
    let mut bucket = Bucket { weight: kind.default_weight(), ..Bucket::new(place, Vec::new()) };
    let mut list = ActionListParser::default();
    let mut scanner = KeyValueScanner::new(text, base);
    while let Some(item) = scanner.next()? {
        let wrong = |expected: String| item.wrong(expected);
        match item.key {
            "bucket_id" => bucket.id = bucket_id(&item, "a bucket's number")?,
            "weight" => bucket.weight = number::u16(item.value("a weight from 0 to 65535")?).map_err(wrong)?,
            "watch_port" => {
                bucket.watch_port = field_value::port(item.value("a port")?).map_err(wrong)?;
            }
            "watch_group" => {
                bucket.watch_group = flow::group(item.value("a group number")?).map_err(wrong)?;
            }
            PROPERTY => bucket.properties.push(property(&item)?),
            // Actions follow: continue after the key.
            "actions" | "action" if item.value.is_some() => {
                scanner = KeyValueScanner::new(&text[item.value_at - base..], item.value_at);
            }
            _ => list.add(&item)?,
        }
    }
    bucket.actions = list.finish()?;
    Ok(bucket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::group::GroupDesc;
    use crate::model::{Action, PortNo};

    fn read(text: &str) -> GroupMod {
        parse_group(text, GroupCommand::Add).unwrap()
    }

    #[test]
    fn buckets_have_settings_and_actions_in_any_order() {
        let text = "group_id=7, type=select, bucket=weight:3,watch_port:1,actions=push_vlan:0x8100,output:1, bucket=output:2,weight=4 \
                    bucket:bucket_id=9,watch_group:5,actions=drop,bucket=";
        let group = read(text);
        assert_eq!((group.group, group.kind, group.command_bucket), (GroupId(7), GroupKind::Select, BucketId::ALL));
        let output = |port| Action::output(PortNo(port));
        let expected = [
            Bucket {
                weight: 3,
                watch_port: PortNo(1),
                ..Bucket::new(BucketId(0), vec![Action::PushVlan(0x8100), output(1)])
            },
            Bucket { weight: 4, ..Bucket::new(BucketId(1), vec![output(2)]) },
            Bucket { weight: 1, watch_group: GroupId(5), ..Bucket::new(BucketId(9), vec![]) },
            Bucket { weight: 1, ..Bucket::new(BucketId(3), vec![]) },
        ];
        assert_eq!(group.buckets, expected);
        assert_eq!(read("group_id=1,type=fast_failover").kind, GroupKind::FastFailover);
    }

    #[test]
    fn deletes_and_bucket_commands() {
        let delete = |text| parse_group(text, GroupCommand::Delete).unwrap().group;
        assert_eq!(
            [delete(""), delete("group_id=all"), delete("group_id=3")],
            [GroupId::ALL, GroupId::ALL, GroupId(3)]
        );
        let insert =
            parse_group("group_id=3,command_bucket_id=last,bucket=bucket_id:4,output:1", GroupCommand::InsertBucket);
        let insert = insert.unwrap();
        assert_eq!((insert.command_bucket, insert.buckets[0].id), (BucketId::LAST, BucketId(4)));
        let remove = parse_group("group_id=3,command_bucket_id=4", GroupCommand::RemoveBucket).unwrap();
        assert_eq!(remove.command_bucket, BucketId(4));
    }

    #[test]
    fn errors_say_where_and_what() {
        let error = |text, command| parse_group(text, command).unwrap_err().to_string();
        let add = |text| error(text, GroupCommand::Add);
        assert_eq!(add("type=all"), "column 9: found nothing, expected group_id=NUMBER");
        assert_eq!(
            add("group_id=1,bucket=output:1"),
            "column 12: found nothing, expected type=all, type=select, type=indirect or type=ff"
        );
        assert_eq!(
            add("group_id=all,type=all"),
            "column 10: found `all`, expected a group number from 0 to 4294967040"
        );
        assert_eq!(add("group=1,type=all"), "column 1: found `group`, expected a setting of a group, or its buckets");
        assert_eq!(
            add("group_id=1,type=all,bucket=weight:70000"),
            "column 35: found `70000`, expected a number from 0 to 65535, decimal or hexadecimal as 0x1f"
        );
        assert_eq!(
            add("group_id=1,type=all,bucket=actions=ouput:1"),
            "column 36: found `ouput`, expected an action or instruction; did you mean `output`?"
        );
        assert_eq!(
            error("group_id=1,bucket=output:1", GroupCommand::Delete),
            "column 12: found `bucket`, expected no buckets: what goes is named before them"
        );
    }

    #[test]
    fn what_is_written_is_read_back() {
        for text in [
            "group_id=0,type=all",
            "group_id=1,type=all,bucket=actions=output:1,bucket=actions=drop",
            "group_id=2,type=select,bucket=actions=output:1,bucket=weight:0,actions=output:2,bucket=weight:9,actions=output:3",
            "group_id=3,type=indirect,bucket=actions=set_field:5->tcp_dst,group:1",
            "group_id=4294967040,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_group:3,actions=group:3",
        ] {
            let read = read(text);
            let desc = GroupDesc { kind: read.kind, group: read.group, buckets: read.buckets, properties: vec![] };
            assert_eq!(crate::text::format_group(&desc), text);
        }
    }
}
