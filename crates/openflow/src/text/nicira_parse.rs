//! Parses Nicira's actions in the spelling of `ovs-ofctl`.
use super::action::parse_actions;
use super::nicira::{ALGORITHMS, HASHES, LEARN_FLAGS, LEARN_PRIORITY, all_bits, field_name};
use super::scan::{KeyValueItem, KeyValueScanner};
use super::{ParseError, field_value, number};
use crate::model::action::NO_BUFFER;
use crate::model::nicira::{
    BundleAction, ControllerAction, HashFields, LearnAction, LearnDst, LearnSpec, LearnSrc, MAX_CLONES,
    MultipathAction, NxAction, RequestedReason,
};
use crate::model::{Action, PacketInReason, PortNo, Subfield, TableId};
use weir_packet::Field;

/// Parser of an action with a certain name.
pub(super) type ActionParser = fn(&KeyValueItem<'_>) -> Result<Action, ParseError>;

/// The actions that only this module parses, by name.
const PARSERS: [(&str, ActionParser); 17] = [
    ("resubmit", |item| resubmit(item).map(NxAction::into_action)),
    ("load", |item| load(item).map(NxAction::into_action)),
    ("move", move_bits),
    ("set_tunnel", |item| {
        let id = item.parsed("a tunnel id", number::u64)?;
        Ok(NxAction::SetTunnel { id, wide: id > u64::from(u32::MAX) }.into_action())
    }),
    ("set_tunnel64", |item| {
        Ok(NxAction::SetTunnel { id: item.parsed("a tunnel id", number::u64)?, wide: true }.into_action())
    }),
    ("pop_queue", |item| alone(item, NxAction::PopQueue)),
    ("note", |item| {
        let bytes = note(item.value.unwrap_or_default()).map_err(|expected| item.wrong(expected))?;
        Ok(NxAction::Note(bytes.into()).into_action())
    }),
    ("exit", |item| alone(item, NxAction::Exit)),
    ("multipath", |item| Ok(NxAction::Multipath(multipath(item)?).into_action())),
    ("bundle", |item| Ok(NxAction::Bundle(bundle(item)?).into_action())),
    ("bundle_load", |item| Ok(NxAction::Bundle(bundle(item)?).into_action())),
    ("learn", |item| Ok(NxAction::Learn(learn(item)?).into_action())),
    ("fin_timeout", |item| fin_timeout(item).map(NxAction::into_action)),
    ("push", |item| Ok(NxAction::Push(item.parsed("a field", part)?).into_action())),
    ("pop", |item| Ok(NxAction::Pop(item.parsed("a field", part)?).into_action())),
    ("clone", |item| clone(item).map(NxAction::into_action)),
    // Written as `check_pkt_larger(200)->reg0[0]`.
    ("check_pkt_larger", |item| check_larger(item).map(NxAction::into_action)),
];

/// Returns the names of the actions that only this module parses.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    PARSERS.into_iter().map(|(name, _)| name)
}

/// Parses a Nicira action; returns `None` if the key is not the name of one.
pub(super) fn parse(item: &KeyValueItem<'_>) -> Result<Option<Action>, ParseError> {
    if item.key == "dec_ttl" && item.value.is_some_and(|value| !value.is_empty()) {
        let ids = item.value("")?.split(',').map(|id| number::u16(id.trim())).collect::<Result<_, _>>();
        return Ok(Some(NxAction::DecTtl(ids.map_err(|expected| item.wrong(expected))?).into_action()));
    }
    PARSERS.into_iter().find(|(name, _)| *name == item.key).map(|(_, parse)| parse(item)).transpose()
}

fn move_bits(item: &KeyValueItem<'_>) -> Result<Action, ParseError> {
    let wrong = |expected: String| item.wrong(expected);
    let (src, dst) = arrow(item)?;
    let (src, dst) = (part(src).map_err(wrong)?, part(dst).map_err(wrong)?);
    if src.bits != dst.bits {
        return Err(item.wrong(format!("as many bits in both; found {} and {}", src.bits, dst.bits)));
    }
    Ok(Action::Move { src, dst })
}

fn alone(item: &KeyValueItem<'_>, action: NxAction) -> Result<Action, ParseError> {
    item.alone().map(|()| action.into_action())
}

/// Splits a text `SOURCE->DESTINATION` at the arrow.
fn arrow<'a>(item: &KeyValueItem<'a>) -> Result<(&'a str, &'a str), ParseError> {
    let expected = "what to write and where, as in 5->NXM_NX_REG0[0..15]";
    item.value(expected)?.split_once("->").ok_or_else(|| item.wrong(expected))
}

/// Parses bits of a field: `NXM_NX_REG0[0..15]`, `reg0[3]`, `reg0[]` or `reg0`.
pub(super) fn part(text: &str) -> Result<Subfield, String> {
    let (name, bits) = match text.split_once('[') {
        Some((name, bits)) => (name, bits.strip_suffix(']').ok_or("a field such as NXM_NX_REG0[0..15]")?),
        None => (text, ""),
    };
    let field = field(name).ok_or_else(|| format!("a field that weir knows; `{name}` is none"))?;
    let all = all_bits(field, is_wide_port(name));
    // For some fields, a name without range stands for fewer bits than the field has.
    let most = if field == Field::InPort { all } else { Subfield::all(field).bits };
    let bit = |text: &str| number::parse(text, u128::from(most - 1)).map(|bit| u16::try_from(bit).unwrap_or(most));
    let (first, last) = match bits.split_once("..") {
        Some((first, last)) => (bit(first)?, bit(last)?),
        None if bits.is_empty() => (0, all - 1),
        None => (bit(bits)?, bit(bits)?),
    };
    if first > last {
        return Err(format!("bits from low to high; found {first}..{last}"));
    }
    Ok(Subfield { field, offset: first, bits: last - first + 1 })
}

fn is_wide_port(name: &str) -> bool {
    name.eq_ignore_ascii_case("OXM_OF_IN_PORT") || name == "in_port_oxm"
}

/// Returns the field with a name as in actions, or with any other name of the field.
fn field(name: &str) -> Option<Field> {
    let wire = || Field::ALL.into_iter().find(|field| field_name(*field).eq_ignore_ascii_case(name));
    // Names in the class of the standard; most fields are printed with their Nicira name.
    let standard = || name.to_ascii_lowercase().strip_prefix("oxm_of_").and_then(field_value::named);
    if is_wide_port(name) { Some(Field::InPort) } else { field_value::named(name).or_else(wire).or_else(standard) }
}

fn resubmit(item: &KeyValueItem<'_>) -> Result<NxAction, ParseError> {
    let expected = "a port, a table, or both, as in resubmit:3 or resubmit(,4)";
    let value = item.value(expected)?;
    let (port, table) = value.split_once(',').map_or((value, None), |(port, table)| (port, Some(table.trim())));
    let port = if port.is_empty() { Ok(PortNo::IN_PORT) } else { field_value::port(port) };
    let table = table.filter(|table| !table.is_empty()).map(number::u8).transpose();
    match (port, table) {
        (Ok(port), Ok(table)) if table != Some(255) => Ok(NxAction::Resubmit { port, table: table.map(TableId) }),
        _ => Err(item.wrong(expected)),
    }
}

fn load(item: &KeyValueItem<'_>) -> Result<NxAction, ParseError> {
    let (value, dst) = arrow(item)?;
    let dst = part(dst).map_err(|expected| item.wrong(expected))?;
    if dst.bits > 64 {
        return Err(item.wrong("at most 64 bits at once; set_field writes whole fields"));
    }
    let most = u128::from(u64::MAX >> (64 - dst.bits));
    let value = number::parse(value, most).map_err(|expected| item.wrong(expected))?;
    Ok(NxAction::Load { dst, value: u64::try_from(value).unwrap_or(u64::MAX) })
}

/// Parses pairs of hexadecimal digits, with or without dots between them. Pads with zeros to the length of a note on
/// the wire: 6, 14, 22, ... bytes.
fn note(text: &str) -> Result<Vec<u8>, String> {
    let mut bytes = number::hex_bytes(&text.replace('.', ""))?;
    let length = (bytes.len().saturating_sub(6)).next_multiple_of(8) + 6;
    bytes.resize(length, 0);
    Ok(bytes)
}

/// Splits the values in parentheses.
fn values<'a>(item: &KeyValueItem<'a>) -> Result<Vec<KeyValueItem<'a>>, ParseError> {
    let mut scanner = KeyValueScanner::new(item.value.unwrap_or_default(), item.value_at);
    let mut items = Vec::new();
    while let Some(item) = scanner.next()? {
        items.push(item);
    }
    Ok(items)
}

fn hash(item: &KeyValueItem<'_>, text: &str) -> Result<HashFields, ParseError> {
    let known = HASHES.into_iter().find(|(name, _)| *name == text).map(|(_, fields)| fields);
    known.ok_or_else(|| item.wrong(format!("as hash one of {}", HASHES.map(|(name, _)| name).join(", "))))
}

fn multipath(item: &KeyValueItem<'_>) -> Result<MultipathAction, ParseError> {
    let wrong = |expected: String| item.wrong(expected);
    let expected = "hash, basis, algorithm, number of links, argument, field";
    let words: Vec<&str> = item.value(expected)?.split(',').map(str::trim).collect();
    let [fields, basis, algorithm, links, arg, dst] = words[..] else { return Err(item.wrong(expected)) };
    let algorithms = ALGORITHMS.map(|(name, _)| name).join(", ");
    let algorithm = ALGORITHMS.into_iter().find(|(name, _)| *name == algorithm).map(|(_, algorithm)| algorithm);
    let links =
        number::parse(links, 65536).ok().filter(|links| *links > 0).ok_or_else(|| item.wrong("1 to 65536 links"))?;
    Ok(MultipathAction {
        fields: hash(item, fields)?,
        basis: number::u16(basis).map_err(wrong)?,
        algorithm: algorithm.ok_or_else(|| item.wrong(format!("as algorithm one of {algorithms}")))?,
        max_link: u16::try_from(links - 1).unwrap_or(u16::MAX),
        arg: number::u32(arg).map_err(wrong)?,
        dst: part(dst).map_err(wrong)?,
    })
}

/// Parses `bundle(FIELDS,BASIS,ALGORITHM,ofport,members:1,2)`; `bundle_load` has a field before the members.
fn bundle(item: &KeyValueItem<'_>) -> Result<BundleAction, ParseError> {
    let expected = "hash, basis, algorithm, ofport and members, as in bundle(eth_src,0,hrw,ofport,members:1,2)";
    let wrong = |expected: String| item.wrong(expected);
    let value = item.value(expected)?;
    let split = ["members:", "slaves:"].into_iter().find_map(|word| value.split_once(word));
    let (head, members) = split.ok_or_else(|| item.wrong(expected))?;
    let words: Vec<&str> = head.split(',').map(str::trim).collect();
    let loads = item.key == "bundle_load";
    let (fields, basis, algorithm, dst) = match words[..] {
        [fields, basis, algorithm, "ofport", ""] if !loads => (fields, basis, algorithm, None),
        [fields, basis, algorithm, "ofport", dst, ""] if loads => (fields, basis, algorithm, Some(dst)),
        _ => return Err(item.wrong(expected)),
    };
    let is_hrw = match algorithm {
        "hrw" => true,
        "active_backup" => false,
        _ => return Err(item.wrong("as algorithm active_backup or hrw")),
    };
    let members = members.split(',').map(str::trim).filter(|member| !member.is_empty());
    Ok(BundleAction {
        is_hrw,
        fields: hash(item, fields)?,
        basis: number::u16(basis).map_err(wrong)?,
        members: members.map(field_value::port).collect::<Result<_, _>>().map_err(wrong)?,
        dst: dst.map(part).transpose().map_err(wrong)?,
    })
}

fn fin_timeout(item: &KeyValueItem<'_>) -> Result<NxAction, ParseError> {
    let (mut idle, mut hard) = (0, 0);
    for value in values(item)? {
        let seconds = number::u16(value.value("seconds")?).map_err(|expected| value.wrong(expected))?;
        match value.key {
            "idle_timeout" => idle = seconds,
            "hard_timeout" => hard = seconds,
            _ => return Err(ParseError::new(value.at, value.key, "idle_timeout or hard_timeout")),
        }
    }
    Ok(NxAction::FinTimeout { idle, hard })
}

fn clone(item: &KeyValueItem<'_>) -> Result<NxAction, ParseError> {
    let text = item.value.unwrap_or_default();
    let deepest = text.chars().fold((0_usize, 0_usize), |(depth, most), c| match c {
        '(' => (depth + 1, most.max(depth + 1)),
        ')' => (depth.saturating_sub(1), most),
        _ => (depth, most),
    });
    // Each clone has parentheses. Other actions have them, too, but do not nest this deep in practice.
    if deepest.1 >= MAX_CLONES {
        return Err(item.wrong(format!("at most {MAX_CLONES} parentheses inside each other")));
    }
    Ok(NxAction::Clone(parse_actions(text, item.value_at)?))
}

fn check_larger(item: &KeyValueItem<'_>) -> Result<NxAction, ParseError> {
    let expected = "a length and a bit, as in check_pkt_larger(1500)->reg0[0]";
    let (length, dst) = item.value(expected)?.split_once(")->").ok_or_else(|| item.wrong(expected))?;
    let dst = part(dst).ok().filter(|dst| dst.bits == 1).ok_or_else(|| item.wrong(expected))?;
    Ok(NxAction::CheckLarger { length: number::u16(length).map_err(|expected| item.wrong(expected))?, dst })
}

/// Parses the content of the parentheses of `controller(...)`; returns `None` if an ordinary output to the controller
/// expresses it.
pub(super) fn controller(item: &KeyValueItem<'_>) -> Result<Option<Action>, ParseError> {
    let mut action = ControllerAction::new(NO_BUFFER);
    let mut is_special = false;
    for value in values(item)? {
        let wrong = |expected: String| value.wrong(expected);
        is_special |= value.key != "max_len";
        match value.key {
            "max_len" => action.max_len = number::u16(value.value("bytes")?).map_err(wrong)?,
            "id" => action.id = number::u16(value.value("a controller's number")?).map_err(wrong)?,
            "reason" => {
                let text = value.value("a reason")?;
                action.reason = requested_reason(text).ok_or_else(|| {
                    value.wrong(format!("one of {}", PacketInReason::ALL.map(PacketInReason::name).join(", ")))
                })?;
            }
            "userdata" => {
                let bytes = number::hex_bytes(&value.value("bytes as 01.02")?.replace('.', ""));
                action.userdata = bytes.map_err(wrong)?.into();
            }
            "pause" => action.pause = true,
            _ => return Err(ParseError::new(value.at, value.key, "max_len, id, reason, userdata or pause")),
        }
    }
    Ok(is_special.then(|| NxAction::Controller(action).into_action()))
}

/// Parses the name or the number of a reason.
fn requested_reason(text: &str) -> Option<RequestedReason> {
    let named = PacketInReason::ALL.into_iter().find(|reason| reason.name() == text);
    named.map(RequestedReason::Known).or_else(|| number::u8(text).ok().map(RequestedReason::from_number))
}

/// Parses an output with a length limit, `output(port=1,max_len=100)`.
pub(super) fn output_trunc(item: &KeyValueItem<'_>) -> Result<Action, ParseError> {
    let expected = "a port and a length, as in output(port=1,max_len=100)";
    let (mut port, mut length) = (None, None);
    for value in values(item)? {
        let text = value.value(expected)?;
        match value.key {
            "port" => port = Some(field_value::port(text).map_err(|expected| value.wrong(expected))?),
            "max_len" => length = Some(number::u32(text).map_err(|expected| value.wrong(expected))?),
            _ => return Err(item.wrong(expected)),
        }
    }
    match (port, length) {
        (Some(port), Some(max_len)) => Ok(NxAction::OutputTrunc { port, max_len }.into_action()),
        _ => Err(item.wrong(expected)),
    }
}

fn learn(item: &KeyValueItem<'_>) -> Result<LearnAction, ParseError> {
    let mut learn = LearnAction {
        idle_timeout: 0,
        hard_timeout: 0,
        priority: LEARN_PRIORITY,
        cookie: 0,
        flags: 0,
        table: TableId(1),
        fin_idle_timeout: 0,
        fin_hard_timeout: 0,
        specs: Vec::new(),
    };
    for value in values(item)? {
        let wrong = |expected: String| value.wrong(expected);
        let text = || value.value("a value");
        match value.key {
            "table" => learn.table = TableId(number::u8(text()?).map_err(wrong)?),
            "priority" => learn.priority = number::u16(text()?).map_err(wrong)?,
            "cookie" => learn.cookie = number::u64(text()?).map_err(wrong)?,
            "idle_timeout" => learn.idle_timeout = number::u16(text()?).map_err(wrong)?,
            "hard_timeout" => learn.hard_timeout = number::u16(text()?).map_err(wrong)?,
            "fin_idle_timeout" => learn.fin_idle_timeout = number::u16(text()?).map_err(wrong)?,
            "fin_hard_timeout" => learn.fin_hard_timeout = number::u16(text()?).map_err(wrong)?,
            key => match LEARN_FLAGS.into_iter().find(|(name, _)| *name == key) {
                Some((_, flag)) => learn.flags |= flag,
                None => learn.specs.push(spec(&value)?),
            },
        }
    }
    Ok(learn)
}

/// Parses a part of a learned flow entry: `FIELD`, `FIELD=FIELD`, `FIELD=VALUE`, `load:SOURCE->FIELD`,
/// `output:FIELD`.
fn spec(item: &KeyValueItem<'_>) -> Result<LearnSpec, ParseError> {
    let wrong = |expected: String| item.wrong(expected);
    match item.key {
        "load" => {
            let (src, dst) = arrow(item)?;
            let dst = part(dst).map_err(wrong)?;
            Ok(LearnSpec { src: source(src, dst).map_err(wrong)?, dst: LearnDst::Load(dst), bits: dst.bits })
        }
        "output" => {
            let src = part(item.value("a field")?).map_err(wrong)?;
            Ok(LearnSpec { src: LearnSrc::Field(src), dst: LearnDst::Output, bits: src.bits })
        }
        key => {
            let dst = part(key).map_err(|expected| ParseError::new(item.at, key, expected))?;
            let src = item.value.map_or(Ok(LearnSrc::Field(dst)), |value| source(value, dst)).map_err(wrong)?;
            Ok(LearnSpec { src, dst: LearnDst::Match(dst), bits: dst.bits })
        }
    }
}

/// Parses the source of a part: a field of the same width as `dst`, or a value.
fn source(text: &str, dst: Subfield) -> Result<LearnSrc, String> {
    if let Ok(src) = part(text) {
        let same = src.bits == dst.bits;
        return if same { Ok(LearnSrc::Field(src)) } else { Err(format!("{} bits, as many as are written", dst.bits)) };
    }
    let most = u128::MAX >> (128 - u32::from(dst.bits));
    if dst.offset == 0
        && dst.bits == all_bits(dst.field, false)
        && let Ok((value, None)) = field_value::parse(dst.field, text)
    {
        return Ok(LearnSrc::Value(value));
    }
    number::parse(text, most).map(LearnSrc::Value)
}
