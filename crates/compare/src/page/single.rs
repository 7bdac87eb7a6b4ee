//! Page of one scenario.
use super::{ChartTimeUnit, MOST_FLOWS, decisions, flows, foot, introduce, verdicts};
use crate::answer::{AnswerSubject, PerformanceMetric, ScenarioAnswer, SubjectKind};
use crate::comparison::Comparison;
use weir_plot::{Axis, Bar, BarChart, Chart, ChartPoint, ChartSeries, Figure, HeatMap, HtmlPage, LineStyle, Panels};

/// Returns the page of one scenario as HTML.
pub fn single(comparison: &Comparison) -> String {
    let unit = ChartTimeUnit::of(std::iter::once(comparison));
    let mut page = HtmlPage::new(&format!("{}: answers side by side", comparison.scenario));
    if comparison.partial {
        page.warning("Stopped early, results are partial");
    }
    introduce(&mut page, comparison);
    let delayed = delayed(comparison);
    let judged = decisions(comparison);
    if !judged.rows.is_empty() {
        page.heading("Flow by flow").table(&judged);
    }
    if !delayed.is_empty() {
        let caption = "bars: 95 % intervals over rounds and replications, of medians also by order statistics";
        for (name, metric) in [("medians", PerformanceMetric::DelayP50), ("means", PerformanceMetric::DelayMean)] {
            let (title, axis) = match metric {
                PerformanceMetric::DelayP50 => ("Median delay", "median delay"),
                _ => ("Mean delay", "mean delay"),
            };
            page.heading(title).figure(&delays(comparison, &delayed, unit, name, metric, [title, axis]), caption);
        }
    }
    let panels = |figures: Vec<Figure>, name: &str, title: &str| {
        Figure::Panels(Panels { name: name.into(), title: title.into(), columns: 2, figures })
    };
    let shown = &delayed[..delayed.len().min(MOST_FLOWS)];
    let cdfs: Vec<Figure> = shown.iter().filter_map(|subject| distribution(comparison, subject, unit)).collect();
    if !cdfs.is_empty() {
        page.heading("Distributions of delay")
            .figure(&panels(cdfs, "distributions", "Share of packets that take no longer"), "");
    }
    if comparison.compared.iter().any(|compared| !compared.differences.is_empty()) {
        page.heading("Errors").figure(&errors(comparison), "differences from the reference, by answer and flow");
    }
    verdicts(&mut page, comparison);
    let pairs: Vec<Figure> = shown.iter().filter_map(|subject| quantiles(comparison, subject, unit)).collect();
    if !pairs.is_empty() {
        let caption = "quantile against quantile: on the line, both say the same";
        page.heading("Quantiles")
            .figure(&panels(pairs, "quantiles", "Quantiles against those of the reference"), caption);
    }
    if delayed.len() > MOST_FLOWS {
        page.text(&format!("Charts of distributions show the first {MOST_FLOWS} of {} flows", delayed.len()));
    }
    page.heading("Flows").table(&flows(comparison, unit));
    page.finish(&foot(comparison))
}

/// Returns the flows with delays.
fn delayed(comparison: &Comparison) -> Vec<&AnswerSubject> {
    let has = |subject: &&AnswerSubject| {
        comparison
            .answers
            .iter()
            .any(|answer| answer.row(subject).is_some_and(|row| row.value(PerformanceMetric::DelayMean).is_some()))
    };
    comparison.subjects(SubjectKind::Flow).into_iter().filter(has).collect()
}

/// Returns a chart of one figure of the delays of each flow.
fn delays(
    comparison: &Comparison,
    flows: &[&AnswerSubject],
    unit: ChartTimeUnit,
    name: &str,
    metric: PerformanceMetric,
    [title, axis]: [&str; 2],
) -> Figure {
    let shown = &flows[..flows.len().min(MOST_FLOWS)];
    let bar = |answer: &ScenarioAnswer, subject: &AnswerSubject| {
        let figure = *answer.row(subject)?.figures.get(&metric)?;
        let [value, half] = [figure.value, figure.half_width.unwrap_or(0.0)].map(|seconds| seconds * unit.per_second);
        Some(Bar { value, interval: (half > 0.0).then_some([(value - half).max(0.0), value + half]) })
    };
    let series = |answer: &ScenarioAnswer| {
        (answer.by.label().to_owned(), shown.iter().map(|subject| bar(answer, subject)).collect())
    };
    Figure::Bars(BarChart {
        name: name.into(),
        title: format!("{title} by flow"),
        x: String::new(),
        y: Axis::linear(format!("{axis}, {}", unit.name)),
        groups: shown.iter().map(|subject| subject.name.clone()).collect(),
        series: comparison.answers.iter().filter(|answer| answer.is_available()).map(series).collect(),
    })
}

/// Returns a heat map of errors by answerer and flow, and by metric.
fn errors(comparison: &Comparison) -> Figure {
    let metrics = [
        PerformanceMetric::DelayMean,
        PerformanceMetric::DelayP50,
        PerformanceMetric::DelayP95,
        PerformanceMetric::DelayP99,
        PerformanceMetric::Loss,
    ];
    let mut rows = Vec::new();
    for compared in &comparison.compared {
        for subject in comparison.subjects(SubjectKind::Flow).into_iter().take(MOST_FLOWS) {
            let error = |metric: &PerformanceMetric| {
                comparison.difference(&compared.by, subject, *metric)?.error().map(|error| error * 100.0)
            };
            let values: Vec<Option<f64>> = metrics.iter().map(error).collect();
            if values.iter().any(Option::is_some) {
                rows.push((format!("{}, {}", compared.by.label(), subject.name), values));
            }
        }
    }
    Figure::HeatMap(HeatMap {
        name: "errors".into(),
        title: "Error in %, of loss in percentage points".into(),
        x: String::new(),
        y: String::new(),
        columns: metrics.map(|metric| metric.name().to_owned()).into(),
        rows,
        most: Some(100.0),
    })
}

fn distribution(comparison: &Comparison, subject: &AnswerSubject, unit: ChartTimeUnit) -> Option<Figure> {
    let line = |answer: &ScenarioAnswer| {
        let row = answer.row(subject).filter(|row| !row.quantiles_s.is_empty())?;
        let points = row.quantiles_s.iter().map(|(share, delay_s)| ChartPoint::new(delay_s * unit.per_second, *share));
        Some(ChartSeries::looking(answer.by.label(), LineStyle::Curve, points.collect()))
    };
    let series: Vec<ChartSeries> = comparison.answers.iter().filter_map(line).collect();
    (!series.is_empty()).then(|| {
        Figure::Chart(Chart {
            name: "distribution".into(),
            title: subject.name.clone(),
            x: Axis::log(format!("delay, {}", unit.name)),
            y: Axis::linear("share of packets, from 0 to 1"),
            series,
        })
    })
}

fn quantiles(comparison: &Comparison, subject: &AnswerSubject, unit: ChartTimeUnit) -> Option<Figure> {
    let reference = comparison.answers.iter().find(|answer| comparison.is_reference(&answer.by))?;
    let own = &reference.row(subject)?.quantiles_s;
    let pairs = |answer: &ScenarioAnswer| {
        let others = &answer.row(subject).filter(|row| !row.quantiles_s.is_empty())?.quantiles_s;
        // Shares are equal in all answers, but an answer may lack some.
        let same = own.iter().filter_map(|(share, delay_s)| {
            let other = others.iter().find(|(other, _)| (other - share).abs() < 1e-9)?;
            Some((delay_s * unit.per_second, other.1 * unit.per_second))
        });
        Some((answer.by.label().to_owned(), same.collect::<Vec<_>>()))
    };
    let others = comparison.answers.iter().filter(|answer| !comparison.is_reference(&answer.by));
    let pairs: Vec<_> = others.filter_map(pairs).filter(|(_, pairs)| !pairs.is_empty()).collect();
    (!pairs.is_empty()).then(|| {
        let axes = (
            Axis::log(format!("delay, {}, {}", reference.by.label(), unit.name)),
            Axis::log(format!("delay, the others, {}", unit.name)),
        );
        Figure::Chart(Chart::quantiles("quantiles", subject.name.clone(), axes, pairs))
    })
}
