//! Runs many cases on weir and on Open vSwitch, and compares their answers. Each difference is either of a known kind
//! ([`crate::kinds`]), or unknown. A case with an unknown difference is reduced to a small case that still shows it
//! (shrinking).
//!
//! A step with a difference of a known kind may leave the switches in different states. So the step is removed and the
//! rest of the case runs again, until there is no difference, or an unknown one.
use crate::compare::{StepAnswerPart, StepDifference, first_difference};
use crate::kinds::kinds_of;
use crate::ovs::OvsInstance;
use crate::{CaseOutcome, DifferentialCase, description, draw, shrink, weir};
use std::collections::{BTreeMap, VecDeque};
use weir_openflow::Version;

/// Number of cases waiting in a queue at which no more cases are drawn.
const WAITING: usize = 512;

/// Maximum number of times that a case is run again if its difference may be caused by timing only.
const RETRIES: usize = 3;

/// A difference between weir and Open vSwitch of no known kind, with the smallest case found that shows it.
#[derive(Debug, Clone)]
pub struct UnexplainedDifference {
    /// The smallest case found that shows the difference.
    pub case: DifferentialCase,
    /// The difference in this case.
    pub difference: StepDifference,
}

/// Results of many cases.
#[derive(Debug, Clone, Default)]
pub struct DifferentialReport {
    /// Number of cases whose comparison is finished.
    pub cases: u64,
    /// Number of cases without a difference in their first run.
    pub same: u64,
    /// Number of runs of a case on both switches, including those after a step was removed.
    pub runs: u64,
    /// Number of repeated runs on a new instance, for differences that may be caused by timing only.
    pub again: u64,
    /// Number of steps compared in the cases as drawn: messages, frames and pauses.
    pub steps: u64,
    /// Number of differences of each known kind, by the kind's name.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Differences of no known kind, each with its shrunk case. Empty in a survey.
    pub unknown: Vec<UnexplainedDifference>,
    /// Differences of no known kind in a survey, grouped by their description ([`description::of`]): number of
    /// differences, and the first one with its shrunk case.
    pub alike: BTreeMap<String, (u64, UnexplainedDifference)>,
}

/// A comparison of weir with an instance of Open vSwitch.
pub struct OvsComparison {
    instance: OvsInstance,
    versions: Vec<Version>,
    /// Number of unknown differences after which the comparison stops.
    most_unknown: usize,
    /// True for a survey, which groups unknown differences by their descriptions and continues.
    is_survey: bool,
    report: DifferentialReport,
}

impl OvsComparison {
    /// Starts a comparison with a new instance of Open vSwitch. [`OvsComparison::run`] stops after `most_unknown`
    /// unknown differences, unless `is_survey` is true.
    ///
    /// # Errors
    /// The instance does not start.
    pub fn start(most_unknown: usize, is_survey: bool) -> anyhow::Result<OvsComparison> {
        let instance = OvsInstance::start()?;
        let versions = instance.versions();
        Ok(OvsComparison { instance, versions, most_unknown, is_survey, report: DifferentialReport::default() })
    }

    /// Returns the instance of Open vSwitch.
    pub fn instance(&self) -> &OvsInstance {
        &self.instance
    }

    /// Draws a case from each seed and compares the switches' answers. Cases with pauses run separately from the
    /// others. Returns the results of all cases so far.
    ///
    /// # Errors
    /// A new instance of Open vSwitch does not start.
    pub fn run(&mut self, seeds: std::ops::Range<u64>) -> anyhow::Result<&DifferentialReport> {
        let mut seeds = seeds.into_iter();
        let mut queues = [CaseQueue::default(), CaseQueue::default()];
        while self.report.unknown.len() < self.most_unknown {
            while queues.iter().all(|queue| queue.len() < WAITING)
                && let Some(seed) = seeds.next()
            {
                let case = draw::case(seed);
                self.report.steps += case.steps.len() as u64;
                queues[usize::from(case.has_pauses())].push((case, true));
            }
            let Some(queue) = queues.iter_mut().max_by_key(|queue| queue.len()).filter(|queue| queue.len() > 0) else {
                break;
            };
            for again in self.round(queue)? {
                // A case whose pauses were removed joins the cases without pauses.
                queues[usize::from(again.has_pauses())].push((again, false));
            }
        }
        Ok(&self.report)
    }

    /// Runs one case for each OpenFlow version, concurrently. Returns the cases to be run again without the step that
    /// differed.
    fn round(&mut self, queue: &mut CaseQueue) -> anyhow::Result<Vec<DifferentialCase>> {
        let taken: Vec<_> = self.versions.iter().map(|version| queue.take(*version)).collect();
        let cases: Vec<_> = taken.iter().map(|taken| taken.as_ref().map(|(case, _)| case.clone())).collect();
        let differences = self.differences(&cases)?;
        let mut again = Vec::new();
        for (taken, difference) in taken.into_iter().zip(differences) {
            let Some((case, is_first)) = taken else { continue };
            let Some(difference) = difference else {
                self.report.cases += 1;
                self.report.same += u64::from(is_first);
                continue;
            };
            again.extend(self.judge(case, difference)?);
        }
        Ok(again)
    }

    /// Counts a difference by its kinds, or records it as unknown. Returns the case without the differing step, or
    /// `None` if the case is finished.
    fn judge(
        &mut self,
        case: DifferentialCase,
        difference: StepDifference,
    ) -> anyhow::Result<Option<DifferentialCase>> {
        let Some(difference) = self.confirmed(&case, difference)? else {
            self.report.cases += 1;
            return Ok(None);
        };
        if let Some(kinds) = kinds_of(&case, &difference) {
            for kind in kinds {
                *self.report.kinds.entry(kind.name).or_default() += 1;
            }
            return Ok(self.rest(case, &difference));
        }
        if self.is_survey {
            let rest = self.rest(case.clone(), &difference);
            self.note_alike(UnexplainedDifference { case, difference })?;
            return Ok(rest);
        }
        self.report.cases += 1;
        let unknown = self.shrunk(UnexplainedDifference { case, difference })?;
        self.report.unknown.push(unknown);
        Ok(None)
    }

    /// Runs a case again, alone on a new instance of Open vSwitch, if its difference may be caused by timing only and
    /// is of no known kind. Returns the difference of the last run; `None` if there was none.
    ///
    /// Open vSwitch may send a notice so late that the next case seems to have caused it, and may check timeouts later
    /// than it should.
    fn confirmed(
        &mut self,
        case: &DifferentialCase,
        difference: StepDifference,
    ) -> anyhow::Result<Option<StepDifference>> {
        let is_late = difference.part == StepAnswerPart::Told || case.has_pauses();
        let mut found = Some(difference);
        for _ in 0..RETRIES {
            match &found {
                Some(difference) if is_late && kinds_of(case, difference).is_none() => {
                    self.instance = OvsInstance::start()?;
                    self.report.again += 1;
                    found = self.difference(case)?;
                }
                _ => break,
            }
        }
        Ok(found)
    }

    /// Runs cases on both switches. Returns the first difference of each case. If Open vSwitch exits, a new instance
    /// runs the cases one by one.
    fn differences(&mut self, cases: &[Option<DifferentialCase>]) -> anyhow::Result<Vec<Option<StepDifference>>> {
        let ours: Vec<_> = cases.iter().map(|case| case.as_ref().map(weir::run)).collect();
        let both = cases.iter().zip(&ours);
        let all: Vec<_> = both.map(|(case, ours)| Some((case.clone()?, ours.as_ref()?.told.len()))).collect();
        self.report.runs += all.iter().flatten().count() as u64;
        if let Ok(theirs) = self.instance.run(&all) {
            return Ok(ours
                .iter()
                .zip(theirs)
                .map(|(ours, theirs)| first_difference(ours.as_ref()?, &theirs?))
                .collect());
        }
        self.instance = OvsInstance::start()?;
        let lanes = 0..all.len();
        lanes.map(|lane| ours[lane].as_ref().map_or(Ok(None), |ours| self.alone(&all, lane, ours))).collect()
    }

    /// Runs the case at index `lane` of `all` alone, and returns its first difference from weir's outcome `ours`. If
    /// Open vSwitch exits, that is the difference.
    fn alone(
        &mut self,
        all: &[Option<(DifferentialCase, usize)>],
        lane: usize,
        ours: &CaseOutcome,
    ) -> anyhow::Result<Option<StepDifference>> {
        let mut one = vec![None; all.len()];
        one[lane] = all[lane].clone();
        match self.instance.run(&one) {
            Ok(theirs) => Ok(theirs.into_iter().flatten().find_map(|theirs| first_difference(ours, &theirs))),
            Err(_) => {
                self.instance = OvsInstance::start()?;
                Ok(Some(StepDifference::ended(ours)))
            }
        }
    }

    /// Runs one case on both switches, and returns the first difference.
    ///
    /// # Errors
    /// A new instance of Open vSwitch does not start.
    pub fn difference(&mut self, case: &DifferentialCase) -> anyhow::Result<Option<StepDifference>> {
        let lane = self.versions.iter().position(|version| *version == case.version);
        let mut cases: Vec<_> = self.versions.iter().map(|_| None).collect();
        if let Some(lane) = lane {
            cases[lane] = Some(case.clone());
        }
        Ok(self.differences(&cases)?.into_iter().flatten().next())
    }

    /// Returns the case without the differing step. Returns `None` if the case is finished: Open vSwitch exited, or
    /// only notices differ, which are compared last.
    fn rest(&mut self, case: DifferentialCase, difference: &StepDifference) -> Option<DifferentialCase> {
        if matches!(difference.part, StepAnswerPart::Told | StepAnswerPart::Ended) {
            self.report.cases += 1;
            return None;
        }
        Some(case.without(difference.step))
    }

    fn note_alike(&mut self, unknown: UnexplainedDifference) -> anyhow::Result<()> {
        let description = description::of(&unknown.case, &unknown.difference);
        if let Some(alike) = self.report.alike.get_mut(&description) {
            alike.0 += 1;
            return Ok(());
        }
        let unknown = self.shrunk(unknown)?;
        self.report.alike.insert(description, (1, unknown));
        Ok(())
    }

    /// Makes a case smaller for as long as it shows an unknown difference with an unchanged description.
    fn shrunk(&mut self, mut unknown: UnexplainedDifference) -> anyhow::Result<UnexplainedDifference> {
        let wanted = description::of(&unknown.case, &unknown.difference);
        'smaller: loop {
            for case in shrink::smaller(&unknown.case) {
                let Some(difference) = self.difference(&case)? else { continue };
                let is_known = kinds_of(&case, &difference).is_some();
                if !is_known && description::of(&case, &difference) == wanted {
                    unknown = UnexplainedDifference { case, difference };
                    continue 'smaller;
                }
            }
            return Ok(unknown);
        }
    }
}

/// Waiting cases by OpenFlow version, each with a flag that is true if the case is unchanged since it was drawn.
#[derive(Default)]
struct CaseQueue(BTreeMap<Version, VecDeque<(DifferentialCase, bool)>>);

impl CaseQueue {
    fn len(&self) -> usize {
        self.0.values().map(VecDeque::len).sum()
    }

    fn push(&mut self, (case, is_first): (DifferentialCase, bool)) {
        self.0.entry(case.version).or_default().push_back((case, is_first));
    }

    fn take(&mut self, version: Version) -> Option<(DifferentialCase, bool)> {
        self.0.get_mut(&version)?.pop_front()
    }
}
