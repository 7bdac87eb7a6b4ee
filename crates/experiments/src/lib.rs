//! Reruns published measurements of switches on weir and compares the figures with the published ones.
//!
//! Each experiment has a folder `experiments/<id>/`: `experiment.toml` with the question, the published figures and the
//! sizes, and a `README.md`. The files are built into the command, so that [`Experiment::run`] reads no file. Reading
//! order: [`definition`] (an experiment's file), [`report`] (a rerun's result), `tester` (ports that offer load and
//! measure), `testbed` (a switch between two of them), then the experiments, one module for each source.
mod controllers;
pub mod definition;
mod draw;
mod generator;
mod inband;
mod lagopus;
mod live;
mod machine_load;
mod models;
mod networks;
mod page;
mod profiling;
mod recovery;
pub mod report;
mod service_times;
mod sojourn;
mod testbed;
mod tester;
mod virtual_links;
mod virtual_switches;

pub use report::ExperimentReport;

use definition::{ExperimentDefinition, ExperimentSizes};
use machine_load::MachineCpuTicks;
use report::{Claim, ExperimentFigure, ExperimentSetup};
use std::path::PathBuf;
use weir_emulator::{CancelHandle, LabError};
use weir_network::result::LabMachineInfo;
use weir_switch::SwitchError;
use weir_units::{Clock, SystemClock};

/// An experiment that can be rerun.
pub struct Experiment {
    /// Name of the experiment and of its folder.
    pub id: &'static str,
    text: &'static str,
    measure: fn(&mut ExperimentRun<'_>) -> Result<(), ExperimentError>,
}

/// Defines the list of experiments, given the name of each experiment's folder and the function that runs it.
macro_rules! experiments {
    ($($id:literal $measure:path,)*) => {
        /// All experiments, in the order of their listing.
        pub static EXPERIMENTS: &[Experiment] = &[$(Experiment {
            id: $id,
            text: include_str!(concat!("../../../experiments/", $id, "/experiment.toml")),
            measure: $measure,
        },)*];
    };
}

experiments! {
    "lagopus-loop-count" lagopus::loop_count::measure,
    "lagopus-workers" lagopus::workers::measure,
    "lagopus-table-size" lagopus::table_size::measure,
    "vx-scale" virtual_switches::scale::measure,
    "vx-priority" virtual_switches::priority::measure,
    "vx-split-path" virtual_switches::split_path::measure,
    "vlink-allocation" virtual_links::allocation::measure,
    "vlink-isolation" virtual_links::isolation::measure,
    "network-promises" virtual_links::promises::measure,
    "vm-router-efficiency" virtual_switches::routers::measure,
    "sojourn-range-one" sojourn::range_one::measure,
    "sojourn-range-two" sojourn::range_two::measure,
    "generator-quality" generator::measure,
    "profile-tables" profiling::tables,
    "profile-control" profiling::control,
    "profile-data" profiling::data,
    "emulator-fidelity" profiling::fidelity::measure,
    "service-times" service_times::measure,
    "model-validation-control" profiling::validation::control,
    "model-validation-data" profiling::validation::data,
    "model-accuracy" models::accuracy::measure,
    "model-comparison" models::comparison::measure,
    "network-accuracy" networks::measure,
    "network-recovery" recovery::measure,
    "ctrl-baseline" controllers::baseline::measure,
    "ctrl-switches" controllers::switches::measure,
    "ctrl-threads" controllers::threads::measure,
    "ctrl-fairness" controllers::fairness::measure,
    "ctrl-loaded-latency" controllers::loaded::measure,
    "inband-bring-up" inband::bring_up::measure,
    "inband-latency" inband::latency::measure,
}

/// Options of a rerun.
#[derive(Debug, Clone, Default)]
pub struct ExperimentOptions {
    /// True to use the published sizes instead of the small ones.
    pub full: bool,
    /// True to include measurements that need live switches on network interfaces, in experiments where these are
    /// optional.
    pub live: bool,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Stops the rerun early.
    pub cancel: CancelHandle,
    /// Switch to measure instead of the experiment's own; only experiments that can measure any switch accept one.
    pub switch: Option<ExternalSwitch>,
    /// Capture whose packets are sent, in experiments that can send any trace.
    pub trace: Option<PathBuf>,
}

/// An external switch.
#[derive(Debug, Clone)]
pub struct ExternalSwitch {
    /// Control channel of the switch; `None` for a device without OpenFlow, whose packets alone can be measured.
    pub target: Option<weir_profiler::SwitchAddress>,
    /// Interfaces connected to the switch's ports, two or three.
    pub data: Vec<String>,
    /// Profile of the switch, if known; otherwise it is measured.
    pub profile: Option<PathBuf>,
}

/// Experiments that accept [`ExperimentOptions::switch`], and those that accept [`ExperimentOptions::trace`].
const ON_ANY_SWITCH: [&str; 2] = ["model-validation-control", "model-validation-data"];
const OF_ANY_TRACE: [&str; 1] = ["model-validation-data"];

/// Error of a rerun.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ExperimentError {
    #[error("no experiment `{found}`; there are: {known}")]
    Unknown { found: String, known: String },
    #[error("experiments/{id}/experiment.toml: {error}")]
    Definition { id: &'static str, error: toml::de::Error },
    #[error(transparent)]
    Switch(#[from] SwitchError),
    #[error(transparent)]
    Lab(#[from] LabError),
    #[error(transparent)]
    Model(#[from] weir_sim::FabricNetworkError),
    #[error(transparent)]
    Scenario(#[from] weir_scenario::ScenarioError),
    #[error(transparent)]
    NotSimulated(#[from] weir_sim::scenario::SimulateError),
    #[error(transparent)]
    Traffic(#[from] weir_traffic::TrafficError),
    #[error(transparent)]
    Formula(#[from] weir_model::ModelError),
    #[error("a case of the experiment: {0}")]
    Case(String),
}

/// Finds an experiment by its name.
///
/// # Errors
/// No experiment has this name.
pub fn find(id: &str) -> Result<&'static Experiment, ExperimentError> {
    EXPERIMENTS.iter().find(|experiment| experiment.id == id).ok_or_else(|| {
        let names: Vec<&str> = EXPERIMENTS.iter().map(|experiment| experiment.id).collect();
        ExperimentError::Unknown { found: id.to_owned(), known: weir_units::known_names(id, &names) }
    })
}

impl Experiment {
    /// Parses the experiment's file.
    ///
    /// # Errors
    /// The file is malformed; tests ensure that none is.
    pub fn definition(&self) -> Result<ExperimentDefinition, ExperimentError> {
        ExperimentDefinition::parse(self.text).map_err(|error| ExperimentError::Definition { id: self.id, error })
    }

    /// Checks that the experiment supports the options.
    fn check(&self, options: &ExperimentOptions) -> Result<(), ExperimentError> {
        for (flag, is_set, with) in [
            ("--switch", options.switch.is_some(), &ON_ANY_SWITCH[..]),
            ("--trace", options.trace.is_some(), &OF_ANY_TRACE[..]),
        ] {
            if is_set && !with.contains(&self.id) {
                let problem = format!("{flag}: found with {}, expected with {}", self.id, with.join(" or "));
                return Err(ExperimentError::Case(problem));
            }
        }
        Ok(())
    }

    /// Reruns the experiment. `progress` is called with a description of each step.
    ///
    /// # Errors
    /// A switch could not be set up. Figures that contradict the claims are no error: [`ExperimentReport::holds`] then
    /// returns false.
    pub fn run(
        &self,
        options: &ExperimentOptions,
        progress: &mut dyn FnMut(&str),
    ) -> Result<ExperimentReport, ExperimentError> {
        self.check(options)?;
        let definition = self.definition()?;
        let sizes = if options.full { definition.full } else { definition.small };
        self.run_sized(options, sizes, progress)
    }

    fn run_sized(
        &self,
        options: &ExperimentOptions,
        sizes: ExperimentSizes,
        progress: &mut dyn FnMut(&str),
    ) -> Result<ExperimentReport, ExperimentError> {
        let definition = self.definition()?;
        let clock = SystemClock::start();
        let mut run = ExperimentRun::new(options, sizes, progress);
        let before = MachineCpuTicks::now();
        (self.measure)(&mut run)?;
        let others = MachineCpuTicks::now().zip(before).map(|(now, before)| now.others_since(before));
        let disturbed = others.filter(|_| !run.simulated);
        let live = run.live_claims.into_iter().map(|claim| claim.disturbed_by(others));
        let claims = run.claims.into_iter().map(|claim| claim.disturbed_by(disturbed)).chain(live).collect();
        let mut report = ExperimentReport {
            experiment: self.id.to_owned(),
            title: definition.title.clone(),
            question: definition.question.clone(),
            source: definition.source.clone(),
            published_setup: definition.setup.clone(),
            figures: run.figures,
            claims,
            notes: run.notes,
            plots: run.plots,
            partial: options.cancel.is_cancelled(),
            setup: ExperimentSetup {
                version: env!("CARGO_PKG_VERSION"),
                release_build: weir_units::IS_RELEASE_BUILD,
                full: options.full,
                sizes,
                seed: options.seed,
                machine: LabMachineInfo::this(),
                others,
                duration_s: clock.now().as_secs_f64(),
            },
        };
        report.compare_with(&definition);
        Ok(report)
    }
}

/// State of a rerun in progress.
pub(crate) struct ExperimentRun<'a> {
    pub(crate) options: &'a ExperimentOptions,
    pub(crate) sizes: ExperimentSizes,
    pub(crate) progress: &'a mut dyn FnMut(&str),
    pub(crate) figures: Vec<ExperimentFigure>,
    pub(crate) claims: Vec<Claim>,
    /// Claims about live switches, in an experiment that is otherwise simulated.
    pub(crate) live_claims: Vec<Claim>,
    pub(crate) notes: Vec<String>,
    pub(crate) plots: Vec<weir_plot::Figure>,
    /// True if all figures are simulated, so that other load of the machine cannot disturb them.
    pub(crate) simulated: bool,
    /// Reason why figures are missing.
    pub(crate) missing: &'static str,
}

impl<'a> ExperimentRun<'a> {
    fn new(
        options: &'a ExperimentOptions,
        sizes: ExperimentSizes,
        progress: &'a mut dyn FnMut(&str),
    ) -> ExperimentRun<'a> {
        let (figures, claims, live_claims, notes, plots) = Default::default();
        let missing = "not all cases were measured";
        ExperimentRun {
            options,
            sizes,
            progress,
            figures,
            claims,
            live_claims,
            notes,
            plots,
            simulated: false,
            missing,
        }
    }

    /// Claims that figures, by their cases and metrics, satisfy a condition; untested if one is missing. `judge`
    /// returns whether they do, and a text with the figures.
    pub(crate) fn claim<const N: usize>(
        &mut self,
        text: &str,
        figures: [(&str, &str); N],
        judge: impl Fn([f64; N]) -> (bool, String),
    ) {
        let values: Option<Vec<f64>> = figures.iter().map(|(case, metric)| self.value(case, metric)).collect();
        let values: Option<[f64; N]> = values.and_then(|values| values.try_into().ok());
        self.claims.push(match values.map(judge) {
            Some((holds, because)) => Claim::tested(text, holds, because),
            None => Claim::untested(text, self.missing),
        });
    }

    pub(crate) fn tell(&mut self, doing: &str) {
        (self.progress)(doing);
    }

    /// Adds a figure.
    pub(crate) fn figure(&mut self, case: &str, metric: &'static str, unit: &'static str, value: SampledValue) {
        let SampledValue { value, sd, samples } = value;
        self.figures.push(ExperimentFigure {
            case: case.to_owned(),
            metric,
            unit,
            ours: value,
            sd,
            samples,
            published: None,
        });
    }

    /// Adds a note, unless it was added before.
    pub(crate) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Returns true if the rerun was cancelled.
    pub(crate) fn is_stopped(&self) -> bool {
        self.options.cancel.is_cancelled()
    }

    /// Returns the value of a figure that was added.
    pub(crate) fn value(&self, case: &str, metric: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.case == case && figure.metric == metric).map(|figure| figure.ours)
    }
}

/// A value with its spread.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct SampledValue {
    pub(crate) value: f64,
    pub(crate) sd: Option<f64>,
    pub(crate) samples: u64,
}

impl SampledValue {
    /// Returns the mean of samples, of which there must be at least one, with their standard deviation.
    pub(crate) fn mean_of(samples: &[f64]) -> SampledValue {
        let count = samples.len().max(1) as f64;
        let mean = samples.iter().sum::<f64>() / count;
        let variance = samples.iter().map(|sample| (sample - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        SampledValue { value: mean, sd: (samples.len() > 1).then(|| variance.sqrt()), samples: samples.len() as u64 }
    }

    /// Returns a value without spread that was counted over `samples` samples.
    pub(crate) fn of(value: f64, samples: u64) -> SampledValue {
        SampledValue { value, sd: None, samples }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn sizes(time: std::time::Duration) -> ExperimentSizes {
        let time = weir_units::TimeSpan(time);
        ExperimentSizes { time, ping_interval: time, replications: 1 }
    }

    #[test]
    fn every_file_can_be_read_and_names_a_source() {
        for experiment in EXPERIMENTS {
            let definition = experiment.definition().unwrap();
            assert!(definition.source.contains(char::is_numeric), "{}: the source has a year", experiment.id);
            assert!(!definition.published.is_empty(), "{}", experiment.id);
            assert!(definition.small.time <= definition.full.time, "{}", experiment.id);
        }
    }

    #[test]
    fn unknown_names_are_told_the_known_ones() {
        let error = find("lagopus").map(|found| found.id).unwrap_err().to_string();
        assert!(error.contains("lagopus-workers") && !error.contains("nearest"), "{error}");
        let error = find("network-acuracy").map(|found| found.id).unwrap_err().to_string();
        assert!(error.ends_with("(nearest: network-accuracy)"), "{error}");
    }

    #[test]
    fn what_an_experiment_does_not_take_is_refused() {
        let options = ExperimentOptions { trace: Some("x.pcap".into()), ..ExperimentOptions::default() };
        let error = find("model-validation-control").unwrap().run(&options, &mut |_| ()).unwrap_err().to_string();
        assert!(error.contains("--trace") && error.contains("model-validation-data"), "{error}");
    }

    #[test]
    fn means_have_their_spread() {
        assert_eq!(SampledValue::mean_of(&[1.0, 3.0]), SampledValue { value: 2.0, sd: Some(2_f64.sqrt()), samples: 2 });
        assert_eq!(SampledValue::mean_of(&[5.0]), SampledValue { value: 5.0, sd: None, samples: 1 });
    }
}
