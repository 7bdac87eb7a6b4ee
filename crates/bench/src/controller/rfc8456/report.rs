//! Report of the tests of RFC 8456: parameters of section 4.8, and for each test the table of its reporting format.
use super::results::{ResultRow, TestResult, TrialTable};
use super::subject::TestSettings;
use crate::machine::BenchMachineInfo;
use serde::Serialize;
use std::fmt::Write as _;
use weir_terminal::prose::wrapped;
use weir_terminal::table::ReportTable;

/// Everything that was measured.
#[derive(Serialize)]
pub(super) struct Rfc8456Report {
    pub(super) machine: BenchMachineInfo,
    pub(super) release_build: bool,
    pub(super) settings: TestSettings,
    pub(super) emulator: EmulatorCapabilities,
    pub(super) controllers: Vec<TestedController>,
    /// Controllers that gave no result, and why.
    pub(super) failures: Vec<(String, String)>,
    /// True if Ctrl-C ended the tests.
    pub(super) is_partial: bool,
}

/// Capabilities of the test emulator (section 4.8).
#[derive(Debug, Clone, Serialize)]
pub(super) struct EmulatorCapabilities {
    /// Most switches that the command can be asked to emulate. No test tries as many.
    pub(super) max_devices: u32,
    /// Time of an asynchronous message and its response with a controller that only answers, in microseconds; and
    /// responses a second. `None` if they were not measured.
    pub(super) processing_us: Option<f64>,
    pub(super) processing_rate: Option<f64>,
}

/// Results of one controller.
#[derive(Serialize)]
pub(super) struct TestedController {
    pub(super) name: String,
    /// Parameters of section 4.8, in its order.
    pub(super) parameters: Vec<(String, String)>,
    pub(super) tests: Vec<TestResult>,
}

impl Rfc8456Report {
    /// Returns the report as text.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for controller in &self.controllers {
            let _ = writeln!(text, "{}\n", controller.name);
            let mut parameters = ReportTable::new(["parameter (RFC 8456, 4.8)", "value"]);
            controller.parameters.iter().for_each(|(name, value)| parameters.row([name, value]));
            self.emulator.rows().iter().for_each(|(name, value)| parameters.row([name, value]));
            let _ = writeln!(text, "{}\n", parameters.to_string().trim_end());
            for test in &controller.tests {
                text += &test_text(test);
            }
        }
        for (controller, error) in &self.failures {
            text += &wrapped(&format!("{controller}: no result: {error}\n"));
        }
        if self.is_partial {
            text += "Stopped early: tests that are missing were not made.\n";
        }
        if !self.release_build {
            text += "This is no release build: the emulator is slower than weir's is.\n";
        }
        text
    }

    /// Returns the report as CSV, a line for each value.
    pub(super) fn csv(&self) -> String {
        let mut text = "controller,section,test,table,row,column,unit,value,remark\n".to_owned();
        for controller in &self.controllers {
            for test in &controller.tests {
                let head = [quoted(&controller.name), test.section.to_owned(), quoted(test.title)].join(",");
                if let Some(reason) = &test.not_applicable {
                    let _ = writeln!(text, "{head},,,,,,{}", quoted(&format!("not applicable, because {reason}")));
                }
                for table in &test.tables {
                    csv_table(&head, table, &mut text);
                }
            }
        }
        text
    }
}

impl EmulatorCapabilities {
    /// Returns names and values for the report.
    pub(super) fn rows(&self) -> Vec<(String, String)> {
        let not_measured = || "not measured".to_owned();
        let time =
            self.processing_us.map_or_else(not_measured, |time| format!("{time:.0} us, with a peer that answers"));
        let rate = self.processing_rate.map_or_else(not_measured, |rate| format!("{rate:.0} 1/s, with this peer"));
        [
            ("emulator: most network devices", format!("{} can be asked for; not tried", self.max_devices)),
            ("emulator: control message processing time", time),
            ("emulator: control messages at most", rate),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec()
    }
}

fn csv_table(head: &str, table: &TrialTable, text: &mut String) {
    for row in lines(table) {
        for (column, value) in table.columns.iter().zip(&row.values) {
            let value = value.map_or_else(String::new, |value| value.to_string());
            let cells = [&table.caption, &row.name].map(|cell| quoted(cell)).join(",");
            let remark = quoted(&row.remark);
            let _ = writeln!(text, "{head},{cells},{},{},{value},{remark}", quoted(column.name), column.unit);
        }
    }
}

/// Returns the rows of a table with those of average and variance.
pub(super) fn lines(table: &TrialTable) -> Vec<ResultRow> {
    let summary = [("average", table.average), ("variance", table.variance)];
    let summary = summary.into_iter().filter(|(_, value)| value.is_some()).map(|(name, value)| ResultRow {
        name: name.to_owned(),
        values: vec![value],
        remark: String::new(),
    });
    table.rows.iter().cloned().chain(summary).collect()
}

fn test_text(test: &TestResult) -> String {
    let mut text = format!("{} {}\n", test.section, test.title);
    if let Some(reason) = &test.not_applicable {
        text += &wrapped(&format!("not applicable, because {reason}\n"));
    }
    for table in &test.tables {
        let head = table.columns.iter().map(|column| match column.unit {
            "" => column.name.to_owned(),
            unit => format!("{} ({unit})", column.name),
        });
        let all = lines(table);
        let has_remarks = all.iter().any(|row| !row.remark.is_empty());
        let first = if table.caption.is_empty() { "trial" } else { &table.caption };
        let last = if has_remarks { vec!["remark".to_owned()] } else { Vec::new() };
        let header = [first.to_owned()].into_iter().chain(head).chain(last);
        let mut shown = ReportTable::new(header).numbers(1..table.columns.len() + 1);
        for row in all {
            let unit = |row: &ResultRow| if row.name == "variance" { squared(table) } else { String::new() };
            let name = format!("{}{}", row.name, unit(&row));
            let values = (0..table.columns.len()).map(|at| figure(row.values.get(at).copied().flatten()));
            let remark = if has_remarks { vec![row.remark.clone()] } else { Vec::new() };
            shown.row([name].into_iter().chain(values).chain(remark));
        }
        let _ = writeln!(text, "{}", shown.to_string().trim_end());
    }
    for note in &test.notes {
        text += &wrapped(&format!("* {note}\n"));
    }
    text + "\n"
}

/// Returns the unit of a variance in brackets.
fn squared(table: &TrialTable) -> String {
    match table.columns.first().map(|column| column.unit) {
        Some("") | None => String::new(),
        Some(unit) => format!(" ({unit}^2)"),
    }
}

/// Returns a figure with about four digits.
pub(super) fn figure(value: Option<f64>) -> String {
    value.map_or_else(String::new, |value| {
        let digits = match value.abs() {
            0.0 => 0,
            size if value.fract() == 0.0 || size >= 1000.0 => 0,
            size if size >= 100.0 => 1,
            size if size >= 10.0 => 2,
            size if size >= 1.0 => 3,
            _ => 5,
        };
        format!("{value:.digits$}")
    })
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::super::results::{BenchmarkTest, TestOutcome};
    use super::*;
    use weir_terminal::table::MAX_WIDTH;

    fn result() -> TestResult {
        let mut table = TrialTable::new("frames of 128 bytes", &[("RPT", "ms"), ("flow-mods", "")]);
        table.trial(vec![Some(1.5), Some(3.0)]);
        table.trial(vec![Some(2.5), Some(3.0)]);
        let mut outcome = TestOutcome::measured(table.summed_up());
        outcome.note("switches in the path: 3");
        outcome.of(BenchmarkTest::ReactivePathTime)
    }

    #[test]
    fn a_table_has_a_row_for_each_trial_and_ends_with_average_and_variance() {
        let text = test_text(&result());
        let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("{part} in {text}"));
        assert!(at("5.1.4 Reactive") < at("trial 1") && at("trial 2") < at("average"));
        assert!(at("average") < at("variance (ms^2)") && at("0.50000") < at("* switches in the path"));
        let none = TestOutcome::not_applicable("there is no interface").of(BenchmarkTest::ProactivePathTime);
        assert!(test_text(&none).contains("not applicable, because there is no interface"));
    }

    #[test]
    fn remarks_fit_a_terminal() {
        let mut outcome = TestOutcome::not_applicable("found no gap in the frames ".repeat(8));
        outcome.note("what it does without a discovered topology is measured ".repeat(5));
        let text = test_text(&outcome.of(BenchmarkTest::ReprovisioningTime));
        assert!(text.lines().all(|line| line.chars().count() <= MAX_WIDTH), "{text}");
    }

    #[test]
    fn what_was_not_tried_is_said() {
        let none = EmulatorCapabilities { max_devices: 4096, processing_us: None, processing_rate: None };
        assert_eq!(none.rows()[0].1, "4096 can be asked for; not tried");
    }

    #[test]
    fn figures_have_about_four_digits() {
        let shown = [0.0, 3.0, 0.1234567, 1.23456, 12.3456, 123.456, 1234.56].map(|value| figure(Some(value)));
        assert_eq!(shown, ["0", "3", "0.12346", "1.235", "12.35", "123.5", "1235"]);
    }
}
