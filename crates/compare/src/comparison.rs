//! Compares the answers to one scenario.
use crate::answer::{Answer, Answerer, Metric, Part, Row, State, Status, Subject, Verb};
use crate::difference::Difference;
use crate::score::{Score, score};
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
    pub reference: Option<Answerer>,
    /// All answers, including missing ones.
    pub answers: Vec<Answer>,
    /// Differences of each answer from the reference, in the order of the answers.
    pub compared: Vec<Compared>,
}

/// Comparison of an answer with the reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Compared {
    /// Source of the answer.
    pub by: Answerer,
    /// Differences of the figures that both have.
    pub differences: Vec<Difference>,
    /// Scores of the differences, by metric.
    pub scores: Vec<Score>,
    /// Flows that are not compared, each with the reason.
    pub not_compared: Vec<(String, String)>,
}

impl Comparison {
    /// Compares answers with the first answer of verb `reference`. By default compares with the answer nearest to
    /// reality: live, else emulated, else simulated.
    pub fn new(scenario: &str, answers: Vec<Answer>, reference: Option<Verb>) -> Comparison {
        let of = |verb: Verb| answers.iter().find(|answer| answer.by.verb == verb && answer.is_there());
        let chosen = match reference {
            Some(verb) => of(verb),
            None => of(Verb::Run).or_else(|| of(Verb::Emulate)).or_else(|| of(Verb::Simulate)),
        };
        let compared = chosen.map_or_else(Vec::new, |reference| {
            let others = answers.iter().filter(|answer| answer.is_there() && answer.by != reference.by);
            others.map(|answer| compare(reference, answer)).collect()
        });
        Comparison {
            scenario: scenario.to_owned(),
            partial: answers.iter().any(|answer| answer.state == State::Partial),
            passed: answers.iter().all(|answer| answer.passed),
            reference: chosen.map(|answer| answer.by.clone()),
            compared,
            answers,
        }
    }

    /// Returns the flows or the devices, in the order in which answers name them.
    pub fn subjects(&self, part: Part) -> Vec<&Subject> {
        let mut subjects: Vec<&Subject> = Vec::new();
        for row in self.answers.iter().flat_map(|answer| &answer.rows) {
            if row.subject.part == part && !subjects.contains(&&row.subject) {
                subjects.push(&row.subject);
            }
        }
        subjects
    }

    /// Returns the difference of an answer from the reference in one metric.
    pub fn difference(&self, by: &Answerer, subject: &Subject, metric: Metric) -> Option<&Difference> {
        let own = self.compared.iter().find(|compared| compared.by == *by)?;
        own.differences.iter().find(|difference| difference.subject == *subject && difference.metric == metric)
    }

    /// Returns true if an answerer is the reference.
    pub fn is_reference(&self, by: &Answerer) -> bool {
        self.reference.as_ref() == Some(by)
    }
}

fn compare(reference: &Answer, answer: &Answer) -> Compared {
    let mut differences = Vec::new();
    let mut not_compared = Vec::new();
    for row in &reference.rows {
        let own = answer.row(&row.subject);
        let shared = own.filter(|own| own.status == Status::Ok).map(|own| both(row, own)).unwrap_or_default();
        if shared.is_empty() && row.subject.part == Part::Flow && answer.is_asked(&row.subject) {
            not_compared.push((row.subject.name.clone(), why_not(row, own)));
        }
        differences.extend(shared);
    }
    let scores = score(reference, answer, &differences);
    Compared { by: answer.by.clone(), differences, scores, not_compared }
}

/// Returns why a flow has no figure in common with the reference.
fn why_not(reference: &Row, own: Option<&Row>) -> String {
    match own.map(|row| &row.status) {
        Some(Status::Unstable(why) | Status::NotAnswered(why)) => why.clone(),
        Some(Status::Ok) if reference.figures.is_empty() => "nothing was measured".to_owned(),
        Some(Status::Ok) => "no figure in common".to_owned(),
        None => "not answered".to_owned(),
    }
}

/// Returns the differences of the figures that two rows have in common. Delays of different kinds (round trip, one
/// way) are not compared.
fn both(reference: &Row, own: &Row) -> Vec<Difference> {
    let is_delay =
        |metric: Metric| matches!(metric, Metric::DelayMean | Metric::DelayP50 | Metric::DelayP95 | Metric::DelayP99);
    let alike = reference.delay_of == own.delay_of;
    let pairs = reference.figures.iter().filter(|(metric, _)| alike || !is_delay(**metric));
    pairs
        .filter_map(|(metric, figure)| Some((metric, figure, own.figures.get(metric)?)))
        .map(|(metric, figure, found)| Difference::new(reference.subject.clone(), *metric, *figure, *found))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::Figure;

    fn answer(verb: Verb, rows: Vec<Row>) -> Answer {
        let by = Answerer::new(verb);
        Answer { by, state: State::Answered, runs: 1, passed: true, conditions: String::new(), rows }
    }

    fn row(name: &str, mean: f64) -> Row {
        let mut row = Row::new(Part::Flow, name);
        row.put(Metric::DelayMean, Some(Figure::exact(mean)));
        row
    }

    #[test]
    fn the_live_network_is_the_reference_unless_another_is_asked_for() {
        let answers = || vec![answer(Verb::Simulate, vec![row("a", 1.0)]), answer(Verb::Run, vec![row("a", 2.0)])];
        let of = |verb| Some(Answerer::new(verb));
        let compared = Comparison::new("s", answers(), None);
        assert_eq!(compared.reference, of(Verb::Run));
        assert_eq!(compared.compared[0].differences[0].scaled, Some(0.5));
        assert_eq!(Comparison::new("s", answers(), Some(Verb::Simulate)).reference, of(Verb::Simulate));
        let mut without = answers();
        without[1] = Answer::left_out(Answerer::new(Verb::Run), "needs emulation");
        let compared = Comparison::new("s", without, None);
        assert_eq!((compared.reference, compared.compared.len()), (of(Verb::Simulate), 0));
    }

    #[test]
    fn flows_without_figures_in_common_say_why() {
        let mut unstable = row("b", 1.0);
        unstable.status = Status::Unstable("utilisation 1.31 at controller".into());
        let mut one_way = row("c", 1.0);
        one_way.delay_of = Some("one way");
        let reference = answer(Verb::Run, vec![row("a", 1.0), row("b", 1.0), row("c", 1.0), row("d", 1.0)]);
        let other = answer(Verb::Predict, vec![row("a", 1.0), unstable, one_way]);
        let compared = Comparison::new("s", vec![other, reference], None);
        let own = &compared.compared[0];
        assert_eq!(own.differences.len(), 1);
        let expected = [("b", "utilisation 1.31 at controller"), ("c", "no figure in common"), ("d", "not answered")];
        let found: Vec<(&str, &str)> =
            own.not_compared.iter().map(|(flow, why)| (flow.as_str(), why.as_str())).collect();
        assert_eq!(found, expected);
    }
}
