//! Tests that pages are well formed, load no other files, and name what has no steady state.
use weir_compare::page::{self, Point};
use weir_compare::{
    Answer, Answerer, Board, Comparison, Entry, Figure, Metric, Outcome, Part, Row, State, Status, Verb,
};

/// Returns a flow of this mean delay in milliseconds; `None` is an unstable flow.
fn row(name: &str, mean_ms: Option<f64>) -> Row {
    let mut row = Row::new(Part::Flow, name);
    let Some(mean_ms) = mean_ms else {
        row.status = Status::Unstable("utilisation 1.31 at <controller>".into());
        return row;
    };
    row.delay_of = Some("one way");
    row.samples = 100;
    let figure = |value: f64| Some(Figure { value: value * 1e-3, half_width: Some(value * 1e-5) });
    row.put(Metric::DelayMean, figure(mean_ms));
    row.put(Metric::DelayP95, figure(mean_ms * 3.0));
    row.put(Metric::Loss, Some(Figure::exact(0.01)));
    row.quantiles_s = (1..100).map(|share| (f64::from(share) / 100.0, mean_ms * 1e-5 * f64::from(share))).collect();
    row
}

fn answer(verb: Verb, model: Option<&str>, mean_ms: Option<f64>) -> Answer {
    Answer {
        by: Answerer { verb, model: model.map(str::to_owned) },
        state: State::Answered,
        runs: 3,
        passed: true,
        conditions: "made up & <unmeasured>".into(),
        rows: vec![row("udp \"a\" > b & <c>", mean_ms), row("udp b > a", mean_ms.map(|mean| mean * 2.0))],
    }
}

fn comparison(load: f64) -> Comparison {
    let predicted = (load < 1.0).then(|| 1.1 / (1.0 - load));
    let answers = vec![
        answer(Verb::Predict, None, predicted),
        answer(Verb::Predict, Some("mahmood"), predicted.map(|mean| mean * 1.5)),
        answer(Verb::Simulate, None, Some(1.0 / (1.05 - load.min(1.0)))),
        Answer::left_out(Answerer::new(Verb::Run), "needs emulation"),
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
}

#[test]
fn a_sweep_keeps_what_is_unstable() {
    let point = |(number, load): (usize, f64)| Point {
        values: vec![("traffic.rate".into(), format!("{}", load * 100.0)), ("p".into(), format!("0.{}", number % 2))],
        comparison: comparison(load),
    };
    let points: Vec<Point> = [0.2, 0.4, 0.6, 0.8, 1.2, 1.4].into_iter().enumerate().map(point).collect();
    let text = parsed(&page::swept(&points));
    for words in [
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
        Entry { file: "a.toml".into(), outcome: Outcome::Compared(Box::new(comparison(0.5))) },
        Entry { file: "b.toml".into(), outcome: Outcome::Failed("b.toml:3: found `x`, expected <y>".into()) },
    ];
    let board = Board::new(entries);
    assert!(!board.places.is_empty());
    let text = parsed(&page::board("scenarios & more", &board));
    for words in ["scenarios & more", "found `x`, expected <y>", "predict mahmood", "in common"] {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
}

#[test]
fn nothing_to_show_is_a_page() {
    let none = Comparison::new("empty", vec![Answer::left_out(Answerer::new(Verb::Predict), "no")], None);
    parsed(&page::single(&none));
    parsed(&page::swept(&[]));
    parsed(&page::board("", &Board::new(Vec::new())));
}
