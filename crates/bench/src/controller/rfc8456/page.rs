//! Page with charts of the tests of RFC 8456.
use super::report::{Rfc8456Report, TestedController, figure, lines};
use super::results::{BenchmarkTest, TestResult, TrialTable};
use weir_plot::{
    Axis, Bar, BarChart, Chart, ChartPoint, ChartSeries, Figure, HtmlCell, HtmlPage, HtmlTable, LineStyle,
};

/// Returns the page.
pub(super) fn page(report: &Rfc8456Report) -> String {
    let mut page = HtmlPage::new("Controllers by the tests of RFC 8456");
    let applicable = |controller: &TestedController| {
        let measured = controller.tests.iter().filter(|test| test.not_applicable.is_none()).count();
        format!("{}: {measured} of {} tests gave a result", controller.name, controller.tests.len())
    };
    let answers: Vec<String> = report.controllers.iter().map(applicable).collect();
    let asked = format!("What do the tests of RFC 8456 say about a controller of a {}?", report.settings.plan.name);
    page.answer(&asked, &answers.join("; "));
    if !report.release_build {
        page.warning("This is no release build: the emulator is slower than weir's is.");
    }
    if report.is_partial {
        page.warning("The tests were stopped early.");
    }
    for test in BenchmarkTest::ALL {
        let results: Vec<(&str, &TestResult)> = report
            .controllers
            .iter()
            .flat_map(|controller| controller.tests.iter().map(|result| (controller.name.as_str(), result)))
            .filter(|(_, result)| result.test == test)
            .collect();
        if results.is_empty() {
            continue;
        }
        let (section, title) = test.title();
        page.heading(&format!("{section} {title}"));
        for drawn in drawings(test, &results) {
            page.figure(&drawn, "");
        }
        for (name, result) in &results {
            if let Some(reason) = &result.not_applicable {
                page.text(&format!("{name}: not applicable, because {reason}."));
            }
            for note in &result.notes {
                page.text(&format!("{name}: {note}."));
            }
            page.details(&format!("{name}: all trials"), |page| {
                for table in &result.tables {
                    page.table(&html_table(table));
                }
            });
        }
    }
    parameters(report, &mut page);
    page.finish("Measured with weir bench rfc8456.")
}

fn parameters(report: &Rfc8456Report, page: &mut HtmlPage) {
    page.heading("Parameters (section 4.8)");
    for controller in &report.controllers {
        let all = controller.parameters.iter().cloned().chain(report.emulator.rows());
        let rows = all.map(|(name, value)| vec![HtmlCell::from(name), HtmlCell::from(value)]).collect();
        page.table(&HtmlTable { head: vec![controller.name.clone(), "value".to_owned()], texts: 2, rows });
    }
    for (controller, error) in &report.failures {
        page.warning(&format!("{controller}: no result: {error}"));
    }
}

fn html_table(table: &TrialTable) -> HtmlTable {
    let columns = table.columns.iter().map(|column| format!("{} {}", column.name, column.unit).trim().to_owned());
    let head = [table.caption.clone()].into_iter().chain(columns).chain(["remark".to_owned()]).collect();
    let rows = lines(table).into_iter().map(|row| {
        let values = (0..table.columns.len()).map(|at| HtmlCell::from(figure(row.values.get(at).copied().flatten())));
        [HtmlCell::from(row.name)].into_iter().chain(values).chain([HtmlCell::from(row.remark)]).collect()
    });
    HtmlTable { head, texts: 1, rows: rows.collect() }
}

/// Returns the charts of a test: of the rate of section 5.1.3 responses and loss over the offered rate, otherwise the
/// averages of all controllers.
fn drawings(test: BenchmarkTest, results: &[(&str, &TestResult)]) -> Vec<Figure> {
    if test == BenchmarkTest::MessageProcessingRate {
        return [(0, "responses per second", "processed"), (2, "loss ratio", "loss")]
            .map(|(column, label, name)| over_offered(results, column, label, name))
            .to_vec();
    }
    averages(test, results).into_iter().collect()
}

fn over_offered(results: &[(&str, &TestResult)], column: usize, label: &str, name: &str) -> Figure {
    let tables = results.iter().flat_map(|(name, result)| result.tables.iter().map(move |table| (name, table)));
    let series = tables.map(|(name, table)| {
        let value = |values: &[Option<f64>], at: usize| values.get(at).copied().flatten();
        let mut points: Vec<(f64, f64)> =
            table.rows.iter().filter_map(|row| value(&row.values, 1).zip(value(&row.values, column))).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let points = points.into_iter().map(|(x, y)| ChartPoint::new(x, y)).collect();
        ChartSeries::looking(format!("{name}, {}", table.caption), LineStyle::Curve, points)
    });
    Figure::Chart(Chart {
        name: name.to_owned(),
        title: format!("Asynchronous messages: {label}"),
        x: Axis::linear("offered rate (messages per second)"),
        y: Axis::linear(label),
        series: series.collect(),
    })
}

fn averages(test: BenchmarkTest, results: &[(&str, &TestResult)]) -> Option<Figure> {
    let first = results.iter().find_map(|(_, result)| result.tables.first())?;
    let groups: Vec<String> = match results.iter().map(|(_, result)| &result.tables).max_by_key(|tables| tables.len()) {
        Some(tables) => tables.iter().map(|table| table.caption.clone()).collect(),
        None => return None,
    };
    let bar = |table: &TrialTable| {
        let interval = table.variance.zip(table.average).map(|(variance, mean)| {
            let deviation = variance.sqrt();
            [mean - deviation, mean + deviation]
        });
        let value = table.average.or_else(|| table.results().last().copied())?;
        Some(Bar { value, interval })
    };
    let series: Vec<_> = results
        .iter()
        .map(|(name, result)| {
            let bars =
                groups.iter().map(|group| result.tables.iter().find(|table| table.caption == *group).and_then(&bar));
            ((*name).to_owned(), bars.collect())
        })
        .collect();
    let column = first.columns.first()?;
    let label =
        if column.unit.is_empty() { column.name.to_owned() } else { format!("{} ({})", column.name, column.unit) };
    Some(Figure::Bars(BarChart {
        name: format!("test-{}", test.title().0.replace('.', "-")),
        title: format!("{}, average over trials and its standard deviation", test.title().1),
        x: String::new(),
        y: Axis::linear(label),
        groups,
        series,
    }))
}
