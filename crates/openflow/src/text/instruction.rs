//! Instructions, from text: `set_field:4197->vlan_vid,output:2,goto_table:3`.
use super::action::{List, experimenter, parse_actions};
use super::scan::{Item, Scanner};
use super::{ParseError, number};
use crate::model::{Action, Instruction, MeterId, TableId};

/// Names of instructions.
pub(super) const NAMES: [&str; 7] = [
    "goto_table",
    "write_metadata",
    "write_actions",
    "apply_actions",
    "clear_actions",
    "meter",
    "experimenter_instruction",
];

/// Parses actions and instructions as a flow entry lists them. Actions that stand alone are the apply-actions instruction;
/// the instructions come back in the order in which they are executed (OpenFlow 1.3.5, 5.9).
pub(super) fn parse_instructions(text: &str, base: usize) -> Result<Vec<Instruction>, ParseError> {
    let mut scanner = Scanner::new(text, base);
    let (mut list, mut instructions) = (List::default(), Vec::new());
    while let Some(item) = scanner.next()? {
        match instruction(&item)? {
            None => list.add(&item)?,
            Some(new) if instructions.iter().any(|old| rank(old) == rank(&new) && rank(old) != EXPERIMENTER_RANK) => {
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
    instructions.sort_by_key(rank);
    Ok(instructions)
}

const EXPERIMENTER_RANK: u8 = 7;

/// Where an instruction stands in the order of execution.
pub(super) fn rank(instruction: &Instruction) -> u8 {
    match instruction {
        Instruction::Meter(_) => 0,
        Instruction::ApplyActions(_) => 1,
        Instruction::ClearActions => 2,
        Instruction::WriteActions(_) => 3,
        Instruction::WriteMetadata { .. } => 4,
        Instruction::StatTrigger { .. } => 5,
        Instruction::GotoTable(_) => 6,
        Instruction::Experimenter { .. } => EXPERIMENTER_RANK,
    }
}

fn instruction(item: &Item<'_>) -> Result<Option<Instruction>, ParseError> {
    let wrong = |expected: String| item.wrong(expected);
    Ok(Some(match item.key {
        "goto_table" => {
            let table = number::u8(item.value("a table number")?).map_err(wrong)?;
            Instruction::GotoTable(TableId(table))
        }
        "write_metadata" => {
            let value = item.value("metadata as value/mask")?;
            let (value, mask) = value.split_once('/').map_or((value, None), |(value, mask)| (value, Some(mask)));
            let mask = mask.map(number::u64).transpose().map_err(wrong)?.unwrap_or(u64::MAX);
            Instruction::WriteMetadata { metadata: number::u64(value).map_err(wrong)?, mask }
        }
        "write_actions" => Instruction::WriteActions(nested(item)?),
        "apply_actions" => Instruction::ApplyActions(nested(item)?),
        "clear_actions" => {
            item.alone()?;
            Instruction::ClearActions
        }
        "meter" => Instruction::Meter(MeterId(number::u32(item.value("a meter number")?).map_err(wrong)?)),
        "experimenter_instruction" => {
            let (id, data) = experimenter(item)?;
            Instruction::Experimenter { id, data: data.into() }
        }
        _ => return Ok(None),
    }))
}

/// The actions in an instruction's parentheses.
fn nested(item: &Item<'_>) -> Result<Vec<Action>, ParseError> {
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
