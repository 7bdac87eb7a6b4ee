//! Prints the configuration and statistics of flow tables.
use super::{PrintContext, shape};
use crate::model::config::{TableMod, VacancyThresholds, eviction, table_config};
use crate::model::multipart::TableStats;
use crate::model::{TableId, Version};
use std::fmt::Write as _;

pub(super) fn table_mod(table_mod: &TableMod, show: PrintContext) -> String {
    let mut text = match table_mod.table {
        TableId::ALL => " table_id: ALL_TABLES".to_owned(),
        table => format!(" table_id={}", table.0),
    };
    // 1.3 has only deprecated configuration bits, which mean nothing (OpenFlow 1.3.5, 7.3.3).
    if show.version < Version::V14 {
        return text;
    }
    let _ = write!(text, ", eviction={}", on_off(table_mod.config & table_config::EVICTION));
    if let Some(flags) = table_mod.eviction {
        let _ = write!(text, " eviction_flags={}", eviction_flags(flags));
    }
    let _ = write!(text, ", vacancy={}", on_off(table_mod.config & table_config::VACANCY_EVENTS));
    if table_mod.config & table_config::VACANCY_EVENTS != 0 {
        let (down, up) = table_mod.vacancy.map_or((0, 0), |vacancy| (vacancy.down, vacancy.up));
        let _ = write!(text, " vacancy:{down},{up}");
    }
    text
}

fn on_off(bit: u32) -> &'static str {
    if bit == 0 { "off" } else { "on" }
}

fn eviction_flags(flags: u32) -> String {
    let names = [(eviction::OTHER, "OTHER"), (eviction::IMPORTANCE, "IMPORTANCE"), (eviction::LIFETIME, "LIFETIME")];
    let set: Vec<&str> = names.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, name)| *name).collect();
    if set.is_empty() { flags.to_string() } else { set.join("|") }
}

/// Prints the configuration of a table on several lines.
pub(super) fn desc(table: &TableMod) -> String {
    let mut text = format!("\n  table {}:\n", table.table.0);
    let flags = table.eviction.map_or_else(|| "(default)".to_owned(), eviction_flags);
    let _ = writeln!(text, "   eviction={} eviction_flags={flags}", on_off(table.config & table_config::EVICTION));
    let _ = write!(text, "   vacancy={}", on_off(table.config & table_config::VACANCY_EVENTS));
    let vacancy = table.vacancy.filter(|_| table.config & table_config::VACANCY_EVENTS != 0);
    if let Some(VacancyThresholds { down, up, now }) = vacancy {
        let _ = write!(text, " vacancy_down={down}% vacancy_up={up}% vacancy={now}%");
    }
    text + "\n"
}

/// Ways in which a field can be matched.
pub(super) const MASK: &str = "arbitrary mask";
pub(super) const WILDCARD: &str = "exact match or wildcard";
pub(super) const EXACT: &str = "must exact match";

/// Names of the fields that a table of 1.0 can wildcard, by their bits, in the spelling and order of `ovs-ofctl`.
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

pub(super) fn stats(tables: &[TableStats], show: PrintContext) -> String {
    let mut out = TableListPrinter::default();
    let mut last: Option<&TableStats> = None;
    for table in tables {
        let counters = |t: &TableStats| (t.active_count, t.lookup_count, t.matched_count);
        let abilities = |t: &TableStats| (t.wildcards, t.max_entries);
        let same_counters = last.is_some_and(|last| counters(last) == counters(table));
        let same_abilities = last.is_some_and(|last| abilities(last) == abilities(table));
        let has_abilities = show.version == Version::V10;
        out.put_table(table.table.0, &table.name, same_counters && same_abilities, |text| {
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

/// Prints names, with a common prefix written once: `eth_{src,dst} in_port`.
pub(super) fn grouped<N: AsRef<str>>(names: &[N]) -> String {
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

/// Prints tables one below the other; a table equal to the previous one is printed as `ditto`.
#[derive(Default)]
pub(super) struct TableListPrinter {
    text: String,
    /// First and last number of the pending nameless tables that equal the previous one.
    same: Option<(u8, u8)>,
}

impl TableListPrinter {
    pub(super) fn put_table(&mut self, number: u8, name: &str, same: bool, body: impl FnOnce(&mut String)) {
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

    pub(super) fn finish(mut self) -> String {
        self.flush();
        self.text
    }
}
