//! Records of comparisons: what was run, and how often each kind of difference was seen.
use crate::kinds::{self, Whose};
use crate::run::Report;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// A record of one or more runs, which compared different seeds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Record {
    /// Command that made it.
    pub command: String,
    /// weir's commit or version.
    pub weir: String,
    /// Open vSwitch's version.
    pub open_vswitch: String,
    /// Seeds of the cases: first and last of each run.
    pub seeds: Vec<(u64, u64)>,
    /// Cases compared to their ends.
    pub cases: u64,
    /// Cases in which nothing differed.
    pub same: u64,
    /// Messages, frames and pauses in them.
    pub steps: u64,
    /// Runs of cases on both switches, those after a step was left out included.
    pub runs: u64,
    /// Runs on a new instance, since a difference might be one of time only.
    pub again: u64,
    /// Differences that no kind explains.
    pub unknown: u64,
    /// How often each kind was seen.
    pub kinds: BTreeMap<String, Seen>,
}

/// A kind in a record.
#[derive(Debug, Serialize, Deserialize)]
pub struct Seen {
    /// How often it was seen.
    pub count: u64,
    /// Whose answer is not as specified.
    pub whose: Whose,
    /// The clause that explains it.
    pub clause: String,
    /// Both answers.
    pub why: String,
}

impl Record {
    /// Reads a record; an empty one if there is no such file.
    ///
    /// # Errors
    /// The file cannot be read, or is no record.
    pub fn read(path: &Path) -> anyhow::Result<Record> {
        if !path.exists() {
            return Ok(Record::default());
        }
        Ok(serde_json::from_slice(&std::fs::read(path)?)?)
    }

    /// Adds a run.
    pub fn add(&mut self, report: &Report, seeds: (u64, u64)) {
        self.seeds.push(seeds);
        self.cases += report.cases;
        self.same += report.same;
        self.steps += report.steps;
        self.runs += report.runs;
        self.again += report.again;
        self.unknown += report.unknown.len() as u64 + report.alike.values().map(|(count, _)| count).sum::<u64>();
        for kind in kinds::all() {
            let Some(count) = report.kinds.get(kind.name) else { continue };
            let (clause, why) = (kind.clause.to_owned(), kind.why.to_owned());
            let seen = self.kinds.entry(kind.name.to_owned());
            seen.or_insert(Seen { count: 0, whose: kind.whose, clause, why }).count += count;
        }
    }

    /// Writes it.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        Ok(std::fs::write(path, text + "\n")?)
    }
}
