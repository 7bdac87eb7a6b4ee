//! Tests drawings and pages: well-formed documents, texts outside the field, and no external resources.
use proptest::prelude::*;
use roxmltree::{Document, Node};
use weir_plot::*;

fn chart(x: AxisScale, y: AxisScale, points: Vec<ChartPoint>) -> Chart {
    Chart {
        name: "c".into(),
        title: "Sojourn < \"rate\" & more".into(),
        x: Axis { label: "rate, packets/s".into(), scale: x },
        y: Axis { label: "delay, ms".into(), scale: y },
        series: vec![
            ChartSeries::line("SDN-4Q", points.clone()),
            ChartSeries::looking("a much longer name of a line <&>", LineStyle::Curve, points.clone()),
            ChartSeries::looking("steps", LineStyle::Steps, points.clone()),
            ChartSeries::looking("dots", LineStyle::Dots, points),
        ],
    }
}

fn value(node: Node<'_, '_>, name: &str) -> f64 {
    node.attribute(name).unwrap_or_else(|| panic!("{name} of {node:?}")).parse().unwrap()
}

/// Returns left, top, right and bottom of a text that is not rotated, with letters of the font's average width.
fn extent(text: Node<'_, '_>) -> [f64; 4] {
    let size = if text.attribute("class") == Some("t") { 15.0 } else { 13.0 };
    let width = text.text().unwrap_or_default().chars().count() as f64 * size * 0.55;
    let (x, y) = (value(text, "x"), value(text, "y"));
    let left = match text.attribute("text-anchor") {
        Some("middle") => x - width / 2.0,
        Some("end") => x - width,
        _ => x,
    };
    [left, y - size * 0.75, left + width, y + 2.0]
}

/// Checks that everything is inside the drawing, values are inside the field, texts are outside it, and texts do not
/// overlap.
fn check(svg: &str) {
    let document = Document::parse(svg).unwrap_or_else(|error| panic!("{error}\n{svg}"));
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
    let sides: Vec<f64> =
        document.root_element().attribute("viewBox").unwrap().split(' ').map(|part| part.parse().unwrap()).collect();
    let field = document.descendants().find(|node| node.attribute("class") == Some("f")).unwrap();
    let (left, top) = (value(field, "x"), value(field, "y"));
    let (right, bottom) = (left + value(field, "width"), top + value(field, "height"));
    for dot in document.descendants().filter(|node| node.has_tag_name("circle")) {
        let (x, y) = (value(dot, "cx"), value(dot, "cy"));
        assert!((left..=right).contains(&x) && (top..=bottom).contains(&y), "{dot:?}");
        assert!(dot.children().any(|child| child.has_tag_name("title")), "{dot:?}");
    }
    let texts: Vec<[f64; 4]> = document
        .descendants()
        .filter(|node| {
            node.has_tag_name("text")
                && node.attribute("transform").is_none()
                && !matches!(node.attribute("class"), Some("on" | "off" | "n"))
        })
        .map(extent)
        .collect();
    let apart = |a: &[f64; 4], b: &[f64; 4]| a[2] <= b[0] || b[2] <= a[0] || a[3] <= b[1] || b[3] <= a[1];
    for (at, text) in texts.iter().enumerate() {
        assert!(
            text[0] >= 0.0 && text[1] >= 0.0 && text[2] <= sides[2] && text[3] <= sides[3],
            "{text:?} in {sides:?}\n{svg}"
        );
        assert!(apart(text, &[left, top, right, bottom]), "{text:?} in the field\n{svg}");
        assert!(texts[at + 1..].iter().all(|other| apart(text, other)), "{text:?} touches another\n{svg}");
    }
}

#[test]
fn extreme_data_is_drawn_or_left_out_and_counted() {
    let cases: [Vec<ChartPoint>; 8] = [
        vec![],
        vec![ChartPoint::new(3.0, 3.0)],
        vec![ChartPoint::new(0.0, 0.0); 3],
        vec![ChartPoint::new(1.0, 5.0), ChartPoint::new(2.0, 5.0)],
        vec![ChartPoint::new(1e-12, 1e12), ChartPoint::new(1e12, 1e-12)],
        vec![ChartPoint::within(1.0, 1e-9, Some(1e-9)), ChartPoint::within(2.0, 1e9, Some(1.0))],
        vec![ChartPoint::new(f64::NAN, 1.0), ChartPoint::new(1.0, f64::INFINITY), ChartPoint::new(2.0, 2.0)],
        (0..1000).map(|at| ChartPoint::new(f64::from(at), f64::from(at * at))).collect(),
    ];
    for points in cases {
        for (x, y) in [
            (AxisScale::Linear, AxisScale::Linear),
            (AxisScale::Log, AxisScale::Log),
            (AxisScale::Linear, AxisScale::Log),
        ] {
            check(&chart(x, y, points.clone()).svg());
        }
    }
    let svg = chart(
        AxisScale::Linear,
        AxisScale::Linear,
        vec![ChartPoint::new(1.0, f64::INFINITY), ChartPoint::new(2.0, 2.0)],
    )
    .svg();
    assert!(svg.contains("4 without a value here"), "{svg}");
}

#[test]
fn dots_are_where_their_values_are() {
    let points = vec![ChartPoint::new(1.0, 0.0), ChartPoint::within(3.0, 10.0, Some(2.0)), ChartPoint::new(5.0, 20.0)];
    let svg =
        Chart { series: vec![ChartSeries::line("a", points)], ..chart(AxisScale::Linear, AxisScale::Linear, vec![]) }
            .svg();
    let document = Document::parse(&svg).unwrap();
    let dots: Vec<(f64, f64)> = document
        .descendants()
        .filter(|node| node.has_tag_name("circle"))
        .map(|dot| (value(dot, "cx"), value(dot, "cy")))
        .collect();
    let field = document.descendants().find(|node| node.attribute("class") == Some("f")).unwrap();
    let (left, top, width, height) =
        (value(field, "x"), value(field, "y"), value(field, "width"), value(field, "height"));
    assert_eq!(dots[0], (left, top + height));
    assert!((dots[1].0 - left - width / 2.0).abs() < 0.2 && (dots[1].1 - top - height / 2.0).abs() < 0.2, "{dots:?}");
    assert_eq!(dots[2], (left + width, top));
    assert!(svg.contains("a: 3, 10 (8 to 12)"), "{svg}");
}

#[test]
fn an_unstable_point_interrupts_its_line() {
    let points =
        [1.0, 2.0, f64::NAN, 4.0, 5.0].iter().zip(1..).map(|(y, x)| ChartPoint::new(f64::from(x), *y)).collect();
    let svg =
        Chart { series: vec![ChartSeries::line("a", points)], ..chart(AxisScale::Linear, AxisScale::Linear, vec![]) }
            .svg();
    // Two pieces of the line, and the sample in the legend.
    assert_eq!(svg.matches("stroke-width=\"2\"").count(), 3, "{svg}");
}

fn bars() -> BarChart {
    let bar = |value| Some(Bar { value, interval: Some([value * 0.9, value * 1.1]) });
    BarChart {
        name: "b".into(),
        title: "Utilisation".into(),
        x: "device".into(),
        y: Axis::linear("share"),
        groups: (0..12).map(|at| format!("a rather long switch name {at}")).collect(),
        series: vec![
            ("predicted".into(), (0..12).map(|at| bar(f64::from(at))).collect()),
            ("simulated".into(), (0..12).map(|at| if at == 3 { None } else { bar(-f64::from(at)) }).collect()),
        ],
    }
}

fn heat() -> HeatMap {
    HeatMap {
        name: "h".into(),
        title: "Error, %".into(),
        x: "rate, packets/s".into(),
        y: "model".into(),
        columns: vec!["20".into(), "40".into(), "60".into()],
        rows: vec![
            ("LCS".into(), vec![Some(1.0), Some(2.0), Some(3.0)]),
            ("Jarschel".into(), vec![Some(-10.0), None, Some(f64::INFINITY)]),
        ],
        most: None,
    }
}

#[test]
fn bars_maps_and_panels_are_well_formed() {
    check(&bars().svg());
    check(&BarChart { y: Axis::log("share"), ..bars() }.svg());
    check(&BarChart::default().svg());
    check(&heat().svg());
    check(&HeatMap::default().svg());
    let panels = Panels {
        name: "p".into(),
        title: "All".into(),
        columns: 2,
        figures: vec![
            bars().into(),
            heat().into(),
            chart(AxisScale::Log, AxisScale::Log, vec![ChartPoint::new(1.0, 1.0)]).into(),
        ],
    };
    let svg = Figure::from(panels).svg();
    let document = Document::parse(&svg).unwrap();
    assert_eq!(document.descendants().filter(|node| node.has_tag_name("g")).count(), 3);
    Document::parse(&Figure::from(Panels::default()).svg()).unwrap();
}

#[test]
fn a_page_is_well_formed_and_loads_nothing() {
    let nasty = "</title><script src=\"http://x\">alert(1)</script>";
    let mut page = HtmlPage::new(nasty);
    page.heading(nasty)
        .text(nasty)
        .warning(nasty)
        .list([("holds", false, nasty.into()), ("fails", true, nasty.into())]);
    let rows = vec![vec![nasty.into(), "1".into()], vec![HtmlCell::wrong("UNSTABLE"), "2".into()]];
    page.table(&HtmlTable { head: vec![nasty.into(), "ms".into()], texts: 1, rows });
    page.figure(
        &Figure::from(Chart {
            title: nasty.into(),
            ..chart(AxisScale::Linear, AxisScale::Linear, vec![ChartPoint::new(1.0, 2.0)])
        }),
        nasty,
    );
    page.details(nasty, |page| _ = page.text("inside"));
    let html = page.finish(nasty);
    let document = Document::parse(html.trim_start_matches("<!DOCTYPE html>")).unwrap();
    assert!(document.descendants().all(|node| !node.has_tag_name("script")));
    for node in document.descendants() {
        assert!(node.attributes().all(|attribute| !matches!(attribute.name(), "src" | "href")), "{node:?}");
    }
    assert!(!html.contains("@import") && !html.contains("url("));
}

fn lines(names: &[&str], look: LineStyle) -> Chart {
    let points = || [1.0, 2.0, 3.0].map(|x| ChartPoint::new(x, 2.0 * x)).to_vec();
    let series = names.iter().map(|name| ChartSeries::looking(*name, look, points())).collect();
    Chart { series, ..chart(AxisScale::Linear, AxisScale::Linear, vec![]) }
}

/// Returns the values of an attribute, in order, of all strokes that are not samples of the legend.
fn strokes<'a>(document: &'a Document<'_>, name: &str) -> Vec<&'a str> {
    let strokes = document.descendants().filter(|node| node.attribute("stroke-width") == Some("2"));
    let field = document.descendants().find(|node| node.attribute("class") == Some("f")).unwrap();
    strokes.filter(|node| *node > field).map(|node| node.attribute(name).unwrap_or_default()).collect()
}

#[test]
fn a_drawing_is_as_wide_as_its_page_and_follows_light_and_dark() {
    for svg in [lines(&["a"], LineStyle::Line).svg(), bars().svg(), heat().svg()] {
        let document = Document::parse(&svg).unwrap();
        let root = document.root_element();
        assert_eq!(root.attribute("width"), Some("100%"));
        assert!(root.attribute("viewBox").unwrap().starts_with("0 0 720 ") && !svg.contains("max-width"), "{svg}");
        assert!(svg.contains("prefers-color-scheme:dark") && svg.contains("color-scheme:light dark"));
    }
}

#[test]
fn a_legend_has_all_names_in_rows_above_the_field() {
    let names: Vec<String> = (0..9).map(|at| format!("a switch with a long name, number {at}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let svg = lines(&names, LineStyle::Line).svg();
    check(&svg);
    let document = Document::parse(&svg).unwrap();
    let top = value(document.descendants().find(|node| node.attribute("class") == Some("f")).unwrap(), "y");
    let entries: Vec<_> = document.descendants().filter(|node| node.attribute("class") == Some("l")).collect();
    assert_eq!(entries.iter().filter_map(|entry| entry.text()).collect::<Vec<_>>(), names);
    assert!(entries.iter().all(|entry| value(*entry, "y") < top));
    assert!(value(entries[8], "y") > value(entries[0], "y"), "entries are in several rows");
    // Units are beside both axes.
    let label = |class| document.descendants().find(|node| node.attribute("class") == Some(class)).unwrap().text();
    assert_eq!((label("x"), label("y")), (Some("rate, packets/s"), Some("delay, ms")));
}

#[test]
fn lines_that_coincide_are_drawn_in_turns_and_named() {
    let svg = lines(&["s1", "s2", "s3"], LineStyle::Line).svg();
    let document = Document::parse(&svg).unwrap();
    assert_eq!(strokes(&document, "stroke-dasharray"), ["9 18"; 3]);
    assert_eq!(strokes(&document, "stroke-dashoffset"), ["-0", "-9", "-18"]);
    assert!(svg.contains("Coincide, drawn in turns: s1; s2; s3"), "{svg}");
}

#[test]
fn lines_apart_have_dashes_and_markers_of_their_own() {
    let mut chart = lines(&["s1", "s2", "s3", "s4"], LineStyle::Curve);
    for (at, series) in chart.series.iter_mut().enumerate() {
        series.points.iter_mut().for_each(|point| point.y += at as f64);
    }
    let svg = chart.svg();
    let document = Document::parse(&svg).unwrap();
    let mut dashes = strokes(&document, "stroke-dasharray");
    dashes.sort_unstable();
    dashes.dedup();
    assert_eq!(dashes.len(), 4, "{svg}");
    assert!(!svg.contains("Coincide") && svg.contains("<circle") && svg.contains(" m\""), "{svg}");
}

#[test]
fn panels_of_a_page_are_drawings_of_their_own() {
    let figures = vec![lines(&["a"], LineStyle::Line).into(), lines(&["b"], LineStyle::Line).into()];
    let panels = Panels { name: "p".into(), title: "All".into(), columns: 2, figures };
    let mut page = HtmlPage::new("page");
    page.answer("Asked: what of <which>?", "This & that.").figure(&panels.into(), "");
    let html = page.finish("");
    assert_eq!(html.matches("<svg").count(), 2);
    assert!(html.contains("class=\"panels\"") && html.contains("Asked: what of &lt;which&gt;?"));
    assert!(html.contains("<p class=\"answer\">This &amp; that.</p>"), "{html}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_chart_is_well_formed(
        points in prop::collection::vec((prop::num::f64::ANY, prop::num::f64::ANY, prop::option::of(prop::num::f64::ANY)), 0..12),
        names in prop::collection::vec(".{0,80}", 0..6),
        log_x: bool, log_y: bool,
    ) {
        let scale = |log| if log { AxisScale::Log } else { AxisScale::Linear };
        let points: Vec<ChartPoint> = points.into_iter().map(|(x, y, half)| ChartPoint::within(x, y, half)).collect();
        let mut chart = chart(scale(log_x), scale(log_y), points.clone());
        chart.series.extend(names.into_iter().map(|name| ChartSeries::line(name, points.clone())));
        check(&chart.svg());
    }
}
