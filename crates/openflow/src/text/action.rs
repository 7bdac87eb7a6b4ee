//! Actions and instructions, from text: `set_field:4197->vlan_vid,output:2,goto_table:3`.
use super::scan::{Item, Scanner};
use super::{ParseError, field_value, number, raw};
use crate::model::action::NO_BUFFER;
use crate::model::{Action, GroupId, Instruction, MeterId, PortNo, TableId};
use weir_packet::Field;
use weir_packet::field::VLAN_PRESENT;

/// Names of actions, without the words for ports.
const ACTIONS: [&str; 35] = [
    "output",
    "controller",
    "drop",
    "group",
    "set_queue",
    "enqueue",
    "push_vlan",
    "pop_vlan",
    "strip_vlan",
    "push_mpls",
    "pop_mpls",
    "push_pbb",
    "pop_pbb",
    "mod_vlan_vid",
    "mod_vlan_pcp",
    "set_vlan_vid",
    "set_vlan_pcp",
    "mod_dl_src",
    "mod_dl_dst",
    "mod_nw_src",
    "mod_nw_dst",
    "mod_nw_tos",
    "mod_nw_ttl",
    "mod_tp_src",
    "mod_tp_dst",
    "set_field",
    "dec_ttl",
    "set_mpls_label",
    "set_mpls_tc",
    "set_mpls_ttl",
    "dec_mpls_ttl",
    "copy_ttl_in",
    "copy_ttl_out",
    "experimenter",
    "set_nw_ttl",
];

/// Names of instructions.
const INSTRUCTIONS: [&str; 7] = [
    "goto_table",
    "write_metadata",
    "write_actions",
    "apply_actions",
    "clear_actions",
    "meter",
    "experimenter_instruction",
];

/// Words that output to a reserved port.
const PORTS: [&str; 7] = ["in_port", "table", "normal", "flood", "all", "local", "controller"];

/// Parses a list of actions; `base` is where it starts in the whole text.
pub(super) fn parse_actions(text: &str, base: usize) -> Result<Vec<Action>, ParseError> {
    let mut scanner = Scanner::new(text, base);
    let mut list = List::default();
    while let Some(item) = scanner.next()? {
        list.add(&item)?;
    }
    list.finish()
}

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

const EXPERIMENTER_RANK: u8 = 6;

/// Where an instruction stands in the order of execution.
pub(super) fn rank(instruction: &Instruction) -> u8 {
    match instruction {
        Instruction::Meter(_) => 0,
        Instruction::ApplyActions(_) => 1,
        Instruction::ClearActions => 2,
        Instruction::WriteActions(_) => 3,
        Instruction::WriteMetadata { .. } => 4,
        Instruction::GotoTable(_) => 5,
        Instruction::Experimenter { .. } => EXPERIMENTER_RANK,
    }
}

/// A list of actions while it is read.
#[derive(Default)]
struct List {
    actions: Vec<Action>,
    /// Where a `drop` stands.
    drop: Option<usize>,
}

impl List {
    fn is_empty(&self) -> bool {
        self.actions.is_empty() && self.drop.is_none()
    }

    fn add(&mut self, item: &Item<'_>) -> Result<(), ParseError> {
        if item.key == "drop" {
            item.alone()?;
            self.drop = Some(item.at);
        } else {
            action(item, &mut self.actions)?;
        }
        Ok(())
    }

    fn finish(self) -> Result<Vec<Action>, ParseError> {
        match self.drop {
            Some(at) if !self.actions.is_empty() => Err(ParseError::new(at, "drop", "no other action beside drop")),
            _ => Ok(self.actions),
        }
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

fn action(item: &Item<'_>, out: &mut Vec<Action>) -> Result<(), ParseError> {
    let wrong = |expected: String| item.wrong(expected);
    let value = |expected: &str| item.value(expected);
    let u8_value = |expected: &str| number::u8(item.value(expected)?).map_err(wrong);
    let u16_value = |expected: &str| number::u16(item.value(expected)?).map_err(wrong);
    let u32_value = |expected: &str| number::u32(item.value(expected)?).map_err(wrong);
    let set = |field: Field| {
        let value = field_value::parse(field, item.value("a value")?).map_err(wrong)?;
        Ok::<_, ParseError>(Action::SetField { field, value: value.0 })
    };
    out.push(match item.key {
        "output" => output(item, value("a port")?)?,
        "controller" | "CONTROLLER" => controller(item)?,
        "group" => Action::Group(GroupId(u32_value("a group number")?)),
        "set_queue" => Action::SetQueue(u32_value("a queue number")?),
        "enqueue" => enqueue(item)?,
        "push_vlan" => Action::PushVlan(u16_value("an EtherType, 0x8100 or 0x88a8")?),
        "pop_vlan" | "strip_vlan" => simple(item, Action::PopVlan)?,
        "push_mpls" => Action::PushMpls(u16_value("an EtherType, 0x8847 or 0x8848")?),
        "pop_mpls" => Action::PopMpls(u16_value("the EtherType of what is under the label")?),
        "push_pbb" => Action::PushPbb(u16_value("the EtherType 0x88e7")?),
        "pop_pbb" => simple(item, Action::PopPbb)?,
        "mod_vlan_vid" | "set_vlan_vid" => {
            let vid = u16_value("a VLAN id from 0 to 4095")?;
            if vid >= VLAN_PRESENT {
                return Err(item.wrong("a VLAN id from 0 to 4095"));
            }
            Action::SetVlanVid(vid)
        }
        "mod_vlan_pcp" | "set_vlan_pcp" => {
            let pcp = u8_value("a VLAN priority from 0 to 7")?;
            if pcp > 7 {
                return Err(item.wrong("a VLAN priority from 0 to 7"));
            }
            Action::SetVlanPcp(pcp)
        }
        "mod_dl_src" => set(Field::EthSrc)?,
        "mod_dl_dst" => set(Field::EthDst)?,
        "mod_nw_src" => Action::SetNwSrc(address(item)?),
        "mod_nw_dst" => Action::SetNwDst(address(item)?),
        "mod_nw_tos" => {
            let tos = u8_value("the DSCP times four")?;
            if tos & 3 != 0 {
                return Err(item.wrong("a number from 0 to 252 whose two low bits are zero"));
            }
            Action::SetNwTos(tos)
        }
        "mod_nw_ttl" | "set_nw_ttl" => Action::SetNwTtl(u8_value("a TTL from 0 to 255")?),
        "mod_tp_src" => Action::SetTpSrc(u16_value("a port number")?),
        "mod_tp_dst" => Action::SetTpDst(u16_value("a port number")?),
        "set_field" => set_field(item)?,
        "dec_ttl" => simple(item, Action::DecNwTtl)?,
        "set_mpls_label" => set(Field::MplsLabel)?,
        "set_mpls_tc" => set(Field::MplsTc)?,
        "set_mpls_ttl" => Action::SetMplsTtl(u8_value("a TTL from 0 to 255")?),
        "dec_mpls_ttl" => simple(item, Action::DecMplsTtl)?,
        "copy_ttl_in" => simple(item, Action::CopyTtlIn)?,
        "copy_ttl_out" => simple(item, Action::CopyTtlOut)?,
        "experimenter" => {
            let (id, data) = experimenter(item)?;
            Action::Experimenter { id, data: data.into() }
        }
        word => bare_port(item, word)?,
    });
    Ok(())
}

fn simple(item: &Item<'_>, action: Action) -> Result<Action, ParseError> {
    item.alone().map(|()| action)
}

/// A port's number or reserved name alone outputs to it.
fn bare_port(item: &Item<'_>, word: &str) -> Result<Action, ParseError> {
    let is_word = PORTS.iter().any(|name| name.eq_ignore_ascii_case(word));
    match field_value::port(word) {
        Ok(PortNo::CONTROLLER) if is_word => controller(item),
        Ok(port) if is_word || number::u32(word).is_ok() => simple(item, output_to(port)),
        _ => {
            let known = ACTIONS.into_iter().chain(INSTRUCTIONS).chain(PORTS);
            Err(ParseError::unknown(item.at, word, "an action or instruction", known))
        }
    }
}

fn output_to(port: PortNo) -> Action {
    if port == PortNo::CONTROLLER { Action::to_controller() } else { Action::output(port) }
}

fn output(item: &Item<'_>, value: &str) -> Result<Action, ParseError> {
    field_value::port(value).map(output_to).map_err(|expected| item.wrong(expected))
}

/// `controller`, `controller:128` or `controller(max_len=128)`.
fn controller(item: &Item<'_>) -> Result<Action, ParseError> {
    let value = item.value.unwrap_or_default();
    let length = value.strip_prefix("max_len=").unwrap_or(value);
    let max_len = if length.is_empty() { Ok(NO_BUFFER) } else { number::u16(length) };
    let max_len = max_len.map_err(|expected| item.wrong(format!("as length in bytes {expected}")))?;
    Ok(Action::Output { port: PortNo::CONTROLLER, max_len })
}

/// `enqueue:PORT:QUEUE` or `enqueue(PORT,QUEUE)`.
fn enqueue(item: &Item<'_>) -> Result<Action, ParseError> {
    let expected = "a port and a queue, as in enqueue:1:2";
    let value = item.value(expected)?;
    let parts = value.split_once([':', ',']).and_then(|(port, queue)| {
        Some(Action::Enqueue { port: field_value::port(port).ok()?, queue: number::u32(queue).ok()? })
    });
    parts.ok_or_else(|| item.wrong(expected))
}

fn address(item: &Item<'_>) -> Result<u32, ParseError> {
    let expected = "an IPv4 address such as 10.0.0.1";
    let address = item.value(expected)?.parse::<std::net::Ipv4Addr>();
    address.map(|address| address.to_bits()).map_err(|_| item.wrong(expected))
}

/// `set_field:VALUE->FIELD`.
fn set_field(item: &Item<'_>) -> Result<Action, ParseError> {
    let expected = "a value and a field, as in set_field:10.0.0.1->ip_dst";
    let (value, name) = item.value(expected)?.split_once("->").ok_or_else(|| item.wrong(expected))?;
    let name_at = item.value_at + value.len() + 2;
    if raw::is_name(name) {
        return raw::parse(name, name_at, value, item.value_at).map(Action::SetFieldRaw);
    }
    let field = field_value::named(name)
        .ok_or_else(|| ParseError::unknown(name_at, name, "a field that can be set", field_value::names()))?;
    let error = |expected: String| ParseError::new(item.value_at, value, expected);
    match field_value::parse(field, value).map_err(error)? {
        (value, None) => Ok(Action::SetField { field, value }),
        _ => Err(error("a value without mask: OpenFlow 1.3 sets whole fields".into())),
    }
}

/// `(NUMBER,HEXADECIMAL DIGITS)`.
fn experimenter(item: &Item<'_>) -> Result<(u32, Vec<u8>), ParseError> {
    let expected = "an experimenter's number and data, as in experimenter(0x2320,00ff)";
    let (id, data) = item.value(expected)?.split_once(',').ok_or_else(|| item.wrong(expected))?;
    let id = number::u32(id).map_err(|_| item.wrong(expected))?;
    Ok((id, number::hex_bytes(data).map_err(|_| item.wrong(expected))?))
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn controller_and_ports_have_many_forms() {
        let parsed = parse_actions("controller,CONTROLLER:128,controller(max_len=9),output:controller,LOCAL,7,all", 0);
        let to = |max_len| Action::Output { port: PortNo::CONTROLLER, max_len };
        let expected = [to(NO_BUFFER), to(128), to(9), to(NO_BUFFER)].into_iter();
        let others = [PortNo::LOCAL, PortNo(7), PortNo::ALL].map(Action::output);
        assert_eq!(parsed.unwrap(), expected.chain(others).collect::<Vec<_>>());
    }

    #[test]
    fn errors_say_where_and_what() {
        let error = |text| parse_instructions(text, 0).unwrap_err().to_string();
        assert_eq!(
            error("output:2,psuh_vlan:0x8100"),
            "column 10: found `psuh_vlan`, expected an action or instruction; did you mean `push_vlan`?"
        );
        assert_eq!(
            error("set_field:1->ipdst"),
            "column 14: found `ipdst`, expected a field that can be set; did you mean `ip_dst`?"
        );
        assert_eq!(error("drop,output:1"), "column 1: found `drop`, expected no other action beside drop");
        assert_eq!(
            error("goto_table:1,goto_table:2"),
            "column 14: found `goto_table`, expected each instruction at most once"
        );
        assert_eq!(error("output:"), "column 8: found nothing, expected a port");
        assert!(error("write_actions(write_actions(1))").starts_with("column 15: found `write_actions`"));
        assert!(error("1,apply_actions(2)").contains("not both"));
    }
}
