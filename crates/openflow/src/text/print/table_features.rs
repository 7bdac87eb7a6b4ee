//! Prints the features of flow tables.
use super::table::{EXACT, MASK, TableListPrinter, WILDCARD, grouped};
use super::table_names::{action_names, field_names, instruction_names, matching};
use crate::model::multipart::{TableFeatures, TableProperty};
use std::collections::BTreeSet;
use std::fmt::Write as _;

pub(super) fn features(tables: &[TableFeatures]) -> String {
    let mut out = TableListPrinter::default();
    let mut last: Option<(TableCapabilities, &TableFeatures)> = None;
    for table in tables {
        let summary = TableCapabilities::of(table);
        let same = last.as_ref().is_some_and(|(before, of)| before.is_like(of, &summary, table));
        let before = last.as_ref().map(|(summary, of)| (summary, of.table.0));
        out.put_table(table.table.0, &table.name, same, |text| summary.write(table, before, text));
        last = Some((summary, table));
    }
    out.finish()
}

/// Features of a table, gathered from its properties.
#[derive(PartialEq, Eq, Default)]
struct TableCapabilities {
    /// Abilities of ordinary flow entries, and of the table-miss entry.
    capabilities: [EntryCapabilities; 2],
    /// Fields, and the ways in which they can be matched.
    matching: Vec<(String, &'static str)>,
}

/// Abilities of a table's flow entries.
#[derive(PartialEq, Eq, Default, Clone)]
struct EntryCapabilities {
    next: BTreeSet<u8>,
    instructions: Vec<String>,
    write: SupportedActions,
    apply: SupportedActions,
}

/// Action types, and fields that set-field can set.
#[derive(PartialEq, Eq, Default, Clone)]
struct SupportedActions {
    kinds: Vec<String>,
    fields: Vec<String>,
}

impl TableCapabilities {
    fn of(table: &TableFeatures) -> TableCapabilities {
        let mut summary = TableCapabilities::default();
        // A missing property for the table-miss entry equals that for ordinary entries (OpenFlow 1.3.5, 7.3.5.5.2).
        for miss_pass in [false, true] {
            for property in &table.properties {
                summary.add(property, miss_pass);
            }
            if !miss_pass {
                summary.capabilities[1] = summary.capabilities[0].clone();
            }
        }
        summary.matching = matching(&table.properties);
        summary
    }

    fn add(&mut self, property: &TableProperty, miss_pass: bool) {
        let abilities = &mut self.capabilities[usize::from(miss_pass)];
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

    /// Returns true if two consecutive tables have the same features.
    fn is_like(&self, own: &TableFeatures, other: &TableCapabilities, of: &TableFeatures) -> bool {
        let numbers = |t: &TableFeatures| (t.metadata_match, t.metadata_write, t.config, t.max_entries);
        numbers(own) == numbers(of)
            && self.matching == other.matching
            && self.same_capabilities(own.table.0, &other.capabilities, of.table.0)
    }

    fn same_capabilities(&self, own: u8, others: &[EntryCapabilities; 2], of: u8) -> bool {
        self.capabilities.iter().zip(others).all(|(a, b)| a.is_like(own, b, of))
    }

    fn write(&self, table: &TableFeatures, before: Option<(&TableCapabilities, u8)>, text: &mut String) {
        if (table.metadata_match, table.metadata_write) != (0, 0) {
            let (matched, written) = (table.metadata_match, table.metadata_write);
            let _ = writeln!(text, "    metadata: match={matched:#x} write={written:#x}");
        }
        if table.max_entries != 0 {
            let _ = writeln!(text, "    max_entries={}", table.max_entries);
        }
        let [others, miss] = &self.capabilities;
        let last = |at: usize| before.map(|(summary, _)| &summary.capabilities[at]);
        let same = before.is_some_and(|(summary, of)| summary.same_capabilities(of, &self.capabilities, table.table.0));
        if same && *others != EntryCapabilities::default() {
            text.push_str("    (same instructions)\n");
        } else if !same && others != miss {
            text.push_str("    instructions (other than table miss):\n");
            others.write(last(0), text);
            text.push_str("    instructions (table miss):\n");
            miss.write(last(1), text);
        } else if !same && *others != EntryCapabilities::default() {
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

impl EntryCapabilities {
    /// Returns true if two tables with numbers `own` and `of` have the same abilities. For neighbouring tables, the
    /// higher of both numbers does not count as a next table: no table leads to itself or back, so two tables that
    /// each lead to all later tables are alike.
    fn is_like(&self, own: u8, other: &EntryCapabilities, of: u8) -> bool {
        let without = |next: &BTreeSet<u8>| {
            let mut next = next.clone();
            next.remove(&own.max(of));
            next
        };
        let next = self.next == other.next || own.abs_diff(of) == 1 && without(&self.next) == without(&other.next);
        next && self.instructions == other.instructions && self.write == other.write && self.apply == other.apply
    }

    fn write(&self, before: Option<&EntryCapabilities>, text: &mut String) {
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
        } else if self.write != SupportedActions::default() {
            text.push_str("      Write-Actions and Apply-Actions features:\n");
            self.write.write(text);
        }
    }
}

impl SupportedActions {
    fn write(&self, text: &mut String) {
        if !self.kinds.is_empty() {
            let _ = writeln!(text, "        actions: {}", self.kinds.join(" "));
        }
        if !self.fields.is_empty() {
            let _ = writeln!(text, "        supported on Set-Field: {}", grouped(&self.fields));
        }
    }
}

/// Prints numbers as ranges: `1-3,7`.
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
