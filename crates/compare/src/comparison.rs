//! Compares the answers to one scenario.
use crate::answer::{
    AnswerRow, AnswerRowStatus, AnswerSource, AnswerState, AnswerSubject, EvaluationMethod, PerformanceMetric,
    ScenarioAnswer, SubjectKind,
};
use crate::decision::{DisturbedSide, FlowDecision, decide};
use crate::difference::MetricDifference;
use crate::score::{AnswerScore, score};
use serde::Serialize;

/// Answers to one scenario, compared with a reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Comparison {
    /// Name of the scenario.
    pub scenario: String,
    /// True if an answer is partial.
    pub partial: bool,
    /// True if traffic did what the scenario expects, in every answer that can tell.
    pub passed: bool,
    /// Reference with which the others are compared; `None` if it is not available.
    pub reference: Option<AnswerSource>,
    /// All answers, including missing ones.
    pub answers: Vec<ScenarioAnswer>,
    /// Differences of each answer from the reference, in the order of the answers.
    pub compared: Vec<AnswerComparison>,
}

/// Comparison of an answer with the reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnswerComparison {
    /// Source of the answer.
    pub by: AnswerSource,
    /// Differences of the figures that both have.
    pub differences: Vec<MetricDifference>,
    /// Difference that decides for each flow, of the figures that are known well.
    pub decisions: Vec<FlowDecision>,
    /// Scores of the differences, by metric.
    pub scores: Vec<AnswerScore>,
    /// Flows that are not compared, each with the reason.
    pub not_compared: Vec<(String, String)>,
}

impl AnswerComparison {
    /// Returns the decisions in one sentence: how many flows are right by what is known well of them, and the worst.
    pub fn sentence(&self) -> String {
        let flows = self.decisions.len();
        // A flow of which nothing can be told is the worst only if there is no other.
        let rank = |decision: &FlowDecision| (decision.is_wrong(), decision.verdict.is_right());
        let error = |decision: &FlowDecision| decision.error.unwrap_or(0.0);
        let worse = |a: &&FlowDecision, b: &&FlowDecision| rank(a).cmp(&rank(b)).then(error(a).total_cmp(&error(b)));
        let Some(worst) = self.decisions.iter().max_by(worse) else {
            return format!("{} has no flow in common with the reference.", self.by);
        };
        let count = |is: fn(&FlowDecision) -> bool| self.decisions.iter().filter(|decision| is(decision)).count();
        let (right, wrong) = (count(|decision| decision.verdict.is_right()), count(FlowDecision::is_wrong));
        let machines = count(|decision| decision.may_be_machines);
        let open = flows - right - wrong - machines;
        let mut text =
            format!("By what is known well of each flow, {} is right about {right} of {flows} flows", self.by);
        if wrong > 0 {
            text += &format!(", wrong about {wrong}");
        }
        text += &match (machines, open) {
            (0, 0) => String::new(),
            (0, open) => format!(", and {open} cannot be told"),
            (machines, 0) => format!(", and {machines} cannot be told from the machine's outliers"),
            (machines, open) => {
                format!(", {machines} cannot be told from the machine's outliers, and {open} cannot be told")
            }
        };
        text + &format!("; the worst is {} ({}: {}).", worst.name, worst.metric.name(), worst.verdict)
    }

    /// Returns the decision on a flow.
    pub fn decision(&self, subject: &AnswerSubject) -> Option<&FlowDecision> {
        let is_flow = subject.part == SubjectKind::Flow;
        self.decisions.iter().find(|decision| is_flow && decision.name == subject.name)
    }
}

impl Comparison {
    /// Compares answers with the first answer of verb `reference`. By default compares with the answer nearest to
    /// reality: live, else emulated, else simulated. Percentiles that the samples of an answer are too few to tell are
    /// removed, so that nothing is judged by them.
    pub fn new(scenario: &str, mut answers: Vec<ScenarioAnswer>, reference: Option<EvaluationMethod>) -> Comparison {
        answers.iter_mut().for_each(ScenarioAnswer::remove_unknown_percentiles);
        let of = |verb: EvaluationMethod| answers.iter().find(|answer| answer.by.verb == verb && answer.is_available());
        let chosen = match reference {
            Some(verb) => of(verb),
            None => of(EvaluationMethod::Run)
                .or_else(|| of(EvaluationMethod::Emulate))
                .or_else(|| of(EvaluationMethod::Simulate)),
        };
        let compared = chosen.map_or_else(Vec::new, |reference| {
            let others = answers.iter().filter(|answer| answer.is_available() && answer.by != reference.by);
            others.map(|answer| compare(reference, answer)).collect()
        });
        Comparison {
            scenario: scenario.to_owned(),
            partial: answers.iter().any(|answer| answer.state == AnswerState::Partial),
            passed: answers.iter().all(|answer| answer.passed),
            reference: chosen.map(|answer| answer.by.clone()),
            compared,
            answers,
        }
    }

    /// Returns the flows or the devices, in the order in which answers name them.
    pub fn subjects(&self, part: SubjectKind) -> Vec<&AnswerSubject> {
        let mut subjects: Vec<&AnswerSubject> = Vec::new();
        for row in self.answers.iter().flat_map(|answer| &answer.rows) {
            if row.subject.part == part && !subjects.contains(&&row.subject) {
                subjects.push(&row.subject);
            }
        }
        subjects
    }

    /// Returns the difference of an answer from the reference in one metric.
    pub fn difference(
        &self,
        by: &AnswerSource,
        subject: &AnswerSubject,
        metric: PerformanceMetric,
    ) -> Option<&MetricDifference> {
        let own = self.compared.iter().find(|compared| compared.by == *by)?;
        own.differences.iter().find(|difference| difference.subject == *subject && difference.metric == metric)
    }

    /// Returns true if an answerer is the reference.
    pub fn is_reference(&self, by: &AnswerSource) -> bool {
        self.reference.as_ref() == Some(by)
    }
}

fn compare(reference: &ScenarioAnswer, answer: &ScenarioAnswer) -> AnswerComparison {
    let mut differences = Vec::new();
    let mut not_compared = Vec::new();
    for row in &reference.rows {
        let own = answer.row(&row.subject);
        let shared = own.filter(|own| own.status == AnswerRowStatus::Ok).map(|own| both(row, own)).unwrap_or_default();
        if shared.is_empty() && row.subject.part == SubjectKind::Flow && answer.is_asked(&row.subject) {
            not_compared.push((row.subject.name.clone(), why_not(row, own)));
        }
        differences.extend(shared);
    }
    let scores = score(reference, answer, &differences);
    let flows = reference.rows.iter().filter(|row| row.subject.part == SubjectKind::Flow);
    let disturbed = DisturbedSide::of(reference, answer);
    let decisions = flows.filter_map(|row| decide(&differences, &row.subject, disturbed)).collect();
    AnswerComparison { by: answer.by.clone(), decisions, differences, scores, not_compared }
}

/// Returns why a flow has no figure in common with the reference.
fn why_not(reference: &AnswerRow, own: Option<&AnswerRow>) -> String {
    match own.map(|row| &row.status) {
        Some(AnswerRowStatus::Unstable(why) | AnswerRowStatus::NotAnswered(why)) => why.clone(),
        Some(AnswerRowStatus::Ok) if reference.figures.is_empty() => "nothing was measured".to_owned(),
        Some(AnswerRowStatus::Ok) => "no figure in common".to_owned(),
        None => "not answered".to_owned(),
    }
}

/// Returns the differences of the figures that two rows have in common. Delays of different kinds (round trip, one
/// way) are not compared.
fn both(reference: &AnswerRow, own: &AnswerRow) -> Vec<MetricDifference> {
    let alike = reference.delay_of == own.delay_of;
    let pairs = reference.figures.iter().filter(|(metric, _)| alike || !metric.is_delay());
    pairs
        .filter_map(|(metric, figure)| Some((metric, figure, own.figures.get(metric)?)))
        .map(|(metric, figure, found)| MetricDifference::new(reference.subject.clone(), *metric, *figure, *found))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::MetricValue;

    fn answer(verb: EvaluationMethod, rows: Vec<AnswerRow>) -> ScenarioAnswer {
        let by = AnswerSource::new(verb);
        ScenarioAnswer {
            by,
            state: AnswerState::Answered,
            runs: 1,
            passed: true,
            fidelity: None,
            conditions: String::new(),
            rows,
        }
    }

    fn row(name: &str, mean: f64) -> AnswerRow {
        let mut row = AnswerRow::new(SubjectKind::Flow, name);
        row.insert_figure(PerformanceMetric::DelayMean, Some(MetricValue::exact(mean)));
        row
    }

    #[test]
    fn the_live_network_is_the_reference_unless_another_is_asked_for() {
        let answers = || {
            vec![
                answer(EvaluationMethod::Simulate, vec![row("a", 1.0)]),
                answer(EvaluationMethod::Run, vec![row("a", 2.0)]),
            ]
        };
        let of = |verb| Some(AnswerSource::new(verb));
        let compared = Comparison::new("s", answers(), None);
        assert_eq!(compared.reference, of(EvaluationMethod::Run));
        assert_eq!(compared.compared[0].differences[0].scaled, Some(0.5));
        assert_eq!(
            Comparison::new("s", answers(), Some(EvaluationMethod::Simulate)).reference,
            of(EvaluationMethod::Simulate)
        );
        let mut without = answers();
        without[1] = ScenarioAnswer::left_out(AnswerSource::new(EvaluationMethod::Run), "needs emulation");
        let compared = Comparison::new("s", without, None);
        assert_eq!((compared.reference, compared.compared.len()), (of(EvaluationMethod::Simulate), 0));
    }

    #[test]
    fn the_worst_flow_is_one_that_can_be_told() {
        let mut unsure = row("b", 5.0);
        unsure.insert_figure(PerformanceMetric::DelayMean, Some(MetricValue { value: 5.0, half_width: Some(9.0) }));
        let live = answer(EvaluationMethod::Run, vec![row("a", 1.0), unsure]);
        let found = answer(EvaluationMethod::Predict, vec![row("a", 1.3), row("b", 9.0)]);
        let sentence = Comparison::new("s", vec![found, live], None).compared[0].sentence();
        let expected =
            "right about 0 of 2 flows, wrong about 1, and 1 cannot be told; the worst is a (mean delay: wrong";
        assert!(sentence.contains(expected), "{sentence}");
    }

    #[test]
    fn percentiles_that_samples_cannot_tell_are_not_compared() {
        let with = |samples: u64| {
            let mut row = AnswerRow { samples, ..row("a", 1.0) };
            let percentiles = [PerformanceMetric::DelayP50, PerformanceMetric::DelayP95, PerformanceMetric::DelayP99];
            percentiles.into_iter().for_each(|metric| row.insert_figure(metric, Some(MetricValue::exact(2.0))));
            row
        };
        let measured = ScenarioAnswer { runs: 2, ..answer(EvaluationMethod::Run, vec![with(80)]) };
        let compared = Comparison::new("s", vec![answer(EvaluationMethod::Predict, vec![with(0)]), measured], None);
        let differences = compared.compared[0].differences.iter().map(|difference| difference.metric);
        let known = [PerformanceMetric::DelayMean, PerformanceMetric::DelayP50, PerformanceMetric::DelayP95];
        assert_eq!(differences.collect::<Vec<_>>(), known, "40 samples a run tell the 95th percentile, not the 99th");
    }

    #[test]
    fn flows_without_figures_in_common_say_why() {
        let mut unstable = row("b", 1.0);
        unstable.status = AnswerRowStatus::Unstable("utilisation 1.31 at controller".into());
        let mut one_way = row("c", 1.0);
        one_way.delay_of = Some("one way");
        let reference = answer(EvaluationMethod::Run, vec![row("a", 1.0), row("b", 1.0), row("c", 1.0), row("d", 1.0)]);
        let other = answer(EvaluationMethod::Predict, vec![row("a", 1.0), unstable, one_way]);
        let compared = Comparison::new("s", vec![other, reference], None);
        let own = &compared.compared[0];
        assert_eq!(own.differences.len(), 1);
        let expected = [("b", "utilisation 1.31 at controller"), ("c", "no figure in common"), ("d", "not answered")];
        let found: Vec<(&str, &str)> =
            own.not_compared.iter().map(|(flow, why)| (flow.as_str(), why.as_str())).collect();
        assert_eq!(found, expected);
    }
}
