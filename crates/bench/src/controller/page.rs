//! Page with charts of controller measurements.
use super::report::{ControllerBenchReport, notes};
use weir_plot::{Axis, Bar, BarChart, Chart, ChartPoint, ChartSeries, Figure, HtmlPage, LineStyle};

/// Length of a point of the course in seconds.
const COURSE_S: f64 = 0.1;

/// Returns the page.
pub(super) fn page(report: &ControllerBenchReport) -> String {
    let mut page = HtmlPage::new("Controllers: responses and delays");
    let settings = &report.settings;
    let asked = format!(
        "How many packet-ins a second of {} emulated switches (OpenFlow {}) are answered, and after which time?",
        settings.switches,
        settings.version.name()
    );
    let fastest = report.controllers.iter().max_by(|a, b| a.rate().total_cmp(&b.rate()));
    let answer = fastest.map_or_else(
        || "No controller had a result.".to_owned(),
        |best| format!("{} answered most: {:.0} a second.", best.controller, best.rate()),
    );
    page.answer(&asked, &answer);
    if !report.release_build {
        page.warning("This is no release build: the generator is slower than weir's is.");
    }
    page.figure(&rates(report), "").figure(&delays(report), "").figure(&course(report), "");
    page.heading("Figures").text("The figures as printed; delays are in microseconds.");
    for controller in &report.controllers {
        for note in notes(controller) {
            page.text(&format!("{}: {note}", controller.controller));
        }
    }
    for failure in &report.failures {
        page.warning(&format!("{}: no result: {}", failure.controller, failure.error));
    }
    page.finish("Measured with weir bench controller.")
}

fn rates(report: &ControllerBenchReport) -> Figure {
    let bar = |value| vec![Some(Bar { value, interval: None })];
    Figure::Bars(BarChart {
        name: "rates".to_owned(),
        title: "Responses".to_owned(),
        x: String::new(),
        y: Axis::linear("responses per second"),
        groups: vec![format!("{} switches", report.settings.switches)],
        series: report.controllers.iter().map(|one| (one.controller.clone(), bar(one.rate()))).collect(),
    })
}

fn delays(report: &ControllerBenchReport) -> Figure {
    let series = report.controllers.iter().map(|one| {
        let points = one.delay_quantiles_us.iter().map(|(share, us)| ChartPoint::new(*us, *share * 100.0));
        ChartSeries::looking(&one.controller, LineStyle::Curve, points.collect())
    });
    Figure::Chart(Chart {
        name: "delays".to_owned(),
        title: "Delay from a due request to its first answer".to_owned(),
        x: Axis::log("delay (us)"),
        y: Axis::linear("requests answered by then (%)"),
        series: series.collect(),
    })
}

fn course(report: &ControllerBenchReport) -> Figure {
    let series = report.controllers.iter().map(|one| {
        let points = (1..).zip(&one.course).map(|(at, rate)| ChartPoint::new(f64::from(at) * COURSE_S, *rate));
        ChartSeries::looking(&one.controller, LineStyle::Curve, points.collect())
    });
    Figure::Chart(Chart {
        name: "course".to_owned(),
        title: "Responses over time".to_owned(),
        x: Axis::linear("time (s)"),
        y: Axis::linear("responses per second"),
        series: series.collect(),
    })
}
