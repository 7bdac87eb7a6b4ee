//! Runs many cases on both switches, explains differences, and shrinks those that no kind explains.
//!
//! A step in which both differ for a known reason may leave the switches in different states. So it is left out, and
//! the rest of the case runs again: until nothing differs, or something unknown does.
use crate::compare::{Difference, Part, first_difference};
use crate::kinds::kinds_of;
use crate::ovs::Instance;
use crate::{Case, Outcome, draw, looks, shrink, weir};
use std::collections::{BTreeMap, VecDeque};
use weir_openflow::Version;

/// Cases that wait for a lane at most.
const WAITING: usize = 512;

/// How often a case runs again whose difference may be one of time only.
const RETRIES: usize = 3;

/// A difference that no kind explains, made small.
#[derive(Debug, Clone)]
pub struct Unknown {
    /// The smallest case found that shows it.
    pub case: Case,
    /// The difference.
    pub difference: Difference,
}

/// What many cases came to.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// Cases drawn and compared to their ends.
    pub cases: u64,
    /// Cases without any difference.
    pub same: u64,
    /// Runs on both switches, those after a step was left out included.
    pub runs: u64,
    /// Runs on a new instance, since a difference might be one of time only.
    pub again: u64,
    /// Steps compared in the cases as drawn: messages, frames and pauses.
    pub steps: u64,
    /// Differences by kind.
    pub kinds: BTreeMap<&'static str, u64>,
    /// Differences of no known kind.
    pub unknown: Vec<Unknown>,
    /// In a survey: how many differences of no known kind look alike, and the first, made small.
    pub alike: BTreeMap<String, (u64, Unknown)>,
}

/// A comparison of two switches.
pub struct Comparison {
    instance: Instance,
    versions: Vec<Version>,
    /// Unknown differences after which to stop.
    most_unknown: usize,
    /// Whether unknown differences are only counted by their looks.
    is_survey: bool,
    report: Report,
}

impl Comparison {
    /// A comparison with a new instance of Open vSwitch that stops after so many unknown differences.
    ///
    /// # Errors
    /// The instance does not start.
    pub fn start(most_unknown: usize, is_survey: bool) -> anyhow::Result<Comparison> {
        let instance = Instance::start()?;
        let versions = instance.versions();
        Ok(Comparison { instance, versions, most_unknown, is_survey, report: Report::default() })
    }

    /// The instance.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Compares the cases of seeds, those with pauses apart from the others; what all cases so far came to.
    ///
    /// # Errors
    /// The instance does not answer.
    pub fn run(&mut self, seeds: std::ops::Range<u64>) -> anyhow::Result<&Report> {
        let mut seeds = seeds.into_iter();
        let mut queues = [Queue::default(), Queue::default()];
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
                // One whose pauses were left out runs with the others.
                queues[usize::from(again.has_pauses())].push((again, false));
            }
        }
        Ok(&self.report)
    }

    /// Runs a case on each lane; those to be run again.
    fn round(&mut self, queue: &mut Queue) -> anyhow::Result<Vec<Case>> {
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

    /// Counts a difference by its kinds, or notes it as unknown; what is left to be compared of the case.
    fn judge(&mut self, case: Case, difference: Difference) -> anyhow::Result<Option<Case>> {
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
            self.note_alike(Unknown { case, difference })?;
            return Ok(rest);
        }
        self.report.cases += 1;
        let unknown = self.shrunk(Unknown { case, difference })?;
        self.report.unknown.push(unknown);
        Ok(None)
    }

    /// A difference that stays, or that is of a known kind.
    ///
    /// A notice of Open vSwitch may come so late that the next case seems to have caused it, and now and then it looks
    /// at time-outs later than it should: such a case runs again, alone on a new instance.
    fn confirmed(&mut self, case: &Case, difference: Difference) -> anyhow::Result<Option<Difference>> {
        let is_late = difference.part == Part::Told || case.has_pauses();
        let mut found = Some(difference);
        for _ in 0..RETRIES {
            match &found {
                Some(difference) if is_late && kinds_of(case, difference).is_none() => {
                    self.instance = Instance::start()?;
                    self.report.again += 1;
                    found = self.difference(case)?;
                }
                _ => break,
            }
        }
        Ok(found)
    }

    /// Runs cases on both switches; where they first differ. If Open vSwitch ends, a new instance runs each alone.
    fn differences(&mut self, cases: &[Option<Case>]) -> anyhow::Result<Vec<Option<Difference>>> {
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
        self.instance = Instance::start()?;
        let lanes = 0..all.len();
        lanes.map(|lane| ours[lane].as_ref().map_or(Ok(None), |ours| self.alone(&all, lane, ours))).collect()
    }

    /// Runs the case of one lane, none on the others.
    fn alone(
        &mut self,
        all: &[Option<(Case, usize)>],
        lane: usize,
        ours: &Outcome,
    ) -> anyhow::Result<Option<Difference>> {
        let mut one = vec![None; all.len()];
        one[lane] = all[lane].clone();
        match self.instance.run(&one) {
            Ok(theirs) => Ok(theirs.into_iter().flatten().find_map(|theirs| first_difference(ours, &theirs))),
            Err(_) => {
                self.instance = Instance::start()?;
                Ok(Some(Difference::ended(ours)))
            }
        }
    }

    /// Where both differ in one case.
    ///
    /// # Errors
    /// The instance does not answer.
    pub fn difference(&mut self, case: &Case) -> anyhow::Result<Option<Difference>> {
        let lane = self.versions.iter().position(|version| *version == case.version);
        let mut cases: Vec<_> = self.versions.iter().map(|_| None).collect();
        if let Some(lane) = lane {
            cases[lane] = Some(case.clone());
        }
        Ok(self.differences(&cases)?.into_iter().flatten().next())
    }

    /// A case without the step that differs. Notices come last: where only they differ, the case is over.
    fn rest(&mut self, case: Case, difference: &Difference) -> Option<Case> {
        if matches!(difference.part, Part::Told | Part::Ended) {
            self.report.cases += 1;
            return None;
        }
        Some(case.without(difference.step))
    }

    fn note_alike(&mut self, unknown: Unknown) -> anyhow::Result<()> {
        let looks = looks::of(&unknown.case, &unknown.difference);
        if let Some(alike) = self.report.alike.get_mut(&looks) {
            alike.0 += 1;
            return Ok(());
        }
        let unknown = self.shrunk(unknown)?;
        self.report.alike.insert(looks, (1, unknown));
        Ok(())
    }

    /// A smaller case with an unknown difference that looks alike.
    fn shrunk(&mut self, mut unknown: Unknown) -> anyhow::Result<Unknown> {
        let wanted = looks::of(&unknown.case, &unknown.difference);
        'smaller: loop {
            for case in shrink::smaller(&unknown.case) {
                let Some(difference) = self.difference(&case)? else { continue };
                let is_known = kinds_of(&case, &difference).is_some();
                if !is_known && looks::of(&case, &difference) == wanted {
                    unknown = Unknown { case, difference };
                    continue 'smaller;
                }
            }
            return Ok(unknown);
        }
    }
}

/// Cases that wait, by version, and whether each is as it was drawn.
#[derive(Default)]
struct Queue(BTreeMap<Version, VecDeque<(Case, bool)>>);

impl Queue {
    fn len(&self) -> usize {
        self.0.values().map(VecDeque::len).sum()
    }

    fn push(&mut self, (case, is_first): (Case, bool)) {
        self.0.entry(case.version).or_default().push_back((case, is_first));
    }

    fn take(&mut self, version: Version) -> Option<(Case, bool)> {
        self.0.get_mut(&version)?.pop_front()
    }
}
