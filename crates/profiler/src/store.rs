//! Stores raw runs as they are measured, one file for each kind, and intermediate results, so that a stopped
//! measurement can be resumed.
use crate::control::{MeasuredBurst, TimedCommandKind};
use crate::{MeasurementGrid, PriorityOrder, ProfilerError, RigDelayTable};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use weir_model::fit::cache_policy::ProbedEntry;

/// Longest file of runs that is read, in bytes.
const MAX_FILE: u64 = 1 << 28;

/// Raw result of one run.
#[derive(Debug, Clone)]
pub(crate) enum RawDataRow<'a> {
    /// Packet to an entry, sent to find levels.
    Probe { run: u32, entry: u64, delay_s: Option<f64> },
    /// Entry in an experiment that looks for a policy.
    Standing { round: u32, experiment: &'static str, probe: ProbedEntry },
    /// Burst that looks for batches, with the time until its first command was done.
    Apart { commands: u32, apart_s: f64, run: u32, first_s: f64 },
    /// Burst of the control plane's grid.
    Timed(&'a MeasuredBurst),
    /// Time of a message.
    Message(&'a MessageRow),
    /// Delay of a packet.
    Delay(&'a PacketDelayRow),
    /// Trial of throughput.
    Trial(&'a TrialRow),
}

/// Time of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MessageRow {
    /// Kind: `packet_in`, `packet_out`, `echo` or `statistics`.
    pub message: String,
    /// Length of the packet in bytes; for statistics, number of entries present.
    pub size: u32,
    /// Index among those of its kind and size, from 0.
    pub run: u32,
    /// Time in seconds; none if no answer came.
    pub delay_s: Option<f64>,
}

/// Delay of a packet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PacketDelayRow {
    /// Level of the matched entry, from 0.
    pub level: usize,
    /// Fields that the entry matches: `l2`, `l3` or `l2l3`.
    pub kind: String,
    /// Number of entries in the level.
    pub entries: u64,
    /// Length of the packet, in bytes.
    pub bytes: u32,
    /// Time since the previous packet, in microseconds.
    pub gap_us: u32,
    /// Index among the packets of its case, from 0.
    pub packet: u32,
    /// Delay in seconds; none if the packet was lost.
    pub delay_s: Option<f64>,
}

/// Trial of throughput.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct TrialRow {
    /// Length of the packets, in bytes.
    pub bytes: u32,
    /// Requested rate, in packets a second.
    pub asked_pps: f64,
    /// Rate at which packets were sent, in packets a second.
    pub sent_pps: f64,
    /// Number of packets sent.
    pub sent: u64,
    /// Number of packets lost.
    pub lost: u64,
    /// Mean delay in seconds; none if no packet came back.
    pub mean_delay_s: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct ControlRow {
    command: TimedCommandKind,
    priorities: PriorityOrder,
    entries: u64,
    batch: u32,
    run: u32,
    low_s: f64,
    high_s: f64,
    barrier_s: f64,
    reordered: bool,
    terms: String,
}

/// Folder for raw runs and intermediate results, or none.
#[derive(Debug, Default)]
pub struct RawDataStore {
    folder: Option<PathBuf>,
    writers: BTreeMap<&'static str, csv::Writer<File>>,
}

impl RawDataStore {
    /// Returns a store that keeps nothing.
    pub fn none() -> RawDataStore {
        RawDataStore::default()
    }

    /// Opens a folder, which is created if missing. Runs of an equal grid in it are resumed.
    ///
    /// # Errors
    /// The folder cannot be created or read, or has runs of another grid.
    pub fn folder(folder: &Path, grid: &MeasurementGrid) -> Result<RawDataStore, ProfilerError> {
        let file = |path: &Path, problem: String| ProfilerError::File { path: path.display().to_string(), problem };
        std::fs::create_dir_all(folder).map_err(|error| file(folder, format!("making the folder: {error}")))?;
        let path = folder.join("grid.toml");
        let text = toml::to_string(grid).map_err(|error| file(&path, error.to_string()))?;
        match std::fs::read_to_string(&path) {
            Ok(there) if there == text => {}
            Ok(_) => {
                let problem = "found runs of another grid, expected those of this one; give another --out, or the grid they were measured with";
                return Err(file(&path, problem.to_owned()));
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {
                std::fs::write(&path, text).map_err(|error| file(&path, format!("writing it: {error}")))?;
            }
            Err(error) => return Err(file(&path, format!("reading it: {error}"))),
        }
        Ok(RawDataStore { folder: Some(folder.to_owned()), writers: BTreeMap::new() })
    }

    /// Records which switch and interfaces the runs belong to.
    ///
    /// # Errors
    /// The folder has runs of another device; a file cannot be read, parsed or written.
    pub fn of(&self, whose: &str) -> Result<(), ProfilerError> {
        match self.kept::<String>("of")? {
            Some(there) if there == whose => Ok(()),
            Some(there) => {
                let path = self.folder.iter().map(|folder| folder.join("of.json").display().to_string()).collect();
                let problem = format!("found runs of {there}, expected those of {whose}; give another --out");
                Err(ProfilerError::File { path, problem })
            }
            None => self.keep("of", &whose),
        }
    }

    /// Returns the rig's own delay if it was stored before.
    ///
    /// # Errors
    /// The file cannot be read or parsed.
    pub fn rig(&self) -> Result<Option<RigDelayTable>, ProfilerError> {
        self.kept("rig")
    }

    /// Stores the rig's own delay.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep_rig(&self, rig: &RigDelayTable) -> Result<(), ProfilerError> {
        self.keep("rig", rig)
    }

    /// Returns the path of the folder; none if nothing is kept.
    pub fn path(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    pub(crate) fn write(&mut self, row: &RawDataRow<'_>) -> Result<(), ProfilerError> {
        match row {
            RawDataRow::Probe { run, entry, delay_s } => {
                self.line("probes", &["run", "entry", "delay_s"], (run, entry, delay_s))
            }
            RawDataRow::Standing { round, experiment, probe } => {
                let ProbedEntry { standing, slow } = probe;
                let names = ["round", "experiment", "modified", "used", "traffic", "priority", "slow"];
                let values =
                    (round, experiment, standing.modified, standing.used, standing.traffic, standing.priority, slow);
                self.line("policy", &names, values)
            }
            RawDataRow::Apart { commands, apart_s, run, first_s } => {
                self.line("batches", &["commands", "apart_s", "run", "first_s"], (commands, apart_s, run, first_s))
            }
            RawDataRow::Timed(timed) => self.line("control", &[], ControlRow::of(timed)),
            RawDataRow::Message(row) => self.line("messages", &[], row),
            RawDataRow::Delay(row) => self.line("delays", &[], row),
            RawDataRow::Trial(row) => self.line("trials", &[], row),
        }
    }

    /// Appends a row to a file. A new file starts with `names`, or with the row's field names if `names` is empty.
    fn line(&mut self, file: &'static str, names: &[&str], row: impl Serialize) -> Result<(), ProfilerError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let path = folder.join(file).with_extension("csv");
        let failed = |problem: String| ProfilerError::File { path: path.display().to_string(), problem };
        if !self.writers.contains_key(file) {
            let opened = OpenOptions::new().create(true).append(true).open(&path);
            let opened = opened.map_err(|error| failed(format!("opening it: {error}")))?;
            let is_new = opened.metadata().map_or(true, |data| data.len() == 0);
            let mut writer = csv::WriterBuilder::new().has_headers(is_new && names.is_empty()).from_writer(opened);
            if is_new && !names.is_empty() {
                writer.write_record(names).map_err(|error| failed(error.to_string()))?;
            }
            self.writers.insert(file, writer);
        }
        let Some(writer) = self.writers.get_mut(file) else { return Ok(()) };
        writer.serialize(row).map_err(|error| failed(format!("writing to it: {error}")))?;
        writer.flush().map_err(|error| failed(format!("writing to it: {error}")))
    }

    /// Reads the rows of a file; an incomplete last line is ignored.
    fn rows<T: DeserializeOwned>(&self, file: &str) -> Result<Vec<T>, ProfilerError> {
        let Some(folder) = &self.folder else { return Ok(Vec::new()) };
        let path = folder.join(file).with_extension("csv");
        let failed = |problem: String| ProfilerError::File { path: path.display().to_string(), problem };
        match std::fs::metadata(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(format!("reading it: {error}"))),
            Ok(data) if data.len() > MAX_FILE => {
                return Err(failed(format!("found {} bytes, expected at most {MAX_FILE}", data.len())));
            }
            Ok(_) => {}
        }
        let text = std::fs::read_to_string(&path).map_err(|error| failed(format!("reading it: {error}")))?;
        let whole = &text[..text.rfind('\n').map_or(0, |end| end + 1)];
        let mut reader = csv::Reader::from_reader(whole.as_bytes());
        reader.deserialize().collect::<Result<Vec<T>, _>>().map_err(|error| failed(error.to_string()))
    }

    pub(crate) fn timed(&self) -> Result<Vec<MeasuredBurst>, ProfilerError> {
        let rows: Vec<ControlRow> = self.rows("control")?;
        let wrong = |problem| ProfilerError::File { path: "control.csv".to_owned(), problem };
        rows.into_iter().map(|row| row.timed().map_err(wrong)).collect()
    }

    pub(crate) fn messages(&self) -> Result<Vec<MessageRow>, ProfilerError> {
        self.rows("messages")
    }

    pub(crate) fn delays(&self) -> Result<Vec<PacketDelayRow>, ProfilerError> {
        self.rows("delays")
    }

    pub(crate) fn trials(&self) -> Result<Vec<TrialRow>, ProfilerError> {
        self.rows("trials")
    }

    /// Stores an intermediate result under a name.
    pub(crate) fn keep<T: Serialize>(&self, name: &str, found: &T) -> Result<(), ProfilerError> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let path = folder.join(name).with_extension("json");
        let failed = |problem: String| ProfilerError::File { path: path.display().to_string(), problem };
        let text = serde_json::to_string_pretty(found).map_err(|error| failed(error.to_string()))?;
        std::fs::write(&path, text + "\n").map_err(|error| failed(format!("writing it: {error}")))
    }

    /// Returns the intermediate result with this name, if there is one.
    pub(crate) fn kept<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, ProfilerError> {
        let Some(folder) = &self.folder else { return Ok(None) };
        let path = folder.join(name).with_extension("json");
        let failed = |problem: String| ProfilerError::File { path: path.display().to_string(), problem };
        let text = match std::fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(format!("reading it: {error}"))),
        };
        serde_json::from_str(&text).map(Some).map_err(|error| failed(error.to_string()))
    }
}

impl ControlRow {
    fn of(timed: &MeasuredBurst) -> ControlRow {
        ControlRow {
            command: timed.command,
            priorities: timed.priorities,
            entries: timed.entries,
            batch: timed.batch,
            run: timed.run,
            low_s: timed.low_s,
            high_s: timed.high_s,
            barrier_s: timed.barrier_s,
            reordered: timed.reordered,
            terms: timed.terms.to_string(),
        }
    }

    fn timed(self) -> Result<MeasuredBurst, String> {
        Ok(MeasuredBurst {
            command: self.command,
            priorities: self.priorities,
            entries: self.entries,
            batch: self.batch,
            run: self.run,
            low_s: self.low_s,
            high_s: self.high_s,
            barrier_s: self.barrier_s,
            reordered: self.reordered,
            terms: self.terms.parse()?,
        })
    }
}
