//! Compares the answers to one scenario.
use crate::answer::{
    AnswerRow, AnswerRowStatus, AnswerSource, AnswerState, AnswerSubject, EvaluationMethod, PerformanceMetric,
    ScenarioAnswer, SubjectKind,
};
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
    /// Scores of the differences, by metric.
    pub scores: Vec<AnswerScore>,
    /// Flows that are not compared, each with the reason.
    pub not_compared: Vec<(String, String)>,
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
    AnswerComparison { by: answer.by.clone(), differences, scores, not_compared }
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
    let is_delay = |metric: PerformanceMetric| {
        matches!(
            metric,
            PerformanceMetric::DelayMean
                | PerformanceMetric::DelayP50
                | PerformanceMetric::DelayP95
                | PerformanceMetric::DelayP99
        )
    };
    let alike = reference.delay_of == own.delay_of;
    let pairs = reference.figures.iter().filter(|(metric, _)| alike || !is_delay(**metric));
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
        ScenarioAnswer { by, state: AnswerState::Answered, runs: 1, passed: true, conditions: String::new(), rows }
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
