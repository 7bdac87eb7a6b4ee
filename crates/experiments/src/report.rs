//! Defines the report on a rerun of a published experiment: weir's figures beside the published ones, the claims, and
//! the setup.
use crate::definition::{ExperimentDefinition, ExperimentSizes, PublishedFigure};
use crate::machine_load::DISTURBED;
use serde::Serialize;
use std::fmt;
use weir_network::result::LabMachineInfo;
use weir_plot::short;
use weir_terminal::table::ReportTable;

/// Report on a rerun of a published experiment. `Display` prints it as text, `Serialize` writes it as a record.
#[derive(Debug, Clone, Serialize)]
pub struct ExperimentReport {
    /// Name of the experiment.
    pub experiment: String,
    /// Title of the experiment.
    pub title: String,
    /// Question that the experiment answers.
    #[serde(skip)]
    pub question: String,
    /// Source of the published figures.
    pub source: String,
    /// Setup of the published figures.
    pub published_setup: String,
    /// Setup of weir's figures.
    pub setup: ExperimentSetup,
    /// Figures, case by case.
    pub figures: Vec<ExperimentFigure>,
    /// Claims that the figures are expected to support, with their outcome.
    pub claims: Vec<Claim>,
    /// Remarks about the figures.
    pub notes: Vec<String>,
    /// Charts of the figures.
    #[serde(skip)]
    pub plots: Vec<weir_plot::Figure>,
    /// True if the rerun was stopped before its end, so that cases are missing.
    pub partial: bool,
}

/// Setup of a rerun.
#[derive(Debug, Clone, Serialize)]
pub struct ExperimentSetup {
    /// Version of weir.
    pub version: &'static str,
    /// True if built with optimisation.
    pub release_build: bool,
    /// True if the sizes are those published.
    pub full: bool,
    /// Sizes of the rerun.
    pub sizes: ExperimentSizes,
    /// Seed of the random numbers.
    pub seed: u64,
    /// Machine on which the experiment was rerun.
    pub machine: LabMachineInfo,
    /// Share of the machine's processor time that other programs used during the rerun, `0.0..=1.0`. They disturb the
    /// figures. `None` if unknown.
    pub others: Option<f64>,
    /// Duration of the rerun in seconds.
    pub duration_s: f64,
}

/// A measured quantity in one case.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExperimentFigure {
    /// Name of the case.
    pub case: String,
    /// Name of the measured quantity.
    pub metric: &'static str,
    /// Unit of the values.
    pub unit: &'static str,
    /// Value measured on weir.
    pub ours: f64,
    /// Standard deviation of weir's value over the samples, if there are several.
    pub sd: Option<f64>,
    /// Number of samples of weir's value.
    pub samples: u64,
    /// Published figure for this case and quantity, if there is one.
    pub published: Option<PublishedFigure>,
}

/// A statement that the figures are expected to support.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    /// The statement in words.
    pub text: String,
    /// Outcome: true if the figures support the statement; `None` if it could not be tested here.
    pub holds: Option<bool>,
    /// The deciding figures, or the reason why the statement could not be tested.
    pub because: String,
}

impl Claim {
    /// Returns a claim that was tested.
    pub fn tested(text: impl Into<String>, holds: bool, because: impl Into<String>) -> Claim {
        Claim { text: text.into(), holds: Some(holds), because: because.into() }
    }

    /// Returns a claim that could not be tested here.
    pub fn untested(text: impl Into<String>, because: impl Into<String>) -> Claim {
        Claim { text: text.into(), holds: None, because: because.into() }
    }

    /// Returns the claim, marked as untested if it failed while other programs used more than [`DISTURBED`] of the
    /// machine, because such a failure shows nothing. `others` is the share that they used, if known.
    pub(crate) fn disturbed_by(self, others: Option<f64>) -> Claim {
        match others {
            Some(share) if self.holds == Some(false) && share > DISTURBED => {
                let because = format!("{}; but others used {:.0} % of the machine", self.because, share * 100.0);
                Claim { holds: None, because, ..self }
            }
            _ => self,
        }
    }
}

impl ExperimentReport {
    /// Returns true if the report is complete and no claim failed.
    pub fn holds(&self) -> bool {
        !self.partial && self.claims.iter().all(|claim| claim.holds != Some(false))
    }

    /// Returns the value of a figure by its case and metric.
    pub fn figure(&self, case: &str, metric: &str) -> Option<f64> {
        self.figures.iter().find(|figure| figure.case == case && figure.metric == metric).map(|figure| figure.ours)
    }

    /// Sets the published value of each figure that has one in `definition`.
    pub(crate) fn compare_with(&mut self, definition: &ExperimentDefinition) {
        for figure in &mut self.figures {
            figure.published = definition.published(&figure.case, figure.metric).cloned();
        }
    }
}

impl fmt::Display for ExperimentReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.experiment, self.title)?;
        writeln!(f, "published: {}; {}\n", self.source, self.published_setup)?;
        writeln!(f, "{}\n", self.table())?;
        for claim in &self.claims {
            let holds = match claim.holds {
                Some(true) => "holds",
                Some(false) => "FAILS",
                None => "untested",
            };
            writeln!(f, "{holds:8} {}: {}", claim.text, claim.because)?;
        }
        if !self.notes.is_empty() {
            writeln!(f)?;
        }
        self.notes.iter().try_for_each(|note| writeln!(f, "note: {note}"))?;
        if self.partial {
            writeln!(f, "\nStopped early, results are partial")?;
        }
        writeln!(f, "\n{}", self.setup)
    }
}

impl ExperimentReport {
    fn table(&self) -> ReportTable {
        let mut table = ReportTable::new(["case", "", "unit", "published", "ours", "+-", "samples"]).numbers(3..7);
        let mut last = "";
        for figure in &self.figures {
            let case = if figure.case == last { "" } else { figure.case.as_str() };
            last = &figure.case;
            let published = figure.published.as_ref().map_or_else(String::new, |figure| match figure.sd {
                Some(sd) => format!("{} +- {}", short(figure.value), short(sd)),
                None => short(figure.value),
            });
            table.row([
                case,
                figure.metric,
                figure.unit,
                &published,
                &short(figure.ours),
                &figure.sd.map_or_else(String::new, short),
                &figure.samples.to_string(),
            ]);
        }
        table
    }
}

impl fmt::Display for ExperimentSetup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let size = if self.full { "the published size" } else { "a small size; --full reruns the published one" };
        let build = weir_units::BUILD_KIND;
        let others = self.others.map_or_else(String::new, |share| format!(" (others used {:.0} %)", share * 100.0));
        write!(
            f,
            "Measured in {:.1} s at {size}, with weir {} ({build} build), seed {}, on {} cores of {}{others}, Linux {}",
            self.duration_s, self.version, self.seed, self.machine.cores, self.machine.cpu, self.machine.kernel
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_counts_only_on_a_machine_of_ones_own() {
        let failed = Claim::tested("fast", false, "slow");
        assert_eq!(failed.clone().disturbed_by(Some(0.01)).holds, Some(false));
        assert_eq!(failed.clone().disturbed_by(None).holds, Some(false));
        let disturbed = failed.disturbed_by(Some(0.5));
        assert_eq!((disturbed.holds, disturbed.because.as_str()), (None, "slow; but others used 50 % of the machine"));
        assert_eq!(Claim::tested("fast", true, "").disturbed_by(Some(0.5)).holds, Some(true));
    }
}
