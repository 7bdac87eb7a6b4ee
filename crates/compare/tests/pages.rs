//! Tests that pages are well formed, load no other files, and name what has no steady state.
use weir_compare::page::{self, SweptComparison};
use weir_compare::{
    AnswerRow, AnswerRowStatus, AnswerSource, AnswerState, Comparison, EvaluationMethod, Leaderboard,
    LeaderboardScenario, MetricValue, PerformanceMetric, ScenarioAnswer, ScenarioOutcome, SubjectKind,
};

/// Returns a flow of this mean delay in milliseconds; `None` is an unstable flow.
fn row(name: &str, mean_ms: Option<f64>) -> AnswerRow {
    let mut row = AnswerRow::new(SubjectKind::Flow, name);
    let Some(mean_ms) = mean_ms else {
        row.status = AnswerRowStatus::Unstable("utilisation 1.31 at <controller>".into());
        return row;
    };
    row.delay_of = Some("one way");
    row.samples = 100;
    let figure = |value: f64| Some(MetricValue { value: value * 1e-3, half_width: Some(value * 1e-5) });
    row.insert_figure(PerformanceMetric::DelayMean, figure(mean_ms));
    row.insert_figure(PerformanceMetric::DelayP95, figure(mean_ms * 3.0));
    row.insert_figure(PerformanceMetric::Loss, Some(MetricValue::exact(0.01)));
    row.quantiles_s = (1..100).map(|share| (f64::from(share) / 100.0, mean_ms * 1e-5 * f64::from(share))).collect();
    row
}

fn answer(verb: EvaluationMethod, model: Option<&str>, mean_ms: Option<f64>) -> ScenarioAnswer {
    ScenarioAnswer {
        by: AnswerSource { verb, model: model.map(str::to_owned) },
        state: AnswerState::Answered,
        runs: 3,
        passed: true,
        fidelity: None,
        conditions: "made up & <unmeasured>".into(),
        rows: vec![row("udp \"a\" > b & <c>", mean_ms), row("udp b > a", mean_ms.map(|mean| mean * 2.0))],
    }
}

fn comparison(load: f64) -> Comparison {
    let predicted = (load < 1.0).then(|| 1.1 / (1.0 - load));
    let answers = vec![
        answer(EvaluationMethod::Predict, None, predicted),
        answer(EvaluationMethod::Predict, Some("mahmood"), predicted.map(|mean| mean * 1.5)),
        answer(EvaluationMethod::Simulate, None, Some(1.0 / (1.05 - load.min(1.0)))),
        ScenarioAnswer::left_out(AnswerSource::new(EvaluationMethod::Run), "needs emulation"),
    ];
    Comparison::new("made up", answers, None)
}

fn parsed(html: &str) -> String {
    let options = roxmltree::ParsingOptions { allow_dtd: true, ..roxmltree::ParsingOptions::default() };
    let document =
        roxmltree::Document::parse_with_options(html, options).unwrap_or_else(|error| panic!("{error}\n{html}"));
    let loads = ["src", "href", "data"];
    for node in document.descendants().filter(roxmltree::Node::is_element) {
        assert!(node.tag_name().name() != "script", "a page without programs");
        assert!(loads.iter().all(|name| !node.has_attribute(*name)), "{node:?} loads something");
    }
    assert!(html.contains("prefers-color-scheme:dark"));
    document.root_element().descendants().filter_map(|node| node.text()).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_scenario_has_its_charts_and_tables() {
    let text = parsed(&page::single(&comparison(0.5)));
    for words in [
        "Asked: how near do predict and predict mahmood come to simulate, in scenario made up?",
        "By what is known well of each flow, predict is right about ",
        "udp \"a\" > b & <c>",
        "mahmood",
        "simulated",
        "Error in %",
        "Quantiles",
        "left out: needs emulation",
        "wrong by",
    ] {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
    let place = |words: &str| text.find(words).unwrap_or_else(|| panic!("no `{words}` in {text}"));
    assert!(place("Mean delay by flow") < place("Against simulate"), "the answer is before the table of errors");
}

#[test]
fn a_sweep_keeps_what_is_unstable() {
    let point = |(number, load): (usize, f64)| SweptComparison {
        values: vec![("traffic.rate".into(), format!("{}", load * 100.0)), ("p".into(), format!("0.{}", number % 2))],
        comparison: comparison(load),
    };
    let points: Vec<SweptComparison> = [0.2, 0.4, 0.6, 0.8, 1.2, 1.4].into_iter().enumerate().map(point).collect();
    let text = parsed(&page::swept(&points));
    for words in [
        "in scenario made up while traffic.rate goes from 20 to 140 and p goes from 0.0 to 0.1?",
        "predict is not wrong at ",
        "traffic.rate, packets/s",
        "Without a steady state",
        "utilisation 1.31 at <controller>",
        "p = 0.0",
        "p = 0.1",
        "traffic.rate",
        "Error of the mean delay",
    ] {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
}

#[test]
fn a_board_has_failures_as_rows() {
    let entries = vec![
        LeaderboardScenario { file: "a.toml".into(), outcome: ScenarioOutcome::Compared(Box::new(comparison(0.5))) },
        LeaderboardScenario {
            file: "b.toml".into(),
            outcome: ScenarioOutcome::Failed("b.toml:3: found `x`, expected <y>".into()),
        },
    ];
    let board = Leaderboard::new(entries);
    assert!(!board.places.is_empty());
    let text = parsed(&page::render_leaderboard("scenarios & more", &board));
    for words in [
        "nearest to the reference in the 2 scenarios of scenarios & more?",
        "found `x`, expected <y>",
        "predict mahmood",
        "in common",
    ] {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
}

#[test]
fn nothing_to_show_is_a_page() {
    let none = Comparison::new(
        "empty",
        vec![ScenarioAnswer::left_out(AnswerSource::new(EvaluationMethod::Predict), "no")],
        None,
    );
    parsed(&page::single(&none));
    parsed(&page::swept(&[]));
    parsed(&page::render_leaderboard("", &Leaderboard::new(Vec::new())));
}
