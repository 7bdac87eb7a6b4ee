//! Parses action lists, such as `set_field:4197->vlan_vid,output:2`.
use super::nicira_parse::ActionParser;
use super::scan::{KeyValueItem, KeyValueScanner};
use super::{ParseError, encap, field_value, instruction, nicira_parse, number, raw};
use crate::model::action::NO_BUFFER;
use crate::model::{Action, GroupId, MeterId, NxAction, PortNo};
use weir_packet::Field;
use weir_packet::field::VLAN_PRESENT;

/// The actions by name, except names of ports that stand for an output and those that [`nicira_parse`] parses. Some
/// have several names.
const PARSERS: [(&str, ActionParser); 40] = [
    ("encap", encap::parse),
    ("decap", encap::parse_decap),
    ("dec_nsh_ttl", |item| simple(item, Action::DecNshTtl)),
    ("output", |item| output(item, item.value("a port")?)),
    ("controller", controller),
    ("CONTROLLER", controller),
    ("group", |item| Ok(Action::Group(GroupId(item.parsed("a group number", number::u32)?)))),
    // Metering and metadata as actions, inside other actions. Outside, they are parsed as instructions.
    ("meter", |item| Ok(Action::Meter(MeterId(item.parsed("a meter number", number::u32)?)))),
    ("write_metadata", |item| {
        let (metadata, mask) = instruction::metadata(item)?;
        Ok(NxAction::WriteMetadata { metadata, mask }.into_action())
    }),
    ("set_queue", |item| Ok(Action::SetQueue(item.parsed("a queue number", number::u32)?))),
    ("enqueue", enqueue),
    ("push_vlan", |item| Ok(Action::PushVlan(item.parsed("an EtherType, 0x8100 or 0x88a8", number::u16)?))),
    ("pop_vlan", |item| simple(item, Action::PopVlan)),
    ("strip_vlan", |item| simple(item, Action::PopVlan)),
    ("push_mpls", |item| Ok(Action::PushMpls(item.parsed("an EtherType, 0x8847 or 0x8848", number::u16)?))),
    ("pop_mpls", |item| Ok(Action::PopMpls(item.parsed("the EtherType of what is under the label", number::u16)?))),
    ("push_pbb", |item| Ok(Action::PushPbb(item.parsed("the EtherType 0x88e7", number::u16)?))),
    ("pop_pbb", |item| simple(item, Action::PopPbb)),
    ("mod_vlan_vid", vlan_vid),
    ("mod_vlan_pcp", vlan_pcp),
    ("set_vlan_vid", vlan_vid),
    ("set_vlan_pcp", vlan_pcp),
    ("mod_dl_src", |item| set(item, Field::EthSrc)),
    ("mod_dl_dst", |item| set(item, Field::EthDst)),
    ("mod_nw_src", |item| address(item).map(Action::SetNwSrc)),
    ("mod_nw_dst", |item| address(item).map(Action::SetNwDst)),
    ("mod_nw_tos", tos),
    ("mod_nw_ttl", |item| item.parsed(TTL, number::u8).map(Action::SetNwTtl)),
    ("mod_tp_src", |item| item.parsed("a port number", number::u16).map(Action::SetTpSrc)),
    ("mod_tp_dst", |item| item.parsed("a port number", number::u16).map(Action::SetTpDst)),
    ("set_field", set_field),
    ("dec_ttl", |item| simple(item, Action::DecNwTtl)),
    ("set_mpls_label", |item| set(item, Field::MplsLabel)),
    ("set_mpls_tc", |item| set(item, Field::MplsTc)),
    ("set_mpls_ttl", |item| item.parsed(TTL, number::u8).map(Action::SetMplsTtl)),
    ("dec_mpls_ttl", |item| simple(item, Action::DecMplsTtl)),
    ("copy_ttl_in", |item| simple(item, Action::CopyTtlIn)),
    ("copy_ttl_out", |item| simple(item, Action::CopyTtlOut)),
    ("experimenter", |item| {
        let (id, data) = experimenter(item)?;
        Ok(Action::Experimenter { id, data: data.into() })
    }),
    ("set_nw_ttl", |item| item.parsed(TTL, number::u8).map(Action::SetNwTtl)),
];

/// Names of reserved ports, which stand for an output to the port.
const PORTS: [&str; 7] = ["in_port", "table", "normal", "flood", "all", "local", "controller"];

/// Parses an action list. `base` is the offset of `text` in the whole text, for error positions.
pub(super) fn parse_actions(text: &str, base: usize) -> Result<Vec<Action>, ParseError> {
    let mut scanner = KeyValueScanner::new(text, base);
    let mut list = ActionListParser::default();
    while let Some(item) = scanner.next()? {
        list.add(&item)?;
    }
    list.finish()
}

/// An action list being parsed.
#[derive(Default)]
pub(super) struct ActionListParser {
    actions: Vec<Action>,
    /// Offset of a `drop`, if there is one.
    drop: Option<usize>,
}

impl ActionListParser {
    pub(super) fn is_empty(&self) -> bool {
        self.actions.is_empty() && self.drop.is_none()
    }

    pub(super) fn add(&mut self, item: &KeyValueItem<'_>) -> Result<(), ParseError> {
        if item.key == "drop" {
            item.alone()?;
            self.drop = Some(item.at);
        } else {
            self.actions.push(action(item)?);
        }
        Ok(())
    }

    pub(super) fn finish(self) -> Result<Vec<Action>, ParseError> {
        match self.drop {
            Some(at) if !self.actions.is_empty() => Err(ParseError::new(at, "drop", "no other action beside drop")),
            _ => Ok(self.actions),
        }
    }
}

fn action(item: &KeyValueItem<'_>) -> Result<Action, ParseError> {
    if let Some(nicira) = nicira_parse::parse(item)? {
        return Ok(nicira);
    }
    let known = PARSERS.into_iter().find(|(name, _)| *name == item.key);
    known.map_or_else(|| bare_port(item, item.key), |(_, parse)| parse(item))
}

const VID: &str = "a VLAN id from 0 to 4095";
const PCP: &str = "a VLAN priority from 0 to 7";
const TTL: &str = "a TTL from 0 to 255";

fn set(item: &KeyValueItem<'_>, field: Field) -> Result<Action, ParseError> {
    let (value, _) = field_value::parse(field, item.value("a value")?).map_err(|expected| item.wrong(expected))?;
    Ok(Action::SetField { field, value })
}

fn vlan_vid(item: &KeyValueItem<'_>) -> Result<Action, ParseError> {
    let vid = item.parsed(VID, number::u16)?;
    if vid < VLAN_PRESENT { Ok(Action::SetVlanVid(vid)) } else { Err(item.wrong(VID)) }
}

fn vlan_pcp(item: &KeyValueItem<'_>) -> Result<Action, ParseError> {
    let pcp = item.parsed(PCP, number::u8)?;
    if pcp <= 7 { Ok(Action::SetVlanPcp(pcp)) } else { Err(item.wrong(PCP)) }
}

fn tos(item: &KeyValueItem<'_>) -> Result<Action, ParseError> {
    let tos = item.parsed("the DSCP times four", number::u8)?;
    let expected = "a number from 0 to 252 whose two low bits are zero";
    if tos & 3 == 0 { Ok(Action::SetNwTos(tos)) } else { Err(item.wrong(expected)) }
}

fn simple(item: &KeyValueItem<'_>, action: Action) -> Result<Action, ParseError> {
    item.alone().map(|()| action)
}

/// Parses a port number or the name of a reserved port as an output to it.
fn bare_port(item: &KeyValueItem<'_>, word: &str) -> Result<Action, ParseError> {
    let is_word = PORTS.iter().any(|name| name.eq_ignore_ascii_case(word));
    match field_value::port(word) {
        Ok(PortNo::CONTROLLER) if is_word => controller(item),
        Ok(port) if is_word || number::u32(word).is_ok() => simple(item, output_to(port)),
        _ => {
            let known = PARSERS
                .map(|(name, _)| name)
                .into_iter()
                .chain(["drop"])
                .chain(nicira_parse::names())
                .chain(instruction::NAMES)
                .chain(PORTS);
            Err(ParseError::unknown(item.at, word, "an action or instruction", known))
        }
    }
}

fn output_to(port: PortNo) -> Action {
    if port == PortNo::CONTROLLER { Action::to_controller() } else { Action::output(port) }
}

fn output(item: &KeyValueItem<'_>, value: &str) -> Result<Action, ParseError> {
    if value.contains("port=") {
        return nicira_parse::output_trunc(item);
    }
    let port = field_value::port(value);
    if let (Err(_), Ok(src)) = (&port, nicira_parse::part(value)) {
        return Ok(NxAction::OutputReg { src, max_len: NO_BUFFER }.into_action());
    }
    port.map(output_to).map_err(|expected| item.wrong(expected))
}

/// Parses `controller`, `controller:128` or `controller(max_len=128)`.
fn controller(item: &KeyValueItem<'_>) -> Result<Action, ParseError> {
    let value = item.value.unwrap_or_default();
    if (value.contains(['=', ',']) || value == "pause")
        && let Some(special) = nicira_parse::controller(item)?
    {
        return Ok(special);
    }
    let length = value.strip_prefix("max_len=").unwrap_or(value);
    let max_len = if length.is_empty() { Ok(NO_BUFFER) } else { number::u16(length) };
    let max_len = max_len.map_err(|expected| item.wrong(format!("as length in bytes {expected}")))?;
    Ok(Action::Output { port: PortNo::CONTROLLER, max_len })
}

/// Parses `enqueue:PORT:QUEUE` or `enqueue(PORT,QUEUE)`.
fn enqueue(item: &KeyValueItem<'_>) -> Result<Action, ParseError> {
    let expected = "a port and a queue, as in enqueue:1:2";
    let value = item.value(expected)?;
    let parts = value.split_once([':', ',']).and_then(|(port, queue)| {
        Some(Action::Enqueue { port: field_value::port(port).ok()?, queue: number::u32(queue).ok()? })
    });
    parts.ok_or_else(|| item.wrong(expected))
}

fn address(item: &KeyValueItem<'_>) -> Result<u32, ParseError> {
    let expected = "an IPv4 address such as 10.0.0.1";
    let address = item.value(expected)?.parse::<std::net::Ipv4Addr>();
    address.map(|address| address.to_bits()).map_err(|_| item.wrong(expected))
}

/// Parses a set-field, `set_field:VALUE->FIELD`.
fn set_field(item: &KeyValueItem<'_>) -> Result<Action, ParseError> {
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
        (value, Some(mask)) => Ok(Action::SetFieldMasked { field, value, mask }),
    }
}

/// Parses `(NUMBER,HEXADECIMAL DIGITS)`: an experimenter number and data.
pub(super) fn experimenter(item: &KeyValueItem<'_>) -> Result<(u32, Vec<u8>), ParseError> {
    let expected = "an experimenter's number and data, as in experimenter(0x2320,00ff)";
    let (id, data) = item.value(expected)?.split_once(',').ok_or_else(|| item.wrong(expected))?;
    let id = number::u32(id).map_err(|_| item.wrong(expected))?;
    Ok((id, number::hex_bytes(data).map_err(|_| item.wrong(expected))?))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let error = |text| parse_actions(text, 0).unwrap_err().to_string();
        assert_eq!(
            error("output:2,psuh_vlan:0x8100"),
            "column 10: found `psuh_vlan`, expected an action or instruction; did you mean `push_vlan`?"
        );
        assert_eq!(
            error("check_pkt_lager(200)->reg0[0]"),
            "column 1: found `check_pkt_lager`, expected an action or instruction; did you mean `check_pkt_larger`?"
        );
        assert_eq!(
            error("set_field:1->ipdst"),
            "column 14: found `ipdst`, expected a field that can be set; did you mean `ip_dst`?"
        );
        assert_eq!(error("drop,output:1"), "column 1: found `drop`, expected no other action beside drop");
        assert_eq!(error("output:"), "column 8: found nothing, expected a port");
    }
}
