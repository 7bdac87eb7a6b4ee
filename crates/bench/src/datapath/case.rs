//! Defines the benchmark's cases: the flow entries to load, and the flows whose packets are sent.
use super::entry::{self, PRIORITY};
use super::{HeaderPattern, attack, masks, pipeline, routes, rules};
use anyhow::{Context, anyhow, ensure};
use std::path::Path;
use weir_openflow::model::{FlowMod, Match};
use weir_packet::Field;
use weir_port::null::{FlowHeaderKind, GeneratedFlows};

/// Maximum number of entries in a table.
const MAX_ENTRIES: u32 = 1 << 24;

/// Name of a case, as given on the command line and printed in the tables of results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum BenchCaseName {
    /// No datapath, one flow: the cost of creating and releasing frames, which every other case includes
    Io,
    /// A single entry on the input port, one flow
    Port,
    /// A single entry with a wildcard, 1000 flows
    Wildcard,
    /// Destination addresses, an entry and a flow for each
    Mac,
    /// 5-tuples, an entry and a flow for each
    Udp,
    /// MPLS labels, an entry and a flow for each
    Mpls,
    /// Entries with 32 different masks, 1024 flows
    Masks,
    /// An entry for each IPv4 prefix in --file (longest prefix match); each flow has a random address
    Lpm,
    /// Entries from the rule set in --file; 100,000 flows with random headers chosen from the rules
    Classbench,
    /// Adversarial headers: combinations of the rules in --file, or tuple space explosion without a file
    Attack,
    /// Five tables of 1000 entries each
    Pipeline,
}

impl BenchCaseName {
    pub(super) const WITHOUT_FILE: [BenchCaseName; 9] = [
        BenchCaseName::Io,
        BenchCaseName::Port,
        BenchCaseName::Wildcard,
        BenchCaseName::Mac,
        BenchCaseName::Udp,
        BenchCaseName::Mpls,
        BenchCaseName::Masks,
        BenchCaseName::Attack,
        BenchCaseName::Pipeline,
    ];
}

/// Settings of the user for a case; `None` stands for the case's default.
pub(super) struct BenchCaseSettings<'a> {
    pub(super) entries: Option<u32>,
    pub(super) flows: Option<u32>,
    pub(super) masks: Option<u32>,
    pub(super) tables: Option<u8>,
    pub(super) actions: Option<&'a entry::EntryActionsArg>,
    pub(super) file: Option<&'a Path>,
    pub(super) headers: Option<HeaderPattern>,
    pub(super) size: usize,
    pub(super) seed: u64,
}

/// Flow entries and traffic of one measurement.
pub(super) struct DatapathBenchCase {
    pub(super) name: BenchCaseName,
    /// Flow-mods that add the case's entries, generated one by one as they are loaded.
    pub(super) entries: Box<dyn Iterator<Item = FlowMod>>,
    pub(super) flows: GeneratedFlows,
    /// Number of flow tables in which each packet is looked up; 0 if packets do not enter the datapath.
    pub(super) tables: u8,
}

impl DatapathBenchCase {
    /// Creates a case with the given settings.
    ///
    /// # Errors
    /// The file is missing or cannot be read; an option does not fit the case, or is out of range.
    pub(super) fn new(name: BenchCaseName, wanted: &BenchCaseSettings) -> anyhow::Result<DatapathBenchCase> {
        wanted.check(name)?;
        let case = match name {
            BenchCaseName::Io => wanted.io(),
            BenchCaseName::Port => wanted.one(name, Match::any().with(Field::InPort, entry::IN.0), 1),
            BenchCaseName::Wildcard => wanted.one(name, sources(), 1000),
            BenchCaseName::Mac => wanted.each(name, FlowHeaderKind::Mac, destination),
            BenchCaseName::Udp => wanted.each(name, FlowHeaderKind::Udp, five_tuple),
            BenchCaseName::Mpls => wanted.each(name, FlowHeaderKind::Mpls, label),
            BenchCaseName::Masks => masks::case(wanted),
            BenchCaseName::Lpm => routes::case(wanted),
            BenchCaseName::Classbench => rules::case(wanted),
            BenchCaseName::Attack => attack::case(wanted),
            BenchCaseName::Pipeline => pipeline::case(wanted),
        };
        let case = case.map(|case| match wanted.actions.cloned() {
            Some(actions) => {
                DatapathBenchCase { entries: Box::new(case.entries.map(move |flow| actions.of(flow))), ..case }
            }
            None => case,
        });
        let said = clap::ValueEnum::to_possible_value(&name).map(|value| value.get_name().to_owned());
        case.with_context(|| format!("case {}", said.unwrap_or_default()))
    }
}

impl BenchCaseSettings<'_> {
    fn check(&self, name: BenchCaseName) -> anyhow::Result<()> {
        use BenchCaseName::{Attack, Classbench, Io, Lpm, Masks, Pipeline, Port, Wildcard};
        let only = |given: bool, option: &str, cases: &[BenchCaseName]| {
            ensure!(!given || cases.contains(&name), "--{option} does not go with this case: leave it out");
            Ok(())
        };
        let with_entries = self.entries.is_some() && matches!(name, Io | Port | Wildcard);
        ensure!(!with_entries, "--entries does not go with a case of one entry or none: leave it out");
        only(self.masks.is_some(), "masks", &[Masks])?;
        only(self.tables.is_some(), "tables", &[Pipeline])?;
        only(self.file.is_some(), "file", &[Lpm, Classbench, Attack])?;
        only(self.headers.is_some(), "headers", &[Classbench, Attack])?;
        let entries = self.entries.unwrap_or(1);
        ensure!(entries <= MAX_ENTRIES, "--entries: found {entries}, expected at most {MAX_ENTRIES}");
        Ok(())
    }

    /// Returns the path given with `--file`, or an error that names `what` as the content the case needs.
    pub(super) fn file(&self, what: &str) -> anyhow::Result<&Path> {
        self.file.ok_or_else(|| anyhow!("needs {what}: give --file FILE"))
    }

    /// Creates `count` flows with the given headers. `spread` is the number of distinct values of the varied field,
    /// which the flows share; `None` gives each flow its own value.
    pub(super) fn flows(
        &self,
        headers: FlowHeaderKind,
        count: u32,
        spread: Option<u32>,
    ) -> anyhow::Result<GeneratedFlows> {
        GeneratedFlows::new(headers, count, spread, self.size).map_err(|problem| anyhow!("{problem}"))
    }

    fn io(&self) -> anyhow::Result<DatapathBenchCase> {
        let flows = self.flows(FlowHeaderKind::Udp, self.flows.unwrap_or(1), None)?;
        Ok(DatapathBenchCase { name: BenchCaseName::Io, entries: Box::new(std::iter::empty()), flows, tables: 0 })
    }

    fn one(&self, name: BenchCaseName, matching: Match, flows: u32) -> anyhow::Result<DatapathBenchCase> {
        let flows = self.flows(FlowHeaderKind::Udp, self.flows.unwrap_or(flows), None)?;
        Ok(DatapathBenchCase {
            name,
            entries: Box::new(std::iter::once(entry::output(PRIORITY, matching))),
            flows,
            tables: 1,
        })
    }

    /// Creates a case with one entry for each value of `matching` (default: 1000). If there are more flows than
    /// entries, several flows match one entry.
    fn each(
        &self,
        name: BenchCaseName,
        headers: FlowHeaderKind,
        matching: fn(u32) -> Match,
    ) -> anyhow::Result<DatapathBenchCase> {
        let entries = self.entries.unwrap_or(1000);
        let flows = self.flows.unwrap_or(entries);
        ensure!(name != BenchCaseName::Mpls || entries <= 1 << 20, "there are 2^20 labels, found {entries} entries");
        let may_share = name != BenchCaseName::Udp || flows <= entries;
        ensure!(may_share, "each entry is one flow's: found {flows} flows for {entries} entries");
        let flows = self.flows(headers, flows, Some(entries.min(flows)))?;
        let entries = (0..entries).map(move |number| entry::output(PRIORITY, matching(number)));
        Ok(DatapathBenchCase { name, entries: Box::new(entries), flows, tables: 1 })
    }
}

fn sources() -> Match {
    entry::with_prefix(entry::udp(), Field::Ipv4Src, 10 << 24, 8)
}

fn destination(number: u32) -> Match {
    Match::any().with(Field::EthDst, 0x0200_0000_0000 | u64::from(number))
}

/// Returns a match on all fields of the generator's UDP flow `number`.
pub(super) fn five_tuple(number: u32) -> Match {
    let addresses = entry::udp().with(Field::Ipv4Src, source(number)).with(Field::Ipv4Dst, target(number));
    addresses.with(Field::UdpSrc, source_port(number)).with(Field::UdpDst, 2048_u16)
}

pub(super) fn source(number: u32) -> u32 {
    (10 << 24) + number
}

pub(super) fn target(number: u32) -> u32 {
    0xc0a8_0000 | number & 0xffff
}

pub(super) fn source_port(number: u32) -> u32 {
    1024 + (number & 0x7fff)
}

fn label(number: u32) -> Match {
    Match::any().with(Field::EthType, weir_packet::field::eth_type::MPLS).with(Field::MplsLabel, number)
}
