//! Parses instructions, such as `set_field:4197->vlan_vid,output:2,goto_table:3`.
use super::action::{ActionListParser, experimenter, parse_actions};
use super::scan::{KeyValueItem, KeyValueScanner};
use super::{ParseError, number};
use crate::model::stats::{OxsStats, RawStat};
use crate::model::{Action, Instruction, MeterId, NxAction, TableId};

/// Names of instructions.
pub(super) const NAMES: [&str; 8] = [
    "goto_table",
    "write_metadata",
    "write_actions",
    "apply_actions",
    "clear_actions",
    "meter",
    "stat_trigger",
    "experimenter_instruction",
];

/// Parses the actions and instructions of a flow entry. Actions outside an instruction become one apply-actions.
/// Returns the instructions in the order of their execution (OpenFlow 1.3.5, 5.9). `base` is the offset of `text` in
/// the whole text.
pub(super) fn parse_instructions(text: &str, base: usize) -> Result<Vec<Instruction>, ParseError> {
    let mut scanner = KeyValueScanner::new(text, base);
    let (mut list, mut instructions) = (ActionListParser::default(), Vec::new());
    while let Some(item) = scanner.next()? {
        match instruction(&item)? {
            None => list.add(&item)?,
            Some(new) if instructions.iter().any(|old| exclude_each_other(old, &new)) => {
                return Err(ParseError::new(item.at, item.key, "each instruction at most once"));
            }
            Some(new) => instructions.push(new),
        }
        let applied = instructions.iter().any(|old| matches!(old, Instruction::ApplyActions(_)));
        if applied && !list.is_empty() {
            return Err(ParseError::new(item.at, item.key, "actions either alone or in apply_actions(...), not both"));
        }
    }
    let actions = list.finish()?;
    if !actions.is_empty() {
        instructions.push(Instruction::ApplyActions(actions));
    }
    take_out(&mut instructions);
    instructions.sort_by_key(Instruction::execution_order);
    Ok(instructions)
}

/// Turns a meter action at the start of the apply-actions, and a write-metadata action at its end, into instructions.
/// Their effect is the same, and in this form they are printed.
fn take_out(instructions: &mut Vec<Instruction>) {
    let has_meter = instructions.iter().any(|one| matches!(one, Instruction::Meter(_)));
    let has_metadata = instructions.iter().any(|one| matches!(one, Instruction::WriteMetadata { .. }));
    let applied = instructions.iter().position(|one| matches!(one, Instruction::ApplyActions(_)));
    let Some(at) = applied else { return };
    let Instruction::ApplyActions(actions) = &mut instructions[at] else { return };
    let mut taken = Vec::new();
    if let Some(Action::Meter(meter)) = actions.first().filter(|_| !has_meter) {
        taken.push(Instruction::Meter(*meter));
        actions.remove(0);
    }
    if let Some(Action::Nx(nx)) = actions.last().filter(|_| !has_metadata)
        && let NxAction::WriteMetadata { metadata, mask } = **nx
    {
        taken.push(Instruction::WriteMetadata { metadata, mask });
        actions.pop();
    }
    if actions.is_empty() && !taken.is_empty() {
        instructions.remove(at);
    }
    instructions.extend(taken);
}

/// Returns true if a flow entry cannot have both instructions: only experimenter instructions may occur several
/// times.
fn exclude_each_other(old: &Instruction, new: &Instruction) -> bool {
    !matches!(new, Instruction::Experimenter { .. }) && old.execution_order() == new.execution_order()
}

fn instruction(item: &KeyValueItem<'_>) -> Result<Option<Instruction>, ParseError> {
    let wrong = |expected: String| item.wrong(expected);
    Ok(Some(match item.key {
        "goto_table" => {
            let table = number::u8(item.value("a table number")?).map_err(wrong)?;
            Instruction::GotoTable(TableId(table))
        }
        "write_metadata" => {
            let (metadata, mask) = metadata(item)?;
            Instruction::WriteMetadata { metadata, mask }
        }
        "write_actions" => Instruction::WriteActions(nested(item)?),
        "apply_actions" => Instruction::ApplyActions(nested(item)?),
        "clear_actions" => {
            item.alone()?;
            Instruction::ClearActions
        }
        "meter" => Instruction::Meter(MeterId(number::u32(item.value("a meter number")?).map_err(wrong)?)),
        "stat_trigger" => trigger(item)?,
        "experimenter_instruction" => {
            let (id, data) = experimenter(item)?;
            Instruction::Experimenter { id, data: data.into() }
        }
        _ => return Ok(None),
    }))
}

/// Parses `VALUE/MASK`, or a value alone, which stands for a mask of all ones.
pub(super) fn metadata(item: &KeyValueItem<'_>) -> Result<(u64, u64), ParseError> {
    let wrong = |expected: String| item.wrong(expected);
    let value = item.value("metadata as value/mask")?;
    let (value, mask) = value.split_once('/').map_or((value, None), |(value, mask)| (value, Some(mask)));
    let mask = mask.map(number::u64).transpose().map_err(wrong)?.unwrap_or(u64::MAX);
    Ok((number::u64(value).map_err(wrong)?, mask))
}

/// Parses the content of a trigger's parentheses, `flags=0x1,packet_count=100`.
fn trigger(item: &KeyValueItem<'_>) -> Result<Instruction, ParseError> {
    let (mut flags, mut thresholds) = (0, OxsStats::default());
    let mut scanner = KeyValueScanner::new(item.value("flags and thresholds")?, item.value_at);
    while let Some(part) = scanner.next()? {
        let wrong = |expected: String| part.wrong(expected);
        let value = part.value("a value")?;
        match part.key {
            "flags" => flags = number::u32(value).map_err(wrong)?,
            "duration" => thresholds.duration = Some(seconds(value).map_err(wrong)?),
            "idle_time" => thresholds.idle_time = Some(seconds(value).map_err(wrong)?),
            "flow_count" => thresholds.flow_count = Some(number::u32(value).map_err(wrong)?),
            "packet_count" => thresholds.packet_count = Some(number::u64(value).map_err(wrong)?),
            "byte_count" => thresholds.byte_count = Some(number::u64(value).map_err(wrong)?),
            "stat" => thresholds.others.push(statistic(value).map_err(wrong)?),
            key => return Err(ParseError::unknown(part.at, key, "a threshold", THRESHOLDS)),
        }
    }
    Ok(Instruction::StatTrigger { flags, thresholds })
}

/// Keys of a trigger.
const THRESHOLDS: [&str; 7] = ["flags", "duration", "idle_time", "flow_count", "packet_count", "byte_count", "stat"];

/// Parses `1.500000000s`: seconds, and nanoseconds as nine digits.
fn seconds(text: &str) -> Result<(u32, u32), String> {
    let parts = text.strip_suffix('s').and_then(|text| text.split_once('.'));
    let parts = parts.filter(|(_, nanoseconds)| nanoseconds.len() >= 9);
    let numbers = parts.and_then(|(seconds, nanoseconds)| Some((seconds.parse().ok()?, nanoseconds.parse().ok()?)));
    numbers.ok_or_else(|| "seconds with nine digits behind the point, as in 1.500000000s".into())
}

/// Parses `CLASS:NUMBER=HEX`: a statistic that weir does not know.
fn statistic(text: &str) -> Result<RawStat, String> {
    let parts = || {
        let (head, payload) = text.split_once('=')?;
        let (class, number) = head.split_once(':')?;
        let (class, number) = (number::u16(class).ok()?, number::u8(number).ok()?);
        Some(RawStat { class, number, payload: number::hex_bytes(payload).ok()?.into() })
    };
    parts().ok_or_else(|| "a class, a number and bytes, as in stat:0x7001:3=00ff".into())
}

/// Parses the actions in an instruction's parentheses.
fn nested(item: &KeyValueItem<'_>) -> Result<Vec<Action>, ParseError> {
    parse_actions(item.value.unwrap_or_default(), item.value_at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{GroupId, PortNo};

    #[test]
    fn instructions_come_in_the_order_of_execution() {
        let parsed = parse_instructions("goto_table:3,write_actions(group:5),output:2,meter:1,clear_actions", 0);
        let expected = [
            Instruction::Meter(MeterId(1)),
            Instruction::ApplyActions(vec![Action::output(PortNo(2))]),
            Instruction::ClearActions,
            Instruction::WriteActions(vec![Action::Group(GroupId(5))]),
            Instruction::GotoTable(TableId(3)),
        ];
        assert_eq!(parsed.unwrap(), expected);
        assert_eq!(parse_instructions("apply_actions(1)", 0), parse_instructions("1", 0));
    }

    #[test]
    fn errors_say_where_and_what() {
        let error = |text| parse_instructions(text, 0).unwrap_err().to_string();
        assert_eq!(
            error("goto_table:1,goto_table:2"),
            "column 14: found `goto_table`, expected each instruction at most once"
        );
        assert!(error("write_actions(write_actions(1))").starts_with("column 15: found `write_actions`"));
        assert!(error("1,apply_actions(2)").contains("not both"));
    }
}
