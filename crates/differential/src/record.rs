//! Records of comparisons: the runs, and the number of differences of each kind.
use crate::kinds::{self, DeviatingSwitch};
use crate::run::DifferentialReport;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// A record of one or more runs, which compared different seeds.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct DifferentialRecord {
    /// Command that created the record.
    pub command: String,
    /// Commit or version of weir.
    pub weir: String,
    /// Version of Open vSwitch.
    pub open_vswitch: String,
    /// Seeds of the cases: first and last of each run.
    pub seeds: Vec<(u64, u64)>,
    /// Number of cases compared to their ends.
    pub cases: u64,
    /// Number of cases without a difference.
    pub same: u64,
    /// Number of messages, frames and pauses in the cases.
    pub steps: u64,
    /// Number of runs of cases on both switches, including those after a step was removed.
    pub runs: u64,
    /// Number of repeated runs on a new instance, for differences that may be caused by timing only.
    pub again: u64,
    /// Number of differences that no kind explains.
    pub unknown: u64,
    /// Differences by kind.
    pub kinds: BTreeMap<String, RecordedDifferenceKind>,
}

/// A kind in a record.
#[derive(Debug, Serialize, Deserialize)]
pub struct RecordedDifferenceKind {
    /// Number of differences of this kind.
    pub count: u64,
    /// Switch whose answer deviates from the specification.
    pub whose: DeviatingSwitch,
    /// Clause of the specification that explains the difference.
    pub clause: String,
    /// Both answers in a sentence.
    pub why: String,
}

impl DifferentialRecord {
    /// Reads a record. Returns an empty one if the file does not exist.
    ///
    /// # Errors
    /// The file cannot be read, or is no record.
    pub fn read(path: &Path) -> anyhow::Result<DifferentialRecord> {
        if !path.exists() {
            return Ok(DifferentialRecord::default());
        }
        Ok(serde_json::from_slice(&std::fs::read(path)?)?)
    }

    /// Adds the results of a run.
    pub fn add(&mut self, report: &DifferentialReport, seeds: (u64, u64)) {
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
            seen.or_insert(RecordedDifferenceKind { count: 0, whose: kind.whose, clause, why }).count += count;
        }
    }

    /// Writes the record.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        Ok(std::fs::write(path, text + "\n")?)
    }
}
