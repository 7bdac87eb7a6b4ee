//! Parses and prints flow-mods, such as `table=0,priority=10,ip,nw_dst=10.0.0.0/8,actions=output:2`.
use super::scan::{KeyValueItem, KeyValueScanner};
use super::{ParseError, action_text, check_length, field_value, instruction, match_text, matching, number};
use crate::model::{BufferId, FlowCommand, FlowFlags, FlowMod, GroupId, Match, PortNo, TableId, Version};
use std::fmt::Write as _;

/// Priority of a flow entry whose text has none.
pub const DEFAULT_PRIORITY: u16 = 0x8000;

/// Keys of settings, which are not part of the match.
const SETTINGS: [&str; 10] = [
    "table",
    "priority",
    "cookie",
    "idle_timeout",
    "hard_timeout",
    "importance",
    "out_port",
    "out_group",
    "buffer_id",
    "actions",
];

/// Words that set a flag of the flow-mod.
pub(super) const FLAGS: [(&str, FlowFlags); 6] = [
    ("send_flow_rem", FlowFlags::SEND_FLOW_REM),
    ("check_overlap", FlowFlags::CHECK_OVERLAP),
    ("reset_counts", FlowFlags::RESET_COUNTS),
    ("no_packet_counts", FlowFlags::NO_PKT_COUNTS),
    ("no_byte_counts", FlowFlags::NO_BYT_COUNTS),
    ("emerg", FlowFlags::EMERG),
];

/// Keys in the lines of `dump-flows` that a flow-mod does not carry. They are skipped, so that such lines can be
/// parsed.
const STATISTICS: [&str; 5] = ["duration", "n_packets", "n_bytes", "idle_age", "hard_age"];

/// Parses a flow-mod with command `command`.
///
/// Keys: `table` (default 0; in deletes all tables), `priority` (default 32768), `cookie` (with `/mask` in modify and
/// delete), `idle_timeout`, `hard_timeout`, `importance`, `out_port`, `out_group`, `buffer_id`, and the flags
/// `send_flow_rem`, `check_overlap`, `reset_counts`, `no_packet_counts`, `no_byte_counts` and `emerg`. All other keys
/// belong to the match. `actions=` comes last; deletes have none.
///
/// # Errors
/// The position of the first error, what was found there and what was expected.
///
/// ```
/// use weir_openflow::{model::FlowCommand, text};
/// let flow = text::parse_flow("priority=10,ip,nw_dst=10.0.0.0/8,actions=output:2", FlowCommand::Add).unwrap();
/// assert_eq!(flow.priority, 10);
/// let error = text::parse_flow("ip,nw_dts=10.0.0.1,actions=drop", FlowCommand::Add).unwrap_err();
/// assert_eq!(error.to_string(), "column 4: found `nw_dts`, expected a match field or setting; did you mean `nw_dst`?");
/// ```
pub fn parse_flow(text: &str, command: FlowCommand) -> Result<FlowMod, ParseError> {
    check_length(text)?;
    let mut reader = FlowModParser::new(command);
    let mut scanner = KeyValueScanner::new(text, 0);
    while let Some(item) = scanner.next()? {
        if matches!(item.key, "actions" | "action") {
            reader.parse_actions(&item, scanner.rest_behind(&item))?;
            return reader.finish(text);
        }
        reader.add(item)?;
    }
    reader.finish(text)
}

/// Prints a flow-mod so that [`parse_flow`] with the same command parses it back. Leaves out what has no effect in
/// the command: the instructions of a delete, the cookie mask of an add.
pub fn format_flow(flow: &FlowMod, version: Version) -> String {
    let mut parts = Vec::new();
    if flow.table != default_table(flow.command) {
        parts.push(format!("table={}", flow.table.0));
    }
    parts.extend(cookie_text(flow));
    let numbers =
        [("idle_timeout", flow.idle_timeout), ("hard_timeout", flow.hard_timeout), ("importance", flow.importance)];
    parts.extend(numbers.into_iter().filter(|(_, value)| *value != 0).map(|(key, value)| format!("{key}={value}")));
    parts.extend(flow.buffer_id.map(|buffer| format!("buffer_id={:#x}", buffer.0)));
    if flow.out_port != PortNo::ANY {
        parts.push(format!("out_port={}", flow.out_port));
    }
    if flow.out_group != GroupId::ANY {
        parts.push(format!("out_group={}", group_text(flow.out_group)));
    }
    parts.extend(FLAGS.into_iter().filter(|(_, flag)| flow.flags.contains(*flag)).map(|(word, _)| word.to_owned()));
    parts.extend(Some(match_and_priority(&flow.matching, flow.priority, version)).filter(|text| !text.is_empty()));
    let mut text = parts.join(",");
    if !is_delete(flow.command) {
        let space = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{space}actions={}", action_text::write_instructions(&flow.instructions, version));
    }
    text
}

/// Prints a match, preceded by the priority if it is not the default.
pub(super) fn match_and_priority(matching: &Match, priority: u16, version: Version) -> String {
    let matching = match_text::write(matching, version);
    match (priority, matching.as_str()) {
        (DEFAULT_PRIORITY, _) => matching,
        (_, "") => format!("priority={priority}"),
        _ => format!("priority={priority},{matching}"),
    }
}

/// Prints a group number, or the name of a reserved one.
pub(super) fn group_text(group: GroupId) -> String {
    match group {
        GroupId::ALL => "ALL".into(),
        GroupId::ANY => "ANY".into(),
        GroupId(number) => number.to_string(),
    }
}

fn cookie_text(flow: &FlowMod) -> Option<String> {
    match (flow.cookie, flow.cookie_mask) {
        (cookie, mask) if mask != 0 && flow.command != FlowCommand::Add => {
            Some(format!("cookie={cookie:#x}/{mask:#x}"))
        }
        (0, _) => None,
        _ if is_delete(flow.command) => None,
        (cookie, _) => Some(format!("cookie={cookie:#x}")),
    }
}

const fn is_delete(command: FlowCommand) -> bool {
    matches!(command, FlowCommand::Delete | FlowCommand::DeleteStrict)
}

const fn default_table(command: FlowCommand) -> TableId {
    if is_delete(command) { TableId::ALL } else { TableId(0) }
}

/// A flow-mod being parsed.
struct FlowModParser<'a> {
    flow: FlowMod,
    matching: Vec<KeyValueItem<'a>>,
    seen: Vec<&'a str>,
    has_actions: bool,
}

impl<'a> FlowModParser<'a> {
    fn new(command: FlowCommand) -> Self {
        let mut flow = FlowMod::add(DEFAULT_PRIORITY, Match::any(), Vec::new());
        flow.command = command;
        flow.table = default_table(command);
        FlowModParser { flow, matching: Vec::new(), seen: Vec::new(), has_actions: false }
    }

    fn add(&mut self, item: KeyValueItem<'a>) -> Result<(), ParseError> {
        if let Some((_, flag)) = FLAGS.into_iter().find(|(word, _)| *word == item.key) {
            item.alone()?;
            self.flow.flags = self.flow.flags.with(flag);
        } else if SETTINGS.contains(&item.key) {
            if self.seen.contains(&item.key) {
                return Err(ParseError::new(item.at, item.key, "each setting at most once"));
            }
            self.seen.push(item.key);
            self.set(&item)?;
        } else if matching::is_match_key(item.key) {
            self.matching.push(item);
        } else if !STATISTICS.contains(&item.key) {
            let known = SETTINGS.into_iter().chain(FLAGS.map(|(word, _)| word)).chain(matching::keys());
            return Err(ParseError::unknown(item.at, item.key, "a match field or setting", known));
        }
        Ok(())
    }

    fn set(&mut self, item: &KeyValueItem<'a>) -> Result<(), ParseError> {
        let flow = &mut self.flow;
        let value = item.value("a value behind `=`")?;
        let wrong = |expected: String| item.wrong(expected);
        match item.key {
            "table" => flow.table = table(value, flow.command).map_err(wrong)?,
            "priority" => flow.priority = number::u16(value).map_err(wrong)?,
            "idle_timeout" => flow.idle_timeout = number::u16(value).map_err(wrong)?,
            "hard_timeout" => flow.hard_timeout = number::u16(value).map_err(wrong)?,
            "importance" => flow.importance = number::u16(value).map_err(wrong)?,
            "out_port" => flow.out_port = field_value::port(value).map_err(wrong)?,
            "out_group" => flow.out_group = group(value).map_err(wrong)?,
            "buffer_id" => flow.buffer_id = Some(BufferId(number::u32(value).map_err(wrong)?)),
            _ => (flow.cookie, flow.cookie_mask) = cookie(value, flow.command).map_err(wrong)?,
        }
        Ok(())
    }

    fn parse_actions(&mut self, item: &KeyValueItem<'a>, text: &str) -> Result<(), ParseError> {
        if item.value.is_none() {
            return Err(ParseError::new(item.value_at, "", "`=` and actions"));
        }
        if is_delete(self.flow.command) {
            let expected = "no actions in a delete; out_port and out_group select by what entries do";
            return Err(ParseError::new(item.at, item.key, expected));
        }
        self.has_actions = true;
        self.flow.instructions = instruction::parse_instructions(text, item.value_at)?;
        Ok(())
    }

    fn finish(mut self, text: &str) -> Result<FlowMod, ParseError> {
        if !self.has_actions && !is_delete(self.flow.command) {
            return Err(ParseError::new(text.len(), "", "actions=... at the end (actions=drop to drop)"));
        }
        self.flow.matching = matching::build(&self.matching)?;
        Ok(self.flow)
    }
}

fn table(value: &str, command: FlowCommand) -> Result<TableId, String> {
    if is_delete(command) && value.eq_ignore_ascii_case("all") {
        return Ok(TableId::ALL);
    }
    let max = default_table(command).0.max(TableId::MAX.0);
    let table = number::parse(value, u128::from(max)).map_err(|_| format!("a table number from 0 to {max}"))?;
    Ok(TableId(u8::try_from(table).unwrap_or(max)))
}

/// Parses a group number, or the name of a reserved one.
pub(super) fn group(value: &str) -> Result<GroupId, String> {
    match value.to_ascii_lowercase().as_str() {
        "any" => Ok(GroupId::ANY),
        "all" => Ok(GroupId::ALL),
        _ => number::u32(value).map(GroupId).map_err(|_| "a group number, or any".into()),
    }
}

/// Parses a cookie with optional mask. `-1` is a mask of all ones, as in `ovs-ofctl`.
fn cookie(value: &str, command: FlowCommand) -> Result<(u64, u64), String> {
    match value.split_once('/') {
        Some(_) if command == FlowCommand::Add => Err("a cookie without mask: an add only sets it".into()),
        Some((cookie, "-1")) => Ok((number::u64(cookie)?, u64::MAX)),
        Some((cookie, mask)) => Ok((number::u64(cookie)?, number::u64(mask)?)),
        None if is_delete(command) => Err(format!("a mask as well, as in {value}/-1: a delete compares cookies")),
        None => Ok((number::u64(value)?, 0)),
    }
}
