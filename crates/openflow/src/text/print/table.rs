//! Flow tables: what they hold and what they can do.
use super::{Show, shape};
use crate::model::config::TableMod;
use crate::model::multipart::{OxmId, TableFeatures, TableProperty, TableStats, TypeId};
use crate::model::{TableId, Version};
use crate::text::field_value::set_name;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use weir_packet::Field;

pub(super) fn table_mod(table_mod: &TableMod) -> String {
    // The configuration's bits are deprecated: they mean nothing in 1.3 (OpenFlow 1.3.5, 7.3.4.1).
    match table_mod.table {
        TableId::ALL => " table_id: ALL_TABLES".to_owned(),
        table => format!(" table_id={}", table.0),
    }
}

/// How a field can be matched.
const MASK: &str = "arbitrary mask";
const WILDCARD: &str = "exact match or wildcard";
const EXACT: &str = "must exact match";

/// Fields that 1.0's tables say they can wildcard, by their bits, as `ovs-ofctl` names them and in its order.
const WILDCARDS_10: [(u32, &str); 12] = [
    (1 << 0, "in_port"),
    (1 << 2, "eth_src"),
    (1 << 3, "eth_dst"),
    (1 << 4, "eth_type"),
    (1 << 1, "vlan_vid"),
    (1 << 20, "vlan_pcp"),
    (63 << 8, "ip_src"),
    (63 << 14, "ip_dst"),
    (1 << 5, "nw_proto"),
    (1 << 21, "nw_tos"),
    (1 << 6, "tcp_src"),
    (1 << 7, "tcp_dst"),
];

pub(super) fn stats(tables: &[TableStats], show: Show) -> String {
    let mut out = Dittos::default();
    let mut last: Option<&TableStats> = None;
    for table in tables {
        let counters = |t: &TableStats| (t.active_count, t.lookup_count, t.matched_count);
        let abilities = |t: &TableStats| (t.wildcards, t.max_entries);
        let same_counters = last.is_some_and(|last| counters(last) == counters(table));
        let same_abilities = last.is_some_and(|last| abilities(last) == abilities(table));
        let has_abilities = show.version == Version::V10;
        out.table(table.table.0, &table.name, same_counters && same_abilities, |text| {
            let (active, lookup, matched) = counters(table);
            let _ = writeln!(text, "    active={active}, lookup={lookup}, matched={matched}");
            if has_abilities && same_abilities {
                text.push_str("    (same features)\n");
            } else if has_abilities {
                abilities_10(table, last.is_some_and(|last| last.wildcards == table.wildcards), text);
            }
        });
        last = Some(table);
    }
    out.finish()
}

fn abilities_10(table: &TableStats, same_matching: bool, text: &mut String) {
    if table.max_entries != 0 {
        let _ = writeln!(text, "    max_entries={}", table.max_entries);
    }
    let names: Vec<&str> =
        WILDCARDS_10.iter().filter(|(bits, _)| table.wildcards & bits != 0).map(|(_, name)| *name).collect();
    if same_matching && !names.is_empty() {
        text.push_str("    (same matching)\n");
    } else if !names.is_empty() {
        let _ = writeln!(text, "    matching:\n      {WILDCARD}: {}", grouped(&names));
    }
}

/// Names with what they share in front written once: `eth_{src,dst} in_port`.
fn grouped<N: AsRef<str>>(names: &[N]) -> String {
    let mut groups: Vec<(&str, Vec<&str>)> = Vec::new();
    for name in names.iter().map(AsRef::as_ref) {
        let (start, end) = name.split_once('_').unwrap_or(("", name));
        match groups.last_mut() {
            Some((last, ends)) if *last == start && !start.is_empty() => ends.push(end),
            _ => groups.push((start, vec![end])),
        }
    }
    let texts = groups.into_iter().map(|(start, ends)| match ends.as_slice() {
        [end] if start.is_empty() => (*end).to_owned(),
        [end] => format!("{start}_{end}"),
        ends => format!("{start}_{{{}}}", ends.join(",")),
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// Tables one below the other; those that are like the one before are said to be so.
#[derive(Default)]
struct Dittos {
    text: String,
    /// First and last of the tables without name that are like the one before.
    same: Option<(u8, u8)>,
}

impl Dittos {
    fn table(&mut self, number: u8, name: &str, same: bool, body: impl FnOnce(&mut String)) {
        if same && name.is_empty() {
            self.same = Some((self.same.map_or(number, |(first, _)| first), number));
            return;
        }
        self.flush();
        let _ = write!(self.text, "\n  table {number}");
        if !name.is_empty() {
            let _ = write!(self.text, " (\"{}\")", shape::safe(name));
        }
        if same {
            self.text.push_str(": ditto");
        } else {
            self.text.push_str(":\n");
            body(&mut self.text);
        }
    }

    fn flush(&mut self) {
        match self.same.take() {
            None => {}
            Some((first, last)) if first == last => {
                let _ = write!(self.text, "\n  table {first}: ditto\n");
            }
            Some((first, last)) => {
                let _ = write!(self.text, "\n  tables {first}...{last}: ditto\n");
            }
        }
    }

    fn finish(mut self) -> String {
        self.flush();
        self.text
    }
}

pub(super) fn features(tables: &[TableFeatures]) -> String {
    let mut out = Dittos::default();
    let mut last: Option<(Summary, &TableFeatures)> = None;
    for table in tables {
        let summary = Summary::of(table);
        let same = last.as_ref().is_some_and(|(before, of)| before.is_like(of, &summary, table));
        let before = last.as_ref().map(|(summary, of)| (summary, of.table.0));
        out.table(table.table.0, &table.name, same, |text| summary.write(table, before, text));
        last = Some((summary, table));
    }
    out.finish()
}

/// What a table can do, its properties put together.
#[derive(PartialEq, Eq, Default)]
struct Summary {
    /// For ordinary entries, and for the table-miss entry.
    abilities: [Abilities; 2],
    /// Fields and how they can be matched.
    matching: Vec<(String, &'static str)>,
}

/// What entries of a table can do.
#[derive(PartialEq, Eq, Default, Clone)]
struct Abilities {
    next: BTreeSet<u8>,
    instructions: Vec<String>,
    write: Actions,
    apply: Actions,
}

/// Actions, and fields that set-field can set.
#[derive(PartialEq, Eq, Default, Clone)]
struct Actions {
    kinds: Vec<String>,
    fields: Vec<String>,
}

/// Instructions by number, in the order of their execution.
const INSTRUCTIONS: [(u16, &str); 6] = [
    (6, "meter"),
    (4, "apply_actions"),
    (5, "clear_actions"),
    (3, "write_actions"),
    (2, "write_metadata"),
    (1, "goto_table"),
];

impl Summary {
    fn of(table: &TableFeatures) -> Summary {
        let mut summary = Summary::default();
        // A property for table-miss entries that is left out is as for the others (OpenFlow 1.3.5, 7.3.5.5.2).
        for miss_pass in [false, true] {
            for property in &table.properties {
                summary.add(property, miss_pass);
            }
            if !miss_pass {
                summary.abilities[1] = summary.abilities[0].clone();
            }
        }
        summary.matching = matching(&table.properties);
        summary
    }

    fn add(&mut self, property: &TableProperty, miss_pass: bool) {
        let abilities = &mut self.abilities[usize::from(miss_pass)];
        match property {
            TableProperty::Instructions { miss, ids } if *miss == miss_pass => {
                abilities.instructions = instruction_names(ids);
            }
            TableProperty::NextTables { miss, tables } if *miss == miss_pass => {
                abilities.next = tables.iter().map(|table| table.0).collect();
            }
            TableProperty::WriteActions { miss, ids } if *miss == miss_pass => {
                abilities.write.kinds = action_names(ids)
            }
            TableProperty::ApplyActions { miss, ids } if *miss == miss_pass => {
                abilities.apply.kinds = action_names(ids)
            }
            TableProperty::WriteSetField { miss, fields } if *miss == miss_pass => {
                abilities.write.fields = field_names(fields);
            }
            TableProperty::ApplySetField { miss, fields } if *miss == miss_pass => {
                abilities.apply.fields = field_names(fields);
            }
            _ => {}
        }
    }

    /// Whether two tables, one behind the other, can do the same.
    fn is_like(&self, own: &TableFeatures, other: &Summary, of: &TableFeatures) -> bool {
        let numbers = |t: &TableFeatures| (t.metadata_match, t.metadata_write, t.config, t.max_entries);
        numbers(own) == numbers(of)
            && self.matching == other.matching
            && self.same_abilities(own.table.0, &other.abilities, of.table.0)
    }

    fn same_abilities(&self, own: u8, others: &[Abilities; 2], of: u8) -> bool {
        self.abilities.iter().zip(others).all(|(a, b)| a.is_like(own, b, of))
    }

    fn write(&self, table: &TableFeatures, before: Option<(&Summary, u8)>, text: &mut String) {
        if (table.metadata_match, table.metadata_write) != (0, 0) {
            let (matched, written) = (table.metadata_match, table.metadata_write);
            let _ = writeln!(text, "    metadata: match={matched:#x} write={written:#x}");
        }
        if table.max_entries != 0 {
            let _ = writeln!(text, "    max_entries={}", table.max_entries);
        }
        let [others, miss] = &self.abilities;
        let last = |at: usize| before.map(|(summary, _)| &summary.abilities[at]);
        let same = before.is_some_and(|(summary, of)| summary.same_abilities(of, &self.abilities, table.table.0));
        if same && *others != Abilities::default() {
            text.push_str("    (same instructions)\n");
        } else if !same && others != miss {
            text.push_str("    instructions (other than table miss):\n");
            others.write(last(0), text);
            text.push_str("    instructions (table miss):\n");
            miss.write(last(1), text);
        } else if !same && *others != Abilities::default() {
            text.push_str("    instructions (table miss and others):\n");
            others.write(last(0), text);
        }
        if !self.matching.is_empty() && before.is_some_and(|(summary, _)| summary.matching == self.matching) {
            text.push_str("    (same matching)\n");
        } else if !self.matching.is_empty() {
            text.push_str("    matching:\n");
            for wanted in [MASK, WILDCARD, EXACT] {
                let names = self.matching.iter().filter(|(_, how)| *how == wanted).map(|(name, _)| name);
                let names: Vec<&String> = names.collect();
                if !names.is_empty() {
                    let _ = writeln!(text, "      {wanted}: {}", grouped(&names));
                }
            }
        }
    }
}

impl Abilities {
    /// No table goes to itself or back, so that a table that goes everywhere else is like the next one that does.
    fn is_like(&self, own: u8, other: &Abilities, of: u8) -> bool {
        let without = |next: &BTreeSet<u8>| {
            let mut next = next.clone();
            next.remove(&own.max(of));
            next
        };
        let next = self.next == other.next || own.abs_diff(of) == 1 && without(&self.next) == without(&other.next);
        next && self.instructions == other.instructions && self.write == other.write && self.apply == other.apply
    }

    fn write(&self, before: Option<&Abilities>, text: &mut String) {
        if !self.next.is_empty() {
            let _ = writeln!(text, "      next tables: {}", ranges(&self.next));
        }
        if !self.instructions.is_empty() {
            let same = before.is_some_and(|before| before.instructions == self.instructions);
            let names = if same { "(same instructions)".into() } else { self.instructions.join(" ") };
            let colon = if same { "" } else { "instructions: " };
            let _ = writeln!(text, "      {colon}{names}");
        }
        let same = before.is_some_and(|before| before.write == self.write && before.apply == self.apply);
        if same && !self.write.fields.is_empty() {
            text.push_str("      (same actions)\n");
        } else if self.write != self.apply {
            text.push_str("      Write-Actions features:\n");
            self.write.write(text);
            text.push_str("      Apply-Actions features:\n");
            self.apply.write(text);
        } else if self.write != Actions::default() {
            text.push_str("      Write-Actions and Apply-Actions features:\n");
            self.write.write(text);
        }
    }
}

impl Actions {
    fn write(&self, text: &mut String) {
        if !self.kinds.is_empty() {
            let _ = writeln!(text, "        actions: {}", self.kinds.join(" "));
        }
        if !self.fields.is_empty() {
            let _ = writeln!(text, "        supported on Set-Field: {}", grouped(&self.fields));
        }
    }
}

/// `1-3,7`.
fn ranges(numbers: &BTreeSet<u8>) -> String {
    let mut runs: Vec<(u8, u8)> = Vec::new();
    for number in numbers {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*number) => *last = *number,
            _ => runs.push((*number, *number)),
        }
    }
    let texts =
        runs.iter().map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") });
    texts.collect::<Vec<_>>().join(",")
}

fn instruction_names(ids: &[TypeId]) -> Vec<String> {
    let has = |number| ids.contains(&TypeId::Standard(number));
    let known = INSTRUCTIONS.iter().filter(|(number, _)| has(*number)).map(|(_, name)| (*name).to_owned());
    let unknown = ids.iter().filter(|id| !INSTRUCTIONS.iter().any(|(number, _)| **id == TypeId::Standard(*number)));
    known.chain(unknown.map(type_text)).collect()
}

fn action_names(ids: &[TypeId]) -> Vec<String> {
    let number = |id: &TypeId| match id {
        TypeId::Standard(number) if *number < 32 => 1_u32 << number,
        _ => 0,
    };
    let set = ids.iter().fold(0, |set, id| set | number(id));
    let known = super::group::ACTIONS.iter().filter(|(bit, _)| set & bit != 0).map(|(_, name)| (*name).to_owned());
    let is_known = |id: &&TypeId| super::group::ACTIONS.iter().any(|(bit, _)| number(id) == *bit);
    known.chain(ids.iter().filter(|id| !is_known(id)).map(type_text)).collect()
}

fn type_text(id: &TypeId) -> String {
    match id {
        TypeId::Standard(number) => number.to_string(),
        TypeId::Experimenter { id, .. } => format!("experimenter({id:#x})"),
    }
}

fn field_names(fields: &[OxmId]) -> Vec<String> {
    let mut ordered: Vec<&OxmId> = fields.iter().collect();
    ordered.sort_by_key(|field| field_rank(field));
    ordered.into_iter().map(field_name).collect()
}

fn field_name(id: &OxmId) -> String {
    match known(id) {
        Some(field) => set_name(field).to_owned(),
        None => format!("raw_{:#06x}_{}", id.class, id.number),
    }
}

/// The field behind a header of the `OFPXMC_OPENFLOW_BASIC` class.
fn known(id: &OxmId) -> Option<Field> {
    Field::from_oxm(id.number).filter(|_| id.class == 0x8000)
}

/// Where a field comes in lists of `ovs-ofctl`.
fn field_rank(id: &OxmId) -> usize {
    use Field::*;
    const ORDER: [Field; 42] = [
        TunnelId,
        Metadata,
        InPort,
        InPhyPort,
        EthSrc,
        EthDst,
        EthType,
        VlanVid,
        VlanPcp,
        MplsLabel,
        MplsTc,
        MplsBos,
        PbbIsid,
        PbbUca,
        Ipv4Src,
        Ipv4Dst,
        Ipv6Src,
        Ipv6Dst,
        Ipv6Flabel,
        IpProto,
        IpDscp,
        IpEcn,
        IpFrag,
        ArpOp,
        ArpSpa,
        ArpTpa,
        ArpSha,
        ArpTha,
        TcpSrc,
        TcpDst,
        TcpFlags,
        UdpSrc,
        UdpDst,
        SctpSrc,
        SctpDst,
        Icmpv4Type,
        Icmpv4Code,
        Icmpv6Type,
        Icmpv6Code,
        Ipv6NdTarget,
        Ipv6NdSll,
        Ipv6NdTll,
    ];
    known(id).and_then(|field| ORDER.iter().position(|at| *at == field)).unwrap_or(ORDER.len())
}

fn matching(properties: &[TableProperty]) -> Vec<(String, &'static str)> {
    let mut wildcards = Vec::new();
    let mut matched: Vec<OxmId> = Vec::new();
    for property in properties {
        match property {
            TableProperty::Match(fields) => matched.extend(fields),
            TableProperty::Wildcards(fields) => wildcards.extend(fields.iter().map(|id| (id.class, id.number))),
            _ => {}
        }
    }
    matched.sort_by_key(field_rank);
    let how = |id: &OxmId| match (id.has_mask, wildcards.contains(&(id.class, id.number))) {
        (true, _) => MASK,
        (false, true) => WILDCARD,
        (false, false) => EXACT,
    };
    matched.iter().map(|id| (field_name(id), how(id))).collect()
}
