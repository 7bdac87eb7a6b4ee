//! The case of a pipeline: consecutive tables, each with exact entries on different fields.
use super::case::{BenchCaseName, BenchCaseSettings, DatapathBenchCase, five_tuple, source, source_port, target};
use super::entry;
use weir_openflow::model::{FlowMod, Match, TableId};
use weir_packet::Field;
use weir_port::null::FlowHeaderKind;

const TABLES: u8 = 5;
const ENTRIES: u32 = 1000;

/// Creates the case: each table has one entry for each flow.
pub(super) fn case(wanted: &BenchCaseSettings) -> anyhow::Result<DatapathBenchCase> {
    let (tables, count) = (wanted.tables.unwrap_or(TABLES), wanted.entries.unwrap_or(ENTRIES));
    let most = if tables > 1 { 1 << 15 } else { u32::MAX };
    anyhow::ensure!(count <= most, "entries on ports are at most {most}, found {count}");
    let flows = wanted.flows.unwrap_or(count);
    anyhow::ensure!(flows <= count, "each entry is one flow's: found {flows} flows for {count} entries");
    let flows = wanted.flows(FlowHeaderKind::Udp, flows, None)?;
    let entries = (0..tables).flat_map(move |table| (0..count).map(move |number| stage(table, tables, number)));
    Ok(DatapathBenchCase { name: BenchCaseName::Pipeline, entries: Box::new(entries), flows, tables })
}

fn stage(table: u8, tables: u8, number: u32) -> FlowMod {
    let matching = matching(table, number);
    let flow =
        if table + 1 < tables { entry::goto(table + 1, matching) } else { entry::output(entry::PRIORITY, matching) };
    FlowMod { table: TableId(table), ..flow }
}

/// Returns the match of a table: source, destination, source port, both addresses, all five fields, then again from
/// the start.
fn matching(table: u8, number: u32) -> Match {
    match table % TABLES {
        0 => entry::ipv4().with(Field::Ipv4Src, source(number)),
        1 => entry::ipv4().with(Field::Ipv4Dst, target(number)),
        2 => entry::udp().with(Field::UdpSrc, source_port(number)),
        3 => entry::ipv4().with(Field::Ipv4Src, source(number)).with(Field::Ipv4Dst, target(number)),
        _ => five_tuple(number),
    }
}
